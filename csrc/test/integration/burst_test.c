/*
 * Fifty thousand operations begun at once, on nodes that are well.
 *
 * SPDX-License-Identifier: MIT
 *
 * Nobody is told that the nodes are unavailable, and no call takes long: what is begun at once is sent
 * as the nodes answer. The figures are printed; those of an instrumented build are not judged.
 */
#include <time.h>

#include "support.h"

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define LEASES 5000
#define FENCED_LEASES 500
#define PROCESS_MAX_US MS(1000)
#else
#define LEASES 50000
#define FENCED_LEASES 10000
#define PROCESS_MAX_US MS(10)
#endif
#define BURST_TTL_US (60 * REDLOCK_SECONDS)
/* The default is 100 ms; but other programs run on this machine, and stop the servers for as long. */
#define NODE_TIMEOUT_US MS(400)
#define BURST_MAX_US (40 * REDLOCK_SECONDS)

typedef struct burst {
  redlock_client *client;
  redlock_lock **locks;
  unsigned count;
  unsigned failed;
  unsigned unavailable;
  redlock_duration longest_us; /* of one call of redlock_client_process() */
  unsigned calls;
  unsigned slow; /* calls that took longer than PROCESS_MAX_US */
} burst;

static void set_up(burst *self, unsigned leases, int fence) {
  redlock_options options = once();
  options.ttl_us = BURST_TTL_US;
  options.node_timeout_us = NODE_TIMEOUT_US;
  options.fence = fence;
  memset(self, 0, sizeof *self);
  self->count = leases;
  self->client = client_of(&five, 5, &options);
  self->locks = calloc(leases, sizeof *self->locks);
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

/* The processor time of this thread: what other programs take of the machine is not the client's. */
static redlock_time processor_us(void) {
  struct timespec now;
  assert_int_equal(clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now), 0);
  return (redlock_time)now.tv_sec * REDLOCK_SECONDS + (redlock_time)now.tv_nsec / 1000;
}

static void turn(burst *self) {
  struct pollfd fds[5];
  size_t count = redlock_client_pollfds(self->client, fds, 5);
  (void)poll(fds, (nfds_t)count, redlock_client_timeout_ms(self->client));
  redlock_time before_us = processor_us();
  assert_int_equal(redlock_client_process(self->client, fds, count), REDLOCK_OK);
  redlock_duration took_us = processor_us() - before_us;
  self->longest_us = took_us > self->longest_us ? took_us : self->longest_us;
  self->calls++;
  self->slow += took_us > PROCESS_MAX_US;
}

/* Begins one operation of every lock, and waits for them all. */
static void run(burst *self, const char *what, int (*begin)(redlock_lock *lock)) {
  redlock_time begun_us = redlock_now();
  unsigned ended = 0;
  self->failed = self->unavailable = self->calls = self->slow = 0;
  self->longest_us = 0;
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
    }
  }
  print_message("%u %s: %u ms, %u failed, %u of them unavailable, longest process() %u us, "
                "%u of %u longer than %u us\n",
                self->count, what, (unsigned)((redlock_now() - begun_us) / 1000), self->failed,
                self->unavailable, (unsigned)self->longest_us, self->slow, self->calls,
                (unsigned)PROCESS_MAX_US);
  assert_int_equal(self->failed, 0);
  /* A few may meet what else the machine does. */
  assert_true(self->slow <= 3);
}

static int begin_acquire(redlock_lock *lock) {
  return redlock_lock_acquire_start(lock, NULL);
}

static int begin_extend(redlock_lock *lock) {
  return redlock_lock_extend_start(lock, BURST_TTL_US);
}

static void fifty_thousand_leases_at_once_on_nodes_that_are_well(void **state) {
  static burst all;
  (void)state;
  set_up(&all, LEASES, REDLOCK_NO);
  warm_up(all.client);
  run(&all, "acquired", begin_acquire);
  run(&all, "extended", begin_extend);
  run(&all, "released", redlock_lock_release_start);
  for (unsigned i = 0; i < five.count; i++) {
    pump_until(all.client, strcmp(farm_command(&five, i, "DBSIZE", NULL), "0") == 0);
  }
  tear_down(&all);
}

/* Nothing is known of the nodes yet: no connection, no clock, no script. */
static void a_burst_of_fenced_acquires_of_a_fresh_client(void **state) {
  static burst all;
  (void)state;
  set_up(&all, FENCED_LEASES, REDLOCK_YES);
  run(&all, "acquired with a token", begin_acquire);
  run(&all, "extended", begin_extend);
  run(&all, "released", redlock_lock_release_start);
  tear_down(&all);
}

#define TEST(name) cmocka_unit_test_setup(name, five_reset)

int main(void) {
  const struct CMUnitTest tests[] = {
      TEST(fifty_thousand_leases_at_once_on_nodes_that_are_well),
      TEST(a_burst_of_fenced_acquires_of_a_fresh_client),
  };
  return cmocka_run_group_tests_name("burst", tests, five_start, five_end);
}
