/*
 * A connection to a node: its phase, its handshake, its commands and the outstanding replies.
 *
 * SPDX-License-Identifier: MIT
 *
 *   DOWN -> CONNECTING -> HANDSHAKE -> UP -> DOWN ...   (and from every phase back to DOWN)
 *
 * A connection ends if it cannot be made in time, if the peer closes it or breaks the protocol, or
 * if replies are outstanding and no byte arrives for 3 s, however long keys live: all locks of the
 * client share it. An attempt that times out ends no connection: on a new one, its release
 * could overtake its SET. (rl_release.c treats a silent connection.)
 *
 * The first command of a connection sends a script as text (EVAL), later ones by its hash
 * (EVALSHA). The node reads them in this order. If the text fails, or the node forgets the script,
 * it answers NOSCRIPT: then the command is sent as text.
 *
 * The handshake is a list of steps, sent at once. Each has one reply:
 *   1. AUTH [user] password, if there is a password. Must succeed. A caller-supplied login is
 *      overwritten in the output when it is sent. Its copy, which masks it in errors, is
 *      overwritten after the handshake.
 *   2. SELECT db, unless it is 0. Must succeed: a lock in another database locks nothing.
 *   3. CLIENT SETNAME, for the node's operators. It also proves that the connection answers before
 *      an operation depends on it: a stopped node that accepts connections delays no operation. Any
 *      reply suffices, unless it refuses the connection. After an unexpected reply, EXISTS proves
 *      that replies match commands: no reply to EXISTS looks like that of a SET. If the peer closes
 *      the connection at CLIENT SETNAME, the next one sends EXISTS instead. A node that stops
 *      closes it, too. So after a refused connection the client sends CLIENT SETNAME again. A proxy
 *      may drop the command: if only this reply is missing on a connection, the next one sends
 *      EXISTS instead, too. If all replies are missing, the next one sends EXISTS before it: the
 *      reply tells a proxy that drops CLIENT from a node that is silent.
 *   4. CLIENT SETINFO, twice, for the node's operators: the name of the library, and its version.
 *      Any reply suffices. A connection omits the command
 *        - if it sends EXISTS instead of CLIENT SETNAME;
 *        - if the peer closed an earlier one at CLIENT SETINFO, or answered CLIENT SETNAME on it
 *          and not all that followed;
 *        - if an error answered EXISTS on an earlier one: that may be the reply to CLIENT SETINFO.
 *          Such a connection ends.
 *      After a refused connection the client sends the command again.
 *   5. The guard's script, if there is a guard (rl_guard.c), which reads the answer.
 *   6. SUBSCRIBE, for a subscriber (rl_subscriber.c). Then messages and answers to PING arrive.
 */
#include "node/rl_link.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "wire/rl_mask.h"

#define RL_LINK_OUTSTANDING_CAPACITY_MIN 64
#define RL_LINK_HANDSHAKE_MAX 1024    /* bytes without user, password and guard */
#define RL_LINK_GUARD_MAX 4096        /* bytes of the guard's command */
#define RL_LINK_TOKEN_MIN 4           /* bytes; a shorter token occurs in any text */
#define RL_LINK_OUTPUT_KEPT_MAX 65536 /* bytes; a larger buffer ends with its connection */

typedef enum rl_step {
  RL_STEP_AUTH,
  RL_STEP_SELECT,
  RL_STEP_NAME,
  RL_STEP_EXISTS,
  RL_STEP_INFO,
  RL_STEP_SUBSCRIBE,
  RL_STEP_PING
} rl_step;

void rl_link_init(rl_link *link, const rl_address *address) {
  memset(link, 0, sizeof *link);
  link->address = address;
  link->latency_us = REDLOCK_NEVER;
  link->fastest_us = REDLOCK_NEVER;
}

/* Overwrites the login, also in the output. */
static void rl_link_forget_login(rl_link *link) {
  if (link->login.supplied && link->output.data != NULL) {
    rl_login_overwrite(link->output.data, link->output.capacity);
  }
  rl_login_wipe(&link->login);
}

void rl_link_free(rl_link *link, rl_attempt_pool *pool) {
  rl_outstanding command;
  while (rl_link_take(link, &command)) {
    rl_attempt_unref(pool, command.attempt);
  }
  rl_reply_close(&link->reader);
  rl_link_forget_login(link);
  if (link->output.data != NULL) { /* the address's password, perhaps */
    rl_login_overwrite(link->output.data, link->output.capacity);
  }
  rl_buffer_free(&link->output);
  free(link->outstanding);
  link->outstanding = NULL;
  rl_guard_free(link->guard);
  link->guard = NULL;
}

