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

#define FIELD(field) #field, offsetof(model_config, field)

static const model_name model_names[] = {
    {FIELD(nodes), 1, MODEL_NODES_MAX, "how many"},
    {FIELD(ttl), 1, MODEL_TTL_MAX, "of keys, in ticks"},
    {FIELD(drift), 0, MODEL_TTL_MAX, "ticks by which a lease ends before its keys"},
    {"attempts0", offsetof(model_config, attempts), 0, 3, "attempts of client A"},
    {"attempts1", offsetof(model_config, attempts) + sizeof(unsigned), 0, 3,
     "attempts of client B"},
    {FIELD(extends), 0, MODEL_EXTENDS_MAX, "extends of each lease"},
    {FIELD(hands), 0, 1, "a lease may be detached, and attached by any attempt"},
    {"quorum0", offsetof(model_config, quorum), 0, MODEL_NODES_MAX,
     "votes that client A asks for; 0: a majority"},
    {"quorum1", offsetof(model_config, quorum) + sizeof(unsigned), 0, MODEL_NODES_MAX,
     "votes that client B asks for; 0: a majority"},
    {FIELD(order), 0, 3,
     "of requests: 0 any, 1 as sent in an attempt, 2 as sent, 3 releases first"},
    {FIELD(list), 0, MODEL_NODES_MAX, "nodes that client B knows; 0: all"},
    {FIELD(properties), 0, MODEL_PROPERTIES,
     "the sum of 1 exclusion, 2 revival, 4 continuity, 8 touch, 16 orphan, 32 fence"},
    {FIELD(fence), 0, 1, "attempts ask for fencing tokens"},
    {FIELD(ahead), 0, 9, "up to where a clock may raise a counter, in place of by one"},
    {FIELD(timeless), 0, 1, "no ticks: keys vanish at any moment, and leases at none"},
    {FIELD(guard), 0, 1, "only nodes vote whose record is old enough"},
    {FIELD(prompt), 0, 1, "clients look at records as soon as they know that they must"},
    {FIELD(crashes), 0, 3, "restarts without keys"},
    {FIELD(kept), 0, 1, "the record may survive the restart"},
    {FIELD(flushes), 0, 3, "times that a node that goes on loses its keys and its record"},
    {FIELD(quarantine), 0, 7, "ticks for which a restarted node grants nothing"},
    {FIELD(proxy), 0, 1, "connections survive the restart"},
    {FIELD(losses), 0, 3, "keys that a node loses"},
    {FIELD(early), 0, 1, "any key may expire a tick early"},
    {FIELD(freezes), 0, 3, "ticks that a client's clock misses"},
    {FIELD(doubles), 0, 3, "keys that are granted though somebody has them"},
    {FIELD(no_elapsed), 0, 1, "elapsed time is not subtracted"},
    {FIELD(no_recheck), 0, 1, "the deadline is not looked at after the votes"},
    {FIELD(extend_any), 0, 1, "one confirmation is enough for an extend"},
    {FIELD(extend_foreign), 0, 1, "\"not yours\" counts for an extend"},
    {FIELD(extend_recreate), 0, 1, "an extend sets missing keys at once"},
    {FIELD(extend_late), 0, 1, "an extend may succeed after the old deadline"},
    {FIELD(round_unchecked), 0, 1, "late replies of one extend count for the next"},
    {FIELD(token_reused), 0, 1, "one token for all attempts of a client"},
    {FIELD(set_overwrites), 0, 1, "SET without NX"},
    {FIELD(release_blind), 0, 1, "a release deletes whatever is there"},
    {FIELD(release_to_voters), 0, 1, "a release goes only where a vote was counted"},
    {FIELD(attach_keeps), 0, 1, "what is attached keeps the handed token"},
    {FIELD(attach_creates), 0, 1, "a key that is missing is attached, too"},
    {FIELD(attach_all), 0, 1, "a node that may yet execute a SET of the handed token has a vote"},
    {FIELD(deadline_ignored), 0, 1, "a holder goes on after its deadline"},
    {FIELD(fence_naive), 0, 1, "the token is the greatest number of a majority, unconfirmed"},
    {FIELD(fence_unawaited), 0, 1, "the nodes are told that number, but not waited for"},
    {FIELD(fence_blind), 0, 1, "they take it also if the key is not ours any more"},
    {FIELD(fence_above), 0, 1, "a later vote with a greater number confirms"},
    {FIELD(guard_unchecked), 0, 1, "the record is looked at by the handshake only"},
    {FIELD(guard_nameless), 0, 1, "the script does not look whose the record is"},
    {FIELD(guard_heals), 0, 1, "a lease's key is given to nodes that may not vote, too"},
};

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
         (config->fence == 0 || config->hands == 0);
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
