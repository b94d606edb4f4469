/*
 * Replays the corpus of the fuzz target for TLS without libFuzzer.
 *
 * SPDX-License-Identifier: MIT
 */
#include "corpus.h"

#define LLVMFuzzerTestOneInput fuzz_tls_play
#include "../../fuzz/fuzz_tls.c"
#undef LLVMFuzzerTestOneInput

TEST(corpus_is_accepted) {
  corpus_play(fuzz_tls_play, "tls", 100);
}

TEST(random_inputs_are_accepted) {
  corpus_play_random(fuzz_tls_play, 300);
}
