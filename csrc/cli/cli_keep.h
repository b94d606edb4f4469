/*
 * redlock(1): reports on a lock that a verb keeps: run, lead and hold.
 *
 * SPDX-License-Identifier: MIT
 *
 * Automatic extends leave no message. So the first warning begins an extend of the tool: its
 * message names the nodes.
 */
#ifndef CLI_KEEP_H
#define CLI_KEEP_H

#include "cli.h"

typedef struct cli_keep {
  redlock_time hold_until_us; /* --max-hold: no extend may last longer; REDLOCK_NEVER */
  bool asked;                 /* the extend is in flight, or has an answer */
} cli_keep;

/* Prepares for a lock that was just granted. */
void cli_keep_open(cli_keep *keep, const cli_settings *settings, const redlock_lock *lock);

/*
 * Reports, after each turn of the loop, that automatic extends fail, and why. Returns REDLOCK_OK,
 * or the reason if the lock has ended.
 */
int cli_keep_check(cli_keep *keep, const cli_settings *settings, redlock_lock *lock);

/* Reports the nodes without a connection. */
void cli_keep_report_nodes(const cli_settings *settings, redlock_client *client);

/* Releases the lock. Returns true if it had ended before, or nodes have lost it. */
bool cli_keep_release(const cli_settings *settings, redlock_lock *lock);

#endif
