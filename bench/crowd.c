/*
 * A crowd past this machine: thousands of clients in three regions that want a hundred keys, in virtual time.
 *
 *     crowd [--option value ...] [way ...]                       (crowd --help tells the options)
 *
 * Each client is the real core (csrc/core) with one lock. Only the clock, the network and the five nodes are played
 * here. The same seed gives the same figures. A client wants its key, waits, holds it, releases it, pauses, and wants
 * it again. Some holders stop instead of releasing: their keys run out, and other clients come in their place.
 *
 * The ways are what a client does after an attempt that failed:
 *   polling   it tries again after 200 +- 100 ms, the library's default
 *   busy      after 1 +- 0.5 ms
 *   50/25     after 50 +- 25 ms, and so on
 *
 * Distances, there and back: 1 ms within a region, 30 ms between the first and the second, 80 ms from either to the
 * third. The nodes are in the regions 0 0 1 1 2, a third of each key's clients in each region. Packets of a connection
 * keep their order, so one that is late holds up those behind it. What is sent across the border of a region that is
 * cut off arrives when it is back. A node answers at once, however much it is asked: |ask/s| tells whether a server
 * could do that.
 *
 * What is printed, a line for each way:
 *   handed      how often a key went to another client than before, while somebody waited for it
 *   p50, p99    in ms, from the beginning of the release (after a death: since so many keys have run out that a
 *               majority of the nodes is free) until the next owner knows that it has the lock
 *   least       what the distances allow for the same hand-offs. The release of an owner in region R is at node n
 *               after way(R,n). The next owner, in region S, knows everything in advance and has its SET arrive just
 *               then; it has the answer after way(n,S). The quorum-th smallest of way(R,n) + way(n,S), and after a
 *               death of way(n,S). Only an owner whose key a mere quorum had can be followed sooner
 *   told        the same for one who learns of the release at the moment in which it begins, wherever it is, and
 *               only then sends the SET, which goes there and back: way(S,n) + max(way(S,n), way(R,n))
 *   commands    that a node was sent for each hand-off, without handshakes
 *   ask/s       commands a second to one node
 *   longest     wait in s, of those who still wait at the end, too
 *   gave up     of the waits that have ended, in %: a run that is not much longer than --wait tells little
 *   split       attempts that failed while nobody had a majority; and in % of all that failed
 *   regions     of which clients the leases were, in %
 *   two         how often two held a key at once: it must be 0, or the program exits with 1
 *
 * SPDX-License-Identifier: MIT
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "../csrc/test/sim/sim_random.h"
#include "measure.h"
#include "resp.h"
#include "rl_command.h"
#include "rl_core.h"

#define CROWD_NODES 5
#define CROWD_REGIONS 3
#define CROWD_NOWHERE CROWD_REGIONS /* where the release of one who has died begins */
#define CROWD_START_US REDLOCK_SECONDS
#define CROWD_COME_US REDLOCK_SECONDS /* in which all clients come */
#define CROWD_AGAIN_US (200 * REDLOCK_MILLISECONDS)
#define CROWD_TURNS_MAX 64
#define CROWD_NAME_MAX 24
#define CROWD_REPLIES_MAX 4096

static const unsigned crowd_node_regions[CROWD_NODES] = {0, 0, 1, 1, 2};
static const redlock_duration crowd_ways_us[CROWD_REGIONS][CROWD_REGIONS] = {
    {500, 15000, 40000}, {15000, 500, 40000}, {40000, 40000, 500}};

typedef struct crowd_options {
  double clients, keys, hold_ms, pause_ms, seconds, wait_s, ttl_ms, seed, deaths, replaced_s, cut_s,
      cut_region, late, late_ms;
  bool breaks;
} crowd_options;

/* What comes at a moment; the bytes of a packet are behind it. */
typedef enum crowd_kind { CROWD_COMMANDS, CROWD_REPLIES, CROWD_CONNECTED, CROWD_WAKE } crowd_kind;
typedef struct crowd_event {
  crowd_kind kind;
  unsigned client, node;
  uint32_t connection; /* its number: what comes for an older one is dropped */
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
} crowd_stored;

typedef struct crowd_node {
  crowd_stored *stored; /* a hash table with open addresses; a name keeps its place for ever */
  size_t mask;
  bool breaks; /* it ignores NX */
  bool knows_release, knows_extend;
  redlock_time now_us;
  uint64_t commands;
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
  crowd_connection connections[CROWD_NODES];
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
  crowd_samples handed, least, told;
  uint64_t had, had_in[CROWD_REGIONS], gave_up, failed, split, two, died, events;
  redlock_duration longest_us;
} crowd;

static void *crowd_allocate(size_t count, size_t size) {
  void *memory = calloc(count, size);
  if (memory == NULL) {
    bench_die("crowd: no memory");
  }
  return memory;
}

static redlock_duration crowd_ms(double ms) {
  return (redlock_duration)llround(ms * (double)REDLOCK_MILLISECONDS);
}

/* ------------------------------------------------------------------------------------- events */

