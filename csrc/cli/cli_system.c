/*
 * Calls that a system may lack.
 *
 * SPDX-License-Identifier: MIT
 */
#include "cli_system.h"

#include <fcntl.h>
#include <string.h>
#include <unistd.h>

bool cli_pipe(int ends[2]) {
#if defined(__APPLE__)
  if (pipe(ends) != 0) {
    return false;
  }
  (void)fcntl(ends[0], F_SETFD, FD_CLOEXEC);
  (void)fcntl(ends[1], F_SETFD, FD_CLOEXEC);
  return true;
#else
  return pipe2(ends, O_CLOEXEC) == 0;
#endif
}

void cli_wipe(void *bytes, size_t length) {
  /* The compiler must not remove the call: it does not know which function this is. */
  static void *(*const volatile set)(void *, int, size_t) = memset;
  (void)set(bytes, 0, length);
}
