/*
 * Extending a lease.
 *
 * SPDX-License-Identifier: MIT
 *
 * "Distributed Locks with Redis", Making the algorithm more reliable: the client may extend its
 * lock by a script that prolongs the key if the key still holds the token. The lock is extended
 * only if a majority prolonged the key within the validity.
 *   EXT-1. Extend only while the lease lasts. Read the clock before the first byte.
 *   EXT-2. Send compare-and-expire to all nodes. A node that does not know the script gets its
 *          text: in the round, and also after EXT-3 while the lease lasts. So its key lives as long
 *          as those of the other nodes.
 *   EXT-3. A majority, or the quorum of the client, confirms in this round, before the old
 *          deadline. The new deadline is round_start_us + ttl - drift, or the old one if that is
 *          later.
 *   EXT-4. After EXT-3, set the key again by SET NX on a node that denied it: the lock heals.
 *          Before EXT-3 such a SET could re-create the key of a lost lock.
 *   EXT-5. If so many nodes deny the key, in the round or later, that too few are left for EXT-3,
 *          end the lease at once, and release its keys. An assumption of docs/safety.md is broken
 *          then, and another client may hold the lock. With a quorum above the majority no other
 *          client can hold the lock yet, but no extend could succeed.
 *   EXT-6. Any other result changes nothing. The old deadline stands, and the next extend may
 *          succeed.
 */
#include "lease/rl_extend.h"

#include "base/rl_validity.h"
#include "lease/rl_fence.h"
#include "lease/rl_lease_end.h"
#include "lease/rl_margin.h"
#include "lease/rl_renew.h"
#include "lock/rl_lock.h"
#include "lock/rl_outbox.h"
#include "lock/rl_ring.h"
#include "lock/rl_round.h"
#include "node/rl_guard.h"
#include "node/rl_native.h"

/* EXT-1 */
static rl_begun rl_extend_begin(rl_lock *lock, redlock_time now_us, const unsigned char *entropy) {
  (void)entropy;
  if (rl_lock_remaining(lock, now_us) == 0) {
    rl_lock_end(lock, now_us, REDLOCK_E_EXPIRED);
    return RL_BEGUN_ENDED;
  }
  if (lock->automatic || rl_ring_is_nesting(lock)) {
    rl_renew_cap(lock, now_us);
  }
  rl_margin_extend_begins(lock, now_us);
  return RL_BEGUN;
}

/*
 * Returns the life for which the extend asks, in ms. SET IFEQ would shorten a key that lives
 * longer, so it asks at least for what is left (NAT-5).
 */
static uint64_t rl_extend_key_ms(const rl_lock *lock, redlock_time now_us, const rl_node *node) {
  redlock_duration left_us = rl_time_sub(lock->keys_end_us, now_us);
  bool native = rl_native_replaces_scripts(&node->link, now_us);
  return rl_options_key_ms(lock->current,
                           native ? rl_time_max(lock->ttl_us, left_us) : lock->ttl_us);
}

/* EXT-2 */
static const char *rl_extend_send(rl_lock *lock, redlock_time now_us, rl_node *node) {
  uint64_t key_ms = rl_extend_key_ms(lock, now_us, node);
  if (rl_lock_remaining(lock, now_us) == 0) {
    return "the lease has expired"; /* The node came up after a pause of the client. */
  }
  if (rl_native_may_shorten(&node->link, lock->lease, key_ms)) {
    return "it may still execute an earlier extend for a shorter time";
  }
  if (!rl_fence_queue_extend(lock, now_us, node, false, key_ms)) {
    return "out of memory";
  }
  rl_attempt_will_live(lock->lease, now_us, key_ms);
  return NULL;
}

/* Returns true if the round is in flight, or has extended a lease that lasts. */
static bool rl_extend_is_wanted(const rl_lock *lock, redlock_time now_us) {
  return lock->phase == RL_PHASE_ROUND ||
         (lock->phase == RL_PHASE_SUCCEEDED && rl_lock_remaining(lock, now_us) > 0);
}

