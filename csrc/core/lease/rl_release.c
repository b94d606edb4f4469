/*
 * Releasing: the operation, and what attempts have left on nodes.
 *
 * SPDX-License-Identifier: MIT
 *
 * "Distributed Locks with Redis": the client deletes the key on all instances, if the key has the
 * random value, and also where the client believes that it has no key.
 *   REL-1. The lease ends before the first byte (rl_lock_release()).
 *   REL-2. Send compare-and-delete to each node that may have the key: not to those whose answer
 *          proves that they set nothing. If a caller's token was never a lease, send it only to
 *          nodes that confirmed the key (rl_release_wanted()). Before the end of |hold_at_least|
 *          send HOLD in its place (rl_hold.h).
 *   REL-3. Count votes (rl_quorum.c). A release that cannot be sent yet stays in the list when the
 *          operation has ended.
 * A failed attempt, a freed lock and a closed client leave tokens for which no caller waits. Only
 * REL-2 applies to them. They stay in the list until each node has got the release, or the keys
 * have expired. If more than RL_RELEASE_NODE_MAX releases are due on a node, the oldest are
 * forgotten.
 */
#include "lease/rl_release.h"

#include <assert.h>
#include <string.h>

#include "lease/rl_hold.h"
#include "lease/rl_slots.h"
#include "lease/rl_twin.h"
#include "lock/rl_lock.h"
#include "lock/rl_outbox.h"
#include "lock/rl_round.h"
#include "node/rl_link_queue.h"
#include "node/rl_native.h"
#include "wait/rl_notify.h"
#include "wait/rl_waitlist.h"

/* ---------------------------------------------------------------------------------- the list */

/*
 * The state of a release on one node (bits of the attempt):
 *
 *   state     bits             left by
 *   due       |due|            rl_release_send(): sent; rl_release_forget_oldest(): forgotten
 *   delayed   |due|, |delayed| the end of the delay, the answer to the SET, a new connection, or
 *                              rl_release_send_now(): due
 *   sent      neither          rl_release_due_again(): due; rl_release_postpone(): delayed
 *
 * An attempt is listed while it is due on a node and its keys may live. rl_release_send_or_list()
 * sends what may be sent now, and lists or unlists the attempt.
 */

/* Adjusts due_count of each node to a changed set of due nodes. */
static void rl_release_adjust_due_counts(rl_core *core, uint32_t before, uint32_t after) {
  for (unsigned i = 0; i < core->node_count && before != after; i++) {
    core->nodes[i]->due_count += after >> i & 1;
    core->nodes[i]->due_count -= before >> i & 1;
  }
}

static void rl_release_set_due(rl_core *core, rl_attempt *attempt, uint32_t due) {
  if (rl_attempt_is_queued(attempt)) {
    rl_release_adjust_due_counts(core, attempt->due, due);
  }
  attempt->due = due;
  attempt->delayed &= due;
}

static void rl_release_unlist(rl_core *core, rl_attempt *attempt) {
  if (!rl_attempt_is_queued(attempt)) {
    return;
  }
  rl_list_remove(&attempt->queue);
  rl_release_adjust_due_counts(core, attempt->due, 0);
  core->releases->count--;
  rl_attempt_unref(&core->attempts, attempt);
}

/*
 * Too many releases are due on |node|: forgets its oldest releases, of leases if |held|, otherwise
 * of failed attempts. Returns how many it has forgotten.
 */
static unsigned rl_release_forget_oldest(rl_core *core, const rl_node *node, bool held) {
  unsigned forgotten = 0;
  RL_LIST_EACH(&core->releases->queue, attempt, rl_attempt, queue) {
    if (attempt->held != held || (attempt->due & rl_node_bit(node)) == 0) {
      continue;
    }
    if (forgotten == RL_RELEASE_FORGOTTEN) {
      break;
    }
    forgotten++;
    rl_release_set_due(core, attempt, attempt->due & ~rl_node_bit(node));
    if (attempt->due == 0) {
      rl_release_unlist(core, attempt);
    }
  }
  return forgotten;
}

