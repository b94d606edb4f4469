/*
 * Reads the answer of a node to the doctor: words of the form name=value.
 *
 * SPDX-License-Identifier: MIT
 */
#include "operator/rl_doctor_node.h"

#include <stdio.h>
#include <string.h>

#include "base/rl_number.h"

const char *rl_doctor_node_find(const rl_doctor_node *node, const char *name, size_t *length) {
  size_t name_length = strlen(name);
  const char *word = node->answered ? node->said : "";
  while (*word != '\0') {
    size_t word_length = strcspn(word, " ");
    bool named = strncmp(word, name, name_length) == 0 && word[name_length] == '=';
    bool last = strncmp(word, "said=", 5) == 0;
    if (named) {
      *length = (last ? strlen(word) : word_length) - name_length - 1;
      return word + name_length + 1;
    }
    word += last ? strlen(word) : word_length + strspn(word + word_length, " ");
  }
  return NULL;
}

const char *rl_doctor_node_value(const rl_doctor_node *node, const char *name,
                                 char value[static RL_DOCTOR_WORD_MAX + 1]) {
  size_t length = 0;
  const char *reported = rl_doctor_node_find(node, name, &length);
  length = length < RL_DOCTOR_WORD_MAX ? length : RL_DOCTOR_WORD_MAX;
  (void)snprintf(value, RL_DOCTOR_WORD_MAX + 1, "%.*s", (int)length,
                 reported != NULL ? reported : "");
  return value;
}

bool rl_doctor_node_is(const rl_doctor_node *node, const char *name, const char *value) {
  size_t length = 0;
  const char *reported = rl_doctor_node_find(node, name, &length);
  return reported != NULL && length == strlen(value) && memcmp(reported, value, length) == 0;
}

bool rl_doctor_node_number(const rl_doctor_node *node, const char *name, uint64_t *number) {
  size_t length = 0;
  const char *reported = rl_doctor_node_find(node, name, &length);
  return reported != NULL && length > 0 &&
         rl_number_in_digits(reported, length, number) == length && *number <= RL_NUMBER_MAX;
}
