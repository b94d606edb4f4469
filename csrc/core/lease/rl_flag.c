/*
 * What goes with a native release: the tries, the waiters flag and the notification.
 *
 * SPDX-License-Identifier: MIT
 */
#include "lease/rl_flag.h"

#include <string.h>

#include "node/rl_native.h"
#include "wait/rl_notify.h"

static void rl_flag_notify(rl_node *node, redlock_time now_us, rl_attempt *attempt, bool by_text) {
  rl_link *link = &node->link;
  if (rl_link_has_room(link, RL_OUTSTANDING_RELEASE)) {
    (void)rl_native_queue_notify(link, now_us, attempt, by_text);
  }
}

void rl_flag_answered(rl_core *core, rl_node *node, redlock_time now_us,
                      const rl_outstanding *command) {
  const rl_reply *reply = &node->link.reader.reply;
  bool error = reply->type != RL_REPLY_INTEGER;
  switch (command->step) {
  case RL_NATIVE_DELIFEQ:
  case RL_NATIVE_DELEX:
    rl_native_tried(&node->link, command->step, !error);
    break;
  case RL_NATIVE_FLAG:
    if (error) { /* The user lacks the right: the script finds the flag. */
      node->link.native = RL_NATIVE_NONE;
    } else if (reply->integer > 0) {
      rl_notify_note_contention(core, command->attempt->resource, now_us);
      rl_flag_notify(node, now_us, command->attempt, false);
    }
    break;
  case RL_NATIVE_NOTIFY:
  default:
    node->link.knows[command->script] = !error;
    if (reply->type == RL_REPLY_ERROR && strncmp(reply->text, "NOSCRIPT", 8) == 0 &&
        !command->by_text) {
      rl_flag_notify(node, now_us, command->attempt, true);
    }
    break;
  }
}
