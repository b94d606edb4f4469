/*
 * The events that must occur in a chaos run: a run without faults proves nothing.
 *
 * SPDX-License-Identifier: MIT
 */
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "chaos_run.h"

#define LEAST_SECONDS 20
#define ANY "any" /* any fault, given time */
#define CLOCK_SLACK_US 50000
#define CLOCK_TRIES 100 /* a slow machine answers late */

/* A number that is logged at the end; faults of |kind| increase it. */
typedef struct need_counter {
  const char *name;
  uint64_t (*count)(const chaos_run *run, unsigned which);
  unsigned which;
  const char *kind; /* NULL: nothing is demanded */
} need_counter;

/* --------------------------------------------------------------------------------- counting */

static uint64_t count_reason(const chaos_run *run, unsigned which) {
  return atomic_load(&run->shared->reasons[which]);
}

static uint64_t count_gates(const chaos_run *run, unsigned which) {
  uint64_t sum = 0;
  for (unsigned i = 0; i < CHAOS_NODES; i++) {
    const chaos_gate *gate = &run->shared->gates[i];
    sum += atomic_load(which == 0 ? &gate->swallowed : which == 1 ? &gate->delayed : &gate->broken);
  }
  return sum;
}

static uint64_t count_signals(const chaos_run *run, unsigned which) {
  uint64_t sum = 0;
  for (unsigned i = which; i < CHAOS_SIGNALS; i++) {
    sum += atomic_load(&run->shared->signals[i]);
  }
  return sum;
}

static uint64_t count_distinct(const chaos_run *run, unsigned which) {
  uint64_t sum = 0;
  for (unsigned i = which; i < CHAOS_SIGNALS; i++) {
    sum += atomic_load(&run->shared->signals[i]) > 0;
  }
  return sum;
}

static uint64_t count_own(const chaos_run *run, unsigned which) {
  (void)which;
  return atomic_load(&run->shared->own_signals);
}

static uint64_t count_way(const chaos_run *run, unsigned which) {
  return atomic_load(&run->shared->ways[which]);
}

static const need_counter counters[] = {
    {"several", count_way, CHAOS_WAY_SEVERAL, ANY},
    {"detached", count_way, CHAOS_WAY_DETACHED, ANY},
    {"attached", count_way, CHAOS_WAY_ATTACHED, ANY},
    {"attached-twice", count_way, CHAOS_WAY_REFUSED, ANY},
    {"given", count_way, CHAOS_WAY_SUPPLIED, ANY},
    {"nested", count_way, CHAOS_WAY_NESTED, ANY},
    {"inspected", count_way, CHAOS_WAY_INSPECTED, ANY},
    {"node-said-OOM", count_reason, CHAOS_REASON_OOM, "maxmemory"},
    {"node-said-LOADING", count_reason, CHAOS_REASON_LOADING, "node-loading"},
    /* By a node without a proxy, which accepts for its node; those without a file have one. */
    {"node-said-refused", count_reason, CHAOS_REASON_REFUSED, "node-kill-aof"},
    {"node-said-nothing", count_reason, CHAOS_REASON_NOTHING, "node-stop"},
    {"node-said-other", count_reason, CHAOS_REASON_OTHER, NULL},
    {"bytes-swallowed", count_gates, 0, "drop-requests"},
    {"bytes-delayed", count_gates, 1, "delay"},
    {"connections-broken", count_gates, 2, "reset"},
    {"signals", count_signals, 1, NULL},
    {"signals-distinct", count_distinct, 1, "signals"},
    {"sigpipe-by-itself", count_own, 0, NULL},
};
#define COUNTERS (sizeof counters / sizeof counters[0])

static int64_t wall_clock_us(void) {
  struct timespec now;
  (void)clock_gettime(CLOCK_REALTIME, &now);
  return (int64_t)now.tv_sec * 1000000 + now.tv_nsec / 1000;
}

