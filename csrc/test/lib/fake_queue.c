/*
 * The queues of waiters of a simulated Redis, and its notifications.
 *
 * SPDX-License-Identifier: MIT
 */
#include "fake_queue.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "wait_queue.h"
#include "wire/rl_command.h"

/* The queue of a key, while wait_queue.h works on it. */
typedef struct fake_target {
  wait_queue model;
  fake_store *store;
  fake_queue *queue; /* NULL: there is no room for another queue */
  const char *key;
  size_t length;
} fake_target;

/* ---------------------------------------------------------------------------------- the queues */

static fake_queue *fake_queue_find(fake_store *store, const char *key, size_t length) {
  for (unsigned i = 0; i < FAKE_KEYS_MAX; i++) {
    fake_queue *queue = &store->queues[i];
    if (queue->length == length && (length == 0 || memcmp(queue->name, key, length) == 0)) {
      return queue;
    }
  }
  return NULL;
}

static int fake_queue_notify(void *context, const char *entry);

/* Fills |target|. fake_queue_close() stores what has become of the queue. */
static wait_queue *fake_queue_open(fake_target *target, fake_store *store, const char *key,
                                   size_t length) {
  fake_queue *queue = fake_queue_find(store, key, length);
  if (queue == NULL && (queue = fake_queue_find(store, NULL, 0)) != NULL) {
    memcpy(queue->name, key, length);
    queue->length = length;
    queue->count = 0;
  }
  unsigned max = store->queue_max != 0 ? store->queue_max : FAKE_ENTRIES_MAX;
  *target = (fake_target){.store = store, .queue = queue, .key = key, .length = length};
  target->model.notify = fake_queue_notify;
  target->model.context = target;
  if (queue != NULL) {
    target->model.entries = queue->entries;
    target->model.count = queue->count;
    target->model.max = max;
  }
  return &target->model;
}

static void fake_queue_close(const fake_target *target) {
  if (target->queue != NULL) {
    target->queue->count = target->model.count;
    target->queue->length = target->model.count == 0 ? 0 : target->length;
  }
}

const char *fake_queue_at(fake_store *store, const char *key, unsigned index) {
  fake_queue *queue = fake_queue_find(store, key, strlen(key));
  if (queue == NULL || index >= queue->count) {
    return NULL;
  }
  memcpy(store->entry, queue->entries[index], FAKE_ENTRY_MAX);
  return store->entry;
}

void fake_queue_put(fake_store *store, const char *key, const char *entry) {
  fake_target target;
  (void)wait_queue_append(fake_queue_open(&target, store, key, strlen(key)), entry);
  fake_queue_close(&target);
}

void fake_queue_clear(fake_store *store, const char *key) {
  fake_queue *queue = fake_queue_find(store, key, strlen(key));
  if (queue != NULL) {
    queue->length = 0;
  }
}

/* --------------------------------------------------------------------------------- the messages */

const char *fake_queue_channel(const fake_command *command) {
  const char *channel = strstr(command->line, RL_COMMAND_CHANNEL);
  return channel != NULL ? channel + strlen(RL_COMMAND_CHANNEL) : "";
}

void fake_queue_subscribe(fake_store *store, unsigned subscriber, const char *channel) {
  (void)snprintf(store->subscribers[subscriber], sizeof store->subscribers[subscriber], "%s",
                 channel);
}

void fake_queue_unsubscribe(fake_store *store, unsigned subscriber) {
  char ignored[FAKE_REPLY_MAX];
  store->subscribers[subscriber][0] = '\0';
  while (fake_queue_take(store, subscriber, ignored) > 0) {
  }
}

size_t fake_queue_take(fake_store *store, unsigned subscriber, char bytes[FAKE_REPLY_MAX]) {
  for (unsigned i = 0; i < store->message_count; i++) {
    const fake_message *message = &store->messages[i];
    if (message->subscriber == subscriber) {
      size_t length = message->length;
      memcpy(bytes, message->bytes, length);
      store->message_count--;
      memmove(&store->messages[i], &store->messages[i + 1],
              (store->message_count - i) * sizeof store->messages[0]);
      return length;
    }
  }
  return 0;
}

/* Returns the number of receivers. A message beyond FAKE_MESSAGES_MAX is lost. */
static unsigned fake_queue_publish(fake_store *store, const char *channel, const char *id,
                                   int id_length, const char *key, size_t length) {
  unsigned receivers = 0;
  for (unsigned i = 0; i < FAKE_SUBSCRIBERS_MAX; i++) {
    if (store->subscribers[i][0] == '\0' ||
        strncmp(store->subscribers[i], channel, FAKE_CHANNEL_MAX) != 0) {
      continue;
    }
    receivers++;
    if (store->message_count < FAKE_MESSAGES_MAX) {
      fake_message *message = &store->messages[store->message_count++];
      int used = snprintf(message->bytes, sizeof message->bytes,
                          "*3\r\n$7\r\nmessage\r\n$29\r\nredlock:call:%.16s\r\n$%zu\r\n%.*s",
                          channel, (size_t)id_length + length, id_length, id);
      memcpy(message->bytes + used, key, length);
      memcpy(message->bytes + used + length, "\r\n", 2);
      message->length = (size_t)used + length + 2;
      message->subscriber = i;
    }
  }
  return receivers;
}

static int fake_queue_notify(void *context, const char *entry) {
  const fake_target *target = context;
  return (int)fake_queue_publish(target->store, entry, entry + FAKE_CHANNEL_MAX,
                                 FAKE_ENTRY_MAX - FAKE_CHANNEL_MAX, target->key, target->length);
}

