/*
 * A ticket: where the head of a waitlist stands in the queues of the nodes (rl_notify.h).
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef RL_TICKET_H
#define RL_TICKET_H

#include "wait/rl_waits.h"

/* A new one, of nobody yet. NULL when there are too many, or no memory. */
rl_ticket *rl_ticket_new(rl_core *core);
void rl_ticket_free(rl_notify_state *notify, rl_ticket *ticket);

/* The ticket of that id, or NULL; and if somebody waits there. */
rl_ticket *rl_ticket_at(const rl_notify_state *notify, uint32_t id);
rl_ticket *rl_ticket_waiting(const rl_notify_state *notify, uint32_t id);

/* It has something to say to the nodes. */
void rl_ticket_list(rl_notify_state *notify, rl_ticket *ticket);

/* The nodes, of |nodes|, that are to be asked to let it stand: those whose notify arrive. */
void rl_ticket_ask(rl_notify_state *notify, rl_ticket *ticket, uint32_t nodes);

/* Says what all of them have to say. Those that nobody waits in are free then. */
void rl_tickets_send(rl_core *core, redlock_time now_us);

/* All of them are forgotten, without a word; and given up. */
void rl_tickets_reset(rl_notify_state *notify);
void rl_tickets_free(rl_notify_state *notify);

#endif
