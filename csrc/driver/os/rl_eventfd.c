/*
 * An event that poll() can wait for: an eventfd, or two sockets where there is none.
 *
 * SPDX-License-Identifier: MIT
 */
#include "os/rl_eventfd.h"

#include <errno.h>
#include <stdint.h>
#include <unistd.h>

#if defined(__linux__)
#include <sys/eventfd.h>
#else
#include "os/rl_descriptor.h"
#endif

void rl_eventfd_init(rl_eventfd *event) {
  atomic_init(&event->waited, -1);
  atomic_init(&event->set, -1);
}

bool rl_eventfd_open(rl_eventfd *event) {
#if defined(__linux__)
  int fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
  int fds[2] = {fd, fd};
  if (fd < 0) {
    return false;
  }
#else
  int fds[2];
  if (!rl_descriptor_pair(fds)) {
    return false;
  }
#endif
  atomic_store(&event->waited, fds[0]);
  atomic_store(&event->set, fds[1]);
  return true;
}

void rl_eventfd_close(rl_eventfd *event) {
  int waited = atomic_exchange(&event->waited, -1);
  int set = atomic_exchange(&event->set, -1);
  if (waited >= 0) {
    (void)close(waited);
  }
  if (set >= 0 && set != waited) {
    (void)close(set);
  }
}

void rl_eventfd_set(rl_eventfd *event) {
  int before = errno;
  uint64_t one = 1; /* An eventfd requires this size; a socket takes anything. */
  int fd = atomic_load(&event->set);
  if (fd >= 0) {
    ssize_t written = write(fd, &one, sizeof one);
    (void)written; /* A full socket is readable already. */
  }
  errno = before;
}

void rl_eventfd_clear(rl_eventfd *event) {
  unsigned char bytes[64];
  ssize_t got;
  int fd = atomic_load(&event->waited);
  if (fd < 0) {
    return;
  }
  do {
    got = read(fd, bytes, sizeof bytes);
  } while (got == (ssize_t)sizeof bytes || (got < 0 && errno == EINTR));
}
