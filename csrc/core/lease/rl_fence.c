/*
 * Fencing tokens: numbers that only grow, one for each grant of a lock.
 *
 * SPDX-License-Identifier: MIT
 *
 * docs/safety.md has the proof. Beside each key the nodes keep a counter, which only grows. An
 * acquire raises it in the script that sets the key (RL_SCRIPT_TAKE of rl_script.c).
 *   FEN-1. An attempt proposes p: the median of the known clocks of the nodes, otherwise the
 *          program's own clock, in 0.1 ms. p exceeds each token that the lock has seen. As a rule
 *          all nodes adopt p.
 *   FEN-2. A node that grants sets its counter to v = max(counter + 1, p), after it has limited p
 *          to within 1 s of the node's clock.
 *   FEN-3. When a majority has granted, m is the greatest v so far. A node that answered v = m
 *          confirms m. A node that answered less is asked to raise its counter to m. It does so
 *          only while the key is ours, because the next holder may have raised it to m, too. A
 *          later answer above m does not confirm.
 *   FEN-4. A majority has confirmed: m is the token, if the deadline, checked after that, has not
 *          passed (ACQ-4). This is a second round of the same attempt, and ends with it. If a
 *          majority can no longer confirm, the attempt has failed (ACQ-5).
 *   FEN-5. An extend raises the counters to m, so that they live a week longer than the keys. A
 *          heal and a backfill give the node its counter, too. None of these confirms.
 *   FEN-6. A lease that moves to another lock of its owner, or to another process, keeps its token:
 *          it is one grant.
 *
 * Copies of FEN-2: csrc/test/sim/sim_watch.c, csrc/test/lib/fake_store.c; a simpler one in
 * draw_fence() of lua/redlock/fake_lease.lua.
 */
#include "lease/rl_fence.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lock/rl_lock.h"
#include "lock/rl_round.h"
#include "node/rl_link_queue.h"

bool rl_fence_reserve(rl_lock *lock, const rl_options *options) {
  if (options->fence != REDLOCK_YES || rl_fence_of(lock) != NULL) {
    return true;
  }
  if (!rl_lock_reserve_extension(lock)) {
    return false;
  }
  lock->extension->fence = calloc(1, sizeof *lock->extension->fence);
  return lock->extension->fence != NULL;
}

void rl_fence_free(rl_lock *lock) {
  if (lock->extension != NULL) {
    free(lock->extension->fence);
    lock->extension->fence = NULL;
  }
}

uint64_t rl_fence_token(const rl_lock *lock) {
  return rl_fence_is_on(lock) && rl_fence_of(lock) != NULL ? rl_fence_of(lock)->token : 0;
}

void rl_fence_adopt(rl_lock *lock, uint64_t token) {
  rl_fence *fence = rl_fence_of(lock);
  if (fence != NULL) {
    fence->token = token;
    fence->last = rl_time_max(fence->last, token);
  }
}

/*
 * FEN-1. Without any known clock the estimate is 1, which each node replaces by its own time of a
 *        second ago.
 */
static uint64_t rl_fence_estimate(const rl_core *core, redlock_time now_us) {
  const rl_node_clock *clocks[REDLOCK_NODES_MAX];
  int64_t offset_us = 0;
  for (unsigned i = 0; i < core->node_count; i++) {
    clocks[i] = &core->nodes[i]->link.clock;
  }
  bool known = rl_node_clock_median(clocks, core->node_count, &offset_us) > 0;
  uint64_t shows_us = known || core->wall.known
                          ? rl_node_clock_shows(known ? offset_us : core->wall.offset_us, now_us)
                          : 0;
  return rl_time_max(shows_us / RL_FENCE_TICK_US, 1);
}

void rl_fence_begin(rl_lock *lock, redlock_time now_us) {
  rl_fence *fence = rl_fence_of(lock);
  if (!rl_fence_is_on(lock)) {
    return;
  }
  uint64_t last = fence->last;
  uint64_t proposed = rl_time_max(rl_fence_estimate(lock->core, now_us), last + 1);
  *fence = (rl_fence){.last = last, .proposed = rl_time_min(proposed, RL_FENCE_MAX)};
}

void rl_fence_note_grant(rl_lock *lock, const rl_node *node, const rl_outstanding *command,
                         uint64_t value) {
  rl_fence *fence = rl_fence_of(lock);
  uint32_t bit = rl_node_bit(node);
  if (!rl_fence_is_on(lock) || lock->phase != RL_PHASE_ROUND || lock->round != command->round ||
      lock->attempt != command->attempt) {
    return; /* It is late, or a backfill. */
  }
  fence->granted |= bit;
  fence->last = rl_time_max(fence->last, value);
  if (value > fence->highest && !fence->settled) {
    fence->highest = value;
    fence->confirmed = bit;
  } else if (value == 0 || value > fence->highest) { /* It cannot confirm m. */
    fence->refused |= bit;
    rl_round_set_reason(lock, node->index, "its counter of fencing tokens differs");
  } else if (value == fence->highest) {
    fence->confirmed |= bit;
  }
}

