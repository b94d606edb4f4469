/*
 * Fuzz target: options of any content and any size. Accepted options give figures within bounds.
 *
 * SPDX-License-Identifier: MIT
 */
#include <stddef.h>
#include <string.h>

#include "../../core/base/rl_validity.h"
#include "../../core/options/rl_backoff.h"
#include "../../core/options/rl_options.h"
#include "fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  fuzz_input input = {data, size};
  struct {
    redlock_options options;
    unsigned char more[64];
  } from;
  redlock_options known;
  rl_options read;
  char label[REDLOCK_LABEL_MAX + 8];
  uint64_t random = 0;
  const uint8_t *bytes;
  size_t length = fuzz_bytes(&input, &bytes, sizeof random);
  memcpy(&random, bytes, length);
  rl_options_default(&read);
  memset(&from, 0, sizeof from);
  /* The fuzzer sets a field if its bit is set: so the other fields can be valid. */
  uint8_t fields = fuzz_byte(&input), how = 0;
  for (unsigned i = 0; i < offsetof(redlock_options, label) / sizeof(redlock_duration); i++) {
    if (i == 8) { /* Newer fields stand behind the bytes of the older corpus. */
      how = fuzz_byte(&input);
      fields = fuzz_byte(&input);
    }
    size_t at = i * sizeof(redlock_duration);
    length = fields & (1U << i % 8) ? fuzz_bytes(&input, &bytes, sizeof(redlock_duration)) : 0;
    memcpy((unsigned char *)&from + at, bytes, length);
  }
  length = fuzz_bytes(&input, &bytes, sizeof label - 1);
  memcpy(label, bytes, length);
  label[length] = '\0';
  from.options.label = length > 0 ? label : NULL;
  size_t given_size = how % 2 == 0 ? sizeof from.options : how < 128 ? how : sizeof from;
  given_size = given_size < sizeof from ? given_size : sizeof from;
  const char *wrong = rl_option_fit(&rl_options_of_lock, &known, &from, given_size);
  wrong = wrong != NULL ? wrong : rl_options_read(&read, &known);
  if (wrong != NULL) {
    fuzz_require(wrong[0] != '\0');
    return 0;
  }
  fuzz_require(read.ttl_us >= 1000 && read.ttl_us <= REDLOCK_TTL_MAX_US && read.ttl_us % 1000 == 0);
  fuzz_require(read.drift_factor >= 0.0 && read.drift_factor < 1.0);
  fuzz_require(read.label.length == strlen(read.label.text));
  fuzz_require(read.label.length == 0 || (rl_label_is_valid(read.label.text, read.label.length) &&
                                          strcmp(read.label.text, label) == 0));
  fuzz_require(rl_options_attempts(&read) >= 1);
  fuzz_require(rl_options_node_timeout(&read, read.ttl_us) <= REDLOCK_TTL_MAX_US);
  fuzz_require(rl_options_key_ms(&read, read.ttl_us) >= read.ttl_us / 1000);
  redlock_duration pause_us = rl_backoff_attempt(&read, random);
  fuzz_require(pause_us >= 1000 && pause_us <= 2 * REDLOCK_TTL_MAX_US);
  redlock_time deadline_us = rl_validity_deadline(random, read.ttl_us, read.drift_factor);
  fuzz_require(deadline_us >= random);
  fuzz_require(deadline_us - random <= read.ttl_us);
  fuzz_require(rl_validity_deadline(0, read.ttl_us, read.drift_factor) >= 1000);
  fuzz_require(rl_validity_drift(read.ttl_us, read.drift_factor) >= 2000);
  return 0;
}
