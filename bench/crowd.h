/*
 * What the parts of the crowd share: the options, the events, the nodes, the clients and the figures.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef CROWD_H
#define CROWD_H

#include <stdlib.h>
#include <string.h>

#include "../csrc/test/sim/sim_random.h"
#include "measure.h"
#include "resp.h"
#include "rl_core.h"
#include "wire/rl_command.h"

#define CROWD_NODES 5
#define CROWD_CONNECTIONS                                                                          \
  (2 * CROWD_NODES) /* of a client: those over which nodes call are behind the others */
#define CROWD_REGIONS 3
#define CROWD_NOWHERE CROWD_REGIONS /* where the release of one who has died begins */
#define CROWD_NAME_MAX 24
#define CROWD_ENTRY 24 /* of a queue: digits of a channel, and of a place */

extern const unsigned crowd_node_regions[CROWD_NODES];
extern const redlock_duration crowd_ways_us[CROWD_REGIONS][CROWD_REGIONS]; /* one way */

typedef struct crowd_options {
  double clients, keys, hold_ms, pause_ms, seconds, wait_s, ttl_ms, seed, deaths, replaced_s, cut_s,
      cut_region, late, late_ms, slow_ms;
  bool breaks;
} crowd_options;

/* What a client does after an attempt that failed. */
typedef struct crowd_way {
  double delay_ms, jitter_ms;
  bool calls, fair;
} crowd_way;

/* What comes at a moment; the bytes of a packet are behind it. */
typedef enum crowd_kind {
  CROWD_COMMANDS,
  CROWD_REPLIES,
  CROWD_CONNECTED,
  CROWD_HUNG_UP, /* the node learns that nobody listens any more */
  CROWD_WAKE
} crowd_kind;
typedef struct crowd_event {
  crowd_kind kind;
  unsigned client, end; /* the client's connection */
  uint32_t connection;  /* its number: what comes for an older one is dropped */
  uint32_t length;
} crowd_event;

typedef struct crowd_entry {
  redlock_time at_us;
  uint64_t order; /* of two at the same moment the older comes first */
  crowd_event *event;
} crowd_entry;

typedef struct crowd_stored {
  size_t length, token_length;
  redlock_time ends_us; /* 0: there is no such key */
  char name[CROWD_NAME_MAX];
  char token[REDLOCK_TOKEN_LENGTH];
  char (*queue)[CROWD_ENTRY]; /* of those who wait for it */
  size_t queue_count, queue_capacity;
  redlock_time queue_ends_us, sign_ends_us; /* of the queue; of the sign that there is one */
  unsigned called;                          /* the client that was called last, and when */
  redlock_time called_us;
} crowd_stored;

typedef struct crowd_subscriber {
  char channel[16]; /* empty: there is none */
  unsigned client;
  uint32_t connection;
  bool listens;
} crowd_subscriber;

typedef struct crowd_node {
  crowd_stored *stored; /* a hash table with open addresses; a name keeps its place for ever */
  size_t mask;
  bool breaks; /* it ignores NX */
  bool knows[RL_SCRIPT_COUNT];
  uint64_t scripts[RL_SCRIPT_COUNT]; /* how often it was sent each; of RL_SCRIPT_NONE the SETs */
  unsigned index;
  struct crowd *crowd;
  const crowd_event *heard; /* with which the command came */
  redlock_time now_us;
  uint64_t commands;             /* that it was sent */
  uint64_t inside;               /* that scripts had it execute */
  uint64_t calls;                /* of these: messages to who waits */
  crowd_subscriber *subscribers; /* a hash table */
  size_t subscriber_mask;
  char reply[128];
} crowd_node;

typedef struct crowd_connection {
  uint32_t number;
  bool open;                      /* made, or being made */
  redlock_time there_us, back_us; /* when the last packet arrives: none arrives before it */
} crowd_connection;

typedef enum crowd_state {
  CROWD_PAUSES,
  CROWD_WAITS,
  CROWD_HOLDS,
  CROWD_RELEASES,
  CROWD_DEAD
} crowd_state;

typedef struct crowd_client {
  rl_core core;
  rl_lock *lock;
  crowd_state state;
  bool dies;
  unsigned region, key;
  uint64_t life; /* another one for whoever comes in the place of one who has died */
  redlock_time wanted_us, due_us, armed_us;
  uint32_t judged; /* the round whose end was looked at */
  bool called;     /* its turn comes when all has happened that happens at this moment */
  crowd_event wake;
  crowd_connection connections[CROWD_CONNECTIONS];
} crowd_client;

