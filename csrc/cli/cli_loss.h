/*
 * redlock(1): asks the nodes why a lock could not be extended, for the verbs that keep one.
 *
 * SPDX-License-Identifier: MIT
 *
 * Automatic extends leave no message. So the first warning begins an extend of the tool: its
 * message names the nodes.
 */
#ifndef CLI_LOSS_H
#define CLI_LOSS_H

#include "cli.h"

typedef struct cli_loss {
  redlock_time hold_until_us; /* --max-hold: no extend may last longer; REDLOCK_NEVER */
  bool asked;                 /* the extend is in flight, or has an answer */
} cli_loss;

/* Prepares for a lock that was just granted. */
void cli_loss_open(cli_loss *loss, const cli_settings *settings, const redlock_lock *lock);

/* Reports that automatic extends fail, and begins an extend if --max-hold allows it. */
void cli_loss_warn(cli_loss *loss, const cli_settings *settings, redlock_lock *lock);

/* Reports which nodes did not extend the lock, as soon as the extend has failed. */
void cli_loss_report(cli_loss *loss, const cli_settings *settings, redlock_lock *lock);

#endif
