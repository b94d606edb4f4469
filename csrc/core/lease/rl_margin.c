/*
 * The margin of a lease: how many of its keys may vanish before a second holder is possible.
 *
 * SPDX-License-Identifier: MIT
 *
 * The attempt of a lease has the set of nodes that are known to hold its key.
 *   MAR-1. A node enters the set if it has set, attached, healed or extended the key in the last
 *          round of the lease. Its answer may come in time or later.
 *   MAR-2. A node that denies the lease leaves the set.
 *   MAR-3. A confirmed extend reduces the set to the nodes that confirmed it: the other keys end at
 *          their old time. Later answers add nodes. An extend by less than is left of the lease
 *          leaves the set unchanged: it shortens no key, and its answer does not prove that the key
 *          lives as long as the lease.
 *   MAR-4. Another client needs |quorum| nodes without the key. At most N minus the set are without
 *          it. So margin = set + quorum - N - 1 more nodes may lose it before a second holder is
 *          possible.
 *   MAR-5. A node whose clock was stepped forward, or that has lost its keys (rl_guard.c), is
 *          suspect until it answers as in MAR-1: its key may have ended early. A suspect node has
 *          no vote (GRD-4), so it cannot help a second holder: the margin is at least 0. If most
 *          nodes were stepped alike, the client's own clock may be the cause (GRD-6).
 * A node may have lost a key since its last answer: only another question shows it.
 */
#include "lease/rl_margin.h"

#include "base/rl_validity.h"
#include "lock/rl_lock.h"
#include "lock/rl_ring.h"

void rl_margin_extend_begins(const rl_lock *lock, redlock_time now_us) {
  lock->lease->extend_is_shorter =
      rl_validity_deadline(now_us, lock->ttl_us, lock->current->drift_factor) < lock->deadline_us;
}

void rl_margin_answered(const rl_node *node, const rl_outstanding *command,
                        const rl_verdict *verdict) {
  rl_attempt *lease = command->attempt;
  if (!rl_outstanding_has(command, RL_PROVES)) {
    return;
  }
  bool sets = rl_outstanding_has(command, RL_CREATES | RL_PROLONGS);
  bool granted = verdict->vote == REDLOCK_VOTE_GRANTED && lease->lock != NULL &&
                 command->round == lease->lock->round &&
                 (!lease->extend_is_shorter || rl_outstanding_has(command, RL_CREATES)); /* MAR-3 */
  if (granted && sets) {
    lease->suspect &= ~rl_node_bit(node); /* MAR-5 */
  }
  if (sets && !lease->held) {
    return; /* rl_release.c notes what an attempt sets before it is a lease. */
  }
  if (rl_vote_counts_as(verdict->vote) == RL_COUNT_DENIED) {
    lease->confirmed &= ~rl_node_bit(node);
  } else if (granted) {
    lease->confirmed |= rl_node_bit(node);
  }
}

void rl_margin_extend_confirmed(const rl_lock *lock) {
  if (lock->lease->extend_is_shorter) {
    return; /* MAR-3 */
  }
  lock->lease->confirmed = 0;
  for (unsigned i = 0; i < lock->core->node_count; i++) {
    const rl_vote *vote = &lock->votes[i];
    bool granted = vote->settled && rl_vote_counts_as(vote->vote) == RL_COUNT_GRANTED;
    lock->lease->confirmed |= granted ? rl_node_bit(lock->core->nodes[i]) : 0;
  }
}

/* MAR-5 */
static uint32_t rl_margin_certain(const rl_lock *lock) {
  return lock->lease->confirmed & ~lock->lease->suspect;
}

void rl_margin_suspect(const rl_core *core, const rl_node *node) {
  RL_LIST_EACH(&core->locks, lock, rl_lock, locks) {
    if (lock->lease != NULL) {
      lock->lease->suspect |= rl_node_bit(node);
    }
    if (lock->attempt != NULL) {
      lock->attempt->suspect |= rl_node_bit(node);
    }
  }
}

/* Returns true if the node is suspect because of its clock. */
static bool rl_margin_was_stepped(const rl_lock *lock, unsigned index) {
  const rl_guard *guard = lock->core->nodes[index]->link.guard;
  bool suspect = (lock->lease->confirmed & lock->lease->suspect & (uint32_t)1 << index) != 0;
  return suspect && guard != NULL && (guard->stepped || guard->why == RL_LINEAGE_CLOCK);
}

bool rl_margin_is_suspect(const rl_lock *lock) {
  unsigned needed = rl_core_quorum(lock->core, RL_OPERATION_EXTEND);
  bool stepped = false;
  for (unsigned i = 0; i < lock->core->node_count; i++) {
    stepped = stepped || rl_margin_was_stepped(lock, i);
  }
  return stepped && rl_quorum_count(rl_margin_certain(lock)) < needed;
}

int rl_margin_of(const rl_lock *lock, redlock_time now_us) {
  const rl_lock *lease_owner = rl_ring_owner(lock);
  if (rl_lock_remaining(lease_owner, now_us) == 0) {
    return -1;
  }
  int margin =
      rl_quorum_margin(lock->core->node_count, rl_quorum_count(rl_margin_certain(lease_owner)),
                       rl_core_quorum(lock->core, RL_OPERATION_ACQUIRE));
  return lease_owner->lease->suspect != 0 && margin < 0 ? 0 : margin; /* MAR-5 */
}