/* ------------------------------------------------------------------------------- outstanding */

bool rl_link_grow_outstanding(rl_link *link) {
  unsigned capacity = link->outstanding_capacity == 0 ? RL_LINK_OUTSTANDING_CAPACITY_MIN
                                                      : link->outstanding_capacity * 2;
  rl_outstanding *command = malloc(capacity * sizeof *command);
  if (command == NULL) {
    return false;
  }
  assert(link->outstanding_count == 0 || link->outstanding_capacity > 0);
  for (unsigned i = 0; i < link->outstanding_count; i++) {
    command[i] = link->outstanding[(link->outstanding_head + i) % link->outstanding_capacity];
  }
  free(link->outstanding);
  link->outstanding = command;
  link->outstanding_capacity = capacity;
  link->outstanding_head = 0;
  return true;
}

bool rl_link_append(rl_link *link, const rl_outstanding *command) {
  assert(link->outstanding_count < link->outstanding_capacity);
  if (link->outstanding_count == 0) {
    link->received_us = command->sent_us;
  }
  unsigned tail = link->outstanding_head + link->outstanding_count;
  link->outstanding[tail < link->outstanding_capacity ? tail : tail - link->outstanding_capacity] =
      *command;
  link->outstanding_count++;
  if (command->attempt != NULL) {
    (void)rl_attempt_ref(command->attempt);
  }
  return true;
}

bool rl_link_take(rl_link *link, rl_outstanding *command) {
  if (link->outstanding_count == 0) {
    return false;
  }
  *command = link->outstanding[link->outstanding_head];
  link->outstanding_head =
      link->outstanding_head + 1 == link->outstanding_capacity ? 0 : link->outstanding_head + 1;
  link->outstanding_count--;
  return true;
}

const rl_outstanding *rl_link_newest(const rl_link *link) {
  if (link == NULL || link->outstanding_count == 0) {
    return NULL;
  }
  unsigned newest = link->outstanding_head + link->outstanding_count - 1;
  return &link->outstanding[newest < link->outstanding_capacity
                                ? newest
                                : newest - link->outstanding_capacity];
}

/* --------------------------------------------------------------------------------- handshake */

void rl_link_sent(rl_link *link, size_t length) {
  rl_buffer_consume(&link->output, length);
  link->exists_unsent -= length < link->exists_unsent ? length : link->exists_unsent;
  if (link->phase == RL_LINK_HANDSHAKE && link->login.supplied &&
      rl_buffer_length(&link->output) == 0) {
    rl_login_overwrite(link->output.data, link->output.capacity);
  }
}

void rl_link_connecting(rl_link *link, redlock_time now_us) {
  assert(link->phase == RL_LINK_DOWN);
  link->phase = RL_LINK_CONNECTING;
  link->reconnect_now = false;
  link->looks_up = false;
  link->phase_deadline_us = rl_time_add(now_us, RL_LINK_CONNECT_TIMEOUT_US);
}

static bool rl_link_step(rl_link *link, redlock_time now_us, rl_step step,
                         const rl_command_bytes *arguments, unsigned count) {
  rl_outstanding command = {NULL,          now_us,        0, RL_OUTSTANDING_HANDSHAKE, 0,
                            (uint8_t)step, RL_SCRIPT_NONE};
  return rl_link_reserve_outstanding(link, true) &&
         rl_command_arguments(&link->output, arguments, count) && rl_link_append(link, &command);
}

/* The user and the password of this connection, or NULL. */
static rl_command_bytes rl_link_username(const rl_link *link) {
  const char *supplied = link->login.username;
  const char *own = link->address->has_username ? link->address->username : NULL;
  return rl_command_word(supplied != NULL ? supplied : own);
}

static rl_command_bytes rl_link_password(const rl_link *link) {
  if (link->login.supplied) {
    return (rl_command_bytes){link->login.password, link->login.password_length};
  }
  return (rl_command_bytes){link->address->has_password ? link->address->password : NULL,
                            link->address->password_length};
}

