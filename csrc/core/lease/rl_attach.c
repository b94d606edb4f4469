/*
 * Handing a lease over: one process detaches it, another attaches it.
 *
 * SPDX-License-Identifier: MIT
 *
 * No clock is compared with another: time on the way is counted by the nodes, whose keys expire.
 *   H1. Only a lease that lasts is detached. It ends for its lock there and then, and nothing is released:
 *       the keys stay, and live for as long as they did.
 *   H2. A node that may yet execute a SET of the token is doubtful: its key may have been gone in between,
 *       and somebody else have had it. On every other node the key with the token, if it is still there,
 *       has been there all the time, for no SET of that token is sent any more. So it is with each key of a lock
 *       on several resources.
 *   H3. Attaching is an acquire, with a fresh token, of steps A1 to A5 of rl_acquire.c. But in place of SET NX
 *       it sends a script that puts the fresh token in the place of the handed one, if all keys hold
 *       that, with a full ttl. Doubtful nodes are sent it, too, but have no vote.
 *   H4. A majority: then at every moment since H1 a majority of the nodes held the one token or the other, so
 *       that nobody else can have had the lock. The validity counts from the round's own start.
 *   H5. No majority: the fresh token is released wherever it may have come to be. What is left of the handed
 *       one expires. Nobody holds the lock then, and two who attach at once are never both granted:
 *       the token of a node is replaced once, and two majorities share a node.
 *   H6. A key of which no more is left than lock_delay is a lease's no more: it only keeps others out.
 *   H7. It is tried once. A second try finds no majority of the handed token where the first had one.
 *   H8. After H4 the handed token is released where it may be left: on nodes that were behind, and not asked to
 *       replace it, and on doubtful ones.
 */
#include "lease/rl_attach.h"

#include <stdlib.h>

#include "lease/rl_fence.h"
#include "lease/rl_loss.h"
#include "lease/rl_release.h"
#include "lease/rl_renew.h"
#include "lock/rl_lock.h"
#include "lock/rl_ring.h"
#include "wait/rl_notify.h"

const char *rl_attach_fit_fence(rl_options *options, uint64_t fence) {
  bool asked = options->fence == REDLOCK_YES;
  options->fence = fence > 0 ? REDLOCK_YES : REDLOCK_NO;
  return asked && fence == 0
             ? "fence: the lease that was detached had been acquired without a fencing token"
             : NULL;
}

int rl_attach_set(rl_lock *lock, const rl_handover *handover) {
  rl_core *core = lock->core;
  rl_attach *attach = rl_lock_reserve_extension(lock) ? malloc(sizeof *attach) : NULL;
  rl_attempt *handed = attach == NULL
                           ? NULL
                           : rl_attempt_new_custom(&core->attempts, lock->resource, NULL,
                                                   handover->token, handover->token_length);
  if (handed == NULL) {
    free(attach);
    return REDLOCK_E_NO_MEMORY;
  }
  rl_attach_forget(lock);
  attach->handed = handed;
  attach->suspect = handover->suspect;
  attach->fence = handover->fence;
  attach->floor_ms = rl_time_ms_up(handover->lock_delay_us);
  attach->key_ms = attach->floor_ms + rl_time_ms_up(handover->ttl_us);
  lock->extension->attach = attach;
  return REDLOCK_OK;
}

void rl_attach_succeeded(rl_lock *lock, redlock_time now_us) {
  const rl_attach *attach = rl_lock_attach(lock);
  uint32_t left = attach->suspect | ~lock->lease->sent;
  rl_fence_adopt(lock, attach->fence); /* F6 */
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
