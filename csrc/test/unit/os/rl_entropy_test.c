/*
 * Random bytes from the kernel. getentropy() is wrapped, because it returns at most 256 bytes.
 *
 * SPDX-License-Identifier: MIT
 */
#include "os/rl_entropy.h"

#include <errno.h>

#include "rl_test.h"

int __real_getentropy(void *bytes, size_t length);
int __wrap_getentropy(void *bytes, size_t length);

static bool broken;

int __wrap_getentropy(void *bytes, size_t length) {
  if (broken || length > 256) {
    errno = EIO;
    return -1;
  }
  return __real_getentropy(bytes, length);
}

/* Returns true if every byte was filled: in many draws each of them changes once. */
static void assert_all_filled(size_t length) {
  unsigned char changed[600] = {0};
  assert_true(length < sizeof changed);
  for (unsigned round = 0; round < 200; round++) {
    unsigned char bytes[600] = {0};
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
  assert_all_filled(1);
  assert_all_filled(28);
  assert_all_filled(256);
  assert_all_filled(257);
  assert_all_filled(599);
}

TEST(fill_reports_missing_entropy) {
  unsigned char bytes[8];
  broken = true;
  assert_false(rl_entropy_fill(bytes, sizeof bytes));
  broken = false;
}

TEST(fill_of_no_bytes_succeeds) {
  broken = true;
  assert_true(rl_entropy_fill(NULL, 0));
  broken = false;
}
