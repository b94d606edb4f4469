/*
 * Acquiring a lock.
 *
 * SPDX-License-Identifier: MIT
 *
 * "Distributed Locks with Redis", The Redlock Algorithm, steps 1 to 5, with the corrections of
 * docs/design.md.
 *   ACQ-1. Draw a fresh token. Read the clock before the first byte: round_start_us.
 *   ACQ-2. Send SET key token NX PX ttl to all nodes at once, except to a node that is known not to
 *          answer.
 *   ACQ-3. Count votes. Decide with the vote that makes the result certain, or at the deadline of
 *          the attempt. A node that connects during the attempt gets its SET at once. A node that
 *          connects after the attempt gets it from the backfill (rl_backfill.c). In both cases the
 *          key ends with the others.
 *   ACQ-4. If a majority (or the client's quorum) has granted, the deadline of the lease is
 *          round_start_us + ttl - drift. If the clock, read after the deciding vote, has not
 *          reached the deadline, the client holds the lock until then. Otherwise the attempt has
 *          failed.
 *   ACQ-5. If the attempt has failed, release the token on each node that may have executed the
 *          SET. Do not wait for the release. While attempts and budget last, begin again at ACQ-1
 *          after a random delay, or when the nodes notify (rl_notify.c). The last attempt starts as
 *          late as possible: a majority, at its shortest latencies, can still answer within the
 *          budget (rl_pause_last_attempt_at()).
 */
#include "base/rl_number.h"
#include "base/rl_validity.h"
#include "lease/rl_attach.h"
#include "lease/rl_backfill.h"
#include "lease/rl_fence.h"
#include "lease/rl_hold.h"
#include "lease/rl_reentry.h"
#include "lease/rl_release.h"
#include "lease/rl_semaphore.h"
#include "lease/rl_twin.h"
#include "lock/rl_outbox.h"
#include "lock/rl_round.h"
#include "node/rl_link_queue.h"
#include "options/rl_backoff.h"
#include "wait/rl_notify.h"
#include "wait/rl_pause.h"
#include "wait/rl_waitlist.h"

/*
 * Returns true after the first attempt. The first is made even if the nodes were too slow: without
 * it the client would never notice that they have recovered. A waiter that became the head has the
 * result of the old head, but has made no attempt.
 */
static bool rl_acquire_is_retry(const rl_lock *lock) {
  return lock->result != REDLOCK_PENDING &&
         (lock->waitlist == NULL || lock->waitlist->attempt_us != 0);
}

/* OWN-2. Ends the acquire of |lock| if it now shares a lease of its owner. */
static bool rl_acquire_shares(rl_lock *lock, redlock_time now_us) {
  bool shares =
      lock->attempt == NULL && rl_lock_attach(lock) == NULL && rl_reentry_try_share(lock, now_us);
  if (shares) {
    rl_lock_end(lock, now_us, REDLOCK_OK);
    rl_lock_ignore_late_votes(lock);
  }
  return shares;
}

/* ACQ-1 */
static rl_begun rl_acquire_begin(rl_lock *lock, redlock_time now_us, const unsigned char *entropy) {
  bool hopeless = rl_acquire_is_retry(lock) &&
                  rl_time_sub(lock->budget_ends_us, now_us) <= rl_pause_reply_time(lock->core);
  if (now_us >= lock->budget_ends_us || hopeless) {
    return RL_BEGUN_TOO_LATE;
  }
  if (rl_validity_deadline(now_us, lock->ttl_us, lock->current->drift_factor) == now_us) {
    rl_lock_end(lock, now_us, REDLOCK_E_EXPIRED); /* The drift is not below the ttl. */
    return RL_BEGUN_ENDED;
  }
  lock->random = rl_number_in_bytes(entropy + RL_ATTEMPT_ENTROPY, sizeof lock->random);
  rl_semaphore_plan(lock, now_us);
  if (!rl_semaphore_asks(lock)) {
    rl_release_hurry_failed_attempt(lock, now_us, true);
  }
  if (rl_acquire_shares(lock, now_us)) {
    return RL_BEGUN_ENDED;
  }
  if (lock->attempt == NULL) { /* Otherwise the caller supplied a token. */
    lock->attempt = rl_semaphore_of(lock) != NULL
                        ? rl_semaphore_attempt(lock, entropy)
                        : rl_attempt_new(&lock->core->attempts, lock->resource, lock, entropy, 0,
                                         &lock->current->label);
  }
  if (lock->attempt == NULL) {
    rl_lock_end(lock, now_us, REDLOCK_E_NO_MEMORY);
    return RL_BEGUN_ENDED;
  }
  lock->core->random ^= lock->random;
  if (lock->waitlist != NULL) {
    rl_notify_attempt_begins(lock->waitlist, now_us);
  }
  if (rl_semaphore_asks(lock)) {
    return RL_BEGUN;
  }
  rl_fence_begin(lock, now_us);
  lock->core->stats.attempts++;
  return RL_BEGUN;
}

