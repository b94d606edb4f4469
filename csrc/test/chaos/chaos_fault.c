/*
 * The faults of a chaos run: the kinds, and their order.
 *
 * SPDX-License-Identifier: MIT
 *
 * All of them respect the assumptions of Redlock. A node that has lost its keys stays away for the
 * longest life of a key, which is a ttl and lock_delay. A wall clock is set forward by lock_delay
 * at most, and not again while a key could live.
 */
#include <signal.h>
#include <stdio.h>
#include <string.h>

#include "chaos_run.h"

#define MS REDLOCK_MILLISECONDS
#define SIGNALS_AT_ONCE 4
#define LOAD_DELAY_US "20" /* for each of the commands below; a sleep takes some more */
#define FILLING "for i = 1, 16000 do redis.call('incr', 'chaos-filling') end return 'filled'"

static bool fault_over(const chaos_run *run, const chaos_fault *fault, redlock_time now_us) {
  return run->calm || now_us >= fault->until_us;
}

/* ----------------------------------------------------------------------------- a node's process */

static bool stop_begin(chaos_run *run, chaos_fault *fault) {
  return kill(run->farm.servers[fault->target].pid, SIGSTOP) == 0;
}

static bool stop_step(chaos_run *run, chaos_fault *fault, redlock_time now_us) {
  if (!fault_over(run, fault, now_us)) {
    return false;
  }
  (void)kill(run->farm.servers[fault->target].pid, SIGCONT);
  return true;
}

static bool kill_kept_begin(chaos_run *run, chaos_fault *fault) {
  if (!run->farm.servers[fault->target].append_only) {
    return false;
  }
  chaos_farm_kill(&run->farm, fault->target);
  chaos_farm_launch(&run->farm, fault->target, NULL);
  return true;
}

static bool ready_step(chaos_run *run, chaos_fault *fault, redlock_time now_us) {
  (void)now_us;
  return chaos_farm_ready(&run->farm, fault->target);
}

static bool kill_lost_begin(chaos_run *run, chaos_fault *fault) {
  if (run->farm.servers[fault->target].append_only) {
    return false;
  }
  chaos_farm_kill(&run->farm, fault->target);
  fault->until_us = redlock_now() + CHAOS_KEY_LIFE_US + sim_below(&run->random, 300 * MS);
  return true;
}

static bool kill_lost_step(chaos_run *run, chaos_fault *fault, redlock_time now_us) {
  if (fault->stage == 0) {
    if (now_us >= fault->until_us) {
      chaos_farm_launch(&run->farm, fault->target, NULL);
      fault->stage = 1;
    }
    return false;
  }
  return chaos_farm_ready(&run->farm, fault->target);
}

/* A file that takes a second to read, made after the old one has been made small. */
static bool loading_begin(chaos_run *run, chaos_fault *fault) {
  return run->farm.servers[fault->target].append_only &&
         chaos_farm_ask(&run->farm, fault->target, "BGREWRITEAOF") != NULL;
}

static bool loading_step(chaos_run *run, chaos_fault *fault, redlock_time now_us) {
  chaos_farm *farm = &run->farm;
  if (fault->stage == 1) {
    return chaos_farm_ready(farm, fault->target);
  }
  const char *info = chaos_farm_ask(farm, fault->target, "INFO persistence");
  if (info == NULL || strstr(info, "aof_rewrite_in_progress:0\r") == NULL ||
      strstr(info, "aof_rewrite_scheduled:0\r") == NULL) {
    return now_us > fault->from_us + 5 * REDLOCK_SECONDS; /* Without effect. */
  }
  (void)chaos_farm_eval(farm, fault->target, FILLING);
  chaos_farm_kill(farm, fault->target);
  chaos_farm_launch(farm, fault->target, LOAD_DELAY_US);
  fault->stage = 1;
  return false;
}

static bool pause_begin(chaos_run *run, chaos_fault *fault) {
  char command[64];
  unsigned long long ms = (fault->until_us - fault->from_us) / MS;
  (void)snprintf(command, sizeof command, "CLIENT PAUSE %llu %s", ms,
                 sim_chance(&run->random, 5000) ? "ALL" : "WRITE");
  return chaos_farm_ask(&run->farm, fault->target, command) != NULL;
}

static bool pause_step(chaos_run *run, chaos_fault *fault, redlock_time now_us) {
  (void)run;
  return now_us >= fault->until_us; /* The server ends it itself. */
}

