/*
 * Replays the corpus of the fuzz target for TLS without libFuzzer.
 *
 * SPDX-License-Identifier: MIT
 */
#include "rl_test.h"

#define LLVMFuzzerTestOneInput fuzz_tls_play
#include "../../fuzz/fuzz_tls.c"
#undef LLVMFuzzerTestOneInput

#define INPUT_MAX 2048

/* Plays a copy without spare bytes, so that a sanitizer notices a read beyond it. */
static void play(const uint8_t *bytes, size_t size) {
  uint8_t *copy = malloc(size > 0 ? size : 1);
  assert_non_null(copy);
  memcpy(copy, bytes, size);
  assert_int_equal(fuzz_tls_play(copy, size), 0);
  free(copy);
}

TEST(corpus_is_accepted) {
  const char *slash = strrchr(__FILE__, '/');
  char path[512];
  char line[2 * INPUT_MAX];
  unsigned played = 0;
  (void)snprintf(path, sizeof path, "%.*s../../fuzz/corpus/tls.hex",
                 slash == NULL ? 0 : (int)(slash - __FILE__ + 1), __FILE__);
  FILE *file = fopen(path, "r");
  assert_non_null(file);
  while (fgets(line, sizeof line, file) != NULL) {
    uint8_t bytes[INPUT_MAX];
    size_t size = strcspn(line, "\n") / 2;
    assert_true(line[2 * size] == '\n');
    for (size_t i = 0; i < size; i++) {
      char digits[3] = {line[2 * i], line[2 * i + 1], '\0'};
      bytes[i] = (uint8_t)strtoul(digits, NULL, 16);
    }
    play(bytes, size);
    played++;
  }
  (void)fclose(file);
  assert_true(played >= 100);
}

/* Pseudo-random inputs, always the same. */
TEST(random_inputs_are_accepted) {
  uint32_t seed = 2463534242;
  for (unsigned round = 0; round < 300; round++) {
    uint8_t bytes[200];
    for (size_t at = 0; at < sizeof bytes; at++) {
      seed ^= seed << 13;
      seed ^= seed >> 17;
      seed ^= seed << 5;
      bytes[at] = (uint8_t)(seed >> 11);
    }
    play(bytes, seed % sizeof bytes);
  }
}
