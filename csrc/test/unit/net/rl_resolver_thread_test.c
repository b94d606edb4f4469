/*
 * Look-ups, also abandoned ones.
 *
 * SPDX-License-Identifier: MIT
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <netdb.h>
#include <netinet/in.h>
#include <stdatomic.h>

#include "client/rl_client.h"
#include "look_ups.h" /* __wrap_getaddrinfo, __wrap_freeaddrinfo */
#include "net/rl_resolver.h"
#include "os/rl_thread.h"
#include "rl_test.h"

/* Thread-local memory of the program, which is part of each stack. */
static _Thread_local volatile char host_memory[(size_t)1 << 20];

static rl_resolver *begin(const char *host, int port, bool *busy) {
  rl_address address = {.port = port};
  (void)snprintf(address.host, sizeof address.host, "%s", host);
  return rl_resolver_new(&address, busy);
}

static rl_resolver *look_up(const char *host, int port) {
  bool busy = true;
  rl_resolver *resolver = begin(host, port, &busy);
  assert_false(busy);
  return resolver;
}

static bool no_thread;

int __real_rl_thread_start(pthread_t *thread, size_t stack, void *(*run)(void *), void *argument);
int __wrap_rl_thread_start(pthread_t *thread, size_t stack, void *(*run)(void *), void *argument);

int __wrap_rl_thread_start(pthread_t *thread, size_t stack, void *(*run)(void *), void *argument) {
  return no_thread ? EAGAIN : __real_rl_thread_start(thread, stack, run, argument);
}

/* Waits for the answer. Returns NULL with |*error| if there is none. */
static struct addrinfo *answer(rl_resolver *resolver, const char **error) {
  struct addrinfo *addresses = NULL;
  struct pollfd ready = {rl_resolver_fd(resolver), POLLIN, 0};
  assert_int_equal(poll(&ready, 1, 20000), 1);
  assert_true(rl_resolver_take(resolver, &addresses, error));
  return addresses;
}

/* With a stack of 512 kB no thread could be started in such a program. */
TEST(look_up_works_with_much_thread_local_memory) {
  const char *error = NULL;
  host_memory[0] = 1;
  rl_resolver *resolver = look_up("localhost", 1);
  assert_non_null(resolver);
  struct addrinfo *addresses = answer(resolver, &error);
  assert_non_null(addresses);
  freeaddrinfo(addresses);
  rl_resolver_free(resolver);
}

TEST(localhost_has_an_address_with_the_port) {
  const char *error = NULL;
  rl_resolver *resolver = look_up("localhost", 6379);
  assert_non_null(resolver);
  struct addrinfo *addresses = answer(resolver, &error);
  assert_non_null(addresses);
  for (const struct addrinfo *one = addresses; one != NULL; one = one->ai_next) {
    assert_int_equal(one->ai_socktype, SOCK_STREAM);
    if (one->ai_family == AF_INET) {
      struct sockaddr_in address;
      memcpy(&address, one->ai_addr, sizeof address);
      assert_int_equal(ntohs(address.sin_port), 6379);
    }
  }
  rl_resolver_free(resolver);
  freeaddrinfo(addresses); /* the caller owns it after the look-up was freed */
}

TEST(impossible_name_has_an_error) {
  char name[80];
  const char *error = NULL;
  memset(name, 'x', sizeof name);
  name[sizeof name - 1] = '\0';
  rl_resolver *resolver = look_up(name, 1);
  assert_non_null(resolver);
  assert_null(answer(resolver, &error));
  assert_non_null(error);
  assert_true(strlen(error) > 0);
  rl_resolver_free(resolver);
}

TEST(numeric_address_needs_no_look_up) {
  static const char *const good[] = {"127.0.0.1", "::1", "0.0.0.0", "255.255.255.255"};
  static const char *const bad[] = {"localhost", "", "1.2.3.4.5", ":::", "127.0.0.1:80"};
  for (unsigned i = 0; i < COUNT_OF(good); i++) {
    struct addrinfo *addresses = rl_resolver_numeric(good[i], 65535);
    assert_non_null(addresses);
    assert_null(addresses->ai_next);
    freeaddrinfo(addresses);
  }
  for (unsigned i = 0; i < COUNT_OF(bad); i++) {
    assert_null(rl_resolver_numeric(bad[i], 1));
  }
}

static size_t descriptors(void) {
  size_t count = 0;
  DIR *directory = opendir("/proc/self/fd");
  assert_non_null(directory);
  while (readdir(directory) != NULL) {
    count++;
  }
  (void)closedir(directory);
  return count;
}

/* As look_up(), once it may begin: abandoned look-ups may still be in progress. */
static rl_resolver *look_up_in_turn(const char *host, int port) {
  bool busy = true;
  rl_resolver *resolver = NULL;
  eventually((resolver = begin(host, port, &busy), !busy));
  assert_non_null(resolver);
  return resolver;
}

