/* SPDX-License-Identifier: MIT */
#include "wire/rl_mask.h"

#include <string.h>

#include "wire/rl_reply.h"

#define RL_SECRET_SHORT 4 /* bytes; a shorter secret occurs in the words of any text */

/* Returns the first occurrence at or behind |at|, or NULL. */
static char *rl_mask_find(char *text, char *at, const char *secret, size_t length) {
  size_t text_length = strlen(text);
  bool cut = text_length == RL_REPLY_TEXT_MAX;
  const char *end = text + text_length;
  for (; length > 0 && at < end; at++) {
    size_t same = 0;
    while (same < length && at + same < end && (at[same] == secret[same] || at[same] == '?')) {
      same++;
    }
    if (same == length || (cut && at + same == end)) {
      return at;
    }
  }
  return NULL;
}

static bool rl_mask_is_letter(char byte) {
  return (byte >= 'a' && byte <= 'z') || (byte >= 'A' && byte <= 'Z') ||
         (byte >= '0' && byte <= '9');
}

bool rl_mask_may_contain(char *text, const char *secret, size_t length) {
  char *at = text;
  while ((at = rl_mask_find(text, at, secret, length)) != NULL) {
    const char *end = at + strnlen(at, length);
    bool within_word = (at > text && rl_mask_is_letter(at[-1]) && rl_mask_is_letter(at[0])) ||
                       (rl_mask_is_letter(end[-1]) && rl_mask_is_letter(end[0]));
    if (length >= RL_SECRET_SHORT || !within_word) {
      return true;
    }
    at++;
  }
  return false;
}

void rl_mask_secret(char *text, const char *secret, size_t length) {
  char *at = text;
  while ((at = rl_mask_find(text, at, secret, length)) != NULL) {
    for (size_t i = 0; i < length && *at != '\0'; i++) {
      *at++ = '*';
    }
  }
}

void rl_mask_cut_arguments(char *text) {
  size_t at = strcspn(text, "'`\"");
  while (text[at] != '\0') {
    bool apostrophe = at >= 3 && strncmp(text + at - 3, "can't ", 6) == 0;
    size_t length = apostrophe ? 1 : rl_reply_quoted_command(text + at);
    if (length == 0) {
      text[at] = '\0';
      return;
    }
    at += length + strcspn(text + at + length, "'`\"");
  }
}
