/*
 * What a node's reply to a command means.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef RL_BALLOT_H
#define RL_BALLOT_H

#include "rl_link.h"

/* A reply as it was read, with all that it may mean. */
typedef struct rl_ballot {
  redlock_vote vote;
  bool ran;         /* the command was executed */
  bool set_nothing; /* a SET has certainly set nothing */
  bool wants_text;  /* the node does not know the script: it wants its text */
  bool broken;      /* it answers no command of ours */
  bool called;      /* a release: others were waiting, and the first of them was called */
  bool mute;        /* a release: we may not call */
  bool other;       /* the node is not the one that was asked, and did nothing: rl_guard.c */
  uint64_t node_us; /* what the node's clock showed; 0 if it did not say */
  uint64_t fence;   /* to what it has raised its counters of fencing tokens; 0 if it did not */
} rl_ballot;

rl_ballot rl_ballot_read(const rl_owed *owed, const rl_reply *reply);

/*
 * Which of several keys stood in the way of setting them, from 1; 0 when the reply says nothing of the
 * kind, or it was one key.
 */
unsigned rl_ballot_key(const rl_owed *owed, const rl_reply *reply);

/* Whether the command was a script. */
bool rl_ballot_is_script(const rl_owed *owed);

#endif
