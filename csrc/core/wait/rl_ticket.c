/*
 * Tickets: the entries of the heads of wait lists in the queues of the nodes.
 *
 * SPDX-License-Identifier: MIT
 *
 * The commands of a ticket are collected and sent with the next turn: ENQUEUE, in the mode that the
 * ticket's last report requires (rl_command.h), and DEQUEUE. A ticket of several keys is in the
 * queue of each key: ENQUEUE_ALL enters them at once, and DEQUEUE leaves one.
 */
#include "wait/rl_ticket.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/rl_number.h"
#include "lock/rl_lock.h"
#include "node/rl_link_queue.h"

#define RL_TICKET_SLOT_MASK 0xffffu

/* -------------------------------------------------------------------- creating and freeing */

static rl_ticket *rl_ticket_take(rl_core *core) {
  rl_notify_state *notify = core->notify;
  rl_ticket *ticket = RL_OWNER(rl_list_pop(&notify->free), rl_ticket, queue);
  if (ticket == NULL) {
    if (notify->ticket_count == notify->ticket_capacity) {
      uint32_t capacity = notify->ticket_capacity == 0 ? 16 : notify->ticket_capacity * 2;
      rl_ticket **tickets = capacity > RL_TICKETS_MAX
                                ? NULL
                                : realloc(notify->tickets, capacity * sizeof(rl_ticket *));
      if (tickets == NULL) {
        return NULL;
      }
      notify->tickets = tickets;
      notify->ticket_capacity = capacity;
    }
    ticket = malloc(sizeof *ticket + core->node_count * sizeof ticket->at[0]);
    if (ticket == NULL) {
      return NULL;
    }
    ticket->id = notify->ticket_count + RL_TICKET_SLOT_MASK + 1; /* No id is 0. */
    notify->tickets[notify->ticket_count++] = ticket;
  }
  uint32_t id = ticket->id;
  memset(ticket, 0, sizeof *ticket);
  ticket->id = id;
  return ticket;
}

rl_ticket *rl_ticket_new(rl_core *core, rl_resource *base) {
  rl_ticket_places *places = NULL;
  if (base->count > 1) {
    places = calloc(core->node_count, sizeof *places);
    if (places == NULL) {
      return NULL;
    }
  }
  rl_ticket *ticket = rl_ticket_take(core);
  if (ticket == NULL) {
    free(places);
    return NULL;
  }
  ticket->base = base;
  ticket->places = places;
  base->references++;
  return ticket;
}

void rl_ticket_free(rl_notify_state *notify, rl_ticket *ticket) {
  assert(!rl_list_is_in(&ticket->queue));
  rl_resource_unref(ticket->base);
  free(ticket->places);
  ticket->base = NULL;
  ticket->places = NULL;
  ticket->waitlist = NULL;
  ticket->granted = false;
  do {
    ticket->id += RL_TICKET_SLOT_MASK + 1; /* Late notifications name the old id. */
  } while (ticket->id <= RL_TICKET_SLOT_MASK);
  rl_list_push(&notify->free, &ticket->queue);
}

rl_ticket *rl_ticket_find(const rl_notify_state *notify, uint32_t id) {
  uint32_t slot = id & RL_TICKET_SLOT_MASK;
  rl_ticket *ticket = slot < notify->ticket_count ? notify->tickets[slot] : NULL;
  return ticket != NULL && ticket->id == id && ticket->base != NULL ? ticket : NULL;
}

rl_ticket *rl_ticket_find_waiting(const rl_notify_state *notify, uint32_t id) {
  rl_ticket *ticket = rl_ticket_find(notify, id);
  return ticket != NULL && ticket->waitlist != NULL ? ticket : NULL;
}

void rl_tickets_reset(rl_notify_state *notify) {
  for (uint32_t i = 0; i < notify->ticket_count; i++) {
    rl_ticket *ticket = notify->tickets[i];
    if (ticket->base != NULL) {
      rl_list_remove(&ticket->queue);
      if (ticket->waitlist != NULL) {
        ticket->waitlist->ticket = NULL;
        notify->used_count--;
      }
      rl_ticket_free(notify, ticket);
    }
  }
}

