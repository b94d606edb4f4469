/*
 * A lock: its lease, and the operation on it.
 *
 * SPDX-License-Identifier: MIT
 *
 * ACQUIRE ("Distributed Locks with Redis", The Redlock Algorithm, with the corrections of
 * docs/design.md):
 *   A1. Draw a fresh token. Read the clock, before the first byte: round_start_us.
 *   A2. SET key token NX PX ttl to all nodes at once. A node that is known not to answer is not
 *       waited for.
 *   A3. Count votes. Decide with the vote that makes it certain, or at the attempt's deadline.
 *       A node whose connection comes up later gets its SET then, as long as the attempt is not over
 *       or the lease lasts: the more nodes hold the key, the more may forget it.
 *   A4. Majority: the deadline is round_start_us + ttl - drift. If the clock, read after the deciding
 *       vote, has not reached it, the lock is held until then. Else it came too late: A5.
 *   A5. No lock: release the token on every node to which the SET may have gone, without waiting,
 *       and begin again at A1 after a random delay, while attempts and budget last.
 * EXTEND:
 *   E1. Only while the lease lasts. Read the clock, before the first byte.
 *   E2. Compare-and-expire on all nodes.
 *   E3. A majority of confirmations in this round, before the old deadline: the new deadline is
 *       round_start_us + ttl - drift, or the old one if that is later.
 *   E4. Then a node that answers that it has no such key is given it again (SET NX): the lock heals.
 *       Before E3 that would re-create a lock that may be lost.
 *   E5. Anything else changes nothing. The old deadline stands, the next extend may succeed.
 * RELEASE:
 *   R1. The lease ends, before the first byte.
 *   R2. Compare-and-delete on every node to which a SET may have gone, whatever it answered.
 *   R3. Count votes (rl_quorum.c). What is still to be sent goes on without the operation.
 */
#include "rl_lock.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "rl_core.h"
#include "rl_validity.h"

static uint32_t rl_lock_bit(const rl_node *node) {
  return (uint32_t)1 << node->index;
}

/* ------------------------------------------------------------------------------ life and state */

/* To be launched with the next rl_core_launch(). */
static void rl_lock_enter_launch(rl_lock *lock) {
  lock->phase = RL_PHASE_LAUNCH;
  rl_lock_enqueue(&lock->core->launching, lock);
  lock->core->launching_acquires += lock->operation == RL_OPERATION_ACQUIRE;
}

static void rl_lock_leave_launch(rl_lock *lock) {
  assert(lock->phase == RL_PHASE_LAUNCH);
  rl_lock_dequeue(lock);
  lock->core->launching_acquires -= lock->operation == RL_OPERATION_ACQUIRE;
}

rl_lock *rl_lock_new(rl_core *core, const void *resource, size_t length,
                     const redlock_options *options) {
  rl_lock *lock = calloc(1, sizeof *lock + core->node_count * sizeof lock->votes[0]);
  if (lock == NULL) {
    return NULL;
  }
  lock->resource = rl_resource_new(core->prefix, core->prefix_length, resource, length);
  if (lock->resource == NULL || !rl_timers_reserve(&core->timers, core->lock_count + 1)) {
    if (lock->resource != NULL) {
      rl_resource_unref(lock->resource);
    }
    free(lock);
    return NULL;
  }
  lock->core = core;
  lock->options = *options;
  lock->current = *options;
  lock->timer.index = RL_TIMERS_NONE;
  lock->next = core->locks;
  if (core->locks != NULL) {
    core->locks->previous = lock;
  }
  core->locks = lock;
  core->lock_count++;
  return lock;
}

/* The lock has nothing to do with |attempt| any more; whatever it may have set is released. */
static void rl_lock_let_go(rl_lock *lock, redlock_time now_us, rl_attempt *attempt, bool grow) {
  if (attempt == NULL) {
    return;
  }
  attempt->lock = NULL;
  if (!attempt->releasing) {
    rl_core_release(lock->core, now_us, attempt, grow);
  }
  rl_attempt_unref(&lock->core->attempts, attempt);
}

