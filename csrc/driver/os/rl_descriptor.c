/*
 * Non-blocking, close-on-exec sockets.
 *
 * SPDX-License-Identifier: MIT
 */
#include "os/rl_descriptor.h"

#include <fcntl.h>
#include <sys/socket.h>

/* macOS has no flags for socket(). There a child that another thread forks meanwhile gets it. */
#if !defined(RL_DESCRIPTOR_HAS_FLAGS)
#if defined(SOCK_CLOEXEC) && defined(SOCK_NONBLOCK)
#define RL_DESCRIPTOR_HAS_FLAGS 1
#else
#define RL_DESCRIPTOR_HAS_FLAGS 0
#endif
#endif

#if RL_DESCRIPTOR_HAS_FLAGS
#define RL_DESCRIPTOR_TYPE (SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK)
#else
#define RL_DESCRIPTOR_TYPE SOCK_STREAM
#endif

static void rl_descriptor_set_flags(int fd) {
  (void)fcntl(fd, F_SETFD, FD_CLOEXEC);
  (void)fcntl(fd, F_SETFL, O_NONBLOCK);
}

int rl_descriptor_socket(int family) {
  int fd = socket(family, RL_DESCRIPTOR_TYPE, 0);
  if (!RL_DESCRIPTOR_HAS_FLAGS && fd >= 0) {
    rl_descriptor_set_flags(fd);
  }
  return fd;
}

bool rl_descriptor_pair(int fds[2]) {
  if (socketpair(AF_UNIX, RL_DESCRIPTOR_TYPE, 0, fds) != 0) {
    return false;
  }
  if (!RL_DESCRIPTOR_HAS_FLAGS) {
    rl_descriptor_set_flags(fds[0]);
    rl_descriptor_set_flags(fds[1]);
  }
  return true;
}
