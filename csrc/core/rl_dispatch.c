/*
 * Reads each reply, and passes its verdict to the modules that use it.
 *
 * SPDX-License-Identifier: MIT
 */
#include "rl_dispatch.h"

#include <stdio.h>
#include <string.h>

#include "lease/rl_attach.h"
#include "lease/rl_fence.h"
#include "lease/rl_guard_effects.h"
#include "lease/rl_margin.h"
#include "lease/rl_release.h"
#include "lease/rl_renew.h"
#include "lease/rl_twin.h"
#include "lock/rl_round.h"
#include "lock/rl_steps.h"
#include "node/rl_guard.h"
#include "node/rl_native.h"
#include "node/rl_verdict.h"
#include "operator/rl_ask.h"
#include "wait/rl_queue_report.h"
#include "wait/rl_subscriber.h"

#define RL_DISPATCH_ABSENT_US REDLOCK_MILLISECONDS /* tolerated error of a measured latency */

/* Returns true if |command| was sent once more. */
static bool rl_dispatch_send_again(const rl_steps *steps, rl_node *node, redlock_time now_us,
                                   const rl_outstanding *command) {
  return rl_link_has_room(&node->link, command->kind) && steps->send_again != NULL &&
         steps->send_again(node, now_us, command);
}

/*
 * Returns true if a release that notifies was refused because of its keys: by an ACL, by a cluster,
 * or by a server or proxy that needs all keys to be declared. The release did nothing.
 */
static bool rl_dispatch_wants_plain(const rl_link *link, redlock_time now_us,
                                    const rl_outstanding *command, const rl_verdict *verdict) {
  const rl_reply *reply = &link->reader.reply;
  if (reply->type != RL_REPLY_ERROR) {
    return false;
  }
  bool forces = command->kind == RL_OUTSTANDING_FORCE_RELEASE &&
                !command->attempt->deletes_any_token && link->notify_channel != NULL &&
                link->notify_denied_until_us <= now_us;
  bool notifies = command->script == RL_SCRIPT_RELEASE_NOTIFY ||
                  command->script == RL_SCRIPT_RELEASE_ALL_NOTIFY ||
                  command->script == RL_SCRIPT_HOLD_NOTIFY || forces;
  bool refused = !verdict->set_nothing || strncmp(reply->text, "NOPERM ", 7) == 0;
  return notifies && verdict->vote == REDLOCK_VOTE_ERROR && refused && !verdict->wants_text &&
         (strstr(reply->text, "key") != NULL || strstr(reply->text, "Key") != NULL ||
          strstr(reply->text, "KEY") != NULL);
}

/* Returns the feature for which |command| needs a script, or NULL. */
static const char *rl_dispatch_purpose(const rl_outstanding *command) {
  return command->kind == RL_OUTSTANDING_SLOTS ? "a semaphore"
         : command->kind == RL_OUTSTANDING_ATTACH
             ? "attach()"
             : rl_operation_words_of[rl_outstanding_operation(command)].scripted;
}

/*
 * NAT-4. If the node refuses EVAL: notes that, writes the reason of the vote, and returns true if a
 *        native command may replace the script. Otherwise returns false.
 */
static bool rl_dispatch_note_no_scripts(rl_node *node, redlock_time now_us,
                                        const rl_outstanding *command, rl_answer *answer,
                                        char reason[RL_REASON_MAX + 1]) {
  const char *purpose = rl_dispatch_purpose(command);
  if (answer->reason == NULL || !rl_native_refuses_scripts(answer->reason)) {
    return false;
  }
  if (node->link.no_scripts_until_us <= now_us) {
    node->link.no_scripts_until_us = rl_time_add(now_us, RL_NATIVE_NO_SCRIPTS_US);
    rl_native_forget_none(&node->link);
  }
  (void)snprintf(node->error, sizeof node->error,
                 "it runs no scripts, so it takes part only in locks of one resource without "
                 "fence, guard and notifications: %.100s",
                 answer->reason);
  if (purpose != NULL) {
    (void)snprintf(reason, RL_REASON_MAX + 1, "it runs no scripts, which %s needs: %.160s", purpose,
                   answer->reason);
    answer->reason = reason;
  }
  if (rl_outstanding_has(command, RL_PROLONGS)) {
    return rl_native_replaces_scripts(&node->link, now_us);
  }
  return rl_outstanding_has(command, RL_REMOVES) &&
         rl_native_is_for_release(&node->link, now_us, command->attempt);
}

