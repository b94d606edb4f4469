/*
 * A lease as text, for another process.
 *
 * SPDX-License-Identifier: MIT
 *
 * The text is "redlock1." and URL-safe base64 of: the numbers (little-endian), the lengths, the
 * prefix, the resources, the token and a checksum. The text of a lease with a fencing token begins
 * with "redlock2.", and has the token after the other 8-byte numbers. With hold_at_least it begins
 * with "redlock3.", or with "redlock4." if the lease has both, and has two more numbers. The
 * checksum detects corruption. The nodes detect forgery, because they compare the token.
 */
#include "wire/rl_handover.h"

#include <stdlib.h>
#include <string.h>

#include "wire/rl_resource.h"

#define RL_HANDOVER_HEAD "redlock1."
#define RL_HANDOVER_HEAD_LENGTH (sizeof RL_HANDOVER_HEAD - 1)
#define RL_HANDOVER_FIXED (1 + 4 + 8 + 8 + 8 + 2 + 2 + 1) /* numbers and single lengths */
#define RL_HANDOVER_EACH 2                                /* the length of a resource */
#define RL_HANDOVER_CHECKSUM 8
#define RL_HANDOVER_HOLD_MAX_US (102 * REDLOCK_TTL_MAX_US) /* rl_options_hold_us() */
/* More than any lock needs. A longer text is rejected unread. */
#define RL_HANDOVER_DIGITS_MAX                                                                     \
  ((size_t)2 * REDLOCK_RESOURCES_MAX * (REDLOCK_KEY_MAX + RL_HANDOVER_EACH))

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

/* Which optional numbers a text has. '1' plus these bits is in its head. */
enum { RL_HANDOVER_FENCED = 1, RL_HANDOVER_HOLDS = 2 };

static unsigned rl_handover_kind(const rl_handover *handover) {
  return (handover->fence > 0 ? RL_HANDOVER_FENCED : 0u) |
         (handover->hold_us > 0 ? RL_HANDOVER_HOLDS : 0u);
}

/* Writes the head of the kind, and a NUL. */
static void rl_handover_head(unsigned kind, char head[RL_HANDOVER_HEAD_LENGTH + 1]) {
  memcpy(head, RL_HANDOVER_HEAD, RL_HANDOVER_HEAD_LENGTH + 1);
  head[RL_HANDOVER_HEAD_LENGTH - 2] = (char)('1' + kind);
}

/* The kind is part of the checksum, so that no text of one kind passes for another. */
static uint64_t rl_handover_seed(unsigned kind) {
  char head[RL_HANDOVER_HEAD_LENGTH + 1];
  rl_handover_head(kind, head);
  return kind != 0 ? rl_handover_hash(RL_HANDOVER_HASH, head, sizeof head) : RL_HANDOVER_HASH;
}

static size_t rl_handover_options(unsigned kind) {
  return ((kind & RL_HANDOVER_FENCED) != 0 ? 8u : 0u) +
         ((kind & RL_HANDOVER_HOLDS) != 0 ? 16u : 0u);
}

uint64_t rl_handover_nodes(const char *const *names, unsigned count) {
  uint64_t hash = RL_HANDOVER_HASH;
  for (unsigned i = 0; i < count; i++) {
    hash = rl_handover_hash(hash, names[i], strlen(names[i]) + 1);
  }
  return hash;
}

/* ------------------------------------------------------------------------------------- writing */

typedef struct rl_handover_writer {
  char *out;
  unsigned value, bits; /* fewer than 6 bits that are not written yet */
  uint64_t hash;
} rl_handover_writer;

static void rl_handover_copy(rl_handover_writer *writer, const void *bytes, size_t length) {
  const unsigned char *in = bytes;
  writer->hash = rl_handover_hash(writer->hash, bytes, length);
  for (size_t i = 0; i < length; i++) {
    writer->value = (writer->value << 8 | in[i]) & 0xffff;
    writer->bits += 8;
    while (writer->bits >= 6) {
      writer->bits -= 6;
      *writer->out++ = rl_handover_digits[writer->value >> writer->bits & 63];
    }
  }
}

