/*
 * The life of a lock, and the beginning and the end of the operations on it.
 *
 * SPDX-License-Identifier: MIT
 *
 * The operations themselves are in rl_acquire.c, rl_extend.c and rl_release.c, which number their
 * steps; what they have in common, asking the nodes, is in rl_round.c.
 */
#include "lifecycle/rl_lifecycle.h"

#include <assert.h>
#include <stdalign.h>
#include <stdlib.h>
#include <string.h>

#include "lease/rl_attach.h"
#include "lease/rl_custom_token.h"
#include "lease/rl_fence.h"
#include "lease/rl_hold.h"
#include "lease/rl_lease_end.h"
#include "lease/rl_reentry.h"
#include "lease/rl_release.h"
#include "lease/rl_renew.h"
#include "lease/rl_semaphore.h"
#include "lifecycle/rl_pacer.h"
#include "lock/rl_lock.h"
#include "lock/rl_outbox.h"
#include "lock/rl_result.h"
#include "lock/rl_ring.h"
#include "lock/rl_round.h"
#include "node/rl_guard.h"
#include "wait/rl_notify.h"
#include "wait/rl_ticket.h"
#include "wait/rl_waitlist.h"

/* -------------------------------------------------------------------------------------- life */

/*
 * Behind the votes of a lock are its options, unless they are the core's, and its rl_renewal, if it
 * needs one.
 */
static rl_lock *rl_lock_allocate(const rl_core *core, const rl_options *options) {
  size_t own = rl_options_equal(options, &core->options) ? 0 : sizeof *options;
  size_t renewal =
      rl_renewal_is_asked(options) ? sizeof(rl_renewal) + core->node_count * sizeof(rl_vote) : 0;
  size_t size = sizeof(rl_lock) + core->node_count * sizeof(rl_vote);
  static_assert(sizeof(rl_vote) % alignof(rl_options) == 0, "what is behind the votes is aligned");
  static_assert(sizeof(rl_options) % alignof(rl_renewal) == 0, "and what is behind the options");
  rl_lock *lock = calloc(1, size + own + renewal);
  if (lock == NULL) {
    return NULL;
  }
  char *behind = (char *)lock + size;
  lock->has_options = own > 0;
  if (own > 0) {
    memcpy(behind, options, own);
  }
  if (renewal > 0) {
    lock->renewal = (rl_renewal *)(void *)(behind + own);
  }
  return lock;
}

rl_lock *rl_lock_new(rl_core *core, const void *resource, size_t length,
                     const rl_options *options) {
  redlock_resource one = {resource, length};
  return rl_lock_new_many(core, &one, 1, options);
}

rl_lock *rl_lock_new_many(rl_core *core, const redlock_resource *resources, size_t count,
                          const rl_options *options) {
  rl_lock *lock = rl_lock_allocate(core, options);
  if (lock == NULL) {
    return NULL;
  }
  lock->resource = rl_resource_new_many(core->prefix, core->prefix_length, resources, count);
  lock->core = core;
  if (lock->resource == NULL || !rl_timers_reserve(&core->timers, core->lock_count + 1) ||
      !rl_outbox_reserve(core, core->lock_count + 1)) {
    if (lock->resource != NULL) {
      rl_resource_unref(lock->resource);
    }
    free(lock);
    return NULL;
  }
  lock->current = rl_lock_options(lock);
  lock->ttl_us = options->ttl_us;
  lock->timer.index = RL_TIMERS_NONE;
  rl_list_append(core->locks.next, &lock->locks); /* the newest is the first */
  core->lock_count++;
  rl_round_clear(lock);
  return lock;
}

/* ------------------------------------------------------------------------------------ ending */

/* An acquire has ended before it used its supplied token. */
static void rl_lock_drop_custom_token(rl_lock *lock, redlock_time now_us) {
  rl_attempt *custom = lock->attempt;
  lock->attempt = NULL;
  rl_release_and_drop(lock, now_us, custom, true);
}

