/*
 * A worker: its critical sections, and blocking calls.
 *
 * SPDX-License-Identifier: MIT
 *
 *     chaos_worker shared-file directory slot generation
 *     chaos_worker --descriptors
 */
#include "chaos_worker.h"
#include "witness_clock.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define NUMBER_BITS 48
#define NUMBER_MASK (((uint64_t)1 << NUMBER_BITS) - 1)
#define LEAK_BYTES 65536
#define OTHERWISE 5000 /* of 10000 */
#define TOO_LONG_US (600 * REDLOCK_MILLISECONDS)
#define TOLD_DELAY_US (50 * REDLOCK_MILLISECONDS)

bool worker_misbehaves(const worker *self, chaos_misdeed misdeed) {
  return self->shared->misdeed == (int)misdeed;
}

/* ------------------------------------------------------------------------------------- calls */

worker_call worker_begin(const worker *self, const char *name, redlock_duration budget_us) {
  return (worker_call){name, atomic_load(&self->shared->phase), redlock_now(), budget_us};
}

/* Logs the delay by the scheduler since the last call, which is no fault of the library. */
static void worker_log_delay(worker *self, redlock_time now_us) {
  redlock_time since_us = self->logged_us != 0 ? self->logged_us : self->began_us;
  redlock_duration delay_us =
      (redlock_duration)witness_clock_delay_us((int64_t)(now_us - since_us));
  self->logged_us = now_us;
  if (delay_us > TOLD_DELAY_US) {
    chaos_log(self->log, "w%u.%u late %llu %llu", self->index, self->generation,
              (ull)(now_us - delay_us), (ull)now_us);
  }
}

void worker_end(worker *self, const worker_call *call, int result) {
  redlock_time now_us = redlock_now();
  redlock_duration took_us = now_us - call->started_us;
  worker_log_delay(self, now_us);
  if (worker_misbehaves(self, CHAOS_LOGS_SLOW_CALLS) && sim_chance(&self->random, 100)) {
    took_us += 5 * REDLOCK_SECONDS;
  }
  chaos_log(self->log, "w%u.%u call %s %s %s %llu %llu %llu", self->index, self->generation,
            call->name, redlock_error_name(result), chaos_phase_names[call->phase],
            (ull)call->started_us, (ull)took_us, (ull)call->budget_us);
}

redlock_options worker_draw_options(worker *self) {
  redlock_options options = {0};
  options.ttl_us = sim_between(&self->random, CHAOS_TTL_MIN_US, CHAOS_TTL_USUAL_US);
  if (sim_chance(&self->random, 1000) || worker_misbehaves(self, CHAOS_FORGETS_RELEASE)) {
    options.ttl_us = CHAOS_TTL_MAX_US;
  }
  options.ttl_us -= options.ttl_us % REDLOCK_MILLISECONDS;
  options.lock_delay_us = atomic_load(&self->shared->lock_delay_us);
  if (options.lock_delay_us == 0) {
    options.lock_delay_us = REDLOCK_DURATION_NONE;
  }
  options.node_timeout_us = CHAOS_NODE_TIMEOUT_US;
  options.retry_delay_us = 40 * REDLOCK_MILLISECONDS;
  options.retry_jitter_us = 30 * REDLOCK_MILLISECONDS;
  options.wait_us =
      sim_chance(&self->random, 3000)
          ? REDLOCK_DURATION_NONE
          : sim_between(&self->random, 50 * REDLOCK_MILLISECONDS, 600 * REDLOCK_MILLISECONDS);
  return options;
}

redlock_duration worker_budget(const redlock_options *options) {
  return options->wait_us != REDLOCK_DURATION_NONE ? options->wait_us : options->node_timeout_us;
}

redlock_duration worker_draw_hold(worker *self, const redlock_options *options) {
  uint64_t drawn = sim_below(&self->random, 10);
  if (self->shared->longer_holds || drawn == 9) {
    return options->ttl_us * 2; /* Until the deadline, or for as long as it is extended. */
  }
  return drawn >= 7 ? sim_below(&self->random, options->ttl_us)
                    : sim_below(&self->random, 30 * REDLOCK_MILLISECONDS);
}

redlock_duration worker_draw_rest(worker *self) {
  return sim_below(&self->random, 2 * self->shared->pace_us);
}

