/*
 * A simulated Redis for tests: keys with a token and an expiry, and the commands that we send.
 *
 * SPDX-License-Identifier: MIT
 */
#include "fake_store.h"

#include <stdio.h>
#include <string.h>

#include "rl_command.h"

typedef struct fake_argument {
  const char *bytes;
  size_t length;
} fake_argument;

/* ------------------------------------------------------------------------------------- parsing */

/* "<type><digits>\r\n". Returns its length, 0 when it is not complete, -1 when it is something else. */
static long fake_header(const char *bytes, size_t length, char type, size_t *number) {
  size_t at = 1;
  if (length == 0) {
    return 0;
  }
  if (bytes[0] != type) {
    return -1;
  }
  *number = 0;
  while (at < length && bytes[at] >= '0' && bytes[at] <= '9') {
    *number = *number * 10 + (size_t)(bytes[at++] - '0');
  }
  if (length - at < 2) {
    return 0;
  }
  return at > 1 && bytes[at] == '\r' && bytes[at + 1] == '\n' ? (long)at + 2 : -1;
}

static long fake_arguments(fake_argument *arguments, size_t *count, const char *bytes,
                           size_t length) {
  long header = fake_header(bytes, length, '*', count);
  size_t at = (size_t)header;
  if (header <= 0) {
    return header;
  }
  if (*count == 0 || *count > FAKE_ARGUMENTS_MAX) {
    return -1;
  }
  for (size_t i = 0; i < *count; i++) {
    header = fake_header(bytes + at, length - at, '$', &arguments[i].length);
    if (header <= 0) {
      return header;
    }
    at += (size_t)header;
    if (length - at < arguments[i].length + 2) {
      return 0;
    }
    arguments[i].bytes = bytes + at;
    at += arguments[i].length + 2;
    if (bytes[at - 2] != '\r' || bytes[at - 1] != '\n') {
      return -1;
    }
  }
  return (long)at;
}

static bool fake_is(const fake_argument *argument, const char *text) {
  return argument->length == strlen(text) && memcmp(argument->bytes, text, argument->length) == 0;
}

static bool fake_read_number(const fake_argument *argument, uint64_t *number) {
  *number = 0;
  for (size_t i = 0; i < argument->length; i++) {
    if (argument->bytes[i] < '0' || argument->bytes[i] > '9') {
      return false;
    }
    *number = *number * 10 + (uint64_t)(argument->bytes[i] - '0');
  }
  return argument->length > 0;
}

static bool fake_read_key(fake_command *command, const fake_argument *key,
                          const fake_argument *token) {
  if (key->length > FAKE_KEY_MAX || token->length != REDLOCK_TOKEN_LENGTH) {
    return false;
  }
  memcpy(command->key, key->bytes, key->length);
  command->key[key->length] = '\0';
  command->key_length = key->length;
  memcpy(command->token, token->bytes, token->length);
  command->token[token->length] = '\0';
  return true;
}

static bool fake_read_script(fake_command *command, const fake_argument *arguments, size_t count) {
  command->by_text = fake_is(&arguments[0], "EVAL");
  if (count < 5 || !fake_is(&arguments[2], "1") ||
      !fake_read_key(command, &arguments[3], &arguments[4])) {
    return false;
  }
  for (int i = 0; i < 2; i++) {
    rl_script script = i == 0 ? RL_SCRIPT_RELEASE : RL_SCRIPT_EXTEND;
    if (fake_is(&arguments[1], command->by_text ? rl_command_script_text(script)
                                                : rl_command_script_sha1(script))) {
      command->verb = script == RL_SCRIPT_RELEASE ? FAKE_RELEASE : FAKE_EXTEND;
    }
  }
  return command->verb == FAKE_RELEASE ? count == 5
                                       : command->verb == FAKE_EXTEND && count == 6 &&
                                             fake_read_number(&arguments[5], &command->ttl_ms);
}

static bool fake_read_handshake(fake_command *command, const fake_argument *arguments,
                                size_t count) {
  size_t used = 0;
  command->verb = fake_is(&arguments[0], "AUTH")     ? FAKE_AUTH
                  : fake_is(&arguments[0], "SELECT") ? FAKE_SELECT
                  : fake_is(&arguments[0], "CLIENT") ? FAKE_SETNAME
                                                     : FAKE_OTHER;
  for (size_t i = 0; i < count; i++) {
    if (used + arguments[i].length + 1 >= sizeof command->line) {
      return false;
    }
    if (i > 0) {
      command->line[used++] = ' ';
    }
    memcpy(command->line + used, arguments[i].bytes, arguments[i].length);
    used += arguments[i].length;
  }
  command->line[used] = '\0';
  return command->verb != FAKE_OTHER;
}

long fake_command_parse(fake_command *command, const char *bytes, size_t length) {
  fake_argument arguments[FAKE_ARGUMENTS_MAX];
  size_t count;
  bool known;
  long used = fake_arguments(arguments, &count, bytes, length);
  if (used <= 0) {
    return used;
  }
  command->verb = FAKE_OTHER;
  command->by_text = false;
  command->key_length = 0;
  command->key[0] = '\0';
  command->token[0] = '\0';
  command->line[0] = '\0';
  command->ttl_ms = 0;
  if (fake_is(&arguments[0], "SET")) {
    command->verb = FAKE_SET;
    known = count == 6 && fake_read_key(command, &arguments[1], &arguments[2]) &&
            fake_is(&arguments[3], "NX") && fake_is(&arguments[4], "PX") &&
            fake_read_number(&arguments[5], &command->ttl_ms) && command->ttl_ms > 0;
  } else if (fake_is(&arguments[0], "EVALSHA") || fake_is(&arguments[0], "EVAL")) {
    known = fake_read_script(command, arguments, count);
  } else {
    known = fake_read_handshake(command, arguments, count);
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

static void fake_run_script(fake_key *key, redlock_time now_us, const fake_command *command,
                            char reply[FAKE_REPLY_MAX]) {
  bool ours = key != NULL && strcmp(key->token, command->token) == 0;
  if (key != NULL && key->token[0] == '\0') {
    (void)snprintf(reply, FAKE_REPLY_MAX, "-WRONGTYPE Operation against a key\r\n");
    return;
  }
  (void)snprintf(reply, FAKE_REPLY_MAX, ours ? ":1\r\n" : ":0\r\n");
  if (ours && command->verb == FAKE_RELEASE) {
    key->length = 0;
  } else if (ours && key->expires_us < now_us + command->ttl_ms * REDLOCK_MILLISECONDS) {
    key->expires_us = now_us + command->ttl_ms * REDLOCK_MILLISECONDS;
  }
}

void fake_store_execute(fake_store *store, redlock_time now_us, const fake_command *command,
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
  } else if (command->verb == FAKE_RELEASE || command->verb == FAKE_EXTEND) {
    if (*forgot && !command->by_text) {
      (void)snprintf(reply, FAKE_REPLY_MAX, "-NOSCRIPT No matching script. Please use EVAL.\r\n");
      return;
    }
    *forgot = *forgot && !command->by_text;
    fake_run_script(key, now_us, command, reply);
  }
}
