/*
 * The part of a simulated Redis that the guard asks: who it is, and its record.
 *
 * SPDX-License-Identifier: MIT
 */
#include "fake_guard.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "rl_command.h"
#include "rl_sha1.h"

static bool fake_guard_copy(char *to, size_t size, const resp_request *request, unsigned index) {
  size_t length = request->lengths[index];
  if (index >= request->count || length >= size) {
    return false;
  }
  memcpy(to, request->words[index], length);
  to[length] = '\0';
  return true;
}

bool fake_guard_is(const resp_request *request) {
  return resp_is(request, 0, "EVAL") && resp_is(request, 1, rl_command_guard_text());
}

bool fake_guard_parse(fake_command *command, const resp_request *request) {
  command->verb = FAKE_GUARD;
  command->by_text = true;
  command->age_us = resp_number(request, 6);
  return request->count == 8 && resp_is(request, 2, "1") &&
         fake_guard_copy(command->key, sizeof command->key, request, 3) &&
         fake_guard_copy(command->make, sizeof command->make, request, 4) &&
         fake_guard_copy(command->fingerprint, sizeof command->fingerprint, request, 5) &&
         fake_guard_copy(command->record, sizeof command->record, request, 7);
}

/* Why the record is to be made, or NULL: as the script has it. */
static const char *fake_guard_why(const fake_store *store, uint64_t now_us,
                                  const fake_command *command) {
  size_t known = strlen(store->run_id);
  if (strcmp(command->make, "ready") == 0) {
    return "ready";
  }
  if (store->record[0] == '\0') {
    return "empty";
  }
  if (strncmp(store->record, store->run_id, known) != 0 || store->record[known] != ' ') {
    return "restart";
  }
  uint64_t born_us = strtoull(store->record + known, NULL, 10);
  bool asked = strcmp(command->make, "clock") == 0 && strcmp(store->record, command->record) == 0;
  return born_us > now_us + REDLOCK_SECONDS || asked ? "clock" : NULL;
}

void fake_guard_execute(fake_store *store, redlock_time now_us, const fake_command *command,
                        char reply[FAKE_REPLY_MAX]) {
  char answer[FAKE_REPLY_MAX - 16];
  uint64_t clock_us = now_us + store->ahead_us;
  const char *why = fake_guard_why(store, clock_us, command);
  if (why != NULL && strcmp(command->make, "look") != 0) {
    uint64_t born_us = clock_us - (strcmp(why, "ready") == 0 ? command->age_us : 0);
    (void)snprintf(store->record, sizeof store->record, "%s %llu %s %s", store->run_id,
                   (unsigned long long)born_us, why, command->fingerprint);
    why = NULL;
  }
  int length = snprintf(answer, sizeof answer, "%llu %s %s %s", (unsigned long long)clock_us,
                        store->run_id, why != NULL ? why : "-", why != NULL ? "" : store->record);
  (void)snprintf(reply, FAKE_REPLY_MAX, "$%d\r\n%s\r\n", length, answer);
}

bool fake_guard_takes(const resp_request *request) {
  const char *text = rl_command_script_text(RL_SCRIPT_TAKE);
  size_t length = strlen(text);
  bool by_text = resp_is(request, 0, "EVAL") && request->lengths[1] > length + 2 &&
                 memcmp(request->words[1], text, length) == 0 &&
                 memcmp(request->words[1] + length, "--", 2) == 0;
  bool by_name = resp_is(request, 0, "EVALSHA") && request->lengths[1] == RL_SHA1_LENGTH &&
                 request->count == 10 + resp_number(request, 2) &&
                 !resp_is(request, 1, rl_command_script_sha1(RL_SCRIPT_TAKE));
  return by_text || by_name;
}

/* The name of the script for this server. */
static void fake_guard_sha1(const fake_store *store, char sha1[RL_SHA1_LENGTH + 1]) {
  char text[4096];
  int length =
      snprintf(text, sizeof text, "%s--%s", rl_command_script_text(RL_SCRIPT_TAKE), store->run_id);
  rl_sha1(sha1, text, (size_t)length);
}

bool fake_guard_declines(fake_store *store, redlock_time now_us, const fake_command *command,
                         char reply[FAKE_REPLY_MAX]) {
  char sha1[RL_SHA1_LENGTH + 1];
  char answer[64];
  unsigned long long clock_us = now_us + store->ahead_us;
  fake_guard_sha1(store, sha1);
  if (!command->by_text && (!store->knows_take || strcmp(command->sha1, sha1) != 0)) {
    (void)snprintf(reply, FAKE_REPLY_MAX, "-NOSCRIPT No matching script. Please use EVAL.\r\n");
    return true;
  }
  bool named = command->run_id[0] != '\0' && strcmp(command->run_id, store->run_id) != 0;
  bool other = strcmp(command->record, store->record) != 0;
  store->knows_take = store->knows_take || !named;
  if (!other && named) {
    store->record[0] = '\0'; /* It names a server that is not here. */
  }
  if (other || named) {
    int length = snprintf(answer, sizeof answer, "other %llu 0", clock_us);
    (void)snprintf(reply, FAKE_REPLY_MAX, "$%d\r\n%s\r\n", length, answer);
    return true;
  }
  return false;
}

void fake_store_restart(fake_store *store, const char *run_id, bool lost) {
  (void)snprintf(store->run_id, sizeof store->run_id, "%s", run_id);
  store->knows_take = false;
  if (lost) {
    memset(store->keys, 0, sizeof store->keys);
    memset(store->counters, 0, sizeof store->counters);
    store->record[0] = '\0';
  }
}
