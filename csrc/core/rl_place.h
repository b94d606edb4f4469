/*
 * A place: where the front of a line stands in the queues of the nodes (rl_call.h).
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef RL_PLACE_H
#define RL_PLACE_H

#include "rl_waits.h"

/* A new one, of nobody yet. NULL when there are too many, or no memory. */
rl_place *rl_place_new(rl_core *core);
void rl_place_free(rl_calls *calls, rl_place *place);

/* The place of that id, or NULL; and if somebody waits there. */
rl_place *rl_place_at(const rl_calls *calls, uint32_t id);
rl_place *rl_place_waiting(const rl_calls *calls, uint32_t id);

/* It has something to say to the nodes. */
void rl_place_list(rl_calls *calls, rl_place *place);

/* The nodes, of |nodes|, that are to be asked to let it stand: those whose calls arrive. */
void rl_place_ask(rl_calls *calls, rl_place *place, uint32_t nodes);

/* Says what all of them have to say. Those that nobody waits in are free then. */
void rl_places_send(rl_core *core, redlock_time now_us);

/* All of them are forgotten, without a word; and given up. */
void rl_places_forget(rl_calls *calls);
void rl_places_free(rl_calls *calls);

#endif
