/*
 * The commands of the library, as a simulated Redis parses them.
 *
 * SPDX-License-Identifier: MIT
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fake_guard.h"
#include "fake_queue.h"
#include "fake_store.h"
#include "node/rl_link.h"
#include "resp.h"
#include "wire/rl_command.h"

/* Returns true if the command is |script|. */
static bool fake_is_script(const resp_request *request, rl_script script) {
  return resp_is(request, 1,
                 resp_is(request, 0, "EVAL") ? rl_script_text(script) : rl_script_sha1(script));
}

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

static bool fake_read_word(char *to, size_t size, const resp_request *request, unsigned index) {
  if (request->lengths[index] >= size) {
    return false;
  }
  memcpy(to, request->words[index], request->lengths[index]);
  to[request->lengths[index]] = '\0';
  return true;
}

static bool fake_read_token(fake_command *command, const resp_request *request, unsigned index) {
  return fake_read_word(command->token, sizeof command->token, request, index);
}

/* The words at |index| and behind it are a key and a token. */
static bool fake_read_key(fake_command *command, const resp_request *request, unsigned index) {
  return fake_read_name(command, request, index) && fake_read_token(command, request, index + 1);
}

/* Reads the keys of a script for one key or several. The first one is that of the command. */
static bool fake_read_names(fake_command *command, const resp_request *request) {
  for (unsigned i = command->count; i-- > 0;) {
    if (!fake_read_name(command, request, 3 + i)) {
      return false;
    }
    memcpy(command->names[i].bytes, command->key, command->key_length + 1);
    command->names[i].length = command->key_length;
  }
  return true;
}

/* A script with several keys and, behind them, a token. */
static bool fake_read_keys(fake_command *command, const resp_request *request) {
  command->count = (unsigned)resp_number(request, 2);
  return command->count <= FAKE_NAMES_MAX && request->count >= 4 + command->count &&
         fake_read_token(command, request, 3 + command->count) && fake_read_names(command, request);
}

static bool fake_is_attach(const resp_request *request) {
  static const char end[] = "return redis.status_reply(string.format('OK %.0f',left))";
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
  memcpy(command->handed, command->token, sizeof command->handed);
  (void)fake_read_token(command, request, 4 + command->count);
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

/* Reads the words behind the key and the token, or the entry. */
static bool fake_read_rest(fake_command *command, const resp_request *request) {
  command->ttl_ms = resp_number(request, 5);
  command->mode = (unsigned)command->ttl_ms;
  switch (command->verb) {
  case FAKE_RELEASE:
    return request->count == 5 ||
           (command->notifies && request->count == 6 && request->lengths[5] == FAKE_ENTRY_MAX &&
            fake_read_word(command->entry, sizeof command->entry, request, 5));
  case FAKE_EXTEND:
    return request->count == 6 && command->ttl_ms > 0;
  case FAKE_SLOTS: /* The number of permits is in the place of a token. */
    return request->count == 5 && atoi(command->token) > 0;
  case FAKE_ENQUEUE:
  case FAKE_DEQUEUE:
    return request->count == (command->verb == FAKE_ENQUEUE ? 6 : 5) &&
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
    bool notifies;
  } scripts[] = {{RL_SCRIPT_RELEASE, FAKE_RELEASE, false},
                 {RL_SCRIPT_EXTEND, FAKE_EXTEND, false},
                 {RL_SCRIPT_RELEASE_NOTIFY, FAKE_RELEASE, true},
                 {RL_SCRIPT_ENQUEUE, FAKE_ENQUEUE, false},
                 {RL_SCRIPT_ENQUEUE_LABEL, FAKE_ENQUEUE, false},
                 {RL_SCRIPT_DEQUEUE, FAKE_DEQUEUE, false},
                 {RL_SCRIPT_SLOTS, FAKE_SLOTS, false}};
  command->by_text = resp_is(request, 0, "EVAL");
  if (request->count < 5 || !resp_is(request, 2, "1") || !fake_read_key(command, request, 3)) {
    return false;
  }
  for (unsigned i = 0; i < sizeof scripts / sizeof scripts[0]; i++) {
    if (fake_is_script(request, scripts[i].script)) {
      command->verb = scripts[i].verb;
      command->notifies = scripts[i].notifies;
      command->labels = scripts[i].script == RL_SCRIPT_ENQUEUE_LABEL;
    }
  }
  return fake_read_rest(command, request);
}

/* ENQUEUE_ALL. |command| has the entry as its token. */
static bool fake_read_enqueue_all(fake_command *command, const resp_request *request) {
  command->verb = FAKE_ENQUEUE;
  return request->count == 6 + command->count &&
         request->lengths[3 + command->count] == FAKE_ENTRY_MAX &&
         fake_read_word(command->entry, sizeof command->entry, request, 3 + command->count) &&
         fake_read_word(command->before, sizeof command->before, request, 4 + command->count) &&
         fake_read_word(command->notified, sizeof command->notified, request, 5 + command->count);
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
                 {RL_SCRIPT_RELEASE_ALL_NOTIFY, FAKE_RELEASE, false},
                 {RL_SCRIPT_ENQUEUE_ALL, FAKE_ENQUEUE, false}};
  command->by_text = resp_is(request, 0, "EVAL");
  if (!fake_read_keys(command, request)) {
    return false;
  }
  for (unsigned i = 0; i < sizeof scripts / sizeof scripts[0]; i++) {
    if (fake_is_script(request, scripts[i].script)) {
      command->verb = scripts[i].verb;
      command->notifies = scripts[i].script == RL_SCRIPT_RELEASE_ALL_NOTIFY;
      command->heals = scripts[i].heals;
    }
  }
  if (command->verb == FAKE_ENQUEUE) {
    return fake_read_enqueue_all(command, request);
  }
  command->ttl_ms = resp_number(request, 4 + command->count);
  return command->verb == FAKE_RELEASE
             ? request->count == 4 + command->count ||
                   (command->notifies && request->count == 5 + command->count &&
                    fake_read_word(command->entry, sizeof command->entry, request,
                                   4 + command->count))
             : command->verb != FAKE_OTHER && request->count == 5 + command->count &&
                   command->ttl_ms > 0;
}

