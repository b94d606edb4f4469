/*
 * When the head of a wait list polls (NTF-4 of rl_notify.c).
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef RL_POLL_TIME_H
#define RL_POLL_TIME_H

#include "wait/rl_wait_state.h"

/* Notes a poll: the time to the next one starts now. */
void rl_poll_time_restart(rl_core *core, rl_ticket *ticket, redlock_time now_us);

/*
 * Returns when to poll or to stop waiting. Later reports of nodes do not postpone a poll that is
 * due by |poll_interval|.
 */
redlock_time rl_poll_time_next(rl_core *core, const rl_ticket *ticket, redlock_time now_us);

/*
 * Returns when the head stops waiting. A short wait ends in time for a last attempt, which finds a
 * key that was released without a notification. A wait of more than |poll_interval| lasts until the
 * budget ends: polls find such a key.
 */
redlock_time rl_poll_time_last(const rl_ticket *ticket);

#endif
