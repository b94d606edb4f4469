/*
 * What follows for leases and waiting rounds when the guard has learned something of the nodes.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef RL_GUARDING_H
#define RL_GUARDING_H

#include "lock/rl_lock.h"

/* G1 of rl_guard.c. All nodes have been added. */
void rl_guarding_prepare(rl_core *core);

/*
 * G2. The node has answered the question of the guard; with |came_up| as the last step of its handshake, else rounds
 * that have waited for it go on.
 */
void rl_guarding_answered(rl_core *core, rl_node *node, redlock_time now_us,
                          const rl_outstanding *command, bool came_up);

/*
 * G6. A reply to |command| says that the node's clock showed |node_us|. Returns true if rl_renew_suspect_all() is to be
 * called when the reply has been looked at.
 */
bool rl_guarding_note_clock(rl_core *core, rl_node *node, redlock_time now_us,
                            const rl_outstanding *command, uint64_t node_us);

/* G3, G6. A node has gone. */
void rl_guarding_review(rl_core *core, redlock_time now_us);

#endif