static bool crowd_before(const crowd_entry *one, const crowd_entry *other) {
  return one->at_us < other->at_us || (one->at_us == other->at_us && one->order < other->order);
}

static void crowd_push(crowd *c, redlock_time at_us, crowd_event *event) {
  crowd_entry entry = {at_us, c->orders++, event};
  if (c->heap_count == c->heap_capacity) {
    c->heap_capacity = c->heap_capacity == 0 ? 1024 : 2 * c->heap_capacity;
    c->heap = realloc(c->heap, c->heap_capacity * sizeof *c->heap);
    if (c->heap == NULL) {
      bench_die("crowd: no memory");
    }
  }
  size_t at = c->heap_count++;
  while (at > 0 && crowd_before(&entry, &c->heap[(at - 1) / 2])) {
    c->heap[at] = c->heap[(at - 1) / 2];
    at = (at - 1) / 2;
  }
  c->heap[at] = entry;
}

static crowd_entry crowd_pop(crowd *c) {
  crowd_entry first = c->heap[0], last = c->heap[--c->heap_count];
  size_t at = 0, child;
  while ((child = 2 * at + 1) < c->heap_count) {
    child += child + 1 < c->heap_count && crowd_before(&c->heap[child + 1], &c->heap[child]);
    if (!crowd_before(&c->heap[child], &last)) {
      break;
    }
    c->heap[at] = c->heap[child];
    at = child;
  }
  c->heap[at] = last;
  return first;
}

/* ------------------------------------------------------------------------------------ network */

/* When what is sent at |sent_us| arrives. */
static redlock_time crowd_arrival(crowd *c, unsigned from, unsigned to, redlock_time sent_us) {
  unsigned cut = (unsigned)c->options->cut_region;
  bool crosses = from != to && (from == cut || to == cut);
  if (crosses && sent_us >= c->cut_from_us && sent_us < c->cut_to_us) {
    sent_us = c->cut_to_us + sim_below(&c->network, CROWD_AGAIN_US);
  }
  redlock_time at_us = sent_us + crowd_ways_us[from][to];
  if (sim_chance(&c->network, (unsigned)lround(c->options->late * 100))) {
    at_us += crowd_ms(c->options->late_ms);
  }
  return at_us;
}

static void crowd_send(crowd *c, crowd_kind kind, crowd_client *client, unsigned node,
                       const void *bytes, size_t length) {
  crowd_connection *connection = &client->connections[node];
  bool there = kind == CROWD_COMMANDS;
  unsigned region = crowd_node_regions[node];
  redlock_time *last_us = there ? &connection->there_us : &connection->back_us;
  crowd_event *event = malloc(sizeof *event + length);
  if (event == NULL) {
    bench_die("crowd: no memory");
  }
  *event = (crowd_event){kind, client->wake.client, node, connection->number, (uint32_t)length};
  memcpy(event + 1, bytes, length);
  redlock_time at_us =
      crowd_arrival(c, there ? client->region : region, there ? region : client->region, c->now_us);
  *last_us = rl_time_max(*last_us, at_us);
  crowd_push(c, *last_us, event);
}

/* The first packet goes there and back before anything else can be sent. */
static void crowd_connect(crowd *c, crowd_client *client, unsigned node) {
  crowd_connection *connection = &client->connections[node];
  unsigned region = crowd_node_regions[node];
  crowd_event *event = crowd_allocate(1, sizeof *event);
  connection->number++;
  connection->open = true;
  *event = (crowd_event){CROWD_CONNECTED, client->wake.client, node, connection->number, 0};
  connection->there_us = crowd_arrival(c, client->region, region, c->now_us);
  connection->back_us = crowd_arrival(c, region, client->region, connection->there_us);
  crowd_push(c, connection->back_us, event);
}

static void crowd_hang_up(crowd_connection *connection) {
  connection->number++;
  connection->open = false;
}

/* -------------------------------------------------------------------------------------- nodes */
/* Each command is a function of what the node was asked, and returns the reply. */

/* The place of the key, whether it is there or not. */
static crowd_stored *node_place(crowd_node *node, const char *name, size_t length) {
  uint64_t hash = 0xcbf29ce484222325u;
  for (size_t i = 0; i < length; i++) {
    hash = (hash ^ (unsigned char)name[i]) * 0x100000001b3u;
  }
  for (size_t at = hash ^ hash >> 32, tries = 0; tries <= node->mask; at++, tries++) {
    crowd_stored *place = &node->stored[at & node->mask];
    if (place->length == 0 && length > 0 && length <= sizeof place->name) {
      place->length = length;
      memcpy(place->name, name, length);
    }
    if (place->length == length && memcmp(place->name, name, length) == 0) {
      return place;
    }
  }
  bench_die("crowd: a node has no place for a key");
}

static crowd_stored *node_key(crowd_node *node, const resp_request *request, unsigned index) {
  return node_place(node, request->words[index], request->lengths[index]);
}

/* Whether the word at |index| is what the key holds. */
static bool node_holds(const crowd_node *node, const crowd_stored *key, const resp_request *request,
                       unsigned index) {
  return key->ends_us > node->now_us && resp_equals(request, index, key->token, key->token_length);
}

