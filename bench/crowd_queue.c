/*
 * The queues on the nodes of the crowd: who waits there, and who is called (csrc/core/wait/rl_notify.c).
 *
 * SPDX-License-Identifier: MIT
 *
 * Each script is played as its text in csrc/core/wire/rl_command.c has it, and counts what it has the server execute.
 */
#include "crowd.h"
#include "wire/rl_command.h"

#define CROWD_ENTRY_CHANNEL 16 /* digits of the channel, before those of the place */
#define CROWD_ENTRY_COUNTS 19  /* the digit that changes with each place of a client */
#define CROWD_TRIES 1024       /* how many of the dead a script passes over */
#define CROWD_QUEUE_MAX 1024
#define CROWD_QUEUE_LIVES_US (60 * REDLOCK_SECONDS)
#define CROWD_NOBODY ((size_t)-1)

/* ----------------------------------------------------------------------------------- channels */

/* The place of the channel in the node's table, or a free one; as many are free as are taken. */
static crowd_subscriber *queue_subscriber(const crowd_node *node, const char *channel) {
  size_t at = 0;
  for (unsigned i = 0; i < CROWD_ENTRY_CHANNEL; i++) {
    at = at * 16 + (size_t)(channel[i] <= '9' ? channel[i] - '0' : channel[i] - 'a' + 10);
  }
  for (size_t tries = 0; tries <= node->subscriber_mask; tries++, at++) {
    crowd_subscriber *subscriber = &node->subscribers[at & node->subscriber_mask];
    if (subscriber->channel[0] == '\0' ||
        memcmp(subscriber->channel, channel, CROWD_ENTRY_CHANNEL) == 0) {
      return subscriber;
    }
  }
  bench_die("crowd: a node has no place for a channel");
}

const char *queue_subscribe(crowd_node *node, const resp_request *request) {
  size_t prefix = strlen(RL_COMMAND_CHANNEL);
  if (request->count != 2 || request->lengths[1] != prefix + CROWD_ENTRY_CHANNEL) {
    return NULL;
  }
  crowd_subscriber *subscriber = queue_subscriber(node, request->words[1] + prefix);
  memcpy(subscriber->channel, request->words[1] + prefix, CROWD_ENTRY_CHANNEL);
  subscriber->client = node->heard->client;
  subscriber->connection = node->heard->connection;
  subscriber->listens = true;
  node->commands--; /* It is part of the handshake. */
  (void)snprintf(node->reply, sizeof node->reply, "*3\r\n$9\r\nsubscribe\r\n$%zu\r\n%.*s\r\n:1\r\n",
                 request->lengths[1], (int)request->lengths[1], request->words[1]);
  return node->reply;
}

void queue_hang_up(crowd_node *node, const crowd_event *event) {
  for (size_t i = 0; i <= node->subscriber_mask; i++) {
    crowd_subscriber *subscriber = &node->subscribers[i];
    if (subscriber->client == event->client && subscriber->connection == event->connection) {
      subscriber->listens = false;
    }
  }
}

/* How many have received it: 1 or 0. */
static unsigned queue_publish(crowd_node *node, const char *channel, const char *text,
                              size_t length) {
  const crowd_subscriber *subscriber = queue_subscriber(node, channel);
  char message[192];
  if (subscriber->channel[0] == '\0' || !subscriber->listens) {
    return 0;
  }
  crowd_client *client = &node->crowd->clients[subscriber->client];
  unsigned connection = CROWD_NODES + node->index;
  int size =
      snprintf(message, sizeof message,
               "*3\r\n$7\r\nmessage\r\n$%zu\r\n" RL_COMMAND_CHANNEL "%.*s\r\n$%zu\r\n%.*s\r\n",
               strlen(RL_COMMAND_CHANNEL) + CROWD_ENTRY_CHANNEL, CROWD_ENTRY_CHANNEL, channel,
               length, (int)length, text);
  if (size < 0 || (size_t)size >= sizeof message) {
    bench_die("crowd: a message is too long");
  }
  if (client->connections[connection].number == subscriber->connection) {
    crowd_send(node->crowd, CROWD_REPLIES, client, connection, message, (size_t)size);
  }
  return 1; /* Also to who has gone, as long as the node does not know. */
}

