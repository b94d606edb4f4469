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
 * Fills |bytes|. Returns false if the kernel has no entropy. Keeps nothing between calls: fork()
 * would duplicate a pool, and two processes would draw the same tokens.
 */
bool rl_entropy_fill(unsigned char *bytes, size_t length);

#endif
