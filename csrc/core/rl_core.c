/*
 * The core: nodes, locks and the algorithm, without any input or output.
 *
 * SPDX-License-Identifier: MIT
 *
 * Here replies become votes (rl_core_classify()), and tokens that may still be on a node are
 * released (rl_core_release()). Two rules hold throughout:
 *   - only the exact success reply is a vote for the lock; whatever else a node says is no vote and
 *     a reason; what no command of ours is answered with ends the connection;
 *   - no SET and no extend is ever sent twice. A release may be: its token is used up.
 */
#include "rl_core.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

/* Time does not go back, whatever a driver says. */
static redlock_time rl_core_clock(rl_core *core, redlock_time now_us) {
  core->now_us = rl_time_max(core->now_us, now_us);
  return core->now_us;
}

int rl_core_init(rl_core *core, const void *prefix, size_t prefix_length) {
  memset(core, 0, sizeof *core);
  core->releases_tail = &core->releases;
  core->release_at_us = REDLOCK_NEVER;
  if (prefix_length > 0) {
    core->prefix = malloc(prefix_length);
    if (core->prefix == NULL) {
      return REDLOCK_E_NO_MEMORY;
    }
    memcpy(core->prefix, prefix, prefix_length);
    core->prefix_length = prefix_length;
  }
  return REDLOCK_OK;
}

int rl_core_add(rl_core *core, const rl_address *address) {
  if (core->closed) {
    return REDLOCK_E_CLOSED;
  }
  if (core->locks != NULL || core->active) {
    return REDLOCK_E_BUSY;
  }
  if (core->node_count == REDLOCK_NODES_MAX) {
    return REDLOCK_E_LIMIT;
  }
  rl_node *node = malloc(sizeof *node);
  if (node == NULL) {
    return REDLOCK_E_NO_MEMORY;
  }
  rl_node_init(node, core->node_count, address);
  core->nodes[core->node_count++] = node;
  return REDLOCK_OK;
}

/* ---------------------------------------------------------------------------------- releasing */

/* Takes |*link| out of the list; |*link| is then the next one. */
static void rl_core_unlist_release(rl_core *core, rl_attempt **link) {
  rl_attempt *attempt = *link;
  assert(attempt != NULL);
  *link = attempt->next;
  if (attempt->next == NULL) {
    core->releases_tail = link;
  }
  attempt->next = NULL;
  attempt->listed = false;
  core->release_count--;
  rl_attempt_unref(&core->attempts, attempt);
}

static void rl_core_list_release(rl_core *core, rl_attempt *attempt) {
  if (attempt->listed) {
    return;
  }
  attempt->listed = true;
  attempt->next = NULL;
  (void)rl_attempt_ref(attempt);
  *core->releases_tail = attempt;
  core->releases_tail = &attempt->next;
  core->release_count++;
  if (core->release_count > RL_CORE_RELEASES_MAX) {
    rl_core_unlist_release(core, &core->releases);
  }
}

/* Goes through the list again after a while. */
static void rl_core_release_later(rl_core *core, redlock_time now_us) {
  core->release_at_us =
      rl_time_min(core->release_at_us, rl_time_add(now_us, RL_CORE_RELEASE_RETRY_US));
}

/* Sends the release of |attempt| to those nodes that it is due on and that can take it. */
static void rl_core_send_release(rl_core *core, redlock_time now_us, rl_attempt *attempt,
                                 bool grow) {
  uint32_t round = attempt->lock != NULL ? attempt->lock->round : 0;
  for (unsigned i = 0; i < core->node_count; i++) {
    rl_node *node = core->nodes[i];
    uint32_t bit = (uint32_t)1 << i;
    if ((attempt->due & bit) == 0 || node->phase != RL_NODE_UP) {
      continue;
    }
    if (!rl_node_has_room(node, RL_OWED_RELEASE)) {
      node->release_blocked = true;
    } else if (rl_node_queue_release(node, now_us, attempt, round, false, grow)) {
      attempt->due &= ~bit;
    } else if (grow) {
      rl_core_release_later(core, now_us); /* Out of memory. */
    } else {
      core->release_retry = true;
    }
  }
}