void rl_lifecycle_ended(rl_lock *lock, redlock_time now_us, int result) {
  if (lock->operation == RL_OPERATION_ACQUIRE) {
    rl_attach_forget(lock);
    rl_reentry_acquire_ended(lock);
  }
  if (rl_reentry_end_nesting(lock, now_us, result)) {
    rl_lease_end(lock, now_us, true); /* OWN-3 */
  }
  if (lock->operation == RL_OPERATION_ACQUIRE && lock->attempt != NULL) {
    rl_lock_drop_custom_token(lock, now_us);
  }
  if (lock->reports_end) {
    rl_list_append(lock->caller_number != 0 ? &lock->core->ended_awaited : &lock->core->ended,
                   &lock->queue);
  }
  if (lock->renewal != NULL || rl_reentry_of(lock) != NULL) {
    rl_renew_ended(lock, now_us);
  }
}

/* Ends the caller's operation in flight, if there is one, and releases its attempt. */
static void rl_lock_stop_operation(rl_lock *lock, redlock_time now_us, int error, bool grow) {
  rl_attempt *attempt = lock->attempt;
  lock->abandoned = false;
  if (!rl_lock_is_busy(lock)) {
    return;
  }
  lock->attempt = NULL;
  rl_lock_end(lock, now_us, error);
  rl_release_and_drop(lock, now_us, attempt, grow);
}

void rl_lock_cancel(rl_lock *lock, redlock_time now_us, int error) {
  rl_lock_stop_operation(lock, now_us, error, true);
  rl_tickets_send(lock->core, now_us);
}

void rl_lock_undo(rl_lock *lock, redlock_time now_us, int error) {
  bool acquired = !rl_lock_is_busy(lock) && rl_result_of(lock).operation == RL_OPERATION_ACQUIRE;
  rl_lock_cancel(lock, now_us, error);
  if (acquired && rl_reentry_release(lock, now_us)) {
    rl_result_replace(lock, error);
  }
}

void rl_lock_expire(rl_lock *lock, redlock_time now_us) {
  rl_renew_stop(lock, now_us);
  rl_lock_ignore_late_votes(lock);
  rl_result_replace(lock, lock->core->closed ? REDLOCK_E_CLOSED : REDLOCK_E_EXPIRED);
  rl_lock_note_end(lock, now_us);
  rl_lease_end(lock, now_us, true);
}

void rl_lock_close(rl_lock *lock, redlock_time now_us) {
  bool lasts = rl_ring_remaining(lock, now_us) > 0;
  rl_lock_stop_operation(lock, now_us, REDLOCK_E_CLOSED, true);
  if (lasts) {
    rl_loss_clear(lock); /* Extends failed, but the lease was not lost. */
  }
  rl_lease_end(lock, now_us, true);
}

void rl_lock_free(rl_lock *lock, redlock_time now_us) {
  rl_core *core = lock->core;
  rl_reentry_stop_nesting(lock);
  rl_lock_stop_operation(lock, now_us, REDLOCK_E_CANCELLED, false);
  rl_lease_end(lock, now_us, false);
  rl_release_hurry_failed_attempt(lock, now_us, false);
  rl_list_remove(&lock->queue);
  rl_reentry_free(lock);
  rl_renew_free(lock);
  rl_list_remove(&lock->locks);
  core->lock_count--;
  rl_round_clear(lock);
  rl_resource_unref(lock->resource);
  rl_custom_token_forget(lock);
  rl_attach_forget(lock);
  rl_fence_free(lock);
  rl_semaphore_free(lock);
  for (unsigned i = 0; lock->extension != NULL && i < RL_OPERATIONS_ASKED; i++) {
    free(lock->extension->answers[i]);
  }
  free(lock->extension);
  (void)rl_lock_set_options(lock, rl_lock_options(lock));
  free(lock->reasons);
  free(lock);
  rl_tickets_send(core, now_us); /* The next waiter must not wait for the next turn. */
}

void rl_lock_reset(rl_lock *lock) {
  rl_attempt *attempts[] = {lock->lease, lock->unreleased, lock->attempt, lock->failed};
  rl_reentry_forget(lock);
  rl_lock_set_lease(lock, NULL, 0);
  lock->lost = false;
  lock->abandoned = false;
  rl_loss_clear(lock);
  lock->unreleased = NULL;
  lock->attempt = NULL;
  lock->failed = NULL;
  if (rl_lock_is_in_flight(lock)) {
    rl_lock_end(lock, lock->core->now_us, REDLOCK_E_CANCELLED);
  }
  for (unsigned i = 0; i < sizeof attempts / sizeof attempts[0]; i++) {
    if (attempts[i] != NULL) {
      attempts[i]->lock = NULL;
      rl_attempt_unref(&lock->core->attempts, attempts[i]);
    }
  }
  rl_custom_token_forget(lock);
  rl_attach_forget(lock);
}

