/*
 * The cost of many auto-extended leases: processor time, memory, and the latency of an acquire
 * beside them. One thread with a loop of the program.
 *
 *     leases count seconds rounds address...
 *
 * Each round measures without the leases and then with them, for the given seconds each. The result
 * is the median of the ratios of the two p99.
 *
 * SPDX-License-Identifier: MIT
 */
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "redlock.h"

#define PAIRS_MAX 100000
#define ROUNDS_MAX 100
#define PAUSE_US (5 * REDLOCK_MILLISECONDS) /* between two pairs in the foreground */

static redlock_client *client;
static unsigned lost;
static double measured_bytes; /* without the leases */

static void fail(const char *what) {
  (void)fprintf(stderr, "leases: %s\n", what);
  exit(1);
}

static void turn(redlock_time until_us) {
  struct pollfd fds[REDLOCK_NODES_MAX];
  redlock_time now_us = redlock_now();
  size_t count = redlock_client_pollfds(client, fds, REDLOCK_NODES_MAX);
  int timeout_ms = redlock_client_timeout_ms(client);
  int left_ms = until_us > now_us ? (int)((until_us - now_us + 999) / 1000) : 0;
  timeout_ms = timeout_ms < 0 || timeout_ms > left_ms ? left_ms : timeout_ms;
  (void)poll(fds, (nfds_t)count, timeout_ms);
  if (redlock_client_process(client, fds, count) != REDLOCK_OK) {
    fail("process");
  }
  while (redlock_client_next_lost(client) != NULL) {
    lost++;
  }
}

static int finish(redlock_lock *lock) {
  while (redlock_lock_result(lock) == REDLOCK_PENDING) {
    turn(redlock_now() + REDLOCK_SECONDS);
  }
  while (redlock_client_next_ended(client) != NULL) {
  }
  return redlock_lock_result(lock);
}

static int compare(const void *a, const void *b) {
  const redlock_duration *x = a, *y = b;
  return *x < *y ? -1 : *x > *y;
}

static int compare_ratios(const void *a, const void *b) {
  const double *x = a, *y = b;
  return *x < *y ? -1 : *x > *y;
}

static double cpu_seconds(void) {
  struct rusage usage;
  (void)getrusage(RUSAGE_SELF, &usage);
  return (double)(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) +
         (double)(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec) / 1e6;
}

static double resident_bytes(void) {
  long pages = 0, resident = 0;
  FILE *file = fopen("/proc/self/statm", "r");
  if (file == NULL || fscanf(file, "%ld %ld", &pages, &resident) != 2) {
    fail("/proc/self/statm");
  }
  (void)fclose(file);
  return (double)resident * (double)sysconf(_SC_PAGESIZE);
}

/* Pairs in the foreground for so long; the p99 of what their acquires waited. */
static double measure(const char *what, redlock_lock *lock, redlock_duration for_us) {
  static redlock_duration waits_us[PAIRS_MAX];
  size_t pairs = 0, failed = 0;
  redlock_time began_us = redlock_now(), until_us = began_us + for_us;
  double cpu = cpu_seconds();
  while (redlock_now() < until_us && pairs < PAIRS_MAX) {
    redlock_time before_us = redlock_now();
    if (redlock_lock_acquire_start(lock, NULL) != REDLOCK_OK) {
      fail("acquire");
    }
    failed += finish(lock) != REDLOCK_OK;
    waits_us[pairs++] = redlock_now() - before_us;
    if (redlock_lock_release_start(lock) == REDLOCK_OK) {
      (void)finish(lock);
    }
    for (redlock_time next_us = before_us + PAUSE_US; redlock_now() < next_us;) {
      turn(next_us);
    }
  }
  double seconds = (double)(redlock_now() - began_us) / 1e6;
  qsort(waits_us, pairs, sizeof waits_us[0], compare);
  (void)printf("%-18s %6zu acquires (%zu failed), p50 %llu us, p99 %llu us, max %llu us; client's "
               "processor %.1f %%\n",
               what, pairs, failed, (unsigned long long)waits_us[pairs / 2],
               (unsigned long long)waits_us[pairs * 99 / 100],
               (unsigned long long)waits_us[pairs - 1], 100 * (cpu_seconds() - cpu) / seconds);
  (void)fflush(stdout);
  return (double)waits_us[pairs * 99 / 100];
}

