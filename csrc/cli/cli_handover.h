/*
 * redlock(1): a held lock as text, between two runs of the tool.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef CLI_HANDOVER_H
#define CLI_HANDOVER_H

#include "cli.h"

/* Attaches the lock of the text |operand|. Returns -1, or the exit status after a message. */
int cli_handover_open(redlock_lock **lock, redlock_client *client, const char *operand);

/* Releases the lock of |text| at once, also before the end of --hold-for. */
void cli_handover_release(redlock_client *client, const char *text);

#endif
