/*
 * Thousands of operations that start at once, on healthy nodes.
 *
 * SPDX-License-Identifier: MIT
 *
 * BURST_LEASES is their number [3000]; the job long/burst runs 50,000. The test prints the times
 * and does not judge them: rl_pacer_test.c tests the pacing with the fake clock.
 */
#include "support.h"

#define LEASES_USUAL 3000
#define FENCED_SHARE 5 /* one lease in so many */
#define BURST_TTL_US (600 * REDLOCK_SECONDS)
#define BURST_MAX_US (300 * REDLOCK_SECONDS)

typedef struct burst {
  redlock_client *client;
  redlock_lock **locks;
  unsigned count;
  unsigned failed;
  unsigned unavailable;
} burst;

static unsigned leases(void) {
  const char *text = getenv("BURST_LEASES"); /* NOLINT(concurrency-mt-unsafe) */
  return text != NULL ? (unsigned)strtoul(text, NULL, 10) : LEASES_USUAL;
}

static void set_up(burst *self, unsigned count, int fence) {
  redlock_options options = once();
  options.ttl_us = BURST_TTL_US;
  options.fence = fence;
  memset(self, 0, sizeof *self);
  self->count = count;
  self->client = client_of(&five, 5, &options);
  self->locks = calloc(count, sizeof *self->locks);
  assert_non_null(self->locks);
  for (unsigned i = 0; i < self->count; i++) {
    char name[32];
    (void)snprintf(name, sizeof name, "burst:%u", i);
    self->locks[i] = new_lock(self->client, name);
  }
}

static void tear_down(burst *self) {
  for (unsigned i = 0; i < self->count; i++) {
    redlock_lock_free(self->locks[i]);
  }
  free(self->locks);
  redlock_client_free(self->client);
}

static void turn(burst *self) {
  struct pollfd fds[5];
  size_t count = redlock_client_pollfds(self->client, fds, 5);
  (void)poll(fds, (nfds_t)count, redlock_client_timeout_ms(self->client));
  assert_int_equal(redlock_client_process(self->client, fds, count), REDLOCK_OK);
}

/* Starts one operation of each lock, and waits for all. */
static void run(burst *self, const char *what, int (*begin)(redlock_lock *lock)) {
  redlock_time begun_us = redlock_now();
  unsigned ended = 0;
  self->failed = self->unavailable = 0;
  for (unsigned i = 0; i < self->count; i++) {
    assert_int_equal(begin(self->locks[i]), REDLOCK_OK);
  }
  while (ended < self->count) {
    redlock_lock *lock;
    assert_true(redlock_now() < begun_us + BURST_MAX_US);
    turn(self);
    while ((lock = redlock_client_next_ended(self->client)) != NULL) {
      int result = redlock_lock_result(lock);
      ended++;
      self->failed += result != REDLOCK_OK;
      self->unavailable += result == REDLOCK_E_UNAVAILABLE;
      if (result != REDLOCK_OK && self->failed == 1) {
        print_message("%s: %s\n", redlock_error_name(result), redlock_lock_message(lock));
      }
    }
  }
  print_message("%u %s: %u ms, %u failed, %u of them unavailable\n", self->count, what,
                (unsigned)((redlock_now() - begun_us) / 1000), self->failed, self->unavailable);
  assert_int_equal(self->failed, 0);
}

static int begin_acquire(redlock_lock *lock) {
  return redlock_lock_acquire_start(lock, NULL);
}

static int begin_extend(redlock_lock *lock) {
  return redlock_lock_extend_start(lock, BURST_TTL_US);
}

TEST(burst_of_leases_succeeds) {
  static burst all;
  set_up(&all, leases(), REDLOCK_NO);
  warm_up(all.client);
  run(&all, "acquired", begin_acquire);
  run(&all, "extended", begin_extend);
  run(&all, "released", redlock_lock_release_start);
  for (unsigned i = 0; i < five.count; i++) {
    pump_until(all.client, strcmp(farm_command(&five, i, "DBSIZE", NULL), "0") == 0);
  }
  tear_down(&all);
}

/* The client has no connection, no clock and no script yet. */
TEST(burst_of_fenced_acquires_of_a_new_client_succeeds) {
  static burst all;
  set_up(&all, leases() / FENCED_SHARE, REDLOCK_YES);
  run(&all, "acquired with a token", begin_acquire);
  run(&all, "extended", begin_extend);
  run(&all, "released", redlock_lock_release_start);
  tear_down(&all);
}

int main(void) {
  return tests_run(&(tests_fixture){.start = five_start, .before = five_reset, .end = five_end});
}
