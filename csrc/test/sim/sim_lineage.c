/*
 * The lineage record of a node, and the script of a guard that reads and makes it.
 *
 * SPDX-License-Identifier: MIT
 */
#include <stdlib.h>
#include <string.h>

#include "base/rl_sha1.h"
#include "sim_script.h"
#include "sim_trace.h"
#include "sim_watch.h"

/* Which past it has left as a replica: 0 for none. */
static void sim_watch_past(sim_node *node, unsigned past) {
  (void)snprintf(node->run_id + 41, sizeof node->run_id - 41, "%016x", past);
}

/* The data came from another server, or from a file: no seal is valid. */
static void sim_watch_unseal(sim_node *node) {
  for (unsigned i = 0; i < SIM_DATABASES_MAX * SIM_RECORDS_MAX; i++) {
    node->data.records[i / SIM_RECORDS_MAX][i % SIM_RECORDS_MAX].unsealed = true;
  }
}

void sim_watch_promote(sim *s, unsigned index) {
  sim_watch_past(&s->nodes[index], ++s->nodes[index].incarnation);
  sim_watch_unseal(&s->nodes[index]);
}

void sim_watch_restart(sim *s, unsigned index) {
  sim_node *node = &s->nodes[index];
  uint64_t state = s->seed * 1000003 + index * 1009 + node->incarnation++;
  for (unsigned i = 0; i < 2; i++) {
    state = (state ^ 0x9e3779b97f4a7c15u) * 0xbf58476d1ce4e5b9u;
    state ^= state >> 31;
    (void)snprintf(node->run_id + 16 * (size_t)i, sizeof node->run_id - 16 * (size_t)i, "%016llx",
                   (ull)state);
  }
  memcpy(node->run_id + 32, "deadbeef-", 10);
  sim_watch_past(node, 0);
  sim_watch_unseal(node);
  node->watches = 0;
  node->calling = 0;
  node->named_count = 0;
}

sim_record *sim_watch_record_at(sim_node *node, unsigned database, const char *key, size_t length,
                                bool makes) {
  for (unsigned i = 0; i < SIM_RECORDS_MAX; i++) {
    sim_record *record = &node->data.records[database][i];
    if (record->used && record->key_length == length && memcmp(record->key, key, length) == 0) {
      return record;
    }
  }
  for (unsigned i = 0; i < SIM_RECORDS_MAX && makes; i++) {
    sim_record *record = &node->data.records[database][i];
    if (!record->used && length <= sizeof record->key) {
      memcpy(record->key, key, length);
      record->key_length = (uint8_t)length;
      record->used = true;
      return record;
    }
  }
  return NULL;
}

const sim_record *sim_watch_record(const sim_node *node, unsigned database) {
  const sim_record *record = &node->data.records[database][0];
  return record->used ? record : NULL;
}

uint64_t sim_watch_born_us(const sim_record *record) {
  const char *space = memchr(record->text, ' ', record->length);
  return space == NULL ? 0 : strtoull(space + 1, NULL, 10);
}

static bool sim_watch_expected(const resp_request *command, const sim_record *record) {
  return command->lengths[7] == record->length &&
         memcmp(command->words[7], record->text, record->length) == 0;
}

static bool sim_watch_current(const sim_node *node, const sim_record *record) {
  return strncmp(record->text, node->run_id, strlen(node->run_id)) == 0 && !record->unsealed;
}

/* Why a record is to be made, or NULL. */
static const char *sim_watch_why(const sim_node *node, const sim_record *record,
                                 const resp_request *command, uint64_t now_us) {
  if (resp_is(command, 4, "ready")) {
    return "ready";
  }
  if (record == NULL) {
    return "empty";
  }
  if (!sim_watch_current(node, record)) {
    return "restart";
  }
  bool expected = resp_is(command, 4, "clock") && sim_watch_expected(command, record);
  return expected || sim_watch_born_us(record) > now_us + SIM_WATCH_SLACK_US ? "clock" : NULL;
}

/* Returns the fingerprint of the clients: the fourth word of a record, and the rest. */
static const char *sim_watch_fingerprint(const sim_record *record) {
  const char *at = record->text;
  for (unsigned word = 0; word < 3; word++) {
    const char *space = memchr(at, ' ', (size_t)(record->text + record->length - at));
    if (space == NULL) {
      return record->text + record->length;
    }
    at = space + 1;
  }
  return at;
}

/* Returns true if a restarted server has the record of clients with another fingerprint. */
static bool sim_watch_foreign(const sim_node *node, const sim_record *record,
                              const resp_request *command) {
  if (record == NULL || sim_watch_current(node, record)) {
    return false;
  }
  const char *whose = sim_watch_fingerprint(record);
  size_t length = (size_t)(record->text + record->length - whose);
  return length != command->lengths[5] || memcmp(whose, command->words[5], length) != 0;
}

/* Returns a record in another database than the client's, of any process. */
static const sim_record *sim_watch_elsewhere(sim_node *node, const sim_connection *from,
                                             const resp_request *command) {
  for (unsigned i = 0; i < SIM_DATABASES_MAX; i++) {
    const sim_record *record =
        sim_watch_record_at(node, i, command->words[3], command->lengths[3], false);
    if (i != from->database && record != NULL) {
      return record;
    }
  }
  return NULL;
}

