/*
 * The cost of a lock's commands for one redis-server: its processor time per command, from INFO.
 *
 *     node_cost <port> <rounds> <waiters> ...
 *
 * The commands are the library's (csrc/core/wire/rl_command.c). 50 connections send one command
 * each, then the program reads the replies, and so on. A line is a cycle of commands that leaves
 * the server unchanged. With waiters, the queue of each key has that many connected ones: the first
 * releases and is dequeued, and another is appended. "us" is the processor time per command,
 * sockets included; "us in Lua" is that of EVALSHA in commandstats, without sockets.
 *
 * SPDX-License-Identifier: MIT
 */
#include <hiredis.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "measure.h"
#include "wire/rl_command.h"

#define COST_CONNECTIONS 50
#define COST_SUBSCRIBERS 1000
#define COST_IDLE_S 8 /* a server frees the buffers of idle clients within this time */
#define COST_TOKEN "0123456789abcdef0123456789abcdef"
#define COST_SEAL "cost:seal" /* has the encoding of a seal (rl_script.c) */
#define COST_FENCE 1          /* a proposal, which the node replaces by its own time */

typedef enum cost_step {
  COST_END,
  COST_PING,
  COST_SET,
  COST_TAKE_FENCED,  /* the acquire of a lock with a fencing token */
  COST_TAKE_GUARDED, /* the acquire of a client with a guard */
  COST_TAKE_BOTH,
  COST_RELEASE,
  COST_RELEASE_NOTIFY, /* by a holder that has not waited */
  COST_RELEASE_QUEUED, /* by a holder that is queued */
  COST_NATIVE,         /* DELIFEQ or DELEX alone */
  COST_NATIVE_PAIR,    /* the same, and EXISTS of the waiters flag */
  COST_ENQUEUE,
  COST_POLL
} cost_step;

static const struct cost_cycle {
  const char *name;
  bool held;   /* the key is held */
  bool queued; /* once for each number of waiters */
  cost_step steps[4];
} cost_cycles[] = {
    {"PING", false, false, {COST_PING}},
    {"SET of a taken key", true, false, {COST_SET}},
    {"SET and plain release", false, false, {COST_SET, COST_RELEASE}},
    {"fenced acquire and plain release", false, false, {COST_TAKE_FENCED, COST_RELEASE}},
    {"guarded acquire and plain release", false, false, {COST_TAKE_GUARDED, COST_RELEASE}},
    {"both, and plain release", false, false, {COST_TAKE_BOTH, COST_RELEASE}},
    {"SET and release without waiters", false, false, {COST_SET, COST_RELEASE_NOTIFY}},
    {"SET and native release of the key", false, false, {COST_SET, COST_NATIVE}},
    {"SET and native release, with the flag", false, false, {COST_SET, COST_NATIVE_PAIR}},
    {"SET, enqueue, and release that notifies",
     false,
     true,
     {COST_SET, COST_ENQUEUE, COST_RELEASE_QUEUED}},
    {"poll of the last waiter", true, true, {COST_POLL}},
};
#define COST_CYCLES (sizeof cost_cycles / sizeof cost_cycles[0])

typedef struct cost {
  redisContext *control, *subscriber, *connections[COST_CONNECTIONS];
  char keys[COST_CONNECTIONS][24];
  unsigned port, rounds, waiters;
  unsigned turn;    /* number of dequeued waiters of each queue */
  bool ifeq, delex; /* the server knows DELIFEQ, or DELEX */
} cost;

static redisContext *cost_connect(unsigned port) {
  redisContext *connection = redisConnect("127.0.0.1", (int)port);
  if (connection == NULL || connection->err != 0) {
    bench_die("node_cost: there is no server on port %u", port);
  }
  return connection;
}

static void cost_read(redisContext *connection) {
  void *reply = NULL;
  if (redisGetReply(connection, &reply) != REDIS_OK ||
      ((redisReply *)reply)->type == REDIS_REPLY_ERROR) {
    bench_die("node_cost: %s", reply == NULL ? connection->errstr : ((redisReply *)reply)->str);
  }
  freeReplyObject(reply);
}

static void cost_do(cost *c, rl_buffer *command) {
  (void)redisAppendFormattedCommand(c->control, command->data, rl_buffer_length(command));
  cost_read(c->control);
  rl_buffer_free(command);
}

/* Returns true if the server knows the command. */
static bool cost_knows(cost *c, const char *command) {
  redisReply *reply = redisCommand(c->control, "COMMAND INFO %s", command);
  bool knows = reply != NULL && reply->type == REDIS_REPLY_ARRAY && reply->elements == 1 &&
               reply->element[0]->type == REDIS_REPLY_ARRAY && reply->element[0]->elements > 0;
  freeReplyObject(reply);
  return knows;
}

/* DELIFEQ key token, or DELEX key IFEQ token, perhaps with EXISTS key:redlock-wait. */
static void cost_native(const cost *c, rl_buffer *out, const rl_command_key *key, bool pair) {
  (void)rl_command_delete_if(out, key, !c->ifeq, true);
  if (pair) {
    (void)rl_command_flag(out, key);
  }
}

