/*
 * One node: its connection's state, the commands for it and the replies that it owes.
 *
 * SPDX-License-Identifier: MIT
 *
 *   DOWN -> CONNECTING -> HANDSHAKE -> UP -> DOWN ...   (and from every phase back to DOWN)
 *
 * A connection is given up when it could not be made in time, when the peer closed it or broke the
 * protocol, or when the node owed replies and not one byte came for max(3 s, ttl). It is not given
 * up because an attempt timed out: a release that goes out on a new connection can overtake the SET
 * that it is to undo, on the old one it cannot.
 *
 * A script goes out by its text (EVAL) until the node has run it once on this connection, then by its
 * name (EVALSHA). A release that nobody waits for would otherwise come to nothing on a node that does
 * not know the script, when nobody is there any more to read that and to send the text.
 *
 * The handshake is a list of steps, sent at once, each answered by one reply:
 *   1. AUTH [user] password, if there is a password. Must succeed.
 *   2. SELECT db, if it is not 0. Must succeed: a lock in another database locks nothing.
 *   3. CLIENT SETNAME, for the people who look at the node. May be forbidden. It also makes sure
 *      that every connection has answered once before a vote is asked for: a node that accepts
 *      connections and is stopped costs no operation anything.
 */
#include "rl_node.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define RL_NODE_OWED_CAPACITY_MIN 64
#define RL_NODE_OUTPUT_KEPT_MAX 65536 /* a larger buffer is not kept across connections */

typedef enum rl_step { RL_STEP_AUTH, RL_STEP_SELECT, RL_STEP_SETNAME } rl_step;

void rl_node_init(rl_node *node, unsigned index, const rl_address *address) {
  memset(node, 0, sizeof *node);
  node->address = *address;
  node->index = index;
  node->latency_us = REDLOCK_NEVER;
  node->silence_us = RL_NODE_SILENCE_US;
}

void rl_node_free(rl_node *node, rl_attempt_pool *pool) {
  rl_owed owed;
  while (rl_node_take(node, &owed)) {
    rl_attempt_unref(pool, owed.attempt);
  }
  rl_reply_close(&node->reader);
  rl_buffer_free(&node->output);
  free(node->owed);
  node->owed = NULL;
}

bool rl_node_wants_connection(const rl_node *node, redlock_time now_us) {
  return node->phase == RL_NODE_DOWN && node->connect_at_us <= now_us;
}

void rl_node_connecting(rl_node *node, redlock_time now_us) {
  assert(node->phase == RL_NODE_DOWN);
  node->phase = RL_NODE_CONNECTING;
  node->phase_deadline_us = rl_time_add(now_us, RL_NODE_CONNECT_TIMEOUT_US);
}

static bool rl_node_grow_owed(rl_node *node) {
  unsigned capacity =
      node->owed_capacity == 0 ? RL_NODE_OWED_CAPACITY_MIN : node->owed_capacity * 2;
  rl_owed *owed = malloc(capacity * sizeof *owed);
  if (owed == NULL) {
    return false;
  }
  assert(node->owed_count == 0 || node->owed_capacity > 0);
  for (unsigned i = 0; i < node->owed_count; i++) {
    owed[i] = node->owed[(node->owed_head + i) % node->owed_capacity];
  }
  free(node->owed);
  node->owed = owed;
  node->owed_capacity = capacity;
  node->owed_head = 0;
  return true;
}

/* Makes sure that one more debt can be noted, before its command is written. */
static bool rl_node_reserve_owed(rl_node *node, bool grow) {
  return node->owed_count < node->owed_capacity || (grow && rl_node_grow_owed(node));
}

static void rl_node_owe(rl_node *node, const rl_owed *owed) {
  assert(node->owed_count < node->owed_capacity);
  if (node->owed_count == 0) {
    node->heard_us = owed->sent_us;
    node->silence_us = RL_NODE_SILENCE_US;
  }
  unsigned tail = node->owed_head + node->owed_count;
  node->owed[tail < node->owed_capacity ? tail : tail - node->owed_capacity] = *owed;
  node->owed_count++;
  if (owed->attempt != NULL) {
    (void)rl_attempt_ref(owed->attempt);
  }
}

bool rl_node_take(rl_node *node, rl_owed *owed) {
  if (node->owed_count == 0) {
    return false;
  }
  *owed = node->owed[node->owed_head];
  node->owed_head = node->owed_head + 1 == node->owed_capacity ? 0 : node->owed_head + 1;
  node->owed_count--;
  return true;
}

static bool rl_node_step(rl_node *node, redlock_time now_us, rl_step step,
                         const char *const *strings, unsigned count) {
  rl_owed owed = {NULL, now_us, 0, RL_OWED_HANDSHAKE, 0, (uint8_t)step};
  if (!rl_node_reserve_owed(node, true) || !rl_command_strings(&node->output, strings, count)) {
    return false;
  }
  rl_node_owe(node, &owed);
  return true;
}

