/*
 * The part of a simulated Redis that the guard uses: its run_id, and its lineage record.
 *
 * SPDX-License-Identifier: MIT
 */
#include "fake_guard.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/rl_sha1.h"
#include "wire/rl_command.h"

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
  return resp_is(request, 0, "EVAL") && resp_is(request, 1, rl_script_guard_text());
}

bool fake_guard_parse(fake_command *command, const resp_request *request) {
  command->verb = FAKE_GUARD;
  command->by_text = true;
  command->age_us = resp_number(request, 6);
  return request->count == 9 && resp_is(request, 2, "1") &&
         fake_guard_copy(command->key, sizeof command->key, request, 3) &&
         fake_guard_copy(command->make, sizeof command->make, request, 4) &&
         fake_guard_copy(command->fingerprint, sizeof command->fingerprint, request, 5) &&
         fake_guard_copy(command->record, sizeof command->record, request, 7);
}

/* Returns true if a record is of the process that runs. */
static bool fake_guard_own(const fake_store *store, const char *record) {
  size_t known = strlen(store->run_id);
  return strncmp(record, store->run_id, known) == 0 && record[known] == ' ' && !store->unsealed;
}

/* Returns true if that is the run_id of this server, or its replication history behind a "-". */
static bool fake_guard_is_server(const fake_store *store, const char *said) {
  const char *past = strchr(store->run_id, '-');
  return strcmp(said, said[0] == '-' && past != NULL ? past : store->run_id) == 0;
}

/* Returns true if the record is of another process and of clients with another fingerprint. */
static bool fake_guard_theirs(const fake_store *store, const fake_command *command) {
  const char *at = store->record;
  for (unsigned word = 0; word < 3 && at != NULL; word++) {
    at = strchr(at, ' ');
    at = at == NULL ? NULL : at + 1;
  }
  return at != NULL && !fake_guard_own(store, store->record) &&
         strcmp(at, command->fingerprint) != 0;
}

/* Why the record is to be made, or NULL: as the script has it. */
static const char *fake_guard_why(const fake_store *store, uint64_t now_us,
                                  const fake_command *command) {
  if (strcmp(command->make, "ready") == 0) {
    return "ready";
  }
  if (store->record[0] == '\0') {
    return "empty";
  }
  if (!fake_guard_own(store, store->record)) {
    return "restart";
  }
  uint64_t created_us = strtoull(store->record + strlen(store->run_id), NULL, 10);
  bool asked = strcmp(command->make, "clock") == 0 && strcmp(store->record, command->record) == 0;
  return created_us > now_us + REDLOCK_SECONDS || asked ? "clock" : NULL;
}

/*
 * Writes the answer: with |why| the record is still to be made, otherwise it is |record|, under
 * this process's run_id.
 */
static void fake_guard_answer(const fake_store *store, uint64_t clock_us, const char *why,
                              const char *record, const char *behind, char reply[FAKE_REPLY_MAX]) {
  char answer[FAKE_REPLY_MAX - 16];
  int length = why != NULL ? snprintf(answer, sizeof answer, "%llu %s %s ",
                                      (unsigned long long)clock_us, store->run_id, why)
                           : snprintf(answer, sizeof answer, "%llu %s - %s%s%s",
                                      (unsigned long long)clock_us, store->run_id, store->run_id,
                                      strchr(record, ' '), behind);
  (void)snprintf(reply, FAKE_REPLY_MAX, "$%d\r\n%s\r\n", length, answer);
}

void fake_guard_execute(fake_store *store, redlock_time now_us, const fake_command *command,
                        char reply[FAKE_REPLY_MAX]) {
  uint64_t clock_us = now_us + store->ahead_us;
  bool spoils = strcmp(command->make, "spoil") == 0;
  if (spoils && strcmp(store->record, command->record) == 0) {
    store->record[0] = '\0';
  }
  const char *why = fake_guard_why(store, clock_us, command);
  bool ready = strcmp(command->make, "ready") == 0;
  if (!ready && fake_guard_theirs(store, command)) {
    fake_guard_answer(store, clock_us, NULL, store->record, "", reply);
    return;
  }
  if (why != NULL && strcmp(command->make, "look") != 0 && !spoils) {
    if (store->elsewhere[0] != '\0') {
      fake_guard_answer(store, clock_us, NULL, store->elsewhere, " database=3", reply);
      return;
    }
    (void)snprintf(store->record, sizeof store->record, "%s %llu %s %s", store->run_id,
                   (unsigned long long)(clock_us - (ready ? command->age_us : 0)), why,
                   command->fingerprint);
    store->unsealed = false;
    why = NULL;
  }
  fake_guard_answer(store, clock_us, why, store->record, "", reply);
}

bool fake_guard_takes(const resp_request *request) {
  const char *text = rl_script_text(RL_SCRIPT_TAKE);
  size_t length = strlen(text);
  bool by_text = resp_is(request, 0, "EVAL") && request->lengths[1] > length + 2 &&
                 memcmp(request->words[1], text, length) == 0 &&
                 memcmp(request->words[1] + length, "--", 2) == 0;
  bool by_name = resp_is(request, 0, "EVALSHA") && request->lengths[1] == RL_SHA1_LENGTH &&
                 request->count == 10 + resp_number(request, 2) &&
                 !resp_is(request, 1, rl_script_sha1(RL_SCRIPT_TAKE));
  return by_text || by_name;
}

/* Returns true if that is the seal of the record, and no broken one. */
static bool fake_guard_sealed(const fake_store *store, const char *seal) {
  char sha1[RL_SHA1_LENGTH + 1];
  rl_sha1(sha1, store->record, strlen(store->record));
  return store->record[0] != '\0' && !store->unsealed && strlen(seal) == 16 + 12 &&
         memcmp(seal, "redlock:lineage ", 16) == 0 && memcmp(seal + 16, sha1, 12) == 0;
}

bool fake_guard_declines(fake_store *store, redlock_time now_us, const fake_command *command,
                         char reply[FAKE_REPLY_MAX]) {
  char answer[64];
  unsigned long long clock_us = now_us + store->ahead_us;
  if (command->by_text) {
    memcpy(store->take_sha1, command->sha1, sizeof store->take_sha1);
  } else if (strcmp(command->sha1, store->take_sha1) != 0) {
    (void)snprintf(reply, FAKE_REPLY_MAX, "-NOSCRIPT No matching script. Please use EVAL.\r\n");
    return true;
  }
  bool named = command->run_id[0] != '\0' && !fake_guard_is_server(store, command->run_id);
  bool other = !fake_guard_sealed(store, command->seal);
  if (other || named) {
    int length = snprintf(answer, sizeof answer, "other %llu 0", clock_us);
    (void)snprintf(reply, FAKE_REPLY_MAX, "$%d\r\n%s\r\n", length, answer);
    return true;
  }
  return false;
}

void fake_store_restart(fake_store *store, const char *run_id, bool lost) {
  (void)snprintf(store->run_id, sizeof store->run_id, "%s", run_id);
  store->take_sha1[0] = '\0';
  store->unsealed = true;
  if (lost) {
    fake_store_flush(store);
  }
}

void fake_store_flush(fake_store *store) {
  memset(store->keys, 0, sizeof store->keys);
  memset(store->counters, 0, sizeof store->counters);
  memset(store->queues, 0, sizeof store->queues);
  store->record[0] = '\0';
}