static bool memory_step(chaos_run *run, chaos_fault *fault, redlock_time now_us) {
  return fault_over(run, fault, now_us) &&
         chaos_farm_ask(&run->farm, fault->target, "CONFIG SET maxmemory 0") != NULL;
}

static void majority_signal(chaos_run *run, const chaos_fault *fault, bool stops) {
  for (unsigned i = 0; i < CHAOS_NODES; i++) {
    if ((fault->target >> i & 1) != 0) {
      run->nodes[i].process_claimed = stops;
      (void)kill(run->farm.servers[i].pid, stops ? SIGSTOP : SIGCONT);
    }
  }
}

/* Three nodes at once: meanwhile no worker gets a lock. */
static bool majority_begin(chaos_run *run, chaos_fault *fault) {
  unsigned chosen = 0;
  fault->target = 0;
  for (unsigned i = 0; i < CHAOS_NODES && chosen < CHAOS_NODES / 2 + 1; i++) {
    if (!run->nodes[i].process_claimed) {
      fault->target |= 1u << i;
      chosen++;
    }
  }
  if (chosen < CHAOS_NODES / 2 + 1) {
    return false;
  }
  majority_signal(run, fault, true);
  return true;
}

static bool majority_step(chaos_run *run, chaos_fault *fault, redlock_time now_us) {
  if (!fault_over(run, fault, now_us)) {
    return false;
  }
  majority_signal(run, fault, false);
  return true;
}

/* ------------------------------------------------------------------------------ a node's proxy */

static void gate_set(chaos_run *run, const chaos_fault *fault, int mode) {
  atomic_store(&run->shared->gates[fault->target].mode, mode);
}

/* Delays by a few milliseconds, by about the budget of an attempt, or by about half a ttl. */
static bool gate_begin(chaos_run *run, chaos_fault *fault) {
  static const redlock_duration most_us[] = {20 * MS, 140 * MS, 500 * MS};
  if (fault->kind->argument == CHAOS_DELAY) {
    redlock_duration delay_us = sim_between(&run->random, MS, most_us[sim_below(&run->random, 3)]);
    atomic_store(&run->shared->gates[fault->target].delay_us, delay_us);
  }
  gate_set(run, fault, fault->kind->argument);
  return true;
}

static bool gate_step(chaos_run *run, chaos_fault *fault, redlock_time now_us) {
  bool over = fault_over(run, fault, now_us);
  if (over) {
    gate_set(run, fault, CHAOS_PASS);
  }
  return over;
}

/* --------------------------------------------------------------------------- done in a moment */

static bool at_once_step(chaos_run *run, chaos_fault *fault, redlock_time now_us) {
  (void)run;
  (void)fault;
  (void)now_us;
  return true;
}

static bool reset_begin(chaos_run *run, chaos_fault *fault) {
  if (run->shared->gates[fault->target].port == 0) {
    return false;
  }
  atomic_fetch_add(&run->shared->gates[fault->target].resets, 1);
  return true;
}

static bool command_begin(chaos_run *run, chaos_fault *fault) {
  return chaos_farm_ask(&run->farm, fault->target, fault->kind->command) != NULL;
}

static bool clock_back_begin(chaos_run *run, chaos_fault *fault) {
  chaos_node *node = &run->nodes[fault->target];
  int64_t step_us = (int64_t)sim_between(&run->random, 100 * MS, 1500 * MS);
  redlock_time lives_us = redlock_now() + CHAOS_KEY_LIFE_US;
  *run->farm.servers[fault->target].clock_us -= step_us;
  node->horizon_us =
      (lives_us > node->horizon_us ? lives_us : node->horizon_us) + (redlock_duration)step_us;
  return true;
}

/* One node, or all of them by the same: then all keys of a lock go as early as they may. */
static bool clock_forward_begin(chaos_run *run, chaos_fault *fault) {
  bool stepped = false;
  bool all = sim_chance(&run->random, 5000);
  redlock_time now_us = redlock_now();
  int64_t step_us = (int64_t)sim_between(&run->random, 50 * MS, CHAOS_LOCK_DELAY_US);
  for (unsigned i = 0; i < CHAOS_NODES; i++) {
    chaos_node *node = &run->nodes[i];
    if ((all || i == fault->target) &&
        (node->forward_us == 0 || now_us >= node->forward_us + 2 * CHAOS_KEY_LIFE_US)) {
      *run->farm.servers[i].clock_us += step_us;
      node->forward_us = now_us;
      stepped = true;
    }
  }
  return stepped;
}

