/*
 * Commands of operations for a connection that is up.
 *
 * SPDX-License-Identifier: MIT
 *
 * Each function writes one command into the output, and appends it to the outstanding ones. A
 * native release may also write EXISTS (rl_native.h). In these names "queue" means the outstanding
 * commands of the connection, not the queue of waiters.
 */
#include "node/rl_link_queue.h"

#include <assert.h>
#include <string.h>

#include "node/rl_native.h"

/*
 * Appends a script. Later commands find it on the node, which reads this one first. But TAKE_HERE
 * counts as known only after a reply (GRD-4).
 */
static bool rl_link_append_script(rl_link *link, const rl_outstanding *command) {
  link->knows[command->script] |= command->script != RL_SCRIPT_TAKE_HERE;
  return rl_link_append(link, command);
}

static bool rl_link_is_equal(const rl_outstanding *one, const rl_outstanding *other) {
  return one->attempt == other->attempt && one->sent_us == other->sent_us &&
         one->round == other->round && one->kind == other->kind && one->by_text == other->by_text &&
         one->step == other->step && one->script == other->script;
}

/*
 * Writes |command| as a copy of the previous node's newest command. Two commands with equal fields
 * have equal bytes, except extends (their life depends on the node) and releases with a ticket
 * (some nodes may lack it; an attempt never loses its ticket). Returns false if the command must be
 * written anew.
 */
static bool rl_link_copy(rl_link *link, const rl_outstanding *command, bool grow) {
  const rl_outstanding *newest = rl_link_newest(link->previous);
  return newest != NULL && rl_link_is_equal(newest, command) &&
         !rl_outstanding_has(command, RL_PROLONGS) && command->attempt->enqueued == 0 &&
         rl_buffer_copy_newest(&link->output, &link->previous->output, grow);
}

/* Queues the script of |command|. */
static bool rl_link_queue_script(rl_link *link, rl_outstanding *command, rl_script script,
                                 uint64_t ttl_ms, bool grow) {
  rl_command_key key = rl_attempt_key(command->attempt);
  command->script = (uint8_t)script;
  command->by_text = command->by_text || !link->knows[script];
  assert(link->phase == RL_LINK_UP);
  return rl_link_reserve_outstanding(link, grow) &&
         (rl_link_copy(link, command, grow) ||
          rl_command_script(&link->output, script, command->by_text, &key, ttl_ms, grow)) &&
         rl_link_append_script(link, command);
}

static bool rl_link_write_set(rl_link *link, const rl_attempt *attempt, uint64_t ttl_ms) {
  rl_command_key key = rl_attempt_key(attempt);
  return rl_command_set(&link->output, &key, ttl_ms);
}

bool rl_link_queue_set(rl_link *link, redlock_time now_us, rl_outstanding_kind kind,
                       rl_attempt *attempt, uint32_t round, uint64_t ttl_ms) {
  rl_outstanding command = {attempt, now_us, round, (uint8_t)kind, 0, 0, RL_SCRIPT_NONE};
  assert(link->phase == RL_LINK_UP);
  if (attempt->resource->count > 1) {
    return rl_link_queue_script(
        link, &command, kind == RL_OUTSTANDING_HEAL ? RL_SCRIPT_HEAL_ALL : RL_SCRIPT_ACQUIRE_ALL,
        ttl_ms, true);
  }
  return rl_link_reserve_outstanding(link, true) &&
         (rl_link_copy(link, &command, true) || rl_link_write_set(link, attempt, ttl_ms)) &&
         rl_link_append(link, &command);
}

bool rl_link_queue_extend(rl_link *link, redlock_time now_us, rl_attempt *attempt, uint32_t round,
                          bool by_text, uint64_t ttl_ms) {
  rl_outstanding command = {attempt, now_us, round,         RL_OUTSTANDING_EXTEND,
                            by_text, 0,      RL_SCRIPT_NONE};
  bool several = attempt->resource->count > 1;
  if (rl_native_is_for_extend(link, now_us, attempt, ttl_ms)) {
    return rl_native_queue_extend(link, &command, ttl_ms);
  }
  return rl_link_queue_script(link, &command, several ? RL_SCRIPT_EXTEND_ALL : RL_SCRIPT_EXTEND,
                              ttl_ms, true);
}

/*
 * Returns the entry of the lease's ticket, which the release dequeues, in |entry|; NULL if there is
 * none on the node.
 */
