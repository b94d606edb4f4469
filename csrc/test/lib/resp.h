/*
 * Requests in RESP, as every fake server of the tests reads them.
 *
 * SPDX-License-Identifier: MIT
 *
 * It allocates and copies nothing: the words of a request stay where they were received.
 */
#ifndef RESP_H
#define RESP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#define RESP_WORDS_MAX 20

typedef struct resp_request {
  unsigned count;
  const char *words[RESP_WORDS_MAX];
  size_t lengths[RESP_WORDS_MAX];
} resp_request;

/*
 * Reads the first request. Returns its length, 0 when it is incomplete, or -1 when it is malformed.
 */
long resp_read(resp_request *request, const char *bytes, size_t length);

/* Returns true if there is such a word and it is the |length| bytes at |text|. */
static inline bool resp_equals(const resp_request *request, unsigned index, const char *text,
                               size_t length) {
  return index < request->count && request->lengths[index] == length &&
         memcmp(request->words[index], text, length) == 0;
}

/* The same of a text that ends with a zero. Inline, for a literal's length is known then. */
static inline bool resp_is(const resp_request *request, unsigned index, const char *text) {
  return resp_equals(request, index, text, strlen(text));
}

/* The word as a number; 0 when there is no such word, or it has anything but digits. */
uint64_t resp_number(const resp_request *request, unsigned index);

#endif
