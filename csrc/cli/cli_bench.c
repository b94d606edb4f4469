/*
 * redlock bench: measures how fast the nodes grant and release a lock.
 *
 * SPDX-License-Identifier: MIT
 *
 * The lock has a random name, so that it disturbs no other lock. One acquire or release is in
 * flight at a time: the figures are those of one client.
 */
#include <stdio.h>
#include <string.h>

#include "cli.h"
#include "cli_output.h"

/* ------------------------------------------------------------------------------------ histogram */

/*
 * Times in buckets that are at most 1/32 wide: exact up to 64 us, then 32 buckets for each power of
 * two, up to 2^40 us.
 */
#define CLI_BENCH_STEPS 32
#define CLI_BENCH_BUCKETS (CLI_BENCH_STEPS * 36)

typedef struct cli_times {
  uint64_t count;
  redlock_duration least_us, most_us;
  uint32_t buckets[CLI_BENCH_BUCKETS];
} cli_times;

static size_t cli_times_bucket(redlock_duration time_us) {
  unsigned shift = 0;
  while (time_us >> shift >= 2 * CLI_BENCH_STEPS) {
    shift++;
  }
  size_t bucket = shift * CLI_BENCH_STEPS + (size_t)(time_us >> shift);
  return bucket < CLI_BENCH_BUCKETS ? bucket : CLI_BENCH_BUCKETS - 1;
}

/* Returns the greatest time of a bucket. */
static redlock_duration cli_times_most(size_t bucket) {
  unsigned shift = bucket < 2 * CLI_BENCH_STEPS ? 0 : (unsigned)(bucket / CLI_BENCH_STEPS) - 1;
  redlock_duration step = bucket - (size_t)shift * CLI_BENCH_STEPS;
  return ((step + 1) << shift) - 1;
}

static void cli_times_add(cli_times *times, redlock_duration time_us) {
  times->least_us = times->count == 0 || time_us < times->least_us ? time_us : times->least_us;
  times->most_us = time_us > times->most_us ? time_us : times->most_us;
  times->count++;
  times->buckets[cli_times_bucket(time_us)]++;
}

/* Returns the time that |thousandths| of all do not exceed, rounded up to a bucket's greatest. */
static redlock_duration cli_times_percentile(const cli_times *times, unsigned thousandths) {
  uint64_t rank = (times->count * thousandths + 999) / 1000;
  uint64_t seen = 0;
  for (size_t i = 0; i < CLI_BENCH_BUCKETS; i++) {
    seen += times->buckets[i];
    if (seen >= rank) {
      return cli_times_most(i) < times->most_us ? cli_times_most(i) : times->most_us;
    }
  }
  return times->most_us;
}

/* ------------------------------------------------------------------------------------------ run */

typedef struct cli_bench_run {
  redlock_duration duration_us; /* that passed */
  uint64_t failures;
  char message[512]; /* of the last failure */
  cli_times acquires, releases;
} cli_bench_run;

/* Awaits an operation and adds its time. Returns -1, or the exit status. */
static int cli_bench_operation(const cli_settings *settings, cli_loop *loop, redlock_lock *lock,
                               int error, cli_bench_run *run, cli_times *times) {
  redlock_time begun_us = redlock_now();
  int status = cli_await(settings, loop, lock, error);
  if (status >= 0) {
    return status;
  }
  int result = redlock_lock_result(lock);
  if (result == REDLOCK_OK) {
    cli_times_add(times, redlock_now() - begun_us);
  } else {
    run->failures++;
    (void)snprintf(run->message, sizeof run->message, "%s", redlock_lock_message(lock));
  }
  return -1;
}

/* Acquires and releases once. Returns as above. */
static int cli_bench_pair(const cli_settings *settings, cli_loop *loop, redlock_lock *lock,
                          cli_bench_run *run) {
  int error = redlock_lock_acquire_start(lock, NULL);
  int status = cli_bench_operation(settings, loop, lock, error, run, &run->acquires);
  if (status < 0 && redlock_lock_remaining(lock) > 0) {
    error = redlock_lock_release_start(lock);
    status = cli_bench_operation(settings, loop, lock, error, run, &run->releases);
  }
  return status;
}

/* Acquires and releases until the time is over. Returns as above. */
static int cli_bench_measure(const cli_settings *settings, cli_loop *loop, redlock_lock *lock,
                             cli_bench_run *run) {
  int status = cli_bench_pair(settings, loop, lock, run);
  redlock_time begun_us = redlock_now();
  memset(run, 0, sizeof *run); /* The first acquire connects, and does not count. */
  while (status < 0 && (run->duration_us == 0 || run->duration_us < settings->duration_us)) {
    status = cli_bench_pair(settings, loop, lock, run);
    run->duration_us = redlock_now() - begun_us;
  }
  return status;
}

static double cli_bench_rate(const cli_bench_run *run) {
  return (double)run->acquires.count * (double)REDLOCK_SECONDS /
         (double)(run->duration_us > 0 ? run->duration_us : 1);
}

/* --------------------------------------------------------------------------------------- output */

static int cli_bench_row(void *context, size_t index, cli_cell cells[static CLI_COLUMNS_MAX]) {
  static const unsigned thousandths[] = {500, 900, 990, 999};
  const cli_bench_run *run = context;
  const cli_times *times = index == 0 ? &run->acquires : &run->releases;
  cells[0].text = index == 0 ? "acquire" : "release";
  cells[1] = (cli_cell){.kind = CLI_NUMBER, .number = times->count};
  if (times->count > 0) {
    cells[2] = (cli_cell){.kind = CLI_TIME, .number = times->least_us};
    for (size_t i = 0; i < sizeof thousandths / sizeof thousandths[0]; i++) {
      cells[3 + i] =
          (cli_cell){.kind = CLI_TIME, .number = cli_times_percentile(times, thousandths[i])};
    }
    cells[7] = (cli_cell){.kind = CLI_TIME, .number = times->most_us};
  }
  return index < 2 ? CLI_ROW_SHOW : CLI_ROW_END;
}

