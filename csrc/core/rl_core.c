/*
 * The core: nodes, locks and the algorithm, without input or output.
 *
 * SPDX-License-Identifier: MIT
 *
 * Replies are matched with their commands here, and go to the round that asked (rl_dispatch.c). One
 * rule holds throughout: no SET and no extend is ever sent twice. A release may be sent again,
 * because its token is never used again.
 */
#include "rl_core.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/rl_random.h"
#include "lease/rl_attach.h"
#include "lease/rl_extend.h"
#include "lease/rl_fence.h"
#include "lease/rl_guard_effects.h"
#include "lease/rl_margin.h"
#include "lease/rl_native_release.h"
#include "lease/rl_renew.h"
#include "lease/rl_semaphore.h"
#include "lease/rl_slots.h"
#include "lease/rl_twin.h"
#include "lock/rl_events.h"
#include "lock/rl_round.h"
#include "lock/rl_steps.h"
#include "rl_dispatch.h"
#include "wait/rl_subscriber.h"

#define RL_CORE_STEPS(operation, name, ...) [RL_OPERATION_##operation] = &rl_##name##_steps,
static const rl_steps *const rl_core_steps[] = {RL_OPERATIONS(RL_CORE_STEPS)};

static const rl_upper rl_core_upper = {
    .steps = rl_core_steps,
    .leave_waitlist = rl_waitlist_leave,
    .ended = rl_lifecycle_ended,
    .late_vote = rl_extend_late_vote,
    .backfill = rl_backfill_lock,
};

/* States of the modules above the lock layer. */
typedef struct rl_core_parts {
  rl_waitlists waitlists;
  rl_releases releases;
  rl_backfills backfills;
  rl_losses losses;
  rl_reentries reentries;
} rl_core_parts;

/* Advances the clock of the core, which never goes back. */
static redlock_time rl_core_clock(rl_core *core, redlock_time now_us) {
  core->now_us = rl_time_max(core->now_us, now_us);
  return core->now_us;
}

void rl_core_note_time(rl_core *core, redlock_time now_us) {
  (void)rl_core_clock(core, now_us);
}

static int rl_core_make_parts(rl_core *core) {
  rl_core_parts *parts = calloc(1, sizeof *parts);
  if (parts == NULL) {
    free(core->prefix);
    core->prefix = NULL;
    return REDLOCK_E_NO_MEMORY;
  }
  core->upper = &rl_core_upper;
  core->waitlists = &parts->waitlists;
  core->releases = &parts->releases;
  core->backfills = &parts->backfills;
  core->losses = &parts->losses;
  core->reentries = &parts->reentries;
  rl_list_init(&core->releases->queue);
  rl_list_init(&core->losses->queue);
  core->releases->again_at_us = REDLOCK_NEVER;
  return REDLOCK_OK;
}

int rl_core_init(rl_core *core, const void *prefix, size_t prefix_length) {
  memset(core, 0, sizeof *core);
  rl_options_default(&core->options);
  rl_list_init(&core->locks);
  rl_list_init(&core->ended);
  rl_list_init(&core->ended_awaited);
  rl_outbox_init(core);
  if (prefix_length > 0) {
    core->prefix = malloc(prefix_length);
    if (core->prefix == NULL) {
      return REDLOCK_E_NO_MEMORY;
    }
    memcpy(core->prefix, prefix, prefix_length);
    core->prefix_length = prefix_length;
  }
  return rl_core_make_parts(core);
}

int rl_core_add(rl_core *core, const rl_address *address) {
  if (core->closed) {
    return REDLOCK_E_CLOSED;
  }
  if (core->lock_count > 0 || core->active) {
    return REDLOCK_E_BUSY;
  }
  if (core->node_count == REDLOCK_NODES_MAX) {
    return REDLOCK_E_LIMIT;
  }
  rl_guard *guard = core->guards != NULL ? rl_guard_new(core->guards) : NULL;
  rl_node *node = guard != NULL || core->guards == NULL ? malloc(sizeof *node) : NULL;
  if (node == NULL) {
    rl_guard_free(guard);
    return REDLOCK_E_NO_MEMORY;
  }
  rl_node_init(node, core->node_count, address);
  rl_guard_add_node(node, guard);
  node->link.notify_channel = core->notify != NULL ? core->notify->channel : NULL;
  node->link.previous = core->node_count > 0 ? &core->nodes[core->node_count - 1]->link : NULL;
  core->nodes[core->node_count++] = node;
  core->connection_count = core->node_count;
  return REDLOCK_OK;
}

