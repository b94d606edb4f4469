/*
 * A simulated Redis for tests: keys with a token and an expiry, and the commands that we send.
 *
 * SPDX-License-Identifier: MIT
 */
#include "fake_store.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/rl_time.h"
#include "fake_guard.h"
#include "fake_queue.h"
#include "lease/rl_fence.h"
#include "resp.h"
#include "wire/rl_command.h"

static fake_key *fake_find(fake_store *store, redlock_time now_us, const char *name,
                           size_t length) {
  for (unsigned i = 0; i < FAKE_KEYS_MAX; i++) {
    fake_key *key = &store->keys[i];
    if (key->length == length && memcmp(key->name, name, length) == 0) {
      if (key->expires_us > now_us) {
        return key;
      }
      key->length = 0;
    }
  }
  return NULL;
}

static void fake_add(fake_store *store, const char *name, size_t length, const char *token,
                     redlock_time expires_us) {
  for (unsigned i = 0; i < FAKE_KEYS_MAX; i++) {
    fake_key *key = &store->keys[i];
    if (key->length == 0) {
      key->length = length;
      memcpy(key->name, name, length);
      (void)snprintf(key->token, sizeof key->token, "%s", token);
      key->expires_us = expires_us;
      return;
    }
  }
}

const char *fake_store_token(fake_store *store, redlock_time now_us, const char *key) {
  fake_key *found = fake_find(store, now_us, key, strlen(key));
  return found == NULL ? NULL : found->token;
}

redlock_time fake_store_expiry(fake_store *store, redlock_time now_us, const char *key) {
  fake_key *found = fake_find(store, now_us, key, strlen(key));
  return found == NULL ? 0 : found->expires_us;
}

void fake_store_put(fake_store *store, const char *key, const char *token,
                    redlock_time expires_us) {
  fake_store_remove(store, key);
  fake_add(store, key, strlen(key), token, expires_us);
}

void fake_store_remove(fake_store *store, const char *key) {
  fake_key *found = fake_find(store, 0, key, strlen(key));
  if (found != NULL) {
    found->length = 0;
  }
}

static void fake_run_script(fake_store *store, redlock_time now_us, const fake_command *command,
                            char reply[FAKE_REPLY_MAX]) {
  fake_key *key = fake_find(store, now_us, command->key, command->key_length);
  bool ours = key != NULL && strcmp(key->token, command->token) == 0;
  if (key != NULL && key->token[0] == '\0') {
    (void)snprintf(reply, FAKE_REPLY_MAX, "-WRONGTYPE Operation against a key\r\n");
    return;
  }
  (void)snprintf(reply, FAKE_REPLY_MAX, ours ? ":1\r\n" : ":0\r\n");
  if (command->verb == FAKE_RELEASE) {
    bool free = key == NULL || ours;
    if (ours) {
      key->length = 0;
    }
    unsigned done = fake_queue_released(store, command, command->key, command->key_length, free);
    (void)snprintf(reply, FAKE_REPLY_MAX, ":%u\r\n", ours ? done : 0);
  } else if (ours && key->expires_us < now_us + command->ttl_ms * REDLOCK_MILLISECONDS) {
    key->expires_us = now_us + command->ttl_ms * REDLOCK_MILLISECONDS;
  }
}

static void fake_attach(fake_store *store, redlock_time now_us, const fake_command *command,
                        char reply[FAKE_REPLY_MAX]) {
  bool ours = true;
  redlock_duration left_us = 0;
  if (command->guarded && (strcmp(command->record, store->record) != 0 || store->unsealed ||
                           strcmp(command->run_id, store->run_id) != 0)) {
    (void)snprintf(reply, FAKE_REPLY_MAX, ":-1\r\n");
    return;
  }
  for (unsigned i = 0; i < command->count; i++) {
    const fake_name *name = &command->names[i];
    const fake_key *key = fake_find(store, now_us, name->bytes, name->length);
    ours = ours && key != NULL && strcmp(key->token, command->handed) == 0 &&
           (key->expires_us - now_us) / REDLOCK_MILLISECONDS > command->floor_ms;
    left_us = key != NULL ? rl_time_max(left_us, key->expires_us - now_us) : left_us;
  }
  (void)snprintf(reply, FAKE_REPLY_MAX, ":0\r\n");
  if (ours) {
    (void)snprintf(reply, FAKE_REPLY_MAX, "+OK %llu\r\n",
                   (unsigned long long)(left_us / REDLOCK_MILLISECONDS));
  }
  for (unsigned i = 0; i < command->count && ours; i++) {
    const fake_name *name = &command->names[i];
    fake_key *key = fake_find(store, now_us, name->bytes, name->length);
    if (key != NULL) {
      memcpy(key->token, command->token, sizeof key->token);
      key->expires_us = now_us + command->ttl_ms * REDLOCK_MILLISECONDS;
    }
  }
}

