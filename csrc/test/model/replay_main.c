/*
 * The replay's command line.
 *
 * SPDX-License-Identifier: MIT
 */
#include <stdlib.h>
#include <string.h>

#include "replay.h"

#define REPLAY_STEPS_MAX 100
#define REPLAY_WALKS 20000
#define REPLAY_CONTROL_WALKS 20000
#define REPLAY_MEMORY ((size_t)2048 << 20)

/* Walks of the protocol, assumptions kept. Each walk takes the next of them. */
static const char *const replay_walk_settings[] = {
    "order=3 ttl=3 attempts0=2 attempts1=2",
    "order=3 ttl=4 extends=2 attempts0=2 attempts1=2",
    "order=3 ttl=4 extends=2 drift=1 early=1",
    "order=3 ttl=5 extends=2 drift=1 freezes=1 attempts0=2",
    "order=3 ttl=3 extends=1 crashes=2 quarantine=3 attempts0=2 attempts1=2",
    "order=3 ttl=4 extends=2 crashes=3 quarantine=4",
    "order=3 ttl=4 extends=2 crashes=2 quarantine=4 proxy=1",
    "order=2 ttl=4 extends=2 attempts0=2 attempts1=2",
    "order=3 ttl=4 extends=2 losses=3 attempts0=2",
    "order=3 ttl=5 extends=2 losses=3 drift=1",
    "order=3 nodes=1 ttl=4 extends=2 attempts0=2 attempts1=2",
    "order=3 nodes=2 ttl=4 extends=2 attempts0=2 attempts1=2",
    "order=3 nodes=4 ttl=4 extends=2 attempts0=2 attempts1=2",
    "order=3 nodes=5 ttl=5 extends=2 attempts0=2 attempts1=2 crashes=2 quarantine=5",
    "order=3 nodes=5 ttl=5 extends=2 drift=1 early=1 freezes=1",
    "order=3 ttl=4 quorum0=3 extends=2 losses=3 attempts0=2",
    "fence=1 ahead=4 order=3 ttl=3 attempts0=2 attempts1=2",
    "fence=1 ahead=5 order=3 ttl=4 extends=2 losses=2",
    "fence=1 ahead=4 order=3 ttl=4 quorum0=3 attempts0=2",
    "fence=1 ahead=4 order=3 timeless=1 attempts0=2 attempts1=2",
    "fence=1 ahead=6 order=3 timeless=1 extends=2 attempts0=2 attempts1=1",
    "fence=1 ahead=4 order=3 ttl=4 extends=2 crashes=2 quarantine=4 proxy=1",
    "fence=1 ahead=6 order=2 nodes=5 ttl=5 extends=1 attempts0=2 attempts1=2",
    "fence=1 ahead=4 order=3 nodes=5 timeless=1 attempts0=2 attempts1=2",
    "guard=1 prompt=1 order=2 ttl=3 quarantine=4 crashes=2 flushes=1 attempts0=2 attempts1=2",
    "guard=1 prompt=1 order=2 ttl=3 quarantine=4 crashes=2 proxy=1 kept=1 attempts0=2 attempts1=2",
    "guard=1 prompt=1 order=2 ttl=3 quarantine=4 flushes=3 extends=2 attempts0=2",
    "guard=1 prompt=1 order=2 ttl=4 quarantine=5 crashes=2 proxy=1 kept=1 flushes=1 extends=2",
    "guard=1 prompt=1 order=2 ttl=3 quarantine=4 crashes=3 extends=2 attempts0=2",
    "guard=1 prompt=1 order=2 ttl=3 quarantine=4 nodes=5 crashes=3 flushes=2 attempts0=2 attempts1=2",
    "guard=1 prompt=1 order=2 ttl=3 quarantine=4 crashes=2 flushes=2 fence=1 ahead=4 attempts0=2",
    "fence=1 ahead=3 order=3 nodes=4 ttl=4 extends=1 drift=1 early=1 attempts0=2",
};

#define REPLAY_WALK_SETTINGS (sizeof replay_walk_settings / sizeof replay_walk_settings[0])

