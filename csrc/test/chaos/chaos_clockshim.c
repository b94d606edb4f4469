/*
 * Preloaded into a redis-server: shifts its wall clock by the microseconds in a file.
 *
 * SPDX-License-Identifier: MIT
 *
 * CHAOS_CLOCK names the file, which holds one int64_t and is mapped, so that a change counts at
 * once. The other clocks are left alone. No allocation, no recursion: safe before the allocator is
 * ready.
 */
#include <fcntl.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

static const volatile int64_t *clockshim_shift_us;

__attribute__((constructor)) static void clockshim_open(void) {
  const char *path = getenv("CHAOS_CLOCK");
  int fd = path == NULL ? -1 : open(path, O_RDONLY | O_CLOEXEC);
  void *memory = fd < 0 ? MAP_FAILED : mmap(NULL, sizeof(int64_t), PROT_READ, MAP_SHARED, fd, 0);
  if (memory != MAP_FAILED) {
    clockshim_shift_us = memory;
  }
  if (fd >= 0) {
    (void)close(fd);
  }
}

int clock_gettime(clockid_t clock, struct timespec *time) {
  int result = (int)syscall(SYS_clock_gettime, clock, time);
  if (result == 0 && clockshim_shift_us != NULL &&
      (clock == CLOCK_REALTIME || clock == CLOCK_REALTIME_COARSE)) {
    int64_t now_us = (int64_t)time->tv_sec * 1000000 + time->tv_nsec / 1000 + *clockshim_shift_us;
    time->tv_nsec = (long)(now_us % 1000000) * 1000 + time->tv_nsec % 1000;
    time->tv_sec = (time_t)(now_us / 1000000);
  }
  return result;
}

int gettimeofday(struct timeval *restrict value, void *restrict zone) {
  struct timespec now;
  (void)zone;
  (void)clock_gettime(CLOCK_REALTIME, &now);
  value->tv_sec = now.tv_sec;
  value->tv_usec = now.tv_nsec / 1000;
  return 0;
}

time_t time(time_t *seconds) {
  struct timespec now;
  (void)clock_gettime(CLOCK_REALTIME, &now);
  if (seconds != NULL) {
    *seconds = now.tv_sec;
  }
  return now.tv_sec;
}
