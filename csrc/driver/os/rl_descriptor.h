/*
 * Non-blocking, close-on-exec sockets and pipes.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef RL_DESCRIPTOR_H
#define RL_DESCRIPTOR_H

#include <stdbool.h>

/* Returns a stream socket, or -1 with errno. */
int rl_descriptor_socket(int family);

/* Opens two connected sockets, or a pipe from fds[1] to fds[0]. */
bool rl_descriptor_pair(int fds[2]);
bool rl_descriptor_pipe(int fds[2]);

#endif
