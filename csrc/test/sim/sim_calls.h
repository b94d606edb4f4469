/*
 * Queues of waiters on a node, and notifications. See sim_calls.c.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef SIM_CALLS_H
#define SIM_CALLS_H

#include "sim_node.h"

#define SIM_CALLS_NOPERM "-NOPERM this user has no permissions to access one of the channels\r\n"

/*
 * What the command is for, if it has to do with calls; else SIM_COMMAND_UNKNOWN. A release that
 * calls is a release.
 */
sim_command_kind sim_calls_kind(sim *s, const resp_request *command);

/* STAND, LEAVE and the probe: they have no token. */
static inline bool sim_calls_is_queue(sim_command_kind kind) {
  return kind == SIM_COMMAND_ENQUEUE || kind == SIM_COMMAND_DEQUEUE || kind == SIM_COMMAND_PROBE;
}

/* Of STAND and LEAVE: the resource, or SIM_RESOURCES_MAX; and the place that an entry names. */
unsigned sim_calls_resource(const sim *s, const resp_request *command);
uint32_t sim_calls_place(const char *entry);

/* Returns true if a release leaves a queue, and then which place. */
bool sim_calls_leaves(sim *s, const resp_request *command, uint32_t *place);

void sim_calls_eval(sim *s, int connection, const resp_request *command, sim_request *request);

/* SUBSCRIBE and PING. False when it is forbidden. */
bool sim_calls_listen(sim *s, int connection, const resp_request *command,
                      const sim_request *request);

/* An answer that no STAND deserves. */
const char *sim_calls_odd(sim *s);

/* All queues of the node are gone. */
void sim_calls_lose(sim *s, unsigned node);

/* Returns the waiters for the resource on the node. */
sim_waiters *sim_calls_waiters(sim *s, unsigned node, unsigned database, unsigned resource);

#endif
