/*
 * Queues of waiters on a node, and notifications: the effect of their scripts.
 *
 * SPDX-License-Identifier: MIT
 *
 * A queue is a string beside the key. It disappears when it is empty, and a minute after its last
 * use. A node counts a subscriber until it notices that the connection has ended.
 */
#include "sim_calls.h"

#include <string.h>

#include "check.h"
#include "sim_key.h"
#include "sim_publish.h"
#include "sim_script.h"
#include "sim_trace.h"
#include "wait_queue.h"

#define SIM_CALLS_LIFE_MS 60000

/* ------------------------------------------------------------------------------- what is asked */

/* The scripts, and what they are for an observer. */
static const struct {
  rl_script script;
  sim_command_kind kind;
} sim_calls_scripts[] = {{RL_SCRIPT_RELEASE_NOTIFY, SIM_COMMAND_RELEASE},
                         {RL_SCRIPT_RELEASE_ALL_NOTIFY, SIM_COMMAND_RELEASE},
                         {RL_SCRIPT_ENQUEUE, SIM_COMMAND_ENQUEUE},
                         {RL_SCRIPT_ENQUEUE_LABEL, SIM_COMMAND_ENQUEUE},
                         {RL_SCRIPT_ENQUEUE_ALL, SIM_COMMAND_ENQUEUE},
                         {RL_SCRIPT_ENQUEUE_SLOTS, SIM_COMMAND_ENQUEUE},
                         {RL_SCRIPT_DEQUEUE, SIM_COMMAND_DEQUEUE},
                         {RL_SCRIPT_DEQUEUE_SLOTS, SIM_COMMAND_DEQUEUE},
                         {RL_SCRIPT_SLOTS, SIM_COMMAND_SLOTS}};

/* Returns the script that EVAL or EVALSHA names, and its kind; or RL_SCRIPT_NONE. */
static rl_script sim_calls_script(const resp_request *command, sim_command_kind *kind) {
  for (size_t i = 0; i < sizeof sim_calls_scripts / sizeof sim_calls_scripts[0]; i++) {
    if (sim_script_is(command, sim_calls_scripts[i].script)) {
      *kind = sim_calls_scripts[i].kind;
      return sim_calls_scripts[i].script;
    }
  }
  return RL_SCRIPT_NONE;
}

sim_command_kind sim_calls_kind(sim *s, const resp_request *command) {
  sim_command_kind kind = SIM_COMMAND_UNKNOWN;
  if (s->config.permits > 0 && command->count == 5 && sim_script_is(command, RL_SCRIPT_SLOTS)) {
    return SIM_COMMAND_SLOTS;
  }
  if (!s->config.notifications) {
    return SIM_COMMAND_UNKNOWN;
  }
  if (command->count == 3 && resp_is(command, 0, "PUBLISH")) {
    return SIM_COMMAND_PROBE;
  }
  bool script = command->count >= 5 && command->count <= 8 &&
                (resp_is(command, 0, "EVAL") || resp_is(command, 0, "EVALSHA"));
  if (script) {
    (void)sim_calls_script(command, &kind);
  }
  return kind;
}

static bool sim_calls_is_semaphore(const resp_request *command) {
  return resp_equals(command, 3, SIM_SEMAPHORE, sizeof SIM_SEMAPHORE - 1);
}

/* EVALSHA or EVAL, script, 1, key, permits: which slots exist. */
static void sim_calls_slots(sim *s, int connection, const resp_request *command,
                            const sim_request *request) {
  const sim_connection *from = &s->connections[connection];
  char reply[32];
  unsigned digit = 0;
  if (!sim_calls_is_semaphore(command) || resp_number(command, 4) != s->config.permits) {
    sim_violation(s, "wire", "a question about slots that the node does not understand");
    return;
  }
  for (unsigned i = 0; i < 4; i++) {
    const sim_key *key =
        i < s->config.permits ? sim_key_find(s, from->node, from->database, i) : NULL;
    digit = digit * 2 + (key != NULL && !key->foreign_type);
  }
  (void)snprintf(reply, sizeof reply, "$1\r\n%x\r\n", digit);
  sim_node_reply(s, connection, request, reply, SIM_OUTCOME_GRANTED);
}