void worker_hear(worker *self, redlock_lock *lock) {
  for (size_t i = 0; i < redlock_client_node_count(self->client); i++) {
    redlock_vote_info vote;
    chaos_reason reason = CHAOS_REASON_OTHER;
    if (redlock_lock_vote(lock, i, &vote) != REDLOCK_OK) {
      continue;
    }
    if (vote.vote == REDLOCK_VOTE_UNKNOWN) {
      reason = CHAOS_REASON_NOTHING;
    } else if (vote.error == NULL) {
      continue; /* It was a vote. */
    } else if (strstr(vote.error, "OOM") != NULL) {
      reason = CHAOS_REASON_OOM;
    } else if (strstr(vote.error, "LOADING") != NULL) {
      reason = CHAOS_REASON_LOADING;
    } else if (strstr(vote.error, "refused") != NULL) {
      reason = CHAOS_REASON_REFUSED;
    }
    atomic_fetch_add(&self->shared->reasons[reason], 1);
  }
}

/* ------------------------------------------------------------------------- critical sections */

/* The last worker that went in, if it is another one, must not believe while this one does. */
static void worker_look(worker *self, unsigned resource) {
  const worker_hold *mine = &self->holds[resource];
  uint64_t owner = atomic_load(&self->shared->owners[resource]);
  uint64_t index = owner >> NUMBER_BITS;
  if (owner == 0 || index == self->index || index >= CHAOS_WORKERS_MAX) {
    return;
  }
  chaos_belief *theirs = &self->shared->slots[index].beliefs[resource];
  uint64_t before = atomic_load(&theirs->number);
  redlock_time from_us = atomic_load(&theirs->from_us);
  redlock_time until_us = atomic_load(&theirs->until_us);
  redlock_time now_us = redlock_now();
  if (before != (owner & NUMBER_MASK) || atomic_load(&theirs->number) != before) {
    return;
  }
  /*
   * A worker that was paused before it wrote its name has an earlier deadline: no lease prevents
   * that.
   */
  if (now_us < mine->until_us && from_us < now_us && until_us > mine->from_us) {
    chaos_log(self->log, "w%u.%u witness %u %llu %llu w%llu %llu %llu", self->index,
              self->generation, resource, (ull)mine->from_us, (ull)mine->until_us, (ull)index,
              (ull)from_us, (ull)until_us);
  }
}

static void worker_publish(worker *self, unsigned resource) {
  const worker_hold *mine = &self->holds[resource];
  chaos_belief *belief = &self->slot->beliefs[resource];
  atomic_store(&belief->number, 0);
  atomic_store(&belief->from_us, mine->from_us);
  atomic_store(&belief->until_us, mine->until_us);
  atomic_store(&belief->number, mine->number);
  if (mine->held && mine->until_us > atomic_load(&self->slot->deadline_us)) {
    atomic_store(&self->slot->deadline_us, mine->until_us);
  }
}

static redlock_time worker_deadline(const worker *self, unsigned resource) {
  redlock_time deadline_us = redlock_lock_deadline(self->holds[resource].lock);
  return deadline_us > 0 && worker_misbehaves(self, CHAOS_HOLDS_TOO_LONG)
             ? deadline_us + TOO_LONG_US
             : deadline_us;
}

void worker_enter(worker *self, unsigned resource) {
  worker_enter_by(self, resource, self->locks[resource], 0);
}

void worker_enter_by(worker *self, unsigned resource, redlock_lock *lock, unsigned place) {
  worker_hold *hold = &self->holds[resource];
  hold->lock = lock;
  (void)snprintf(hold->token, sizeof hold->token, "%s%s", redlock_lock_token(lock),
                 place > 0 ? "+" : "");
  hold->until_us = worker_deadline(self, resource);
  hold->from_us = redlock_now();
  hold->held = hold->until_us > hold->from_us && hold->token[0] != '\0';
  if (!hold->held) {
    return; /* It has ended before it could begin. */
  }
  hold->number = atomic_fetch_add(&self->slot->numbers, 1) + 1;
  chaos_log(self->log, "w%u.%u hold %u %s %llu %llu", self->index, self->generation, resource,
            hold->token, (ull)hold->from_us, (ull)hold->until_us);
  worker_look(self, resource);
  worker_publish(self, resource);
  atomic_store(&self->shared->owners[resource],
               (uint64_t)self->index << NUMBER_BITS | hold->number);
  atomic_fetch_add(&self->slot->held, 1);
  atomic_fetch_add(&self->shared->acquired[resource], 1);
}

void worker_prolong(worker *self, unsigned resource) {
  worker_hold *hold = &self->holds[resource];
  redlock_time deadline_us = worker_deadline(self, resource);
  if (!hold->held || deadline_us <= hold->until_us) {
    return;
  }
  hold->until_us = deadline_us;
  chaos_log(self->log, "w%u.%u extend %u %s %llu %llu", self->index, self->generation, resource,
            hold->token, (ull)redlock_now(), (ull)deadline_us);
  worker_publish(self, resource);
}

