/*
 * A command that shows until when it has run.
 *
 * SPDX-License-Identifier: MIT
 */
#include "heartbeat.h"

#include <fcntl.h>

#include "support.h"

#define BEAT_MS 1
#define BEATS_MAX 120000 /* It ends even if the test has failed. */

static volatile redlock_time *map(const char *path, int flags) {
  int fd = open(path, O_RDWR | O_CLOEXEC | flags, 0600);
  if (fd < 0 || ftruncate(fd, sizeof(redlock_time)) != 0) {
    return NULL;
  }
  void *page = mmap(NULL, sizeof(redlock_time), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  (void)close(fd);
  return page == MAP_FAILED ? NULL : (volatile redlock_time *)page;
}

void heartbeat_main(int argc, char **argv) {
  if (argc < 3 || strcmp(argv[1], "beat") != 0) {
    return;
  }
  volatile redlock_time *last = map(argv[2], 0);
  if (last == NULL) {
    _exit(98);
  }
  if (argc > 3) {
    (void)signal(SIGTERM, SIG_IGN);
  }
  for (unsigned i = 0; i < BEATS_MAX; i++) {
    *last = redlock_now();
    (void)poll(NULL, 0, BEAT_MS);
  }
  _exit(0);
}

heartbeat heartbeat_open(const char *path) {
  heartbeat self = {map(path, O_CREAT | O_TRUNC)};
  assert_non_null(self.last);
  return self;
}

void heartbeat_close(heartbeat *self) {
  (void)munmap((void *)(uintptr_t)self->last, sizeof(redlock_time));
  self->last = NULL;
}