unsigned sim_calls_resource(const sim *s, const resp_request *command) {
  bool several = command->count == 8 && resp_is(command, 2, "2");
  bool understood = s->config.notifications && command->count >= 5 &&
                    (several || resp_is(command, 2, "1")) &&
                    command->lengths[several ? 5 : 4] == SIM_ENTRY_LENGTH;
  return !understood                       ? SIM_RESOURCES_MAX
         : sim_calls_is_semaphore(command) ? 0
                                           : sim_script_resource(command, 3);
}

uint32_t sim_calls_ticket(const resp_request *command) {
  return sim_calls_place(command->words[command->count == 8 ? 5 : 4]);
}

uint32_t sim_calls_place(const char *entry) {
  uint32_t place = 0;
  for (unsigned i = SIM_CHANNEL_LENGTH; i < SIM_ENTRY_LENGTH; i++) {
    place = place << 4 | (uint32_t)(entry[i] <= '9' ? entry[i] - '0' : entry[i] - 'a' + 10);
  }
  return place;
}

bool sim_calls_leaves(const resp_request *command, uint32_t *place) {
  bool several = sim_script_is(command, RL_SCRIPT_RELEASE_ALL_NOTIFY);
  unsigned at = several ? 6 : 5;
  if ((!several && !sim_script_is(command, RL_SCRIPT_RELEASE_NOTIFY)) || command->count != at + 1 ||
      command->lengths[at] != SIM_ENTRY_LENGTH) {
    return false;
  }
  *place = sim_calls_place(command->words[at]);
  return true;
}

/* ------------------------------------------------------------------------------------ queues */

sim_waiters *sim_calls_waiters(sim *s, unsigned node, unsigned database, unsigned resource) {
  sim_waiters *waiters = &s->nodes[node].data.waiters[database][resource];
  if (waiters->expire_ms != 0 && sim_key_wall_ms(s, node) > waiters->expire_ms) {
    sim_count(s, SIM_QUEUE_EXPIRED);
    waiters->count = 0;
  }
  waiters->expire_ms = waiters->count == 0 ? 0 : waiters->expire_ms;
  return waiters;
}

void sim_calls_lose(sim *s, unsigned node) {
  memset(s->nodes[node].data.waiters, 0, sizeof s->nodes[node].data.waiters);
}

/* Publishes a notification of |entry|. */
static unsigned sim_calls_tell(sim *s, unsigned node, unsigned resource, const char *entry) {
  char message[128];
  size_t length;
  const char *key =
      s->config.permits > 0 ? sim_slot(resource, &length) : sim_resource(resource, &length);
  memcpy(message, entry + SIM_CHANNEL_LENGTH, SIM_ENTRY_LENGTH - SIM_CHANNEL_LENGTH);
  memcpy(message + SIM_ENTRY_LENGTH - SIM_CHANNEL_LENGTH, key, length);
  unsigned heard =
      sim_publish(s, node, entry, message, SIM_ENTRY_LENGTH - SIM_CHANNEL_LENGTH + length);
  SIM_TRACE(s, "node %u: calls place %x of %u: %u hear it", node, sim_calls_place(entry), resource,
            heard);
  sim_count(s, heard > 0 ? SIM_NOTIFIED : SIM_NOTIFIED_DISCONNECTED);
  return heard;
}

/* The queue of a resource on a node, for csrc/test/lib/wait_queue.h. */
typedef struct sim_calls_queue {
  wait_queue model;
  sim *s;
  unsigned node, resource;
  sim_waiters *waiters;
} sim_calls_queue;

static int sim_calls_notify(void *context, const char *entry) {
  const sim_calls_queue *queue = context;
  return sim_publish_is_denied(queue->s, queue->node, SIM_DEAF_PUBLISH)
             ? -1
             : (int)sim_calls_tell(queue->s, queue->node, queue->resource, entry);
}

/* Fills |queue|; sim_calls_close() stores what has become of it. */
static sim_waiters *sim_calls_open(sim_calls_queue *queue, sim *s, const sim_connection *from,
                                   unsigned resource) {
  sim_waiters *waiters =
      sim_calls_waiters(s, from->node, from->database, s->config.permits > 0 ? 0 : resource);
  wait_queue model = {waiters->entries,
                      waiters->count,
                      s->config.waiters_max,
                      false,
                      sim_calls_notify,
                      queue,
                      NULL};
  model.reserved_for =
      sim_key_wall_ms(s, from->node) <= waiters->reserved_until_ms ? waiters->reserved_for : NULL;
  *queue = (sim_calls_queue){model, s, from->node, resource, waiters};
  return waiters;
}

