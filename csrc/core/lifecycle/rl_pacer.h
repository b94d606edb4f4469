/*
 * Launching: what has been begun and not been sent, and when it may be.
 *
 * SPDX-License-Identifier: MIT
 *
 * A node that is sent ten thousand commands at once answers the last of them long after its round is
 * over. So rounds are launched only while the nodes owe little: what a node may owe before more is
 * launched is its window. The clock of a round begins with its launch.
 */
#ifndef RL_PACER_H
#define RL_PACER_H

#include "lock/rl_lock.h"

/* A minority whose windows are full holds nobody up, until they owe so many times as much. */
#define RL_PACER_OVERFULL 16

/* Extends and releases in a row, before an acquire has its turn. */
#define RL_PACER_RENEWALS 3

/* Rounds that one call launches at most: what was sent wants to be heard too. */
#define RL_PACER_MAX 64

/* An acquire has waited in vain for the nodes to answer others. */
void rl_pacer_give_up(rl_lock *lock, redlock_time now_us);

/* Returns true if something can be launched by now, and how much entropy that takes. */
bool rl_pacer_wanted(const rl_core *core);
size_t rl_pacer_entropy_wanted(const rl_core *core);

/* When rl_pacer_wanted() will say so without anything happening before; REDLOCK_NEVER if never. */
redlock_time rl_pacer_deadline(const rl_core *core);

/* Launches what the window lets through, acquires as far as the entropy goes. */
void rl_pacer_send(rl_core *core, redlock_time now_us, const unsigned char *entropy,
                   size_t entropy_length);

#endif