static void rl_release_list(rl_core *core, rl_attempt *attempt) {
  if (rl_attempt_is_queued(attempt)) {
    return;
  }
  (void)rl_attempt_ref(attempt);
  rl_list_append(&core->releases->queue, &attempt->queue);
  rl_release_adjust_due_counts(core, 0, attempt->due);
  core->releases->count++;
  for (unsigned i = 0; i < core->node_count; i++) {
    const rl_node *node = core->nodes[i];
    if (node->due_count > RL_RELEASE_NODE_MAX && rl_release_forget_oldest(core, node, false) == 0) {
      (void)rl_release_forget_oldest(core, node, true);
    }
  }
}

static void rl_release_wake_at(rl_core *core, redlock_time at_us) {
  core->releases->again_at_us = rl_time_min(core->releases->again_at_us, at_us);
}

/* Makes the release due on |node| at |at_us|. */
static void rl_release_postpone(rl_core *core, rl_attempt *attempt, const rl_node *node,
                                redlock_time at_us) {
  attempt->delayed_until_us =
      attempt->delayed == 0 ? at_us : rl_time_min(attempt->delayed_until_us, at_us);
  rl_release_set_due(core, attempt, attempt->due | rl_node_bit(node));
  attempt->delayed |= rl_node_bit(node);
  rl_release_list(core, attempt);
  rl_release_wake_at(core, at_us);
}

/* ------------------------------------------------------------------------------------- REL-2 */

/*
 * Returns true if the release must wait before it is sent to the nodes |delayed|. If the process
 * was stopped, the delay may be over while answers are unread: then the release waits until they
 * are read.
 */
static bool rl_release_must_wait(const rl_core *core, redlock_time now_us,
                                 const rl_attempt *attempt) {
  bool reading = core->releases->reading && attempt->expired_us > now_us;
  return attempt->delayed != 0 && (attempt->delayed_until_us > now_us || reading);
}

static void rl_release_send(rl_core *core, redlock_time now_us, rl_attempt *attempt, bool grow) {
  uint32_t round = attempt->lock != NULL ? attempt->lock->round : 0;
  bool wait = rl_release_must_wait(core, now_us, attempt);
  for (unsigned i = 0; i < core->node_count; i++) {
    rl_node *node = core->nodes[i];
    uint32_t bit = rl_node_bit(node);
    if ((attempt->due & bit) == 0 || (wait && (attempt->delayed & bit) != 0) ||
        node->link.phase != RL_LINK_UP) {
      continue;
    }
    if (!rl_link_has_room(&node->link, RL_OUTSTANDING_RELEASE)) {
      node->release_blocked = true;
    } else if (rl_link_queue_release(&node->link, now_us, attempt, round, false, grow)) {
      rl_release_set_due(core, attempt, attempt->due & ~bit);
    } else if (grow) {
      rl_release_wake_at(core, rl_time_add(now_us, RL_RELEASE_RETRY_US)); /* Out of memory. */
    } else {
      core->releases->again = true; /* The next turn may allocate. */
    }
  }
  if (wait && attempt->delayed != 0) {
    rl_release_wake_at(core, attempt->delayed_until_us);
  }
}

/* Sends what can be sent, and keeps the rest in the list until the keys have expired. */
static void rl_release_send_or_list(rl_core *core, redlock_time now_us, rl_attempt *attempt,
                                    bool grow) {
  bool expired = attempt->expired_us <= now_us;
  if (!expired || !rl_attempt_is_queued(attempt)) {
    rl_release_send(core, now_us, attempt, grow);
  }
  /* |due| keeps the nodes that got no release: the operation reads it. */
  if (expired || attempt->due == 0) {
    rl_release_unlist(core, attempt);
  } else {
    rl_release_list(core, attempt);
  }
}

/*
 * Returns the nodes that need a release:
 *   - nodes that may have the key: they have not answered a release, nor refused each SET
 *   - nodes that may still execute a SET of an ended connection, whatever they have answered
 *   - nodes whose queue has the ticket of the lease, which the release dequeues (rl_notify.c)
 * Another client may use a caller-supplied token. If such an attempt was never a lease, only nodes
 * that have confirmed the key are released. On other nodes the key may be the other client's, and a
 * key of this client expires.
 */
