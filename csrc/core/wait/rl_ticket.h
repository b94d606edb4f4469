/*
 * Tickets: the entries of heads in the queues of the nodes (rl_notify.h).
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef RL_TICKET_H
#define RL_TICKET_H

#include "wait/rl_waits.h"

/* Returns a ticket without a wait list; NULL when there are too many tickets, or no memory. */
rl_ticket *rl_ticket_new(rl_core *core);
void rl_ticket_free(rl_notify_state *notify, rl_ticket *ticket);

/* Returns the ticket with that id, or NULL; only if a wait list uses it. */
rl_ticket *rl_ticket_at(const rl_notify_state *notify, uint32_t id);
rl_ticket *rl_ticket_waiting(const rl_notify_state *notify, uint32_t id);

/* Adds the ticket to the list of tickets to send. */
void rl_ticket_list(rl_notify_state *notify, rl_ticket *ticket);

/* Queues ENQUEUE for those of |nodes| whose notifications arrive. */
void rl_ticket_ask(rl_notify_state *notify, rl_ticket *ticket, uint32_t nodes);

/* Sends the commands of all listed tickets, and frees the tickets without a wait list. */
void rl_tickets_send(rl_core *core, redlock_time now_us);

/* Frees all tickets for reuse without sending anything. */
void rl_tickets_reset(rl_notify_state *notify);

/* Returns the memory of all tickets. */
void rl_tickets_free(rl_notify_state *notify);

#endif
