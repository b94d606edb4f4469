/*
 * A worker that runs the loop itself, with an operation in flight for each of its locks.
 *
 * SPDX-License-Identifier: MIT
 */
#include <poll.h>

#include "chaos_worker.h"

#define CANCELLED 800 /* of 10000 */
#define LOOP_PATIENCE_US (50 * REDLOCK_MILLISECONDS)

typedef enum loop_state {
  LOOP_RESTING,
  LOOP_ACQUIRING,
  LOOP_HOLDING,
  LOOP_EXTENDING,
  LOOP_RELEASING
} loop_state;

typedef struct loop_lock {
  loop_state state;
  redlock_time next_us; /* when to do something, while nothing is in flight */
  redlock_time done_us; /* when it has been held long enough */
  redlock_time cancel_us;
  uint64_t extends;
  redlock_options options;
  worker_call call;
} loop_lock;

typedef struct loop {
  worker *worker;
  bool ending;
  loop_lock locks[CHAOS_RESOURCES];
} loop;

static void loop_rest(loop *self, unsigned resource) {
  self->locks[resource].state = LOOP_RESTING;
  /* Its worker has as many of them as there are resources. */
  self->locks[resource].next_us = redlock_now() + CHAOS_RESOURCES * worker_draw_rest(self->worker);
}

static void loop_release(loop *self, unsigned resource) {
  loop_lock *lock = &self->locks[resource];
  worker_leave(self->worker, resource);
  lock->call = worker_begin(self->worker, "release", CHAOS_NODE_TIMEOUT_US);
  int error = redlock_lock_release_start(self->worker->locks[resource]);
  if (error != REDLOCK_OK) {
    worker_end(self->worker, &lock->call, error);
    loop_rest(self, resource);
    return;
  }
  lock->state = LOOP_RELEASING;
}

static void loop_acquire(loop *self, unsigned resource) {
  worker *owner = self->worker;
  loop_lock *lock = &self->locks[resource];
  lock->options = worker_draw_options(owner);
  lock->call = worker_begin(owner, "acquire", worker_budget(&lock->options));
  lock->cancel_us = REDLOCK_NEVER;
  if (sim_chance(&owner->random, CANCELLED)) {
    /* In the middle of an attempt, or at any time, which is mostly between two. */
    redlock_duration within_us =
        sim_chance(&owner->random, 7000) ? 2 * REDLOCK_MILLISECONDS : lock->call.budget_us;
    lock->cancel_us = lock->call.started_us + sim_below(&owner->random, within_us);
  }
  int error = redlock_lock_acquire_start(owner->locks[resource], &lock->options);
  if (error != REDLOCK_OK) {
    worker_end(owner, &lock->call, error);
    loop_rest(self, resource);
    return;
  }
  lock->state = LOOP_ACQUIRING;
}

/* While it is held: goes on, prolongs, or gives back. */
static void loop_hold(loop *self, unsigned resource, redlock_time now_us) {
  worker *owner = self->worker;
  loop_lock *lock = &self->locks[resource];
  if (self->ending || now_us >= lock->done_us || !worker_inside(owner, resource)) {
    loop_release(self, resource);
    return;
  }
  lock->next_us = now_us + sim_below(&owner->random, 20 * REDLOCK_MILLISECONDS);
  lock->next_us = lock->next_us < lock->done_us ? lock->next_us : lock->done_us;
  if (lock->extends > 0 &&
      redlock_lock_remaining(owner->locks[resource]) < lock->options.ttl_us / 2) {
    lock->extends--;
    lock->call = worker_begin(owner, "extend", CHAOS_NODE_TIMEOUT_US);
    int error = redlock_lock_extend_start(owner->locks[resource], 0);
    if (error == REDLOCK_OK) {
      lock->state = LOOP_EXTENDING;
    } else {
      worker_end(owner, &lock->call, error);
    }
  }
}

