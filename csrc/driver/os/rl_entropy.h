/*
 * Random bytes from the kernel.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef RL_ENTROPY_H
#define RL_ENTROPY_H

#include <stdbool.h>
#include <stddef.h>

/*
 * Fills |bytes| from the kernel's generator. Nothing is kept between calls: a pool would be
 * duplicated by fork(), and two processes would draw the same tokens. False when the kernel has none.
 */
bool rl_entropy_fill(unsigned char *bytes, size_t length);

#endif