static const char *node_set(crowd_node *node, const resp_request *request) {
  if (request->count != 6 || !resp_is(request, 3, "NX") || !resp_is(request, 4, "PX") ||
      request->lengths[2] > REDLOCK_TOKEN_LENGTH) {
    return NULL;
  }
  crowd_stored *key = node_key(node, request, 1);
  if (key->ends_us > node->now_us && !node->breaks) {
    return "$-1\r\n";
  }
  key->token_length = request->lengths[2];
  memcpy(key->token, request->words[2], key->token_length);
  key->ends_us = node->now_us + resp_number(request, 5) * REDLOCK_MILLISECONDS;
  return "+OK\r\n";
}

static const char *node_delete(crowd_node *node, const resp_request *request) {
  crowd_stored *key = request->count == 2 ? node_key(node, request, 1) : NULL;
  if (key == NULL) {
    return NULL;
  }
  bool there = key->ends_us > node->now_us;
  key->ends_us = 0;
  return there ? ":1\r\n" : ":0\r\n";
}

static const char *node_release(crowd_node *node, const resp_request *request) {
  crowd_stored *key = request->count == 5 ? node_key(node, request, 3) : NULL;
  if (key == NULL) {
    return NULL;
  }
  if (!node_holds(node, key, request, 4)) {
    return ":0\r\n";
  }
  key->ends_us = 0;
  return ":1\r\n";
}

static const char *node_extend(crowd_node *node, const resp_request *request) {
  crowd_stored *key = request->count == 6 ? node_key(node, request, 3) : NULL;
  if (key == NULL) {
    return NULL;
  }
  if (!node_holds(node, key, request, 4)) {
    return ":0\r\n";
  }
  redlock_time ends_us = node->now_us + resp_number(request, 5) * REDLOCK_MILLISECONDS;
  key->ends_us = rl_time_max(key->ends_us, ends_us);
  return ":1\r\n";
}

/* EVAL and EVALSHA: a server that was sent the text of a script once knows it for all connections. */
static const char *node_script(crowd_node *node, const resp_request *request) {
  bool by_text = resp_is(request, 0, "EVAL");
  for (unsigned i = 0; i < 2; i++) {
    rl_script script = i == 0 ? RL_SCRIPT_RELEASE : RL_SCRIPT_EXTEND;
    bool *knows = i == 0 ? &node->knows_release : &node->knows_extend;
    if (resp_is(request, 1,
                by_text ? rl_command_script_text(script) : rl_command_script_sha1(script))) {
      *knows = *knows || by_text;
      return !*knows  ? "-NOSCRIPT No matching script. Please use EVAL.\r\n"
             : i == 0 ? node_release(node, request)
                      : node_extend(node, request);
    }
  }
  return NULL;
}

static const char *node_handshake(crowd_node *node, const resp_request *request) {
  (void)request;
  node->commands--;
  return "+OK\r\n";
}

static const char *node_execute(crowd_node *node, const resp_request *request) {
  static const struct {
    const char *name;
    const char *(*execute)(crowd_node *, const resp_request *);
  } commands[] = {{"SET", node_set},         {"EVALSHA", node_script},   {"EVAL", node_script},
                  {"DEL", node_delete},      {"CLIENT", node_handshake}, {"AUTH", node_handshake},
                  {"SELECT", node_handshake}};
  node->commands++;
  for (size_t i = 0; i < sizeof commands / sizeof commands[0]; i++) {
    const char *reply =
        resp_is(request, 0, commands[i].name) ? commands[i].execute(node, request) : NULL;
    if (reply != NULL) {
      return reply;
    }
  }
  bench_die("crowd: a node does not know the command %.*s", (int)request->lengths[0],
            request->words[0]);
}

/* A packet has whole commands, for all that there is to be sent is sent at once. */
static void node_hear(crowd *c, const crowd_event *event) {
  crowd_client *client = &c->clients[event->client];
  crowd_node *node = &c->nodes[event->node];
  const char *bytes = (const char *)(event + 1);
  char replies[CROWD_REPLIES_MAX];
  resp_request request;
  size_t length = 0;
  node->now_us = c->now_us;
  for (size_t at = 0; at < event->length;) {
    long used = resp_read(&request, bytes + at, event->length - at);
    if (used <= 0) {
      bench_die("crowd: a node was sent what is no command");
    }
    at += (size_t)used;
    const char *reply = node_execute(node, &request);
    if (length + strlen(reply) > sizeof replies) {
      bench_die("crowd: a node was sent too much at once");
    }
    memcpy(replies + length, reply, strlen(reply));
    length += strlen(reply);
  }
  if (client->connections[event->node].number == event->connection) {
    crowd_send(c, CROWD_REPLIES, client, event->node, replies, length);
  }
}

/* ------------------------------------------------------------------------------------ figures */

static void crowd_sample(crowd_samples *samples, uint64_t us) {
  if (samples->count == samples->capacity) {
    samples->capacity = samples->capacity == 0 ? 1024 : 2 * samples->capacity;
    samples->us = realloc(samples->us, samples->capacity * sizeof *samples->us);
    if (samples->us == NULL) {
      bench_die("crowd: no memory");
    }
  }
  samples->us[samples->count++] = us;
}

