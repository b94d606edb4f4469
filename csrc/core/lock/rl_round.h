/*
 * A round: asks the nodes for their votes, and settles each vote.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef RL_ROUND_H
#define RL_ROUND_H

#include "lock/rl_lock.h"
#include "node/rl_node.h"

/* Sends the commands of a lock in phase SEND that has left the outbox. */
void rl_round_start(rl_lock *lock, redlock_time now_us);

/* Lets the operation act on the votes as soon as they are decisive. A round is in flight. */
void rl_round_decide(rl_lock *lock, redlock_time now_us);

/* Counts a vote, or the certainty that none will come. Drops a vote of another round. */
void rl_round_vote(rl_lock *lock, redlock_time now_us, rl_node *node, const rl_outstanding *command,
                   redlock_vote vote, const char *error);

/*
 * Awaits the guard's answer; then rl_round_node_up() asks the node again. Returns false if the
 * node's vote no longer counts.
 */
bool rl_round_await_guard(rl_lock *lock, const rl_node *node, const rl_outstanding *command);

/*
 * Asks a node that the round awaits: it is connected now, or has identified itself. The round may
 * then await it again, for the guard's answer.
 */
void rl_round_node_up(rl_lock *lock, redlock_time now_us, rl_node *node);

/* Settles the vote of a node that the round awaits: no connection could be made. */
void rl_round_node_down(rl_lock *lock, redlock_time now_us, const rl_node *node);

/* Turns the denial of a node into an error: the node has no vote. */
void rl_round_withdraw_denial(rl_lock *lock, unsigned node, const char *reason);

/* Ends the round at its deadline. A node that has not answered gets no vote. */
void rl_round_time_out(rl_lock *lock, redlock_time now_us);

/* Counts the vote of a node that has none yet, and has not replied. Decides nothing. */
void rl_round_settle(rl_lock *lock, unsigned node, redlock_vote vote, const char *error);

/*
 * Does the same for a vote that another lock or operation has received. Statistics do not count it
 * again.
 */
void rl_round_settle_copy(rl_lock *lock, unsigned node, redlock_vote vote, const char *error);

/* Counts the reply to |command|, which came too late to be a vote, in the statistics. */
void rl_round_note_late(rl_node *node, const rl_outstanding *command, redlock_vote vote);

/* Sets the reason of a node that gets no command. */
void rl_round_set_reason(rl_lock *lock, unsigned node, const char *reason);

/*
 * Returns why a node did not vote in the last operation of the caller, or "". Valid until the next
 * round.
 */
const char *rl_round_reason(const rl_lock *lock, unsigned node);

/* Returns for how long a command may be outstanding before its node counts as behind. */
redlock_duration rl_round_patience(const rl_lock *lock);

/* Lets the round ask the node when it is connected, or has identified itself. */
void rl_round_await(rl_lock *lock, const rl_node *node);

/* Stops awaiting nodes. */
void rl_round_await_none(rl_lock *lock);

/* Forgets all votes and their reasons. */
void rl_round_clear(rl_lock *lock);

#endif
