/*
 * The meaning of a node's reply to a command.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef RL_VERDICT_H
#define RL_VERDICT_H

#include "node/rl_link.h"

/* The meaning of a reply. */
typedef struct rl_verdict {
  redlock_vote vote;
  bool ran;           /* the command was executed */
  bool set_nothing;   /* a SET has certainly set nothing */
  bool wants_text;    /* the node needs the text of the script */
  bool unreadable;    /* the reply answers no command of the library: the connection ends */
  bool notified;      /* a release notified a waiter */
  bool notify_denied; /* a release: the user may not notify */
  bool other_server;  /* another server answered, and did nothing (rl_guard.c) */
  uint64_t node_us;   /* the node's clock; 0 if unknown */
  uint64_t left_ms;   /* attach: longest life that the handed keys had left */
  uint64_t fence;     /* the raised counter of fencing tokens; 0 if it was not raised */
} rl_verdict;

/* Returns the verdict of a reply that answers no command of the library. */
static inline rl_verdict rl_verdict_unreadable(void) {
  return (rl_verdict){.vote = REDLOCK_VOTE_ERROR, .unreadable = true};
}

rl_verdict rl_verdict_read(const rl_outstanding *command, const rl_reply *reply);

/* Returns the number of the key, of several, that prevented a SET, from 1; 0 if there is none. */
unsigned rl_verdict_key(const rl_outstanding *command, const rl_reply *reply);

/* Returns true if the error precedes the execution of a command on every Redis server. */
bool rl_verdict_is_refusal(const char *text);

/* Returns true if the command was a script. */
bool rl_verdict_is_script(const rl_outstanding *command);

#endif