static void fake_inspect(const fake_key *key, redlock_time now_us, char reply[FAKE_REPLY_MAX]) {
  char answer[FAKE_TOKEN_MAX + 64];
  long long left_ms = -1;
  if (key == NULL) {
    (void)snprintf(reply, FAKE_REPLY_MAX, "$-1\r\n");
    return;
  }
  if (key->expires_us != REDLOCK_NEVER) {
    left_ms = (long long)((key->expires_us - now_us) / REDLOCK_MILLISECONDS);
  }
  int length = key->token[0] == '\0'
                   ? snprintf(answer, sizeof answer, "hash %lld", left_ms)
                   : snprintf(answer, sizeof answer, "string %lld %s", left_ms, key->token);
  (void)snprintf(reply, FAKE_REPLY_MAX, "$%d\r\n%s\r\n", length, answer);
}

static void fake_examine(redlock_time now_us, const fake_command *command,
                         char reply[FAKE_REPLY_MAX]) {
  char answer[FAKE_REPLY_MAX / 2];
  int length = snprintf(answer, sizeof answer, "now=%llu role=master version=7.0.15",
                        (unsigned long long)now_us);
  if (command->verb == FAKE_PROBE) {
    (void)snprintf(reply, FAKE_REPLY_MAX, "-NOSCRIPT No matching script. Please use EVAL.\r\n");
  } else {
    (void)snprintf(reply, FAKE_REPLY_MAX, "$%d\r\n%s\r\n", length, answer);
  }
}

static bool fake_is_ours(const fake_key *key, const fake_command *command) {
  return key != NULL && strcmp(key->token, command->token) == 0;
}

static void fake_set_all(fake_store *store, redlock_time now_us, const fake_command *command,
                         char reply[FAKE_REPLY_MAX]) {
  redlock_time expires_us = now_us + command->ttl_ms * REDLOCK_MILLISECONDS;
  for (unsigned i = 0; i < command->count; i++) {
    const fake_name *name = &command->names[i];
    fake_key *key = fake_find(store, now_us, name->bytes, name->length);
    if (command->heals && key != NULL && key->token[0] == '\0') {
      (void)snprintf(reply, FAKE_REPLY_MAX, "-WRONGTYPE Operation against a key\r\n");
      return;
    }
    if (key != NULL && !(command->heals && fake_is_ours(key, command))) {
      (void)snprintf(reply, FAKE_REPLY_MAX, ":%u\r\n", i + 1);
      return;
    }
  }
  for (unsigned i = 0; i < command->count; i++) {
    const fake_name *name = &command->names[i];
    fake_key *key = fake_find(store, now_us, name->bytes, name->length);
    if (key != NULL) {
      key->expires_us = rl_time_max(key->expires_us, expires_us);
    } else {
      fake_add(store, name->bytes, name->length, command->token, expires_us);
    }
  }
}

/* Prolongs all keys if all hold the token, or deletes those that do. */
static void fake_run_several(fake_store *store, redlock_time now_us, const fake_command *command,
                             char reply[FAKE_REPLY_MAX]) {
  redlock_time expires_us = now_us + command->ttl_ms * REDLOCK_MILLISECONDS;
  unsigned ours = 0;
  unsigned done = 1;
  bool wrong_type = false;
  for (unsigned i = 0; i < command->count; i++) {
    const fake_name *name = &command->names[i];
    fake_key *key = fake_find(store, now_us, name->bytes, name->length);
    ours += fake_is_ours(key, command);
    wrong_type = wrong_type || (key != NULL && key->token[0] == '\0');
    bool free = fake_is_ours(key, command);
    if (free && command->verb == FAKE_RELEASE) {
      key->length = 0;
    }
    unsigned said = fake_queue_released(store, command, name->bytes, name->length, free);
    done = said > 1 ? said : done;
  }
  if (wrong_type) {
    (void)snprintf(reply, FAKE_REPLY_MAX, "-WRONGTYPE Operation against a key\r\n");
  } else {
    (void)snprintf(reply, FAKE_REPLY_MAX, ":%u\r\n", ours == command->count ? done : 0);
  }
  for (unsigned i = 0; i < command->count && ours == command->count; i++) {
    const fake_name *name = &command->names[i];
    fake_key *key = fake_find(store, now_us, name->bytes, name->length);
    if (key != NULL && key->expires_us < expires_us) {
      key->expires_us = expires_us;
    }
  }
}