static const char *rl_link_ticket_entry(const rl_link *link, const rl_attempt *attempt,
                                        char entry[RL_LINK_ENTRY_SIZE]) {
  if ((attempt->enqueued & link->bit) == 0) {
    return NULL;
  }
  rl_link_entry(link->notify_channel, attempt->ticket, entry);
  return entry;
}

/* Writes a script that releases and notifies. It also dequeues the lease's ticket. */
static bool rl_link_write_notifying_release(rl_link *link, const rl_outstanding *command,
                                            bool grow) {
  char entry[RL_LINK_ENTRY_SIZE];
  rl_command_key key = rl_attempt_key(command->attempt);
  return rl_command_release(&link->output, (rl_script)command->script, command->by_text, &key,
                            rl_link_ticket_entry(link, command->attempt, entry), grow);
}

static bool rl_link_queue_notifying_release(rl_link *link, rl_outstanding *command,
                                            rl_script script, bool grow) {
  command->script = (uint8_t)script;
  command->by_text = command->by_text || !link->knows[script];
  assert(link->phase == RL_LINK_UP);
  return rl_link_reserve_outstanding(link, grow) &&
         (rl_link_copy(link, command, grow) ||
          rl_link_write_notifying_release(link, command, grow)) &&
         rl_link_append_script(link, command);
}

/* Queues a release that keeps the keys for |rest_ms| (rl_hold.h). */
static bool rl_link_queue_hold(rl_link *link, rl_outstanding *command, bool notifies,
                               uint64_t rest_ms, bool grow) {
  char entry[RL_LINK_ENTRY_SIZE];
  rl_attempt *attempt = command->attempt;
  rl_script script = notifies ? RL_SCRIPT_HOLD_NOTIFY : RL_SCRIPT_HOLD;
  rl_command_key key = rl_attempt_key(attempt);
  command->script = (uint8_t)script;
  command->by_text = command->by_text || !link->knows[script];
  assert(link->phase == RL_LINK_UP);
  if (!rl_link_reserve_outstanding(link, grow) ||
      !rl_command_hold(&link->output, script, command->by_text, &key, rest_ms, attempt->fenced,
                       notifies ? rl_link_ticket_entry(link, attempt, entry) : NULL, grow)) {
    return false;
  }
  rl_attempt_will_live(attempt, command->sent_us, rest_ms);
  return rl_link_append_script(link, command);
}

static bool rl_link_queue_release_script(rl_link *link, rl_outstanding *command, bool grow) {
  const rl_attempt *attempt = command->attempt;
  redlock_time now_us = command->sent_us;
  bool several = attempt->resource->count > 1;
  bool notifies = link->notify_channel != NULL && link->notify_denied_until_us <= now_us;
  uint64_t keep_ms = rl_attempt_keep_ms(attempt, now_us);
  if (keep_ms > 0) {
    return rl_link_queue_hold(link, command, notifies, keep_ms, grow);
  }
  if (notifies) {
    rl_script script = several ? RL_SCRIPT_RELEASE_ALL_NOTIFY : RL_SCRIPT_RELEASE_NOTIFY;
    return rl_link_queue_notifying_release(link, command, script, grow);
  }
  return rl_link_queue_script(link, command, several ? RL_SCRIPT_RELEASE_ALL : RL_SCRIPT_RELEASE, 0,
                              grow);
}

bool rl_link_queue_release(rl_link *link, redlock_time now_us, rl_attempt *attempt, uint32_t round,
                           bool by_text, bool grow) {
  rl_outstanding command = {attempt, now_us, round,         RL_OUTSTANDING_RELEASE,
                            by_text, 0,      RL_SCRIPT_NONE};
  if (rl_native_is_for_release(link, now_us, attempt)) {
    return rl_native_queue_release(link, &command, grow);
  }
  return rl_link_queue_release_script(link, &command, grow);
}

/* Queues TAKE, PROLONG or CONFIRM. */
static bool rl_link_queue_fenced_or_guarded(rl_link *link, rl_outstanding *command,
                                            rl_command_fence *fenced) {
  rl_command_key key = rl_attempt_key(command->attempt);
  command->script = (uint8_t)fenced->script;
  command->by_text = command->by_text || !link->knows[fenced->script];
  fenced->by_text = command->by_text;
  assert(link->phase == RL_LINK_UP);
  if (!rl_link_reserve_outstanding(link, true) || !rl_command_fenced(&link->output, &key, fenced)) {
    return false;
  }
  return rl_link_append_script(link, command);
}