static int crowd_compare(const void *one, const void *other) {
  uint64_t a = *(const uint64_t *)one, b = *(const uint64_t *)other;
  return a < b ? -1 : a > b;
}

static uint64_t crowd_quorumth(uint64_t values[CROWD_NODES]) {
  qsort(values, CROWD_NODES, sizeof *values, crowd_compare);
  return values[CROWD_NODES / 2];
}

/* As the comment at the head of the file has it. */
static void crowd_measure_distances(crowd *c) {
  for (unsigned from = 0; from <= CROWD_REGIONS; from++) {
    for (unsigned to = 0; to < CROWD_REGIONS; to++) {
      uint64_t least_us[CROWD_NODES], told_us[CROWD_NODES];
      for (unsigned n = 0; n < CROWD_NODES; n++) {
        unsigned at = crowd_node_regions[n];
        redlock_duration freed_us = from == CROWD_NOWHERE ? 0 : crowd_ways_us[from][at];
        least_us[n] = freed_us + crowd_ways_us[at][to];
        told_us[n] = rl_time_max(freed_us, crowd_ways_us[to][at]) + crowd_ways_us[at][to];
      }
      c->least_us[from][to] = crowd_quorumth(least_us);
      c->told_us[from][to] = crowd_quorumth(told_us);
    }
  }
}

/* Whether a token stands on a majority of the nodes. */
static bool crowd_is_had(const crowd *c, const crowd_key *key) {
  const crowd_stored *const *places = key->places;
  for (unsigned n = 0; n <= CROWD_NODES / 2; n++) {
    unsigned same = 0;
    for (unsigned i = 0; i < CROWD_NODES; i++) {
      same += places[i]->ends_us > c->now_us && places[n]->ends_us > c->now_us &&
              places[i]->token_length == places[n]->token_length &&
              memcmp(places[i]->token, places[n]->token, places[n]->token_length) == 0;
    }
    if (same > CROWD_NODES / 2) {
      return true;
    }
  }
  return false;
}

/* When so many keys of the client will have run out that a majority of the nodes is free. */
static redlock_time crowd_frees_itself(const crowd *c, const crowd_client *client) {
  const rl_attempt *lease = client->lock->lease;
  uint64_t ends_us[CROWD_NODES];
  for (unsigned n = 0; n < CROWD_NODES; n++) {
    const crowd_stored *place = c->keys[client->key].places[n];
    bool ours =
        lease != NULL && memcmp(place->token, rl_attempt_token(lease), place->token_length) == 0;
    ends_us[n] = ours ? place->ends_us : 0;
  }
  return rl_time_max(c->now_us, crowd_quorumth(ends_us));
}

/* Looks once at each attempt that failed. */
static void crowd_judge(crowd *c, crowd_client *client) {
  const rl_lock *lock = client->lock;
  if (lock->phase != RL_PHASE_DELAY || lock->round == client->judged) {
    return;
  }
  client->judged = lock->round;
  c->failed++;
  c->split += !crowd_is_had(c, &c->keys[client->key]);
}

/* The key is given up by its owner: now, or by one who has died when it runs out. */
static void crowd_freed(crowd *c, const crowd_client *client, unsigned from, redlock_time at_us) {
  crowd_key *key = &c->keys[client->key];
  if (key->owner != client) {
    return; /* Another one has it, too. */
  }
  key->freed = true;
  key->waited = key->waiting > 0;
  key->from = from;
  key->freed_us = at_us;
  key->until_us = from == CROWD_NOWHERE ? client->lock->deadline_us : 0;
}

static bool crowd_is_held(const crowd *c, const crowd_key *key) {
  if (key->owner == NULL || key->until_us != REDLOCK_NEVER) {
    return key->owner != NULL && key->until_us > c->now_us;
  }
  return rl_lock_remaining(key->owner->lock, c->now_us) > 0;
}

static void crowd_granted(crowd *c, crowd_client *client) {
  crowd_key *key = &c->keys[client->key];
  c->had++;
  c->had_in[client->region]++;
  c->two += crowd_is_held(c, key);
  if (key->freed && key->waited && key->last_life != client->life) {
    crowd_sample(&c->handed, rl_time_sub(c->now_us, key->freed_us));
    crowd_sample(&c->least, c->least_us[key->from][client->region]);
    crowd_sample(&c->told, c->told_us[key->from][client->region]);
  }
  key->owner = client;
  key->last_life = client->life;
  key->until_us = REDLOCK_NEVER;
  key->freed = false;
}

/* ------------------------------------------------------------------------------------ clients */

static void client_arm(crowd *c, crowd_client *client, redlock_time at_us) {
  if (at_us < client->armed_us) {
    client->armed_us = rl_time_max(at_us, c->now_us);
    crowd_push(c, client->armed_us, &client->wake);
  }
}