/* Ends the lease, which has expired. rl_loss_of() still returns since when. */
static void rl_lock_expire_lease(rl_lock *lock, redlock_time now_us) {
  const rl_lock *lease_owner = rl_ring_owner(lock);
  redlock_time deadline_us = lease_owner->deadline_us;
  if (lock->lease != NULL) {
    rl_loss_report_expired(lock);
  } else {
    rl_renew_copy_end(lock, lease_owner);
  }
  rl_lock_expire(lock, now_us);
  lock->deadline_us = deadline_us;
}

int rl_lock_outcome(rl_lock *lock, redlock_time now_us) {
  unsigned operation = rl_result_of(lock).operation;
  bool grants = rl_operation_has(operation, RL_GRANTS);
  if (grants && rl_lock_result(lock) == REDLOCK_OK && rl_ring_remaining(lock, now_us) == 0) {
    if (lock->lost) {
      rl_result_replace(lock, REDLOCK_E_LOST);
      if (operation == RL_OPERATION_ACQUIRE && !rl_reentry_release_lost(lock)) {
        rl_reentry_leave(lock, now_us); /* A failed acquire has nothing to release. */
      }
    } else if (rl_ring_owner(lock)->lease == NULL) { /* detached, closed, or in a forked child */
      rl_result_replace(lock, lock->core->closed ? REDLOCK_E_CLOSED : REDLOCK_E_NOT_HELD);
    } else {
      bool nested = lock->lease == NULL;
      if (operation == RL_OPERATION_ACQUIRE && !rl_ring_is_shared(lock)) {
        rl_hold_forget(lock->lease);
      }
      rl_lock_expire_lease(lock, now_us);
      if (nested && operation == RL_OPERATION_ACQUIRE) {
        rl_loss_clear(lock); /* Other locks report the loss; this acquire has only failed. */
      }
    }
  }
  return rl_lock_result(lock);
}

void rl_lock_timer(rl_lock *lock, redlock_time now_us) {
  switch (lock->phase) {
  case RL_PHASE_DELAY:
    if (!rl_notify_poll_if_due(lock, now_us)) {
      rl_outbox_enter(lock, now_us);
    }
    break;
  case RL_PHASE_QUEUED:
    rl_waitlist_give_up(lock, now_us);
    break;
  case RL_PHASE_SEND:
    rl_pacer_give_up(lock, now_us);
    break;
  case RL_PHASE_ROUND:
    rl_round_time_out(lock, now_us);
    break;
  default:
    rl_renew_timer(lock, now_us);
    break;
  }
}

/* --------------------------------------------------------------------------------- beginning */

int rl_lock_refuse(rl_lock *lock, rl_operation operation, int error) {
  lock->abandoned = false;
  rl_result_refuse(lock, operation, error, NULL);
  return error;
}

/* Ends an operation for which no caller waits. The keys of a release are still released. */
static void rl_lock_end_abandoned(rl_lock *lock, redlock_time now_us) {
  if (lock->abandoned) {
    rl_lock_cancel(lock, now_us, REDLOCK_E_CANCELLED);
  }
}

void rl_lock_abandon(rl_lock *lock) {
  lock->abandoned = rl_lock_is_busy(lock);
}

bool rl_lock_is_extending(const rl_lock *lock) {
  return rl_lock_is_busy(lock) && rl_operation_has(lock->operation, RL_HOLDS) &&
         !rl_ring_is_nesting(lock);
}

int rl_lock_refuse_argument(rl_lock *lock, rl_operation operation, const char *wrong) {
  rl_lock_end_abandoned(lock, lock->core->now_us);
  if (rl_lock_is_busy(lock)) {
    return REDLOCK_E_BUSY;
  }
  (void)rl_lock_refuse(lock, operation, REDLOCK_E_INVALID);
  rl_result_refuse(lock, operation, REDLOCK_E_INVALID, wrong);
  return REDLOCK_E_INVALID;
}

static int rl_lock_begin(rl_lock *lock, rl_operation operation, redlock_time now_us,
                         redlock_time budget_ends_us, bool abandoned, bool notify) {
  rl_list_remove(&lock->queue);
  rl_timers_clear(&lock->core->timers, &lock->timer); /* The next automatic extend waits. */
  rl_result_drop(lock);
  lock->abandoned = abandoned;
  rl_lock_begin_send(lock, operation, now_us, budget_ends_us, notify);
  return REDLOCK_OK;
}