static void sim_calls_close(const sim_calls_queue *queue) {
  queue->waiters->count = (uint8_t)queue->model.count;
  queue->waiters->expire_ms = queue->model.count == 0 ? 0 : queue->waiters->expire_ms;
}

/* Sets the waiters flag. */
static void sim_calls_sign(sim *s, unsigned node, sim_waiters *waiters) {
  waiters->sign_ms = sim_key_wall_ms(s, node) + SIM_CALLS_LIFE_MS;
}

static bool sim_calls_is_full(const sim *s, unsigned node) {
  return s->nodes[node].error == SIM_NODE_ERROR_OOM && s->now_us < s->nodes[node].error_until_us;
}

/*
 * Stores the rest of a queue that had |before| entries, or gives it up without memory. A script
 * that has deleted something may write.
 */
static void sim_calls_store(sim *s, unsigned node, sim_waiters *waiters, unsigned before,
                            bool full) {
  if (waiters->count == 0) {
    waiters->sign_ms = before > 0 ? 0 : waiters->sign_ms;
  } else if (waiters->count != before && full) {
    SIM_TRACE(s, "node %u: a queue that there is no memory for is given up", node);
    waiters->count = 0;
    waiters->expire_ms = 0;
  } else if (waiters->count != before) {
    waiters->expire_ms = sim_key_wall_ms(s, node) + SIM_CALLS_LIFE_MS;
  }
}

/* The key is deleted with the waiters flag. Notifies the first entry if the flag was set. */
static wait_queue_notified sim_calls_by_sign(sim *s, const sim_connection *from,
                                             unsigned resource) {
  sim_calls_queue queue;
  sim_waiters *waiters = sim_calls_open(&queue, s, from, resource);
  if (sim_publish_is_denied(s, from->node, SIM_DEAF_QUEUE)) {
    return WAIT_QUEUE_FORBIDDEN;
  }
  bool sign = waiters->sign_ms != 0 && sim_key_wall_ms(s, from->node) <= waiters->sign_ms;
  waiters->sign_ms = 0;
  if (!sign) {
    sim_count(s, SIM_NO_FLAG);
    return WAIT_QUEUE_EMPTY;
  }
  unsigned before = waiters->count;
  wait_queue_notified said = wait_queue_notify_first(&queue.model);
  sim_calls_close(&queue);
  sim_calls_store(s, from->node, waiters, before, false);
  if (waiters->count > 0) {
    sim_calls_sign(s, from->node, waiters);
  }
  return said;
}

/* Dequeues the lease, and notifies the first entry if the key is |free| or was |deleted|. */
static wait_queue_notified sim_calls_by_queue(sim *s, const sim_connection *from, unsigned resource,
                                              const char *entry, bool free, bool deleted) {
  sim_calls_queue queue;
  sim_waiters *waiters = sim_calls_open(&queue, s, from, resource);
  unsigned before = waiters->count;
  bool full = !deleted && sim_calls_is_full(s, from->node);
  if (sim_publish_is_denied(s, from->node, SIM_DEAF_QUEUE)) {
    return WAIT_QUEUE_FORBIDDEN;
  }
  if (entry != NULL) {
    while (wait_queue_remove(&queue.model, entry)) {
    }
  }
  wait_queue_notified said = free ? wait_queue_notify_first(&queue.model) : WAIT_QUEUE_EMPTY;
  sim_calls_close(&queue);
  sim_calls_store(s, from->node, waiters, before, full);
  if (entry != NULL && waiters->count > 0 && entry[19] == '0' && !full) {
    sim_calls_sign(s, from->node, waiters);
  }
  return said;
}

wait_queue_notified sim_calls_held(sim *s, const sim_connection *from, unsigned resource,
                                   const char *entry, bool tells, bool wrote) {
  sim_calls_queue queue;
  sim_waiters *waiters = sim_calls_open(&queue, s, from, resource);
  unsigned before = waiters->count;
  if (sim_publish_is_denied(s, from->node, SIM_DEAF_QUEUE)) {
    return WAIT_QUEUE_FORBIDDEN;
  }
  if (entry != NULL) {
    (void)wait_queue_remove(&queue.model, entry);
  }
  wait_queue_notified said = tells ? wait_queue_notify_first(&queue.model) : WAIT_QUEUE_EMPTY;
  sim_calls_close(&queue);
  sim_calls_store(s, from->node, waiters, before, !wrote && sim_calls_is_full(s, from->node));
  return said;
}