static void client_start(crowd *c, crowd_client *client, redlock_duration pause_us) {
  const char *name = c->keys[client->key].name;
  rl_address address;
  client->state = CROWD_PAUSES;
  client->due_us = c->now_us + pause_us;
  client->armed_us = REDLOCK_NEVER;
  client->life = ++c->lives;
  client->judged = 0;
  if (rl_core_init(&client->core, NULL, 0) != REDLOCK_OK) {
    bench_die("crowd: no core");
  }
  client->core.options = c->lock_options;
  for (unsigned n = 0; n < CROWD_NODES; n++) {
    memset(&address, 0, sizeof address);
    (void)snprintf(address.host, sizeof address.host, "10.0.0.%u", n);
    (void)snprintf(address.name, sizeof address.name, "10.0.0.%u", n);
    if (rl_core_add(&client->core, &address) != REDLOCK_OK) {
      bench_die("crowd: no node");
    }
  }
  client->lock = rl_lock_new(&client->core, name, strlen(name), &client->core.options);
  if (client->lock == NULL) {
    bench_die("crowd: no lock");
  }
  client_arm(c, client, client->due_us);
}

/* What is not sent yet never is. */
static void client_end(crowd *c, crowd_client *client) {
  if (client->state == CROWD_DEAD) {
    return;
  }
  client->state = CROWD_DEAD;
  rl_lock_free(client->lock, c->now_us);
  rl_core_free(&client->core);
  for (unsigned n = 0; n < CROWD_NODES; n++) {
    crowd_hang_up(&client->connections[n]);
  }
}

static void client_die(crowd *c, crowd_client *client) {
  double replaced_s = c->options->replaced_s;
  c->died++;
  crowd_freed(c, client, CROWD_NOWHERE, crowd_frees_itself(c, client));
  client_end(c, client);
  client->armed_us = REDLOCK_NEVER;
  client->due_us = replaced_s == 0 ? REDLOCK_NEVER : c->now_us + crowd_ms(replaced_s * 1000);
  client_arm(c, client, client->due_us);
}

static void client_want(crowd *c, crowd_client *client) {
  client->state = CROWD_WAITS;
  client->wanted_us = c->now_us;
  client->due_us = REDLOCK_NEVER;
  c->keys[client->key].waiting++;
  (void)rl_lock_acquire(client->lock, c->now_us, NULL, true);
}

static void client_release(crowd *c, crowd_client *client) {
  client->state = CROWD_RELEASES;
  client->due_us = REDLOCK_NEVER;
  crowd_freed(c, client, client->region, c->now_us);
  (void)rl_lock_release(client->lock, c->now_us, true);
}

/* What it does when it is due. */
static void client_act(crowd *c, crowd_client *client) {
  if (client->due_us > c->now_us) {
    return;
  }
  if (client->state == CROWD_PAUSES) {
    client_want(c, client);
  } else if (client->state == CROWD_HOLDS && client->dies) {
    client_die(c, client);
  } else if (client->state == CROWD_HOLDS) {
    client_release(c, client);
  }
}

/* Its acquire or its release has ended. */
static void client_ended(crowd *c, crowd_client *client) {
  bool waited = client->state == CROWD_WAITS;
  bool granted = waited && rl_lock_outcome(client->lock, c->now_us) == REDLOCK_OK;
  redlock_duration next_us = crowd_ms(granted ? c->options->hold_ms : c->options->pause_ms);
  if (waited) {
    c->keys[client->key].waiting--;
    c->longest_us = rl_time_max(c->longest_us, c->now_us - client->wanted_us);
    c->gave_up += !granted;
  }
  if (granted) {
    crowd_granted(c, client);
    client->dies = sim_chance(&c->deaths, (unsigned)lround(c->options->deaths * 100));
    next_us = client->dies ? sim_below(&c->deaths, next_us + 1) : next_us;
  }
  client->state = granted ? CROWD_HOLDS : CROWD_PAUSES;
  client->due_us = c->now_us + next_us;
}

static void client_connect(crowd *c, crowd_client *client) {
  for (unsigned n = 0; n < CROWD_NODES; n++) {
    rl_connection wanted = rl_core_connection(&client->core, n, c->now_us);
    if (wanted != RL_CONNECTION_OPEN && client->connections[n].open) {
      crowd_hang_up(&client->connections[n]);
    }
    if (wanted == RL_CONNECTION_WANTED) {
      rl_core_connecting(&client->core, n, c->now_us);
      crowd_connect(c, client, n);
    }
  }
}

static void client_launch(crowd *c, crowd_client *client) {
  unsigned char entropy[RL_LOCK_ENTROPY];
  size_t wanted = rl_core_entropy_wanted(&client->core);
  if (!rl_core_wants_launch(&client->core)) {
    return;
  }
  if (wanted > sizeof entropy) {
    bench_die("crowd: one lock wants entropy for several");
  }
  for (size_t at = 0; at < wanted; at += sizeof(uint64_t)) {
    uint64_t drawn = sim_random_next(&c->entropy);
    memcpy(entropy + at, &drawn, wanted - at < sizeof drawn ? wanted - at : sizeof drawn);
  }
  rl_core_launch(&client->core, c->now_us, entropy, wanted);
}

