/*
 * See measure.h.
 *
 * SPDX-License-Identifier: MIT
 */
#include "measure.h"

#include <dlfcn.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

uint64_t bench_now_ns(void) {
  struct timespec now;

  clock_gettime(CLOCK_MONOTONIC, &now);
  return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

void bench_name(char *name, size_t size, unsigned index) {
  snprintf(name, size, "bench:%08ld:%04u", (long)getpid(), index);
}

void bench_die(const char *format, ...) {
  va_list arguments;

  va_start(arguments, format);
  vfprintf(stderr, format, arguments);
  va_end(arguments);
  fputc('\n', stderr);
  exit(1);
}

/* The counter lives in a preloaded object, which most runs do not have. */
static uint64_t bench_allocations(void) {
  void *symbol = dlsym(RTLD_DEFAULT, "bench_allocation_count");
  uint64_t (*count)(void) = NULL;

  if (symbol == NULL)
    return 0;
  memcpy(&count, &symbol, sizeof count);
  return count();
}

static unsigned bench_bucket_of(uint64_t value) {
  unsigned shift = 0;

  if (value >= (1u << BENCH_BUCKET_BITS))
    shift = 63u - (unsigned)__builtin_clzll(value) - BENCH_BUCKET_BITS + 1;
  if (shift == 0)
    return (unsigned)value;
  return (shift << BENCH_BUCKET_BITS) + (unsigned)(value >> shift);
}

static uint64_t bench_bucket_middle(unsigned bucket) {
  unsigned shift = bucket >> BENCH_BUCKET_BITS;
  uint64_t mantissa = bucket & ((1u << BENCH_BUCKET_BITS) - 1);

  if (shift == 0)
    return mantissa;
  return (mantissa << shift) + ((uint64_t)1 << shift) / 2;
}

static void bench_histogram_add(bench_histogram *histogram, uint64_t value) {
  histogram->count++;
  histogram->buckets[bench_bucket_of(value)]++;
}

static double bench_percentile_us(const bench_histogram *histogram, double fraction) {
  double rank = fraction * (double)histogram->count;
  uint64_t seen = 0;

  for (unsigned bucket = 0; bucket < BENCH_BUCKETS; bucket++) {
    seen += histogram->buckets[bucket];
    if (seen > 0 && (double)seen >= rank)
      return (double)bench_bucket_middle(bucket) / 1000.0;
  }
  return 0;
}

void bench_result_begin(bench_result *result) {
  memset(result, 0, sizeof *result);
  getrusage(RUSAGE_SELF, &result->usage);
  result->allocations = bench_allocations();
  result->started_ns = bench_now_ns();
}

void bench_record(bench_result *result, uint64_t begun_ns, uint64_t held_ns, uint64_t ended_ns) {
  result->pairs++;
  bench_histogram_add(&result->acquire, held_ns - begun_ns);
  bench_histogram_add(&result->release, ended_ns - held_ns);
  bench_histogram_add(&result->pair, ended_ns - begun_ns);
}

static double bench_cpu_us(const struct timeval *from, const struct timeval *to) {
  return (double)(to->tv_sec - from->tv_sec) * 1e6 + (double)(to->tv_usec - from->tv_usec);
}

static void bench_percentiles_print(const bench_histogram *histogram, const char *name,
                                    FILE *file) {
  fprintf(file, " %s_p50=%.1f %s_p99=%.1f %s_p999=%.1f", name, bench_percentile_us(histogram, 0.5),
          name, bench_percentile_us(histogram, 0.99), name, bench_percentile_us(histogram, 0.999));
}

void bench_result_print(bench_result *result, FILE *file) {
  uint64_t allocations = bench_allocations() - result->allocations;
  struct rusage usage;
  double pairs = result->pairs > 0 ? (double)result->pairs : 1;
  double seconds;

  result->ended_ns = bench_now_ns();
  getrusage(RUSAGE_SELF, &usage);
  seconds = (double)(result->ended_ns - result->started_ns) / 1e9;
  fprintf(file, "pairs=%llu seconds=%.6f rate=%.1f", (unsigned long long)result->pairs, seconds,
          (double)result->pairs / seconds);
  bench_percentiles_print(&result->acquire, "acquire", file);
  bench_percentiles_print(&result->release, "release", file);
  bench_percentiles_print(&result->pair, "pair", file);
  fprintf(file, " user_us=%.2f sys_us=%.2f allocations=%llu failures=%llu\n",
          bench_cpu_us(&result->usage.ru_utime, &usage.ru_utime) / pairs,
          bench_cpu_us(&result->usage.ru_stime, &usage.ru_stime) / pairs,
          (unsigned long long)allocations, (unsigned long long)result->failures);
  fflush(file);
}

bool bench_goal_read(const char *line, bench_goal *goal) {
  unsigned long long pairs;
  double seconds;

  if (sscanf(line, "pairs %llu", &pairs) == 1) {
    *goal = (bench_goal){.pairs = pairs, .end_ns = UINT64_MAX};
    return true;
  }
  if (sscanf(line, "seconds %lf", &seconds) == 1) {
    *goal = (bench_goal){.pairs = UINT64_MAX, .end_ns = bench_now_ns() + (uint64_t)(seconds * 1e9)};
    return true;
  }
  return false;
}

void bench_serve(bench_run_function *run, void *peer, bench_result *result) {
  char line[128];
  bench_goal goal;

  puts("ready");
  fflush(stdout);
  while (fgets(line, sizeof line, stdin) != NULL && bench_goal_read(line, &goal)) {
    bench_result_begin(result);
    run(peer, &goal, result);
    bench_result_print(result, stdout);
  }
}