/* NAT-4. Writes the reason of the vote of a node that has refused EVAL and the native command. */
static void rl_dispatch_write_no_native(const rl_outstanding *command, rl_answer *answer,
                                        char reason[RL_REASON_MAX + 1]) {
  (void)snprintf(reason, RL_REASON_MAX + 1,
                 rl_outstanding_has(command, RL_PROLONGS)
                     ? "it runs no scripts, and knows no SET IFEQ, so it cannot extend: %.150s"
                     : "it runs no scripts, and knows neither DELIFEQ nor DELEX, so its key stays "
                       "until it expires: %.150s",
                 answer->reason);
  answer->reason = reason;
}

/*
 * Notes that the node refuses scripts, or the native command. Returns true if another command can
 * replace the refused one.
 */
static bool rl_dispatch_note_refusal(rl_node *node, redlock_time now_us,
                                     const rl_outstanding *command, rl_answer *answer,
                                     char reason[RL_REASON_MAX + 1]) {
  if (answer->reason == NULL) {
    return false;
  }
  if (!rl_native_note_refusal(&node->link, command)) {
    return rl_dispatch_note_no_scripts(node, now_us, command, answer, reason);
  }
  bool extends = rl_outstanding_has(command, RL_PROLONGS);
  bool helpless = rl_native_replaces_scripts(&node->link, now_us) &&
                  (extends || node->link.native == RL_NATIVE_NONE);
  if (helpless) {
    rl_dispatch_write_no_native(command, answer, reason);
  }
  return !helpless;
}

/* Notes that the node knows the script, or has lost it (SCRIPT FLUSH). */
static void rl_dispatch_note_script(rl_core *core, rl_node *node, const rl_outstanding *command,
                                    const rl_verdict *verdict) {
  if (rl_verdict_is_script(command) && (verdict->ran || verdict->wants_text || command->by_text)) {
    node->link.knows[command->script] = verdict->ran;
    core->forgotten_us = verdict->wants_text ? core->now_us : core->forgotten_us;
  }
  if (rl_verdict_is_script(command) && verdict->ran && node->link.no_scripts_until_us != 0) {
    node->link.no_scripts_until_us = 0; /* The user has got the right. */
    if (rl_node_is_up(node)) {
      node->error[0] = '\0';
    }
  }
}

/* Settles the vote of a node that the guard excludes since the command was sent. */
static void rl_dispatch_settle_excluded(rl_lock *lock, rl_node *node, redlock_time now_us,
                                        const rl_outstanding *command) {
  const rl_guard *guard = node->link.guard;
  char reason[RL_REASON_MAX + 1];
  rl_round_vote(lock, now_us, node, command, rl_guard_missing_vote(guard),
                rl_guard_reason(guard, now_us, reason, sizeof reason));
}

/* GRD-5. Lets the guard check the node. The lock awaits the answer, or the node has no vote. */
static void rl_dispatch_recheck(rl_lock *lock, rl_node *node, redlock_time now_us,
                                const rl_outstanding *command) {
  bool asked = rl_guard_recheck(node, now_us);
  if (lock != NULL && !rl_outstanding_has(command, RL_APART) &&
      (!asked || !rl_round_await_guard(lock, node, command))) {
    rl_dispatch_settle_excluded(lock, node, now_us, command);
  }
}

/* Passes the answer to the lock of the attempt. */
static void rl_dispatch_to_lock(rl_lock *lock, rl_node *node, redlock_time now_us,
                                const rl_outstanding *command, const rl_verdict *verdict,
                                const char *error) {
  if (verdict->other_server) {
    rl_dispatch_recheck(lock, node, now_us, command);
    return;
  }
  if (command->script == RL_SCRIPT_TAKE_HERE && verdict->node_us != 0) {
    rl_guard_note_confirmation(node->link.guard, command);
  }
  if (command->kind == RL_OUTSTANDING_HEAL) {
    node->stats.heals += verdict->vote == REDLOCK_VOTE_GRANTED;
    return;
  }
  if (command->kind == RL_OUTSTANDING_CONFIRM) {
    rl_fence_answered(lock, now_us, node, command, verdict->vote, error);
    return;
  }
  if (lock == NULL) {
    rl_round_note_late(node, command, verdict->vote);
    return;
  }
  bool asks = command->script == RL_SCRIPT_TAKE_HERE || command->kind == RL_OUTSTANDING_ATTACH;
  if (asks && !rl_guard_may_vote(node->link.guard, now_us)) {
    rl_dispatch_settle_excluded(lock, node, now_us, command);
    return;
  }
  if (rl_script_takes((rl_script)command->script) && verdict->vote == REDLOCK_VOTE_GRANTED) {
    rl_fence_note_grant(lock, node, command, verdict->fence);
  }
  if (command->kind == RL_OUTSTANDING_ATTACH && verdict->vote == REDLOCK_VOTE_GRANTED) {
    rl_attach_note(lock, command, verdict->left_ms);
  }
  rl_round_vote(lock, now_us, node, command, verdict->vote, error);
}

