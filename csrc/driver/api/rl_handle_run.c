/*
 * Runs the operations of locks: blocking, in the steps of a blocking call, or for the program's
 * loop.
 *
 * SPDX-License-Identifier: MIT
 */
#include "api/rl_handle_run.h"

#include "api/rl_handle.h"
#include "client/rl_client.h"
#include "client/rl_poll.h"
#include "client/rl_turn.h"
#include "client/rl_watchdog_due.h"
#include "lifecycle/rl_grace.h"
#include "lifecycle/rl_lifecycle.h"
#include "lock/rl_round.h"
#include "operator/rl_ask.h"

/* ---------------------------------------------------------------------------------- beginning */

int rl_request_begin(rl_lock *lock, redlock_time now_us, const rl_request *request) {
  switch (request->operation) {
  case RL_OPERATION_ACQUIRE:
    return rl_lock_acquire(lock, now_us, request->options, true);
  case RL_OPERATION_RELEASE:
    return rl_lock_release(lock, now_us, true);
  default:
    return rl_operation_has(request->operation, RL_HOLDS)
               ? rl_lock_on_lease(lock, now_us, request->operation, request->ttl_us, true)
               : rl_lock_ask(lock, now_us, request->operation, &request->question, true);
  }
}

/* Fits the options of an acquire into |known|. Returns why they are wrong, or NULL. */
static const char *rl_handle_fit(const redlock_lock *lock, rl_request *request,
                                 redlock_options *known) {
  if (request->options == NULL) {
    return NULL;
  }
  rl_options options = *rl_lock_options(rl_lock_of(lock));
  const char *wrong =
      rl_option_fit(&rl_options_of_lock, known, request->options, request->options_size);
  request->options = known;
  if (wrong == NULL && rl_options_read(&options, known) == NULL &&
      rl_options_lack_auto_extend(&options, known)) {
    wrong = rl_handle_needs_auto_extend;
  }
  return wrong; /* rl_lock_acquire() refuses the rest. */
}

/* Undoes what has just begun: no command has been sent. */
static int rl_handle_undo(redlock_lock *lock, int error) {
  rl_lock_undo(rl_lock_of(lock), redlock_now(), error);
  rl_list_remove(&rl_lock_of(lock)->queue);
  return error;
}

/* Starts the watchdog if the operation begins or continues a lease with auto_extend. */
static int rl_handle_start_watchdog(const redlock_lock *lock) {
  rl_operation operation = rl_result_of(rl_lock_of(lock)).operation;
  bool takes = rl_operation_has(operation, RL_GRANTS);
  return takes && rl_lock_of(lock)->current->auto_extend == REDLOCK_YES
             ? rl_watchdog_start(rl_client_of(lock))
             : REDLOCK_OK;
}

/* Makes the calling thread wait for what has begun. Returns REDLOCK_OK, NO_MEMORY or SYSTEM. */
static int rl_handle_block(redlock_lock *lock) {
  if (rl_handle_start_watchdog(lock) != REDLOCK_OK) {
    return rl_handle_undo(lock, REDLOCK_E_SYSTEM);
  }
  if (!rl_lock_is_busy(rl_lock_of(lock))) { /* It has ended already: no thread waits. */
    rl_list_remove(&rl_lock_of(lock)->queue);
    return REDLOCK_OK;
  }
  return rl_caller_begin(rl_client_of(lock), lock) != NULL
             ? REDLOCK_OK
             : rl_handle_undo(lock, REDLOCK_E_NO_MEMORY);
}

bool rl_handle_may_begin(redlock_lock *lock) {
  if (rl_lock_of(lock)->caller_number != 0) {
    return false;
  }
  rl_handle_take_back(lock);
  return true;
}

int rl_handle_refuse(redlock_lock *lock, int error, const char *reason) {
  rl_lock *refused = rl_lock_of(lock);
  int result = rl_lock_result(refused);
  if (error != REDLOCK_OK && result != REDLOCK_OK && result != REDLOCK_PENDING) {
    rl_result_refuse(refused, rl_result_of(refused).operation, error, reason);
  }
  return error;
}

