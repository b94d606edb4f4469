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

#include "assert_contains.h"
#include "redlock.h"
#include "tests.h"
#include "witness.h"

#define MS REDLOCK_MILLISECONDS
#define SECONDS REDLOCK_SECONDS

#define COUNT_OF(array) (sizeof(array) / sizeof((array)[0]))

/* Compares errors by name, so that a failing test prints "taken" instead of -1. */
#define assert_error(actual, expected)                                                             \
  assert_string_equal(redlock_error_name(actual), redlock_error_name(expected))

#endif
