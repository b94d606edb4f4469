/*
 * The key of most tests, and the token of another client.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef KEYS_H
#define KEYS_H

static const char KEY[] = "orders:42";
static const char OTHER[] = "ffffffffffffffffffffffffffffffffffffffff";

#endif
