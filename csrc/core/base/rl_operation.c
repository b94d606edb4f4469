/*
 * Operations and their names.
 *
 * SPDX-License-Identifier: MIT
 */
#include "base/rl_operation.h"

#include <string.h>

typedef struct rl_operation_words {
  const char *name, *gerund, *done;
} rl_operation_words;

static const rl_operation_words *rl_operation_words_of(rl_operation operation) {
#define RL_OPERATION_WORDS(value, name, gerund, done) {#name, gerund, done},
  static const rl_operation_words words[] = {RL_OPERATIONS(RL_OPERATION_WORDS)};
  static const rl_operation_words unknown = {"unknown", "unknown", "unknown"};
  return (unsigned)operation < RL_OPERATION_COUNT ? &words[operation] : &unknown;
}

const char *rl_operation_name(rl_operation operation) {
  return rl_operation_words_of(operation)->name;
}

const char *rl_operation_gerund(rl_operation operation) {
  return rl_operation_words_of(operation)->gerund;
}

const char *rl_operation_done(rl_operation operation) {
  return rl_operation_words_of(operation)->done;
}

rl_operation rl_operation_of_name(const char *name) {
  rl_operation operation = RL_OPERATION_COUNT;
  while (operation > RL_OPERATION_NONE && strcmp(name, rl_operation_name(operation)) != 0) {
    operation--;
  }
  return operation;
}
