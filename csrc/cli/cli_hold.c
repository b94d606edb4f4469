/*
 * redlock hold: holds a lock for another program.
 *
 * SPDX-License-Identifier: MIT
 *
 *   HOLD-1. Acquire the lock. A signal or the end of the standard input ends this; then the status
 *           is that of a taken lock, without a message.
 *   HOLD-2. Print one line.
 *   HOLD-3. The lease extends itself until the standard input ends, or a signal comes. If the lock
 *           is lost, exit with 75 at once.
 *   HOLD-4. Release the lock.
 *
 * The end of the input is noticed without taking bytes from other programs. Of a pipe and a socket
 * only the hang-up counts, so nothing is read. A terminal ends with Ctrl-D, which only a read
 * shows. It is read through a description of its own, which does not block, and only in the
 * foreground. A file, /dev/null and a closed descriptor never end.
 *
 * With --ctdb the verb follows the protocol of CTDB's cluster mutex helpers: it prints one digit
 * without a newline: 0 if it holds the lock, 1 if the lock is taken, 3 after any other failure. It
 * ignores the standard input, and ends when its parent has ended.
 */
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cli.h"
#include "cli_keep.h"
#include "cli_output.h"

/* Time between two looks at things that wake no poll(): the parent, the foreground. */
#define CLI_HOLD_LOOK_US REDLOCK_SECONDS

#ifdef POLLRDHUP
#define CLI_HOLD_HANG_UP POLLRDHUP
#else
#define CLI_HOLD_HANG_UP 0
#endif

/* Things besides signals that end a hold. */
typedef struct cli_hold_end {
  struct pollfd input; /* its |fd| is -1 if the input never ends, or is ignored */
  int terminal;        /* own descriptor of the terminal, or -1 */
  bool ctdb;
  pid_t parent;
} cli_hold_end;

/* ---------------------------------------------------------------------------------------- input */