/* ---------------------------------------------------------------------------------- the scripts */

static bool sim_calls_is_ours(const sim_key *key, const resp_request *command, unsigned token) {
  return key != NULL && !key->foreign_type && sim_key_is(key, command, token);
}

static void sim_calls_delete(sim *s, const sim_connection *from, sim_key *key,
                             const sim_request *request, unsigned resource) {
  check_touched(s, from, key, request->token, SIM_COMMAND_RELEASE);
  key->used = false;
  sim_key_deleted(s, from->node, resource, key->token);
  if (request->forced) {
    sim_key_forced(s, from->node, key->token);
  }
}

static const char sim_calls_wrong_type[] =
    "-WRONGTYPE Operation against a key holding the wrong kind of value\r\n";

static void sim_calls_released(sim *s, int connection, const sim_request *request, bool granted,
                               wait_queue_notified said) {
  char reply[8] = ":0\r\n";
  if (granted) {
    (void)snprintf(reply, sizeof reply, ":%u\r\n", (unsigned)said);
  }
  if (granted && said == WAIT_QUEUE_FORBIDDEN) {
    sim_count(s, SIM_RELEASE_SILENT);
  }
  sim_count(s, granted ? SIM_SCRIPT_GRANTED : SIM_SCRIPT_REFUSED);
  sim_node_reply(s, connection, request, reply,
                 granted ? SIM_OUTCOME_GRANTED : SIM_OUTCOME_REFUSED);
}

/* EVALSHA or EVAL, script, 1, key, token[, entry] */
static void sim_calls_release(sim *s, int connection, const resp_request *command,
                              const sim_request *request) {
  const sim_connection *from = &s->connections[connection];
  unsigned resource = sim_script_resource(command, 3);
  bool leaves = command->count == 6;
  bool based = command->count == 7 && resp_is(command, 5, "") && resp_is(command, 6, SIM_SEMAPHORE);
  if (resource == SIM_RESOURCES_MAX || !resp_is(command, 2, "1") ||
      based != (s->config.permits > 0) ||
      !sim_tap_is_token(command->words[4], command->lengths[4]) ||
      (leaves && command->lengths[5] != SIM_ENTRY_LENGTH)) {
    sim_violation(s, "wire", "a release that calls, which the node does not understand");
    return;
  }
  sim_key *key = sim_key_find(s, from->node, from->database, resource);
  if (key != NULL && key->foreign_type) {
    sim_count(s, SIM_SCRIPT_WRONG_TYPE);
    sim_node_reply(s, connection, request, sim_calls_wrong_type, SIM_OUTCOME_REFUSED);
    return;
  }
  bool ours = sim_calls_is_ours(key, command, 4);
  wait_queue_notified said = WAIT_QUEUE_EMPTY;
  if (ours) {
    sim_calls_delete(s, from, key, request, resource);
  }
  if (ours && !leaves) {
    said = sim_calls_by_sign(s, from, resource);
  } else if (leaves || key == NULL) {
    said = sim_calls_by_queue(s, from, resource, leaves ? command->words[5] : NULL,
                              key == NULL || ours, ours);
  }
  SIM_TRACE(s, "node %u: release of %u by token %u%s: %s%s%s", from->node, resource, request->token,
            leaves ? ", which leaves the queue" : "", ours ? "1" : "0",
            said == WAIT_QUEUE_NOTIFIED ? ", calls" : "",
            from->client_open ? "" : " (on a connection that was given up)");
  sim_calls_released(s, connection, request, ours, said);
}

