/*
 * A queue of bytes: the output that is not yet sent to a node. The caller bounds its length.
 *
 * SPDX-License-Identifier: MIT
 *
 * csrc/core/base is the lowest layer: arithmetic, containers, names and texts. It includes nothing
 * of the core but its own files. The whole core uses memory, strings and assert() only: no clock,
 * no socket, no thread (make check-pure).
 */
#ifndef RL_BUFFER_H
#define RL_BUFFER_H

#include <stdbool.h>
#include <stddef.h>

typedef struct rl_buffer {
  char *data;
  size_t head;     /* first byte that is not consumed */
  size_t tail;     /* one past the last byte */
  size_t capacity; /* of data */
  size_t newest;   /* bytes of the newest command */
} rl_buffer;

void rl_buffer_free(rl_buffer *buffer);

static inline size_t rl_buffer_length(const rl_buffer *buffer) {
  return buffer->tail - buffer->head;
}

/*
 * Makes room for |length| more bytes and returns the tail, or NULL if memory is short. With |grow|
 * false it allocates nothing.
 */
char *rl_buffer_reserve(rl_buffer *buffer, size_t length, bool grow);

/* Notes that a command of |length| bytes was written to the reserved room. */
static inline void rl_buffer_append(rl_buffer *buffer, size_t length) {
  buffer->newest = length;
  buffer->tail += length;
}

/*
 * Appends the newest command of |from|. Returns false, and appends nothing, if a part of it was
 * sent already, or if memory is short.
 */
bool rl_buffer_copy_newest(rl_buffer *buffer, const rl_buffer *from, bool grow);

/* Removes |length| bytes at the head. Keeps the memory for the next use. */
void rl_buffer_consume(rl_buffer *buffer, size_t length);

/* Empties the queue. Keeps the memory. */
void rl_buffer_clear(rl_buffer *buffer);

#endif
