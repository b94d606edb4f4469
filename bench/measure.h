/*
 * Shared by the peers of the benchmark, so that all are measured alike: the clock, histograms that
 * never allocate, the protocol with bench/run, and the line that reports a measurement.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef BENCH_MEASURE_H
#define BENCH_MEASURE_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/resource.h>

/* 32 buckets for each doubling: the middle of one is within 1.6 % of what it holds. */
#define BENCH_BUCKET_BITS 6
#define BENCH_BUCKETS ((64 - BENCH_BUCKET_BITS + 1) << BENCH_BUCKET_BITS)

typedef struct bench_histogram {
  uint64_t count;
  uint32_t buckets[BENCH_BUCKETS];
} bench_histogram;

typedef struct bench_result {
  uint64_t pairs;
  uint64_t failures;
  uint64_t started_ns;
  uint64_t ended_ns;
  struct rusage usage;  /* at the start */
  uint64_t allocations; /* at the start; stays 0 without bench/alloc_count.c */
  bench_histogram acquire;
  bench_histogram release;
  bench_histogram pair;
} bench_result;

/* When a measurement ends: at whatever comes first. */
typedef struct bench_goal {
  uint64_t pairs;
  uint64_t end_ns;
} bench_goal;

/* Runs acquire+release pairs until the goal is reached and records each with bench_record(). */
typedef void bench_run_function(void *peer, const bench_goal *goal, bench_result *result);

#define BENCH_NAME_SIZE 32

uint64_t bench_now_ns(void);

/* The name of lock |index|. It is unique to the peer, because stopped peers leave keys. */
void bench_name(char *name, size_t size, unsigned index);

void bench_result_begin(bench_result *result);

/* Records a pair that began at |begun_ns|, held the lock at |held_ns| and ended at |ended_ns|. */
void bench_record(bench_result *result, uint64_t begun_ns, uint64_t held_ns, uint64_t ended_ns);

/* Prints the line of a measurement that has just ended. */
void bench_result_print(bench_result *result, FILE *file);

/*
 * Reads "pairs <n>" or "seconds <s>" from a line of bench/run. Returns false at "quit" and at
 * anything else.
 */
bool bench_goal_read(const char *line, bench_goal *goal);

/* Prints "ready", then measures as the lines on stdin say, until "quit" or the end. */
void bench_serve(bench_run_function *run, void *peer, bench_result *result);

/* Prints why to stderr and ends the program. */
_Noreturn void bench_die(const char *format, ...) __attribute__((format(printf, 1, 2)));

#endif
