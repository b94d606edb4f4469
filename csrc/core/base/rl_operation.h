/*
 * Operations and their names.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef RL_OPERATION_H
#define RL_OPERATION_H

/*
 * X(operation, name, gerund, the result of a node that granted it).
 * From INSPECT on: the operations that ask the nodes (operator/rl_ask.h).
 */
#define RL_OPERATIONS(X)                                                                           \
  X(RL_OPERATION_NONE, none, "idle", "did nothing")                                                \
  X(RL_OPERATION_ACQUIRE, acquire, "acquiring", "granted it")                                      \
  X(RL_OPERATION_EXTEND, extend, "extending", "extended it")                                       \
  X(RL_OPERATION_RELEASE, release, "releasing", "confirmed its release")                           \
  X(RL_OPERATION_INSPECT, inspect, "inspecting", "reported their keys")                            \
  X(RL_OPERATION_FORCE_RELEASE, force_release, "releasing by force", "confirmed its release")      \
  X(RL_OPERATION_DOCTOR, doctor, "asking for the doctor", "were examined")                         \
  X(RL_OPERATION_BOOTSTRAP, bootstrap, "making the nodes ready", "may vote")

#define RL_OPERATION_ENUM(value, name, gerund, done) value,
typedef enum rl_operation { RL_OPERATIONS(RL_OPERATION_ENUM) RL_OPERATION_COUNT } rl_operation;
#undef RL_OPERATION_ENUM

#define RL_OPERATION_FIRST_ASKED RL_OPERATION_INSPECT
#define RL_OPERATIONS_ASKED (RL_OPERATION_COUNT - RL_OPERATION_FIRST_ASKED)

const char *rl_operation_name(rl_operation operation);
const char *rl_operation_gerund(rl_operation operation);
const char *rl_operation_done(rl_operation operation);

/* Returns the operation with that name; RL_OPERATION_NONE if there is none. */
rl_operation rl_operation_of_name(const char *name);

#endif
