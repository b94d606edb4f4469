/*
 * The SHA-1 by which a server names a script.
 *
 * SPDX-License-Identifier: MIT
 */
#include <string.h>

#include "sim.h"

static uint32_t sim_rotate(uint32_t value, unsigned by) {
  return value << by | value >> (32 - by);
}

static void sim_sha1_block(uint32_t state[5], const unsigned char block[64]) {
  uint32_t words[80];
  for (unsigned i = 0; i < 16; i++) {
    words[i] = (uint32_t)block[4 * i] << 24 | (uint32_t)block[4 * i + 1] << 16 |
               (uint32_t)block[4 * i + 2] << 8 | block[4 * i + 3];
  }
  for (unsigned i = 16; i < 80; i++) {
    words[i] = sim_rotate(words[i - 3] ^ words[i - 8] ^ words[i - 14] ^ words[i - 16], 1);
  }
  uint32_t a = state[0], b = state[1], c = state[2], d = state[3], e = state[4];
  for (unsigned i = 0; i < 80; i++) {
    uint32_t mixed = i < 20   ? ((b & c) | (~b & d)) + 0x5a827999u
                     : i < 40 ? (b ^ c ^ d) + 0x6ed9eba1u
                     : i < 60 ? ((b & c) | (b & d) | (c & d)) + 0x8f1bbcdcu
                              : (b ^ c ^ d) + 0xca62c1d6u;
    uint32_t next = sim_rotate(a, 5) + mixed + e + words[i];
    e = d;
    d = c;
    c = sim_rotate(b, 30);
    b = a;
    a = next;
  }
  state[0] += a;
  state[1] += b;
  state[2] += c;
  state[3] += d;
  state[4] += e;
}

void sim_sha1(char hex[41], const void *bytes, size_t length) {
  static const char digits[] = "0123456789abcdef";
  uint32_t state[5] = {0x67452301u, 0xefcdab89u, 0x98badcfeu, 0x10325476u, 0xc3d2e1f0u};
  unsigned char block[64];
  const unsigned char *at = bytes;
  size_t left = length;
  for (; left >= 64; left -= 64, at += 64) {
    sim_sha1_block(state, at);
  }
  memset(block, 0, sizeof block);
  memcpy(block, at, left);
  block[left] = 0x80;
  if (left >= 56) {
    sim_sha1_block(state, block);
    memset(block, 0, sizeof block);
  }
  for (unsigned i = 0; i < 8; i++) {
    block[63 - i] = (unsigned char)((uint64_t)length * 8 >> (8 * i));
  }
  sim_sha1_block(state, block);
  for (unsigned i = 0; i < 40; i++) {
    hex[i] = digits[state[i / 8] >> (28 - 4 * (i % 8)) & 15];
  }
  hex[40] = '\0';
}
