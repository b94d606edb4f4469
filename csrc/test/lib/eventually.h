/*
 * Waits until a condition is true, and fails the test after a deadline.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef EVENTUALLY_H
#define EVENTUALLY_H

#include <poll.h>

#include "redlock.h"
#include "tests.h"

/*
 * More than a loaded machine needs. An event that the test excludes must take longer: a ttl, a
 * retry delay.
 */
#define EVENTUALLY_US (30 * REDLOCK_SECONDS)

/* Polls until |condition| is true. */
#define eventually(condition) eventually_by((void)poll(NULL, 0, 1), condition)

/* The same, with |step| before each further check. */
#define eventually_by(step, condition)                                                             \
  do {                                                                                             \
    redlock_time eventually_us = redlock_now() + EVENTUALLY_US;                                    \
    while (!(condition)) {                                                                         \
      if (redlock_now() > eventually_us) {                                                         \
        fail_msg("in vain waited for: %s", #condition);                                            \
      }                                                                                            \
      step;                                                                                        \
    }                                                                                              \
  } while (0)

#endif
