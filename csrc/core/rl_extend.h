/*
 * Extending a lease.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef RL_EXTEND_H
#define RL_EXTEND_H

#include <stdbool.h>

#include "rl_lock.h"
#include "rl_node.h"

/* E1. Returns false when the operation has ended instead. */
bool rl_extend_begin(rl_lock *lock, redlock_time now_us);

/* E2, for one node. Returns NULL, or why it was not sent. */
const char *rl_extend_send(rl_lock *lock, redlock_time now_us, rl_node *node);

/* The node does not know the script: once more, by its text. Returns whether it was sent. */
bool rl_extend_send_text(rl_node *node, redlock_time now_us, const rl_owed *owed);

/* E3, E5, E6: acts on the votes as soon as they are decisive. */
void rl_extend_decide(rl_lock *lock, redlock_time now_us);

/* E5: a node has answered after the round of an extend that failed. */
void rl_extend_late(rl_lock *lock, redlock_time now_us);

/* E4, for one node. The majority has confirmed in this round. */
void rl_extend_heal(rl_lock *lock, redlock_time now_us, rl_node *node);

#endif