static void rl_lock_drop_lease(rl_lock *lock, redlock_time now_us, bool grow) {
  rl_attempt *lease = lock->lease;
  rl_attempt *unreleased = lock->unreleased;
  lock->lease = NULL;
  lock->deadline_us = 0;
  lock->unreleased = NULL;
  rl_lock_let_go(lock, now_us, lease, grow);
  rl_lock_let_go(lock, now_us, unreleased, grow);
}

/* The operation has ended. */
static void rl_lock_end(rl_lock *lock, redlock_time now_us, int result) {
  assert(lock->phase != RL_PHASE_IDLE);
  if (lock->phase == RL_PHASE_LAUNCH) {
    rl_lock_leave_launch(lock);
  }
  rl_timers_clear(&lock->core->timers, lock);
  lock->phase = RL_PHASE_IDLE;
  lock->result = result;
  lock->round_end_us = now_us;
  if (result != REDLOCK_OK || lock->operation != RL_OPERATION_ACQUIRE) {
    lock->waiting = 0;
  }
  if (lock->notify) {
    rl_lock_enqueue(&lock->core->ended, lock);
  }
}

static void rl_lock_stop(rl_lock *lock, redlock_time now_us, int error, bool grow) {
  rl_attempt *attempt = lock->attempt;
  if (lock->phase == RL_PHASE_IDLE) {
    return;
  }
  lock->attempt = NULL;
  rl_lock_end(lock, now_us, error);
  rl_lock_let_go(lock, now_us, attempt, grow);
}

void rl_lock_cancel(rl_lock *lock, redlock_time now_us, int error) {
  rl_lock_stop(lock, now_us, error, true);
}

void rl_lock_lapse(rl_lock *lock, redlock_time now_us) {
  lock->result = lock->core->closed ? REDLOCK_E_CLOSED : REDLOCK_E_EXPIRED;
  lock->round_end_us = now_us;
  rl_lock_drop_lease(lock, now_us, true);
}

void rl_lock_close(rl_lock *lock, redlock_time now_us) {
  rl_lock_stop(lock, now_us, REDLOCK_E_CLOSED, true);
  rl_lock_drop_lease(lock, now_us, true);
}

void rl_lock_free(rl_lock *lock, redlock_time now_us) {
  rl_core *core = lock->core;
  rl_lock_stop(lock, now_us, REDLOCK_E_CANCELLED, false);
  rl_lock_drop_lease(lock, now_us, false);
  rl_lock_dequeue(lock);
  if (lock->previous != NULL) {
    lock->previous->next = lock->next;
  } else {
    core->locks = lock->next;
  }
  if (lock->next != NULL) {
    lock->next->previous = lock->previous;
  }
  core->lock_count--;
  rl_resource_unref(lock->resource);
  free(lock);
}

void rl_lock_forget(rl_lock *lock) {
  rl_attempt *attempts[] = {lock->lease, lock->unreleased, lock->attempt};
  lock->lease = NULL;
  lock->deadline_us = 0;
  lock->unreleased = NULL;
  lock->attempt = NULL;
  if (lock->phase != RL_PHASE_IDLE) {
    rl_lock_end(lock, lock->core->now_us, REDLOCK_E_CANCELLED);
  }
  for (unsigned i = 0; i < sizeof attempts / sizeof attempts[0]; i++) {
    if (attempts[i] != NULL) {
      attempts[i]->lock = NULL;
      rl_attempt_unref(&lock->core->attempts, attempts[i]);
    }
  }
}

int rl_lock_result(const rl_lock *lock) {
  return lock->phase == RL_PHASE_IDLE ? lock->result : REDLOCK_PENDING;
}

int rl_lock_outcome(rl_lock *lock, redlock_time now_us) {
  bool grants = lock->operation == RL_OPERATION_ACQUIRE || lock->operation == RL_OPERATION_EXTEND;
  if (grants && rl_lock_result(lock) == REDLOCK_OK && rl_lock_remaining(lock, now_us) == 0) {
    rl_lock_lapse(lock, now_us);
  }
  return rl_lock_result(lock);
}

