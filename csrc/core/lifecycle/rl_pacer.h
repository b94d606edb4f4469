/*
 * Pacing: when the commands of an operation are sent.
 *
 * SPDX-License-Identifier: MIT
 *
 * A node that gets ten thousand commands at once answers the last of them long after its round. So
 * a round begins only while few commands are outstanding: the in-flight limit of a node. The time
 * of a round starts at its beginning.
 */
#ifndef RL_PACER_H
#define RL_PACER_H

#include "lock/rl_lock.h"

/* A minority of nodes delays a round only if it has this multiple of its limit in flight. */
#define RL_PACER_OVERFULL 16

/* Extends and releases in a row before an acquire (PACE-1). */
#define RL_PACER_RENEWALS 3

/* Most rounds that one call begins: the driver must read replies in between. */
#define RL_PACER_MAX 64

/* Ends an operation whose budget expired before the in-flight limit allowed a round. */
void rl_pacer_give_up(rl_lock *lock, redlock_time now_us);

/* Returns the bytes of entropy that the rounds need. */
size_t rl_pacer_entropy_wanted(const rl_core *core);

/*
 * Returns when rl_pacer_send() must be called if no event comes before: when a round may begin, or
 * an operation is due. REDLOCK_NEVER if nothing waits.
 */
redlock_time rl_pacer_deadline(const rl_core *core);

/* Begins the rounds that the in-flight limit allows, and acquires as far as the entropy lasts. */
void rl_pacer_send(rl_core *core, redlock_time now_us, const unsigned char *entropy,
                   size_t entropy_length);

#endif
