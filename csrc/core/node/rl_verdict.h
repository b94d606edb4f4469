/*
 * What a node's reply to a command means.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef RL_VERDICT_H
#define RL_VERDICT_H

#include "base/rl_operation.h"
#include "node/rl_link.h"

/* A reply as it was read, with all that it may mean. */
typedef struct rl_verdict {
  redlock_vote vote;
  bool ran;           /* the command was executed */
  bool set_nothing;   /* a SET has certainly set nothing */
  bool wants_text;    /* the node does not know the script: it wants its text */
  bool broken;        /* it answers no command of ours */
  bool notified;      /* a release: others were waiting, and the first of them was called */
  bool notify_denied; /* a release: we may not call */
  bool other_server;  /* the node is not the one that was asked, and did nothing: rl_guard.c */
  uint64_t node_us;   /* what the node's clock showed; 0 if it did not say */
  uint64_t fence;     /* to what it has raised its counters of fencing tokens; 0 if it did not */
} rl_verdict;

/* The verdict of a reply that answers no command of ours. */
static inline rl_verdict rl_verdict_broken(void) {
  return (rl_verdict){.vote = REDLOCK_VOTE_ERROR, .broken = true};
}

/* The operation whose steps read the answer. */
static inline rl_operation rl_verdict_operation(const rl_outstanding *command) {
  switch (command->kind) {
  case RL_OUTSTANDING_EXTEND:
  case RL_OUTSTANDING_HEAL:
    return RL_OPERATION_EXTEND;
  case RL_OUTSTANDING_RELEASE:
    return RL_OPERATION_RELEASE;
  default:
    return command->kind >= RL_OUTSTANDING_ASK ? (rl_operation)(command->kind - RL_OUTSTANDING_ASK)
                                               : RL_OPERATION_ACQUIRE;
  }
}

rl_verdict rl_verdict_read(const rl_outstanding *command, const rl_reply *reply);

/*
 * Which of several keys stood in the way of setting them, from 1; 0 when the reply says nothing of the
 * kind, or it was one key.
 */
unsigned rl_verdict_key(const rl_outstanding *command, const rl_reply *reply);

/* Returns true if the command was a script. */
bool rl_verdict_is_script(const rl_outstanding *command);

#endif