static int rl_handle_request(redlock_lock *lock, const rl_request *request, redlock_time now_us,
                             bool blocking) {
  redlock_options known;
  rl_request checked = *request;
  if (!rl_handle_may_begin(lock)) {
    return REDLOCK_E_BUSY;
  }
  const char *wrong =
      request->operation == RL_OPERATION_ACQUIRE ? rl_handle_fit(lock, &checked, &known) : NULL;
  if (wrong != NULL) {
    return rl_lock_refuse_argument(rl_lock_of(lock), request->operation, wrong);
  }
  int error = rl_request_begin(rl_lock_of(lock), now_us, &checked);
  return error == REDLOCK_OK && blocking ? rl_handle_block(lock) : error;
}

int rl_handle_prepare(redlock_lock *lock, const rl_request *request) {
  rl_client_enter(rl_client_of(lock));
  int error = rl_handle_request(lock, request, redlock_now(), true);
  rl_client_leave(rl_client_of(lock));
  return error;
}

int rl_handle_start(redlock_lock *lock, const rl_request *request) {
  if (lock == NULL) {
    return REDLOCK_E_INVALID;
  }
  rl_client_enter(rl_client_of(lock));
  int error = rl_handle_request(lock, request, redlock_now(), false);
  if (error == REDLOCK_OK) {
    rl_poll_sync(rl_client_of(lock));
  }
  rl_client_leave(rl_client_of(lock));
  return error;
}

int rl_handle_ensure_watchdog(redlock_lock *lock) {
  rl_client_enter(rl_client_of(lock));
  int error = rl_handle_start_watchdog(lock);
  if (error != REDLOCK_OK) {
    (void)rl_handle_undo(lock, error);
  }
  rl_client_leave(rl_client_of(lock));
  return error;
}

/* -------------------------------------------------------------------------------------- ending */

