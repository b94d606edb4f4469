/* SPDX-License-Identifier: MIT */
#include "base/rl_buffer.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#define RL_BUFFER_CAPACITY_MIN 4096

void rl_buffer_free(rl_buffer *buffer) {
  free(buffer->data);
  memset(buffer, 0, sizeof *buffer);
}

static bool rl_buffer_grow(rl_buffer *buffer, size_t needed) {
  size_t capacity =
      buffer->capacity < RL_BUFFER_CAPACITY_MIN ? RL_BUFFER_CAPACITY_MIN : buffer->capacity;
  while (capacity < needed) {
    capacity *= 2;
  }
  char *data = realloc(buffer->data, capacity);
  if (data == NULL) {
    return false;
  }
  buffer->data = data;
  buffer->capacity = capacity;
  return true;
}

char *rl_buffer_reserve(rl_buffer *buffer, size_t length, bool grow) {
  if (buffer->capacity - buffer->tail >= length && buffer->data != NULL) {
    return buffer->data + buffer->tail;
  }
  if (buffer->head > 0) {
    assert(buffer->data != NULL);
    memmove(buffer->data, buffer->data + buffer->head, rl_buffer_length(buffer));
    buffer->tail -= buffer->head;
    buffer->head = 0;
  }
  if (buffer->data == NULL || buffer->capacity - buffer->tail < length) {
    if (!grow || !rl_buffer_grow(buffer, buffer->tail + length)) {
      return NULL;
    }
  }
  return buffer->data + buffer->tail;
}

bool rl_buffer_copy_newest(rl_buffer *buffer, const rl_buffer *from, bool grow) {
  size_t length = from->newest;
  bool whole = length > 0 && length <= rl_buffer_length(from);
  char *out = whole ? rl_buffer_reserve(buffer, length, grow) : NULL;
  if (out == NULL) {
    return false;
  }
  memcpy(out, from->data + from->tail - length, length);
  rl_buffer_append(buffer, length);
  return true;
}

void rl_buffer_consume(rl_buffer *buffer, size_t length) {
  assert(length <= rl_buffer_length(buffer));
  buffer->head += length;
  if (buffer->head == buffer->tail) {
    rl_buffer_clear(buffer);
  }
}

void rl_buffer_clear(rl_buffer *buffer) {
  buffer->head = 0;
  buffer->tail = 0;
}
