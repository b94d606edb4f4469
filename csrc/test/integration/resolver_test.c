/*
 * Host names: a slow look-up delays no operation.
 *
 * SPDX-License-Identifier: MIT
 *
 * The linker replaces getaddrinfo(): names in .test hang until the test posts let_go.
 */
#include <netdb.h>
#include <pthread.h>
#include <semaphore.h>

#include "support.h"

int __real_getaddrinfo(const char *host, const char *service, const struct addrinfo *hints,
                       struct addrinfo **addresses);
int __wrap_getaddrinfo(const char *host, const char *service, const struct addrinfo *hints,
                       struct addrinfo **addresses);

#define CLIENTS 100

static sem_t let_go;    /* each post lets one look-up continue */
static sem_t looked_up; /* number of finished look-ups */

int __wrap_getaddrinfo(const char *host, const char *service, const struct addrinfo *hints,
                       struct addrinfo **addresses) {
  bool hangs =
      host != NULL && strstr(host, ".test") != NULL && (hints->ai_flags & AI_NUMERICHOST) == 0;
  if (!hangs) {
    return __real_getaddrinfo(host, service, hints, addresses);
  }
  while (sem_wait(&let_go) != 0) {
  }
  int error = strcmp(host, "lost.test") == 0
                  ? EAI_AGAIN
                  : __real_getaddrinfo("127.0.0.1", service, hints, addresses);
  (void)sem_post(&looked_up);
  return error;
}

static int start(void **state) {
  farm_start(&three, 3, NULL);
  return sem_init(&let_go, 0, 0) + sem_init(&looked_up, 0, 0);
}

/* Lets |count| look-ups continue, and waits for their end. No client may need them. */
static void finish_lookups(unsigned count) {
  for (unsigned i = 0; i < count; i++) {
    assert_int_equal(sem_post(&let_go), 0);
  }
  for (unsigned i = 0; i < count; i++) {
    while (sem_wait(&looked_up) != 0) {
    }
  }
}

static void hanging_names_delay_no_operation(void **state) {
  unsigned before = open_descriptors();
  const char *addresses[] = {"a.test:6379", "b.test:6379", three.nodes[0].address};
  redlock_options options = once();
  options.node_timeout_us = MS(100);
  redlock_client *client = client_at(addresses, 3, &options);
  redlock_lock *lock = new_lock(client, "r");
  for (unsigned i = 0; i < 3; i++) {
    redlock_time before_us = stopwatch();
    assert_int_equal(redlock_lock_acquire(lock, NULL, NULL), REDLOCK_E_UNAVAILABLE);
    assert_took(before_us, 1, MS(400));
    assert_contains(redlock_lock_message(lock), "a.test:6379: no connection");
    assert_contains(redlock_lock_message(lock), "b.test:6379: no connection");
  }
  redlock_time before_us = redlock_now();
  free_with_client(lock);
  assert_took(before_us, 0, MS(400));
  finish_lookups(2); /* They must not touch the freed client. */
  eventually(open_descriptors() == before);
}

static void minority_of_hanging_names_costs_nothing(void **state) {
  char local[64];
  (void)snprintf(local, sizeof local, "late.test:%d", three.nodes[2].port);
  const char *addresses[] = {three.nodes[0].address, three.nodes[1].address, local};
  redlock_options options = once();
  options.node_timeout_us = 300 * REDLOCK_SECONDS;
  options.ttl_us = 600 * REDLOCK_SECONDS;
  redlock_client *client = client_at(addresses, 3, &options);
  for (unsigned i = 0; i < 20; i++) {
    redlock_time before_us = stopwatch();
    redlock_lock *lock = held_lock(client, "r");
    assert_ok(lock, redlock_lock_release(lock));
    /* A first acquire waits four times as long as the majority took; a look-up ends after 3 s. */
    assert_took(before_us, 0, MS(2000) + 4 * witness_delay_us(before_us));
    redlock_lock_free(lock);
  }
  /* A resolved node votes. */
  finish_lookups(1);
  pump_until(client, all_up(client));
  redlock_lock *lock = held_lock(client, "r");
  pump_until(client, farm_count(&three, "r", redlock_lock_token(lock)) == 3);
  assert_ok(lock, redlock_lock_release(lock));
  free_with_client(lock);
}

