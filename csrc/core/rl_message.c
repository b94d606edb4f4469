/*
 * The error message of an operation: a sentence that names the nodes.
 *
 * SPDX-License-Identifier: MIT
 */
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "lease/rl_semaphore.h"
#include "lock/rl_result.h"
#include "lock/rl_round.h"
#include "rl_core.h"

#define RL_MESSAGE_RESOURCE_MAX 64

typedef struct rl_message {
  char *text;
  size_t size;
  size_t length;
  rl_result result;
  const rl_vote *votes;
} rl_message;

__attribute__((format(printf, 2, 3))) static void rl_message_add(rl_message *message,
                                                                 const char *format, ...) {
  va_list arguments;
  if (message->length + 1 >= message->size) {
    return;
  }
  va_start(arguments, format);
  int added = vsnprintf(message->text + message->length, message->size - message->length, format,
                        arguments);
  va_end(arguments);
  if (added > 0) {
    size_t room = message->size - message->length - 1;
    message->length += (size_t)added < room ? (size_t)added : room;
  }
}

/* Adds a resource in quotes. Bytes that are not printable ASCII appear in hexadecimal. */
static void rl_message_resource(rl_message *message, const rl_lock *lock, unsigned index) {
  rl_resource_name name = rl_resource_at(lock->resource, index);
  const char *bytes = name.resource;
  size_t length = name.length;
  rl_message_add(message, "'");
  for (size_t i = 0; i < length && i < RL_MESSAGE_RESOURCE_MAX; i++) {
    unsigned char byte = (unsigned char)bytes[i];
    bool plain = byte >= 0x20 && byte < 0x7f && byte != '\\';
    rl_message_add(message, plain ? "%c" : "\\x%02x", byte);
  }
  rl_message_add(message, length > RL_MESSAGE_RESOURCE_MAX ? "...'" : "'");
}

/* Adds "'a'", or for several resources "the lock on 'a' and 2 more". */
static void rl_message_subject(rl_message *message, const rl_lock *lock) {
  unsigned count = lock->resource->count;
  if (message->result.operation == RL_OPERATION_BOOTSTRAP) {
    rl_message_add(message, "bootstrap");
    return;
  }
  if (count > 1) {
    rl_message_add(message, "the lock on ");
  }
  rl_message_resource(message, lock, 0);
  if (count > 1) {
    rl_message_add(message, " and %u more", count - 1);
  }
}

/*
 * Adds the nodes whose votes count as one of |counts|: "a:1, b:2", or with reasons "a:1: its
 * reason; b:2: its reason".
 */
static void rl_message_nodes(rl_message *message, const rl_lock *lock, unsigned counts,
                             bool reasons) {
  const char *separator = "";
  for (unsigned i = 0; i < lock->core->node_count; i++) {
    const rl_vote *entry = &message->votes[i];
    const char *reason = rl_round_reason(lock, i);
    if (!entry->settled || (rl_vote_counts_as(entry->vote) & counts) == 0) {
      continue;
    }
    rl_message_add(message, "%s%s", separator, lock->core->nodes[i]->address.name);
    if (reasons) {
      /* Only a denial has no reason of its own. */
      const char *taken =
          message->result.operation == RL_OPERATION_ACQUIRE ? "held by another client" : "lost";
      rl_message_add(message, ": ");
      if (entry->key != 0) {
        rl_message_resource(message, lock, entry->key - 1u);
        rl_message_add(message, " is ");
      }
      rl_message_add(message, "%s", reason[0] != '\0' ? reason : taken);
    }
    separator = reasons ? "; " : ", ";
  }
}

/* Adds the nodes without a vote, although they did not decide the result. */
static void rl_message_failed(rl_message *message, const rl_lock *lock) {
  if (message->result.quorum.failed > 0) {
    rl_message_add(message, "; without a vote: ");
    rl_message_nodes(message, lock, RL_COUNT_FAILED, true);
  }
}

/* A majority granted the lock, but none confirmed the fencing token (rl_fence.c). */
static void rl_message_unconfirmed(rl_message *message, const rl_lock *lock) {
  const char *separator = ": ";
  rl_message_add(message,
                 ": %u of %u nodes granted it, but no majority confirmed its fencing token",
                 message->result.quorum.granted, lock->core->node_count);
  for (unsigned i = 0; i < lock->core->node_count; i++) {
    const char *reason = rl_round_reason(lock, i);
    if (reason[0] != '\0') {
      rl_message_add(message, "%s%s: %s", separator, lock->core->nodes[i]->address.name, reason);
      separator = "; ";
    }
  }
}

