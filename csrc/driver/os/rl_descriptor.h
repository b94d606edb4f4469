/*
 * Non-blocking, close-on-exec sockets.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef RL_DESCRIPTOR_H
#define RL_DESCRIPTOR_H

#include <stdbool.h>

/* Returns a stream socket, or -1 with errno. */
int rl_descriptor_socket(int family);

/* Opens two connected sockets. */
bool rl_descriptor_pair(int fds[2]);

#endif
