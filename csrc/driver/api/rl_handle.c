/*
 * Locks as callers see them, and the blocking calls.
 *
 * SPDX-License-Identifier: MIT
 */
#include "api/rl_handle.h"

#include <stdlib.h>
#include <string.h>

#include "client/rl_client.h"
#include "client/rl_poll.h"
#include "client/rl_turn.h"
#include "lease/rl_custom_token.h"
#include "lease/rl_fence.h"
#include "lease/rl_margin.h"
#include "lease/rl_renew.h"
#include "lifecycle/rl_grace.h"
#include "lock/rl_round.h"

#define RL_HANDLE_OVERHEAD 16 /* of an allocation */

/* ------------------------------------------------------------------------------------ life */

int rl_handle_new(redlock_lock **made, redlock_client *client, const redlock_resource *resources,
                  size_t count, const rl_options *options) {
  rl_lock *lock = rl_lock_new_many(&client->core, resources, count, options);
  if (lock == NULL) {
    return REDLOCK_E_NO_MEMORY;
  }
  client->references++;
  *made = rl_handle_of(lock);
  return REDLOCK_OK;
}

/* What is wrong with the arguments of redlock_lock_new(), as a static sentence, or NULL. */
static const char *rl_handle_wrong(const redlock_client *client, const redlock_resource *resources,
                                   size_t count) {
  if (resources == NULL || count == 0) {
    return "there is no resource";
  }
  for (size_t i = 0; i < count && i < REDLOCK_RESOURCES_MAX; i++) {
    if (resources[i].bytes == NULL && resources[i].length > 0) {
      return "resource is NULL, but has a length";
    }
    if (rl_resource_is_reserved(client->core.prefix, client->core.prefix_length, &resources[i])) {
      return "a resource is named like what the nodes keep for the library: it ends in "
             "':redlock-fence', ':redlock-queue' or ':redlock-wait', or is 'redlock:lineage'";
    }
  }
  if (client->core.node_count == 0) {
    return "the client has no nodes";
  }
  return count <= REDLOCK_RESOURCES_MAX && rl_resource_repeats(resources, count)
             ? "a resource is named twice"
             : rl_client_wrong_quorum(client);
}

static const char rl_handle_keeps_nothing[] = "extend_every_us and max_hold_us need auto_extend";

const char *rl_handle_read_options(rl_options *options, const redlock_options *given, size_t size) {
  redlock_options known;
  const char *wrong = rl_option_fit(&rl_options_of_lock, &known, given, size);
  wrong = wrong != NULL ? wrong : rl_options_read(options, &known);
  return wrong == NULL && rl_options_keep_nothing(options, &known) ? rl_handle_keeps_nothing
                                                                   : wrong;
}

/* Which limit the resources exceed, as a static sentence, or NULL. */
static const char *rl_handle_too_many(const redlock_client *client,
                                      const redlock_resource *resources, size_t count) {
  if (count > REDLOCK_RESOURCES_MAX) {
    return "a lock has at most 64 resources";
  }
  for (size_t i = 0; i < count; i++) {
    if (resources[i].length > REDLOCK_KEY_MAX - client->core.prefix_length) {
      return "prefix and resource together are longer than 4096 bytes";
    }
  }
  return NULL;
}

/* redlock_lock_new_many() from inside: what is wrong goes to |*wrong|, a static sentence, or NULL. */
static int rl_handle_make(redlock_lock **made, redlock_client *client,
                          const redlock_resource *resources, size_t count,
                          const redlock_options *given, size_t options_size, const char **wrong) {
  rl_options options = client->core.options;
  *wrong = rl_handle_wrong(client, resources, count);
  if (*wrong == NULL && given != NULL) {
    *wrong = rl_handle_read_options(&options, given, options_size);
  }
  if (*wrong == NULL) {
    *wrong = rl_guard_too_long(client->core.guards, options.ttl_us, options.lock_delay_us);
  }
  if (*wrong != NULL) {
    return REDLOCK_E_INVALID;
  }
  *wrong = rl_handle_too_many(client, resources, count);
  if (*wrong != NULL) {
    return REDLOCK_E_LIMIT;
  }
  return client->core.closed ? REDLOCK_E_CLOSED
                             : rl_handle_new(made, client, resources, count, &options);
}

