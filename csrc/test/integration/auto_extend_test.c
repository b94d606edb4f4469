/*
 * Auto-extended leases on real servers, with a loop.
 *
 * SPDX-License-Identifier: MIT
 *
 * AUTO_EXTEND_ROUNDS is the number of rounds of a test [2]; each round disturbs the lease at
 * another moment. The job long/auto_extend runs 100.
 */
#include "support.h"

#define TTL_US MS(1200)
#define NODE_TIMEOUT_US MS(100)

static unsigned rounds(void) {
  const char *text = getenv("AUTO_EXTEND_ROUNDS");
  return text != NULL ? (unsigned)strtoul(text, NULL, 10) : 2;
}

/* A slow machine does not lose this lease, which is extended every few milliseconds. */
static redlock_options auto_extended(void) {
  redlock_options options = once();
  options.auto_extend = REDLOCK_YES;
  options.extend_every_us = MS(20);
  return options;
}

/* This lease expires soon. */
static redlock_options brief(void) {
  redlock_options options = once();
  options.ttl_us = TTL_US;
  options.node_timeout_us = NODE_TIMEOUT_US;
  options.auto_extend = REDLOCK_YES;
  return options;
}

/* Runs the loop until the lease has been extended |extends| times. */
static void pump_extends(redlock_client *client, redlock_lock *lock, unsigned extends) {
  for (unsigned i = 0; i < extends; i++) {
    redlock_time deadline_us = redlock_lock_deadline(lock);
    pump_until(client, redlock_lock_deadline(lock) != deadline_us);
    assert_true(redlock_lock_deadline(lock) > deadline_us);
    assert_null(redlock_client_next_lost(client));
  }
}

TEST(lease_survives_a_hung_and_a_restarted_node) {
  redlock_options options = auto_extended();
  redlock_client *client = client_of(&five, 5, &options);
  redlock_client *rivals = client_of(&five, 5, NULL);
  redlock_lock *other = new_lock(rivals, "r");
  warm_up(client);
  redlock_lock *lock = held_lock(client, "r");
  for (unsigned i = 0; i < 6; i++) {
    if (i == 1) {
      farm_stop(&five, 0);
    } else if (i == 3) {
      farm_kill(&five, 1);
    } else if (i == 4) {
      farm_restart(&five, 1); /* without its keys */
    }
    pump_extends(client, lock, 5);
    assert_int_not_equal(redlock_lock_acquire(other, NULL, NULL), REDLOCK_OK);
  }
  farm_continue(&five, 0);
  /* The extends backfill the node that has lost its key. */
  pump_until(client, farm_count(&five, "r", redlock_lock_token(lock)) == 5);
  assert_ok(lock, redlock_lock_release(lock));
  redlock_lock_free(lock);
  redlock_lock_free(other);
  redlock_client_free(client);
  redlock_client_free(rivals);
}

TEST(lost_majority_is_reported_within_a_third_of_the_ttl) {
  redlock_options options = brief();
  redlock_client *client = client_of(&five, 5, NULL);
  warm_up(client);
  for (unsigned i = 0; i < rounds(); i++) {
    redlock_lock *lock = new_lock(client, "r");
    eventually(redlock_lock_acquire(lock, &options, NULL) == REDLOCK_OK);
    for (redlock_time until_us = redlock_now() + MS(i * 37 % 400); redlock_now() < until_us;) {
      pump(client, 2); /* another moment of the lease */
    }
    farm_each(&five, 0, 3, farm_stop);
    redlock_time stopped_us = stopwatch();
    pump_until(client, redlock_client_next_lost(client) == lock);
    assert_took(stopped_us, 0, TTL_US / 3 + MS(200));
    farm_each(&five, 0, 3, farm_continue);
    redlock_lock_free(lock);
    pump_until(client, farm_count(&five, "r", NULL) == 0 && all_up(client));
  }
  redlock_client_free(client);
}

typedef struct shared {
  volatile int holds;     /* the child holds the lease */
  volatile int stopped;   /* the stop was longer than the lease */
  volatile int held_then; /* the child believed to hold when it continued */
  volatile int loss;      /* the reported reason */
  volatile int again;     /* the child has held again later */
} shared;

/* Holds the lease, and checks it first when it continues. */
static int holder(shared *self) {
  redlock_options options = brief();
  redlock_client *client = client_of(&five, 5, &options);
  redlock_lock *lock = new_lock(client, "r");
  for (unsigned i = 0; redlock_lock_acquire(lock, NULL, NULL) != REDLOCK_OK; i++) {
    if (i == 100) {
      return 1; /* A busy machine may need some attempts. */
    }
  }
  redlock_time checked_us = redlock_now();
  while (self->stopped == 0) {
    self->holds = redlock_lock_remaining(lock) > 0;
    pump(client, 1);
    checked_us = redlock_now();
  }
  self->held_then = redlock_lock_remaining(lock) > 0;
  for (redlock_time until_us = checked_us + TTL_US, last_us = checked_us + EVENTUALLY_US;
       redlock_now() < until_us || (self->loss == 0 && redlock_now() < last_us);) {
    self->again = self->again || redlock_lock_remaining(lock) > 0;
    pump(client, 2);
    redlock_lock *lost = redlock_client_next_lost(client);
    self->loss = lost == lock ? redlock_lock_lost(lock, NULL) : self->loss;
  }
  return 0;
}

TEST(process_that_stops_beyond_its_ttl_holds_nothing) {
  shared *self =
      mmap(NULL, sizeof *self, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  assert_true(self != MAP_FAILED);
  for (unsigned i = 0; i < rounds(); i++) {
    memset(self, 0, sizeof *self);
    pid_t child = fork();
    if (child == 0) {
      _exit(holder(self));
    }
    eventually(self->holds == 1);
    (void)poll(NULL, 0, (int)(i * 37 % 400)); /* another moment between two extends */
    assert_int_equal(kill(child, SIGSTOP), 0);
    redlock_options options = auto_extended();
    redlock_client *client = client_of(&five, 5, &options);
    redlock_lock *lock = new_lock(client, "r");
    eventually(redlock_lock_acquire(lock, NULL, NULL) == REDLOCK_OK);
    self->stopped = 1;
    assert_int_equal(kill(child, SIGCONT), 0);
    int status;
    pump_until(client, waitpid(child, &status, WNOHANG) == child);
    assert_true(redlock_lock_remaining(lock) > 0);
    assert_int_equal(status, 0);
    assert_int_equal(self->held_then, 0);
    assert_int_equal(self->again, 0);
    assert_int_equal(self->loss, REDLOCK_E_EXPIRED);
    assert_null(redlock_client_next_lost(client));
    pump_until(client, farm_count(&five, "r", redlock_lock_token(lock)) == 5);
    assert_ok(lock, redlock_lock_release(lock));
    free_with_client(lock);
  }
  (void)munmap(self, sizeof *self);
}

int main(void) {
  return tests_run(&(tests_fixture){.start = five_start, .before = five_reset, .end = five_end});
}
