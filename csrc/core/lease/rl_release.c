/*
 * Releasing: the operation, and what attempts have left on nodes.
 *
 * SPDX-License-Identifier: MIT
 *
 * RELEASE ("Distributed Locks with Redis": the client releases by deleting the key only if it holds
 * the random value; this is done on all instances, whether or not the client believes that it got
 * the lock there):
 *   R1. The lease ends, before the first byte (rl_lock_release()).
 *   R2. Compare-and-delete on every node to which a SET may have gone, whatever it answered.
 *   R3. Count votes (rl_quorum.c). What is still to be sent goes on without the operation.
 * An attempt that failed, a lock that is freed and a client that is closed leave tokens behind that
 * nobody waits for. They take step R2 only, and stand in a list until every node has been told.
 */
#include "lease/rl_release.h"

#include <assert.h>
#include <string.h>

#include "lease/rl_twin.h"
#include "lock/rl_lock.h"
#include "lock/rl_outbox.h"
#include "lock/rl_round.h"
#include "wait/rl_notify.h"
#include "wait/rl_waitlist.h"

/* ---------------------------------------------------------------------------------- the list */

/* Each node counts the releases of the list that are due on it. */
static void rl_release_count(rl_core *core, uint32_t before, uint32_t after) {
  for (unsigned i = 0; i < core->node_count && before != after; i++) {
    core->nodes[i]->due_count += after >> i & 1;
    core->nodes[i]->due_count -= before >> i & 1;
  }
}

static void rl_release_set_due(rl_core *core, rl_attempt *attempt, uint32_t due) {
  if (rl_attempt_is_queued(attempt)) {
    rl_release_count(core, attempt->due, due);
  }
  attempt->due = due;
  attempt->later &= due;
}

static void rl_release_unlist(rl_core *core, rl_attempt *attempt) {
  if (!rl_attempt_is_queued(attempt)) {
    return;
  }
  rl_list_remove(&attempt->queue);
  rl_release_count(core, attempt->due, 0);
  core->releases->count--;
  rl_attempt_unref(&core->attempts, attempt);
}

/* Too much is due on |node|: the oldest attempts are forgotten there, of one kind. */
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
  rl_release_count(core, 0, attempt->due);
  core->releases->count++;
  for (unsigned i = 0; i < core->node_count; i++) {
    const rl_node *node = core->nodes[i];
    if (node->due_count > RL_RELEASE_NODE_MAX && rl_release_forget_oldest(core, node, false) == 0) {
      (void)rl_release_forget_oldest(core, node, true);
    }
  }
}

/* Goes through the list again at |at_us|. */
static void rl_release_look_at(rl_core *core, redlock_time at_us) {
  core->releases->again_at_us = rl_time_min(core->releases->again_at_us, at_us);
}

/* The release is due on |node|, but not before |at_us|. */
static void rl_release_postpone(rl_core *core, rl_attempt *attempt, const rl_node *node,
                                redlock_time at_us) {
  attempt->later_us = attempt->later == 0 ? at_us : rl_time_min(attempt->later_us, at_us);
  rl_release_set_due(core, attempt, attempt->due | rl_node_bit(node));
  attempt->later |= rl_node_bit(node);
  rl_release_list(core, attempt);
  rl_release_look_at(core, at_us);
}

/* ---------------------------------------------------------------------------------------- R2 */

/*
 * Returns true if nodes are not to be asked yet that the release waits for. After a pause of the process the moment is over
 * before the answers are read that have come meanwhile: they are read first.
 */
static bool rl_release_waits(const rl_core *core, redlock_time now_us, const rl_attempt *attempt) {
  bool reading = core->releases->reading && attempt->expired_us > now_us;
  return attempt->later != 0 && (attempt->later_us > now_us || reading);
}

/* Sends the release of |attempt| to those nodes that it is due on and that can take it. */
static void rl_release_send(rl_core *core, redlock_time now_us, rl_attempt *attempt, bool grow) {
  uint32_t round = attempt->lock != NULL ? attempt->lock->round : 0;
  bool wait = rl_release_waits(core, now_us, attempt);
  for (unsigned i = 0; i < core->node_count; i++) {
    rl_node *node = core->nodes[i];
    uint32_t bit = rl_node_bit(node);
    if ((attempt->due & bit) == 0 || (wait && (attempt->later & bit) != 0) ||
        node->link.phase != RL_LINK_UP) {
      continue;
    }
    if (!rl_link_has_room(&node->link, RL_OUTSTANDING_RELEASE)) {
      node->release_blocked = true;
    } else if (rl_link_queue_release(&node->link, now_us, attempt, round, false, grow)) {
      rl_release_set_due(core, attempt, attempt->due & ~bit);
    } else if (grow) {
      rl_release_look_at(core, rl_time_add(now_us, RL_RELEASE_RETRY_US)); /* Out of memory. */
    } else {
      core->releases->again = true;
    }
  }
  if (wait && attempt->later != 0) {
    rl_release_look_at(core, attempt->later_us);
  }
}

