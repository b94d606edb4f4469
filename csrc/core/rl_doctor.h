/*
 * The doctor: asks every node what there is to know of it, for rl_finding.c to judge.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef RL_DOCTOR_H
#define RL_DOCTOR_H

#include "rl_lock.h"
#include "rl_node.h"
#include "rl_reply.h"

/* What one node has said, and how it is reached. */
typedef struct rl_doctor_node {
  const char *name;
  const char
      *username; /* it is logged in as, by what the node was added with; NULL: the default user */
  bool login_given; /* as somebody whom a function has named */
  int db;
  bool answered;                  /* |said| is its answer; else it is why there is none */
  bool no_evalsha;                /* it may not run scripts by their names */
  bool unknown_evalsha;           /* the server does not know how to */
  bool sentinel;                  /* it is none: it watches servers */
  redlock_duration round_trip_us; /* of the shortest command; REDLOCK_NEVER when it is not known */
  bool has_clock;
  uint64_t clock_us;               /* its clock was that much before the core's, modulo 2^64 */
  redlock_duration clock_error_us; /* or so much more or less */
  redlock_duration certificate_us; /* its certificate is valid for that long; NEVER: not known */
  bool refused;                    /* the guard takes it for none of its nodes */
  char quarantine[RL_REASON_MAX +
                  1]; /* why the guard keeps it from voting; empty when it does not */
  char said[RL_REPLY_BYTES_MAX + 1]; /* printable */
} rl_doctor_node;

typedef struct rl_doctor {
  unsigned count;
  bool done;  /* the examination has ended */
  bool keys;  /* keys were looked through */
  bool guard; /* nodes that forgot their keys do not vote */
  bool fence; /* leases are to have fencing tokens */
  redlock_duration ttl_us;
  redlock_duration node_timeout_us;
  const char *key; /* the lock's */
  size_t key_length;
  const char *prefix;
  size_t prefix_length;
  char suffix[40]; /* behind the lock's key: no such key is there */
  rl_doctor_node nodes[];
} rl_doctor;

/* The lock goes. */
void rl_doctor_forget(rl_lock *lock);

/* For how long the nodes may answer: D4. */
redlock_duration rl_doctor_timeout(const rl_lock *lock);

/* D2, D3. Sends the questions, or the first of them. Returns NULL, or why it was not sent. */
const char *rl_doctor_send(rl_lock *lock, redlock_time now_us, rl_node *node);

/*
 * Notes what |node| has said, and sends what is asked next. Returns whether that was its last answer; if it was because
 * nothing more could be sent, |why| is the reason.
 */
bool rl_doctor_note(rl_lock *lock, redlock_time now_us, rl_node *node, const rl_owed *owed,
                    const rl_reply *reply, const char **why);

/* D4 */
void rl_doctor_decide(rl_lock *lock, redlock_time now_us);

/* What the nodes have told; NULL when the lock has asked nothing, or not to the end. */
const rl_doctor *rl_doctor_of(const rl_lock *lock);

#endif
