/*
 * Wait lists: locks of one client that wait for the same resource.
 *
 * SPDX-License-Identifier: MIT
 *
 *   WAIT-1. An acquire that may make several attempts enters the wait list of its resource before
 *           the first one. The first waiter begins the list, and is its head. Later waiters are
 *           queued: none of their commands are sent.
 *            - Which locks: locks that try once, attach a lease, or have more than
 *              RL_COMMAND_QUEUES_MAX resources enter none. Other locks on the same resources, in
 *              the same order, share one.
 *            - Equal options: the waiters of one wait list have equal options, because the head
 *              asks, polls and is notified for all of them. Owners and caller-supplied tokens may
 *              differ, because no command of a waiting head has them. A waiter with other options
 *              begins another wait list of the resource.
 *            - Limit: a resource has at most RL_WAITLIST_KINDS_MAX wait lists for each combination
 *              of |notify| and |permits|. A further waiter enters one of them. Its own options
 *              apply when it is the head.
 *            - Semaphores: an acquire enters a wait list only after its first attempt, because
 *              other locks of the client may get other slots meanwhile. It enters at once if there
 *              is a list already, or if NTF-2 applies.
 *   WAIT-2. A queued waiter keeps its budget. Its retry_count also limits its time: to the length
 *           of as many pauses (rl_pause_limit()).
 *   WAIT-3. When the head ends with any result, the next waiter becomes the head. If the old head
 *           got the lock, the new head waits before it tries (rl_notify.h): the resource is taken.
 *           Otherwise it takes over the ticket of the old head.
 *   WAIT-4. Without notifications, the head would notice a release of its own client only after its
 *           delay. So it tries right behind the release. After a few delays in a row it stops doing
 *           so: otherwise other clients would never get the lock.
 *
 * Copies of rl_waitlist_waits_alike(): check_waiting_alike() in csrc/test/sim/check_waiting.c.
 */
#include "wait/rl_waitlist.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/rl_number.h"
#include "lock/rl_lock.h"
#include "lock/rl_outbox.h"
#include "lock/rl_ring.h"
#include "lock/rl_round.h"
#include "options/rl_backoff.h"
#include "wait/rl_notify.h"
#include "wait/rl_pause.h"

#define RL_WAITLIST_KINDS_MAX 64 /* wait lists of one resource, |notify| and |permits| */
#define RL_WAITLIST_OWN_DELAYS 5 /* delays for which a client may keep a resource (WAIT-4) */

/* ----------------------------------------------------------------------------- the hash table */

/* Returns the first wait list of the resource from |entry| on, or NULL. */
static rl_waitlist *rl_waitlist_from(rl_hash_entry *entry, const rl_resource *resource) {
  for (; entry != NULL; entry = rl_hash_find_next(entry)) {
    rl_waitlist *waitlist = RL_OWNER(entry, rl_waitlist, entry);
    if (rl_resource_equal(waitlist->resource, resource)) {
      return waitlist;
    }
  }
  return NULL;
}

static rl_waitlist *rl_waitlist_lookup(const rl_core *core, const rl_resource *resource,
                                       uint64_t hash) {
  return rl_waitlist_from(rl_hash_find(&core->waitlists->table, hash), resource);
}

static rl_waitlist *rl_waitlist_another(const rl_waitlist *waitlist) {
  return rl_waitlist_from(rl_hash_find_next(&waitlist->entry), waitlist->resource);
}

rl_waitlist *rl_waitlist_find(const rl_core *core, const rl_resource *resource) {
  return core->waitlists->table.count == 0
             ? NULL
             : rl_waitlist_lookup(core, resource, rl_wait_state_hash(core, resource));
}

/* Begins a wait list. Returns NULL when out of memory: the lock then waits alone. */
static rl_waitlist *rl_waitlist_new(rl_core *core, rl_lock *head, uint64_t hash) {
  rl_waitlists *waitlists = core->waitlists;
  if (!rl_hash_reserve(&waitlists->table, waitlists->table.count + 1)) {
    return NULL;
  }
  rl_list *queued = rl_list_pop(&waitlists->free);
  rl_waitlist *waitlist =
      queued != NULL ? RL_OWNER(queued, rl_waitlist, queued) : malloc(sizeof *waitlist);
  if (waitlist == NULL) {
    return NULL;
  }
  memset(waitlist, 0, sizeof *waitlist);
  waitlist->resource = head->resource;
  waitlist->resource->references++;
  waitlist->head = head;
  rl_list_init(&waitlist->queued);
  rl_hash_insert(&waitlists->table, &waitlist->entry, hash);
  return waitlist;
}

