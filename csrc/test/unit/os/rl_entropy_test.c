/*
 * Random bytes from the kernel. getrandom() is wrapped to see that it is called until all bytes are
 * there.
 *
 * SPDX-License-Identifier: MIT
 */
#include <errno.h>
#include <sys/types.h>

#include "os/rl_entropy.h"
#include "rl_test.h"

ssize_t __real_getrandom(void *bytes, size_t length, unsigned flags);
ssize_t __wrap_getrandom(void *bytes, size_t length, unsigned flags);

typedef enum mood { WELL, SHORT, INTERRUPTED, BROKEN, EMPTY } mood;

static mood now;
static unsigned calls;

ssize_t __wrap_getrandom(void *bytes, size_t length, unsigned flags) {
  calls++;
  if (now == INTERRUPTED && calls % 2 == 1) {
    errno = EINTR;
    return -1;
  }
  if (now == BROKEN) {
    errno = ENOSYS;
    return -1;
  }
  if (now == EMPTY) {
    return 0;
  }
  return __real_getrandom(bytes, now == SHORT && length > 7 ? 7 : length, flags);
}

/* Returns true if every byte was filled: in many draws each of them changes once. */
static void assert_all_filled(size_t length) {
  unsigned char changed[64] = {0};
  assert_true(length < sizeof changed);
  for (unsigned round = 0; round < 200; round++) {
    unsigned char bytes[64] = {0};
    assert_true(rl_entropy_fill(bytes, length));
    for (size_t i = 0; i < sizeof bytes; i++) {
      changed[i] |= bytes[i];
    }
  }
  for (size_t i = 0; i < sizeof changed; i++) {
    assert_int_equal(changed[i] != 0, i < length);
  }
}

TEST(fill_writes_every_byte_and_none_beyond) {
  now = WELL;
  assert_all_filled(1);
  assert_all_filled(28);
  assert_all_filled(63);
}

TEST(fill_completes_short_answers) {
  now = SHORT;
  assert_all_filled(60);
}

TEST(fill_ignores_interruptions) {
  now = INTERRUPTED;
  calls = 0;
  assert_all_filled(20);
  assert_true(calls > 300);
}

TEST(fill_reports_missing_entropy) {
  unsigned char bytes[8];
  now = BROKEN;
  assert_false(rl_entropy_fill(bytes, sizeof bytes));
  now = EMPTY;
  assert_false(rl_entropy_fill(bytes, sizeof bytes));
}

TEST(fill_of_no_bytes_succeeds) {
  now = BROKEN;
  assert_true(rl_entropy_fill(NULL, 0));
}
