/*
 * A connection to a node: its phase, its handshake, the commands for it and what is owed for them.
 *
 * SPDX-License-Identifier: MIT
 *
 *   DOWN -> CONNECTING -> HANDSHAKE -> UP -> DOWN ...   (and from every phase back to DOWN)
 *
 * A connection is given up when it could not be made in time, when the peer closed it or broke the
 * protocol, or when the node owed replies and not one byte came for 3 s, however long its keys may
 * live: all locks of the client share it. It is not given up because an attempt timed out: a release
 * that goes out on a new connection can overtake the SET that it is to undo, on the old one it cannot.
 * (What that means for a connection that was silent: rl_release.c.)
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
#include "rl_link.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define RL_LINK_OWED_CAPACITY_MIN 64
#define RL_LINK_OUTPUT_KEPT_MAX 65536 /* a larger buffer is not kept across connections */

typedef enum rl_step { RL_STEP_AUTH, RL_STEP_SELECT, RL_STEP_SETNAME } rl_step;

void rl_link_init(rl_link *link, const rl_address *address) {
  memset(link, 0, sizeof *link);
  link->address = address;
  link->latency_us = REDLOCK_NEVER;
  link->nearest_us = REDLOCK_NEVER;
}

void rl_link_free(rl_link *link, rl_attempt_pool *pool) {
  rl_owed owed;
  while (rl_link_take(link, &owed)) {
    rl_attempt_unref(pool, owed.attempt);
  }
  rl_reply_close(&link->reader);
  rl_buffer_free(&link->output);
  free(link->owed);
  link->owed = NULL;
}

/* -------------------------------------------------------------------------------------- owed */

static bool rl_link_grow_owed(rl_link *link) {
  unsigned capacity =
      link->owed_capacity == 0 ? RL_LINK_OWED_CAPACITY_MIN : link->owed_capacity * 2;
  rl_owed *owed = malloc(capacity * sizeof *owed);
  if (owed == NULL) {
    return false;
  }
  assert(link->owed_count == 0 || link->owed_capacity > 0);
  for (unsigned i = 0; i < link->owed_count; i++) {
    owed[i] = link->owed[(link->owed_head + i) % link->owed_capacity];
  }
  free(link->owed);
  link->owed = owed;
  link->owed_capacity = capacity;
  link->owed_head = 0;
  return true;
}

/* Makes sure that one more debt can be noted, before its command is written. */
static bool rl_link_reserve_owed(rl_link *link, bool grow) {
  return link->owed_count < link->owed_capacity || (grow && rl_link_grow_owed(link));
}

static void rl_link_owe(rl_link *link, const rl_owed *owed) {
  assert(link->owed_count < link->owed_capacity);
  if (link->owed_count == 0) {
    link->heard_us = owed->sent_us;
  }
  unsigned tail = link->owed_head + link->owed_count;
  link->owed[tail < link->owed_capacity ? tail : tail - link->owed_capacity] = *owed;
  link->owed_count++;
  if (owed->attempt != NULL) {
    (void)rl_attempt_ref(owed->attempt);
  }
}

bool rl_link_take(rl_link *link, rl_owed *owed) {
  if (link->owed_count == 0) {
    return false;
  }
  *owed = link->owed[link->owed_head];
  link->owed_head = link->owed_head + 1 == link->owed_capacity ? 0 : link->owed_head + 1;
  link->owed_count--;
  return true;
}

/* --------------------------------------------------------------------------------- handshake */

void rl_link_connecting(rl_link *link, redlock_time now_us) {
  assert(link->phase == RL_LINK_DOWN);
  link->phase = RL_LINK_CONNECTING;
  link->phase_deadline_us = rl_time_add(now_us, RL_LINK_CONNECT_TIMEOUT_US);
}

static bool rl_link_step(rl_link *link, redlock_time now_us, rl_step step,
                         const char *const *strings, unsigned count) {
  rl_owed owed = {NULL, now_us, 0, RL_OWED_HANDSHAKE, 0, (uint8_t)step, RL_SCRIPT_NONE};
  if (!rl_link_reserve_owed(link, true) || !rl_command_strings(&link->output, strings, count)) {
    return false;
  }
  rl_link_owe(link, &owed);
  return true;
}

static bool rl_link_shake_hands(rl_link *link, redlock_time now_us) {
  const rl_address *address = link->address;
  bool ok = true;
  if (address->has_password) {
    const char *with_user[] = {"AUTH", address->username, address->password};
    const char *without_user[] = {"AUTH", address->password};
    ok = address->has_username ? rl_link_step(link, now_us, RL_STEP_AUTH, with_user, 3)
                               : rl_link_step(link, now_us, RL_STEP_AUTH, without_user, 2);
  }
  if (ok && address->db != 0) {
    char db[16];
    (void)snprintf(db, sizeof db, "%d", address->db);
    const char *select[] = {"SELECT", db};
    ok = rl_link_step(link, now_us, RL_STEP_SELECT, select, 2);
  }
  const char *setname[] = {"CLIENT", "SETNAME", "redlock"};
  return ok && rl_link_step(link, now_us, RL_STEP_SETNAME, setname, 3);
}

