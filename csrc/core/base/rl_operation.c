/*
 * Operations and their words. The rows are in rl_operation.h.
 *
 * SPDX-License-Identifier: MIT
 */
#include "base/rl_operation.h"

#include <stddef.h>

#define RL_OPERATION_WORDS(operation, name, gerund, done, scripted, expired, has)                  \
  {gerund, done, scripted, expired},
const rl_operation_words rl_operation_words_of[RL_OPERATION_COUNT] = {
    {"idle", "did nothing", NULL, NULL}, RL_OPERATIONS(RL_OPERATION_WORDS)};