/* Sends what can be sent, and keeps in the list what cannot; what has expired by itself is dropped. */
static void rl_release_go_on(rl_core *core, redlock_time now_us, rl_attempt *attempt, bool grow) {
  bool expired = attempt->expired_us <= now_us;
  if (!expired || !rl_attempt_is_queued(attempt)) {
    rl_release_send(core, now_us, attempt, grow);
  }
  /* What is due stays so: that is how the lock sees that it was not sent. */
  if (expired || attempt->due == 0) {
    rl_release_unlist(core, attempt);
  } else {
    rl_release_list(core, attempt);
  }
}

/*
 * The nodes that may have the token, or may yet have it: a release that was answered, or a SET that was
 * refused, tells nothing of a SET that a node has not read yet.
 * Where others may have the same token and the attempt was never a lease, only those that have certainly
 * set it: what was not answered may be the key of another, and a key of ours has its ttl.
 * A release also leaves the queues in which the lease has waited (rl_notify.c), where its SET was refused, too.
 */
static uint32_t rl_release_wanted(const rl_attempt *attempt) {
  if (attempt->custom && !attempt->held) {
    return attempt->set & ~attempt->released;
  }
  return attempt->sent & (attempt->uncertain | (attempt->enqueued & ~attempt->released) |
                          ~(attempt->released | attempt->refused));
}

void rl_release_begin(rl_core *core, redlock_time now_us, rl_attempt *attempt, bool grow) {
  attempt->releasing = true;
  rl_release_set_due(core, attempt, rl_release_wanted(attempt));
  rl_release_go_on(core, now_us, attempt, grow);
  if (attempt->held) {
    rl_notify_released(core, attempt, false);
    rl_waitlist_released(core, attempt->resource, now_us);
  }
}

void rl_release_let_go(rl_lock *lock, redlock_time now_us, rl_attempt *attempt, bool grow) {
  if (attempt == NULL) {
    return;
  }
  attempt->lock = NULL;
  if (!attempt->releasing) {
    rl_release_begin(lock->core, now_us, attempt, grow);
  }
  rl_attempt_unref(&lock->core->attempts, attempt);
}

void rl_release_failed(rl_lock *lock, redlock_time now_us, rl_attempt *attempt) {
  assert(lock->failed == NULL);
  attempt->later = attempt->asked;
  attempt->later_us =
      rl_time_min(rl_time_add(now_us, RL_RELEASE_ANSWER_US), lock->round_deadline_us);
  (void)rl_attempt_ref(attempt);
  rl_release_let_go(lock, now_us, attempt, true);
  if (attempt->later != 0) {
    lock->failed = attempt;
  } else {
    rl_attempt_unref(&lock->core->attempts, attempt);
  }
}

static void rl_release_wait_no_more(rl_core *core, redlock_time now_us, rl_attempt *attempt,
                                    bool grow) {
  if (rl_attempt_is_queued(attempt) && (attempt->later & attempt->asked) != 0) {
    attempt->later &= ~attempt->asked;
    rl_release_go_on(core, now_us, attempt, grow);
  }
}

void rl_release_settle_failed(rl_lock *lock, redlock_time now_us, bool grow) {
  rl_attempt *failed = lock->failed;
  if (failed != NULL) {
    lock->failed = NULL;
    rl_release_wait_no_more(lock->core, now_us, failed, grow);
    rl_attempt_unref(&lock->core->attempts, failed);
  }
}

void rl_release_hurry(rl_core *core, redlock_time now_us) {
  RL_LIST_EACH(&core->releases->queue, attempt, rl_attempt, queue) {
    rl_release_wait_no_more(core, now_us, attempt, true);
  }
}

void rl_release_continue(rl_core *core, redlock_time now_us) {
  core->releases->again = false;
  core->releases->again_at_us = REDLOCK_NEVER;
  RL_LIST_EACH(&core->releases->queue, attempt, rl_attempt, queue) {
    rl_release_go_on(core, now_us, attempt, true);
  }
}

void rl_release_node_came_up(rl_core *core, redlock_time now_us, const rl_node *node) {
  RL_LIST_EACH(&core->releases->queue, attempt, rl_attempt, queue) {
    attempt->later &= ~rl_node_bit(node) | attempt->released;
  }
  rl_release_continue(core, now_us);
}