static uint32_t rl_release_wanted(const rl_attempt *attempt) {
  if (attempt->custom && !attempt->held) {
    return attempt->confirmed & ~attempt->released;
  }
  uint32_t done = attempt->released | rl_attempt_refused(attempt);
  uint32_t queued = attempt->enqueued & ~attempt->released;
  return attempt->sent & (attempt->may_set | queued | ~done);
}

void rl_release_begin(rl_core *core, redlock_time now_us, rl_attempt *attempt, bool grow) {
  attempt->releasing = true;
  rl_release_set_due(core, attempt, rl_release_wanted(attempt));
  rl_release_send_or_list(core, now_us, attempt, grow || core->releases->count >= RL_RELEASE_GROW);
  if (attempt->held) {
    rl_notify_free_ticket(core, attempt, false);
    if (rl_attempt_keep_ms(attempt, now_us) == 0) {
      rl_slots_released(core, attempt);
      rl_waitlist_released(core, attempt->resource, now_us);
    }
  }
}

void rl_release_and_drop(rl_lock *lock, redlock_time now_us, rl_attempt *attempt, bool grow) {
  if (attempt == NULL) {
    return;
  }
  attempt->lock = NULL;
  if (!attempt->releasing) {
    rl_release_begin(lock->core, now_us, attempt, grow);
  }
  rl_attempt_unref(&lock->core->attempts, attempt);
}

void rl_release_begin_failed_attempt(rl_lock *lock, redlock_time now_us, rl_attempt *attempt) {
  assert(lock->failed == NULL);
  attempt->delayed = attempt->set_outstanding;
  attempt->delayed_until_us =
      rl_time_min(rl_time_add(now_us, RL_RELEASE_ANSWER_US), lock->round_deadline_us);
  (void)rl_attempt_ref(attempt);
  rl_release_and_drop(lock, now_us, attempt, true);
  if (attempt->delayed != 0) {
    lock->failed = attempt;
  } else {
    rl_attempt_unref(&lock->core->attempts, attempt);
  }
}

/* Sends a release now that waits for the answer to its SET. */
static void rl_release_send_now(rl_core *core, redlock_time now_us, rl_attempt *attempt,
                                bool grow) {
  if (rl_attempt_is_queued(attempt) && (attempt->delayed & attempt->set_outstanding) != 0) {
    attempt->delayed &= ~attempt->set_outstanding;
    rl_release_send_or_list(core, now_us, attempt, grow);
  }
}

void rl_release_hurry_failed_attempt(rl_lock *lock, redlock_time now_us, bool grow) {
  rl_attempt *failed = lock->failed;
  if (failed != NULL) {
    lock->failed = NULL;
    rl_release_send_now(lock->core, now_us, failed, grow);
    rl_attempt_unref(&lock->core->attempts, failed);
  }
}

void rl_release_hurry(rl_core *core, redlock_time now_us) {
  RL_LIST_EACH(&core->releases->queue, attempt, rl_attempt, queue) {
    rl_release_send_now(core, now_us, attempt, true);
  }
}

void rl_release_send_all(rl_core *core, redlock_time now_us) {
  core->releases->again = false;
  core->releases->again_at_us = REDLOCK_NEVER;
  RL_LIST_EACH(&core->releases->queue, attempt, rl_attempt, queue) {
    rl_release_send_or_list(core, now_us, attempt, true);
  }
}

void rl_release_node_came_up(rl_core *core, redlock_time now_us, const rl_node *node) {
  RL_LIST_EACH(&core->releases->queue, attempt, rl_attempt, queue) {
    /* Only a release that this node has not answered becomes due now. */
    attempt->delayed &= ~rl_node_bit(node) | attempt->released;
  }
  rl_release_send_all(core, now_us);
}

uint32_t rl_release_due(const rl_core *core) {
  uint32_t due = 0;
  RL_LIST_EACH(&core->releases->queue, attempt, rl_attempt, queue) {
    due |= attempt->expired_us > core->now_us ? attempt->due & ~attempt->released : 0;
  }
  return due;
}

/* ----------------------------------------------------------------------------------- answers */

