/*
 * Operations, and the words for them.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef RL_OPERATION_H
#define RL_OPERATION_H

typedef enum rl_operation {
  RL_OPERATION_NONE = 0,
  RL_OPERATION_ACQUIRE,
  RL_OPERATION_EXTEND,
  RL_OPERATION_RELEASE,
  RL_OPERATION_INSPECT,
  RL_OPERATION_FORCE_RELEASE,
  RL_OPERATION_DOCTOR,
  RL_OPERATION_BOOTSTRAP
} rl_operation;

/* X(operation, its name, what a lock is that is at it). */
#define RL_OPERATIONS(X)                                                                           \
  X(RL_OPERATION_NONE, none, "idle")                                                               \
  X(RL_OPERATION_ACQUIRE, acquire, "acquiring")                                                    \
  X(RL_OPERATION_EXTEND, extend, "extending")                                                      \
  X(RL_OPERATION_RELEASE, release, "releasing")                                                    \
  X(RL_OPERATION_INSPECT, inspect, "inspecting")                                                   \
  X(RL_OPERATION_FORCE_RELEASE, force_release, "releasing by force")                               \
  X(RL_OPERATION_DOCTOR, doctor, "asking for the doctor")                                          \
  X(RL_OPERATION_BOOTSTRAP, bootstrap, "making the nodes ready")

const char *rl_operation_name(rl_operation operation);
const char *rl_operation_gerund(rl_operation operation);

/* The operation of that name; RL_OPERATION_NONE when there is none. */
rl_operation rl_operation_of_name(const char *name);

#endif