int redlock_lock_new_sized(redlock_lock **made, redlock_client *client, const void *resource,
                           size_t resource_length, const redlock_options *given,
                           size_t options_size) {
  redlock_resource one = {resource, resource_length};
  return redlock_lock_new_many_sized(made, client, &one, 1, given, options_size);
}

int redlock_lock_new_many_sized(redlock_lock **made, redlock_client *client,
                                const redlock_resource *resources, size_t count,
                                const redlock_options *given, size_t options_size) {
  const char *wrong;
  if (made == NULL || client == NULL) {
    return REDLOCK_E_INVALID;
  }
  *made = NULL;
  rl_client_enter(client);
  int error = rl_handle_make(made, client, resources, count, given, options_size, &wrong);
  (void)rl_client_note(client, error, wrong);
  rl_client_leave(client);
  return error;
}

/* What was lent to the caller is not any more. */
static void rl_handle_take_back(redlock_lock *lock) {
  rl_extension *lent = rl_lock_of(lock)->extension;
  if (lent == NULL) {
    return;
  }
  rl_attempt_unref(&rl_client_of(lock)->core.attempts, lent->borrowed_lease);
  free(lent->borrowed_message);
  lent->borrowed_lease = NULL;
  lent->borrowed_message = NULL;
}

void rl_handle_drop(redlock_lock *lock) {
  rl_client_of(lock)->references--;
  rl_lock_free(rl_lock_of(lock), redlock_now());
}

void redlock_lock_free(redlock_lock *lock) {
  if (lock == NULL) {
    return;
  }
  redlock_client *client = rl_client_of(lock);
  rl_client_enter(client);
  rl_handle_take_back(lock);
  rl_lock_free(rl_lock_of(lock), redlock_now());
  rl_wait_flush(client);
  rl_poll_sync(client);
  rl_client_leave_for_good(client); /* Without waiting, which redlock_client_free() would do. */
}

/* --------------------------------------------------------------------------------- beginning */

bool rl_handle_may_begin(redlock_lock *lock) {
  if (rl_lock_of(lock)->waited != 0) {
    return false;
  }
  rl_handle_take_back(lock);
  return true;
}

/* Nothing of the operation has been sent yet. */
static int rl_handle_call_off(redlock_lock *lock, int error) {
  rl_lock_undo(rl_lock_of(lock), redlock_now(), error);
  rl_list_remove(&rl_lock_of(lock)->queue);
  return error;
}

/* A lease that keeps itself is extended by a thread between the calls. */
static int rl_handle_start_watchdog(const redlock_lock *lock) {
  unsigned operation = rl_result_of(rl_lock_of(lock)).operation;
  bool takes = operation == RL_OPERATION_ACQUIRE || operation == RL_OPERATION_EXTEND;
  return takes && rl_lock_of(lock)->current->auto_extend == REDLOCK_YES
             ? rl_watchdog_start(rl_client_of(lock))
             : REDLOCK_OK;
}

int rl_handle_keep(redlock_lock *lock) {
  rl_client_enter(rl_client_of(lock));
  int error = rl_handle_start_watchdog(lock);
  if (error != REDLOCK_OK) {
    (void)rl_handle_call_off(lock, error);
  }
  rl_client_leave(rl_client_of(lock));
  return error;
}

int rl_handle_begun(redlock_lock *lock, int error, bool blocking) {
  if (error != REDLOCK_OK) {
    return error;
  }
  if (!blocking) {
    return REDLOCK_OK;
  }
  if (rl_handle_start_watchdog(lock) != REDLOCK_OK) {
    return rl_handle_call_off(lock, REDLOCK_E_SYSTEM);
  }
  if (!rl_lock_is_busy(rl_lock_of(lock))) { /* It has ended already, and nobody waits. */
    rl_list_remove(&rl_lock_of(lock)->queue);
    return REDLOCK_OK;
  }
  if (rl_wait_begin(rl_client_of(lock), lock) == NULL) {
    return rl_handle_call_off(lock, REDLOCK_E_NO_MEMORY);
  }
  return REDLOCK_OK;
}