static void fake_execute_several(fake_store *store, redlock_time now_us,
                                 const fake_command *command, char reply[FAKE_REPLY_MAX]) {
  (void)snprintf(reply, FAKE_REPLY_MAX, "+OK\r\n");
  if (store->forgot_several && !command->by_text) {
    (void)snprintf(reply, FAKE_REPLY_MAX, "-NOSCRIPT No matching script. Please use EVAL.\r\n");
    return;
  }
  if (command->verb == FAKE_SET) {
    fake_set_all(store, now_us, command, reply);
  } else {
    fake_run_several(store, now_us, command, reply);
  }
}

/* ------------------------------------------------------------------------------ fencing tokens */

static fake_counter *fake_find_counter(fake_store *store, redlock_time now_us, const char *name,
                                       size_t length) {
  for (unsigned i = 0; i < FAKE_KEYS_MAX; i++) {
    fake_counter *counter = &store->counters[i];
    if (counter->length == length && memcmp(counter->name, name, length) == 0) {
      if (counter->expires_us > now_us) {
        return counter;
      }
      counter->length = 0;
    }
  }
  return NULL;
}

static void fake_count(fake_store *store, const char *name, size_t length, uint64_t value,
                       redlock_time expires_us) {
  fake_counter *counter = fake_find_counter(store, 0, name, length);
  for (unsigned i = 0; i < FAKE_KEYS_MAX && counter == NULL; i++) {
    counter = store->counters[i].length == 0 ? &store->counters[i] : NULL;
  }
  if (counter != NULL) {
    memcpy(counter->name, name, length);
    counter->length = length;
    counter->value = value;
    counter->expires_us = expires_us;
  }
}

uint64_t fake_store_counter(fake_store *store, redlock_time now_us, const char *key) {
  const fake_counter *counter = fake_find_counter(store, now_us, key, strlen(key));
  return counter == NULL ? 0 : counter->value;
}

void fake_store_count(fake_store *store, const char *key, uint64_t value, redlock_time expires_us) {
  fake_count(store, key, strlen(key), value, expires_us);
}

/* A release that keeps its keys: those with the token, and their counters, live for so long. */
static void fake_acquire(fake_store *store, redlock_time now_us, const fake_command *command,
                         char reply[FAKE_REPLY_MAX]) {
  redlock_time expires_us = now_us + command->keep_ms * REDLOCK_MILLISECONDS;
  redlock_time counted_us = expires_us + 604800000 * REDLOCK_MILLISECONDS;
  unsigned ours = 0, done = 1;
  bool wrong_type = false;
  for (unsigned i = 0; i < command->count; i++) {
    const fake_name *name = &command->names[i];
    fake_key *key = fake_find(store, now_us, name->bytes, name->length);
    fake_counter *counter = fake_find_counter(store, now_us, name->bytes, name->length);
    bool kept = fake_is_ours(key, command);
    ours += kept;
    wrong_type = wrong_type || (key != NULL && key->token[0] == '\0');
    if (kept) {
      key->expires_us = expires_us;
    }
    if (kept && command->fence > 0 && counter != NULL) {
      counter->expires_us = rl_time_max(counter->expires_us, counted_us);
    }
    unsigned said =
        fake_queue_released(store, command, name->bytes, name->length, kept || key == NULL);
    done = said > 1 ? said : done;
  }
  if (wrong_type) {
    (void)snprintf(reply, FAKE_REPLY_MAX, "-WRONGTYPE Operation against a key\r\n");
  } else {
    (void)snprintf(reply, FAKE_REPLY_MAX, ":%u\r\n", ours == command->count ? done : 0);
  }
}

