/*
 * When the watchdog is woken, without a thread.
 *
 * SPDX-License-Identifier: MIT
 */
#include "client/rl_watchdog.h"

#include "client/rl_client.h"
#include "client/rl_watchdog_due.h"
#include "rl_test.h"

#define QUIET_US (10 * MS)
#define LOOP_US (20 * MS)

static redlock_client *client;

/* It sleeps for ever, just after the last turn. */
static int begin(void **state) {
  assert_error(redlock_client_new(&client, NULL, NULL, 0), REDLOCK_OK);
  assert_error(redlock_client_add(client, "127.0.0.1:1", NULL, 0), REDLOCK_OK);
  rl_client_enter(client);
  client->watchdog.runs = true;
  client->watchdog.until_us = REDLOCK_NEVER;
  client->processed_us = 1000 * SECONDS;
  return 0;
}

static int end(void **state) {
  client->watchdog.runs = false;
  client->epoll_fd = -1;
  client->core.nodes[0]->link.phase = RL_LINK_DOWN;
  rl_client_leave(client);
  redlock_client_free(client);
  return 0;
}

/* Returns true if a watchdog that sleeps until |until_us| would wake too late. */
static bool is_late(redlock_time until_us) {
  client->watchdog.until_us = until_us;
  return rl_watchdog_is_late(client);
}

TEST(watchdog_takes_a_turn_10_ms_after_the_last) {
  assert_false(is_late(client->processed_us + QUIET_US));
  assert_true(is_late(client->processed_us + QUIET_US + 1));
  assert_true(is_late(REDLOCK_NEVER));
}

TEST(awake_watchdog_is_not_woken) {
  assert_false(is_late(0));
  client->watchdog.runs = false;
  assert_false(is_late(REDLOCK_NEVER));
}

TEST(watchdog_is_not_woken_during_a_call) {
  rl_caller *caller = rl_caller_begin(client, NULL);
  client->callers.poller = caller;
  assert_false(is_late(REDLOCK_NEVER));
  client->callers.poller = NULL;
  assert_true(is_late(REDLOCK_NEVER));
  rl_list_append(&client->callers.asleep, &caller->list);
  assert_false(is_late(REDLOCK_NEVER));
  rl_list_remove(&caller->list);
  client->callers.arriving = 1; /* It is woken, and does not run yet. */
  assert_false(is_late(REDLOCK_NEVER));
  client->callers.arriving = 0;
  rl_caller_end(client, caller);
}

TEST(watchdog_of_a_closed_client_is_not_woken) {
  client->core.closed = true;
  assert_false(is_late(REDLOCK_NEVER));
}

TEST(watchdog_waits_20_ms_for_a_loop) {
  rl_link *link = &client->core.nodes[0]->link;
  client->epoll_fd = 0; /* any descriptor */
  assert_false(is_late(REDLOCK_NEVER));
  for (unsigned connects = 0; connects < 2; connects++) {
    link->phase = connects == 1 ? RL_LINK_CONNECTING : RL_LINK_HANDSHAKE;
    link->phase_deadline_us = REDLOCK_NEVER;
    assert_false(is_late(client->processed_us + LOOP_US));
    assert_true(is_late(client->processed_us + LOOP_US + 1));
  }
  link->phase = RL_LINK_UP;
  assert_false(is_late(REDLOCK_NEVER));
}

TEST(watchdog_is_started_once_and_only_if_allowed) {
  for (unsigned i = 0; i < 3; i++) {
    client->watchdog.runs = i == 0;
    client->watchdog.forbidden = i == 1; /* Lua code that cannot have threads */
    client->external = i == 2;           /* a host with connections of its own */
    assert_error(rl_watchdog_start(client), REDLOCK_OK);
    assert_true(client->watchdog.runs == (i == 0));
    assert_int_equal(rl_eventfd_to_poll(&client->watchdog.event), -1);
  }
  client->external = false;
}

int main(void) {
  return tests_run(&(tests_fixture){.before = begin, .after = end});
}
