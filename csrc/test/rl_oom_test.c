/*
 * Out of memory: whole scenarios are played with the k-th allocation failing, for every k, once and
 * from there on, until a scenario is through without a failure. Nothing may crash or leak, no lock may
 * be reported as held without a majority of the nodes, and when memory is back the same client works.
 *
 * SPDX-License-Identifier: MIT
 *
 * malloc() and its kin are this program's own, so that what hiredis and the C library allocate for us
 * fails too (glibc: __libc_malloc). A sanitizer has its own malloc(); there only what the library
 * itself asks for can fail, by the linker's --wrap.
 */
#include <poll.h>

#include "fake_nodes.h"
#include "loopback.h"
#include "rl_client.h"
#include "rl_reply.h"
#include "rl_test.h"

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define SANITIZED 1
#else
#define SANITIZED 0
#endif

void *__wrap_malloc(size_t size);
void *__wrap_calloc(size_t count, size_t size);
void *__wrap_realloc(void *block, size_t size);
char *__wrap_strdup(const char *text);
void __wrap_free(void *block);

/* -------------------------------------------------------------------------------- the allocator */

static struct memory {
  bool armed;
  bool for_good;  /* everything from |fail_at| on fails */
  size_t fail_at; /* 0: nothing fails, calls are only counted */
  size_t calls;
  size_t failed;
  long live;
} memory;

static bool out_of_memory(void) {
  if (!memory.armed) {
    return false;
  }
  memory.calls++;
  bool fails = memory.fail_at != 0 &&
               (memory.for_good ? memory.calls >= memory.fail_at : memory.calls == memory.fail_at);
  memory.failed += fails;
  return fails;
}

#if SANITIZED
void *__real_malloc(size_t size);
void *__real_calloc(size_t count, size_t size);
void *__real_realloc(void *block, size_t size);
void __real_free(void *block);
#define REAL(name) __real_##name
#else
void *__libc_malloc(size_t size);
void *__libc_calloc(size_t count, size_t size);
void *__libc_realloc(void *block, size_t size);
void __libc_free(void *block);
#define REAL(name) __libc_##name

#define EXPORTED __attribute__((visibility("default")))
EXPORTED void *malloc(size_t size) {
  return __wrap_malloc(size);
}
EXPORTED void *calloc(size_t count, size_t size) {
  return __wrap_calloc(count, size);
}
EXPORTED void *realloc(void *block, size_t size) {
  return __wrap_realloc(block, size);
}
EXPORTED void free(void *block) {
  __wrap_free(block);
}
#endif

void *__wrap_malloc(size_t size) {
  void *block = out_of_memory() ? NULL : REAL(malloc)(size);
  memory.live += block != NULL;
  return block;
}

void *__wrap_calloc(size_t count, size_t size) {
  void *block = out_of_memory() ? NULL : REAL(calloc)(count, size);
  memory.live += block != NULL;
  return block;
}

void *__wrap_realloc(void *block, size_t size) {
  void *moved = out_of_memory() ? NULL : REAL(realloc)(block, size);
  memory.live += block == NULL && moved != NULL;
  return moved;
}

char *__wrap_strdup(const char *text) {
  size_t size = strlen(text) + 1;
  char *copy = __wrap_malloc(size);
  return copy == NULL ? NULL : memcpy(copy, text, size);
}

void __wrap_free(void *block) {
  memory.live -= block != NULL;
  REAL(free)(block);
}

static void arm(size_t fail_at, bool for_good) {
  memory = (struct memory){true, for_good, fail_at, 0, 0, memory.live};
}