static const cli_column cli_bench_columns[] = {
    {"OPERATION", NULL},   {"COUNT", "count"},  {"LEAST", "least_ms"},
    {"P50", "p50_ms"},     {"P90", "p90_ms"},   {"P99", "p99_ms"},
    {"P99.9", "p99_9_ms"}, {"MOST", "most_ms"}, {0}};

/* Upper bounds of the rows of the printed histogram: 1, 2, 5 times a power of ten. */
static redlock_duration cli_bench_bound(size_t row) {
  static const unsigned steps[] = {1, 2, 5};
  redlock_duration bound_us = 10 * (redlock_duration)steps[row % 3];
  for (size_t i = 0; i < row / 3; i++) {
    bound_us *= 10;
  }
  return bound_us;
}
#define CLI_BENCH_ROWS 24 /* up to 5,000 s */

/* Counts the times of each row, by the greatest time of each bucket. */
static void cli_bench_rows(const cli_times *times, uint64_t rows[static CLI_BENCH_ROWS]) {
  size_t row = 0;
  memset(rows, 0, CLI_BENCH_ROWS * sizeof *rows);
  for (size_t i = 0; i < CLI_BENCH_BUCKETS; i++) {
    while (row + 1 < CLI_BENCH_ROWS && cli_times_most(i) > cli_bench_bound(row)) {
      row++;
    }
    rows[row] += times->buckets[i];
  }
}

/* Prints the rows from the first to the last that is not empty. */
static void cli_bench_histogram(const cli_times *times) {
  uint64_t rows[CLI_BENCH_ROWS];
  uint64_t most = 1;
  size_t first = CLI_BENCH_ROWS;
  size_t last = 0;
  cli_bench_rows(times, rows);
  for (size_t i = 0; i < CLI_BENCH_ROWS; i++) {
    most = rows[i] > most ? rows[i] : most;
    first = i < first && rows[i] > 0 ? i : first;
    last = rows[i] > 0 ? i : last;
  }
  (void)puts("\nacquires by time:");
  for (size_t i = first; i <= last; i++) {
    static const char bar[] = "##################################################";
    char bound[24];
    size_t length = (size_t)((rows[i] * (sizeof bar - 1) + most - 1) / most);
    (void)printf("  <= %8s ", cli_format_time(bound, cli_bench_bound(i)));
    cli_put_color(CLI_GOOD, bar + sizeof bar - 1 - length);
    (void)printf("%*s %llu\n", (int)(sizeof bar - 1 - length), "", (unsigned long long)rows[i]);
  }
}

static void cli_bench_text(const cli_settings *settings, cli_bench_run *run) {
  char duration[24];
  const cli_table table = {cli_bench_row, run, cli_bench_columns};
  (void)printf("%.1f locks per second on %zu nodes, for %s; %llu failures\n", cli_bench_rate(run),
               settings->node_count, cli_format_time(duration, run->duration_us),
               (unsigned long long)run->failures);
  if (run->acquires.count > 0 && !settings->quiet) {
    cli_put_table(&table);
    cli_bench_histogram(&run->acquires);
  }
}

static void cli_bench_json(const cli_settings *settings, cli_bench_run *run, redlock_lock *lock) {
  cli_json json = cli_json_begin_lock(lock);
  uint64_t rows[CLI_BENCH_ROWS];
  cli_bench_rows(&run->acquires, rows);
  cli_json_number(&json, "nodes", settings->node_count);
  cli_json_time(&json, "duration_ms", run->duration_us);
  cli_json_number(&json, "failures", run->failures);
  cli_json_text(&json, "error", run->failures > 0 ? run->message : NULL);
  cli_json_real(&json, "locks_per_second", cli_bench_rate(run));
  for (size_t i = 0; i < 2; i++) {
    cli_cell cells[CLI_COLUMNS_MAX] = {{0}};
    (void)cli_bench_row(run, i, cells);
    cli_json_begin(&json, cells[0].text, '{');
    cli_json_cells(&json, cli_bench_columns, cells);
    cli_json_end(&json, '}');
  }
  cli_json_begin(&json, "histogram", '[');
  for (size_t i = 0; i < CLI_BENCH_ROWS; i++) {
    if (rows[i] > 0) {
      cli_json_begin(&json, NULL, '{');
      cli_json_time(&json, "le_ms", cli_bench_bound(i));
      cli_json_number(&json, "count", rows[i]);
      cli_json_end(&json, '}');
    }
  }
  cli_json_end(&json, ']');
  cli_json_end_line(&json);
}

/* Prints also what a signal has interrupted. */
int cli_bench(const cli_settings *settings, cli_loop *loop, redlock_lock *lock) {
  cli_bench_run run = {0};
  int status = cli_bench_measure(settings, loop, lock, &run);
  if (status >= 0 && status < 128) {
    return status;
  }
  if (settings->json) {
    cli_bench_json(settings, &run, lock);
  } else {
    cli_bench_text(settings, &run);
  }
  int written = cli_flush();
  if (written != 0 || status >= 0) {
    return written != 0 ? written : status;
  }
  if (run.failures > 0) {
    (void)cli_report(settings, 0, "the last failure: %s", run.message);
  }
  return run.acquires.count > 0 ? 0 : CLI_UNAVAILABLE;
}
