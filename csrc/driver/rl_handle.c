/*
 * Locks as callers see them, and the blocking calls.
 *
 * SPDX-License-Identifier: MIT
 */
#include "rl_handle.h"

#include <stdlib.h>

#include "rl_client.h"
#include "rl_late.h"
#include "rl_poll.h"
#include "rl_renew.h"
#include "rl_round.h"
#include "rl_turn.h"

#define RL_HANDLE_OVERHEAD 16 /* of an allocation */

/* ------------------------------------------------------------------------------------ life */

int rl_handle_new(redlock_lock **made, redlock_client *client, const void *resource,
                  size_t resource_length, const rl_options *options) {
  redlock_lock *lock = calloc(1, sizeof *lock);
  if (lock == NULL) {
    return REDLOCK_E_NO_MEMORY;
  }
  lock->core = rl_lock_new(&client->core, resource, resource_length, options);
  if (lock->core == NULL) {
    free(lock);
    return REDLOCK_E_NO_MEMORY;
  }
  lock->core->owner = lock;
  lock->client = redlock_client_ref(client);
  *made = lock;
  return REDLOCK_OK;
}

/* What is wrong with the arguments of redlock_lock_new(), as a static sentence, or NULL. */
static const char *rl_handle_wrong(const redlock_client *client, const void *resource,
                                   size_t resource_length) {
  if (resource == NULL && resource_length > 0) {
    return "resource is NULL, but has a length";
  }
  return client->core.node_count == 0 ? "the client has no nodes" : NULL;
}

int redlock_lock_new_sized(redlock_lock **made, redlock_client *client, const void *resource,
                           size_t resource_length, const redlock_options *given,
                           size_t options_size) {
  redlock_options known;
  if (made == NULL || client == NULL) {
    return REDLOCK_E_INVALID;
  }
  *made = NULL;
  rl_client_check_fork(client);
  rl_options options = client->core.options;
  const char *wrong = rl_handle_wrong(client, resource, resource_length);
  if (wrong == NULL && given != NULL) {
    wrong = rl_option_fit(&rl_options_of_lock, &known, given, options_size);
    wrong = wrong != NULL ? wrong : rl_options_read(&options, &known);
  }
  if (wrong != NULL) {
    return rl_client_note(client, REDLOCK_E_INVALID, wrong);
  }
  if (resource_length > REDLOCK_KEY_MAX - client->core.prefix_length) {
    return rl_client_note(client, REDLOCK_E_LIMIT,
                          "prefix and resource together are longer than 4096 bytes");
  }
  int error = client->core.closed
                  ? REDLOCK_E_CLOSED
                  : rl_handle_new(made, client, resource, resource_length, &options);
  return rl_client_note(client, error, NULL);
}

void redlock_lock_free(redlock_lock *lock) {
  if (lock == NULL) {
    return;
  }
  redlock_client *client = lock->client;
  rl_client_check_fork(client);
  rl_lock_free(lock->core, redlock_now());
  rl_turn_flush(client);
  rl_poll_sync(client);
  free(lock);
  if (--client->references == 0) {
    rl_client_destroy(client); /* Without waiting, which redlock_client_free() would do. */
  }
}

/* --------------------------------------------------------------------------------- beginning */

int rl_handle_acquire(redlock_lock *lock, const redlock_options *given, size_t options_size) {
  redlock_options known;
  if (lock == NULL) {
    return REDLOCK_E_INVALID;
  }
  rl_client_check_fork(lock->client);
  if (given != NULL) {
    const char *wrong = rl_option_fit(&rl_options_of_lock, &known, given, options_size);
    if (wrong != NULL) {
      return rl_lock_refuse_argument(lock->core, RL_OPERATION_ACQUIRE, wrong);
    }
  }
  return rl_lock_acquire(lock->core, redlock_now(), given != NULL ? &known : NULL, true);
}

int rl_handle_extend(redlock_lock *lock, redlock_duration ttl_us) {
  if (lock == NULL) {
    return REDLOCK_E_INVALID;
  }
  rl_client_check_fork(lock->client);
  return rl_lock_extend(lock->core, redlock_now(), ttl_us, true);
}

int rl_handle_release(redlock_lock *lock) {
  if (lock == NULL) {
    return REDLOCK_E_INVALID;
  }
  rl_client_check_fork(lock->client);
  return rl_lock_release(lock->core, redlock_now(), true);
}

/* Wakes the caller's loop, which is to call redlock_client_process(). */
static int rl_handle_started(redlock_lock *lock, int error) {
  if (error == REDLOCK_OK) {
    rl_poll_sync(lock->client);
  }
  return error;
}