/* A failure has to be reported, which takes memory. */
#define assert_now(condition)                                                                      \
  do {                                                                                             \
    bool holds = (condition);                                                                      \
    memory.armed = memory.armed && holds;                                                          \
    assert_true(holds &&#condition);                                                               \
  } while (0)

/* ------------------------------------------------------------------ the core over fake nodes */

static const char KEY[] = "orders:42";
static const char OTHER[] = "ffffffffffffffffffffffffffffffffffffffff";

/* A held lock is on a majority of the nodes. */
static void assert_safe(fake_world *world, const rl_lock *lock) {
  if (lock != NULL && rl_lock_remaining(lock, world->now_us) > 0) {
    char key[FAKE_KEY_MAX] = "";
    memcpy(key, lock->resource->key, lock->resource->key_length);
    assert_now(fake_holders(world, key, lock->lease->token) >= world->count / 2 + 1);
  }
}

/* Lets the operation that was begun end, whatever becomes of it. */
static void finish(fake_world *world, rl_lock *lock, int begun) {
  for (unsigned i = 0; i < 64 && begun == REDLOCK_OK; i++) {
    fake_settle(world);
    assert_safe(world, lock);
    if (rl_lock_result(lock) != REDLOCK_PENDING) {
      return;
    }
    fake_pass(world, 50 * MS);
  }
  assert_now(begun != REDLOCK_OK || rl_lock_result(lock) != REDLOCK_PENDING);
}

/* Acquire with a retry, extend with a heal, scripts that were forgotten, a reconnection, release. */
static void play_core(fake_world *world) {
  rl_lock *other = fake_lock(world, "other", NULL);
  rl_lock *lock = fake_lock(world, KEY, NULL);
  if (lock != NULL) {
    fake_store_put(&world->nodes[0].store, KEY, OTHER, world->now_us + 100 * MS);
    fake_store_put(&world->nodes[1].store, KEY, OTHER, world->now_us + 100 * MS);
    finish(world, lock, rl_lock_acquire(lock, world->now_us, NULL, true));
    for (unsigned i = 0; i < world->count; i++) {
      world->nodes[i].store.forgot_release = world->nodes[i].store.forgot_extend = true;
    }
    if (fake_keys(world, KEY) == world->count) { /* One key may be lost, and is healed. */
      fake_store_remove(&world->nodes[2].store, KEY);
    }
    finish(world, lock, rl_lock_extend(lock, world->now_us, 0, true));
    fake_break(world, 1, "Connection reset by peer");
    finish(world, lock, rl_lock_extend(lock, world->now_us, 0, true));
    finish(world, lock, rl_lock_release(lock, world->now_us, true));
    finish(world, lock, rl_lock_acquire(lock, world->now_us, NULL, true));
    (void)rl_lock_acquire(lock, world->now_us, NULL, true);
    rl_lock_free(lock, world->now_us); /* held, or in flight */
    fake_turn(world);
  }
  if (other != NULL) {
    finish(world, other, rl_lock_acquire(other, world->now_us, NULL, false));
    fake_break(world, 0, "Connection reset by peer");
    rl_lock_free(other, world->now_us);
    fake_turn(world);
  }
}

static void memory_is_back(fake_world *world) {
  memory.armed = false;
  fake_pass(world, 2 * SECONDS);
  fake_settle(world);
  for (unsigned i = 0; i < world->count; i++) {
    fake_store_remove(&world->nodes[i].store, OTHER);
    assert_null(fake_store_token(&world->nodes[i].store, world->now_us, KEY));
    assert_null(fake_store_token(&world->nodes[i].store, world->now_us, "other"));
  }
  rl_lock *lock = fake_lock(world, KEY, NULL);
  assert_non_null(lock);
  assert_error(fake_hold(world, lock), REDLOCK_OK);
  assert_int_equal(fake_holders(world, KEY, lock->lease->token), world->count);
  assert_error(rl_lock_release(lock, world->now_us, false), REDLOCK_OK);
  fake_settle(world);
  assert_error(rl_lock_result(lock), REDLOCK_OK);
  assert_int_equal(fake_keys(world, KEY), 0);
}

/* Sockets that take nothing: queues grow while operations are begun and given up. */
static void play_busy(fake_world *world, rl_lock *held, rl_lock *other) {
  for (unsigned i = 0; i < world->count; i++) {
    world->nodes[i].blocked = true;
  }
  for (unsigned i = 0; i < 40; i++) {
    if (rl_lock_extend(held, world->now_us, 0, false) == REDLOCK_OK) {
      fake_turn(world);
      rl_lock_cancel(held, world->now_us, REDLOCK_E_CANCELLED);
    }
    if (rl_lock_acquire(other, world->now_us, NULL, false) == REDLOCK_OK) {
      fake_turn(world);
      rl_lock_cancel(other, world->now_us, REDLOCK_E_CANCELLED);
    }
    assert_now(rl_lock_remaining(held, world->now_us) > 0);
  }
  (void)rl_lock_release(held, world->now_us, false);
  fake_turn(world);
  assert_now(rl_lock_remaining(held, world->now_us) == 0);
  for (unsigned i = 0; i < world->count; i++) {
    world->nodes[i].blocked = false;
  }
  fake_settle(world);
}

static bool busy_with(size_t fail_at, bool for_good) {
  long before = memory.live;
  memory.armed = false;
  fake_world *world = fake_world_new(3);
  rl_lock *held = fake_lock(world, KEY, NULL);
  rl_lock *other = fake_lock(world, "other", NULL);
  assert_error(fake_hold(world, held), REDLOCK_OK);
  arm(fail_at, for_good);
  play_busy(world, held, other);
  rl_lock_free(held, world->now_us);
  rl_lock_free(other, world->now_us);
  memory_is_back(world);
  assert_true(fake_world_end(world));
  assert_int_equal(memory.live, before);
  return memory.failed > 0;
}

/* Returns whether an allocation failed. */
static bool core_with(size_t fail_at, bool for_good) {
  long before = memory.live;
  fake_world *world = malloc(sizeof *world);
  assert_non_null(world);
  arm(fail_at, for_good);
  int error = fake_world_open(world, 3, "p:");
  if (error == REDLOCK_OK) {
    world->core.prefix_length = 0; /* The fake nodes' keys have none. */
    play_core(world);
    memory_is_back(world);
  } else {
    assert_now(error == REDLOCK_E_NO_MEMORY);
  }
  memory.armed = false;
  fake_world_close(world);
  free(world);
  assert_int_equal(memory.live, before);
  return memory.failed > 0;
}

/* Whether what hiredis asks for can fail, too: this program's malloc() is really everybody's. */
static void the_allocations_of_hiredis_are_ours(void **state) {
  (void)state;
  rl_reply_reader reader;
  arm(0, false);
  assert_int_equal(rl_reply_open(&reader), 0);
  memory.armed = false;
  rl_reply_close(&reader);
  bool expected = !SANITIZED && getenv("REDLOCK_TEST_VALGRIND") == NULL;
  assert_true(memory.calls > 0 || !expected);
}

static void the_core_survives_every_allocation_that_fails(void **state) {
  (void)state;
  for (int for_good = 0; for_good <= 1; for_good++) {
    size_t fail_at = 1;
    while (core_with(fail_at, for_good == 1)) {
      fail_at++;
    }
    print_message("core: %zu allocations, each failed %s\n", fail_at - 1,
                  for_good ? "with all after it" : "alone");
    assert_true(fail_at > 15);
  }
}

static void a_busy_core_survives_every_allocation_that_fails(void **state) {
  (void)state;
  for (int for_good = 0; for_good <= 1; for_good++) {
    size_t fail_at = 1;
    while (busy_with(fail_at, for_good == 1)) {
      fail_at++;
    }
    print_message("busy core: %zu allocations, each failed %s\n", fail_at - 1,
                  for_good ? "with all after it" : "alone");
    assert_true(fail_at > 8);
  }
}

/* -------------------------------------------------------- the client over servers on loopback */

static redlock_client *make_client(const loopback *farm, int *error) {
  redlock_client *client;
  redlock_settings settings;
  redlock_options options;
  char message[128];
  redlock_settings_default(&settings);
  redlock_options_default(&options);
  options.node_timeout_us = 8 * MS;
  options.retry_count = 1;
  options.retry_delay_us = MS;
  options.retry_jitter_us = 0;
  settings.options = &options;
  settings.username = "user";
  settings.password = "password";
  settings.prefix = "orders:";
  settings.prefix_length = 7;
  *error = redlock_client_new(&client, &settings, message, sizeof message);
  for (unsigned i = 0; i < farm->count && *error == REDLOCK_OK; i++) {
    *error = redlock_client_add(client, farm->nodes[i].address, message, sizeof message);
  }
  return client;
}

static void turn(redlock_client *client, loopback *farm) {
  struct pollfd fds[REDLOCK_NODES_MAX];
  size_t count = redlock_client_pollfds(client, fds, REDLOCK_NODES_MAX);
  (void)poll(fds, (nfds_t)count, redlock_client_timeout(client) == 0 ? 0 : 1);
  (void)redlock_client_process(client, fds, count);
  loopback_pump(farm, 0);
}

static int run(redlock_client *client, loopback *farm, redlock_lock *lock, int begun) {
  redlock_time until_us = redlock_now() + 10 * SECONDS;
  while (begun == REDLOCK_OK && redlock_lock_result(lock) == REDLOCK_PENDING) {
    assert_now(redlock_now() < until_us);
    turn(client, farm);
  }
  while (redlock_client_next_ended(client) != NULL) {
  }
  if (redlock_lock_remaining(lock) > 0) {
    assert_now(loopback_keys(farm, KEY) >= 2);
  }
  return begun == REDLOCK_OK ? redlock_lock_result(lock) : begun;
}

static void play_client(redlock_client *client, loopback *farm) {
  redlock_lock *lock;
  (void)redlock_client_pollfd(client);
  int error = redlock_lock_new(&lock, client, "42", 2, NULL);
  if (error != REDLOCK_OK) {
    assert_now(error == REDLOCK_E_NO_MEMORY && lock == NULL);
    return;
  }
  (void)run(client, farm, lock, redlock_lock_acquire_start(lock, NULL));
  (void)redlock_lock_message(lock);
  (void)run(client, farm, lock, redlock_lock_extend_start(lock, 0));
  loopback_down(farm, 0);
  loopback_up(farm, 0);
  (void)run(client, farm, lock, redlock_lock_extend_start(lock, 0));
  (void)run(client, farm, lock, redlock_lock_release_start(lock));
  (void)run(client, farm, lock, redlock_lock_acquire_start(lock, NULL));
  redlock_lock_free(lock);
}

static bool client_with(loopback *farm, size_t fail_at, bool for_good) {
  long before = memory.live;
  int error;
  arm(fail_at, for_good);
  redlock_client *client = make_client(farm, &error);
  assert_now(client != NULL || error == REDLOCK_E_NO_MEMORY);
  if (error == REDLOCK_OK) {
    play_client(client, farm);
    memory.armed = false;
    redlock_lock *lock;
    redlock_time until_us = redlock_now() + 10 * SECONDS;
    assert_error(redlock_lock_new(&lock, client, "42", 2, NULL), REDLOCK_OK);
    while (run(client, farm, lock, redlock_lock_acquire_start(lock, NULL)) != REDLOCK_OK) {
      assert_now(redlock_now() < until_us); /* A back-off may have to pass. */
    }
    assert_error(run(client, farm, lock, redlock_lock_release_start(lock)), REDLOCK_OK);
    redlock_lock_free(lock);
    while (loopback_keys(farm, KEY) > 0) {
      assert_now(redlock_now() < until_us);
      turn(client, farm);
    }
  }
  memory.armed = false;
  (void)redlock_client_close(client, 0);
  redlock_client_free(client);
  assert_int_equal(memory.live, before);
  return memory.failed > 0;
}

static void the_client_survives_every_allocation_that_fails(void **state) {
  (void)state;
  for (int for_good = 0; for_good <= 1; for_good++) {
    loopback *farm = loopback_new(3, LOOPBACK_UNIX);
    size_t fail_at = 1;
    while (client_with(farm, fail_at, for_good == 1)) {
      fail_at++;
    }
    print_message("client: %zu allocations, each failed %s\n", fail_at - 1,
                  for_good ? "with all after it" : "alone");
    assert_true(fail_at > 15);
    assert_true(loopback_end(farm));
  }
}

/* ------------------------------------------------------------------------- none after warm-up */

/* hiredis throws away what it has read when that is 1024 bytes: until then its buffer grows. */
#define WARM_UP 300

static void an_acquire_and_release_allocate_nothing_after_warm_up(void **state) {
  (void)state;
  fake_world *world = fake_world_new(5);
  rl_lock *lock = fake_lock(world, KEY, NULL);
  for (unsigned i = 0; i < 3 * WARM_UP; i++) {
    if (i == WARM_UP) {
      arm(0, false);
    }
    assert_error(fake_hold(world, lock), REDLOCK_OK);
    assert_error(rl_lock_extend(lock, world->now_us, 0, true), REDLOCK_OK);
    fake_settle(world);
    assert_error(rl_lock_release(lock, world->now_us, true), REDLOCK_OK);
    fake_settle(world);
    assert_error(rl_lock_result(lock), REDLOCK_OK);
  }
  memory.armed = false;
  assert_int_equal(memory.calls, 0);
  assert_true(fake_world_end(world));
}

static void nor_does_the_client(void **state) {
  (void)state;
  int error;
  redlock_lock *lock;
  redlock_options options;
  redlock_options_default(&options);
  options.node_timeout_us = 5 * SECONDS;
  loopback *farm = loopback_new(5, LOOPBACK_TCP);
  redlock_client *client = make_client(farm, &error);
  assert_error(error, REDLOCK_OK);
  assert_true(redlock_client_pollfd(client) >= 0);
  assert_error(redlock_lock_new(&lock, client, "42", 2, &options), REDLOCK_OK);
  for (unsigned i = 0; i < 2 * WARM_UP; i++) {
    if (i == WARM_UP) {
      arm(0, false);
    }
    assert_error(run(client, farm, lock, redlock_lock_acquire_start(lock, NULL)), REDLOCK_OK);
    assert_error(run(client, farm, lock, redlock_lock_release_start(lock)), REDLOCK_OK);
  }
  memory.armed = false;
  assert_int_equal(memory.calls, 0);
  redlock_lock_free(lock);
  redlock_client_free(client);
  assert_true(loopback_end(farm));
}

static void freeing_allocates_nothing(void **state) {
  (void)state;
  int error;
  redlock_lock *lock;
  loopback *farm = loopback_new(3, LOOPBACK_UNIX);
  redlock_client *client = make_client(farm, &error);
  assert_error(error, REDLOCK_OK);
  assert_error(redlock_lock_new(&lock, client, "42", 2, NULL), REDLOCK_OK);
  while (run(client, farm, lock, redlock_lock_acquire_start(lock, NULL)) != REDLOCK_OK) {
  }
  arm(0, false);
  redlock_lock_free(lock);
  memory.armed = false;
  assert_int_equal(memory.calls, 0);
  redlock_time until_us = redlock_now() + 10 * SECONDS;
  while (loopback_keys(farm, KEY) > 0) {
    assert_true(redlock_now() < until_us);
    loopback_pump(farm, 1);
  }
  redlock_client_free(client);
  assert_true(loopback_end(farm));
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(the_allocations_of_hiredis_are_ours),
      cmocka_unit_test(the_core_survives_every_allocation_that_fails),
      cmocka_unit_test(a_busy_core_survives_every_allocation_that_fails),
      cmocka_unit_test(the_client_survives_every_allocation_that_fails),
      cmocka_unit_test(an_acquire_and_release_allocate_nothing_after_warm_up),
      cmocka_unit_test(nor_does_the_client),
      cmocka_unit_test(freeing_allocates_nothing),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