/* The operation needs no command. An automatic extend in flight goes on. */
static int rl_lock_end_at_once(rl_lock *lock, rl_operation operation, int result, bool abandoned,
                               bool notify) {
  rl_stats_ended(&lock->core->stats, rl_stats_kind_of(operation), result);
  rl_list_remove(&lock->queue);
  rl_result_refuse(lock, operation, result, NULL);
  lock->abandoned = abandoned;
  if (notify) {
    rl_list_append(&lock->core->ended, &lock->queue);
  }
  return REDLOCK_OK;
}

/* Counts an operation that has not begun. Returns |error|. */
static int rl_lock_count_refusal(rl_lock *lock, rl_operation operation, int error) {
  if (error != REDLOCK_OK) {
    rl_stats_ended(&lock->core->stats, rl_stats_kind_of(operation), error);
  }
  return error;
}

/*
 * Ends an operation for which no caller waits. Returns REDLOCK_OK if |operation| may begin, or BUSY
 * or CLOSED.
 */
static int rl_lock_check_begin(rl_lock *lock, redlock_time now_us, rl_operation operation) {
  rl_lock_end_abandoned(lock, now_us);
  if (rl_lock_is_busy(lock)) {
    return REDLOCK_E_BUSY;
  }
  return lock->core->closed ? rl_lock_refuse(lock, operation, REDLOCK_E_CLOSED) : REDLOCK_OK;
}

/* Reads the options of an acquire. Returns what is wrong with them, or NULL. */
static const char *rl_lock_read_options(rl_lock *lock, rl_options *current,
                                        const redlock_options *options, bool custom) {
  const char *wrong = options != NULL ? rl_options_read(current, options) : NULL;
  if (wrong == NULL && rl_lock_attach(lock) != NULL) {
    wrong = rl_attach_fit(lock, current, options);
  }
  if (wrong == NULL) {
    wrong = rl_guard_too_long(lock->core->guards, current);
  }
  return wrong != NULL ? wrong : rl_semaphore_wrong(lock, current, custom);
}

static int rl_lock_begin_acquire(rl_lock *lock, redlock_time now_us, rl_attempt *custom,
                                 const redlock_options *options, bool notify) {
  int error = rl_lock_check_begin(lock, now_us, RL_OPERATION_ACQUIRE);
  if (error != REDLOCK_OK) {
    return error;
  }
  bool held = rl_ring_remaining(lock, now_us) > 0;
  if (held && !rl_ring_is_owned(lock)) {
    return rl_lock_refuse(lock, RL_OPERATION_ACQUIRE, REDLOCK_E_HELD);
  }
  rl_options current = *rl_lock_options(lock);
  const char *wrong = rl_lock_read_options(lock, &current, options, custom != NULL);
  if (wrong != NULL) {
    return rl_lock_refuse_argument(lock, RL_OPERATION_ACQUIRE, wrong);
  }
  if (!rl_renew_reserve(lock, &current) || !rl_semaphore_reserve(lock, &current) ||
      !rl_fence_reserve(lock, &current) || (!held && !rl_lock_set_options(lock, &current))) {
    return rl_lock_refuse(lock, RL_OPERATION_ACQUIRE, REDLOCK_E_NO_MEMORY);
  }
  if (!held) {
    rl_lease_end(lock, now_us, true);
    rl_loss_clear(lock);
    lock->lost = false;
  }
  redlock_time budget_ends_us =
      current.wait_us == 0 ? REDLOCK_NEVER : rl_time_add(now_us, current.wait_us);
  const char *refused = NULL;
  switch (rl_reentry_acquire(lock, now_us, &current, custom != NULL || rl_lock_attach(lock) != NULL,
                             &error, &refused)) {
  case RL_REENTRY_SHARED:
    return rl_lock_end_at_once(lock, RL_OPERATION_ACQUIRE, REDLOCK_OK, false, notify);
  case RL_REENTRY_EXTENDS:
    return rl_lock_begin(lock, RL_OPERATION_EXTEND, now_us, budget_ends_us, false, notify);
  case RL_REENTRY_REFUSED:
    rl_result_refuse(lock, RL_OPERATION_ACQUIRE, error, refused);
    return error;
  case RL_REENTRY_ALONE:
  default:
    break;
  }
  if (lock->extension != NULL) {
    lock->extension->holder.length = 0;
  }
  uint64_t attempts = rl_options_attempts(lock->current);
  lock->attempts_left =
      attempts < RL_LOCK_ATTEMPTS_ALL ? attempts & RL_LOCK_ATTEMPTS_ALL : RL_LOCK_ATTEMPTS_ALL;
  lock->attempt = custom;
  if (rl_lock_attach(lock) != NULL) {
    lock->attempts_left = 1; /* ATT-7 */
  }
  rl_reentry_acquire_begins(lock);
  return rl_lock_begin(lock, RL_OPERATION_ACQUIRE, now_us, budget_ends_us, false, notify);
}