int redlock_lock_acquire_start_sized(redlock_lock *lock, const redlock_options *options,
                                     size_t options_size) {
  return rl_handle_started(lock, rl_handle_acquire(lock, options, options_size));
}

int redlock_lock_extend_start(redlock_lock *lock, redlock_duration ttl_us) {
  return rl_handle_started(lock, rl_handle_extend(lock, ttl_us));
}

int redlock_lock_release_start(redlock_lock *lock) {
  return rl_handle_started(lock, rl_handle_release(lock));
}

/* ------------------------------------------------------------------------------------- ending */

int rl_handle_outcome(redlock_lock *lock, redlock_duration least_us,
                      redlock_duration *validity_us) {
  redlock_client *client = lock->client;
  rl_client_check_fork(client);
  bool had_lease = lock->core->lease != NULL;
  /* Without a lease nothing can have run out meanwhile, and a look at the clock costs. */
  redlock_time now_us = had_lease ? redlock_now() : client->core.now_us;
  int result = rl_lock_outcome(lock->core, rl_time_add(now_us, least_us - 1));
  if (had_lease && lock->core->lease == NULL) {
    rl_turn_flush(client);
    rl_poll_wake(client);
  }
  if (validity_us != NULL) {
    *validity_us = rl_lock_remaining(lock->core, now_us);
  }
  return result;
}

int rl_handle_pending(const redlock_lock *lock) {
  return rl_lock_result(lock->core) == REDLOCK_PENDING && !rl_fork_happened(&lock->client->mark);
}

size_t rl_handle_size(const redlock_lock *lock) {
  const rl_lock *core = lock->core;
  size_t own = core->options != &core->core->options ? sizeof *core->options : 0;
  size_t votes = core->core->node_count * sizeof core->votes[0];
  size_t renewal = core->renewal != NULL ? sizeof *core->renewal + votes + RL_HANDLE_OVERHEAD : 0;
  return sizeof *lock + sizeof *core + own + votes + renewal + sizeof *core->resource +
         core->resource->key_length + (size_t)3 * RL_HANDLE_OVERHEAD;
}

int redlock_lock_result(const redlock_lock *lock) {
  /* A lease that has run out is dropped when that is told: the lock is not what the caller sees of it. */
  return lock == NULL ? REDLOCK_E_INVALID : rl_handle_outcome((redlock_lock *)lock, 1, NULL);
}

void redlock_lock_cancel(redlock_lock *lock) {
  if (lock == NULL) {
    return;
  }
  rl_client_check_fork(lock->client);
  rl_lock_cancel(lock->core, redlock_now(), REDLOCK_E_CANCELLED);
  rl_turn_flush(lock->client);
  rl_poll_wake(lock->client);
}

/* ---------------------------------------------------------------------------------- blocking */

redlock_duration rl_handle_late(redlock_lock *lock) {
  rl_client_check_fork(lock->client);
  redlock_time now_us = redlock_now();
  redlock_duration left_us = rl_time_sub(rl_late_until(lock->core, now_us), now_us);
  if (left_us == 0) {
    rl_core_rest(&lock->client->core, now_us);
    rl_turn_flush(lock->client);
  }
  return left_us;
}

/* Nobody may call again for long: late nodes are served now, as far as they are worth a wait. */
static void rl_handle_serve_late(redlock_lock *lock) {
  int error = REDLOCK_OK;
  for (redlock_duration left_us = rl_handle_late(lock); left_us > 0 && error == REDLOCK_OK;
       left_us = rl_handle_late(lock)) {
    error = rl_poll_wait(lock->client, rl_time_add(redlock_now(), left_us));
  }
}

int rl_handle_begin(redlock_lock *lock) {
  return rl_turn_start(lock->client);
}

int rl_handle_go_on(redlock_lock *lock) {
  return rl_poll_wait(lock->client, REDLOCK_NEVER);
}

void rl_handle_end(redlock_lock *lock, int error) {
  if (error != REDLOCK_OK) {
    rl_lock_cancel(lock->core, redlock_now(), error);
    rl_turn_flush(lock->client);
  }
  rl_lock_dequeue(lock->core); /* Its end is reported here, not by redlock_client_next_ended(). */
  if (error == REDLOCK_OK) {
    rl_handle_serve_late(lock);
  }
  rl_core_rest(&lock->client->core, redlock_now());
  rl_turn_flush(lock->client);
  rl_poll_wake(lock->client);
}

/*
 * Runs the caller-owned loop until the operation that |started| says was begun has ended. |validity_us|
 * is written when it ended well.
 */
