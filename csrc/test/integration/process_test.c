/*
 * Effects on the whole process: forks, signals, descriptors, memory.
 *
 * SPDX-License-Identifier: MIT
 */
#include <signal.h>
#include <sys/time.h>

#include "support.h"

/* Returns the number of commands of locks since the last forget_commands(). */
static unsigned lock_commands(void) {
  static const char *const commands[] = {"set", "evalsha", "eval", "del", "pexpire"};
  unsigned count = 0;
  for (unsigned node = 0; node < five.count; node++) {
    for (size_t i = 0; i < sizeof commands / sizeof commands[0]; i++) {
      count += farm_calls(&five, node, commands[i]);
    }
  }
  return count;
}

static void forget_commands(void) {
  for (unsigned i = 0; i < five.count; i++) {
    assert_string_equal(farm_command(&five, i, "CONFIG", "RESETSTAT", NULL), "OK");
  }
}

/* Returns the server's id of the connection of the only client. */
static long connection_id(unsigned node) {
  const char *list = farm_command(&five, node, "CLIENT", "LIST", "TYPE", "normal", NULL);
  assert_non_null(list);
  const char *name = strstr(list, " name=redlock ");
  assert_non_null(name);
  assert_null(strstr(name + 1, " name=redlock "));
  while (name > list && name[-1] != '\n') {
    name--;
  }
  return strtol(name + strlen("id="), NULL, 10);
}

/* -------------------------------------------------------------------------------------- forks */

typedef struct inheritance {
  redlock_client *client;
  redlock_lock *lock;
  char token[REDLOCK_TOKEN_LENGTH + 1];
} inheritance;

static int child_releases_and_closes(void *argument) {
  inheritance *inherited = argument;
  assert_int_equal(redlock_lock_remaining(inherited->lock), 0);
  assert_int_equal(redlock_lock_deadline(inherited->lock), 0);
  assert_string_equal(redlock_lock_token(inherited->lock), "");
  assert_int_equal(redlock_lock_extend(inherited->lock, 0, NULL), REDLOCK_E_NOT_HELD);
  assert_int_equal(redlock_lock_release(inherited->lock), REDLOCK_E_NOT_HELD);
  redlock_lock_free(inherited->lock);
  assert_int_equal(redlock_client_close(inherited->client, MS(100)), REDLOCK_OK);
  redlock_client_free(inherited->client);
  return 0;
}

static int child_only_frees(void *argument) {
  inheritance *inherited = argument;
  redlock_lock_free(inherited->lock);
  redlock_client_free(inherited->client);
  return 0;
}

static int child_only_closes(void *argument) {
  inheritance *inherited = argument;
  (void)redlock_client_close(inherited->client, MS(100));
  return 0;
}

static int child_processes(void *argument) {
  inheritance *inherited = argument;
  for (unsigned i = 0; i < 10; i++) {
    pump(inherited->client, 1);
  }
  return 0;
}

static int child_only_ends(void *argument) {
  return 0;
}

