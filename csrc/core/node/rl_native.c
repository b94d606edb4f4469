/*
 * Native commands: compare-and-delete and compare-and-set without a script. rl_native.h has the
 * commands and the rules.
 *
 * SPDX-License-Identifier: MIT
 */
#include "node/rl_native.h"

#include <assert.h>
#include <string.h>

#include "node/rl_verdict.h"

/* Returns true if releases on this connection notify waiters. */
static bool rl_native_notifies(const rl_link *link, redlock_time now_us) {
  return link->notify_channel != NULL && link->notify_denied_until_us <= now_us;
}

/* ---------------------------------------------------------------------------------- releases */

static bool rl_native_is_awaited(const rl_attempt *attempt) {
  return attempt->lock != NULL && attempt->caller_awaits;
}

bool rl_native_is_for_release(const rl_link *link, redlock_time now_us, const rl_attempt *attempt) {
  if (attempt->resource->count > 1 || link->native == RL_NATIVE_NONE ||
      rl_attempt_keep_ms(attempt, now_us) > 0) {
    return false;
  }
  if (rl_native_replaces_scripts(link, now_us)) { /* NAT-4 */
    return true;
  }
  bool known = link->native == RL_NATIVE_DELIFEQ || link->native == RL_NATIVE_DELEX;
  bool dequeues = (attempt->enqueued & link->bit) != 0;
  bool reads_flag = rl_native_is_awaited(attempt) && !dequeues && !attempt->custom;
  return known && (!rl_native_notifies(link, now_us) || reads_flag); /* NAT-3 */
}

static bool rl_native_append(rl_link *link, redlock_time now_us, rl_attempt *attempt,
                             unsigned step) {
  rl_outstanding command = {attempt,       now_us,        0, RL_OUTSTANDING_NATIVE, 0,
                            (uint8_t)step, RL_SCRIPT_NONE};
  return rl_link_append(link, &command);
}

bool rl_native_queue_release(rl_link *link, rl_outstanding *command, bool grow) {
  rl_attempt *attempt = command->attempt;
  rl_command_key key = rl_attempt_key(attempt);
  bool delex = link->native == RL_NATIVE_DELEX;
  bool reads_flag = rl_native_is_awaited(attempt) && rl_native_notifies(link, command->sent_us) &&
                    !rl_native_replaces_scripts(link, command->sent_us);
  command->script = RL_SCRIPT_NONE;
  command->by_text = false;
  command->step = delex ? RL_NATIVE_DELEX : RL_NATIVE_DELIFEQ;
  assert(link->phase == RL_LINK_UP);
  if (!rl_link_reserve_outstanding(link, grow) ||
      !rl_command_delete_if(&link->output, &key, delex, grow)) {
    return false;
  }
  (void)rl_link_append(link, command);
  /* Without memory for EXISTS, the release notifies no waiter: waiters poll. */
  return !reads_flag || !rl_link_reserve_outstanding(link, true) ||
         !rl_command_flag(&link->output, &key) ||
         rl_native_append(link, command->sent_us, attempt, RL_NATIVE_FLAG);
}

bool rl_native_awaits_flag(const rl_link *link) {
  if (link->outstanding_count == 0) {
    return false;
  }
  const rl_outstanding *next = &link->outstanding[link->outstanding_head];
  return next->kind == RL_OUTSTANDING_NATIVE && next->step == RL_NATIVE_FLAG;
}

bool rl_native_queue_notify(rl_link *link, redlock_time now_us, rl_attempt *attempt, bool by_text) {
  rl_command_key key = rl_attempt_key(attempt);
  rl_outstanding command = {attempt,
                            now_us,
                            0,
                            RL_OUTSTANDING_NATIVE,
                            by_text,
                            RL_NATIVE_NOTIFY,
                            RL_SCRIPT_RELEASE_NOTIFY};
  command.by_text = by_text || !link->knows[RL_SCRIPT_RELEASE_NOTIFY];
  return rl_link_reserve_outstanding(link, true) &&
         rl_command_release(&link->output, RL_SCRIPT_RELEASE_NOTIFY, command.by_text, &key, NULL,
                            true) &&
         rl_link_append(link, &command);
}

/* ----------------------------------------------------------------------------------- extends */

bool rl_native_is_for_extend(const rl_link *link, redlock_time now_us, const rl_attempt *attempt,
                             uint64_t ttl_ms) {
  return attempt->resource->count < 2 && !attempt->custom && !link->lacks_ifeq &&
         ttl_ms <= UINT32_MAX && rl_native_replaces_scripts(link, now_us);
}