/* Rules whose absence in the model the walks must detect. */
static const char *const replay_controls[] = {
    "no_elapsed=1",      "no_recheck=1",      "quorum0=1 quorum1=1", "quorum0=3",
    "extend_any=1",      "extend_foreign=1",  "extend_recreate=1",   "extend_late=1",
    "round_unchecked=1", "set_overwrites=1",  "release_blind=1",     "release_to_voters=1",
    "guard_unchecked=1", "guard_nameless=1",  "guard_heals=1",       "quarantine=3",
    "fence_naive=1",     "fence_unawaited=1", "fence_blind=1",       "fence_above=1",
};

#define REPLAY_EVENT_TEXT(name, text) text,
static const char *const replay_event_texts[] = {REPLAY_EVENT_LIST(REPLAY_EVENT_TEXT)};

typedef struct replay_arguments {
  uint64_t seed;
  uint64_t walks;
  bool only_walks;
} replay_arguments;

static int replay_usage(void) {
  (void)fprintf(stderr, "usage: model_replay [options]\n"
                        "  --seed N     the first walk's seed [1]\n"
                        "  --walks N    how many random walks [20000]\n"
                        "  --only-walks neither counter-examples nor controls\n");
  return 2;
}

static bool replay_number(const char *word, uint64_t *number) {
  char *end;
  if (word == NULL || word[0] < '0' || word[0] > '9') {
    return false;
  }
  *number = strtoull(word, &end, 10);
  return *end == '\0';
}

static bool replay_read(int count, char **words, replay_arguments *arguments) {
  for (int i = 1; i < count; i++) {
    const char *value = i + 1 < count ? words[i + 1] : NULL;
    if (strcmp(words[i], "--only-walks") == 0) {
      arguments->only_walks = true;
    } else if ((strcmp(words[i], "--seed") == 0 && replay_number(value, &arguments->seed)) ||
               (strcmp(words[i], "--walks") == 0 && replay_number(value, &arguments->walks))) {
      i++;
    } else {
      return false;
    }
  }
  return arguments->walks > 0;
}

/* ------------------------------------------------------------------------------- random walks */

static void replay_one_walk(uint64_t seed, const char *change, model_config *config,
                            model_trace *trace, replay_result *result) {
  *config = model_config_default();
  model_config_read(config, replay_walk_settings[seed % REPLAY_WALK_SETTINGS]);
  model_config_read(config, change);
  config->properties |= MODEL_ORPHAN; /* Walks go on when there is nothing left to violate. */
  model_walk(config, seed, REPLAY_STEPS_MAX, trace);
  replay_trace(config, trace, true, result);
}

static bool replay_walks(const replay_arguments *arguments) {
  uint64_t events[REPLAY_EVENTS] = {0};
  uint64_t steps = 0;
  uint64_t done = 0;
  uint64_t cut = 0;
  bool ok = true;
  for (uint64_t i = 0; i < arguments->walks && ok; i++) {
    uint64_t seed = arguments->seed + i;
    model_config config;
    model_trace trace = {NULL, 0, 0};
    replay_result result;
    replay_one_walk(seed, "", &config, &trace, &result);
    steps += result.steps;
    done++;
    cut += result.cut;
    for (unsigned j = 0; j < REPLAY_EVENTS; j++) {
      events[j] += result.events[j];
    }
    ok = !result.differs && !result.revived &&
         (!result.two_holders || config.losses > 0 || config.timeless > 0) &&
         (!result.repeated || config.crashes > 0);
    if (!ok) {
      printf("seed %llu: ", (ull)seed);
      model_config_print(stdout, &config);
      printf("\n");
      model_print_trace(stdout, &config, trace.steps,
                        result.differs ? result.step + 1 : trace.count);
      printf("    %s\n", result.differs ? result.difference : "no difference");
    }
    model_trace_free(&trace);
  }
  printf("%s - replay: %llu random walks of the model, %llu steps, equal after every step\n",
         ok ? "ok" : "not ok", (ull)done, (ull)steps);
  printf("    %llu of them were cut short where the core sends in another order than the walk\n",
         (ull)cut);
  for (unsigned i = 0; i < REPLAY_EVENTS; i++) {
    printf("    %-44s %10llu\n", replay_event_texts[i], (ull)events[i]);
    if (ok && events[i] == 0 && arguments->walks >= 1000) {
      printf("not ok - replay: never: %s\n", replay_event_texts[i]);
      ok = false;
    }
  }
  return ok;
}

