/*
 * Every allocation of the core and of the client fails once, and each one from there on, in whole
 * scenarios. Nothing crashes or leaks, no lock is reported as held without a majority of the nodes,
 * and when memory is back the same client works. After warm-up there are no allocations.
 *
 * SPDX-License-Identifier: MIT
 */
#include <poll.h>

#include "client/rl_client.h"
#include "fake_clock.h"
#include "fake_guard.h"
#include "fake_nodes.h"
#include "lease/rl_attach.h"
#include "lease/rl_custom_token.h"
#include "lease/rl_fence.h"
#include "lease/rl_reentry.h"
#include "lifecycle/rl_detach.h"
#include "lock/rl_round.h"
#include "loopback.h"
#include "rl_test.h"
#include "wire/rl_reply.h"

void *__wrap_malloc(size_t size);
void *__wrap_calloc(size_t count, size_t size);
void *__wrap_realloc(void *block, size_t size);
char *__wrap_strdup(const char *text);
void __wrap_free(void *block);

#include "failing_memory.h"
#include "node/rl_link_queue.h"

/* ------------------------------------------------------------------ the core over fake nodes */

static const char KEY[] = "orders:42";
static const char OTHER[] = "ffffffffffffffffffffffffffffffffffffffff";

/* A held lock is on a majority of the nodes. */
static void assert_safe(fake_world *world, const rl_lock *lock) {
  if (lock != NULL && rl_lock_remaining(lock, world->now_us) > 0) {
    for (unsigned i = 0; i < lock->lease->resource->count; i++) {
      char key[FAKE_KEY_MAX] = "";
      rl_resource_name name = rl_resource_at(lock->lease->resource, i);
      memcpy(key, name.key, name.key_length);
      assert_now(fake_holders(world, key, rl_attempt_token(lock->lease)) >= world->count / 2 + 1);
    }
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

static void free_lock(fake_world *world, rl_lock *lock) {
  if (lock != NULL) {
    rl_lock_free(lock, world->now_us);
    fake_turn(world);
  }
}

/* Several resources: one is taken, the scripts are forgotten, one key is lost, then healed. */
static void play_several(fake_world *world) {
  static const char *const names[] = {"other", "third"};
  rl_lock *lock = fake_lock_many(world, names, 2, NULL);
  if (lock == NULL) {
    return;
  }
  for (unsigned i = 0; i < world->count; i++) {
    world->nodes[i].store.forgot_several = true;
    fake_store_put(&world->nodes[i].store, "third", OTHER, world->now_us + 100 * MS);
  }
  finish(world, lock, rl_lock_acquire(lock, world->now_us, NULL, true));
  if (fake_keys(world, "third") == world->count) {
    fake_store_remove(&world->nodes[2].store, "third");
  }
  finish(world, lock, rl_lock_extend(lock, world->now_us, 0, true));
  fake_break(world, 1, "Connection reset by peer");
  finish(world, lock, rl_lock_release(lock, world->now_us, true));
  finish(world, lock, rl_lock_acquire(lock, world->now_us, NULL, true));
  free_lock(world, lock);
}

/* A semaphore: a taken slot, the question, another slot, the hand-over to another lock. */
static void play_permits(fake_world *world) {
  redlock_options options = fake_once();
  options.permits = 2;
  rl_lock *first = fake_lock(world, "pool", &options);
  rl_lock *second = fake_lock(world, "pool", &options);
  if (first != NULL) {
    finish(world, first, rl_lock_acquire(first, world->now_us, NULL, true));
  }
  if (second != NULL) {
    for (unsigned i = 0; i < 4; i++) {
      world->jitter = i;
      finish(world, second, rl_lock_acquire(second, world->now_us, NULL, true));
      finish(world, second, rl_lock_release(second, world->now_us, true));
    }
    finish(world, second, rl_lock_acquire(second, world->now_us, NULL, true));
  }
  free_lock(world, second);
  if (first != NULL) {
    finish(world, first, rl_lock_release(first, world->now_us, true));
  }
  free_lock(world, first);
}

/*
 * Acquire with a retry, extend with a heal, scripts that were forgotten, a reconnection, release.
 */
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
    free_lock(world, lock); /* held, or in flight */
  }
  if (other != NULL) {
    finish(world, other, rl_lock_ask(other, world->now_us, RL_OPERATION_INSPECT, NULL, true));
    finish(world, other,
           rl_lock_ask(other, world->now_us, RL_OPERATION_DOCTOR,
                       &(rl_question){.flags = REDLOCK_DOCTOR_KEYS}, true));
    finish(world, other,
           rl_lock_ask(other, world->now_us, RL_OPERATION_FORCE_RELEASE,
                       &(rl_question){.token = OTHER, .token_length = strlen(OTHER)}, true));
    finish(world, other,
           rl_lock_ask(other, world->now_us, RL_OPERATION_FORCE_RELEASE,
                       &(rl_question){.token = "", .token_length = REDLOCK_TOKEN_ANY}, true));
    finish(world, other, rl_lock_acquire(other, world->now_us, NULL, false));
    finish(world, other, rl_lock_release_send(other, world->now_us));
    rl_handover handover;
    if (rl_lock_describe_lease(other, world->now_us, &handover) == REDLOCK_OK) {
      rl_lock_detach(other);
    }
    (void)rl_custom_token_set(other, OTHER, strlen(OTHER));
    finish(world, other, rl_lock_acquire(other, world->now_us, NULL, false));
    if (rl_lock_describe_lease(other, world->now_us, &handover) == REDLOCK_OK &&
        rl_attach_set(other, &handover) == REDLOCK_OK) {
      rl_lock_detach(other);
      finish(world, other, rl_lock_acquire(other, world->now_us, NULL, false));
    }
    finish(world, other, rl_lock_release(other, world->now_us, false));
    (void)rl_custom_token_set(other, OTHER, strlen(OTHER));
    finish(world, other, rl_lock_acquire(other, world->now_us, NULL, false));
    fake_break(world, 0, "Connection reset by peer");
    free_lock(world, other);
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
    assert_null(fake_store_token(&world->nodes[i].store, world->now_us, "third"));
  }
  rl_lock *lock = fake_lock(world, KEY, NULL);
  assert_non_null(lock);
  assert_error(fake_acquire(world, lock), REDLOCK_OK);
  assert_int_equal(fake_holders(world, KEY, rl_attempt_token(lock->lease)), world->count);
  assert_error(rl_lock_release(lock, world->now_us, false), REDLOCK_OK);
  fake_settle(world);
  assert_error(rl_lock_result(lock), REDLOCK_OK);
  assert_int_equal(fake_keys(world, KEY), 0);
}