/* ------------------------------------------------------------------------------------ workers */

static bool worker_stop_begin(chaos_run *run, chaos_fault *fault) {
  chaos_slot *slot = &run->shared->slots[fault->target];
  redlock_time deadline_us = atomic_load(&slot->deadline_us);
  redlock_time now_us = redlock_now();
  fault->until_us =
      (deadline_us > now_us ? deadline_us : now_us) + sim_between(&run->random, 50 * MS, 600 * MS);
  return kill(atomic_load(&slot->pid), SIGSTOP) == 0;
}

static bool worker_stop_step(chaos_run *run, chaos_fault *fault, redlock_time now_us) {
  if (now_us < fault->until_us) {
    return false;
  }
  (void)kill(atomic_load(&run->shared->slots[fault->target].pid), SIGCONT);
  chaos_log(run->log, "main stop %u %llu %llu", fault->target, (ull)fault->from_us,
            (ull)redlock_now());
  return true;
}

static bool worker_kill_begin(chaos_run *run, chaos_fault *fault) {
  chaos_worker_kill(run, fault->target);
  return true;
}

static bool worker_kill_step(chaos_run *run, chaos_fault *fault, redlock_time now_us) {
  if (!fault_over(run, fault, now_us)) {
    return false;
  }
  chaos_worker_start(run, fault->target);
  return true;
}

static bool fork_begin(chaos_run *run, chaos_fault *fault) {
  atomic_store(&run->shared->slots[fault->target].fork_wanted, fault->kind->argument);
  return true;
}

static bool fork_step(chaos_run *run, chaos_fault *fault, redlock_time now_us) {
  chaos_slot *slot = &run->shared->slots[fault->target];
  if (now_us >= fault->until_us) {
    atomic_store(&slot->fork_wanted, CHAOS_FORK_NONE);
  }
  return atomic_load(&slot->fork_wanted) == CHAOS_FORK_NONE;
}

bool chaos_can_be_caught(int number) {
  struct sigaction now;
  return number != SIGKILL && number != SIGSTOP && sigaction(number, NULL, &now) == 0;
}

static bool signals_begin(chaos_run *run, chaos_fault *fault) {
  (void)run;
  (void)fault;
  return true;
}

/*
 * Sends a few signals with every turn, to random workers: all numbers that can be caught, one after
 * the other.
 */
static bool signals_step(chaos_run *run, chaos_fault *fault, redlock_time now_us) {
  for (unsigned i = 0; i < SIGNALS_AT_ONCE; i++) {
    unsigned index = (unsigned)sim_below(&run->random, run->settings.workers);
    int pid = atomic_load(&run->shared->slots[index].pid);
    do {
      run->next_signal = run->next_signal % (CHAOS_SIGNALS - 1) + 1;
    } while (!chaos_can_be_caught(run->next_signal));
    if (pid > 0) {
      (void)kill(pid, run->next_signal);
      fault->stage++;
    }
  }
  return fault_over(run, fault, now_us) && fault->stage > 2 * CHAOS_SIGNALS;
}

/* --------------------------------------------------------------------------- which comes when */

