/*
 * Checks that a text is JSON.
 *
 * SPDX-License-Identifier: MIT
 */
#include "json.h"

#include <stddef.h>
#include <string.h>

#define DEPTH_MAX 16

/* Each function returns the end of what it reads, or NULL if that is wrong. */
static const char *read_value(const char *at, unsigned depth);

static const char *skip_spaces(const char *at) {
  return at == NULL ? NULL : at + strspn(at, " \t");
}

/* Reads a character of UTF-8 that is no control character. */
static const char *read_character(const char *at) {
  unsigned char first = (unsigned char)*at;
  size_t more = first < 0x80 ? 0 : first < 0xe0 ? 1 : first < 0xf0 ? 2 : 3;
  if (first < 0x20 || (first >= 0x80 && first < 0xc2) || first > 0xf4) {
    return NULL;
  }
  for (size_t i = 1; i <= more; i++) {
    if (((unsigned char)at[i] & 0xc0) != 0x80) {
      return NULL;
    }
  }
  return at + 1 + more;
}

static const char *read_escape(const char *at) {
  if (*at == 'u') {
    return strspn(at + 1, "0123456789abcdefABCDEF") >= 4 ? at + 5 : NULL;
  }
  return *at != '\0' && strchr("\"\\/bfnrt", *at) != NULL ? at + 1 : NULL;
}

static const char *read_string(const char *at) {
  if (at == NULL || *at++ != '"') {
    return NULL;
  }
  while (at != NULL && *at != '"') {
    at = *at == '\\' ? read_escape(at + 1) : read_character(at);
  }
  return at == NULL ? NULL : at + 1;
}

static const char *read_number(const char *at) {
  at += *at == '-';
  size_t digits = strspn(at, "0123456789");
  at += digits;
  if (*at == '.') {
    size_t decimals = strspn(at + 1, "0123456789");
    return digits > 0 && decimals > 0 ? at + 1 + decimals : NULL;
  }
  return digits > 0 ? at : NULL;
}

/* Reads a list or an object after its first bracket. */
static const char *read_members(const char *at, char end, unsigned depth) {
  at = skip_spaces(at);
  if (*at == end) {
    return at + 1;
  }
  for (;;) {
    if (end == '}') {
      at = skip_spaces(read_string(at));
      at = at != NULL && *at == ':' ? skip_spaces(at + 1) : NULL;
    }
    at = at == NULL ? NULL : skip_spaces(read_value(at, depth + 1));
    if (at == NULL || *at == end) {
      return at == NULL ? NULL : at + 1;
    }
    if (*at++ != ',') {
      return NULL;
    }
    at = skip_spaces(at);
  }
}

static const char *read_value(const char *at, unsigned depth) {
  static const char *const words[] = {"true", "false", "null"};
  if (*at == '{' || *at == '[') {
    return depth < DEPTH_MAX ? read_members(at + 1, *at == '{' ? '}' : ']', depth) : NULL;
  }
  for (size_t i = 0; i < sizeof words / sizeof words[0]; i++) {
    if (strncmp(at, words[i], strlen(words[i])) == 0) {
      return at + strlen(words[i]);
    }
  }
  return *at == '"' ? read_string(at) : read_number(at);
}

bool json_lines_are_valid(const char *text) {
  const char *at = text;
  while (at != NULL && *at == '{') {
    at = read_value(at, 0);
    at = at != NULL && *at == '\n' ? at + 1 : NULL;
  }
  return at != NULL && *at == '\0' && at != text;
}