static void client_send(crowd *c, crowd_client *client) {
  for (unsigned n = 0; n < CROWD_NODES; n++) {
    size_t length;
    const void *bytes = rl_core_output(&client->core, n, &length);
    if (bytes != NULL) {
      crowd_send(c, CROWD_COMMANDS, client, n, bytes, length);
      rl_core_output_sent(&client->core, n, length);
    }
  }
}

/* The steps of rl_core.h, until there is nothing left to do at this moment. */
static void client_turn(crowd *c, crowd_client *client) {
  redlock_time next_us = 0;
  for (unsigned turn = 0; next_us <= c->now_us; turn++) {
    if (turn == CROWD_TURNS_MAX) {
      bench_die("crowd: a client does not come to rest");
    }
    rl_core_advance(&client->core, c->now_us);
    client_connect(c, client);
    client_act(c, client);
    if (client->state == CROWD_DEAD) {
      return;
    }
    client_launch(c, client);
    client_send(c, client);
    crowd_judge(c, client);
    next_us = rl_time_min(client->due_us, rl_core_deadline(&client->core));
    if (rl_core_next_ended(&client->core) != NULL) {
      client_ended(c, client);
      next_us = c->now_us; /* What came too late is to be released at once. */
    }
  }
  client_arm(c, client, next_us);
}

static void client_call(crowd *c, crowd_client *client) {
  if (!client->called) {
    client->called = true;
    c->called[c->called_count++] = client;
  }
}

/* Something arrives on a connection. */
static void client_hear(crowd *c, const crowd_event *event) {
  crowd_client *client = &c->clients[event->client];
  if (client->connections[event->node].number != event->connection) {
    return;
  }
  if (event->kind == CROWD_CONNECTED) {
    rl_core_connected(&client->core, event->node, c->now_us);
  } else {
    rl_core_input(&client->core, event->node, c->now_us, event + 1, event->length);
  }
  client_call(c, client);
}

static void client_wake(crowd *c, crowd_client *client) {
  if (client->armed_us != c->now_us) {
    return; /* An earlier one has come in its place. */
  }
  client->armed_us = REDLOCK_NEVER;
  if (client->state != CROWD_DEAD) {
    client_call(c, client);
  } else if (client->due_us <= c->now_us) {
    client_start(c, client, crowd_ms(c->options->pause_ms));
  }
}

/* ---------------------------------------------------------------------------------------- run */

static void crowd_seed(sim_random *random, double seed, uint64_t stream) {
  uint64_t state = (uint64_t)seed * 0x2545f4914f6cdd1du + stream;
  sim_random_seed(random, &state);
}

static void crowd_open(crowd *c, const crowd_options *options, double delay_ms, double jitter_ms) {
  unsigned clients = (unsigned)options->clients, keys = (unsigned)options->keys;
  size_t places = 4;
  memset(c, 0, sizeof *c);
  c->options = options;
  c->now_us = CROWD_START_US;
  c->end_us = c->now_us + crowd_ms(options->seconds * 1000);
  c->cut_from_us = c->now_us + crowd_ms(options->seconds * 1000 / 3);
  c->cut_to_us = c->cut_from_us + crowd_ms(options->cut_s * 1000);
  crowd_seed(&c->network, options->seed, 1);
  crowd_seed(&c->entropy, options->seed, 2);
  crowd_seed(&c->deaths, options->seed, 3);
  crowd_measure_distances(c);
  rl_options_default(&c->lock_options);
  c->lock_options.ttl_us = crowd_ms(options->ttl_ms);
  c->lock_options.wait_us = crowd_ms(options->wait_s * 1000);
  c->lock_options.retry_delay_us = crowd_ms(delay_ms);
  c->lock_options.retry_jitter_us = crowd_ms(jitter_ms);
  c->lock_options.auto_extend = options->hold_ms > options->ttl_ms / 3 ? REDLOCK_YES : REDLOCK_NO;
  for (; places < 2 * (size_t)keys; places *= 2) {
  }
  for (unsigned n = 0; n < CROWD_NODES; n++) {
    c->nodes[n].stored = crowd_allocate(places, sizeof *c->nodes[n].stored);
    c->nodes[n].mask = places - 1;
    c->nodes[n].breaks = options->breaks;
  }
  c->keys = crowd_allocate(keys, sizeof *c->keys);
  for (unsigned k = 0; k < keys; k++) {
    (void)snprintf(c->keys[k].name, sizeof c->keys[k].name, "crowd:%u", k);
    for (unsigned n = 0; n < CROWD_NODES; n++) {
      c->keys[k].places[n] = node_place(&c->nodes[n], c->keys[k].name, strlen(c->keys[k].name));
    }
  }
  c->clients = crowd_allocate(clients, sizeof *c->clients);
  c->called = crowd_allocate(clients, sizeof *c->called);
  for (unsigned i = 0; i < clients; i++) {
    crowd_client *client = &c->clients[i];
    client->wake = (crowd_event){.kind = CROWD_WAKE, .client = i};
    client->key = i % keys;
    client->region = (i / keys + client->key) % CROWD_REGIONS; /* of each key's clients a third */
    client_start(c, client, sim_below(&c->network, CROWD_COME_US));
  }
}

