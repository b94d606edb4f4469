/*
 * The callers of a client, and the state that they share. rl_caller.c has the words and the rules.
 *
 * SPDX-License-Identifier: MIT
 */
#include "client/rl_callers.h"

#include <stdlib.h>

#include "lock/rl_lock.h"
#include "os/rl_clock.h"

static void rl_callers_init_lists(rl_callers *callers) {
  rl_list_init(&callers->asleep);
  rl_list_init(&callers->unposted);
  rl_list_init(&callers->spare);
}

void rl_callers_init(rl_callers *callers) {
  rl_callers_init_lists(callers);
  atomic_init(&callers->wakeups, 0);
  rl_eventfd_init(&callers->event);
  rl_timerfd_init(&callers->timer);
}

void rl_callers_free(rl_callers *callers) {
  for (size_t i = 0; i < callers->count; i++) {
    rl_sleeper_free(&callers->all[i]->sleeper);
    free(callers->all[i]);
  }
  free(callers->all);
  rl_eventfd_close(&callers->event);
  rl_timerfd_close(&callers->timer);
}

void rl_callers_reset(rl_callers *callers) {
  callers->poller = callers->sender = NULL;
  callers->polling = callers->event_is_set = callers->unsent = callers->unsent_operations = false;
  callers->polls_briefly = callers->post_all = false;
  callers->arriving = callers->missed = callers->posted = callers->turn_checkers = 0;
  rl_callers_init_lists(callers);
  for (size_t i = 0; i < callers->count; i++) {
    rl_caller *caller = callers->all[i];
    caller->in_use = caller->sleeps = caller->woken = caller->unposted = false;
    (void)rl_sleeper_init(&caller->sleeper);
    rl_list_append(&callers->spare, &caller->list);
  }
  rl_eventfd_close(&callers->event); /* It is the parent's, too. */
  rl_timerfd_close(&callers->timer);
}

static bool rl_callers_reserve(rl_callers *callers) {
  size_t capacity = callers->capacity == 0 ? 4 : 2 * callers->capacity;
  if (callers->count < callers->capacity) {
    return true;
  }
  rl_caller **grown = realloc(callers->all, capacity * sizeof(rl_caller *));
  if (grown == NULL) {
    return false;
  }
  callers->all = grown;
  callers->capacity = capacity;
  return true;
}

/* Callers are kept until the end: a sleeper may be posted after its thread has left the call. */
rl_caller *rl_callers_take_spare(rl_callers *callers) {
  rl_caller *caller =
      RL_OWNER(callers->spare.previous, rl_caller, list); /* The last one is in the cache. */
  if (rl_callers_first(&callers->spare) != NULL) {
    rl_list_remove(&caller->list);
    return caller;
  }
  if (callers->count == RL_LOCK_CALLERS_MAX || !rl_callers_reserve(callers)) {
    return NULL;
  }
  caller = calloc(1, sizeof *caller);
  if (caller == NULL || !rl_sleeper_init(&caller->sleeper)) {
    free(caller);
    return NULL;
  }
  callers->all[callers->count++] = caller;
  caller->number = (unsigned)callers->count;
  return caller;
}

void rl_callers_leave_unsent(rl_callers *callers) {
  if (!callers->unsent) {
    callers->unsent = true;
    callers->send_us = rl_time_add(redlock_now(), RL_CALLERS_UNSENT_US);
  }
}
