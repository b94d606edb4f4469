/*
 * The witness measures the delays of this process and no other time.
 *
 * SPDX-License-Identifier: MIT
 */
#include "rl_test.h"

#include <signal.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static void pause_us(long us) {
  const struct timespec time = {.tv_sec = us / 1000000, .tv_nsec = us % 1000000 * 1000};
  (void)nanosleep(&time, NULL);
}

/* A child stops this process for |us|, as a busy machine does. */
static void stop_for_us(long us) {
  pid_t parent = getpid();
  pid_t child = fork();
  if (child == 0) {
    (void)kill(parent, SIGSTOP);
    pause_us(us);
    (void)kill(parent, SIGCONT);
    _exit(0);
  }
  assert_int_equal(waitpid(child, NULL, 0), child);
}

static void witness_measures_a_stop(void **state) {
  witness_start();
  pause_us(2000);
  redlock_time began_us = redlock_now();
  stop_for_us(100000);
  assert_true(witness_delay_us(began_us) >= 80000);
}

static void within_repeats_a_stalled_block(void **state) {
  unsigned runs = 0;
  within (50 * MS) {
    if (++runs == 1) {
      stop_for_us(100000);
    }
  }
  assert_true(runs >= 2);
}

/* Negative control: a sleep is no delay, because the witness was not late. */
static void sleeping_is_no_delay(void **state) {
  witness_start();
  redlock_duration excess_us = 0;
  for (int i = 0; i < 200 && excess_us < 20 * MS; i++) { /* one undisturbed sleep is enough */
    redlock_time began_us = redlock_now();
    pause_us(50000);
    excess_us = redlock_now() - began_us - witness_delay_us(began_us);
  }
  assert_true(excess_us >= 20 * MS);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(witness_measures_a_stop),
      cmocka_unit_test(within_repeats_a_stalled_block),
      cmocka_unit_test(sleeping_is_no_delay),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
