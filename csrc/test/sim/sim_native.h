/*
 * Native commands of a node: DELIFEQ, DELEX, SET IFEQ. See sim_native.c.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef SIM_NATIVE_H
#define SIM_NATIVE_H

#include "sim_node.h"

/* Draws the chances of the run, after everything else. */
void sim_native_draw(sim *s, sim_random *random);

/* The commands that the node knows, drawn from the seed alone. */
void sim_native_init(sim *s, unsigned node);

/* The kind of a native command; SIM_COMMAND_UNKNOWN if it is none. |*token| is its word. */
sim_command_kind sim_native_kind(const resp_request *command, unsigned *token);

/* The error of a node that runs no scripts, if the command is one; or NULL. */
const char *sim_native_refuses(const sim *s, unsigned node, const resp_request *command);

void sim_native_execute(sim *s, int connection, const resp_request *command,
                        const sim_request *request);

#endif
