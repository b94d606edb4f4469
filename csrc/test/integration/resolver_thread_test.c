/*
 * Host names: a slow look-up delays no operation.
 *
 * SPDX-License-Identifier: MIT
 *
 * The linker replaces getaddrinfo(): names in .test hang until the test lets all look-ups go.
 */
#include <arpa/inet.h>
#include <netdb.h>
#include <netinet/in.h>
#include <stdatomic.h>
#include <sys/socket.h>

#include "support.h"

int __real_getaddrinfo(const char *host, const char *service, const struct addrinfo *hints,
                       struct addrinfo **addresses);
int __wrap_getaddrinfo(const char *host, const char *service, const struct addrinfo *hints,
                       struct addrinfo **addresses);

#define CLIENTS 50 /* A thread that forks holds their mutexes: ThreadSanitizer notes at most 64. */
#if defined(__SANITIZE_THREAD__)
#define OWN_THREADS 3 /* this one, the witness, and that of ThreadSanitizer */
#else
#define OWN_THREADS 2
#endif
#define CHILD_PROVES_NOTHING 77 /* the fork came at the wrong time */

static atomic_bool names_hang;
static atomic_uint hanging; /* number of unfinished look-ups */

int __wrap_getaddrinfo(const char *host, const char *service, const struct addrinfo *hints,
                       struct addrinfo **addresses) {
  bool hangs =
      host != NULL && strstr(host, ".test") != NULL && (hints->ai_flags & AI_NUMERICHOST) == 0;
  if (!hangs) {
    return __real_getaddrinfo(host, service, hints, addresses);
  }
  atomic_fetch_add(&hanging, 1);
  while (atomic_load(&names_hang)) {
    (void)poll(NULL, 0, 1);
  }
  int error = strcmp(host, "lost.test") == 0
                  ? EAI_AGAIN
                  : __real_getaddrinfo("127.0.0.1", service, hints, addresses);
  atomic_fetch_sub(&hanging, 1);
  return error;
}

/* Waits for the look-ups of earlier tests. */
static int reset(void **state) {
  atomic_store(&names_hang, false);
  eventually(atomic_load(&hanging) == 0);
  atomic_store(&names_hang, true);
  return three_reset(state);
}

static void let_lookups_go(void) {
  atomic_store(&names_hang, false);
}

TEST(hanging_names_delay_no_operation) {
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
    assert_contains(redlock_lock_message(lock),
                    "a.test:6379: the name server did not give an address within ");
    assert_contains(redlock_lock_message(lock),
                    "b.test:6379: the name server did not give an address within ");
  }
  eventually(atomic_load(&hanging) >= 2);
  redlock_time before_us = redlock_now();
  free_with_client(lock);
  assert_took(before_us, 0, MS(400));
  let_lookups_go(); /* They must not touch the freed client. */
  eventually(atomic_load(&hanging) == 0 && open_descriptors() == before);
}

TEST(minority_of_hanging_names_costs_nothing) {
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
  let_lookups_go();
  pump_until(client, all_up(client));
  redlock_lock *lock = held_lock(client, "r");
  pump_until(client, farm_count(&three, "r", redlock_lock_token(lock)) == 3);
  assert_ok(lock, redlock_lock_release(lock));
  free_with_client(lock);
}

TEST(unresolvable_name_is_reported) {
  const char *addresses[] = {"lost.test:6379", three.nodes[0].address, three.nodes[1].address};
  redlock_client *client = client_at(addresses, 3, NULL);
  redlock_lock *lock = held_lock(client, "r");
  let_lookups_go();
  redlock_node_info info;
  pump_until(client, redlock_client_node_info(client, 0, &info) == REDLOCK_OK &&
                         info.error != NULL &&
                         strstr(info.error, "cannot resolve the name") != NULL);
  assert_ok(lock, redlock_lock_release(lock));
  free_with_client(lock);
}

static int child_locks_without_the_thread(void *argument) {
  redlock_client *client = argument;
  redlock_lock *lock = held_lock(client, "child");
  assert_ok(lock, redlock_lock_release(lock));
  free_with_client(lock);
  return 0;
}