/* ------------------------------------------------------------------------------- connections */

static bool rl_core_is_subscriber(const rl_core *core, unsigned connection) {
  return connection >= core->node_count;
}

bool rl_core_has_connection(const rl_core *core, unsigned connection) {
  return connection < REDLOCK_NODES_MAX && core->nodes[connection] != NULL;
}

/* Draws the random part of the next delay of |node|. */
static void rl_core_draw_delay(rl_core *core, rl_node *node) {
  node->random = rl_random_next(&core->random);
}

/* Reports a node that has come up, or is down for some time (rl_events.h). */
static void rl_core_note_state(rl_core *core, rl_node *node, redlock_time now_us) {
  if (!node->reported_up && rl_node_is_up(node)) {
    node->reported_up = true;
    node->reported_down = false;
    rl_events_note_node(core->events, now_us, REDLOCK_EVENT_UP, node->index, "");
  } else if (!node->reported_down && rl_node_is_down(node, now_us)) {
    node->reported_up = false;
    node->reported_down = true;
    rl_events_note_node(core->events, now_us, REDLOCK_EVENT_DOWN, node->index, node->error);
  }
}

/* The connection of a subscriber has ended, or could not be made. */
static void rl_core_drop_subscriber(rl_core *core, rl_node *subscriber, redlock_time now_us,
                                    const char *reason) {
  char kept[RL_NODE_ERROR_MAX + 1];
  rl_outstanding command;
  (void)snprintf(kept, sizeof kept, "%s", reason);
  rl_core_draw_delay(core, subscriber);
  rl_node_disconnected(subscriber, now_us, kept);
  while (rl_link_take(&subscriber->link, &command)) {
  }
  rl_queue_report_subscribers_changed(core, rl_subscriber_down(core, subscriber, now_us, kept),
                                      now_us);
}

/*
 * The connection of |node| has ended, or could not be made. Votes that were outstanding are
 * unknown. Releases are sent again on the next connection.
 */
static void rl_core_settle_dropped(rl_core *core, rl_node *node, redlock_time now_us) {
  rl_outstanding command;
  node->stats.failures++;
  rl_core_note_state(core, node, now_us);
  rl_outbox_reopen(core);
  rl_twin_forget(core, node);
  while (rl_link_take(&node->link, &command)) {
    rl_attempt *attempt = command.attempt;
    if (attempt == NULL) {
      if (rl_queue_report_is_for(&command)) {
        rl_queue_report_unanswered(core, node, &command);
      }
      continue;
    }
    rl_release_unanswered(core, node, now_us, &command);
    rl_twin_tested(core, node, &command);
    if (command.kind == RL_OUTSTANDING_CONFIRM) {
      rl_fence_answered(attempt->lock, now_us, node, &command, REDLOCK_VOTE_UNKNOWN, node->error);
    } else if (attempt->lock != NULL && !rl_outstanding_has(&command, RL_APART)) {
      rl_round_vote(attempt->lock, now_us, node, &command, REDLOCK_VOTE_UNKNOWN, node->error);
    }
    rl_attempt_unref(&core->attempts, attempt);
  }
  rl_guard_effects_review(core, now_us);
  if (core->notify != NULL) {
    rl_queue_report_node_down(core, node, now_us);
  }
  if (!rl_node_wants_connection(node, now_us)) {
    RL_LIST_EACH(&core->locks, lock, rl_lock, locks) {
      rl_round_node_down(lock, now_us, node);
    }
  }
}

static void rl_core_drop(rl_core *core, rl_node *node, redlock_time now_us, const char *reason) {
  rl_core_draw_delay(core, node);
  rl_node_disconnected(node, now_us, reason);
  rl_core_settle_dropped(core, node, now_us);
}

/* Drops the connection of a node that refused to write. */
static void rl_core_drop_read_only(rl_core *core, rl_node *node, redlock_time now_us,
                                   const char *refusal) {
  rl_core_draw_delay(core, node);
  rl_node_disconnect_read_only(node, now_us, refusal);
  rl_core_settle_dropped(core, node, now_us);
}

