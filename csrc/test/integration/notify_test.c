/*
 * Waiting for calls, on real servers.
 *
 * SPDX-License-Identifier: MIT
 *
 * Clients that wait for one lock, in one process, by a loop. spec/notify_behaviour.lua has what each driver must do.
 *
 * A notification is a hint: a node evicts a waiter that a slow machine held up, and that waiter polls after POLL_INTERVAL_US.
 * So a test in which a wait took MISSED_US or more runs again, and fails if it does so each time.
 */
#include "relay.h"
#include "support.h"
#include "wire/rl_command.h"

#define KEY "r"
#define CLIENTS_MAX 8
#define QUEUE KEY ":redlock-queue"
#define ENTRY 24 /* bytes of who stands there */
#define POLL_INTERVAL_US (12 * REDLOCK_SECONDS)
#define MISSED_US (8 * REDLOCK_SECONDS)
#define TRIES 5

typedef struct waiter {
  redlock_client *client;
  redlock_lock *lock;
} waiter;

static waiter waiters[CLIENTS_MAX];
static unsigned count;
static bool missed; /* a notification */

static redlock_options patient(void) {
  redlock_options options = once();
  options.retry_count = 0; /* as many as the wait allows */
  options.wait_us = 600 * REDLOCK_SECONDS;
  options.retry_delay_us = 300 * REDLOCK_SECONDS;
  options.retry_jitter_us = REDLOCK_DURATION_NONE;
  options.poll_interval_us = POLL_INTERVAL_US;
  return options;
}

static waiter *add(const redlock_options *options) {
  waiter *added = &waiters[count++];
  added->client = client_of(&five, 5, options);
  added->lock = new_lock(added->client, KEY);
  return added;
}

static int reset(void **state) {
  count = 0;
  return five_reset(state);
}

static int clear(void **state) {
  (void)state;
  for (unsigned i = 0; i < count; i++) {
    redlock_lock_free(waiters[i].lock);
    redlock_client_free(waiters[i].client);
  }
  return 0;
}

/* A turn of everybody. */
static bool turn(void) {
  for (unsigned i = 0; i < count; i++) {
    pump(waiters[i].client, i + 1 == count ? 1 : 0);
  }
  return true;
}

#define all_until(condition)                                                                       \
  do {                                                                                             \
    redlock_time all_until_us = redlock_now();                                                     \
    eventually(turn() && (condition));                                                             \
    missed = missed || redlock_now() - all_until_us >= MISSED_US;                                  \
  } while (0)

static bool holds(const waiter *one) {
  return redlock_lock_result(one->lock) == REDLOCK_OK && redlock_lock_remaining(one->lock) > 0;
}

static unsigned standing(unsigned node) {
  const char *length = farm_command(&five, node, "STRLEN", QUEUE, NULL);
  return length == NULL ? 0 : (unsigned)strtoul(length, NULL, 10) / ENTRY;
}

static bool all_stand(unsigned wanted) {
  for (unsigned i = 0; i < 5; i++) {
    if (standing(i) != wanted) {
      return false;
    }
  }
  return true;
}

static bool nobody_stands(void) {
  return all_stand(0);
}

static void begin(const waiter *one) {
  assert_int_equal(redlock_lock_acquire_start(one->lock, NULL), REDLOCK_OK);
}

static void they_are_called_in_the_order_in_which_they_came(void **state) {
  (void)state;
  redlock_options options = patient();
  for (unsigned i = 0; i < 6; i++) {
    waiter *one = add(&options);
    begin(one);
    if (i == 0) {
      all_until(holds(one));
    } else {
      all_until(all_stand(i));
    }
  }
  for (unsigned i = 0; i < 6; i++) {
    all_until(holds(&waiters[i]));
    for (unsigned k = i + 1; k < 6; k++) {
      assert_false(holds(&waiters[k]));
    }
    assert_int_equal(redlock_lock_release_start(waiters[i].lock), REDLOCK_OK);
  }
  all_until(nobody_stands());
}

static void who_gives_up_makes_way(void **state) {
  (void)state;
  redlock_options options = patient();
  for (unsigned i = 0; i < 3; i++) {
    begin(add(&options));
    if (i == 0) {
      all_until(holds(&waiters[0]));
    } else {
      all_until(all_stand(i));
    }
  }
  redlock_lock_cancel(waiters[1].lock);
  all_until(all_stand(1));
  assert_int_equal(redlock_lock_release_start(waiters[0].lock), REDLOCK_OK);
  all_until(holds(&waiters[2]));
}

