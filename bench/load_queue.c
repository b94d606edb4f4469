/*
 * The queues on the nodes of the load simulation (csrc/core/wait/rl_notify.c).
 *
 * SPDX-License-Identifier: MIT
 *
 * Each script follows its text in csrc/core/wire/rl_command.c, and counts the commands that it has
 * the server execute.
 */
#include "load.h"
#include "wire/rl_command.h"

#define LOAD_ENTRY_CHANNEL 16 /* digits of the channel, before those of the ticket */
#define LOAD_ENTRY_COUNTS 19  /* the digit that changes with each ticket of a client */
#define LOAD_TRIES 1024       /* how many disconnected clients a script evicts */
#define LOAD_QUEUE_MAX 1024
#define LOAD_QUEUE_LIVES_US (60 * REDLOCK_SECONDS)
#define LOAD_NONE ((size_t)-1)

/* ----------------------------------------------------------------------------------- channels */

/* Returns the slot of the channel in the node's table, or a free one; half of them are free. */
static load_subscriber *queue_subscriber(const load_node *node, const char *channel) {
  size_t at = 0;
  for (unsigned i = 0; i < LOAD_ENTRY_CHANNEL; i++) {
    at = at * 16 + (size_t)(channel[i] <= '9' ? channel[i] - '0' : channel[i] - 'a' + 10);
  }
  for (size_t tries = 0; tries <= node->subscriber_mask; tries++, at++) {
    load_subscriber *subscriber = &node->subscribers[at & node->subscriber_mask];
    if (subscriber->channel[0] == '\0' ||
        memcmp(subscriber->channel, channel, LOAD_ENTRY_CHANNEL) == 0) {
      return subscriber;
    }
  }
  bench_die("load: a node has no slot for a channel");
}

const char *queue_subscribe(load_node *node, const resp_request *request) {
  size_t prefix = strlen(RL_COMMAND_CHANNEL);
  if (request->count != 2 || request->lengths[1] != prefix + LOAD_ENTRY_CHANNEL) {
    return NULL;
  }
  load_subscriber *subscriber = queue_subscriber(node, request->words[1] + prefix);
  memcpy(subscriber->channel, request->words[1] + prefix, LOAD_ENTRY_CHANNEL);
  subscriber->client = node->heard->client;
  subscriber->connection = node->heard->connection;
  subscriber->subscribed = true;
  node->commands--; /* It is part of the handshake. */
  (void)snprintf(node->reply, sizeof node->reply, "*3\r\n$9\r\nsubscribe\r\n$%zu\r\n%.*s\r\n:1\r\n",
                 request->lengths[1], (int)request->lengths[1], request->words[1]);
  return node->reply;
}

void queue_hang_up(load_node *node, const load_event *event) {
  for (size_t i = 0; i <= node->subscriber_mask; i++) {
    load_subscriber *subscriber = &node->subscribers[i];
    if (subscriber->client == event->client && subscriber->connection == event->connection) {
      subscriber->subscribed = false;
    }
  }
}

/* Returns the number of receivers: 1 or 0. */
static unsigned queue_publish(load_node *node, const char *channel, const char *text,
                              size_t length) {
  const load_subscriber *subscriber = queue_subscriber(node, channel);
  char message[192];
  if (subscriber->channel[0] == '\0' || !subscriber->subscribed) {
    return 0;
  }
  load_client *client = &node->load->clients[subscriber->client];
  unsigned connection = LOAD_NODES + node->index;
  int size =
      snprintf(message, sizeof message,
               "*3\r\n$7\r\nmessage\r\n$%zu\r\n" RL_COMMAND_CHANNEL "%.*s\r\n$%zu\r\n%.*s\r\n",
               strlen(RL_COMMAND_CHANNEL) + LOAD_ENTRY_CHANNEL, LOAD_ENTRY_CHANNEL, channel, length,
               (int)length, text);
  if (size < 0 || (size_t)size >= sizeof message) {
    bench_die("load: a message is too long");
  }
  if (client->connections[connection].number == subscriber->connection) {
    load_send(node->load, LOAD_REPLIES, client, connection, message, (size_t)size);
  }
  return 1; /* Also if the client has gone, until the node learns of it. */
}