static bool rl_link_log_in(rl_link *link, redlock_time now_us) {
  rl_command_bytes username = rl_link_username(link);
  rl_command_bytes password = rl_link_password(link);
  rl_command_bytes arguments[3] = {rl_command_word("AUTH")};
  unsigned count = 1;
  if (password.bytes == NULL && (username.bytes == NULL || !link->login.supplied)) {
    return true;
  }
  if (username.bytes != NULL) {
    arguments[count++] = username;
  }
  arguments[count++] = password.bytes != NULL ? password : rl_command_word("");
  /* Reserve the whole handshake: a growing buffer would leave a copy of the password. */
  size_t guard = link->guard != NULL ? RL_LINK_GUARD_MAX : 0;
  return rl_buffer_reserve(&link->output,
                           RL_LINK_HANDSHAKE_MAX + guard + username.length + password.length,
                           true) != NULL &&
         rl_link_step(link, now_us, RL_STEP_AUTH, arguments, count);
}

/* Queues the guard's script for |command|. */
static bool rl_link_ask(rl_link *link, const rl_outstanding *command) {
  static const char *const actions[] = {[RL_GUARD_CHECK] = "look",
                                        [RL_GUARD_CREATE] = "make",
                                        [RL_GUARD_RECREATE] = "clock",
                                        [RL_GUARD_INVALIDATE] = "spoil",
                                        [RL_GUARD_BOOTSTRAP] = "ready"};
  const rl_guards *guards = link->guard->guards;
  if (!rl_link_reserve_outstanding(link, true) ||
      !rl_command_guard(&link->output, guards->key, actions[command->step], guards->fingerprint,
                        guards->quarantine_us, link->guard->record, (unsigned)link->address->db)) {
    return false;
  }
  rl_link_append(link, command);
  link->guard->asked = true;
  link->guard->asked_us = command->sent_us;
  return true;
}

bool rl_link_ask_guard(rl_link *link, redlock_time now_us, rl_guard_action action) {
  rl_outstanding command = {NULL,          now_us, 0, RL_OUTSTANDING_GUARD, true, (uint8_t)action,
                            RL_SCRIPT_NONE};
  return rl_link_ask(link, &command);
}

bool rl_link_ask_bootstrap(rl_link *link, const rl_outstanding *command) {
  rl_outstanding bootstrap = *command;
  bootstrap.step = RL_GUARD_BOOTSTRAP;
  return rl_link_ask(link, &bootstrap);
}

static bool rl_link_send_name(rl_link *link, redlock_time now_us) {
  const rl_command_bytes name[] = {rl_command_word("CLIENT"), rl_command_word("SETNAME"),
                                   rl_command_word("redlock")};
  return rl_link_step(link, now_us, RL_STEP_NAME, name, 3);
}

/* Returns true if this connection sends CLIENT SETINFO. */
static bool rl_link_sends_info(const rl_link *link) {
  return !link->skips_name && !link->skips_info;
}

static bool rl_link_send_info(rl_link *link, redlock_time now_us, const char *what,
                              const char *value) {
  const rl_command_bytes info[] = {rl_command_word("CLIENT"), rl_command_word("SETINFO"),
                                   rl_command_word(what), rl_command_word(value)};
  return rl_link_step(link, now_us, RL_STEP_INFO, info, 4);
}

static bool rl_link_ask_exists(rl_link *link, redlock_time now_us) {
  const rl_command_bytes exists[] = {rl_command_word("EXISTS"), rl_command_word("redlock")};
  bool ok = rl_link_step(link, now_us, RL_STEP_EXISTS, exists, 2);
  link->exists_unsent = rl_buffer_length(&link->output);
  return ok;
}

static bool rl_link_shake_hands(rl_link *link, redlock_time now_us) {
  const rl_address *address = link->address;
  bool ok = rl_link_log_in(link, now_us);
  if (ok && address->db != 0) {
    char db[16];
    (void)snprintf(db, sizeof db, "%d", address->db);
    const rl_command_bytes select[] = {rl_command_word("SELECT"), rl_command_word(db)};
    ok = rl_link_step(link, now_us, RL_STEP_SELECT, select, 2);
  }
  const rl_command_bytes subscribe[] = {rl_command_word("SUBSCRIBE"),
                                        rl_command_word(link->channel)};
  bool asks_exists = link->skips_name || link->was_silent;
  link->was_silent = false;
  return ok && (!asks_exists || rl_link_ask_exists(link, now_us)) &&
         (link->skips_name || rl_link_send_name(link, now_us)) &&
         (!rl_link_sends_info(link) ||
          (rl_link_send_info(link, now_us, "LIB-NAME", "redlock") &&
           rl_link_send_info(link, now_us, "LIB-VER", REDLOCK_VERSION))) &&
         (link->channel == NULL || rl_link_step(link, now_us, RL_STEP_SUBSCRIBE, subscribe, 2)) &&
         (link->guard == NULL || rl_link_ask_guard(link, now_us, RL_GUARD_CHECK));
}

