/*
 * Requests in RESP, as every fake server of the tests reads them.
 *
 * SPDX-License-Identifier: MIT
 */
#include "resp.h"

#define RESP_DIGITS_MAX 9

/* "<type><digits>\r\n". Returns its length, 0 when it is incomplete, -1 when it is malformed. */
static long resp_header(const char *bytes, size_t length, char type, size_t *number) {
  size_t at = 1;
  *number = 0;
  if (length == 0) {
    return 0;
  }
  if (bytes[0] != type) {
    return -1;
  }
  while (at < length && at <= RESP_DIGITS_MAX && bytes[at] >= '0' && bytes[at] <= '9') {
    *number = *number * 10 + (size_t)(bytes[at++] - '0');
  }
  if (at == length || (bytes[at] == '\r' && at + 1 == length)) {
    return 0;
  }
  return at > 1 && bytes[at] == '\r' && bytes[at + 1] == '\n' ? (long)at + 2 : -1;
}

/* "$<length>\r\n<word>\r\n", likewise. */
static long resp_word(resp_request *request, unsigned index, const char *bytes, size_t length) {
  size_t size;
  long header = resp_header(bytes, length, '$', &size);
  if (header <= 0) {
    return header;
  }
  const char *word = bytes + header;
  if (length - (size_t)header < size + 2) {
    return 0;
  }
  request->words[index] = word;
  request->lengths[index] = size;
  return word[size] == '\r' && word[size + 1] == '\n' ? header + (long)size + 2 : -1;
}

long resp_read(resp_request *request, const char *bytes, size_t length) {
  size_t count;
  long used = resp_header(bytes, length, '*', &count);
  if (used <= 0) {
    return used;
  }
  if (count == 0 || count > RESP_WORDS_MAX) {
    return -1;
  }
  request->count = (unsigned)count;
  for (unsigned i = 0; i < request->count; i++) {
    long word = resp_word(request, i, bytes + used, length - (size_t)used);
    if (word <= 0) {
      return word;
    }
    used += word;
  }
  return used;
}

uint64_t resp_number(const resp_request *request, unsigned index) {
  uint64_t number = 0;
  for (size_t i = 0; index < request->count && i < request->lengths[index]; i++) {
    char digit = request->words[index][i];
    if (digit < '0' || digit > '9') {
      return 0;
    }
    number = number * 10 + (uint64_t)(digit - '0');
  }
  return number;
}