/* The nodes on which a release of the list is due for the first time, or was not answered. */
uint32_t rl_release_due(const rl_core *core) {
  uint32_t due = 0;
  RL_LIST_EACH(&core->releases->queue, attempt, rl_attempt, queue) {
    due |= attempt->expired_us > core->now_us ? attempt->due & ~attempt->released : 0;
  }
  return due;
}

/* ----------------------------------------------------------------------------------- answers */

/* The node may read the SET only now, if ever: the release is due, even if it was given up already. */
static void rl_release_again(rl_core *core, redlock_time now_us, rl_attempt *attempt,
                             uint32_t bit) {
  if (attempt->releasing && (rl_release_wanted(attempt) & bit) != 0 &&
      attempt->expired_us > now_us) {
    rl_release_set_due(core, attempt, attempt->due | bit);
    attempt->later &= ~bit;
    rl_release_list(core, attempt);
  }
}

/*
 * A SET was answered. Where it was refused, or as a script was not known, it has set nothing, for no other
 * SET had this token.
 */
static void rl_release_set_answered(rl_core *core, redlock_time now_us,
                                    const rl_outstanding *command, uint32_t bit,
                                    rl_verdict verdict) {
  rl_attempt *attempt = command->attempt;
  attempt->asked &= ~bit;
  attempt->later &= ~bit;
  bool several = attempt->resource->count > 1;
  if (verdict.set_nothing && command->kind == RL_OUTSTANDING_HEAL && several) {
    return; /* The node may have kept some of the keys. */
  }
  if (verdict.set_nothing) {
    attempt->refused |= bit;
    rl_release_set_due(core, attempt, attempt->due & (rl_release_wanted(attempt) | ~bit));
  } else if (verdict.broken) {
    attempt->uncertain |= bit;
    rl_attempt_unanswered(attempt, now_us);
    rl_release_again(core, now_us, attempt, bit);
  } else if (verdict.ran) {
    attempt->set |= attempt->held ? 0 : bit;
    if (attempt->custom) {
      rl_release_again(core, now_us, attempt, bit); /* Now it is certain that the key is ours. */
    }
  }
  if (rl_attempt_is_queued(attempt)) {
    rl_release_go_on(core, now_us, attempt, true);
  }
}

/*
 * A node that may yet read a SET from a connection that has ended is asked again, and again in twice the
 * time, while the key could live.
 */
static void rl_release_repeat(rl_core *core, const rl_node *node, redlock_time now_us,
                              rl_attempt *attempt) {
  redlock_time ended_us = rl_time_sub(attempt->expired_us, attempt->life_us);
  redlock_duration delay_us = rl_time_max(rl_time_sub(now_us, ended_us), RL_RELEASE_RETRY_US);
  if (rl_time_add(now_us, delay_us) < attempt->expired_us) {
    rl_release_postpone(core, attempt, node, rl_time_add(now_us, delay_us));
  }
}

/*
 * A release that was answered with an error, of a node that is loading or busy, is tried again while
 * the key may live; not where its SET was refused, and not one that was refused for who we are.
 */
static void rl_release_retry(rl_core *core, const rl_node *node, redlock_time now_us,
                             rl_attempt *attempt, const char *error) {
  bool wanted = (rl_release_wanted(attempt) & rl_node_bit(node)) != 0;
  if (wanted && attempt->expired_us > now_us && strncmp(error, "NOPERM", 6) != 0 &&
      strncmp(error, "NOAUTH", 6) != 0) {
    rl_release_postpone(core, attempt, node, rl_time_add(now_us, RL_RELEASE_RETRY_US));
  }
}

/* What looks, what deletes and what raises counters leaves no key behind. */
static bool rl_release_needs_none(const rl_outstanding *command) {
  return command->kind == RL_OUTSTANDING_CONFIRM || command->kind >= RL_OUTSTANDING_ASK;
}

void rl_release_answered(rl_core *core, const rl_node *node, redlock_time now_us,
                         const rl_outstanding *command, rl_verdict verdict, const char *error) {
  rl_attempt *attempt = command->attempt;
  uint32_t bit = rl_node_bit(node);
  if (rl_release_needs_none(command)) {
    return;
  }
  if (command->kind == RL_OUTSTANDING_ACQUIRE || command->kind == RL_OUTSTANDING_HEAL ||
      command->kind == RL_OUTSTANDING_ATTACH) {
    rl_release_set_answered(core, now_us, command, bit, verdict);
  } else if (command->kind == RL_OUTSTANDING_EXTEND) {
    if (verdict.broken) {
      rl_attempt_unanswered(attempt, now_us);
    }
  } else if (verdict.vote == REDLOCK_VOTE_GRANTED) {
    if (verdict.notified) {
      rl_notify_note_contention(core, attempt->resource, now_us);
    }
    attempt->released |= bit;
    attempt->uncertain &= ~bit; /* It had executed the SET. */
  } else if (!verdict.ran) {
    rl_release_retry(core, node, now_us, attempt, error);
  } else {
    attempt->released |= bit;
    if ((attempt->uncertain & bit) != 0) {
      rl_release_repeat(core, node, now_us, attempt);
    }
  }
}

