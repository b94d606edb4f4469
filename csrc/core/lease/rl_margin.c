/*
 * The margin of a lease: how many of its keys may vanish before a second holder is possible.
 *
 * SPDX-License-Identifier: MIT
 *
 * The nodes that are known to hold a lease's key are a set in its attempt.
 *   M1. A node belongs to it that has said in the lease's last round that it set the key, put it in the place of a
 *       handed one, gave it back or extended it: in time or late.
 *   M2. One that denies the lease belongs to it no more.
 *   M3. When an extend is confirmed, only those belong to it that have confirmed: the other keys end when they
 *       would have ended before. What is answered later is added. But an extend by less than is left of the lease
 *       adds nobody: a node that has not confirmed the longer one before it lets its key end with the shorter one.
 *       Nor does it take any away: a key is never made shorter.
 *   M4. Another client needs |quorum| nodes without the key. N minus those that are known are without it at most.
 *       So margin = known + quorum - N - 1 more may lose it, and there is still no second holder.
 *   M5. A node whose clock was seen to be stepped forward, or that was seen to have forgotten its keys (rl_guard.c),
 *       does not count until it answers as in M1 again: its key may have ended early. It votes for nobody meanwhile
 *       (G4 of rl_guard.c), so without it the margin is 0 at least. (Where most were stepped alike, it was our own
 *       clock, for all that is known: G6.)
 * What a node has lost since it answered, nobody knows before it is asked again.
 */
#include "lease/rl_margin.h"

#include "base/rl_validity.h"
#include "lock/rl_lock.h"
#include "lock/rl_ring.h"

void rl_margin_extends(const rl_lock *lock, redlock_time now_us) {
  lock->lease->shorter =
      rl_validity_deadline(now_us, lock->ttl_us, lock->current->drift_factor) < lock->deadline_us;
}

void rl_margin_answered(const rl_node *node, const rl_outstanding *command, rl_verdict verdict) {
  rl_attempt *lease = command->attempt;
  bool sets = command->kind == RL_OUTSTANDING_ACQUIRE || command->kind == RL_OUTSTANDING_HEAL ||
              command->kind == RL_OUTSTANDING_ATTACH || command->kind == RL_OUTSTANDING_EXTEND;
  bool confirms = command->kind == RL_OUTSTANDING_CONFIRM;
  bool prolongs = confirms || command->kind == RL_OUTSTANDING_EXTEND;
  bool granted = verdict.vote == REDLOCK_VOTE_GRANTED && lease->lock != NULL &&
                 command->round == lease->lock->round && !(prolongs && lease->shorter); /* M3 */
  if (granted && sets) {
    lease->suspect &= ~rl_node_bit(node); /* M5 */
  }
  if (!confirms && (!sets || !lease->held)) {
    return; /* What an attempt has set before it is a lease is noted by rl_release.c. */
  }
  if (rl_vote_counts_as(verdict.vote) == RL_COUNT_DENIED) {
    lease->set &= ~rl_node_bit(node);
  } else if (granted) {
    lease->set |= rl_node_bit(node);
  }
}

void rl_margin_confirmed(const rl_lock *lock) {
  if (lock->lease->shorter) {
    return; /* M3 */
  }
  lock->lease->set = 0;
  for (unsigned i = 0; i < lock->core->node_count; i++) {
    const rl_vote *vote = &lock->votes[i];
    bool granted = vote->settled && rl_vote_counts_as(vote->vote) == RL_COUNT_GRANTED;
    lock->lease->set |= granted ? rl_node_bit(lock->core->nodes[i]) : 0;
  }
}

/* M5 */
static uint32_t rl_margin_certain(const rl_lock *lock) {
  return lock->lease->set & ~lock->lease->suspect;
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

/* Returns true if its clock is why the node is doubted. */
static bool rl_margin_was_stepped(const rl_lock *lock, unsigned index) {
  const rl_guard *guard = lock->core->nodes[index]->link.guard;
  bool doubted = (lock->lease->set & lock->lease->suspect & (uint32_t)1 << index) != 0;
  return doubted && guard != NULL && (guard->stepped || guard->why == RL_LINEAGE_CLOCK);
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
  const rl_lock *carrier = rl_ring_owner(lock);
  if (rl_lock_remaining(carrier, now_us) == 0) {
    return -1;
  }
  int margin = rl_quorum_margin(lock->core->node_count, rl_quorum_count(rl_margin_certain(carrier)),
                                rl_core_quorum(lock->core, RL_OPERATION_ACQUIRE));
  return carrier->lease->suspect != 0 && margin < 0 ? 0 : margin; /* M5 */
}
