/*
 * A simulated Redis for tests: keys with a token and an expiry, and the commands that we send.
 *
 * SPDX-License-Identifier: MIT
 */
#include "fake_store.h"

#include <stdio.h>
#include <string.h>

#include "base/rl_time.h"
#include "fake_guard.h"
#include "fake_queue.h"
#include "lease/rl_fence.h"
#include "resp.h"
#include "wire/rl_command.h"

/* ------------------------------------------------------------------------------------- parsing */

/* The word at |index| is a key. */
static bool fake_read_name(fake_command *command, const resp_request *request, unsigned index) {
  size_t length = request->lengths[index];
  if (length > FAKE_KEY_MAX) {
    return false;
  }
  memcpy(command->key, request->words[index], length);
  command->key[length] = '\0';
  command->key_length = length;
  return true;
}

/* An inspection is a script with one key and no argument. */
static bool fake_read_inspect(fake_command *command, const resp_request *request) {
  command->verb = FAKE_INSPECT;
  command->by_text = true;
  return request->count == 4 && resp_is(request, 0, "EVAL") && resp_is(request, 2, "1") &&
         strncmp(request->words[1], "local t=redis.call('TYPE'", 25) == 0 &&
         fake_read_name(command, request, 3);
}

/*
 * The doctor sends a script that no node has, and one without keys, whose first argument is a key.
 */
static bool fake_is_doctor(const resp_request *request) {
  return (request->count == 3 && resp_is(request, 0, "EVALSHA")) ||
         (request->count == 6 && resp_is(request, 0, "EVAL") && resp_is(request, 2, "0"));
}

static bool fake_read_doctor(fake_command *command, const resp_request *request) {
  command->verb = request->count == 3 ? FAKE_PROBE : FAKE_EXAMINE;
  command->by_text = request->count == 6;
  return request->count == 3 || fake_read_name(command, request, 3);
}

static bool fake_read_delete(fake_command *command, const resp_request *request) {
  command->verb = FAKE_DELETE;
  return request->count == 2 && fake_read_name(command, request, 1);
}

/* The words at |index| and behind it are a key and a token. */
static bool fake_read_key(fake_command *command, const resp_request *request, unsigned index) {
  size_t length = request->lengths[index + 1];
  if (!fake_read_name(command, request, index) || length > FAKE_TOKEN_MAX) {
    return false;
  }
  memcpy(command->token, request->words[index + 1], length);
  command->token[length] = '\0';
  return true;
}

/* A script with several keys and, behind them, a token. */
static bool fake_read_keys(fake_command *command, const resp_request *request) {
  command->count = (unsigned)resp_number(request, 2);
  if (command->count > FAKE_NAMES_MAX || request->count < 4 + command->count) {
    return false;
  }
  for (unsigned i = 0; i < command->count; i++) {
    fake_name *name = &command->names[i];
    if (!fake_read_name(command, request, 3 + i)) {
      return false;
    }
    memcpy(name->bytes, command->key, command->key_length + 1);
    name->length = command->key_length;
  }
  if (!fake_read_key(command, request, 2 + command->count)) { /* The last key, and the token. */
    return false;
  }
  memcpy(command->key, command->names[0].bytes, sizeof command->key);
  command->key_length = command->names[0].length;
  return true;
}

static bool fake_is_attach(const resp_request *request) {
  static const char end[] = "redis.call('SET',KEYS[i],ARGV[2],'PX',ARGV[3]) end return 1";
  return request->count >= 8 && resp_is(request, 0, "EVAL") && request->lengths[1] > sizeof end &&
         memcmp(request->words[1] + request->lengths[1] - (sizeof end - 1), end, sizeof end - 1) ==
             0;
}

/* A script with keys, two tokens, a time to live and how much must be left. */
static bool fake_read_attach(fake_command *command, const resp_request *request) {
  command->verb = FAKE_ATTACH;
  command->by_text = true;
  if (!fake_read_keys(command, request) || request->lengths[4 + command->count] > FAKE_TOKEN_MAX) {
    return false;
  }
  command->guarded = request->count == 9 + command->count;
  if (!command->guarded && request->count != 7 + command->count) {
    return false;
  }
  for (unsigned i = 0; i < 2 && command->guarded; i++) { /* The record's key is the last one. */
    unsigned word = 7 + i + command->count;
    (void)snprintf(i == 0 ? command->record : command->run_id,
                   i == 0 ? sizeof command->record : sizeof command->run_id, "%.*s",
                   (int)request->lengths[word], request->words[word]);
  }
  size_t length = request->lengths[4 + command->count];
  memcpy(command->handed, command->token, sizeof command->handed);
  memcpy(command->token, request->words[4 + command->count], length);
  command->token[length] = '\0';
  command->ttl_ms = resp_number(request, 5 + command->count);
  command->floor_ms = resp_number(request, 6 + command->count);
  command->count -= command->guarded;
  return command->ttl_ms > 0;
}