redlock_duration rl_lock_remaining(const rl_lock *lock, redlock_time now_us) {
  return lock->lease == NULL ? 0 : rl_time_sub(lock->deadline_us, now_us);
}

/* ----------------------------------------------------------------------------------- beginning */

/* The operation was refused without being begun; the reason is kept for rl_lock_message(). */
static int rl_lock_refuse(rl_lock *lock, rl_operation operation, int error) {
  lock->operation = operation;
  lock->result = error;
  return error;
}

static void rl_lock_clear_votes(rl_lock *lock) {
  lock->confirmed = false;
  lock->waiting = 0;
  memset(&lock->quorum, 0, sizeof lock->quorum);
  lock->quorum.nodes = lock->core->node_count;
  for (unsigned i = 0; i < lock->core->node_count; i++) {
    lock->votes[i].settled = false;
    lock->votes[i].vote = REDLOCK_VOTE_UNKNOWN;
    lock->votes[i].latency_us = REDLOCK_NEVER;
    lock->votes[i].error[0] = '\0';
  }
}

static int rl_lock_begin(rl_lock *lock, rl_operation operation, redlock_time now_us, bool notify) {
  rl_lock_dequeue(lock);
  lock->operation = operation;
  lock->notify = notify;
  lock->result = REDLOCK_PENDING;
  lock->budget_us = REDLOCK_NEVER;
  lock->round_start_us = now_us;
  lock->core->active = true;
  rl_lock_clear_votes(lock); /* It may end before its first round. */
  rl_lock_enter_launch(lock);
  return REDLOCK_OK;
}

/* What every operation asks first. */
static int rl_lock_may_begin(rl_lock *lock, rl_operation operation) {
  if (lock->phase != RL_PHASE_IDLE) {
    return REDLOCK_E_BUSY;
  }
  return lock->core->closed ? rl_lock_refuse(lock, operation, REDLOCK_E_CLOSED) : REDLOCK_OK;
}

int rl_lock_acquire(rl_lock *lock, redlock_time now_us, const redlock_options *options,
                    bool notify) {
  int error = rl_lock_may_begin(lock, RL_OPERATION_ACQUIRE);
  if (error != REDLOCK_OK) {
    return error;
  }
  if (rl_lock_remaining(lock, now_us) > 0) {
    return rl_lock_refuse(lock, RL_OPERATION_ACQUIRE, REDLOCK_E_HELD);
  }
  redlock_options current = lock->options;
  if (options != NULL && rl_options_read(&current, options, NULL, 0) != REDLOCK_OK) {
    return REDLOCK_E_INVALID;
  }
  rl_lock_drop_lease(lock, now_us, true);
  lock->current = current;
  lock->attempts_left = rl_options_attempts(&lock->current);
  (void)rl_lock_begin(lock, RL_OPERATION_ACQUIRE, now_us, notify);
  if (lock->current.wait_us != 0) {
    lock->budget_us = rl_time_add(now_us, lock->current.wait_us);
  }
  return REDLOCK_OK;
}

int rl_lock_extend(rl_lock *lock, redlock_time now_us, redlock_duration ttl_us, bool notify) {
  int error = rl_lock_may_begin(lock, RL_OPERATION_EXTEND);
  if (error != REDLOCK_OK) {
    return error;
  }
  redlock_options current = lock->lease != NULL ? lock->lease_options : lock->options;
  current.ttl_us = ttl_us != 0 ? ttl_us : lock->options.ttl_us;
  redlock_options checked = current;
  if (rl_options_read(&checked, &current, NULL, 0) != REDLOCK_OK) {
    return REDLOCK_E_INVALID;
  }
  if (lock->lease == NULL) {
    return rl_lock_refuse(lock, RL_OPERATION_EXTEND, REDLOCK_E_NOT_HELD);
  }
  if (rl_lock_remaining(lock, now_us) == 0) {
    return rl_lock_refuse(lock, RL_OPERATION_EXTEND, REDLOCK_E_EXPIRED);
  }
  lock->current = checked;
  return rl_lock_begin(lock, RL_OPERATION_EXTEND, now_us, notify);
}