static bool rl_node_shake_hands(rl_node *node, redlock_time now_us) {
  const rl_address *address = &node->address;
  bool ok = true;
  if (address->has_password) {
    const char *with_user[] = {"AUTH", address->username, address->password};
    const char *without_user[] = {"AUTH", address->password};
    ok = address->has_username ? rl_node_step(node, now_us, RL_STEP_AUTH, with_user, 3)
                               : rl_node_step(node, now_us, RL_STEP_AUTH, without_user, 2);
  }
  if (ok && address->db != 0) {
    char db[16];
    (void)snprintf(db, sizeof db, "%d", address->db);
    const char *select[] = {"SELECT", db};
    ok = rl_node_step(node, now_us, RL_STEP_SELECT, select, 2);
  }
  const char *setname[] = {"CLIENT", "SETNAME", "redlock"};
  return ok && rl_node_step(node, now_us, RL_STEP_SETNAME, setname, 3);
}

void rl_node_connected(rl_node *node, redlock_time now_us) {
  assert(node->phase == RL_NODE_CONNECTING);
  assert(node->owed_count == 0 && rl_buffer_length(&node->output) == 0);
  node->phase = RL_NODE_HANDSHAKE;
  memset(node->knows, 0, sizeof node->knows);
  if (rl_reply_open(&node->reader) != 0 || !rl_node_shake_hands(node, now_us)) {
    rl_node_disconnected(node, now_us, "out of memory");
    node->owed_count = 0; /* Only steps of the handshake: they have no attempt. */
  }
}

void rl_node_disconnected(rl_node *node, redlock_time now_us, const char *reason) {
  bool lasted = rl_time_sub(now_us, node->up_us) >= RL_NODE_BACKOFF_MAX_US;
  if (node->phase == RL_NODE_UP && (node->useful || lasted)) {
    /* It was well until now: try again at once. */
    node->failures = 0;
    node->connect_at_us = now_us;
  } else if (node->phase != RL_NODE_DOWN) {
    redlock_duration delay_us = RL_NODE_BACKOFF_MIN_US;
    for (unsigned i = 0; i < node->failures && delay_us < RL_NODE_BACKOFF_MAX_US; i++) {
      delay_us *= 2;
    }
    node->failures++;
    node->connect_at_us = rl_time_add(now_us, rl_time_min(delay_us, RL_NODE_BACKOFF_MAX_US));
  }
  node->phase = RL_NODE_DOWN;
  (void)snprintf(node->error, sizeof node->error, "%s", reason);
  rl_reply_close(&node->reader);
  rl_buffer_clear(&node->output);
  if (node->output.capacity > RL_NODE_OUTPUT_KEPT_MAX) {
    rl_buffer_free(&node->output);
  }
}

redlock_time rl_node_deadline(const rl_node *node) {
  switch (node->phase) {
  case RL_NODE_DOWN:
    return node->connect_at_us;
  case RL_NODE_CONNECTING:
  case RL_NODE_HANDSHAKE:
    return node->phase_deadline_us;
  case RL_NODE_UP:
  default:
    return node->owed_count == 0 ? REDLOCK_NEVER : rl_time_add(node->heard_us, node->silence_us);
  }
}

const char *rl_node_overdue(const rl_node *node, redlock_time now_us) {
  if (node->phase == RL_NODE_DOWN || now_us < rl_node_deadline(node)) {
    return NULL;
  }
  switch (node->phase) {
  case RL_NODE_CONNECTING:
    return "connecting took too long";
  case RL_NODE_HANDSHAKE:
    return "connected, but the node does not answer";
  default:
    return "the node does not answer any more";
  }
}

redlock_duration rl_node_behind(const rl_node *node, redlock_time now_us) {
  return node->owed_count == 0 ? 0 : rl_time_sub(now_us, node->owed[node->owed_head].sent_us);
}

bool rl_node_has_room(const rl_node *node, rl_owed_kind kind) {
  bool acquire = kind == RL_OWED_ACQUIRE;
  unsigned owed_max = acquire ? RL_NODE_OWED_ACQUIRE_MAX : RL_NODE_OWED_MAX;
  size_t output_max = acquire ? RL_NODE_OUTPUT_ACQUIRE_MAX : RL_NODE_OUTPUT_MAX;
  return node->phase == RL_NODE_UP && node->owed_count < owed_max &&
         rl_buffer_length(&node->output) < output_max;
}

/* A node may be silent for as long as a key that it was sent may live (rule above). */
static void rl_node_expect(rl_node *node, uint64_t ttl_ms) {
  node->silence_us = rl_time_max(node->silence_us, ttl_ms * REDLOCK_MILLISECONDS);
}

bool rl_node_queue_set(rl_node *node, redlock_time now_us, rl_owed_kind kind, rl_attempt *attempt,
                       uint32_t round, uint64_t ttl_ms) {
  rl_owed owed = {attempt, now_us, round, (uint8_t)kind, 0, 0};
  rl_command_key key = rl_attempt_key(attempt);
  assert(node->phase == RL_NODE_UP);
  if (!rl_node_reserve_owed(node, true) || !rl_command_set(&node->output, &key, ttl_ms)) {
    return false;
  }
  rl_node_owe(node, &owed);
  rl_node_expect(node, ttl_ms);
  return true;
}

