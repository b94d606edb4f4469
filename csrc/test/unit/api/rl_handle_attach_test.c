/*
 * Hands a lease from one client to another, with servers on loopback in a thread.
 *
 * SPDX-License-Identifier: MIT
 */
#include <poll.h>

#include "client/rl_client.h"
#include "client_world.h"
#include "fake_clock.h"

static const char KEY[] = "orders:42";

static redlock_settings with_prefix(const char *prefix) {
  return (redlock_settings){.prefix = prefix, .prefix_length = prefix == NULL ? 0 : strlen(prefix)};
}

static redlock_client *make_client(const loopback *farm, const char *prefix) {
  return new_client_of(farm, with_prefix(prefix));
}

/* A call returns with the majority: the last node may be behind, and keep its key. */
static void wait_for_keys(loopback *farm, redlock_client *client, unsigned least, unsigned most) {
  unsigned keys;
  eventually_by(redlock_client_process(client, NULL, 0),
                (keys = loopback_keys(farm, KEY)) >= least && keys <= most);
}

/* A world whose lock is held. */
static world *holding(const char *prefix) {
  world *one = world_with_settings(3, with_prefix(prefix));
  assert_error(redlock_lock_acquire(one->lock, NULL, NULL), REDLOCK_OK);
  return one;
}

/* The lease that was detached last. */
static char text[REDLOCK_HANDOVER_MAX];
static size_t text_length;

static void detach(redlock_lock *lock) {
  assert_error(redlock_lock_detach(lock, text, sizeof text, &text_length), REDLOCK_OK);
  assert_int_equal(text_length, strlen(text));
}

static int attach(redlock_lock **lock, redlock_client *client, const redlock_options *options) {
  return redlock_lock_attach(lock, client, text, text_length, options);
}

/* Fails unless |client| refuses the detached lease with a message that has |reason|. */
static void assert_refused(redlock_client *client, const redlock_options *options,
                           const char *reason) {
  redlock_lock *lock;
  assert_error(attach(&lock, client, options), REDLOCK_E_INVALID);
  assert_null(lock);
  assert_non_null(strstr(redlock_client_message(client), reason));
}

TEST(attached_lease_goes_on_in_another_client) {
  world *one = holding(NULL);
  redlock_client *other = make_client(one->farm, NULL);
  redlock_lock *lock;
  size_t length = 0;
  detach(one->lock);
  assert_error(attach(&lock, other, NULL), REDLOCK_OK);
  assert_int_equal(redlock_lock_remaining(one->lock), 0);
  assert_memory_equal(redlock_lock_resource(lock, &length), KEY, strlen(KEY));
  assert_int_equal(length, strlen(KEY));
  assert_int_equal(redlock_lock_remaining(lock), 0); /* It has asked no node yet. */
  assert_error(redlock_lock_acquire(lock, NULL, NULL), REDLOCK_OK);
  assert_true(redlock_lock_remaining(lock) > 60 * SECONDS);
  wait_for_keys(one->farm, other, 2, 3);
  assert_error(redlock_lock_release(lock), REDLOCK_OK);
  wait_for_keys(one->farm, other, 0, 1);
  free_with_client(lock);
}

TEST(options_of_attach_replace_those_of_the_lease) {
  world *one = holding(NULL);
  redlock_lock *lock;
  redlock_options options = {.ttl_us = 50 * SECONDS};
  redlock_options wrong = {.retry_count = -7};
  detach(one->lock);
  assert_refused(one->client, &wrong, "retry_count");
  assert_error(attach(&lock, one->client, &options), REDLOCK_OK);
  assert_string_equal(redlock_client_message(one->client), "");
  assert_int_equal(redlock_lock_ttl(lock), 50 * SECONDS);
  redlock_lock_free(lock);
}

TEST(fencing_token_goes_with_the_lease) {
  world *one = holding(NULL);
  redlock_lock *lock;
  redlock_options options = {.fence = REDLOCK_YES};
  redlock_options off = {.fence = REDLOCK_NO};
  detach(one->lock);
  assert_refused(one->client, &options, "without a fencing token");
  assert_error(attach(&lock, one->client, NULL), REDLOCK_OK);
  assert_error(redlock_lock_acquire(lock, NULL, NULL), REDLOCK_OK);
  assert_true(redlock_lock_fence(lock) == 0);
  assert_error(redlock_lock_release(lock), REDLOCK_OK);
  assert_error(redlock_lock_acquire(lock, &options, NULL), REDLOCK_OK);
  uint64_t fence = redlock_lock_fence(lock);
  assert_true(fence > 0);
  wait_for_keys(one->farm, one->client, 3, 3);
  detach(lock);
  redlock_lock_free(lock);
  assert_error(attach(&lock, one->client, &off), REDLOCK_OK);
  assert_error(redlock_lock_acquire(lock, NULL, NULL), REDLOCK_OK);
  assert_true(redlock_lock_fence(lock) == fence);
  redlock_lock_free(lock);
}

