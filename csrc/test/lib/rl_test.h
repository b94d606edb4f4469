/*
 * Included by every unit test.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef RL_TEST_H
#define RL_TEST_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <poll.h>
#include <sys/wait.h>

#include "assert_contains.h"
#include "eventually.h"
#include "redlock.h"
#include "tests.h"
#include "witness.h"

#define MS REDLOCK_MILLISECONDS
#define SECONDS REDLOCK_SECONDS

#define COUNT_OF(array) (sizeof(array) / sizeof((array)[0]))

/* Compares errors by name, so that a failing test prints "taken" instead of -1. */
#define assert_error(actual, expected)                                                             \
  assert_string_equal(redlock_error_name(actual), redlock_error_name(expected))

/* Waits for a forked process. Returns its exit status, or -1 if it has none. */
static inline int exit_status(pid_t child) {
  int status = -1;
  assert_true(child > 0);
  assert_int_equal(waitpid(child, &status, 0), child);
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

#endif