/* EVALSHA or EVAL, script, 2, key, key, token[, entry] */
static void sim_calls_release_all(sim *s, int connection, const resp_request *command,
                                  const sim_request *request) {
  const sim_connection *from = &s->connections[connection];
  wait_queue_notified said = WAIT_QUEUE_EMPTY;
  unsigned ours = 0;
  bool leaves = command->count == 7;
  bool wrong = false, understood = resp_is(command, 2, "2") && (command->count == 6 || leaves) &&
                                   sim_tap_is_token(command->words[5], command->lengths[5]) &&
                                   (!leaves || command->lengths[6] == SIM_ENTRY_LENGTH);
  for (unsigned i = 0; i < 2 && understood; i++) {
    understood = sim_script_resource(command, 3 + i) != SIM_RESOURCES_MAX;
  }
  for (unsigned i = 0; i < 2 && understood; i++) {
    unsigned resource = sim_script_resource(command, 3 + i);
    sim_key *key = sim_key_find(s, from->node, from->database, resource);
    wrong = wrong || (key != NULL && key->foreign_type);
    if (sim_calls_is_ours(key, command, 5)) {
      ours++;
      sim_calls_delete(s, from, key, request, resource);
      if (!leaves) {
        wait_queue_notified one = sim_calls_by_sign(s, from, resource);
        said = one != WAIT_QUEUE_EMPTY ? one : said;
      }
    }
    bool deleted = key != NULL && !key->used;
    if (leaves && (key == NULL || !key->foreign_type)) {
      wait_queue_notified one =
          sim_calls_by_queue(s, from, resource, command->words[6], key == NULL || deleted, deleted);
      said = one != WAIT_QUEUE_EMPTY ? one : said;
    }
  }
  if (!understood) {
    sim_violation(s, "wire", "a release of several keys that the node does not understand");
    return;
  }
  sim_count(s, ours == 2 ? SIM_SEVERAL_GRANTED : SIM_SEVERAL_REFUSED);
  if (wrong) {
    sim_node_reply(s, connection, request, sim_calls_wrong_type, SIM_OUTCOME_REFUSED);
  } else {
    sim_calls_released(s, connection, request, ours == 2, said);
  }
}

/* Prolongs the queue and its flag. Both disappear with the last entry. */
static void sim_calls_live(sim *s, unsigned node, sim_waiters *waiters) {
  uint64_t ends_ms = sim_key_wall_ms(s, node) + SIM_CALLS_LIFE_MS;
  waiters->expire_ms = waiters->count > 0 ? ends_ms : 0;
  waiters->sign_ms = waiters->count > 0 ? ends_ms : 0;
}

/*
 * Returns the answer of ENQUEUE; -1 if it is forbidden, or there is no memory for it. A script that
 * finds no memory has changed nothing but the entries that it removed.
 */
/*
 * Returns a key that keeps a waiter out: that of the resource, or of the slot of a semaphore that
 * expires first, if no slot is free. Otherwise NULL, and |*resource| is free.
 */
static const sim_key *sim_calls_holder(sim *s, const sim_connection *from, unsigned *resource) {
  const sim_key *first = sim_key_find(s, from->node, from->database, *resource);
  for (unsigned i = 0; i < s->config.permits; i++) {
    const sim_key *key = sim_key_find(s, from->node, from->database, i);
    if (key == NULL) {
      *resource = i;
      return NULL;
    }
    first = i == 0 || key->expire_ms < first->expire_ms ? key : first;
  }
  return first;
}

static int64_t sim_calls_enqueue(sim *s, const sim_connection *from, unsigned resource,
                                 const char *entry, uint64_t mode, sim_request *request) {
  sim_calls_queue queue;
  const sim_key *key = sim_calls_holder(s, from, &resource);
  sim_waiters *waiters = sim_calls_open(&queue, s, from, resource);
  bool full = sim_calls_is_full(s, from->node), appends = mode == RL_COMMAND_ENQUEUE_APPEND;
  unsigned before = waiters->count;
  if (full && (appends || key != NULL)) {
    return -1;
  }
  queue.model.max = full ? 0 : queue.model.max;
  int64_t answer =
      wait_queue_enqueue(&queue.model, entry, (unsigned)mode,
                         key == NULL ? 0 : key->expire_ms - sim_key_wall_ms(s, from->node) + 2);
  sim_calls_close(&queue);
  if (queue.model.evicted) {
    sim_count(s, SIM_EVICTED);
  }
  if (appends && before > 0 && answer / RL_COMMAND_ENQUEUE_UNIT == 1 && waiters->count > before) {
    sim_count(s, SIM_ENQUEUE_JOINED);
    return answer;
  }
  bool writes = answer != 0 || appends || waiters->count != before;
  if (answer < 0 || (full && writes && waiters->count > 0)) {
    return -1;
  }
  if (writes) {
    sim_calls_live(s, from->node, waiters);
  }
  request->full = answer != 0 && answer % RL_COMMAND_ENQUEUE_UNIT == 0;
  if (request->full) {
    sim_count(s, SIM_QUEUE_FULL);
  }
  return answer;
}