void rl_core_release(rl_core *core, redlock_time now_us, rl_attempt *attempt, bool grow) {
  attempt->releasing = true;
  attempt->due = attempt->sent & ~attempt->confirmed;
  rl_core_send_release(core, now_us, attempt, grow);
  if (attempt->due == 0 || attempt->gone_us <= now_us) {
    return;
  }
  rl_core_list_release(core, attempt);
}

/* Goes through all releases that are due somewhere. What has expired by itself is dropped. */
static void rl_core_continue_releases(rl_core *core, redlock_time now_us) {
  rl_attempt **link = &core->releases;
  core->release_retry = false;
  while (*link != NULL) {
    rl_attempt *attempt = *link;
    bool gone = attempt->gone_us <= now_us;
    if (!gone) {
      rl_core_send_release(core, now_us, attempt, true);
    }
    /* What is due stays so: that is how the lock sees that it was not sent. */
    if (gone || attempt->due == 0) {
      rl_core_unlist_release(core, link);
    } else {
      link = &attempt->next;
    }
  }
}

/* ---------------------------------------------------------------------------------- connections */

/*
 * The connection of |node| has ended, or could not be made. Whatever it owed will never be known:
 * those votes are unknown, and releases go out again when there is a connection again.
 */
static void rl_core_drop(rl_core *core, rl_node *node, redlock_time now_us, const char *reason) {
  rl_owed owed;
  rl_node_disconnected(node, now_us, reason);
  while (rl_node_take(node, &owed)) {
    rl_attempt *attempt = owed.attempt;
    if (attempt == NULL) {
      continue;
    }
    if (owed.kind != RL_OWED_RELEASE) {
      rl_attempt_unanswered(attempt, now_us);
    }
    if (owed.kind == RL_OWED_RELEASE && attempt->gone_us > now_us) {
      attempt->due |= (uint32_t)1 << node->index;
      rl_core_list_release(core, attempt);
    }
    if (attempt->lock != NULL && owed.kind != RL_OWED_HEAL) {
      rl_lock_vote(attempt->lock, now_us, node, &owed, REDLOCK_VOTE_UNKNOWN, node->error);
    }
    rl_attempt_unref(&core->attempts, attempt);
  }
  if (!rl_node_wants_connection(node, now_us)) {
    for (rl_lock *lock = core->locks; lock != NULL; lock = lock->next) {
      rl_lock_node_down(lock, now_us, node);
    }
  }
}

static void rl_core_came_up(rl_core *core, rl_node *node, redlock_time now_us) {
  rl_core_continue_releases(core, now_us);
  for (rl_lock *lock = core->locks; lock != NULL; lock = lock->next) {
    rl_lock_node_up(lock, now_us, node);
  }
}

void rl_core_connecting(rl_core *core, unsigned node, redlock_time now_us) {
  rl_node_connecting(core->nodes[node], rl_core_clock(core, now_us));
}

void rl_core_connected(rl_core *core, unsigned node, redlock_time now_us) {
  now_us = rl_core_clock(core, now_us);
  rl_node_connected(core->nodes[node], now_us);
  if (core->nodes[node]->phase == RL_NODE_DOWN) {
    rl_core_drop(core, core->nodes[node], now_us, "out of memory");
  }
}

void rl_core_disconnected(rl_core *core, unsigned node, redlock_time now_us, const char *reason) {
  if (core->nodes[node]->phase != RL_NODE_DOWN) {
    rl_core_drop(core, core->nodes[node], rl_core_clock(core, now_us), reason);
  }
}

/* The nodes on which a release of the list is due. */
static uint32_t rl_core_due(const rl_core *core) {
  uint32_t due = 0;
  for (const rl_attempt *attempt = core->releases; attempt != NULL; attempt = attempt->next) {
    due |= attempt->gone_us > core->now_us ? attempt->due : 0;
  }
  return due;
}

/* Whether a connection to |node| is of use: once closed, only to release what is still due there. */
static bool rl_core_needs(const rl_core *core, unsigned node) {
  return core->active && (!core->closed || (rl_core_due(core) & ((uint32_t)1 << node)) != 0);
}

rl_connection rl_core_connection(const rl_core *core, unsigned node, redlock_time now_us) {
  if (core->nodes[node]->phase != RL_NODE_DOWN) {
    return RL_CONNECTION_OPEN;
  }
  return rl_core_needs(core, node) && rl_node_wants_connection(core->nodes[node], now_us)
             ? RL_CONNECTION_WANTED
             : RL_CONNECTION_NONE;
}

