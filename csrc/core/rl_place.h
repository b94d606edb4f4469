/*
 * A place: where the front of a line stands in the queues of the nodes (rl_call.h).
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef RL_PLACE_H
#define RL_PLACE_H

#include <stdbool.h>
#include <stdint.h>

#include "rl_resource.h"
#include "rl_time.h"

struct rl_calls;
struct rl_core;
struct rl_line;

#define RL_PLACES_MAX 65536 /* of one client at once; the others poll */

/* A place in the queues of the nodes. Sets of nodes are bits. */
typedef struct rl_place {
  struct rl_place *next; /* among those with something to send; or that are free */
  struct rl_line *line;  /* whose front waits; NULL: it is to be left, and goes then */
  rl_resource *resource; /* a reference */
  uint32_t id;           /* by which calls name it */
  uint32_t wanted;       /* nodes that are to be asked to let it stand */
  uint32_t leaving;      /* nodes that are to be told that it leaves */
  uint32_t asked;        /* nodes that owe the answer */
  uint32_t standing;     /* nodes where it stands, or may */
  uint32_t held;         /* nodes that have said that somebody has the key */
  uint32_t behind;       /* nodes that have said that it is free, but others come first */
  uint32_t called;       /* nodes that have said that it is free for us, or have called */
  uint32_t alone;        /* nodes where nobody before it takes out who does not come */
  uint32_t unsure;       /* nodes where it has joined a queue, and was not told of the key */
  bool granted; /* the front has got a lease, whose release leaves: calls are for nobody now */
  bool joins;   /* others have waited lately: there are queues */
  bool listed;  /* something is to be sent for it */
  bool looks;   /* its front's timer is for looking again, not for an attempt */
  bool hurried; /* one call has come, and an attempt is to follow */
  redlock_time begun_us; /* when its front has begun to wait, after its last attempt */
  redlock_time since_us; /* the same, or when it has looked last */
  uint64_t random;       /* drawn then */
  struct {
    redlock_time ends_us; /* when the key ends there, where it is held */
    uint32_t position;    /* in the queue, where it stands */
  } at[];                 /* of each node, as it has said last */
} rl_place;

/* A new one, of nobody yet. NULL when there are too many, or no memory. */
rl_place *rl_place_new(struct rl_core *core);
void rl_place_free(struct rl_calls *calls, rl_place *place);

/* The place of that id, or NULL; and if somebody waits there. */
rl_place *rl_place_at(const struct rl_calls *calls, uint32_t id);
rl_place *rl_place_waiting(const struct rl_calls *calls, uint32_t id);

/* It has something to say to the nodes. */
void rl_place_list(struct rl_calls *calls, rl_place *place);

/* The nodes, of |nodes|, that are to be asked to let it stand: those whose calls arrive. */
void rl_place_ask(struct rl_calls *calls, rl_place *place, uint32_t nodes);

/* Says what all of them have to say. Those that nobody waits in are free then. */
void rl_places_send(struct rl_core *core, redlock_time now_us);

/* All of them are forgotten, without a word; and given up. */
void rl_places_forget(struct rl_calls *calls);
void rl_places_free(struct rl_calls *calls);

#endif
