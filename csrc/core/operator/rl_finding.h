/*
 * Findings: problems of nodes and options, by the answers to the doctor, and what to do about them.
 *
 * SPDX-License-Identifier: MIT
 *
 * CONTRIBUTING.md (Where is) names the files of a new finding.
 */
#ifndef RL_FINDING_H
#define RL_FINDING_H

#include "operator/rl_doctor_node.h"

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
  X(notifications)                                                                                 \
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

#endif
