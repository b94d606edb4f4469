/*
 * The tests of a program. Each registers itself, and they run in the order of the file:
 *
 *   TEST(lease_is_extended) {
 *     ...
 *   }
 *
 * SPDX-License-Identifier: MIT
 *
 * A program without main() gets that of tests_main.c.
 */
#ifndef TESTS_H
#define TESTS_H

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#define TEST(test)                                                                                 \
  static void test(void **state);                                                                  \
  __attribute__((constructor)) static void register_##test(void) {                                 \
    static tests_case self = {.name = #test, .run = test, .line = __LINE__};                       \
    tests_register(&self);                                                                         \
  }                                                                                                \
  static void test(void **state)

/* A test that needs epoll and timerfd. */
#ifdef __linux__
#define LINUX_TEST(test) TEST(test)
#else
#define LINUX_TEST(test) __attribute__((unused)) static void test(void **state)
#endif

typedef struct tests_case {
  const char *name;
  CMUnitTestFunction run;
  unsigned line;
  void *state;
  struct tests_case *next;
} tests_case;

/* Functions that run before and after the tests; each may be NULL. */
typedef struct tests_fixture {
  CMFixtureFunction start;  /* before all tests; each test gets the state that it sets */
  CMFixtureFunction before; /* before each test; it may set the state of the test */
  CMFixtureFunction after;
  CMFixtureFunction end;
} tests_fixture;

void tests_register(tests_case *self);

/* Runs all tests. Returns the number of those that failed. */
int tests_run(const tests_fixture *fixture);

/*
 * Calls |end| once at the end of the test, even if it fails. If |end| returns false, the test
 * fails. A program has at most one |end|.
 */
void tests_at_end(bool (*end)(void));

/* Calls the |end| of tests_at_end(), if it was given, and returns its result. */
bool tests_ended(void);

#endif
