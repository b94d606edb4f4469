/*
 * Clients that finalizers have dropped while they still have bytes to send.
 *
 * SPDX-License-Identifier: MIT
 */
#include <poll.h>
#include <sys/wait.h>
#include <unistd.h>

#include "api/rl_linger.h"
#include "client/rl_client.h"
#include "fake_clock.h"
#include "loopback.h"
#include "rl_test.h"

#define PATIENCE_US (10 * SECONDS)

static const char KEY[] = "orders:42";

/* A client whose lock is held by all nodes. */
static redlock_client *holding(loopback *farm, redlock_lock **lock) {
  redlock_client *client;
  redlock_options options = {0};
  options.ttl_us = 60 * SECONDS;
  options.node_timeout_us = 5 * SECONDS;
  assert_error(redlock_client_new(&client, NULL, NULL, 0), REDLOCK_OK);
  for (unsigned i = 0; i < farm->count; i++) {
    assert_error(redlock_client_add(client, farm->nodes[i].address, NULL, 0), REDLOCK_OK);
  }
  assert_error(redlock_lock_new(lock, client, KEY, strlen(KEY), &options), REDLOCK_OK);
  assert_error(redlock_lock_acquire_start(*lock, NULL), REDLOCK_OK);
  redlock_time until_us = redlock_now() + PATIENCE_US;
  while (loopback_keys(farm, KEY) < farm->count || redlock_lock_result(*lock) == REDLOCK_PENDING) {
    assert_true(redlock_now() < until_us);
    assert_error(redlock_client_process(client, NULL, 0), REDLOCK_OK);
    loopback_pump(farm, 1);
  }
  assert_error(redlock_lock_result(*lock), REDLOCK_OK);
  return client;
}

TEST(empty_list_has_nothing_to_do) {
  rl_linger list = {NULL};
  rl_linger_process(&list);
  rl_linger_drain(&list, SECONDS);
  assert_null(list.first);
}

TEST(client_is_in_the_list_once) {
  rl_linger list = {NULL};
  redlock_lock *lock;
  loopback *farm = loopback_new(1, LOOPBACK_UNIX);
  redlock_client *client = holding(farm, &lock);
  for (unsigned i = 0; i < 3; i++) {
    rl_linger_add(&list, redlock_client_ref(client));
  }
  assert_int_equal(client->references, 3); /* the test's, the lock's, the list's */
  assert_null(client->linger_next);
  rl_linger_process(&list); /* A lock can still add bytes, so it stays. */
  assert_ptr_equal(list.first, client);
  redlock_lock_free(lock);
  loopback_pump(farm, 100);
  redlock_client_free(client);
  rl_linger_drain(&list, SECONDS);
  assert_null(list.first);
  assert_int_equal(loopback_keys(farm, KEY), 0);
  assert_true(loopback_end(farm));
}

TEST(drain_is_bounded_for_all_clients_together) {
  rl_linger list = {NULL};
  loopback *farms[3];
  for (unsigned i = 0; i < 3; i++) {
    redlock_lock *lock;
    farms[i] = loopback_new(1, LOOPBACK_UNIX);
    redlock_client *client = holding(farms[i], &lock);
    (void)redlock_client_ref(client);
    redlock_lock_free(lock);
    redlock_client_free(client);
    rl_linger_add(&list, client);
  }
  redlock_time start_us = redlock_now();
  rl_linger_drain(&list, 200 * MS); /* no node answers */
  redlock_duration took_us = redlock_now() - start_us;
  assert_null(list.first);
  assert_true(took_us >= 200 * MS);
  assert_true(took_us < 550 * MS);
  for (unsigned i = 0; i < 3; i++) {
    redlock_time until_us = redlock_now() + PATIENCE_US;
    while (loopback_keys(farms[i], KEY) > 0) { /* They were sent nevertheless. */
      assert_true(redlock_now() < until_us);
      loopback_pump(farms[i], 1);
    }
    assert_true(loopback_end(farms[i]));
  }
}

TEST(other_reference_keeps_the_client) {
  rl_linger list = {NULL};
  redlock_lock *lock;
  loopback *farm = loopback_new(1, LOOPBACK_UNIX);
  redlock_client *client = holding(farm, &lock);
  rl_linger_add(&list, redlock_client_ref(client));
  rl_linger_drain(&list, 20 * MS);
  assert_null(list.first);
  assert_true(redlock_lock_remaining(lock) > 0);
  assert_error(redlock_lock_release_start(lock), REDLOCK_OK);
  redlock_time until_us = redlock_now() + PATIENCE_US;
  while (redlock_lock_result(lock) == REDLOCK_PENDING) {
    assert_true(redlock_now() < until_us);
    assert_error(redlock_client_process(client, NULL, 0), REDLOCK_OK);
    loopback_pump(farm, 1);
  }
  assert_error(redlock_lock_result(lock), REDLOCK_OK);
  redlock_lock_free(lock);
  redlock_client_free(client);
  assert_true(loopback_end(farm));
}

TEST(client_may_return_to_the_list) {
  rl_linger list = {NULL};
  redlock_lock *lock;
  loopback *farm = loopback_new(1, LOOPBACK_UNIX);
  redlock_client *client = holding(farm, &lock);
  for (unsigned i = 0; i < 2; i++) {
    rl_linger_add(&list, redlock_client_ref(client));
    assert_ptr_equal(list.first, client);
    rl_linger_drain(&list, 20 * MS);
    assert_null(list.first);
    assert_int_equal(client->references, 2); /* the test's, the lock's */
  }
  redlock_lock_free(lock);
  redlock_client_free(client);
  assert_true(loopback_end(farm));
}

TEST(child_sends_nothing_of_its_parent) {
  rl_linger list = {NULL};
  redlock_lock *lock;
  int status = -1;
  loopback *farm = loopback_new(1, LOOPBACK_UNIX);
  redlock_client *client = holding(farm, &lock);
  rl_linger_add(&list, redlock_client_ref(client));
  pid_t child = fork();
  assert_true(child >= 0);
  if (child == 0) {
    redlock_lock_free(lock);
    redlock_client_free(client);
    rl_linger_process(&list);
    rl_linger_drain(&list, SECONDS);
    _exit(list.first == NULL ? 0 : 1);
  }
  assert_int_equal(waitpid(child, &status, 0), child);
  assert_int_equal(status, 0);
  loopback_pump(farm, 0);
  assert_int_equal(farm->nodes[0].releases, 0);
  assert_int_equal(loopback_keys(farm, KEY), 1);
  redlock_lock_free(lock);
  redlock_client_free(client);
  loopback_pump(farm, 100);
  rl_linger_drain(&list, SECONDS);
  assert_true(loopback_end(farm));
}