void rl_release_unanswered(rl_core *core, const rl_node *node, redlock_time now_us,
                           const rl_outstanding *command) {
  rl_attempt *attempt = command->attempt;
  uint32_t bit = rl_node_bit(node);
  if (rl_release_needs_none(command)) {
    return;
  }
  if (command->kind != RL_OUTSTANDING_RELEASE) {
    rl_attempt_unanswered(attempt, now_us);
    if (command->kind != RL_OUTSTANDING_EXTEND) { /* An extend creates nothing. */
      attempt->uncertain |= bit;
      attempt->asked &= ~bit;
    }
  }
  rl_release_again(core, now_us, attempt, bit);
}

void rl_release_room(rl_core *core, rl_node *node) {
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

/* R2: a release has its own list of nodes, and goes on when the operation has ended. */
/* R2 */
static void rl_release_ask(rl_lock *lock, redlock_time now_us) {
  rl_core *core = lock->core;
  rl_attempt *attempt = lock->attempt;
  attempt->later = 0;
  rl_release_begin(core, now_us, attempt, true);
  for (unsigned i = 0; i < core->node_count; i++) {
    rl_node *node = core->nodes[i];
    uint32_t bit = rl_node_bit(node);
    if ((attempt->sent & bit) == 0) {
      lock->votes[i].settled = true;
      rl_round_set_reason(lock, i, "nothing was sent to it");
      lock->quorum.unsent++;
    } else if ((attempt->released & bit) != 0) {
      rl_round_settle(lock, i, REDLOCK_VOTE_GRANTED, NULL, REDLOCK_NEVER);
    } else if ((attempt->refused & ~attempt->uncertain & bit) != 0) {
      rl_round_settle(lock, i, REDLOCK_VOTE_TAKEN, NULL, REDLOCK_NEVER);
    } else if ((attempt->due & bit) == 0) {
      continue; /* It has been sent. */
    } else if (node->link.phase == RL_LINK_UP) {
      rl_round_settle(lock, i, REDLOCK_VOTE_ERROR, "too many commands are waiting for the node",
                      REDLOCK_NEVER);
    } else if (node->link.phase != RL_LINK_DOWN || rl_node_wants_connection(node, now_us)) {
      rl_round_await(lock, node);
    } else {
      rl_round_settle(lock, i, REDLOCK_VOTE_ERROR, node->error, REDLOCK_NEVER);
    }
  }
}

/* A node that the release waited for has come up, and rl_release_continue() has been there. */
static void rl_release_node_up(rl_lock *lock, redlock_time now_us, const rl_node *node) {
  if ((lock->attempt->due & rl_node_bit(node)) != 0) {
    bool gone = lock->attempt->expired_us <= now_us;
    rl_round_settle(lock, node->index, REDLOCK_VOTE_ERROR,
                    gone ? "its key has expired by now" : "the release could not be queued",
                    REDLOCK_NEVER);
  }
}

/*
 * R3. What a release ends with. When it is repeated, a node may say "not there" because the first one
 * has deleted the key: that is no loss.
 */
static int rl_release_result(const rl_lock *lock, rl_decision decision) {
  bool majority = lock->quorum.granted >= rl_quorum_majority(lock->quorum.nodes);
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
  if (result == REDLOCK_E_UNAVAILABLE) {
    lock->unreleased = attempt;
  } else {
    rl_release_let_go(lock, now_us, attempt, true);
  }
}

/* R3 */
static void rl_release_decide(rl_lock *lock, redlock_time now_us) {
  rl_decision decision = rl_quorum_decide_release(&lock->quorum);
  if (decision != RL_DECISION_NONE) {
    rl_release_ended(lock, now_us, rl_release_result(lock, decision));
  }
}

/* By the text of the script, or without notifying waiters. */
static bool rl_release_send_again(rl_node *node, redlock_time now_us,
                                  const rl_outstanding *command) {
  return !rl_twin_test_is_over(node, command->attempt) &&
         rl_link_queue_release(&node->link, now_us, command->attempt, command->round, true, true);
}

const rl_steps rl_release_steps = {
    .send_again = rl_release_send_again,
    .ask = rl_release_ask,
    .node_up = rl_release_node_up,
    .decide = rl_release_decide,
};
