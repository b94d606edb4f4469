/*
 * Labels: text in a token, for people, behind the random digits.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef RL_LABEL_H
#define RL_LABEL_H

#include <stdbool.h>
#include <stddef.h>

#include "redlock.h"

/* Bytes of a token with a label: the digits, a colon, the label. */
#define RL_LABELLED_MAX (REDLOCK_TOKEN_LENGTH + 1 + REDLOCK_LABEL_MAX)

/* Bytes of "/1024", behind the digits of a semaphore's token: how many permits its client uses. */
#define RL_LABEL_PERMITS_MAX 5

/* A label, or none if |length| is 0. Has a NUL. */
typedef struct rl_label {
  unsigned char length;
  char text[REDLOCK_LABEL_MAX + 1];
} rl_label;

/*
 * Returns true if the bytes may be a label: from 1 to REDLOCK_LABEL_MAX bytes of UTF-8, without
 * control characters, line separators and characters that change the direction of a line.
 */
bool rl_label_is_valid(const void *bytes, size_t length);

/* Sets |label|. Bytes that are no label make it none. */
void rl_label_set(rl_label *label, const void *bytes, size_t length);

/*
 * Returns the label in a token, which ends with the token; NULL if the token has none. Any program
 * may have made the token.
 */
const char *rl_label_of(const void *token, size_t token_length, size_t *length);

/*
 * Returns how many permits the client of a semaphore's token uses; 0 for any other token.
 */
unsigned rl_label_permits(const void *token, size_t token_length);

/* Returns how many bytes of a token must stay secret: the label may be shown. */
size_t rl_label_secret(const void *token, size_t token_length);

#endif