TEST(detach_without_room_keeps_the_lock) {
  world *one = holding(NULL);
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

TEST(detached_lock_can_be_acquired_again) {
  world *one = holding(NULL);
  assert_error(redlock_lock_detach(one->lock, text, sizeof text, NULL), REDLOCK_OK);
  assert_error(redlock_lock_release(one->lock), REDLOCK_E_NOT_HELD);
  wait_for_keys(one->farm, one->client, 3, 3); /* Nothing was released. */
  assert_error(redlock_lock_force_release(one->lock, NULL, REDLOCK_TOKEN_ANY), REDLOCK_OK);
  assert_error(redlock_lock_acquire(one->lock, NULL, NULL), REDLOCK_OK);
}

TEST(attach_refuses_other_texts) {
  world *one = holding(NULL);
  redlock_lock *lock = one->lock;
  assert_error(redlock_lock_attach(NULL, one->client, "x", 1, NULL), REDLOCK_E_INVALID);
  assert_error(redlock_lock_attach(&lock, NULL, "x", 1, NULL), REDLOCK_E_INVALID);
  assert_error(redlock_lock_attach(&lock, one->client, NULL, 1, NULL), REDLOCK_E_INVALID);
  assert_error(redlock_lock_attach(&lock, one->client, "x", 1, NULL), REDLOCK_E_LOST);
  assert_null(lock);
  assert_non_null(strstr(redlock_client_message(one->client), "the text was not written"));
}

TEST(attach_refuses_another_prefix) {
  world *one = holding("red:");
  const char *const prefixes[] = {"blu:", "red", NULL};
  redlock_lock *lock;
  detach(one->lock);
  for (unsigned i = 0; i < 3; i++) {
    redlock_client *other = make_client(one->farm, prefixes[i]);
    assert_refused(other, NULL, "another prefix");
    redlock_client_free(other);
  }
  redlock_client *same = make_client(one->farm, "red:");
  assert_error(attach(&lock, same, NULL), REDLOCK_OK);
  assert_error(redlock_lock_acquire(lock, NULL, NULL), REDLOCK_OK);
  free_with_client(lock);
}

TEST(attach_refuses_other_nodes_and_closed_clients) {
  world *one = holding(NULL);
  redlock_lock *lock;
  redlock_client *other = make_client(one->farm, NULL);
  assert_error(redlock_client_add(other, "127.0.0.1:1", NULL, 0), REDLOCK_OK);
  detach(one->lock);
  assert_refused(other, NULL, "another number of nodes");
  redlock_client_free(other);
  assert_error(redlock_client_close(one->client, SECONDS), REDLOCK_OK);
  assert_error(attach(&lock, one->client, NULL), REDLOCK_E_CLOSED);
}

/* Returns a client of the same nodes in the opposite order. */
static redlock_client *reversed_client(const loopback *farm) {
  redlock_client *client;
  assert_error(redlock_client_new(&client, NULL, NULL, 0), REDLOCK_OK);
  for (unsigned i = farm->count; i-- > 0;) {
    assert_error(redlock_client_add(client, farm->nodes[i].address, NULL, 0), REDLOCK_OK);
  }
  return client;
}

/* The third node has not answered, and attach must know which node that is. */
TEST(doubtful_node_requires_the_same_order_of_nodes) {
  world *one = holding(NULL);
  redlock_lock *lock;
  redlock_client *other;
  assert_error(redlock_lock_release(one->lock), REDLOCK_OK);
  loopback_lock(one->farm);
  one->farm->nodes[2].deaf = true;
  loopback_unlock(one->farm);
  assert_error(redlock_lock_acquire(one->lock, NULL, NULL), REDLOCK_OK);
  detach(one->lock);
  other = reversed_client(one->farm);
  assert_refused(other, NULL, "in the same order");
  redlock_client_free(other);
  other = make_client(one->farm, NULL);
  assert_error(attach(&lock, other, NULL), REDLOCK_OK);
  free_with_client(lock);
}

TEST(detached_text_fits_its_length_and_a_nul) {
  world *one = holding(NULL);
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
  eventually_by(turn(one, third_is_read || one->farm->nodes[2].sets == 0 ? 3 : 2),
                one->farm->nodes[2].sets > 0 && redlock_lock_result(one->lock) != REDLOCK_PENDING &&
                    (!third_is_read || rl_lock_of(one->lock)->lease->set_outstanding == 0));
  assert_error(redlock_lock_result(one->lock), REDLOCK_OK);
  assert_int_equal(rl_lock_of(one->lock)->lease->set_outstanding, third_is_read ? 0 : 4);
}

/* The reply has come while the program did something else. */
TEST(detach_reads_pending_replies) {
  world one;
  redlock_client *other;
  redlock_lock *lock;
  begin_a_lease(&one, false);
  struct pollfd fds[3];
  assert_int_equal(redlock_client_pollfds(one.client, fds, 3), 3);
  assert_int_equal(poll(&fds[2], 1, 5000), 1);
  other = reversed_client(one.farm);
  detach(one.lock);
  assert_error(attach(&lock, other, NULL), REDLOCK_OK);
  free_with_client(lock);
  free_with_client(one.lock);
  assert_true(loopback_end(one.farm));
}

/* Detach takes no turn if all nodes have answered, or on an external client. */
TEST(detach_reads_nothing_without_pending_replies) {
  for (unsigned external = 0; external < 2; external++) {
    world one;
    begin_a_lease(&one, external == 0);
    one.client->external = external == 1;
    redlock_time processed_us = one.client->processed_us;
    assert_error(redlock_lock_detach(one.lock, text, sizeof text, NULL), REDLOCK_OK);
    assert_true(one.client->processed_us == processed_us);
    one.client->external = false;
    free_with_client(one.lock);
    assert_true(loopback_end(one.farm));
  }
}
