/*
 * An event that poll() can wait for.
 *
 * SPDX-License-Identifier: MIT
 */
#include "os/rl_eventfd.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sys/resource.h>
#include <unistd.h>

#include "rl_test.h"

/* Number of next reads that a signal interrupts. */
static unsigned interruptions;

ssize_t __real_read(int fd, void *bytes, size_t length);
ssize_t __wrap_read(int fd, void *bytes, size_t length);

ssize_t __wrap_read(int fd, void *bytes, size_t length) {
  if (interruptions > 0) {
    interruptions--;
    errno = EINTR;
    return -1;
  }
  return __real_read(fd, bytes, length);
}

static bool is_set(rl_eventfd *event) {
  struct pollfd one = {rl_eventfd_to_poll(event), POLLIN, 0};
  return poll(&one, 1, 0) == 1;
}

TEST(event_is_readable_until_it_is_cleared) {
  rl_eventfd event;
  rl_eventfd_init(&event);
  assert_int_equal(rl_eventfd_to_poll(&event), -1);
  assert_true(rl_eventfd_open(&event));
  assert_true((fcntl(rl_eventfd_to_poll(&event), F_GETFD) & FD_CLOEXEC) != 0);
  assert_false(is_set(&event));
  rl_eventfd_clear(&event); /* Never blocks. */
  rl_eventfd_set(&event);
  rl_eventfd_set(&event);
  assert_true(is_set(&event));
  rl_eventfd_clear(&event);
  assert_false(is_set(&event));
  rl_eventfd_close(&event);
  rl_eventfd_close(&event);
}

TEST(signal_does_not_prevent_clearing) {
  rl_eventfd event;
  rl_eventfd_init(&event);
  assert_true(rl_eventfd_open(&event));
  rl_eventfd_set(&event);
  interruptions = 2;
  rl_eventfd_clear(&event);
  assert_int_equal(interruptions, 0);
  assert_false(is_set(&event));
  rl_eventfd_close(&event);
}

/* A signal handler may run before the event is open. */
TEST(set_of_a_closed_event_does_nothing) {
  rl_eventfd event;
  rl_eventfd_init(&event);
  errno = EINTR;
  rl_eventfd_clear(&event);
  errno = ERANGE;
  rl_eventfd_set(&event);
  assert_true(rl_eventfd_open(&event));
  assert_false(is_set(&event));
  rl_eventfd_close(&event);
  rl_eventfd_set(&event);
  assert_int_equal(errno, ERANGE);
}

TEST(open_fails_without_a_descriptor) {
  rl_eventfd event;
  struct rlimit limit, none;
  rl_eventfd_init(&event);
  assert_int_equal(getrlimit(RLIMIT_NOFILE, &limit), 0);
  none = limit;
  none.rlim_cur = 0;
  assert_int_equal(setrlimit(RLIMIT_NOFILE, &none), 0);
  bool is_open = rl_eventfd_open(&event);
  assert_int_equal(setrlimit(RLIMIT_NOFILE, &limit), 0);
  assert_false(is_open);
  assert_int_equal(rl_eventfd_to_poll(&event), -1);
}

/* As in a program that has closed its standard input. */
TEST(descriptor_0_is_as_good_as_any) {
  rl_eventfd event;
  rl_eventfd_init(&event);
  int input = fcntl(0, F_DUPFD_CLOEXEC, 3);
  (void)close(0);
  assert_true(rl_eventfd_open(&event));
  assert_int_equal(rl_eventfd_to_poll(&event), 0);
  rl_eventfd_set(&event);
  assert_true(is_set(&event));
  rl_eventfd_clear(&event);
  assert_false(is_set(&event));
  rl_eventfd_close(&event);
  assert_int_equal(fcntl(0, F_GETFD), -1);
  if (input >= 0) {
    assert_int_equal(dup2(input, 0), 0);
    (void)close(input);
  }
}
