/*
 * What a node's reply to a command means.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef RL_BALLOT_H
#define RL_BALLOT_H

#include "rl_link.h"

/*
 * X(ballot, the vote that it is, whether the command was executed, whether a SET has certainly set nothing):
 *   GRANTED    the node did what it was asked
 *   DENIED     the key is somebody else's, or is not ours
 *   REFUSED    the node did not try, and says why
 *   ERROR      something went wrong; nobody knows whether the node did it
 *   NO_SCRIPT  the node wants the text of the script
 *   BROKEN     it answers no command of ours
 */
#define RL_BALLOTS(X)                                                                              \
  X(GRANTED, REDLOCK_VOTE_GRANTED, true, false)                                                    \
  X(DENIED, REDLOCK_VOTE_TAKEN, true, true)                                                        \
  X(REFUSED, REDLOCK_VOTE_ERROR, false, true)                                                      \
  X(ERROR, REDLOCK_VOTE_ERROR, false, false)                                                       \
  X(NO_SCRIPT, REDLOCK_VOTE_ERROR, false, true)                                                    \
  X(BROKEN, REDLOCK_VOTE_ERROR, false, false)
#define RL_BALLOT(name, vote, ran, set_nothing) RL_BALLOT_##name,
typedef enum rl_ballot { RL_BALLOTS(RL_BALLOT) } rl_ballot;

rl_ballot rl_ballot_read(const rl_owed *owed, const rl_reply *reply);

/* The columns of the table. */
redlock_vote rl_ballot_vote(rl_ballot ballot);
bool rl_ballot_ran(rl_ballot ballot);
bool rl_ballot_set_nothing(rl_ballot ballot);

/*
 * Which of several keys stood in the way of setting them, from 1; 0 when the reply says nothing of the
 * kind, or it was one key.
 */
unsigned rl_ballot_key(const rl_owed *owed, const rl_reply *reply);

/* Whether the command was a script. */
bool rl_ballot_is_script(const rl_owed *owed);

#endif
