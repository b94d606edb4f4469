/*
 * The threads in blocking calls on one client, and the state that they share (rl_client_wait.c).
 *
 * SPDX-License-Identifier: MIT
 */
#include "client/rl_waiters.h"

#include <stdlib.h>

#include "lock/rl_lock.h"
#include "os/rl_clock.h"

static void rl_wait_init_lists(rl_wait *wait) {
  rl_list_init(&wait->asleep);
  rl_list_init(&wait->unposted);
  rl_list_init(&wait->spare);
}

void rl_wait_init(rl_wait *wait) {
  rl_wait_init_lists(wait);
  atomic_init(&wait->wakeups, 0);
  rl_event_init(&wait->event);
  rl_timer_init(&wait->timer);
}

void rl_wait_free(rl_wait *wait) {
  for (size_t i = 0; i < wait->made_count; i++) {
    rl_semaphore_free(&wait->made[i]->semaphore);
    free(wait->made[i]);
  }
  free(wait->made);
  rl_event_close(&wait->event);
  rl_timer_close(&wait->timer);
}

void rl_wait_forget(rl_wait *wait) {
  wait->leader = wait->sender = NULL;
  wait->polls = wait->poked = wait->unsent = wait->unstarted = false;
  wait->brief = wait->hurried = false;
  wait->arriving = wait->missed = wait->posted = wait->watchers = 0;
  rl_wait_init_lists(wait);
  for (size_t i = 0; i < wait->made_count; i++) {
    rl_waiter *waiter = wait->made[i];
    waiter->in_use = waiter->sleeps = waiter->woken = waiter->unposted = false;
    (void)rl_semaphore_init(&waiter->semaphore);
    rl_list_append(&wait->spare, &waiter->list);
  }
  rl_event_close(&wait->event); /* It is the parent's, too. */
  rl_timer_close(&wait->timer);
}

static bool rl_wait_reserve(rl_wait *wait) {
  size_t capacity = wait->made_capacity == 0 ? 4 : 2 * wait->made_capacity;
  if (wait->made_count < wait->made_capacity) {
    return true;
  }
  rl_waiter **grown = realloc(wait->made, capacity * sizeof(rl_waiter *));
  if (grown == NULL) {
    return false;
  }
  wait->made = grown;
  wait->made_capacity = capacity;
  return true;
}

/* Waiters are kept until the end: a semaphore may be posted after its thread has left the call. */
rl_waiter *rl_wait_take_spare(rl_wait *wait) {
  rl_waiter *waiter =
      RL_OWNER(wait->spare.previous, rl_waiter, list); /* The last one is in the cache. */
  if (rl_wait_first(&wait->spare) != NULL) {
    rl_list_remove(&waiter->list);
    return waiter;
  }
  if (wait->made_count == RL_LOCK_WAITED_MAX || !rl_wait_reserve(wait)) {
    return NULL;
  }
  waiter = calloc(1, sizeof *waiter);
  if (waiter == NULL || !rl_semaphore_init(&waiter->semaphore)) {
    free(waiter);
    return NULL;
  }
  wait->made[wait->made_count++] = waiter;
  waiter->number = (unsigned)wait->made_count;
  return waiter;
}

void rl_wait_leave_unsent(rl_wait *wait) {
  if (!wait->unsent) {
    wait->unsent = true;
    wait->send_us = rl_time_add(redlock_now(), RL_WAIT_UNSENT_US);
  }
}
