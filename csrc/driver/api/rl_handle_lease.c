/*
 * The lease of a lock: taking, extending and releasing it, and what is left of it.
 *
 * SPDX-License-Identifier: MIT
 */
#include "api/rl_handle.h"
#include "api/rl_handle_run.h"
#include "client/rl_client.h"
#include "client/rl_poll.h"
#include "client/rl_turn.h"
#include "lease/rl_custom_token.h"
#include "lease/rl_fence.h"
#include "lease/rl_margin.h"
#include "lease/rl_semaphore.h"
#include "lifecycle/rl_lifecycle.h"

/* --------------------------------------------------------------------------------- operations */

int redlock_lock_acquire_sized(redlock_lock *lock, const redlock_options *options,
                               size_t options_size, redlock_duration *validity_us) {
  rl_request request = {
      .operation = RL_OPERATION_ACQUIRE, .options = options, .options_size = options_size};
  return rl_handle_run(lock, &request, validity_us);
}

int redlock_lock_acquire_start_sized(redlock_lock *lock, const redlock_options *options,
                                     size_t options_size) {
  rl_request request = {
      .operation = RL_OPERATION_ACQUIRE, .options = options, .options_size = options_size};
  return rl_handle_start(lock, &request);
}

int redlock_lock_extend(redlock_lock *lock, redlock_duration ttl_us,
                        redlock_duration *validity_us) {
  rl_request request = {.operation = RL_OPERATION_EXTEND, .ttl_us = ttl_us};
  return rl_handle_run(lock, &request, validity_us);
}

int redlock_lock_extend_start(redlock_lock *lock, redlock_duration ttl_us) {
  rl_request request = {.operation = RL_OPERATION_EXTEND, .ttl_us = ttl_us};
  return rl_handle_start(lock, &request);
}

int redlock_lock_release(redlock_lock *lock) {
  return rl_handle_run(lock, &(rl_request){.operation = RL_OPERATION_RELEASE}, NULL);
}

int redlock_lock_release_start(redlock_lock *lock) {
  return rl_handle_start(lock, &(rl_request){.operation = RL_OPERATION_RELEASE});
}

int redlock_lock_release_send(redlock_lock *lock) {
  if (lock == NULL) {
    return REDLOCK_E_INVALID;
  }
  redlock_client *client = rl_client_of(lock);
  rl_client_enter(client);
  redlock_time now_us = redlock_now();
  int error = rl_lock_of(lock)->caller_number != 0 ? REDLOCK_E_BUSY
                                                   : rl_lock_release_send(rl_lock_of(lock), now_us);
  if (error == REDLOCK_OK) {
    /* It can only lack entropy, which a release does not need. */
    (void)rl_turn_start(client, now_us);
    rl_core_before_pause(&client->core, now_us);
    rl_caller_send(client);
    rl_poll_wake(client);
  }
  rl_client_leave(client);
  return error;
}

void redlock_lock_cancel(redlock_lock *lock) {
  if (lock == NULL) {
    return;
  }
  rl_client_enter(rl_client_of(lock));
  rl_lock_cancel(rl_lock_of(lock), redlock_now(), REDLOCK_E_CANCELLED);
  rl_caller_send(rl_client_of(lock));
  rl_poll_wake(rl_client_of(lock));
  rl_client_leave(rl_client_of(lock));
}

int redlock_lock_result(const redlock_lock *lock) {
  /* This drops a lease that has run out, which does not change the lock for the program. */
  return lock == NULL ? REDLOCK_E_INVALID : rl_handle_outcome((redlock_lock *)lock, 1, NULL);
}

/* ---------------------------------------------------------------------------------- the lease */

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

int redlock_lock_margin(const redlock_lock *lock) {
  if (lock == NULL) {
    return -1;
  }
  rl_client_enter(rl_client_of(lock));
  int margin = rl_margin_of(rl_lock_of(lock), redlock_now());
  rl_client_leave(rl_client_of(lock));
  return margin;
}

