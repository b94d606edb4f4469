/*
 * Operations, and the words for them.
 *
 * SPDX-License-Identifier: MIT
 */
#include "base/rl_operation.h"

#include <string.h>

const char *rl_operation_name(rl_operation operation) {
  switch (operation) {
#define RL_OPERATION_NAME(value, name, gerund)                                                     \
  case value:                                                                                      \
    return #name;
    RL_OPERATIONS(RL_OPERATION_NAME)
  default:
    return "unknown";
  }
}

const char *rl_operation_gerund(rl_operation operation) {
  switch (operation) {
#define RL_OPERATION_GERUND(value, name, gerund)                                                   \
  case value:                                                                                      \
    return gerund;
    RL_OPERATIONS(RL_OPERATION_GERUND)
  default:
    return "unknown";
  }
}

rl_operation rl_operation_of_name(const char *name) {
#define RL_OPERATION_FIND(value, text, gerund)                                                     \
  if (strcmp(name, #text) == 0) {                                                                  \
    return value;                                                                                  \
  }
  RL_OPERATIONS(RL_OPERATION_FIND)
  return RL_OPERATION_NONE;
}
