/*
 * Releases that keep their keys. See sim_hold.c.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef SIM_HOLD_H
#define SIM_HOLD_H

#include "sim_node.h"

/* Returns true if the command is a release that keeps its keys. Its token is behind the keys. */
bool sim_hold_is(sim *s, const resp_request *command);

/* Returns true if it dequeues a ticket, and sets |*place| to the ticket. */
bool sim_hold_leaves(sim *s, const resp_request *command, uint32_t *place);

void sim_hold_eval(sim *s, int connection, const resp_request *command, const sim_request *request);

/* Draws for how long releases of the run keep the keys. */
void sim_hold_draw(sim *s);

/* Draws for how long a release of the next acquire keeps the keys; 0: not at all. */
redlock_duration sim_hold_option(sim *s);

#endif