static bool fake_read_set(fake_command *command, const resp_request *request) {
  command->verb = FAKE_SET;
  command->ttl_ms = resp_number(request, 5);
  return request->count == 6 && fake_read_key(command, request, 1) && resp_is(request, 3, "NX") &&
         resp_is(request, 4, "PX") && command->ttl_ms > 0;
}

static bool fake_read_word(char *to, size_t size, const resp_request *request, unsigned index) {
  if (request->lengths[index] >= size) {
    return false;
  }
  memcpy(to, request->words[index], request->lengths[index]);
  to[request->lengths[index]] = '\0';
  return true;
}

/* Reads the words behind the key and the token, or the entry. */
static bool fake_read_rest(fake_command *command, const resp_request *request) {
  command->ttl_ms = resp_number(request, 5);
  command->mode = (unsigned)command->ttl_ms;
  switch (command->verb) {
  case FAKE_RELEASE:
    return request->count == 5 ||
           (command->calls && request->count == 6 && request->lengths[5] == FAKE_ENTRY_MAX &&
            fake_read_word(command->entry, sizeof command->entry, request, 5));
  case FAKE_EXTEND:
    return request->count == 6 && command->ttl_ms > 0;
  case FAKE_STAND:
  case FAKE_LEAVE:
    return request->count == (command->verb == FAKE_STAND ? 6 : 5) &&
           command->mode <= RL_COMMAND_ENQUEUE_APPEND && request->lengths[4] == FAKE_ENTRY_MAX &&
           fake_read_word(command->entry, sizeof command->entry, request, 4);
  default:
    return false;
  }
}

static bool fake_read_script(fake_command *command, const resp_request *request) {
  static const struct {
    rl_script script;
    fake_verb verb;
    bool calls;
  } scripts[] = {{RL_SCRIPT_RELEASE, FAKE_RELEASE, false},
                 {RL_SCRIPT_EXTEND, FAKE_EXTEND, false},
                 {RL_SCRIPT_RELEASE_NOTIFY, FAKE_RELEASE, true},
                 {RL_SCRIPT_ENQUEUE, FAKE_STAND, false},
                 {RL_SCRIPT_DEQUEUE, FAKE_LEAVE, false}};
  command->by_text = resp_is(request, 0, "EVAL");
  if (request->count < 5 || !resp_is(request, 2, "1") || !fake_read_key(command, request, 3)) {
    return false;
  }
  for (unsigned i = 0; i < 5; i++) {
    if (resp_is(request, 1,
                command->by_text ? rl_command_script_text(scripts[i].script)
                                 : rl_command_script_sha1(scripts[i].script))) {
      command->verb = scripts[i].verb;
      command->calls = scripts[i].calls;
    }
  }
  return fake_read_rest(command, request);
}

/* A script for several keys. */
static bool fake_read_several(fake_command *command, const resp_request *request) {
  static const struct {
    rl_script script;
    fake_verb verb;
    bool heals;
  } scripts[] = {{RL_SCRIPT_ACQUIRE_ALL, FAKE_SET, false},
                 {RL_SCRIPT_HEAL_ALL, FAKE_SET, true},
                 {RL_SCRIPT_EXTEND_ALL, FAKE_EXTEND, false},
                 {RL_SCRIPT_RELEASE_ALL, FAKE_RELEASE, false},
                 {RL_SCRIPT_RELEASE_ALL_NOTIFY, FAKE_RELEASE, false}};
  command->by_text = resp_is(request, 0, "EVAL");
  if (!fake_read_keys(command, request)) {
    return false;
  }
  for (unsigned i = 0; i < 5; i++) {
    if (resp_is(request, 1,
                command->by_text ? rl_command_script_text(scripts[i].script)
                                 : rl_command_script_sha1(scripts[i].script))) {
      command->verb = scripts[i].verb;
      command->calls = scripts[i].script == RL_SCRIPT_RELEASE_ALL_NOTIFY;
      command->heals = scripts[i].heals;
    }
  }
  command->ttl_ms = resp_number(request, 4 + command->count);
  return command->verb == FAKE_RELEASE
             ? request->count == 4 + command->count
             : command->verb != FAKE_OTHER && request->count == 5 + command->count &&
                   command->ttl_ms > 0;
}

