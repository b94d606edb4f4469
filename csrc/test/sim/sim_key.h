/*
 * The keys of a node. See sim_key.c; sim.h has the functions that only read.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef SIM_KEY_H
#define SIM_KEY_H

#include "sim.h"

uint64_t sim_key_wall_ms(const sim *s, unsigned node);

/* Returns true if the value of the key is the argument |word|. */
bool sim_key_is(const sim_key *key, const resp_request *command, unsigned word);

/* Sets the key, which is one of the node's, to the argument |word|, the text of |token|. */
void sim_key_write(sim *s, unsigned node, sim_key *key, unsigned resource,
                   const resp_request *command, unsigned word, uint32_t token, uint64_t px_ms);

/* The key has been deleted; by force, without the knowledge of its holder. */
void sim_key_deleted(sim *s, unsigned node, unsigned resource, uint32_t token);
void sim_key_forced(sim *s, unsigned node, uint32_t token);

#endif