/* The script that acquires a lock with a fencing token, or for a client with a guard, or both. */
static void cost_take(rl_buffer *out, const rl_command_key *key, cost_step step, bool by_text) {
  rl_command_fence watch = {.script = RL_SCRIPT_TAKE, .by_text = by_text, .ttl_ms = 100000};
  watch.fence = step == COST_TAKE_GUARDED ? 0 : COST_FENCE;
  watch.seal = step == COST_TAKE_FENCED ? NULL : COST_SEAL;
  (void)rl_command_fenced(out, key, &watch);
}

/* The place of number |place|, of a client of its own. */
static void cost_entry(unsigned place, char entry[32]) {
  (void)snprintf(entry, 32, "%016llx%08x", place * 0x9e3779b97f4a7c15ull, 0x10000u);
}

static void cost_command(const cost *c, rl_buffer *out, cost_step step, const char *name,
                         int by_text) {
  rl_command_key key = {name, strlen(name), COST_TOKEN, strlen(COST_TOKEN), 1, NULL, {NULL, 0}};
  char entry[32];
  cost_entry(c->turn + (step == COST_RELEASE_QUEUED ? 1 : c->waiters + 1), entry);
  switch (step) {
  case COST_PING:
    (void)rl_command_arguments(out, &(rl_command_bytes){"PING", 4}, 1);
    break;
  case COST_SET:
    (void)rl_command_set(out, &key, 100000);
    break;
  case COST_TAKE_FENCED:
  case COST_TAKE_GUARDED:
  case COST_TAKE_BOTH:
    cost_take(out, &key, step, by_text);
    break;
  case COST_RELEASE:
    (void)rl_command_script(out, RL_SCRIPT_RELEASE, by_text, &key, 0, 1);
    break;
  case COST_RELEASE_NOTIFY:
  case COST_RELEASE_QUEUED:
    (void)rl_command_release(out, RL_SCRIPT_RELEASE_NOTIFY, by_text, &key,
                             step == COST_RELEASE_QUEUED ? entry : NULL, 1);
    break;
  case COST_NATIVE:
  case COST_NATIVE_PAIR:
    cost_native(c, out, &key, step == COST_NATIVE_PAIR);
    break;
  default:
    (void)rl_command_queue(out, RL_SCRIPT_ENQUEUE, by_text, name, strlen(name), entry,
                           step == COST_POLL ? RL_COMMAND_ENQUEUE_CHECK : RL_COMMAND_ENQUEUE_APPEND,
                           0);
    break;
  }
}

/* The queue of each key is filled. */
static void cost_prepare(cost *c, const struct cost_cycle *cycle) {
  rl_buffer out = {0};
  freeReplyObject(redisCommand(c->control, "SET " COST_SEAL " o"));
  freeReplyObject(redisCommand(c->control, "APPEND " COST_SEAL " k"));
  for (unsigned i = 0; i < COST_CONNECTIONS; i++) {
    const char *name = c->keys[i];
    cost_command(c, &out, COST_SET, name, 1);
    cost_do(c, &out);
    for (unsigned place = 1; cycle->queued && place <= c->waiters; place++) {
      char entry[32];
      cost_entry(place, entry);
      (void)rl_command_queue(&out, RL_SCRIPT_ENQUEUE, 1, name, strlen(name), entry, 0, 0);
      cost_do(c, &out);
    }
    if (cycle->steps[0] == COST_POLL) {
      cost_command(c, &out, COST_ENQUEUE, name, 1);
      cost_do(c, &out);
    }
    if (!cycle->held) {
      cost_command(c, &out, COST_RELEASE, name, 1);
      cost_do(c, &out);
    }
  }
}

/* A number of INFO: the first behind |name| that follows |section|. */
static double cost_info(cost *c, const char *section, const char *name) {
  redisReply *reply = redisCommand(c->control, "INFO everything");
  const char *at = reply == NULL || reply->str == NULL ? NULL : strstr(reply->str, section);
  at = at == NULL ? NULL : strstr(at, name);
  double value =
      at == NULL ? 0 : strtod(at + (name[0] == '\0' ? strlen(section) : strlen(name)), NULL);
  freeReplyObject(reply);
  return value;
}

static double cost_processor_us(cost *c) {
  return 1e6 * (cost_info(c, "used_cpu_user:", "") + cost_info(c, "used_cpu_sys:", ""));
}

static void cost_round(cost *c, cost_step step) {
  rl_buffer out = {0};
  for (unsigned i = 0; i < COST_CONNECTIONS; i++) {
    int done = 0;
    cost_command(c, &out, step, c->keys[i], 0);
    (void)redisAppendFormattedCommand(c->connections[i], out.data, rl_buffer_length(&out));
    while (!done && redisBufferWrite(c->connections[i], &done) == REDIS_OK) {
    }
    rl_buffer_free(&out);
  }
  for (unsigned i = 0; i < COST_CONNECTIONS; i++) {
    cost_read(c->connections[i]);
    if (step == COST_NATIVE_PAIR) {
      cost_read(c->connections[i]);
    }
    if (step == COST_RELEASE_QUEUED && c->waiters > 0) {
      cost_read(c->subscriber);
    }
  }
  c->turn += step == COST_RELEASE_QUEUED;
}

