/*
 * Pacing: when the commands of an operation are sent.
 *
 * SPDX-License-Identifier: MIT
 *
 *   PACE-1. Extends and releases go before acquires: a held lock is worth more than a wanted one.
 *           But every fourth round is that of an acquire, so that extends never keep acquires out.
 *   PACE-2. Extends go by their deadlines, the nearest first. An extend whose deadline has come
 *           ends. So does an extend for an acquire (OWN-3) whose budget has expired. A release is
 *           due after a third of its ttl, and goes before extends with later deadlines: its caller
 *           waits, and with thousands of auto-extended leases there are always extends. A release
 *           that is due goes even if the nodes are at their limits. A fire-and-forget release is
 *           due at once, because its caller may not call again.
 *   PACE-3. Acquires go in the order of their beginning. An acquire waits until its budget expires,
 *           or for its ttl if that is shorter.
 *   PACE-4. A round may begin while enough nodes for the operation (a majority, or its quorum) are
 *           below their limits. No node may be far above its limit. A round waits for full nodes.
 *           No round waits for a node that is not connected (except PACE-5). If waiting cannot
 *           bring enough nodes, the round begins at once.
 *            - An acquire does not wait for full nodes that are behind, because they could not
 *              answer in time. If it begins without enough nodes, it fails.
 *            - An extend or a release also waits for full nodes that are behind: they may recover,
 *              the lease has time, and after 3 s of silence their connections end.
 *            - An extend waits for a node far above its limit for at most a quarter of the
 *              remaining time of the lease, whatever |node_timeout| is.
 *   PACE-5. While the first connection of a node is in progress, the commands that it will get
 *           count as outstanding. They do so no longer than a node may be behind. The node will get
 *           one command of each round in flight.
 */
#include "lifecycle/rl_pacer.h"

#include "lock/rl_outbox.h"
#include "lock/rl_round.h"
#include "lock/rl_steps.h"
#include "wait/rl_notify.h"
#include "wait/rl_waitlist.h"

/* ------------------------------------------------------------------------ the in-flight limit */

/* PACE-5. Returns until when the node counts as full; 0 if it does not. */
static redlock_time rl_pacer_awaited(const rl_core *core, const rl_node *node,
                                     redlock_duration patience_us) {
  const rl_pacer *pacer = &core->pacer;
  size_t in_flight = core->busy_count - pacer->acquire_count - pacer->renewals.count -
                     core->waitlists->queued_count;
  bool on_its_way = node->link.phase == RL_LINK_CONNECTING || node->link.phase == RL_LINK_HANDSHAKE;
  bool first = node->failures == 0; /* or the first after the node was well */
  return on_its_way && first && in_flight >= pacer->in_flight_limit
             ? rl_time_add(node->tried_us, patience_us)
             : 0;
}

/* PACE-4. Returns after how long without a reply a node is behind, for |lock|. */
static redlock_duration rl_pacer_patience(const rl_lock *lock, redlock_time now_us) {
  redlock_duration patience_us = rl_round_patience(lock);
  return rl_operation_has(lock->operation, RL_HOLDS)
             ? rl_time_min(patience_us, rl_time_sub(lock->deadline_us, now_us) / 4)
             : patience_us;
}

/*
 * PACE-4. Returns true if the round of |lock| may begin. Otherwise lowers |*until_us| to the time
 *         of the next check.
 */
static bool rl_pacer_is_open(const rl_core *core, redlock_time now_us, const rl_lock *lock,
                             redlock_time *until_us) {
  const rl_pacer *pacer = &core->pacer;
  redlock_duration patience_us = rl_pacer_patience(lock, now_us);
  unsigned needed = rl_core_quorum(core, lock->operation);
  unsigned ready = 0, full = 0, behind = 0;
  bool overfull = false;
  redlock_time behind_at_us = REDLOCK_NEVER;
  for (unsigned i = 0; i < core->node_count; i++) {
    const rl_link *link = &core->nodes[i]->link;
    if (link->phase != RL_LINK_UP) {
      redlock_time awaited_us = rl_pacer_awaited(core, core->nodes[i], patience_us);
      if (awaited_us > now_us) {
        full++;
        behind_at_us = rl_time_min(behind_at_us, awaited_us);
      }
      continue;
    }
    if (link->outstanding_count < pacer->in_flight_limit) {
      ready++; /* without the division below */
      continue;
    }
    redlock_duration behind_us = rl_link_oldest_age(link, now_us);
    redlock_duration limit = pacer->in_flight_limit + link->fastest_us / pacer->command_us;
    if (link->outstanding_count < limit) {
      ready++;
    } else if (behind_us <= patience_us) {
      full++;
      overfull = overfull || link->outstanding_count / RL_PACER_OVERFULL >= limit;
      behind_at_us = rl_time_min(behind_at_us, rl_time_add(now_us, patience_us - behind_us + 1));
    } else {
      behind += lock->operation != RL_OPERATION_ACQUIRE;
    }
  }
  if (full + behind == 0 || (ready >= needed && !overfull) || ready + full + behind < needed) {
    return true;
  }
  *until_us = rl_time_min(*until_us, behind_at_us);
  return false;
}

