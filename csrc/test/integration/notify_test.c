/*
 * Notifications of real servers to clients that wait for one lock, in one process with a loop.
 * spec/notify_behaviour.lua has what each driver must do.
 *
 * SPDX-License-Identifier: MIT
 *
 * A notification is a hint: a node evicts a waiter that a slow machine held up, and that waiter
 * polls after POLL_INTERVAL_US. So a test in which a wait took MISSED_US or more runs again, and
 * fails if each try does so.
 */
#include "support.h"

#define CLIENTS_MAX 6
#define ENTRY 24 /* bytes of one entry of a queue */
#define POLL_INTERVAL_US (12 * REDLOCK_SECONDS)
#define MISSED_US (8 * REDLOCK_SECONDS)
#define TRIES 5
#define NAME_MAX_LENGTH 2000

typedef struct waiter {
  redlock_client *client;
  redlock_lock *lock;
} waiter;

static waiter waiters[CLIENTS_MAX];
static unsigned count;
static bool missed; /* a notification */
static const char *resource;

static redlock_options patient(void) {
  redlock_options options = once();
  options.retry_count = 0; /* unlimited within the wait */
  options.wait_us = 600 * REDLOCK_SECONDS;
  options.retry_delay_us = 300 * REDLOCK_SECONDS;
  options.retry_jitter_us = REDLOCK_DURATION_NONE;
  options.poll_interval_us = POLL_INTERVAL_US;
  return options;
}

static int reset(void **state) {
  count = 0;
  resource = "r";
  return five_reset(state);
}

static int clear(void **state) {
  for (unsigned i = 0; i < count; i++) {
    redlock_lock_free(waiters[i].lock);
    redlock_client_free(waiters[i].client);
  }
  return 0;
}

/* Processes all clients once. */
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

static const char *queue_command(unsigned node, const char *command, const char *value) {
  char queue[NAME_MAX_LENGTH + 32];
  (void)snprintf(queue, sizeof queue, "%s:redlock-queue", resource);
  return farm_command(&five, node, command, queue, value, NULL);
}

/* Returns true if |wanted| waiters are queued on each node. */
static bool all_queued(unsigned wanted) {
  for (unsigned i = 0; i < 5; i++) {
    const char *length = queue_command(i, "STRLEN", NULL);
    if (length == NULL || strtoul(length, NULL, 10) != (unsigned long)wanted * ENTRY) {
      return false;
    }
  }
  return true;
}

static void begin(const waiter *one) {
  assert_int_equal(redlock_lock_acquire_start(one->lock, NULL), REDLOCK_OK);
}

static void release(const waiter *one) {
  assert_int_equal(redlock_lock_release_start(one->lock), REDLOCK_OK);
}

/* The first of |wanted| clients holds the lock, and the later clients wait for it in order. */
static void hold_and_wait(unsigned wanted) {
  redlock_options options = patient();
  while (count < wanted) {
    waiter *one = &waiters[count++];
    one->client = client_of(&five, 5, &options);
    one->lock = new_lock(one->client, resource);
    begin(one);
    if (count == 1) {
      all_until(holds(one));
    } else {
      all_until(all_queued(count - 1));
    }
  }
}

static void notify_in_order(void) {
  hold_and_wait(6);
  for (unsigned i = 0; i < 6; i++) {
    all_until(holds(&waiters[i]));
    for (unsigned k = i + 1; k < 6; k++) {
      assert_false(holds(&waiters[k]));
    }
    release(&waiters[i]);
  }
  all_until(all_queued(0));
}

/* A message has the whole key, of which a client keeps only the beginning. */
static void notify_long_name(void) {
  static char name[NAME_MAX_LENGTH + 1];
  memset(name, 'n', sizeof name - 1);
  resource = name;
  hold_and_wait(2);
  release(&waiters[0]);
  all_until(holds(&waiters[1]));
}

static bool all_subscribed(void) {
  for (unsigned i = 0; i < 5; i++) {
    const char *list = farm_command(&five, i, "CLIENT", "LIST", "TYPE", "pubsub", NULL);
    const char *first = list == NULL ? NULL : strstr(list, " addr=");
    if (first == NULL || strstr(first + 1, " addr=") != NULL) {
      return false;
    }
  }
  return true;
}

/* Notifications are lost while a client has no subscriber. */
static void lose_subscription(void) {
  hold_and_wait(2);
  farm_command_all(&five, "CLIENT", "KILL", "TYPE", "pubsub", NULL);
  all_until(all_subscribed() && all_queued(1));
  release(&waiters[0]);
  all_until(holds(&waiters[1]));
}

/* Runs |run| until no notification was missed. */
static void repeat(void (*run)(void), void **state) {
  for (unsigned tries = 1;; tries++) {
    missed = false;
    run();
    if (!missed) {
      return;
    }
    assert_true(tries < TRIES);
    print_message("# repeated: a waiter was not notified\n");
    (void)clear(state);
    (void)reset(state);
  }
}

TEST(waiters_are_notified_in_order) {
  repeat(notify_in_order, state);
}

TEST(waiter_for_a_long_name_is_notified) {
  repeat(notify_long_name, state);
}

TEST(lost_subscription_is_renewed) {
  repeat(lose_subscription, state);
}

int main(void) {
  return tests_run(
      &(tests_fixture){.start = five_start, .before = reset, .after = clear, .end = five_end});
}