static void rl_handover_put(rl_handover_writer *writer, uint64_t number, unsigned count) {
  unsigned char bytes[8];
  for (unsigned i = 0; i < count; i++) {
    bytes[i] = (unsigned char)(number >> (8 * (count - 1 - i)));
  }
  rl_handover_copy(writer, bytes, count);
}

static size_t rl_handover_count(const rl_handover *handover) {
  size_t count = RL_HANDOVER_FIXED + handover->prefix_length + handover->token_length;
  count += rl_handover_options(rl_handover_kind(handover));
  for (size_t i = 0; i < handover->resource_count; i++) {
    count += RL_HANDOVER_EACH + handover->resources[i].length;
  }
  return count + RL_HANDOVER_CHECKSUM;
}

size_t rl_handover_length(const rl_handover *handover) {
  return RL_HANDOVER_HEAD_LENGTH + (rl_handover_count(handover) * 8 + 5) / 6;
}

void rl_handover_write(const rl_handover *handover, char *text) {
  unsigned kind = rl_handover_kind(handover);
  rl_handover_writer writer = {text + RL_HANDOVER_HEAD_LENGTH, 0, 0, rl_handover_seed(kind)};
  rl_handover_head(kind, text);
  rl_handover_put(&writer, handover->node_count, 1);
  rl_handover_put(&writer, handover->may_set, 4);
  rl_handover_put(&writer, handover->nodes, 8);
  rl_handover_put(&writer, handover->ttl_us, 8);
  rl_handover_put(&writer, handover->lock_delay_us, 8);
  if ((kind & RL_HANDOVER_FENCED) != 0) {
    rl_handover_put(&writer, handover->fence, 8);
  }
  if ((kind & RL_HANDOVER_HOLDS) != 0) {
    rl_handover_put(&writer, handover->hold_us, 8);
    rl_handover_put(&writer, handover->left_us, 8);
  }
  rl_handover_put(&writer, handover->prefix_length, 2);
  rl_handover_put(&writer, handover->token_length, 2);
  rl_handover_put(&writer, handover->resource_count, 1);
  for (size_t i = 0; i < handover->resource_count; i++) {
    rl_handover_put(&writer, handover->resources[i].length, RL_HANDOVER_EACH);
  }
  rl_handover_copy(&writer, handover->prefix, handover->prefix_length);
  for (size_t i = 0; i < handover->resource_count; i++) {
    rl_handover_copy(&writer, handover->resources[i].bytes, handover->resources[i].length);
  }
  rl_handover_copy(&writer, handover->token, handover->token_length);
  rl_handover_put(&writer, writer.hash, RL_HANDOVER_CHECKSUM);
  if (writer.bits > 0) {
    *writer.out++ = rl_handover_digits[writer.value << (6 - writer.bits) & 63];
  }
  *writer.out = '\0';
}

/* ------------------------------------------------------------------------------------- reading */

static uint64_t rl_handover_get(const unsigned char **in, unsigned count) {
  uint64_t number = 0;
  for (unsigned i = 0; i < count; i++) {
    number = number << 8 | *(*in)++;
  }
  return number;
}

/* Decodes |length| digits. Returns false if a character is no digit. */
static bool rl_handover_unpack(unsigned char *out, const char *text, size_t length) {
  unsigned value = 0, bits = 0;
  for (size_t i = 0; i < length; i++) {
    const char *digit = text[i] != '\0' ? strchr(rl_handover_digits, text[i]) : NULL;
    if (digit == NULL) {
      return false;
    }
    value = (value << 6 | (unsigned)(digit - rl_handover_digits)) & 0xffff;
    bits += 6;
    if (bits >= 8) {
      bits -= 8;
      *out++ = (unsigned char)(value >> bits);
    }
  }
  /* Otherwise a second text would decode to the same bytes. */
  return bits < 6 && (value & ((1u << bits) - 1)) == 0;
}

static bool rl_handover_in_bounds(const rl_handover *handover) {
  for (size_t i = 0; i < handover->resource_count; i++) {
    if (handover->prefix_length + handover->resources[i].length > REDLOCK_KEY_MAX) {
      return false;
    }
  }
  return handover->token_length > 0 && handover->token_length <= REDLOCK_TOKEN_MAX &&
         handover->ttl_us > 0 && handover->ttl_us <= REDLOCK_TTL_MAX_US &&
         handover->lock_delay_us <= REDLOCK_TTL_MAX_US &&
         handover->hold_us <= RL_HANDOVER_HOLD_MAX_US &&
         handover->left_us <= RL_HANDOVER_HOLD_MAX_US &&
         !rl_resource_repeats(handover->resources, handover->resource_count);
}

