/*
 * Terms and campaigns of redlock_client_lead(), with servers on loopback. Without a watchdog,
 * leases are extended in calls only.
 *
 * SPDX-License-Identifier: MIT
 */
#include "client_world.h"
#include "fake_clock.h"

static loopback *farm;
static redlock_client *client;

static int begin(void **state) {
  const world *one = world_new(3);
  farm = one->farm;
  client = one->client;
  client->watchdog.forbidden = true;
  return 0;
}

typedef struct act {
  const char *what;
  void (*during)(redlock_lock *term);
  int result;
} act;

static void do_nothing(redlock_lock *term) {}

static void wait_until_expired(redlock_lock *term) {
  fake_clock.now_us += 500 * SECONDS;
  assert_error(redlock_lock_lost(term, NULL), REDLOCK_E_EXPIRED);
}

static void delete_keys(redlock_lock *term) {
  loopback_lock(farm);
  for (unsigned i = 0; i < farm->count; i++) {
    memset(farm->nodes[i].store.keys, 0, sizeof farm->nodes[i].store.keys);
  }
  loopback_unlock(farm);
}

static void lose(redlock_lock *term) {
  delete_keys(term);
  assert_error(redlock_lock_extend(term, 0, NULL), REDLOCK_E_LOST);
  assert_error(redlock_lock_lost(term, NULL), REDLOCK_E_LOST);
}

static void silence_nodes(redlock_lock *term) {
  set_deaf(farm, true);
}

static int lead(redlock_lock *term, void *data) {
  const act *row = data;
  row->during(term);
  return REDLOCK_RESIGN;
}

TEST(program_that_resigns_gets_the_end_of_its_term) {
  static act rows[] = {
      {"nothing", do_nothing, REDLOCK_OK},
      {"expired", wait_until_expired, REDLOCK_E_EXPIRED},
      {"lost at the release", delete_keys, REDLOCK_E_LOST},
      {"lost", lose, REDLOCK_E_LOST},
      {"unanswered release", silence_nodes, REDLOCK_OK},
  };
  for (unsigned i = 0; i < COUNT_OF(rows); i++) {
    int result = redlock_client_lead(client, "r", 1, NULL, lead, NULL, &rows[i]);
    if (result != rows[i].result) {
      fail_msg("%s: %s", rows[i].what, redlock_strerror(result));
    }
    set_deaf(farm, false);
  }
}

static void wait_until_max_hold(redlock_lock *term) {
  fake_clock.now_us += 500 * SECONDS;
  assert_error(redlock_lock_lost(term, NULL), REDLOCK_E_MAX_HOLD);
}

TEST(term_of_max_hold_ends_with_it) {
  redlock_options options = {.ttl_us = 10 * SECONDS, .max_hold_us = SECONDS};
  act row = {"max_hold", wait_until_max_hold, REDLOCK_E_MAX_HOLD};
  assert_error(redlock_client_lead(client, "r", 1, &options, lead, NULL, &row), row.result);
}

/* The first acquires of a campaign wait for 1 s and 2 s. */
TEST(campaign_goes_on_while_the_lock_is_taken) {
  redlock_options options = {.ttl_us = 2 * SECONDS};
  redlock_client *other = new_client_of(farm, (redlock_settings){0});
  redlock_lock *held = new_lock(other, "r", &options);
  act row = {"nothing", do_nothing, REDLOCK_OK};
  assert_error(redlock_lock_acquire(held, NULL, NULL), REDLOCK_OK);
  assert_error(redlock_client_lead(client, "r", 1, NULL, lead, NULL, &row), REDLOCK_OK);
  free_with_client(held);
}

int main(void) {
  return tests_run(&(tests_fixture){.before = begin});
}
