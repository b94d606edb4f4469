/*
 * Many locks in flight with a loop of the program.
 *
 * SPDX-License-Identifier: MIT
 */
#include "support.h"

#define LOCKS 500

typedef struct many_locks {
  redlock_client *client;
  size_t count;
  redlock_lock *locks[LOCKS];
  unsigned ends[LOCKS]; /* times that redlock_client_next_ended() returned each */
} many_locks;

/* No operation ends before the nodes have answered. */
static redlock_options endless(void) {
  redlock_options options = once();
  options.node_timeout_us = 300 * REDLOCK_SECONDS;
  options.ttl_us = 600 * REDLOCK_SECONDS;
  return options;
}

static void make_locks(many_locks *all, size_t count) {
  redlock_options options = endless();
  memset(all, 0, sizeof *all);
  all->client = client_of(&five, 5, &options);
  all->count = count;
  for (size_t i = 0; i < all->count; i++) {
    char name[32];
    (void)snprintf(name, sizeof name, "r%zu", i);
    all->locks[i] = new_lock(all->client, name);
    redlock_lock_set_data(all->locks[i], &all->ends[i]);
  }
}

static void free_locks(many_locks *all) {
  for (size_t i = 0; i < all->count; i++) {
    redlock_lock_free(all->locks[i]);
  }
  redlock_client_free(all->client);
}

static unsigned take_ended(many_locks *all) {
  unsigned ended = 0;
  redlock_lock *lock;
  while ((lock = redlock_client_next_ended(all->client)) != NULL) {
    unsigned *ends = redlock_lock_data(lock);
    (*ends)++;
    ended++;
    assert_ok(lock, redlock_lock_result(lock));
  }
  return ended;
}

/* poll(2) with the descriptors of the client. */
static void turn_by_poll(many_locks *all) {
  pump(all->client, 1000);
}

/* The one descriptor that never changes. */
static void turn_by_epoll(many_locks *all) {
  struct pollfd one = {redlock_client_pollfd(all->client), POLLIN, 0};
  assert_true(one.fd >= 0);
  (void)poll(&one, 1, redlock_client_timeout_ms(all->client));
  assert_int_equal(redlock_client_process(all->client, NULL, 0), REDLOCK_OK);
}

static void run(many_locks *all, void (*turn)(many_locks *)) {
  redlock_time give_up_us = redlock_now() + EVENTUALLY_US;
  unsigned ended = 0;
  memset(all->ends, 0, sizeof all->ends);
  while (ended < all->count) {
    assert_true(redlock_now() < give_up_us);
    turn(all);
    ended += take_ended(all);
  }
  for (size_t i = 0; i < all->count; i++) {
    assert_int_equal(all->ends[i], 1);
  }
}

static void lock_and_unlock_all(many_locks *all, void (*turn)(many_locks *)) {
  for (size_t i = 0; i < all->count; i++) {
    assert_int_equal(redlock_lock_acquire_start(all->locks[i], NULL), REDLOCK_OK);
    assert_int_equal(redlock_lock_result(all->locks[i]), REDLOCK_PENDING);
    assert_int_equal(redlock_lock_acquire_start(all->locks[i], NULL), REDLOCK_E_BUSY);
  }
  assert_int_equal(redlock_client_timeout_ms(all->client), 0);
  run(all, turn);
  for (size_t i = 0; i < all->count; i++) {
    assert_true(redlock_lock_remaining(all->locks[i]) > 0);
    assert_int_equal(redlock_lock_extend_start(all->locks[i], 900 * REDLOCK_SECONDS), REDLOCK_OK);
  }
  run(all, turn);
  for (size_t i = 0; i < all->count; i++) {
    assert_true(redlock_lock_remaining(all->locks[i]) > 0);
    assert_int_equal(redlock_lock_release_start(all->locks[i]), REDLOCK_OK);
    assert_int_equal(redlock_lock_remaining(all->locks[i]), 0);
  }
  run(all, turn);
  for (unsigned i = 0; i < five.count; i++) {
    if (!five.nodes[i].stopped) {
      pump_until(all->client, strcmp(farm_command(&five, i, "DBSIZE", NULL), "0") == 0);
    }
  }
}

TEST(many_locks_may_be_in_flight) {
  static many_locks all;
  make_locks(&all, LOCKS);
  lock_and_unlock_all(&all, turn_by_poll);
  free_locks(&all);
}

TEST(loop_needs_only_one_descriptor) {
  static many_locks all;
  make_locks(&all, LOCKS);
  int fd = redlock_client_pollfd(all.client);
  lock_and_unlock_all(&all, turn_by_epoll);
  /* A lost and renewed connection does not change it. */
  farm_kill(&five, 0);
  farm_restart(&five, 0);
  lock_and_unlock_all(&all, turn_by_epoll);
  assert_int_equal(redlock_client_pollfd(all.client), fd);
  free_locks(&all);
}

TEST(hung_node_does_not_delay_many_locks) {
  static many_locks all;
  make_locks(&all, LOCKS / 5); /* A slow machine needs time to compute. */
  warm_up(all.client);
  farm_stop(&five, 2);
  redlock_time before_us = stopwatch();
  lock_and_unlock_all(&all, turn_by_poll);
  assert_took(before_us, 0, MS(2500)); /* After 3 s the connection would end. */
  farm_continue(&five, 2);
  pump_until(all.client, all_up(all.client));
  assert_string_equal(farm_command(&five, 2, "DBSIZE", NULL), "0");
  free_locks(&all);
}

TEST(idle_loop_sleeps) {
  redlock_client *client = client_of(&five, 5, NULL);
  redlock_lock *lock = held_lock(client, "r");
  pump_until(client, all_up(client) && redlock_client_timeout_ms(client) == -1);
  struct pollfd one = {redlock_client_pollfd(client), POLLIN, 0};
  assert_int_equal(poll(&one, 1, 0), 0);
  assert_ok(lock, redlock_lock_release(lock));
  free_with_client(lock);
}

TEST(cancelled_and_freed_locks_leave_no_key) {
  static many_locks all;
  make_locks(&all, LOCKS);
  warm_up(all.client);
  for (size_t i = 0; i < LOCKS; i++) {
    assert_int_equal(redlock_lock_acquire_start(all.locks[i], NULL), REDLOCK_OK);
  }
  assert_int_equal(redlock_client_process(all.client, NULL, 0), REDLOCK_OK);
  for (size_t i = 0; i < LOCKS; i++) {
    if (i % 2 == 0) {
      redlock_lock_cancel(all.locks[i]);
      int result = redlock_lock_result(all.locks[i]);
      assert_true(result == REDLOCK_E_CANCELLED || result == REDLOCK_OK);
      if (result == REDLOCK_E_CANCELLED) {
        assert_int_equal(redlock_lock_remaining(all.locks[i]), 0);
      }
    }
    redlock_lock_free(all.locks[i]); /* held, pending or cancelled */
    all.locks[i] = NULL;
  }
  for (unsigned i = 0; i < five.count; i++) {
    pump_until(all.client, strcmp(farm_command(&five, i, "DBSIZE", NULL), "0") == 0);
    assert_true(farm_calls(&five, i, "set") > 0); /* the acquires were sent */
  }
  redlock_client_free(all.client);
}

int main(void) {
  return tests_run(&(tests_fixture){.start = five_start, .before = five_reset, .end = five_end});
}
