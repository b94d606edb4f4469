/*
 * A round: asks the nodes for their votes, and settles each vote.
 *
 * SPDX-License-Identifier: MIT
 *
 * A vote is settled by the answer of its node, or because no answer will come. After each vote the
 * operation decides what the votes mean (rl_steps.h). A vote counts only in its own round: before
 * the decision as a vote, after it as a late vote.
 */
#include "lock/rl_round.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

#include "lock/rl_lock.h"
#include "lock/rl_result.h"
#include "lock/rl_ring.h"
#include "lock/rl_steps.h"
#include "node/rl_guard.h"
#include "node/rl_verdict.h"

/* ------------------------------------------------------------------------------------- votes */

void rl_round_await(rl_lock *lock, const rl_node *node) {
  lock->awaited |= rl_node_bit(node);
}

void rl_round_await_none(rl_lock *lock) {
  lock->awaited = 0;
}

static bool rl_round_awaits(const rl_lock *lock, const rl_node *node) {
  return (lock->awaited & rl_node_bit(node)) != 0;
}

/* Stops awaiting the node. Returns true if the round awaited it. */
static bool rl_round_stop_awaiting(rl_lock *lock, const rl_node *node) {
  bool awaited = rl_round_awaits(lock, node);
  lock->awaited &= ~rl_node_bit(node);
  return awaited;
}

void rl_round_clear(rl_lock *lock) {
  lock->extended = false;
  rl_round_await_none(lock);
  lock->deniers = 0;
  memset(&lock->quorum, 0, sizeof lock->quorum);
  lock->quorum.nodes = lock->core->node_count & 63;
  for (unsigned i = 0; i < lock->core->node_count; i++) {
    lock->votes[i].settled = false;
    lock->votes[i].vote = REDLOCK_VOTE_UNKNOWN;
    lock->votes[i].latency_us = RL_VOTE_NO_LATENCY;
    lock->votes[i].key = 0;
  }
  rl_reasons_clear(lock->reasons, lock->core->node_count);
}

void rl_round_set_reason(rl_lock *lock, unsigned node, const char *reason) {
  rl_reasons_set(&lock->reasons, lock->core->node_count, node, &lock->core->nodes[node]->reason,
                 reason);
}

const char *rl_round_reason(const rl_lock *lock, unsigned node) {
  const rl_vote *entry = &rl_result_votes(lock)[node];
  bool failed = rl_vote_counts_as(entry->vote) == RL_COUNT_FAILED;
  const char *reason = rl_reasons_text(rl_result_reasons(lock), node);
  if (reason != NULL) {
    return reason;
  }
  /* A node without a vote has a reason, unless there was no memory for it. */
  return entry->settled && failed ? "out of memory" : "";
}

/*
 * Settles the vote of a node without counting it in the statistics. Returns false if the vote was
 * settled before.
 */
static bool rl_round_settle_uncounted(rl_lock *lock, unsigned node, redlock_vote vote,
                                      const char *error, redlock_duration latency_us) {
  rl_vote *entry = &lock->votes[node];
  if (entry->settled) {
    return false;
  }
  entry->settled = true;
  entry->vote = (uint8_t)vote;
  entry->latency_us = latency_us < RL_VOTE_NO_LATENCY ? (uint32_t)latency_us : RL_VOTE_NO_LATENCY;
  if (error != NULL) {
    rl_round_set_reason(lock, node, error);
  }
  switch (rl_vote_counts_as(vote)) {
  case RL_COUNT_GRANTED:
    lock->quorum.granted++;
    break;
  case RL_COUNT_DENIED:
    lock->quorum.denied++;
    break;
  case RL_COUNT_FAILED:
  default:
    lock->quorum.failed++;
    break;
  }
  return true;
}

void rl_round_settle_copy(rl_lock *lock, unsigned node, redlock_vote vote, const char *error) {
  (void)rl_round_settle_uncounted(lock, node, vote, error, REDLOCK_NEVER);
}

void rl_round_settle(rl_lock *lock, unsigned node, redlock_vote vote, const char *error) {
  if (rl_round_settle_uncounted(lock, node, vote, error, REDLOCK_NEVER)) {
    lock->core->nodes[node]->stats.votes[vote]++;
  }
}

static const rl_steps *rl_round_steps(const rl_lock *lock) {
  return lock->core->upper->steps[lock->operation];
}

void rl_round_decide(rl_lock *lock, redlock_time now_us) {
  assert(lock->phase == RL_PHASE_ROUND);
  rl_round_steps(lock)->decide(lock, now_us);
}