TEST(fork_during_a_lookup_is_harmless) {
  const char *addresses[] = {three.nodes[0].address, three.nodes[1].address, "fork.test:6379"};
  redlock_client *client = client_at(addresses, 3, NULL);
  redlock_lock *lock = held_lock(client, "r");
  in_child(child_locks_without_the_thread, client);
  assert_ok(lock, redlock_lock_release(lock));
  free_with_client(lock);
}

/* A Sentinel that never answers, and the client that asks it. */
typedef struct silent_sentinel {
  redlock_client *client;
  int listener, port;
} silent_sentinel;

/* Returns true if this process has a connection to the Sentinel. */
static bool has_connection(const silent_sentinel *self) {
  bool found = false;
  for (int fd = 3; fd < 1024 && !found; fd++) {
    struct sockaddr_in peer;
    socklen_t length = sizeof peer;
    found = getpeername(fd, (struct sockaddr *)&peer, &length) == 0 && peer.sin_family == AF_INET &&
            ntohs(peer.sin_port) == self->port;
  }
  return found;
}

/* A fork between two questions proves nothing. */
static int child_has_no_connection(void *argument) {
  const silent_sentinel *self = argument;
  bool inherited = has_connection(self);
  redlock_node_info info;
  assert_int_equal(redlock_client_node_info(self->client, 0, &info), REDLOCK_OK);
  assert_false(has_connection(self));
  return inherited ? 0 : CHILD_PROVES_NOTHING;
}

TEST(child_closes_the_connection_to_a_sentinel) {
  silent_sentinel self = {.listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)};
  struct sockaddr_in local = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
  socklen_t size = sizeof local;
  assert_int_equal(bind(self.listener, (struct sockaddr *)&local, size), 0);
  assert_int_equal(listen(self.listener, 64), 0);
  assert_int_equal(getsockname(self.listener, (struct sockaddr *)&local, &size), 0);
  self.port = ntohs(local.sin_port);
  char address[64];
  (void)snprintf(address, sizeof address, "sentinel://127.0.0.1:%d/mymaster", self.port);
  const char *addresses[] = {address};
  self.client = client_at(addresses, 1, NULL);
  redlock_lock *lock = new_lock(self.client, "r");
  redlock_options options = {.wait_us = 600 * REDLOCK_SECONDS};
  assert_int_equal(redlock_lock_acquire_start(lock, &options), REDLOCK_OK);
  pump_until(self.client, has_connection(&self) && child_exit(child_has_no_connection, &self) == 0);
  free_with_client(lock);
  (void)close(self.listener);
}

TEST(missing_name_ends_within_the_deadline) {
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

/* Each of 50 clients has two names that hang. */
TEST(many_hanging_lookups_need_few_threads) {
  static redlock_client *clients[CLIENTS];
  static redlock_lock *locks[CLIENTS];
  char names[2][64];
  for (unsigned i = 0; i < 2; i++) {
    (void)snprintf(names[i], sizeof names[i], "many%u.test:%d", i, three.nodes[i].port);
  }
  const char *addresses[] = {names[0], names[1], three.nodes[2].address};
  redlock_options options = once();
  options.node_timeout_us = MS(30000);
  /* On a slow machine the look-ups take longer than their limit of 3 s: then it tries again. */
  options.retry_count = 0; /* unlimited within the wait */
  options.wait_us = 600 * REDLOCK_SECONDS;
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
  eventually(running_threads() == OWN_THREADS + 32); /* and the limit */
  in_child(child_looks_up, NULL);                    /* The child has no threads, and all slots. */
  /* The queued look-ups run when the first ones have ended. */
  let_lookups_go();
  for (unsigned i = 0; i < CLIENTS; i++) {
    pump_until(clients[i], redlock_lock_result(locks[i]) != REDLOCK_PENDING);
    assert_ok(locks[i], redlock_lock_result(locks[i]));
    redlock_lock_free(locks[i]);
    redlock_client_free(clients[i]);
  }
}

int main(void) {
  return tests_run(&(tests_fixture){.start = three_start, .before = reset, .end = three_end});
}