static void rl_core_came_up(rl_core *core, rl_node *node, redlock_time now_us) {
  node->stats.connections++;
  if (!node->read_only) {
    node->error[0] = '\0';
  }
  rl_release_node_came_up(core, now_us, node);
  RL_LIST_EACH(&core->locks, lock, rl_lock, locks) {
    rl_round_node_up(lock, now_us, node);
  }
  rl_backfill_note_well(core, node);
  if (core->notify != NULL) {
    rl_subscriber_node_up(core, node);
  }
}

static void rl_core_drop_peer(rl_core *core, unsigned connection, redlock_time now_us,
                              const char *reason) {
  rl_node *end = core->nodes[connection];
  if (rl_core_is_subscriber(core, connection)) {
    rl_core_drop_subscriber(core, end, now_us, reason);
  } else {
    rl_core_drop(core, end, now_us, reason);
  }
}

void rl_core_connecting(rl_core *core, unsigned connection, redlock_time now_us) {
  rl_node *end = core->nodes[connection];
  end->tried_us = rl_core_clock(core, now_us);
  rl_link_connecting(&end->link, core->now_us);
}

void rl_core_connected(rl_core *core, unsigned connection, redlock_time now_us) {
  rl_node *end = core->nodes[connection];
  now_us = rl_core_clock(core, now_us);
  rl_guard_effects_prepare(core);
  rl_node_connected(end, now_us);
  if (end->link.phase == RL_LINK_DOWN) {
    rl_core_drop_peer(core, connection, now_us, "out of memory");
  }
}

int rl_core_login(rl_core *core, unsigned connection, const char *username, const void *password,
                  size_t length) {
  rl_link *link = &core->nodes[connection]->link;
  return link->phase == RL_LINK_CONNECTING
             ? rl_login_supply(&link->login, username, password, length)
             : REDLOCK_E_INVALID;
}

void rl_core_certificate(rl_core *core, unsigned connection, redlock_time now_us,
                         redlock_duration left_us) {
  core->nodes[connection]->certificate_ends_us = rl_time_add(rl_core_clock(core, now_us), left_us);
}

void rl_core_await_login(rl_core *core, unsigned connection) {
  rl_link *link = &core->nodes[connection]->link;
  link->login.awaited = link->phase == RL_LINK_CONNECTING;
}

void rl_core_looks_up(rl_core *core, unsigned connection, bool looks_up) {
  core->nodes[connection]->link.looks_up = looks_up;
}

bool rl_core_awaits_login(const rl_core *core, unsigned connection) {
  return rl_link_awaits_login(&core->nodes[connection]->link);
}

void rl_core_disconnected(rl_core *core, unsigned connection, redlock_time now_us,
                          const char *reason) {
  rl_link *link = &core->nodes[connection]->link;
  if (link->phase != RL_LINK_DOWN) {
    rl_link_closed(link);
    rl_core_drop_peer(core, connection, rl_core_clock(core, now_us), reason);
  }
}

/*
 * Returns true if the connection is useful. A closed core needs it only for releases that are due.
 */
static bool rl_core_needs_connection(const rl_core *core, unsigned node) {
  if (rl_core_is_subscriber(core, node)) {
    return rl_subscriber_needed(core, node - core->node_count);
  }
  return core->active && (!core->closed || (rl_release_due(core) & ((uint32_t)1 << node)) != 0);
}

uint32_t rl_core_without_connection(const rl_core *core) {
  uint32_t without = 0;
  for (unsigned i = 0; i < core->connection_count; i++) {
    without |= (uint32_t)(core->nodes[i]->link.phase == RL_LINK_DOWN) << i;
  }
  return without;
}

rl_connection rl_core_wanted_connection(const rl_core *core, unsigned connection,
                                        redlock_time now_us) {
  const rl_node *end = core->nodes[connection];
  if (end->link.phase != RL_LINK_DOWN) {
    return RL_CONNECTION_OPEN;
  }
  return rl_core_needs_connection(core, connection) && rl_node_wants_connection(end, now_us)
             ? RL_CONNECTION_WANTED
             : RL_CONNECTION_NONE;
}

/* ----------------------------------------------------------------------------------- input */

