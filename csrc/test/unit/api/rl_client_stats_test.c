/*
 * redlock_client_stats(), redlock_client_on_event() and what they call, with servers on loopback.
 *
 * SPDX-License-Identifier: MIT
 */
#include <stdatomic.h>
#include <unistd.h>

#include "client/rl_client.h"
#include "client_world.h"

static void acquire_and_release(const world *one) {
  assert_error(redlock_lock_acquire(one->lock, NULL, NULL), REDLOCK_OK);
  assert_error(redlock_lock_release(one->lock), REDLOCK_OK);
}

TEST(missing_arguments_are_invalid) {
  const world *one = world_new(3);
  redlock_stats_info stats;
  redlock_node_stats_info node;
  redlock_event_info event;
  assert_error(redlock_client_stats(NULL, &stats), REDLOCK_E_INVALID);
  assert_error(redlock_client_stats(one->client, NULL), REDLOCK_E_INVALID);
  assert_error(redlock_client_node_stats(NULL, 0, &node), REDLOCK_E_INVALID);
  assert_error(redlock_client_node_stats(one->client, 0, NULL), REDLOCK_E_INVALID);
  assert_error(redlock_client_node_stats(one->client, 3, &node), REDLOCK_E_INVALID);
  assert_error(redlock_client_next_event(NULL, &event), REDLOCK_E_INVALID);
  assert_error(redlock_client_next_event(one->client, NULL), REDLOCK_E_INVALID);
  assert_error(redlock_client_on_event(NULL, NULL, NULL), REDLOCK_E_INVALID);
  assert_string_equal(redlock_event_name(0), "unknown");
}

TEST(stats_are_those_of_the_client) {
  const world *one = world_new(3);
  redlock_stats_info stats;
  redlock_node_stats_info node;
  uint64_t granted = 0;
  assert_error(redlock_lock_acquire(one->lock, NULL, NULL), REDLOCK_OK);
  assert_error(redlock_client_stats(one->client, &stats), REDLOCK_OK);
  assert_int_equal(stats.acquire.ok, 1);
  assert_int_equal(stats.held, 1);
  assert_int_equal(stats.quorum, 2);
  assert_int_equal(stats.acquire_time.count, 1);
  assert_error(redlock_lock_release(one->lock), REDLOCK_OK);
  assert_error(redlock_client_stats(one->client, &stats), REDLOCK_OK);
  assert_int_equal(stats.release.ok, 1);
  assert_int_equal(stats.held, 0);
  for (size_t i = 0; i < 3; i++) {
    assert_error(redlock_client_node_stats(one->client, i, &node), REDLOCK_OK);
    assert_string_equal(node.name, one->client->core.nodes[i]->address.name);
    assert_int_equal(node.quarantined, REDLOCK_NO);
    granted += node.votes_granted;
  }
  assert_true(granted >= 4);
}

TEST(older_struct_is_filled_up_to_its_size) {
  const world *one = world_new(3);
  unsigned char bytes[sizeof(redlock_stats_info)];
  size_t older = offsetof(redlock_stats_info, attempts);
  acquire_and_release(one);
  memset(bytes, 0xa5, sizeof bytes);
  assert_error(redlock_client_stats_sized(one->client, (redlock_stats_info *)(void *)bytes, older),
               REDLOCK_OK);
  assert_int_equal(((redlock_stats_info *)(void *)bytes)->acquire.ok, 1);
  for (size_t i = older; i < sizeof bytes; i++) {
    assert_int_equal(bytes[i], 0xa5);
  }
}

TEST(newer_struct_has_zeros_behind) {
  const world *one = world_new(3);
  struct {
    redlock_node_stats_info info;
    unsigned char newer[64];
  } node;
  memset(&node, 0xa5, sizeof node);
  assert_error(redlock_client_node_stats_sized(one->client, 0, &node.info, sizeof node),
               REDLOCK_OK);
  for (size_t i = 0; i < sizeof node.newer; i++) {
    assert_int_equal(node.newer[i], 0);
  }
}

TEST(no_event_is_kept_by_default) {
  const world *one = world_new(3);
  redlock_event_info event;
  acquire_and_release(one);
  assert_null(one->client->core.events);
  assert_error(redlock_client_next_event(one->client, &event), REDLOCK_PENDING);
}

