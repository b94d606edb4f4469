/*
 * The scripts of fencing tokens and of a guard. See sim_watch.c.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef SIM_WATCH_H
#define SIM_WATCH_H

#include "sim_node.h"

#define SIM_WATCH_SLACK_US 1000000u /* difference of clocks that a script tolerates */

/* Returns true if the command may be one of them, by the number of its arguments. */
bool sim_watch_like(const resp_request *command);

/* Returns the kind of the command; SIM_COMMAND_UNKNOWN if it is none of them. */
sim_command_kind sim_watch_kind(sim *s, const resp_request *command);

/* Parses a command of that kind into indices of its words. Returns false when it is malformed. */
typedef struct sim_watch {
  unsigned count; /* of the lock's keys */
  unsigned resources[SIM_RESOURCES_MAX];
  unsigned token;
  unsigned record, record_key, run_id; /* 0: none */
  bool own;
  uint64_t fence; /* 0: none */
  uint64_t ttl_ms;
} sim_watch;

bool sim_watch_read(const resp_request *command, sim_watch *watch);

/*
 * Returns true if the command is for another server or record; with |unsealed| the seal does not
 * matter.
 */
bool sim_watch_other(sim_node *node, const sim_connection *from, const resp_request *command,
                     const sim_watch *watch, bool unsealed);

void sim_watch_eval(sim *s, int connection, const resp_request *command, sim_request *request);

/* Gives the node a new process: another run_id, and no scripts. */
void sim_watch_restart(sim *s, unsigned node);

/* Changes the node as if it had been a replica for a while, and was promoted. */
void sim_watch_promote(sim *s, unsigned node);

/* Returns the record of the node, or NULL; and the time of its creation by the node's clock. */
const sim_record *sim_watch_record(const sim_node *node, unsigned database);
uint64_t sim_watch_born_us(const sim_record *record);

/* Returns the time of the node's clock. */
uint64_t sim_watch_wall_us(const sim *s, unsigned node);

/* Returns the record under the key, or NULL. With |makes| creates one if there is none. */
sim_record *sim_watch_record_at(sim_node *node, unsigned database, const char *key, size_t length,
                                bool makes);

/* EVAL, script, 1, key, make, fingerprint, age, expected, database */
void sim_watch_guard(sim *s, int connection, const resp_request *command,
                     const sim_request *request);

#endif
