/*
 * The tests of a program. Each registers itself.
 *
 * SPDX-License-Identifier: MIT
 */
#include "tests.h"

#include <stdlib.h>

static tests_case *tests_first;
static tests_fixture tests_around;
static void *tests_state; /* what |start| has set */

/* The compiler determines the order of constructors, the line that of the tests. */
void tests_register(tests_case *self) {
  tests_case **at = &tests_first;
  while (*at != NULL && (*at)->line < self->line) {
    at = &(*at)->next;
  }
  self->next = *at;
  *at = self;
}

static int tests_start(void **state) {
  return tests_around.start == NULL ? 0 : tests_around.start(&tests_state);
}

static int tests_before(void **state) {
  tests_case *self = *state;
  self->state = tests_state;
  return tests_around.before == NULL ? 0 : tests_around.before(&self->state);
}

static void tests_run_case(void **state) {
  tests_case *self = *state;
  self->run(&self->state);
  assert_true(tests_ended());
}

static int tests_after(void **state) {
  tests_case *self = *state;
  (void)tests_ended();
  return tests_around.after == NULL ? 0 : tests_around.after(&self->state);
}

static int tests_finish(void **state) {
  return tests_around.end == NULL ? 0 : tests_around.end(&tests_state);
}

int tests_run(const tests_fixture *fixture) {
  struct CMUnitTest *tests = NULL;
  size_t count = 0;
  tests_around = *fixture;
  for (tests_case *self = tests_first; self != NULL; self = self->next) {
    tests = realloc(tests, (count + 1) * sizeof *tests);
    if (tests == NULL) {
      abort();
    }
    tests[count++] =
        (struct CMUnitTest){self->name, tests_run_case, tests_before, tests_after, self};
  }
  int failed = _cmocka_run_group_tests("tests", tests, count, tests_start, tests_finish);
  free(tests);
  return failed;
}
