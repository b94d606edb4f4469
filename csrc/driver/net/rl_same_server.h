/*
 * Returns true if two nodes are one server.
 *
 * SPDX-License-Identifier: MIT
 *
 * A server that is named twice (`localhost` and `127.0.0.1`) grants the lock under one name and calls
 * it taken under the other.
 */
#ifndef RL_SAME_SERVER_H
#define RL_SAME_SERVER_H

#include <stdbool.h>

#include "options/rl_address.h"

/*
 * Returns true if the connections |first| and |second|, made for |a| and |b|, lead to the same database of the
 * same server. When one of them was given as a name, 127.0.0.1 and ::1 are the same host: a name may
 * stand for both, and a server listens on both. A path of several hops may hide that two are one.
 */
bool rl_same_server(int first, const rl_address *a, int second, const rl_address *b);

#endif