bool rl_link_connected(rl_link *link, redlock_time now_us) {
  assert(link->phase == RL_LINK_CONNECTING);
  assert(link->owed_count == 0 && rl_buffer_length(&link->output) == 0);
  link->phase = RL_LINK_HANDSHAKE;
  link->nearest_us = REDLOCK_NEVER;
  memset(link->knows, 0, sizeof link->knows);
  if (rl_reply_open(&link->reader) != 0 || !rl_link_shake_hands(link, now_us)) {
    link->owed_count = 0; /* Only steps of the handshake: they have no attempt. */
    return false;
  }
  return true;
}

void rl_link_disconnected(rl_link *link) {
  link->phase = RL_LINK_DOWN;
  rl_reply_close(&link->reader);
  rl_buffer_clear(&link->output);
  if (link->output.capacity > RL_LINK_OUTPUT_KEPT_MAX) {
    rl_buffer_free(&link->output);
  }
}

redlock_time rl_link_deadline(const rl_link *link) {
  switch (link->phase) {
  case RL_LINK_DOWN:
    return REDLOCK_NEVER;
  case RL_LINK_CONNECTING:
  case RL_LINK_HANDSHAKE:
    return link->phase_deadline_us;
  case RL_LINK_UP:
  default:
    return link->owed_count == 0 ? REDLOCK_NEVER : rl_time_add(link->heard_us, RL_LINK_SILENCE_US);
  }
}

const char *rl_link_overdue(const rl_link *link, redlock_time now_us) {
  if (now_us < rl_link_deadline(link)) {
    return NULL;
  }
  switch (link->phase) {
  case RL_LINK_CONNECTING:
    return "connecting took too long";
  case RL_LINK_HANDSHAKE:
    return "connected, but the node does not answer";
  default:
    return "the node does not answer any more";
  }
}

/* ---------------------------------------------------------------------------------- commands */

redlock_duration rl_link_behind(const rl_link *link, redlock_time now_us) {
  return link->owed_count == 0 ? 0 : rl_time_sub(now_us, link->owed[link->owed_head].sent_us);
}

bool rl_link_has_room(const rl_link *link, rl_owed_kind kind) {
  bool acquire = kind == RL_OWED_ACQUIRE;
  unsigned owed_max = acquire ? RL_LINK_OWED_ACQUIRE_MAX : RL_LINK_OWED_MAX;
  size_t output_max = acquire ? RL_LINK_OUTPUT_ACQUIRE_MAX : RL_LINK_OUTPUT_MAX;
  return link->phase == RL_LINK_UP && link->owed_count < owed_max &&
         rl_buffer_length(&link->output) < output_max;
}

/* Writes the script of |owed| and notes that its answer is owed. */
static bool rl_link_queue_script(rl_link *link, rl_owed *owed, rl_script script, uint64_t ttl_ms,
                                 bool grow) {
  rl_command_key key = rl_attempt_key(owed->attempt);
  owed->script = (uint8_t)script;
  owed->by_text = owed->by_text || !link->knows[script];
  assert(link->phase == RL_LINK_UP);
  if (!rl_link_reserve_owed(link, grow) ||
      !rl_command_script(&link->output, script, owed->by_text, &key, ttl_ms, grow)) {
    return false;
  }
  rl_link_owe(link, owed);
  return true;
}

bool rl_link_queue_set(rl_link *link, redlock_time now_us, rl_owed_kind kind, rl_attempt *attempt,
                       uint32_t round, uint64_t ttl_ms) {
  rl_owed owed = {attempt, now_us, round, (uint8_t)kind, 0, 0, RL_SCRIPT_NONE};
  rl_command_key key = rl_attempt_key(attempt);
  assert(link->phase == RL_LINK_UP);
  if (key.count > 1) {
    return rl_link_queue_script(link, &owed,
                                kind == RL_OWED_HEAL ? RL_SCRIPT_HEAL_ALL : RL_SCRIPT_ACQUIRE_ALL,
                                ttl_ms, true);
  }
  if (!rl_link_reserve_owed(link, true) || !rl_command_set(&link->output, &key, ttl_ms)) {
    return false;
  }
  rl_link_owe(link, &owed);
  return true;
}

bool rl_link_queue_extend(rl_link *link, redlock_time now_us, rl_attempt *attempt, uint32_t round,
                          bool by_text, uint64_t ttl_ms) {
  rl_owed owed = {attempt, now_us, round, RL_OWED_EXTEND, by_text, 0, RL_SCRIPT_NONE};
  bool several = attempt->resource->count > 1;
  return rl_link_queue_script(link, &owed, several ? RL_SCRIPT_EXTEND_ALL : RL_SCRIPT_EXTEND,
                              ttl_ms, true);
}

bool rl_link_queue_release(rl_link *link, redlock_time now_us, rl_attempt *attempt, uint32_t round,
                           bool by_text, bool grow) {
  rl_owed owed = {attempt, now_us, round, RL_OWED_RELEASE, by_text, 0, RL_SCRIPT_NONE};
  bool several = attempt->resource->count > 1;
  return rl_link_queue_script(link, &owed, several ? RL_SCRIPT_RELEASE_ALL : RL_SCRIPT_RELEASE, 0,
                              grow);
}

