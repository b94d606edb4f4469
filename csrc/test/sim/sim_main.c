/*
 * The simulator's command line.
 *
 * SPDX-License-Identifier: MIT
 *
 *     sim [options]
 *       --seed N       the first seed [1]
 *       --runs N       how many seeds from there on [1]
 *       --timeline     print the timeline of the run
 *       --svg FILE     write its picture
 *       --from MS      picture from this time of the run
 *       --until MS     picture until this time of the run
 *       --only NAME    report only this checker
 *       --break NAME   break an assumption; success if a violation is detected
 *       --notify       all runs are with notifications
 *       --labels       most locks have a label
 *       --permits      all locks are semaphores
 *       --scriptless   in most runs no node runs scripts, and connections with extends break
 *       --mix          a mix of all kinds of waiters follows the faults
 *       --hold         all runs are with releases that keep their keys
 *       --fence        all runs are with fencing tokens
 *       --lead         the same, and with leaders
 *       --native       nodes have native commands
 *       --guard        all runs are with a guard; with --break no violation must be detected then
 *       --nodes N      all runs are with so many nodes
 *       --fault NAME   this fault is frequent in all runs
 *       --need N       fail if an event occurred fewer than N times in all runs
 *       --counters     print the events of sim_counters.h
 *       --hash         print the trace hash of every run
 *
 * Exit status: 0 no violation (with --break: one), 1 a violation (with --break: none), 2 misuse.
 */
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "sim.h"
#include "sim_trace.h"

typedef struct sim_arguments {
  uint64_t seed, runs, nodes, need, from_ms, until_ms;
  bool timeline, counters, hash;
  const char *svg, *only;
  int often, breach;
} sim_arguments;

#define SIM_MAIN_TEXT(value, name, ...) name,
static const char *const sim_main_faults[] = {SIM_FAULTS(SIM_MAIN_TEXT)};
static const char *const sim_main_breaches[] = {SIM_BREACHES(SIM_MAIN_TEXT)};

/* Reads one of |count| names. */
static bool sim_main_name(const char *const *names, int count, const char *word, int *value) {
  for (*value = 0; *value < count && strcmp(names[*value], word) != 0; ++*value) {
  }
  return *value < count;
}

/* Options that say what all runs have are in |s|. */
static bool sim_main_arguments(int count, char **words, sim_arguments *arguments, sim *s) {
  const struct {
    const char *word;
    bool *flag;
  } flags[] = {{"--timeline", &arguments->timeline},
               {"--counters", &arguments->counters},
               {"--hash", &arguments->hash},
               {"--fence", &s->fenced},
               {"--lead", &s->leading},
               {"--guard", &s->guarded},
               {"--notify", &s->notifying},
               {"--labels", &s->labels},
               {"--permits", &s->permits},
               {"--hold", &s->holding},
               {"--native", &s->native},
               {"--mix", &s->mixing},
               {"--scriptless", &s->scriptless}};
  const struct {
    const char *word;
    uint64_t *number;
  } numbers[] = {{"--seed", &arguments->seed},    {"--runs", &arguments->runs},
                 {"--nodes", &arguments->nodes},  {"--need", &arguments->need},
                 {"--from", &arguments->from_ms}, {"--until", &arguments->until_ms}};
  for (int i = 1; i < count; i++) {
    const char *word = words[i];
    bool known = false;
    for (size_t k = 0; k < sizeof flags / sizeof flags[0]; k++) {
      if (strcmp(word, flags[k].word) == 0) {
        known = *flags[k].flag = true;
      }
    }
    if (known) {
      continue;
    }
    const char *value = ++i < count ? words[i] : "";
    for (size_t k = 0; k < sizeof numbers / sizeof numbers[0]; k++) {
      if (strcmp(word, numbers[k].word) == 0) {
        *numbers[k].number = strtoull(value, NULL, 10);
        known = true;
      }
    }
    if (strcmp(word, "--svg") == 0) {
      arguments->svg = value;
    } else if (strcmp(word, "--only") == 0 && sim_has_checker(value)) {
      arguments->only = value;
    } else if (!known &&
               !(strcmp(word, "--fault") == 0 &&
                 sim_main_name(sim_main_faults, SIM_FAULT_KINDS, value, &arguments->often)) &&
               !(strcmp(word, "--break") == 0 &&
                 sim_main_name(sim_main_breaches, SIM_BREACH_COUNT, value, &arguments->breach))) {
      return false;
    }
  }
  return arguments->nodes <= SIM_NODES_MAX;
}

static const char *const sim_counter_texts[SIM_COUNTER_COUNT] = {
#define SIM_COUNTER_TEXT(name, text) text,
    SIM_COUNTERS(SIM_COUNTER_TEXT)
#undef SIM_COUNTER_TEXT
};

const char *sim_counter_text(sim_counter counter) {
  return sim_counter_texts[counter];
}

/* Returns how many counters are below |need|. */
static unsigned sim_main_counters(const sim *s, uint64_t need, bool all) {
  unsigned missing = 0;
  for (unsigned i = 0; i < SIM_COUNTER_COUNT; i++) {
    bool low = s->counters[i] < need;
    missing += low;
    if (all || low) {
      (void)printf("%12llu  %s%s\n", (ull)s->counters[i], sim_counter_text((sim_counter)i),
                   low ? "   <-- too seldom" : "");
    }
  }
  return missing;
}