bool rl_node_queue_extend(rl_node *node, redlock_time now_us, rl_attempt *attempt, uint32_t round,
                          bool by_text, uint64_t ttl_ms) {
  by_text = by_text || !node->knows[RL_SCRIPT_EXTEND];
  rl_owed owed = {attempt, now_us, round, RL_OWED_EXTEND, by_text, 0};
  rl_command_key key = rl_attempt_key(attempt);
  assert(node->phase == RL_NODE_UP);
  if (!rl_node_reserve_owed(node, true) ||
      !rl_command_script(&node->output, RL_SCRIPT_EXTEND, by_text, &key, ttl_ms, true)) {
    return false;
  }
  rl_node_owe(node, &owed);
  rl_node_expect(node, ttl_ms);
  return true;
}

bool rl_node_queue_release(rl_node *node, redlock_time now_us, rl_attempt *attempt, uint32_t round,
                           bool by_text, bool grow) {
  by_text = by_text || !node->knows[RL_SCRIPT_RELEASE];
  rl_owed owed = {attempt, now_us, round, RL_OWED_RELEASE, by_text, 0};
  rl_command_key key = rl_attempt_key(attempt);
  assert(node->phase == RL_NODE_UP);
  if (!rl_node_reserve_owed(node, grow) ||
      !rl_command_script(&node->output, RL_SCRIPT_RELEASE, by_text, &key, 0, grow)) {
    return false;
  }
  rl_node_owe(node, &owed);
  return true;
}

const char *rl_node_feed(rl_node *node, redlock_time now_us, const void *bytes, size_t length) {
  assert(node->phase == RL_NODE_HANDSHAKE || node->phase == RL_NODE_UP);
  node->heard_us = now_us;
  return rl_reply_feed(&node->reader, bytes, length) == 0 ? NULL : "out of memory";
}

/*
 * Whether |text| holds the password, or the beginning of it where the text was cut. What is not
 * printable has been replaced in the text (rl_reply.c), so any such byte may stand for any other.
 */
static bool rl_node_quotes_password(const rl_node *node, const char *text) {
  const char *password = node->address.password;
  size_t text_length = strlen(text);
  size_t length = strlen(password);
  bool cut = text_length == RL_REPLY_TEXT_MAX;
  for (size_t start = 0; length > 0 && start < text_length; start++) {
    size_t same = 0;
    while (same < length && start + same < text_length &&
           (text[start + same] == password[same] || text[start + same] == '?')) {
      same++;
    }
    if (same == length || (cut && start + same == text_length)) {
      return true;
    }
  }
  return false;
}

/*
 * A server that does not know a command quotes what it was sent, with AUTH the password. What such
 * errors say before the first quotation mark is enough, and a text that holds the password all the
 * same is not passed on. This goes for every error: a peer that greets, as Redis does not, makes each
 * reply look like that to the next command.
 */
const char *rl_node_said(rl_node *node) {
  char *text = node->reader.reply.text;
  if (!node->address.has_password) {
    return text[0] != '\0' ? text : "an error without a text";
  }
  if (node->phase == RL_NODE_HANDSHAKE || strstr(text, "unknown command") != NULL) {
    text[strcspn(text, "'`\"")] = '\0';
  }
  if (rl_node_quotes_password(node, text)) {
    return "an error that quotes the password";
  }
  return text[0] != '\0' ? text : "an error without a text";
}

/* CLIENT SETNAME is a courtesy: that it is forbidden or unknown does not matter, all else does. */
static bool rl_node_may_ignore(const char *error) {
  return strncmp(error, "NOPERM", 6) == 0 || strncmp(error, "ERR unknown", 11) == 0 ||
         strncmp(error, "ERR Unknown", 11) == 0;
}

/* Returns NULL, or why the connection must be given up. */
static const char *rl_node_answered(rl_node *node, rl_step step) {
  const rl_reply *reply = &node->reader.reply;
  bool ok = reply->type == RL_REPLY_STATUS && strcmp(reply->text, "OK") == 0;
  if (!ok && reply->type != RL_REPLY_ERROR) {
    return "the peer does not answer like a Redis server";
  }
  if (ok || (step == RL_STEP_SETNAME && rl_node_may_ignore(reply->text))) {
    return NULL;
  }
  return rl_node_said(node);
}

int rl_node_next(rl_node *node, redlock_time now_us, rl_owed *owed, bool *came_up,
                 const char **reason) {
  for (;;) {
    int got = rl_reply_next(&node->reader, reason);
    if (got <= 0) {
      return got;
    }
    if (!rl_node_take(node, owed)) {
      *reason = "the node sent a reply that was not asked for";
      return -1;
    }
    node->latency_us = rl_time_sub(now_us, owed->sent_us);
    if (owed->kind != RL_OWED_HANDSHAKE) {
      node->useful = true;
      node->failures = 0;
      return 1;
    }
    *reason = rl_node_answered(node, (rl_step)owed->step);
    if (*reason != NULL) {
      return -1;
    }
    if (node->owed_count == 0) {
      node->phase = RL_NODE_UP;
      node->up_us = now_us;
      node->useful = false;
      node->error[0] = '\0';
      *came_up = true;
    }
  }
}