void rl_pacer_give_up(rl_lock *lock, redlock_time now_us) {
  redlock_time until_us = REDLOCK_NEVER;
  if (lock->result != REDLOCK_PENDING) {
    rl_lock_end(lock, now_us,
                lock->result); /* The votes of the previous attempt give the reason. */
    return;
  }
  const char *reason = rl_pacer_is_open(lock->core, now_us, lock, &until_us)
                           ? "not asked before the budget expired"
                           : "too many commands are waiting for the node";
  for (unsigned i = 0; i < lock->core->node_count; i++) {
    rl_round_settle_copy(lock, i, REDLOCK_VOTE_UNKNOWN, reason);
  }
  rl_lock_end(lock, now_us, REDLOCK_E_UNAVAILABLE);
}

size_t rl_pacer_entropy_wanted(const rl_core *core) {
  const rl_pacer *pacer = &core->pacer;
  unsigned count = pacer->closed_until_us <= core->now_us ? pacer->acquire_count : 0;
  return (size_t)(count < RL_PACER_MAX ? count : RL_PACER_MAX) * RL_LOCK_ENTROPY;
}

redlock_time rl_pacer_deadline(const rl_core *core) {
  const rl_pacer *pacer = &core->pacer;
  redlock_time wanted_us = rl_timers_next(&pacer->renewals);
  if (pacer->renewals.count > 0 || pacer->acquire_count > 0) {
    wanted_us = rl_time_min(wanted_us, pacer->closed_until_us);
  }
  return wanted_us;
}

/* ----------------------------------------------------------------------------------- sending */

/*
 * PACE-1. Returns the lock whose round begins next. Otherwise notes the time of the next check, and
 *         returns NULL.
 */
static rl_lock *rl_pacer_next(rl_core *core, redlock_time now_us, bool entropy) {
  rl_pacer *pacer = &core->pacer;
  rl_lock *renewal = pacer->renewals.count > 0 ? rl_lock_of_timer(pacer->renewals.heap[0]) : NULL;
  rl_lock *acquire = entropy ? rl_lock_queue_first(&pacer->acquires) : NULL;
  bool turn = pacer->renewals_in_a_row >= RL_PACER_RENEWALS;
  rl_lock *const order[] = {turn ? acquire : renewal, turn ? renewal : acquire};
  redlock_time until_us = REDLOCK_NEVER;
  pacer->closed_until_us = 0;
  if (renewal != NULL && renewal->timer.due_us <= now_us) {
    return renewal; /* PACE-2 */
  }
  for (unsigned i = 0; i < 2; i++) {
    if (order[i] != NULL && rl_pacer_is_open(core, now_us, order[i], &until_us)) {
      return order[i];
    }
  }
  if (entropy || rl_lock_queue_first(&pacer->acquires) == NULL) {
    pacer->closed_until_us = until_us;
  }
  return NULL;
}

/* ACQ-1, EXT-1. Begins the round, unless the operation ends instead. */
static void rl_pacer_one(rl_lock *lock, redlock_time now_us, const unsigned char *entropy) {
  const rl_steps *steps = lock->core->upper->steps[lock->operation];
  rl_begun begun = steps->begin != NULL ? steps->begin(lock, now_us, entropy) : RL_BEGUN;
  if (begun == RL_BEGUN_TOO_LATE) {
    rl_pacer_give_up(lock, now_us);
  } else if (begun == RL_BEGUN) {
    rl_outbox_leave(lock);
    rl_round_start(lock, now_us);
  }
}

void rl_pacer_send(rl_core *core, redlock_time now_us, const unsigned char *entropy,
                   size_t entropy_length) {
  rl_pacer *pacer = &core->pacer;
  for (unsigned sent = 0; sent < RL_PACER_MAX; sent++) {
    rl_lock *lock = rl_pacer_next(core, now_us, entropy_length >= RL_LOCK_ENTROPY);
    if (lock == NULL) {
      return;
    }
    if (lock->operation != RL_OPERATION_ACQUIRE) {
      pacer->renewals_in_a_row++;
      if (now_us >= lock->budget_ends_us) {
        rl_pacer_give_up(lock, now_us);
      } else {
        rl_pacer_one(lock, now_us, NULL);
      }
      continue;
    }
    pacer->renewals_in_a_row = 0;
    if (rl_waitlist_enter(lock, now_us, entropy) || rl_notify_enqueue_first(lock, now_us)) {
      continue;
    }
    rl_pacer_one(lock, now_us, entropy);
    entropy += RL_LOCK_ENTROPY;
    entropy_length -= RL_LOCK_ENTROPY;
  }
}
