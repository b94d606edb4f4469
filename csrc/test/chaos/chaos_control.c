/*
 * Negative controls of a chaos run: each breaks an assumption. csrc/test/controls.lua names the
 * expected violation.
 *
 * SPDX-License-Identifier: MIT
 */
#include <signal.h>
#include <stdio.h>
#include <string.h>

#include "chaos_run.h"

#define BROKEN (CHAOS_NODES / 2 + 1)

/* Killed and back at once, without its keys, inside the ttl. */
static void break_restart(chaos_run *run) {
  for (unsigned i = 0; i < BROKEN; i++) {
    chaos_farm_kill(&run->farm, i);
    chaos_farm_launch(&run->farm, i, NULL);
  }
  for (unsigned i = 0; i < BROKEN; i++) {
    redlock_time give_up_us = redlock_now() + 5 * REDLOCK_SECONDS;
    while (!chaos_farm_ready(&run->farm, i) && redlock_now() < give_up_us) {
      chaos_pause(REDLOCK_MILLISECONDS);
    }
  }
}

static void break_clocks(chaos_run *run) {
  for (unsigned i = 0; i < BROKEN; i++) {
    *run->farm.servers[i].clock_us += 10 * (int64_t)REDLOCK_SECONDS;
  }
}

static void break_flush(chaos_run *run) {
  for (unsigned i = 0; i < BROKEN; i++) {
    (void)chaos_farm_ask(&run->farm, i, "FLUSHALL");
  }
}

static void break_delete(chaos_run *run) {
  char command[64];
  for (unsigned i = 0; i < BROKEN; i++) {
    for (unsigned resource = 0; resource < CHAOS_RESOURCES; resource++) {
      (void)snprintf(command, sizeof command, "DEL " CHAOS_PREFIX "%c", (char)('a' + resource));
      (void)chaos_farm_ask(&run->farm, i, command);
    }
  }
}

/* Too little memory for a moment: the node evicts keys with a ttl. */
static void break_evict(chaos_run *run) {
  for (unsigned i = 0; i < BROKEN; i++) {
    (void)chaos_farm_ask(&run->farm, i, "CONFIG SET maxmemory-policy volatile-ttl");
    (void)chaos_farm_ask(&run->farm, i, "CONFIG SET maxmemory 1");
    (void)chaos_farm_ask(&run->farm, i, "SET chaos-more memory");
    (void)chaos_farm_ask(&run->farm, i, "CONFIG SET maxmemory 0");
  }
}

static void stay_stopped(chaos_run *run) {
  for (unsigned i = 0; i < BROKEN; i++) {
    (void)kill(run->farm.servers[i].pid, SIGSTOP);
  }
}

const chaos_control chaos_controls[] = {
    {"stays-down", CHAOS_HONEST, false, false, NULL, stay_stopped},
    {"restart-without-keys", CHAOS_HONEST, true, true, break_restart, NULL},
    {"clock-step-too-far", CHAOS_HONEST, true, false, break_clocks, NULL},
    {"flush", CHAOS_HONEST, true, false, break_flush, NULL},
    {"foreign-delete", CHAOS_HONEST, true, false, break_delete, NULL},
    {"eviction", CHAOS_HONEST, true, false, break_evict, NULL},
    {"holds-too-long", CHAOS_HOLDS_TOO_LONG, true, false, NULL, NULL},
    {"node-lists", CHAOS_USES_OTHER_NODES, true, false, NULL, NULL},
    {"flush-seen-inside", CHAOS_HONEST, true, false, break_flush, NULL},
    {"forgets-release", CHAOS_FORGETS_RELEASE, false, false, NULL, NULL},
    {"leaves-keys", CHAOS_LEAVES_KEYS, false, false, NULL, NULL},
    /* Nothing is broken: a false number in the log shows that the checker compares. */
    {"slow-calls", CHAOS_LOGS_SLOW_CALLS, false, false, NULL, NULL},
    {"leaks-descriptors", CHAOS_LEAKS_DESCRIPTORS, false, false, NULL, NULL},
    {"leaks-memory", CHAOS_LEAKS_MEMORY, false, false, NULL, NULL},
    {"dies", CHAOS_DIES, false, false, NULL, NULL},
    {"takes-one-of-two", CHAOS_TAKES_ONE_OF_TWO, true, false, NULL, NULL},
    {"keeps-detached", CHAOS_KEEPS_DETACHED, false, false, NULL, NULL},
    {"logs-attached", CHAOS_LOGS_ATTACHED, false, false, NULL, NULL},
    {"reuses-token", CHAOS_REUSES_TOKEN, false, false, NULL, NULL},
    {"counts-too-many", CHAOS_COUNTS_TOO_MANY, false, false, NULL, NULL},
    {"logs-wrong-holder", CHAOS_LOGS_WRONG_HOLDER, true, false, NULL, NULL},
    {NULL, CHAOS_HONEST, false, false, NULL, NULL},
};

const chaos_control *chaos_control_named(const char *name) {
  const chaos_control *control = chaos_controls;
  while (control->name != NULL && strcmp(control->name, name) != 0) {
    control++;
  }
  return control->name == NULL ? NULL : control;
}