#define FAKE_SLACK (REDLOCK_SECONDS / RL_FENCE_TICK_US) /* by which p may differ from the clock */

/* The greatest counter of the keys. */
static uint64_t fake_most(fake_store *store, redlock_time now_us, const fake_command *command) {
  uint64_t most = 0;
  for (unsigned i = 0; i < command->count; i++) {
    const fake_name *name = &command->names[i];
    const fake_counter *counter = fake_find_counter(store, now_us, name->bytes, name->length);
    most = counter != NULL && counter->value > most ? counter->value : most;
  }
  return most;
}

/* Returns the new value of the counters for TAKE; 0 when no number is left. */
static uint64_t fake_raise(fake_store *store, redlock_time now_us, const fake_command *command) {
  uint64_t tick = (now_us + store->ahead_us) / RL_FENCE_TICK_US;
  uint64_t most = fake_most(store, now_us, command);
  uint64_t fence = command->fence;
  if (!command->heals) {
    uint64_t low = tick > FAKE_SLACK ? tick - FAKE_SLACK : 0;
    uint64_t high = tick + FAKE_SLACK;
    fence = fence < low ? low : fence > high ? high : fence;
    most++;
  }
  most = fence > most ? fence : most;
  return most > ((uint64_t)1 << 53) - 1 ? 0 : most;
}

static void fake_write_counters(fake_store *store, redlock_time now_us, const fake_command *command,
                                uint64_t fence) {
  redlock_time expires_us =
      now_us + (command->ttl_ms + 604800000) * REDLOCK_MILLISECONDS; /* a week more */
  for (unsigned i = 0; i < command->count && command->fence > 0; i++) {
    const fake_name *name = &command->names[i];
    const fake_counter *counter = fake_find_counter(store, now_us, name->bytes, name->length);
    uint64_t value = counter != NULL && counter->value > fence ? counter->value : fence;
    fake_count(store, name->bytes, name->length, value, expires_us);
  }
}

/* TAKE, PROLONG and CONFIRM check all keys before they write. */
static void fake_watched(fake_store *store, redlock_time now_us, const fake_command *command,
                         char reply[FAKE_REPLY_MAX]) {
  char answer[64], word[16] = "OK";
  bool takes = command->verb == FAKE_SET;
  uint64_t fence = takes && command->fence > 0 ? fake_raise(store, now_us, command) : 0;
  redlock_time expires_us = now_us + command->ttl_ms * REDLOCK_MILLISECONDS;
  for (unsigned i = 0; i < command->count; i++) {
    const fake_name *name = &command->names[i];
    const fake_key *key = fake_find(store, now_us, name->bytes, name->length);
    bool ours = fake_is_ours(key, command);
    if (key != NULL && key->token[0] == '\0') {
      (void)snprintf(reply, FAKE_REPLY_MAX, "-WRONGTYPE Operation against a key\r\n");
      return;
    }
    if (word[0] == 'O' && takes && key != NULL && !(command->heals && ours)) {
      (void)snprintf(word, sizeof word, "%u", i + 1);
    } else if (word[0] == 'O' && !takes && !ours) {
      (void)snprintf(word, sizeof word, "no");
    }
  }
  if (word[0] == 'O' && takes && command->fence > 0 && fence == 0) {
    (void)snprintf(reply, FAKE_REPLY_MAX, "-ERR no fencing token is left\r\n");
    return;
  }
  for (unsigned i = 0; i < command->count && word[0] == 'O'; i++) {
    const fake_name *name = &command->names[i];
    fake_key *key = fake_find(store, now_us, name->bytes, name->length);
    if (key == NULL) {
      fake_add(store, name->bytes, name->length, command->token, expires_us);
    } else if (command->verb != FAKE_CONFIRM) {
      key->expires_us = rl_time_max(key->expires_us, expires_us);
    }
  }
  if (word[0] == 'O') {
    fake_write_counters(store, now_us, command, takes ? fence : command->fence);
  }
  unsigned long long clock_us = now_us + store->ahead_us;
  unsigned long long reported = word[0] == 'O' ? fence : 0;
  int length = snprintf(answer, sizeof answer, "%s %llu %llu", word, clock_us, reported);
  (void)snprintf(reply, FAKE_REPLY_MAX, "$%d\r\n%s\r\n", length, answer);
}