typedef struct crowd_key {
  char name[CROWD_NAME_MAX];
  const crowd_stored *places[CROWD_NODES]; /* on each node */
  unsigned waiting;
  crowd_client *owner;   /* the last one; NULL before the first */
  redlock_time until_us; /* the deadline of an owner who has died; REDLOCK_NEVER of one who lives */
  uint64_t last_life;
  bool freed, waited; /* a hand-off has begun; and somebody waited then */
  unsigned from;      /* the region */
  redlock_time freed_us;
} crowd_key;

typedef struct crowd_samples {
  uint64_t *us;
  size_t count, capacity;
} crowd_samples;

typedef struct crowd {
  const crowd_options *options;
  bool calls; /* nodes call who waits */
  rl_options lock_options;
  redlock_time now_us, end_us, cut_from_us, cut_to_us;
  sim_random network, entropy, deaths;
  crowd_entry *heap;
  size_t heap_count, heap_capacity;
  uint64_t orders, lives;
  crowd_client *clients;
  crowd_client **called;
  size_t called_count;
  crowd_key *keys;
  crowd_node nodes[CROWD_NODES];
  redlock_duration least_us[CROWD_REGIONS + 1][CROWD_REGIONS];
  redlock_duration told_us[CROWD_REGIONS + 1][CROWD_REGIONS];
  redlock_duration called_us[CROWD_REGIONS + 1][CROWD_REGIONS];
  crowd_samples handed, least, told, called_least;
  uint64_t had, had_in[CROWD_REGIONS], gave_up, failed, split, split_calls, two, died, events;
  redlock_duration longest_us;
} crowd;

/* ---- crowd.c ---- */
void *crowd_allocate(size_t count, size_t size);
redlock_duration crowd_ms(double ms);

/* ---- crowd_network.c ---- */
void crowd_push(crowd *c, redlock_time at_us, crowd_event *event);
crowd_entry crowd_pop(crowd *c);

/* Sends over a connection, in order: to the node or back. */
void crowd_send(crowd *c, crowd_kind kind, crowd_client *client, unsigned end, const void *bytes,
                size_t length);
void crowd_connect(crowd *c, crowd_client *client, unsigned end);
void crowd_hang_up(crowd *c, crowd_client *client, unsigned end);

/* ---- crowd_node.c ---- */

/* The place of the key, whether it is there or not. */
crowd_stored *node_place(crowd_node *node, const char *name, size_t length);

/* Commands have arrived; or the end of a connection. */
void node_hear(crowd *c, const crowd_event *event);

/* ---- crowd_queue.c ---- */
/* Each is a command, and returns the reply; NULL if it is none of ours. */
const char *queue_subscribe(crowd_node *node, const resp_request *request);
const char *queue_probe(crowd_node *node, const resp_request *request);
const char *queue_release(crowd_node *node, crowd_stored *key, const resp_request *request);
const char *queue_stand(crowd_node *node, crowd_stored *key, const resp_request *request);
const char *queue_leave(crowd_node *node, crowd_stored *key, const resp_request *request);

/* A connection to which calls went has ended. */
void queue_hang_up(crowd_node *node, const crowd_event *event);

/* ---- crowd_figures.c ---- */
void crowd_measure_distances(crowd *c);

/* When so many keys of the client will have run out that a majority of the nodes is free. */
redlock_time crowd_frees_itself(const crowd *c, const crowd_client *client);

/* Looks once at each attempt that failed. */
void crowd_judge(crowd *c, crowd_client *client);

/* The key is given up by its owner: now, or by one who has died when it runs out. */
void crowd_freed(crowd *c, const crowd_client *client, unsigned from, redlock_time at_us);
void crowd_granted(crowd *c, crowd_client *client);
void crowd_print(crowd *c, const char *way);

/* ---- crowd_client.c ---- */
void client_start(crowd *c, crowd_client *client, redlock_duration pause_us);
void client_end(crowd *c, crowd_client *client);

/* The steps of rl_core.h, until there is nothing left to do at this moment. */
void client_turn(crowd *c, crowd_client *client);

/* Something arrives on a connection; its timer is due. */
void client_hear(crowd *c, const crowd_event *event);
void client_wake(crowd *c, crowd_client *client);

#endif
