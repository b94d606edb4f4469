/*
 * A directory in $TMPDIR, or in /tmp, that goes with the program, however that ends.
 *
 * SPDX-License-Identifier: MIT
 */
#include "scratch.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#define REMOVE_TRIES 500
#define REMOVE_PAUSE_MS 10

/*
 * A server's child that rewrites a file outlives the server a little, and may write during the
 * removal.
 */
static void scratch_remove(const scratch_directory *self) {
  for (unsigned tries = 0; tries < REMOVE_TRIES && access(self->path, F_OK) == 0; tries++) {
    pid_t pid = fork();
    if (pid == 0) {
      (void)execlp("rm", "rm", "-rf", self->path, (char *)NULL);
      _exit(127);
    }
    (void)waitpid(pid, NULL, 0);
    if (access(self->path, F_OK) == 0) {
      (void)poll(NULL, 0, REMOVE_PAUSE_MS);
    }
  }
}

static void scratch_watch(const scratch_directory *self, int fd) {
  char byte;
  (void)signal(SIGINT, SIG_IGN);
  (void)signal(SIGTERM, SIG_IGN);
  (void)setpgid(0, 0); /* A signal to the group of the program must not end this process. */
  while (read(fd, &byte, 1) < 0 && errno == EINTR) {
  }
  scratch_remove(self);
  _exit(0);
}

bool scratch_make(char path[SCRATCH_PATH_MAX], const char *name) {
  const char *parent = getenv("TMPDIR"); /* NOLINT(concurrency-mt-unsafe) */
  parent = parent == NULL || parent[0] == '\0' ? "/tmp" : parent;
  int length = snprintf(path, SCRATCH_PATH_MAX, "%s/redlock-%s-XXXXXX", parent, name);
  if (length < 0 || length >= SCRATCH_PATH_MAX) {
    (void)fprintf(stderr, "TMPDIR is too long for the path of a socket: %s\n", parent);
    return false;
  }
  if (mkdtemp(path) == NULL) {
    perror(path);
    return false;
  }
  return true;
}

bool scratch_open(scratch_directory *self, const char *name) {
  int fds[2];
  if (!scratch_make(self->path, name) || pipe2(fds, O_CLOEXEC) != 0) {
    return false;
  }
  self->janitor = fork();
  if (self->janitor == 0) {
    (void)close(fds[1]);
    scratch_watch(self, fds[0]);
  }
  (void)close(fds[0]);
  self->janitor_fd = fds[1];
  return self->janitor > 0;
}

/* A word, and not only the end of the pipe: children of the program may have that open as well. */
void scratch_close(scratch_directory *self) {
  ssize_t written = write(self->janitor_fd, "", 1);
  (void)close(self->janitor_fd);
  if (written == 1) {
    (void)waitpid(self->janitor, NULL, 0);
  }
}