/* Forgets that the node had no vote: its late answer to a SET counts instead. */
static void rl_round_unsettle(rl_lock *lock, unsigned node) {
  rl_vote *entry = &lock->votes[node];
  if (entry->settled && rl_vote_counts_as(entry->vote) == RL_COUNT_FAILED) {
    entry->settled = false;
    lock->quorum.failed--;
    rl_reasons_drop(lock->reasons, node);
  }
}

void rl_round_withdraw_denial(rl_lock *lock, unsigned node, const char *reason) {
  rl_vote *entry = &lock->votes[node];
  if (entry->settled && rl_vote_counts_as(entry->vote) == RL_COUNT_DENIED) {
    entry->settled = false;
    entry->key = 0;
    lock->quorum.denied--;
    (void)rl_round_settle_uncounted(lock, node, REDLOCK_VOTE_ERROR, reason, entry->latency_us);
  }
}

/*
 * Notes a vote that came after the decision: redlock_lock_vote() shows it. Returns true if it was
 * the node's first vote.
 */
static bool rl_round_take_late_vote(rl_lock *lock, redlock_time now_us, rl_node *node,
                                    const rl_outstanding *command, redlock_vote vote,
                                    const char *error, redlock_duration latency_us) {
  bool sets = rl_outstanding_has(command, RL_COMPETES);
  /* After an extend, or without the guard's permission, the answer to a SET is no vote. */
  if (sets && (lock->extended || !rl_guard_may_vote(node->link.guard, now_us))) {
    return false;
  }
  if (sets) {
    rl_round_unsettle(lock, node->index);
  }
  bool settled = rl_round_settle_uncounted(lock, node->index, vote, error, latency_us);
  lock->core->upper->late_vote(lock, now_us, node, vote);
  return settled;
}

/* Notes which of several keys has another holder, if the node has reported that. */
static void rl_round_note_key(rl_lock *lock, const rl_node *node, const rl_outstanding *command,
                              redlock_vote vote) {
  /* A nested acquire may extend another lock: the answer then numbers the keys of that lock. */
  bool own = command->attempt->resource == lock->resource;
  if (own && rl_vote_counts_as(vote) == RL_COUNT_DENIED && !lock->votes[node->index].settled) {
    lock->votes[node->index].key = (uint8_t)rl_verdict_key(command, &node->link.reader.reply);
  }
}

/*
 * Counts the vote if its round is in flight, or was the last one and succeeded. Passes on a late
 * vote of an extend that did not succeed, without counting it (EXT-5). Returns true if the vote was
 * counted.
 */
static bool rl_round_dispatch_vote(rl_lock *lock, redlock_time now_us, rl_node *node,
                                   const rl_outstanding *command, redlock_vote vote,
                                   const char *error) {
  redlock_duration latency_us = rl_time_sub(now_us, command->sent_us);
  bool settled = false;
  if (command->round != lock->round) {
    return false;
  }
  /* A denied SET proves no loss: the client had no key there. */
  if (rl_vote_counts_as(vote) == RL_COUNT_DENIED && rl_outstanding_has(command, RL_FINDS)) {
    lock->deniers |= rl_node_bit(node);
  }
  if (vote == REDLOCK_VOTE_UNKNOWN) {
    latency_us = REDLOCK_NEVER;
  }
  rl_round_note_key(lock, node, command, vote);
  if (lock->phase == RL_PHASE_ROUND) {
    settled = rl_round_settle_uncounted(lock, node->index, vote, error, latency_us);
    rl_round_decide(lock, now_us);
  } else if (lock->phase == RL_PHASE_SUCCEEDED) {
    settled = rl_round_take_late_vote(lock, now_us, node, command, vote, error, latency_us);
  } else if (lock->phase == RL_PHASE_IDLE && rl_outstanding_has(command, RL_HOLDS)) {
    lock->core->upper->late_vote(lock, now_us, node, vote); /* EXT-5 */
  }
  return settled;
}

void rl_round_vote(rl_lock *lock, redlock_time now_us, rl_node *node, const rl_outstanding *command,
                   redlock_vote vote, const char *error) {
  if (rl_round_dispatch_vote(lock, now_us, node, command, vote, error)) {
    node->stats.votes[vote]++;
  } else {
    rl_round_note_late(node, command, vote);
  }
}

void rl_round_note_late(rl_node *node, const rl_outstanding *command, redlock_vote vote) {
  /* Releases without an operation have no round. */
  node->stats.late += command->round != 0 && vote != REDLOCK_VOTE_UNKNOWN;
}

bool rl_round_await_guard(rl_lock *lock, const rl_node *node, const rl_outstanding *command) {
  bool awaited = lock->phase == RL_PHASE_ROUND && lock->round == command->round &&
                 !lock->votes[node->index].settled;
  if (awaited) {
    rl_round_await(lock, node);
  }
  return awaited;
}

