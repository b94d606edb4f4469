/*
 * The names of votes, of nodes' states and of operations.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef RL_NAME_H
#define RL_NAME_H

#include "rl_lock.h"

/* X(vote, its name). */
#define RL_VOTES(X)                                                                                \
  X(REDLOCK_VOTE_UNKNOWN, unknown)                                                                 \
  X(REDLOCK_VOTE_GRANTED, granted)                                                                 \
  X(REDLOCK_VOTE_TAKEN, taken)                                                                     \
  X(REDLOCK_VOTE_ERROR, error)

/* X(state, its name). */
#define RL_NODE_STATES(X)                                                                          \
  X(REDLOCK_NODE_DOWN, down)                                                                       \
  X(REDLOCK_NODE_CONNECTING, connecting)                                                           \
  X(REDLOCK_NODE_UP, up)

/* X(operation, its name, what a lock is that is at it). */
#define RL_OPERATIONS(X)                                                                           \
  X(RL_OPERATION_NONE, none, "idle")                                                               \
  X(RL_OPERATION_ACQUIRE, acquire, "acquiring")                                                    \
  X(RL_OPERATION_EXTEND, extend, "extending")                                                      \
  X(RL_OPERATION_RELEASE, release, "releasing")

const char *rl_operation_name(rl_operation operation);
const char *rl_operation_gerund(rl_operation operation);

/* The operation of that name; RL_OPERATION_NONE when there is none. */
rl_operation rl_operation_of_name(const char *name);

#endif