/* Makes the release due again: the node may execute the SET after it. */
static void rl_release_due_again(rl_core *core, redlock_time now_us, rl_attempt *attempt,
                                 uint32_t bit) {
  if (attempt->releasing && (rl_release_wanted(attempt) & bit) != 0 &&
      attempt->expired_us > now_us) {
    rl_release_set_due(core, attempt, attempt->due | bit);
    attempt->delayed &= ~bit;
    rl_release_list(core, attempt);
  }
}

/*
 * A SET was answered: notes if the node may have the key, and sends the release that waited for the
 * answer. If the node refused this SET, an earlier SET with the token may still have set the key.
 */
static void rl_release_note_set_answer(rl_core *core, redlock_time now_us,
                                       const rl_outstanding *command, uint32_t bit,
                                       const rl_verdict *verdict) {
  rl_attempt *attempt = command->attempt;
  attempt->set_outstanding &= ~bit;
  attempt->delayed &= ~bit;
  attempt->refused &= verdict->set_nothing ? ~0u : ~bit;
  if (verdict->set_nothing) {
    rl_release_set_due(core, attempt, attempt->due & (rl_release_wanted(attempt) | ~bit));
  } else if (verdict->unreadable) {
    attempt->may_set |= bit;
    rl_attempt_unanswered(attempt, now_us);
    rl_release_due_again(core, now_us, attempt, bit);
  } else if (verdict->ran) {
    attempt->confirmed |= attempt->held ? 0 : bit;
    if (attempt->custom) {
      rl_release_due_again(core, now_us, attempt, bit); /* The key is certainly ours. */
    }
  }
  if (rl_attempt_is_queued(attempt)) {
    rl_release_send_or_list(core, now_us, attempt, true);
  }
}

/*
 * Repeats the release on a node that may still execute a SET of an ended connection: 0.5 s, 1 s,
 * 2 s ... after that end, as long as the key may live.
 */
static void rl_release_repeat_after_break(rl_core *core, const rl_node *node, redlock_time now_us,
                                          rl_attempt *attempt) {
  redlock_time ended_us = rl_time_sub(attempt->expired_us, attempt->life_us);
  redlock_duration delay_us = rl_time_max(rl_time_sub(now_us, ended_us), RL_RELEASE_RETRY_US);
  if (rl_time_add(now_us, delay_us) < attempt->expired_us) {
    rl_release_postpone(core, attempt, node, rl_time_add(now_us, delay_us));
  }
}

/*
 * Repeats a release that the node has not executed, as long as the key may live: the node may be
 * loading or busy. Does not repeat it if the SET was refused, or if the user lacks the right.
 */
static void rl_release_repeat_after_error(rl_core *core, const rl_node *node, redlock_time now_us,
                                          rl_attempt *attempt, const char *error) {
  bool wanted = (rl_release_wanted(attempt) & rl_node_bit(node)) != 0;
  if (wanted && attempt->expired_us > now_us && strncmp(error, "NOPERM", 6) != 0 &&
      strncmp(error, "NOAUTH", 6) != 0) {
    rl_release_postpone(core, attempt, node, rl_time_add(now_us, RL_RELEASE_RETRY_US));
  }
}

void rl_release_answered(rl_core *core, rl_node *node, redlock_time now_us,
                         const rl_outstanding *command, const rl_verdict *verdict,
                         const char *error) {
  rl_attempt *attempt = command->attempt;
  uint32_t bit = rl_node_bit(node);
  if (rl_outstanding_has(command, RL_CREATES)) {
    rl_release_note_set_answer(core, now_us, command, bit, verdict);
  } else if (rl_outstanding_has(command, RL_PROLONGS)) {
    if (verdict->unreadable) {
      rl_attempt_unanswered(attempt, now_us);
      attempt->may_shorten |= command->script == RL_SCRIPT_NONE ? bit : 0; /* NAT-5 */
    }
  } else if (!rl_outstanding_has(command, RL_RELEASES)) {
    return;
  } else if (verdict->vote == REDLOCK_VOTE_GRANTED) {
    rl_native_try_after_release(&node->link, now_us, attempt); /* NAT-1 */
    if (verdict->notified) {
      rl_notify_note_contention(core, attempt->resource, now_us);
    }
    attempt->released |= bit;
    rl_hold_answered(attempt, bit, true);
    if (rl_hold_note_late(attempt, now_us, bit, command)) {
      rl_release_postpone(core, attempt, node, rl_time_max(attempt->keep_until_us, now_us));
    }
    attempt->may_set &= ~bit; /* The node had executed the SET. */
  } else if (!verdict->ran) {
    if (verdict->unreadable && attempt->keep_until_us != 0) { /* The connection ends. */
      rl_hold_unanswered(attempt, bit);
      rl_attempt_unanswered(attempt, now_us);
    }
    rl_release_repeat_after_error(core, node, now_us, attempt, error);
  } else {
    attempt->released |= bit;
    rl_hold_answered(attempt, bit, false);
    if ((attempt->may_set & bit) != 0) {
      rl_release_repeat_after_break(core, node, now_us, attempt);
    }
  }
}

