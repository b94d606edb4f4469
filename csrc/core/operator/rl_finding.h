/*
 * Findings: problems of nodes and options, by the answers to the doctor, and what to do about them.
 *
 * SPDX-License-Identifier: MIT
 *
 * A new finding is a line here, a check in rl_finding.c, and a line in docs/operating.md and in the
 * FindingName of types.lua, which a spec compares with this table.
 */
#ifndef RL_FINDING_H
#define RL_FINDING_H

#include <stdbool.h>
#include <stdint.h>

#include "base/rl_reason.h"
#include "base/rl_time.h"
#include "wire/rl_reply.h"

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
  char said[RL_REPLY_BYTES_MAX + 1];  /* printable */
} rl_doctor_node;

typedef struct rl_doctor {
  unsigned count;                 /* of nodes */
  bool done;                      /* the examination has ended */
  bool keys;                      /* the nodes searched their keys */
  bool guard;                     /* the client has a guard */
  bool fence;                     /* leases have fencing tokens */
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

/* X(its name). */
#define RL_FINDINGS(X)                                                                             \
  X(down)                                                                                          \
  X(quarantined)                                                                                   \
  X(same_server)                                                                                   \
  X(replica)                                                                                       \
  X(writable_replica)                                                                              \
  X(cluster)                                                                                       \
  X(eviction)                                                                                      \
  X(rights)                                                                                        \
  X(refuses)                                                                                       \
  X(scripts)                                                                                       \
  X(clock)                                                                                         \
  X(certificate)                                                                                   \
  X(persistence)                                                                                   \
  X(persistence_failing)                                                                           \
  X(slow)                                                                                          \
  X(old_version)                                                                                   \
  X(endless_keys)                                                                                  \
  X(options)                                                                                       \
  X(replicas)                                                                                      \
  X(min_replicas)                                                                                  \
  X(mixed_versions)                                                                                \
  X(node_count)

/* X(severity, its name), the gravest first. */
#define RL_SEVERITIES(X)                                                                           \
  X(REDLOCK_SEVERITY_ERROR, error)                                                                 \
  X(REDLOCK_SEVERITY_WARNING, warning)                                                             \
  X(REDLOCK_SEVERITY_NOTE, note)

#define RL_FINDING_NO_NODE UINT32_MAX

typedef struct rl_finding {
  redlock_severity severity;
  const char *name;                  /* static */
  unsigned node;                     /* or RL_FINDING_NO_NODE */
  char message[REDLOCK_FINDING_MAX]; /* what is wrong, and what to do */
} rl_finding;

/* Returns true, and the |index|th finding from 0, the gravest first; false if there are no more. */
bool rl_finding_at(const rl_doctor *doctor, unsigned index, rl_finding *finding);

/*
 * Sets |*number| to the node's number under |name|, of at most 16 digits. Returns false if it
 * reported none.
 */
bool rl_finding_number(const rl_doctor_node *node, const char *name, uint64_t *number);

#endif
