/*
 * redlock(1): the processes that descend from this one.
 *
 * SPDX-License-Identifier: MIT
 */
#include "cli_descendants.h"

#include <dirent.h>
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

typedef struct cli_process {
  pid_t pid, parent;
  unsigned long long began;
  bool living; /* no zombie */
  bool ours;
} cli_process;

typedef struct cli_processes {
  cli_process *all;
  size_t count, capacity;
} cli_processes;

/* Number of the field of /proc/N/stat with the start time, from 1. The parent is field 4. */
#define CLI_PROCESS_BEGAN 22

/* Returns false if there is no such process. */
static bool cli_process_read(cli_process *process, pid_t pid) {
  char path[64];
  char text[1024];
  (void)snprintf(path, sizeof path, "/proc/%ld/stat", (long)pid);
  FILE *file = fopen(path, "re");
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
  char state = rest[2];
  process->pid = pid;
  process->living = state != 'Z' && state != 'X';
  process->ours = false;
  rest += strlen(") S");
  process->parent = (pid_t)strtol(rest, &rest, 10);
  for (int field = 5; field < CLI_PROCESS_BEGAN; field++) {
    (void)strtoull(rest, &rest, 10);
  }
  process->began = strtoull(rest, NULL, 10);
  return true;
}

bool cli_descendants_proc(void) {
  char text[32] = "";
  return readlink("/proc/self", text, sizeof text - 1) > 0 &&
         strtol(text, NULL, 10) == (long)getpid();
}

/* Returns false if out of memory. */
static bool cli_processes_add(cli_processes *self, const cli_process *process) {
  if (self->count == self->capacity) {
    size_t capacity = self->capacity == 0 ? 256 : 2 * self->capacity;
    cli_process *all = realloc(self->all, capacity * sizeof *all);
    if (all == NULL) {
      return false;
    }
    self->all = all;
    self->capacity = capacity;
  }
  self->all[self->count++] = *process;
  return true;
}

static bool cli_processes_read(cli_processes *self) {
  bool good = cli_descendants_proc();
  DIR *directory = good ? opendir("/proc") : NULL;
  if (directory == NULL) {
    return false;
  }
  struct dirent *entry; /* This program has one thread. NOLINTNEXTLINE(concurrency-mt-unsafe) */
  while (good && (entry = readdir(directory)) != NULL) {
    cli_process process;
    long pid = strtol(entry->d_name, NULL, 10);
    if (pid > 0 && cli_process_read(&process, (pid_t)pid) && process.living) {
      good = cli_processes_add(self, &process);
    }
  }
  (void)closedir(directory);
  return good;
}

static int cli_process_compare(const void *left, const void *right) {
  pid_t a = ((const cli_process *)left)->pid;
  pid_t b = ((const cli_process *)right)->pid;
  return (a > b) - (a < b);
}

/* Returns true if |process| is a child of one that is ours. The processes are sorted. */
static bool cli_processes_has_parent(const cli_processes *self, const cli_process *process) {
  cli_process wanted = {.pid = process->parent};
  const cli_process *parent =
      bsearch(&wanted, self->all, self->count, sizeof wanted, cli_process_compare);
  return parent != NULL && parent->ours;
}

static void cli_processes_mark(cli_processes *self, unsigned long long began, pid_t spared) {
  pid_t own = getpid();
  bool more = true;
  if (self->count > 0) {
    qsort(self->all, self->count, sizeof *self->all, cli_process_compare);
  }
  for (size_t i = 0; i < self->count; i++) {
    cli_process *process = &self->all[i];
    process->ours = process->parent == own && process->began >= began && process->pid != spared;
  }
  while (more) {
    more = false;
    for (size_t i = 0; i < self->count; i++) {
      cli_process *process = &self->all[i];
      if (!process->ours && cli_processes_has_parent(self, process)) {
        process->ours = more = true;
      }
    }
  }
}

size_t cli_descendants_signal_one(pid_t pid, int number) {
  if (kill(pid, number) != 0) {
    return errno == EPERM ? 1 : 0;
  }
  if (number == SIGTERM) {
    (void)kill(pid, SIGCONT); /* A stopped process would not end. */
  }
  return 1;
}

size_t cli_descendants_signal(pid_t root, unsigned long long began, pid_t spared, int number) {
  cli_processes processes = {NULL, 0, 0};
  size_t living = 0;
  if (number == SIGKILL && root > 0) {
    (void)kill(root, SIGKILL); /* at once: a host may have many processes to read */
  }
  if (cli_processes_read(&processes)) {
    cli_processes_mark(&processes, began, spared);
    for (size_t i = 0; i < processes.count; i++) {
      living +=
          processes.all[i].ours ? cli_descendants_signal_one(processes.all[i].pid, number) : 0;
    }
  } else if (getpid() == 1) {
    living = kill(-1, number) == 0 ? 1 : 0;
    (void)(number == SIGTERM && kill(-1, SIGCONT));
  } else if (root > 0) {
    living = cli_descendants_signal_one(root, number);
  }
  free(processes.all);
  return living;
}

unsigned long long cli_descendants_began(pid_t pid) {
  cli_process process;
  return cli_descendants_proc() && cli_process_read(&process, pid) ? process.began : 0;
}
