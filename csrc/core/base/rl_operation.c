/*
 * Operations and their words.
 *
 * SPDX-License-Identifier: MIT
 */
#include "base/rl_operation.h"

const char *rl_operation_gerund(rl_operation operation) {
#define RL_OPERATION_GERUND(value, gerund, done) (gerund),
  static const char *const gerunds[] = {RL_OPERATIONS(RL_OPERATION_GERUND)};
  return gerunds[operation];
}

const char *rl_operation_done(rl_operation operation) {
#define RL_OPERATION_DONE(value, gerund, done) (done),
  static const char *const results[] = {RL_OPERATIONS(RL_OPERATION_DONE)};
  return results[operation];
}
