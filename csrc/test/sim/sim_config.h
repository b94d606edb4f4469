/*
 * The parameters of a run. See sim_config.c.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef SIM_CONFIG_H
#define SIM_CONFIG_H

#include <stdbool.h>
#include <stdint.h>

#include "redlock.h"
#include "sim_fault.h"

/* X(breach, name): an assumption that the run breaks, for the negative controls. */
#define SIM_BREACHES(X)                                                                            \
  X(NONE, "none")                                                                                  \
  X(FAST_NODE, "fast-node")                                                                        \
  X(SLOW_CLIENT, "slow-client")                                                                    \
  X(RESTART_EMPTY, "restart-empty")                                                                \
  X(STEP_FORWARD, "step-forward")                                                                  \
  X(EVICTION, "eviction")                                                                          \
  X(FLUSH, "flush")                                                                                \
  X(FAILOVER, "failover")                                                                          \
  X(FOREIGN_DELETE, "foreign-delete")                                                              \
  X(FROZEN_CLOCK, "frozen-clock")                                                                  \
  X(WALL_CLOCK, "wall-clock")                                                                      \
  X(TOKEN_REUSED, "token-reused")                                                                  \
  X(TOKEN_SHARED, "token-shared")                                                                  \
  X(NODE_LISTS, "node-lists")                                                                      \
  X(DATABASES, "databases")                                                                        \
  X(REPLY_LOST, "reply-lost")                                                                      \
  X(NOT_ATOMIC, "not-atomic")                                                                      \
  X(LATE_READING, "late-reading")                                                                  \
  X(LATE_HOLDER, "late-holder")                                                                    \
  X(COUNTERS_LOST, "counters-lost")                                                                \
  X(COUNTED_PER_NODE, "counted-per-node")                                                          \
  X(KEY_NOT_RESERVED, "key-not-reserved")                                                          \
  X(FORCE_SPREADS, "force-spreads")

typedef enum sim_breach {
#define SIM_BREACH_NAME(breach, name) SIM_BREACH_##breach,
  SIM_BREACHES(SIM_BREACH_NAME)
#undef SIM_BREACH_NAME
      SIM_BREACH_COUNT
} sim_breach;

typedef struct sim_config {
  unsigned nodes, clients, locks, resources;
  bool databases; /* nodes are used with SELECT */
  bool passwords;
  redlock_duration ttl_us[2]; /* drawn from for each acquire and extend */
  redlock_duration ttl_max_us;
  redlock_duration lock_delay_us;
  double drift_factor;
  unsigned client_ppm, node_ppm; /* how far clocks may drift; together no more than drift_factor */
  redlock_duration node_timeout_us;
  int retry_count;
  redlock_duration retry_delay_us, retry_jitter_us, wait_us;
  uint64_t delay_from_us, delay_to_us; /* of a message, one way, usually */
  unsigned tail;                       /* and in so many of 10000 cases at a boundary of the ttl */
  unsigned pieces;                     /* in so many of 10000 cases bytes come in pieces */
  unsigned partial_write;
  unsigned pause;          /* between two calls of the core, in so many of 10000 cases */
  unsigned stale;          /* between the reading of the clock and the call of the core, likewise */
  uint64_t fault_every_us; /* 0 = there are none */
  uint16_t weights[SIM_FAULT_KINDS];
  unsigned weight_sum;
  unsigned break_weights[3];
  unsigned window;   /* in-flight limit of a node; 0: as in the library */
  uint64_t think_us; /* between two operations of an application, at most */
  unsigned extends, cancels, frees;
  unsigned blocking;       /* clients that do nothing between their blocking calls, as a script */
  unsigned auto_extending; /* clients whose leases may be auto-extended */
  uint64_t extend_every_us, max_hold_us;
  uint64_t events; /* the length of the safety phase */
  uint64_t length_us;
  unsigned several;         /* clients with locks on both resources */
  unsigned handovers;       /* in so many of 10000 cases a lease is handed over */
  unsigned fire_and_forget; /* in so many of 10000 cases a release is fire-and-forget */
  unsigned supplied;        /* in so many of 10000 cases an acquire has a caller-supplied token */
  unsigned operators;       /* clients that inspect now and then */
  unsigned forces;          /* in so many of 10000 cases they delete a key that they have seen */
  unsigned reentrant;       /* clients whose locks have owners */
  unsigned leading;         /* clients that campaign with their first lock */
  redlock_duration hold_us; /* longest hold_at_least of an acquire; 0: none has it */
  unsigned fenced;          /* in so many of 10000 cases an acquire asks for a fencing token */
  bool close_clocks; /* nodes' clocks are as near to each other as counters that can be lost need */
  int64_t close_us;  /* so near to the true time, then, with all their steps */
  unsigned quorum;   /* how many nodes an acquire and an extend need; 0: a majority */
  bool twins;        /* the last node is a proxy before the first */
  bool guard;
  redlock_duration guard_max_ttl_us;
  unsigned forgetful;   /* so many nodes at most are in quarantine at once */
  bool ready;           /* the nodes have records when the run begins */
  bool notifications;   /* nodes notify waiters */
  unsigned lost;        /* so many of 10000 notifications never arrive */
  unsigned late;        /* or late */
  unsigned dies;        /* or their client is killed */
  unsigned fair;        /* in so many of 10000 cases an acquire does not overtake */
  unsigned patient;     /* in so many of 10000 cases it may wait for long */
  unsigned permits;     /* all locks are semaphores with so many slots; 0: none is */
  unsigned waiters_max; /* that a queue takes */
  uint64_t poll_interval_us;
  bool mix;             /* a mix of waiters follows the faults */
  uint64_t mix_hold_us; /* longest hold in it */
  bool native;          /* the core uses native commands, and some nodes know them */
  bool lacks_scripts;   /* some nodes run no scripts */
} sim_config;

#endif
