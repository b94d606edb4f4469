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
#define TEXT_MAX 4096

typedef struct process {
  pid_t pid;
  pid_t parent;
  bool is_server; /* of the test: it sends no signals */
  bool chosen;    /* a descendant of the command */
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

/* Reads /proc/PID/|file|. */
static bool read_file(pid_t pid, const char *name, char text[TEXT_MAX]) {
  char path[64];
  (void)snprintf(path, sizeof path, "/proc/%ld/%s", (long)pid, name);
  FILE *file = fopen(path, "r");
  if (file == NULL) {
    return false;
  }
  size_t length = fread(text, 1, TEXT_MAX - 1, file);
  (void)fclose(file);
  text[length] = '\0';
  return true;
}

static bool read_process(pid_t pid, process *out) {
  char text[TEXT_MAX];
  long parent;
  if (!read_file(pid, "stat", text)) {
    return false;
  }
  const char *after_name = strrchr(text, ')'); /* A name may contain anything. */
  if (after_name == NULL || sscanf(after_name, ") %*c %ld", &parent) != 1) {
    return false;
  }
  out->pid = pid;
  out->parent = (pid_t)parent;
  out->is_server = strstr(text, "-server") != NULL;
  out->chosen = false;
  return true;
}

/* Returns true if the process has ended, or if the test has stopped it or is about to. */
static bool is_stopped(pid_t pid) {
  char text[TEXT_MAX];
  char state;
  unsigned long long pending;
  if (!read_file(pid, "status", text)) {
    return true;
  }
  const char *states = strstr(text, "\nState:");
  const char *signals = strstr(text, "\nShdPnd:");
  return states == NULL || signals == NULL || sscanf(states, "\nState: %c", &state) != 1 ||
         sscanf(signals, "\nShdPnd: %llx", &pending) != 1 || strchr("TtZX", state) != NULL ||
         ((pending >> (SIGSTOP - 1) | pending >> (SIGTSTP - 1)) & 1) != 0;
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
        read_process((pid_t)strtol(entry->d_name, NULL, 10), &busy.all[busy.count])) {
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

static int programs_first(const void *left, const void *right) {
  const process *a = left, *b = right;
  return a->is_server != b->is_server ? a->is_server - b->is_server : a->pid - b->pid;
}

static unsigned send_to_all(int number) {
  unsigned sent = 0;
  for (size_t i = busy.count; i > 0; i--) {
    sent += busy.all[i - 1].chosen && kill(busy.all[i - 1].pid, number) == 0;
  }
  return sent;
}

/*
 * A program of the test stops before its servers and children, and continues after them. Otherwise
 * it could stop a process that is stopped already, which would continue with the others.
 */
static void stop_for_a_moment(void) {
  find_processes();
  qsort(busy.all, busy.count, sizeof busy.all[0], programs_first);
  for (size_t i = 0; i < busy.count; i++) {
    process *one = &busy.all[i];
    one->chosen = one->chosen && !is_stopped(one->pid) && kill(one->pid, SIGSTOP) == 0;
  }
  sleep_ms(STOP_MS);
  (void)send_to_all(SIGCONT);
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
    if (send_to_all(slept_ms == 0 ? SIGTERM : 0) == 0) {
      return;
    }
    sleep_ms(LOOK_MS);
    reap_all(&status);
  }
  do {
    find_processes();
    sleep_ms(LOOK_MS);
    reap_all(&status);
  } while (send_to_all(SIGKILL) > 0);
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
