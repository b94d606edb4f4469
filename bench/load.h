/*
 * Shared parts of the load simulation: options, events, nodes, clients and figures.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef LOAD_H
#define LOAD_H

#include <stdlib.h>
#include <string.h>

#include "../csrc/test/sim/sim_random.h"
#include "measure.h"
#include "resp.h"
#include "rl_core.h"
#include "wire/rl_command.h"

#define LOAD_NODES 5
#define LOAD_CONNECTIONS (2 * LOAD_NODES) /* of a client: those of its subscribers come last */
#define LOAD_REGIONS 3
#define LOAD_NOWHERE LOAD_REGIONS /* where the release of a dead client begins */
#define LOAD_NAME_MAX 24
#define LOAD_ENTRY 24 /* of a queue: digits of a channel and of a ticket */

extern const unsigned load_node_regions[LOAD_NODES];
extern const redlock_duration load_ways_us[LOAD_REGIONS][LOAD_REGIONS]; /* one way */

typedef struct load_options {
  double clients, keys, hold_ms, pause_ms, seconds, wait_s, ttl_ms, seed, deaths, replaced_s, cut_s,
      cut_region, late, late_ms, slow_ms;
  bool breaks;
} load_options;

/* How a client waits after a failed attempt. */
typedef struct load_way {
  double delay_ms, jitter_ms;
  bool notifies, fair;
} load_way;

/* Kinds of events. The bytes of a packet follow its event. */
typedef enum load_kind {
  LOAD_COMMANDS,
  LOAD_REPLIES,
  LOAD_CONNECTED,
  LOAD_HUNG_UP, /* the node learns that the subscriber has gone */
  LOAD_WAKE
} load_kind;
typedef struct load_event {
  load_kind kind;
  unsigned client, end; /* the client's connection */
  uint32_t connection;  /* its number: what comes for an older one is dropped */
  uint32_t length;
} load_event;

typedef struct load_entry {
  redlock_time at_us;
  uint64_t order; /* of two at the same moment the older comes first */
  load_event *event;
} load_entry;

typedef struct load_stored {
  size_t length, token_length;
  redlock_time ends_us; /* 0: there is no such key */
  char name[LOAD_NAME_MAX];
  char token[REDLOCK_TOKEN_LENGTH];
  char (*queue)[LOAD_ENTRY]; /* of its waiters */
  size_t queue_count, queue_capacity;
  redlock_time queue_ends_us, flag_ends_us; /* of the queue; of the waiters flag */
  unsigned notified;                        /* the client notified last, and when */
  redlock_time notified_us;
} load_stored;

typedef struct load_subscriber {
  char channel[16]; /* empty: there is none */
  unsigned client;
  uint32_t connection;
  bool subscribed;
} load_subscriber;

typedef struct load_node {
  load_stored *stored; /* a hash table with open addresses; a name keeps its slot */
  size_t mask;
  bool breaks; /* it ignores NX */
  bool knows[RL_SCRIPT_COUNT];
  uint64_t scripts[RL_SCRIPT_COUNT]; /* how often it was sent each; of RL_SCRIPT_NONE the SETs */
  unsigned index;
  struct load *load;
  const load_event *heard; /* with which the command came */
  redlock_time now_us;
  uint64_t commands;            /* that it was sent */
  uint64_t inside;              /* that scripts had it execute */
  uint64_t notifications;       /* of these: messages to waiters */
  load_subscriber *subscribers; /* a hash table */
  size_t subscriber_mask;
  char reply[128];
} load_node;

typedef struct load_connection {
  uint32_t number;
  bool open;                      /* made, or being made */
  redlock_time there_us, back_us; /* when the last packet arrives: none arrives before it */
} load_connection;

typedef enum load_state {
  LOAD_PAUSES,
  LOAD_WAITS,
  LOAD_HOLDS,
  LOAD_RELEASES,
  LOAD_DEAD
} load_state;

