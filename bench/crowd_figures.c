/*
 * The figures of the crowd: hand-offs, what the distances would have allowed, and attempts that nobody won.
 *
 * SPDX-License-Identifier: MIT
 */
#include "crowd.h"

void crowd_sample(crowd_samples *samples, uint64_t us) {
  if (samples->count == samples->capacity) {
    samples->capacity = samples->capacity == 0 ? 1024 : 2 * samples->capacity;
    samples->us = realloc(samples->us, samples->capacity * sizeof *samples->us);
    if (samples->us == NULL) {
      bench_die("crowd: no memory");
    }
  }
  samples->us[samples->count++] = us;
}

int crowd_compare(const void *one, const void *other) {
  uint64_t a = *(const uint64_t *)one, b = *(const uint64_t *)other;
  return a < b ? -1 : a > b;
}

static uint64_t crowd_quorumth(uint64_t values[CROWD_NODES]) {
  qsort(values, CROWD_NODES, sizeof *values, crowd_compare);
  return values[CROWD_NODES / 2];
}

/* As the comment at the head of the file has it. */
void crowd_measure_distances(crowd *c) {
  for (unsigned from = 0; from <= CROWD_REGIONS; from++) {
    for (unsigned to = 0; to < CROWD_REGIONS; to++) {
      uint64_t least_us[CROWD_NODES], told_us[CROWD_NODES], there_us[CROWD_NODES];
      for (unsigned n = 0; n < CROWD_NODES; n++) {
        unsigned at = crowd_node_regions[n];
        redlock_duration freed_us = from == CROWD_NOWHERE ? 0 : crowd_ways_us[from][at];
        there_us[n] = 2 * crowd_ways_us[to][at];
        least_us[n] = freed_us + crowd_ways_us[at][to];
        told_us[n] = rl_time_max(freed_us, crowd_ways_us[to][at]) + crowd_ways_us[at][to];
      }
      c->least_us[from][to] = crowd_quorumth(least_us);
      c->called_us[from][to] =
          (from == CROWD_NOWHERE ? 0 : c->least_us[from][to]) + crowd_quorumth(there_us);
      c->told_us[from][to] = crowd_quorumth(told_us);
    }
  }
}

/* Returns true if a token stands on a majority of the nodes. */
static bool crowd_is_had(const crowd *c, const crowd_key *key) {
  const crowd_stored *const *places = key->places;
  for (unsigned n = 0; n <= CROWD_NODES / 2; n++) {
    unsigned same = 0;
    for (unsigned i = 0; i < CROWD_NODES; i++) {
      same += places[i]->ends_us > c->now_us && places[n]->ends_us > c->now_us &&
              places[i]->token_length == places[n]->token_length &&
              memcmp(places[i]->token, places[n]->token, places[n]->token_length) == 0;
    }
    if (same > CROWD_NODES / 2) {
      return true;
    }
  }
  return false;
}

/* When so many keys of the client will have run out that a majority of the nodes is free. */
redlock_time crowd_frees_itself(const crowd *c, const crowd_client *client) {
  const rl_attempt *lease = client->lock->lease;
  uint64_t ends_us[CROWD_NODES];
  for (unsigned n = 0; n < CROWD_NODES; n++) {
    const crowd_stored *place = c->keys[client->key].places[n];
    bool ours =
        lease != NULL && memcmp(place->token, rl_attempt_token(lease), place->token_length) == 0;
    ends_us[n] = ours ? place->ends_us : 0;
  }
  return rl_time_max(c->now_us, crowd_quorumth(ends_us));
}

/* Returns true if some nodes have called the client since the key was given up, and some another one. */
static bool crowd_calls_are_split(const crowd *c, const crowd_key *key, unsigned client) {
  unsigned ours = 0, others = 0;
  for (unsigned n = 0; n < CROWD_NODES && c->calls && key->freed; n++) {
    bool called = key->places[n]->called_us >= key->freed_us;
    ours += called && key->places[n]->called == client;
    others += called && key->places[n]->called != client;
  }
  return ours > 0 && others > 0;
}

/* Looks once at each attempt that failed. */
void crowd_judge(crowd *c, crowd_client *client) {
  const rl_lock *lock = client->lock;
  if (lock->phase != RL_PHASE_DELAY || lock->round == client->judged ||
      (lock->waitlist != NULL && lock->waitlist->attempt_us == 0)) {
    return; /* It has waited first, and made no attempt yet. */
  }
  client->judged = lock->round;
  c->failed++;
  if (!crowd_is_had(c, &c->keys[client->key])) {
    c->split++;
    c->split_calls += crowd_calls_are_split(c, &c->keys[client->key], client->wake.client);
  }
}

/* The key is given up by its owner: now, or by one who has died when it runs out. */
void crowd_freed(crowd *c, const crowd_client *client, unsigned from, redlock_time at_us) {
  crowd_key *key = &c->keys[client->key];
  if (key->owner != client) {
    return; /* Another one has it, too. */
  }
  key->freed = true;
  key->waited = key->waiting > 0;
  key->from = from;
  key->freed_us = at_us;
  key->until_us = from == CROWD_NOWHERE ? client->lock->deadline_us : 0;
}