int rl_lock_release(rl_lock *lock, redlock_time now_us, bool notify) {
  int error = rl_lock_may_begin(lock, RL_OPERATION_RELEASE);
  if (error != REDLOCK_OK) {
    return error;
  }
  if (lock->lease == NULL && lock->unreleased == NULL) {
    return rl_lock_refuse(lock, RL_OPERATION_RELEASE, REDLOCK_E_NOT_HELD);
  }
  /* R1. The lease ends here, long before the first byte. */
  lock->repeated = lock->lease == NULL;
  lock->ran_out = lock->repeated ? lock->ran_out : rl_lock_remaining(lock, now_us) == 0;
  lock->attempt = lock->lease != NULL ? lock->lease : lock->unreleased;
  lock->lease = NULL;
  lock->unreleased = NULL;
  lock->deadline_us = 0;
  lock->current = lock->lease_options;
  return rl_lock_begin(lock, RL_OPERATION_RELEASE, now_us, notify);
}

/* -------------------------------------------------------------------------------------- voting */

static void rl_lock_settle(rl_lock *lock, unsigned node, redlock_vote vote, const char *error,
                           redlock_duration latency_us) {
  rl_vote *entry = &lock->votes[node];
  if (entry->settled) {
    return;
  }
  entry->settled = true;
  entry->vote = vote;
  entry->latency_us = latency_us;
  entry->error[0] = '\0';
  if (error != NULL) {
    (void)snprintf(entry->error, sizeof entry->error, "%s", error);
  }
  switch (vote) {
  case REDLOCK_VOTE_GRANTED:
    lock->quorum.granted++;
    break;
  case REDLOCK_VOTE_TAKEN:
    lock->quorum.refused++;
    break;
  case REDLOCK_VOTE_ERROR:
  case REDLOCK_VOTE_UNKNOWN:
  default:
    lock->quorum.failed++;
    break;
  }
}

/* A2, E2: sends the command of this round to a node that is up. Returns NULL, or why it was not. */
static const char *rl_lock_send(rl_lock *lock, redlock_time now_us, rl_node *node) {
  uint64_t key_ms = rl_options_key_ms(&lock->current, lock->current.ttl_us);
  if (lock->operation == RL_OPERATION_ACQUIRE) {
    if (!rl_node_has_room(node, RL_OWED_ACQUIRE)) {
      return "too many commands are waiting for the node";
    }
    if (!rl_node_queue_set(node, now_us, RL_OWED_ACQUIRE, lock->attempt, lock->round, key_ms)) {
      return "out of memory";
    }
    lock->attempt->sent |= rl_lock_bit(node);
    rl_attempt_will_live(lock->attempt, now_us, key_ms);
    return NULL;
  }
  assert(lock->operation == RL_OPERATION_EXTEND);
  if (!rl_node_has_room(node, RL_OWED_EXTEND)) {
    return "too many commands are waiting for the node";
  }
  if (!rl_node_queue_extend(node, now_us, lock->lease, lock->round, false, key_ms)) {
    return "out of memory";
  }
  rl_attempt_will_live(lock->lease, now_us, key_ms);
  return NULL;
}

/* How far behind a node may be and still be asked: what a driver may take to read what has come. */
#define RL_LOCK_BEHIND_MIN_US (5 * REDLOCK_MILLISECONDS)

static bool rl_lock_behind(const rl_lock *lock, redlock_duration behind_us) {
  redlock_duration budget_us = rl_options_node_timeout(&lock->current, lock->current.ttl_us);
  return behind_us > rl_time_max(budget_us, RL_LOCK_BEHIND_MIN_US);
}

