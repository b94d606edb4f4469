/*
 * A node as the doctor sees it: its answer, words of the form name=value, and its connection.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef RL_DOCTOR_NODE_H
#define RL_DOCTOR_NODE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/rl_reason.h"
#include "base/rl_time.h"
#include "wire/rl_reply.h"

#define RL_DOCTOR_WORD_MAX 64 /* bytes of a value, cut by the script */

/* The answer of one node, and how the client connects to it. */
typedef struct rl_doctor_node {
  const char *name;
  const char *username; /* of its address; NULL: the default user */
  bool login_supplied;  /* a function of the caller supplied the user and the password */
  int db;
  bool answered;                  /* |said| is its answer; otherwise why it has none */
  bool no_evalsha;                /* the user may not run scripts by their names */
  bool unknown_evalsha;           /* the server cannot run scripts by their names */
  bool sentinel;                  /* the server is a Sentinel */
  redlock_duration round_trip_us; /* of the shortest command; REDLOCK_NEVER: not known */
  bool has_clock;
  uint64_t clock_us;                  /* the core's clock minus the node's, modulo 2^64 */
  redlock_duration clock_error_us;    /* greatest error of clock_us */
  redlock_duration certificate_us;    /* validity of its certificate; REDLOCK_NEVER: not known */
  bool refused;                       /* the guard refuses the node */
  char quarantine[RL_REASON_MAX + 1]; /* why the guard gives it no vote; empty if it votes */
  char mute[RL_REASON_MAX + 1];       /* why its notifications do not arrive; empty: not known */
  char said[RL_REPLY_BYTES_MAX + 1];  /* printable */
} rl_doctor_node;

typedef struct rl_doctor {
  unsigned count;                 /* of nodes */
  bool done;                      /* the examination has ended */
  bool keys;                      /* the nodes searched their keys */
  bool guard;                     /* the client has a guard */
  bool fence;                     /* leases have fencing tokens */
  bool permits;                   /* the lock is a semaphore */
  bool notify;                    /* nodes notify waiters */
  redlock_duration spare_us;      /* by which the guard's max_ttl exceeds ttl and lock_delay */
  redlock_duration quarantine_us; /* of the guard */
  redlock_duration ttl_us;
  redlock_duration node_timeout_us;
  const char *key; /* the lock's */
  size_t key_length;
  const char *prefix;
  size_t prefix_length;
  char suffix[40]; /* behind the lock's key: no key has that name */
  rl_doctor_node nodes[];
} rl_doctor;

/* Returns the value of |name|, and its length; NULL if the node did not report it. */
const char *rl_doctor_node_find(const rl_doctor_node *node, const char *name, size_t *length);

/* Copies the value of |name|; empty if the node did not report it. Returns |value|. */
const char *rl_doctor_node_value(const rl_doctor_node *node, const char *name,
                                 char value[static RL_DOCTOR_WORD_MAX + 1]);

/* Returns true if the node reported this value of |name|. */
bool rl_doctor_node_is(const rl_doctor_node *node, const char *name, const char *value);

/*
 * Sets |*number| to the node's number under |name|. Returns false if the node reported none.
 */
bool rl_doctor_node_number(const rl_doctor_node *node, const char *name, uint64_t *number);

/* Returns " of HOST:PORT" in |of|, or "" if a replica does not report its master. */
#define RL_DOCTOR_MASTER_SIZE 160
const char *rl_doctor_node_master(const rl_doctor_node *node,
                                  char of[static RL_DOCTOR_MASTER_SIZE]);

/* Returns the first number of the version, and the product; 0 if it is not known. */
uint64_t rl_doctor_node_major(const rl_doctor_node *node, const char **product);

/* Returns how far the clock of |node| is ahead of that of |other|, in microseconds. */
int64_t rl_doctor_node_ahead(const rl_doctor_node *node, const rl_doctor_node *other);

/* Returns the node with the median clock, the lower one of two; NULL if no clock is known. */
const rl_doctor_node *rl_doctor_median(const rl_doctor *doctor);
#endif
