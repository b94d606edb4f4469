/*
 * Errors: names, sentences and kinds.
 *
 * SPDX-License-Identifier: MIT
 *
 * CONTRIBUTING.md has the recipe (An error code).
 */
#ifndef RL_ERROR_H
#define RL_ERROR_H

#include "redlock.h"

/* The meaning of an error for the program. */
typedef enum rl_error_kind {
  RL_ERROR_NO = 0,  /* no error */
  RL_ERROR_FAILURE, /* can happen to any program, which must handle it */
  RL_ERROR_CALLER,  /* a mistake in the program */
  RL_ERROR_MACHINE, /* a resource of the machine is exhausted */
  RL_ERROR_STRANGE  /* no code of this library */
} rl_error_kind;

/* X(error, name, kind, sentence). */
#define RL_ERRORS(X)                                                                               \
  X(REDLOCK_OK, ok, NO, "no error")                                                                \
  X(REDLOCK_PENDING, pending, NO, "the operation has not ended yet")                               \
  X(REDLOCK_E_TAKEN, taken, FAILURE, "another client holds the lock")                              \
  X(REDLOCK_E_UNAVAILABLE, unavailable, FAILURE,                                                   \
    "too many nodes did not answer or answered an error")                                          \
  X(REDLOCK_E_EXPIRED, expired, FAILURE, "the lease has expired")                                  \
  X(REDLOCK_E_LOST, lost, FAILURE, "too many nodes no longer have the token of the lock")          \
  X(REDLOCK_E_HELD, held, FAILURE, "the lock is held already")                                     \
  X(REDLOCK_E_NOT_HELD, not_held, FAILURE, "the lock is not held")                                 \
  X(REDLOCK_E_CLOSED, closed, FAILURE, "the client has been closed")                               \
  X(REDLOCK_E_CANCELLED, cancelled, FAILURE, "the operation was cancelled")                        \
  X(REDLOCK_E_MAX_HOLD, max_hold, FAILURE,                                                         \
    "max_hold has ended the automatic extension of the lock")                                      \
  X(REDLOCK_E_CLOCK, clock, FAILURE,                                                               \
    "the clocks of too many nodes that have the lock were stepped")                                \
  X(REDLOCK_E_INVALID, invalid, CALLER, "an argument is wrong")                                    \
  X(REDLOCK_E_BUSY, busy, CALLER, "the lock has an operation in flight already")                   \
  X(REDLOCK_E_UNSUPPORTED, unsupported, CALLER, "this version does not support that")              \
  X(REDLOCK_E_LIMIT, limit, CALLER, "a limit of the library was exceeded")                         \
  X(REDLOCK_E_NO_MEMORY, no_memory, MACHINE, "out of memory")                                      \
  X(REDLOCK_E_SYSTEM, system, MACHINE,                                                             \
    "the operating system refused a descriptor, a thread, a clock or entropy")

rl_error_kind rl_error_kind_of(int error);

#endif