/* Reads notifications, and the replies of a handshake. */
static void rl_core_input_of_subscriber(rl_core *core, rl_node *subscriber, redlock_time now_us,
                                        const void *bytes, size_t length) {
  const char *reason = rl_link_feed(&subscriber->link, now_us, bytes, length);
  while (reason == NULL) {
    rl_outstanding command;
    bool came_up = false;
    int got = rl_link_next(&subscriber->link, now_us, &command, &came_up, &reason);
    if (came_up) {
      rl_subscriber_up(core, subscriber);
    }
    if (got == 0) {
      break;
    }
    if (got > 0) {
      rl_queue_report_message(core, subscriber->index, now_us, &subscriber->link.reader.reply);
    }
  }
  if (reason != NULL) {
    rl_core_drop_subscriber(core, subscriber, now_us, reason);
  }
}

/*
 * Gives the reply of the node to the module that asked. Returns why the connection must end, or
 * NULL. The guard has read its own reply already.
 */
static const char *rl_core_answered(rl_core *core, rl_node *node, redlock_time now_us,
                                    const rl_outstanding *command) {
  const char *reason;
  if (command->kind == RL_OUTSTANDING_GUARD) {
    return NULL;
  }
  if (command->attempt == NULL && rl_queue_report_is_for(command)) {
    rl_queue_report_answered(core, node, now_us, command);
    return NULL;
  }
  reason = rl_native_release_is_for(command)
               ? rl_native_release_answered(core, node, now_us, command)
               : rl_dispatch(core, node, now_us, command);
  rl_attempt_unref(&core->attempts, command->attempt);
  return reason;
}

void rl_core_input(rl_core *core, unsigned connection, redlock_time now_us, const void *bytes,
                   size_t length) {
  rl_node *node = core->nodes[connection];
  const char *reason;
  now_us = rl_core_clock(core, now_us);
  if (rl_core_is_subscriber(core, connection)) {
    if (node->link.phase == RL_LINK_HANDSHAKE || node->link.phase == RL_LINK_UP) {
      rl_core_input_of_subscriber(core, node, now_us, bytes, length);
    }
    return;
  }
  if (node->link.phase != RL_LINK_HANDSHAKE && node->link.phase != RL_LINK_UP) {
    return;
  }
  char refusal[RL_REASON_MAX + 1];
  refusal[0] = '\0';
  rl_outbox_reopen(core);
  core->releases->reading = true;
  reason = rl_link_feed(&node->link, now_us, bytes, length);
  while (reason == NULL && rl_reply_has_bytes(&node->link.reader)) {
    rl_outstanding command;
    bool came_up = false;
    int got = rl_link_next(&node->link, now_us, &command, &came_up, &reason);
    if (got > 0 && command.kind == RL_OUTSTANDING_GUARD) {
      rl_guard_effects_answered(core, node, now_us, &command, came_up);
    }
    if (came_up) {
      rl_core_came_up(core, node, now_us);
    }
    if (got == 0) {
      break;
    }
    if (got > 0) {
      reason = rl_core_answered(core, node, now_us, &command);
    }
    if (got > 0 && reason == NULL && rl_node_refuses_to_write(node)) {
      (void)snprintf(refusal, sizeof refusal, "%s", rl_link_error_text(&node->link));
    }
  }
  core->releases->reading = false;
  if (reason != NULL) {
    rl_core_drop(core, node, now_us, reason);
  } else if (refusal[0] != '\0') { /* after all other replies of this input */
    rl_core_drop_read_only(core, node, now_us, refusal);
  } else {
    rl_core_note_state(core, node, now_us);
    rl_release_check_room(core, node);
    rl_backfill_note_well(core, node);
  }
}

/* --------------------------------------------------------------------------- time and output */

static void rl_core_advance_subscribers(rl_core *core, redlock_time now_us) {
  rl_subscribers_close_idle(core, now_us);
  for (unsigned i = core->node_count; i < rl_core_connection_count(core); i++) {
    rl_node *subscriber = core->nodes[i];
    const char *reason = rl_subscriber_overdue(core, subscriber, now_us);
    if (reason != NULL) {
      rl_link_gave_up(&subscriber->link);
      rl_core_drop_subscriber(core, subscriber, now_us, reason);
    }
  }
}

