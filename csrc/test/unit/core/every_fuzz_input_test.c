/*
 * Plays the corpus of every fuzz target without libFuzzer: the core, rl_address, rl_options and
 * redlock.h.
 *
 * SPDX-License-Identifier: MIT
 */
#include "corpus.h"
#include "fake_clock.h"

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

TEST(core_takes_its_corpus) {
  corpus_play(fuzz_core_play, "core", 100);
}

TEST(addresses_take_their_corpus) {
  corpus_play(fuzz_address_play, "address", 50);
}

TEST(options_take_their_corpus) {
  corpus_play(fuzz_options_play, "options", 20);
}

TEST(api_takes_its_corpus) {
  corpus_play(fuzz_api_play, "api", 50);
}

TEST(every_target_takes_random_inputs) {
  corpus_play_random(fuzz_core_play, 1500);
  corpus_play_random(fuzz_address_play, 5000);
  corpus_play_random(fuzz_options_play, 5000);
  corpus_play_random(fuzz_api_play, 30);
}