/* Sockets that take nothing: queues grow while operations are begun and given up. */
static void play_busy(fake_world *world) {
  memory.armed = false;
  rl_lock *held = fake_lock(world, KEY, NULL);
  rl_lock *other = fake_lock(world, "other", NULL);
  assert_error(fake_acquire(world, held), REDLOCK_OK);
  memory.armed = true;
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
  rl_lock_free(held, world->now_us);
  rl_lock_free(other, world->now_us);
}

/* A lease that keeps itself: what a call asks for may find no memory, and every extend may not. */
static void play_kept(fake_world *world) {
  redlock_options options = {.auto_extend = REDLOCK_YES, .max_hold_us = 25 * SECONDS};
  rl_lock *lock = fake_lock(world, KEY, NULL);
  if (lock == NULL) {
    return;
  }
  int begun = rl_lock_acquire(lock, world->now_us, &options, true);
  assert_now(begun == REDLOCK_OK || begun == REDLOCK_E_NO_MEMORY);
  finish(world, lock, begun);
  for (unsigned i = 0; i < 300; i++) {
    fake_pass(world, 100 * MS);
    fake_settle(world);
    assert_safe(world, lock);
    (void)rl_loss_next(&world->core, world->now_us);
  }
  assert_now(rl_lock_remaining(lock, world->now_us) == 0);
  rl_lock_free(lock, world->now_us);
}

