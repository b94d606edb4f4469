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
 * With --ctdb the verb follows the protocol of CTDB's cluster mutex helpers: it prints one digit
 * without a newline: 0 if it holds the lock, 1 if the lock is taken, 3 after any other failure. It
 * ignores the standard input, and ends when its parent has ended.
 */
#include <stdio.h>
#include <unistd.h>

#include "cli.h"
#include "cli_input.h"
#include "cli_json.h"
#include "cli_loss.h"
#include "cli_output.h"
#include "cli_take.h"

#define CLI_HOLD_LOOK_US REDLOCK_SECONDS

/* Things besides signals that end a hold. */
typedef struct cli_hold_end {
  cli_input input;
  bool ctdb;
  pid_t parent;
} cli_hold_end;

/* ---------------------------------------------------------------------------------------- print */

static void cli_hold_json(redlock_lock *lock, const char *state) {
  cli_json json = {0};
  size_t length;
  const void *resource = redlock_lock_resource(lock, &length);
  uint64_t fence = redlock_lock_fence(lock);
  cli_json_begin(&json, NULL, '{');
  cli_json_text(&json, "state", state);
  cli_json_bytes(&json, "resource", resource, length);
  if (fence > 0) {
    cli_json_number(&json, "fence", fence);
  }
  if (redlock_lock_slot(lock) > 0) {
    cli_json_number(&json, "slot", redlock_lock_slot(lock));
  }
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

/* Prints the failure of an acquire for which cli_take() returned |status|. Returns the status. */
static int cli_hold_fail(const cli_settings *settings, redlock_lock *lock, int status) {
  bool ended = status == 0;
  bool taken = ended || (status < 0 && redlock_lock_result(lock) == REDLOCK_E_TAKEN);
  if (settings->json && !settings->ctdb) {
    cli_take_json(lock, status);
  }
  if (settings->ctdb && status < CLI_SIGNAL) {
    (void)fputc(taken ? '1' : '3', stdout);
    (void)cli_flush();
  }
  if (ended && !settings->ctdb) {
    char name[CLI_NAME_SIZE];
    (void)cli_report(settings, 0, "'%s': the input ended before the lock was granted",
                     cli_lock_name(name, lock));
  }
  /* CTDB logs messages, and contention is no failure there. */
  return ended || (settings->ctdb && taken) ? settings->taken_status
         : status < 0                       ? cli_result(settings, lock)
                                            : status;
}

/* ----------------------------------------------------------------------------------------- wait */

/* Waits for nodes, signals, the input and the parent. Is a cli_turn. */
static int cli_hold_turn(void *context, cli_loop *loop, redlock_time until_us) {
  cli_hold_end *hold = context;
  bool look = cli_input_prepare(&hold->input) || hold->ctdb;
  redlock_time look_us = redlock_now() + CLI_HOLD_LOOK_US;
  size_t count = !hold->ctdb && hold->input.poll.fd >= 0 ? 1 : 0;
  int number = cli_loop_turn_with(loop, look && look_us < until_us ? look_us : until_us,
                                  &hold->input.poll, count);
  /* The kernel gives orphans to another process. */
  bool ended = hold->ctdb ? getppid() != hold->parent : cli_input_ended(&hold->input);
  return number != 0 && number != SIGCHLD ? number : ended ? CLI_TURN_END : 0;
}

/* HOLD-1. Returns -1, or the exit status. */
static int cli_hold_acquire(const cli_settings *settings, cli_hold_end *hold, cli_loop *loop,
                            redlock_lock *lock) {
  redlock_options options = {.auto_extend = REDLOCK_YES,
                             .max_hold_us = settings->max_hold_us,
                             .hold_at_least_us = settings->hold_for_us};
  int status = cli_take(settings, loop, lock, &options, cli_hold_turn, hold);
  bool granted = status < 0 && redlock_lock_result(lock) == REDLOCK_OK;
  return granted ? -1 : cli_hold_fail(settings, lock, status);
}

/* HOLD-3. Writes a message about a loss or a warning. */
static void cli_hold_report(cli_loss *loss, const cli_settings *settings, redlock_client *client,
                            redlock_lock *lock) {
  cli_loss_report(loss, settings, lock);
  if (redlock_client_next_lost(client) == NULL) {
    return;
  }
  char name[CLI_NAME_SIZE];
  int error = redlock_lock_lost(lock, NULL);
  if (error == REDLOCK_E_UNAVAILABLE) {
    cli_loss_warn(loss, settings, lock);
  } else if (error == REDLOCK_E_CLOCK) {
    (void)cli_report(settings, 0, "'%s' may end early: %s", cli_lock_name(name, lock),
                     redlock_strerror(error));
  }
}

/* HOLD-3. Returns the exit status: CLI_LOST after a loss. */
static int cli_hold_wait(const cli_settings *settings, cli_hold_end *hold, cli_loop *loop,
                         redlock_lock *lock) {
  char name[CLI_NAME_SIZE];
  cli_loss loss;
  int number = 0;
  cli_loss_open(&loss, settings, lock);
  while (number == 0 && redlock_lock_remaining(lock) > 0) {
    number = cli_hold_turn(hold, loop, REDLOCK_NEVER);
    cli_hold_report(&loss, settings, loop->client, lock);
  }
  if (redlock_lock_remaining(lock) == 0) {
    int error = redlock_lock_lost(lock, NULL);
    return cli_report(settings, CLI_LOST, "'%s' is lost: %s", cli_lock_name(name, lock),
                      redlock_strerror(error != REDLOCK_OK ? error : REDLOCK_E_EXPIRED));
  }
  return number == CLI_TURN_END ? 0 : CLI_SIGNAL + number;
}

/* HOLD-4. Returns the exit status for a hold that has ended with |status|. */
static int cli_hold_release(const cli_settings *settings, redlock_lock *lock, int status) {
  int error = redlock_lock_release(lock);
  if (error == REDLOCK_E_LOST || (error != REDLOCK_OK && status != CLI_LOST)) {
    (void)cli_report(settings, 0, "%s", redlock_lock_message(lock));
  }
  return error == REDLOCK_E_LOST || error == REDLOCK_E_EXPIRED ? CLI_LOST : status;
}

static int cli_hold_step(const cli_settings *settings, cli_loop *loop, redlock_lock *lock) {
  cli_hold_end hold = {.ctdb = settings->ctdb, .parent = getppid()};
  cli_input_open(&hold.input);
  int status = cli_hold_acquire(settings, &hold, loop, lock);
  if (status < 0) {
    status = cli_hold_print(settings, lock);
    status = cli_hold_release(settings, lock,
                              status == 0 ? cli_hold_wait(settings, &hold, loop, lock) : status);
    if (settings->json && !settings->ctdb) {
      cli_hold_json(lock, status == CLI_LOST ? "lost" : "released");
      (void)cli_flush();
    }
  }
  cli_input_close(&hold.input);
  return status;
}

int cli_hold(const cli_settings *settings, redlock_client *client) {
  if (settings->ctdb && getppid() == 1) {
    (void)fputc('3', stdout);
    (void)cli_flush();
    return cli_fail(CLI_USAGE, "--ctdb: the parent is process 1, whose end cannot be noticed");
  }
  return cli_with_lock(settings, client, settings->operands[1], cli_hold_step);
}
