/*
 * The queues of a simulated Redis, in which clients wait for a key, and the messages that call them.
 *
 * SPDX-License-Identifier: MIT
 */
#include "fake_queue.h"

#include <stdio.h>
#include <string.h>

#include "wire/rl_command.h"

#define FAKE_CALLS_MAX 1024 /* who is called one after the other, until somebody hears it */

/* ---------------------------------------------------------------------------------- the queues */

static fake_queue *fake_queue_find(fake_store *store, const char *key, size_t length) {
  for (unsigned i = 0; i < FAKE_KEYS_MAX; i++) {
    fake_queue *queue = &store->queues[i];
    if (queue->length == length && length > 0 && memcmp(queue->name, key, length) == 0) {
      return queue;
    }
  }
  return NULL;
}

static void fake_queue_remove(fake_queue *queue, unsigned index) {
  queue->count--;
  memmove(queue->entries[index], queue->entries[index + 1],
          (queue->count - index) * sizeof queue->entries[0]);
  queue->length = queue->count == 0 ? 0 : queue->length;
}

static int fake_queue_position(const fake_queue *queue, const char *entry) {
  for (unsigned i = 0; queue != NULL && i < queue->count; i++) {
    if (strcmp(queue->entries[i], entry) == 0) {
      return (int)i;
    }
  }
  return -1;
}

static unsigned fake_queue_leave(fake_store *store, const char *key, size_t length,
                                 const char *entry) {
  fake_queue *queue = fake_queue_find(store, key, length);
  unsigned removed = 0;
  for (int at; (at = fake_queue_position(queue, entry)) >= 0; removed++) {
    fake_queue_remove(queue, (unsigned)at);
  }
  return removed;
}

/* Returns how many stand there now, or 0 when there is no room. */
static unsigned fake_queue_push(fake_store *store, const char *key, size_t length,
                                const char *entry) {
  fake_queue *queue = fake_queue_find(store, key, length);
  unsigned most = store->queue_max != 0 ? store->queue_max : FAKE_ENTRIES_MAX;
  for (unsigned i = 0; i < FAKE_KEYS_MAX && queue == NULL; i++) {
    if (store->queues[i].length == 0) {
      queue = &store->queues[i];
      memcpy(queue->name, key, length);
      queue->length = length;
      queue->count = 0;
    }
  }
  if (queue == NULL || queue->count >= most) {
    return 0;
  }
  (void)snprintf(queue->entries[queue->count], sizeof queue->entries[0], "%s", entry);
  return ++queue->count;
}

const char *fake_queue_at(fake_store *store, const char *key, unsigned index) {
  fake_queue *queue = fake_queue_find(store, key, strlen(key));
  return queue != NULL && index < queue->count ? queue->entries[index] : NULL;
}

void fake_queue_put(fake_store *store, const char *key, const char *entry) {
  (void)fake_queue_push(store, key, strlen(key), entry);
}

void fake_queue_clear(fake_store *store, const char *key) {
  fake_queue *queue = fake_queue_find(store, key, strlen(key));
  if (queue != NULL) {
    queue->length = 0;
  }
}

/* ---------------------------------------------------------------------------------- the messages */

const char *fake_queue_channel(const fake_command *command) {
  const char *channel = strstr(command->line, RL_COMMAND_CHANNEL);
  return channel != NULL ? channel + strlen(RL_COMMAND_CHANNEL) : "";
}

void fake_queue_subscribe(fake_store *store, unsigned listener, const char *channel) {
  (void)snprintf(store->listeners[listener], sizeof store->listeners[listener], "%s", channel);
}

void fake_queue_unsubscribe(fake_store *store, unsigned listener) {
  char ignored[FAKE_REPLY_MAX];
  store->listeners[listener][0] = '\0';
  while (fake_queue_take(store, listener, ignored) > 0) {
  }
}