/* Reads the numbers and lengths. Returns the rest, or NULL if there are too few bytes. */
static const unsigned char *rl_handover_read_numbers(rl_handover *handover, size_t count,
                                                     unsigned kind) {
  bool fenced = (kind & RL_HANDOVER_FENCED) != 0, holds = (kind & RL_HANDOVER_HOLDS) != 0;
  const unsigned char *in = handover->bytes;
  handover->node_count = (unsigned)rl_handover_get(&in, 1);
  handover->may_set = (uint32_t)rl_handover_get(&in, 4);
  handover->nodes = rl_handover_get(&in, 8);
  handover->ttl_us = rl_handover_get(&in, 8);
  handover->lock_delay_us = rl_handover_get(&in, 8);
  handover->fence = fenced ? rl_handover_get(&in, 8) : 0;
  handover->hold_us = holds ? rl_handover_get(&in, 8) : 0;
  handover->left_us = holds ? rl_handover_get(&in, 8) : 0;
  handover->prefix_length = (size_t)rl_handover_get(&in, 2);
  handover->token_length = (size_t)rl_handover_get(&in, 2);
  handover->resource_count = (size_t)rl_handover_get(&in, 1);
  if (handover->resource_count == 0 || handover->resource_count > REDLOCK_RESOURCES_MAX ||
      kind != rl_handover_kind(handover) || handover->fence > RL_NUMBER_MAX ||
      count < RL_HANDOVER_FIXED + rl_handover_options(kind) +
                  handover->resource_count * RL_HANDOVER_EACH) {
    return NULL;
  }
  for (size_t i = 0; i < handover->resource_count; i++) {
    handover->resources[i].length = (size_t)rl_handover_get(&in, RL_HANDOVER_EACH);
  }
  return rl_handover_count(handover) == count ? in : NULL;
}

/* Reads |count| bytes, at least the fixed ones. */
static bool rl_handover_read_bytes(rl_handover *handover, size_t count, unsigned kind) {
  const unsigned char *in = rl_handover_read_numbers(handover, count, kind);
  if (in == NULL) {
    return false;
  }
  handover->prefix = in;
  in += handover->prefix_length;
  for (size_t i = 0; i < handover->resource_count; i++) {
    handover->resources[i].bytes = in;
    in += handover->resources[i].length;
  }
  handover->token = in;
  in += handover->token_length;
  return rl_handover_in_bounds(handover) &&
         rl_handover_get(&in, RL_HANDOVER_CHECKSUM) ==
             rl_handover_hash(rl_handover_seed(kind), handover->bytes,
                              count - RL_HANDOVER_CHECKSUM);
}

int rl_handover_read(rl_handover *handover, const char *text, size_t length) {
  size_t head = RL_HANDOVER_HEAD_LENGTH;
  char expected[RL_HANDOVER_HEAD_LENGTH + 1];
  unsigned kind = length > head ? ((unsigned)text[head - 2] - '1') & 3 : 0;
  size_t count = length > head ? (length - head) * 6 / 8 : 0;
  rl_handover_head(kind, expected);
  if (count < RL_HANDOVER_FIXED + RL_HANDOVER_CHECKSUM + rl_handover_options(kind) ||
      memcmp(text, expected, head) != 0 || length - head > RL_HANDOVER_DIGITS_MAX) {
    return REDLOCK_E_LOST;
  }
  handover->bytes = calloc(1, count);
  if (handover->bytes == NULL) {
    return REDLOCK_E_NO_MEMORY;
  }
  if (!rl_handover_unpack(handover->bytes, text + head, length - head) ||
      !rl_handover_read_bytes(handover, count, kind)) {
    rl_handover_free(handover);
    return REDLOCK_E_LOST;
  }
  return REDLOCK_OK;
}

void rl_handover_free(rl_handover *handover) {
  free(handover->bytes);
  handover->bytes = NULL;
}