static int rl_handle_begin_acquire(redlock_lock *lock, const redlock_options *given,
                                   size_t options_size, bool blocking) {
  redlock_options known;
  if (!rl_handle_may_begin(lock)) {
    return REDLOCK_E_BUSY;
  }
  if (given != NULL) {
    rl_options options = *rl_lock_options(rl_lock_of(lock));
    const char *wrong = rl_option_fit(&rl_options_of_lock, &known, given, options_size);
    if (wrong == NULL && rl_options_read(&options, &known) == NULL &&
        rl_options_keep_nothing(&options, &known)) {
      wrong = rl_handle_keeps_nothing;
    }
    if (wrong != NULL) {
      return rl_lock_refuse_argument(rl_lock_of(lock), RL_OPERATION_ACQUIRE, wrong);
    }
  }
  return rl_handle_begun(
      lock, rl_lock_acquire(rl_lock_of(lock), redlock_now(), given != NULL ? &known : NULL, true),
      blocking);
}

static int rl_handle_begin_extend(redlock_lock *lock, redlock_duration ttl_us, bool blocking) {
  if (!rl_handle_may_begin(lock)) {
    return REDLOCK_E_BUSY;
  }
  return rl_handle_begun(lock, rl_lock_extend(rl_lock_of(lock), redlock_now(), ttl_us, true),
                         blocking);
}

static int rl_handle_begin_release(redlock_lock *lock, bool blocking) {
  if (!rl_handle_may_begin(lock)) {
    return REDLOCK_E_BUSY;
  }
  return rl_handle_begun(lock, rl_lock_release(rl_lock_of(lock), redlock_now(), true), blocking);
}

int rl_handle_acquire(redlock_lock *lock, const redlock_options *given, size_t options_size) {
  rl_client_enter(rl_client_of(lock));
  int error = rl_handle_begin_acquire(lock, given, options_size, true);
  rl_client_leave(rl_client_of(lock));
  return error;
}

int rl_handle_extend(redlock_lock *lock, redlock_duration ttl_us) {
  rl_client_enter(rl_client_of(lock));
  int error = rl_handle_begin_extend(lock, ttl_us, true);
  rl_client_leave(rl_client_of(lock));
  return error;
}

int rl_handle_release(redlock_lock *lock) {
  rl_client_enter(rl_client_of(lock));
  int error = rl_handle_begin_release(lock, true);
  rl_client_leave(rl_client_of(lock));
  return error;
}

int rl_handle_started(redlock_lock *lock, int error) {
  if (error == REDLOCK_OK) {
    rl_poll_sync(rl_client_of(lock));
  }
  rl_client_leave(rl_client_of(lock));
  return error;
}

int redlock_lock_acquire_start_sized(redlock_lock *lock, const redlock_options *options,
                                     size_t options_size) {
  if (lock == NULL) {
    return REDLOCK_E_INVALID;
  }
  rl_client_enter(rl_client_of(lock));
  return rl_handle_started(lock, rl_handle_begin_acquire(lock, options, options_size, false));
}

int redlock_lock_extend_start(redlock_lock *lock, redlock_duration ttl_us) {
  if (lock == NULL) {
    return REDLOCK_E_INVALID;
  }
  rl_client_enter(rl_client_of(lock));
  return rl_handle_started(lock, rl_handle_begin_extend(lock, ttl_us, false));
}

int redlock_lock_release_start(redlock_lock *lock) {
  if (lock == NULL) {
    return REDLOCK_E_INVALID;
  }
  rl_client_enter(rl_client_of(lock));
  return rl_handle_started(lock, rl_handle_begin_release(lock, false));
}

/* ------------------------------------------------------------------------------------- ending */

static int rl_handle_read_outcome(redlock_lock *lock, redlock_duration least_us,
                                  redlock_duration *validity_us) {
  redlock_client *client = rl_client_of(lock);
  bool had_lease = rl_ring_owner(rl_lock_of(lock))->lease != NULL;
  /* Without a lease nothing can have run out meanwhile, and a look at the clock costs. */
  redlock_time now_us = had_lease ? redlock_now() : client->core.now_us;
  int result = rl_lock_outcome(rl_lock_of(lock), rl_time_add(now_us, least_us - 1));
  if (had_lease && rl_ring_owner(rl_lock_of(lock))->lease == NULL) {
    rl_wait_flush(client);
    rl_poll_wake(client);
  }
  if (validity_us != NULL) {
    *validity_us = rl_ring_remaining(rl_lock_of(lock), now_us);
  }
  return result;
}