/*
 * Returns true if what hiredis asks for can fail, too: this program's malloc() is really
 * everybody's.
 */
TEST(hiredis_uses_our_allocator) {
  rl_reply_reader reader;
  arm(0, false);
  assert_int_equal(rl_reply_open(&reader), 0);
  memory.armed = false;
  rl_reply_close(&reader);
  bool expected = !SANITIZED && getenv("REDLOCK_TEST_VALGRIND") == NULL;
  assert_true(memory.calls > 0 || !expected);
}

/*
 * Locks of one owner: whose it is, the table of them, and what the lease brings along may find no
 * memory.
 */
static void play_nested(fake_world *world) {
  redlock_options options = {.ttl_us = 30 * SECONDS, .auto_extend = REDLOCK_YES, .retry_count = 1};
  rl_lock *locks[12] = {NULL};
  bool any_held = false;
  for (unsigned i = 0; i < 12; i++) {
    locks[i] = fake_lock(world, KEY, NULL);
    if (locks[i] == NULL || rl_reentry_set_owner(locks[i], world->now_us, "me", 2) != REDLOCK_OK) {
      continue;
    }
    int begun = rl_lock_acquire(locks[i], world->now_us, i % 2 == 0 ? &options : NULL, true);
    finish(world, locks[i], begun);
    bool held = begun == REDLOCK_OK && rl_lock_result(locks[i]) == REDLOCK_OK;
    assert_now(!held || rl_ring_remaining(locks[i], world->now_us) > 0);
    any_held = any_held || held;
  }
  for (unsigned i = 0; i < 12; i++) {
    assert_now(!any_held || i > 0 || fake_keys(world, KEY) >= 2);
    if (locks[i] != NULL) {
      rl_lock_free(locks[i], world->now_us);
    }
  }
}

/* The nodes' counters differ, so that a majority has to confirm one number. */
static void part_counters(fake_world *world) {
  fake_store *store = &world->nodes[1].store;
  uint64_t most = fake_store_counter(store, world->now_us, KEY);
  fake_store_count(store, KEY, rl_time_max(most, world->now_us) + 10, REDLOCK_NEVER);
}

/* A token is not reported unless a majority has come so far. */
static void assert_confirmed(fake_world *world, const rl_lock *lock, uint64_t *last) {
  unsigned confirmed = 0;
  if (lock == NULL || rl_lock_remaining(lock, world->now_us) == 0) {
    return;
  }
  for (unsigned i = 0; i < world->count; i++) {
    confirmed +=
        fake_store_counter(&world->nodes[i].store, world->now_us, KEY) >= rl_fence_token(lock);
  }
  assert_now(confirmed >= world->count / 2 + 1 && rl_fence_token(lock) > *last);
  *last = rl_fence_token(lock) - 1;
}