bool rl_native_queue_extend(rl_link *link, rl_outstanding *command, uint64_t ttl_ms) {
  rl_attempt *attempt = command->attempt;
  rl_command_key key = rl_attempt_key(attempt);
  command->script = RL_SCRIPT_NONE;
  command->by_text = false;
  assert(link->phase == RL_LINK_UP);
  if (!rl_link_reserve_outstanding(link, true) || !rl_command_set_if(&link->output, &key, ttl_ms)) {
    return false;
  }
  bool least = attempt->least_ms == 0 || ttl_ms < attempt->least_ms;
  attempt->least_ms = least ? (uint32_t)ttl_ms : attempt->least_ms;
  return rl_link_append(link, command);
}

/* ------------------------------------------------------------------------------------- tries */

void rl_native_try_after_release(rl_link *link, redlock_time now_us, rl_attempt *attempt) {
  rl_command_key key = rl_attempt_key(attempt);
  /* Another client may have a caller's token, and hold_at_least keeps the key. */
  bool safe = attempt->caller_awaits && !attempt->custom && key.count < 2 &&
              rl_attempt_keep_ms(attempt, now_us) == 0;
  if (link->native != RL_NATIVE_WANTED || !safe ||
      !rl_link_has_room(link, RL_OUTSTANDING_RELEASE)) {
    link->native = link->native == RL_NATIVE_UNKNOWN ? RL_NATIVE_WANTED : link->native;
    return;
  }
  link->native = RL_NATIVE_TRIED;
  for (unsigned step = RL_NATIVE_DELIFEQ; step <= RL_NATIVE_DELEX; step++) {
    if (!rl_link_reserve_outstanding(link, true) ||
        !rl_command_delete_if(&link->output, &key, step == RL_NATIVE_DELEX, true)) {
      return;
    }
    (void)rl_native_append(link, now_us, attempt, step);
  }
}

void rl_native_forget_none(rl_link *link) {
  link->native = link->native == RL_NATIVE_NONE ? RL_NATIVE_UNKNOWN : link->native;
}

void rl_native_note_try(rl_link *link, unsigned step, bool knows) {
  if (link->native != RL_NATIVE_TRIED) {
    return;
  }
  if (knows) {
    link->native = (rl_native)step; /* A try has the step of its command. */
  } else if (step == RL_NATIVE_DELEX) {
    link->native = RL_NATIVE_NONE;
  }
}

/* ------------------------------------------------------------------------------------ errors */

bool rl_native_refuses_scripts(const char *error) {
  static const char unknown[] = "ERR unknown command";
  bool right = strncmp(error, "NOPERM ", 7) == 0 &&
               (strstr(error, "'eval'") != NULL || strstr(error, "'evalsha'") != NULL);
  const char *name = error + strcspn(error, "'`");
  bool command = strncmp(error, unknown, sizeof unknown - 1) == 0 && *name != '\0' &&
                 (strncmp(name + 1, "EVAL", 4) == 0 || strncmp(name + 1, "eval", 4) == 0);
  return right || command || strstr(error, "find scripting engine") != NULL;
}

bool rl_native_note_refusal(rl_link *link, const rl_outstanding *command) {
  const rl_reply *reply = &link->reader.reply;
  bool extends = rl_outstanding_has(command, RL_PROLONGS);
  bool native = command->script == RL_SCRIPT_NONE &&
                (extends || command->step == RL_NATIVE_DELIFEQ || command->step == RL_NATIVE_DELEX);
  bool right = strncmp(reply->text, "NOPERM ", 7) == 0 && rl_reply_names_command(reply->text);
  if (!native || reply->type != RL_REPLY_ERROR || strstr(reply->text, "WRONGTYPE") != NULL ||
      (!right && rl_verdict_is_refusal(reply->text))) {
    return false;
  }
  if (extends) {
    link->lacks_ifeq = true;
    bool parsed = right || strncmp(reply->text, "ERR syntax error", 16) == 0;
    command->attempt->may_shorten |=
        parsed ? 0 : link->bit; /* NAT-5: a proxy may have passed it on. */
  } else { /* After a refusal of EVAL, a release uses DELIFEQ without a try, then DELEX (NAT-4). */
    bool guessed = command->step == RL_NATIVE_DELIFEQ && link->native != RL_NATIVE_DELIFEQ;
    link->native = guessed ? RL_NATIVE_DELEX : RL_NATIVE_NONE;
  }
  return true;
}
