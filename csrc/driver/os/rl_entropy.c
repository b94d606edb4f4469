/*
 * Random bytes from the kernel.
 *
 * SPDX-License-Identifier: MIT
 */
#include "os/rl_entropy.h"

#include <errno.h>

#if defined(__linux__)
#include <sys/random.h>
#include <sys/types.h>

bool rl_entropy_fill(unsigned char *bytes, size_t length) {
  while (length > 0) {
    ssize_t got = getrandom(bytes, length, 0);
    if (got < 0 && errno == EINTR) {
      continue;
    }
    if (got <= 0) {
      return false;
    }
    bytes += got;
    length -= (size_t)got;
  }
  return true;
}
#else
#include <sys/random.h> /* macOS */
#include <unistd.h>     /* other systems */

#define RL_ENTROPY_CHUNK 256 /* bytes that getentropy() returns at once */

bool rl_entropy_fill(unsigned char *bytes, size_t length) {
  while (length > 0) {
    size_t chunk = length < RL_ENTROPY_CHUNK ? length : RL_ENTROPY_CHUNK;
    if (getentropy(bytes, chunk) != 0) {
      return false;
    }
    bytes += chunk;
    length -= chunk;
  }
  return true;
}
#endif