int rl_handle_outcome(redlock_lock *lock, redlock_duration least_us,
                      redlock_duration *validity_us) {
  rl_client_enter(rl_client_of(lock));
  int result = rl_handle_read_outcome(lock, least_us, validity_us);
  rl_client_leave(rl_client_of(lock));
  return result;
}

int rl_handle_pending(const redlock_lock *lock) {
  rl_client_enter(rl_client_of(lock));
  int pending = rl_lock_result(rl_lock_of(lock)) == REDLOCK_PENDING;
  rl_client_leave(rl_client_of(lock));
  return pending;
}

void rl_handle_abandon(redlock_lock *lock) {
  rl_client_enter(rl_client_of(lock));
  rl_lock_abandon(rl_lock_of(lock));
  rl_client_leave(rl_client_of(lock));
}

size_t rl_handle_size(const redlock_lock *lock) {
  const rl_lock *core = rl_lock_of(lock);
  size_t own = core->has_options ? sizeof(rl_options) : 0;
  size_t votes = core->core->node_count * sizeof core->votes[0];
  size_t renewal = core->renewal != NULL ? sizeof *core->renewal + votes : 0;
  size_t rare = core->extension != NULL ? sizeof *core->extension + RL_HANDLE_OVERHEAD : 0;
  size_t owned = rl_reentry_of(core) != NULL ? sizeof(rl_reentry) + RL_HANDLE_OVERHEAD : 0;
  return sizeof *core + own + votes + renewal + rare + owned + rl_resource_size(core->resource) +
         (size_t)2 * RL_HANDLE_OVERHEAD;
}

int redlock_lock_result(const redlock_lock *lock) {
  /* A lease that has run out is dropped when that is told: the lock is not what the caller sees of it. */
  return lock == NULL ? REDLOCK_E_INVALID : rl_handle_outcome((redlock_lock *)lock, 1, NULL);
}

void redlock_lock_cancel(redlock_lock *lock) {
  if (lock == NULL) {
    return;
  }
  rl_client_enter(rl_client_of(lock));
  rl_lock_cancel(rl_lock_of(lock), redlock_now(), REDLOCK_E_CANCELLED);
  rl_wait_flush(rl_client_of(lock));
  rl_poll_wake(rl_client_of(lock));
  rl_client_leave(rl_client_of(lock));
}

/* ---------------------------------------------------------------------------------- blocking */

static redlock_duration rl_handle_late_left(redlock_lock *lock) {
  redlock_time now_us = redlock_now();
  redlock_duration left_us = rl_time_sub(rl_grace_until(rl_lock_of(lock), now_us), now_us);
  if (left_us == 0) {
    rl_core_rest(&rl_client_of(lock)->core, now_us);
    rl_wait_flush(rl_client_of(lock));
  }
  return left_us;
}

redlock_duration rl_handle_late(redlock_lock *lock) {
  rl_client_enter(rl_client_of(lock));
  redlock_duration left_us = rl_handle_late_left(lock);
  rl_client_leave(rl_client_of(lock));
  return left_us;
}

/* Nobody may call again for long: late nodes are served now, as far as they are worth a wait. */
static void rl_handle_serve_late(redlock_lock *lock) {
  rl_waiter *waiter = rl_wait_of(lock);
  int error = REDLOCK_OK;
  rl_wait_watch(rl_client_of(lock), waiter);
  for (redlock_duration left_us = rl_handle_late_left(lock); left_us > 0 && error == REDLOCK_OK;
       left_us = rl_handle_late_left(lock)) {
    error = rl_wait_step(rl_client_of(lock), waiter, rl_time_add(redlock_now(), left_us), NULL);
  }
}