void rl_release_unanswered(rl_core *core, const rl_node *node, redlock_time now_us,
                           const rl_outstanding *command) {
  rl_attempt *attempt = command->attempt;
  uint32_t bit = rl_node_bit(node);
  if (!rl_outstanding_has(command, RL_CREATES | RL_PROLONGS | RL_RELEASES)) {
    return;
  }
  rl_hold_unanswered(attempt, bit);
  if (!rl_outstanding_has(command, RL_RELEASES) || attempt->keep_until_us != 0) {
    rl_attempt_unanswered(attempt, now_us);
  }
  if (rl_outstanding_has(command, RL_CREATES)) {
    attempt->may_set |= bit;
    attempt->set_outstanding &= ~bit;
    attempt->refused &= ~bit;
  } else if (rl_outstanding_has(command, RL_PROLONGS)) {
    attempt->may_shorten |= command->script == RL_SCRIPT_NONE ? bit : 0; /* NAT-5 */
  }
  rl_release_due_again(core, now_us, attempt, bit);
}

void rl_release_check_room(rl_core *core, rl_node *node) {
  if (node->release_blocked && rl_link_has_room(&node->link, RL_OUTSTANDING_RELEASE)) {
    node->release_blocked = false;
    core->releases->again = true;
  }
}

void rl_release_advance(rl_core *core, redlock_time now_us) {
  if (core->releases->again_at_us <= now_us) {
    core->releases->again_at_us = REDLOCK_NEVER;
    core->releases->again = true;
  }
}

void rl_release_reset(rl_core *core) {
  RL_LIST_EACH(&core->releases->queue, attempt, rl_attempt, queue) {
    rl_release_set_due(core, attempt, 0);
    rl_release_unlist(core, attempt);
  }
  core->releases->again = false;
  core->releases->again_at_us = REDLOCK_NEVER;
}

/* ----------------------------------------------------------------------------- the operation */

/* Returns why the release is still due on the connected |node|. */
static const char *rl_release_why_due(const rl_attempt *attempt, redlock_time now_us,
                                      const rl_node *node) {
  return attempt->expired_us <= now_us ? "its key has expired"
         : !rl_link_has_room(&node->link, RL_OUTSTANDING_RELEASE)
             ? "too many commands are waiting for the node"
             : "out of memory";
}

/* Settles the vote of a node that has answered an earlier release of the lock. */
static void rl_release_settle_released(rl_lock *lock, redlock_time now_us, const rl_node *node) {
  const rl_attempt *attempt = lock->attempt;
  if (node->twins != 0 && rl_attempt_keep_ms(attempt, now_us) > 0) {
    rl_round_settle(lock, node->index, REDLOCK_VOTE_ERROR, node->error); /* A twin may keep it. */
    return;
  }
  bool broken = rl_hold_is_broken(attempt, now_us, rl_node_bit(node));
  rl_round_settle_copy(lock, node->index, broken ? REDLOCK_VOTE_TAKEN : REDLOCK_VOTE_GRANTED, NULL);
}

