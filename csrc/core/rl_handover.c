/*
 * A lease as text, on its way from one process to another.
 *
 * SPDX-License-Identifier: MIT
 *
 * "redlock1." and base64 that needs no escapes in arguments and addresses, of: the numbers, each with its
 * first byte first; the lengths; prefix, resource and token; and a checksum over all of that. The
 * checksum finds what was damaged. What was forged the nodes find out, for they compare the token.
 */
#include "rl_handover.h"

#include <string.h>

#include "rl_core.h"

#define RL_HANDOVER_HEAD "redlock1."
#define RL_HANDOVER_FIXED (1 + 4 + 8 + 8 + 8 + 3 * 2)
#define RL_HANDOVER_CHECKSUM 8

static const char rl_handover_digits[] =
    "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";

/* FNV-1a */
static uint64_t rl_handover_hash(uint64_t hash, const void *bytes, size_t length) {
  const unsigned char *at = bytes;
  for (size_t i = 0; i < length; i++) {
    hash = (hash ^ at[i]) * 0x100000001b3u;
  }
  return hash;
}

#define RL_HANDOVER_HASH 0xcbf29ce484222325u

uint64_t rl_handover_nodes(const rl_core *core) {
  uint64_t hash = RL_HANDOVER_HASH;
  for (unsigned i = 0; i < core->node_count; i++) {
    const char *name = core->nodes[i]->address.name;
    hash = rl_handover_hash(hash, name, strlen(name) + 1);
  }
  return hash;
}

/* ------------------------------------------------------------------------------------- writing */

static unsigned char *rl_handover_put(unsigned char *out, uint64_t number, unsigned count) {
  for (unsigned i = count; i > 0; i--) {
    *out++ = (unsigned char)(number >> (8 * (i - 1)));
  }
  return out;
}

static unsigned char *rl_handover_copy(unsigned char *out, const void *bytes, size_t length) {
  if (length > 0) {
    memcpy(out, bytes, length);
  }
  return out + length;
}

static size_t rl_handover_pack(const rl_handover *handover, unsigned char *bytes) {
  unsigned char *out = bytes;
  out = rl_handover_put(out, handover->node_count, 1);
  out = rl_handover_put(out, handover->doubtful, 4);
  out = rl_handover_put(out, handover->nodes, 8);
  out = rl_handover_put(out, handover->ttl_us, 8);
  out = rl_handover_put(out, handover->lock_delay_us, 8);
  out = rl_handover_put(out, handover->prefix_length, 2);
  out = rl_handover_put(out, handover->resource_length, 2);
  out = rl_handover_put(out, handover->token_length, 2);
  out = rl_handover_copy(out, handover->prefix, handover->prefix_length);
  out = rl_handover_copy(out, handover->resource, handover->resource_length);
  out = rl_handover_copy(out, handover->token, handover->token_length);
  uint64_t checksum = rl_handover_hash(RL_HANDOVER_HASH, bytes, (size_t)(out - bytes));
  return (size_t)(rl_handover_put(out, checksum, RL_HANDOVER_CHECKSUM) - bytes);
}

size_t rl_handover_write(const rl_handover *handover, char *text, size_t size) {
  unsigned char bytes[RL_HANDOVER_BYTES_MAX + 2];
  size_t count = rl_handover_pack(handover, bytes);
  size_t head = strlen(RL_HANDOVER_HEAD);
  size_t length = head + (count * 8 + 5) / 6;
  if (length >= size) {
    return 0;
  }
  memcpy(text, RL_HANDOVER_HEAD, head);
  memset(bytes + count, 0, 2);
  for (size_t i = 0; i < length - head; i++) {
    size_t bit = i * 6;
    unsigned pair = (unsigned)bytes[bit / 8] << 8 | bytes[bit / 8 + 1];
    text[head + i] = rl_handover_digits[pair >> (10 - bit % 8) & 63];
  }
  text[length] = '\0';
  return length;
}

/* ------------------------------------------------------------------------------------- reading */

static uint64_t rl_handover_get(const unsigned char **in, unsigned count) {
  uint64_t number = 0;
  for (unsigned i = 0; i < count; i++) {
    number = number << 8 | *(*in)++;
  }
  return number;
}

/* The bytes that the text stands for. Returns how many there are, or 0 when it is no such text. */
static size_t rl_handover_unpack(unsigned char *bytes, const char *text, size_t length) {
  size_t head = strlen(RL_HANDOVER_HEAD);
  if (length < head || memcmp(text, RL_HANDOVER_HEAD, head) != 0) {
    return 0;
  }
  size_t count = (length - head) * 6 / 8;
  if (count > RL_HANDOVER_BYTES_MAX) {
    return 0;
  }
  unsigned value = 0, bits = 0;
  unsigned char *out = bytes;
  for (size_t i = head; i < length; i++) {
    const char *digit =
        text[i] != '\0' ? memchr(rl_handover_digits, text[i], sizeof rl_handover_digits - 1) : NULL;
    if (digit == NULL) {
      return 0;
    }
    value = (value << 6 | (unsigned)(digit - rl_handover_digits)) & 0xffff;
    bits += 6;
    if (bits >= 8) {
      bits -= 8;
      *out++ = (unsigned char)(value >> bits);
    }
  }
  bool rest = (value & ((1u << bits) - 1)) != 0; /* Another text for the same bytes. */
  return rest ? 0 : count;
}

bool rl_handover_read(rl_handover *handover, unsigned char bytes[RL_HANDOVER_BYTES_MAX],
                      const char *text, size_t length) {
  size_t count = rl_handover_unpack(bytes, text, length);
  const unsigned char *in = bytes;
  if (count < RL_HANDOVER_FIXED + RL_HANDOVER_CHECKSUM) {
    return false;
  }
  handover->node_count = (unsigned)rl_handover_get(&in, 1);
  handover->doubtful = (uint32_t)rl_handover_get(&in, 4);
  handover->nodes = rl_handover_get(&in, 8);
  handover->ttl_us = rl_handover_get(&in, 8);
  handover->lock_delay_us = rl_handover_get(&in, 8);
  handover->prefix_length = (size_t)rl_handover_get(&in, 2);
  handover->resource_length = (size_t)rl_handover_get(&in, 2);
  handover->token_length = (size_t)rl_handover_get(&in, 2);
  size_t known = handover->prefix_length + handover->resource_length + handover->token_length;
  if (count != RL_HANDOVER_FIXED + known + RL_HANDOVER_CHECKSUM ||
      handover->prefix_length + handover->resource_length > REDLOCK_KEY_MAX ||
      handover->token_length == 0 || handover->token_length > REDLOCK_TOKEN_MAX ||
      handover->ttl_us == 0 || handover->ttl_us > REDLOCK_TTL_MAX_US ||
      handover->lock_delay_us > REDLOCK_TTL_MAX_US) {
    return false;
  }
  handover->prefix = in;
  handover->resource = handover->prefix + handover->prefix_length;
  handover->token = handover->resource + handover->resource_length;
  in = handover->token + handover->token_length;
  return rl_handover_get(&in, RL_HANDOVER_CHECKSUM) ==
         rl_handover_hash(RL_HANDOVER_HASH, bytes, count - RL_HANDOVER_CHECKSUM);
}