/* Writes the answer with the label of the holder. Returns false if there is none. */
static bool sim_calls_label(sim *s, const sim_connection *from, unsigned resource, int64_t answer,
                            char *reply, size_t size) {
  const sim_key *key = sim_key_find(s, from->node, from->database, resource);
  char text[160];
  if (answer < 2 * RL_COMMAND_ENQUEUE_UNIT || key == NULL || key->foreign_type ||
      key->value_length <= REDLOCK_TOKEN_LENGTH + 1) {
    return false;
  }
  int length =
      snprintf(text, sizeof text, "%lld%.*s", (long long)answer,
               (int)key->value_length - REDLOCK_TOKEN_LENGTH, key->value + REDLOCK_TOKEN_LENGTH);
  (void)snprintf(reply, size, "$%d\r\n%s\r\n", length, text);
  return true;
}

/* EVALSHA or EVAL, script, 1, key, entry, mode */
static void sim_calls_stand(sim *s, int connection, const resp_request *command,
                            sim_request *request) {
  const sim_connection *from = &s->connections[connection];
  const char *entry = command->words[4];
  unsigned resource = sim_calls_resource(s, command);
  char reply[256];
  uint64_t mode =
      resp_number(command, 5); /* 0: new; 1: it may be there; else the position of before */
  if (resource == SIM_RESOURCES_MAX || command->count != (s->config.permits > 0 ? 7 : 6) ||
      mode > RL_COMMAND_ENQUEUE_APPEND) {
    sim_violation(s, "wire", "a STAND that the node does not understand");
    return;
  }
  bool denied = sim_publish_is_denied(s, from->node, SIM_DEAF_QUEUE);
  bool full = sim_calls_is_full(s, from->node);
  int64_t answer = denied ? -1 : sim_calls_enqueue(s, from, resource, entry, mode, request);
  if (answer < 0) {
    sim_count(s, SIM_ENQUEUE_DENIED);
    sim_node_reply(s, connection, request,
                   full && !denied ? "-OOM command not allowed when used memory > "
                                     "'maxmemory'.\r\n"
                                   : SIM_CALLS_NOPERM,
                   SIM_OUTCOME_ERROR);
    return;
  }
  sim_count(s, answer == 0                        ? SIM_ENQUEUE_FREE
               : answer < RL_COMMAND_ENQUEUE_UNIT ? SIM_ENQUEUE_BEHIND
                                                  : SIM_ENQUEUE_HELD);
  SIM_TRACE(s, "node %u: place %x of client %u stands for %u: %lld", from->node,
            sim_calls_place(entry), from->client, resource, (long long)answer);
  if (!sim_script_is(command, RL_SCRIPT_ENQUEUE_LABEL) ||
      !sim_calls_label(s, from, resource, answer, reply, sizeof reply)) {
    (void)snprintf(reply, sizeof reply, ":%lld\r\n", (long long)answer);
  }
  sim_node_reply(s, connection, request, reply, SIM_OUTCOME_GRANTED);
}

/* Reserves the free key for the entry. */
static void sim_calls_reserve(sim *s, unsigned node, sim_waiters *waiters, const char *entry) {
  memcpy(waiters->reserved_for, entry, SIM_ENTRY_LENGTH);
  waiters->reserved_until_ms = sim_key_wall_ms(s, node) + RL_COMMAND_RESERVE_MS;
  sim_count(s, SIM_RESERVED);
}

/* The next waiter takes the key that the node must reserve: only as a breach. */
static void sim_calls_reserve_nothing(wait_queue_key *keys, char *places) {
  for (unsigned i = 0; i < 2; i++) {
    wait_queue *queue = keys[i].queue;
    if (keys[i].reserves && queue->count > 1) {
      (void)queue->notify(queue->context, queue->entries[1]);
    }
    keys[i].reserves = false;
  }
  if (places[0] != '\0') {
    places[0] = '0';
  }
}