/* REL-2 */
static void rl_release_send_to_all(rl_lock *lock, redlock_time now_us) {
  rl_core *core = lock->core;
  rl_attempt *attempt = lock->attempt;
  attempt->delayed = 0;
  attempt->caller_awaits = !lock->abandoned;
  rl_release_begin(core, now_us, attempt, true);
  for (unsigned i = 0; i < core->node_count; i++) {
    rl_node *node = core->nodes[i];
    uint32_t bit = rl_node_bit(node);
    if ((attempt->sent & bit) == 0) {
      lock->votes[i].settled = true;
      rl_round_set_reason(lock, i, "nothing was sent to it");
      lock->quorum.unsent++;
    } else if ((attempt->released & bit) != 0) {
      rl_release_settle_released(lock, now_us, node);
    } else if ((rl_attempt_refused(attempt) & bit) != 0) {
      rl_round_settle_copy(lock, i, REDLOCK_VOTE_TAKEN, NULL);
    } else if ((attempt->due & bit) == 0) {
      continue; /* The release is outstanding. */
    } else if (node->link.phase == RL_LINK_UP) {
      rl_round_settle(lock, i, REDLOCK_VOTE_ERROR, rl_release_why_due(attempt, now_us, node));
    } else if (node->link.phase != RL_LINK_DOWN || rl_node_wants_connection(node, now_us)) {
      rl_round_await(lock, node);
    } else {
      rl_round_settle(lock, i, REDLOCK_VOTE_ERROR, node->error);
    }
  }
}

/* An awaited node has come up, and rl_release_send_all() has tried to send. */
static void rl_release_node_up(rl_lock *lock, redlock_time now_us, const rl_node *node) {
  if ((lock->attempt->due & rl_node_bit(node)) != 0) {
    rl_round_settle(lock, node->index, REDLOCK_VOTE_ERROR,
                    rl_release_why_due(lock->attempt, now_us, node));
  }
}

/*
 * HLD-3. Too few nodes keep the key. The result is "unavailable" if a majority can still keep it
 *        after a repeated release. A node cannot if it denies the key, or never had it.
 */
static int rl_release_result_of_hold(const rl_lock *lock) {
  unsigned lacking = 0u + lock->quorum.denied + lock->quorum.unsent;
  if (lock->quorum.nodes - lacking >= rl_quorum_majority(lock->quorum.nodes)) {
    return REDLOCK_E_UNAVAILABLE;
  }
  return lock->had_expired ? REDLOCK_E_EXPIRED : REDLOCK_E_LOST;
}

/*
 * REL-3. In a repeated release a denial is no loss: the first release may have deleted the key.
 */
static int rl_release_result(const rl_lock *lock, redlock_time now_us, rl_decision decision) {
  bool majority = lock->quorum.granted >= rl_quorum_majority(lock->quorum.nodes);
  if (!majority && rl_attempt_keep_ms(lock->attempt, now_us) > 0) {
    return rl_release_result_of_hold(lock);
  }
  if (decision == RL_DECISION_UNAVAILABLE) {
    return REDLOCK_E_UNAVAILABLE;
  }
  if (lock->had_expired && !majority) {
    return REDLOCK_E_EXPIRED;
  }
  return decision == RL_DECISION_DENIED && !lock->repeated ? REDLOCK_E_LOST : REDLOCK_OK;
}

static void rl_release_ended(rl_lock *lock, redlock_time now_us, int result) {
  rl_attempt *attempt = lock->attempt;
  lock->attempt = NULL;
  rl_lock_end(lock, now_us, result);
  if (result == REDLOCK_E_UNAVAILABLE) { /* The caller may repeat the release. */
    lock->unreleased = attempt;
  } else {
    rl_release_and_drop(lock, now_us, attempt, true);
  }
}

/* REL-3 */
static void rl_release_decide(rl_lock *lock, redlock_time now_us) {
  rl_decision decision = rl_quorum_decide_release(&lock->quorum);
  if (decision != RL_DECISION_NONE) {
    rl_release_ended(lock, now_us, rl_release_result(lock, now_us, decision));
  }
}

static bool rl_release_resend(rl_node *node, redlock_time now_us, const rl_outstanding *command) {
  return !rl_twin_test_is_over(node, command->attempt) &&
         rl_link_queue_release(&node->link, now_us, command->attempt, command->round, true, true);
}

const rl_steps rl_release_steps = {
    .send_again = rl_release_resend,
    .send_to_all = rl_release_send_to_all,
    .node_up = rl_release_node_up,
    .decide = rl_release_decide,
};