bool rl_link_connected(rl_link *link, redlock_time now_us) {
  assert(link->phase == RL_LINK_CONNECTING);
  assert(link->outstanding_count == 0 && rl_buffer_length(&link->output) == 0);
  link->phase = RL_LINK_HANDSHAKE;
  link->login_supplied = link->login.supplied;
  if (link->login.supplied) { /* The time until the login came does not count. */
    link->phase_deadline_us = rl_time_add(now_us, RL_LINK_CONNECT_TIMEOUT_US);
  }
  link->fastest_us = REDLOCK_NEVER;
  link->notify_denied_until_us = 0;
  link->compared = 0;
  link->exists_unsent = 0;
  link->lacks_ifeq = false;
  link->no_scripts_until_us = 0;
  link->native = link->skips_native ? RL_NATIVE_OFF : RL_NATIVE_UNKNOWN;
  memset(link->knows, 0, sizeof link->knows);
  memset(&link->clock, 0, sizeof link->clock);
  if (rl_reply_open(&link->reader) != 0 || !rl_link_shake_hands(link, now_us)) {
    link->outstanding_count = 0; /* only steps, which have no attempt */
    return false;
  }
  return true;
}

/* Returns true if the handshake is sent, and the reply to one of its |steps| is outstanding. */
static bool rl_link_awaits_step(const rl_link *link, unsigned steps) {
  bool sent = link->phase == RL_LINK_HANDSHAKE && rl_buffer_length(&link->output) == 0;
  for (unsigned i = 0; i < link->outstanding_count && sent; i++) {
    const rl_outstanding *command =
        &link->outstanding[(link->outstanding_head + i) % link->outstanding_capacity];
    if (command->kind == RL_OUTSTANDING_HANDSHAKE && (steps >> command->step & 1) != 0) {
      return true;
    }
  }
  return false;
}

static void rl_link_skip_info(rl_link *link) {
  link->skips_info = true;
  link->reconnect_now = true;
}

/* The next connection sends EXISTS instead of CLIENT SETNAME, or the reverse. */
static void rl_link_swap_name(rl_link *link) {
  link->skips_name = !link->skips_name;
  link->reconnect_now = link->skips_name;
}

void rl_link_closed(rl_link *link) {
  link->skips_native |= link->native == RL_NATIVE_TRIED;
  if (rl_link_awaits_step(link, 1u << RL_STEP_NAME | 1u << RL_STEP_EXISTS)) {
    rl_link_swap_name(link);
  } else if (rl_link_awaits_step(link, 1u << RL_STEP_INFO)) {
    rl_link_skip_info(link);
  }
}

void rl_link_gave_up(rl_link *link) {
  link->skips_native |= link->native == RL_NATIVE_TRIED;
  bool sent = link->phase == RL_LINK_HANDSHAKE && rl_buffer_length(&link->output) == 0;
  bool named = !rl_link_awaits_step(link, 1u << RL_STEP_NAME | 1u << RL_STEP_EXISTS);
  bool heard = link->fastest_us != REDLOCK_NEVER || link->skips_info; /* It is not just silent. */
  if (sent && named && rl_link_sends_info(link)) { /* Later replies may have counted for SETINFO. */
    rl_link_skip_info(link);
  } else if (sent && !named && heard) {
    rl_link_swap_name(link);
  } else {
    link->was_silent = sent && !named;
  }
}

void rl_link_disconnected(rl_link *link) {
  if (link->phase == RL_LINK_CONNECTING) {
    link->skips_name = false;
    link->skips_info = false;
  }
  link->phase = RL_LINK_DOWN;
  rl_reply_close(&link->reader);
  rl_link_forget_login(link);
  rl_guard_disconnected(link->guard);
  rl_buffer_clear(&link->output);
  if (link->output.capacity > RL_LINK_OUTPUT_KEPT_MAX) {
    rl_buffer_free(&link->output);
  }
}

const char *rl_link_no_address(const rl_link *link) {
  return link->address->sentinels.count > 0 ? "the Sentinels did not name a master"
                                            : "the name server did not give an address";
}

