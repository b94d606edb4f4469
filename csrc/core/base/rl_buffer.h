/*
 * A bounded queue of bytes: what is still to be sent to a node.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef RL_BUFFER_H
#define RL_BUFFER_H

#include <stdbool.h>
#include <stddef.h>

typedef struct rl_buffer {
  char *data;
  size_t head;     /* first byte that has not been consumed */
  size_t tail;     /* one past the last byte */
  size_t capacity; /* of data */
} rl_buffer;

void rl_buffer_free(rl_buffer *buffer);

static inline size_t rl_buffer_length(const rl_buffer *buffer) {
  return buffer->tail - buffer->head;
}

/*
 * Makes room for |length| more bytes behind the tail and returns where they go, or NULL when memory
 * is short. With |grow| false nothing is allocated: NULL when the present memory is too small.
 */
char *rl_buffer_reserve(rl_buffer *buffer, size_t length, bool grow);

/* Takes |length| bytes off the head. The memory is kept for the next use. */
void rl_buffer_consume(rl_buffer *buffer, size_t length);

/* Empties it. */
void rl_buffer_clear(rl_buffer *buffer);

#endif