/* --------------------------------------------------------------------------- counter-examples */

/* Returns true if the code violates the property of the entry: of fencing tokens, or of holders. */
static bool replay_broken(const model_entry *entry, const replay_result *result) {
  return entry->expected == MODEL_FENCE ? result->repeated : result->two_holders;
}

/* The code must break as the model does: both need the assumption. */
static bool replay_assumption(const model_entry *entry, const model_config *config,
                              const model_trace *trace) {
  replay_result result;
  replay_trace(config, trace, true, &result);
  bool broken = replay_broken(entry, &result);
  bool ok = !result.differs && broken;
  const char *found = !broken ? "the code does not break"
                      : entry->expected == MODEL_FENCE
                          ? "the code does the same in every step, and has no greater token"
                          : "the code does the same in every step, and has two holders";
  printf("%s - replay of %s: %s\n", ok ? "ok" : "not ok", entry->name,
         result.differs ? result.difference : found);
  if (!ok) {
    model_print_trace(stdout, config, trace->steps,
                      result.differs ? result.step + 1 : trace->count);
  }
  return ok;
}

/* The code must part from the model without the rule, and be safe. */
static bool replay_rule(const model_entry *entry, const model_config *config,
                        const model_trace *trace) {
  replay_result result;
  replay_trace(config, trace, false, &result);
  bool ok = result.differs && !replay_broken(entry, &result) && !result.revived;
  printf("%s - replay of %s: ", ok ? "ok" : "not ok", entry->name);
  if (result.differs) {
    printf("at step %zu of %zu the code does not follow (%s)%s\n", result.step + 1, trace->count,
           result.difference, ok ? ", and is safe" : ", but is not safe");
  } else {
    printf("the code does what it must not\n");
  }
  if (!ok) {
    model_print_trace(stdout, config, trace->steps, trace->count);
  }
  return ok;
}

/* Returns true if the configuration cannot be replayed. */
static bool replay_cannot(const model_config *config) {
  return config->hands != 0 || config->native != 0 || (config->guard != 0 && config->prompt == 0);
}

static bool replay_counter_examples(void) {
  bool ok = true;
  for (unsigned i = 0; i < model_table_size; i++) {
    const model_entry *entry = &model_table[i];
    model_config config = model_entry_config(entry);
    model_result found;
    if (entry->role == MODEL_ROLE_PROTOCOL || entry->lengthy || replay_cannot(&config)) {
      continue;
    }
    model_search(&config, REPLAY_MEMORY, &found);
    if (found.violation == 0) {
      printf("not ok - replay of %s: there is no counter-example\n", entry->name);
      ok = false;
    } else if (entry->role == MODEL_ROLE_ASSUMPTION) {
      ok = replay_assumption(entry, &config, &found.trace) && ok;
    } else {
      ok = replay_rule(entry, &config, &found.trace) && ok;
    }
    model_trace_free(&found.trace);
    (void)fflush(stdout);
  }
  return ok;
}

/* ----------------------------------------------------------------------------------- controls */

static bool replay_control(const char *change) {
  for (uint64_t seed = 1; seed <= REPLAY_CONTROL_WALKS; seed++) {
    model_config config;
    model_trace trace = {NULL, 0, 0};
    replay_result result;
    replay_one_walk(seed, change, &config, &trace, &result);
    model_trace_free(&trace);
    if (result.differs) {
      printf("ok - control %s: noticed in walk %llu: %s\n", change, (ull)seed, result.difference);
      return true;
    }
  }
  printf("not ok - control %s: not noticed in %d walks\n", change, REPLAY_CONTROL_WALKS);
  return false;
}

int main(int count, char **words) {
  replay_arguments arguments = {1, REPLAY_WALKS, false};
  if (!replay_read(count, words, &arguments)) {
    return replay_usage();
  }
  bool ok = replay_walks(&arguments);
  for (unsigned i = 0; i < sizeof replay_controls / sizeof replay_controls[0]; i++) {
    ok = (arguments.only_walks || replay_control(replay_controls[i])) && ok;
  }
  ok = (arguments.only_walks || replay_counter_examples()) && ok;
  return ok ? 0 : 1;
}