/* A host with a hundred clients: they stand first on every node, and their connections are gone. */
static void who_is_dead_is_passed_over(void **state) {
  (void)state;
  redlock_options options = patient();
  for (unsigned i = 0; i < 3; i++) {
    begin(add(&options));
    if (i == 0) {
      all_until(holds(&waiters[0]));
    } else {
      all_until(all_stand(i));
    }
  }
  for (unsigned i = 0; i < 5; i++) { /* As if it had died: nobody leaves the queue for it. */
    char all[128 * ENTRY] = "";
    const char *living = farm_command(&five, i, "GET", QUEUE, NULL);
    for (unsigned k = 0; k < 100; k++) {
      (void)snprintf(all + (size_t)k * ENTRY, ENTRY + 1, "00000000000000%02x0000dead", k);
    }
    (void)snprintf(all + (size_t)100 * ENTRY, sizeof all - (size_t)100 * ENTRY, "%s", living);
    (void)farm_command(&five, i, "SET", QUEUE, all, NULL);
  }
  assert_int_equal(redlock_lock_release_start(waiters[0].lock), REDLOCK_OK);
  all_until(holds(&waiters[1]));
  all_until(all_stand(2)); /* The one that has it leaves with its release. */
}

static void the_locks_of_one_client_stand_once(void **state) {
  (void)state;
  redlock_options options = patient();
  waiter *holder = add(&options), *many = add(&options);
  redlock_lock *others[50];
  begin(holder);
  all_until(holds(holder));
  begin(many);
  for (unsigned i = 0; i < 50; i++) {
    others[i] = new_lock(many->client, KEY);
    assert_int_equal(redlock_lock_acquire_start(others[i], NULL), REDLOCK_OK);
  }
  all_until(all_stand(1));
  assert_int_equal(redlock_lock_release_start(holder->lock), REDLOCK_OK);
  all_until(holds(many));
  assert_int_equal(redlock_lock_release_start(many->lock), REDLOCK_OK);
  for (unsigned i = 0; i < 50; i++) {
    all_until(redlock_lock_result(others[i]) == REDLOCK_OK);
    assert_int_equal(redlock_lock_release_start(others[i]), REDLOCK_OK);
  }
  for (unsigned i = 0; i < 50; i++) {
    all_until(redlock_lock_result(others[i]) != REDLOCK_PENDING);
    redlock_lock_free(others[i]);
  }
  all_until(nobody_stands());
}

/* Another client that waits has its turn between the locks of one. */
static void the_locks_of_one_client_do_not_keep_others_out(void **state) {
  (void)state;
  redlock_options options = patient();
  waiter *many = add(&options), *other = add(&options);
  redlock_lock *second = new_lock(many->client, KEY), *third = new_lock(many->client, KEY);
  begin(many);
  all_until(holds(many));
  assert_int_equal(redlock_lock_acquire_start(second, NULL), REDLOCK_OK);
  assert_int_equal(redlock_lock_acquire_start(third, NULL), REDLOCK_OK);
  all_until(all_stand(1));
  begin(other);
  all_until(all_stand(2));
  assert_int_equal(redlock_lock_release_start(many->lock), REDLOCK_OK);
  all_until(redlock_lock_result(second) == REDLOCK_OK);
  all_until(
      all_stand(3)); /* The second leaves with its release; the third stands behind the other. */
  assert_int_equal(redlock_lock_release_start(second), REDLOCK_OK);
  /* The other may have lost its turn, if a slow machine held it up. */
  all_until(holds(other) || redlock_lock_result(third) == REDLOCK_OK);
  missed = missed || !holds(other);
  if (!missed) {
    assert_int_equal(redlock_lock_result(third), REDLOCK_PENDING);
    assert_int_equal(redlock_lock_release_start(other->lock), REDLOCK_OK);
    all_until(redlock_lock_result(third) == REDLOCK_OK);
  }
  redlock_lock_free(second);
  redlock_lock_free(third);
}

static bool all_have(const char *queue, const char *length) {
  for (unsigned i = 0; i < 5; i++) {
    const char *found = farm_command(&five, i, "STRLEN", queue, NULL);
    if (found == NULL || strcmp(found, length) != 0) {
      return false;
    }
  }
  return true;
}

