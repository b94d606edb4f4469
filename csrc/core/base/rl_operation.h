/*
 * Operations and their words.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef RL_OPERATION_H
#define RL_OPERATION_H

/*
 * X(operation, name, gerund, the result of a node that granted it). The steps of the operation are
 * rl_NAME_steps (lock/rl_steps.h).
 * From INSPECT on: the operations that ask the nodes (operator/rl_ask.h).
 */
#define RL_OPERATIONS(X)                                                                           \
  X(ACQUIRE, acquire, "acquiring", "granted it")                                                   \
  X(EXTEND, extend, "extending", "extended it")                                                    \
  X(RELEASE, release, "releasing", "confirmed its release")                                        \
  X(INSPECT, inspect, "inspecting", "reported their keys")                                         \
  X(FORCE_RELEASE, force_release, "releasing by force", "confirmed its release")                   \
  X(DOCTOR, doctor, "asking for the doctor", "were examined")                                      \
  X(BOOTSTRAP, bootstrap, "making the nodes ready", "may vote")

#define RL_OPERATION_ENUM(operation, ...) RL_OPERATION_##operation,
typedef enum rl_operation {
  RL_OPERATION_NONE,
  RL_OPERATIONS(RL_OPERATION_ENUM) RL_OPERATION_COUNT
} rl_operation;
#undef RL_OPERATION_ENUM

#define RL_OPERATION_FIRST_ASKED RL_OPERATION_INSPECT
#define RL_OPERATIONS_ASKED (RL_OPERATION_COUNT - RL_OPERATION_FIRST_ASKED)

typedef struct rl_operation_words {
  const char *gerund, *done;
} rl_operation_words;

extern const rl_operation_words rl_operation_words_of[RL_OPERATION_COUNT];

#endif
