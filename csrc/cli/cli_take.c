/*
 * redlock(1): acquires a lock, for the verbs that need one.
 *
 * SPDX-License-Identifier: MIT
 */
#include "cli_take.h"

#include "cli_holder.h"

/* Waits for the end of the acquire. Returns as cli_take(). */
static int cli_take_wait(cli_holder *holder, cli_loop *loop, redlock_lock *lock, cli_turn *turn,
                         void *context) {
  while (redlock_lock_result(lock) == REDLOCK_PENDING) {
    redlock_time until_us = cli_holder_turn(holder);
    int number = turn != NULL ? turn(context, loop, until_us) : cli_loop_turn(loop, until_us);
    if (number != 0 && number != SIGCHLD) {
      redlock_lock_cancel(lock);
      return number == CLI_TURN_END ? 0 : 128 + number;
    }
  }
  return -1;
}

int cli_take(const cli_settings *settings, cli_loop *loop, redlock_lock *lock,
             const redlock_options *options, cli_turn *turn, void *context) {
  cli_holder holder;
  int error = redlock_lock_acquire_start(lock, options);
  if (error != REDLOCK_OK) {
    return cli_fail_lock(settings, lock, error);
  }
  cli_holder_open(&holder, settings, lock);
  int status = cli_take_wait(&holder, loop, lock, turn, context);
  cli_holder_close(&holder);
  return status;
}