static const chaos_kind fault_kinds[] = {
    {"node-stop", CLAIM_PROCESS, 50, 3500, stop_begin, stop_step, 0, NULL},
    {"node-kill-aof", CLAIM_PROCESS, 0, 0, kill_kept_begin, ready_step, 0, NULL},
    {"node-kill-empty", CLAIM_PROCESS, 0, 0, kill_lost_begin, kill_lost_step, 0, NULL},
    {"node-loading", CLAIM_PROCESS, 0, 0, loading_begin, loading_step, 0, NULL},
    {"client-pause", CLAIM_PROCESS, 50, 1500, pause_begin, pause_step, 0, NULL},
    {"maxmemory", CLAIM_PROCESS, 100, 1500, command_begin, memory_step, 0,
     "CONFIG SET maxmemory 1"},
    {"majority-stop", CLAIM_NOTHING, 50, 1500, majority_begin, majority_step, 0, NULL},
    {"drop-requests", CLAIM_GATE, 50, 1500, gate_begin, gate_step, CHAOS_DROP_REQUESTS, NULL},
    {"half-open", CLAIM_GATE, 50, 1500, gate_begin, gate_step, CHAOS_HALF_OPEN, NULL},
    {"drop-replies", CLAIM_GATE, 50, 1500, gate_begin, gate_step, CHAOS_DROP_REPLIES, NULL},
    {"delay", CLAIM_GATE, 100, 2000, gate_begin, gate_step, CHAOS_DELAY, NULL},
    {"reset", CLAIM_NODE, 0, 0, reset_begin, at_once_step, 0, NULL},
    {"client-kill", CLAIM_NODE_UP, 0, 0, command_begin, at_once_step, 0, "CLIENT KILL TYPE normal"},
    {"script-flush", CLAIM_NODE_UP, 0, 0, command_begin, at_once_step, 0, "SCRIPT FLUSH"},
    {"clock-back", CLAIM_NODE, 0, 0, clock_back_begin, at_once_step, 0, NULL},
    {"clock-forward", CLAIM_NODE, 0, 0, clock_forward_begin, at_once_step, 0, NULL},
    {"worker-stop", CLAIM_WORKER, 0, 0, worker_stop_begin, worker_stop_step, 0, NULL},
    {"worker-kill", CLAIM_VICTIM, 0, 500, worker_kill_begin, worker_kill_step, 0, NULL},
    {"fork-exit", CLAIM_WORKER, 2000, 2000, fork_begin, fork_step, CHAOS_FORK_EXIT, NULL},
    {"fork-call", CLAIM_WORKER, 2000, 2000, fork_begin, fork_step, CHAOS_FORK_CALL, NULL},
    {"fork-exec", CLAIM_WORKER, 2000, 2000, fork_begin, fork_step, CHAOS_FORK_EXEC, NULL},
    {"signals", CLAIM_NOTHING, 200, 600, signals_begin, signals_step, 0, NULL},
};
#define FAULT_KINDS (sizeof fault_kinds / sizeof fault_kinds[0])

unsigned chaos_kind_place(const char *name) {
  unsigned place = 0;
  while (place < FAULT_KINDS && strcmp(fault_kinds[place].name, name) != 0) {
    place++;
  }
  return place < FAULT_KINDS ? place : CHAOS_KINDS_MAX;
}

bool chaos_faults_deal(chaos_run *run, const char *only) {
  run->deck_count = 0;
  for (size_t i = 0; i < FAULT_KINDS; i++) {
    if (only == NULL || strcmp(only, fault_kinds[i].name) == 0) {
      run->deck[run->deck_count++] = &fault_kinds[i];
    }
  }
  run->deck_next = run->deck_count;
  return run->deck_count > 0;
}

static bool fault_on_node(chaos_claim claim) {
  return claim == CLAIM_PROCESS || claim == CLAIM_GATE || claim == CLAIM_NODE_UP ||
         claim == CLAIM_NODE;
}

static bool fault_may_have(const chaos_run *run, chaos_claim claim, unsigned target) {
  if (!fault_on_node(claim)) {
    const chaos_slot *slot = &run->shared->slots[target];
    return !run->hands[target].claimed && atomic_load(&slot->held) > 0 &&
           (claim == CLAIM_WORKER || target >= run->shared->veterans);
  }
  const chaos_node *node = &run->nodes[target];
  if (claim == CLAIM_NODE_UP) {
    return !node->process_claimed;
  }
  if (claim == CLAIM_NODE) {
    return true;
  }
  unsigned impaired = 0;
  for (unsigned i = 0; i < CHAOS_NODES; i++) {
    impaired += i != target && (run->nodes[i].process_claimed || run->nodes[i].gate_claimed);
  }
  return impaired < run->impaired_max &&
         (claim == CLAIM_PROCESS ? !node->process_claimed
                                 : !node->gate_claimed && run->shared->gates[target].port != 0);
}

static void fault_claim(chaos_run *run, const chaos_fault *fault, bool claimed) {
  switch (fault->kind->claim) {
  case CLAIM_PROCESS:
    run->nodes[fault->target].process_claimed = claimed;
    break;
  case CLAIM_GATE:
    run->nodes[fault->target].gate_claimed = claimed;
    break;
  case CLAIM_WORKER:
  case CLAIM_VICTIM:
    run->hands[fault->target].claimed = claimed;
    break;
  default:
    break;
  }
}

