/*
 * Inspecting: what the nodes hold under a lock's key.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef RL_INSPECT_H
#define RL_INSPECT_H

#include "lock/rl_lock.h"
#include "lock/rl_steps.h"
#include "node/rl_node.h"
#include "wire/rl_reply.h"

/* X(state, its name). */
#define RL_KEY_STATES(X)                                                                           \
  X(REDLOCK_KEY_UNKNOWN, unknown)                                                                  \
  X(REDLOCK_KEY_FREE, free)                                                                        \
  X(REDLOCK_KEY_HELD, held)                                                                        \
  X(REDLOCK_KEY_OTHER, other)

/* What one node has said. */
typedef struct rl_inspected {
  uint8_t state; /* a redlock_key_state */
  uint16_t token_length;
  redlock_duration ttl_us; /* REDLOCK_NEVER: the key does not expire */
  char token[REDLOCK_TOKEN_MAX + 1];
} rl_inspected;

typedef struct rl_inspection {
  unsigned count;
  rl_inspected nodes[];
} rl_inspection;

/*
 * I3. Notes what |node| has said, if it is to this round. Returns NULL, or what is strange about the
 * key, in |text|.
 */
const char *rl_inspect_note(rl_lock *lock, const rl_node *node, const rl_outstanding *owed,
                            const rl_reply *reply, char *text, size_t size);

/* What a node holds; NULL when the lock was not inspected. */
const rl_inspected *rl_inspect_of(const rl_lock *lock, unsigned node);

/*
 * I5. A node that holds the token which a majority holds, and until when the majority lasts if nothing
 * is done, |*ttl_us|, and on how many nodes it is, |*nodes|; NULL when no token has a majority.
 */
const rl_inspected *rl_inspect_holder(const rl_lock *lock, redlock_duration *ttl_us,
                                      unsigned *nodes);

/* What the nodes hold under the lock's key (rl_inspect.c); deleting it by force (rl_force.c). */
int rl_lock_inspect(rl_lock *lock, redlock_time now_us, bool notify);

extern const rl_steps rl_inspect_steps;

#endif