void rl_tickets_free(rl_notify_state *notify) {
  for (uint32_t i = 0; i < notify->ticket_count; i++) {
    free(notify->tickets[i]->places);
    free(notify->tickets[i]);
  }
  free(notify->tickets);
}

/* -------------------------------------------------------------------------- several keys */

bool rl_ticket_note_notified(rl_notify_state *notify, rl_ticket *ticket, unsigned node,
                             const char *key, size_t length) {
  rl_ticket_places *places = &ticket->places[node];
  uint32_t bit = (uint32_t)1 << node;
  for (unsigned i = 0; i < ticket->base->count; i++) {
    rl_resource_name name = rl_resource_at(ticket->base, i);
    if (name.key_length == length && memcmp(name.key, key, length) == 0) {
      places->notified |= (uint8_t)(1u << i);
    }
  }
  if ((places->notified | places->reserved) == (1u << ticket->base->count) - 1) {
    places->notified = places->reserved = 0;
    ticket->to_enqueue &= ~bit;
    ticket->again &= ~bit;
    ticket->reserved &= ~bit;
    return true;
  }
  ticket->again |= ticket->outstanding & bit;
  rl_ticket_request_enqueue(notify, ticket, bit);
  return false;
}

/* Returns true if a node may still reserve a key for the ticket. */
static bool rl_ticket_has_reserved(const rl_ticket *ticket, redlock_time now_us) {
  return ticket->reserved_us != 0 &&
         rl_time_sub(now_us, ticket->reserved_us) <= RL_COMMAND_RESERVE_MS * REDLOCK_MILLISECONDS;
}

/* NTF-10. Returns true if keys have been reserved for the ticket for long enough. */
static bool rl_ticket_yields(const rl_ticket *ticket, redlock_time now_us) {
  return rl_ticket_has_reserved(ticket, now_us) &&
         rl_time_sub(now_us, ticket->reserved_since_us) >= ticket->waitlist->head->ttl_us;
}

void rl_ticket_note_places(rl_ticket *ticket, redlock_time now_us, unsigned node, const char *text,
                           size_t length) {
  rl_ticket_places *places = &ticket->places[node];
  uint32_t bit = (uint32_t)1 << node;
  uint64_t reserved;
  (void)rl_number_in_digits(text, length, &reserved);
  places->reserved = (uint8_t)(reserved & ((1u << ticket->base->count) - 1));
  ticket->reserved = places->reserved != 0 ? ticket->reserved | bit : ticket->reserved & ~bit;
  if (places->reserved != 0) {
    ticket->reserved_since_us =
        rl_ticket_has_reserved(ticket, now_us) ? ticket->reserved_since_us : now_us;
    ticket->reserved_us = now_us;
  }
  length = length < sizeof places->before ? length : 0; /* The reply is odd. */
  memcpy(places->before, text, length);
  places->before[length] = '\0';
}

/* --------------------------------------------------------------------------------- sending */

void rl_ticket_list(rl_notify_state *notify, rl_ticket *ticket) {
  if (!rl_list_is_in(&ticket->queue)) {
    rl_list_append(&notify->queue, &ticket->queue);
  }
}

void rl_ticket_request_enqueue(rl_notify_state *notify, rl_ticket *ticket, uint32_t nodes) {
  ticket->to_enqueue |= nodes & notify->ready & ~ticket->outstanding;
  if (ticket->to_enqueue != 0) {
    rl_ticket_list(notify, ticket);
  }
}

/* Returns the rl_command_enqueue of the next ENQUEUE to the node. */
static unsigned rl_ticket_mode(const rl_ticket *ticket, unsigned node) {
  unsigned position = ticket->at[node].position;
  if ((ticket->outranked >> node & 1) != 0) {
    return position > RL_COMMAND_ENQUEUE_EVICT ? position : RL_COMMAND_ENQUEUE_EVICT;
  }
  return (ticket->enqueued >> node & 1) != 0 ? RL_COMMAND_ENQUEUE_CHECK
         : ticket->appends                   ? RL_COMMAND_ENQUEUE_APPEND
                                             : RL_COMMAND_ENQUEUE_NEW;
}