static void cost_measure(cost *c, const struct cost_cycle *cycle) {
  unsigned steps = 0;
  redisReply *flushed = redisCommand(c->control, "FLUSHALL");
  freeReplyObject(flushed);
  c->turn = 0;
  cost_prepare(c, cycle);
  flushed = redisCommand(c->control, "CONFIG RESETSTAT");
  freeReplyObject(flushed);
  double before_us = cost_processor_us(c);
  for (unsigned round = 0; round < c->rounds; round++) {
    for (steps = 0; steps < 4 && cycle->steps[steps] != COST_END; steps++) {
      cost_round(c, cycle->steps[steps]);
    }
  }
  double used_us = cost_processor_us(c) - before_us, sent = c->rounds * COST_CONNECTIONS;
  printf("%-40s %8u %8.1f %8.1f %10.1f\n", cycle->name, cycle->queued ? c->waiters : 0,
         used_us / sent / steps, used_us / sent,
         cost_info(c, "cmdstat_evalsha:", "usec_per_call="));
}

/* Prints the memory of a queue entry and of a subscriber. */
static void cost_memory(cost *c) {
  redisContext *subscribers[COST_SUBSCRIBERS];
  char queue[64];
  (void)snprintf(queue, sizeof queue, "MEMORY USAGE %s" RL_COMMAND_QUEUE, c->keys[0]);
  redisReply *reply = redisCommand(c->control, queue);
  printf("a queue of %u places: %lld bytes\n", c->waiters + 1, reply == NULL ? 0 : reply->integer);
  freeReplyObject(reply);
  double before = cost_info(c, "used_memory:", "");
  for (unsigned i = 0; i < COST_SUBSCRIBERS; i++) {
    subscribers[i] = cost_connect(c->port);
    (void)redisAppendCommand(subscribers[i], "SUBSCRIBE " RL_COMMAND_CHANNEL "%016x", i);
    cost_read(subscribers[i]);
  }
  (void)sleep(COST_IDLE_S);
  printf("a connection that listens, and is idle: %.0f bytes\n",
         (cost_info(c, "used_memory:", "") - before) / COST_SUBSCRIBERS);
  for (unsigned i = 0; i < COST_SUBSCRIBERS; i++) {
    redisFree(subscribers[i]);
  }
}

static void cost_open(cost *c) {
  c->control = cost_connect(c->port);
  c->subscriber = cost_connect(c->port);
  (void)redisAppendCommand(c->subscriber, "PSUBSCRIBE " RL_COMMAND_CHANNEL "*");
  cost_read(c->subscriber);
  for (unsigned i = 0; i < COST_CONNECTIONS; i++) {
    c->connections[i] = cost_connect(c->port);
    (void)snprintf(c->keys[i], sizeof c->keys[i], "cost:%u", i);
  }
}

/* It has seen the scripts. */
static void cost_teach(cost *c) {
  static const cost_step scripts[] = {COST_TAKE_FENCED, COST_RELEASE, COST_RELEASE_NOTIFY,
                                      COST_ENQUEUE};
  rl_buffer out = {0};
  for (size_t i = 0; i < sizeof scripts / sizeof scripts[0]; i++) {
    cost_command(c, &out, scripts[i], c->keys[0], 1);
    cost_do(c, &out);
  }
}

static void cost_close(cost *c) {
  for (unsigned i = 0; i < COST_CONNECTIONS; i++) {
    redisFree(c->connections[i]);
  }
  redisFree(c->subscriber);
  redisFree(c->control);
}

int main(int argc, char **argv) {
  cost c = {.port = 0};
  if (argc < 4) {
    fprintf(stderr, "usage: node_cost <port> <rounds> <waiters> ...\n");
    return 2;
  }
  c.port = (unsigned)strtoul(argv[1], NULL, 10);
  c.rounds = (unsigned)strtoul(argv[2], NULL, 10);
  cost_open(&c);
  cost_teach(&c);
  c.ifeq = cost_knows(&c, "delifeq");
  c.delex = cost_knows(&c, "delex");
  printf("%-40s %8s %8s %8s %10s\n", "cycle", "waiters", "us each", "us in all", "us in Lua");
  for (size_t i = 0; i < COST_CYCLES; i++) {
    if (cost_cycles[i].steps[1] >= COST_NATIVE && cost_cycles[i].steps[1] <= COST_NATIVE_PAIR &&
        !c.ifeq && !c.delex) {
      continue;
    }
    for (int number = 3; number < (cost_cycles[i].queued ? argc : 4); number++) {
      c.waiters = (unsigned)strtoul(argv[number], NULL, 10);
      cost_measure(&c, &cost_cycles[i]);
    }
  }
  cost_memory(&c);
  cost_close(&c);
  return 0;
}
