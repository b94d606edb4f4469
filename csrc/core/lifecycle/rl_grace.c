/*
 * Late nodes: how long a caller that does nothing between its calls should go on for them.
 *
 * SPDX-License-Identifier: MIT
 *
 * An operation is decided by the fastest majority. A driver that always runs serves the others a little
 * later. A script that blocks in its calls does nothing between them: its lock would live on the bare
 * majority, and one node that fails is one too many. So a blocking call goes on, for a moment,
 *   - for connections on their way, whose nodes are to get the key or a release: a client's first
 *     lock. Only for the first attempt to connect, or the first since the node was well: one that has
 *     failed may take for ever, and it has its time from when it began, not from each call;
 *   - for replies, when a node has forgotten a script in this round: the others may have too, and want
 *     it by its text.
 * The moment is four times what the decision took, and 100 ms at least: nodes that are so much slower than
 * the majority are served by the next call. It is a tenth of the ttl at most, and ends with the
 * attempt's own time (node_timeout, wait).
 */
#include "lifecycle/rl_grace.h"

#include "lease/rl_release.h"
#include "lock/rl_lock.h"

#define RL_GRACE_MOMENT_MIN_US (100 * REDLOCK_MILLISECONDS)
#define RL_GRACE_TIMES 4
#define RL_GRACE_TTL_SHARE 10

static redlock_duration rl_grace_moment(const rl_lock *lock) {
  redlock_duration took_us = lock->round_took_us;
  redlock_duration moment_us = rl_time_max(took_us * RL_GRACE_TIMES, RL_GRACE_MOMENT_MIN_US);
  return rl_time_min(moment_us, lock->ttl_us / RL_GRACE_TTL_SHARE);
}

/* Since when the connection to the node is being made for the first time; REDLOCK_NEVER if it is not. */
static redlock_time rl_grace_connecting(const rl_node *node) {
  bool on_its_way = node->link.phase == RL_LINK_CONNECTING || node->link.phase == RL_LINK_HANDSHAKE;
  return on_its_way && node->failures == 0 ? node->tried_us : REDLOCK_NEVER;
}

/* Returns true if a command for the node waits for its connection: the key that it is to get, or a release. */
static bool rl_grace_wanted(const rl_lock *lock, const rl_node *node) {
  bool held = lock->phase == RL_PHASE_GRACE && lock->lease != NULL;
  uint32_t lacking = held ? ~lock->lease->sent : 0;
  return ((lacking | rl_release_due(lock->core)) & rl_node_bit(node)) != 0;
}

redlock_time rl_grace_until(const rl_lock *lock, redlock_time now_us) {
  const rl_core *core = lock->core;
  redlock_duration moment_us = rl_grace_moment(lock);
  bool forgotten = core->forgotten_us != 0 && core->forgotten_us >= lock->round_start_us;
  redlock_time until_us = 0;
  if (rl_lock_is_in_flight(lock) || lock->round == 0) {
    return 0;
  }
  for (unsigned i = 0; i < core->node_count; i++) {
    const rl_node *node = core->nodes[i];
    redlock_time since_us = rl_grace_connecting(node);
    if (since_us != REDLOCK_NEVER && rl_grace_wanted(lock, node)) {
      until_us = rl_time_max(until_us, rl_time_add(since_us, moment_us));
    } else if (forgotten && node->link.phase == RL_LINK_UP && node->link.outstanding_count > 0 &&
               rl_link_oldest_age(&node->link, now_us) <= moment_us) {
      until_us = rl_time_max(until_us, rl_time_add(lock->round_start_us, moment_us));
    }
  }
  return rl_time_min(until_us, lock->round_deadline_us);
}
