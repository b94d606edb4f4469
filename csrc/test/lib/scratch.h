/*
 * A directory in /tmp that goes with the program, however that ends.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef SCRATCH_H
#define SCRATCH_H

#include <stdbool.h>
#include <sys/types.h>

typedef struct scratch_directory {
  char path[64];
  pid_t janitor; /* a process that removes it when it is told to, or when nobody is left to tell */
  int janitor_fd;
} scratch_directory;

/* Makes "/tmp/redlock-<name>-XXXXXX". Returns false when that cannot be had. */
bool scratch_open(scratch_directory *self, const char *name);

/* Removes it and waits until it is gone. */
void scratch_close(scratch_directory *self);

#endif
