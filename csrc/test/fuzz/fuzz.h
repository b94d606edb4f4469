/*
 * Helpers of the fuzz targets: they read a program from the fuzzer's bytes.
 *
 * SPDX-License-Identifier: MIT
 *
 * Built with clang -fsanitize=fuzzer,address,undefined from a fuzz_*.c, fake_*.c, loopback.c, the
 * core and the driver. Without libFuzzer every_fuzz_input_test.c includes the targets and plays the
 * corpus, one input in hexadecimal on each line; `make fuzz` makes files of it for libFuzzer
 * (fuzz.mk).
 */
#ifndef FUZZ_H
#define FUZZ_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

typedef struct fuzz_input {
  const uint8_t *bytes;
  size_t left;
} fuzz_input;

/* 0 when there is nothing left. */
static inline uint8_t fuzz_byte(fuzz_input *input) {
  if (input->left == 0) {
    return 0;
  }
  input->left--;
  return *input->bytes++;
}

/* Reads at most |most| bytes of the rest. Returns their number. */
static inline size_t fuzz_bytes(fuzz_input *input, const uint8_t **bytes, size_t most) {
  size_t length = input->left < most ? input->left : most;
  *bytes = input->bytes;
  input->bytes += length;
  input->left -= length;
  return length;
}

/* A property that does not hold is a finding, with assertions compiled in or not. */
#define fuzz_require(condition)                                                                    \
  do {                                                                                             \
    if (!(condition)) {                                                                            \
      (void)fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, #condition);                        \
      abort();                                                                                     \
    }                                                                                              \
  } while (0)

#endif