/* Returns a descriptor of the terminal that does not block, or -1. */
static int cli_hold_open_terminal(void) {
  char path[256];
  if (isatty(STDIN_FILENO) == 0 || ttyname_r(STDIN_FILENO, path, sizeof path) != 0) {
    return -1;
  }
  return open(path, O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
}

static void cli_hold_open_input(cli_hold_end *hold) {
  struct stat state;
  bool known = fstat(STDIN_FILENO, &state) == 0;
  bool pipe = known && (S_ISFIFO(state.st_mode) || S_ISSOCK(state.st_mode));
  hold->terminal = cli_hold_open_terminal();
  hold->input = (struct pollfd){.fd = pipe ? STDIN_FILENO : hold->terminal,
                                .events = pipe ? CLI_HOLD_HANG_UP : POLLIN};
  if (hold->terminal >= 0) {
    (void)signal(SIGTTIN, SIG_IGN); /* A read in the background must not stop the tool. */
  }
}

/* Reads a terminal only in the foreground. Returns true in the background. */
static bool cli_hold_is_background(cli_hold_end *hold) {
  /* Only the controlling terminal has a foreground. */
  pid_t foreground = hold->terminal >= 0 ? tcgetpgrp(hold->terminal) : -1;
  bool background = foreground >= 0 && foreground != getpgrp();
  if (hold->terminal >= 0) {
    hold->input.events = background ? 0 : POLLIN;
  }
  return background;
}

/* Returns true if the input has ended, after a poll(). */
static bool cli_hold_input_ended(const cli_hold_end *hold) {
  char bytes[512];
  short events = hold->input.revents;
  if (hold->terminal < 0 || (events & POLLIN) == 0) {
    return (events & (POLLHUP | POLLERR | POLLNVAL | CLI_HOLD_HANG_UP)) != 0;
  }
  return read(hold->terminal, bytes, sizeof bytes) == 0;
}

/* Waits for nodes, signals, the input and the parent. Is a cli_turn. */
static int cli_hold_turn(void *context, cli_loop *loop, redlock_time until_us) {
  cli_hold_end *hold = context;
  bool look = cli_hold_is_background(hold) || hold->ctdb;
  redlock_time look_us = redlock_now() + CLI_HOLD_LOOK_US;
  int number =
      cli_loop_turn(loop, look && look_us < until_us ? look_us : until_us, &hold->input, 1);
  /* The kernel gives orphans to another process. */
  bool ended = hold->ctdb ? getppid() != hold->parent : cli_hold_input_ended(hold);
  return number != 0 ? number : ended ? CLI_TURN_END : 0;
}

/* ---------------------------------------------------------------------------------------- print */

static void cli_hold_json(redlock_lock *lock, const char *state) {
  cli_json json = cli_json_begin_lock(lock);
  cli_json_text(&json, "state", state);
  cli_json_count(&json, "fence", redlock_lock_fence(lock));
  cli_json_count(&json, "slot", redlock_lock_slot(lock));
  cli_json_end_line(&json);
}

/* HOLD-2. Returns 0, or the exit status after a message. */
static int cli_hold_print(const cli_settings *settings, redlock_lock *lock) {
  size_t length;
  const void *resource = redlock_lock_resource(lock, &length);
  uint64_t fence = redlock_lock_fence(lock);
  if (settings->ctdb) {
    (void)fputc('0', stdout);
  } else if (settings->json) {
    cli_hold_json(lock, "held");
  } else if (!settings->quiet) {
    (void)fputs("held ", stdout);
    (void)cli_put_text(stdout, resource, length);
    if (redlock_lock_slot(lock) > 0) {
      (void)printf(" slot %u", redlock_lock_slot(lock));
    }
    if (fence > 0) {
      (void)printf(" %llu", (unsigned long long)fence);
    }
    (void)fputc('\n', stdout);
  }
  return cli_flush();
}

/* Reports the failure of an acquire for which cli_take() returned |status|. Returns the status. */
static int cli_hold_fail(const cli_settings *settings, redlock_lock *lock, int status) {
  static const char ended[] = "the input ended before the lock was granted";
  bool taken = status == 0 || (status < 0 && redlock_lock_result(lock) == REDLOCK_E_TAKEN);
  if (settings->ctdb && status < CLI_SIGNAL) {
    (void)fputc(taken ? '1' : '3', stdout);
    (void)cli_flush();
  }
  if (settings->ctdb && taken) {
    return settings->taken_status; /* CTDB logs messages, and contention is no failure there. */
  }
  if (status == 0 && settings->json) {
    cli_json_failure(lock, REDLOCK_E_CANCELLED, ended);
  }
  return status == 0
             ? cli_report(settings, settings->taken_status, "'%s': %s", settings->name, ended)
         : status < 0 ? cli_result(settings, lock)
                      : status;
}

/* ----------------------------------------------------------------------------------------- hold */

/* HOLD-3. Returns the exit status: CLI_LOST after a loss. */
static int cli_hold_wait(const cli_settings *settings, cli_hold_end *hold, cli_loop *loop,
                         redlock_lock *lock) {
  cli_keep keep;
  int number = 0;
  cli_keep_open(&keep, settings, lock);
  while (number == 0 && redlock_lock_remaining(lock) > 0) {
    number = cli_hold_turn(hold, loop, REDLOCK_NEVER);
    (void)cli_keep_check(&keep, settings, lock);
  }
  if (redlock_lock_remaining(lock) == 0) {
    int error = redlock_lock_lost(lock, NULL);
    return cli_report(settings, CLI_LOST, "'%s' is lost: %s", settings->name,
                      redlock_strerror(error != REDLOCK_OK ? error : REDLOCK_E_EXPIRED));
  }
  return number == CLI_TURN_END ? 0 : CLI_SIGNAL + number;
}

int cli_hold(const cli_settings *settings, cli_loop *loop, redlock_lock *lock) {
  cli_hold_end hold = {.input.fd = -1, .terminal = -1, .ctdb = settings->ctdb, .parent = getppid()};
  if (hold.ctdb && hold.parent == 1) {
    (void)fputc('3', stdout);
    (void)cli_flush();
    return cli_fail(CLI_USAGE, "--ctdb: the parent is process 1, whose end cannot be noticed");
  }
  if (!hold.ctdb) {
    cli_hold_open_input(&hold);
  }
  int status = cli_take(settings, loop, lock, cli_hold_turn, &hold);
  if (status >= 0 || redlock_lock_result(lock) != REDLOCK_OK) {
    return cli_hold_fail(settings, lock, status);
  }
  status = cli_hold_print(settings, lock);
  status = status == 0 ? cli_hold_wait(settings, &hold, loop, lock) : status;
  status = cli_keep_release(settings, lock) ? CLI_LOST : status;
  if (settings->json) {
    cli_hold_json(lock, status == CLI_LOST ? "lost" : "released");
    (void)cli_flush();
  }
  return status;
}