/*
 * Asks one node for its vote: sends the command, or waits for a connection that is being made, or
 * settles that there will be no vote. An acquire does not go to a node whose oldest reply is later
 * than an attempt may last: it could not answer in time, and what is not sent need not be released.
 */
static void rl_lock_ask(rl_lock *lock, redlock_time now_us, rl_node *node) {
  char behind[64];
  const char *error;
  if (node->phase == RL_NODE_UP) {
    redlock_duration behind_us = rl_node_behind(node, now_us);
    if (lock->operation == RL_OPERATION_ACQUIRE && rl_lock_behind(lock, behind_us)) {
      (void)snprintf(behind, sizeof behind, "no reply for %llu ms",
                     (unsigned long long)rl_time_ms_down(behind_us));
      rl_lock_settle(lock, node->index, REDLOCK_VOTE_UNKNOWN, behind, REDLOCK_NEVER);
      return;
    }
    error = rl_lock_send(lock, now_us, node);
    if (error != NULL) {
      rl_lock_settle(lock, node->index, REDLOCK_VOTE_ERROR, error, REDLOCK_NEVER);
    }
    return;
  }
  if (node->phase != RL_NODE_DOWN || rl_node_wants_connection(node, now_us)) {
    lock->waiting |= rl_lock_bit(node);
    return;
  }
  rl_lock_settle(lock, node->index, REDLOCK_VOTE_ERROR, node->error, REDLOCK_NEVER);
}

/* R2: a release has its own list of nodes, and goes on when the operation has ended. */
static void rl_lock_ask_release(rl_lock *lock, redlock_time now_us) {
  rl_core *core = lock->core;
  rl_attempt *attempt = lock->attempt;
  rl_core_release(core, now_us, attempt, true);
  for (unsigned i = 0; i < core->node_count; i++) {
    rl_node *node = core->nodes[i];
    uint32_t bit = rl_lock_bit(node);
    if ((attempt->sent & bit) == 0) {
      lock->votes[i].settled = true;
      (void)snprintf(lock->votes[i].error, sizeof lock->votes[i].error, "nothing was sent to it");
      lock->quorum.unsent++;
    } else if ((attempt->confirmed & bit) != 0) {
      rl_lock_settle(lock, i, REDLOCK_VOTE_GRANTED, NULL, REDLOCK_NEVER);
    } else if ((attempt->due & bit) == 0) {
      continue; /* It has been sent. */
    } else if (node->phase == RL_NODE_UP) {
      rl_lock_settle(lock, i, REDLOCK_VOTE_ERROR, "too many commands are waiting for the node",
                     REDLOCK_NEVER);
    } else if (node->phase != RL_NODE_DOWN || rl_node_wants_connection(node, now_us)) {
      lock->waiting |= bit;
    } else {
      rl_lock_settle(lock, i, REDLOCK_VOTE_ERROR, node->error, REDLOCK_NEVER);
    }
  }
}

/* A5: this attempt has failed. */
static void rl_lock_fail_attempt(rl_lock *lock, redlock_time now_us, int error) {
  rl_attempt *attempt = lock->attempt;
  lock->attempt = NULL;
  rl_lock_let_go(lock, now_us, attempt, true);
  redlock_duration delay_us = REDLOCK_NEVER;
  if (error == REDLOCK_E_UNAVAILABLE && now_us >= lock->budget_us &&
      lock->result == REDLOCK_E_TAKEN) {
    error = REDLOCK_E_TAKEN; /* Cut short by the budget, it tells nothing; the one before did. */
  }
  if (lock->attempts_left != UINT64_MAX) {
    lock->attempts_left--;
  }
  if (lock->attempts_left > 0) {
    delay_us =
        rl_options_retry_delay(&lock->current, lock->random, rl_time_sub(lock->budget_us, now_us));
  }
  if (delay_us == REDLOCK_NEVER) {
    rl_lock_end(lock, now_us, error);
    return;
  }
  lock->phase = RL_PHASE_DELAY;
  lock->result = error;
  lock->waiting = 0;
  lock->round_end_us = now_us;
  rl_timers_set(&lock->core->timers, lock, rl_time_add(now_us, delay_us));
}