bool rl_link_queue_take(rl_link *link, redlock_time now_us, rl_outstanding_kind kind,
                        rl_attempt *attempt, uint32_t round, uint64_t ttl_ms, bool own,
                        uint64_t fence) {
  rl_outstanding command = {attempt, now_us, round, (uint8_t)kind, 0, 0, RL_SCRIPT_NONE};
  rl_command_fence fenced = {
      .script = RL_SCRIPT_TAKE, .own = own, .fence = fence, .ttl_ms = ttl_ms};
  const rl_guard *guard = link->guard;
  if (guard != NULL) { /* GRD-4. A repeated lease (|own|) always compares the history. */
    bool by_text = !link->knows[RL_SCRIPT_TAKE_HERE];
    assert(guard->body != NULL && guard->record[0] != '\0');
    fenced.script = RL_SCRIPT_TAKE_HERE;
    fenced.body = by_text ? guard->body : guard->sha1;
    fenced.seal = guard->seal;
    fenced.run_id = by_text ? guard->run_id : rl_guard_history(guard, own ? REDLOCK_NEVER : now_us);
    command.step = fenced.run_id != NULL; /* the script compares the history */
  }
  return rl_link_queue_fenced_or_guarded(link, &command, &fenced);
}

bool rl_link_queue_prolong(rl_link *link, redlock_time now_us, rl_attempt *attempt, uint32_t round,
                           bool by_text, uint64_t ttl_ms, uint64_t fence) {
  rl_outstanding command = {attempt, now_us, round,         RL_OUTSTANDING_EXTEND,
                            by_text, 0,      RL_SCRIPT_NONE};
  rl_command_fence fenced = {.script = RL_SCRIPT_PROLONG, .fence = fence, .ttl_ms = ttl_ms};
  return rl_link_queue_fenced_or_guarded(link, &command, &fenced);
}

bool rl_link_queue_confirm(rl_link *link, redlock_time now_us, rl_attempt *attempt, uint32_t round,
                           bool by_text, uint64_t ttl_ms, uint64_t fence) {
  rl_outstanding command = {attempt, now_us, round,         RL_OUTSTANDING_CONFIRM,
                            by_text, 0,      RL_SCRIPT_NONE};
  rl_command_fence fenced = {.script = RL_SCRIPT_CONFIRM, .fence = fence, .ttl_ms = ttl_ms};
  return rl_link_queue_fenced_or_guarded(link, &command, &fenced);
}

bool rl_link_queue_slots(rl_link *link, redlock_time now_us, rl_attempt *attempt, uint32_t round,
                         bool by_text, unsigned permits) {
  rl_outstanding command = {attempt, now_us, round,          RL_OUTSTANDING_SLOTS,
                            by_text, 0,      RL_SCRIPT_SLOTS};
  const rl_command_bytes base = {attempt->resource->key, attempt->resource->key_length};
  command.by_text = by_text || !link->knows[RL_SCRIPT_SLOTS];
  assert(link->phase == RL_LINK_UP);
  return rl_link_reserve_outstanding(link, true) &&
         rl_command_slots(&link->output, command.by_text, &base, permits) &&
         rl_link_append(link, &command);
}

bool rl_link_queue_attach(rl_link *link, redlock_time now_us, rl_attempt *attempt, uint32_t round,
                          const rl_attempt *handed, uint64_t ttl_ms, uint64_t floor_ms) {
  rl_outstanding command = {attempt, now_us, round, RL_OUTSTANDING_ATTACH, true, 0, RL_SCRIPT_NONE};
  rl_command_key key = rl_attempt_key(attempt);
  rl_command_key old = rl_attempt_key(handed);
  const rl_guard *guard = link->guard;
  rl_command_here here = {NULL, NULL, NULL};
  assert(link->phase == RL_LINK_UP);
  if (guard != NULL) { /* GRD-4 */
    assert(guard->record[0] != '\0');
    here = (rl_command_here){guard->guards->key, guard->record, guard->run_id};
  }
  return rl_link_reserve_outstanding(link, true) &&
         rl_command_attach(&link->output, &key, &old, ttl_ms, floor_ms,
                           guard != NULL ? &here : NULL) &&
         rl_link_append(link, &command);
}

