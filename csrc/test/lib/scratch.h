/*
 * A directory in $TMPDIR that goes with the program, however that ends.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef SCRATCH_H
#define SCRATCH_H

#include <stdbool.h>
#include <sys/types.h>

#define SCRATCH_PATH_MAX 96 /* short enough for a Unix socket in it */

typedef struct scratch_directory {
  char path[SCRATCH_PATH_MAX];
  pid_t janitor; /* a process that removes it when it is told to, or when nobody is left to tell */
  int janitor_fd;
} scratch_directory;

/* Makes "$TMPDIR/redlock-<name>-XXXXXX", or one in /tmp. Returns false if that fails. */
bool scratch_open(scratch_directory *self, const char *name);

/* Removes it and waits until it is gone. */
void scratch_close(scratch_directory *self);

#endif