/* Adds how many nodes are quarantined, and when the first of them votes again. */
static void rl_message_quarantined(rl_message *message, const rl_lock *lock) {
  const rl_core *core = lock->core;
  redlock_duration first_us = REDLOCK_NEVER;
  unsigned quarantined = 0;
  for (unsigned i = 0; i < core->node_count; i++) {
    if (message->votes[i].settled && message->votes[i].vote == REDLOCK_VOTE_QUARANTINED) {
      quarantined++;
      first_us =
          rl_time_min(first_us, rl_guard_quarantined(core->nodes[i]->link.guard, core->now_us));
    }
  }
  if (quarantined > 0) {
    rl_message_add(message, "%u of %u nodes %s quarantined", quarantined, core->node_count,
                   quarantined == 1 ? "is" : "are");
    if (first_us != REDLOCK_NEVER && first_us > 0) {
      rl_message_add(
          message, ", the first for %llu.%llu s", (unsigned long long)(first_us / REDLOCK_SECONDS),
          (unsigned long long)(first_us % REDLOCK_SECONDS / (100 * REDLOCK_MILLISECONDS)));
    }
    rl_message_add(message, "; wait, or bootstrap a new cluster: ");
  }
}

static void rl_message_unavailable(rl_message *message, const rl_lock *lock) {
  const rl_quorum *quorum = &message->result.quorum;
  rl_operation operation = message->result.operation;
  unsigned nodes = lock->core->node_count;
  unsigned yes = quorum->granted;
  if (operation == RL_OPERATION_ACQUIRE &&
      rl_quorum_decide_acquire(quorum, rl_core_quorum(lock->core, operation)) ==
          RL_DECISION_GRANTED) {
    rl_message_unconfirmed(message, lock);
    return;
  }
  if (rl_operation_has(operation, RL_REMOVES)) {
    yes += quorum->denied + quorum->unsent;
  }
  rl_message_add(message, ": %u of %u nodes %s (%u needed): ", yes, nodes,
                 rl_operation_words_of[operation].done, rl_core_quorum(lock->core, operation));
  rl_message_quarantined(message, lock);
  rl_message_nodes(message, lock, RL_COUNT_FAILED | RL_COUNT_DENIED, true);
}

static void rl_message_not_held(rl_message *message, const rl_lock *lock) {
  if (message->result.operation == RL_OPERATION_FORCE_RELEASE) {
    rl_message_add(message, ": no node that answered has such a key: the lock is free or has "
                            "another holder, so inspect it again");
    rl_message_failed(message, lock);
  } else {
    rl_message_add(message, ": %s", redlock_strerror(REDLOCK_E_NOT_HELD));
  }
}

static void rl_message_expired(rl_message *message) {
  unsigned long long ttl_ms = rl_time_ms_down(message->result.ttl_us);
  const char *expired = rl_operation_words_of[message->result.operation].expired;
  if (expired != NULL) {
    rl_message_add(message, "%s", expired);
  } else if (message->result.quorum.granted == 0) {
    rl_message_add(message, ": a ttl of %llu ms leaves nothing after the drift allowance", ttl_ms);
  } else {
    rl_message_add(message, ": the majority came after %llu ms, too late for a ttl of %llu ms",
                   (unsigned long long)rl_time_ms_down(message->result.took_us), ttl_ms);
  }
}

/*
 * Adds the nodes that hold |key|, one of several, for another client; 0: nodes that did not name
 * the key.
 */
static bool rl_message_holders(rl_message *message, const rl_lock *lock, unsigned key, bool first) {
  const char *separator = first ? ": " : "; ";
  bool any = false;
  for (unsigned i = 0; i < lock->core->node_count; i++) {
    const rl_vote *entry = &message->votes[i];
    if (!entry->settled || rl_vote_counts_as(entry->vote) != RL_COUNT_DENIED || entry->key != key) {
      continue;
    }
    rl_message_add(message, "%s", separator);
    if (!any && key != 0) {
      rl_message_resource(message, lock, key - 1);
      rl_message_add(message, " on ");
    }
    rl_message_add(message, "%s", lock->core->nodes[i]->address.name);
    separator = ", ";
    any = true;
  }
  return any;
}