/* EVALSHA or EVAL, script, 2, key, key, entry, before, notified */
static void sim_calls_stand_all(sim *s, int connection, const resp_request *command,
                                sim_request *request) {
  const sim_connection *from = &s->connections[connection];
  sim_calls_queue queues[2];
  wait_queue_key keys[2];
  sim_waiters *waiters[2];
  char places[64] = "", text[160], reply[200];
  unsigned mask = 0, before[2] = {0, 0};
  char notified[3] = "";
  if (sim_calls_resource(s, command) == SIM_RESOURCES_MAX || command->count != 8 ||
      command->lengths[6] >= sizeof places || command->lengths[7] >= sizeof notified) {
    sim_violation(s, "wire", "a STAND for several keys that the node does not understand");
    return;
  }
  if (sim_publish_is_denied(s, from->node, SIM_DEAF_QUEUE) || sim_calls_is_full(s, from->node)) {
    sim_count(s, SIM_ENQUEUE_DENIED);
    sim_node_reply(s, connection, request, SIM_CALLS_NOPERM, SIM_OUTCOME_ERROR);
    return;
  }
  memcpy(text, command->words[6], command->lengths[6]);
  text[command->lengths[6]] = '\0';
  memcpy(notified, command->words[7], command->lengths[7]);
  (void)sscanf(text, "%u,%u,%u", &mask, &before[0], &before[1]);
  for (unsigned i = 0; i < 2; i++) {
    unsigned resource = sim_script_resource(command, 3 + i);
    const sim_key *key = sim_key_find(s, from->node, from->database, resource);
    waiters[i] = sim_calls_open(&queues[i], s, from, resource);
    keys[i] = (wait_queue_key){
        .queue = &queues[i].model,
        .left = key == NULL ? 0 : key->expire_ms - sim_key_wall_ms(s, from->node) + 2,
        .before = before[i]};
  }
  int64_t answer =
      wait_queue_enqueue_all(keys, 2, command->words[5], notified, places, sizeof places);
  if (s->breach == SIM_BREACH_KEY_NOT_RESERVED) {
    sim_calls_reserve_nothing(keys, places);
  }
  for (unsigned i = 0; i < 2; i++) {
    sim_calls_close(&queues[i]);
    sim_calls_live(s, from->node, waiters[i]);
    if (keys[i].reserves) {
      sim_calls_reserve(s, from->node, waiters[i], command->words[5]);
    }
  }
  if (answer < 0) {
    sim_node_reply(s, connection, request, SIM_CALLS_NOPERM, SIM_OUTCOME_ERROR);
    return;
  }
  request->full = places[0] == '\0';
  sim_count_if(s, request->full, SIM_QUEUE_FULL);
  int length = snprintf(text, sizeof text, "%lld:%s", (long long)answer, places);
  if (answer == 0 || places[0] == '\0') {
    (void)snprintf(reply, sizeof reply, ":%lld\r\n", (long long)answer);
  } else {
    (void)snprintf(reply, sizeof reply, "$%d\r\n%s\r\n", length, text);
  }
  SIM_TRACE(s, "node %u: place %x of client %u stands for both: %s", from->node,
            sim_calls_place(command->words[5]), from->client, text);
  sim_count(s, answer == 0 ? SIM_ENQUEUE_ALL_FREE : SIM_ENQUEUE_ALL);
  sim_node_reply(s, connection, request, reply, SIM_OUTCOME_GRANTED);
}

/* EVALSHA or EVAL, script, 1, key, entry */
static void sim_calls_leave(sim *s, int connection, const resp_request *command,
                            const sim_request *request) {
  const sim_connection *from = &s->connections[connection];
  unsigned resource = sim_calls_resource(s, command);
  bool slots = sim_script_is(command, RL_SCRIPT_DEQUEUE_SLOTS);
  if (resource == SIM_RESOURCES_MAX || command->count != (slots ? 6 : 5)) {
    sim_violation(s, "wire", "a LEAVE that the node does not understand");
    return;
  }
  if (sim_publish_is_denied(s, from->node, SIM_DEAF_QUEUE)) {
    sim_node_reply(s, connection, request, SIM_CALLS_NOPERM, SIM_OUTCOME_ERROR);
    return;
  }
  if (s->config.permits > 0 && !sim_calls_is_semaphore(command)) { /* A slot has no queue. */
    sim_node_reply(s, connection, request, ":0\r\n", SIM_OUTCOME_GRANTED);
    return;
  }
  sim_calls_queue queue;
  bool held = sim_calls_holder(s, from, &resource) != NULL;
  sim_waiters *waiters = sim_calls_open(&queue, s, from, resource);
  unsigned before = waiters->count;
  unsigned count = 0;
  while (wait_queue_remove(&queue.model, command->words[4])) {
    count++;
  }
  /* The semaphore's name is no key, so DEQUEUE takes it for free. */
  bool called = (!held || (s->config.permits > 0 && !slots)) &&
                wait_queue_notify_first(&queue.model) == WAIT_QUEUE_NOTIFIED;
  sim_calls_close(&queue);
  sim_calls_store(s, from->node, waiters, before, sim_calls_is_full(s, from->node));
  sim_count(s, called ? SIM_DEQUEUED_AND_NOTIFIED : SIM_DEQUEUED);
  SIM_TRACE(s, "node %u: place %x of client %u leaves the queue of %u: %u", from->node,
            sim_calls_place(command->words[4]), from->client, resource, count);
  sim_node_reply(s, connection, request, count > 0 ? ":1\r\n" : ":0\r\n", SIM_OUTCOME_GRANTED);
}