unsigned redlock_lock_slot(const redlock_lock *lock) {
  if (lock == NULL) {
    return 0;
  }
  rl_client_enter(rl_client_of(lock));
  unsigned slot = rl_semaphore_slot(rl_lock_of(lock), redlock_now());
  rl_client_leave(rl_client_of(lock));
  return slot;
}

uint64_t redlock_lock_fence(const redlock_lock *lock) {
  if (lock == NULL) {
    return 0;
  }
  rl_client_enter(rl_client_of(lock));
  uint64_t token = rl_handle_left(lock) > 0 ? rl_fence_token(rl_ring_owner(rl_lock_of(lock))) : 0;
  rl_client_leave(rl_client_of(lock));
  return token;
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

/* --------------------------------------------------------------------------- token and owner */

/*
 * Another thread may read the reply that ends the lease, so a reference keeps its token. Without
 * memory for that, the token lives as long as no other thread uses the client.
 */
static const char *rl_handle_lend_token(redlock_lock *lock, size_t *length) {
  rl_attempt *lease = rl_ring_owner(rl_lock_of(lock))->lease;
  if (lease == NULL || rl_handle_left(lock) == 0) {
    return "";
  }
  rl_extension *extension =
      rl_lock_reserve_extension(rl_lock_of(lock)) ? rl_lock_of(lock)->extension : NULL;
  if (extension != NULL && extension->borrowed_lease != lease) {
    rl_attempt_unref(&rl_client_of(lock)->core.attempts, extension->borrowed_lease);
    extension->borrowed_lease = rl_attempt_ref(lease);
  }
  *length = lease->token_length;
  return rl_attempt_token(lease);
}

const void *redlock_lock_token_bytes(const redlock_lock *lock, size_t *length) {
  size_t known = 0;
  const char *token = "";
  if (lock != NULL) {
    rl_client_enter(rl_client_of(lock));
    token = rl_handle_lend_token((redlock_lock *)lock, &known);
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

int redlock_lock_give_token(redlock_lock *lock, const void *token, size_t length) {
  if (lock == NULL) {
    return REDLOCK_E_INVALID;
  }
  rl_client_enter(rl_client_of(lock));
  bool invalid = token == NULL || length == 0;
  bool longer = length > REDLOCK_TOKEN_MAX;
  int error = invalid  ? REDLOCK_E_INVALID
              : longer ? REDLOCK_E_LIMIT
                       : rl_custom_token_set(rl_lock_of(lock), token, length);
  (void)rl_handle_refuse(lock, error,
                         invalid  ? "the supplied token is empty"
                         : longer ? "the supplied token is longer than REDLOCK_TOKEN_MAX bytes"
                                  : NULL);
  rl_client_leave(rl_client_of(lock));
  return error;
}

static int rl_handle_set_owner(redlock_lock *lock, const void *owner, size_t length) {
  if (owner == NULL && length > 0) {
    return rl_handle_refuse(lock, REDLOCK_E_INVALID, "the owner is NULL");
  }
  if (length > REDLOCK_OWNER_MAX) {
    return rl_handle_refuse(lock, REDLOCK_E_LIMIT,
                            "the owner is longer than REDLOCK_OWNER_MAX bytes");
  }
  /* A new acquire takes the place of an abandoned operation. */
  bool busy = rl_lock_is_busy(rl_lock_of(lock)) && !rl_lock_of(lock)->abandoned;
  if (!rl_handle_may_begin(lock) || busy) {
    return REDLOCK_E_BUSY;
  }
  int error = rl_reentry_set_owner(rl_lock_of(lock), redlock_now(), owner, length);
  return error == REDLOCK_E_HELD ? error : rl_handle_refuse(lock, error, NULL);
}

int redlock_lock_set_owner(redlock_lock *lock, const void *owner, size_t length) {
  if (lock == NULL) {
    return REDLOCK_E_INVALID;
  }
  rl_client_enter(rl_client_of(lock));
  int error = rl_handle_set_owner(lock, owner, length);
  rl_client_leave(rl_client_of(lock));
  return error;
}