const char *queue_probe(crowd_node *node, const resp_request *request) {
  size_t prefix = strlen(RL_COMMAND_CHANNEL);
  if (request->count != 3 || request->lengths[1] != prefix + CROWD_ENTRY_CHANNEL) {
    return NULL;
  }
  return queue_publish(node, request->words[1] + prefix, "", 0) > 0 ? ":1\r\n" : ":0\r\n";
}

/* ------------------------------------------------------------------------------------ the list */

static void queue_expire(const crowd_node *node, crowd_stored *key) {
  key->queue_count = key->queue_ends_us > node->now_us ? key->queue_count : 0;
}

static size_t queue_find(const crowd_stored *key, const char *entry) {
  for (size_t i = 0; i < key->queue_count; i++) {
    if (memcmp(key->queue[i], entry, CROWD_ENTRY) == 0) {
      return i;
    }
  }
  return CROWD_NOBODY;
}

static void queue_remove(crowd_stored *key, size_t at) {
  if (at < key->queue_count) {
    key->queue_count--;
    memmove(key->queue[at], key->queue[at + 1], (key->queue_count - at) * CROWD_ENTRY);
  }
}

static void queue_append(crowd_stored *key, const char *entry) {
  if (key->queue_count == key->queue_capacity) {
    key->queue_capacity = key->queue_capacity == 0 ? 16 : 2 * key->queue_capacity;
    key->queue = realloc(key->queue, key->queue_capacity * CROWD_ENTRY);
    if (key->queue == NULL) {
      bench_die("crowd: no memory");
    }
  }
  memcpy(key->queue[key->queue_count++], entry, CROWD_ENTRY);
}

/* PUBLISH to who stands first: whether somebody listens there. */
static bool queue_call(crowd_node *node, crowd_stored *key) {
  const char *first = key->queue[0];
  char text[CROWD_ENTRY - CROWD_ENTRY_CHANNEL + CROWD_NAME_MAX];
  size_t digits = CROWD_ENTRY - CROWD_ENTRY_CHANNEL;
  memcpy(text, first + CROWD_ENTRY_CHANNEL, digits);
  memcpy(text + digits, key->name, key->length);
  node->inside++;
  node->calls++;
  if (queue_publish(node, first, text, digits + key->length) == 0) {
    return false;
  }
  key->called = queue_subscriber(node, first)->client;
  key->called_us = node->now_us;
  return true;
}

/* RL_COMMAND_NOTIFY: whether there was somebody to be called. */
static bool queue_call_first(crowd_node *node, crowd_stored *key) {
  for (unsigned i = 0; i < CROWD_TRIES && key->queue_count > 0; i++) {
    if (queue_call(node, key)) {
      return true;
    }
    queue_remove(key, 0);
  }
  return false;
}

/* ------------------------------------------------------------------------------------- scripts */

static void queue_live(const crowd_node *node, crowd_stored *key) {
  key->queue_ends_us = node->now_us + CROWD_QUEUE_LIVES_US;
}

/* RL_COMMAND_SIGN */
static void queue_sign(crowd_node *node, crowd_stored *key) {
  node->inside++;
  key->sign_ends_us = node->now_us + CROWD_QUEUE_LIVES_US;
}

/* RL_COMMAND_KEEP: what is left of a queue in which |before| stood. */
static void queue_keep(crowd_node *node, crowd_stored *key, size_t before) {
  if (key->queue_count == before) {
    return;
  }
  node->inside++; /* SET; or DEL */
  if (key->queue_count > 0) {
    queue_live(node, key);
  } else {
    key->sign_ends_us = 0;
  }
}