static void rl_waitlist_end(rl_core *core, rl_waitlist *waitlist) {
  rl_hash_remove(&core->waitlists->table, &waitlist->entry);
  rl_resource_unref(waitlist->resource);
  rl_list_push(&core->waitlists->free, &waitlist->queued);
}

void rl_waitlists_free(rl_core *core) {
  rl_waitlists *waitlists = core->waitlists;
  assert(waitlists->table.count == 0);
  for (rl_list *queued; (queued = rl_list_pop(&waitlists->free)) != NULL;) {
    free(RL_OWNER(queued, rl_waitlist, queued));
  }
  rl_hash_free(&waitlists->table);
  memset(waitlists, 0, sizeof *waitlists);
}

/* ----------------------------------------------------------------------------- WAIT-1, WAIT-2 */

static bool rl_waitlist_may_wait(const rl_lock *lock) {
  return lock->resource->count <= RL_COMMAND_QUEUES_MAX && rl_lock_attach(lock) == NULL;
}

/* WAIT-1. Returns true if the options that the head applies for its waiters are equal. */
static bool rl_waitlist_waits_alike(const rl_lock *lock, const rl_lock *head) {
  const rl_options *a = lock->current;
  const rl_options *b = head->current;
  return a->permits == b->permits && a->retry_delay_us == b->retry_delay_us &&
         a->retry_jitter_us == b->retry_jitter_us && a->poll_interval_us == b->poll_interval_us &&
         a->notify == b->notify && a->fence == b->fence && !(a->drift_factor < b->drift_factor) &&
         !(a->drift_factor > b->drift_factor) &&
         rl_options_node_timeout(a, lock->ttl_us) == rl_options_node_timeout(b, head->ttl_us);
}

static void rl_waitlist_append(rl_lock *lock, rl_waitlist *waitlist, redlock_time now_us) {
  rl_lock_set_phase(lock, RL_PHASE_QUEUED);
  lock->waitlist = waitlist;
  rl_list_append(&waitlist->queued, &lock->queue);
  rl_pause_limit(lock, now_us);
  lock->core->waitlists->queued_count++;
  rl_timers_set(&lock->core->timers, &lock->timer, lock->budget_ends_us);
}

/*
 * WAIT-1. Returns the wait list that |lock| enters, of those of its resource from |first| on; NULL
 *         if it begins one. At the limit returns a random one with the same |notify| and |permits|.
 */
static rl_waitlist *rl_waitlist_choose(const rl_lock *lock, rl_waitlist *first) {
  rl_waitlist *any = NULL;
  uint64_t random = 0;
  unsigned kinds = 0;
  for (rl_waitlist *at = first; at != NULL; at = rl_waitlist_another(at)) {
    if (rl_waitlist_waits_alike(lock, at->head)) {
      return at;
    }
    if (lock->current->notify == at->head->current->notify &&
        lock->current->permits == at->head->current->permits) {
      random = kinds == 0 ? rl_wait_state_random(lock->core) : random;
      any = kinds == random % RL_WAITLIST_KINDS_MAX ? at : any;
      kinds++;
    }
  }
  return kinds < RL_WAITLIST_KINDS_MAX ? NULL : any;
}

/* Draws the seed of the hash, once. */
static void rl_waitlist_seed(rl_core *core, uint64_t random) {
  if (core->waitlists->seed == 0) {
    core->waitlists->seed = random | 1;
    core->waitlists->random = core->waitlists->seed;
  }
}

/*
 * WAIT-1. Puts |lock| into a wait list of its resource. Returns true if it is queued behind the
 *         head. If there is no suitable list, |lock| begins one; with |alone| false it enters none.
 */
static bool rl_waitlist_put(rl_lock *lock, redlock_time now_us, uint64_t hash, bool alone) {
  rl_waitlist *waitlist =
      rl_waitlist_choose(lock, rl_waitlist_lookup(lock->core, lock->resource, hash));
  if (waitlist != NULL) {
    if (lock->phase == RL_PHASE_SEND) {
      rl_outbox_leave(lock);
    }
    rl_waitlist_append(lock, waitlist, now_us);
    return true;
  }
  if (alone) {
    lock->waitlist = rl_waitlist_new(lock->core, lock, hash);
  }
  return false;
}