static void loop_ended(loop *self, unsigned resource) {
  worker *owner = self->worker;
  loop_lock *lock = &self->locks[resource];
  int result = redlock_lock_result(owner->locks[resource]);
  loop_state state = lock->state;
  if (state == LOOP_ACQUIRING && result == REDLOCK_OK) {
    worker_enter(owner, resource);
  } else if (state == LOOP_EXTENDING && result == REDLOCK_OK) {
    worker_prolong(owner, resource);
  }
  worker_end(owner, &lock->call, result);
  worker_hear(owner, owner->locks[resource]);
  if (state == LOOP_EXTENDING || (state == LOOP_ACQUIRING && result == REDLOCK_OK)) {
    if (state == LOOP_ACQUIRING) {
      lock->done_us = redlock_now() + worker_draw_hold(owner, &lock->options);
      lock->extends = sim_below(&owner->random, 4);
    }
    lock->state = LOOP_HOLDING;
    lock->next_us = redlock_now();
  } else {
    loop_rest(self, resource);
  }
}

/* Does the due work, and returns the time until the next. */
static redlock_duration loop_act(loop *self) {
  redlock_duration patience_us = LOOP_PATIENCE_US;
  for (unsigned i = 0; i < CHAOS_RESOURCES; i++) {
    loop_lock *lock = &self->locks[i];
    redlock_time now_us = redlock_now();
    if (lock->state == LOOP_RESTING && now_us >= lock->next_us && !self->ending) {
      loop_acquire(self, i);
    } else if (lock->state == LOOP_HOLDING && (self->ending || now_us >= lock->next_us)) {
      loop_hold(self, i, now_us);
    } else if (lock->state == LOOP_ACQUIRING && now_us >= lock->cancel_us) {
      redlock_lock_cancel(self->worker->locks[i]);
    }
    redlock_time due_us = lock->state == LOOP_ACQUIRING ? lock->cancel_us : lock->next_us;
    if (lock->state != LOOP_RELEASING && lock->state != LOOP_EXTENDING && due_us != REDLOCK_NEVER) {
      redlock_duration left_us = due_us > now_us ? due_us - now_us : 0;
      patience_us = left_us < patience_us ? left_us : patience_us;
    }
  }
  return patience_us;
}

/* One half of the workers waits for many descriptors, the other for one. */
static void loop_wait(loop *self, redlock_duration patience_us) {
  struct pollfd fds[REDLOCK_NODES_MAX];
  redlock_client *client = self->worker->client;
  bool single = self->worker->index % 4 == 3;
  size_t count = single ? 1 : redlock_client_pollfds(client, fds, REDLOCK_NODES_MAX);
  if (single) {
    fds[0] = (struct pollfd){redlock_client_pollfd(client), POLLIN, 0};
  }
  int timeout_ms = redlock_client_timeout_ms(client);
  int patience_ms = (int)((patience_us + 999) / 1000);
  if (timeout_ms < 0 || timeout_ms > patience_ms) {
    timeout_ms = patience_ms;
  }
  int ready = poll(fds, (nfds_t)count, timeout_ms);
  (void)(single || ready < 0 ? redlock_client_process(client, NULL, 0)
                             : redlock_client_process(client, fds, count));
}

static bool loop_busy(const loop *self) {
  for (unsigned i = 0; i < CHAOS_RESOURCES; i++) {
    if (self->locks[i].state != LOOP_RESTING) {
      return true;
    }
  }
  return false;
}

void worker_run_loop(worker *owner) {
  loop self = {.worker = owner};
  for (unsigned i = 0; i < CHAOS_RESOURCES; i++) {
    redlock_lock_set_data(owner->locks[i], &self.locks[i]);
    loop_rest(&self, i);
  }
  while (!self.ending || loop_busy(&self)) {
    redlock_lock *lock;
    self.ending = atomic_load(&owner->shared->quit);
    loop_wait(&self, loop_act(&self));
    while ((lock = redlock_client_next_ended(owner->client)) != NULL) {
      loop_ended(&self, (unsigned)((loop_lock *)redlock_lock_data(lock) - self.locks));
    }
    worker_do_other_things(owner);
  }
}
