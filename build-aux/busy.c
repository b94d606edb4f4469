/*
 * Runs a command on a busy machine: next to two processes that never sleep and one that stops all
 * processes of the command for 300 ms, again and again.
 *
 *     busy [--every MILLISECONDS] COMMAND [ARGUMENT ...]          [7000]
 *
 * SPDX-License-Identifier: MIT
 *
 * Ends with the exit status of the command, or 128 plus the number of the signal that ended it. All
 * descendants of the command end with the command and with this program. It leaves alone processes that a
 * test has stopped.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define SPINNERS 2
#define STOP_MS 300
#define LOOK_MS 10
#define FAREWELL_MS 5000
#define PROCESSES_MAX 16384

typedef struct process {
  pid_t pid;
  pid_t parent;
  char state;
  bool chosen; /* a descendant of the command */
} process;

/* State of the process that stops the command. */
static struct {
  pid_t self;
  pid_t command;
  pid_t spinners[SPINNERS];
  process all[PROCESSES_MAX];
  size_t count;
} busy;

static void sleep_ms(long milliseconds) {
  struct timespec left = {milliseconds / 1000, milliseconds % 1000 * 1000000};
  while (nanosleep(&left, &left) != 0 && errno == EINTR) {
  }
}

static bool is_spinner(pid_t pid) {
  for (unsigned i = 0; i < SPINNERS; i++) {
    if (busy.spinners[i] == pid) {
      return true;
    }
  }
  return false;
}

static bool read_process(const char *pid, process *out) {
  char path[64];
  char text[512];
  long parent;
  (void)snprintf(path, sizeof path, "/proc/%.20s/stat", pid);
  FILE *file = fopen(path, "r");
  if (file == NULL) {
    return false;
  }
  size_t length = fread(text, 1, sizeof text - 1, file);
  (void)fclose(file);
  text[length] = '\0';
  const char *after_name = strrchr(text, ')'); /* A name may contain anything. */
  if (after_name == NULL || sscanf(after_name, ") %c %ld", &out->state, &parent) != 2) {
    return false;
  }
  out->pid = (pid_t)strtol(pid, NULL, 10);
  out->parent = (pid_t)parent;
  out->chosen = false;
  return true;
}

static bool is_chosen(pid_t pid) {
  for (size_t i = 0; i < busy.count; i++) {
    if (busy.all[i].pid == pid) {
      return busy.all[i].chosen;
    }
  }
  return false;
}

/* Finds all descendants. Orphans have this process for a parent. */
static void find_processes(void) {
  DIR *directory = opendir("/proc");
  busy.count = 0;
  for (struct dirent *entry = NULL;
       directory != NULL && busy.count < PROCESSES_MAX && (entry = readdir(directory)) != NULL;) {
    if (entry->d_name[0] >= '1' && entry->d_name[0] <= '9' &&
        read_process(entry->d_name, &busy.all[busy.count])) {
      busy.count++;
    }
  }
  if (directory != NULL) {
    (void)closedir(directory);
  }
  for (bool found = true; found;) {
    found = false;
    for (size_t i = 0; i < busy.count; i++) {
      process *one = &busy.all[i];
      if (!one->chosen && !is_spinner(one->pid) &&
          (one->parent == busy.self || is_chosen(one->parent))) {
        one->chosen = found = true;
      }
    }
  }
}

/* Sends a signal to all descendants, but to none that is stopped already if |running_only|. */
static unsigned send_to_all(int number, bool running_only) {
  unsigned sent = 0;
  for (size_t i = 0; i < busy.count; i++) {
    process *one = &busy.all[i];
    bool stopped = one->state == 'T' || one->state == 't' || one->state == 'Z';
    one->chosen = one->chosen && !(running_only && stopped);
    sent += one->chosen && kill(one->pid, number) == 0;
  }
  return sent;
}

static void stop_for_a_moment(void) {
  find_processes();
  (void)send_to_all(SIGSTOP, true);
  sleep_ms(STOP_MS);
  (void)send_to_all(SIGCONT, false);
}

static void reap_all(int *status) {
  int one;
  for (pid_t pid; (pid = waitpid(-1, &one, WNOHANG)) > 0;) {
    if (pid == busy.command) {
      *status = WIFEXITED(one) ? WEXITSTATUS(one) : 128 + WTERMSIG(one);
      busy.command = 0;
    }
  }
}

/* Ends all descendants; a test may remove its files before. */
static void end_all(void) {
  int status;
  for (long slept_ms = 0; slept_ms < FAREWELL_MS; slept_ms += LOOK_MS) {
    find_processes();
    if (send_to_all(slept_ms == 0 ? SIGTERM : 0, false) == 0) {
      return;
    }
    sleep_ms(LOOK_MS);
    reap_all(&status);
  }
  do {
    find_processes();
    sleep_ms(LOOK_MS);
    reap_all(&status);
  } while (send_to_all(SIGKILL, false) > 0);
}

static pid_t must_fork(void) {
  pid_t child = fork();
  if (child < 0) {
    perror("busy: fork");
    _exit(1);
  }
  return child;
}

static void start_all(char **command) {
  busy.self = getpid();
  if (setpgid(0, 0) != 0 || prctl(PR_SET_CHILD_SUBREAPER, 1) != 0) {
    perror("busy");
    _exit(1);
  }
  for (unsigned i = 0; i < SPINNERS; i++) {
    busy.spinners[i] = must_fork();
    if (busy.spinners[i] == 0) {
      (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
      for (volatile unsigned long count = 0; getppid() == busy.self;) {
        count++;
      }
      _exit(0);
    }
  }
  busy.command = must_fork();
  if (busy.command == 0) {
    (void)execvp(command[0], command);
    (void)fprintf(stderr, "busy: %s: %s\n", command[0], strerror(errno));
    _exit(127);
  }
}

/* Returns the status of the command. |end| becomes readable when this program has been ended. */
static int run(char **command, long every_ms, int end) {
  int status = 1;
  start_all(command);
  for (long slept_ms = 0; busy.command != 0; slept_ms += LOOK_MS) {
    struct pollfd ended = {end, POLLIN, 0};
    if (poll(&ended, 1, LOOK_MS) > 0) {
      break;
    }
    if (slept_ms >= every_ms) {
      slept_ms = 0;
      stop_for_a_moment();
    }
    reap_all(&status);
  }
  end_all();
  return status;
}

int main(int argc, char **argv) {
  long every_ms = 7000;
  int status;
  int ends[2];
  argv++;
  if (argc > 3 && strcmp(argv[0], "--every") == 0) {
    every_ms = strtol(argv[1], NULL, 10);
    argv += 2;
  }
  if (argv[0] == NULL || every_ms <= 0) {
    (void)fprintf(stderr, "usage: busy [--every MILLISECONDS] COMMAND [ARGUMENT ...]\n");
    return 2;
  }
  if (pipe2(ends, O_CLOEXEC) != 0) {
    perror("busy: pipe");
    return 1;
  }
  pid_t child = must_fork();
  if (child == 0) {
    (void)close(ends[1]);
    _exit(run(argv, every_ms, ends[0]));
  }
  (void)close(ends[0]);
  while (waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}