const char *queue_probe(load_node *node, const resp_request *request) {
  size_t prefix = strlen(RL_COMMAND_CHANNEL);
  if (request->count != 3 || request->lengths[1] != prefix + LOAD_ENTRY_CHANNEL) {
    return NULL;
  }
  return queue_publish(node, request->words[1] + prefix, "", 0) > 0 ? ":1\r\n" : ":0\r\n";
}

/* ------------------------------------------------------------------------------------ the list */

static void queue_expire(const load_node *node, load_stored *key) {
  key->queue_count = key->queue_ends_us > node->now_us ? key->queue_count : 0;
}

static size_t queue_find(const load_stored *key, const char *entry) {
  for (size_t i = 0; i < key->queue_count; i++) {
    if (memcmp(key->queue[i], entry, LOAD_ENTRY) == 0) {
      return i;
    }
  }
  return LOAD_NONE;
}

static void queue_remove(load_stored *key, size_t at) {
  if (at < key->queue_count) {
    key->queue_count--;
    memmove(key->queue[at], key->queue[at + 1], (key->queue_count - at) * LOAD_ENTRY);
  }
}

static void queue_append(load_stored *key, const char *entry) {
  if (key->queue_count == key->queue_capacity) {
    key->queue_capacity = key->queue_capacity == 0 ? 16 : 2 * key->queue_capacity;
    key->queue = realloc(key->queue, key->queue_capacity * LOAD_ENTRY);
    if (key->queue == NULL) {
      bench_die("load: no memory");
    }
  }
  memcpy(key->queue[key->queue_count++], entry, LOAD_ENTRY);
}

/* PUBLISH to the head. Returns true if it has a subscriber. */
static bool queue_notify(load_node *node, load_stored *key) {
  const char *first = key->queue[0];
  char text[LOAD_ENTRY - LOAD_ENTRY_CHANNEL + LOAD_NAME_MAX];
  size_t digits = LOAD_ENTRY - LOAD_ENTRY_CHANNEL;
  memcpy(text, first + LOAD_ENTRY_CHANNEL, digits);
  memcpy(text + digits, key->name, key->length);
  node->inside++;
  node->notifications++;
  if (queue_publish(node, first, text, digits + key->length) == 0) {
    return false;
  }
  key->notified = queue_subscriber(node, first)->client;
  key->notified_us = node->now_us;
  return true;
}

/* RL_COMMAND_NOTIFY. Returns true if a client was notified. */
static bool queue_notify_head(load_node *node, load_stored *key) {
  for (unsigned i = 0; i < LOAD_TRIES && key->queue_count > 0; i++) {
    if (queue_notify(node, key)) {
      return true;
    }
    queue_remove(key, 0);
  }
  return false;
}

/* ------------------------------------------------------------------------------------- scripts */

static void queue_live(const load_node *node, load_stored *key) {
  key->queue_ends_us = node->now_us + LOAD_QUEUE_LIVES_US;
}

/* Sets the waiters flag. */
static void queue_flag(load_node *node, load_stored *key) {
  node->inside++;
  key->flag_ends_us = node->now_us + LOAD_QUEUE_LIVES_US;
}

/* RL_COMMAND_KEEP. Stores the rest of a queue that had |before| entries. */
static void queue_keep(load_node *node, load_stored *key, size_t before) {
  if (key->queue_count == before) {
    return;
  }
  node->inside++; /* SET; or DEL */
  if (key->queue_count > 0) {
    queue_live(node, key);
  } else {
    key->flag_ends_us = 0;
  }
}