static void rl_handle_end_inside(redlock_lock *lock, int error) {
  redlock_client *client = rl_client_of(lock);
  rl_waiter *waiter = rl_wait_of(lock);
  if (error != REDLOCK_OK) {
    rl_lock_cancel(rl_lock_of(lock), redlock_now(), error);
    rl_wait_flush(client);
  }
  rl_list_remove(
      &rl_lock_of(lock)->queue); /* Its end is reported here, not by redlock_client_next_ended(). */
  if (error == REDLOCK_OK && waiter != NULL) {
    rl_handle_serve_late(lock);
  }
  rl_core_rest(&client->core, redlock_now());
  rl_wait_flush(client);
  rl_poll_wake(client);
  if (waiter != NULL) {
    rl_wait_end(client, waiter);
  }
}

int rl_handle_begin(redlock_lock *lock) {
  rl_client_enter(rl_client_of(lock));
  int error = rl_turn_start(rl_client_of(lock));
  rl_client_leave(rl_client_of(lock));
  return error;
}

/* Returns true if the caller is Lua code that is to be asked for credentials. */
static bool rl_handle_is_to_ask(const redlock_client *client) {
  return client->asks != 0 && !client->asking && !client->asked_by_driver;
}

int rl_handle_go_on(redlock_lock *lock, redlock_duration patience_us) {
  redlock_client *client = rl_client_of(lock);
  redlock_time until_us = rl_time_add(redlock_now(), patience_us);
  bool interrupted = false;
  int error = REDLOCK_OK;
  rl_client_enter(client);
  rl_waiter *waiter = rl_wait_of(lock);
  while (error == REDLOCK_OK && !interrupted && rl_lock_is_busy(rl_lock_of(lock)) &&
         redlock_now() < until_us && !rl_handle_is_to_ask(client)) {
    error = rl_wait_step(client, waiter, until_us, &interrupted);
  }
  if (waiter != NULL) {
    rl_wait_pause(client, waiter);
  }
  rl_client_leave(client);
  return error;
}

void rl_handle_end(redlock_lock *lock, int error) {
  rl_client_enter(rl_client_of(lock));
  rl_handle_end_inside(lock, error);
  rl_client_leave(rl_client_of(lock));
}

int rl_handle_finish(redlock_lock *lock, int started, redlock_duration *validity_us) {
  redlock_client *client = rl_client_of(lock);
  redlock_duration left_us;
  int result = started;
  if (started == REDLOCK_OK) {
    rl_waiter *waiter = rl_wait_of(lock);
    int error = rl_turn_start(client);
    while (error == REDLOCK_OK && rl_lock_is_busy(rl_lock_of(lock))) {
      error = rl_wait_step(client, waiter, REDLOCK_NEVER, NULL);
    }
    rl_handle_end_inside(lock, error);
    result = rl_handle_read_outcome(lock, 1, &left_us);
    if (result == REDLOCK_OK && validity_us != NULL) {
      *validity_us = left_us;
    }
  }
  rl_client_leave(client);
  return result;
}

int redlock_lock_acquire_sized(redlock_lock *lock, const redlock_options *options,
                               size_t options_size, redlock_duration *validity_us) {
  if (lock == NULL) {
    return REDLOCK_E_INVALID;
  }
  rl_client_enter(rl_client_of(lock));
  return rl_handle_finish(lock, rl_handle_begin_acquire(lock, options, options_size, true),
                          validity_us);
}

int redlock_lock_extend(redlock_lock *lock, redlock_duration ttl_us,
                        redlock_duration *validity_us) {
  if (lock == NULL) {
    return REDLOCK_E_INVALID;
  }
  rl_client_enter(rl_client_of(lock));
  return rl_handle_finish(lock, rl_handle_begin_extend(lock, ttl_us, true), validity_us);
}

int redlock_lock_release(redlock_lock *lock) {
  if (lock == NULL) {
    return REDLOCK_E_INVALID;
  }
  rl_client_enter(rl_client_of(lock));
  return rl_handle_finish(lock, rl_handle_begin_release(lock, true), NULL);
}

int redlock_lock_release_send(redlock_lock *lock) {
  if (lock == NULL) {
    return REDLOCK_E_INVALID;
  }
  redlock_client *client = rl_client_of(lock);
  rl_client_enter(client);
  int error = rl_lock_of(lock)->waited != 0 ? REDLOCK_E_BUSY
                                            : rl_lock_release_send(rl_lock_of(lock), redlock_now());
  if (error == REDLOCK_OK) {
    (void)rl_turn_start(client); /* It lacks entropy, if anything, and a release needs none. */
    rl_core_rest(&client->core, redlock_now());
    rl_wait_flush(client);
    rl_poll_wake(client);
  }
  rl_client_leave(client);
  return error;
}

