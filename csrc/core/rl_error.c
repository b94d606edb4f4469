/*
 * Errors by name and by sentence.
 *
 * SPDX-License-Identifier: MIT
 */
#include <stddef.h>

#include "redlock.h"

/* error, the name that the Lua module uses, a sentence */
#define RL_ERRORS(X)                                                                               \
  X(REDLOCK_OK, "ok", "no error")                                                                  \
  X(REDLOCK_PENDING, "pending", "the operation has not ended yet")                                 \
  X(REDLOCK_E_TAKEN, "taken", "others hold the lock on too many nodes")                            \
  X(REDLOCK_E_UNAVAILABLE, "unavailable", "too many nodes did not answer or answered an error")    \
  X(REDLOCK_E_EXPIRED, "expired", "the majority came too late, or the lease had run out")          \
  X(REDLOCK_E_LOST, "lost", "too many nodes say that the lock is not ours")                        \
  X(REDLOCK_E_HELD, "held", "the lock is held already")                                            \
  X(REDLOCK_E_NOT_HELD, "not_held", "the lock is not held")                                        \
  X(REDLOCK_E_CLOSED, "closed", "the client has been closed")                                      \
  X(REDLOCK_E_CANCELLED, "cancelled", "the operation was cancelled")                               \
  X(REDLOCK_E_INVALID, "invalid", "an argument is wrong")                                          \
  X(REDLOCK_E_BUSY, "busy", "the lock has an operation in flight already")                         \
  X(REDLOCK_E_UNSUPPORTED, "unsupported", "TLS is not built in this version")                      \
  X(REDLOCK_E_LIMIT, "limit", "a limit of the library was exceeded")                               \
  X(REDLOCK_E_NO_MEMORY, "no_memory", "out of memory")                                             \
  X(REDLOCK_E_SYSTEM, "system", "the operating system refused a descriptor, a clock or entropy")

const char *redlock_strerror(int error) {
  switch (error) {
#define RL_ERROR_SENTENCE(code, name, sentence)                                                    \
  case code:                                                                                       \
    return sentence;
    RL_ERRORS(RL_ERROR_SENTENCE)
  default:
    return "unknown error";
  }
}

const char *redlock_error_name(int error) {
  switch (error) {
#define RL_ERROR_NAME(code, name, sentence)                                                        \
  case code:                                                                                       \
    return name;
    RL_ERRORS(RL_ERROR_NAME)
  default:
    return "unknown";
  }
}

const char *redlock_version(void) {
  return REDLOCK_VERSION;
}