/* FEN-3. Asks a node that has the key, and a counter below m, to confirm m. */
static void rl_fence_send_confirm(rl_lock *lock, redlock_time now_us, rl_node *node) {
  rl_fence *fence = rl_fence_of(lock);
  uint64_t key_ms = rl_options_key_ms(lock->current, lock->ttl_us);
  const char *unsent = node->link.phase != RL_LINK_UP ? node->error
                       : !rl_link_has_room(&node->link, RL_OUTSTANDING_CONFIRM)
                           ? "too many commands are waiting for the node"
                       : !rl_link_queue_confirm(&node->link, now_us, lock->attempt, lock->round,
                                                false, key_ms, fence->highest)
                           ? "out of memory"
                           : NULL;
  if (unsent == NULL) {
    fence->asked |= rl_node_bit(node);
  } else {
    fence->refused |= rl_node_bit(node);
    rl_round_set_reason(lock, node->index, unsent);
  }
}

rl_decision rl_fence_decide(rl_lock *lock, redlock_time now_us) {
  rl_fence *fence = rl_fence_of(lock);
  unsigned needed = rl_core_quorum(lock->core, RL_OPERATION_ACQUIRE);
  unsigned possible = 0;
  fence->settled = true;
  if (rl_quorum_count(fence->confirmed) >= needed) {
    return RL_DECISION_GRANTED;
  }
  for (unsigned i = 0; i < lock->core->node_count; i++) {
    rl_node *node = lock->core->nodes[i];
    uint32_t behind = fence->granted & ~(fence->confirmed | fence->asked | fence->refused);
    if ((behind & rl_node_bit(node)) != 0) {
      rl_fence_send_confirm(lock, now_us, node);
    }
    possible +=
        !lock->votes[i].settled || ((fence->confirmed | fence->asked) & rl_node_bit(node)) != 0;
  }
  return possible >= needed ? RL_DECISION_NONE : RL_DECISION_UNAVAILABLE;
}

/* Returns true if the round in flight awaits the answer of the node to |command|. */
static bool rl_fence_awaits(const rl_lock *lock, const rl_node *node,
                            const rl_outstanding *command) {
  return lock != NULL && lock->phase == RL_PHASE_ROUND && lock->round == command->round &&
         lock->attempt == command->attempt && (rl_fence_of(lock)->asked & rl_node_bit(node)) != 0;
}

void rl_fence_answered(rl_lock *lock, redlock_time now_us, const rl_node *node,
                       const rl_outstanding *command, redlock_vote vote, const char *error) {
  if (!rl_fence_awaits(lock, node, command)) {
    return;
  }
  rl_fence *fence = rl_fence_of(lock);
  fence->asked &= ~rl_node_bit(node);
  if (rl_vote_counts_as(vote) == RL_COUNT_GRANTED) {
    fence->confirmed |= rl_node_bit(node);
  } else {
    fence->refused |= rl_node_bit(node);
    rl_round_set_reason(lock, node->index, error != NULL ? error : "it has lost the key");
  }
  rl_round_decide(lock, now_us);
}

bool rl_fence_send_text(rl_node *node, redlock_time now_us, const rl_outstanding *command) {
  const rl_lock *lock = command->attempt->lock;
  return rl_fence_awaits(lock, node, command) && now_us < lock->round_deadline_us &&
         rl_link_queue_confirm(&node->link, now_us, command->attempt, command->round, true,
                               rl_options_key_ms(lock->current, lock->ttl_us),
                               rl_fence_of(lock)->highest);
}

void rl_fence_time_out(rl_lock *lock, const char *missed) {
  rl_fence *fence = rl_fence_of(lock);
  if (!rl_fence_is_on(lock)) {
    return;
  }
  for (unsigned i = 0; i < lock->core->node_count; i++) {
    if ((fence->asked >> i & 1) != 0) {
      rl_round_set_reason(lock, i, missed);
    }
  }
  fence->refused |= fence->asked;
  fence->asked = 0;
}

void rl_fence_granted(rl_lock *lock) {
  rl_fence *fence = rl_fence_of(lock);
  if (!rl_fence_is_on(lock) || rl_lock_attach(lock) != NULL) {
    return;
  }
  fence->token = fence->highest;
  for (unsigned i = 0; i < lock->core->node_count; i++) {
    if ((fence->granted >> i & 1) != 0) {
      rl_reasons_drop(lock->reasons, i); /* Its confirmation was not needed. */
    }
  }
}

bool rl_fence_queue_set(const rl_lock *lock, redlock_time now_us, rl_node *node,
                        rl_outstanding_kind kind, rl_attempt *attempt, uint64_t key_ms) {
  bool own = attempt == lock->lease; /* FEN-5 */
  if (!rl_fence_is_on(lock) && node->link.guard == NULL) {
    return rl_link_queue_set(&node->link, now_us, kind, attempt, lock->round, key_ms);
  }
  uint64_t value = !rl_fence_is_on(lock) ? 0
                   : own                 ? rl_fence_token(lock)
                                         : rl_fence_of(lock)->proposed;
  return rl_link_queue_take(&node->link, now_us, kind, attempt, lock->round, key_ms, own, value);
}

bool rl_fence_queue_extend(const rl_lock *lock, redlock_time now_us, rl_node *node, bool by_text,
                           uint64_t key_ms) {
  if (!rl_fence_is_on(lock) && node->link.guard == NULL) {
    return rl_link_queue_extend(&node->link, now_us, lock->lease, lock->round, by_text, key_ms);
  }
  return rl_link_queue_prolong(&node->link, now_us, lock->lease, lock->round, by_text, key_ms,
                               rl_fence_token(lock));
}