/* Returns true if the server answered in time, and sets |*uses| if it uses the clock of its own. */
static bool reads_clock(chaos_run *run, unsigned node, bool *uses) {
  int64_t before_us = wall_clock_us();
  const char *found =
      chaos_farm_eval(&run->farm, node, "local t = redis.call('time') return t[1] .. ' ' .. t[2]");
  int64_t after_us = wall_clock_us();
  long long seconds = 0;
  long long microseconds = 0;
  if (found == NULL || sscanf(found, "%lld %lld", &seconds, &microseconds) != 2) {
    return false;
  }
  int64_t ours_us = seconds * 1000000 + microseconds - *run->farm.servers[node].clock_us;
  *uses = ours_us > before_us - CLOCK_SLACK_US && ours_us < after_us + CLOCK_SLACK_US;
  return true;
}

/* Returns the number of servers that use the clocks they were given, after all restarts. */
static unsigned count_clocks_in_use(chaos_run *run) {
  unsigned count = 0;
  for (unsigned i = 0; i < CHAOS_NODES; i++) {
    bool uses = false;
    for (unsigned tries = 0; tries < CLOCK_TRIES && !reads_clock(run, i, &uses); tries++) {
    }
    count += uses;
  }
  return count;
}

/* ----------------------------------------------------------------------------------- demands */

static unsigned need_least(const need_counter *counter) {
  unsigned least = 0;
  if (counter->count != count_distinct) {
    return 1;
  }
  for (int i = 1; i < CHAOS_SIGNALS; i++) {
    least += chaos_can_be_caught(i);
  }
  return least;
}

bool chaos_need_applies(const chaos_run *run) {
  return run->settings.control == NULL && run->settings.only == NULL &&
         run->settings.seconds >= LEAST_SECONDS;
}

static bool need_concerns(const char *kind, const char *wanted) {
  return kind != NULL && (wanted == NULL || strcmp(kind, wanted) == 0);
}

bool chaos_need_missing(const chaos_run *run, const char *kind) {
  if (!chaos_need_applies(run)) {
    return false;
  }
  for (unsigned i = 0; i < run->deck_count; i++) {
    const char *name = run->deck[i]->name;
    if (need_concerns(name, kind) && run->felt[chaos_kind_place(name)] == 0) {
      return true;
    }
  }
  for (size_t i = 0; i < COUNTERS; i++) {
    if (need_concerns(counters[i].kind, kind) &&
        counters[i].count(run, counters[i].which) < need_least(&counters[i])) {
      return true;
    }
  }
  for (unsigned i = 1; i < CHAOS_FORKS; i++) {
    char name[32];
    (void)snprintf(name, sizeof name, "fork-%s", chaos_fork_names[i]);
    if (need_concerns(name, kind) && atomic_load(&run->shared->children[i]) == 0) {
      return true;
    }
  }
  return false;
}

void chaos_need_met(chaos_run *run, const char *kind, unsigned held) {
  run->felt[chaos_kind_place(kind)] += held > 0;
}

void chaos_need_log(const chaos_run *run) {
  if (!chaos_need_applies(run)) {
    chaos_log(run->log, "main set partial 1");
    return;
  }
  for (unsigned i = 0; i < run->deck_count; i++) {
    chaos_log(run->log, "main need fault %s 1", run->deck[i]->name);
  }
  chaos_log(run->log, "main need count clocks-in-use %d", CHAOS_NODES);
  for (size_t i = 0; i < COUNTERS; i++) {
    if (counters[i].kind != NULL) {
      chaos_log(run->log, "main need count %s %u", counters[i].name, need_least(&counters[i]));
    }
  }
  for (unsigned i = 1; i < CHAOS_FORKS; i++) {
    chaos_log(run->log, "main need child %s 1", chaos_fork_names[i]);
  }
}

void chaos_need_log_counts(chaos_run *run) {
  chaos_log(run->log, "main count clocks-in-use %u", count_clocks_in_use(run));
  for (size_t i = 0; i < COUNTERS; i++) {
    chaos_log(run->log, "main count %s %llu", counters[i].name,
              (ull)counters[i].count(run, counters[i].which));
  }
}
