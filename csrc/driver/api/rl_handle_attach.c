/*
 * Hands a lease to another process.
 *
 * SPDX-License-Identifier: MIT
 */
#include <string.h>

#include "api/rl_handle.h"
#include "api/rl_handle_run.h"
#include "client/rl_client.h"
#include "client/rl_poll.h"
#include "client/rl_turn.h"
#include "lease/rl_attach.h"
#include "lifecycle/rl_detach.h"

/* Reads replies first: a node whose reply is not read would be doubtful (rl_attach.c). */
static void rl_handle_read_answers(redlock_lock *lock) {
  redlock_client *client = rl_client_of(lock);
  const rl_attempt *lease = rl_lock_of(lock)->lease;
  if (lease != NULL && lease->set_outstanding != 0 && !client->external) {
    (void)rl_turn_process(client, NULL, 0);
    rl_poll_wake(client);
  }
}

static int rl_handle_write(redlock_lock *lock, char *text, size_t size, size_t *length) {
  rl_handover handover;
  rl_handle_read_answers(lock);
  int error = rl_handle_may_begin(lock)
                  ? rl_lock_describe_lease(rl_lock_of(lock), redlock_now(), &handover)
                  : REDLOCK_E_BUSY;
  if (error != REDLOCK_OK) {
    return rl_handle_refuse(lock, error, NULL);
  }
  size_t needed = rl_handover_length(&handover);
  if (length != NULL) {
    *length = needed;
  }
  if (needed >= size) {
    return rl_handle_refuse(lock, REDLOCK_E_LIMIT, "the text of the lock does not fit its buffer");
  }
  rl_handover_write(&handover, text);
  rl_lock_detach(rl_lock_of(lock));
  rl_poll_sync(rl_client_of(lock));
  return REDLOCK_OK;
}

int redlock_lock_detach(redlock_lock *lock, char *text, size_t size, size_t *length) {
  if (lock == NULL || text == NULL) {
    return REDLOCK_E_INVALID;
  }
  rl_client_enter(rl_client_of(lock));
  int error = rl_handle_write(lock, text, size, length);
  rl_client_leave(rl_client_of(lock));
  return error;
}

/* Returns why the lease cannot be attached here, as a static sentence, or NULL. */
static const char *rl_handle_wrong_handover(const redlock_client *client,
                                            const rl_handover *handover) {
  const rl_core *core = &client->core;
  if (handover->node_count != core->node_count) {
    return "it was detached by a client with another number of nodes";
  }
  if (handover->prefix_length != core->prefix_length ||
      (core->prefix_length > 0 &&
       memcmp(handover->prefix, core->prefix, core->prefix_length) != 0)) {
    return "it was detached by a client with another prefix";
  }
  if (handover->may_set != 0 && handover->nodes != rl_detach_nodes(core)) {
    return "it was detached while nodes had not answered: the client must have the same nodes, with "
           "the same names and in the same order";
  }
  return rl_client_wrong_quorum(client);
}

/* redlock_lock_attach() inside the client. |*wrong| is the reason, a static sentence, or NULL. */
static int rl_handle_attach(redlock_lock **made, redlock_client *client, rl_handover *handover,
                            const redlock_options *given, size_t options_size, const char **wrong) {
  rl_options options = client->core.options;
  redlock_options known = {0};
  redlock_resource base = handover->resources[0];
  unsigned slot;
  unsigned permits = rl_attach_permits(handover, &slot, &base.length);
  options.ttl_us = handover->ttl_us;
  options.lock_delay_us = handover->lock_delay_us;
  options.hold_at_least_us = 0; /* The rest of the lease's own is in the text. */
  *wrong = rl_handle_wrong_handover(client, handover);
  if (*wrong == NULL && given != NULL) {
    *wrong = rl_option_fit(&rl_options_of_lock, &known, given, options_size);
    *wrong = *wrong != NULL ? *wrong : rl_handle_read_options(&options, &known, sizeof known);
  }
  if (known.hold_at_least_us != 0) { /* perhaps to none */
    handover->hold_us = 0;
  }
  if (*wrong == NULL) {
    *wrong = rl_attach_fit_fence(&options, handover->fence);
  }
  if (*wrong != NULL) {
    return REDLOCK_E_INVALID;
  }
  options.permits = (int)permits; /* those of the lease, whatever the options say */
  int error = rl_handle_new(made, client, permits > 0 ? &base : handover->resources,
                            handover->resource_count, &options);
  if (error == REDLOCK_OK && rl_attach_set(rl_lock_of(*made), handover) != REDLOCK_OK) {
    client->references--;
    rl_lock_free(rl_lock_of(*made), redlock_now());
    *made = NULL;
    error = REDLOCK_E_NO_MEMORY;
  }
  return error;
}

int redlock_lock_attach_sized(redlock_lock **made, redlock_client *client, const char *text,
                              size_t length, const redlock_options *given, size_t options_size) {
  const char *wrong = "the text was not written by detaching a lock, or it was changed";
  rl_handover handover;
  if (made == NULL || client == NULL || text == NULL) {
    return REDLOCK_E_INVALID;
  }
  *made = NULL;
  rl_client_enter(client);
  int error = client->core.closed ? REDLOCK_E_CLOSED : rl_handover_read(&handover, text, length);
  wrong = error == REDLOCK_E_CLOSED ? NULL : wrong;
  if (error == REDLOCK_OK) {
    error = rl_handle_attach(made, client, &handover, given, options_size, &wrong);
    rl_handover_free(&handover);
  }
  (void)rl_client_note(client, error, wrong);
  rl_client_leave(client);
  return error;
}
