/*
 * The record that a witness keeps: delays of the scheduler, and when each ended.
 *
 * SPDX-License-Identifier: MIT
 *
 * Shared by the C tests (witness.c) and the Lua specs (witness_lua.c). Times are microseconds of
 * CLOCK_MONOTONIC.
 */
#ifndef WITNESS_CLOCK_H
#define WITNESS_CLOCK_H

#include <stdint.h>

/* Starts the witness thread of this process, unless it runs. Returns 0, or an error number. */
int witness_clock_start(void);

/* Returns the time now. */
int64_t witness_clock_now_us(void);

/* Returns the sum of the delays within the last |span_us|, the one that is under way included. */
int64_t witness_clock_delay_us(int64_t span_us);

#endif
