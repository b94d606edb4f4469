/*
 * Releasing by force: an operator deletes the key of another client.
 *
 * SPDX-License-Identifier: MIT
 *
 * The holder learns nothing of it, and goes on until its deadline. redlock.h names this risk.
 *   FORCE-1. The node must hold the token of the question. With REDLOCK_TOKEN_ANY it deletes the
 *            key whatever the key holds.
 *   FORCE-2. Each command is sent once: a command that is late, or repeated, could meet the key of
 *            the next holder. The comparison of tokens protects that key, REDLOCK_TOKEN_ANY does
 *            not.
 *   FORCE-3. The lock is released if a majority has deleted the key or lacks it, and at least one
 *            node has deleted it.
 */
#include "node/rl_link_queue.h"
#include "operator/rl_ask.h"

static const char *rl_force_wrong(const rl_lock *lock, const rl_question *question) {
  (void)lock;
  return question->token_length == REDLOCK_TOKEN_ANY ? NULL
         : question->token == NULL                   ? "there is no token; REDLOCK_TOKEN_ANY is any"
         : question->token_length > REDLOCK_TOKEN_MAX ? "a token has at most 256 bytes"
                                                      : NULL;
}

static const char *rl_force_send(rl_lock *lock, redlock_time now_us, rl_node *node) {
  rl_outstanding command = rl_ask_command(lock, now_us, 0);
  return rl_link_queue_force(&node->link, &command) ? NULL : "out of memory";
}

/* The node may not run the script that notifies waiters: FORCE-2 allows the other one. */
static bool rl_force_send_again(rl_node *node, redlock_time now_us, const rl_outstanding *command) {
  rl_outstanding again = *command;
  again.sent_us = now_us;
  return rl_link_queue_force(&node->link, &again);
}

/* FORCE-3 */
static void rl_force_decide(rl_lock *lock, redlock_time now_us) {
  const rl_quorum *quorum = &lock->quorum;
  bool majority = quorum->granted + quorum->denied >= rl_quorum_majority(quorum->nodes);
  if (rl_ask_is_answered(lock)) {
    rl_ask_end(lock, now_us,
               !majority             ? REDLOCK_E_UNAVAILABLE
               : quorum->granted > 0 ? REDLOCK_OK
                                     : REDLOCK_E_NOT_HELD);
  }
}

const rl_steps rl_force_release_steps = {
    .wrong = rl_force_wrong,
    .send = rl_force_send,
    .send_again = rl_force_send_again,
    .decide = rl_force_decide,
};
