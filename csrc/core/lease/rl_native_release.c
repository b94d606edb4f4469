/*
 * The companions of a native release: the tries, the waiters flag and the notification.
 *
 * SPDX-License-Identifier: MIT
 */
#include "lease/rl_native_release.h"

#include <string.h>

#include "node/rl_native.h"
#include "node/rl_verdict.h"
#include "wait/rl_notify.h"
#include "wait/rl_queue_report.h"

static void rl_native_release_notify(rl_node *node, redlock_time now_us, rl_attempt *attempt,
                                     bool by_text) {
  rl_link *link = &node->link;
  if (rl_link_has_room(link, RL_OUTSTANDING_RELEASE)) {
    (void)rl_native_queue_notify(link, now_us, attempt, by_text);
  }
}

/* Returns true if the reply answers a try, or the script that notifies. */
static bool rl_native_release_is_valid(const rl_outstanding *command, const rl_reply *reply) {
  int most = command->step == RL_NATIVE_NOTIFY ? 3 : 1;
  return reply->type == RL_REPLY_ERROR || command->step == RL_NATIVE_FLAG ||
         (reply->type == RL_REPLY_INTEGER && reply->integer >= 0 && reply->integer <= most);
}

/* Returns true if the node does not let the user notify, or does not know these scripts. */
static bool rl_native_release_is_denied(const rl_reply *reply) {
  bool refused = reply->type == RL_REPLY_ERROR &&
                 (!rl_verdict_is_refusal(reply->text) || strncmp(reply->text, "NOPERM ", 7) == 0);
  return refused || (reply->type == RL_REPLY_INTEGER && reply->integer == 3);
}

const char *rl_native_release_answered(rl_core *core, rl_node *node, redlock_time now_us,
                                       const rl_outstanding *command) {
  const rl_reply *reply = &node->link.reader.reply;
  bool error = reply->type != RL_REPLY_INTEGER;
  if (!rl_native_release_is_valid(command, reply)) {
    return "the node sent an unexpected reply";
  }
  switch (command->step) {
  case RL_NATIVE_DELIFEQ:
  case RL_NATIVE_DELEX:
    /* The release has deleted the key, so only a proxy that pretends answers 1. */
    rl_native_note_try(&node->link, command->step, !error && reply->integer == 0);
    break;
  case RL_NATIVE_FLAG:
    if (error) { /* The user lacks the right: the script finds the flag. */
      node->link.native = RL_NATIVE_NONE;
    } else if (reply->integer > 0) {
      rl_notify_note_contention(core, command->attempt->resource, now_us);
      rl_native_release_notify(node, now_us, command->attempt, false);
    }
    break;
  case RL_NATIVE_NOTIFY:
  default:
    node->link.knows[command->script] = !error;
    if (reply->type == RL_REPLY_ERROR && strncmp(reply->text, "NOSCRIPT", 8) == 0 &&
        !command->by_text) {
      rl_native_release_notify(node, now_us, command->attempt, true);
    } else if (rl_native_release_is_denied(reply)) {
      rl_queue_report_mute(core, node, now_us);
    }
    break;
  }
  return NULL;
}
