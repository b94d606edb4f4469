/*
 * redlock(1): a held lock as text, between two runs of the tool.
 *
 * SPDX-License-Identifier: MIT
 *
 * Other users can see arguments, and a reader of the text can take the lock. So "-" stands for the
 * standard input.
 */
#ifndef CLI_HANDOVER_H
#define CLI_HANDOVER_H

#include "cli.h"

/*
 * Detaches the held |lock| and prints its text. |text| is a copy for cli_handover_release().
 * Returns the exit status.
 */
int cli_handover_print(const cli_settings *settings, cli_loop *loop, redlock_lock *lock,
                       char text[static REDLOCK_HANDOVER_MAX]);

/* Runs |step| with the lock of the text in the first operand, attached and held. */
int cli_handover_with_lock(const cli_settings *settings, redlock_client *client, cli_step *step);

/* Releases the lock of |text|, which could not be printed. */
void cli_handover_release(redlock_client *client, const char *text);

#endif
