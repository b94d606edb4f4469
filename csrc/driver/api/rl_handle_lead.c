/*
 * Leader election for programs that block: redlock_client_lead().
 *
 * SPDX-License-Identifier: MIT
 */
#include <string.h>

#include "api/rl_handle.h"
#include "api/rl_handle_run.h"
#include "client/rl_client.h"
#include "lease/rl_campaign.h"
#include "options/rl_options.h"

/* A call of redlock_client_lead(). */
typedef struct rl_lead {
  redlock_client *client;
  rl_campaign campaign;
  redlock_options options;
  redlock_lead_function *lead;
  redlock_failed_function *failed;
  void *data;
} rl_lead;

/* Returns true if |error|, of a node, is about the password. */
static bool rl_lead_is_rejection(const char *error) {
  static const char *const starts[] = {
      "WRONGPASS ",           "NOAUTH ",   "ERR invalid password",
      "ERR Client sent AUTH", "ERR AUTH ", "an error that quotes the password"};
  for (size_t i = 0; error != NULL && i < sizeof starts / sizeof starts[0]; i++) {
    if (strncmp(error, starts[i], strlen(starts[i])) == 0) {
      return true;
    }
  }
  return false;
}

/* Returns true if too few nodes accept the password. */
static bool rl_lead_is_rejected(redlock_client *client) {
  redlock_stats_info stats;
  redlock_node_info node;
  size_t rejected = 0;
  (void)redlock_client_stats(client, &stats);
  for (size_t i = 0; redlock_client_node_info(client, i, &node) == REDLOCK_OK; i++) {
    rejected += rl_lead_is_rejection(node.error);
  }
  return redlock_client_node_count(client) - rejected < stats.quorum;
}

/* CAM-1. Returns true if the campaign goes on after an acquire that has failed with |error|. */
static bool rl_lead_goes_on(rl_lead *lead, int error, redlock_lock *lock) {
  if (!rl_campaign_is_due(&lead->campaign)) {
    return false;
  }
  if (error == REDLOCK_E_TAKEN) {
    return true;
  }
  return !rl_lead_is_rejected(lead->client) &&
         (lead->failed == NULL || lead->failed(lead->client, error, redlock_lock_message(lock),
                                               lead->data) != REDLOCK_RESIGN);
}

/* CAM-3, CAM-4. Runs a term. Returns the result for a program that resigns. */
static int rl_lead_term(rl_lead *lead, redlock_lock *lock) {
  bool resigns = lead->lead(lock, lead->data) == REDLOCK_RESIGN;
  int lost = redlock_lock_lost(lock, NULL);
  redlock_lock_cancel(lock); /* An operation of |lead|, which would prevent the release. */
  int error = redlock_lock_release(lock);
  rl_campaign_returned(&lead->campaign, resigns);
  if (lost == REDLOCK_E_MAX_HOLD) {
    return lost; /* The release returns that the lease has expired. */
  }
  return error == REDLOCK_E_LOST || error == REDLOCK_E_EXPIRED ? error : REDLOCK_OK;
}

/* One acquire, and the term that it begins. Returns its result; |*over| if the call ends. */
static int rl_lead_step(rl_lead *lead, const void *resource, size_t length, bool *over) {
  redlock_lock *lock;
  lead->options.wait_us = lead->campaign.wait_us;
  int error = redlock_lock_new(&lock, lead->client, resource, length, &lead->options);
  *over = error != REDLOCK_OK;
  if (*over) {
    return error;
  }
  error = redlock_lock_acquire(lock, NULL, NULL);
  rl_campaign_acquired(&lead->campaign, error);
  if (error == REDLOCK_OK) {
    error = rl_lead_term(lead, lock);
    *over = !rl_campaign_is_due(&lead->campaign);
  } else {
    *over = !rl_lead_goes_on(lead, error, lock);
  }
  if (*over) {
    (void)rl_handle_note(lock, error);
  }
  redlock_lock_free(lock);
  return error;
}

/* Reads the options of the program. Returns why they are wrong, as a static sentence, or NULL. */
static const char *rl_lead_read(rl_lead *lead, const redlock_options *given, size_t size) {
  redlock_options *options = &lead->options;
  const char *wrong =
      given != NULL ? rl_option_fit(&rl_options_of_lock, options, given, size) : NULL;
  if (wrong != NULL) {
    return wrong;
  }
  if (options->retry_count != 0) {
    return "retry_count does not go with redlock_client_lead(): limit a campaign by wait_us";
  }
  if (options->auto_extend == REDLOCK_NO || options->fence == REDLOCK_NO) {
    return "auto_extend and fence of redlock_client_lead() are always REDLOCK_YES";
  }
  if (options->permits != 0 && options->permits != REDLOCK_PERMITS_NONE) {
    return "permits of redlock_client_lead() are always REDLOCK_PERMITS_NONE";
  }
  options->auto_extend = options->fence = REDLOCK_YES;
  options->permits = REDLOCK_PERMITS_NONE;
  rl_campaign_begin(&lead->campaign, options->wait_us != 0 ? options->wait_us : REDLOCK_NEVER);
  return NULL;
}

int redlock_client_lead_sized(redlock_client *client, const void *resource, size_t resource_length,
                              const redlock_options *options, size_t options_size,
                              redlock_lead_function *lead, redlock_failed_function *failed,
                              void *data) {
  rl_lead call = {.client = client, .lead = lead, .failed = failed, .data = data};
  bool over = false;
  int error = REDLOCK_OK;
  if (client == NULL || lead == NULL) {
    return REDLOCK_E_INVALID;
  }
  const char *wrong = rl_lead_read(&call, options, options_size);
  if (wrong != NULL) {
    rl_client_enter(client);
    (void)rl_client_note(client, REDLOCK_E_INVALID, wrong);
    rl_client_leave(client);
    return REDLOCK_E_INVALID;
  }
  while (!over) {
    error = rl_lead_step(&call, resource, resource_length, &over);
  }
  return error;
}
