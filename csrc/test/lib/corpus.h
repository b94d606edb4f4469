/*
 * Plays inputs of a fuzz target without libFuzzer.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef CORPUS_H
#define CORPUS_H

#include "rl_test.h"

#define CORPUS_LINE_MAX 4096

typedef int (*corpus_target)(const uint8_t *data, size_t size);

static inline unsigned corpus_digit(char byte) {
  const char *digits = "0123456789abcdef";
  const char *found = byte == '\0' ? NULL : strchr(digits, byte);
  assert_non_null(found);
  return (unsigned)(found - digits);
}

/* Plays a copy without spare bytes, so that a sanitizer notices a read beyond it. */
static inline void corpus_play_bytes(corpus_target play, const uint8_t *bytes, size_t size) {
  uint8_t *copy = malloc(size > 0 ? size : 1);
  assert_non_null(copy);
  memcpy(copy, bytes, size);
  assert_int_equal(play(copy, size), 0);
  free(copy);
}

/* Plays csrc/test/fuzz/corpus/|name|.hex, an input a line, which has |least| or more of them. */
static inline void corpus_play(corpus_target play, const char *name, unsigned least) {
  const char *slash = strrchr(__FILE__, '/');
  char path[512];
  char line[CORPUS_LINE_MAX];
  unsigned played = 0;
  (void)snprintf(path, sizeof path, "%.*s../fuzz/corpus/%s.hex",
                 slash == NULL ? 0 : (int)(slash - __FILE__ + 1), __FILE__, name);
  FILE *file = fopen(path, "r");
  if (file == NULL) {
    fail_msg("%s is not there", path);
  }
  while (fgets(line, sizeof line, file) != NULL) {
    uint8_t bytes[CORPUS_LINE_MAX / 2];
    size_t length = strcspn(line, "\n");
    assert_true(line[length] == '\n' && length % 2 == 0);
    for (size_t i = 0; i < length / 2; i++) {
      bytes[i] = (uint8_t)(corpus_digit(line[2 * i]) * 16 + corpus_digit(line[2 * i + 1]));
    }
    corpus_play_bytes(play, bytes, length / 2);
    played++;
  }
  (void)fclose(file);
  assert_true(played >= least);
}

/* Plays pseudo-random inputs, always the same. */
static inline void corpus_play_random(corpus_target play, unsigned rounds) {
  uint32_t seed = 2463534242;
  for (unsigned round = 0; round < rounds; round++) {
    uint8_t bytes[200];
    for (size_t at = 0; at < sizeof bytes; at++) {
      seed ^= seed << 13;
      seed ^= seed >> 17;
      seed ^= seed << 5;
      bytes[at] = (uint8_t)(seed >> 11);
    }
    corpus_play_bytes(play, bytes, seed % sizeof bytes);
  }
}

#endif