static void crowd_happen(crowd *c, crowd_event *event) {
  switch (event->kind) {
  case CROWD_COMMANDS:
    node_hear(c, event);
    break;
  case CROWD_WAKE:
    client_wake(c, &c->clients[event->client]);
    return; /* It is part of the client. */
  default:
    client_hear(c, event);
    break;
  }
  free(event);
}

static void crowd_run(crowd *c) {
  while (c->heap_count > 0 && c->heap[0].at_us < c->end_us) {
    c->now_us = c->heap[0].at_us;
    while (c->heap_count > 0 && c->heap[0].at_us == c->now_us) {
      crowd_happen(c, crowd_pop(c).event);
      c->events++;
    }
    for (size_t i = 0; i < c->called_count; i++) {
      c->called[i]->called = false;
      client_turn(c, c->called[i]);
    }
    c->called_count = 0;
  }
}

static void crowd_close(crowd *c) {
  for (unsigned i = 0; i < (unsigned)c->options->clients; i++) {
    client_end(c, &c->clients[i]);
  }
  while (c->heap_count > 0) {
    crowd_event *event = c->heap[--c->heap_count].event;
    if (event->kind != CROWD_WAKE) {
      free(event);
    }
  }
  for (unsigned n = 0; n < CROWD_NODES; n++) {
    free(c->nodes[n].stored);
  }
  free(c->heap);
  free(c->keys);
  free(c->clients);
  free(c->called);
  free(c->handed.us);
  free(c->least.us);
  free(c->told.us);
}

static double crowd_percentile_ms(crowd_samples *samples, double fraction) {
  qsort(samples->us, samples->count, sizeof *samples->us, crowd_compare);
  return samples->count == 0
             ? 0
             : (double)samples->us[(size_t)(fraction * (double)(samples->count - 1))] / 1000;
}

static void crowd_print(crowd *c, const char *way) {
  char handed[32], least[32], told[32];
  const struct {
    char *text;
    crowd_samples *samples;
  } pairs[] = {{handed, &c->handed}, {least, &c->least}, {told, &c->told}};
  double commands = 0, had = c->had > 0 ? (double)c->had : 1;
  for (size_t i = 0; i < 3; i++) {
    (void)snprintf(pairs[i].text, sizeof handed, "%.1f/%.1f",
                   crowd_percentile_ms(pairs[i].samples, 0.5),
                   crowd_percentile_ms(pairs[i].samples, 0.99));
  }
  for (unsigned i = 0; i < (unsigned)c->options->clients; i++) {
    if (c->clients[i].state == CROWD_WAITS) {
      c->longest_us = rl_time_max(c->longest_us, c->end_us - c->clients[i].wanted_us);
    }
  }
  for (unsigned n = 0; n < CROWD_NODES; n++) {
    commands += (double)c->nodes[n].commands / CROWD_NODES;
  }
  printf(
      "%-8s %8zu %5llu %15s %12s %12s %8.0f %8.0f %7.1f %7.2f %8llu %6.2f  %2.0f/%2.0f/%2.0f %4llu\n",
      way, c->handed.count, (unsigned long long)c->died, handed, least, told,
      c->handed.count > 0 ? commands / (double)c->handed.count : 0, commands / c->options->seconds,
      (double)c->longest_us / (double)REDLOCK_SECONDS,
      100 * (double)c->gave_up / (double)(c->gave_up + c->had > 0 ? c->gave_up + c->had : 1),
      (unsigned long long)c->split,
      100 * (double)c->split / (double)(c->failed > 0 ? c->failed : 1),
      100 * (double)c->had_in[0] / had, 100 * (double)c->had_in[1] / had,
      100 * (double)c->had_in[2] / had, (unsigned long long)c->two);
  fflush(stdout);
}

/* ------------------------------------------------------------------------------- command line */

static const struct crowd_word {
  const char *name, *help;
  size_t offset;
  double fallback, low, high;
} crowd_words[] = {
    {"--clients", "how many", offsetof(crowd_options, clients), 10000, 1, 1000000},
    {"--keys", "how many", offsetof(crowd_options, keys), 100, 1, 1000000},
    {"--hold", "ms; automatic extension from a third of the ttl on",
     offsetof(crowd_options, hold_ms), 20, 0, 1e7},
    {"--pause", "ms, before the key is wanted again", offsetof(crowd_options, pause_ms), 100, 0,
     1e7},
    {"--seconds", "of virtual time", offsetof(crowd_options, seconds), 60, 1, 1e5},
    {"--wait", "s, after which a client gives up", offsetof(crowd_options, wait_s), 60, 1, 1e5},
    {"--ttl", "ms", offsetof(crowd_options, ttl_ms), 10000, 100, 1e7},
    {"--seed", "a whole number", offsetof(crowd_options, seed), 1, 0, 1e15},
    {"--deaths", "% of the holders", offsetof(crowd_options, deaths), 0.1, 0, 100},
    {"--replaced", "s after the death; 0 for never", offsetof(crowd_options, replaced_s), 1, 0,
     1e5},
    {"--cut", "s that a region is cut off, from a third of the time on",
     offsetof(crowd_options, cut_s), 5, 0, 1e5},
    {"--cut-region", "0, 1 or 2", offsetof(crowd_options, cut_region), 0, 0, 2},
    {"--late", "% of the packets", offsetof(crowd_options, late), 1, 0, 100},
    {"--late-by", "ms", offsetof(crowd_options, late_ms), 200, 0, 1e5},
};
#define CROWD_WORDS (sizeof crowd_words / sizeof crowd_words[0])

