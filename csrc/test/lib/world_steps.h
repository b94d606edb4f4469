/*
 * Steps that many tests of worlds of fake nodes take.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef WORLD_STEPS_H
#define WORLD_STEPS_H

#include "fake_nodes.h"
#include "rl_test.h"

/* Starts an operation, which must be possible. The nodes receive it, and none answers. */
void fake_begin_acquire(fake_world *world, rl_lock *lock);
void fake_begin_extend(fake_world *world, rl_lock *lock, redlock_duration ttl_us);
void fake_begin_release(fake_world *world, rl_lock *lock);

/* The same, and all nodes answer. Returns the result, as fake_hold() does for an acquire. */
int fake_extend(fake_world *world, rl_lock *lock, redlock_duration ttl_us);
int fake_release(fake_world *world, rl_lock *lock);

/* Frees the lock; all nodes answer. */
void fake_free(fake_world *world, rl_lock *lock);

/* The connection breaks, and no other is made until the test changes the policy. */
void fake_lose(fake_world *world, unsigned node);

#endif
