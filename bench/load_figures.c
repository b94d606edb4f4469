/*
 * The figures: hand-offs, what the distances would have allowed, and attempts without a winner.
 *
 * SPDX-License-Identifier: MIT
 */
#include "load.h"

void load_sample(load_samples *samples, uint64_t us) {
  if (samples->count == samples->capacity) {
    samples->capacity = samples->capacity == 0 ? 1024 : 2 * samples->capacity;
    samples->us = realloc(samples->us, samples->capacity * sizeof *samples->us);
    if (samples->us == NULL) {
      bench_die("load: no memory");
    }
  }
  samples->us[samples->count++] = us;
}

int load_compare(const void *one, const void *other) {
  uint64_t a = *(const uint64_t *)one, b = *(const uint64_t *)other;
  return a < b ? -1 : a > b;
}

static uint64_t load_quorumth(uint64_t values[LOAD_NODES]) {
  qsort(values, LOAD_NODES, sizeof *values, load_compare);
  return values[LOAD_NODES / 2];
}

/* As the comment at the head of the file has it. */
void load_measure_distances(load *c) {
  for (unsigned from = 0; from <= LOAD_REGIONS; from++) {
    for (unsigned to = 0; to < LOAD_REGIONS; to++) {
      uint64_t least_us[LOAD_NODES], informed_us[LOAD_NODES], there_us[LOAD_NODES];
      for (unsigned n = 0; n < LOAD_NODES; n++) {
        unsigned at = load_node_regions[n];
        redlock_duration freed_us = from == LOAD_NOWHERE ? 0 : load_ways_us[from][at];
        there_us[n] = 2 * load_ways_us[to][at];
        least_us[n] = freed_us + load_ways_us[at][to];
        informed_us[n] = rl_time_max(freed_us, load_ways_us[to][at]) + load_ways_us[at][to];
      }
      c->least_us[from][to] = load_quorumth(least_us);
      c->notified_us[from][to] =
          (from == LOAD_NOWHERE ? 0 : c->least_us[from][to]) + load_quorumth(there_us);
      c->informed_us[from][to] = load_quorumth(informed_us);
    }
  }
}

/* Returns true if a token stands on a majority of the nodes. */
static bool load_is_had(const load *c, const load_key *key) {
  const load_stored *const *slots = key->slots;
  for (unsigned n = 0; n <= LOAD_NODES / 2; n++) {
    unsigned same = 0;
    for (unsigned i = 0; i < LOAD_NODES; i++) {
      same += slots[i]->ends_us > c->now_us && slots[n]->ends_us > c->now_us &&
              slots[i]->token_length == slots[n]->token_length &&
              memcmp(slots[i]->token, slots[n]->token, slots[n]->token_length) == 0;
    }
    if (same > LOAD_NODES / 2) {
      return true;
    }
  }
  return false;
}

/* When so many keys of the client will have run out that a majority of the nodes is free. */
redlock_time load_frees_itself(const load *c, const load_client *client) {
  const rl_attempt *lease = client->lock->lease;
  uint64_t ends_us[LOAD_NODES];
  for (unsigned n = 0; n < LOAD_NODES; n++) {
    const load_stored *slot = c->keys[client->key].slots[n];
    bool ours =
        lease != NULL && memcmp(slot->token, rl_attempt_token(lease), slot->token_length) == 0;
    ends_us[n] = ours ? slot->ends_us : 0;
  }
  return rl_time_max(c->now_us, load_quorumth(ends_us));
}

/*
 * Returns true if, since the key was given up, some nodes have notified this client, and some
 * another one.
 */
static bool load_notifications_are_split(const load *c, const load_key *key, unsigned client) {
  unsigned ours = 0, other = 0;
  for (unsigned n = 0; n < LOAD_NODES && c->notifies && key->freed; n++) {
    bool notified = key->slots[n]->notified_us >= key->freed_us;
    ours += notified && key->slots[n]->notified == client;
    other += notified && key->slots[n]->notified != client;
  }
  return ours > 0 && other > 0;
}

/* Looks once at each attempt that failed. */
void load_judge(load *c, load_client *client) {
  const rl_lock *lock = client->lock;
  if (lock->phase != RL_PHASE_DELAY || lock->round == client->judged ||
      (lock->waitlist != NULL && lock->waitlist->attempt_us == 0)) {
    return; /* It has waited first, and made no attempt yet. */
  }
  client->judged = lock->round;
  c->failed++;
  if (!load_is_had(c, &c->keys[client->key])) {
    c->split++;
    c->split_notifications +=
        load_notifications_are_split(c, &c->keys[client->key], client->wake.client);
  }
}

/* The owner gives the key up: now, or if it has died, when the key expires. */
void load_freed(load *c, const load_client *client, unsigned from, redlock_time at_us) {
  load_key *key = &c->keys[client->key];
  if (key->owner != client) {
    return; /* Another one has it, too. */
  }
  key->freed = true;
  key->waited = key->waiting > 0;
  key->from = from;
  key->freed_us = at_us;
  key->until_us = from == LOAD_NOWHERE ? client->lock->deadline_us : 0;
}

