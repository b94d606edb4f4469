/*
 * Backfill: a node that could not be asked at the acquire gets the key while the lease lasts.
 *
 * SPDX-License-Identifier: MIT
 *
 * The more nodes hold a key, the more of them may lose it. A node that was down, behind or full at
 * the acquire has no key. Until the next extend, only the other nodes support the lease.
 *   FILL-1. At the start of a lease, note the nodes that got no SET.
 *   FILL-2. Such a node is well again when it has come up, or answers and is not behind. With a
 *           guard it must have a vote.
 *   FILL-3. The node then gets one SET for each lease that it lacks, while the lease lasts and no
 *           operation on it is in flight. A node that got a SET never gets it again, even if its
 *           connection broke: it may yet execute the first one. The next extend heals the key. A
 *           node that may still execute a shorter native extend gets none either (NAT-5).
 *   FILL-4. The key's life is the rest of the ttl, so that it ends with the other keys. The life is
 *           rounded up to milliseconds, so that the key never ends before them.
 *   FILL-5. Operations come first: the locks are searched every 100 ms at most, and a node with
 *           many commands outstanding gets no more.
 */
#include "lease/rl_backfill.h"

#include "lease/rl_fence.h"
#include "lock/rl_lock.h"
#include "lock/rl_round.h"
#include "node/rl_guard.h"
#include "node/rl_native.h"

void rl_backfill_begin(rl_lock *lock, redlock_time now_us) {
  rl_core *core = lock->core;
  for (unsigned i = 0; i < core->node_count; i++) {
    rl_node *node = core->nodes[i];
    if ((lock->lease->sent & rl_node_bit(node)) == 0) {
      node->lacks_keys = true;
      if (rl_link_oldest_age(&node->link, now_us) <= rl_round_patience(lock)) {
        rl_backfill_note_well(core, node);
      }
    }
  }
}

void rl_backfill_note_well(rl_core *core, rl_node *node) {
  if (node->lacks_keys && node->link.phase == RL_LINK_UP) {
    core->backfills->due |= rl_node_bit(node);
    core->backfills->at_us =
        rl_time_min(core->backfills->at_us, rl_time_add(core->now_us, RL_BACKFILL_EVERY_US));
  }
}

/* FILL-3. Returns true if the lock has a key that the node lacks. */
static bool rl_backfill_lacks(const rl_lock *lock, redlock_time now_us, const rl_node *node) {
  return rl_lock_remaining(lock, now_us) > 0 && node->twins == 0 &&
         (lock->lease->sent & rl_node_bit(node)) == 0;
}

bool rl_backfill_lock(rl_lock *lock, redlock_time now_us, rl_node *node) {
  rl_link *link = &node->link;
  if (!rl_backfill_lacks(lock, now_us, node)) {
    return true;
  }
  uint64_t key_ms =
      rl_options_key_ms(lock->current, rl_time_sub(lock->keys_end_us, now_us)); /* FILL-4 */
  if (rl_native_may_shorten(link, lock->lease, key_ms)) {
    return true;
  }
  if (rl_lock_is_in_flight(lock) || !rl_guard_may_vote(link->guard, now_us) || /* GRD-4 */
      rl_link_oldest_age(link, now_us) > rl_round_patience(lock) ||
      link->outstanding_count >= RL_BACKFILL_WINDOW ||
      !rl_link_has_room(link, RL_OUTSTANDING_ACQUIRE) ||
      !rl_fence_queue_set(lock, now_us, node, RL_OUTSTANDING_ACQUIRE, lock->lease, key_ms)) {
    return false;
  }
  rl_attempt_set_sent(lock->lease, now_us, rl_node_bit(node), key_ms);
  return true;
}

/* FILL-3, for all locks. A node that is behind waits until it has answered. */
static void rl_backfill_node(rl_core *core, redlock_time now_us, rl_node *node) {
  bool done = true;
  node->lacks_keys = false;
  RL_LIST_EACH(&core->locks, lock, rl_lock, locks) {
    done = rl_backfill_lock(lock, now_us, node) && done;
  }
  node->lacks_keys = !done;
  if (done || rl_link_oldest_age(&node->link, now_us) > RL_BACKFILL_EVERY_US) {
    core->backfills->due &= ~rl_node_bit(node);
  }
}

redlock_time rl_backfill_deadline(const rl_core *core) {
  return core->backfills->due != 0 ? core->backfills->at_us : REDLOCK_NEVER;
}

void rl_backfill_continue(rl_core *core, redlock_time now_us) {
  if (rl_backfill_deadline(core) > core->now_us) {
    return;
  }
  core->backfills->at_us = rl_time_add(now_us, RL_BACKFILL_EVERY_US);
  uint32_t later = 0;
  redlock_time later_us = REDLOCK_NEVER;
  for (unsigned i = 0; i < core->node_count; i++) {
    rl_node *node = core->nodes[i];
    redlock_duration quarantined_us = rl_guard_quarantined(node->link.guard, now_us);
    if ((core->backfills->due & rl_node_bit(node)) == 0) {
      continue;
    }
    if (node->link.phase != RL_LINK_UP || quarantined_us == REDLOCK_NEVER) {
      core->backfills->due &= ~rl_node_bit(node); /* Until it has come up, or answers (FILL-2). */
    } else if (quarantined_us > 0) {
      later |= rl_node_bit(node);
      later_us = rl_time_min(later_us, rl_time_add(now_us, quarantined_us));
    } else {
      rl_backfill_node(core, now_us, node);
    }
  }
  if (core->backfills->due == later && later != 0) {
    core->backfills->at_us = later_us;
  }
}
