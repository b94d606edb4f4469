/*
 * Operations and their words.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef RL_OPERATION_H
#define RL_OPERATION_H

/*
 * X(operation, gerund, the result of a node that granted it).
 * From INSPECT on: the operations that ask the nodes (operator/rl_ask.h).
 */
#define RL_OPERATIONS(X)                                                                           \
  X(RL_OPERATION_NONE, "idle", "did nothing")                                                      \
  X(RL_OPERATION_ACQUIRE, "acquiring", "granted it")                                               \
  X(RL_OPERATION_EXTEND, "extending", "extended it")                                               \
  X(RL_OPERATION_RELEASE, "releasing", "confirmed its release")                                    \
  X(RL_OPERATION_INSPECT, "inspecting", "reported their keys")                                     \
  X(RL_OPERATION_FORCE_RELEASE, "releasing by force", "confirmed its release")                     \
  X(RL_OPERATION_DOCTOR, "asking for the doctor", "were examined")                                 \
  X(RL_OPERATION_BOOTSTRAP, "making the nodes ready", "may vote")

#define RL_OPERATION_ENUM(value, gerund, done) value,
typedef enum rl_operation { RL_OPERATIONS(RL_OPERATION_ENUM) RL_OPERATION_COUNT } rl_operation;
#undef RL_OPERATION_ENUM

#define RL_OPERATION_FIRST_ASKED RL_OPERATION_INSPECT
#define RL_OPERATIONS_ASKED (RL_OPERATION_COUNT - RL_OPERATION_FIRST_ASKED)

const char *rl_operation_gerund(rl_operation operation);
const char *rl_operation_done(rl_operation operation);

#endif