static bool fault_begin(chaos_run *run, const chaos_kind *kind, redlock_time now_us) {
  chaos_fault *fault = run->faults;
  unsigned count = fault_on_node(kind->claim)     ? CHAOS_NODES
                   : kind->claim == CLAIM_NOTHING ? 1
                                                  : run->settings.workers;
  unsigned first = (unsigned)sim_below(&run->random, count);
  while (fault < run->faults + CHAOS_FAULTS_MAX && fault->kind != NULL) {
    fault++;
  }
  if (fault == run->faults + CHAOS_FAULTS_MAX) {
    return false;
  }
  for (unsigned i = 0; i < count; i++) {
    unsigned target = (first + i) % count;
    if (kind->claim != CLAIM_NOTHING && !fault_may_have(run, kind->claim, target)) {
      continue;
    }
    redlock_duration length_us =
        sim_between(&run->random, kind->shortest_ms, kind->longest_ms) * MS;
    *fault = (chaos_fault){.kind = kind,
                           .target = target,
                           .held = chaos_held(run),
                           .from_us = now_us,
                           .until_us = now_us + length_us};
    if (kind->begin(run, fault)) {
      fault_claim(run, fault, true);
      return true;
    }
    fault->kind = NULL;
  }
  return false;
}

static bool fault_allowed(const chaos_run *run, const chaos_kind *kind) {
  return kind->begin != clock_forward_begin || atomic_load(&run->shared->lock_delay_us) > 0;
}

/*
 * Begins the next kind of the deck that can begin now. All kinds come before one comes again. In
 * overtime the missing kinds come first.
 */
static bool fault_draw(chaos_run *run, redlock_time now_us) {
  if (run->deck_next == run->deck_count) {
    run->deck_next = 0;
    for (unsigned i = run->deck_count; i > 1; i--) {
      unsigned other = (unsigned)sim_below(&run->random, i);
      const chaos_kind *kind = run->deck[i - 1];
      run->deck[i - 1] = run->deck[other];
      run->deck[other] = kind;
    }
  }
  bool begun = false;
  /* Starts anywhere in the deck: a kind without effect would otherwise block the other kinds. */
  unsigned first = run->overtime ? (unsigned)sim_below(&run->random, run->deck_count) : 0;
  for (unsigned i = 0; run->overtime && i < run->deck_count && !begun; i++) {
    const chaos_kind *kind = run->deck[(first + i) % run->deck_count];
    begun = chaos_need_missing(run, kind->name) && fault_allowed(run, kind) &&
            fault_begin(run, kind, now_us);
  }
  for (unsigned i = run->deck_next; i < run->deck_count && !begun; i++) {
    const chaos_kind *kind = run->deck[i];
    bool allowed = fault_allowed(run, kind);
    begun = allowed && fault_begin(run, kind, now_us);
    if (begun || !allowed) {
      run->deck[i] = run->deck[run->deck_next];
      run->deck[run->deck_next++] = kind;
    }
  }
  return begun;
}

bool chaos_faults_active(const chaos_run *run) {
  for (unsigned i = 0; i < CHAOS_FAULTS_MAX; i++) {
    if (run->faults[i].kind != NULL) {
      return true;
    }
  }
  return false;
}

void chaos_faults_turn(chaos_run *run, redlock_time now_us) {
  unsigned held = chaos_held(run);
  for (unsigned i = 0; i < CHAOS_FAULTS_MAX; i++) {
    chaos_fault *fault = &run->faults[i];
    if (fault->kind == NULL) {
      continue;
    }
    fault->held = held > fault->held ? held : fault->held;
    if (fault->kind->step(run, fault, now_us)) {
      fault_claim(run, fault, false);
      chaos_log(run->log, "main fault %s %u %llu %llu %u", fault->kind->name, fault->target,
                (ull)fault->from_us, (ull)redlock_now(), fault->held);
      chaos_need_met(run, fault->kind->name, fault->held);
      fault->kind = NULL;
    }
  }
  if (run->calm || run->deck_count == 0 || now_us < run->next_fault_us) {
    return;
  }
  if (now_us >= run->next_limit_us) {
    /* Mostly a minority, sometimes any number. */
    run->impaired_max = sim_chance(&run->random, 1500) ? CHAOS_NODES : (CHAOS_NODES - 1) / 2;
    run->next_limit_us = now_us + sim_between(&run->random, 2000 * MS, 5000 * MS);
  }
  if (held > 0 && fault_draw(run, now_us)) {
    run->next_fault_us = now_us + sim_between(&run->random, 20 * MS, 350 * MS);
  }
}