/* Returns the time to live of a key that ends at |keys_end_us|; 0 if that time has passed. */
static uint64_t rl_acquire_key_ms(const rl_lock *lock, redlock_time keys_end_us,
                                  redlock_time now_us) {
  redlock_duration left_us = rl_time_sub(keys_end_us, now_us);
  return left_us == 0 ? 0 : rl_options_key_ms(lock->current, left_us);
}

/* Queues SET NX, or the script that attaches a lease. Returns NULL, or why nothing was queued. */
static const char *rl_acquire_queue(rl_lock *lock, redlock_time now_us, rl_node *node,
                                    uint64_t key_ms) {
  const rl_attach *attach = rl_lock_attach(lock);
  bool queued;
  if (attach != NULL) {
    queued = rl_link_queue_attach(&node->link, now_us, lock->attempt, lock->round, attach->handed,
                                  key_ms, attach->floor_ms);
  } else {
    queued = rl_fence_queue_set(lock, now_us, node, RL_OUTSTANDING_ACQUIRE, lock->attempt, key_ms);
  }
  return queued ? NULL : "out of memory";
}

/* ACQ-2 */
static const char *rl_acquire_send(rl_lock *lock, redlock_time now_us, rl_node *node) {
  if (rl_semaphore_asks(lock)) {
    return rl_semaphore_send(lock, now_us, node);
  }
  redlock_time keys_end_us = rl_time_add(lock->round_start_us, lock->ttl_us);
  uint64_t key_ms = rl_acquire_key_ms(lock, keys_end_us, now_us);
  if (key_ms == 0) {
    return "the connection was made after the end of the ttl";
  }
  const char *unsent = rl_acquire_queue(lock, now_us, node, key_ms);
  if (unsent != NULL) {
    return unsent;
  }
  const rl_attach *attach = rl_lock_attach(lock);
  bool may_set = attach != NULL && (attach->may_set & rl_node_bit(node)) != 0;
  rl_attempt_set_sent(lock->attempt, now_us, rl_node_bit(node), key_ms);
  return may_set ? "it had not answered when the lock was detached" : NULL; /* ATT-3 */
}

/* The node did not know the script: sends its text, unless round and lease are over. */
static bool rl_acquire_send_again(rl_node *node, redlock_time now_us,
                                  const rl_outstanding *command) {
  rl_lock *lock = command->attempt->lock;
  if (command->kind == RL_OUTSTANDING_CONFIRM) {
    return rl_fence_send_text(node, now_us, command);
  }
  if (command->kind == RL_OUTSTANDING_SLOTS) {
    return rl_semaphore_send_again(node, now_us, command);
  }
  if (lock == NULL || lock->round != command->round) {
    return false; /* The round of the command is over. */
  }
  bool asks = lock->phase == RL_PHASE_ROUND && lock->attempt == command->attempt &&
              now_us < lock->round_deadline_us;
  bool backfills = lock->phase == RL_PHASE_SUCCEEDED && lock->lease == command->attempt &&
                   rl_lock_remaining(lock, now_us) > 0;
  redlock_time keys_end_us =
      asks ? rl_time_add(lock->round_start_us, lock->ttl_us) : lock->keys_end_us;
  uint64_t key_ms = rl_acquire_key_ms(lock, keys_end_us, now_us);
  if ((!asks && !backfills) || key_ms == 0 ||
      !rl_fence_queue_set(lock, now_us, node, RL_OUTSTANDING_ACQUIRE, command->attempt, key_ms)) {
    return false;
  }
  rl_attempt_set_sent(command->attempt, now_us, rl_node_bit(node), key_ms);
  return true;
}

/* ACQ-3. Returns what the votes mean so far. */
static rl_decision rl_acquire_decision(const rl_lock *lock) {
  return rl_quorum_decide_acquire(&lock->quorum, rl_core_quorum(lock->core, RL_OPERATION_ACQUIRE));
}