/* PUBLISH of nothing to the client's own channel. */
static void sim_calls_probe(sim *s, int connection, const resp_request *command,
                            const sim_request *request) {
  const sim_connection *from = &s->connections[connection];
  size_t prefix = sizeof SIM_PUBLISH_CHANNEL - 1;
  char reply[16];
  if (command->lengths[1] != prefix + SIM_CHANNEL_LENGTH || command->lengths[2] != 0 ||
      memcmp(command->words[1], SIM_PUBLISH_CHANNEL, prefix) != 0) {
    sim_violation(s, "wire", "a probe that is none");
    return;
  }
  if (sim_publish_is_denied(s, from->node, SIM_DEAF_PUBLISH)) {
    sim_count(s, SIM_PROBE_DENIED);
    sim_node_reply(s, connection, request, SIM_CALLS_NOPERM, SIM_OUTCOME_ERROR);
    return;
  }
  unsigned heard = sim_publish(s, from->node, command->words[1] + prefix, "", 0);
  sim_count(s, heard > 0 ? SIM_PROBE_RECEIVED : SIM_PROBE_LOST);
  (void)snprintf(reply, sizeof reply, ":%u\r\n", heard);
  sim_node_reply(s, connection, request, reply, SIM_OUTCOME_GRANTED);
}

void sim_calls_eval(sim *s, int connection, const resp_request *command, sim_request *request) {
  sim_node *node = &s->nodes[s->connections[connection].node];
  if (request->kind == SIM_COMMAND_PROBE) {
    sim_calls_probe(s, connection, command, request);
    return;
  }
  sim_command_kind kind;
  rl_script script = sim_calls_script(command, &kind);
  if (!request->by_text && (node->calling >> script & 1) == 0) {
    sim_count(s, SIM_SCRIPT_UNKNOWN);
    sim_node_reply(s, connection, request, "-NOSCRIPT No matching script.\r\n",
                   SIM_OUTCOME_NO_SCRIPT);
    return;
  }
  if (request->by_text) {
    node->calling |= 1u << script;
    sim_count(s, SIM_SCRIPT_BY_TEXT);
  }
  if (request->kind == SIM_COMMAND_RELEASE && request->token < s->token_count && !request->forced) {
    s->tokens[request->token].released_there |= 1u << s->connections[connection].node;
  }
  switch (script) {
  case RL_SCRIPT_RELEASE_NOTIFY:
    sim_calls_release(s, connection, command, request);
    break;
  case RL_SCRIPT_RELEASE_ALL_NOTIFY:
    sim_calls_release_all(s, connection, command, request);
    break;
  case RL_SCRIPT_ENQUEUE:
  case RL_SCRIPT_ENQUEUE_LABEL:
  case RL_SCRIPT_ENQUEUE_SLOTS:
    sim_calls_stand(s, connection, command, request);
    break;
  case RL_SCRIPT_SLOTS:
    sim_calls_slots(s, connection, command, request);
    break;
  case RL_SCRIPT_ENQUEUE_ALL:
    sim_calls_stand_all(s, connection, command, request);
    break;
  default:
    sim_calls_leave(s, connection, command, request);
    break;
  }
}

const char *sim_calls_odd(sim *s) {
  static const char *const odd[] = {"$3\r\nfoo\r\n", "*0\r\n",  ":0\r\n",       ":7\r\n",
                                    "+QUEUED\r\n",   ":-1\r\n", ":12000003\r\n"};
  return odd[sim_below(&s->random_calls, sizeof odd / sizeof odd[0])];
}