/* A message has the whole key, of which a client keeps the beginning; it knows for what it waits. */
static void who_waits_for_a_long_name_is_called(void **state) {
  (void)state;
  char name[2000 + 1], queue[sizeof name + sizeof QUEUE];
  redlock_options options = patient();
  waiter *holder = add(&options), *next = add(&options);
  memset(name, 'n', sizeof name - 1);
  name[sizeof name - 1] = '\0';
  (void)snprintf(queue, sizeof queue, "%s:redlock-queue", name);
  for (unsigned i = 0; i < 2; i++) {
    redlock_lock_free(waiters[i].lock);
    waiters[i].lock = new_lock(waiters[i].client, name);
  }
  begin(holder);
  all_until(holds(holder));
  begin(next);
  all_until(all_have(queue, "24"));
  assert_int_equal(redlock_lock_release_start(holder->lock), REDLOCK_OK);
  all_until(holds(next));
}

static unsigned subscribers(unsigned node) {
  const char *clients = farm_command(&five, node, "CLIENT", "LIST", "TYPE", "pubsub", NULL);
  unsigned found = 0;
  for (const char *at = clients; at != NULL && (at = strstr(at, "id=")) != NULL; at++) {
    found++;
  }
  return found;
}

static bool all_subscribed(void) {
  bool all = true;
  for (unsigned i = 0; i < 5; i++) {
    all = all && subscribers(i) == 1;
  }
  return all;
}

/* Calls of the time in which nobody listens are lost. */
static void a_lost_subscription_is_made_again(void **state) {
  (void)state;
  redlock_options options = patient();
  waiter *holder = add(&options), *next = add(&options);
  begin(holder);
  all_until(holds(holder));
  begin(next);
  all_until(all_stand(1));
  for (unsigned i = 0; i < 5; i++) {
    (void)farm_command(&five, i, "CLIENT", "KILL", "TYPE", "pubsub", NULL);
  }
  all_until(all_subscribed() && all_stand(1));
  assert_int_equal(redlock_lock_release_start(holder->lock), REDLOCK_OK);
  all_until(holds(next));
}

/* Else everybody who looks while the lock changes hands would take somebody's place from under him. */
static void who_is_called_goes_only_if_nobody_has_moved_up_meanwhile(void **state) {
  (void)state;
  static const char queue[] = "other:redlock-queue", who[] = "00000000000000000000aaaa";
  const char *stand = rl_command_script_text(RL_SCRIPT_ENQUEUE);
  char first[ENTRY + 1], second[ENTRY + 1], all[3 * ENTRY + 1];
  redlock_options options = patient();
  waiter *holder = add(&options), *next = add(&options);
  begin(holder);
  all_until(holds(holder));
  begin(next);
  all_until(all_stand(1));
  const char *entry = farm_command(&five, 0, "GET", QUEUE, NULL);
  (void)snprintf(first, sizeof first, "%.16sffffffff", entry); /* It listens, and never comes. */
  (void)snprintf(second, sizeof second, "%.16sfffffffe", first);
  (void)snprintf(all, sizeof all, "%s%s%s", first, second, who);
  (void)farm_command(&five, 0, "SET", queue, all, NULL);
  assert_string_equal(farm_command(&five, 0, "EVAL", stand, "1", "other", who, "2", NULL), "3");
  assert_string_equal(farm_command(&five, 0, "STRLEN", queue, NULL), "72");
  assert_string_equal(farm_command(&five, 0, "EVAL", stand, "1", "other", who, "3", NULL), "2");
  assert_string_equal(farm_command(&five, 0, "GETRANGE", queue, "0", "23", NULL), second);
  assert_string_equal(farm_command(&five, 0, "EVAL", stand, "1", "other", who, "3", NULL), "2");
  assert_string_equal(farm_command(&five, 0, "STRLEN", queue, NULL), "48");
}

/* The calls themselves are lost: the slow look finds that the lock is free. */
static void without_a_call_the_slow_look_finds_it(void **state) {
  (void)state;
  redlock_options options = patient();
  options.poll_interval_us = MS(300);
  waiter *holder = add(&options), *next = add(&options);
  begin(holder);
  all_until(holds(holder));
  begin(next);
  all_until(all_stand(1));
  for (unsigned i = 0; i < 5; i++) {
    (void)farm_command(&five, i, "DEL", KEY, NULL);
  }
  all_until(holds(next));
}