bool rl_link_queue_attach(rl_link *link, redlock_time now_us, rl_attempt *attempt, uint32_t round,
                          const rl_attempt *handed, uint64_t ttl_ms, uint64_t floor_ms) {
  rl_owed owed = {attempt, now_us, round, RL_OWED_ATTACH, true, 0, RL_SCRIPT_NONE};
  rl_command_key key = rl_attempt_key(attempt);
  rl_command_key old = rl_attempt_key(handed);
  assert(link->phase == RL_LINK_UP);
  if (!rl_link_reserve_owed(link, true) ||
      !rl_command_attach(&link->output, &key, &old, ttl_ms, floor_ms)) {
    return false;
  }
  rl_link_owe(link, &owed);
  return true;
}

bool rl_link_queue_inspect(rl_link *link, redlock_time now_us, rl_attempt *attempt,
                           uint32_t round) {
  rl_owed owed = {attempt, now_us, round, RL_OWED_INSPECT, true, 0, RL_SCRIPT_NONE};
  rl_command_key key = rl_attempt_key(attempt);
  assert(link->phase == RL_LINK_UP);
  if (!rl_link_reserve_owed(link, true) || !rl_command_inspect(&link->output, &key)) {
    return false;
  }
  rl_link_owe(link, &owed);
  return true;
}

bool rl_link_queue_force(rl_link *link, redlock_time now_us, rl_attempt *attempt, uint32_t round,
                         bool any) {
  rl_owed owed = {attempt, now_us, round, RL_OWED_FORCE, true, 0, RL_SCRIPT_NONE};
  rl_command_key key = rl_attempt_key(attempt);
  assert(link->phase == RL_LINK_UP);
  if (!rl_link_reserve_owed(link, true) ||
      !(any ? rl_command_delete(&link->output, &key)
            : rl_command_script(&link->output, RL_SCRIPT_RELEASE, true, &key, 0, true))) {
    return false;
  }
  rl_link_owe(link, &owed);
  return true;
}

/* ----------------------------------------------------------------------------------- replies */

const char *rl_link_feed(rl_link *link, redlock_time now_us, const void *bytes, size_t length) {
  assert(link->phase == RL_LINK_HANDSHAKE || link->phase == RL_LINK_UP);
  link->heard_us = now_us;
  return rl_reply_feed(&link->reader, bytes, length) == 0 ? NULL : "out of memory";
}

/*
 * Whether |text| holds the password, or the beginning of it where the text was cut. What is not
 * printable has been replaced in the text (rl_reply.c), so any such byte may stand for any other.
 */
static bool rl_link_quotes_password(const rl_link *link, const char *text) {
  const char *password = link->address->password;
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
const char *rl_link_said(rl_link *link) {
  char *text = link->reader.reply.text;
  if (!link->address->has_password) {
    return text[0] != '\0' ? text : "an error without a text";
  }
  if (link->phase == RL_LINK_HANDSHAKE || strstr(text, "unknown command") != NULL) {
    text[strcspn(text, "'`\"")] = '\0';
  }
  if (rl_link_quotes_password(link, text)) {
    return "an error that quotes the password";
  }
  return text[0] != '\0' ? text : "an error without a text";
}

/* CLIENT SETNAME is a courtesy: that it is forbidden or unknown does not matter, all else does. */
static bool rl_link_may_ignore(const char *error) {
  return strncmp(error, "NOPERM", 6) == 0 || strncmp(error, "ERR unknown", 11) == 0 ||
         strncmp(error, "ERR Unknown", 11) == 0;
}

/* Returns NULL, or why the connection must be given up. */
static const char *rl_link_answered(rl_link *link, rl_step step) {
  const rl_reply *reply = &link->reader.reply;
  bool ok = reply->type == RL_REPLY_STATUS && strcmp(reply->text, "OK") == 0;
  if (!ok && reply->type != RL_REPLY_ERROR) {
    return "the peer does not answer like a Redis server";
  }
  if (ok || (step == RL_STEP_SETNAME && rl_link_may_ignore(reply->text))) {
    return NULL;
  }
  return rl_link_said(link);
}

int rl_link_next(rl_link *link, redlock_time now_us, rl_owed *owed, bool *came_up,
                 const char **reason) {
  for (;;) {
    int got = rl_reply_next(&link->reader, reason);
    if (got <= 0) {
      return got;
    }
    if (!rl_link_take(link, owed)) {
      *reason = "the node sent a reply that was not asked for";
      return -1;
    }
    link->latency_us = rl_time_sub(now_us, owed->sent_us);
    link->nearest_us = rl_time_min(link->nearest_us, link->latency_us);
    if (owed->kind != RL_OWED_HANDSHAKE) {
      link->useful = true;
      return 1;
    }
    *reason = rl_link_answered(link, (rl_step)owed->step);
    if (*reason != NULL) {
      return -1;
    }
    if (link->owed_count == 0) {
      link->phase = RL_LINK_UP;
      link->up_us = now_us;
      link->useful = false;
      *came_up = true;
    }
  }
}