/* --------------------------------------------------------------------------------------- replies */

/* What a reply means. */
typedef enum rl_meaning {
  RL_MEANING_GRANTED,
  RL_MEANING_TAKEN,
  RL_MEANING_ERROR,
  RL_MEANING_NO_SCRIPT,
  RL_MEANING_BROKEN
} rl_meaning;

static rl_meaning rl_core_classify_error(const rl_owed *owed, const char *text) {
  /* A key of another type is somebody's key. Before Redis 7 the word stands inside the text. */
  if (strstr(text, "WRONGTYPE") != NULL) {
    return RL_MEANING_TAKEN;
  }
  bool script = owed->kind == RL_OWED_EXTEND || owed->kind == RL_OWED_RELEASE;
  if (script && !owed->by_text && strncmp(text, "NOSCRIPT", 8) == 0) {
    return RL_MEANING_NO_SCRIPT;
  }
  return RL_MEANING_ERROR;
}

static rl_meaning rl_core_classify(const rl_owed *owed, const rl_reply *reply) {
  if (reply->type == RL_REPLY_ERROR) {
    return rl_core_classify_error(owed, reply->text);
  }
  if (owed->kind == RL_OWED_ACQUIRE || owed->kind == RL_OWED_HEAL) {
    if (reply->type == RL_REPLY_STATUS && strcmp(reply->text, "OK") == 0) {
      return RL_MEANING_GRANTED;
    }
    return reply->type == RL_REPLY_NIL ? RL_MEANING_TAKEN : RL_MEANING_BROKEN;
  }
  if (reply->type == RL_REPLY_INTEGER && reply->integer == 1) {
    return RL_MEANING_GRANTED;
  }
  return reply->type == RL_REPLY_INTEGER && reply->integer == 0 ? RL_MEANING_TAKEN
                                                                : RL_MEANING_BROKEN;
}

/* The node does not know the script: once more, by its text. Returns whether it was sent. */
static bool rl_core_send_text(rl_node *node, redlock_time now_us, const rl_owed *owed) {
  rl_lock *lock = owed->attempt->lock;
  if (!rl_node_has_room(node, (rl_owed_kind)owed->kind)) {
    return false;
  }
  if (owed->kind == RL_OWED_RELEASE) {
    return rl_node_queue_release(node, now_us, owed->attempt, owed->round, true, true);
  }
  if (lock == NULL || lock->phase != RL_PHASE_ROUND || lock->round != owed->round) {
    return false; /* Its round is over. */
  }
  uint64_t key_ms = rl_options_key_ms(&lock->current, lock->current.ttl_us);
  if (!rl_node_queue_extend(node, now_us, owed->attempt, owed->round, true, key_ms)) {
    return false;
  }
  rl_attempt_will_live(owed->attempt, now_us, key_ms);
  return true;
}

/* Whether the node knows the script from now on, or has forgotten it (SCRIPT FLUSH). */
static void rl_core_note_script(rl_node *node, const rl_owed *owed, rl_meaning meaning) {
  if (owed->kind != RL_OWED_EXTEND && owed->kind != RL_OWED_RELEASE) {
    return;
  }
  bool ran = meaning == RL_MEANING_GRANTED || meaning == RL_MEANING_TAKEN;
  if (ran || meaning == RL_MEANING_NO_SCRIPT) {
    node->knows[owed->kind == RL_OWED_EXTEND ? RL_SCRIPT_EXTEND : RL_SCRIPT_RELEASE] = ran;
  }
}

/*
 * A release that was answered with an error, of a node that is loading or busy, is tried again while
 * the key may live; not one that was refused for who we are.
 */
static void rl_core_release_answered(rl_core *core, const rl_node *node, redlock_time now_us,
                                     rl_attempt *attempt, redlock_vote vote, const char *error) {
  uint32_t bit = (uint32_t)1 << node->index;
  if (vote != REDLOCK_VOTE_ERROR) {
    attempt->confirmed |= bit;
  } else if (attempt->gone_us > now_us && strncmp(error, "NOPERM", 6) != 0 &&
             strncmp(error, "NOAUTH", 6) != 0) {
    attempt->due |= bit;
    rl_core_list_release(core, attempt);
    rl_core_release_later(core, now_us);
  }
}

