/*
 * SHA-1 by the vectors of its standard, and at every length around the end of a block.
 *
 * SPDX-License-Identifier: MIT
 */
#include "base/rl_sha1.h"

#include "rl_test.h"

static void assert_sha1(const char *bytes, size_t length, const char *expected) {
  char digits[RL_SHA1_LENGTH + 1];
  rl_sha1(digits, bytes, length);
  assert_string_equal(digits, expected);
}

TEST(sha1_matches_the_standard_vectors) {
  static char million[1000000];
  const char *two = "abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq";
  memset(million, 'a', sizeof million);
  assert_sha1("", 0, "da39a3ee5e6b4b0d3255bfef95601890afd80709");
  assert_sha1("abc", 3, "a9993e364706816aba3e25717850c26c9cd0d89d");
  assert_sha1(two, strlen(two), "84983e441c3bd26ebaae4aa1f95129e5e54670f1");
  assert_sha1(million, sizeof million, "34aa973cd4c4daa4f61eeb2bdbad27316534016f");
}

/* Of so many letters x, by another implementation. */
TEST(sha1_pads_lengths_around_a_block) {
  static const struct {
    size_t length;
    const char *expected;
  } all[] = {
      {55, "cef734ba81a024479e09eb5a75b6ddae62e6abf1"},
      {56, "901305367c259952f4e7af8323f480d59f81335b"},
      {57, "025ecbd5d70f8fb3c5457cd96bab13fda305dc59"},
      {63, "0ddc4e0cccd9a12850deb5abb0853a4425559fec"},
      {64, "bb2fa3ee7afb9f54c6dfb5d021f14b1ffe40c163"},
      {65, "78c741ddc482e4cdf8c474a0876347a0905b6233"},
      {119, "4300320394f7ee239bcdce7d3b8bcee173a0cd5c"},
      {120, "ceb2821639c4b6dcb10bce0e522ca2e608ce056d"},
      {128, "150fa3fbdc899bd0b8f95a9fb6027f564d953762"},
  };
  char bytes[128];
  memset(bytes, 'x', sizeof bytes);
  for (unsigned i = 0; i < COUNT_OF(all); i++) {
    assert_sha1(bytes, all[i].length, all[i].expected);
  }
}