bool rl_waitlist_enter_after_attempt(rl_lock *lock, redlock_time now_us) {
  rl_core *core = lock->core;
  if (lock->waitlist != NULL || lock->current->permits <= 0 || !rl_waitlist_may_wait(lock)) {
    return false;
  }
  rl_waitlist_seed(core, lock->random);
  return rl_waitlist_put(lock, now_us, rl_wait_state_hash(core, lock->resource), true);
}

bool rl_waitlist_enter(rl_lock *lock, redlock_time now_us, const unsigned char *entropy) {
  rl_core *core = lock->core;
  if (lock->waitlist != NULL || lock->result != REDLOCK_PENDING || lock->attempts_left <= 1 ||
      !rl_waitlist_may_wait(lock)) {
    return false;
  }
  rl_waitlist_seed(core, rl_number_in_bytes(entropy, sizeof core->waitlists->seed));
  uint64_t hash = rl_wait_state_hash(core, lock->resource);
  bool tries = lock->current->permits > 0 && lock->current->fair != REDLOCK_YES &&
               !rl_notify_was_contended(core, hash, now_us);
  return rl_waitlist_put(lock, now_us, hash, !tries);
}

/* ------------------------------------------------------------------------------------- WAIT-3 */

static void rl_waitlist_settle_all(rl_lock *lock, redlock_vote vote, const char *reason) {
  for (unsigned i = 0; i < lock->core->node_count; i++) {
    rl_round_settle_copy(lock, i, vote, reason);
  }
}

/*
 * Copies the votes of the head to a queued waiter, which has not asked the nodes. The head's
 * attempt may still be in flight; a vote that is missing then counts as unknown.
 */
static void rl_waitlist_copy_votes(rl_lock *lock, const rl_lock *head, int result) {
  for (unsigned i = 0; i < lock->core->node_count; i++) {
    const rl_vote *vote = &head->votes[i];
    if (vote->settled) {
      rl_round_settle_copy(lock, i, (redlock_vote)vote->vote, rl_reasons_text(head->reasons, i));
    }
  }
  if (result != REDLOCK_E_TAKEN ||
      !rl_quorum_denied(lock->quorum.nodes, lock->quorum.denied,
                        rl_core_quorum(lock->core, RL_OPERATION_ACQUIRE))) {
    rl_waitlist_settle_all(lock, REDLOCK_VOTE_UNKNOWN, "not asked before the budget expired");
  }
}

void rl_waitlist_give_up(rl_lock *lock, redlock_time now_us) {
  const rl_waitlist *waitlist = lock->waitlist;
  const rl_lock *head = waitlist->head;
  int result = head->result != REDLOCK_PENDING ? head->result : REDLOCK_E_UNAVAILABLE;
  bool hears = rl_pause_quorum_is_alive(head, now_us);
  if (waitlist->own_since_us != 0 && hears) {
    result = REDLOCK_E_TAKEN;
    rl_waitlist_settle_all(lock, REDLOCK_VOTE_TAKEN, NULL);
  } else {
    result = result == REDLOCK_E_TAKEN && !hears ? REDLOCK_E_UNAVAILABLE : result;
    rl_waitlist_copy_votes(lock, head, result);
  }
  rl_lock_end(lock, now_us, result);
}

/*
 * Picks the waiter to promote. Skips waiters that have no time left for an attempt, unless no
 * waiter has. Otherwise each of many waiters that came together, with equal budgets, would make a
 * last attempt.
 */
static rl_lock *rl_waitlist_next(const rl_waitlist *waitlist, redlock_time now_us) {
  rl_lock *next = rl_lock_queue_first(&waitlist->queued);
  while (next != NULL && rl_pause_next(next, 0, now_us) == REDLOCK_NEVER) {
    next = rl_lock_queue_next(&waitlist->queued, next);
  }
  return next != NULL ? next : rl_lock_queue_first(&waitlist->queued);
}

