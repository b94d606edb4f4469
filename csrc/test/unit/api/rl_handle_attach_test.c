/*
 * Hands a lease from one client to another, with servers on loopback in a thread.
 *
 * SPDX-License-Identifier: MIT
 */
#include <poll.h>

#include "client/rl_client.h"
#include "fake_clock.h"
#include "handle_world.h"

static const char KEY[] = "orders:42";

static redlock_client *make_client(const loopback *farm, const char *prefix) {
  return world_client(
      farm,
      (redlock_settings){.prefix = prefix, .prefix_length = prefix == NULL ? 0 : strlen(prefix)});
}

/* A call returns with the majority: the last node may be behind, and keep its key. */
static void wait_for_keys(loopback *farm, redlock_client *client, unsigned least, unsigned most) {
  redlock_time deadline_us = redlock_now() + 10 * SECONDS;
  unsigned keys = loopback_keys(farm, KEY);
  while ((keys < least || keys > most) && redlock_now() < deadline_us) {
    (void)redlock_client_process(client, NULL, 0);
    (void)poll(NULL, 0, 1);
    keys = loopback_keys(farm, KEY);
  }
  assert_in_range(keys, least, most);
}

static int begin_with(void **state, const char *prefix) {
  size_t length = prefix == NULL ? 0 : strlen(prefix);
  world *one = world_begin(state, (redlock_settings){.prefix = prefix, .prefix_length = length});
  assert_error(redlock_lock_acquire(one->lock, NULL, NULL), REDLOCK_OK);
  return 0;
}

static int begin(void **state) {
  return begin_with(state, NULL);
}

static int begin_with_prefix(void **state) {
  return begin_with(state, "red:");
}

/* Detaches the lock, and attaches it to |client|. */
static int hand_over(world *one, redlock_client *client, redlock_lock **lock) {
  char text[REDLOCK_HANDOVER_MAX];
  size_t length = 0;
  assert_error(redlock_lock_detach(one->lock, text, sizeof text, &length), REDLOCK_OK);
  assert_int_equal(length, strlen(text));
  return redlock_lock_attach(lock, client, text, length, NULL);
}

static void attached_lease_goes_on_in_another_client(void **state) {
  world *one = *state;
  redlock_client *other = make_client(one->farm, NULL);
  redlock_lock *lock;
  size_t length = 0;
  assert_error(hand_over(one, other, &lock), REDLOCK_OK);
  assert_int_equal(redlock_lock_remaining(one->lock), 0);
  assert_memory_equal(redlock_lock_resource(lock, &length), KEY, strlen(KEY));
  assert_int_equal(length, strlen(KEY));
  assert_int_equal(redlock_lock_remaining(lock), 0); /* It has asked no node yet. */
  assert_error(redlock_lock_acquire(lock, NULL, NULL), REDLOCK_OK);
  assert_true(redlock_lock_remaining(lock) > 60 * SECONDS);
  wait_for_keys(one->farm, other, 2, 3);
  assert_error(redlock_lock_release(lock), REDLOCK_OK);
  wait_for_keys(one->farm, other, 0, 1);
  redlock_lock_free(lock);
  redlock_client_free(other);
}

static void options_of_attach_replace_those_of_the_lease(void **state) {
  world *one = *state;
  char text[REDLOCK_HANDOVER_MAX];
  size_t length = 0;
  redlock_lock *lock;
  redlock_options options = {.ttl_us = 50 * SECONDS};
  redlock_options wrong = {.retry_count = -7};
  assert_error(redlock_lock_detach(one->lock, text, sizeof text, &length), REDLOCK_OK);
  assert_error(redlock_lock_attach(&lock, one->client, text, length, &wrong), REDLOCK_E_INVALID);
  assert_null(lock);
  assert_non_null(strstr(redlock_client_message(one->client), "retry_count"));
  assert_error(redlock_lock_attach(&lock, one->client, text, length, &options), REDLOCK_OK);
  assert_string_equal(redlock_client_message(one->client), "");
  assert_int_equal(redlock_lock_ttl(lock), 50 * SECONDS);
  redlock_lock_free(lock);
}

