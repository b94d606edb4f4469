/*
 * Waiting. See sim_waiting.c. The end of sim.h includes it.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef SIM_WAITING_H
#define SIM_WAITING_H

#include "sim.h"

void sim_waiting_draw(sim *s, sim_random *random); /* the last of the configuration */
void sim_waiting_begin(sim *s);
void sim_waiting_options(sim *s, rl_options *options); /* of an acquire */
void sim_waiting_fault(sim *s);
void sim_waiting_stop(sim *s); /* the faults stop */
void sim_waiting_watch(sim *s);
/* How many attempts the other clients have made for the resource. */
uint64_t sim_waiting_others(const sim *s, unsigned client, unsigned resource);
/* Draws the faults of a notification to the client. Returns true if it is sent. */
bool sim_waiting_calls(sim *s, int connection);

#endif
