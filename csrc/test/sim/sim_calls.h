/*
 * Queues of waiters on a node, and notifications. See sim_calls.c.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef SIM_CALLS_H
#define SIM_CALLS_H

#include "sim_node.h"
#include "wait_queue.h"

#define SIM_CALLS_NOPERM "-NOPERM this user has no permissions to access one of the channels\r\n"

/*
 * Returns the kind of a command for queues or notifications; else SIM_COMMAND_UNKNOWN. A release
 * that notifies is a release.
 */
sim_command_kind sim_calls_kind(sim *s, const resp_request *command);

/* Returns true for ENQUEUE, DEQUEUE and the probe: they have no token. */
static inline bool sim_calls_is_queue(sim_command_kind kind) {
  return kind == SIM_COMMAND_ENQUEUE || kind == SIM_COMMAND_DEQUEUE || kind == SIM_COMMAND_PROBE ||
         kind == SIM_COMMAND_SLOTS || kind == SIM_COMMAND_FLAG;
}

/* Of ENQUEUE and DEQUEUE: return the resource, or SIM_RESOURCES_MAX; and the ticket of an entry. */
unsigned sim_calls_resource(const sim *s, const resp_request *command);
uint32_t sim_calls_place(const char *entry);
uint32_t sim_calls_ticket(const resp_request *command);

/* Returns true if a release dequeues a ticket, and sets |*place| to the ticket. */
bool sim_calls_leaves(const resp_request *command, uint32_t *place);

/*
 * A release that keeps its key dequeues |entry|, which may be NULL, and notifies the first entry if
 * it
 * |tells|. A script that |wrote| before needs no memory.
 */
wait_queue_notified sim_calls_held(sim *s, const sim_connection *from, unsigned resource,
                                   const char *entry, bool tells, bool wrote);

void sim_calls_eval(sim *s, int connection, const resp_request *command, sim_request *request);

/* Returns an answer that is wrong for each ENQUEUE. */
const char *sim_calls_odd(sim *s);

/* Deletes all queues of the node. */
void sim_calls_lose(sim *s, unsigned node);

/* Returns the waiters for the resource on the node. */
sim_waiters *sim_calls_waiters(sim *s, unsigned node, unsigned database, unsigned resource);

#endif
