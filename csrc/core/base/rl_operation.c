/*
 * Operations and their words. The rows are in rl_operation.h.
 *
 * SPDX-License-Identifier: MIT
 */
#include "base/rl_operation.h"

#define RL_OPERATION_WORDS(operation, name, gerund, done) {gerund, done},
const rl_operation_words rl_operation_words_of[RL_OPERATION_COUNT] = {
    {"idle", "did nothing"}, RL_OPERATIONS(RL_OPERATION_WORDS)};