/* Two rounds, a heal, scripts that were forgotten, a handover, a nested acquire. */
static void play_fenced(fake_world *world) {
  redlock_options options = {.fence = REDLOCK_YES, .retry_count = 2};
  rl_lock *lock = fake_lock(world, KEY, &options);
  rl_lock *heir = fake_lock(world, KEY, &options);
  uint64_t last = 0;
  rl_handover handover;
  for (unsigned i = 0; i < 2 && lock != NULL; i++) {
    part_counters(world);
    finish(world, lock, rl_lock_acquire(lock, world->now_us, NULL, true));
    assert_confirmed(world, lock, &last);
    if (lock->lease != NULL &&
        fake_holders(world, KEY, rl_attempt_token(lock->lease)) == world->count) {
      fake_store_remove(&world->nodes[2].store, KEY);
    }
    world->nodes[2].store.forgot_watched = true;
    finish(world, lock, rl_lock_extend(lock, world->now_us, 0, true));
    if (heir != NULL && rl_lock_describe_lease(lock, world->now_us, &handover) == REDLOCK_OK &&
        rl_attach_set(heir, &handover) == REDLOCK_OK) {
      rl_lock_detach(lock);
      finish(world, heir, rl_lock_acquire(heir, world->now_us, NULL, true));
      assert_confirmed(world, heir, &last);
      finish(world, heir, rl_lock_release(heir, world->now_us, true));
      fake_pass(world, 12 * SECONDS); /* The lease that could not be attached has expired. */
    }
    finish(world, lock, rl_lock_release(lock, world->now_us, true));
    last += last > 0;
  }
  if (lock != NULL && heir != NULL &&
      rl_reentry_set_owner(lock, world->now_us, "me", 2) == REDLOCK_OK &&
      rl_reentry_set_owner(heir, world->now_us, "me", 2) == REDLOCK_OK) {
    finish(world, lock, rl_lock_acquire(lock, world->now_us, NULL, true));
    finish(world, heir, rl_lock_acquire(heir, world->now_us, NULL, true));
    finish(world, lock, rl_lock_release(lock, world->now_us, true));
    assert_confirmed(world, heir, &last);
  }
  free_lock(world, lock);
  free_lock(world, heir);
}

/*
 * New nodes, one that is restarted, one that is flushed, a script that is forgotten, a clock that
 * is stepped.
 */
static void play_guarded(fake_world *world) {
  rl_lock *lock = fake_lock(world, KEY, NULL);
  if (lock == NULL) {
    return;
  }
  finish(world, lock, rl_lock_acquire(lock, world->now_us, NULL, true));
  fake_pass(world, 40 * SECONDS);
  for (unsigned i = 0; i < 4; i++) {
    finish(world, lock, rl_lock_acquire(lock, world->now_us, NULL, true));
    finish(world, lock, rl_lock_release(lock, world->now_us, true));
    fake_settle(world);
    if (i == 0) {
      fake_store_restart(&world->nodes[1].store, "again", true);
      fake_break(world, 1, "Connection reset by peer");
    } else if (i == 1) {
      fake_store_restart(&world->nodes[0].store, "run0", true);
    } else {
      world->nodes[2].store.take_sha1[0] = '\0';
      world->nodes[2].store.ahead_us += 100 * MS;
    }
    finish(world, lock, rl_lock_acquire(lock, world->now_us, NULL, true));
    assert_now(i > 0 || !lock->votes[1].settled || lock->votes[1].vote != REDLOCK_VOTE_GRANTED);
    finish(world, lock, rl_lock_release(lock, world->now_us, true));
    fake_pass(world, 40 * SECONDS);
  }
  free_lock(world, lock);
}

/* Nodes that could not be asked are asked again, and their quarantine ends. */
static void wait_for_guard(fake_world *world) {
  for (unsigned i = 0; i < 3; i++) {
    rl_lock *lock = fake_lock(world, KEY, NULL);
    finish(world, lock, rl_lock_acquire(lock, world->now_us, NULL, true));
    finish(world, lock, rl_lock_release(lock, world->now_us, true));
    rl_lock_free(lock, world->now_us);
    fake_pass(world, 40 * SECONDS);
  }
}

typedef struct scenario {
  void (*play)(fake_world *world);
  size_t least; /* allocations */
  bool guarded;
} scenario;

