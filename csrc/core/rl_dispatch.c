/*
 * Dispatch: what a reply means, and whom it concerns.
 *
 * SPDX-License-Identifier: MIT
 */
#include "rl_dispatch.h"

#include <string.h>

#include "lease/rl_acquire.h"
#include "lease/rl_attach.h"
#include "lease/rl_extend.h"
#include "lease/rl_fence.h"
#include "lease/rl_guarding.h"
#include "lease/rl_margin.h"
#include "lease/rl_release.h"
#include "lease/rl_renew.h"
#include "lease/rl_twin.h"
#include "lock/rl_round.h"
#include "node/rl_guard.h"
#include "node/rl_verdict.h"
#include "operator/rl_bootstrap.h"
#include "operator/rl_doctor.h"
#include "operator/rl_inspect.h"
#include "wait/rl_notify.h"
#include "wait/rl_subscriber.h"

/*
 * The node does not know the script, or refuses it: once more, by its text; a release that may not notify goes
 * without. Returns whether it was sent.
 */
static bool rl_dispatch_send_again(rl_node *node, redlock_time now_us, const rl_outstanding *owed) {
  if (!rl_link_has_room(&node->link, (rl_outstanding_kind)owed->kind)) {
    return false;
  }
  switch (owed->kind) {
  case RL_OUTSTANDING_RELEASE:
    return !rl_twin_test_is_over(node, owed->attempt) &&
           rl_link_queue_release(&node->link, now_us, owed->attempt, owed->round, true, true);
  case RL_OUTSTANDING_FORCE:
    return rl_link_queue_force(&node->link, now_us, owed->attempt, owed->round, owed->attempt->any);
  case RL_OUTSTANDING_EXTEND:
    return rl_extend_send_text(node, now_us, owed);
  case RL_OUTSTANDING_ACQUIRE:
    return rl_acquire_send_text(node, now_us, owed);
  case RL_OUTSTANDING_CONFIRM:
    return rl_fence_send_text(node, now_us, owed);
  default:
    return false; /* The next extend heals it. */
  }
}

/*
 * Returns true if a release that notifies was refused for the keys that it touches: by an ACL, by a cluster, or by a
 * server or proxy that wants all keys to be declared. It did nothing.
 */
static bool rl_dispatch_wants_plain(const rl_link *link, redlock_time now_us,
                                    const rl_outstanding *owed, const rl_verdict *ballot) {
  const rl_reply *reply = &link->reader.reply;
  bool forces = owed->kind == RL_OUTSTANDING_FORCE && !owed->attempt->any &&
                link->notify_channel != NULL && link->mute_until_us <= now_us;
  bool notifies = owed->script == RL_SCRIPT_RELEASE_NOTIFY ||
                  owed->script == RL_SCRIPT_RELEASE_ALL_NOTIFY || forces;
  bool refused = !ballot->set_nothing || strncmp(reply->text, "NOPERM ", 7) == 0;
  return notifies && reply->type == RL_REPLY_ERROR && ballot->vote == REDLOCK_VOTE_ERROR &&
         refused && !ballot->wants_text &&
         (strstr(reply->text, "key") != NULL || strstr(reply->text, "Key") != NULL ||
          strstr(reply->text, "KEY") != NULL);
}

/* The node may notify nobody, for a while: releases go without. */
static void rl_dispatch_mute(rl_core *core, rl_node *node, redlock_time now_us) {
  node->link.mute_until_us = rl_time_add(now_us, RL_SUBSCRIBER_REFUSED_US);
  rl_notify_changed(core, rl_subscriber_mute(core, node, now_us), now_us);
}

/* Returns true if the node knows the script from now on, or has forgotten it (SCRIPT FLUSH). */
static void rl_dispatch_note_script(rl_core *core, rl_node *node, const rl_outstanding *owed,
                                    rl_verdict ballot) {
  if (rl_verdict_is_script(owed) && (ballot.ran || ballot.wants_text || owed->by_text)) {
    node->link.knows[owed->script] = ballot.ran;
    core->forgotten_us = ballot.wants_text ? core->now_us : core->forgotten_us;
  }
}

/* It has no vote: the guard has learned something of it meanwhile. */
static void rl_dispatch_discount(rl_lock *lock, rl_node *node, redlock_time now_us,
                                 const rl_outstanding *owed) {
  const rl_guard *guard = node->link.guard;
  char reason[RL_REASON_MAX + 1];
  rl_round_vote(lock, now_us, node, owed, rl_guard_vote(guard),
                rl_guard_reason(guard, now_us, reason, sizeof reason));
}

/* G5. It is asked who it is; the lock waits for that. */
static void rl_dispatch_doubt(rl_lock *lock, rl_node *node, redlock_time now_us,
                              const rl_outstanding *owed) {
  bool asked = rl_guard_doubt(node, now_us);
  if (lock != NULL && owed->kind != RL_OUTSTANDING_HEAL &&
      (!asked || !rl_round_wait(lock, node, owed))) {
    rl_dispatch_discount(lock, node, now_us, owed);
  }
}

