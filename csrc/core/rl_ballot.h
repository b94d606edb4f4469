/*
 * What a node's reply to a command means.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef RL_BALLOT_H
#define RL_BALLOT_H

#include "rl_link.h"

typedef enum rl_ballot {
  RL_BALLOT_GRANTED,   /* the node did what it was asked */
  RL_BALLOT_TAKEN,     /* the key is somebody else's, or is not ours */
  RL_BALLOT_REFUSED,   /* the node did not try, and says why */
  RL_BALLOT_ERROR,     /* something went wrong; nobody knows whether the node did it */
  RL_BALLOT_NO_SCRIPT, /* the node wants the text of the script */
  RL_BALLOT_BROKEN     /* it answers no command of ours */
} rl_ballot;

rl_ballot rl_ballot_read(const rl_owed *owed, const rl_reply *reply);

/* The vote that a ballot is. */
redlock_vote rl_ballot_vote(rl_ballot ballot);

/*
 * Which of several keys stood in the way of setting them, from 1; 0 when the reply says nothing of the
 * kind, or it was one key.
 */
unsigned rl_ballot_key(const rl_owed *owed, const rl_reply *reply);

/* Whether the command was a script. */
bool rl_ballot_is_script(const rl_owed *owed);

#endif
