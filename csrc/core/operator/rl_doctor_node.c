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

const char *rl_doctor_node_master(const rl_doctor_node *node,
                                  char of[static RL_DOCTOR_MASTER_SIZE]) {
  char host[RL_DOCTOR_WORD_MAX + 1], port[RL_DOCTOR_WORD_MAX + 1];
  of[0] = '\0';
  if (rl_doctor_node_value(node, "master", host)[0] != '\0' &&
      rl_doctor_node_value(node, "port", port)[0] != '\0') {
    bool brackets = strchr(host, ':') != NULL;
    (void)snprintf(of, RL_DOCTOR_MASTER_SIZE, " of %s%s%s:%s", brackets ? "[" : "", host,
                   brackets ? "]" : "", port);
  }
  return of;
}

uint64_t rl_doctor_node_major(const rl_doctor_node *node, const char **product) {
  char version[RL_DOCTOR_WORD_MAX + 1];
  uint64_t major;
  *product = "Valkey";
  if (rl_doctor_node_value(node, "valkey", version)[0] == '\0') {
    *product = "Redis";
    (void)rl_doctor_node_value(node, "version", version);
  }
  size_t digits = rl_number_in_digits(version, strlen(version), &major);
  return version[digits] == '.' || version[digits] == '\0' ? major : 0;
}

int64_t rl_doctor_node_ahead(const rl_doctor_node *node, const rl_doctor_node *other) {
  uint64_t ahead_us = other->clock_us - node->clock_us;
  return ahead_us <= INT64_MAX ? (int64_t)ahead_us : -(int64_t)(UINT64_MAX - ahead_us) - 1;
}

const rl_doctor_node *rl_doctor_median(const rl_doctor *doctor) {
  unsigned known = 0;
  for (unsigned i = 0; i < doctor->count; i++) {
    known += doctor->nodes[i].has_clock;
  }
  for (unsigned i = 0; i < doctor->count; i++) {
    const rl_doctor_node *node = &doctor->nodes[i];
    unsigned behind = 0; /* clocks behind this one; of equal clocks, those of earlier nodes */
    for (unsigned k = 0; k < doctor->count && node->has_clock; k++) {
      const rl_doctor_node *other = &doctor->nodes[k];
      int64_t ahead_us = other->has_clock ? rl_doctor_node_ahead(node, other) : -1;
      behind += k != i && (ahead_us > 0 || (ahead_us == 0 && k < i));
    }
    if (node->has_clock && behind == (known - 1) / 2) {
      return node;
    }
  }
  return NULL;
}
