/*
 * The configuration: names, defaults, bounds.
 *
 * SPDX-License-Identifier: MIT
 */
#include <stdlib.h>
#include <string.h>

#include "model.h"

typedef struct model_name {
  const char *name;
  size_t offset;
  unsigned smallest, largest;
  const char *text;
} model_name;

#define MODEL_NAME(field, smallest, largest, text)                                                 \
  {#field, offsetof(model_config, field), smallest, largest, text},
static const model_name model_names[] = {
    {"attempts0", offsetof(model_config, attempts), 0, 3, "attempts of client A"},
    {"attempts1", offsetof(model_config, attempts) + sizeof(unsigned), 0, 3,
     "attempts of client B"},
    {"quorum0", offsetof(model_config, quorum), 0, MODEL_NODES_MAX,
     "votes that client A asks for; 0: a majority"},
    {"quorum1", offsetof(model_config, quorum) + sizeof(unsigned), 0, MODEL_NODES_MAX,
     "votes that client B asks for; 0: a majority"},
    MODEL_FIELDS(MODEL_NAME)};
#define MODEL_NAMES (sizeof model_names / sizeof model_names[0])

static unsigned *model_field(model_config *config, const model_name *name) {
  return (unsigned *)(void *)((char *)config + name->offset);
}

model_config model_config_default(void) {
  model_config config;
  memset(&config, 0, sizeof config);
  config.nodes = 3;
  config.ttl = 3;
  config.attempts[0] = 1;
  config.attempts[1] = 1;
  config.properties = MODEL_SAFETY;
  return config;
}

static bool model_config_allowed(const model_config *config) {
  return config->attempts[0] + config->attempts[1] <= MODEL_ATTEMPTS_MAX &&
         (config->fence == 0 || config->hands == 0) &&
         (config->native == 0 ||
          (config->attempts[0] + config->attempts[1] <= 2 && config->ttl <= 3 &&
           config->fence + config->guard + config->hands + config->round_unchecked +
                   config->extend_recreate + config->extend_foreign + config->token_reused ==
               0));
}

bool model_config_set(model_config *config, const char *assignment) {
  const char *equals = strchr(assignment, '=');
  if (equals == NULL) {
    return false;
  }
  for (size_t i = 0; i < MODEL_NAMES; i++) {
    const model_name *name = &model_names[i];
    char *end;
    if (strncmp(assignment, name->name, (size_t)(equals - assignment)) != 0 ||
        name->name[equals - assignment] != '\0') {
      continue;
    }
    unsigned long value = strtoul(equals + 1, &end, 10);
    if (end == equals + 1 || *end != '\0' || value < name->smallest || value > name->largest) {
      return false;
    }
    *model_field(config, name) = (unsigned)value;
    return model_config_allowed(config);
  }
  return false;
}

void model_config_read(model_config *config, const char *settings) {
  char words[256];
  char *rest = NULL;
  (void)snprintf(words, sizeof words, "%s", settings);
  for (char *word = strtok_r(words, " ", &rest); word != NULL; word = strtok_r(NULL, " ", &rest)) {
    if (!model_config_set(config, word)) {
      (void)fprintf(stderr, "model: %s is wrong\n", word);
      exit(2); /* Another configuration would be searched. */
    }
  }
}

void model_config_print_names(FILE *out) {
  for (size_t i = 0; i < MODEL_NAMES; i++) {
    const model_name *name = &model_names[i];
    (void)fprintf(out, "  %-18s %u to %-3u %s\n", name->name, name->smallest, name->largest,
                  name->text);
  }
}

void model_config_print(FILE *out, const model_config *config) {
  model_config given = *config;
  model_config usual = model_config_default();
  const char *space = "";
  for (size_t i = 0; i < MODEL_NAMES; i++) {
    unsigned value = *model_field(&given, &model_names[i]);
    if (value != *model_field(&usual, &model_names[i])) {
      (void)fprintf(out, "%s%s=%u", space, model_names[i].name, value);
      space = " ";
    }
  }
}