/* ACQ-5 */
static void rl_acquire_failed(rl_lock *lock, redlock_time now_us, int error) {
  rl_attempt *attempt = lock->attempt;
  redlock_duration delay_us = REDLOCK_NEVER;
  if (attempt->custom) { /* rl_custom_token.c */
    lock->attempts_left = 1;
    rl_notify_only_attempt_failed(lock, now_us, error);
  }
  lock->attempt = NULL;
  if (rl_semaphore_asks(lock)) {
    rl_semaphore_end_question(lock);
    rl_release_and_drop(lock, now_us, attempt, true);
  } else {
    rl_release_begin_failed_attempt(lock, now_us, attempt);
    if (error == REDLOCK_E_TAKEN && rl_semaphore_begin_question(lock, now_us)) {
      return;
    }
  }
  if (error == REDLOCK_E_TAKEN && rl_lock_attach(lock) != NULL) {
    error = REDLOCK_E_LOST; /* The nodes no longer have the lease that was handed over. */
  }
  if (error == REDLOCK_E_TAKEN && lock->waitlist != NULL) {
    rl_waitlist_note_other_holder(lock->core, lock->resource);
  }
  if (error == REDLOCK_E_UNAVAILABLE && lock->result == REDLOCK_E_TAKEN &&
      rl_acquire_decision(lock) == RL_DECISION_UNAVAILABLE &&
      rl_pause_quorum_is_alive(lock, now_us)) {
    error = REDLOCK_E_TAKEN; /* The nodes are only slow: their previous answers stand. */
  }
  if (lock->attempts_left != RL_LOCK_ATTEMPTS_ALL) {
    lock->attempts_left--;
  }
  if (lock->attempts_left > 0) {
    delay_us = rl_pause_next(lock, lock->random, now_us);
  }
  if (rl_acquire_shares(lock, now_us)) {
    return;
  }
  if (delay_us == REDLOCK_NEVER) {
    rl_lock_end(lock, now_us, error);
    return;
  }
  if (rl_waitlist_enter_after_attempt(lock, now_us)) {
    rl_lock_set_result(lock, error);
    rl_round_await_none(lock);
    return;
  }
  rl_lock_pause(lock, error, rl_time_add(now_us, delay_us));
  rl_notify_enqueue(lock, now_us);
}

/* ACQ-4 */
static void rl_acquire_granted(rl_lock *lock, redlock_time now_us) {
  redlock_time deadline_us =
      rl_validity_deadline(lock->round_start_us, lock->ttl_us, lock->current->drift_factor);
  if (now_us >= deadline_us) {
    rl_acquire_failed(lock, now_us, REDLOCK_E_EXPIRED);
    return;
  }
  rl_fence_granted(lock);
  lock->attempt->held = true;
  rl_lock_set_lease(lock, lock->attempt, deadline_us);
  lock->attempt = NULL;
  lock->keys_end_us = rl_time_add(lock->round_start_us, lock->ttl_us);
  lock->lease_ttl_us = lock->ttl_us;
  rl_hold_granted(lock, now_us, rl_attach_hold_us(rl_lock_attach(lock)));
  if (rl_lock_attach(lock) != NULL) {
    rl_attach_succeeded(lock, now_us);
  }
  rl_reentry_granted(lock);
  rl_lock_end(lock, now_us, REDLOCK_OK);
  rl_backfill_begin(lock, now_us);
  for (rl_lock *waiter; (waiter = rl_reentry_next_waiter(lock)) != NULL;) {
    if (!rl_acquire_shares(waiter, now_us)) {
      break; /* Out of memory. It shares before its next attempt. */
    }
  }
}

/* ACQ-3 to ACQ-5 */
static void rl_acquire_decide(rl_lock *lock, redlock_time now_us) {
  if (rl_semaphore_asks(lock) && rl_semaphore_decide(lock, now_us)) {
    return;
  }
  rl_decision decision = rl_acquire_decision(lock);
  if (decision == RL_DECISION_GRANTED && rl_fence_is_on(lock) && rl_lock_attach(lock) == NULL) {
    decision = rl_fence_decide(lock, now_us);
  }
  if (decision == RL_DECISION_GRANTED) {
    rl_acquire_granted(lock, now_us);
  } else if (decision == RL_DECISION_DENIED && rl_twin_test(lock, now_us)) {
    return; /* rl_twin_test() has sent tests; their answers decide. */
  } else if (decision != RL_DECISION_NONE) {
    rl_acquire_failed(lock, now_us,
                      decision == RL_DECISION_UNAVAILABLE ? REDLOCK_E_UNAVAILABLE
                                                          : REDLOCK_E_TAKEN);
  }
}

static bool rl_acquire_note(rl_core *core, redlock_time now_us, rl_answer *answer) {
  (void)core;
  (void)now_us;
  if (answer->command->kind == RL_OUTSTANDING_SLOTS) {
    rl_semaphore_note(answer);
  }
  return true;
}

const rl_steps rl_acquire_steps = {
    .begin = rl_acquire_begin,
    .send = rl_acquire_send,
    .send_again = rl_acquire_send_again,
    .note = rl_acquire_note,
    .decide = rl_acquire_decide,
    .timed_out = rl_fence_time_out,
};
