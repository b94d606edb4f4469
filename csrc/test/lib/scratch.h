/*
 * A directory in $TMPDIR, or in /tmp, that goes with the program, however that ends.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef SCRATCH_H
#define SCRATCH_H

#include <stdbool.h>
#include <sys/types.h>

/* A socket in the directory, "/12345678", must have a path of at most 107 bytes. */
#define SCRATCH_PATH_MAX 96

typedef struct scratch_directory {
  char path[SCRATCH_PATH_MAX];
  pid_t janitor; /* a process that removes it on a byte from the program, or when that has ended */
  int janitor_fd;
} scratch_directory;

/*
 * Makes a directory "redlock-<name>-XXXXXX" in $TMPDIR, or in /tmp. Returns false, and prints the
 * error, if it cannot. The caller removes it.
 */
bool scratch_make(char path[SCRATCH_PATH_MAX], const char *name);

/* Makes such a directory that is removed with the program. */
bool scratch_open(scratch_directory *self, const char *name);

/* Removes it and waits until it is gone. */
void scratch_close(scratch_directory *self);

#endif
