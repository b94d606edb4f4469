/*
 * Inspecting: what the nodes hold under the key of a lock.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef RL_INSPECT_H
#define RL_INSPECT_H

#include "lock/rl_steps.h"

/* X(state, its name). */
#define RL_KEY_STATES(X)                                                                           \
  X(REDLOCK_KEY_UNKNOWN, unknown)                                                                  \
  X(REDLOCK_KEY_FREE, free)                                                                        \
  X(REDLOCK_KEY_HELD, held)                                                                        \
  X(REDLOCK_KEY_OTHER, other)

/* The answer of one node. */
typedef struct rl_inspected {
  uint8_t state; /* a redlock_key_state */
  uint16_t token_length;
  redlock_duration ttl_us; /* REDLOCK_NEVER: the key does not expire */
  uint64_t fence;          /* counter beside the key; 0: none */
  char token[REDLOCK_TOKEN_MAX + 1];
} rl_inspected;

/* Returns the answer of a node; NULL if the lock was not inspected. */
const rl_inspected *rl_inspect_of(const rl_lock *lock, unsigned node);

/*
 * INSP-4. Returns the answer of a node with the token that a majority holds; NULL if no token has a
 * majority. |*ttl_us| receives the time until the majority expires, |*nodes| the nodes with the
 * token.
 */
const rl_inspected *rl_inspect_holder(const rl_lock *lock, redlock_duration *ttl_us,
                                      unsigned *nodes);

/* INSP-5. Returns the fencing token of |holder|, of rl_inspect_holder(); 0: none, or not known. */
uint64_t rl_inspect_holder_fence(const rl_lock *lock, const rl_inspected *holder);

#endif