/* A4 */
static void rl_lock_granted(rl_lock *lock, redlock_time now_us) {
  redlock_time deadline_us =
      rl_validity_deadline(lock->round_start_us, lock->current.ttl_us, lock->current.drift_factor);
  if (now_us >= deadline_us) {
    rl_lock_fail_attempt(lock, now_us, REDLOCK_E_EXPIRED);
    return;
  }
  lock->lease = lock->attempt;
  lock->attempt = NULL;
  lock->deadline_us = deadline_us;
  lock->lease_options = lock->current;
  rl_lock_end(lock, now_us, REDLOCK_OK);
}

/* E4 */
static void rl_lock_heal(rl_lock *lock, redlock_time now_us, rl_node *node) {
  uint64_t key_ms = rl_options_key_ms(&lock->current, lock->current.ttl_us);
  assert(lock->confirmed);
  if (rl_lock_remaining(lock, now_us) == 0 || !rl_node_has_room(node, RL_OWED_HEAL) ||
      !rl_node_queue_set(node, now_us, RL_OWED_HEAL, lock->lease, lock->round, key_ms)) {
    return;
  }
  lock->lease->sent |= rl_lock_bit(node);
  rl_attempt_will_live(lock->lease, now_us, key_ms);
}

/* E3 */
static void rl_lock_extended(rl_lock *lock, redlock_time now_us) {
  redlock_time deadline_us =
      rl_validity_deadline(lock->round_start_us, lock->current.ttl_us, lock->current.drift_factor);
  lock->deadline_us = rl_time_max(lock->deadline_us, deadline_us);
  lock->confirmed = true;
  rl_lock_end(lock, now_us, REDLOCK_OK);
  for (unsigned i = 0; i < lock->core->node_count; i++) {
    if (lock->votes[i].settled && lock->votes[i].vote == REDLOCK_VOTE_TAKEN) {
      rl_lock_heal(lock, now_us, lock->core->nodes[i]);
    }
  }
}

/*
 * R3. What a release ends with. When it is repeated, a node may say "not there" because the first one
 * has deleted the key: that is no loss.
 */
static int rl_lock_release_result(const rl_lock *lock, rl_decision decision) {
  bool majority = lock->quorum.granted >= rl_quorum_majority(lock->quorum.nodes);
  if (decision == RL_DECISION_UNAVAILABLE) {
    return REDLOCK_E_UNAVAILABLE;
  }
  if (lock->ran_out && !majority) {
    return REDLOCK_E_EXPIRED;
  }
  return decision == RL_DECISION_REFUSED && !lock->repeated ? REDLOCK_E_LOST : REDLOCK_OK;
}

static void rl_lock_released(rl_lock *lock, redlock_time now_us, int result) {
  rl_attempt *attempt = lock->attempt;
  lock->attempt = NULL;
  rl_lock_end(lock, now_us, result);
  if (result == REDLOCK_E_UNAVAILABLE) {
    lock->unreleased = attempt;
  } else {
    rl_lock_let_go(lock, now_us, attempt, true);
  }
}

/* A3, E3, R3: acts on the votes as soon as they are decisive. */
static void rl_lock_decide(rl_lock *lock, redlock_time now_us) {
  rl_decision decision;
  assert(lock->phase == RL_PHASE_ROUND);
  switch (lock->operation) {
  case RL_OPERATION_ACQUIRE:
    decision = rl_quorum_decide(&lock->quorum);
    if (decision == RL_DECISION_MAJORITY) {
      rl_lock_granted(lock, now_us);
    } else if (decision != RL_DECISION_NONE) {
      rl_lock_fail_attempt(lock, now_us,
                           decision == RL_DECISION_UNAVAILABLE ? REDLOCK_E_UNAVAILABLE
                                                               : REDLOCK_E_TAKEN);
    }
    break;
  case RL_OPERATION_EXTEND:
    decision = rl_quorum_decide(&lock->quorum);
    if (now_us >= lock->deadline_us) {
      rl_lock_end(lock, now_us, REDLOCK_E_EXPIRED);
    } else if (decision == RL_DECISION_MAJORITY) {
      rl_lock_extended(lock, now_us);
    } else if (decision != RL_DECISION_NONE) {
      rl_lock_end(lock, now_us,
                  decision == RL_DECISION_REFUSED ? REDLOCK_E_LOST : REDLOCK_E_UNAVAILABLE);
    }
    break;
  case RL_OPERATION_RELEASE:
  default:
    decision = rl_quorum_decide_release(&lock->quorum);
    if (decision != RL_DECISION_NONE) {
      rl_lock_released(lock, now_us, rl_lock_release_result(lock, decision));
    }
    break;
  }
}

