/*
 * Tickets: the entries of the heads of wait lists in the queues of the nodes (rl_notify.h).
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef RL_TICKET_H
#define RL_TICKET_H

#include "wait/rl_wait_state.h"

/*
 * Returns a ticket of |base|, without a wait list, and takes a reference; NULL when there are too
 * many tickets, or no memory.
 */
rl_ticket *rl_ticket_new(rl_core *core, rl_resource *base);
void rl_ticket_free(rl_notify_state *notify, rl_ticket *ticket);

/* Returns the ticket with that id, or NULL; only if a wait list uses it. */
rl_ticket *rl_ticket_find(const rl_notify_state *notify, uint32_t id);
rl_ticket *rl_ticket_find_waiting(const rl_notify_state *notify, uint32_t id);

/* Adds the ticket to the list of tickets to send. */
void rl_ticket_list(rl_notify_state *notify, rl_ticket *ticket);

/*
 * Notes that |node| has notified a ticket of several keys for |key|. Returns true if the node has
 * notified it for all keys, or reserves the rest. Otherwise asks the node which keys are free.
 */
bool rl_ticket_note_notified(rl_notify_state *notify, rl_ticket *ticket, unsigned node,
                             const char *key, size_t length);

/* Notes the places and reservations that |node| has reported. */
void rl_ticket_note_places(rl_ticket *ticket, redlock_time now_us, unsigned node, const char *text,
                           size_t length);

/* Queues ENQUEUE for those of |nodes| whose notifications arrive. */
void rl_ticket_request_enqueue(rl_notify_state *notify, rl_ticket *ticket, uint32_t nodes);

/* Sends the commands of all listed tickets, and frees the tickets without a wait list. */
void rl_tickets_send(rl_core *core, redlock_time now_us);

/* Frees all tickets for reuse without sending anything. */
void rl_tickets_reset(rl_notify_state *notify);

/* Frees the memory of all tickets. */
void rl_tickets_free(rl_notify_state *notify);

#endif