/* Masks tokens in an error, because they are secrets. */
static void rl_dispatch_mask(rl_node *node, const rl_attempt *attempt) {
  const rl_attach *attach = attempt->lock != NULL ? rl_lock_attach(attempt->lock) : NULL;
  rl_link_mask_token(&node->link, attempt);
  if (attach != NULL) {
    rl_link_mask_token(&node->link, attach->handed);
  }
}

/*
 * Returns true if the reply proves that the node accepts writes. A script may succeed without a
 * write, as that of a heal or of an extend does if the keys live long enough.
 */
static bool rl_dispatch_proves_write(const rl_outstanding *command, const rl_verdict *verdict) {
  bool writes = rl_outstanding_has(command, RL_CREATES | RL_REMOVES) &&
                !rl_outstanding_has(command, RL_APART);
  bool denied = verdict->set_nothing && verdict->ran;
  return (writes && verdict->vote == REDLOCK_VOTE_GRANTED) ||
         (denied && rl_outstanding_is_set(command));
}

/*
 * Notes how long the reply took, unless it may have arrived long ago: a program with blocking calls
 * reads nothing between its calls.
 */
static void rl_dispatch_note_latency(const rl_core *core, rl_node *node, redlock_time now_us,
                                     const rl_outstanding *command) {
  bool unread = command->sent_us <= core->absent_us &&
                rl_time_sub(now_us, core->absent_us) > RL_DISPATCH_ABSENT_US;
  if (!unread) {
    rl_histogram_note(&node->stats.latency, node->link.latency_us);
  }
}

const char *rl_dispatch(rl_core *core, rl_node *node, redlock_time now_us,
                        const rl_outstanding *command) {
  const rl_reply *reply = &node->link.reader.reply;
  rl_attempt *attempt = command->attempt;
  const rl_steps *steps = core->upper->steps[rl_outstanding_operation(command)];
  rl_answer answer; /* without an initializer, which would clear the text, too */
  rl_verdict *verdict = &answer.verdict;
  answer.node = node;
  answer.command = command;
  answer.verdict = rl_verdict_read(command, reply);
  rl_dispatch_note_latency(core, node, now_us, command);
  if (verdict->other_server && node->link.guard == NULL) { /* only scripts of a guard answer this */
    *verdict = rl_verdict_unreadable();
  }
  rl_dispatch_mask(node, attempt);
  const char *error = reply->type == RL_REPLY_ERROR ? rl_link_error_text(&node->link) : NULL;
  char reason[RL_REASON_MAX + 1];
  answer.reason = error;
  bool stepped = false;
  rl_dispatch_note_script(core, node, command, verdict);
  if (rl_dispatch_proves_write(command, verdict)) {
    rl_node_note_write(node);
  }
  bool plain = rl_dispatch_wants_plain(&node->link, now_us, command, verdict);
  if (verdict->notify_denied || plain) {
    rl_queue_report_mute(core, node, now_us);
  }
  if (verdict->node_us != 0) {
    (void)rl_node_clock_note(&node->link.clock, verdict->node_us, command->sent_us, now_us);
    if (node->link.guard != NULL) {
      stepped = rl_guard_effects_note_clock(core, node, now_us, command, verdict->node_us);
    }
  }
  const char *twin = rl_twin_answered(core, node, command, verdict);
  answer.reason = twin != NULL ? twin : answer.reason;
  rl_margin_answered(node, command, verdict);
  if (stepped) {
    rl_renew_warn_all(core, now_us);
  }
  bool other = rl_dispatch_note_refusal(node, now_us, command, &answer, reason) &&
               (!rl_outstanding_has(command, RL_ASKS) || rl_ask_awaits(command)); /* FORCE-2 */
  if ((verdict->wants_text || plain || other) &&
      rl_dispatch_send_again(steps, node, now_us, command)) {
    return NULL;
  }
  bool last = steps->note == NULL || steps->note(core, now_us, &answer);
  const char *broken = verdict->unreadable ? "the node sent an unexpected reply" : NULL;
  if (!last) {
    return broken;
  }
  answer.reason = broken != NULL ? broken : answer.reason;
  rl_release_answered(core, node, now_us, command, verdict, broken != NULL ? broken : error);
  rl_twin_tested(core, node, command);
  rl_dispatch_to_lock(attempt->lock, node, now_us, command, verdict, answer.reason);
  return broken;
}