const char *rl_link_overdue(const rl_link *link, redlock_time now_us) {
  if (now_us < rl_link_deadline(link)) {
    return NULL;
  }
  switch (link->phase) {
  case RL_LINK_CONNECTING:
    return link->login.awaited ? "its credentials did not arrive in time"
           : link->looks_up    ? rl_link_no_address(link)
                               : "connecting took too long";
  case RL_LINK_HANDSHAKE:
    return "connected, but the node does not answer";
  default:
    return "the node does not answer any more";
  }
}

/* ---------------------------------------------------------------------------------- commands */

redlock_duration rl_link_oldest_age(const rl_link *link, redlock_time now_us) {
  return link->outstanding_count == 0
             ? 0
             : rl_time_sub(now_us, link->outstanding[link->outstanding_head].sent_us);
}

redlock_duration rl_link_silence(const rl_link *link, redlock_time now_us) {
  return link->outstanding_count == 0 ? 0 : rl_time_sub(now_us, link->received_us);
}

void rl_link_entry(const char *channel, uint32_t ticket, char entry[RL_LINK_ENTRY_SIZE]) {
  (void)snprintf(entry, RL_LINK_ENTRY_SIZE, "%s%08x", channel + strlen(RL_COMMAND_CHANNEL),
                 (unsigned)ticket);
}

bool rl_link_ping(rl_link *link, redlock_time now_us) {
  const rl_command_bytes ping[] = {rl_command_word("PING")};
  return rl_link_step(link, now_us, RL_STEP_PING, ping, 1);
}

bool rl_link_check_idle(rl_link *link, redlock_time now_us) {
  return link->skips_name ? rl_link_ask_exists(link, now_us) : rl_link_send_name(link, now_us);
}

redlock_time rl_link_check_idle_at(const rl_link *link, redlock_duration idle_us) {
  bool idle = link->phase == RL_LINK_UP && link->outstanding_count == 0;
  return idle ? rl_time_add(link->received_us, idle_us) : REDLOCK_NEVER;
}

/* ----------------------------------------------------------------------------------- replies */

const char *rl_link_feed(rl_link *link, redlock_time now_us, const void *bytes, size_t length) {
  assert(link->phase == RL_LINK_HANDSHAKE || link->phase == RL_LINK_UP);
  link->received_us = now_us;
  link->answerable = link->outstanding_count;
  return rl_reply_feed(&link->reader, bytes, length) == 0 ? NULL : "out of memory";
}

void rl_link_mask_token(rl_link *link, const rl_attempt *attempt) {
  rl_reply *reply = &link->reader.reply;
  if (reply->type == RL_REPLY_ERROR && attempt->token_length >= RL_LINK_TOKEN_MIN) {
    const char *token = rl_attempt_token(attempt);
    rl_mask_secret(reply->text, token, rl_label_secret(token, attempt->token_length));
  }
}

/*
 * A server quotes an unknown command with its arguments, for AUTH with the password. The error is
 * cut before the first argument, and dropped if it still contains the password. This applies to
 * every error: after the greeting of a peer that is no Redis, replies do not match commands.
 */
const char *rl_link_error_text(rl_link *link) {
  char *text = link->reader.reply.text;
  rl_command_bytes password = rl_link_password(link);
  bool may_quote = link->phase == RL_LINK_HANDSHAKE || strstr(text, "unknown command") != NULL;
  if (password.bytes != NULL && may_quote) {
    rl_mask_cut_arguments(text);
  }
  if (password.bytes != NULL && rl_mask_may_contain(text, password.bytes, password.length)) {
    return "an error that quotes the password";
  }
  return text[0] != '\0' ? text : "an error without a text";
}

/* Returns true if the error refuses all commands of the connection. */
static bool rl_link_refuses_all(const char *error) {
  return strncmp(error, "NOAUTH ", 7) == 0 || strncmp(error, "DENIED ", 7) == 0 ||
         strncmp(error, "ERR max number of clients ", 26) == 0;
}

/* Returns true if the error refuses only CLIENT SETNAME. */
static bool rl_link_refuses_name(const char *error) {
  return strncmp(error, "NOPERM ", 7) == 0 || strncmp(error, "ERR unknown ", 12) == 0 ||
         strncmp(error, "ERR Unknown ", 12) == 0;
}