/* Plays |it| in a new world. Returns true if an allocation failed. */
static bool play_with(const scenario *it, size_t fail_at, bool for_good) {
  long before = memory.live;
  fake_world *world = malloc(sizeof *world);
  assert_non_null(world);
  arm(fail_at, for_good);
  int error =
      it->guarded ? fake_world_open_guarded(world, 3, "p:", 0) : fake_world_open(world, 3, "p:");
  assert_now(error == REDLOCK_OK || error == REDLOCK_E_NO_MEMORY);
  if (error == REDLOCK_OK) {
    world->core.prefix_length = 0; /* The fake nodes' keys have none. */
    it->play(world);
    memory.armed = false;
    if (it->guarded) {
      wait_for_guard(world);
    }
    memory_is_back(world);
  }
  memory.armed = false;
  assert_true(error != REDLOCK_OK || !world->broken);
  fake_world_close(world);
  free(world);
  assert_int_equal(memory.live, before);
  return memory.failed > 0;
}

/* Each allocation fails, alone and with all after it. */
static void play_with_each_failure(const scenario *it) {
  for (int for_good = 0; for_good <= 1; for_good++) {
    size_t fail_at = 1;
    while (play_with(it, fail_at, for_good == 1)) {
      fail_at++;
    }
    print_message("%zu allocations, each failed %s\n", fail_at - 1,
                  for_good ? "with all after it" : "alone");
    assert_true(fail_at > it->least);
  }
}

TEST(core_survives_every_failed_allocation) {
  play_with_each_failure(&(scenario){.play = play_core, .least = 15});
}

TEST(auto_extended_lease_survives_every_failed_allocation) {
  play_with_each_failure(&(scenario){.play = play_kept, .least = 8});
}

TEST(lock_on_several_resources_survives_every_failed_allocation) {
  play_with_each_failure(&(scenario){.play = play_several, .least = 8});
}

TEST(semaphore_survives_every_failed_allocation) {
  play_with_each_failure(&(scenario){.play = play_permits, .least = 8});
}

TEST(fencing_tokens_survive_every_failed_allocation) {
  play_with_each_failure(&(scenario){.play = play_fenced, .least = 15});
}

TEST(guard_survives_every_failed_allocation) {
  play_with_each_failure(&(scenario){.play = play_guarded, .least = 15, .guarded = true});
}

TEST(nested_locks_survive_every_failed_allocation) {
  play_with_each_failure(&(scenario){.play = play_nested, .least = 40});
}

TEST(busy_core_survives_every_failed_allocation) {
  play_with_each_failure(&(scenario){.play = play_busy, .least = 8});
}

/* -------------------------------------------------------- the client over servers on loopback */

static redlock_client *make_client(const loopback *farm, int *error) {
  redlock_client *client;
  char message[128];
  /* A round waits for 25 ms for a node without memory. */
  redlock_options options = {.node_timeout_us = 25 * MS,
                             .retry_count = 1,
                             .retry_delay_us = MS,
                             .retry_jitter_us = REDLOCK_DURATION_NONE};
  redlock_settings settings = {.options = &options,
                               .username = "user",
                               .password = "password",
                               .prefix = "orders:",
                               .prefix_length = 7};
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

/* Again and again: a machine may be slow, or a back-off may have to pass. */
static void acquire(redlock_client *client, loopback *farm, redlock_lock *lock) {
  eventually(run(client, farm, lock, redlock_lock_acquire_start(lock, NULL)) == REDLOCK_OK);
}

/* A nested acquire that returns a failure must not count: no caller would release it. */
TEST(nested_acquire_without_memory_does_not_count) {
  int error;
  loopback *farm = loopback_new(3, LOOPBACK_UNIX);
  redlock_client *client = make_client(farm, &error);
  redlock_lock *outer, *inner;
  assert_error(error, REDLOCK_OK);
  assert_error(redlock_lock_new(&outer, client, "42", 2, NULL), REDLOCK_OK);
  assert_error(redlock_lock_new(&inner, client, "42", 2, NULL), REDLOCK_OK);
  assert_error(redlock_lock_set_owner(outer, "me", 2), REDLOCK_OK);
  assert_error(redlock_lock_set_owner(inner, "me", 2), REDLOCK_OK);
  acquire(client, farm, outer);
  for (unsigned counts = 0; counts < 2; counts++) { /* Another lock, and the same. */
    redlock_lock *nested = counts == 0 ? inner : outer;
    arm(1, true);
    error = redlock_lock_acquire(nested, NULL, NULL);
    memory.armed = false;
    assert_error(error, REDLOCK_OK);
    arm(1, true);
    error = redlock_lock_release(nested);
    memory.armed = false;
    assert_error(error, REDLOCK_OK);
    assert_true(redlock_lock_remaining(outer) > 0);
  }
  redlock_lock_free(inner);
  redlock_lock_free(outer);
  redlock_client_free(client);
  assert_true(loopback_end(farm));
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
    assert_error(redlock_lock_new(&lock, client, "42", 2, NULL), REDLOCK_OK);
    acquire(client, farm, lock);
    assert_error(run(client, farm, lock, redlock_lock_release_start(lock)), REDLOCK_OK);
    redlock_lock_free(lock);
    eventually_by(turn(client, farm), loopback_keys(farm, KEY) == 0);
  }
  memory.armed = false;
  (void)redlock_client_close(client, 0);
  redlock_client_free(client);
  assert_int_equal(memory.live, before);
  return memory.failed > 0;
}

