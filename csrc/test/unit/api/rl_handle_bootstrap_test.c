/*
 * Guard and bootstrap as programs see them, with servers on loopback in a thread.
 *
 * SPDX-License-Identifier: MIT
 */
#include "api/rl_handle.h"
#include "client_world.h"
#include "fake_clock.h"

/* A world with a guard, and nodes without a record. */
static world *guarded(void) {
  world *one = world_with_settings(
      3, (redlock_settings){.guard = REDLOCK_YES, .guard_max_ttl_us = 200 * SECONDS});
  for (unsigned i = 0; i < 3; i++) {
    fake_store *store = &one->farm->nodes[i].store;
    (void)snprintf(store->run_id, sizeof store->run_id, "server%u", i);
  }
  return one;
}

TEST(quarantined_node_reports_time_and_reason) {
  world *one = guarded();
  redlock_node_info info;
  redlock_vote_info vote;
  assert_error(redlock_lock_acquire(one->lock, NULL, NULL), REDLOCK_E_UNAVAILABLE);
  assert_error(redlock_lock_acquire(one->lock, NULL, NULL), REDLOCK_E_UNAVAILABLE);
  assert_error(redlock_client_node_info(one->client, 0, &info), REDLOCK_OK);
  assert_int_equal(info.state, REDLOCK_NODE_UP);
  assert_null(info.error);
  assert_true(info.quarantined_us > 0);
  assert_ptr_equal(info.quarantine, info.quarantine_text);
  assert_non_null(strstr(info.quarantine, "it has no record"));
  assert_error(redlock_lock_vote(one->lock, 0, &vote), REDLOCK_OK);
  assert_int_equal(vote.vote, REDLOCK_VOTE_QUARANTINED);
  assert_non_null(strstr(vote.error, "it has no record"));
}

TEST(program_older_than_the_guard_gets_the_rest) {
  world *one = guarded();
  redlock_node_info info;
  memset(&info, 1, sizeof info);
  assert_error(redlock_client_node_info_sized(one->client, 0, &info,
                                              offsetof(redlock_node_info, quarantined_us)),
               REDLOCK_OK);
  assert_string_equal(info.name, one->farm->nodes[0].name);
  memset(&info, 1, sizeof info);
  assert_error(redlock_client_node_info(one->client, 0, &info), REDLOCK_OK);
  assert_int_equal(info.quarantined_us, 0);
  assert_null(info.quarantine); /* It is not connected. */
}

TEST(bootstrap_lets_new_nodes_vote) {
  world *one = guarded();
  redlock_node_info info;
  assert_error(redlock_client_bootstrap(one->client), REDLOCK_OK);
  assert_string_equal(redlock_client_message(one->client), "");
  for (size_t i = 0; i < 3; i++) {
    assert_error(redlock_client_node_info(one->client, i, &info), REDLOCK_OK);
    assert_int_equal(info.quarantined_us, 0);
    assert_null(info.quarantine);
  }
  assert_error(redlock_lock_acquire(one->lock, NULL, NULL), REDLOCK_OK);
  assert_error(redlock_lock_bootstrap(one->lock), REDLOCK_E_HELD);
  assert_error(redlock_lock_release(one->lock), REDLOCK_OK);
  assert_error(redlock_lock_bootstrap(one->lock), REDLOCK_OK);
}

TEST(loop_can_start_bootstrap) {
  world *one = guarded();
  assert_error(redlock_lock_bootstrap_start(one->lock), REDLOCK_OK);
  assert_error(redlock_lock_bootstrap_start(one->lock), REDLOCK_E_BUSY);
  assert_error(loopback_finish(one->client, one->lock), REDLOCK_OK);
  for (size_t i = 0; i < 3; i++) {
    redlock_vote_info vote;
    assert_error(redlock_lock_vote(one->lock, i, &vote), REDLOCK_OK);
    assert_int_equal(vote.vote, REDLOCK_VOTE_GRANTED);
    assert_null(vote.error);
  }
}

