/*
 * Detects that two nodes are one server.
 *
 * SPDX-License-Identifier: MIT
 *
 * A server with two names (`localhost` and `127.0.0.1`) grants the lock under one name, and answers
 * under the other that it is taken.
 */
#ifndef RL_SAME_SERVER_H
#define RL_SAME_SERVER_H

#include <stdbool.h>

#include "options/rl_address.h"

/*
 * Returns true if the connections |first| and |second|, made for |a| and |b|, lead to one database
 * of one server. If one of the two is a name, 127.0.0.1 and ::1 count as one host, because a server
 * may listen on both. A path with several hops may hide that two are one.
 */
bool rl_same_server(int first, const rl_address *a, int second, const rl_address *b);

#endif
