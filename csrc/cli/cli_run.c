/*
 * redlock(1): a command under a lock.
 *
 * SPDX-License-Identifier: MIT
 *
 *   1. Take the lock. A signal ends this, and what was taken is given back.
 *   2. Start the command.
 *   3. While it runs, the lease keeps itself. One that ends all the same is told of at once; the
 *      command goes on, for only its author knows what it is in the middle of.
 *   4. When it has ended, release the lock.
 */
#include "cli.h"
#include "cli_loop.h"

#include <errno.h>
#include <spawn.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

extern char **environ;

/* 1. Returns -1 when it is held, else the status to exit with. */
static int cli_run_acquire(const cli_settings *settings, cli_loop *loop, redlock_lock *lock) {
  redlock_options options = {.auto_extend = REDLOCK_YES, .max_hold_us = settings->max_hold_us};
  int error = redlock_lock_acquire_start(lock, &options);
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

/* Returns 0 or an errno. The command has the signals that this program had. */
static int cli_run_spawn(const cli_loop *loop, char **command, pid_t *child) {
  posix_spawnattr_t attributes;
  int error = posix_spawnattr_init(&attributes);
  if (error == 0) {
    (void)posix_spawnattr_setsigdefault(&attributes, &loop->taken);
    (void)posix_spawnattr_setsigmask(&attributes, &loop->before);
    (void)posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGDEF | POSIX_SPAWN_SETSIGMASK);
    error = posix_spawnp(child, command[0], NULL, &attributes, command, environ);
    (void)posix_spawnattr_destroy(&attributes);
  }
  return error;
}

/* A script without "#!": a shell runs it, as a shell, env(1) and flock(1) would have it. */
static int cli_run_script(const cli_loop *loop, char **command, pid_t *child) {
  static char *const shell[] = {(char *)"/bin/sh", (char *)"-c", (char *)"exec \"$0\" \"$@\""};
  size_t count = 0;
  while (command[count] != NULL) {
    count++;
  }
  char **words = malloc(sizeof shell + (count + 1) * sizeof *words);
  if (words == NULL) {
    return ENOMEM;
  }
  memcpy(words, shell, sizeof shell);
  memcpy((char *)words + sizeof shell, command, (count + 1) * sizeof *words);
  int error = cli_run_spawn(loop, words, child);
  free(words);
  return error;
}

/* 2. Returns -1, or the status to exit with. */
static int cli_run_start(const cli_loop *loop, char **command, pid_t *child) {
  int error = cli_run_spawn(loop, command, child);
  if (error == ENOEXEC) {
    error = cli_run_script(loop, command, child);
  }
  if (error == 0) {
    return -1;
  }
  return cli_fail(error == ENOENT                      ? CLI_NOT_FOUND
                  : error == ENOMEM || error == EAGAIN ? CLI_SYSTEM
                                                       : CLI_NOT_EXECUTABLE,
                  "%s: %s", command[0], strerror(error)); /* NOLINT(concurrency-mt-unsafe) */
}

/* 3. Why the lease is lost, or about to be. */
static void cli_run_tell(redlock_client *client, redlock_lock *lock) {
  if (redlock_client_next_lost(client) == NULL) {
    return;
  }
  int error = redlock_lock_lost(lock, NULL);
  if (error == REDLOCK_E_UNAVAILABLE) {
    (void)cli_fail(0, "the lock could not be extended; it ends in %llu ms",
                   (unsigned long long)(redlock_lock_remaining(lock) / REDLOCK_MILLISECONDS));
  } else if (error == REDLOCK_E_CLOCK) {
    (void)cli_fail(0, "the lock may end early: %s", redlock_strerror(error));
  } else if (error != REDLOCK_OK) {
    (void)cli_fail(0, "the lock has ended, and the command still runs: %s",
                   redlock_strerror(error));
  }
  for (size_t i = 0; i < redlock_client_node_count(client); i++) {
    redlock_node_info node;
    if (redlock_client_node_info(client, i, &node) == REDLOCK_OK && node.state != REDLOCK_NODE_UP) {
      (void)cli_fail(0, "%s: %s", node.name, node.error != NULL ? node.error : "not connected");
    }
  }
}

/* Signals from a terminal reach the command without us; the others are handed on. */
static void cli_run_hand_on(int number, pid_t child) {
  if (number == SIGTERM || number == SIGHUP || number == SIGUSR1 || number == SIGUSR2) {
    (void)kill(child, number);
  }
}

/* 3. Returns the status of the command. */
static int cli_run_wait(cli_loop *loop, redlock_lock *lock, pid_t child) {
  int state = 0;
  pid_t ended;
  while ((ended = waitpid(child, &state, WNOHANG)) == 0 || (ended < 0 && errno == EINTR)) {
    cli_run_hand_on(cli_loop_turn(loop, REDLOCK_NEVER), child);
    cli_run_tell(loop->client, lock);
  }
  return ended < 0 ? CLI_SYSTEM : WIFSIGNALED(state) ? 128 + WTERMSIG(state) : WEXITSTATUS(state);
}

/* 4. Returns the status to exit with. */
static int cli_run_release(redlock_lock *lock, int status) {
  bool over = redlock_lock_remaining(lock) == 0;
  int error = redlock_lock_release(lock);
  if (error == REDLOCK_E_LOST || (error != REDLOCK_OK && !over)) {
    (void)cli_fail(0, "%s", redlock_lock_message(lock));
  }
  if (over || error == REDLOCK_E_LOST) {
    return status != 0 ? status : cli_fail(CLI_LOST, "the lock ended before the command did");
  }
  return status;
}

static int cli_run_under(const cli_settings *settings, cli_loop *loop, redlock_lock *lock) {
  char **command = settings->operands + (strcmp(settings->operands[2], "--") == 0 ? 3 : 2);
  pid_t child = 0;
  int status = cli_run_acquire(settings, loop, lock);
  if (status >= 0) {
    return status;
  }
  status = cli_run_start(loop, command, &child);
  if (status < 0) {
    status = cli_run_wait(loop, lock, child);
  }
  return cli_run_release(lock, status);
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