/* Returns the script with a fencing token or a guard that the command names, or RL_SCRIPT_NONE. */
static rl_script fake_watched_script(const resp_request *request) {
  static const rl_script scripts[] = {RL_SCRIPT_TAKE, RL_SCRIPT_KEEP, RL_SCRIPT_CONFIRM};
  bool by_text = resp_is(request, 0, "EVAL");
  for (unsigned i = 0; i < 3; i++) {
    if (resp_is(request, 1,
                by_text ? rl_command_script_text(scripts[i])
                        : rl_command_script_sha1(scripts[i]))) {
      return scripts[i];
    }
  }
  return fake_guard_takes(request) ? RL_SCRIPT_TAKE_HERE : RL_SCRIPT_NONE;
}

/* Behind the keys of the lock there are those of its counters, if it has a token. */
static bool fake_read_counters(const fake_command *command, const resp_request *request) {
  for (unsigned i = 0; i < command->count; i++) {
    const fake_name *name = &command->names[i];
    unsigned at = 3 + command->count + i;
    if (request->lengths[at] != name->length + strlen(RL_COMMAND_COUNTER) ||
        memcmp(request->words[at], name->bytes, name->length) != 0 ||
        memcmp(request->words[at] + name->length, RL_COMMAND_COUNTER, strlen(RL_COMMAND_COUNTER)) !=
            0) {
      return false;
    }
  }
  return true;
}

/* The seal and the run_id, and the name of the script. A TAKE without a guard has none. */
static bool fake_read_record(fake_command *command, const resp_request *request, unsigned index) {
  if (!command->guarded) {
    return request->lengths[index] == 0 && request->lengths[index + 1] == 0;
  }
  if (command->by_text) {
    rl_sha1(command->sha1, request->words[1], request->lengths[1]);
  }
  return resp_is(request, index, "1") && !command->heals &&
         fake_read_word(command->seal, sizeof command->seal, request, index - 6) &&
         fake_read_word(command->run_id, sizeof command->run_id, request, index + 1) &&
         (command->by_text || fake_read_word(command->sha1, sizeof command->sha1, request, 1));
}

/*
 * Reads the words behind the keys: token, ttl, number of the lock's keys, acceptance of own keys,
 * fencing token, record.
 */
static bool fake_read_watched(fake_command *command, const resp_request *request,
                              rl_script script) {
  bool takes = rl_command_takes(script);
  unsigned keys = (unsigned)resp_number(request, 2);
  unsigned at = 3 + keys;
  command->verb = takes ? FAKE_SET : script == RL_SCRIPT_KEEP ? FAKE_EXTEND : FAKE_CONFIRM;
  command->watched = true;
  command->by_text = resp_is(request, 0, "EVAL");
  if (request->count != at + (takes ? 7 : 4) || request->lengths[at] > FAKE_TOKEN_MAX) {
    return false;
  }
  command->guarded = script == RL_SCRIPT_TAKE_HERE;
  if (takes && !fake_read_record(command, request, at + 5)) {
    return false;
  }
  command->count = (unsigned)resp_number(request, at + 2);
  command->heals = takes && resp_is(request, at + 3, "1");
  command->fence = resp_number(request, at + (takes ? 4 : 3));
  command->ttl_ms = resp_number(request, at + 1);
  memcpy(command->token, request->words[at], request->lengths[at]);
  command->token[request->lengths[at]] = '\0';
  if (command->count == 0 || command->count > FAKE_NAMES_MAX ||
      keys != command->count * (command->fence > 0 ? 2 : 1) + (command->guarded ? 1 : 0)) {
    return false;
  }
  for (unsigned i = 0; i < command->count; i++) {
    if (!fake_read_name(command, request, 3 + i)) {
      return false;
    }
    memcpy(command->names[i].bytes, command->key, command->key_length + 1);
    command->names[i].length = command->key_length;
  }
  memcpy(command->key, command->names[0].bytes, sizeof command->key);
  command->key_length = command->names[0].length;
  return command->ttl_ms > 0 && (command->fence == 0 || fake_read_counters(command, request));
}

