/*
 * Searches a text, and shows it if the part is not there.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef ASSERT_CONTAINS_H
#define ASSERT_CONTAINS_H

#include <string.h>

#define assert_contains(text, part)                                                                \
  do {                                                                                             \
    if (strstr((text), (part)) == NULL) {                                                          \
      fail_msg("\"%s\" does not contain \"%s\"", (text), (part));                                  \
    }                                                                                              \
  } while (0)

#endif