static void fencing_token_goes_with_the_lease(void **state) {
  world *one = *state;
  char text[REDLOCK_HANDOVER_MAX];
  redlock_lock *lock;
  redlock_options options = {.fence = REDLOCK_YES};
  redlock_options off = {.fence = REDLOCK_NO};
  size_t length = 0;
  assert_error(redlock_lock_detach(one->lock, text, sizeof text, &length), REDLOCK_OK);
  assert_error(redlock_lock_attach(&lock, one->client, text, length, &options), REDLOCK_E_INVALID);
  assert_non_null(strstr(redlock_client_message(one->client), "without a fencing token"));
  assert_error(redlock_lock_attach(&lock, one->client, text, length, NULL), REDLOCK_OK);
  assert_error(redlock_lock_acquire(lock, NULL, NULL), REDLOCK_OK);
  assert_true(redlock_lock_fence(lock) == 0);
  assert_error(redlock_lock_release(lock), REDLOCK_OK);
  assert_error(redlock_lock_acquire(lock, &options, NULL), REDLOCK_OK);
  uint64_t fence = redlock_lock_fence(lock);
  assert_true(fence > 0);
  wait_for_keys(one->farm, one->client, 3, 3);
  assert_error(redlock_lock_detach(lock, text, sizeof text, &length), REDLOCK_OK);
  redlock_lock_free(lock);
  assert_error(redlock_lock_attach(&lock, one->client, text, length, &off), REDLOCK_OK);
  assert_error(redlock_lock_acquire(lock, NULL, NULL), REDLOCK_OK);
  assert_true(redlock_lock_fence(lock) == fence);
  redlock_lock_free(lock);
}

static void detach_without_room_keeps_the_lock(void **state) {
  world *one = *state;
  char text[REDLOCK_HANDOVER_MAX];
  assert_error(redlock_lock_detach(NULL, text, sizeof text, NULL), REDLOCK_E_INVALID);
  assert_error(redlock_lock_detach(one->lock, NULL, sizeof text, NULL), REDLOCK_E_INVALID);
  assert_error(redlock_lock_detach(one->lock, text, 10, NULL), REDLOCK_E_LIMIT);
  size_t length = 0;
  assert_error(redlock_lock_detach(one->lock, text, 0, &length), REDLOCK_E_LIMIT);
  assert_error(redlock_lock_detach(one->lock, text, length, NULL), REDLOCK_E_LIMIT);
  assert_true(redlock_lock_remaining(one->lock) > 0);
  assert_error(redlock_lock_extend(one->lock, 0, NULL), REDLOCK_OK);
  assert_error(redlock_lock_release_start(one->lock), REDLOCK_OK);
  assert_error(redlock_lock_detach(one->lock, text, sizeof text, NULL), REDLOCK_E_BUSY);
}

static void detached_lock_can_be_acquired_again(void **state) {
  world *one = *state;
  char text[REDLOCK_HANDOVER_MAX];
  assert_error(redlock_lock_detach(one->lock, text, sizeof text, NULL), REDLOCK_OK);
  assert_error(redlock_lock_release(one->lock), REDLOCK_E_NOT_HELD);
  wait_for_keys(one->farm, one->client, 3, 3); /* Nothing was released. */
  assert_error(redlock_lock_force_release(one->lock, NULL, REDLOCK_TOKEN_ANY), REDLOCK_OK);
  assert_error(redlock_lock_acquire(one->lock, NULL, NULL), REDLOCK_OK);
}

static void attach_refuses_other_texts(void **state) {
  world *one = *state;
  redlock_lock *lock = one->lock;
  assert_error(redlock_lock_attach(NULL, one->client, "x", 1, NULL), REDLOCK_E_INVALID);
  assert_error(redlock_lock_attach(&lock, NULL, "x", 1, NULL), REDLOCK_E_INVALID);
  assert_error(redlock_lock_attach(&lock, one->client, NULL, 1, NULL), REDLOCK_E_INVALID);
  assert_error(redlock_lock_attach(&lock, one->client, "x", 1, NULL), REDLOCK_E_LOST);
  assert_null(lock);
  assert_non_null(strstr(redlock_client_message(one->client), "the text was not written"));
}

