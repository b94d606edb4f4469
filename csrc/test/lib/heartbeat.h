/*
 * A command that shows until when it has run: the test program calls itself as the command.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef HEARTBEAT_H
#define HEARTBEAT_H

#include <stdbool.h>

#include "redlock.h"

/*
 * To be called first in main(). As "SELF beat FILE [ignore]" the program writes the time into FILE
 * until it is killed, and never returns. With "ignore", TERM does not end it.
 */
void heartbeat_main(int argc, char **argv);

typedef struct heartbeat {
  volatile redlock_time *last; /* of redlock_now(); 0 before the first */
} heartbeat;

/* Creates |path|, a file for one command, and maps it. */
heartbeat heartbeat_open(const char *path);
void heartbeat_close(heartbeat *self);

#endif