/* Every third message of each node is lost, now and then that of a majority: nobody hangs, and each has its turn. */
static void while_messages_are_lost_everybody_is_served(void **state) {
  (void)state;
  relay relays[5];
  const char *addresses[5];
  unsigned had[3] = {0}, lost = 0;
  redlock_options options = patient();
  options.poll_interval_us = MS(300);
  for (unsigned i = 0; i < 5; i++) {
    relay_start(&relays[i], farm_client_port(&five, i), 0, 3);
    addresses[i] = relays[i].address;
  }
  while (count < 3) {
    waiters[count].client = client_at(addresses, 5, &options);
    waiters[count].lock = new_lock(waiters[count].client, KEY);
    begin(&waiters[count++]);
  }
  for (unsigned round = 0; round < 30; round++) {
    unsigned who = 0;
    all_until(holds(&waiters[0]) || holds(&waiters[1]) || holds(&waiters[2]));
    while (!holds(&waiters[who])) {
      who++;
    }
    had[who]++;
    assert_int_equal(redlock_lock_release_start(waiters[who].lock), REDLOCK_OK);
    all_until(redlock_lock_result(waiters[who].lock) == REDLOCK_OK && !holds(&waiters[who]));
    begin(&waiters[who]);
  }
  for (unsigned i = 0; i < 5; i++) {
    lost += relays[i].order->lost;
  }
  assert_true(lost >= 5);
  assert_true(had[0] > 0 && had[1] > 0 && had[2] > 0);
  clear(NULL);
  count = 0;
  for (unsigned i = 0; i < 5; i++) {
    relay_end(&relays[i]);
  }
}

static void a_fair_acquire_does_not_overtake(void **state) {
  (void)state;
  redlock_options options = patient();
  options.fair = REDLOCK_YES;
  waiter *holder = add(&options), *next = add(&options), *late = add(&options);
  begin(holder);
  all_until(holds(holder));
  begin(next);
  all_until(all_stand(1));
  begin(late);
  all_until(all_stand(2));
  redlock_lock_cancel(late->lock); /* It has its listeners now. */
  all_until(all_stand(1));
  for (unsigned round = 0; round < 20; round++) {
    assert_int_equal(redlock_lock_release_start(holder->lock), REDLOCK_OK);
    begin(late); /* At the moment in which the lock is free. */
    all_until(holds(next));
    assert_false(holds(late));
    begin(holder);
    assert_int_equal(redlock_lock_release_start(next->lock), REDLOCK_OK);
    all_until(holds(late));
    assert_false(holds(holder));
    assert_int_equal(redlock_lock_release_start(late->lock), REDLOCK_OK);
    all_until(holds(holder));
    begin(next);
    all_until(all_stand(2)); /* The holder leaves with its release. */
  }
}

typedef struct notify_test {
  void (*run)(void **state);
} notify_test;

static void repeat(void **state) {
  const notify_test *self = *state;
  for (unsigned tries = 1;; tries++) {
    missed = false;
    self->run(state);
    if (!missed) {
      return;
    }
    assert_true(tries < TRIES);
    print_message("# repeated: a waiter was not notified\n");
    (void)clear(state);
    (void)reset(state);
  }
}

#define CALLS_TEST(name)                                                                           \
  {                                                                                                \
#name, repeat, reset, clear, &(notify_test) {                                                   \
      name                                                                                         \
    }                                                                                              \
  }

int main(void) {
  const struct CMUnitTest tests[] = {
      CALLS_TEST(they_are_called_in_the_order_in_which_they_came),
      CALLS_TEST(who_gives_up_makes_way),
      CALLS_TEST(who_is_dead_is_passed_over),
      CALLS_TEST(the_locks_of_one_client_stand_once),
      CALLS_TEST(the_locks_of_one_client_do_not_keep_others_out),
      CALLS_TEST(who_waits_for_a_long_name_is_called),
      CALLS_TEST(a_lost_subscription_is_made_again),
      CALLS_TEST(who_is_called_goes_only_if_nobody_has_moved_up_meanwhile),
      CALLS_TEST(without_a_call_the_slow_look_finds_it),
      CALLS_TEST(while_messages_are_lost_everybody_is_served),
      CALLS_TEST(a_fair_acquire_does_not_overtake),
  };
  return cmocka_run_group_tests(tests, five_start, five_end);
}
