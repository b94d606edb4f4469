/*
 * redlock run: runs a command under a lock.
 *
 * SPDX-License-Identifier: MIT
 *
 *   RUN-1. Acquire the lock. A signal ends this.
 *   RUN-2. Start the command.
 *   RUN-3. While the command runs, the lease extends itself. If it ends all the same, report that
 *          at once, but let the command run: only its author knows whether it can be interrupted.
 *   RUN-4. When the command has ended, release the lock.
 */
#include "cli.h"
#include "cli_take.h"

#include <errno.h>
#include <spawn.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

extern char **environ;

/* Returns 0 or an errno. The command gets the signal dispositions and mask of our parent. */
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

/* Runs a script without "#!" by a shell, as env(1) and flock(1) do. Returns 0 or an errno. */
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

/* RUN-2. Returns -1, or the exit status after a message. */
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

/* RUN-3. Reports a loss, and the nodes that are not connected. */
static void cli_run_report(redlock_client *client, redlock_lock *lock) {
  redlock_node_info node;
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
  for (size_t i = 0; redlock_client_node_info(client, i, &node) == REDLOCK_OK; i++) {
    if (node.state != REDLOCK_NODE_UP) {
      (void)cli_fail(0, "%s: %s", node.name, node.error != NULL ? node.error : "not connected");
    }
  }
}

/* RUN-3. Returns the exit status of the command. */
static int cli_run_wait(cli_loop *loop, redlock_lock *lock, pid_t child) {
  int state = 0;
  pid_t ended;
  while ((ended = waitpid(child, &state, WNOHANG)) == 0 || (ended < 0 && errno == EINTR)) {
    int number = cli_loop_turn(loop, REDLOCK_NEVER);
    /* A terminal sends the other signals to the command, too. */
    if (number == SIGTERM || number == SIGHUP || number == SIGUSR1 || number == SIGUSR2) {
      (void)kill(child, number);
    }
    cli_run_report(loop->client, lock);
  }
  return ended < 0 ? CLI_SYSTEM : WIFSIGNALED(state) ? 128 + WTERMSIG(state) : WEXITSTATUS(state);
}

/* RUN-4. Returns the exit status for a command that has ended with |status|. */
static int cli_run_release(redlock_lock *lock, int status) {
  bool over = redlock_lock_remaining(lock) == 0;
  int error = redlock_lock_release(lock);
  if (error == REDLOCK_E_LOST || (error != REDLOCK_OK && !over)) {
    (void)cli_fail(0, "%s", redlock_lock_message(lock));
  }
  return (over || error == REDLOCK_E_LOST) && status == 0
             ? cli_fail(CLI_LOST, "the lock ended before the command did")
             : status;
}

static int cli_run_step(const cli_settings *settings, cli_loop *loop, redlock_lock *lock) {
  redlock_options options = {.auto_extend = REDLOCK_YES, .max_hold_us = settings->max_hold_us};
  char **command = settings->operands + 2;
  pid_t child = 0;
  int status = cli_take(settings, loop, lock, &options, NULL, NULL);
  status = status < 0 ? cli_result(settings, lock) : status;
  if (status >= 0) {
    return status;
  }
  status = cli_run_start(loop, command, &child);
  return cli_run_release(lock, status < 0 ? cli_run_wait(loop, lock, child) : status);
}

int cli_run(const cli_settings *settings, redlock_client *client) {
  return cli_with_lock(settings, client, settings->operands[1], cli_run_step);
}