void rl_lock_vote(rl_lock *lock, redlock_time now_us, rl_node *node, const rl_owed *owed,
                  redlock_vote vote, const char *error) {
  redlock_duration latency_us = rl_time_sub(now_us, owed->sent_us);
  rl_vote *entry = &lock->votes[node->index];
  if (owed->round != lock->round || entry->settled) {
    return;
  }
  if (vote == REDLOCK_VOTE_UNKNOWN) {
    latency_us = REDLOCK_NEVER;
  }
  if (lock->phase == RL_PHASE_ROUND) {
    rl_lock_settle(lock, node->index, vote, error, latency_us);
    rl_lock_decide(lock, now_us);
  } else if (lock->phase == RL_PHASE_IDLE && lock->result == REDLOCK_OK) {
    /* Decided without it: for votes() to show, and for the lock to heal. */
    rl_lock_settle(lock, node->index, vote, error, latency_us);
    if (vote == REDLOCK_VOTE_TAKEN && lock->confirmed) {
      rl_lock_heal(lock, now_us, node);
    }
  }
}

/* -------------------------------------------------------------------------------------- rounds */

static void rl_lock_begin_round(rl_lock *lock, redlock_time now_us) {
  redlock_duration timeout_us = rl_options_node_timeout(&lock->current, lock->current.ttl_us);
  rl_lock_leave_launch(lock);
  lock->phase = RL_PHASE_ROUND;
  lock->round++;
  lock->round_start_us = now_us;
  lock->round_deadline_us = rl_time_min(rl_time_add(now_us, timeout_us), lock->budget_us);
  if (lock->operation == RL_OPERATION_EXTEND) {
    lock->round_deadline_us = rl_time_min(lock->round_deadline_us, lock->deadline_us);
  }
  rl_lock_clear_votes(lock);
  rl_timers_set(&lock->core->timers, lock, lock->round_deadline_us);
}

/* A1. Returns false when the operation has ended instead. */
static bool rl_lock_begin_attempt(rl_lock *lock, redlock_time now_us,
                                  const unsigned char *entropy) {
  if (now_us >= lock->budget_us) {
    rl_lock_end(lock, now_us,
                lock->result == REDLOCK_PENDING ? REDLOCK_E_UNAVAILABLE : lock->result);
    return false;
  }
  if (rl_validity_deadline(now_us, lock->current.ttl_us, lock->current.drift_factor) == now_us) {
    rl_lock_end(lock, now_us, REDLOCK_E_EXPIRED); /* The ttl is all drift. */
    return false;
  }
  lock->attempt = rl_attempt_new(&lock->core->attempts, lock->resource, lock, entropy);
  if (lock->attempt == NULL) {
    rl_lock_end(lock, now_us, REDLOCK_E_NO_MEMORY);
    return false;
  }
  memcpy(&lock->random, entropy + RL_TOKEN_ENTROPY, sizeof lock->random);
  return true;
}

