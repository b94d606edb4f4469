/*
 * The commands that a node executes for locks and for operators. See sim_script.c.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef SIM_SCRIPT_H
#define SIM_SCRIPT_H

#include "sim_node.h"
#include "wire/rl_script.h"

/* Returns true if EVAL or EVALSHA names |script|. */
bool sim_script_is(const resp_request *command, rl_script script);

/* The resource that the word names, or SIM_RESOURCES_MAX. */
unsigned sim_script_resource(const resp_request *command, unsigned argument);

void sim_script_set(sim *s, int connection, const resp_request *command,
                    const sim_request *request);
void sim_script_eval(sim *s, int connection, const resp_request *command,
                     const sim_request *request);
void sim_script_inspect(sim *s, int connection, const resp_request *command,
                        const sim_request *request);
void sim_script_delete(sim *s, int connection, const resp_request *command,
                       const sim_request *request);

#endif