int rl_lock_acquire(rl_lock *lock, redlock_time now_us, const redlock_options *options,
                    bool notify) {
  rl_attempt *custom = rl_custom_token_take(lock);
  int error = rl_lock_begin_acquire(lock, now_us, custom, options, notify);
  if (error != REDLOCK_OK) {
    rl_attempt_unref(&lock->core->attempts, custom);
  }
  return rl_lock_count_refusal(lock, RL_OPERATION_ACQUIRE, error);
}

static int rl_lock_begin_on_lease(rl_lock *lock, redlock_time now_us, rl_operation operation,
                                  redlock_duration ttl_us, bool notify) {
  int error = rl_lock_check_begin(lock, now_us, operation);
  if (error != REDLOCK_OK) {
    return error;
  }
  error = rl_reentry_take_lease(lock, now_us);
  if (error != REDLOCK_OK) {
    return error;
  }
  /* Other options, and the default ttl, are those of the acquire. */
  rl_options current = *lock->current;
  current.ttl_us = lock->lease != NULL ? lock->lease_ttl_us : rl_lock_options(lock)->ttl_us;
  redlock_options asked = {.ttl_us = ttl_us};
  const char *wrong = rl_options_read(&current, &asked);
  if (wrong == NULL) {
    wrong = rl_guard_too_long(lock->core->guards, &current);
  }
  if (wrong != NULL) {
    return rl_lock_refuse_argument(lock, operation, wrong);
  }
  if (rl_ring_owner(lock)->lease == NULL) {
    return rl_lock_refuse(lock, operation, lock->lost ? REDLOCK_E_LOST : REDLOCK_E_NOT_HELD);
  }
  if (rl_ring_remaining(lock, now_us) == 0) {
    return rl_lock_refuse(lock, operation, REDLOCK_E_EXPIRED);
  }
  rl_renew_stop(lock, now_us);
  lock->ttl_us = current.ttl_us;
  return rl_lock_begin(lock, operation, now_us, REDLOCK_NEVER, false, notify);
}

int rl_lock_on_lease(rl_lock *lock, redlock_time now_us, rl_operation operation,
                     redlock_duration ttl_us, bool notify) {
  int error = rl_lock_begin_on_lease(lock, now_us, operation, ttl_us, notify);
  return rl_lock_count_refusal(lock, operation, error);
}

/* The caller of a fire-and-forget release wants its result: lets the lock report its end. */
static int rl_lock_take_up(rl_lock *lock, bool notify) {
  lock->abandoned = false;
  lock->reports_end = notify;
  if (notify && !rl_lock_is_busy(lock)) {
    rl_list_append(&lock->core->ended, &lock->queue);
  }
  return REDLOCK_OK;
}

