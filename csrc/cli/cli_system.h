/*
 * Calls that a system may lack.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef CLI_SYSTEM_H
#define CLI_SYSTEM_H

#include <stdbool.h>
#include <stddef.h>

/* Opens a pipe from ends[1] to ends[0] that no program of a child gets. */
bool cli_pipe(int ends[2]);

/* Overwrites a secret. */
void cli_wipe(void *bytes, size_t length);

#endif