static void sim_watch_answer(sim *s, int connection, const sim_request *request, const char *why,
                             const sim_record *record, const char *behind) {
  const sim_node *node = &s->nodes[s->connections[connection].node];
  char answer[SIM_RECORD_MAX + 160], reply[SIM_RECORD_MAX + 200];
  unsigned long long now_us = sim_watch_wall_us(s, s->connections[connection].node);
  const char *rest =
      record == NULL || why != NULL ? NULL : memchr(record->text, ' ', record->length);
  int length = snprintf(answer, sizeof answer, "%llu %s %s %s%.*s%s", now_us, node->run_id,
                        why != NULL ? why : "-", rest != NULL ? node->run_id : "",
                        rest != NULL ? (int)(record->text + record->length - rest) : 0,
                        rest != NULL ? rest : "", behind);
  (void)snprintf(reply, sizeof reply, "$%d\r\n%s\r\n", length, answer);
  sim_node_reply(s, connection, request, reply, SIM_OUTCOME_GRANTED);
}

static void sim_watch_counted(sim *s, const char *why) {
  sim_count(s, strcmp(why, "restart") == 0 ? SIM_RECORD_RESTART
               : strcmp(why, "empty") == 0 ? SIM_RECORD_EMPTY
                                           : SIM_RECORD_CLOCK);
}

/* Makes the record; false when that could not be. */
static bool sim_watch_make(sim *s, const sim_connection *from, const resp_request *command,
                           const char *why) {
  sim_node *node = &s->nodes[from->node];
  uint64_t now_us = sim_watch_wall_us(s, from->node), created_us = now_us;
  created_us -= strcmp(why, "ready") == 0 ? resp_number(command, 6) : 0;
  sim_record *record =
      sim_watch_record_at(node, from->database, command->words[3], command->lengths[3], true);
  int length = record == NULL
                   ? -1
                   : snprintf(record->text, sizeof record->text, "%s %llu %s %.*s", node->run_id,
                              (ull)created_us, why, (int)command->lengths[5], command->words[5]);
  if (length < 0 || (size_t)length >= sizeof record->text) {
    sim_violation(s, "wire", "a record that is too long, or one too many");
    return false;
  }
  record->length = (uint16_t)length;
  record->unsealed = false;
  rl_sha1(record->sha1, record->text, record->length);
  record->since_us = (int64_t)s->now_us;
  bool behind = node->wrong_clock && now_us < SIM_NODE_EPOCH_US + s->now_us;
  if (behind &&
      strcmp(why, "ready") != 0) { /* It will be set right, which would end the quarantine. */
    sim_violation(s, "guard", "a record is made on node %u, whose clock is wrong", from->node);
  }
  sim_watch_counted(s, why);
  SIM_TRACE(s, "node %u: a record is made: %s", from->node, why);
  sim_trace_fault(s, from->node, s->now_us, "record: %s", why);
  return true;
}

/*
 * A client measures the age of the record by its own clock from the first report on. The node's
 * clock may have been stepped forward before, and back since, unnoticed: the reported age counts.
 */
static void sim_watch_reported(const sim *s, unsigned index, sim_record *record) {
  int64_t shown_us = (int64_t)(sim_watch_wall_us(s, index) - sim_watch_born_us(record));
  int64_t since_us = (int64_t)s->now_us - (shown_us > 0 ? shown_us : 0);
  record->since_us = since_us < record->since_us ? since_us : record->since_us;
}

/* EVAL, script, 1, key, make, fingerprint, age, expected, database */
void sim_watch_guard(sim *s, int connection, const resp_request *command,
                     const sim_request *request) {
  const sim_connection *from = &s->connections[connection];
  sim_node *node = &s->nodes[from->node];
  /* A handshake asks behind its SELECT, which may have failed: it only checks. */
  bool astray = resp_number(command, 8) != (from->database == 0 ? 0 : SIM_DATABASE) &&
                !resp_is(command, 4, "look");
  if (!resp_is(command, 2, "1") || command->count != 9 || astray) {
    sim_violation(s, "wire", "a question about the record that the node does not understand");
    return;
  }
  sim_record *record =
      sim_watch_record_at(node, from->database, command->words[3], command->lengths[3], false);
  bool ready = resp_is(command, 4, "ready"), spoils = resp_is(command, 4, "spoil");
  if (spoils && record != NULL && sim_watch_expected(command, record)) {
    sim_count(s, SIM_RECORD_INVALIDATED);
    record->used = false;
    record = NULL;
  }
  if (!ready && sim_watch_foreign(node, record, command)) {
    sim_watch_answer(s, connection, request, NULL, record, "");
    return;
  }
  const char *why = sim_watch_why(node, record, command, sim_watch_wall_us(s, from->node));
  if (why != NULL && !resp_is(command, 4, "look") && !spoils) {
    const char *error = sim_node_refuses(s, from->node, SIM_COMMAND_SET, true);
    const sim_record *elsewhere = sim_watch_elsewhere(node, from, command);
    if (elsewhere != NULL) {
      sim_watch_answer(s, connection, request, NULL, elsewhere, " database=x");
      return;
    }
    if (error != NULL) {
      sim_node_reply(s, connection, request, error, SIM_OUTCOME_DECLINED);
      return;
    }
    if (!sim_watch_make(s, from, command, why)) {
      return;
    }
    record =
        sim_watch_record_at(node, from->database, command->words[3], command->lengths[3], false);
    why = NULL;
  }
  if (why == NULL) {
    sim_watch_reported(s, from->node, record);
  }
  sim_watch_answer(s, connection, request, why, record, "");
}