static void unresolvable_name_is_reported(void **state) {
  const char *addresses[] = {"lost.test:6379", three.nodes[0].address, three.nodes[1].address};
  redlock_client *client = client_at(addresses, 3, NULL);
  redlock_lock *lock = held_lock(client, "r");
  finish_lookups(1);
  redlock_node_info info;
  pump_until(client, redlock_client_node_info(client, 0, &info) == REDLOCK_OK &&
                         info.error != NULL &&
                         strstr(info.error, "cannot resolve the name") != NULL);
  assert_ok(lock, redlock_lock_release(lock));
  free_with_client(lock);
  /* The client may have started another look-up before it was freed. */
  for (unsigned i = 0; i < 4; i++) {
    assert_int_equal(sem_post(&let_go), 0);
  }
}

static int child_locks_without_the_thread(void *argument) {
  redlock_client *client = argument;
  redlock_lock *lock = held_lock(client, "child");
  assert_ok(lock, redlock_lock_release(lock));
  free_with_client(lock);
  return 0;
}

static void fork_during_a_lookup_is_harmless(void **state) {
  while (sem_trywait(&let_go) == 0) {
  }
  const char *addresses[] = {three.nodes[0].address, three.nodes[1].address, "fork.test:6379"};
  redlock_client *client = client_at(addresses, 3, NULL);
  redlock_lock *lock = held_lock(client, "r");
  in_child(child_locks_without_the_thread, client);
  assert_ok(lock, redlock_lock_release(lock));
  free_with_client(lock);
  assert_int_equal(sem_post(&let_go), 0);
}

static void missing_name_ends_within_the_deadline(void **state) {
  const char *addresses[] = {"name.invalid:6379"};
  redlock_options options = once();
  options.node_timeout_us = MS(100);
  redlock_client *client = client_at(addresses, 1, &options);
  redlock_lock *lock = new_lock(client, "r");
  redlock_time before_us = stopwatch();
  assert_int_equal(redlock_lock_acquire(lock, NULL, NULL), REDLOCK_E_UNAVAILABLE);
  assert_took(before_us, 0, MS(400));
  assert_contains(redlock_lock_message(lock), "name.invalid:6379: ");
  free_with_client(lock);
}

static int child_looks_up(void *argument) {
  char name[64];
  (void)snprintf(name, sizeof name, "localhost:%d", three.nodes[0].port);
  const char *addresses[] = {name};
  redlock_options options = once();
  options.node_timeout_us = MS(30000);
  options.ttl_us = MS(60000);
  redlock_client *client = client_at(addresses, 1, &options);
  redlock_lock *lock = held_lock(client, "child");
  assert_ok(lock, redlock_lock_release(lock));
  free_with_client(lock);
  return 0;
}

/* Each of 100 clients has two names that hang. */
static void many_hanging_lookups_need_few_threads(void **state) {
  static redlock_client *clients[CLIENTS];
  static redlock_lock *locks[CLIENTS];
  char names[2][64];
  while (sem_trywait(&let_go) == 0) {
  }
  for (unsigned i = 0; i < 2; i++) {
    (void)snprintf(names[i], sizeof names[i], "many%u.test:%d", i, three.nodes[i].port);
  }
  const char *addresses[] = {names[0], names[1], three.nodes[2].address};
  redlock_options options = once();
  options.node_timeout_us = MS(30000);
  (void)stopwatch();
  for (unsigned i = 0; i < CLIENTS; i++) {
    char resource[16];
    (void)snprintf(resource, sizeof resource, "r%u", i);
    clients[i] = client_at(addresses, 3, &options);
    locks[i] = new_lock(clients[i], resource);
    assert_int_equal(redlock_lock_acquire_start(locks[i], NULL), REDLOCK_OK);
    pump(clients[i], 0);
    pump(clients[i], 1);
  }
  eventually(running_threads() == 2 + 32); /* this one, the witness, and the limit */
  in_child(child_looks_up, NULL);          /* The child has no threads, and all slots. */
  /* The queued look-ups run when the first ones have ended. */
  for (unsigned i = 0; i < 2 * CLIENTS; i++) {
    assert_int_equal(sem_post(&let_go), 0);
  }
  for (unsigned i = 0; i < CLIENTS; i++) {
    pump_until(clients[i], redlock_lock_result(locks[i]) != REDLOCK_PENDING);
    assert_ok(locks[i], redlock_lock_result(locks[i]));
    redlock_lock_free(locks[i]);
    redlock_client_free(clients[i]);
  }
}

#define TEST(name) cmocka_unit_test_setup(name, three_reset)

int main(void) {
  const struct CMUnitTest tests[] = {
      TEST(hanging_names_delay_no_operation),      TEST(minority_of_hanging_names_costs_nothing),
      TEST(unresolvable_name_is_reported),         TEST(fork_during_a_lookup_is_harmless),
      TEST(many_hanging_lookups_need_few_threads), TEST(missing_name_ends_within_the_deadline),
  };
  return cmocka_run_group_tests(tests, start, three_end);
}