TEST(client_survives_every_failed_allocation) {
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

/* With a fencing token an acquire takes two rounds. */
static void operations_allocate_nothing(fake_world *world, const redlock_options *options) {
  rl_lock *lock = fake_lock(world, KEY, options);
  for (unsigned i = 0; i < 3 * WARM_UP; i++) {
    if (i == WARM_UP) {
      arm(0, false);
    }
    part_counters(world);
    assert_error(fake_acquire(world, lock), REDLOCK_OK);
    assert_error(rl_lock_extend(lock, world->now_us, 0, true), REDLOCK_OK);
    fake_settle(world);
    assert_error(rl_lock_release(lock, world->now_us, true), REDLOCK_OK);
    fake_settle(world);
    assert_error(rl_lock_result(lock), REDLOCK_OK);
  }
  memory.armed = false;
  assert_int_equal(memory.calls, 0);
}

TEST(acquire_and_release_allocate_nothing_after_warm_up) {
  operations_allocate_nothing(fake_world_new(5), NULL);
}

TEST(fencing_token_allocates_nothing_after_warm_up) {
  redlock_options options = {.fence = REDLOCK_YES};
  operations_allocate_nothing(fake_world_new(3), &options);
}

TEST(guard_allocates_nothing_after_warm_up) {
  fake_world *world = fake_world_new_guarded(3, 0);
  rl_lock *lock = fake_lock(world, KEY, NULL);
  (void)fake_acquire(world, lock);
  (void)rl_lock_cancel(lock, world->now_us, REDLOCK_E_CANCELLED);
  fake_settle(world);
  fake_pass(world, 40 * SECONDS);
  operations_allocate_nothing(world, NULL);
}

LINUX_TEST(client_allocates_nothing_after_warm_up) {
  int error;
  redlock_lock *lock;
  redlock_options options = {0};
  options.node_timeout_us = 5 * SECONDS;
  loopback *farm = loopback_new(5, LOOPBACK_UNIX);
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

TEST(free_allocates_nothing) {
  int error;
  redlock_lock *lock;
  loopback *farm = loopback_new(3, LOOPBACK_UNIX);
  redlock_client *client = make_client(farm, &error);
  assert_error(error, REDLOCK_OK);
  assert_error(redlock_lock_new(&lock, client, "42", 2, NULL), REDLOCK_OK);
  acquire(client, farm, lock);
  assert_allocates_nothing(redlock_lock_free(lock));
  eventually_by(loopback_pump(farm, 1), loopback_keys(farm, KEY) == 0);
  redlock_client_free(client);
  assert_true(loopback_end(farm));
}