/* The reply to ENQUEUE_LABEL: adds the label of a key that expires. */
static void fake_add_label(const fake_key *key, char reply[FAKE_REPLY_MAX]) {
  unsigned long long answer = reply[0] == ':' ? strtoull(reply + 1, NULL, 10) : 0;
  size_t digits = key == NULL ? 0 : strspn(key->token, "0123456789abcdefABCDEF");
  if (answer >= 4000 && digits == REDLOCK_TOKEN_LENGTH && key->token[digits] == ':' &&
      key->token[digits + 1] != '\0') {
    char text[FAKE_REPLY_MAX / 2];
    int length = snprintf(text, sizeof text, "%llu%s", answer, key->token + digits);
    (void)snprintf(reply, FAKE_REPLY_MAX, "$%d\r\n%s\r\n", length, text);
  }
}

/* Which slots of a semaphore exist, and another number of permits in their tokens. */
static void fake_slots(fake_store *store, redlock_time now_us, const fake_command *command,
                       char reply[FAKE_REPLY_MAX]) {
  unsigned permits = (unsigned)atoi(command->token), digit = 0, other = 0, length = 0;
  char name[FAKE_KEY_MAX + 16], answer[FAKE_REPLY_MAX / 2];
  for (unsigned slot = 1; slot <= permits || slot % 4 != 1; slot++) {
    int size = snprintf(name, sizeof name, "%s/%u", command->key, slot);
    const fake_key *key = slot <= permits ? fake_find(store, now_us, name, (size_t)size) : NULL;
    unsigned named = key == NULL ? 0 : rl_label_permits(key->token, strlen(key->token));
    other = named != 0 && named != permits ? named : other;
    digit = digit * 2 + (key != NULL);
    if (slot % 4 == 0) {
      length += (unsigned)snprintf(answer + length, sizeof answer - length, "%x", digit);
      digit = 0;
    }
  }
  if (other != 0) {
    length += (unsigned)snprintf(answer + length, sizeof answer - length, " %u", other);
  }
  (void)snprintf(reply, FAKE_REPLY_MAX, "$%u\r\n%s\r\n", length, answer);
}

/* DELIFEQ, DELEX, SET IFEQ. */
static void fake_execute_native(fake_store *store, redlock_time now_us, const fake_command *command,
                                char reply[FAKE_REPLY_MAX]) {
  fake_key *key = fake_find(store, now_us, command->key, command->key_length);
  bool extends = command->verb == FAKE_EXTEND, ours = fake_is_ours(key, command);
  if (extends ? !store->knows_ifeq : command->native != store->native) {
    (void)snprintf(reply, FAKE_REPLY_MAX,
                   extends ? "-ERR syntax error\r\n" : "-ERR unknown command 'DEL', with args\r\n");
    return;
  }
  if (ours && extends) {
    key->expires_us = now_us + command->ttl_ms * REDLOCK_MILLISECONDS;
  } else if (ours) {
    key->length = 0;
  }
  (void)snprintf(reply, FAKE_REPLY_MAX, "%s",
                 extends ? (ours ? "+OK\r\n" : "$-1\r\n") : (ours ? ":1\r\n" : ":0\r\n"));
}

/* Returns true if a script is sent to a node that runs none. */
static bool fake_forbids(const fake_store *store, const fake_command *command,
                         char reply[FAKE_REPLY_MAX]) {
  bool script = command->verb == FAKE_RELEASE || command->verb == FAKE_EXTEND ||
                command->verb == FAKE_ATTACH || command->verb == FAKE_INSPECT ||
                command->verb == FAKE_EXAMINE || command->verb == FAKE_SLOTS || command->watched ||
                command->count > 1 || fake_queue_is(command);
  if (store->runs_none && script) {
    (void)snprintf(reply, FAKE_REPLY_MAX,
                   "-NOPERM this user has no permissions to run the 'eval' command\r\n");
  }
  return store->runs_none && script;
}

