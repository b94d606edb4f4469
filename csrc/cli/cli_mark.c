/*
 * redlock(1): the processes that have a mark in their environment.
 *
 * SPDX-License-Identifier: MIT
 */
#include "cli_mark.h"

#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli_descendants.h"
#include "redlock.h"

#define CLI_MARK_ENVIRONMENT_MAX ((size_t)2 << 20) /* The kernel allows no more by default. */

void cli_mark_make(char mark[static CLI_MARK_SIZE]) {
  (void)snprintf(mark, CLI_MARK_SIZE, "%ld-%llx", (long)getpid(),
                 (unsigned long long)redlock_now());
}

/* Reads a whole file into |text|. Returns its length, or 0. */
static size_t cli_mark_read(const char *path, char *text, size_t size) {
  int fd = open(path, O_RDONLY | O_CLOEXEC);
  size_t length = 0;
  ssize_t got = 0;
  while (fd >= 0 && length < size && (got = read(fd, text + length, size - length)) > 0) {
    length += (size_t)got;
  }
  (void)(fd >= 0 && close(fd));
  return length;
}

/* Returns true if one of the texts in |texts|, each ended by NUL, is |wanted|. */
static bool cli_mark_is_in(const char *texts, size_t length, const char *wanted) {
  size_t size = strlen(wanted) + 1;
  for (const char *at = texts; length >= size;) {
    const char *end = memchr(at, '\0', length);
    if (end == NULL) {
      return false;
    }
    if ((size_t)(end - at) + 1 == size && memcmp(at, wanted, size) == 0) {
      return true;
    }
    length -= (size_t)(end - at) + 1;
    at = end + 1;
  }
  return false;
}

static bool cli_mark_is_canary(pid_t pid) {
  char path[64];
  char name[sizeof CLI_CANARY] = "";
  (void)snprintf(path, sizeof path, "/proc/%ld/comm", (long)pid);
  size_t length = cli_mark_read(path, name, sizeof name);
  return length == sizeof name && memcmp(name, CLI_CANARY "\n", length) == 0;
}

size_t cli_mark_signal(const char *mark, pid_t spared, int number) {
  char wanted[sizeof CLI_MARK + CLI_MARK_SIZE];
  char path[64];
  size_t living = 0;
  char *text = malloc(CLI_MARK_ENVIRONMENT_MAX);
  DIR *directory = cli_descendants_proc() ? opendir("/proc") : NULL;
  struct dirent *entry;
  (void)snprintf(wanted, sizeof wanted, CLI_MARK "=%s", mark);
  /* This program has one thread. NOLINTNEXTLINE(concurrency-mt-unsafe) */
  while (text != NULL && directory != NULL && (entry = readdir(directory)) != NULL) {
    pid_t pid = (pid_t)strtol(entry->d_name, NULL, 10);
    if (pid <= 0 || pid == spared || pid == getpid()) {
      continue;
    }
    (void)snprintf(path, sizeof path, "/proc/%ld/environ", (long)pid);
    size_t length = cli_mark_read(path, text, CLI_MARK_ENVIRONMENT_MAX);
    if (cli_mark_is_in(text, length, wanted) && !cli_mark_is_canary(pid)) {
      living += cli_descendants_signal_one(pid, number);
    }
  }
  (void)(directory != NULL && closedir(directory));
  free(text);
  return living;
}
