/*
 * redlock(1): the answer of each node to an operation for operators.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef CLI_VOTES_H
#define CLI_VOTES_H

#include "cli.h"

/*
 * Prints a row for each node, as text or as JSON: its name, the vote, and the error. |granted| and
 * |taken| are names for these votes. With -q, only nodes that have not granted get a row.
 */
void cli_put_votes(const cli_settings *settings, redlock_lock *lock, const char *granted,
                   const char *taken);

#endif
