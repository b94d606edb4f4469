/*
 * redlock(1): a command under a lock.
 *
 * SPDX-License-Identifier: MIT
 *
 *   1. Take the lock. A signal ends this, and what was taken is given back.
 *   2. Start the command.
 *   3. While it runs, extend the lease each third of the ttl. A lease that ends all the same is told of
 *      at once; the command goes on, for only its author knows what it is in the middle of.
 *   4. When it has ended, release the lock.
 */
#include "cli.h"
#include "cli_loop.h"

#include <errno.h>
#include <spawn.h>
#include <string.h>
#include <sys/wait.h>

extern char **environ;

typedef struct cli_hold {
  redlock_lock *lock;
  redlock_duration ttl_us;
  redlock_time next_us; /* when to extend it */
  bool extending;
  bool over; /* the lease has ended before the command */
} cli_hold;

/* 1. Returns -1 when it is held, else the status to exit with. */
static int cli_run_acquire(const cli_settings *settings, cli_loop *loop, redlock_lock *lock) {
  int error = redlock_lock_acquire_start(lock, NULL);
  while (error == REDLOCK_OK && redlock_lock_result(lock) == REDLOCK_PENDING) {
    int number = cli_loop_turn(loop, REDLOCK_NEVER);
    if (number != 0 && number != SIGCHLD) {
      redlock_lock_cancel(lock);
      return 128 + number;
    }
  }
  error = error == REDLOCK_OK ? redlock_lock_result(lock) : error;
  return error == REDLOCK_OK ? -1 : cli_fail_to_acquire(settings, lock, error);
}

/* 2. The command has the signals that this program had. Returns -1, or the status to exit with. */
static int cli_run_start(const cli_loop *loop, char **command, pid_t *child) {
  posix_spawnattr_t attributes;
  int error = posix_spawnattr_init(&attributes);
  if (error == 0) {
    (void)posix_spawnattr_setsigdefault(&attributes, &loop->handled);
    (void)posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGDEF);
    error = posix_spawnp(child, command[0], NULL, &attributes, command, environ);
    (void)posix_spawnattr_destroy(&attributes);
  }
  if (error == 0) {
    return -1;
  }
  return cli_fail(error == ENOENT                      ? CLI_NOT_FOUND
                  : error == ENOMEM || error == EAGAIN ? CLI_SYSTEM
                                                       : CLI_NOT_EXECUTABLE,
                  "%s: %s", command[0], strerror(error)); /* NOLINT(concurrency-mt-unsafe) */
}

/* 3. What is due on the lease now. */
static void cli_hold_keep(cli_hold *hold) {
  redlock_time now_us = redlock_now();
  if (hold->extending) {
    int error = redlock_lock_result(hold->lock);
    if (error == REDLOCK_PENDING) {
      return;
    }
    hold->extending = false;
    hold->next_us = now_us + hold->ttl_us / (error == REDLOCK_OK ? 3 : 10);
    if (error != REDLOCK_OK) {
      (void)cli_fail(0, "%s", redlock_lock_message(hold->lock));
    }
  }
  if (!hold->over && redlock_lock_remaining(hold->lock) == 0) {
    hold->over = true;
    (void)cli_fail(0, "the lock has ended, and the command still runs");
  }
  if (!hold->over && now_us >= hold->next_us) {
    hold->extending = redlock_lock_extend_start(hold->lock, hold->ttl_us) == REDLOCK_OK;
    hold->next_us = now_us + hold->ttl_us / 10;
  }
}

static redlock_time cli_hold_until(const cli_hold *hold) {
  redlock_time deadline_us = redlock_lock_deadline(hold->lock);
  if (hold->over) {
    return REDLOCK_NEVER;
  }
  return hold->extending || deadline_us < hold->next_us ? deadline_us : hold->next_us;
}

/* Signals from a terminal reach the command without us; the others are handed on. */
static void cli_run_hand_on(int number, pid_t child) {
  if (number == SIGTERM || number == SIGHUP) {
    (void)kill(child, number);
  }
}

/* 3. Returns the status of the command. */
static int cli_run_wait(cli_loop *loop, cli_hold *hold, pid_t child) {
  int state = 0;
  pid_t ended;
  while ((ended = waitpid(child, &state, WNOHANG)) == 0 || (ended < 0 && errno == EINTR)) {
    cli_hold_keep(hold);
    cli_run_hand_on(cli_loop_turn(loop, cli_hold_until(hold)), child);
  }
  return ended < 0 ? CLI_SYSTEM : WIFSIGNALED(state) ? 128 + WTERMSIG(state) : WEXITSTATUS(state);
}

/* 4. Returns the status to exit with. */
static int cli_run_release(cli_hold *hold, int status) {
  redlock_lock_cancel(hold->lock);
  hold->over = hold->over || redlock_lock_remaining(hold->lock) == 0;
  int error = redlock_lock_release(hold->lock);
  if (error == REDLOCK_E_LOST || (error != REDLOCK_OK && !hold->over)) {
    (void)cli_fail(0, "%s", redlock_lock_message(hold->lock));
  }
  if (hold->over || error == REDLOCK_E_LOST || error == REDLOCK_E_EXPIRED) {
    return status != 0 ? status : cli_fail(CLI_LOST, "the lock ended before the command did");
  }
  return status;
}

static int cli_run_under(const cli_settings *settings, cli_loop *loop, redlock_lock *lock) {
  char **command = settings->operands + (strcmp(settings->operands[2], "--") == 0 ? 3 : 2);
  cli_hold hold = {.lock = lock, .ttl_us = redlock_lock_ttl(lock)};
  pid_t child = 0;
  int status = cli_run_acquire(settings, loop, lock);
  if (status >= 0) {
    return status;
  }
  hold.next_us = redlock_now() + hold.ttl_us / 3;
  status = cli_run_start(loop, command, &child);
  if (status < 0) {
    status = cli_run_wait(loop, &hold, child);
  }
  return cli_run_release(&hold, status);
}

int cli_run(const cli_settings *settings, redlock_client *client) {
  const char *resource = settings->operands[1];
  cli_loop loop;
  redlock_lock *lock;
  if (redlock_lock_new(&lock, client, resource, strlen(resource), NULL) != REDLOCK_OK) {
    return cli_fail(CLI_USAGE, "%s", redlock_client_message(client));
  }
  int status = cli_loop_open(&loop, client)
                   ? cli_run_under(settings, &loop, lock)
                   : cli_fail(CLI_SYSTEM, "no pipe, or no handler for signals");
  redlock_lock_free(lock);
  return status;
}
