/*
 * Commands as bytes, and the SHA-1 by which a server names a script.
 *
 * SPDX-License-Identifier: MIT
 */
#include <string.h>

#include "sim.h"

/* "<type><digits>\r\n". Returns its length, 0 when it is not complete, SIZE_MAX when it is wrong. */
static size_t sim_resp_header(const unsigned char *bytes, size_t length, char type,
                              size_t *number) {
  size_t at = 1;
  *number = 0;
  if (length == 0) {
    return 0;
  }
  if (bytes[0] != (unsigned char)type) {
    return SIZE_MAX;
  }
  while (at < length && bytes[at] >= '0' && bytes[at] <= '9' && at < 10) {
    *number = *number * 10 + (size_t)(bytes[at] - '0');
    at++;
  }
  if (at + 2 > length) {
    return at < length && bytes[at] != '\r' ? SIZE_MAX : 0;
  }
  return at > 1 && bytes[at] == '\r' && bytes[at + 1] == '\n' ? at + 2 : SIZE_MAX;
}

size_t sim_resp_command(sim_command *command, const unsigned char *bytes, size_t length) {
  size_t number;
  size_t at = sim_resp_header(bytes, length, '*', &number);
  if (at == 0 || at == SIZE_MAX) {
    return at;
  }
  if (number == 0 || number > SIM_ARGUMENTS_MAX) {
    return SIZE_MAX;
  }
  command->count = (unsigned)number;
  for (unsigned i = 0; i < command->count; i++) {
    size_t size;
    size_t header = sim_resp_header(bytes + at, length - at, '$', &size);
    if (header == 0 || header == SIZE_MAX) {
      return header;
    }
    at += header;
    if (length - at < size + 2) {
      return 0;
    }
    if (bytes[at + size] != '\r' || bytes[at + size + 1] != '\n') {
      return SIZE_MAX;
    }
    command->bytes[i] = (const char *)bytes + at;
    command->lengths[i] = size;
    at += size + 2;
  }
  return at;
}

bool sim_resp_is(const sim_command *command, unsigned index, const char *text) {
  size_t length = strlen(text);
  return index < command->count && command->lengths[index] == length &&
         memcmp(command->bytes[index], text, length) == 0;
}

/* The first 32 bits of a token are its number: the simulator brings the entropy. */
uint32_t sim_resp_token(const char *text, size_t length) {
  uint32_t number = 0;
  if (length != REDLOCK_TOKEN_LENGTH) {
    return SIM_NO_TOKEN;
  }
  for (unsigned i = 0; i < 8; i++) {
    char digit = text[i];
    uint32_t value = digit >= '0' && digit <= '9'   ? (uint32_t)(digit - '0')
                     : digit >= 'a' && digit <= 'f' ? (uint32_t)(digit - 'a') + 10
                                                    : 16;
    if (value == 16) {
      return SIM_NO_TOKEN;
    }
    number = number << 4 | value;
  }
  return number;
}

/* ---------------------------------------------------------------------------------------- SHA-1 */

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