bool worker_inside(const worker *self, unsigned resource) {
  return self->holds[resource].held && redlock_now() < self->holds[resource].until_us;
}

static void worker_go(worker *self, unsigned resource, const char *how) {
  worker_hold *hold = &self->holds[resource];
  if (!hold->held) {
    return;
  }
  worker_look(self, resource);
  redlock_time now_us = redlock_now();
  hold->until_us = now_us < hold->until_us ? now_us : hold->until_us;
  hold->held = false;
  worker_publish(self, resource);
  chaos_log(self->log, "w%u.%u %s %u %s %llu", self->index, self->generation, how, resource,
            hold->token, (ull)now_us);
  atomic_fetch_sub(&self->slot->held, 1);
}

void worker_leave(worker *self, unsigned resource) {
  worker_go(self, resource, "leave");
}

void worker_detached(worker *self, unsigned resource) {
  worker_go(self, resource, "detach");
}

/* ------------------------------------------------------------------------------------ client */

void worker_open_client(worker *self) {
  char message[256];
  char address[64];
  redlock_settings settings = {0};
  redlock_options options = worker_draw_options(self);
  settings.options = &options;
  settings.prefix = CHAOS_PREFIX;
  settings.prefix_length = strlen(CHAOS_PREFIX);
  if (redlock_client_new(&self->client, &settings, message, sizeof message) != REDLOCK_OK) {
    chaos_fail("%s", message);
  }
  for (unsigned i = 0; i < CHAOS_NODES; i++) {
    const chaos_gate *gate = &self->shared->gates[i];
    if (worker_misbehaves(self, CHAOS_USES_OTHER_NODES) && (self->index % 2 == 0) != (i < 2)) {
      continue;
    }
    (void)snprintf(address, sizeof address, "127.0.0.1:%d",
                   gate->port != 0 ? gate->port : gate->server_port);
    if (redlock_client_add(self->client, address, message, sizeof message) != REDLOCK_OK) {
      chaos_fail("%s", message);
    }
  }
  for (unsigned i = 0; i < CHAOS_RESOURCES; i++) {
    char name = (char)('a' + i);
    if (redlock_lock_new(&self->locks[i], self->client, &name, 1, NULL) != REDLOCK_OK) {
      chaos_fail("no lock could be made");
    }
  }
}

void worker_close_client(worker *self) {
  for (unsigned i = 0; i < CHAOS_RESOURCES; i++) {
    worker_leave(self, i);
  }
  worker_call call = worker_begin(self, "close", REDLOCK_SECONDS);
  worker_end(self, &call, redlock_client_close(self->client, REDLOCK_SECONDS));
  for (unsigned i = 0; i < CHAOS_RESOURCES; i++) {
    redlock_lock_free(self->locks[i]);
  }
  redlock_client_free(self->client);
}

void worker_do_other_things(worker *self) {
  worker_fork(self);
  worker_await_children(self);
  if (worker_misbehaves(self, CHAOS_LEAKS_DESCRIPTORS)) {
    (void)dup(self->log);
  }
  if (worker_misbehaves(self, CHAOS_LEAKS_MEMORY)) {
    void **block = malloc(LEAK_BYTES);
    if (block != NULL) {
      memset((void *)block, 1, LEAK_BYTES);
      *block = (void *)self->leaked; /* Used, or it would be optimised away. */
      self->leaked = block;
    }
  }
  if (worker_misbehaves(self, CHAOS_DIES) && self->index == 0 && self->generation == 0 &&
      redlock_now() > self->began_us + 2 * REDLOCK_SECONDS) {
    abort();
  }
}

/* ------------------------------------------------------------------------------ blocking use */

static void worker_extend(worker *self, unsigned resource) {
  worker_call call = worker_begin(self, "extend", CHAOS_NODE_TIMEOUT_US);
  int result = redlock_lock_extend(self->holds[resource].lock, 0, NULL);
  worker_end(self, &call, result);
  worker_hear(self, self->holds[resource].lock);
  if (result == REDLOCK_OK) {
    worker_prolong(self, resource);
  }
}

/* Stays inside until it has done its work, or its lease ends, which it may prolong a few times. */
void worker_hold_on(worker *self, unsigned resource, const redlock_options *options) {
  redlock_time done_us = redlock_now() + worker_draw_hold(self, options);
  uint64_t extends = sim_below(&self->random, 4);
  while (redlock_now() < done_us && worker_inside(self, resource)) {
    if (extends > 0 && redlock_lock_remaining(self->holds[resource].lock) < options->ttl_us / 2) {
      extends--;
      worker_extend(self, resource);
    }
    worker_do_other_things(self);
    redlock_time now_us = redlock_now();
    if (now_us < done_us) {
      redlock_duration left_us = done_us - now_us;
      redlock_duration most_us = sim_below(&self->random, 20 * REDLOCK_MILLISECONDS);
      chaos_pause(left_us < most_us ? left_us : most_us);
    }
  }
}

