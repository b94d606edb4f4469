/*
 * The function that a test calls at its end. Programs without cmocka use it, too.
 *
 * SPDX-License-Identifier: MIT
 */
#include "tests.h"

static bool (*tests_end)(void);

void tests_at_end(bool (*end)(void)) {
  tests_end = end;
}

bool tests_ended(void) {
  bool (*end)(void) = tests_end;
  tests_end = NULL;
  return end == NULL || end();
}
