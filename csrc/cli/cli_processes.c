/*
 * redlock(1): the processes of a run, found in /proc.
 *
 * SPDX-License-Identifier: MIT
 */
#include "cli_processes.h"

#include <dirent.h>
#include <errno.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "redlock.h"

typedef struct cli_process {
  pid_t parent;
  unsigned long long began;
  bool living; /* no zombie */
} cli_process;

/* The processes that are searched. */
typedef struct cli_search {
  pid_t spared;
  unsigned long long began; /* of descendants: no earlier */
  const char *variable;     /* of marked ones: "NAME=MARK" */
} cli_search;

typedef bool cli_search_matches(const cli_search *search, pid_t pid);

/* Number of the field of /proc/N/stat with the start time, from 1. The parent is field 4. */
#define CLI_PROCESS_BEGAN 22
/* Ancestors that may end while a process is examined. */
#define CLI_PROCESS_ENDED_MAX 8

static FILE *cli_process_open(pid_t pid, const char *name) {
  char path[64];
  (void)snprintf(path, sizeof path, "/proc/%ld/%s", (long)pid, name);
  return fopen(path, "re");
}

/* Returns false if there is no such process. */
static bool cli_process_read(cli_process *process, pid_t pid) {
  char text[1024];
  FILE *file = cli_process_open(pid, "stat");
  if (file == NULL) {
    return false;
  }
  size_t length = fread(text, 1, sizeof text - 1, file);
  (void)fclose(file);
  text[length] = '\0';
  char *rest = strrchr(text, ')'); /* The name may have any bytes. */
  if (rest == NULL || strlen(rest) < strlen(") S 1")) {
    return false;
  }
  process->living = rest[2] != 'Z' && rest[2] != 'X';
  rest += strlen(") S");
  process->parent = (pid_t)strtol(rest, &rest, 10);
  for (int field = 5; field < CLI_PROCESS_BEGAN; field++) {
    (void)strtoull(rest, &rest, 10);
  }
  process->began = strtoull(rest, NULL, 10);
  return true;
}

/* Goes from parent to parent. */
static bool cli_process_descends(const cli_search *search, pid_t pid) {
  cli_process process;
  pid_t at = pid;
  for (int ended = 0; ended < CLI_PROCESS_ENDED_MAX;) {
    bool found = cli_process_read(&process, at);
    if (at == pid && (!found || !process.living)) {
      return false;
    }
    if (found && (process.began < search->began || process.parent == 0)) {
      return false;
    }
    if (found && process.parent == getpid()) {
      return at != search->spared;
    }
    /* An ancestor has ended meanwhile: its child has got another parent. */
    ended += !found;
    at = found ? process.parent : pid;
  }
  return false;
}

static bool cli_process_is_canary(pid_t pid) {
  char name[64] = "";
  FILE *file = cli_process_open(pid, "comm");
  if (file != NULL) {
    (void)(fgets(name, sizeof name, file) == NULL);
    (void)fclose(file);
  }
  return strcmp(name, CLI_CANARY "\n") == 0;
}

static bool cli_process_is_marked(const cli_search *search, pid_t pid) {
  bool found = false;
  char *text = NULL;
  size_t size = 0;
  FILE *file = pid != search->spared && pid != getpid() ? cli_process_open(pid, "environ") : NULL;
  if (file == NULL) {
    return false;
  }
  while (!found && getdelim(&text, &size, '\0', file) > 0) {
    found = strcmp(text, search->variable) == 0;
  }
  free(text);
  (void)fclose(file);
  return found && !cli_process_is_canary(pid);
}

/* Sends |number| to one process. Returns 1 if it lives, otherwise 0. */
static size_t cli_process_signal(pid_t pid, int number) {
  if (kill(pid, number) != 0) {
    return errno == EPERM ? 1 : 0;
  }
  if (number == SIGTERM) {
    (void)kill(pid, SIGCONT); /* A stopped process would not end. */
  }
  return 1;
}

/* Returns true if /proc shows the PID namespace of this process. */
static bool cli_processes_are_shown(void) {
  char text[32] = "";
  return readlink("/proc/self", text, sizeof text - 1) > 0 &&
         strtol(text, NULL, 10) == (long)getpid();
}

/* Signals those that match, and adds the living ones to |living|. Returns false without /proc. */
static bool cli_processes_signal_all(const cli_search *search, cli_search_matches *matches,
                                     int number, size_t *living) {
  DIR *directory = cli_processes_are_shown() ? opendir("/proc") : NULL;
  struct dirent *entry;
  if (directory == NULL) {
    return false;
  }
  /* This program has one thread. NOLINTNEXTLINE(concurrency-mt-unsafe) */
  while ((entry = readdir(directory)) != NULL) {
    pid_t pid = (pid_t)strtol(entry->d_name, NULL, 10);
    if (pid > 0 && matches(search, pid)) {
      *living += cli_process_signal(pid, number);
    }
  }
  (void)closedir(directory);
  return true;
}

size_t cli_processes_signal(pid_t root, unsigned long long began, pid_t spared, int number) {
  cli_search search = {.spared = spared, .began = began};
  size_t living = 0;
  if (number == SIGKILL && root > 0) {
    (void)kill(root, SIGKILL); /* at once: a host may have many processes to read */
  }
  if (cli_processes_signal_all(&search, cli_process_descends, number, &living)) {
    return living;
  }
  if (getpid() == 1) {
    living = kill(-1, number) == 0 ? 1 : 0;
    (void)(number == SIGTERM && kill(-1, SIGCONT));
    return living;
  }
  return root > 0 ? cli_process_signal(root, number) : 0;
}

size_t cli_processes_signal_marked(const char *mark, pid_t spared, int number) {
  char variable[sizeof CLI_MARK + CLI_MARK_SIZE];
  cli_search search = {.spared = spared, .variable = variable};
  size_t living = 0;
  (void)snprintf(variable, sizeof variable, CLI_MARK "=%s", mark);
  (void)cli_processes_signal_all(&search, cli_process_is_marked, number, &living);
  return living;
}

unsigned long long cli_processes_began(pid_t pid) {
  cli_process process;
  return cli_processes_are_shown() && cli_process_read(&process, pid) ? process.began : 0;
}

void cli_processes_make_mark(char mark[static CLI_MARK_SIZE]) {
  (void)snprintf(mark, CLI_MARK_SIZE, "%ld-%llx", (long)getpid(),
                 (unsigned long long)redlock_now());
}
