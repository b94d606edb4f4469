/*
 * The queues on the nodes of the load simulation (csrc/core/wait/rl_notify.c).
 *
 * SPDX-License-Identifier: MIT
 *
 * Each script follows its text in csrc/core/wire/rl_script.c, and counts the commands that it has
 * the server execute.
 */
#include "load.h"
#include "wait_queue.h"
#include "wire/rl_command.h"

#define LOAD_ENTRY_COUNTS 19 /* the digit that changes with each ticket of a client */
#define LOAD_QUEUE_LIVES_US (60 * REDLOCK_SECONDS)

/* ----------------------------------------------------------------------------------- channels */

/* Returns the slot of the channel in the node's table, or a free one; half of them are free. */
static load_subscriber *queue_subscriber(const load_node *node, const char *channel) {
  size_t at = 0;
  for (unsigned i = 0; i < WAIT_QUEUE_CHANNEL; i++) {
    at = at * 16 + (size_t)(channel[i] <= '9' ? channel[i] - '0' : channel[i] - 'a' + 10);
  }
  for (size_t tries = 0; tries <= node->subscriber_mask; tries++, at++) {
    load_subscriber *subscriber = &node->subscribers[at & node->subscriber_mask];
    if (subscriber->channel[0] == '\0' ||
        memcmp(subscriber->channel, channel, WAIT_QUEUE_CHANNEL) == 0) {
      return subscriber;
    }
  }
  bench_die("load: a node has no slot for a channel");
}

const char *queue_subscribe(load_node *node, const resp_request *request) {
  size_t prefix = strlen(RL_COMMAND_CHANNEL);
  if (request->count != 2 || request->lengths[1] != prefix + WAIT_QUEUE_CHANNEL) {
    return NULL;
  }
  load_subscriber *subscriber = queue_subscriber(node, request->words[1] + prefix);
  memcpy(subscriber->channel, request->words[1] + prefix, WAIT_QUEUE_CHANNEL);
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
               strlen(RL_COMMAND_CHANNEL) + WAIT_QUEUE_CHANNEL, WAIT_QUEUE_CHANNEL, channel, length,
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
  if (request->count != 3 || request->lengths[1] != prefix + WAIT_QUEUE_CHANNEL) {
    return NULL;
  }
  return queue_publish(node, request->words[1] + prefix, "", 0) > 0 ? ":1\r\n" : ":0\r\n";
}

/* ------------------------------------------------------------------------------------ the list */

static void queue_expire(const load_node *node, load_stored *key) {
  key->queue_count = key->queue_ends_us > node->now_us ? key->queue_count : 0;
}

/* The queue of a key on a node, while wait_queue.h works on it. */
typedef struct load_target {
  wait_queue model;
  load_node *node;
  load_stored *key;
} load_target;

/* PUBLISH of a notification. */
static int queue_notify(void *context, const char *entry) {
  const load_target *target = context;
  load_node *node = target->node;
  load_stored *key = target->key;
  char text[LOAD_ENTRY - WAIT_QUEUE_CHANNEL + LOAD_NAME_MAX];
  size_t digits = LOAD_ENTRY - WAIT_QUEUE_CHANNEL;
  memcpy(text, entry + WAIT_QUEUE_CHANNEL, digits);
  memcpy(text + digits, key->name, key->length);
  node->inside++;
  node->notifications++;
  if (queue_publish(node, entry, text, digits + key->length) == 0) {
    return 0;
  }
  key->notified = queue_subscriber(node, entry)->client;
  key->notified_us = node->now_us;
  return 1;
}

/*
 * Fills |target|, with room for one more entry. queue_close() stores what has become of the queue.
 */
static wait_queue *queue_open(load_target *target, load_node *node, load_stored *key) {
  queue_expire(node, key);
  if (key->queue_count == key->queue_capacity) {
    key->queue_capacity = key->queue_capacity == 0 ? 16 : 2 * key->queue_capacity;
    key->queue = realloc(key->queue, key->queue_capacity * LOAD_ENTRY);
    if (key->queue == NULL) {
      bench_die("load: no memory");
    }
  }
  wait_queue model = {
      key->queue, (unsigned)key->queue_count, RL_COMMAND_QUEUE_MAX, false, queue_notify, target,
      NULL};
  *target = (load_target){model, node, key};
  return &target->model;
}

static void queue_close(const load_target *target) {
  target->key->queue_count = target->model.count;
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

/* RL_TEXT_STORE. Stores the rest of a queue that had |before| entries. */
static void queue_store(load_node *node, load_stored *key, size_t before) {
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
  load_target target;
  wait_queue *queue = queue_open(&target, node, key);
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
    (void)wait_queue_remove(queue, request->words[5]);
  }
  if (!there || ours) {
    notified = wait_queue_notify_first(queue) == WAIT_QUEUE_NOTIFIED;
  }
  queue_close(&target);
  queue_store(node, key, before);
  if (key->queue_count > 0 &&
      (was_queued ? request->words[5][LOAD_ENTRY_COUNTS] == '0' : ours && flag)) {
    queue_flag(node, key);
  }
  return !ours ? ":0\r\n" : notified ? ":2\r\n" : ":1\r\n";
}

const char *queue_enqueue(load_node *node, load_stored *key, const resp_request *request) {
  if (request->count != 6 || request->lengths[4] != LOAD_ENTRY) {
    return NULL;
  }
  load_target target;
  wait_queue *queue = queue_open(&target, node, key);
  size_t before = key->queue_count;
  uint64_t mode = resp_number(request, 5), left = 0;
  bool appends = mode == RL_COMMAND_ENQUEUE_APPEND;
  if (key->ends_us > node->now_us) {
    left = (key->ends_us - node->now_us) / REDLOCK_MILLISECONDS + 2;
  }
  long long answer = wait_queue_enqueue(queue, request->words[4], (unsigned)mode, left);
  queue_close(&target);
  node->inside += appends; /* APPEND */
  (void)snprintf(node->reply, sizeof node->reply, ":%lld\r\n", answer);
  if (appends && before > 0 && before < RL_COMMAND_QUEUE_MAX) {
    return node->reply;
  }
  node->inside += 2; /* GET, PTTL */
  if (answer != 0 || appends || key->queue_count != before) {
    queue_store(node, key, SIZE_MAX); /* SET; or PEXPIRE */
    if (answer != 0 || key->queue_count > 0) {
      queue_flag(node, key);
    }
  }
  return node->reply;
}

const char *queue_dequeue(load_node *node, load_stored *key, const resp_request *request) {
  if (request->count != 5 || request->lengths[4] != LOAD_ENTRY) {
    return NULL;
  }
  load_target target;
  wait_queue *queue = queue_open(&target, node, key);
  size_t before = key->queue_count;
  bool removed = wait_queue_remove(queue, request->words[4]);
  node->inside++; /* MGET */
  if (key->ends_us <= node->now_us) {
    (void)wait_queue_notify_first(queue);
  }
  queue_close(&target);
  queue_store(node, key, before);
  return removed ? ":1\r\n" : ":0\r\n";
}
