/*
 * A witness: a thread that records how late the scheduler runs this process.
 *
 * SPDX-License-Identifier: MIT
 *
 * A test that checks a bound in real time adds the delay that its witness saw. A slow machine then
 * delays the test and the witness alike, and only the product's own delay can fail the test.
 *
 *     within (150 * REDLOCK_MILLISECONDS) {
 *       assert_int_equal(redlock_lock_acquire(lock), REDLOCK_E_UNAVAILABLE);
 *     }
 *
 * The block must be repeatable: it runs again, at most 20 times, if the observed delay exceeds the
 * bound.
 */
#ifndef WITNESS_H
#define WITNESS_H

#include <stdbool.h>

#include "redlock.h"

/* Starts the witness of this process. Does nothing if it runs; a forked child starts its own. */
void witness_start(void);

/*
 * Returns the sum of all delays that the witness has seen since |since_us|, a time of
 * redlock_now().
 */
redlock_duration witness_delay_us(redlock_time since_us);

typedef struct witness_round {
  redlock_duration bound_us;
  redlock_time began_us;
  const char *file;
  int line;
  unsigned repetitions;
  bool started;
} witness_round;

witness_round witness_begin(redlock_duration bound_us, const char *file, int line);

/*
 * Returns true if the block must run: for the first time, or again because of a stall. Fails the
 * test if the block took longer than the bound plus the observed delay. Prints each repetition.
 */
bool witness_more(witness_round *round);

#define within(bound)                                                                              \
  for (witness_round within_round = witness_begin((bound), __FILE__, __LINE__);                    \
       witness_more(&within_round);)

#endif
