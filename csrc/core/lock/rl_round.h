/*
 * A round: asking the nodes for their votes, and settling each of them.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef RL_ROUND_H
#define RL_ROUND_H

#include "lock/rl_lock.h"
#include "node/rl_node.h"

/* Sends the commands of a lock in RL_PHASE_SEND, which has left the outbox and prepared its round. */
void rl_round_start(rl_lock *lock, redlock_time now_us);

/* A3, E3, R3: the operation acts on the votes as soon as they are decisive. A round is in flight. */
void rl_round_decide(rl_lock *lock, redlock_time now_us);

/* A vote, or the certainty that none will come. Those of other rounds are dropped. */
void rl_round_vote(rl_lock *lock, redlock_time now_us, rl_node *node, const rl_outstanding *command,
                   redlock_vote vote, const char *error);

/* The node is asked again, when it has told who it is: rl_round_node_up(). False if its vote is of no use. */
bool rl_round_wait(rl_lock *lock, const rl_node *node, const rl_outstanding *command);

/* The connection of a node that the lock waits for has come up, or it has told who it is. */
void rl_round_node_up(rl_lock *lock, redlock_time now_us, rl_node *node);

/* A node that the lock waits for could not be connected. */
void rl_round_node_down(rl_lock *lock, redlock_time now_us, const rl_node *node);

/* The round is over: what has not answered has no vote. */
/* The node turns out to have no vote, though it denied the lock. */
void rl_round_withdraw(rl_lock *lock, unsigned node, const char *reason);

void rl_round_time_out(rl_lock *lock, redlock_time now_us);

/* Notes the vote of one node, if it has none yet. Nothing is decided. */
void rl_round_settle(rl_lock *lock, unsigned node, redlock_vote vote, const char *error,
                     redlock_duration latency_us);

/* A reason for a node that is asked nothing. */
void rl_round_set_reason(rl_lock *lock, unsigned node, const char *reason);

/*
 * Why a node did not vote for the lock in the user's last operation, "" if there is no reason. Valid
 * until the next round.
 */
const char *rl_round_reason(const rl_lock *lock, unsigned node);

/* For how long a node may owe a reply and still be asked by the lock: else it is behind. */
redlock_duration rl_round_patience(const rl_lock *lock);

/* The round asks the node when its connection is up. */
void rl_round_await(rl_lock *lock, const rl_node *node);

/* The round awaits no node any longer. */
void rl_round_await_none(rl_lock *lock);

/* No node has voted. */
void rl_round_clear(rl_lock *lock);

#endif