static void rl_ticket_dequeue(rl_link *link, redlock_time now_us, const rl_ticket *ticket,
                              const char *entry) {
  for (unsigned i = 0; i < ticket->base->count; i++) {
    rl_resource_name name = rl_resource_at(ticket->base, i);
    (void)rl_link_queue_dequeue(link, now_us, ticket->id, name.key, name.key_length, entry,
                                ticket->permits);
  }
}

/* Queues ENQUEUE_ALL. Returns false when out of memory. */
static bool rl_ticket_enqueue_all(rl_link *link, redlock_time now_us, rl_ticket *ticket,
                                  unsigned node, const char *entry) {
  rl_ticket_places *places = &ticket->places[node];
  char notified[RL_COMMAND_QUEUES_MAX + 1] = "";
  unsigned count = places->notified != 0 ? ticket->base->count : 0;
  assert(count <= RL_COMMAND_QUEUES_MAX);
  for (unsigned i = 0; i < count; i++) {
    notified[i] = (places->notified >> i & 1) != 0 ? '1' : '0';
  }
  bool yields = rl_ticket_yields(ticket, now_us);
  if (!rl_link_queue_enqueue_all(link, now_us, ticket->id, ticket->base, entry, places->before,
                                 yields ? RL_COMMAND_YIELDS : notified)) {
    return false;
  }
  ticket->prompted = count > 0 ? ticket->prompted | link->bit : ticket->prompted & ~link->bit;
  places->notified = places->reserved = 0;
  ticket->reserved &= ~link->bit;
  return true;
}

/* Queues the ENQUEUE of its last state. Returns false when out of memory. */
static bool rl_ticket_enqueue(rl_link *link, redlock_time now_us, rl_ticket *ticket, unsigned node,
                              const char *entry) {
  const rl_resource *base = ticket->base;
  unsigned mode = rl_ticket_mode(ticket, node);
  /* A waiter with a label asks for that of the holder. */
  bool label = ticket->waitlist->head->current->label.length > 0;
  if (ticket->places != NULL) {
    return rl_ticket_enqueue_all(link, now_us, ticket, node, entry);
  }
  if (!rl_link_queue_enqueue(link, now_us, ticket->id, base->key, base->key_length, entry, mode,
                             label, ticket->permits)) {
    return false;
  }
  ticket->unqueried = mode == RL_COMMAND_ENQUEUE_APPEND ? ticket->unqueried | link->bit
                                                        : ticket->unqueried & ~link->bit;
  return true;
}

static void rl_ticket_send(rl_core *core, redlock_time now_us, rl_ticket *ticket) {
  char entry[RL_LINK_ENTRY_SIZE];
  assert(ticket->base != NULL);
  rl_link_entry(core->notify->channel, ticket->id, entry);
  for (unsigned i = 0; i < core->node_count; i++) {
    rl_link *link = &core->nodes[i]->link;
    uint32_t bit = (uint32_t)1 << i;
    if (((ticket->to_enqueue | ticket->to_dequeue) & bit) == 0 ||
        !rl_link_has_room(link, RL_OUTSTANDING_ENQUEUE)) {
      continue;
    }
    if ((ticket->to_dequeue & bit) != 0) {
      rl_ticket_dequeue(link, now_us, ticket, entry);
    }
    if ((ticket->to_enqueue & bit) != 0 && rl_ticket_enqueue(link, now_us, ticket, i, entry)) {
      ticket->outstanding |= bit;
      ticket->enqueued |= bit;
    }
  }
  ticket->to_enqueue = ticket->to_dequeue = 0; /* Without room, the command is dropped. */
}

void rl_tickets_send(rl_core *core, redlock_time now_us) {
  rl_notify_state *notify = core->notify;
  while (notify != NULL && !rl_list_is_empty(&notify->queue)) {
    rl_ticket *ticket = RL_LIST_FIRST(&notify->queue, rl_ticket, queue);
    rl_list_remove(&ticket->queue);
    rl_ticket_send(core, now_us, ticket);
    if (ticket->waitlist == NULL && !ticket->granted) {
      rl_ticket_free(notify, ticket);
    }
  }
}
