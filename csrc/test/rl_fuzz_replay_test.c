/*
 * Plays the corpus of every fuzz target, without libFuzzer.
 *
 * SPDX-License-Identifier: MIT
 */
#include <dirent.h>

#include "rl_test.h"

#define LLVMFuzzerTestOneInput fuzz_core_play
#include "fuzz/fuzz_core.c"
#undef LLVMFuzzerTestOneInput
#define LLVMFuzzerTestOneInput fuzz_address_play
#include "fuzz/fuzz_address.c"
#undef LLVMFuzzerTestOneInput
#define LLVMFuzzerTestOneInput fuzz_options_play
#include "fuzz/fuzz_options.c"
#undef LLVMFuzzerTestOneInput
#define LLVMFuzzerTestOneInput fuzz_api_play
#include "fuzz/fuzz_api.c"
#undef LLVMFuzzerTestOneInput

#define INPUT_MAX 65536

typedef int (*target)(const uint8_t *data, size_t size);

/* The corpus lies beside this file. */
static void corpus_path(char *out, size_t size, const char *name) {
  const char *slash = strrchr(__FILE__, '/');
  int length = slash == NULL ? 0 : (int)(slash - __FILE__ + 1);
  (void)snprintf(out, size, "%.*sfuzz/corpus/%s", length, __FILE__, name);
}

static void play_file(target play, const char *path) {
  uint8_t *bytes = malloc(INPUT_MAX);
  FILE *file = fopen(path, "rb");
  assert_non_null(bytes);
  assert_non_null(file);
  size_t size = fread(bytes, 1, INPUT_MAX, file);
  (void)fclose(file);
  /* In memory that ends where the input does, so that a sanitizer sees a read beyond it. */
  uint8_t *exact = malloc(size > 0 ? size : 1);
  assert_non_null(exact);
  memcpy(exact, bytes, size);
  free(bytes);
  assert_int_equal(play(exact, size), 0);
  free(exact);
}

static void play_corpus(target play, const char *name, unsigned least) {
  char directory_path[512];
  char path[1024];
  unsigned played = 0;
  corpus_path(directory_path, sizeof directory_path, name);
  DIR *directory = opendir(directory_path);
  if (directory == NULL) {
    print_message("%s is not there\n", directory_path);
  }
  assert_non_null(directory);
  struct dirent *entry;
  while ((entry = readdir(directory)) != NULL) {
    if (entry->d_name[0] != '.') {
      (void)snprintf(path, sizeof path, "%s/%s", directory_path, entry->d_name);
      play_file(play, path);
      played++;
    }
  }
  (void)closedir(directory);
  print_message("%s: %u inputs\n", name, played);
  assert_true(played >= least);
}

static void the_core_takes_its_corpus(void **state) {
  (void)state;
  play_corpus(fuzz_core_play, "core", 100);
}

static void addresses_take_their_corpus(void **state) {
  (void)state;
  play_corpus(fuzz_address_play, "address", 50);
}

static void options_take_their_corpus(void **state) {
  (void)state;
  play_corpus(fuzz_options_play, "options", 20);
}

static void the_api_takes_its_corpus(void **state) {
  (void)state;
  play_corpus(fuzz_api_play, "api", 50);
}

/* Inputs that nobody chose: the same ones each time. */
static void every_target_takes_random_inputs(void **state) {
  (void)state;
  static const struct {
    target play;
    unsigned rounds;
  } targets[] = {{fuzz_core_play, 1500}, {fuzz_address_play, 5000}, {fuzz_options_play, 5000},
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

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(the_core_takes_its_corpus),
      cmocka_unit_test(addresses_take_their_corpus),
      cmocka_unit_test(options_take_their_corpus),
      cmocka_unit_test(the_api_takes_its_corpus),
      cmocka_unit_test(every_target_takes_random_inputs),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
