/*
 * Eight clients that contend for one key: what that costs the nodes.
 *
 * SPDX-License-Identifier: MIT
 */
#include "far.h"
#include "support.h"

#define CLIENTS 8
#define TURNS 25

static int contend(void *argument) {
  redlock_options options = once();
  (void)argument;
  options.ttl_us = MS(20000);
  options.node_timeout_us = MS(500);
  options.retry_count = 0; /* as many as the wait allows */
  options.wait_us = MS(60000);
  options.retry_delay_us = MS(4);
  options.retry_jitter_us = MS(3);
  options.notify = REDLOCK_NO; /* Else there is hardly an attempt that fails. */
  redlock_client *client = client_of(&five, 5, &options);
  redlock_lock *lock = new_lock(client, "contested");
  for (unsigned i = 0; i < TURNS; i++) {
    assert_ok(lock, redlock_lock_acquire(lock, NULL, NULL));
    (void)poll(NULL, 0, 1);
    assert_ok(lock, redlock_lock_release(lock));
  }
  redlock_lock_free(lock);
  redlock_client_free(client);
  return 0;
}

static int contend_all(void *argument) {
  pid_t children[CLIENTS];
  int failed = 0;
  for (unsigned i = 0; i < CLIENTS; i++) {
    children[i] = fork();
    if (children[i] == 0) {
      _exit(contend(argument));
    }
  }
  for (unsigned i = 0; i < CLIENTS; i++) {
    int status = -1;
    (void)waitpid(children[i], &status, 0);
    failed += status != 0;
  }
  return failed;
}

/* A node that refused the SET has no key of it: a release there is work for nothing. */
static void releases_go_where_there_is_something_to_delete(void **state) {
  (void)state;
  unsigned scripts = 0, deleted = 0, sets = 0;
  in_child(contend_all, NULL);
  for (unsigned i = 0; i < five.count; i++) {
    scripts += farm_calls(&five, i, "evalsha") + farm_calls(&five, i, "eval");
    deleted += farm_calls(&five, i, "del");
    sets += farm_calls(&five, i, "set");
    assert_string_equal(farm_command(&five, i, "DBSIZE", NULL), "0");
  }
  print_message("%u SETs, %u scripts, of which %u deleted a key\n", sets, scripts, deleted);
  assert_true(sets > 2 * deleted); /* There was a contest. */
  assert_true(2 * scripts <= 3 * deleted);
}

/*
 * Two of five nodes are far away, and have not answered when the others refuse. The caller does nothing
 * more; what those two may hold is released all the same.
 */
static void a_blocking_call_that_fails_leaves_no_release_to_the_next(void **state) {
  (void)state;
  far_relay relays[2];
  const char *addresses[5];
  redlock_options options = once();
  options.ttl_us = MS(60000);
  options.node_timeout_us = MS(1000);
  farm_reset(&five);
  for (unsigned i = 0; i < 5; i++) {
    addresses[i] = five.nodes[i].address;
    if (i >= 3) {
      far_start(&relays[i - 3], farm_client_port(&five, i), MS(30));
      addresses[i] = relays[i - 3].address;
    }
  }
  redlock_client *client = client_at(addresses, 5, &options);
  redlock_lock *lock = new_lock(client, "r");
  warm_up(client);
  for (unsigned i = 0; i < 5; i++) {
    eventually(strcmp(farm_command(&five, i, "DBSIZE", NULL), "0") == 0);
  }
  for (unsigned i = 0; i < 3; i++) {
    assert_string_equal(farm_command(&five, i, "SET", "r", "another's", NULL), "OK");
  }
  assert_int_equal(redlock_lock_acquire(lock, NULL, NULL), REDLOCK_E_TAKEN);
  eventually(farm_calls(&five, 3, "set") >= 2 && farm_calls(&five, 4, "set") >= 2);
  eventually(strcmp(farm_command(&five, 3, "DBSIZE", NULL), "0") == 0);
  eventually(strcmp(farm_command(&five, 4, "DBSIZE", NULL), "0") == 0);
  assert_int_equal(farm_count(&five, "r", "another's"), 3);
  redlock_lock_free(lock);
  redlock_client_free(client);
  far_end(&relays[0]);
  far_end(&relays[1]);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(releases_go_where_there_is_something_to_delete),
      cmocka_unit_test(a_blocking_call_that_fails_leaves_no_release_to_the_next),
  };
  return cmocka_run_group_tests_name("contest", tests, five_start, five_end);
}