static void fake_execute_queue(fake_store *store, redlock_time now_us, const fake_command *command,
                               char reply[FAKE_REPLY_MAX]) {
  const fake_key *held = fake_find(store, now_us, command->key, command->key_length);
  redlock_time ends_us[FAKE_NAMES_MAX] = {held != NULL ? held->expires_us : 0};
  for (unsigned i = 1; i < command->count; i++) {
    const fake_name *name = &command->names[i];
    const fake_key *key = fake_find(store, now_us, name->bytes, name->length);
    ends_us[i] = key != NULL ? key->expires_us : 0;
  }
  fake_queue_execute(store, command, ends_us, now_us, reply);
  if (command->labels) {
    fake_add_label(held, reply);
  }
}

static void fake_no_script(char reply[FAKE_REPLY_MAX]) {
  (void)snprintf(reply, FAKE_REPLY_MAX, "-NOSCRIPT No matching script. Please use EVAL.\r\n");
}

/* Commands of one key. */
static void fake_execute_one(fake_store *store, redlock_time now_us, const fake_command *command,
                             char reply[FAKE_REPLY_MAX]) {
  fake_key *key = fake_find(store, now_us, command->key, command->key_length);
  bool *forgot = command->verb == FAKE_RELEASE ? &store->forgot_release : &store->forgot_extend;
  (void)snprintf(reply, FAKE_REPLY_MAX, "+OK\r\n");
  if (command->verb == FAKE_SET) {
    if (key != NULL) {
      (void)snprintf(reply, FAKE_REPLY_MAX, "$-1\r\n");
    } else {
      fake_add(store, command->key, command->key_length, command->token,
               now_us + command->ttl_ms * REDLOCK_MILLISECONDS);
    }
  } else if (command->verb == FAKE_EXISTS) {
    (void)snprintf(reply, FAKE_REPLY_MAX, ":0\r\n");
  } else if (command->verb == FAKE_FLAG) {
    bool flag = fake_queue_at(store, command->key, 0) != NULL;
    (void)snprintf(reply, FAKE_REPLY_MAX, flag ? ":1\r\n" : ":0\r\n");
  } else if (command->verb == FAKE_INSPECT) {
    fake_inspect(key, now_us, reply);
  } else if (command->verb == FAKE_PROBE || command->verb == FAKE_EXAMINE) {
    fake_examine(now_us, command, reply);
  } else if (command->verb == FAKE_DELETE) {
    (void)snprintf(reply, FAKE_REPLY_MAX, key != NULL ? ":1\r\n" : ":0\r\n");
    if (key != NULL) {
      key->length = 0;
    }
  } else if (command->verb == FAKE_RELEASE || command->verb == FAKE_EXTEND) {
    if (*forgot && !command->by_text) {
      fake_no_script(reply);
      return;
    }
    *forgot = *forgot && !command->by_text;
    fake_run_script(store, now_us, command, reply);
  }
}

/* Commands that a node with lost scripts or another lineage record may decline. */
static void fake_execute_script(fake_store *store, redlock_time now_us, const fake_command *command,
                                char reply[FAKE_REPLY_MAX]) {
  if (command->guarded && fake_guard_declines(store, now_us, command, reply)) {
    return;
  }
  if (command->watched) {
    if (store->forgot_watched && !command->by_text && !command->guarded) {
      fake_no_script(reply);
    } else {
      fake_watched(store, now_us, command, reply);
    }
  } else if (command->keep_ms > 0 && (!store->forgot_release || command->by_text)) {
    store->forgot_release = false;
    fake_acquire(store, now_us, command, reply);
  } else if (command->count > 1 && command->keep_ms == 0) {
    fake_execute_several(store, now_us, command, reply);
  } else {
    fake_execute_one(store, now_us, command, reply);
  }
}

void fake_store_execute(fake_store *store, redlock_time now_us, const fake_command *command,
                        char reply[FAKE_REPLY_MAX]) {
  if (command->native != 0) {
    fake_execute_native(store, now_us, command, reply);
  } else if (fake_forbids(store, command, reply)) {
    return;
  } else if (command->verb == FAKE_ATTACH) {
    fake_attach(store, now_us, command, reply);
  } else if (command->verb == FAKE_SLOTS) {
    fake_slots(store, now_us, command, reply);
  } else if (command->verb == FAKE_GUARD) {
    fake_guard_execute(store, now_us, command, reply);
  } else if (fake_queue_is(command)) {
    fake_execute_queue(store, now_us, command, reply);
  } else {
    fake_execute_script(store, now_us, command, reply);
  }
}