/* RL_SCRIPT_RELEASE_NOTIFY */
const char *queue_release(load_node *node, load_stored *key, const resp_request *request) {
  bool there = key->ends_us > node->now_us;
  bool ours = there && resp_equals(request, 4, key->token, key->token_length);
  bool was_queued = request->count == 6, flag = key->flag_ends_us > node->now_us, notified = false;
  if (request->count < 5 || (was_queued && request->lengths[5] != LOAD_ENTRY)) {
    return NULL;
  }
  queue_expire(node, key);
  size_t before = key->queue_count;
  node->inside++; /* GET; or MGET, also of the queue */
  if (ours) {
    node->inside++; /* DEL, also of the flag if the client was not queued */
    key->ends_us = 0;
  }
  if (ours && !was_queued) {
    key->flag_ends_us = 0;
  }
  if (!was_queued && (ours ? !flag : there)) {
    return ours ? ":1\r\n" : ":0\r\n";
  }
  node->inside += !was_queued; /* MGET */
  if (was_queued) {
    queue_remove(key, queue_find(key, request->words[5]));
  }
  if (!there || ours) {
    notified = queue_notify_head(node, key);
  }
  queue_keep(node, key, before);
  if (key->queue_count > 0 &&
      (was_queued ? request->words[5][LOAD_ENTRY_COUNTS] == '0' : ours && flag)) {
    queue_flag(node, key);
  }
  return !ours ? ":0\r\n" : notified ? ":2\r\n" : ":1\r\n";
}

/*
 * The key is free. Returns true if |entry| is the head, or if the queue is empty. Otherwise
 * notifies or evicts the head.
 */
static bool queue_is_free_for(load_node *node, load_stored *key, const char *entry, bool evicts) {
  for (unsigned i = 0; i < LOAD_TRIES; i++) {
    if (key->queue_count == 0 || memcmp(key->queue[0], entry, LOAD_ENTRY) == 0) {
      return true;
    }
    if ((!evicts || i > 0) && queue_notify(node, key)) {
      return false;
    }
    queue_remove(key, 0);
  }
  return false;
}

static const char *queue_position(load_node *node, uint64_t units, size_t position) {
  (void)snprintf(node->reply, sizeof node->reply, ":%llu\r\n",
                 (unsigned long long)(units * RL_COMMAND_ENQUEUE_UNIT + position));
  return node->reply;
}

const char *queue_enqueue(load_node *node, load_stored *key, const resp_request *request) {
  const char *entry = request->words[4];
  if (request->count != 6 || request->lengths[4] != LOAD_ENTRY) {
    return NULL;
  }
  uint64_t mode = resp_number(request, 5), units = 0;
  bool appends = mode == RL_COMMAND_ENQUEUE_APPEND;
  queue_expire(node, key);
  size_t before = key->queue_count;
  if (appends) {
    node->inside++; /* APPEND */
    queue_append(key, entry);
    if (before > 0 && before < LOAD_QUEUE_MAX) {
      return queue_position(node, 1, before + 1);
    }
  }
  node->inside += 2; /* GET, PTTL */
  bool free = key->ends_us <= node->now_us;
  bool evicts = mode >= RL_COMMAND_ENQUEUE_EVICT && queue_find(key, entry) + 1 == mode;
  if (free && queue_is_free_for(node, key, entry, evicts)) {
    if (appends || key->queue_count != before) {
      queue_keep(node, key, LOAD_NONE);
      if (key->queue_count > 0) {
        queue_flag(node, key);
      }
    }
    return ":0\r\n";
  }
  if (!free) {
    units = (key->ends_us - node->now_us) / REDLOCK_MILLISECONDS + 2;
  }
  size_t at = mode == RL_COMMAND_ENQUEUE_NEW ? LOAD_NONE : queue_find(key, entry);
  if (at == LOAD_NONE) {
    at = key->queue_count;
    queue_append(key, entry);
  }
  if (at >= LOAD_QUEUE_MAX) {
    queue_remove(key, at);
    at = LOAD_NONE; /* The position becomes 0. */
    units = units > 0 ? units : 1;
  }
  queue_keep(node, key, LOAD_NONE); /* SET; or PEXPIRE */
  queue_flag(node, key);
  return queue_position(node, units, at + 1);
}

const char *queue_dequeue(load_node *node, load_stored *key, const resp_request *request) {
  if (request->count != 5 || request->lengths[4] != LOAD_ENTRY) {
    return NULL;
  }
  queue_expire(node, key);
  size_t before = key->queue_count, at = queue_find(key, request->words[4]);
  node->inside++; /* MGET */
  queue_remove(key, at);
  if (key->ends_us <= node->now_us) {
    (void)queue_notify_head(node, key);
  }
  queue_keep(node, key, before);
  return at == LOAD_NONE ? ":0\r\n" : ":1\r\n";
}