void rl_handle_look(redlock_lock *lock) {
  redlock_client *client = rl_client_of(lock);
  rl_client_enter(client);
  if (rl_lock_of(lock)->abandoned && rl_lock_is_busy(rl_lock_of(lock))) {
    (void)rl_turn_process(client, NULL, 0);
    rl_poll_wake(client);
  }
  rl_client_leave(client);
}

/* ------------------------------------------------------------------------------------ looking */

static redlock_duration rl_handle_left(const redlock_lock *lock) {
  return rl_ring_remaining(rl_lock_of(lock), redlock_now());
}

redlock_duration redlock_lock_remaining(const redlock_lock *lock) {
  if (lock == NULL) {
    return 0;
  }
  rl_client_enter(rl_client_of(lock));
  redlock_duration left_us = rl_handle_left(lock);
  rl_client_leave(rl_client_of(lock));
  return left_us;
}

int redlock_lock_margin(const redlock_lock *lock) {
  if (lock == NULL) {
    return -1;
  }
  rl_client_enter(rl_client_of(lock));
  int margin = rl_margin_of(rl_lock_of(lock), redlock_now());
  rl_client_leave(rl_client_of(lock));
  return margin;
}

int rl_handle_lost(const redlock_lock *lock, redlock_duration least_us, redlock_time *since_us) {
  rl_client_enter(rl_client_of(lock));
  int reason = rl_loss_of(rl_lock_of(lock), rl_time_add(redlock_now(), least_us - 1), since_us);
  rl_client_leave(rl_client_of(lock));
  return reason;
}

int redlock_lock_lost(const redlock_lock *lock, redlock_time *since_us) {
  redlock_time since = 0;
  int reason = lock == NULL ? REDLOCK_E_INVALID : rl_handle_lost(lock, 1, &since);
  if (since_us != NULL) {
    *since_us = since;
  }
  return reason;
}

redlock_time redlock_lock_deadline(const redlock_lock *lock) {
  if (lock == NULL) {
    return 0;
  }
  rl_client_enter(rl_client_of(lock));
  redlock_time deadline_us =
      rl_handle_left(lock) == 0 ? 0 : rl_ring_owner(rl_lock_of(lock))->deadline_us;
  rl_client_leave(rl_client_of(lock));
  return deadline_us;
}

/* Where to note what is lent; NULL when out of memory. */
static rl_extension *rl_handle_lend(redlock_lock *lock) {
  return rl_lock_reserve_extension(rl_lock_of(lock)) ? rl_lock_of(lock)->extension : NULL;
}

/*
 * The lease may be lost in the next moment, by what another thread reads: its token stays with a reference.
 * Without memory for that it stays as long as nobody else uses the client.
 */
static const char *rl_handle_lend_token(redlock_lock *lock) {
  rl_attempt *lease = rl_ring_owner(rl_lock_of(lock))->lease;
  if (lease == NULL || rl_handle_left(lock) == 0) {
    return "";
  }
  rl_extension *lent = rl_handle_lend(lock);
  if (lent != NULL && lent->borrowed_lease != lease) {
    rl_attempt_unref(&rl_client_of(lock)->core.attempts, lent->borrowed_lease);
    lent->borrowed_lease = rl_attempt_ref(lease);
  }
  return rl_attempt_token(lease);
}

int redlock_lock_give_token(redlock_lock *lock, const void *token, size_t length) {
  if (lock == NULL || token == NULL || length == 0) {
    return REDLOCK_E_INVALID;
  }
  if (length > REDLOCK_TOKEN_MAX) {
    return REDLOCK_E_LIMIT;
  }
  rl_client_enter(rl_client_of(lock));
  int error = rl_custom_token_set(rl_lock_of(lock), token, length);
  rl_client_leave(rl_client_of(lock));
  return error;
}