static bool load_is_held(const load *c, const load_key *key) {
  if (key->owner == NULL || key->until_us != REDLOCK_NEVER) {
    return key->owner != NULL && key->until_us > c->now_us;
  }
  return rl_lock_remaining(key->owner->lock, c->now_us) > 0;
}

void load_granted(load *c, load_client *client) {
  load_key *key = &c->keys[client->key];
  c->had++;
  c->had_in[client->region]++;
  c->two += load_is_held(c, key);
  if (key->freed && key->waited && key->last_life != client->life) {
    load_sample(&c->handed, rl_time_sub(c->now_us, key->freed_us));
    load_sample(&c->least, c->least_us[key->from][client->region]);
    load_sample(&c->notified_least, c->notified_us[key->from][client->region]);
    load_sample(&c->informed, c->informed_us[key->from][client->region]);
  }
  key->owner = client;
  key->last_life = client->life;
  key->until_us = REDLOCK_NEVER;
  key->freed = false;
}

static double load_percentile_ms(load_samples *samples, double fraction) {
  qsort(samples->us, samples->count, sizeof *samples->us, load_compare);
  return samples->count == 0
             ? 0
             : (double)samples->us[(size_t)(fraction * (double)(samples->count - 1))] / 1000;
}

/* Of what the commands for a hand-off were, on stderr. */
static void load_print_scripts(const load *c, double handed_count) {
  static const struct {
    const char *name;
    rl_script script;
  } scripts[] = {{"SET", RL_SCRIPT_NONE},
                 {"RELEASE", RL_SCRIPT_RELEASE},
                 {"RELEASE_NOTIFY", RL_SCRIPT_RELEASE_NOTIFY},
                 {"ENQUEUE", RL_SCRIPT_ENQUEUE},
                 {"DEQUEUE", RL_SCRIPT_DEQUEUE},
                 {"EXTEND", RL_SCRIPT_EXTEND}};
  for (size_t i = 0; i < sizeof scripts / sizeof scripts[0]; i++) {
    double sent = 0;
    for (unsigned n = 0; n < LOAD_NODES; n++) {
      sent += (double)c->nodes[n].scripts[scripts[i].script] / LOAD_NODES;
    }
    if (sent > 0) {
      fprintf(stderr, "%s %.2f  ", scripts[i].name, sent / handed_count);
    }
  }
  fprintf(stderr, "to a node for each hand-off\n");
}

void load_print(load *c, const char *way) {
  char handed[32], least[32], informed[32], notified[32];
  const struct {
    char *text;
    load_samples *samples;
  } pairs[] = {{handed, &c->handed},
               {least, &c->least},
               {informed, &c->informed},
               {notified, &c->notified_least}};
  double commands = 0, inside = 0, messages = 0, had = c->had > 0 ? (double)c->had : 1;
  double handed_count = c->handed.count > 0 ? (double)c->handed.count : 1;
  for (size_t i = 0; i < 4; i++) {
    (void)snprintf(pairs[i].text, sizeof handed, "%.1f/%.1f",
                   load_percentile_ms(pairs[i].samples, 0.5),
                   load_percentile_ms(pairs[i].samples, 0.99));
  }
  for (unsigned i = 0; i < (unsigned)c->options->clients; i++) {
    if (c->clients[i].state == LOAD_WAITS) {
      c->longest_us = rl_time_max(c->longest_us, c->end_us - c->clients[i].wanted_us);
    }
  }
  for (unsigned n = 0; n < LOAD_NODES; n++) {
    commands += (double)c->nodes[n].commands / LOAD_NODES;
    inside += (double)c->nodes[n].inside / LOAD_NODES;
    messages += (double)c->nodes[n].notifications / LOAD_NODES;
  }
  printf(
      "%-8s %8zu %5llu %15s %12s %12s %12s %8.1f %8.1f %8.0f %7.2f %7.1f %7.2f %8llu %6.2f %8llu  %2.0f/%2.0f/%2.0f %4llu\n",
      way, c->handed.count, (unsigned long long)c->died, handed, least, informed, notified,
      commands / handed_count, (commands + inside) / handed_count, commands / c->options->seconds,
      messages / handed_count, (double)c->longest_us / (double)REDLOCK_SECONDS,
      100 * (double)c->gave_up / (double)(c->gave_up + c->had > 0 ? c->gave_up + c->had : 1),
      (unsigned long long)c->split,
      100 * (double)c->split / (double)(c->failed > 0 ? c->failed : 1),
      (unsigned long long)c->split_notifications, 100 * (double)c->had_in[0] / had,
      100 * (double)c->had_in[1] / had, 100 * (double)c->had_in[2] / had,
      (unsigned long long)c->two);
  fflush(stdout);
  load_print_scripts(c, handed_count);
}