static int rl_lock_begin_release(rl_lock *lock, redlock_time now_us, bool abandoned, bool notify) {
  bool lasts = rl_ring_remaining(lock, now_us) > 0;
  if (rl_reentry_release_lost(lock)) {
    return rl_lock_refuse(lock, RL_OPERATION_RELEASE, REDLOCK_E_LOST);
  }
  if (rl_reentry_release(lock, now_us)) {
    /*
     * While the lock still shares the lease, its next release is another one: not to be taken up.
     */
    bool shares = rl_ring_owner(lock)->lease != NULL;
    return rl_lock_end_at_once(lock, RL_OPERATION_RELEASE, lasts ? REDLOCK_OK : REDLOCK_E_EXPIRED,
                               abandoned && !shares, notify);
  }
  rl_reentry_leave(lock, now_us);
  if (lock->lease == NULL && lock->unreleased == NULL) {
    int error = lock->lost ? REDLOCK_E_LOST : REDLOCK_E_NOT_HELD;
    lock->lost = false; /* It is reported once for each acquire. */
    lock->deadline_us = 0;
    rl_loss_clear(lock);
    return rl_lock_refuse(lock, RL_OPERATION_RELEASE, error);
  }
  rl_renew_stop(lock, now_us);
  rl_loss_clear(lock);
  /* REL-1 */
  lock->repeated = lock->lease == NULL;
  lock->had_expired = lock->repeated ? lock->had_expired : rl_lock_remaining(lock, now_us) == 0;
  if (!lock->repeated && lock->had_expired) {
    rl_loss_count(lock, now_us, rl_loss_reason(lock));
  }
  lock->attempt = lock->lease != NULL ? lock->lease : lock->unreleased;
  rl_lock_set_lease(lock, NULL, 0);
  lock->unreleased = NULL;
  lock->ttl_us = lock->lease_ttl_us;
  return rl_lock_begin(lock, RL_OPERATION_RELEASE, now_us, REDLOCK_NEVER, abandoned, notify);
}

/*
 * Returns true if a fire-and-forget release is in flight, or has ended with a result that needs no
 * repetition.
 */
static bool rl_lock_may_take_up(const rl_lock *lock) {
  return lock->abandoned && rl_result_of(lock).operation == RL_OPERATION_RELEASE &&
         (rl_lock_is_busy(lock) || rl_result_of(lock).result != REDLOCK_E_UNAVAILABLE);
}

/* Ends an extend in flight, whose caller may be gone (EXT-6). Returns as rl_lock_check_begin(). */
static int rl_lock_check_release(rl_lock *lock, redlock_time now_us) {
  if (rl_lock_is_extending(lock)) {
    rl_lock_cancel(lock, now_us, REDLOCK_E_CANCELLED);
  }
  return rl_lock_check_begin(lock, now_us, RL_OPERATION_RELEASE);
}

static int rl_lock_release_as(rl_lock *lock, redlock_time now_us, bool abandoned, bool notify) {
  int error = rl_lock_check_release(lock, now_us);
  if (error == REDLOCK_OK) {
    error = rl_lock_begin_release(lock, now_us, abandoned, notify);
  }
  return rl_lock_count_refusal(lock, RL_OPERATION_RELEASE, error);
}

int rl_lock_release(rl_lock *lock, redlock_time now_us, bool notify) {
  return rl_lock_may_take_up(lock) ? rl_lock_take_up(lock, notify)
                                   : rl_lock_release_as(lock, now_us, false, notify);
}

int rl_lock_release_send(rl_lock *lock, redlock_time now_us) {
  return rl_lock_may_take_up(lock) ? REDLOCK_OK : rl_lock_release_as(lock, now_us, true, false);
}

void rl_lock_report_end(rl_lock *lock) {
  lock->reports_end = lock->reports_end || rl_lock_is_busy(lock);
}

/* ------------------------------------------------------------------------------------- asking */

int rl_lock_check_ask(rl_lock *lock, redlock_time now_us, rl_operation operation) {
  int error = rl_lock_check_begin(lock, now_us, operation);
  bool held = rl_ring_remaining(lock, now_us) > 0;
  if (error == REDLOCK_OK && held) {
    error = rl_lock_refuse(lock, operation, REDLOCK_E_HELD);
  }
  if (error == REDLOCK_OK && lock->resource->count > 1) {
    error = rl_lock_refuse_argument(lock, operation, "use a lock for each resource alone");
  }
  return error;
}

int rl_lock_begin_asking(rl_lock *lock, rl_operation operation, redlock_time now_us,
                         rl_attempt *attempt, bool notify) {
  if (rl_ring_owner(lock)->lease != NULL) {
    rl_lock_expire_lease(lock, now_us);
  } else if (lock->unreleased != NULL) {
    rl_lease_end(lock, now_us, true);
  } else {
    rl_reentry_leave(lock, now_us); /* The lease that it shared is lost. */
  }
  (void)rl_lock_set_options(lock, rl_lock_options(lock)); /* Allocates nothing. */
  lock->attempt = attempt;
  return rl_lock_begin(lock, operation, now_us, REDLOCK_NEVER, false, notify);
}