static bool crowd_is_held(const crowd *c, const crowd_key *key) {
  if (key->owner == NULL || key->until_us != REDLOCK_NEVER) {
    return key->owner != NULL && key->until_us > c->now_us;
  }
  return rl_lock_remaining(key->owner->lock, c->now_us) > 0;
}

void crowd_granted(crowd *c, crowd_client *client) {
  crowd_key *key = &c->keys[client->key];
  c->had++;
  c->had_in[client->region]++;
  c->two += crowd_is_held(c, key);
  if (key->freed && key->waited && key->last_life != client->life) {
    crowd_sample(&c->handed, rl_time_sub(c->now_us, key->freed_us));
    crowd_sample(&c->least, c->least_us[key->from][client->region]);
    crowd_sample(&c->called_least, c->called_us[key->from][client->region]);
    crowd_sample(&c->told, c->told_us[key->from][client->region]);
  }
  key->owner = client;
  key->last_life = client->life;
  key->until_us = REDLOCK_NEVER;
  key->freed = false;
}

static double crowd_percentile_ms(crowd_samples *samples, double fraction) {
  qsort(samples->us, samples->count, sizeof *samples->us, crowd_compare);
  return samples->count == 0
             ? 0
             : (double)samples->us[(size_t)(fraction * (double)(samples->count - 1))] / 1000;
}

/* Of what the commands for a hand-off were, on stderr. */
static void crowd_print_scripts(const crowd *c, double handed_count) {
  static const struct {
    const char *name;
    rl_script script;
  } scripts[] = {{"SET", RL_SCRIPT_NONE},
                 {"RELEASE", RL_SCRIPT_RELEASE},
                 {"RELEASE_CALL", RL_SCRIPT_RELEASE_NOTIFY},
                 {"STAND", RL_SCRIPT_ENQUEUE},
                 {"LEAVE", RL_SCRIPT_DEQUEUE},
                 {"EXTEND", RL_SCRIPT_EXTEND}};
  for (size_t i = 0; i < sizeof scripts / sizeof scripts[0]; i++) {
    double sent = 0;
    for (unsigned n = 0; n < CROWD_NODES; n++) {
      sent += (double)c->nodes[n].scripts[scripts[i].script] / CROWD_NODES;
    }
    if (sent > 0) {
      fprintf(stderr, "%s %.2f  ", scripts[i].name, sent / handed_count);
    }
  }
  fprintf(stderr, "to a node for each hand-off\n");
}

void crowd_print(crowd *c, const char *way) {
  char handed[32], least[32], told[32], called[32];
  const struct {
    char *text;
    crowd_samples *samples;
  } pairs[] = {
      {handed, &c->handed}, {least, &c->least}, {told, &c->told}, {called, &c->called_least}};
  double commands = 0, inside = 0, calls = 0, had = c->had > 0 ? (double)c->had : 1;
  double handed_count = c->handed.count > 0 ? (double)c->handed.count : 1;
  for (size_t i = 0; i < 4; i++) {
    (void)snprintf(pairs[i].text, sizeof handed, "%.1f/%.1f",
                   crowd_percentile_ms(pairs[i].samples, 0.5),
                   crowd_percentile_ms(pairs[i].samples, 0.99));
  }
  for (unsigned i = 0; i < (unsigned)c->options->clients; i++) {
    if (c->clients[i].state == CROWD_WAITS) {
      c->longest_us = rl_time_max(c->longest_us, c->end_us - c->clients[i].wanted_us);
    }
  }
  for (unsigned n = 0; n < CROWD_NODES; n++) {
    commands += (double)c->nodes[n].commands / CROWD_NODES;
    inside += (double)c->nodes[n].inside / CROWD_NODES;
    calls += (double)c->nodes[n].calls / CROWD_NODES;
  }
  printf(
      "%-8s %8zu %5llu %15s %12s %12s %12s %8.1f %8.1f %8.0f %7.2f %7.1f %7.2f %8llu %6.2f %8llu  %2.0f/%2.0f/%2.0f %4llu\n",
      way, c->handed.count, (unsigned long long)c->died, handed, least, told, called,
      commands / handed_count, (commands + inside) / handed_count, commands / c->options->seconds,
      calls / handed_count, (double)c->longest_us / (double)REDLOCK_SECONDS,
      100 * (double)c->gave_up / (double)(c->gave_up + c->had > 0 ? c->gave_up + c->had : 1),
      (unsigned long long)c->split,
      100 * (double)c->split / (double)(c->failed > 0 ? c->failed : 1),
      (unsigned long long)c->split_calls, 100 * (double)c->had_in[0] / had,
      100 * (double)c->had_in[1] / had, 100 * (double)c->had_in[2] / had,
      (unsigned long long)c->two);
  fflush(stdout);
  crowd_print_scripts(c, handed_count);
}