/* What was answered goes to the lock, if it has to do with the attempt yet. */
static void rl_dispatch_tell(rl_lock *lock, rl_node *node, redlock_time now_us,
                             const rl_outstanding *owed, const rl_verdict *ballot,
                             const char *error) {
  if (ballot->other) {
    rl_dispatch_doubt(lock, node, now_us, owed);
    return;
  }
  if (owed->script == RL_SCRIPT_TAKE_HERE && ballot->node_us != 0) {
    rl_guard_recognised(node->link.guard, owed);
  }
  if (lock == NULL || owed->kind == RL_OUTSTANDING_HEAL) {
    return;
  }
  if (owed->kind == RL_OUTSTANDING_CONFIRM) {
    rl_fence_answered(lock, now_us, node, owed, ballot->vote, error);
    return;
  }
  bool asks = owed->script == RL_SCRIPT_TAKE_HERE || owed->kind == RL_OUTSTANDING_ATTACH;
  if (asks && !rl_guard_votes(node->link.guard, now_us)) {
    rl_dispatch_discount(lock, node, now_us, owed);
    return;
  }
  if (rl_command_takes((rl_script)owed->script) && ballot->vote == REDLOCK_VOTE_GRANTED) {
    rl_fence_note(lock, node, owed, ballot->fence);
  }
  rl_round_vote(lock, now_us, node, owed, ballot->vote, error);
}

/* Tokens are secrets: none is told in an error. */
static void rl_dispatch_mask(rl_node *node, const rl_attempt *attempt) {
  const rl_attach *attach = attempt->lock != NULL ? rl_lock_attach(attempt->lock) : NULL;
  rl_link_mask_token(&node->link, attempt);
  if (attach != NULL) {
    rl_link_mask_token(&node->link, attach->handed);
  }
}

/* Returns true if the node has written for it; a script may end well without. */
static bool rl_dispatch_wrote(const rl_outstanding *owed, const rl_verdict *ballot) {
  bool set =
      owed->kind == RL_OUTSTANDING_ACQUIRE && owed->script == RL_SCRIPT_NONE && ballot->set_nothing;
  return (ballot->vote == REDLOCK_VOTE_GRANTED &&
          (owed->kind == RL_OUTSTANDING_ACQUIRE || owed->kind == RL_OUTSTANDING_RELEASE)) ||
         (set && ballot->ran);
}

const char *rl_dispatch(rl_core *core, rl_node *node, redlock_time now_us,
                        const rl_outstanding *owed) {
  const rl_reply *reply = &node->link.reader.reply;
  rl_attempt *attempt = owed->attempt;
  rl_verdict ballot = rl_verdict_read(owed, reply);
  if (ballot.other && node->link.guard == NULL) { /* Only scripts of a guard say so. */
    ballot = (rl_verdict){.vote = REDLOCK_VOTE_ERROR, .broken = true};
  }
  const char *broken = NULL;
  char strange[96];
  char told[RL_REASON_MAX + 1];
  rl_dispatch_mask(node, attempt);
  const char *error = reply->type == RL_REPLY_ERROR ? rl_link_said(&node->link) : NULL;
  bool stepped = false;
  rl_dispatch_note_script(core, node, owed, ballot);
  if (rl_dispatch_wrote(owed, &ballot)) {
    rl_node_wrote(node);
  }
  bool plain = rl_dispatch_wants_plain(&node->link, now_us, owed, &ballot);
  if (ballot.mute || plain) {
    rl_dispatch_mute(core, node, now_us);
  }
  if (ballot.node_us != 0) {
    (void)rl_node_clock_note(&node->link.clock, ballot.node_us, owed->sent_us, now_us);
    if (node->link.guard != NULL) {
      stepped = rl_guarding_note_clock(core, node, now_us, owed, ballot.node_us);
    }
  }
  error = rl_twin_answered(core, node, owed, &ballot) ? node->error : error;
  rl_margin_answered(node, owed, ballot);
  if (stepped) {
    rl_renew_suspect_all(core, now_us);
  }
  if ((ballot.wants_text || plain) && rl_dispatch_send_again(node, now_us, owed)) {
    return NULL;
  }
  if (ballot.broken) {
    broken = "the node sent a reply that answers no command of ours";
    error = broken;
  }
  if (owed->kind == RL_OUTSTANDING_INSPECT && attempt->lock != NULL &&
      ballot.vote == REDLOCK_VOTE_GRANTED) {
    error = rl_inspect_note(attempt->lock, node, owed, reply, strange, sizeof strange);
  }
  if (owed->kind == RL_OUTSTANDING_BOOTSTRAP) {
    ballot = (rl_verdict){rl_bootstrap_read(core, now_us, node, owed, told), .ran = true};
    error = told[0] != '\0' ? told : NULL;
    broken = NULL;
  }
  if (owed->kind == RL_OUTSTANDING_DOCTOR && attempt->lock != NULL &&
      !rl_doctor_note(attempt->lock, now_us, node, owed, reply, &error)) {
    return broken; /* It is no vote yet. */
  }
  rl_release_answered(core, node, now_us, owed, ballot, error);
  rl_twin_tested(core, node, owed);
  rl_dispatch_tell(attempt->lock, node, now_us, owed, &ballot, error);
  return broken;
}
