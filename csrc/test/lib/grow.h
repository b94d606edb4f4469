/*
 * Arrays that grow.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef GROW_H
#define GROW_H

#include <stdio.h>
#include <stdlib.h>

/*
 * Returns |items| with room for one more item of |size| bytes behind |count|, moved if it had none.
 * Doubles |*capacity|, which must begin as 0 with |items| as NULL. Ends the program if there is no
 * memory.
 */
static inline void *grow(void *items, size_t size, size_t count, size_t *capacity) {
  if (count < *capacity) {
    return items;
  }
  *capacity = *capacity == 0 ? 64 : 2 * *capacity;
  items = realloc(items, *capacity * size);
  if (items == NULL) {
    (void)fputs("out of memory\n", stderr);
    abort();
  }
  return items;
}

#endif
