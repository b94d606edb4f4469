/*
 * Clients that finalizers have dropped while they still have bytes to send.
 *
 * SPDX-License-Identifier: MIT
 */
#include <unistd.h>

#include "api/rl_linger.h"
#include "client_world.h"
#include "fake_clock.h"

static const char KEY[] = "orders:42";

/* A client whose lock is held by its node, which works only while the test pumps it. */
typedef struct holder {
  loopback *farm;
  redlock_client *client;
  redlock_lock *lock;
} holder;

static holder one;
static rl_linger list;

static void turn(holder *self) {
  assert_error(redlock_client_process(self->client, NULL, 0), REDLOCK_OK);
  loopback_pump(self->farm, 1);
}

static void hold(holder *self) {
  self->farm = loopback_new(1, LOOPBACK_UNIX);
  self->client = new_client_of(self->farm, (redlock_settings){0});
  self->lock = new_lock(self->client, KEY, NULL);
  assert_error(redlock_lock_acquire_start(self->lock, NULL), REDLOCK_OK);
  eventually_by(turn(self), loopback_keys(self->farm, KEY) == 1 &&
                                redlock_lock_result(self->lock) != REDLOCK_PENDING);
  assert_error(redlock_lock_result(self->lock), REDLOCK_OK);
}

static int begin(void **state) {
  list.first = NULL;
  hold(&one);
  return 0;
}

/* The list may have the last reference. */
static int end(void **state) {
  free_with_client(one.lock);
  loopback_pump(one.farm, 100);
  rl_linger_drain(&list, SECONDS);
  assert_null(list.first);
  assert_int_equal(loopback_keys(one.farm, KEY), 0);
  return loopback_end(one.farm) ? 0 : 1;
}

TEST(client_is_in_the_list_once) {
  rl_linger_process(&list); /* An empty list has nothing to do. */
  rl_linger_drain(&list, SECONDS);
  assert_null(list.first);
  for (unsigned i = 0; i < 3; i++) {
    rl_linger_add(&list, redlock_client_ref(one.client));
  }
  assert_int_equal(one.client->references, 3); /* the test's, the lock's, the list's */
  assert_null(one.client->linger_next);
  rl_linger_process(&list); /* A lock can still add bytes, so it stays. */
  assert_ptr_equal(list.first, one.client);
}

TEST(drain_is_bounded_for_all_clients_together) {
  holder three[3];
  for (unsigned i = 0; i < 3; i++) {
    hold(&three[i]);
    rl_linger_add(&list, redlock_client_ref(three[i].client));
    free_with_client(three[i].lock);
  }
  redlock_time start_us = redlock_now();
  rl_linger_drain(&list, 200 * MS); /* no node answers */
  assert_null(list.first);
  assert_in_range(redlock_now() - start_us, 200 * MS, 550 * MS);
  for (unsigned i = 0; i < 3; i++) { /* They were sent nevertheless. */
    eventually_by(loopback_pump(three[i].farm, 1), loopback_keys(three[i].farm, KEY) == 0);
    assert_true(loopback_end(three[i].farm));
  }
}

/* It may return to the list, and work on. */
TEST(other_reference_keeps_the_client) {
  for (unsigned i = 0; i < 2; i++) {
    rl_linger_add(&list, redlock_client_ref(one.client));
    assert_ptr_equal(list.first, one.client);
    rl_linger_drain(&list, 20 * MS);
    assert_null(list.first);
    assert_int_equal(one.client->references, 2); /* the test's, the lock's */
  }
  assert_true(redlock_lock_remaining(one.lock) > 0);
  assert_error(redlock_lock_release_start(one.lock), REDLOCK_OK);
  eventually_by(turn(&one), redlock_lock_result(one.lock) != REDLOCK_PENDING);
  assert_error(redlock_lock_result(one.lock), REDLOCK_OK);
}

TEST(child_sends_nothing_of_its_parent) {
  rl_linger_add(&list, redlock_client_ref(one.client));
  pid_t child = fork();
  if (child == 0) {
    free_with_client(one.lock);
    rl_linger_process(&list);
    rl_linger_drain(&list, SECONDS);
    _exit(list.first == NULL ? 0 : 1);
  }
  assert_int_equal(exit_status(child), 0);
  loopback_pump(one.farm, 0);
  assert_int_equal(one.farm->nodes[0].releases, 0);
  assert_int_equal(loopback_keys(one.farm, KEY), 1);
}

int main(void) {
  return tests_run(&(tests_fixture){.before = begin, .after = end});
}