static int rl_handle_finish(redlock_lock *lock, int started, redlock_duration *validity_us) {
  redlock_duration left_us;
  if (started != REDLOCK_OK) {
    return started;
  }
  int error = rl_handle_begin(lock);
  while (error == REDLOCK_OK && rl_handle_pending(lock)) {
    error = rl_handle_go_on(lock);
  }
  rl_handle_end(lock, error);
  int result = rl_handle_outcome(lock, 1, &left_us);
  if (result == REDLOCK_OK && validity_us != NULL) {
    *validity_us = left_us;
  }
  return result;
}

int redlock_lock_acquire_sized(redlock_lock *lock, const redlock_options *options,
                               size_t options_size, redlock_duration *validity_us) {
  return rl_handle_finish(lock, rl_handle_acquire(lock, options, options_size), validity_us);
}

int redlock_lock_extend(redlock_lock *lock, redlock_duration ttl_us,
                        redlock_duration *validity_us) {
  return rl_handle_finish(lock, rl_handle_extend(lock, ttl_us), validity_us);
}

int redlock_lock_release(redlock_lock *lock) {
  return rl_handle_finish(lock, rl_handle_release(lock), NULL);
}

int redlock_lock_release_send(redlock_lock *lock) {
  if (lock == NULL) {
    return REDLOCK_E_INVALID;
  }
  rl_client_check_fork(lock->client);
  int error = rl_lock_release_unheard(lock->core, redlock_now());
  if (error != REDLOCK_OK) {
    return error;
  }
  (void)rl_turn_start(lock->client); /* It lacks entropy, if anything, and a release needs none. */
  rl_core_rest(&lock->client->core, redlock_now());
  rl_turn_flush(lock->client);
  rl_poll_wake(lock->client);
  return REDLOCK_OK;
}

/* ------------------------------------------------------------------------------------ looking */

redlock_duration redlock_lock_remaining(const redlock_lock *lock) {
  if (lock == NULL || lock->core->lease == NULL || rl_fork_happened(&lock->client->mark)) {
    return 0;
  }
  return rl_lock_remaining(lock->core, redlock_now());
}

int redlock_lock_lost(const redlock_lock *lock, redlock_time *since_us) {
  redlock_time since = 0;
  if (lock == NULL) {
    return REDLOCK_E_INVALID;
  }
  int reason = rl_fork_happened(&lock->client->mark)
                   ? REDLOCK_OK
                   : rl_loss_of(lock->core, redlock_now(), &since);
  if (since_us != NULL) {
    *since_us = since;
  }
  return reason;
}

redlock_time redlock_lock_deadline(const redlock_lock *lock) {
  return redlock_lock_remaining(lock) == 0 ? 0 : lock->core->deadline_us;
}

const char *redlock_lock_token(const redlock_lock *lock) {
  return redlock_lock_remaining(lock) == 0 ? "" : lock->core->lease->token;
}

const void *redlock_lock_resource(const redlock_lock *lock, size_t *length) {
  const rl_resource *resource = lock == NULL ? NULL : lock->core->resource;
  if (length != NULL) {
    *length = resource == NULL ? 0 : resource->key_length - resource->prefix_length;
  }
  return resource == NULL ? NULL : resource->key + resource->prefix_length;
}

redlock_duration redlock_lock_ttl(const redlock_lock *lock) {
  return lock == NULL ? 0 : lock->core->options->ttl_us;
}

redlock_client *redlock_lock_client(const redlock_lock *lock) {
  return lock == NULL ? NULL : lock->client;
}

const char *redlock_lock_message(redlock_lock *lock) {
  if (lock == NULL) {
    return "";
  }
  rl_client_check_fork(lock->client);
  return rl_lock_message(lock->core, lock->client->message, sizeof lock->client->message);
}

int redlock_lock_vote_sized(redlock_lock *lock, size_t index, redlock_vote_info *info,
                            size_t size) {
  if (lock == NULL || info == NULL || index >= lock->client->core.node_count) {
    return REDLOCK_E_INVALID;
  }
  rl_client_check_fork(lock->client);
  const rl_vote *vote = &rl_report_votes(lock->core)[index];
  redlock_vote_info known;
  known.name = lock->client->core.nodes[index]->address.name;
  const char *reason = rl_round_reason(lock->core, (unsigned)index);
  known.vote = (redlock_vote)vote->vote;
  known.error = reason[0] != '\0' ? reason : NULL;
  known.latency_us = vote->latency_us == RL_VOTE_NO_LATENCY ? REDLOCK_NEVER : vote->latency_us;
  rl_option_fill(info, size, &known, sizeof known);
  return REDLOCK_OK;
}

void redlock_lock_set_data(redlock_lock *lock, void *data) {
  if (lock != NULL) {
    lock->data = data;
  }
}

void *redlock_lock_data(const redlock_lock *lock) {
  return lock == NULL ? NULL : lock->data;
}