static void attach_refuses_another_prefix(void **state) {
  world *one = *state;
  const char *const prefixes[] = {"blu:", "red", NULL};
  char text[REDLOCK_HANDOVER_MAX];
  size_t length = 0;
  redlock_lock *lock;
  assert_error(redlock_lock_detach(one->lock, text, sizeof text, &length), REDLOCK_OK);
  for (unsigned i = 0; i < 3; i++) {
    redlock_client *other = make_client(one->farm, prefixes[i]);
    assert_error(redlock_lock_attach(&lock, other, text, length, NULL), REDLOCK_E_INVALID);
    assert_non_null(strstr(redlock_client_message(other), "another prefix"));
    redlock_client_free(other);
  }
  redlock_client *same = make_client(one->farm, "red:");
  assert_error(redlock_lock_attach(&lock, same, text, length, NULL), REDLOCK_OK);
  assert_error(redlock_lock_acquire(lock, NULL, NULL), REDLOCK_OK);
  redlock_lock_free(lock);
  redlock_client_free(same);
}

static void attach_refuses_other_nodes_and_closed_clients(void **state) {
  world *one = *state;
  char text[REDLOCK_HANDOVER_MAX];
  size_t length = 0;
  redlock_lock *lock;
  redlock_client *other = make_client(one->farm, NULL);
  assert_error(redlock_client_add(other, "127.0.0.1:1", NULL, 0), REDLOCK_OK);
  assert_error(redlock_lock_detach(one->lock, text, sizeof text, &length), REDLOCK_OK);
  assert_error(redlock_lock_attach(&lock, other, text, length, NULL), REDLOCK_E_INVALID);
  assert_non_null(strstr(redlock_client_message(other), "another number of nodes"));
  redlock_client_free(other);
  assert_error(redlock_client_close(one->client, SECONDS), REDLOCK_OK);
  assert_error(redlock_lock_attach(&lock, one->client, text, length, NULL), REDLOCK_E_CLOSED);
}

/* The third node has not answered, and attach must know which node that is. */
static void doubtful_node_requires_the_same_order_of_nodes(void **state) {
  world *one = *state;
  redlock_lock *lock;
  redlock_client *other;
  char text[REDLOCK_HANDOVER_MAX];
  size_t length = 0;
  assert_error(redlock_lock_release(one->lock), REDLOCK_OK);
  loopback_lock(one->farm);
  one->farm->nodes[2].deaf = true;
  loopback_unlock(one->farm);
  assert_error(redlock_lock_acquire(one->lock, NULL, NULL), REDLOCK_OK);
  assert_error(redlock_lock_detach(one->lock, text, sizeof text, &length), REDLOCK_OK);
  assert_error(redlock_client_new(&other, NULL, NULL, 0), REDLOCK_OK);
  for (unsigned i = 0; i < 3; i++) {
    const char *address = one->farm->nodes[2 - i].address;
    assert_error(redlock_client_add(other, address, NULL, 0), REDLOCK_OK);
  }
  assert_error(redlock_lock_attach(&lock, other, text, length, NULL), REDLOCK_E_INVALID);
  assert_non_null(strstr(redlock_client_message(other), "in the same order"));
  redlock_client_free(other);
  other = make_client(one->farm, NULL);
  assert_error(redlock_lock_attach(&lock, other, text, length, NULL), REDLOCK_OK);
  redlock_lock_free(lock);
  redlock_client_free(other);
}

static void detached_text_fits_its_length_and_a_nul(void **state) {
  world *one = *state;
  char text[REDLOCK_HANDOVER_MAX];
  size_t length = 0;
  assert_error(redlock_lock_detach(one->lock, text, 0, &length), REDLOCK_E_LIMIT);
  memset(text, 'x', sizeof text);
  assert_error(redlock_lock_detach(one->lock, text, length + 1, NULL), REDLOCK_OK);
  assert_int_equal(strlen(text), length);
}

/* Takes a turn of a loop with the first |count| nodes only, and one of the servers. */
static void turn(world *one, size_t count) {
  struct pollfd fds[3];
  count = redlock_client_pollfds(one->client, fds, 3) < count ? 0 : count;
  (void)poll(fds, (nfds_t)count, 0);
  assert_error(redlock_client_process(one->client, fds, count), REDLOCK_OK);
  loopback_pump(one->farm, 1);
}