void rl_lock_launch(rl_lock *lock, redlock_time now_us, const unsigned char *entropy) {
  rl_core *core = lock->core;
  assert(lock->phase == RL_PHASE_LAUNCH);
  if (lock->operation == RL_OPERATION_ACQUIRE && !rl_lock_begin_attempt(lock, now_us, entropy)) {
    return;
  }
  if (lock->operation == RL_OPERATION_EXTEND && rl_lock_remaining(lock, now_us) == 0) {
    rl_lock_end(lock, now_us, REDLOCK_E_EXPIRED); /* E1 */
    return;
  }
  rl_lock_begin_round(lock, now_us);
  if (lock->operation == RL_OPERATION_RELEASE) {
    rl_lock_ask_release(lock, now_us);
  } else {
    for (unsigned i = 0; i < core->node_count; i++) {
      rl_lock_ask(lock, now_us, core->nodes[i]);
    }
  }
  rl_lock_decide(lock, now_us);
}

/* A2, after A4: a node that came up too late to be asked is given the key all the same. */
static void rl_lock_join(rl_lock *lock, redlock_time now_us, rl_node *node) {
  uint64_t key_ms = rl_options_key_ms(&lock->current, lock->current.ttl_us);
  if (lock->operation != RL_OPERATION_ACQUIRE || rl_lock_remaining(lock, now_us) == 0 ||
      !rl_node_has_room(node, RL_OWED_ACQUIRE) ||
      !rl_node_queue_set(node, now_us, RL_OWED_ACQUIRE, lock->lease, lock->round, key_ms)) {
    return;
  }
  lock->lease->sent |= rl_lock_bit(node);
  rl_attempt_will_live(lock->lease, now_us, key_ms);
}

void rl_lock_node_up(rl_lock *lock, redlock_time now_us, rl_node *node) {
  if ((lock->waiting & rl_lock_bit(node)) == 0) {
    return;
  }
  lock->waiting &= ~rl_lock_bit(node);
  if (lock->phase == RL_PHASE_IDLE) {
    rl_lock_join(lock, now_us, node);
  }
  if (lock->phase != RL_PHASE_ROUND) {
    return;
  }
  if (lock->operation != RL_OPERATION_RELEASE) {
    rl_lock_ask(lock, now_us, node);
  } else if ((lock->attempt->due & rl_lock_bit(node)) != 0) {
    bool gone = lock->attempt->gone_us <= now_us;
    rl_lock_settle(lock, node->index, REDLOCK_VOTE_ERROR,
                   gone ? "its key has expired by now" : "the release could not be queued",
                   REDLOCK_NEVER);
  }
  rl_lock_decide(lock, now_us);
}

void rl_lock_node_down(rl_lock *lock, redlock_time now_us, const rl_node *node) {
  if ((lock->waiting & rl_lock_bit(node)) == 0) {
    return;
  }
  lock->waiting &= ~rl_lock_bit(node);
  if (lock->phase != RL_PHASE_ROUND) {
    return;
  }
  rl_lock_settle(lock, node->index, REDLOCK_VOTE_ERROR, node->error, REDLOCK_NEVER);
  rl_lock_decide(lock, now_us);
}

/* The round is over: what has not answered has no vote. */
static void rl_lock_time_out(rl_lock *lock, redlock_time now_us) {
  char error[64];
  redlock_duration after_us = rl_time_sub(lock->round_deadline_us, lock->round_start_us);
  for (unsigned i = 0; i < lock->core->node_count; i++) {
    bool waiting = (lock->waiting & rl_lock_bit(lock->core->nodes[i])) != 0;
    (void)snprintf(error, sizeof error, "%s within %llu ms", waiting ? "no connection" : "no reply",
                   (unsigned long long)rl_time_ms_up(after_us));
    rl_lock_settle(lock, i, REDLOCK_VOTE_UNKNOWN, error, REDLOCK_NEVER);
  }
  rl_lock_decide(lock, now_us);
  assert(lock->phase != RL_PHASE_ROUND);
}

void rl_lock_timer(rl_lock *lock, redlock_time now_us) {
  if (lock->phase == RL_PHASE_DELAY) {
    rl_lock_enter_launch(lock);
  } else {
    assert(lock->phase == RL_PHASE_ROUND);
    rl_lock_time_out(lock, now_us);
  }
}
