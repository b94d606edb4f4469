/*
 * Functions of a client for sim_client.c and sim_client_life.c.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef SIM_CLIENT_H
#define SIM_CLIENT_H

#include "sim.h"

void sim_client_close_socket(sim *s, sim_client *client, unsigned node);

/* The token is over, unless it has been. */
void sim_client_over(sim *s, const sim_client *client, uint32_t token);

/* Records the changes by a call of the core. */
void sim_client_after_call(sim *s, sim_client *client);

#endif