static int rl_handle_read_outcome(redlock_lock *lock, redlock_duration least_us,
                                  redlock_duration *validity_us) {
  redlock_client *client = rl_client_of(lock);
  bool had_lease = rl_ring_owner(rl_lock_of(lock))->lease != NULL;
  /* Without a lease nothing can have expired, and reading the clock costs. */
  redlock_time now_us = had_lease ? redlock_now() : client->core.now_us;
  int result = rl_lock_outcome(rl_lock_of(lock), rl_time_add(now_us, least_us - 1));
  if (had_lease && rl_ring_owner(rl_lock_of(lock))->lease == NULL) {
    rl_caller_send(client);
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

int rl_handle_note(redlock_lock *lock, int error) {
  redlock_client *client = rl_client_of(lock);
  rl_client_enter(client);
  (void)rl_lock_message(rl_lock_of(lock), client->failure_text, sizeof client->failure_text);
  (void)rl_client_note(client, error, client->failure_text);
  rl_client_leave(client);
  return error;
}

void rl_handle_poll(redlock_lock *lock) {
  redlock_client *client = rl_client_of(lock);
  rl_client_enter(client);
  if (rl_lock_of(lock)->abandoned && rl_lock_is_busy(rl_lock_of(lock))) {
    (void)rl_turn_process(client, NULL, 0);
    rl_poll_wake(client);
  }
  rl_client_leave(client);
}

static redlock_duration rl_handle_grace_left(redlock_lock *lock, redlock_time now_us) {
  return rl_time_sub(rl_grace_until(rl_lock_of(lock), now_us), now_us);
}

/* No turn of the core follows soon: sends what the operation left to it. */
static void rl_handle_rest(redlock_client *client, redlock_time now_us) {
  rl_core_before_pause(&client->core, now_us);
  rl_caller_send(client);
}

redlock_duration rl_handle_grace(redlock_lock *lock) {
  rl_client_enter(rl_client_of(lock));
  redlock_time now_us = redlock_now();
  redlock_duration left_us = rl_handle_grace_left(lock, now_us);
  if (left_us == 0) {
    rl_handle_rest(rl_client_of(lock), now_us);
  }
  rl_client_leave(rl_client_of(lock));
  return left_us;
}

/*
 * Waits for slow nodes within their grace period, because the next call may be long in coming.
 * Returns the time after that.
 */
static redlock_time rl_handle_wait_grace(redlock_lock *lock, rl_caller *caller,
                                         redlock_time now_us) {
  int error = REDLOCK_OK;
  redlock_duration left_us;
  rl_caller_check_each_turn(rl_client_of(lock), caller);
  while (error == REDLOCK_OK && (left_us = rl_handle_grace_left(lock, now_us)) > 0) {
    error = rl_caller_wait(rl_client_of(lock), caller, rl_time_add(now_us, left_us), NULL);
    now_us = redlock_now();
  }
  return now_us;
}

static void rl_handle_end_inside(redlock_lock *lock, int error) {
  redlock_client *client = rl_client_of(lock);
  rl_caller *caller = rl_caller_of(lock);
  if (error != REDLOCK_OK) {
    rl_lock_cancel(rl_lock_of(lock), redlock_now(), error);
    rl_caller_send(client);
  }
  rl_list_remove(&rl_lock_of(lock)->queue);  /* redlock_client_next_ended() must not return it. */
  redlock_time now_us = client->core.now_us; /* that of the last turn */
  if (error == REDLOCK_OK && caller != NULL) {
    now_us = rl_handle_wait_grace(lock, caller, now_us);
  }
  rl_handle_rest(client, now_us);
  rl_poll_wake(client);
  if (caller != NULL) {
    rl_caller_end(client, caller);
  }
  if (rl_watchdog_is_alone(client) && !rl_watchdog_has_loop(client)) {
    client->core.absent_us = now_us;
  }
}

int rl_handle_begin(redlock_lock *lock) {
  rl_client_enter(rl_client_of(lock));
  int error = rl_turn_start(rl_client_of(lock), redlock_now());
  rl_client_leave(rl_client_of(lock));
  return error;
}

/* Returns true if the caller is Lua code that has to supply credentials. */
static bool rl_handle_asks(const redlock_client *client) {
  return client->wants_credentials != 0 && !client->asking && !client->asked_by_driver;
}

int rl_handle_go_on(redlock_lock *lock, redlock_duration patience_us) {
  redlock_client *client = rl_client_of(lock);
  redlock_time until_us = rl_time_add(redlock_now(), patience_us);
  bool interrupted = false;
  int error = REDLOCK_OK;
  rl_client_enter(client);
  rl_caller *caller = rl_caller_of(lock);
  while (error == REDLOCK_OK && !interrupted && rl_lock_is_busy(rl_lock_of(lock)) &&
         redlock_now() < until_us && !rl_handle_asks(client)) {
    error = rl_caller_wait(client, caller, until_us, &interrupted);
  }
  if (caller != NULL) {
    rl_caller_yield_poll(client, caller);
  }
  rl_client_leave(client);
  return error;
}

void rl_handle_end(redlock_lock *lock, int error) {
  rl_client_enter(rl_client_of(lock));
  rl_handle_end_inside(lock, error);
  rl_client_leave(rl_client_of(lock));
}

int rl_handle_run(redlock_lock *lock, const rl_request *request, redlock_duration *validity_us) {
  if (lock == NULL) {
    return REDLOCK_E_INVALID;
  }
  redlock_client *client = rl_client_of(lock);
  redlock_duration left_us;
  rl_client_enter(client);
  redlock_time now_us = redlock_now();
  int result = rl_handle_request(lock, request, now_us, true);
  if (result == REDLOCK_OK) {
    rl_caller *caller = rl_caller_of(lock);
    int error = rl_turn_start(client, now_us);
    while (error == REDLOCK_OK && rl_lock_is_busy(rl_lock_of(lock))) {
      error = rl_caller_wait(client, caller, REDLOCK_NEVER, NULL);
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
