/*
 * Effects on the whole process: forks, signals, descriptors.
 *
 * SPDX-License-Identifier: MIT
 */
#include <signal.h>
#include <sys/time.h>

#include "support.h"

/* -------------------------------------------------------------------------------------- forks */

typedef struct inheritance {
  redlock_client *client;
  redlock_lock *lock;
  char token[REDLOCK_TOKEN_LENGTH + 1];
} inheritance;

static int child_takes_locks(void *argument) {
  inheritance *shared = argument;
  assert_int_equal(redlock_lock_acquire(shared->lock, NULL, NULL), REDLOCK_E_TAKEN);
  redlock_lock *own = held_lock(shared->client, "child");
  (void)memcpy(shared->token, redlock_lock_token(own), sizeof shared->token);
  pump_until(shared->client, farm_count(&five, "child", redlock_lock_token(own)) == 5);
  assert_int_equal(farm_connections(&five, 0), 2);
  assert_ok(own, redlock_lock_extend(own, 0, NULL));
  assert_ok(own, redlock_lock_release(own));
  redlock_lock_free(own);
  redlock_lock_free(shared->lock);
  redlock_client_free(shared->client);
  return 0;
}

/* Parent and children can hold locks at the same time, with different tokens. */
TEST(children_draw_different_tokens) {
  char tokens[3][REDLOCK_TOKEN_LENGTH + 1];
  inheritance *shared =
      mmap(NULL, sizeof *shared, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  assert_true(shared != MAP_FAILED);
  shared->client = client_of(&five, 5, NULL);
  warm_up(shared->client); /* Kept random numbers would be shared now. */
  shared->lock = held_lock(shared->client, "parent");
  pump_until(shared->client, farm_count(&five, "parent", NULL) == 5);
  for (unsigned i = 0; i < 3; i++) {
    in_child(child_takes_locks, shared);
    (void)memcpy(tokens[i], shared->token, sizeof tokens[i]);
    assert_int_equal(strlen(tokens[i]), REDLOCK_TOKEN_LENGTH);
    assert_string_not_equal(tokens[i], redlock_lock_token(shared->lock));
    assert_true(i == 0 || strcmp(tokens[i], tokens[i - 1]) != 0);
  }
  assert_string_not_equal(tokens[0], tokens[2]);
  redlock_lock *own = held_lock(shared->client, "child");
  assert_string_not_equal(tokens[2], redlock_lock_token(own));
  assert_ok(shared->lock, redlock_lock_release(shared->lock));
  redlock_lock_free(own);
  free_with_client(shared->lock);
  assert_int_equal(munmap(shared, sizeof *shared), 0);
}

/* ------------------------------------------------------------------------------------ signals */

static volatile sig_atomic_t signals;

static void count_signal(int number) {
  signals++;
}

/* A signal every millisecond, which interrupts system calls. */
static void storm(bool on) {
  struct itimerval every = {{0, on ? 1000 : 0}, {0, on ? 1000 : 0}};
  struct sigaction action;
  memset(&action, 0, sizeof action);
  action.sa_handler = count_signal;
  assert_int_equal(sigaction(SIGALRM, &action, NULL), 0);
  signals = 0;
  assert_int_equal(setitimer(ITIMER_REAL, &every, NULL), 0);
}

TEST(signals_do_not_change_the_length_of_a_call) {
  redlock_duration took_us[3], delay_us[3];
  int results[3];
  redlock_options options = once();
  options.node_timeout_us = MS(300);
  redlock_client *client = client_of(&five, 5, NULL);
  warm_up(client);
  redlock_lock *held = new_lock(client, "held");
  redlock_lock *other = new_lock(client, "other");
  eventually(redlock_lock_acquire(held, &options, NULL) == REDLOCK_OK);
  (void)stopwatch(); /* The witness must not get the signals. */
  farm_each(&five, 0, 3, farm_stop);
  storm(true);
  redlock_time first_us = redlock_now();
  for (unsigned i = 0; i < 3; i++) {
    redlock_time before_us = redlock_now();
    results[i] = i == 0   ? redlock_lock_acquire(other, &options, NULL)
                 : i == 1 ? redlock_lock_extend(held, 0, NULL)
                          : redlock_lock_release(held);
    took_us[i] = redlock_now() - before_us;
    delay_us[i] = witness_delay_us(before_us);
  }
  int delivered = signals;
  /* After 3 s without a reply the connections end, and no call waits for their nodes. */
  redlock_duration least_us = redlock_now() - first_us < MS(2500) ? MS(300) : 0;
  storm(false);
  for (unsigned i = 0; i < 3; i++) {
    farm_continue(&five, i);
    assert_int_equal(results[i], REDLOCK_E_UNAVAILABLE);
    /* A wait that each signal restarts would last as long as the storm. */
    assert_between(took_us[i], least_us, MS(1500) + delay_us[i]);
  }
  assert_true(delivered >= 3); /* On a slow machine several become one. */
  redlock_lock_free(other);
  free_with_client(held);
}

TEST(operations_succeed_in_a_storm_of_signals) {
  redlock_client *client = client_of(&five, 5, NULL);
  storm(true);
  for (unsigned i = 0; i < 100 || signals < 100; i++) {
    redlock_lock *lock = new_lock(client, "r");
    int acquired = redlock_lock_acquire(lock, NULL, NULL);
    int released = redlock_lock_release(lock);
    if (acquired != REDLOCK_OK || released != REDLOCK_OK) {
      storm(false);
      fail_msg("pair %u: %s, %s: %s", i, redlock_error_name(acquired), redlock_error_name(released),
               redlock_lock_message(lock));
    }
    redlock_lock_free(lock);
  }
  storm(false);
  redlock_client_free(client);
}

/*
 * A connection that the peer has closed accepts one send, which the peer rejects; the next send
 * raises SIGPIPE. Freeing locks sends without reading in between.
 */
static int child_writes_to_closed_connections(void *argument) {
  (void)signal(SIGPIPE, SIG_DFL);
  redlock_client *client = client_of(&five, 5, NULL);
  warm_up(client);
  redlock_lock *locks[8];
  for (unsigned i = 0; i < 8; i++) {
    char name[8];
    (void)snprintf(name, sizeof name, "r%u", i);
    locks[i] = held_lock(client, name);
  }
  for (unsigned i = 0; i < 5; i++) {
    assert_non_null(
        farm_command(&five, i, "CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes", NULL));
    eventually(farm_connections(&five, i) == 0);
  }
  for (unsigned i = 0; i < 8; i++) {
    redlock_lock_free(locks[i]);
    (void)poll(NULL, 0, 1); /* The rejection arrives. */
  }
  /* Lost releases are sent on new connections. */
  for (unsigned i = 0; i < 5; i++) {
    pump_until(client, strcmp(farm_command(&five, i, "DBSIZE", NULL), "0") == 0);
  }
  redlock_client_free(client);
  return 0;
}

TEST(closed_connection_raises_no_sigpipe) {
  in_child(child_writes_to_closed_connections, NULL);
}

/* -------------------------------------------------------------------------------- descriptors */

TEST(many_clients_leave_no_descriptor) {
  char refused[32];
  char local[128];
  (void)snprintf(refused, sizeof refused, "127.0.0.1:%d", farm_free_port());
  (void)snprintf(local, sizeof local, "localhost:%d", five.nodes[3].port);
  const char *addresses[] = {five.nodes[0].address, five.nodes[1].address, five.nodes[2].address,
                             local, refused};
  unsigned before = open_descriptors();
  for (unsigned i = 0; i < 40; i++) {
    redlock_client *client = client_at(addresses, 5, NULL);
    if (i % 2 == 0) {
      assert_true(redlock_client_pollfd(client) >= 0);
    }
    char name[16];
    (void)snprintf(name, sizeof name, "r%u", i);
    redlock_lock *lock = held_lock(client, name);
    if (i % 3 == 0) {
      assert_ok(lock, redlock_lock_release(lock));
    } else if (i % 3 == 1) {
      (void)redlock_client_close(client, MS(100));
    }
    free_with_client(lock);
  }
  /* An abandoned look-up ends after a moment. */
  eventually(open_descriptors() == before);
}

int main(void) {
  return tests_run(&(tests_fixture){.start = five_start, .before = five_reset, .end = five_end});
}