static void sim_main_configuration(const sim *s) {
  const sim_config *config = &s->config;
  (void)printf("# seed %llu: %u nodes, %u clients with %u locks on %u resources, ttl %llu and %llu "
               "ms, lock_delay %llu ms, drift_factor %g, node_timeout %llu us, delays %llu to %llu "
               "us\n",
               (ull)s->seed, config->nodes, config->clients, config->locks, config->resources,
               (ull)config->ttl_us[0] / 1000, (ull)config->ttl_us[1] / 1000,
               (ull)config->lock_delay_us / 1000, config->drift_factor,
               (ull)config->node_timeout_us, (ull)config->delay_from_us, (ull)config->delay_to_us);
}

/* Runs a seed once more, with everything it does written down. */
static bool sim_main_show(sim *s, const sim_arguments *arguments, uint64_t seed, bool timeline) {
  s->trace = sim_trace_new(timeline ? stdout : NULL);
  bool ok = sim_run(s, seed);
  sim_main_configuration(s);
  if (arguments->svg != NULL &&
      !sim_trace_svg(s, arguments->svg, arguments->from_ms * 1000, arguments->until_ms * 1000)) {
    (void)fprintf(stderr, "sim: %s cannot be written\n", arguments->svg);
  }
  sim_trace_free(s->trace);
  s->trace = NULL;
  return ok;
}

static double sim_main_seconds(void) {
  struct timespec now;
  (void)clock_gettime(CLOCK_MONOTONIC, &now);
  return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

/* Which run it is, for the one handler that has to know when an assertion of the core fails. */
static uint64_t sim_main_seed, sim_main_run;

static void sim_main_aborted(int number) {
  (void)printf("seed %llu: assertion: the core has noticed it itself\ncaught by assertion within "
               "%llu seeds\n",
               (ull)sim_main_seed, (ull)sim_main_run);
  (void)fflush(stdout);
  (void)signal(number, SIG_DFL);
}

static int sim_main_caught(sim *s, const sim_arguments *arguments, uint64_t seed, uint64_t runs) {
  (void)printf("seed %llu: %s: %s\n", (ull)seed, s->checker, s->failure);
  (void)printf("caught by %s within %llu seeds\n", s->checker, (ull)runs);
  if (arguments->breach == SIM_BREACH_NONE || s->guarded) {
    (void)sim_main_show(s, arguments, seed, true);
    (void)printf("repeat: make sim SEED=%llu [SVG=file]\n", (ull)seed);
    return 1;
  }
  if (arguments->timeline || arguments->svg != NULL) {
    (void)sim_main_show(s, arguments, seed, arguments->timeline);
  }
  return 0;
}

static int sim_main_runs(sim *s, const sim_arguments *arguments) {
  uint64_t events = 0, hash = 0, grants = 0, simulated_us = 0;
  double began = sim_main_seconds();
  for (uint64_t i = 0; i < arguments->runs; i++) {
    uint64_t seed = arguments->seed + i;
    sim_main_seed = seed;
    sim_main_run = i + 1;
    bool ok = sim_run(s, seed);
    events += s->event_count;
    grants += s->grants;
    simulated_us += s->now_us;
    hash = (hash ^ s->hash) * 0x9e3779b97f4a7c15u;
    if (arguments->hash) {
      (void)printf("%llu %016llx\n", (ull)seed, (ull)s->hash);
    }
    if (!ok) {
      return sim_main_caught(s, arguments, seed, i + 1);
    }
  }
  double seconds = sim_main_seconds() - began;
  unsigned missing = sim_main_counters(s, arguments->need, arguments->counters);
  (void)printf("%llu runs from seed %llu, %llu events, %llu grants, %.1f simulated hours: 0 "
               "violations, trace %016llx\n",
               (ull)arguments->runs, (ull)arguments->seed, (ull)events, (ull)grants,
               (double)simulated_us / 3.6e9, (ull)hash);
  (void)fprintf(stderr, "%.1f s, %.0f runs/s, %.0f events/s\n", seconds,
                (double)arguments->runs / seconds, (double)events / seconds);
  if (arguments->breach != SIM_BREACH_NONE) {
    (void)printf("survived\n");
    return s->guarded ? 0 : 1;
  }
  return missing == 0 ? 0 : 1;
}

int main(int count, char **words) {
  sim_arguments arguments = {.seed = 1, .runs = 1, .often = -1, .breach = SIM_BREACH_NONE};
  sim *s = calloc(1, sizeof *s);
  if (s == NULL) {
    return 2;
  }
  if (!sim_main_arguments(count, words, &arguments, s)) {
    (void)fputs("usage: sim [options]; see the head of csrc/test/sim/sim_main.c\n", stderr);
    free(s);
    return 2;
  }
  (void)signal(SIGABRT, sim_main_aborted);
  s->breach = (sim_breach)arguments.breach;
  s->often = arguments.often;
  s->fenced = s->fenced || s->leading;
  s->native = s->native || s->scriptless;
  s->nodes_wanted = (unsigned)arguments.nodes;
  s->only = arguments.only;
  int status;
  if (arguments.runs == 1 && (arguments.timeline || arguments.svg != NULL)) {
    status = sim_main_show(s, &arguments, arguments.seed, arguments.timeline) ? 0 : 1;
    (void)printf("seed %llu: %s%s, trace %016llx\n", (ull)arguments.seed,
                 s->failed ? s->checker : "no violation", "", (ull)s->hash);
  } else {
    status = sim_main_runs(s, &arguments);
  }
  sim_free(s);
  return status;
}