int redlock_lock_set_owner(redlock_lock *lock, const void *owner, size_t length) {
  if (lock == NULL || (owner == NULL && length > 0)) {
    return REDLOCK_E_INVALID;
  }
  if (length > REDLOCK_OWNER_MAX) {
    return REDLOCK_E_LIMIT;
  }
  rl_client_enter(rl_client_of(lock));
  bool busy = rl_lock_is_busy(rl_lock_of(lock)) &&
              !rl_lock_of(lock)->abandoned; /* A new acquire goes before. */
  int error = rl_handle_may_begin(lock) && !busy
                  ? rl_reentry_set_owner(rl_lock_of(lock), redlock_now(), owner, length)
                  : REDLOCK_E_BUSY;
  rl_client_leave(rl_client_of(lock));
  return error;
}

const void *redlock_lock_token_bytes(const redlock_lock *lock, size_t *length) {
  size_t known = 0;
  const char *token = "";
  if (lock != NULL) {
    rl_client_enter(rl_client_of(lock));
    token = rl_handle_lend_token((redlock_lock *)lock);
    known = token[0] == '\0' && rl_handle_left(lock) == 0
                ? 0
                : rl_ring_owner(rl_lock_of(lock))->lease->token_length;
    rl_client_leave(rl_client_of(lock));
  }
  if (length != NULL) {
    *length = known;
  }
  return token;
}

const char *redlock_lock_token(const redlock_lock *lock) {
  return redlock_lock_token_bytes(lock, NULL);
}

uint64_t redlock_lock_fence(const redlock_lock *lock) {
  uint64_t token = 0;
  if (lock != NULL) {
    rl_client_enter(rl_client_of(lock));
    if (rl_handle_left(lock) > 0) {
      token = rl_fence_token(rl_ring_owner(rl_lock_of(lock)));
    }
    rl_client_leave(rl_client_of(lock));
  }
  return token;
}

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

/* The caller has entered the client. */
static const char *rl_handle_lend_message(redlock_lock *lock) {
  char message[RL_CLIENT_MESSAGE_MAX];
  (void)rl_lock_message(rl_lock_of(lock), message, sizeof message);
  if (message[0] == '\0') {
    return "";
  }
  rl_extension *lent = rl_handle_lend(lock);
  if (lent == NULL) {
    return redlock_strerror(rl_lock_result(rl_lock_of(lock)));
  }
  free(lent->borrowed_message);
  lent->borrowed_message = strdup(message);
  return lent->borrowed_message != NULL ? lent->borrowed_message
                                        : redlock_strerror(rl_lock_result(rl_lock_of(lock)));
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

static void rl_handle_tell_vote(const redlock_lock *lock, unsigned node, redlock_vote_info *info,
                                size_t size) {
  const rl_vote *vote = &rl_result_votes(rl_lock_of(lock))[node];
  const char *reason = rl_round_reason(rl_lock_of(lock), node);
  redlock_vote_info known = {0};
  known.name = rl_client_of(lock)->core.nodes[node]->address.name;
  known.vote = (redlock_vote)vote->vote;
  known.error = reason[0] != '\0' ? reason : NULL;
  known.latency_us = vote->latency_us == RL_VOTE_NO_LATENCY ? REDLOCK_NEVER : vote->latency_us;
  rl_option_fill(info, size, &known, sizeof known);
  if (size >= sizeof known) {
    rl_client_lend(&info->error, info->text);
  }
}

int redlock_lock_vote_sized(redlock_lock *lock, size_t index, redlock_vote_info *info,
                            size_t size) {
  if (lock == NULL || info == NULL) {
    return REDLOCK_E_INVALID;
  }
  rl_client_enter(rl_client_of(lock));
  bool there = index < rl_client_of(lock)->core.node_count;
  if (there) {
    rl_handle_tell_vote(lock, (unsigned)index, info, size);
  }
  rl_client_leave(rl_client_of(lock));
  return there ? REDLOCK_OK : REDLOCK_E_INVALID;
}

void redlock_lock_set_data(redlock_lock *lock, void *data) {
  if (lock != NULL) {
    rl_lock_of(lock)->data = data;
  }
}

void *redlock_lock_data(const redlock_lock *lock) {
  return lock == NULL ? NULL : rl_lock_of(lock)->data;
}