/*
 * Only the test runs the servers, so it controls which node has answered, and which reply was read.
 */
static void begin_a_lease(world *one, bool third_is_read) {
  one->farm = loopback_new(3, LOOPBACK_UNIX);
  one->client = make_client(one->farm, NULL);
  assert_error(redlock_lock_new(&one->lock, one->client, KEY, strlen(KEY), NULL), REDLOCK_OK);
  assert_error(redlock_lock_acquire_start(one->lock, NULL), REDLOCK_OK);
  redlock_time until_us = redlock_now() + 10 * SECONDS;
  while (one->farm->nodes[2].sets == 0 || redlock_lock_result(one->lock) == REDLOCK_PENDING ||
         (third_is_read && rl_lock_of(one->lock)->lease->asked != 0)) {
    assert_true(redlock_now() < until_us);
    turn(one, third_is_read || one->farm->nodes[2].sets == 0 ? 3 : 2);
  }
  assert_error(redlock_lock_result(one->lock), REDLOCK_OK);
  assert_int_equal(rl_lock_of(one->lock)->lease->asked, third_is_read ? 0 : 4);
}

/* The reply has come while the program did something else. */
static void detach_reads_pending_replies(void **state) {
  world one;
  redlock_client *other;
  redlock_lock *lock;
  char text[REDLOCK_HANDOVER_MAX];
  size_t length = 0;
  begin_a_lease(&one, false);
  struct pollfd fds[3];
  assert_int_equal(redlock_client_pollfds(one.client, fds, 3), 3);
  assert_int_equal(poll(&fds[2], 1, 5000), 1);
  assert_error(redlock_client_new(&other, NULL, NULL, 0), REDLOCK_OK);
  for (unsigned i = 0; i < 3; i++) {
    const char *address = one.farm->nodes[2 - i].address;
    assert_error(redlock_client_add(other, address, NULL, 0), REDLOCK_OK);
  }
  assert_error(redlock_lock_detach(one.lock, text, sizeof text, &length), REDLOCK_OK);
  assert_error(redlock_lock_attach(&lock, other, text, length, NULL), REDLOCK_OK);
  redlock_lock_free(lock);
  redlock_client_free(other);
  redlock_lock_free(one.lock);
  redlock_client_free(one.client);
  assert_true(loopback_end(one.farm));
}

/* Detach takes no turn if all nodes have answered, or on an external client. */
static void detach_reads_nothing_without_pending_replies(void **state) {
  for (unsigned external = 0; external < 2; external++) {
    world one;
    char text[REDLOCK_HANDOVER_MAX];
    begin_a_lease(&one, external == 0);
    one.client->external = external == 1;
    redlock_time processed_us = one.client->processed_us;
    assert_error(redlock_lock_detach(one.lock, text, sizeof text, NULL), REDLOCK_OK);
    assert_true(one.client->processed_us == processed_us);
    one.client->external = false;
    redlock_lock_free(one.lock);
    redlock_client_free(one.client);
    assert_true(loopback_end(one.farm));
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test_setup_teardown(attached_lease_goes_on_in_another_client, begin, world_end),
      cmocka_unit_test_setup_teardown(options_of_attach_replace_those_of_the_lease, begin,
                                      world_end),
      cmocka_unit_test_setup_teardown(fencing_token_goes_with_the_lease, begin, world_end),
      cmocka_unit_test_setup_teardown(detach_without_room_keeps_the_lock, begin, world_end),
      cmocka_unit_test_setup_teardown(detached_text_fits_its_length_and_a_nul, begin, world_end),
      cmocka_unit_test(detach_reads_pending_replies),
      cmocka_unit_test(detach_reads_nothing_without_pending_replies),
      cmocka_unit_test_setup_teardown(detached_lock_can_be_acquired_again, begin, world_end),
      cmocka_unit_test_setup_teardown(attach_refuses_other_texts, begin, world_end),
      cmocka_unit_test_setup_teardown(attach_refuses_another_prefix, begin_with_prefix, world_end),
      cmocka_unit_test_setup_teardown(attach_refuses_other_nodes_and_closed_clients, begin,
                                      world_end),
      cmocka_unit_test_setup_teardown(doubtful_node_requires_the_same_order_of_nodes, begin,
                                      world_end),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
