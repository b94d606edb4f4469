/*
 * Bytes of nodes and callers as printable text, for messages.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef RL_PRINTABLE_H
#define RL_PRINTABLE_H

#include <stddef.h>

/*
 * Copies bytes as a text of at most |size| - 1 bytes. A byte that is below |least|, or is no
 * printable ASCII character, becomes '?'.
 */
static inline void rl_printable_copy(char *text, size_t size, const char *bytes, size_t length,
                                     char least) {
  length = length < size ? length : size - 1;
  for (size_t i = 0; i < length; i++) {
    text[i] = bytes[i] >= least && bytes[i] < 0x7f ? bytes[i] : '?';
  }
  text[length] = '\0';
}

#endif
