/*
 * Launching: what has been begun and not been sent, and when it may be.
 *
 * SPDX-License-Identifier: MIT
 *
 *   L1. What is held goes before what is wanted: extends and releases, then acquires. But every fourth
 *       launch is an acquire's, so that leases that are extended all the time keep nobody out.
 *   L2. Extends go by their deadlines, the nearest first; an extend that reaches its deadline ends, and so does one
 *       for an acquire (O3 of rl_reentry.c) that reaches the end of its budget. A release goes before what is
 *       left for longer than a third of its ttl, for its caller waits: of thousands of leases that keep
 *       themselves, extends always wait. After that time it goes whatever the window says. One that nobody
 *       waits for goes at once, for its caller may not come again.
 *   L3. Acquires go in the order in which they were begun. They wait for as long as their budget, or
 *       their ttl, whichever is shorter.
 *   L4. The window is open while a majority of the nodes, or as many as the operation needs, may be asked and
 *       none owes far too much. A node that is behind is not counted: it could not answer in time anyway. Where
 *       not so many could be had by waiting, nobody waits. An acquire then fails. What is held waits for full nodes
 *       that are behind, too: they may go on, the lease has time, and after 3 s of silence their
 *       connections end. But for one that owes far too much an extend waits no longer than a quarter of what the lease
 *       has left, whatever |node_timeout| is.
 *   L5. A node to which the first connection is on its way will be sent a command of each round in flight when it is
 *       there. Until then, but no longer than a node may be behind, it owes as many.
 */
#include "lifecycle/rl_pacer.h"

#include "lock/rl_outbox.h"
#include "lock/rl_round.h"
#include "lock/rl_steps.h"
#include "wait/rl_notify.h"
#include "wait/rl_waitlist.h"

/* -------------------------------------------------------------------------------- the window */

/* L5. Until when the node owes a command of each round in flight; 0 when it does not, or does not owe too much. */
static redlock_time rl_pacer_awaited(const rl_core *core, const rl_node *node,
                                     redlock_duration patience_us) {
  const rl_pacer *pacer = &core->pacer;
  size_t in_flight = core->busy_count - pacer->acquire_count - pacer->renewals.count -
                     core->waitlists->queued_count;
  bool on_its_way = node->link.phase == RL_LINK_CONNECTING || node->link.phase == RL_LINK_HANDSHAKE;
  bool first = node->failures == 0; /* Or the first since the node was well. */
  return on_its_way && first && in_flight >= pacer->window
             ? rl_time_add(node->tried_us, patience_us)
             : 0;
}

/* L4. After how long a node that answers nothing is behind, for |lock|. */
static redlock_duration rl_pacer_patience(const rl_lock *lock, redlock_time now_us) {
  redlock_duration patience_us = rl_round_patience(lock);
  return lock->operation == RL_OPERATION_EXTEND
             ? rl_time_min(patience_us, rl_time_sub(lock->deadline_us, now_us) / 4)
             : patience_us;
}

/* L4. Whether |lock| may be launched; else |*until_us| is made no later than when to look again. */
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
    redlock_duration behind_us = rl_link_oldest_age(link, now_us);
    redlock_duration window = pacer->window + link->nearest_us / pacer->command_us;
    if (link->outstanding_count < window) {
      ready++;
    } else if (behind_us <= patience_us) {
      full++;
      overfull = overfull || link->outstanding_count / RL_PACER_OVERFULL >= window;
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
    rl_lock_end(lock, now_us, lock->result); /* The votes of the attempt before say why. */
    return;
  }
  const char *reason = rl_pacer_is_open(lock->core, now_us, lock, &until_us)
                           ? "not asked before the budget expired"
                           : "too many commands are waiting for the node";
  for (unsigned i = 0; i < lock->core->node_count; i++) {
    rl_round_settle(lock, i, REDLOCK_VOTE_UNKNOWN, reason, REDLOCK_NEVER);
  }
  rl_lock_end(lock, now_us, REDLOCK_E_UNAVAILABLE);
}

bool rl_pacer_wanted(const rl_core *core) {
  const rl_pacer *pacer = &core->pacer;
  bool waiting = pacer->renewals.count > 0 || pacer->acquire_count > 0;
  return (waiting && pacer->closed_until_us <= core->now_us) ||
         rl_timers_next(&pacer->renewals) <= core->now_us;
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

/* --------------------------------------------------------------------------------- launching */

/* L1. The next lock to be launched, or NULL, and then when to look again is noted. */
static rl_lock *rl_pacer_next(rl_core *core, redlock_time now_us, bool entropy) {
  rl_pacer *pacer = &core->pacer;
  rl_lock *renewal = pacer->renewals.count > 0 ? rl_lock_of_timer(pacer->renewals.heap[0]) : NULL;
  rl_lock *acquire = entropy ? rl_lock_queue_first(&pacer->acquires) : NULL;
  bool turn = pacer->renewals_in_a_row >= RL_PACER_RENEWALS;
  rl_lock *const order[] = {turn ? acquire : renewal, turn ? renewal : acquire};
  redlock_time until_us = REDLOCK_NEVER;
  pacer->closed_until_us = 0;
  if (renewal != NULL && renewal->timer.due_us <= now_us) {
    return renewal; /* L2 */
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

/* A1, E1. Its round begins, unless the operation ends instead. */
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
  for (unsigned launched = 0; launched < RL_PACER_MAX; launched++) {
    rl_lock *lock = rl_pacer_next(core, now_us, entropy_length >= RL_LOCK_ENTROPY);
    if (lock == NULL) {
      return;
    }
    if (lock->operation != RL_OPERATION_ACQUIRE) {
      pacer->renewals_in_a_row++;
      if (now_us >= lock->budget_us) {
        rl_pacer_give_up(lock, now_us);
      } else {
        rl_pacer_one(lock, now_us, NULL);
      }
      continue;
    }
    pacer->renewals_in_a_row = 0;
    if (rl_waitlist_enter(lock, now_us, entropy) || rl_notify_waits_first(lock, now_us)) {
      continue;
    }
    rl_pacer_one(lock, now_us, entropy);
    entropy += RL_LOCK_ENTROPY;
    entropy_length -= RL_LOCK_ENTROPY;
  }
}
