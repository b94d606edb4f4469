/*
 * Handing a lease over: one process detaches it, another attaches it.
 *
 * SPDX-License-Identifier: MIT
 *
 * Processes compare no clocks. The keys of the nodes expire, and so count the time in between.
 *   ATT-1. Only a lease that lasts is detached. It ends for its lock at once, and nothing is
 *          released: the keys stay until they expire.
 *   ATT-2. On a node that may still execute a SET of the token, the key may have been gone in
 *          between. Another client may have held it then. On every other node a key with the token
 *          has been there all the time, because no further SET of that token is sent. This holds
 *          for each key of a lock on several resources.
 *   ATT-3. Attaching is an acquire with a fresh token, by ACQ-1 to ACQ-5. In place of SET NX it
 *          sends a script. If all keys hold the handed token, the script replaces it by the fresh
 *          one, with a full ttl. The nodes of ATT-2 get it, too, but have no vote.
 *   ATT-4. A majority replaced the token: since ATT-1 a majority has always held one token or the
 *          other, so no other client can have held the lock. The validity counts from the start of
 *          this round.
 *   ATT-5. No majority: the fresh token is released, and the rest of the handed token expires. No
 *          client holds the lock then. Two clients that attach at once are never both granted: each
 *          node replaces a token once, and two majorities share a node.
 *   ATT-6. A key with lock_delay or less left has outlived its lease. It only keeps other clients
 *          out.
 *   ATT-7. An attach is tried once. The first try may have replaced the handed token on some nodes,
 *          so a second one may find no majority of it.
 *   ATT-8. After ATT-4 the handed token is released where it may remain: on nodes that were behind
 *          and did not get the script, and on the nodes of ATT-2.
 *   ATT-9. The text has the rest of hold_at_least, and the life that the keys had left. The nodes
 *          report how much of it they had left at the attach. The difference is the time in
 *          between. Keys may live longer than the text says, because of an extend that failed. So
 *          only the longest life counts: the rest is then never too short.
 *   ATT-10. The rest never grows in a hand-over. But it may not shrink: if an extend for more time
 *          failed since the last one that succeeded, a node may have executed it. Then the lives of
 *          the keys do not show the time in between. The hold becomes longer by that time at most,
 *          which is less than the longest life of a key. A chain of hand-overs can repeat this
 *          without a bound.
 */
#include "lease/rl_attach.h"

#include <stdlib.h>

#include "lease/rl_fence.h"
#include "lease/rl_loss.h"
#include "lease/rl_release.h"
#include "lease/rl_renew.h"
#include "lock/rl_lock.h"
#include "lock/rl_ring.h"
#include "node/rl_guard.h"
#include "wait/rl_notify.h"

const char *rl_attach_fit_fence(rl_options *options, uint64_t fence) {
  bool asked = options->fence == REDLOCK_YES;
  options->fence = fence > 0 ? REDLOCK_YES : REDLOCK_NO;
  return asked && fence == 0
             ? "fence: the lease that was detached was acquired without a fencing token"
             : NULL;
}

unsigned rl_attach_permits(const rl_handover *handover, unsigned *slot, size_t *base_length) {
  unsigned permits = rl_label_permits(handover->token, handover->token_length);
  *slot = rl_resource_parse_slot(handover->resources[0].bytes, handover->resources[0].length,
                                 base_length);
  return handover->resource_count == 1 && *slot != 0 && *slot <= permits ? permits : 0;
}

/* Returns a reference to the resource of the handed lease: that of the lock, or its slot. */
static rl_resource *rl_attach_resource(rl_lock *lock, const rl_handover *handover) {
  unsigned slot;
  size_t base_length;
  if (rl_attach_permits(handover, &slot, &base_length) != 0) {
    return rl_resource_new_slot(lock->resource, slot);
  }
  lock->resource->references++;
  return lock->resource;
}

const char *rl_attach_fit(rl_lock *lock, rl_options *current, const redlock_options *options) {
  rl_attach *attach = rl_lock_attach(lock);
  attach->replaces_hold = options != NULL && options->hold_at_least_us != 0;
  const char *wrong =
      rl_guard_too_long_to_hold(lock->core->guards, attach->replaces_hold ? 0 : attach->hold_us);
  return wrong != NULL ? wrong : rl_attach_fit_fence(current, attach->fence);
}

int rl_attach_set(rl_lock *lock, const rl_handover *handover) {
  rl_core *core = lock->core;
  rl_attach *attach = rl_lock_reserve_extension(lock) ? malloc(sizeof *attach) : NULL;
  rl_resource *resource = rl_attach_resource(lock, handover);
  rl_attempt *handed = attach == NULL || resource == NULL
                           ? NULL
                           : rl_attempt_new_custom(&core->attempts, resource, NULL, handover->token,
                                                   handover->token_length);
  if (resource != NULL) {
    rl_resource_unref(resource);
  }
  if (handed == NULL) {
    free(attach);
    return REDLOCK_E_NO_MEMORY;
  }
  rl_attach_forget(lock);
  attach->handed = handed;
  attach->may_set = handover->may_set;
  attach->fence = handover->fence;
  attach->hold_us = handover->hold_us;
  attach->replaces_hold = false;
  attach->left_us = handover->left_us;
  attach->left_ms = 0;
  attach->floor_ms = rl_time_ms_up(handover->lock_delay_us);
  attach->key_ms = attach->floor_ms + rl_time_ms_up(handover->ttl_us);
  lock->extension->attach = attach;
  return REDLOCK_OK;
}

void rl_attach_note(rl_lock *lock, const rl_outstanding *command, uint64_t left_ms) {
  rl_attach *attach = rl_lock_attach(lock);
  if (attach != NULL && lock->attempt == command->attempt) {
    attach->left_ms = rl_time_max(attach->left_ms, left_ms);
  }
}

redlock_duration rl_attach_hold_us(const rl_attach *attach) {
  if (attach == NULL || attach->replaces_hold) {
    return 0;
  }
  /* A node counts whole milliseconds. */
  redlock_duration now_left_us = (attach->left_ms + 1) * REDLOCK_MILLISECONDS;
  return rl_time_sub(attach->hold_us, rl_time_sub(attach->left_us, now_left_us));
}

void rl_attach_succeeded(rl_lock *lock, redlock_time now_us) {
  const rl_attach *attach = rl_lock_attach(lock);
  uint32_t left = attach->may_set | ~lock->lease->sent;
  rl_fence_adopt(lock, attach->fence); /* FEN-6 */
  for (unsigned i = 0; i < lock->core->node_count; i++) {
    const rl_vote *vote = &lock->votes[i];
    bool granted = vote->settled && rl_vote_counts_as(vote->vote) == RL_COUNT_GRANTED;
    uint32_t bit = rl_node_bit(lock->core->nodes[i]);
    if (!granted && (left & bit) != 0) {
      attach->handed->sent |= bit;
    }
  }
  if (attach->handed->sent != 0) {
    attach->handed->held = true;
    rl_attempt_will_live(attach->handed, now_us, attach->key_ms);
    rl_release_begin(lock->core, now_us, attach->handed, true);
  }
}

void rl_attach_forget(rl_lock *lock) {
  rl_attach *attach = rl_lock_attach(lock);
  if (attach != NULL) {
    lock->extension->attach = NULL;
    rl_attempt_unref(&lock->core->attempts, attach->handed);
    free(attach);
  }
}