/* Returns NULL, or why the connection must be given up. */
static const char *rl_core_answered(rl_core *core, rl_node *node, redlock_time now_us,
                                    const rl_owed *owed) {
  const rl_reply *reply = &node->reader.reply;
  rl_attempt *attempt = owed->attempt;
  rl_meaning meaning = rl_core_classify(owed, reply);
  const char *broken = NULL;
  const char *error = reply->type == RL_REPLY_ERROR ? rl_node_said(node) : NULL;
  redlock_vote vote = REDLOCK_VOTE_ERROR;
  rl_core_note_script(node, owed, meaning);
  if (meaning == RL_MEANING_NO_SCRIPT && rl_core_send_text(node, now_us, owed)) {
    return NULL;
  }
  if (meaning == RL_MEANING_GRANTED) {
    vote = REDLOCK_VOTE_GRANTED;
  } else if (meaning == RL_MEANING_TAKEN) {
    vote = REDLOCK_VOTE_TAKEN;
  } else if (meaning == RL_MEANING_BROKEN) {
    broken = "the node sent a reply that answers no command of ours";
    error = broken;
    if (owed->kind != RL_OWED_RELEASE) {
      rl_attempt_unanswered(attempt, now_us);
    }
  }
  if (owed->kind == RL_OWED_RELEASE) {
    rl_core_release_answered(core, node, now_us, attempt, vote, error);
  }
  if (attempt->lock != NULL && owed->kind != RL_OWED_HEAL) {
    rl_lock_vote(attempt->lock, now_us, node, owed, vote, error);
  }
  return broken;
}

void rl_core_input(rl_core *core, unsigned index, redlock_time now_us, const void *bytes,
                   size_t length) {
  rl_node *node = core->nodes[index];
  const char *reason;
  now_us = rl_core_clock(core, now_us);
  if (node->phase != RL_NODE_HANDSHAKE && node->phase != RL_NODE_UP) {
    return;
  }
  reason = rl_node_feed(node, now_us, bytes, length);
  while (reason == NULL) {
    rl_owed owed;
    bool came_up = false;
    int got = rl_node_next(node, now_us, &owed, &came_up, &reason);
    if (came_up) {
      rl_core_came_up(core, node, now_us);
    }
    if (got == 0) {
      break;
    }
    if (got > 0) {
      reason = rl_core_answered(core, node, now_us, &owed);
      rl_attempt_unref(&core->attempts, owed.attempt);
    }
  }
  if (reason != NULL) {
    rl_core_drop(core, node, now_us, reason);
  } else if (node->release_blocked && rl_node_has_room(node, RL_OWED_RELEASE)) {
    node->release_blocked = false;
    core->release_retry = true;
  }
}

/* ------------------------------------------------------------------------------ time and output */

void rl_core_advance(rl_core *core, redlock_time now_us) {
  rl_lock *lock;
  now_us = rl_core_clock(core, now_us);
  while ((lock = rl_timers_take(&core->timers, now_us)) != NULL) {
    rl_lock_timer(lock, now_us);
  }
  if (core->release_at_us <= now_us) {
    core->release_at_us = REDLOCK_NEVER;
    core->release_retry = true;
  }
  for (unsigned i = 0; i < core->node_count; i++) {
    const char *reason = rl_node_overdue(core->nodes[i], now_us);
    if (reason != NULL) {
      rl_core_drop(core, core->nodes[i], now_us, reason);
    }
  }
}

size_t rl_core_entropy_wanted(const rl_core *core) {
  return (size_t)core->launching_acquires * RL_LOCK_ENTROPY;
}

bool rl_core_wants_launch(const rl_core *core) {
  return core->launching.first != NULL || core->release_retry;
}

void rl_core_launch(rl_core *core, redlock_time now_us, const unsigned char *entropy,
                    size_t entropy_length) {
  rl_lock *next;
  now_us = rl_core_clock(core, now_us);
  if (core->release_retry) {
    rl_core_continue_releases(core, now_us);
  }
  for (rl_lock *lock = core->launching.first; lock != NULL; lock = next) {
    next = lock->queue_next;
    if (lock->operation != RL_OPERATION_ACQUIRE) {
      rl_lock_launch(lock, now_us, NULL);
    } else if (entropy_length >= RL_LOCK_ENTROPY) {
      rl_lock_launch(lock, now_us, entropy);
      entropy += RL_LOCK_ENTROPY;
      entropy_length -= RL_LOCK_ENTROPY;
    }
  }
}

