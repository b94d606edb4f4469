/*
 * redlock(1): reports on a lock that a verb keeps: run, lead and hold.
 *
 * SPDX-License-Identifier: MIT
 */
#include "cli_keep.h"

/* The start of the lease is not known: the ttl before its end is not later. */
void cli_keep_open(cli_keep *keep, const cli_settings *settings, const redlock_lock *lock) {
  redlock_time end_us = redlock_now() + redlock_lock_remaining(lock);
  redlock_duration most_us = settings->options.max_hold_us;
  *keep = (cli_keep){.hold_until_us = REDLOCK_NEVER};
  if (most_us != 0) {
    keep->hold_until_us = end_us - redlock_lock_ttl(lock) + most_us;
  }
}

/* Begins an extend, if --max-hold allows it. */
static void cli_keep_warn(cli_keep *keep, const cli_settings *settings, redlock_lock *lock) {
  redlock_duration ttl_us = redlock_lock_ttl(lock);
  (void)cli_report(settings, 0, "'%s' could not be extended; it ends in %llu ms", settings->name,
                   (unsigned long long)(redlock_lock_remaining(lock) / REDLOCK_MILLISECONDS));
  if (redlock_lock_result(lock) != REDLOCK_PENDING &&
      redlock_now() + ttl_us < keep->hold_until_us) {
    keep->asked = redlock_lock_extend_start(lock, ttl_us) == REDLOCK_OK;
  }
}

void cli_keep_report_nodes(const cli_settings *settings, redlock_client *client) {
  redlock_node_info node;
  for (size_t i = 0; redlock_client_node_info(client, i, &node) == REDLOCK_OK; i++) {
    if (node.state != REDLOCK_NODE_UP) {
      (void)cli_report(settings, 0, "%s: %s", node.name,
                       node.error != NULL ? node.error : "not connected");
    }
  }
}

int cli_keep_check(cli_keep *keep, const cli_settings *settings, redlock_lock *lock) {
  redlock_client *client = redlock_lock_client(lock);
  int result = redlock_lock_result(lock);
  if (keep->asked && result != REDLOCK_PENDING) {
    keep->asked = false;
    if (result == REDLOCK_E_UNAVAILABLE) {
      (void)cli_report(settings, 0, "%s", redlock_lock_message(lock));
    }
  }
  if (redlock_client_next_lost(client) == NULL) {
    return REDLOCK_OK;
  }
  int error = redlock_lock_lost(lock, NULL);
  if (error == REDLOCK_E_UNAVAILABLE) {
    cli_keep_warn(keep, settings, lock);
  } else if (error == REDLOCK_E_CLOCK) {
    (void)cli_report(settings, 0, "'%s' may end early: %s", settings->name,
                     redlock_strerror(error));
  } else {
    return error;
  }
  cli_keep_report_nodes(settings, client);
  return REDLOCK_OK;
}

bool cli_keep_release(const cli_settings *settings, redlock_lock *lock) {
  bool over = redlock_lock_remaining(lock) == 0;
  int error = redlock_lock_release(lock);
  if (error == REDLOCK_E_LOST || (error != REDLOCK_OK && !over)) {
    const char *message = redlock_lock_message(lock);
    (void)cli_report(settings, 0, "%s", message[0] != '\0' ? message : redlock_strerror(error));
  }
  return over || error == REDLOCK_E_LOST;
}
