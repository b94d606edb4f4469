/*
 * redlock(1): asks the nodes why a lock could not be extended, for the verbs that keep one.
 *
 * SPDX-License-Identifier: MIT
 */
#include "cli_loss.h"

#include "cli_output.h"

/* The start of the lease is not known: the ttl before its end is not later. */
void cli_loss_open(cli_loss *loss, const cli_settings *settings, const redlock_lock *lock) {
  redlock_time end_us = redlock_now() + redlock_lock_remaining(lock);
  *loss = (cli_loss){.hold_until_us = REDLOCK_NEVER};
  if (settings->max_hold_us != 0) {
    loss->hold_until_us = end_us - redlock_lock_ttl(lock) + settings->max_hold_us;
  }
}

void cli_loss_warn(cli_loss *loss, const cli_settings *settings, redlock_lock *lock) {
  char name[CLI_NAME_SIZE];
  redlock_duration ttl_us = redlock_lock_ttl(lock);
  (void)cli_report(settings, 0, "'%s' could not be extended; it ends in %llu ms",
                   cli_lock_name(name, lock),
                   (unsigned long long)(redlock_lock_remaining(lock) / REDLOCK_MILLISECONDS));
  if (redlock_lock_result(lock) != REDLOCK_PENDING &&
      redlock_now() + ttl_us < loss->hold_until_us) {
    loss->asked = redlock_lock_extend_start(lock, ttl_us) == REDLOCK_OK;
  }
}

void cli_loss_report(cli_loss *loss, const cli_settings *settings, redlock_lock *lock) {
  int error = redlock_lock_result(lock);
  if (!loss->asked || error == REDLOCK_PENDING) {
    return;
  }
  loss->asked = false;
  if (error == REDLOCK_E_UNAVAILABLE) {
    (void)cli_report(settings, 0, "%s", redlock_lock_message(lock));
  }
}