static void take(redlock_lock **locks, size_t count) {
  for (size_t i = 0; i < count; i++) {
    if (redlock_lock_acquire_start(locks[i], NULL) != REDLOCK_OK) {
      fail("acquire");
    }
  }
  for (size_t i = 0; i < count; i++) {
    if (finish(locks[i]) != REDLOCK_OK) {
      fail(redlock_lock_message(locks[i]));
    }
  }
}

static void give_back(redlock_lock **locks, size_t count) {
  for (size_t i = 0; i < count; i++) {
    (void)redlock_lock_release_start(locks[i]);
  }
  for (size_t i = 0; i < count; i++) {
    (void)finish(locks[i]);
  }
}

static redlock_lock **make(size_t count) {
  redlock_lock **locks = malloc(count * sizeof *locks);
  if (locks == NULL) {
    fail("memory");
  }
  memset(locks, 1, count * sizeof *locks); /* Its pages are not the library's. */
  double bytes = resident_bytes();
  for (size_t i = 0; i < count; i++) {
    char name[24];
    int length = snprintf(name, sizeof name, "lease-%zu", i);
    if (redlock_lock_new(&locks[i], client, name, (size_t)length, NULL) != REDLOCK_OK) {
      fail("lock");
    }
  }
  take(locks, count);
  (void)printf("%zu leases, %.0f bytes each in all\n", count,
               (resident_bytes() - bytes) / (double)count);
  measured_bytes = bytes;
  return locks;
}

int main(int argc, char **argv) {
  redlock_options options = {.ttl_us = 10 * REDLOCK_SECONDS,
                             .node_timeout_us = REDLOCK_SECONDS,
                             .auto_extend = REDLOCK_YES};
  redlock_options plain = {.auto_extend = REDLOCK_NO};
  redlock_settings settings = {.options = &options};
  redlock_lock *foreground;
  double ratios[ROUNDS_MAX];
  char message[256];
  if (argc < 5) {
    fail("count seconds rounds address...");
  }
  size_t count = strtoul(argv[1], NULL, 10), rounds = strtoul(argv[3], NULL, 10);
  redlock_duration for_us = strtoul(argv[2], NULL, 10) * REDLOCK_SECONDS;
  if (count == 0 || rounds == 0 || rounds > ROUNDS_MAX ||
      redlock_client_new(&client, &settings, message, sizeof message) != 0) {
    fail("client");
  }
  for (int i = 4; i < argc; i++) {
    if (redlock_client_add(client, argv[i], message, sizeof message) != REDLOCK_OK) {
      fail(message);
    }
  }
  if (redlock_lock_new(&foreground, client, "foreground", 10, &plain) != REDLOCK_OK) {
    fail("lock");
  }
  (void)measure("warm-up", foreground, REDLOCK_SECONDS);
  redlock_lock **locks = NULL;
  for (size_t i = 0; i < rounds; i++) {
    double without_us = measure("without leases", foreground, for_us);
    if (i == 0) {
      locks = make(count);
    } else {
      take(locks, count);
    }
    ratios[i] = measure("beside the leases", foreground, for_us) / without_us;
    if (i == 0) {
      (void)printf("after so many seconds %.0f bytes each\n",
                   (resident_bytes() - measured_bytes) / (double)count);
    }
    if (i + 1 < rounds) {
      give_back(locks, count);
    }
  }
  qsort(ratios, rounds, sizeof ratios[0], compare_ratios);
  (void)printf("p99 beside the leases to without: %.2f (%.2f..%.2f)\n", ratios[rounds / 2],
               ratios[0], ratios[rounds - 1]);
  (void)printf("lost: %u; bytes each in the end %.0f\n", lost,
               (resident_bytes() - measured_bytes) / (double)count);
  for (size_t i = 0; i < count; i++) {
    redlock_lock_free(locks[i]);
  }
  redlock_lock_free(foreground);
  redlock_client_free(client);
  free(locks);
  return lost == 0 ? 0 : 1;
}
