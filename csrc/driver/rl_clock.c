/*
 * The clock of all leases.
 *
 * SPDX-License-Identifier: MIT
 *
 * CLOCK_BOOTTIME goes on while the machine is suspended, as the nodes' clocks do; CLOCK_MONOTONIC
 * stands still, and a resumed client would believe in a lease that is long over. The wall clock can
 * be set, so it is never used.
 */
#include <time.h>

#include "redlock.h"

redlock_time redlock_now(void) {
  struct timespec now;
#ifdef CLOCK_BOOTTIME
  if (clock_gettime(CLOCK_BOOTTIME, &now) != 0)
#endif
  {
    (void)clock_gettime(CLOCK_MONOTONIC, &now);
  }
  return (redlock_time)now.tv_sec * REDLOCK_SECONDS + (redlock_time)now.tv_nsec / 1000;
}
