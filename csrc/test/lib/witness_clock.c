/* SPDX-License-Identifier: MIT */
#include "witness_clock.h"

#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <time.h>
#include <unistd.h>

#define BEAT_US 1000
/* A wake-up that is later than this counts as a delay; less is the ordinary price of a timer. */
#define ORDINARY_US 200
#define RECORDS 4096

/*
 * One thread writes, other threads read: a record is complete before |written| counts it. A reader
 * that is overtaken by 4,096 delays reads delays that are too recent, which only widens a bound.
 */
static struct {
  atomic_long pid;
  atomic_uint_fast32_t written;
  atomic_int_fast64_t beat_us; /* time of the latest wake-up */
  atomic_int_fast64_t ended_us[RECORDS];
  atomic_int_fast64_t delay_us[RECORDS];
} witness;

int64_t witness_clock_now_us(void) {
  struct timespec now;
  (void)clock_gettime(CLOCK_MONOTONIC, &now);
  return (int64_t)now.tv_sec * 1000000 + now.tv_nsec / 1000;
}

static void note(int64_t delay_us, int64_t now_us) {
  if (delay_us > ORDINARY_US) {
    uint_fast32_t place = atomic_load(&witness.written) % RECORDS;
    atomic_store(&witness.ended_us[place], now_us);
    atomic_store(&witness.delay_us[place], delay_us);
    atomic_fetch_add(&witness.written, 1);
  }
}

static void *watch(void *unused) {
  const struct timespec beat = {.tv_nsec = BEAT_US * 1000};
  (void)unused;
  /* The thread itself may have begun late. */
  int64_t slept_us = witness_clock_now_us();
  note(slept_us - atomic_load(&witness.beat_us), slept_us);
  for (;;) {
    atomic_store(&witness.beat_us, slept_us);
    (void)nanosleep(&beat, NULL);
    int64_t now_us = witness_clock_now_us();
    note(now_us - slept_us - BEAT_US, now_us);
    slept_us = now_us;
  }
  return NULL;
}

int witness_clock_start(void) {
  pthread_t thread;
  sigset_t all, usual;
  if (atomic_exchange(&witness.pid, (long)getpid()) == (long)getpid()) {
    return 0;
  }
  atomic_store(&witness.beat_us, witness_clock_now_us());
  (void)sigfillset(&all); /* Signals of the test must not end up in this thread. */
  (void)pthread_sigmask(SIG_SETMASK, &all, &usual);
  int error = pthread_create(&thread, NULL, watch, NULL);
  (void)pthread_sigmask(SIG_SETMASK, &usual, NULL);
  if (error == 0) {
    error = pthread_detach(thread);
  }
  return error;
}

/* Returns the part of a delay that lies behind |since_us|. */
static int64_t part_since(int64_t since_us, int64_t ended_us, int64_t delay_us) {
  int64_t after_us = ended_us - since_us;
  if (after_us <= 0) {
    return 0;
  }
  return after_us < delay_us ? after_us : delay_us;
}

int64_t witness_clock_delay_us(int64_t span_us) {
  int64_t now_us = witness_clock_now_us();
  int64_t since_us = now_us - span_us;
  int64_t under_way_us = now_us - atomic_load(&witness.beat_us) - BEAT_US;
  int64_t sum_us = under_way_us > ORDINARY_US ? part_since(since_us, now_us, under_way_us) : 0;
  uint_fast32_t written = atomic_load(&witness.written);
  uint_fast32_t oldest = written > RECORDS ? written - RECORDS : 0;
  for (uint_fast32_t i = written; i > oldest; i--) {
    int64_t ended_us = atomic_load(&witness.ended_us[(i - 1) % RECORDS]);
    if (ended_us <= since_us) {
      break;
    }
    sum_us += part_since(since_us, ended_us, atomic_load(&witness.delay_us[(i - 1) % RECORDS]));
  }
  return sum_us;
}