static void child_releases_nothing_of_its_parent(void **state) {
  static int (*const children[])(void *) = {child_releases_and_closes, child_only_frees,
                                            child_only_closes, child_processes, child_only_ends};
  long ids[5];
  inheritance mine = {.client = client_of(&five, 5, NULL)};
  warm_up(mine.client);
  mine.lock = held_lock(mine.client, "r");
  pump_until(mine.client, farm_count(&five, "r", redlock_lock_token(mine.lock)) == 5);
  for (unsigned i = 0; i < 5; i++) {
    ids[i] = connection_id(i);
  }
  for (size_t i = 0; i < sizeof children / sizeof children[0]; i++) {
    forget_commands();
    in_child(children[i], &mine);
    assert_int_equal(lock_commands(), 0);
    assert_int_equal(farm_count(&five, "r", redlock_lock_token(mine.lock)), 5);
    assert_true(redlock_lock_remaining(mine.lock) > 0);
    assert_ok(mine.lock, redlock_lock_extend(mine.lock, 0, NULL));
  }
  /* The parent's connections are the same as before. */
  for (unsigned i = 0; i < 5; i++) {
    assert_int_equal(connection_id(i), ids[i]);
  }
  assert_ok(mine.lock, redlock_lock_release(mine.lock));
  redlock_lock_free(mine.lock);
  redlock_client_free(mine.client);
}

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
static void children_draw_different_tokens(void **state) {
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

static int child_finds_its_operation_cancelled(void *argument) {
  inheritance *inherited = argument;
  assert_int_equal(redlock_lock_result(inherited->lock), REDLOCK_E_CANCELLED);
  for (unsigned i = 0; i < 10; i++) {
    pump(inherited->client, 1);
  }
  assert_int_equal(redlock_lock_result(inherited->lock), REDLOCK_E_CANCELLED);
  redlock_lock_cancel(inherited->lock);
  redlock_lock_free(inherited->lock);
  redlock_client_free(inherited->client);
  return 0;
}

static void operation_in_flight_stays_with_the_parent(void **state) {
  inheritance mine = {.client = client_of(&five, 5, NULL)};
  warm_up(mine.client);
  for (unsigned i = 0; i < 5; i++) {
    farm_stop(&five, i); /* The operation stays in flight. */
  }
  /* On a slow machine the silent connections end after 3 s: then it tries again. */
  redlock_options patient = once();
  patient.node_timeout_us = MS(20000);
  patient.retry_count = 0; /* unlimited within the wait */
  patient.wait_us = 600 * REDLOCK_SECONDS;
  mine.lock = new_lock(mine.client, "r");
  assert_int_equal(redlock_lock_acquire_start(mine.lock, &patient), REDLOCK_OK);
  in_child(child_finds_its_operation_cancelled, &mine); /* started, but not sent */
  pump(mine.client, 1);
  in_child(child_finds_its_operation_cancelled, &mine); /* sent */
  assert_int_equal(redlock_lock_result(mine.lock), REDLOCK_PENDING);
  for (unsigned i = 0; i < 5; i++) {
    farm_continue(&five, i);
  }
  pump_until(mine.client, redlock_lock_result(mine.lock) != REDLOCK_PENDING);
  assert_ok(mine.lock, redlock_lock_result(mine.lock));
  pump_until(mine.client, farm_count(&five, "r", redlock_lock_token(mine.lock)) == 5);
  redlock_lock_free(mine.lock);
  redlock_client_free(mine.client);
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

static void signals_do_not_change_the_length_of_a_call(void **state) {
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
  for (unsigned i = 0; i < 3; i++) {
    farm_stop(&five, i);
  }
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

static void signals_do_not_lengthen_a_wait(void **state) {
  redlock_options options = once();
  options.retry_count = 0; /* unlimited within the wait */
  options.wait_us = MS(500);
  options.retry_delay_us = MS(40);
  options.retry_jitter_us = MS(20);
  redlock_client *client = client_of(&five, 5, &options);
  redlock_client *other = client_of(&five, 5, NULL);
  warm_up(other);
  warm_up(client);
  redlock_lock *taken = held_lock(other, "r");
  pump_until(other, farm_count(&five, "r", NULL) == 5);
  redlock_lock *lock = new_lock(client, "r");
  redlock_time before_us = stopwatch();
  storm(true);
  int result = redlock_lock_acquire(lock, NULL, NULL);
  storm(false);
  assert_took(before_us, MS(440), MS(700));
  assert_true(result == REDLOCK_E_TAKEN || result == REDLOCK_E_UNAVAILABLE);
  redlock_lock_free(taken);
  redlock_client_free(other);
  free_with_client(lock);
}

static void operations_succeed_in_a_storm_of_signals(void **state) {
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

static void closed_connection_raises_no_sigpipe(void **state) {
  in_child(child_writes_to_closed_connections, NULL);
}

/* -------------------------------------------------------------------------------- descriptors */

static void descriptors_of(char *list, size_t size, unsigned *sockets) {
  FILE *pipe = popen("ls -l /proc/self/fd", "r");
  assert_non_null(pipe);
  size_t length = fread(list, 1, size - 1, pipe);
  list[length] = '\0';
  assert_int_equal(pclose(pipe), 0);
  *sockets = 0;
  for (const char *at = list; (at = strstr(at, "socket:")) != NULL; at++) {
    (*sockets)++;
  }
  *sockets += strstr(list, "eventpoll") != NULL;
}

static void started_program_inherits_no_descriptor(void **state) {
  char list[8192];
  unsigned before;
  unsigned during;
  descriptors_of(list, sizeof list, &before);
  unsigned own = open_descriptors();
  const char *addresses[] = {five.nodes[0].address, five.nodes[1].address, "name.invalid",
                             "unix:///no/such/socket"};
  redlock_client *client = client_at(addresses, 4, NULL);
  assert_true(redlock_client_pollfd(client) >= 0);
  redlock_lock *lock = new_lock(client, "r");
  (void)redlock_lock_acquire(lock, NULL, NULL);
  assert_true(open_descriptors() >= own + 3);
  descriptors_of(list, sizeof list, &during);
  if (during != before) {
    fail_msg("inherited: %s", list);
  }
  free_with_client(lock);
}

static void many_clients_leave_no_descriptor(void **state) {
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

/* ------------------------------------------------------------------------------------- memory */

static void memory_stays_constant(void **state) {
  redlock_client *client = client_of(&five, 3, NULL);
  size_t settled = 0;
  for (unsigned i = 0; i < 5000; i++) {
    char name[32];
    (void)snprintf(name, sizeof name, "r%u", i % 100);
    redlock_lock *lock = held_lock(client, name);
    assert_ok(lock, redlock_lock_release(lock));
    redlock_lock_free(lock);
    if (i == 1000) {
      settled = allocated_bytes();
    }
  }
  size_t now = allocated_bytes();
  /* 250 bytes per acquire and release. The buffers of a slow node may have grown. */
  assert_between(now, 0, settled + ((size_t)1 << 20));
  pump_until(client, farm_count(&five, "r0", NULL) == 0);
  redlock_client_free(client);
}

#define TEST(name) cmocka_unit_test_setup(name, five_reset)

int main(void) {
  const struct CMUnitTest tests[] = {
      TEST(child_releases_nothing_of_its_parent),
      TEST(children_draw_different_tokens),
      TEST(operation_in_flight_stays_with_the_parent),
      TEST(signals_do_not_change_the_length_of_a_call),
      TEST(signals_do_not_lengthen_a_wait),
      TEST(operations_succeed_in_a_storm_of_signals),
      TEST(closed_connection_raises_no_sigpipe),
      TEST(started_program_inherits_no_descriptor),
      TEST(many_clients_leave_no_descriptor),
      TEST(memory_stays_constant),
  };
  return cmocka_run_group_tests(tests, five_start, five_end);
}
