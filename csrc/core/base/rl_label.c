/*
 * Labels: text in a token, for people, behind the random digits.
 *
 * SPDX-License-Identifier: MIT
 *
 * The label is a part of the token, so it travels without a command of its own. Other libraries
 * compare tokens, and see only bytes. A token of another program may contain anything behind 40
 * digits and a colon. These bytes are shown only if they are a valid label.
 */
#include "base/rl_label.h"

#include <assert.h>
#include <stdint.h>
#include <string.h>

#include "base/rl_number.h"

static_assert(RL_LABELLED_MAX + RL_LABEL_PERMITS_MAX <= REDLOCK_TOKEN_MAX,
              "an inspection reads a token with a label");

/* Ranges of characters that no label has. Each terminal and log treats them in its own way. */
static const uint32_t rl_label_forbidden[][2] = {
    {0x0000, 0x001f}, {0x007f, 0x009f}, /* control characters */
    {0x00ad, 0x00ad},                   /* soft hyphen */
    {0x061c, 0x061c}, {0x200b, 0x200b}, /* invisible, or a mark of direction */
    {0x200e, 0x200f}, {0x2028, 0x202e}, /* marks, line separators, overrides of direction */
    {0x2060, 0x206f}, {0xd800, 0xdfff}, /* invisible operators, isolates; surrogates */
    {0xfdd0, 0xfdef}, {0xfeff, 0xfeff}, /* no characters; byte order mark */
    {0xfff0, 0xfffb}, {0xe0000, 0xe0fff}};

static bool rl_label_is_printable(uint32_t character) {
  for (size_t i = 0; i < sizeof rl_label_forbidden / sizeof rl_label_forbidden[0]; i++) {
    if (character >= rl_label_forbidden[i][0] && character <= rl_label_forbidden[i][1]) {
      return false;
    }
  }
  return (character & 0xfffe) != 0xfffe;
}

/* Returns the bytes of the printable character at |bytes|; 0 if there is none. */
static size_t rl_label_character(const unsigned char *bytes, size_t length) {
  static const uint32_t least[] = {0, 0, 0x80, 0x800, 0x10000};
  size_t size = bytes[0] < 0x80   ? 1
                : bytes[0] < 0xc0 ? 0
                : bytes[0] < 0xe0 ? 2
                : bytes[0] < 0xf0 ? 3
                : bytes[0] < 0xf8 ? 4
                                  : 0;
  if (size == 0 || size > length) {
    return 0;
  }
  uint32_t character = size == 1 ? bytes[0] : bytes[0] & (0x7fu >> size);
  for (size_t i = 1; i < size; i++) {
    if ((bytes[i] & 0xc0) != 0x80) {
      return 0;
    }
    character = character << 6 | (bytes[i] & 0x3f);
  }
  return character >= least[size] && character <= 0x10ffff && rl_label_is_printable(character)
             ? size
             : 0;
}

bool rl_label_is_valid(const void *bytes, size_t length) {
  const unsigned char *at = bytes;
  if (length == 0 || length > REDLOCK_LABEL_MAX) {
    return false;
  }
  while (length > 0) {
    size_t size = rl_label_character(at, length);
    if (size == 0) {
      return false;
    }
    at += size;
    length -= size;
  }
  return true;
}

void rl_label_set(rl_label *label, const void *bytes, size_t length) {
  label->length = rl_label_is_valid(bytes, length) ? (unsigned char)length : 0;
  if (label->length > 0) {
    memcpy(label->text, bytes, label->length);
  }
  label->text[label->length] = '\0';
}

/* Returns true if the token begins with as many random digits as those of this library. */
static bool rl_label_follows_digits(const char *bytes, size_t length) {
  for (size_t i = 0; i < REDLOCK_TOKEN_LENGTH && i < length; i++) {
    bool digit = (bytes[i] >= '0' && bytes[i] <= '9') || (bytes[i] >= 'a' && bytes[i] <= 'f');
    if (!digit) {
      return false;
    }
  }
  return length > REDLOCK_TOKEN_LENGTH;
}

/* Reads "/" and a number behind the digits. Returns its bytes; 0 if there is none. */
static size_t rl_label_read_permits(const char *bytes, size_t length, unsigned *permits) {
  const char *number = bytes + REDLOCK_TOKEN_LENGTH + 1;
  uint64_t count;
  *permits = 0;
  if (!rl_label_follows_digits(bytes, length) || bytes[REDLOCK_TOKEN_LENGTH] != '/') {
    return 0;
  }
  size_t rest = length - REDLOCK_TOKEN_LENGTH - 1;
  size_t digits = rl_number_in_digits(number, rest, &count);
  bool valid = count > 0 && count <= REDLOCK_PERMITS_MAX && number[0] != '0' &&
               (digits == rest || number[digits] == ':');
  *permits = valid ? (unsigned)count : 0;
  return valid ? 1 + digits : 0;
}

unsigned rl_label_permits(const void *token, size_t token_length) {
  unsigned permits;
  (void)rl_label_read_permits(token, token_length, &permits);
  return permits;
}

const char *rl_label_of(const void *token, size_t token_length, size_t *length) {
  const char *bytes = token;
  unsigned permits;
  size_t digits = REDLOCK_TOKEN_LENGTH + rl_label_read_permits(bytes, token_length, &permits);
  *length = 0;
  if (token_length <= digits + 1 || !rl_label_follows_digits(bytes, token_length) ||
      bytes[digits] != ':' || !rl_label_is_valid(bytes + digits + 1, token_length - digits - 1)) {
    return NULL;
  }
  *length = token_length - digits - 1;
  return bytes + digits + 1;
}

size_t rl_label_secret(const void *token, size_t token_length) {
  size_t length;
  return rl_label_of(token, token_length, &length) != NULL ||
                 rl_label_permits(token, token_length) > 0
             ? REDLOCK_TOKEN_LENGTH
             : token_length;
}
