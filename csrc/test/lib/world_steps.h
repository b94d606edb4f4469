/*
 * Steps that many tests of worlds of fake nodes take.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef WORLD_STEPS_H
#define WORLD_STEPS_H

#include "fake_nodes.h"
#include "rl_test.h"

/* Begin an operation, which must be possible. The nodes receive it, and none answers. */
void fake_begin_ask(fake_world *world, rl_lock *lock, rl_operation operation);
void fake_begin_acquire(fake_world *world, rl_lock *lock);
void fake_begin_extend(fake_world *world, rl_lock *lock, redlock_duration ttl_us);
void fake_begin_release(fake_world *world, rl_lock *lock);

/* Run an operation, which all nodes answer. Return its result, or why it did not start. */
int fake_ask(fake_world *world, rl_lock *lock, rl_operation operation);
int fake_acquire_with(fake_world *world, rl_lock *lock, const redlock_options *options);
int fake_extend(fake_world *world, rl_lock *lock, redlock_duration ttl_us);
int fake_release(fake_world *world, rl_lock *lock);

/* Frees the lock. All nodes answer its release. */
void fake_free(fake_world *world, rl_lock *lock);

/* Breaks the connection. The next one hangs until the test changes the policy. */
void fake_break_for_good(fake_world *world, unsigned node);

#endif