typedef struct load_client {
  rl_core core;
  rl_lock *lock;
  load_state state;
  bool dies;
  unsigned region, key;
  uint64_t life; /* another number for the successor of a dead client */
  redlock_time wanted_us, due_us, armed_us;
  uint32_t judged; /* the round whose end was looked at */
  bool queued;     /* its turn comes after all events of this moment */
  load_event wake;
  load_connection connections[LOAD_CONNECTIONS];
} load_client;

typedef struct load_key {
  char name[LOAD_NAME_MAX];
  const load_stored *slots[LOAD_NODES]; /* on each node */
  unsigned waiting;
  load_client *owner;    /* the last one; NULL before the first */
  redlock_time until_us; /* deadline of a dead owner; REDLOCK_NEVER of a living one */
  uint64_t last_life;
  bool freed, waited; /* a hand-off has begun; there was a waiter then */
  unsigned from;      /* the region */
  redlock_time freed_us;
} load_key;

typedef struct load_samples {
  uint64_t *us;
  size_t count, capacity;
} load_samples;

typedef struct load {
  const load_options *options;
  bool notifies; /* nodes notify waiters */
  rl_options lock_options;
  redlock_time now_us, end_us, cut_from_us, cut_to_us;
  sim_random network, entropy, deaths;
  load_entry *heap;
  size_t heap_count, heap_capacity;
  uint64_t orders, lives;
  load_client *clients;
  load_client **queued;
  size_t queued_count;
  load_key *keys;
  load_node nodes[LOAD_NODES];
  redlock_duration least_us[LOAD_REGIONS + 1][LOAD_REGIONS];
  redlock_duration informed_us[LOAD_REGIONS + 1][LOAD_REGIONS];
  redlock_duration notified_us[LOAD_REGIONS + 1][LOAD_REGIONS];
  load_samples handed, least, informed, notified_least;
  uint64_t had, had_in[LOAD_REGIONS], gave_up, failed, split, split_notifications, two, died,
      events;
  redlock_duration longest_us;
} load;

/* ---- load.c ---- */
void *load_allocate(size_t count, size_t size);
redlock_duration load_ms(double ms);

/* ---- load_network.c ---- */
void load_push(load *c, redlock_time at_us, load_event *event);
load_entry load_pop(load *c);

/* Sends over a connection, in order: to the node or back. */
void load_send(load *c, load_kind kind, load_client *client, unsigned end, const void *bytes,
               size_t length);
void load_connect(load *c, load_client *client, unsigned end);
void load_hang_up(load *c, load_client *client, unsigned end);

/* ---- load_node.c ---- */

/* Returns the slot of the key, which may be empty. */
load_stored *node_slot(load_node *node, const char *name, size_t length);

/* Commands have arrived; or the end of a connection. */
void node_hear(load *c, const load_event *event);

/* ---- load_queue.c ---- */
/* Each is a command, and returns the reply; NULL if it is none of ours. */
const char *queue_subscribe(load_node *node, const resp_request *request);
const char *queue_probe(load_node *node, const resp_request *request);
const char *queue_release(load_node *node, load_stored *key, const resp_request *request);
const char *queue_enqueue(load_node *node, load_stored *key, const resp_request *request);
const char *queue_dequeue(load_node *node, load_stored *key, const resp_request *request);

/* The connection of a subscriber has ended. */
void queue_hang_up(load_node *node, const load_event *event);

/* ---- load_figures.c ---- */
void load_measure_distances(load *c);

/* When so many keys of the client will have run out that a majority of the nodes is free. */
redlock_time load_frees_itself(const load *c, const load_client *client);

/* Looks once at each attempt that failed. */
void load_judge(load *c, load_client *client);

/* The owner gives the key up: now, or if it has died, when the key expires. */
void load_freed(load *c, const load_client *client, unsigned from, redlock_time at_us);
void load_granted(load *c, load_client *client);
void load_print(load *c, const char *way);

/* ---- load_client.c ---- */
void client_start(load *c, load_client *client, redlock_duration pause_us);
void client_end(load *c, load_client *client);

/* The steps of rl_core.h, until there is nothing left to do at this moment. */
void client_turn(load *c, load_client *client);

/* Something arrives on a connection; its timer is due. */
void client_hear(load *c, const load_event *event);
void client_wake(load *c, load_client *client);

#endif
