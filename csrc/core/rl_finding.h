/*
 * Findings: what is wrong with nodes and options, by what the doctor was told, and what to do about it.
 *
 * SPDX-License-Identifier: MIT
 *
 * A new finding is a line here, a check in rl_finding.c, and a line in docs/operating.md and in the FindingName of
 * types.lua, which a spec compares with this table.
 */
#ifndef RL_FINDING_H
#define RL_FINDING_H

#include <stdbool.h>
#include <stdint.h>

#include "rl_doctor.h"

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

/* The number that a node has told under |name|, of at most 16 digits; false when it has told none. */
bool rl_finding_number(const rl_doctor_node *node, const char *name, uint64_t *number);

#endif
