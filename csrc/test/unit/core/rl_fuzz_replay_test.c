/*
 * Plays the corpus of every fuzz target, without libFuzzer.
 *
 * SPDX-License-Identifier: MIT
 */
#include "fake_clock.h"
#include "rl_test.h"

#define LLVMFuzzerTestOneInput fuzz_core_play
#include "../../fuzz/fuzz_core.c"
#undef LLVMFuzzerTestOneInput
#define LLVMFuzzerTestOneInput fuzz_address_play
#include "../../fuzz/fuzz_address.c"
#undef LLVMFuzzerTestOneInput
#define LLVMFuzzerTestOneInput fuzz_options_play
#include "../../fuzz/fuzz_options.c"
#undef LLVMFuzzerTestOneInput
#define LLVMFuzzerTestOneInput fuzz_api_play
#include "../../fuzz/fuzz_api.c"
#undef LLVMFuzzerTestOneInput

#define LINE_MAX_LENGTH 4096

typedef int (*target)(const uint8_t *data, size_t size);

static unsigned digit(char byte) {
  const char *digits = "0123456789abcdef";
  const char *found = byte == '\0' ? NULL : strchr(digits, byte);
  assert_non_null(found);
  return (unsigned)(found - digits);
}

/* One input, in memory that ends where it does, so that a sanitizer sees a read beyond it. */
static void play_line(target play, const char *line, size_t digits) {
  size_t size = digits / 2;
  uint8_t *bytes = malloc(size > 0 ? size : 1);
  assert_non_null(bytes);
  for (size_t i = 0; i < size; i++) {
    bytes[i] = (uint8_t)(digit(line[2 * i]) * 16 + digit(line[2 * i + 1]));
  }
  assert_int_equal(play(bytes, size), 0);
  free(bytes);
}

/* The corpus lies beside this directory. */
static void play_corpus(target play, const char *name, unsigned least) {
  const char *slash = strrchr(__FILE__, '/');
  char path[512];
  char line[LINE_MAX_LENGTH];
  unsigned played = 0;
  (void)snprintf(path, sizeof path, "%.*s../../fuzz/corpus/%s.hex",
                 slash == NULL ? 0 : (int)(slash - __FILE__ + 1), __FILE__, name);
  FILE *file = fopen(path, "r");
  if (file == NULL) {
    print_message("%s is not there\n", path);
  }
  assert_non_null(file);
  while (fgets(line, sizeof line, file) != NULL) {
    size_t length = strcspn(line, "\n");
    assert_true(line[length] == '\n' && length % 2 == 0);
    play_line(play, line, length);
    played++;
  }
  (void)fclose(file);
  print_message("%s: %u inputs\n", name, played);
  assert_true(played >= least);
}

TEST(core_takes_its_corpus) {
  play_corpus(fuzz_core_play, "core", 100);
}

TEST(addresses_take_their_corpus) {
  play_corpus(fuzz_address_play, "address", 50);
}

TEST(options_take_their_corpus) {
  play_corpus(fuzz_options_play, "options", 20);
}

TEST(api_takes_its_corpus) {
  play_corpus(fuzz_api_play, "api", 50);
}

/* Inputs that nobody chose: the same ones each time. */
TEST(every_target_takes_random_inputs) {
  static const struct {
    target play;
    unsigned rounds;
  } targets[] = {{fuzz_core_play, 1500},
                 {fuzz_address_play, 5000},
                 {fuzz_options_play, 5000},
                 {fuzz_api_play, 30}};
  uint32_t seed = 2463534242;
  for (unsigned i = 0; i < COUNT_OF(targets); i++) {
    for (unsigned round = 0; round < targets[i].rounds; round++) {
      uint8_t bytes[200];
      for (size_t at = 0; at < sizeof bytes; at++) {
        seed ^= seed << 13;
        seed ^= seed >> 17;
        seed ^= seed << 5;
        bytes[at] = (uint8_t)(seed >> 11);
      }
      assert_int_equal(targets[i].play(bytes, seed % sizeof bytes), 0);
    }
  }
}