/* Makes the next waiter the head. */
static void rl_waitlist_promote(rl_waitlist *waitlist, redlock_time now_us, bool granted) {
  rl_lock *next = rl_waitlist_next(waitlist, now_us);
  rl_core *core = next->core;
  const rl_lock *before = waitlist->head;
  rl_list_remove(&next->queue);
  core->waitlists->queued_count--;
  rl_timers_clear(&core->timers, &next->timer);
  waitlist->head = next;
  waitlist->attempt_us = 0;
  waitlist->has_waited = false;
  if (core->closed) { /* rl_core_close() is about to end this waiter, too. */
    rl_lock_set_phase(next, RL_PHASE_DELAY);
    return;
  }
  if (!granted && waitlist->ticket == NULL && before->result == REDLOCK_PENDING) {
    rl_outbox_enter(next, now_us); /* The old head was cancelled before it had a result. */
    return;
  }
  rl_lock_set_phase(next, RL_PHASE_DELAY);
  next->random = rl_wait_state_random(core);
  if (granted) {
    rl_waitlist_settle_all(next, REDLOCK_VOTE_TAKEN, NULL);
    rl_lock_set_result(next, REDLOCK_E_TAKEN);
  } else if (before->result != REDLOCK_PENDING && before->result != REDLOCK_OK) {
    rl_waitlist_copy_votes(next, before, before->result);
    rl_lock_set_result(next, before->result);
  }
  redlock_duration pause_us = rl_pause_next(next, next->random, now_us);
  if (pause_us == REDLOCK_NEVER) {
    next->budget_ends_us = now_us; /* No time for an attempt is left: end like the old head. */
    rl_timers_set(&core->timers, &next->timer, now_us);
    return;
  }
  rl_timers_set(&core->timers, &next->timer, rl_time_add(now_us, pause_us));
  rl_notify_enqueue(next, now_us);
}

void rl_waitlist_leave(rl_lock *lock, redlock_time now_us, int result) {
  rl_core *core = lock->core;
  rl_waitlist *waitlist = lock->waitlist;
  if (result == REDLOCK_E_TAKEN) {
    rl_notify_copy_label(lock);
  }
  if (waitlist->head != lock) {
    rl_list_remove(&lock->queue);
    lock->waitlist = NULL;
    core->waitlists->queued_count--;
    return;
  }
  lock->waitlist = NULL;
  bool granted = result == REDLOCK_OK && lock->lease != NULL;
  if (granted) {
    rl_notify_move_ticket(waitlist, lock->lease, now_us);
    waitlist->own_since_us = waitlist->own_since_us != 0 ? waitlist->own_since_us : now_us;
  }
  if (rl_lock_queue_first(&waitlist->queued) != NULL) {
    rl_waitlist_promote(waitlist, now_us, granted);
  } else {
    rl_notify_give_up(core, waitlist);
    rl_waitlist_end(core, waitlist);
  }
}

/* ------------------------------------------------------------------------------------- WAIT-4 */

/*
 * Returns the wait list of the resource that may try next, or NULL: the one that tried longest ago,
 * of those whose head pauses and will not be notified.
 */
static rl_waitlist *rl_waitlist_next_to_try(const rl_core *core, rl_waitlist *waitlist) {
  rl_waitlist *found = NULL;
  for (; waitlist != NULL; waitlist = rl_waitlist_another(waitlist)) {
    bool sleeps =
        waitlist->head->phase == RL_PHASE_DELAY && !rl_notify_quorum_notifies(core, waitlist);
    if (sleeps && (found == NULL || waitlist->followed_us < found->followed_us)) {
      found = waitlist;
    }
  }
  return found;
}

static void rl_waitlist_set_own_since(rl_waitlist *waitlist, redlock_time own_since_us) {
  for (; waitlist != NULL; waitlist = rl_waitlist_another(waitlist)) {
    waitlist->own_since_us = own_since_us;
  }
}

void rl_waitlist_note_other_holder(const rl_core *core, const rl_resource *resource) {
  rl_waitlist_set_own_since(rl_waitlist_find(core, resource), 0);
}

/*
 * Only one wait list of a resource tries at a time. Two would take the resource from each other,
 * and neither would reach the limit of WAIT-4.
 */
void rl_waitlist_released(rl_core *core, const rl_resource *resource, redlock_time now_us) {
  rl_waitlist *first = core->closed ? NULL : rl_waitlist_find(core, resource);
  rl_waitlist *turn = rl_waitlist_next_to_try(core, first);
  redlock_time since_us = now_us;
  if (turn == NULL) {
    return;
  }
  for (const rl_waitlist *waitlist = first; waitlist != NULL;
       waitlist = rl_waitlist_another(waitlist)) {
    since_us =
        waitlist->own_since_us != 0 ? rl_time_min(since_us, waitlist->own_since_us) : since_us;
  }
  redlock_duration delay_us = rl_backoff_attempt_mean(turn->head->current);
  bool long_enough = rl_time_sub(now_us, since_us) / RL_WAITLIST_OWN_DELAYS > delay_us;
  rl_waitlist_set_own_since(first, long_enough ? now_us : since_us);
  if (!long_enough) {
    turn->followed_us = now_us;
    rl_timers_clear(&core->timers, &turn->head->timer);
    rl_outbox_enter(turn->head, now_us);
  }
}