/* ------------------------------------------------------------------------------------ asking */

/*
 * A node is behind only if a reply is outstanding for longer than this: the driver may read late.
 */
#define RL_ROUND_BEHIND_MIN_US (5 * REDLOCK_MILLISECONDS)

redlock_duration rl_round_patience(const rl_lock *lock) {
  redlock_duration timeout_us = rl_ring_node_timeout(lock);
  return rl_time_max(timeout_us, RL_ROUND_BEHIND_MIN_US);
}

/*
 * GRD-4. Settles the vote of a node that the guard excludes, or awaits a node that the guard must
 *        still check. Returns true if the guard lets the node vote.
 */
static bool rl_round_consult_guard(rl_lock *lock, redlock_time now_us, rl_node *node) {
  char reason[RL_REASON_MAX + 1];
  redlock_vote vote = REDLOCK_VOTE_UNKNOWN;
  if (node->link.guard == NULL) {
    return true;
  }
  switch (rl_guard_judge(node, now_us, &vote, reason)) {
  case RL_GUARD_MAY_VOTE:
    return true;
  case RL_GUARD_MUST_WAIT:
    rl_round_await(lock, node);
    return false;
  case RL_GUARD_MUST_NOT:
  default:
    rl_round_settle(lock, node->index, vote, reason);
    return false;
  }
}

/*
 * Settles the vote of a node that is behind: an answer to a SET would come too late. Nothing is
 * sent to such a node, so it needs no release. Returns true if the node is behind.
 */
static bool rl_round_skip_behind(rl_lock *lock, redlock_time now_us, const rl_node *node) {
  char behind[64];
  redlock_duration behind_us = rl_link_oldest_age(&node->link, now_us);
  if (behind_us > rl_round_patience(lock)) {
    (void)snprintf(behind, sizeof behind, "no reply for %llu ms",
                   (unsigned long long)rl_time_ms_down(behind_us));
    rl_round_settle(lock, node->index, REDLOCK_VOTE_UNKNOWN, behind);
    return true;
  }
  return false;
}

/* Sends the command to a node that is up. Otherwise settles or awaits its vote. */
static void rl_round_send(rl_lock *lock, redlock_time now_us, rl_node *node) {
  const rl_steps *steps = rl_round_steps(lock);
  /* A node that is behind, or that the guard excludes, gets no SET. */
  if (rl_operation_has(lock->operation, RL_CREATES) &&
      (rl_round_skip_behind(lock, now_us, node) || !rl_round_consult_guard(lock, now_us, node))) {
    return;
  }
  const char *error = rl_link_has_room(&node->link, lock->operation)
                          ? steps->send(lock, now_us, node) /* ACQ-2, EXT-2 */
                          : "too many commands are waiting for the node";
  if (error != NULL) {
    rl_round_settle(lock, node->index, REDLOCK_VOTE_ERROR, error);
  }
}

/*
 * Asks one node for its vote: sends the command, awaits a connection that is being made, or settles
 * that there will be no vote.
 */
static void rl_round_ask(rl_lock *lock, redlock_time now_us, rl_node *node) {
  /* A lease is counted in servers, so a node that has a twin (lease/rl_twin.h) has no vote. */
  bool excluded = node->twins != 0 && rl_operation_has(lock->operation, RL_GRANTS);
  if (!excluded && node->link.phase == RL_LINK_UP) {
    rl_round_send(lock, now_us, node);
  } else if (!excluded &&
             (node->link.phase != RL_LINK_DOWN || rl_node_wants_connection(node, now_us))) {
    rl_round_await(lock, node);
  } else {
    rl_round_settle(lock, node->index, REDLOCK_VOTE_ERROR, node->error);
  }
}

/*
 * Shortens the delay before the next connection to each node, if fewer nodes than the quorum are
 * connected and in time.
 */
static void rl_round_shorten_delays(const rl_lock *lock, redlock_time now_us) {
  const rl_core *core = lock->core;
  unsigned needed = rl_core_quorum(core, lock->operation);
  redlock_duration patience_us = rl_round_patience(lock);
  unsigned well = 0;
  for (unsigned i = 0; i < core->node_count; i++) {
    const rl_link *link = &core->nodes[i]->link;
    well += link->phase == RL_LINK_UP && rl_link_oldest_age(link, now_us) <= patience_us;
  }
  for (unsigned i = 0; i < core->node_count && well < needed; i++) {
    rl_node_shorten_delay(core->nodes[i]);
  }
}