static bool fake_read_handshake(fake_command *command, const resp_request *request) {
  size_t used = 0;
  command->verb = resp_is(request, 0, "AUTH")        ? FAKE_AUTH
                  : resp_is(request, 0, "SELECT")    ? FAKE_SELECT
                  : resp_is(request, 0, "CLIENT")    ? FAKE_SETNAME
                  : resp_is(request, 0, "EXISTS")    ? FAKE_EXISTS
                  : resp_is(request, 0, "SUBSCRIBE") ? FAKE_SUBSCRIBE
                  : resp_is(request, 0, "PING")      ? FAKE_PING
                  : resp_is(request, 0, "PUBLISH")   ? FAKE_PUBLISH
                  : resp_is(request, 0, "ROLE")      ? FAKE_ROLE
                                                     : FAKE_OTHER;
  for (unsigned i = 0; i < request->count; i++) {
    size_t length = request->lengths[i];
    if (used + length + 1 >= sizeof command->line) {
      return false;
    }
    if (i > 0) {
      command->line[used++] = ' ';
    }
    memcpy(command->line + used, request->words[i], length);
    used += length;
  }
  command->line[used] = '\0';
  return command->verb != FAKE_OTHER;
}

long fake_command_parse(fake_command *command, const char *bytes, size_t length) {
  resp_request request;
  bool known;
  long used = resp_read(&request, bytes, length);
  if (used <= 0) {
    return used;
  }
  memset(command, 0, sizeof *command);
  if (fake_guard_is(&request)) {
    known = fake_guard_parse(command, &request);
  } else if (fake_watched_script(&request) != RL_SCRIPT_NONE) {
    known = fake_read_watched(command, &request, fake_watched_script(&request));
  } else if (resp_is(&request, 0, "SET")) {
    known = fake_read_set(command, &request);
  } else if (resp_is(&request, 0, "DEL")) {
    known = fake_read_delete(command, &request);
  } else if (fake_is_attach(&request)) {
    known = fake_read_attach(command, &request);
  } else if (fake_is_doctor(&request)) {
    known = fake_read_doctor(command, &request);
  } else if (request.count == 4 && resp_is(&request, 0, "EVAL")) {
    known = fake_read_inspect(command, &request);
  } else if (resp_is(&request, 0, "EVALSHA") || resp_is(&request, 0, "EVAL")) {
    known = resp_is(&request, 2, "1") ? fake_read_script(command, &request)
                                      : fake_read_several(command, &request);
  } else {
    known = fake_read_handshake(command, &request);
  }
  return known ? used : -1;
}

/* ------------------------------------------------------------------------------------ the keys */

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
  }
  (void)snprintf(reply, FAKE_REPLY_MAX, ours ? ":1\r\n" : ":0\r\n");
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

/* TAKE, KEEP and CONFIRM check all keys before they write. */
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
  unsigned long long told = word[0] == 'O' ? fence : 0;
  int length = snprintf(answer, sizeof answer, "%s %llu %llu", word, clock_us, told);
  (void)snprintf(reply, FAKE_REPLY_MAX, "$%d\r\n%s\r\n", length, answer);
}

void fake_store_execute(fake_store *store, redlock_time now_us, const fake_command *command,
                        char reply[FAKE_REPLY_MAX]) {
  if (command->verb == FAKE_ATTACH) {
    fake_attach(store, now_us, command, reply);
    return;
  }
  if (command->verb == FAKE_GUARD) {
    fake_guard_execute(store, now_us, command, reply);
    return;
  }
  if (fake_queue_is(command)) {
    const fake_key *held = fake_find(store, now_us, command->key, command->key_length);
    fake_queue_execute(store, command, held != NULL ? held->expires_us : 0, now_us, reply);
    return;
  }
  if (command->guarded && fake_guard_declines(store, now_us, command, reply)) {
    return;
  }
  if (command->watched) {
    if (store->forgot_watched && !command->by_text && !command->guarded) {
      (void)snprintf(reply, FAKE_REPLY_MAX, "-NOSCRIPT No matching script. Please use EVAL.\r\n");
    } else {
      fake_watched(store, now_us, command, reply);
    }
    return;
  }
  if (command->count > 1) {
    fake_execute_several(store, now_us, command, reply);
    return;
  }
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
      (void)snprintf(reply, FAKE_REPLY_MAX, "-NOSCRIPT No matching script. Please use EVAL.\r\n");
      return;
    }
    *forgot = *forgot && !command->by_text;
    fake_run_script(store, now_us, command, reply);
  }
}
