/*
 * Random bytes from the kernel.
 *
 * SPDX-License-Identifier: MIT
 */
#include "os/rl_entropy.h"

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
