/*
 * The names of votes, of nodes' states and of operations.
 *
 * SPDX-License-Identifier: MIT
 */
#include "rl_name.h"

#include <string.h>

#define RL_NAME_CASE(value, name)                                                                  \
  case value:                                                                                      \
    return #name;

const char *redlock_vote_name(int vote) {
  switch (vote) {
    RL_VOTES(RL_NAME_CASE)
  default:
    return "unknown";
  }
}

const char *redlock_node_state_name(int state) {
  switch (state) {
    RL_NODE_STATES(RL_NAME_CASE)
  default:
    return "unknown";
  }
}

const char *rl_operation_name(rl_operation operation) {
  switch (operation) {
#define RL_NAME_OF_OPERATION(value, name, gerund) RL_NAME_CASE(value, name)
    RL_OPERATIONS(RL_NAME_OF_OPERATION)
  default:
    return "unknown";
  }
}

const char *rl_operation_gerund(rl_operation operation) {
  switch (operation) {
#define RL_NAME_GERUND(value, name, gerund)                                                        \
  case value:                                                                                      \
    return gerund;
    RL_OPERATIONS(RL_NAME_GERUND)
  default:
    return "unknown";
  }
}

rl_operation rl_operation_of_name(const char *name) {
#define RL_NAME_FIND(value, text, gerund)                                                          \
  if (strcmp(name, #text) == 0) {                                                                  \
    return value;                                                                                  \
  }
  RL_OPERATIONS(RL_NAME_FIND)
  return RL_OPERATION_NONE;
}