static double *crowd_field(crowd_options *options, size_t word) {
  return (double *)(void *)((char *)options + crowd_words[word].offset);
}

static int crowd_usage(int status) {
  FILE *file = status == 0 ? stdout : stderr;
  fprintf(file,
          "usage: crowd [--option value ...] [polling | busy | <delay ms>/<jitter ms> ...]\n");
  for (size_t i = 0; i < CROWD_WORDS; i++) {
    fprintf(file, "  %-13s %s [%g]\n", crowd_words[i].name, crowd_words[i].help,
            crowd_words[i].fallback);
  }
  fprintf(file,
          "  --break       nodes ignore NX: two must be seen to hold a key, and the status be 1\n");
  return status;
}

/* Reads the options; how many words they are, or -1. */
static int crowd_read(crowd_options *options, int argc, char **argv) {
  int at = 1;
  for (size_t i = 0; i < CROWD_WORDS; i++) {
    *crowd_field(options, i) = crowd_words[i].fallback;
  }
  while (at < argc && strncmp(argv[at], "--", 2) == 0) {
    char *end = NULL;
    size_t word = 0;
    if (strcmp(argv[at], "--break") == 0) {
      options->breaks = true;
      at++;
      continue;
    }
    while (word < CROWD_WORDS && strcmp(argv[at], crowd_words[word].name) != 0) {
      word++;
    }
    if (word == CROWD_WORDS || at + 1 == argc) {
      return -1;
    }
    double value = strtod(argv[at + 1], &end);
    if (*end != '\0' || !(value >= crowd_words[word].low && value <= crowd_words[word].high)) {
      return -1;
    }
    *crowd_field(options, word) = value;
    at += 2;
  }
  return at - 1;
}

static bool crowd_read_way(const char *way, double *delay_ms, double *jitter_ms) {
  if (strcmp(way, "polling") == 0) {
    way = "200/100";
  } else if (strcmp(way, "busy") == 0) {
    way = "1/0.5";
  }
  char end;
  return sscanf(way, "%lf/%lf%c", delay_ms, jitter_ms, &end) == 2 && *delay_ms > 0 &&
         *delay_ms < 1e7 && *jitter_ms >= 0 && *jitter_ms < 1e7;
}

/* What was simulated, and what the columns are. */
static void crowd_print_header(crowd_options *options) {
  printf("crowd:");
  for (size_t i = 0; i < CROWD_WORDS; i++) {
    printf(" %s=%g", crowd_words[i].name + 2, *crowd_field(options, i));
  }
  printf("%s\n%-8s %8s %5s %15s %12s %12s %8s %8s %7s %7s %8s %6s  %8s %4s\n",
         options->breaks ? " break" : "", "way", "handed", "died", "p50/p99 ms", "least", "told",
         "commands", "ask/s", "longest", "gave up", "split", "%", "regions", "two");
}

/* Returns whether two held a key at once. */
static bool crowd_simulate(const crowd_options *options, const char *way) {
  crowd c;
  double delay_ms = 0, jitter_ms = 0;
  clock_t began = clock();
  (void)crowd_read_way(way, &delay_ms, &jitter_ms);
  crowd_open(&c, options, delay_ms, jitter_ms);
  crowd_run(&c);
  crowd_print(&c, way);
  fprintf(stderr, "%s: %llu events, %.1f s of processor time\n", way, (unsigned long long)c.events,
          (double)(clock() - began) / CLOCKS_PER_SEC);
  bool two = c.two > 0;
  crowd_close(&c);
  return two;
}

/* The way that comes after |index| others; NULL behind the last. */
static const char *crowd_way(char **given, unsigned index) {
  static const char *const ways[] = {"polling", "busy", NULL};
  return *given == NULL ? ways[index] : given[index];
}

int main(int argc, char **argv) {
  crowd_options options = {.breaks = false};
  double delay_ms, jitter_ms;
  bool two = false;
  if (argc > 1 && strcmp(argv[1], "--help") == 0) {
    return crowd_usage(0);
  }
  int words = crowd_read(&options, argc, argv);
  if (words < 0) {
    return crowd_usage(2);
  }
  char **given = argv + words + 1;
  for (unsigned i = 0; *given != NULL && given[i] != NULL; i++) {
    if (!crowd_read_way(given[i], &delay_ms, &jitter_ms)) {
      return crowd_usage(2);
    }
  }
  crowd_print_header(&options);
  for (unsigned i = 0; crowd_way(given, i) != NULL; i++) {
    two = crowd_simulate(&options, crowd_way(given, i)) || two;
  }
  return two ? 1 : 0;
}
