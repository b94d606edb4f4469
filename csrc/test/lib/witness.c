/* SPDX-License-Identifier: MIT */
#include "witness.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

#include "witness_clock.h"

/* A machine that stalls this often in a row is no longer slow: the test itself stalls. */
#define REPETITIONS_MAX 20

void witness_start(void) {
  int error = witness_clock_start();
  if (error != 0) {
    fail_msg("no thread for the witness: error %d", error);
  }
}

redlock_duration witness_delay_us(redlock_time since_us) {
  return (redlock_duration)witness_clock_delay_us((int64_t)(redlock_now() - since_us));
}

witness_round witness_begin(redlock_duration bound_us, const char *file, int line) {
  witness_start();
  return (witness_round){.bound_us = bound_us, .file = file, .line = line};
}

bool witness_more(witness_round *round) {
  if (round->started) {
    redlock_duration took_us = redlock_now() - round->began_us;
    redlock_duration delay_us = witness_delay_us(round->began_us);
    if (delay_us <= round->bound_us || round->repetitions == REPETITIONS_MAX) {
      if (took_us > round->bound_us + delay_us) {
        fail_msg(
            "%s:%d: took %lld us; the bound is %lld us, and the scheduler delayed the process by %lld us",
            round->file, round->line, (long long)took_us, (long long)round->bound_us,
            (long long)delay_us);
      }
      return false;
    }
    round->repetitions++;
    print_message("# repeated: %s:%d, a stall of %lld us\n", round->file, round->line,
                  (long long)delay_us);
  }
  round->started = true;
  round->began_us = redlock_now();
  return true;
}