/* The reply to EXISTS proves that replies match commands. */
static bool rl_link_proves_order(rl_link *link) {
  const rl_reply *reply = &link->reader.reply;
  bool refused = reply->type == RL_REPLY_ERROR && !rl_link_refuses_all(reply->text);
  if (refused && link->phase == RL_LINK_HANDSHAKE && rl_link_sends_info(link)) {
    rl_link_skip_info(link); /* It may be the reply to CLIENT SETINFO. */
    return false;
  }
  return link->exists_unsent == 0 && /* no reply can precede its command */
         ((reply->type == RL_REPLY_INTEGER && reply->integer >= 0 && reply->integer <= 1) ||
          refused);
}

/*
 * Returns true if the handshake goes on after the reply to the step. May note what to skip later.
 */
static bool rl_link_accepts_step(rl_link *link, redlock_time now_us, rl_step step) {
  const rl_reply *reply = &link->reader.reply;
  bool error = reply->type == RL_REPLY_ERROR;
  bool ok = reply->type == RL_REPLY_STATUS && strcmp(reply->text, "OK") == 0;
  switch (step) {
  case RL_STEP_NAME:
    return ok || (error && rl_link_refuses_name(reply->text)) ||
           (!(error && rl_link_refuses_all(reply->text)) && rl_link_ask_exists(link, now_us));
  case RL_STEP_EXISTS:
    return rl_link_proves_order(link);
  case RL_STEP_INFO:
    return true;
  case RL_STEP_SUBSCRIBE:
    return strcmp(reply->word, "subscribe") == 0;
  case RL_STEP_PING:
    return strcmp(reply->word, "pong") == 0;
  default:
    return ok;
  }
}

/* Returns NULL, or why the connection must end. */
static const char *rl_link_answered(rl_link *link, redlock_time now_us, rl_step step) {
  if (rl_link_accepts_step(link, now_us, step)) {
    return NULL;
  }
  return link->reader.reply.type == RL_REPLY_ERROR ? rl_link_error_text(link)
                                                   : "the peer does not answer like a Redis server";
}

/* Filters the guard's error now, because the login is overwritten before the guard reads it. */
static void rl_link_censor(rl_link *link) {
  rl_reply *reply = &link->reader.reply;
  if (reply->type == RL_REPLY_ERROR) {
    const char *text = rl_link_error_text(link);
    if (text != reply->text) {
      (void)snprintf(reply->text, sizeof reply->text, "%s", text);
    }
  }
}

static void rl_link_came_up(rl_link *link, redlock_time now_us) {
  link->phase = RL_LINK_UP;
  rl_login_wipe(&link->login);
  link->up_us = now_us;
  link->useful = false;
}

/*
 * No reply precedes its command: bytes answer nothing that was queued since they came. Steps of the
 * handshake judge such a reply themselves.
 */
static bool rl_link_was_asked(const rl_link *link) {
  return link->answerable > 0 ||
         (link->outstanding_count > 0 &&
          link->outstanding[link->outstanding_head].kind == RL_OUTSTANDING_HANDSHAKE);
}

int rl_link_next(rl_link *link, redlock_time now_us, rl_outstanding *command, bool *came_up,
                 const char **reason) {
  for (;;) {
    int got = rl_reply_next(&link->reader, reason);
    if (got <= 0) {
      return got;
    }
    if (link->channel != NULL && strcmp(link->reader.reply.word, "message") == 0) {
      return 1;
    }
    if (!rl_link_was_asked(link) || !rl_link_take(link, command)) {
      *reason = "the node sent a reply that was not asked for";
      return -1;
    }
    link->answerable -= link->answerable > 0;
    link->latency_us = rl_time_sub(now_us, command->sent_us);
    link->fastest_us = rl_time_min(link->fastest_us, link->latency_us);
    if (command->kind < RL_OUTSTANDING_GUARD) {
      link->useful = true;
      return 1;
    }
    if (command->kind == RL_OUTSTANDING_GUARD) {
      rl_link_censor(link);
    } else if ((*reason = rl_link_answered(link, now_us, (rl_step)command->step)) != NULL) {
      return -1;
    }
    if (link->phase == RL_LINK_HANDSHAKE && link->outstanding_count == 0) {
      if (link->login.supplied && rl_buffer_length(&link->output) > 0) {
        *reason = "the node answered before it was asked";
        return -1;
      }
      rl_link_came_up(link, now_us);
      *came_up = true;
    }
    if (command->kind == RL_OUTSTANDING_GUARD) {
      return 1;
    }
  }
}
