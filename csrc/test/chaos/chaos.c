/*
 * Functions of the supervisor, the workers and the proxy.
 *
 * SPDX-License-Identifier: MIT
 */
#include "chaos.h"

#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

const char *const chaos_phase_names[] = {"warming", "faults", "settling", "settled", "ending"};
const char *const chaos_fork_names[] = {"none", "exit", "call", "exec"};
const char *const chaos_reason_names[] = {"OOM", "LOADING", "refused", "nothing", "other"};

void chaos_fail(const char *format, ...) {
  va_list list;
  (void)fputs("chaos: ", stderr);
  va_start(list, format);
  (void)vfprintf(stderr, format, list);
  va_end(list);
  (void)fputc('\n', stderr);
  exit(1);
}

chaos_shared *chaos_share(const char *path, bool create) {
  int fd = open(path, O_RDWR | O_CLOEXEC | (create ? O_CREAT | O_TRUNC : 0), 0600);
  if (fd < 0 || (create && ftruncate(fd, sizeof(chaos_shared)) != 0)) {
    chaos_fail("%s: cannot be opened", path);
  }
  void *memory = mmap(NULL, sizeof(chaos_shared), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  if (memory == MAP_FAILED) {
    chaos_fail("%s: cannot be mapped", path);
  }
  (void)close(fd);
  return memory;
}

int chaos_log_open(const char *directory, const char *name) {
  char path[512];
  (void)snprintf(path, sizeof path, "%s/%s.log", directory, name);
  int fd = open(path, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0600);
  if (fd < 0) {
    chaos_fail("%s: cannot be opened", path);
  }
  return fd;
}

void chaos_log(int fd, const char *format, ...) {
  char line[512];
  va_list list;
  va_start(list, format);
  int length = vsnprintf(line, sizeof line - 1, format, list);
  va_end(list);
  if (length < 0 || (size_t)length >= sizeof line - 1) {
    chaos_fail("a line is too long: %s", line);
  }
  line[length++] = '\n';
  if (write(fd, line, (size_t)length) != length) {
    chaos_fail("a log cannot be written");
  }
}

void chaos_pause(redlock_duration duration_us) {
  redlock_time end_us = redlock_now() + duration_us;
  for (redlock_time now_us = redlock_now(); now_us < end_us; now_us = redlock_now()) {
    redlock_duration left_us = end_us - now_us;
    struct timespec rest = {(time_t)(left_us / REDLOCK_SECONDS),
                            (long)(left_us % REDLOCK_SECONDS) * 1000};
    (void)nanosleep(&rest, NULL);
  }
}