bool rl_link_queue_arguments(rl_link *link, const rl_outstanding *command,
                             const rl_command_bytes *arguments, unsigned count) {
  assert(link->phase == RL_LINK_UP);
  return rl_link_reserve_outstanding(link, true) &&
         rl_command_arguments(&link->output, arguments, count) && rl_link_append(link, command);
}

bool rl_link_queue_force(rl_link *link, const rl_outstanding *command) {
  rl_command_key key = rl_attempt_key(command->attempt);
  const rl_command_bytes delete[] = {rl_command_word("DEL"), {key.key, key.key_length}};
  bool notifies = link->notify_channel != NULL && link->notify_denied_until_us <= command->sent_us;
  if (command->attempt->deletes_any_token) {
    return rl_link_queue_arguments(link, command, delete, 2);
  }
  if (rl_native_replaces_scripts(link, command->sent_us) &&
      rl_native_is_for_release(link, command->sent_us, command->attempt)) {
    rl_outstanding native = *command;
    return rl_native_queue_release(link, &native, true);
  }
  assert(link->phase == RL_LINK_UP);
  return rl_link_reserve_outstanding(link, true) &&
         (notifies
              ? rl_command_release(&link->output, RL_SCRIPT_RELEASE_NOTIFY, true, &key, NULL, true)
              : rl_command_script(&link->output, RL_SCRIPT_RELEASE, true, &key, 0, true)) &&
         rl_link_append(link, command);
}

bool rl_link_queue_enqueue(rl_link *link, redlock_time now_us, uint32_t ticket, const char *key,
                           size_t length, const char *entry, unsigned mode, bool labels,
                           unsigned permits) {
  rl_script script = permits > 0 ? RL_SCRIPT_ENQUEUE_SLOTS
                     : labels    ? RL_SCRIPT_ENQUEUE_LABEL
                                 : RL_SCRIPT_ENQUEUE;
  bool by_text = !link->knows[script];
  rl_outstanding command = {NULL,    now_us, ticket,         RL_OUTSTANDING_ENQUEUE,
                            by_text, 0,      (uint8_t)script};
  return rl_link_reserve_outstanding(link, true) &&
         rl_command_queue(&link->output, script, by_text, key, length, entry, mode, permits) &&
         rl_link_append(link, &command);
}

bool rl_link_queue_enqueue_all(rl_link *link, redlock_time now_us, uint32_t ticket,
                               const rl_resource *base, const char *entry, const char *before,
                               const char *notified) {
  bool by_text = !link->knows[RL_SCRIPT_ENQUEUE_ALL];
  rl_outstanding command = {
      NULL, now_us, ticket, RL_OUTSTANDING_ENQUEUE, by_text, 0, RL_SCRIPT_ENQUEUE_ALL};
  rl_command_key key = {.key = base->key,
                        .key_length = base->key_length,
                        .token = entry,
                        .token_length = strlen(entry),
                        .count = base->count,
                        .lengths = rl_resource_lengths(base)};
  return rl_link_reserve_outstanding(link, true) &&
         rl_command_enqueue_all(&link->output, by_text, &key, before, notified) &&
         rl_link_append(link, &command);
}

bool rl_link_queue_dequeue(rl_link *link, redlock_time now_us, uint32_t ticket, const char *key,
                           size_t length, const char *entry, unsigned permits) {
  rl_script script = permits > 0 ? RL_SCRIPT_DEQUEUE_SLOTS : RL_SCRIPT_DEQUEUE;
  rl_outstanding command = {NULL, now_us, ticket, RL_OUTSTANDING_DEQUEUE, 0, 0, (uint8_t)script};
  command.by_text = !link->knows[script];
  return rl_link_reserve_outstanding(link, true) &&
         rl_command_queue(&link->output, script, command.by_text, key, length, entry,
                          RL_COMMAND_ENQUEUE_NEW, permits) &&
         rl_link_append(link, &command);
}

bool rl_link_queue_probe(rl_link *link, redlock_time now_us, const char *channel) {
  rl_outstanding command = {NULL, now_us, 0, RL_OUTSTANDING_PROBE, true, 0, RL_SCRIPT_NONE};
  const rl_command_bytes publish[] = {rl_command_word("PUBLISH"), rl_command_word(channel),
                                      rl_command_word("")};
  return rl_link_queue_arguments(link, &command, publish, 3);
}
