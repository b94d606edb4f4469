/*
 * Findings: what is wrong with nodes and options, by what the doctor was told, and what to do about
 * it.
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

/* What one node has said, and how it is reached. */
typedef struct rl_doctor_node {
  const char *name;
  const char
      *username; /* it is logged in as, by what the node was added with; NULL: the default user */
  bool login_supplied; /* as somebody whom a function has named */
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
  X(clock)                                                                                         \
  X(certificate)                                                                                   \
  X(persistence)                                                                                   \
  X(persistence_failing)                                                                           \
  X(slow)                                                                                          \
  X(old_version)                                                                                   \
  X(endless_keys)                                                                                  \
  X(options)                                                                                       \
  X(replicas)                                                                                      \
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
  unsigned node;                     /* RL_FINDING_NO_NODE: it is about all of them */
  char message[REDLOCK_FINDING_MAX]; /* what is wrong, and what to do */
} rl_finding;

/* The |index|th finding, from 0, the gravest first. False when there are no more. */
bool rl_finding_at(const rl_doctor *doctor, unsigned index, rl_finding *finding);

/*
 * The number that a node has told under |name|, of at most 16 digits; false when it has told none.
 */
bool rl_finding_number(const rl_doctor_node *node, const char *name, uint64_t *number);

#endif