static bool fake_read_native(fake_command *command, const resp_request *request) {
  bool delifeq = request->count == 3 && resp_is(request, 0, "DELIFEQ");
  bool delex = request->count == 4 && resp_is(request, 0, "DELEX") && resp_is(request, 2, "IFEQ");
  if (!delifeq && !delex) {
    return false;
  }
  resp_request pair = *request;
  pair.words[2] = request->words[request->count - 1];
  pair.lengths[2] = request->lengths[request->count - 1];
  command->verb = FAKE_RELEASE;
  command->native = delifeq ? RL_NATIVE_DELIFEQ : RL_NATIVE_DELEX;
  return fake_read_key(command, &pair, 1);
}

/* SET key token IFEQ token PX ttl */
static bool fake_read_set_if(fake_command *command, const resp_request *request) {
  command->verb = FAKE_EXTEND;
  command->native = RL_NATIVE_DELIFEQ;
  command->ttl_ms = resp_number(request, 6);
  return request->count == 7 && fake_read_key(command, request, 1) &&
         resp_is(request, 4, command->token) && resp_is(request, 5, "PX") && command->ttl_ms > 0;
}

/* Returns the script with a fencing token or a guard that the command names, or RL_SCRIPT_NONE. */
static rl_script fake_watched_script(const resp_request *request) {
  static const rl_script scripts[] = {RL_SCRIPT_TAKE, RL_SCRIPT_PROLONG, RL_SCRIPT_CONFIRM};
  for (unsigned i = 0; i < 3; i++) {
    if (fake_is_script(request, scripts[i])) {
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

/* Reads a release that keeps its keys: token, rest, number of keys, and in a queue an entry. */
static bool fake_read_hold(fake_command *command, const resp_request *request, bool notifies) {
  unsigned keys = (unsigned)resp_number(request, 2);
  unsigned at = 3 + keys;
  if (request->count != at + 3 + notifies || request->lengths[at] > FAKE_TOKEN_MAX) {
    return false;
  }
  command->verb = FAKE_RELEASE;
  command->by_text = resp_is(request, 0, "EVAL");
  command->notifies = notifies;
  command->keep_ms = resp_number(request, at + 1);
  command->count = (unsigned)resp_number(request, at + 2);
  command->fence = keys > command->count;
  (void)fake_read_token(command, request, at);
  if (command->keep_ms == 0 || command->count == 0 || command->count > FAKE_NAMES_MAX ||
      keys != command->count * (command->fence > 0 ? 2 : 1) ||
      (notifies && !fake_read_word(command->entry, sizeof command->entry, request, at + 3))) {
    return false;
  }
  return fake_read_names(command, request) &&
         (command->fence == 0 || fake_read_counters(command, request));
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
  bool takes = rl_script_takes(script);
  unsigned keys = (unsigned)resp_number(request, 2);
  unsigned at = 3 + keys;
  command->verb = takes ? FAKE_SET : script == RL_SCRIPT_PROLONG ? FAKE_EXTEND : FAKE_CONFIRM;
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
  (void)fake_read_token(command, request, at);
  if (command->count == 0 || command->count > FAKE_NAMES_MAX ||
      keys != command->count * (command->fence > 0 ? 2 : 1) + (command->guarded ? 1 : 0)) {
    return false;
  }
  return fake_read_names(command, request) && command->ttl_ms > 0 &&
         (command->fence == 0 || fake_read_counters(command, request));
}

static bool fake_read_handshake(fake_command *command, const resp_request *request) {
  size_t used = 0, flag = strlen(RL_COMMAND_WAIT);
  if (request->count == 2 && resp_is(request, 0, "EXISTS") && request->lengths[1] > flag &&
      memcmp(request->words[1] + request->lengths[1] - flag, RL_COMMAND_WAIT, flag) == 0) {
    resp_request base = *request;
    base.lengths[1] -= flag;
    command->verb = FAKE_FLAG;
    return fake_read_name(command, &base, 1);
  }
  command->verb = resp_is(request, 0, "AUTH")        ? FAKE_AUTH
                  : resp_is(request, 0, "SELECT")    ? FAKE_SELECT
                  : resp_is(request, 1, "SETINFO")   ? FAKE_SETINFO
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
  } else if (fake_is_script(&request, RL_SCRIPT_HOLD)) {
    known = fake_read_hold(command, &request, false);
  } else if (fake_is_script(&request, RL_SCRIPT_HOLD_NOTIFY)) {
    known = fake_read_hold(command, &request, true);
  } else if (resp_is(&request, 0, "SET") && resp_is(&request, 3, "IFEQ")) {
    known = fake_read_set_if(command, &request);
  } else if (resp_is(&request, 0, "DELIFEQ") || resp_is(&request, 0, "DELEX")) {
    known = fake_read_native(command, &request);
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
