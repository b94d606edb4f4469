/*
 * redlock(1): the child process that runs the command.
 *
 * SPDX-License-Identifier: MIT
 */
#include "cli_child.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>
#ifdef __linux__
#include <sys/prctl.h>
#include <sys/syscall.h>
#endif

#include "cli_processes.h"

/*
 * Ends the canary. Its number is above those of the signals that the loop takes: of several pending
 * signals the lowest decides. SIGKILL would overtake those that a young canary has still blocked.
 */
#define CLI_CANARY_END SIGVTALRM
/* CMD-2. Pause between two looks at the processes, and the looks that send SIGKILL. */
#define CLI_CANARY_PAUSE_MS 50
#define CLI_CANARY_KILLS 100

/* Opens a pipe from ends[1] to ends[0] that no program of a child gets. */
static bool cli_child_pipe(int ends[static 2]) {
#if defined(__APPLE__)
  return pipe(ends) == 0 && fcntl(ends[0], F_SETFD, FD_CLOEXEC) == 0 &&
         fcntl(ends[1], F_SETFD, FD_CLOEXEC) == 0;
#else
  return pipe2(ends, O_CLOEXEC) == 0;
#endif
}

/* In a child: restores the dispositions of our parent. */
static void cli_child_restore(const cli_loop *loop) {
  for (int number = 1; number < NSIG; number++) {
    if (sigismember(&loop->taken, number) == 1) {
      bool ignored = number == SIGCHLD && loop->ignored_children;
      (void)signal(number, ignored ? SIG_IGN : SIG_DFL);
    }
  }
}

/* CMD-2. In a child: arranges |number| for the death of |parent|. Returns false if it is dead. */
static bool cli_child_follow(pid_t parent, int number) {
#ifdef __linux__
  (void)prctl(PR_SET_PDEATHSIG, number);
  /* 0 is a parent in another PID namespace. */
  return getppid() == parent || getppid() == 0;
#else
  (void)number;
  return getppid() == parent;
#endif
}

/* CMD-1. Forks with all signals blocked. */
static pid_t cli_child_fork(sigset_t *before) {
  sigset_t all;
  (void)sigfillset(&all);
  (void)pthread_sigmask(SIG_SETMASK, &all, before);
  pid_t pid = fork();
  if (pid != 0) {
    (void)pthread_sigmask(SIG_SETMASK, before, NULL);
  }
  return pid;
}

/*
 * CMD-4. Closes all descriptors but the standard input: the reader of a pipe must not wait for the
 * canary.
 */
static void cli_child_close_others(void) {
#ifdef SYS_close_range
  if (syscall(SYS_close_range, 1U, ~0U, 0U) == 0) {
    return;
  }
#endif
  long most = sysconf(_SC_OPEN_MAX);
  for (int fd = most > 0 && most < 65536 ? (int)most : 65536; fd-- > 1;) {
    (void)close(fd);
  }
}

/* CMD-2. Waits until the next look at the processes, but not beyond SIGKILL. */
static void cli_child_pause(redlock_time kill_us) {
  redlock_time now_us = redlock_now();
  redlock_duration left_us = kill_us > now_us ? kill_us - now_us : 0;
  bool soon = left_us < CLI_CANARY_PAUSE_MS * REDLOCK_MILLISECONDS;
  (void)poll(NULL, 0, soon ? (int)(left_us / REDLOCK_MILLISECONDS) + 1 : CLI_CANARY_PAUSE_MS);
}

/* CMD-2, in the canary: waits for the death of the tool, and ends all that it has left. */
static void cli_child_outlive(const cli_child *command) {
  char byte;
  while (read(STDIN_FILENO, &byte, 1) < 0 && errno == EINTR) {
    /* A signal has come. */
  }
  int number = command->death;
  if (number == 0) {
    return;
  }
  redlock_time kill_us = redlock_now() + (number == SIGKILL ? 0 : command->kill_after_us);
  /* The kernel has sent the command its signal. */
  size_t living;
  unsigned kills = 0; /* counted, not timed: this process may be stopped beyond any time */
  (void)cli_processes_signal_marked(command->mark, command->pid, number);
  cli_child_pause(kill_us);
  do {
    number = redlock_now() >= kill_us ? SIGKILL : 0;
    living = cli_processes_signal_marked(command->mark, 0, number);
    kills += number == SIGKILL;
    cli_child_pause(number == 0 ? kill_us : REDLOCK_NEVER);
  } while (living > 0 && kills < CLI_CANARY_KILLS);
}

void cli_child_forbid_core(void) {
  static const struct rlimit none = {0, 0};
  (void)setrlimit(RLIMIT_CORE, &none);
#ifdef __linux__
  (void)prctl(PR_SET_DUMPABLE, 0);
#endif
}

