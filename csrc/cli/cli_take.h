/*
 * redlock(1): acquires a lock, for the verbs that need one.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef CLI_TAKE_H
#define CLI_TAKE_H

#include "cli.h"

/* As cli_loop_turn(). Returns a signal, 0, or CLI_TURN_END if the wait must end. */
typedef int cli_turn(void *context, cli_loop *loop, redlock_time until_us);
#define CLI_TURN_END (-1)

/*
 * Acquires the lock. With -v, names each new holder meanwhile. |turn| replaces cli_loop_turn()
 * unless it is NULL. Returns -1 when the acquire has ended: cli_result() follows. Returns the exit
 * status if it could not begin (after a message), if a signal came, or if |turn| has ended it (0).
 * It also ends, after a message, if so many nodes reject the password that too few are left:
 * waiting does not help.
 */
int cli_take(const cli_settings *settings, cli_loop *loop, redlock_lock *lock, cli_turn *turn,
             void *context);

#endif
