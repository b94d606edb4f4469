/* SPDX-License-Identifier: MIT */
#include "base/rl_sha1.h"

#include <stdint.h>
#include <stdio.h>
#include <string.h>

static uint32_t rl_sha1_rotate(uint32_t word, unsigned bits) {
  return word << bits | word >> (32 - bits);
}

/* Returns the function of a step, applied to the state, plus its constant. */
static uint32_t rl_sha1_step(const uint32_t state[5], unsigned step) {
  uint32_t b = state[1], c = state[2], d = state[3];
  switch (step / 20) {
  case 0:
    return ((b & c) | (~b & d)) + 0x5a827999u;
  case 1:
    return (b ^ c ^ d) + 0x6ed9eba1u;
  case 2:
    return ((b & c) | (b & d) | (c & d)) + 0x8f1bbcdcu;
  default:
    return (b ^ c ^ d) + 0xca62c1d6u;
  }
}

static void rl_sha1_block(uint32_t hash[5], const unsigned char block[64]) {
  uint32_t words[80];
  uint32_t state[5];
  memcpy(state, hash, sizeof state);
  for (unsigned i = 0; i < 16; i++) {
    words[i] = (uint32_t)block[4 * i] << 24 | (uint32_t)block[4 * i + 1] << 16 |
               (uint32_t)block[4 * i + 2] << 8 | block[4 * i + 3];
  }
  for (unsigned i = 16; i < 80; i++) {
    words[i] = rl_sha1_rotate(words[i - 3] ^ words[i - 8] ^ words[i - 14] ^ words[i - 16], 1);
  }
  for (unsigned i = 0; i < 80; i++) {
    uint32_t first = rl_sha1_rotate(state[0], 5) + rl_sha1_step(state, i) + state[4] + words[i];
    state[4] = state[3];
    state[3] = state[2];
    state[2] = rl_sha1_rotate(state[1], 30);
    state[1] = state[0];
    state[0] = first;
  }
  for (unsigned i = 0; i < 5; i++) {
    hash[i] += state[i];
  }
}

void rl_sha1(char digits[RL_SHA1_LENGTH + 1], const void *bytes, size_t length) {
  uint32_t hash[5] = {0x67452301u, 0xefcdab89u, 0x98badcfeu, 0x10325476u, 0xc3d2e1f0u};
  const unsigned char *at = bytes;
  unsigned char last[128] = {0};
  size_t left = length % 64;
  for (size_t i = 0; i + 64 <= length; i += 64) {
    rl_sha1_block(hash, at + i);
  }
  /* The remaining bytes, a bit, and the length in bits, in one block or two. */
  size_t end = left < 56 ? 64 : 128;
  memcpy(last, at + (length - left), left);
  last[left] = 0x80;
  for (unsigned i = 0; i < 8; i++) {
    last[end - 1 - i] = (unsigned char)((uint64_t)length * 8 >> (8 * i));
  }
  for (size_t i = 0; i < end; i += 64) {
    rl_sha1_block(hash, last + i);
  }
  for (size_t i = 0; i < 5; i++) {
    (void)snprintf(digits + 8 * i, 9, "%08x", hash[i]);
  }
}