/* Gives the lock back: mostly by release, sometimes by freeing it. */
static void worker_give_back(worker *self, unsigned resource) {
  bool freed = sim_chance(&self->random, 1000);
  bool forgotten = worker_misbehaves(self, CHAOS_FORGETS_RELEASE);
  char name = (char)('a' + resource);
  worker_leave(self, resource);
  if (!freed && !forgotten) {
    worker_call call = worker_begin(self, "release", CHAOS_NODE_TIMEOUT_US);
    worker_end(self, &call, redlock_lock_release(self->locks[resource]));
    worker_hear(self, self->locks[resource]);
    return;
  }
  if (!forgotten) {
    worker_call call = worker_begin(self, "free", 0);
    redlock_lock_free(self->locks[resource]);
    worker_end(self, &call, REDLOCK_OK);
  }
  if (redlock_lock_new(&self->locks[resource], self->client, &name, 1, NULL) != REDLOCK_OK) {
    chaos_fail("no lock could be made");
  }
}

static void worker_use_once(worker *self) {
  unsigned resource = (unsigned)sim_below(&self->random, CHAOS_RESOURCES);
  redlock_options options = worker_draw_options(self);
  worker_call call = worker_begin(self, "acquire", worker_budget(&options));
  int result = redlock_lock_acquire(self->locks[resource], &options, NULL);
  if (result == REDLOCK_OK) {
    worker_enter(self, resource);
  }
  worker_end(self, &call, result);
  worker_hear(self, self->locks[resource]);
  if (result == REDLOCK_OK) {
    worker_hold_on(self, resource, &options);
    worker_give_back(self, resource);
  }
}

static void worker_run_blocking(worker *self) {
  while (!atomic_load(&self->shared->quit)) {
    if (sim_chance(&self->random, OTHERWISE)) {
      worker_use_otherwise(self);
    } else {
      worker_use_once(self);
    }
    worker_do_other_things(self);
    chaos_pause(worker_draw_rest(self));
    if (self->index >= self->shared->veterans && sim_chance(&self->random, 100)) {
      worker_close_client(self);
      worker_open_client(self);
    }
  }
}

/* -------------------------------------------------------------------------------------- main */

static void worker_run(worker *self) {
  worker_open_client(self);
  if (self->index % 2 == 0) {
    worker_run_blocking(self);
  } else {
    worker_run_loop(self);
  }
  if (worker_misbehaves(self, CHAOS_LEAVES_KEYS)) {
    redlock_options options = worker_draw_options(self);
    options.ttl_us = 60 * REDLOCK_SECONDS;
    (void)redlock_lock_acquire(self->locks[self->index % CHAOS_RESOURCES], &options, NULL);
    _exit(0);
  }
  worker_close_client(self);
  redlock_time end_us = redlock_now() + 2 * REDLOCK_SECONDS;
  while (worker_await_children(self) > 0 && redlock_now() < end_us) {
    chaos_pause(5 * REDLOCK_MILLISECONDS);
  }
}

int main(int count, char **arguments) {
  static worker self;
  char name[32];
  if (count == 2 && strcmp(arguments[1], "--descriptors") == 0) {
    return worker_count_descriptors();
  }
  if (count != 5) {
    (void)fputs("usage: chaos_worker shared-file directory slot generation\n"
                "       chaos_worker --descriptors\n",
                stderr);
    return 2;
  }
  for (int fd = 3; fd < 1024; fd++) {
    (void)close(fd); /* Inherited descriptors are not counted. */
  }
  self.program = arguments[0];
  self.shared = chaos_share(arguments[1], false);
  self.index = (unsigned)strtoul(arguments[3], NULL, 10);
  self.generation = (unsigned)strtoul(arguments[4], NULL, 10);
  self.slot = &self.shared->slots[self.index % CHAOS_WORKERS_MAX];
  self.began_us = redlock_now();
  uint64_t seed = self.shared->seed * 1000003 + self.index * 1009 + self.generation;
  sim_random_seed(&self.random, &seed);
  (void)snprintf(name, sizeof name, "worker-%u", self.index);
  self.log = chaos_log_open(arguments[2], name);
  worker_catch_signals(self.shared, (self.index / 2) % 2 == 0);
  (void)witness_clock_start();
  worker_run(&self);
  return 0;
}