const void *rl_core_output(const rl_core *core, unsigned index, size_t *length) {
  const rl_buffer *output = &core->nodes[index]->output;
  *length = rl_buffer_length(output);
  return *length == 0 ? NULL : output->data + output->head;
}

void rl_core_output_sent(rl_core *core, unsigned node, size_t length) {
  rl_buffer_consume(&core->nodes[node]->output, length);
}

redlock_time rl_core_deadline(const rl_core *core) {
  redlock_time deadline_us = rl_time_min(rl_timers_next(&core->timers), core->release_at_us);
  if (rl_core_wants_launch(core)) {
    return 0;
  }
  for (unsigned i = 0; i < core->node_count; i++) {
    const rl_node *node = core->nodes[i];
    if (node->phase != RL_NODE_DOWN || rl_core_needs(core, i)) {
      deadline_us = rl_time_min(deadline_us, rl_node_deadline(node));
    }
  }
  return deadline_us;
}

rl_lock *rl_core_next_ended(rl_core *core) {
  rl_lock *lock = core->ended.first;
  if (lock != NULL) {
    rl_lock_dequeue(lock);
  }
  return lock;
}

/* ---------------------------------------------------------------------------------------- ending */

void rl_core_close(rl_core *core, redlock_time now_us) {
  now_us = rl_core_clock(core, now_us);
  core->closed = true;
  for (rl_lock *lock = core->locks; lock != NULL; lock = lock->next) {
    rl_lock_close(lock, now_us);
  }
}

/* Whether a release of the list waits for a connection that is being made, or is tried at once. */
static bool rl_core_awaits_connection(const rl_core *core) {
  uint32_t due = rl_core_due(core);
  for (unsigned i = 0; i < core->node_count; i++) {
    const rl_node *node = core->nodes[i];
    bool soon = node->phase == RL_NODE_CONNECTING || node->phase == RL_NODE_HANDSHAKE ||
                rl_node_wants_connection(node, core->now_us);
    if (soon && (due & ((uint32_t)1 << i)) != 0) {
      return true;
    }
  }
  return false;
}

bool rl_core_unsent(const rl_core *core) {
  for (unsigned i = 0; i < core->node_count; i++) {
    if (core->nodes[i]->phase == RL_NODE_UP && rl_buffer_length(&core->nodes[i]->output) > 0) {
      return true;
    }
  }
  return core->release_retry || rl_core_awaits_connection(core);
}

bool rl_core_awaits(const rl_core *core, redlock_time now_us, redlock_duration patience_us) {
  for (unsigned i = 0; i < core->node_count; i++) {
    const rl_node *node = core->nodes[i];
    if (node->phase == RL_NODE_UP && node->owed_count > 0 &&
        rl_node_behind(node, now_us) <= patience_us) {
      return true;
    }
  }
  return rl_core_unsent(core);
}

bool rl_core_unanswered(const rl_core *core) {
  return rl_core_awaits(core, core->now_us, REDLOCK_NEVER) || rl_core_due(core) != 0;
}

void rl_core_forget(rl_core *core) {
  rl_owed owed;
  for (rl_lock *lock = core->locks; lock != NULL; lock = lock->next) {
    rl_lock_forget(lock);
  }
  while (core->releases != NULL) {
    core->releases->due = 0;
    rl_core_unlist_release(core, &core->releases);
  }
  core->release_retry = false;
  core->release_at_us = REDLOCK_NEVER;
  for (unsigned i = 0; i < core->node_count; i++) {
    rl_node *node = core->nodes[i];
    if (node->phase != RL_NODE_DOWN) {
      rl_node_disconnected(node, core->now_us, "");
    }
    while (rl_node_take(node, &owed)) {
      rl_attempt_unref(&core->attempts, owed.attempt);
    }
    node->failures = 0;
    node->connect_at_us = 0;
  }
}

void rl_core_free(rl_core *core) {
  assert(core->locks == NULL);
  rl_core_forget(core);
  for (unsigned i = 0; i < core->node_count; i++) {
    rl_node_free(core->nodes[i], &core->attempts);
    free(core->nodes[i]);
  }
  rl_attempt_pool_free(&core->attempts);
  rl_timers_free(&core->timers);
  free(core->prefix);
}
