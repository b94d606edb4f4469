/*
 * The grace period: how long a blocking call waits for slow nodes after its operation has ended.
 *
 * SPDX-License-Identifier: MIT
 *
 * The fastest majority decides an operation. A driver that always runs serves the other nodes a
 * little later. A program with blocking calls does no I/O between them: its lock would stand on the
 * bare majority, and the failure of one node would break it. So a blocking call goes on
 *   - while a connection is in progress whose node needs a key or a release, as for a client's
 *     first lock. Only the first try to connect counts, or the first one after the node has worked.
 *     Later tries may never end;
 *   - while replies are outstanding, if a node has forgotten a script in this round: the other
 *     nodes may need its text, too;
 *   - after a release, while the next reply of a node is that of EXISTS (NAT-2): a proxy may send
 *     the replies one by one, and the waiter would wait for the next call of the program.
 * The grace period is four times as long as the decision took, and at least 100 ms: slower nodes
 * are served by the next call. It is at most a tenth of the ttl, and ends with the attempt
 * (node_timeout, wait).
 */
#include "lifecycle/rl_grace.h"

#include "lease/rl_release.h"
#include "lock/rl_lock.h"
#include "node/rl_native.h"

#define RL_GRACE_MIN_US (100 * REDLOCK_MILLISECONDS)
#define RL_GRACE_TIMES 4
#define RL_GRACE_TTL_SHARE 10

static redlock_duration rl_grace_period(const rl_lock *lock) {
  redlock_duration took_us = lock->round_took_us;
  redlock_duration period_us = rl_time_max(took_us * RL_GRACE_TIMES, RL_GRACE_MIN_US);
  return rl_time_min(period_us, lock->ttl_us / RL_GRACE_TTL_SHARE);
}

/* Returns when the first connection to the node was begun; REDLOCK_NEVER if none is in progress. */
static redlock_time rl_grace_connecting(const rl_node *node) {
  bool on_its_way = node->link.phase == RL_LINK_CONNECTING || node->link.phase == RL_LINK_HANDSHAKE;
  return on_its_way && node->failures == 0 ? node->tried_us : REDLOCK_NEVER;
}

/* Returns true if a key or a release waits for the connection. */
static bool rl_grace_wanted(const rl_lock *lock, const rl_node *node) {
  bool held = lock->phase == RL_PHASE_SUCCEEDED && lock->lease != NULL;
  uint32_t lacking = held ? ~lock->lease->sent : 0;
  return ((lacking | rl_release_due(lock->core)) & rl_node_bit(node)) != 0;
}

/* Returns true if the next reply of the node tells if waiters must be notified. */
static bool rl_grace_awaits_flag(const rl_lock *lock, const rl_link *link) {
  return lock->operation == RL_OPERATION_RELEASE && rl_native_awaits_flag(link);
}

redlock_time rl_grace_until(const rl_lock *lock, redlock_time now_us) {
  const rl_core *core = lock->core;
  redlock_duration period_us = rl_grace_period(lock);
  bool forgotten = core->forgotten_us != 0 && core->forgotten_us >= lock->round_start_us;
  redlock_time until_us = 0;
  if (rl_lock_is_in_flight(lock) || lock->round == 0) {
    return 0;
  }
  for (unsigned i = 0; i < core->node_count; i++) {
    const rl_node *node = core->nodes[i];
    redlock_time since_us = rl_grace_connecting(node);
    if (since_us != REDLOCK_NEVER && rl_grace_wanted(lock, node)) {
      until_us = rl_time_max(until_us, rl_time_add(since_us, period_us));
    } else if ((forgotten || rl_grace_awaits_flag(lock, &node->link)) &&
               node->link.phase == RL_LINK_UP && node->link.outstanding_count > 0 &&
               rl_link_oldest_age(&node->link, now_us) <= period_us) {
      until_us = rl_time_max(until_us, rl_time_add(lock->round_start_us, period_us));
    }
  }
  return rl_time_min(until_us, lock->round_deadline_us);
}