void rl_core_advance(rl_core *core, redlock_time now_us) {
  rl_timers_entry *timer;
  now_us = rl_core_clock(core, now_us);
  while ((timer = rl_timers_take(&core->timers, now_us)) != NULL) {
    rl_lock_timer(rl_lock_of_timer(timer), now_us);
  }
  rl_release_advance(core, now_us);
  for (unsigned i = 0; i < core->node_count; i++) {
    rl_link *link = &core->nodes[i]->link;
    const char *reason = rl_link_overdue(link, now_us);
    if (reason != NULL) {
      rl_link_gave_up(link);
    }
    if (core->keep_us != 0 && rl_link_check_idle_at(link, core->keep_us) <= now_us &&
        !rl_link_check_idle(link, now_us)) {
      reason = "out of memory";
    }
    if (reason != NULL) {
      rl_core_drop(core, core->nodes[i], now_us, reason);
    }
  }
  if (core->notify != NULL) {
    rl_core_advance_subscribers(core, now_us);
  }
}

size_t rl_core_entropy_wanted(const rl_core *core) {
  return rl_pacer_entropy_wanted(core);
}

/* Returns when rl_core_send() is due. */
static inline redlock_time rl_core_sends_at(const rl_core *core) {
  return core->releases->again || rl_notify_has_news(core)
             ? 0
             : rl_time_min(rl_pacer_deadline(core), rl_backfill_deadline(core));
}

bool rl_core_wants_send(const rl_core *core) {
  return rl_core_sends_at(core) <= core->now_us;
}

void rl_core_send(rl_core *core, redlock_time now_us, const unsigned char *entropy,
                  size_t entropy_length) {
  now_us = rl_core_clock(core, now_us);
  if (core->releases->again) {
    rl_release_send_all(core, now_us);
  }
  rl_backfill_continue(core, now_us);
  rl_pacer_send(core, now_us, entropy, entropy_length);
  rl_notify_continue(core, now_us);
}

const void *rl_core_output(const rl_core *core, unsigned connection, size_t *length) {
  const rl_buffer *output = &core->nodes[connection]->link.output;
  *length = rl_buffer_length(output);
  return *length == 0 ? NULL : output->data + output->head;
}

uint32_t rl_core_with_output(const rl_core *core) {
  uint32_t with_output = 0;
  for (unsigned i = 0; i < core->connection_count; i++) {
    with_output |= (uint32_t)rl_core_has_output(core, i) << i;
  }
  return with_output;
}

void rl_core_output_sent(rl_core *core, unsigned connection, size_t length) {
  rl_link_sent(&core->nodes[connection]->link, length);
}

redlock_time rl_core_deadline(const rl_core *core) {
  redlock_time deadline_us = rl_core_sends_at(core);
  if (deadline_us <= core->now_us) {
    return 0;
  }
  deadline_us = rl_time_min(deadline_us, rl_timers_next(&core->timers));
  deadline_us = rl_time_min(deadline_us, core->releases->again_at_us);
  deadline_us = rl_time_min(deadline_us, rl_subscribers_deadline(core));
  for (unsigned i = 0; i < core->node_count; i++) {
    const rl_node *node = core->nodes[i];
    if (node->link.phase != RL_LINK_DOWN || rl_core_needs_connection(core, i)) {
      deadline_us = rl_time_min(deadline_us, rl_node_deadline(node));
    }
  }
  for (unsigned i = 0; i < core->node_count && core->keep_us != 0; i++) {
    const rl_link *link = &core->nodes[i]->link;
    deadline_us = rl_time_min(deadline_us, rl_link_check_idle_at(link, core->keep_us));
  }
  return deadline_us;
}

rl_lock *rl_core_next_ended(rl_core *core) {
  rl_lock *lock = rl_lock_queue_first(&core->ended);
  if (lock != NULL) {
    rl_list_remove(&lock->queue);
  }
  return lock;
}

/* ------------------------------------------------------------------------------------ ending */

void rl_core_close(rl_core *core, redlock_time now_us) {
  now_us = rl_core_clock(core, now_us);
  core->closed = true;
  RL_LIST_EACH(&core->locks, lock, rl_lock, locks) {
    rl_lock_close(lock, now_us);
  }
  rl_release_hurry(core, now_us);
}

void rl_core_before_pause(rl_core *core, redlock_time now_us) {
  rl_release_hurry(core, rl_core_clock(core, now_us));
  rl_notify_continue(core, core->now_us);
}