/* Dequeues |entry| unless it is NULL, and notifies the first entry of the queue of a |free| key. */
static wait_queue_notified fake_queue_dequeue(fake_store *store, const char *key, size_t length,
                                              const char *entry, bool free, bool *removed) {
  fake_target target;
  wait_queue *queue = fake_queue_open(&target, store, key, length);
  *removed = entry != NULL && wait_queue_remove(queue, entry);
  wait_queue_notified notified = free ? wait_queue_notify_first(queue) : WAIT_QUEUE_EMPTY;
  fake_queue_close(&target);
  return notified;
}

unsigned fake_queue_released(fake_store *store, const fake_command *command, const char *key,
                             size_t length, bool free) {
  bool removed;
  if (!command->notifies || command->verb != FAKE_RELEASE) {
    return WAIT_QUEUE_EMPTY;
  }
  if (store->mute) {
    return free ? WAIT_QUEUE_FORBIDDEN : WAIT_QUEUE_EMPTY;
  }
  return fake_queue_dequeue(store, key, length, command->entry[0] != '\0' ? command->entry : NULL,
                            free, &removed);
}

/* --------------------------------------------------------------------------------- the commands */

/* Returns the remaining life as wait_queue_enqueue() wants it. */
static unsigned long long fake_queue_left(redlock_time ends_us, redlock_time now_us) {
  return ends_us == 0               ? 0
         : ends_us == REDLOCK_NEVER ? 1
                                    : (ends_us - now_us) / REDLOCK_MILLISECONDS + 2;
}

static unsigned long long fake_queue_enqueue(fake_store *store, const fake_command *command,
                                             redlock_time ends_us, redlock_time now_us) {
  unsigned long long left = fake_queue_left(ends_us, now_us);
  fake_target target;
  wait_queue *queue = fake_queue_open(&target, store, command->key, command->key_length);
  long long answer = wait_queue_enqueue(queue, command->entry, command->mode, left);
  fake_queue_close(&target);
  return (unsigned long long)answer;
}

/* ENQUEUE_ALL. Keys are never reserved: the tests evict no waiter with a reservation. */
static void fake_queue_enqueue_all(fake_store *store, const fake_command *command,
                                   const redlock_time *ends_us, redlock_time now_us,
                                   char reply[FAKE_REPLY_MAX]) {
  fake_target targets[FAKE_NAMES_MAX];
  wait_queue_key keys[FAKE_NAMES_MAX];
  char places[64], text[128];
  const char *before = strchr(command->before, ',');
  for (unsigned i = 0; i < command->count; i++) {
    const fake_name *name = &command->names[i];
    keys[i] =
        (wait_queue_key){.queue = fake_queue_open(&targets[i], store, name->bytes, name->length),
                         .left = fake_queue_left(ends_us[i], now_us),
                         .before = before != NULL ? (unsigned)atoi(before + 1) : 0};
    before = before != NULL ? strchr(before + 1, ',') : NULL;
  }
  long long answer = wait_queue_enqueue_all(keys, command->count, command->entry, command->notified,
                                            places, sizeof places);
  for (unsigned i = 0; i < command->count; i++) {
    fake_queue_close(&targets[i]);
  }
  int length = snprintf(text, sizeof text, "%lld:%s", answer, places);
  if (answer == 0 || places[0] == '\0') {
    (void)snprintf(reply, FAKE_REPLY_MAX, ":%lld\r\n", answer);
  } else {
    (void)snprintf(reply, FAKE_REPLY_MAX, "$%d\r\n%s\r\n", length, text);
  }
}

bool fake_queue_is(const fake_command *command) {
  return command->verb >= FAKE_ENQUEUE || command->verb == FAKE_SUBSCRIBE ||
         command->verb == FAKE_PING;
}

void fake_queue_execute(fake_store *store, const fake_command *command, const redlock_time *ends_us,
                        redlock_time now_us, char reply[FAKE_REPLY_MAX]) {
  unsigned long long answer = 0;
  bool removed;
  bool script = command->verb == FAKE_ENQUEUE || command->verb == FAKE_DEQUEUE;
  char channel[FAKE_CHANNEL_MAX + 1];
  (void)snprintf(channel, sizeof channel, "%s", fake_queue_channel(command));
  if (script && store->forgot_queue_scripts && !command->by_text) {
    (void)snprintf(reply, FAKE_REPLY_MAX, "-NOSCRIPT No matching script. Please use EVAL.\r\n");
    return;
  }
  if (store->mute && command->verb != FAKE_PING) {
    (void)snprintf(reply, FAKE_REPLY_MAX, "-NOPERM this user has no permissions\r\n");
    return;
  }
  switch (command->verb) {
  case FAKE_SUBSCRIBE:
    (void)snprintf(reply, FAKE_REPLY_MAX,
                   "*3\r\n$9\r\nsubscribe\r\n$29\r\n" RL_COMMAND_CHANNEL "%s\r\n:1\r\n", channel);
    return;
  case FAKE_PING:
    (void)snprintf(reply, FAKE_REPLY_MAX, "*2\r\n$4\r\npong\r\n$0\r\n\r\n");
    return;
  case FAKE_ENQUEUE:
    if (command->count > 1) {
      fake_queue_enqueue_all(store, command, ends_us, now_us, reply);
      return;
    }
    answer = fake_queue_enqueue(store, command, ends_us[0], now_us);
    break;
  case FAKE_DEQUEUE:
    (void)fake_queue_dequeue(store, command->key, command->key_length, command->entry,
                             ends_us[0] == 0, &removed);
    answer = removed;
    break;
  default:
    answer = fake_queue_publish(store, channel, "", 0, "", 0);
    break;
  }
  (void)snprintf(reply, FAKE_REPLY_MAX, ":%llu\r\n", answer);
}