TEST(bootstrap_explains_its_failure) {
  world *one = guarded();
  stop_server(one->farm, 0);
  stop_server(one->farm, 1);
  assert_error(redlock_client_bootstrap(one->client), REDLOCK_E_UNAVAILABLE);
  assert_non_null(strstr(redlock_client_message(one->client), "1 of 3 nodes may vote"));
  assert_error(redlock_client_bootstrap(NULL), REDLOCK_E_INVALID);
  assert_error(redlock_lock_bootstrap(NULL), REDLOCK_E_INVALID);
  assert_error(redlock_lock_bootstrap_start(NULL), REDLOCK_E_INVALID);
}

TEST(guard_refuses_too_long_leases) {
  world *one = guarded();
  redlock_lock *lock;
  redlock_options options = {.ttl_us = 200 * SECONDS + 1000};
  assert_error(redlock_lock_new(&lock, one->client, "y", 1, &options), REDLOCK_E_INVALID);
  assert_non_null(strstr(redlock_client_message(one->client), "the guard's max_ttl"));
  assert_error(redlock_lock_acquire(one->lock, &options, NULL), REDLOCK_E_INVALID);
  assert_non_null(strstr(redlock_lock_message(one->lock), "the guard's max_ttl"));
}

TEST(guard_settings_are_checked) {
  static const struct {
    redlock_settings settings;
    redlock_options options;
    const char *said; /* NULL: it is correct */
  } cases[] = {
      {{.guard = REDLOCK_YES}, {0}, NULL},
      {{.guard = REDLOCK_NO}, {.ttl_us = 40 * SECONDS}, NULL},
      {{.guard = REDLOCK_YES}, {.ttl_us = 30 * SECONDS}, NULL},
      {{.guard = REDLOCK_YES},
       {.ttl_us = 30 * SECONDS + 1 * MS},
       "the guard's max_ttl: ttl 30001 ms, lock_delay 0 ms, max_ttl 30000 ms (the default)"},
      {{.guard = REDLOCK_YES},
       {.ttl_us = 29 * SECONDS, .lock_delay_us = 2 * SECONDS},
       "lock_delay"},
      {{.guard = REDLOCK_YES, .guard_max_ttl_us = 5 * SECONDS},
       {0},
       "the guard's max_ttl: ttl 10000 ms (the default), lock_delay 0 ms, max_ttl 5000 ms"},
      {{.guard = REDLOCK_YES, .guard_max_ttl_us = 10103031},
       {.hold_at_least_us = 10 * SECONDS}, /* It adds the drift and 2 ms. */
       NULL},
      {{.guard = REDLOCK_YES},
       {.hold_at_least_us = 30 * SECONDS},
       "the guard's max_ttl: hold_at_least 30000 ms, lock_delay 0 ms, max_ttl 30000 ms (the default)"},
      {{.guard = 7}, {0}, "REDLOCK_YES"},
      {{.guard_max_ttl_us = 20 * SECONDS}, {0}, "need guard"},
      {{.guard_cluster = "blue"}, {0}, "need guard"},
      {{.guard = REDLOCK_YES, .guard_cluster = "blue"}, {0}, NULL},
      {{.guard = REDLOCK_YES, .guard_cluster = ""}, {0}, "from 1 to 64 bytes"},
      {{.guard = REDLOCK_YES, .guard_cluster = "a b"}, {0}, "no spaces"},
      {{.guard = REDLOCK_YES, .guard_cluster = "a\x7f"}, {0}, "printable"},
      {{.guard = REDLOCK_YES, .guard_max_ttl_us = 999}, {0}, "from 1 ms"},
  };
  for (unsigned i = 0; i < COUNT_OF(cases); i++) {
    char message[256] = "";
    redlock_client *client = NULL;
    redlock_settings settings = cases[i].settings;
    settings.options = &cases[i].options;
    int error = redlock_client_new(&client, &settings, message, sizeof message);
    assert_error(error, cases[i].said == NULL ? REDLOCK_OK : REDLOCK_E_INVALID);
    assert_true(cases[i].said == NULL || strstr(message, cases[i].said) != NULL);
    redlock_client_free(client);
  }
}