/* Returns true if a due release waits for a connection that is being made, or may begin now. */
static bool rl_core_awaits_connection(const rl_core *core) {
  uint32_t due = rl_release_due(core);
  for (unsigned i = 0; i < core->node_count; i++) {
    const rl_node *node = core->nodes[i];
    bool soon = node->link.phase == RL_LINK_CONNECTING || node->link.phase == RL_LINK_HANDSHAKE ||
                rl_node_wants_connection(node, core->now_us);
    if (soon && (due & ((uint32_t)1 << i)) != 0) {
      return true;
    }
  }
  return false;
}

bool rl_core_has_unsent(const rl_core *core) {
  for (unsigned i = 0; i < core->node_count; i++) {
    if (core->nodes[i]->link.phase == RL_LINK_UP &&
        rl_buffer_length(&core->nodes[i]->link.output) > 0) {
      return true;
    }
  }
  return core->releases->again || rl_notify_has_news(core) || rl_core_awaits_connection(core);
}

bool rl_core_awaits_replies(const rl_core *core, redlock_time now_us,
                            redlock_duration patience_us) {
  for (unsigned i = 0; i < core->node_count; i++) {
    const rl_node *node = core->nodes[i];
    if (node->link.phase == RL_LINK_UP && node->link.outstanding_count > 0 &&
        rl_link_oldest_age(&node->link, now_us) <= patience_us) {
      return true;
    }
  }
  return rl_core_has_unsent(core);
}

bool rl_core_has_unanswered(const rl_core *core) {
  return rl_core_awaits_replies(core, core->now_us, REDLOCK_NEVER) || rl_release_due(core) != 0;
}

void rl_core_reset(rl_core *core) {
  rl_outstanding command;
  RL_LIST_EACH(&core->locks, lock, rl_lock, locks) {
    rl_lock_reset(lock);
  }
  rl_notify_reset(core);
  rl_release_reset(core);
  core->backfills->due = 0;
  for (unsigned i = 0; i < core->node_count; i++) {
    rl_node *node = core->nodes[i];
    if (node->link.phase != RL_LINK_DOWN) {
      rl_node_disconnected(node, core->now_us, "");
    }
    while (rl_link_take(&node->link, &command)) {
      rl_attempt_unref(&core->attempts, command.attempt);
    }
    node->failures = 0;
    node->connect_at_us = 0;
    node->lacks_keys = false;
  }
}

void rl_core_reset_stats(rl_core *core) {
  memset(&core->stats, 0, sizeof core->stats);
  rl_events_reset(core->events);
  for (unsigned i = 0; i < core->node_count; i++) {
    rl_node *node = core->nodes[i];
    memset(&node->stats, 0, sizeof node->stats);
    node->reported_up = false;
    node->reported_down = false;
    node->quarantine_ends_us = 0;
  }
}

size_t rl_core_count_leases(const rl_core *core, redlock_time now_us) {
  size_t held = 0;
  if (rl_core_leases_at_most(core, now_us) > 0) {
    RL_LIST_EACH(&core->locks, lock, rl_lock, locks) {
      held += rl_lock_remaining(lock, now_us) > 0;
    }
  }
  return held;
}

size_t rl_core_waiting(const rl_core *core) {
  size_t waiting = 0;
  if (core->busy_count > 0) {
    RL_LIST_EACH(&core->locks, lock, rl_lock, locks) {
      waiting += rl_lock_is_in_flight(lock) && lock->has_waited;
    }
  }
  return waiting;
}

void rl_core_free(rl_core *core) {
  if (core->waitlists == NULL) {
    return; /* rl_core_init() failed. */
  }
  assert(core->lock_count == 0);
  rl_core_reset(core);
  rl_notify_close(core);
  rl_events_close(&core->events);
  rl_waitlists_free(core);
  for (unsigned i = 0; rl_core_has_connection(core, i); i++) {
    rl_node_free(core->nodes[i], &core->attempts);
    free(core->nodes[i]);
  }
  rl_attempt_pool_free(&core->attempts);
  rl_timers_free(&core->timers);
  rl_outbox_free(core);
  rl_reentries_free(core);
  rl_slots_forget(core);
  rl_guard_close(core->guards);
  free(core->prefix);
  free(core->waitlists); /* the first field of rl_core_parts */
}