static bool rl_extend_send_again(rl_node *node, redlock_time now_us,
                                 const rl_outstanding *command) {
  const rl_lock *lock = command->attempt->lock;
  if (command->kind == RL_OUTSTANDING_HEAL) {
    return false; /* The next extend heals. */
  }
  if (lock == NULL || lock->round != command->round || !rl_extend_is_wanted(lock, now_us)) {
    return false;
  }
  uint64_t key_ms = rl_extend_key_ms(lock, now_us, node);
  bool needs_script = rl_fence_is_on(lock) || node->link.guard != NULL;
  if (rl_native_may_shorten(&node->link, lock->lease, key_ms)) {
    return false;
  }
  if (rl_native_replaces_scripts(&node->link, now_us) &&
      (needs_script || !rl_native_is_for_extend(&node->link, now_us, lock->lease, key_ms))) {
    return false; /* The node would refuse the script once more. */
  }
  if (!rl_fence_queue_extend(lock, now_us, node, true, key_ms)) {
    return false;
  }
  rl_attempt_will_live(command->attempt, now_us, key_ms);
  return true;
}

/* EXT-4, for one node */
static void rl_extend_heal(rl_lock *lock, redlock_time now_us, rl_node *node) {
  /* The lease may last longer than this extend asked for: the key must not end before it. */
  redlock_duration left_us = rl_time_sub(lock->keys_end_us, now_us);
  uint64_t key_ms = rl_options_key_ms(lock->current, rl_time_max(lock->ttl_us, left_us));
  bool set_outstanding = (lock->lease->set_outstanding & rl_node_bit(node)) != 0;
  if (rl_lock_remaining(lock, now_us) == 0 || set_outstanding ||
      rl_native_may_shorten(&node->link, lock->lease, key_ms) ||
      !rl_guard_may_vote(node->link.guard, now_us) || /* GRD-4 */
      !rl_link_has_room(&node->link, RL_OUTSTANDING_HEAL) ||
      !rl_fence_queue_set(lock, now_us, node, RL_OUTSTANDING_HEAL, lock->lease, key_ms)) {
    return;
  }
  rl_attempt_set_sent(lock->lease, now_us, rl_node_bit(node), key_ms);
}

/* EXT-3 */
static void rl_extend_confirmed(rl_lock *lock, redlock_time now_us) {
  redlock_time deadline_us =
      rl_validity_deadline(lock->round_start_us, lock->ttl_us, lock->current->drift_factor);
  redlock_time keys_end_us = rl_time_add(lock->round_start_us, lock->ttl_us);
  rl_lock_set_lease(lock, lock->lease, rl_time_max(lock->deadline_us, deadline_us));
  lock->keys_end_us = rl_time_max(lock->keys_end_us, keys_end_us);
  lock->extended = true;
  rl_margin_extend_confirmed(lock);
  rl_lock_end(lock, now_us, REDLOCK_OK);
  for (unsigned i = 0; i < lock->core->node_count; i++) {
    if (lock->votes[i].settled && rl_vote_counts_as(lock->votes[i].vote) == RL_COUNT_DENIED) {
      rl_extend_heal(lock, now_us, lock->core->nodes[i]);
    }
  }
}

/* EXT-3, EXT-5, EXT-6 */
static void rl_extend_decide(rl_lock *lock, redlock_time now_us) {
  unsigned needed = rl_core_quorum(lock->core, RL_OPERATION_EXTEND);
  rl_decision decision = rl_quorum_decide_extend(&lock->quorum, needed);
  if (now_us >= lock->deadline_us) {
    rl_lock_end(lock, now_us, REDLOCK_E_EXPIRED);
  } else if (decision == RL_DECISION_GRANTED) {
    rl_extend_confirmed(lock, now_us);
  } else if (decision == RL_DECISION_DENIED) {
    rl_lock_end(lock, now_us, REDLOCK_E_LOST);
    rl_lease_end_lost(lock, now_us);
  } else if (decision != RL_DECISION_NONE) {
    rl_lock_end(lock, now_us, REDLOCK_E_UNAVAILABLE);
  }
}

void rl_extend_late_vote(rl_lock *lock, redlock_time now_us, rl_node *node, redlock_vote vote) {
  if (lock->phase == RL_PHASE_SUCCEEDED) {
    if (rl_vote_counts_as(vote) == RL_COUNT_DENIED && lock->extended) {
      rl_extend_heal(lock, now_us, node);
    }
    return;
  }
  unsigned denied = rl_quorum_count(lock->deniers);
  unsigned needed = rl_core_quorum(lock->core, RL_OPERATION_EXTEND);
  if (rl_lock_remaining(lock, now_us) > 0 && rl_quorum_denied(lock->quorum.nodes, denied, needed)) {
    rl_lease_end_lost(lock, now_us);
  }
}

const rl_steps rl_extend_steps = {
    .begin = rl_extend_begin,
    .send = rl_extend_send,
    .send_again = rl_extend_send_again,
    .decide = rl_extend_decide,
};