size_t fake_queue_take(fake_store *store, unsigned listener, char bytes[FAKE_REPLY_MAX]) {
  for (unsigned i = 0; i < store->message_count; i++) {
    const fake_message *message = &store->messages[i];
    if (message->listener == listener) {
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

/* Returns how many receive it. What nobody takes for too long is lost. */
static unsigned fake_queue_publish(fake_store *store, const char *channel, const char *id,
                                   const char *key, size_t length) {
  unsigned receivers = 0;
  for (unsigned i = 0; i < FAKE_LISTENERS_MAX; i++) {
    if (store->listeners[i][0] == '\0' ||
        strncmp(store->listeners[i], channel, FAKE_CHANNEL_MAX) != 0) {
      continue;
    }
    receivers++;
    if (store->message_count < FAKE_MESSAGES_MAX) {
      fake_message *message = &store->messages[store->message_count++];
      int used = snprintf(message->bytes, sizeof message->bytes,
                          "*3\r\n$7\r\nmessage\r\n$29\r\nredlock:call:%.16s\r\n$%zu\r\n%s", channel,
                          strlen(id) + length, id);
      memcpy(message->bytes + used, key, length);
      memcpy(message->bytes + used + length, "\r\n", 2);
      message->length = (size_t)used + length + 2;
      message->listener = i;
    }
  }
  return receivers;
}

static bool fake_queue_publish_to(fake_store *store, const char *entry, const char *key,
                                  size_t length) {
  return fake_queue_publish(store, entry, entry + FAKE_CHANNEL_MAX, key, length) > 0;
}

/* Calls who is first; whoever does not hear it leaves the queue. */
static bool fake_queue_call(fake_store *store, const char *key, size_t length) {
  for (unsigned i = 0; i < FAKE_CALLS_MAX; i++) {
    fake_queue *queue = fake_queue_find(store, key, length);
    if (queue == NULL) {
      return false;
    }
    if (fake_queue_publish_to(store, queue->entries[0], key, length)) {
      return true;
    }
    fake_queue_remove(queue, 0);
  }
  return false;
}

unsigned fake_queue_released(fake_store *store, const fake_command *command, const char *key,
                             size_t length, bool free) {
  if (!command->calls || command->verb != FAKE_RELEASE) {
    return 1;
  }
  if (store->mute) {
    return free ? 3 : 1;
  }
  if (command->entry[0] != '\0') {
    (void)fake_queue_leave(store, key, length, command->entry);
  }
  return free && fake_queue_call(store, key, length) ? 2 : 1;
}

/* ---------------------------------------------------------------------------------- the commands */

/* Returns true if the key is free and nobody comes before the entry. Whoever does is called, or taken away. */
static bool fake_queue_is_next(fake_store *store, const fake_command *command) {
  int at = fake_queue_position(fake_queue_find(store, command->key, command->key_length),
                               command->entry);
  bool evicts = command->mode >= RL_COMMAND_ENQUEUE_EVICT &&
                command->mode < RL_COMMAND_ENQUEUE_APPEND && at + 1 == (int)command->mode;
  for (unsigned i = 0; i < FAKE_CALLS_MAX; i++) {
    fake_queue *queue = fake_queue_find(store, command->key, command->key_length);
    if (queue == NULL || strcmp(queue->entries[0], command->entry) == 0) {
      return true;
    }
    if ((!evicts || i > 0) &&
        fake_queue_publish_to(store, queue->entries[0], command->key, command->key_length)) {
      return false;
    }
    fake_queue_remove(queue, 0);
  }
  return false;
}

static unsigned long long fake_queue_stand(fake_store *store, const fake_command *command,
                                           redlock_time ends_us, redlock_time now_us) {
  unsigned long long left = ends_us == 0 ? 0
                            : ends_us == REDLOCK_NEVER
                                ? 1
                                : (ends_us - now_us) / REDLOCK_MILLISECONDS + 2;
  if (command->mode == RL_COMMAND_ENQUEUE_APPEND &&
      fake_queue_find(store, command->key, command->key_length) != NULL) {
    unsigned joined = fake_queue_push(store, command->key, command->key_length, command->entry);
    if (joined > 0) {
      return RL_COMMAND_ENQUEUE_UNIT + joined;
    }
  }
  if (ends_us == 0 && fake_queue_is_next(store, command)) {
    return 0;
  }
  int at = command->mode == RL_COMMAND_ENQUEUE_NEW
               ? -1
               : fake_queue_position(fake_queue_find(store, command->key, command->key_length),
                                     command->entry);
  unsigned position =
      at >= 0 ? (unsigned)at + 1
              : fake_queue_push(store, command->key, command->key_length, command->entry);
  left = position == 0 && left == 0 ? 1 : left;
  return left * RL_COMMAND_ENQUEUE_UNIT + position;
}

bool fake_queue_is(const fake_command *command) {
  return command->verb >= FAKE_STAND || command->verb == FAKE_SUBSCRIBE ||
         command->verb == FAKE_PING;
}

void fake_queue_execute(fake_store *store, const fake_command *command, redlock_time ends_us,
                        redlock_time now_us, char reply[FAKE_REPLY_MAX]) {
  unsigned long long answer = 0;
  bool script = command->verb == FAKE_STAND || command->verb == FAKE_LEAVE;
  char channel[FAKE_CHANNEL_MAX + 1];
  (void)snprintf(channel, sizeof channel, "%s", fake_queue_channel(command));
  if (script && store->forgot_calls && !command->by_text) {
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
  case FAKE_STAND:
    answer = fake_queue_stand(store, command, ends_us, now_us);
    break;
  case FAKE_LEAVE:
    answer = fake_queue_leave(store, command->key, command->key_length, command->entry);
    if (ends_us == 0) {
      (void)fake_queue_call(store, command->key, command->key_length);
    }
    break;
  default:
    answer = fake_queue_publish(store, channel, "", "", 0);
    break;
  }
  (void)snprintf(reply, FAKE_REPLY_MAX, ":%llu\r\n", answer);
}
