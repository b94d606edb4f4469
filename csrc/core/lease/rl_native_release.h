/*
 * The companions of a native release: the tries, the waiters flag and the notification.
 *
 * SPDX-License-Identifier: MIT
 *
 * rl_native.h numbers the steps.
 */
#ifndef RL_NATIVE_RELEASE_H
#define RL_NATIVE_RELEASE_H

#include "lock/rl_lock.h"
#include "node/rl_link.h"
#include "node/rl_node.h"

/* Returns true if the command is one of these. Its answer is no vote. */
static inline bool rl_native_release_is_for(const rl_outstanding *command) {
  return command->kind == RL_OUTSTANDING_NATIVE;
}

/* Acts on the answer in reader.reply. Returns NULL, or why the connection must end. */
const char *rl_native_release_answered(rl_core *core, rl_node *node, redlock_time now_us,
                                       const rl_outstanding *command);

#endif