/* RELEASE_CALL */
const char *queue_release(crowd_node *node, crowd_stored *key, const resp_request *request) {
  bool there = key->ends_us > node->now_us;
  bool ours = there && resp_equals(request, 4, key->token, key->token_length);
  bool stood = request->count == 6, sign = key->sign_ends_us > node->now_us, called = false;
  if (request->count < 5 || (stood && request->lengths[5] != CROWD_ENTRY)) {
    return NULL;
  }
  queue_expire(node, key);
  size_t before = key->queue_count;
  node->inside++; /* GET; or MGET, of the queue, too */
  if (ours) {
    node->inside++; /* DEL, of the sign, too, for who has not stood there */
    key->ends_us = 0;
  }
  if (ours && !stood) {
    key->sign_ends_us = 0;
  }
  if (!stood && (ours ? !sign : there)) {
    return ours ? ":1\r\n" : ":0\r\n";
  }
  node->inside += !stood; /* MGET */
  if (stood) {
    queue_remove(key, queue_find(key, request->words[5]));
  }
  if (!there || ours) {
    called = queue_call_first(node, key);
  }
  queue_keep(node, key, before);
  if (key->queue_count > 0 &&
      (stood ? request->words[5][CROWD_ENTRY_COUNTS] == '0' : ours && sign)) {
    queue_sign(node, key);
  }
  return !ours ? ":0\r\n" : called ? ":2\r\n" : ":1\r\n";
}

/* The key is free: whether |entry| is first, or nobody is. Who is first is called, or taken away. */
static bool queue_is_free_for(crowd_node *node, crowd_stored *key, const char *entry, bool evicts) {
  for (unsigned i = 0; i < CROWD_TRIES; i++) {
    if (key->queue_count == 0 || memcmp(key->queue[0], entry, CROWD_ENTRY) == 0) {
      return true;
    }
    if ((!evicts || i > 0) && queue_call(node, key)) {
      return false;
    }
    queue_remove(key, 0);
  }
  return false;
}

static const char *queue_place(crowd_node *node, uint64_t units, size_t position) {
  (void)snprintf(node->reply, sizeof node->reply, ":%llu\r\n",
                 (unsigned long long)(units * RL_COMMAND_ENQUEUE_UNIT + position));
  return node->reply;
}

const char *queue_stand(crowd_node *node, crowd_stored *key, const resp_request *request) {
  const char *entry = request->words[4];
  if (request->count != 6 || request->lengths[4] != CROWD_ENTRY) {
    return NULL;
  }
  uint64_t mode = resp_number(request, 5), units = 0;
  bool joins = mode == RL_COMMAND_ENQUEUE_APPEND;
  queue_expire(node, key);
  size_t before = key->queue_count;
  if (joins) {
    node->inside++; /* APPEND */
    queue_append(key, entry);
    if (before > 0 && before < CROWD_QUEUE_MAX) {
      return queue_place(node, 1, before + 1);
    }
  }
  node->inside += 2; /* GET, PTTL */
  bool free = key->ends_us <= node->now_us;
  bool evicts = mode >= RL_COMMAND_ENQUEUE_EVICT && queue_find(key, entry) + 1 == mode;
  if (free && queue_is_free_for(node, key, entry, evicts)) {
    if (joins || key->queue_count != before) {
      queue_keep(node, key, CROWD_NOBODY);
      if (key->queue_count > 0) {
        queue_sign(node, key);
      }
    }
    return ":0\r\n";
  }
  if (!free) {
    units = (key->ends_us - node->now_us) / REDLOCK_MILLISECONDS + 2;
  }
  size_t at = mode == RL_COMMAND_ENQUEUE_NEW ? CROWD_NOBODY : queue_find(key, entry);
  if (at == CROWD_NOBODY) {
    at = key->queue_count;
    queue_append(key, entry);
  }
  if (at >= CROWD_QUEUE_MAX) {
    queue_remove(key, at);
    at = CROWD_NOBODY; /* The position becomes 0. */
    units = units > 0 ? units : 1;
  }
  queue_keep(node, key, CROWD_NOBODY); /* SET; or PEXPIRE */
  queue_sign(node, key);
  return queue_place(node, units, at + 1);
}

const char *queue_leave(crowd_node *node, crowd_stored *key, const resp_request *request) {
  if (request->count != 5 || request->lengths[4] != CROWD_ENTRY) {
    return NULL;
  }
  queue_expire(node, key);
  size_t before = key->queue_count, at = queue_find(key, request->words[4]);
  node->inside++; /* MGET */
  queue_remove(key, at);
  if (key->ends_us <= node->now_us) {
    (void)queue_call_first(node, key);
  }
  queue_keep(node, key, before);
  return at == CROWD_NOBODY ? ":0\r\n" : ":1\r\n";
}