/* A program with a loop passes no function. */
TEST(loop_takes_events_without_a_thread) {
  const world *one = world_new(3);
  redlock_event_info event;
  unsigned up = 0;
  assert_error(redlock_client_on_event(one->client, NULL, NULL), REDLOCK_OK);
  assert_false(one->client->watchdog.runs);
  struct pollfd poll_fd = {.fd = redlock_client_pollfd(one->client), .events = POLLIN};
  assert_true(poll_fd.fd >= 0);
  assert_error(redlock_lock_acquire_start(one->lock, NULL), REDLOCK_OK);
  redlock_time until_us = redlock_now() + EVENTUALLY_US;
  while (up != 7) {
    assert_true(redlock_now() < until_us);
    (void)poll(&poll_fd, 1, 1000);
    assert_error(redlock_client_process(one->client, NULL, 0), REDLOCK_OK);
    while (redlock_client_next_event(one->client, &event) == REDLOCK_OK) {
      assert_string_equal(redlock_event_name(event.event), "up");
      assert_true(event.at_us <= redlock_now());
      assert_null(event.reason);
      assert_null(event.resource);
      assert_int_equal(event.missed, 0);
      for (unsigned i = 0; i < 3; i++) {
        up |= (unsigned)(event.node == one->client->core.nodes[i]->address.name) << i;
      }
    }
  }
}

static atomic_uint events_up;
static atomic_uint events_lost;
static atomic_bool mutex_was_free;

static void on_event(redlock_client *client, void *data) {
  redlock_event_info event;
  assert_ptr_equal(data, &events_up);
  if (pthread_mutex_trylock(&client->mutex.mutex) == 0) {
    atomic_store(&mutex_was_free, true);
    (void)pthread_mutex_unlock(&client->mutex.mutex);
  }
  while (redlock_client_next_event(client, &event) == REDLOCK_OK) {
    atomic_fetch_add(&events_up, event.event == REDLOCK_EVENT_UP);
    if (event.event == REDLOCK_EVENT_LOST && event.error == REDLOCK_E_EXPIRED &&
        event.resource_length == 9 && memcmp(event.resource, "orders:42", 9) == 0) {
      atomic_fetch_add(&events_lost, 1);
    }
  }
}

TEST(watchdog_calls_on_event) {
  const world *one = world_new(3);
  redlock_options options = {.ttl_us = 50 * MS, .notify_lost = REDLOCK_YES};
  atomic_store(&events_up, 0);
  atomic_store(&events_lost, 0);
  atomic_store(&mutex_was_free, false);
  assert_error(redlock_client_on_event(one->client, on_event, &events_up), REDLOCK_OK);
  acquire_and_release(one);
  eventually(atomic_load(&events_up) == 3);
  eventually(redlock_lock_acquire(one->lock, &options, NULL) == REDLOCK_OK);
  eventually(atomic_load(&events_lost) >= 1);
  assert_true(atomic_load(&mutex_was_free)); /* The watchdog does not hold it. */
  assert_error(redlock_client_close(one->client, SECONDS), REDLOCK_OK);
  assert_error(redlock_client_on_event(one->client, NULL, NULL), REDLOCK_E_CLOSED);
}

TEST(child_begins_at_zero_and_calls_no_function) {
  const world *one = world_new(3);
  redlock_stats_info stats;
  redlock_node_stats_info node;
  redlock_event_info event;
  atomic_store(&events_up, 0);
  assert_error(redlock_client_on_event(one->client, on_event, &events_up), REDLOCK_OK);
  acquire_and_release(one);
  pid_t child = fork();
  if (child == 0) {
    bool zero = redlock_client_stats(one->client, &stats) == REDLOCK_OK && stats.acquire.ok == 0 &&
                stats.acquire_time.count == 0 && stats.attempts == 0 &&
                redlock_client_node_stats(one->client, 0, &node) == REDLOCK_OK &&
                node.votes_granted == 0 && node.connections == 0 && node.up == REDLOCK_NO;
    bool none = redlock_client_next_event(one->client, &event) == REDLOCK_PENDING &&
                one->client->watchdog.on_event == NULL;
    _exit(zero && none ? 0 : 1);
  }
  assert_int_equal(exit_status(child), 0);
  assert_error(redlock_client_stats(one->client, &stats), REDLOCK_OK);
  assert_int_equal(stats.acquire.ok, 1);
}

TEST(client_of_nginx_has_no_function) {
  const world *one = world_new(3);
  one->client->external = true;
  assert_error(redlock_client_on_event(one->client, on_event, &events_up), REDLOCK_E_INVALID);
  assert_error(redlock_client_on_event(one->client, NULL, NULL), REDLOCK_OK);
  one->client->external = false;
}

TEST(stats_remain_after_close) {
  const world *one = world_new(3);
  redlock_stats_info stats;
  redlock_node_stats_info node;
  uint64_t granted = 0;
  acquire_and_release(one);
  assert_error(redlock_client_close(one->client, 10 * SECONDS), REDLOCK_OK);
  assert_error(redlock_client_stats(one->client, &stats), REDLOCK_OK);
  assert_int_equal(stats.acquire.ok, 1);
  for (size_t i = 0; i < 3; i++) {
    assert_error(redlock_client_node_stats(one->client, i, &node), REDLOCK_OK);
    assert_int_equal(node.up, REDLOCK_NO);
    granted += node.votes_granted;
  }
  assert_true(granted >= 4);
}
