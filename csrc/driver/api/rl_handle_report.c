/*
 * What a lock reports: its resources, and message and votes of its last operation.
 *
 * SPDX-License-Identifier: MIT
 */
#include <stdlib.h>
#include <string.h>

#include "client/rl_client.h"
#include "lock/rl_round.h"

const void *redlock_lock_resource(const redlock_lock *lock, size_t *length) {
  redlock_resource first = {NULL, 0};
  (void)redlock_lock_resource_at(lock, 0, &first);
  if (length != NULL) {
    *length = first.length;
  }
  return first.bytes;
}

size_t redlock_lock_resource_count(const redlock_lock *lock) {
  return lock == NULL ? 0 : rl_lock_of(lock)->resource->count;
}

int redlock_lock_resource_at(const redlock_lock *lock, size_t index, redlock_resource *resource) {
  if (lock == NULL || resource == NULL || index >= rl_lock_of(lock)->resource->count) {
    return REDLOCK_E_INVALID;
  }
  rl_resource_name name = rl_resource_at(rl_lock_of(lock)->resource, (unsigned)index);
  resource->bytes = name.resource;
  resource->length = name.length;
  return REDLOCK_OK;
}

redlock_duration redlock_lock_ttl(const redlock_lock *lock) {
  return lock == NULL ? 0 : rl_lock_options(rl_lock_of(lock))->ttl_us;
}

redlock_client *redlock_lock_client(const redlock_lock *lock) {
  return lock == NULL ? NULL : rl_client_of(lock);
}

void redlock_lock_set_data(redlock_lock *lock, void *data) {
  if (lock != NULL) {
    rl_lock_of(lock)->data = data;
  }
}

void *redlock_lock_data(const redlock_lock *lock) {
  return lock == NULL ? NULL : rl_lock_of(lock)->data;
}

/* Without memory for the message, the sentence of its error. The caller has entered the client. */
static const char *rl_handle_lend_message(redlock_lock *lock) {
  char message[RL_CLIENT_MESSAGE_MAX];
  (void)rl_lock_message(rl_lock_of(lock), message, sizeof message);
  if (message[0] == '\0') {
    return "";
  }
  if (rl_lock_reserve_extension(rl_lock_of(lock))) {
    rl_extension *extension = rl_lock_of(lock)->extension;
    free(extension->borrowed_message);
    extension->borrowed_message = strdup(message);
    if (extension->borrowed_message != NULL) {
      return extension->borrowed_message;
    }
  }
  return redlock_strerror(rl_lock_result(rl_lock_of(lock)));
}

const char *redlock_lock_message(redlock_lock *lock) {
  if (lock == NULL) {
    return "";
  }
  rl_client_enter(rl_client_of(lock));
  const char *message = rl_handle_lend_message(lock);
  rl_client_leave(rl_client_of(lock));
  return message;
}

int redlock_lock_vote_sized(redlock_lock *lock, size_t index, redlock_vote_info *info,
                            size_t size) {
  redlock_vote_info known = {0};
  if (lock == NULL || info == NULL || index >= rl_client_of(lock)->core.node_count) {
    return REDLOCK_E_INVALID;
  }
  rl_client_enter(rl_client_of(lock));
  const rl_vote *vote = &rl_result_votes(rl_lock_of(lock))[index];
  known.name = rl_client_of(lock)->core.nodes[index]->address.name;
  known.vote = (redlock_vote)vote->vote;
  known.error = rl_client_copy_text(known.text, rl_round_reason(rl_lock_of(lock), (unsigned)index),
                                    info->text);
  known.latency_us = vote->latency_us == RL_VOTE_NO_LATENCY ? REDLOCK_NEVER : vote->latency_us;
  rl_client_leave(rl_client_of(lock));
  rl_option_fill(info, size, &known, sizeof known);
  return REDLOCK_OK;
}
