/*
 * A place: where the front of a line stands in the queues of the nodes.
 *
 * SPDX-License-Identifier: MIT
 *
 * What it has to say to the nodes is gathered, and sent with the next turn: that it is to stand there, and how it has stood
 * before (rl_command.h); or that it leaves.
 */
#include "wait/rl_ticket.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "lock/rl_lock.h"

#define RL_TICKET_SLOT_MASK 0xffffu

/* -------------------------------------------------------------------------------- its life */

rl_ticket *rl_ticket_new(rl_core *core) {
  rl_notifications *calls = core->calls;
  rl_ticket *place = calls->free;
  if (place != NULL) {
    calls->free = place->next;
  } else {
    if (calls->place_count == calls->place_capacity) {
      uint32_t capacity = calls->place_capacity == 0 ? 16 : calls->place_capacity * 2;
      rl_ticket **places =
          capacity > RL_TICKETS_MAX ? NULL : malloc(capacity * sizeof(rl_ticket *));
      if (places == NULL) {
        return NULL;
      }
      if (calls->place_count > 0) {
        memcpy(places, calls->places, calls->place_count * sizeof(rl_ticket *));
      }
      free(calls->places);
      calls->places = places;
      calls->place_capacity = capacity;
    }
    place = malloc(sizeof *place + core->node_count * sizeof place->at[0]);
    if (place == NULL) {
      return NULL;
    }
    place->id = calls->place_count + RL_TICKET_SLOT_MASK + 1; /* None is 0. */
    calls->places[calls->place_count++] = place;
  }
  uint32_t id = place->id;
  memset(place, 0, sizeof *place);
  place->id = id;
  return place;
}

void rl_ticket_free(rl_notifications *calls, rl_ticket *place) {
  assert(!place->listed);
  rl_resource_unref(place->resource);
  place->resource = NULL;
  place->line = NULL;
  place->granted = false;
  do {
    place->id += RL_TICKET_SLOT_MASK + 1; /* Late calls for it are for nobody. */
  } while (place->id <= RL_TICKET_SLOT_MASK);
  place->next = calls->free;
  calls->free = place;
}

rl_ticket *rl_ticket_at(const rl_notifications *calls, uint32_t id) {
  uint32_t slot = id & RL_TICKET_SLOT_MASK;
  rl_ticket *place = slot < calls->place_count ? calls->places[slot] : NULL;
  return place != NULL && place->id == id && place->resource != NULL ? place : NULL;
}

rl_ticket *rl_ticket_waiting(const rl_notifications *calls, uint32_t id) {
  rl_ticket *place = rl_ticket_at(calls, id);
  return place != NULL && place->line != NULL ? place : NULL;
}

void rl_tickets_forget(rl_notifications *calls) {
  calls->first = calls->last = NULL;
  for (uint32_t i = 0; i < calls->place_count; i++) {
    rl_ticket *place = calls->places[i];
    place->listed = false;
    if (place->resource != NULL) {
      if (place->line != NULL) {
        place->line->place = NULL;
        calls->used_count--;
      }
      rl_ticket_free(calls, place);
    }
  }
}

void rl_tickets_free(rl_notifications *calls) {
  for (uint32_t i = 0; i < calls->place_count; i++) {
    free(calls->places[i]);
  }
  free(calls->places);
}

/* --------------------------------------------------------------------------- what it says */

void rl_ticket_list(rl_notifications *calls, rl_ticket *place) {
  if (!place->listed) {
    place->listed = true;
    place->next = NULL;
    *(calls->last != NULL ? &calls->last->next : &calls->first) = place;
    calls->last = place;
  }
}

void rl_ticket_ask(rl_notifications *calls, rl_ticket *place, uint32_t nodes) {
  place->wanted |= nodes & calls->ready & ~place->asked;
  if (place->wanted != 0) {
    rl_ticket_list(calls, place);
  }
}

static unsigned rl_ticket_mode(const rl_ticket *place, unsigned node) {
  if ((place->behind >> node & 1) != 0 && place->at[node].position > RL_COMMAND_STAND_EVICT) {
    return place->at[node].position;
  }
  return (place->behind >> node & 1) != 0     ? RL_COMMAND_STAND_EVICT
         : (place->standing >> node & 1) != 0 ? RL_COMMAND_STAND_CHECK
         : place->joins                       ? RL_COMMAND_STAND_JOIN
                                              : RL_COMMAND_STAND_NEW;
}

static void rl_ticket_send(rl_core *core, redlock_time now_us, rl_ticket *place) {
  char entry[RL_LINK_ENTRY_SIZE];
  const rl_resource *resource = place->resource;
  rl_link_entry(core->calls->channel, place->id, entry);
  for (unsigned i = 0; i < core->node_count; i++) {
    rl_link *link = &core->nodes[i]->link;
    uint32_t bit = (uint32_t)1 << i;
    if (((place->wanted | place->leaving) & bit) == 0 ||
        !rl_link_has_room(link, RL_OUTSTANDING_STAND)) {
      continue;
    }
    if ((place->leaving & bit) != 0) {
      (void)rl_link_queue_leave(link, now_us, place->id, resource->key, resource->key_length,
                                entry);
      place->standing &= ~bit;
    }
    unsigned mode = rl_ticket_mode(place, i);
    if ((place->wanted & bit) != 0 && rl_link_queue_stand(link, now_us, place->id, resource->key,
                                                          resource->key_length, entry, mode)) {
      place->asked |= bit;
      place->standing |= bit;
      place->unsure = mode == RL_COMMAND_STAND_JOIN ? place->unsure | bit : place->unsure & ~bit;
    }
  }
  place->wanted = place->leaving = 0; /* Where there was no room it goes without. */
}

void rl_tickets_send(rl_core *core, redlock_time now_us) {
  rl_notifications *calls = core->calls;
  while (calls != NULL && calls->first != NULL) {
    rl_ticket *place = calls->first;
    calls->first = place->next;
    calls->last = calls->first == NULL ? NULL : calls->last;
    place->listed = false;
    rl_ticket_send(core, now_us, place);
    if (place->line == NULL && !place->granted) {
      rl_ticket_free(calls, place);
    }
  }
}