/* Adds which of several resources have another holder, and on which nodes. */
static void rl_message_in_the_way(rl_message *message, const rl_lock *lock) {
  bool first = true;
  rl_message_add(message, " is taken: %u of %u nodes hold one of them for another client",
                 message->result.quorum.denied, lock->core->node_count);
  for (unsigned key = 1; key <= lock->resource->count; key++) {
    first = !rl_message_holders(message, lock, key, first) && first;
  }
  (void)rl_message_holders(message, lock, 0, first);
}

/* Returns the label of the holder, or "" if the waiter does not know it. */
static const char *rl_message_holder(const rl_lock *lock) {
  const rl_extension *extension = lock->extension;
  return extension != NULL && extension->holder.length > 0 ? extension->holder.text : "";
}

/* SEM-4. Adds that clients of the semaphore disagree. */
static void rl_message_permits(rl_message *message, const rl_lock *lock) {
  rl_message_add(message, " is taken: %u of %u nodes have no free slot of %d",
                 message->result.quorum.denied, lock->core->node_count, lock->current->permits);
  if (rl_semaphore_other(lock) != 0) {
    rl_message_add(message, "; another client uses permits = %u: give all clients the same number",
                   rl_semaphore_other(lock));
  }
  rl_message_add(message, ": ");
  rl_message_nodes(message, lock, RL_COUNT_DENIED, false);
}

static void rl_message_taken(rl_message *message, const rl_lock *lock) {
  unsigned needed = rl_core_quorum(lock->core, RL_OPERATION_ACQUIRE);
  const char *holder = rl_message_holder(lock);
  if (rl_quorum_decide_acquire(&message->result.quorum, needed) == RL_DECISION_UNAVAILABLE) {
    rl_message_add(message, " was taken, and the last attempt was not answered in time");
  } else if (rl_semaphore_of(lock) != NULL) {
    rl_message_permits(message, lock);
  } else if (lock->resource->count > 1) {
    rl_message_in_the_way(message, lock);
  } else if (holder[0] != '\0') {
    rl_message_add(message,
                   " is taken, held by '%s': %u of %u nodes hold it for another client: ", holder,
                   message->result.quorum.denied, lock->core->node_count);
    rl_message_nodes(message, lock, RL_COUNT_DENIED, false);
  } else {
    rl_message_add(message, " is taken: %u of %u nodes hold it for another client: ",
                   message->result.quorum.denied, lock->core->node_count);
    rl_message_nodes(message, lock, RL_COUNT_DENIED, false);
  }
  rl_message_failed(message, lock);
}

/* Adds the nodes that deny the lock, also by late votes. */
static void rl_message_denied(rl_message *message, const rl_lock *lock) {
  const char *separator = ": ";
  for (unsigned i = 0; i < lock->core->node_count; i++) {
    if ((message->result.deniers >> i & 1) != 0) {
      rl_message_add(message, "%s%s", separator, lock->core->nodes[i]->address.name);
      separator = ", ";
    }
  }
}

const char *rl_lock_message(const rl_lock *lock, char *buffer, size_t size) {
  rl_message message = {buffer, size, 0, rl_result_of(lock), rl_result_votes(lock)};
  buffer[0] = '\0';
  int result = rl_lock_result(lock);
  if (result == REDLOCK_OK || result == REDLOCK_PENDING) {
    return buffer;
  }
  rl_message_subject(&message, lock);
  if (message.result.refused != NULL) {
    rl_message_add(&message, ": %s", message.result.refused);
    return buffer;
  }
  switch (result) {
  case REDLOCK_E_TAKEN:
    rl_message_taken(&message, lock);
    break;
  case REDLOCK_E_LOST:
    rl_message_add(&message, " is lost: %u of %u nodes no longer have its token",
                   rl_quorum_count(message.result.deniers), lock->core->node_count);
    rl_message_denied(&message, lock);
    break;
  case REDLOCK_E_UNAVAILABLE:
    rl_message_unavailable(&message, lock);
    break;
  case REDLOCK_E_NOT_HELD:
    rl_message_not_held(&message, lock);
    break;
  case REDLOCK_E_EXPIRED:
    rl_message_expired(&message);
    break;
  default:
    rl_message_add(&message, ": %s", redlock_strerror(result));
    break;
  }
  return buffer;
}
