/*
 * A worker: takes, holds, extends and releases locks, and logs its beliefs.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef CHAOS_WORKER_H
#define CHAOS_WORKER_H

#include "chaos.h"
#include "sim_random.h"

#define WORKER_CHILDREN_MAX 8

/* This worker's belief about a resource; other processes see a chaos_belief. */
typedef struct worker_hold {
  bool held;
  uint64_t number;
  redlock_time from_us;
  redlock_time until_us; /* the deadline */
  redlock_lock *lock;    /* by which it is held */
  char token[REDLOCK_TOKEN_LENGTH + 3];
} worker_hold;

typedef struct worker {
  chaos_shared *shared;
  chaos_slot *slot;
  unsigned index;
  unsigned generation;
  int log;
  const char *program;
  sim_random random;
  redlock_client *client;
  redlock_lock *locks[CHAOS_RESOURCES];
  worker_hold holds[CHAOS_RESOURCES];
  redlock_time began_us;
  redlock_time logged_us; /* end of the last call: delays until then are logged */
  void **leaked;
  pid_t children[WORKER_CHILDREN_MAX];
  chaos_fork child_kinds[WORKER_CHILDREN_MAX];
} worker;

/* One call as it is logged: its name, start and budget. */
typedef struct worker_call {
  const char *name;
  int phase;
  redlock_time started_us;
  redlock_duration budget_us;
} worker_call;

worker_call worker_begin(const worker *self, const char *name, redlock_duration budget_us);
void worker_end(worker *self, const worker_call *call, int result);

/* Draws how a lock is to be taken. */
redlock_options worker_draw_options(worker *self);

/* How long an acquire with |options| may take. */
redlock_duration worker_budget(const redlock_options *options);

/* How long the next lock is to be held, and how long it is until the one after it. */
redlock_duration worker_draw_hold(worker *self, const redlock_options *options);
redlock_duration worker_draw_rest(worker *self);

/* The critical section: going in, being prolonged, looking around, going out. */
void worker_enter(worker *self, unsigned resource);
void worker_prolong(worker *self, unsigned resource);
/* The same with another lock than self->locks[resource], of which it is the |place|th resource. */
void worker_enter_by(worker *self, unsigned resource, redlock_lock *lock, unsigned place);
bool worker_inside(const worker *self, unsigned resource); /* by its own deadline */
void worker_leave(worker *self, unsigned resource);
/* The lease goes on without the worker. */
void worker_detached(worker *self, unsigned resource);

/* Counts the errors of the nodes in the last round of a lock. */
void worker_hear(worker *self, redlock_lock *lock);

void worker_open_client(worker *self);
void worker_close_client(worker *self);

/* Misdeeds and forks. Runs once in every turn. */
void worker_do_other_things(worker *self);
bool worker_misbehaves(const worker *self, chaos_misdeed misdeed);

void worker_run_loop(worker *self);

/* Uses locks in another way once (chaos_worker_ways.c). */
void worker_use_otherwise(worker *self);

/* Stays inside, and prolongs, for as long as that is drawn. */
void worker_hold_on(worker *self, unsigned resource, const redlock_options *options);

/* Forks if that is wanted and a lock is held. */
void worker_fork(worker *self);
/* Writes down how children have ended; returns how many are left. */
unsigned worker_await_children(worker *self);
/* The program of an executed child: returns 0 if it has only the usual three descriptors. */
int worker_count_descriptors(void);

/* Installs handlers for all signals that can be caught, and unblocks them. */
void worker_catch_signals(chaos_shared *shared, bool restart);

#endif