static void rl_round_begin(rl_lock *lock, redlock_time now_us) {
  const rl_steps *steps = rl_round_steps(lock);
  redlock_duration timeout_us =
      steps->timeout != NULL ? steps->timeout(lock) : rl_ring_node_timeout(lock);
  rl_lock_set_phase(lock, RL_PHASE_ROUND);
  lock->round++;
  lock->round_start_us = now_us;
  lock->round_deadline_us = rl_time_min(rl_time_add(now_us, timeout_us), lock->budget_ends_us);
  if (rl_operation_has(lock->operation, RL_HOLDS)) { /* It ends with the lease, if not before. */
    lock->round_deadline_us = rl_time_min(lock->round_deadline_us, lock->deadline_us);
  }
  rl_round_clear(lock);
  rl_timers_set(&lock->core->timers, &lock->timer, lock->round_deadline_us);
}

void rl_round_start(rl_lock *lock, redlock_time now_us) {
  rl_core *core = lock->core;
  const rl_steps *steps = rl_round_steps(lock);
  assert(lock->phase == RL_PHASE_SEND);
  rl_round_begin(lock, now_us);
  rl_round_shorten_delays(lock, now_us);
  if (steps->send_to_all != NULL) {
    steps->send_to_all(lock, now_us);
  } else {
    for (unsigned i = 0; i < core->node_count; i++) {
      rl_round_ask(lock, now_us, core->nodes[i]);
    }
  }
  rl_round_decide(lock, now_us);
}

void rl_round_node_up(rl_lock *lock, redlock_time now_us, rl_node *node) {
  if (!rl_round_stop_awaiting(lock, node)) {
    return;
  }
  if (lock->phase == RL_PHASE_SUCCEEDED) {
    (void)lock->core->upper->backfill(lock, now_us, node);
  }
  if (lock->phase != RL_PHASE_ROUND) {
    return;
  }
  if (rl_round_steps(lock)->node_up != NULL) {
    rl_round_steps(lock)->node_up(lock, now_us, node);
  } else {
    rl_round_ask(lock, now_us, node);
  }
  rl_round_decide(lock, now_us);
}

void rl_round_node_down(rl_lock *lock, redlock_time now_us, const rl_node *node) {
  if (!rl_round_stop_awaiting(lock, node)) {
    return;
  }
  if (lock->phase != RL_PHASE_ROUND) {
    return;
  }
  rl_round_settle(lock, node->index, REDLOCK_VOTE_ERROR, node->error);
  rl_round_decide(lock, now_us);
}

/*
 * Returns how long the client has waited for the node at the end of the round. The try to connect,
 * or the oldest outstanding command, may be older than the round.
 */
static redlock_duration rl_round_waiting_time(const rl_lock *lock, const rl_node *node,
                                              redlock_time now_us) {
  redlock_duration waited_us = rl_time_sub(lock->round_deadline_us, lock->round_start_us);
  rl_link_phase phase = node->link.phase;
  redlock_duration older_us =
      rl_time_sub(lock->round_start_us,
                  phase == RL_LINK_UP ? rl_time_sub(now_us, rl_link_oldest_age(&node->link, now_us))
                                      : node->tried_us);
  return phase == RL_LINK_DOWN ? waited_us : rl_time_add(waited_us, older_us);
}

void rl_round_time_out(rl_lock *lock, redlock_time now_us) {
  char error[96];
  redlock_duration after_us = rl_time_sub(lock->round_deadline_us, lock->round_start_us);
  for (unsigned i = 0; i < lock->core->node_count; i++) {
    const rl_node *node = lock->core->nodes[i];
    bool unconnected = rl_round_awaits(lock, node) && node->link.phase != RL_LINK_UP;
    bool unidentified = rl_round_awaits(lock, node) && !unconnected;
    const char *missed = unidentified                        ? "too few nodes identified themselves"
                         : !unconnected                      ? "no reply"
                         : rl_link_awaits_login(&node->link) ? "no credentials"
                         : node->link.looks_up               ? rl_link_no_address(&node->link)
                         : node->address.tls                 ? "no connection over TLS"
                                                             : "no connection";
    bool asks = unconnected && node->address.tls && !rl_link_awaits_login(&node->link) &&
                !node->link.looks_up;
    (void)snprintf(error, sizeof error, "%s within %llu ms%s", missed,
                   (unsigned long long)rl_time_ms_up(rl_round_waiting_time(lock, node, now_us)),
                   asks ? "; is this a TLS port?" : "");
    rl_round_settle(lock, i, REDLOCK_VOTE_UNKNOWN, error);
  }
  (void)snprintf(error, sizeof error, "no confirmation within %llu ms",
                 (unsigned long long)rl_time_ms_up(after_us));
  if (rl_round_steps(lock)->timed_out != NULL) {
    rl_round_steps(lock)->timed_out(lock, error);
  }
  rl_round_decide(lock, now_us);
  assert(lock->phase != RL_PHASE_ROUND);
}