TEST(look_up_can_be_given_up_at_any_time) {
  size_t before = descriptors();
  rl_resolver *flying[8] = {NULL};
  for (unsigned i = 0; i < 64; i++) {
    unsigned place = i * 5 % 8;
    rl_resolver_free(flying[place]);
    flying[place] = look_up_in_turn("localhost", (int)i + 1);
    if (i % 3 == 0) {
      struct addrinfo *addresses = NULL;
      const char *error;
      if (rl_resolver_take(flying[place], &addresses, &error) && addresses != NULL) {
        freeaddrinfo(addresses);
      }
    }
  }
  for (unsigned i = 0; i < 8; i++) {
    rl_resolver_free(flying[i]);
  }
  rl_resolver_free(NULL);
  /* The threads close every descriptor when they end. */
  eventually(descriptors() <= before);
}

TEST(abandoned_answer_is_freed) {
  int before = atomic_load(&look_ups_lists);
  rl_resolver *resolver = look_up("localhost", 6379);
  assert_non_null(resolver);
  struct pollfd ready = {rl_resolver_fd(resolver), POLLIN, 0};
  assert_int_equal(poll(&ready, 1, 20000), 1);
  assert_int_equal(atomic_load(&look_ups_lists), before + 1);
  rl_resolver_free(resolver);
  eventually(atomic_load(&look_ups_lists) <= before); /* The thread may still refer to it. */
}

TEST(many_concurrent_look_ups_end) {
  rl_resolver *many[32];
  for (unsigned i = 0; i < COUNT_OF(many); i++) {
    many[i] = look_up_in_turn("localhost", 1000 + (int)i);
  }
  for (unsigned i = 0; i < COUNT_OF(many); i++) {
    const char *error = NULL;
    struct addrinfo *addresses = answer(many[i], &error);
    assert_non_null(addresses);
    freeaddrinfo(addresses);
    rl_resolver_free(many[i]);
  }
}

TEST(failed_look_up_frees_its_slot) {
  size_t before = descriptors();
  no_thread = true;
  for (unsigned i = 0; i < 2 * RL_RESOLVER_THREADS_MAX; i++) {
    bool busy = true;
    assert_null(begin("localhost", 1, &busy));
    assert_false(busy);
  }
  no_thread = false;
  assert_true(descriptors() <= before); /* Threads of earlier look-ups may have ended meanwhile. */
  const char *error = NULL;
  rl_resolver *resolver = look_up("localhost", 1);
  freeaddrinfo(answer(resolver, &error));
  rl_resolver_free(resolver);
}

/* A dead name server must not collect threads. */
TEST(the_33rd_concurrent_look_up_is_busy) {
  rl_resolver *hanging[RL_RESOLVER_THREADS_MAX];
  bool busy = false;
  atomic_store(&look_ups_port, 7777); /* Look-ups of earlier tests do not wait. */
  atomic_store(&look_ups_wait, true);
  for (unsigned i = 0; i < COUNT_OF(hanging); i++) {
    hanging[i] = look_up_in_turn("localhost", 7777);
  }
  for (unsigned i = 0; i < 3; i++) {
    assert_null(begin("localhost", 1, &busy));
    assert_true(busy);
  }
  for (unsigned i = 0; i < COUNT_OF(hanging); i++) {
    rl_resolver_free(hanging[i]); /* They are abandoned, and still hang. */
  }
  assert_null(begin("localhost", 1, &busy));
  assert_true(busy);
  atomic_store(&look_ups_wait, false);
  rl_resolver *next = look_up_in_turn("localhost", 1);
  rl_resolver_free(next);
}

TEST(close_leaves_a_look_up_to_its_thread) {
  redlock_client *client;
  atomic_store(&look_ups_port, 7778);
  assert_error(redlock_client_new(&client, NULL, NULL, 0), REDLOCK_OK);
  assert_error(redlock_client_add(client, "localhost:7778", NULL, 0), REDLOCK_OK);
  redlock_lock *lock;
  assert_error(redlock_lock_new(&lock, client, "r", 1, NULL), REDLOCK_OK);
  atomic_store(&look_ups_wait, true);
  assert_error(redlock_lock_acquire_start(lock, NULL), REDLOCK_OK);
  eventually((redlock_client_process(client, NULL, 0), client->sockets[0].resolver != NULL));
  int fd = rl_resolver_fd(client->sockets[0].resolver);
  assert_error(redlock_client_close(client, 0), REDLOCK_OK);
  assert_null(client->sockets[0].resolver);
  assert_true(fcntl(fd, F_GETFD) >= 0); /* The thread uses it, too. */
  atomic_store(&look_ups_wait, false);
  eventually(fcntl(fd, F_GETFD) < 0);
  redlock_lock_free(lock);
  redlock_client_free(client);
}

int main(void) {
  return tests_run(&(tests_fixture){.end = look_ups_end});
}