/* CMD-4, in the canary. */
static void cli_child_be_canary(const cli_child *command, int lifeline) {
  sigset_t fatal = command->loop->taken;
  cli_child_forbid_core();
#ifdef __linux__
  (void)prctl(PR_SET_NAME, CLI_CANARY);
#endif
  if (command->line->title_size >= sizeof CLI_CANARY) {
    memset(command->line->title, 0, command->line->title_size);
    memcpy(command->line->title, CLI_CANARY, sizeof CLI_CANARY);
  }
  (void)dup2(lifeline, STDIN_FILENO);
  cli_child_close_others();
  cli_child_restore(command->loop);
  (void)signal(CLI_CANARY_END, SIG_DFL);
  (void)sigaddset(&fatal, CLI_CANARY_END);
  (void)pthread_sigmask(SIG_UNBLOCK, &fatal, NULL);
  cli_child_outlive(command);
  _exit(0);
}

/* CMD-4 */
static void cli_child_add_canary(cli_child *command) {
  sigset_t before;
  int ends[2];
  command->canary_shot = command->canary_gone = false;
  command->canary = 0;
  if (!cli_child_pipe(ends)) {
    return;
  }
  pid_t pid = cli_child_fork(&before);
  if (pid == 0) {
    cli_child_be_canary(command, ends[0]);
  }
  (void)close(ends[0]);
  if (pid < 0) {
    (void)close(ends[1]);
    return;
  }
  command->canary = pid;
  command->lifeline = ends[1];
}

/* CMD-4. The canary has ended with |state|. */
static void cli_child_bury(cli_child *command, int state) {
  (void)close(command->lifeline);
  command->canary = 0;
  command->canary_gone = true;
  /* A signal that the command got as well has ended it. */
  command->canary_shot =
      WIFSIGNALED(state) && WTERMSIG(state) != SIGKILL && WTERMSIG(state) != CLI_CANARY_END;
}

/*
 * In the child: waits for the canary, executes the program, or writes an errno to |report|. A
 * signal for the group that the canary misses ends this process before it executes the program.
 */
static void cli_child_exec(const cli_child *command, pid_t parent, const int canary[static 2],
                           int report) {
  char **words = command->line->operands + 2;
  char byte;
  (void)close(canary[1]); /* The death of |parent| ends the wait. */
  while (read(canary[0], &byte, 1) < 0 && errno == EINTR) {
    /* A signal has come. */
  }
  cli_child_restore(command->loop);
  bool late = redlock_now() >= command->deadline_us;
  if (!late && cli_child_follow(parent, command->death)) {
    (void)pthread_sigmask(SIG_SETMASK, &command->loop->before, NULL);
    (void)execvp(words[0], words);
  }
  int error = late ? ETIME : errno;
  ssize_t written = write(report, &error, sizeof error);
  (void)written;
  _exit(127);
}

int cli_child_start(cli_child *command) {
  int ends[2];
  int canary[2];
  int error = 0;
  sigset_t before;
  pid_t parent = getpid();
  if (!cli_child_pipe(ends) || !cli_child_pipe(canary)) {
    return errno;
  }
#ifdef __linux__
  (void)prctl(PR_SET_CHILD_SUBREAPER, 1); /* CMD-3 */
#endif
  command->pid = cli_child_fork(&before);
  if (command->pid == 0) {
    cli_child_exec(command, parent, canary, ends[1]);
  }
  error = command->pid < 0 ? errno : 0;
  if (error == 0) {
    cli_child_add_canary(command);
  }
  (void)(write(canary[1], "", 1) == 1);
  (void)close(canary[0]);
  (void)close(canary[1]);
  (void)close(ends[1]);
  while (error == 0 && read(ends[0], &error, sizeof error) < 0 && errno == EINTR) {
    /* A signal has come. */
  }
  (void)close(ends[0]);
  if (error != 0) {
    cli_child_end(command);
    (void)(command->pid > 0 && waitpid(command->pid, NULL, 0));
    command->pid = 0;
    return error;
  }
  command->began = cli_processes_began(command->pid);
  return 0;
}

void cli_child_reap(cli_child *command) {
  int state;
  pid_t ended;
  while ((ended = waitpid(-1, &state, WNOHANG)) > 0) {
    if (ended == command->pid) {
      command->pid = 0;
      command->state = state;
    } else if (ended == command->canary) {
      cli_child_bury(command, state);
    }
  }
}

size_t cli_child_signal(const cli_child *command, int number) {
  return cli_processes_signal(command->pid, command->began, command->canary, number);
}

void cli_child_end(cli_child *command) {
  int state = 0;
  pid_t ended;
  if (command->canary == 0) {
    return;
  }
  (void)kill(command->canary, CLI_CANARY_END);
  (void)kill(command->canary, SIGCONT); /* A stopped canary would not end. */
  do {
    ended = waitpid(command->canary, &state, 0);
  } while (ended < 0 && errno == EINTR);
  cli_child_bury(command, ended == command->canary ? state : 0);
}

bool cli_child_shared_signal(cli_child *command) {
  cli_child_end(command);
  /* A command in another group may have missed it. Once too often is better than not at all. */
  bool shared = command->canary_shot && getpgid(command->pid) == getpgrp();
  if (command->pid > 0) {
    cli_child_add_canary(command);
  }
  return shared;
}
