/*
 * The core without memory: it skips a command, a vote or a heal, and can always free a lock.
 *
 * SPDX-License-Identifier: MIT
 */
#include "fake_nodes.h"
#include "lock/rl_round.h"
#include "rl_test.h"

void *__wrap_malloc(size_t size);
void *__wrap_calloc(size_t count, size_t size);
void *__wrap_realloc(void *block, size_t size);
char *__wrap_strdup(const char *text);
void __wrap_free(void *block);

#include "failing_memory.h"
#include "node/rl_link_queue.h"

static const char KEY[] = "orders:42";

/* ------------------------------------------------------------- queues that must grow, and can't */

static const unsigned char ENTROPY[RL_LOCK_ENTROPY] = {0xff};

static rl_attempt *spare_attempt(fake_world *world, const rl_lock *lock) {
  rl_attempt *attempt =
      rl_attempt_new(&world->core.attempts, lock->resource, NULL, ENTROPY, 0, NULL);
  assert_non_null(attempt);
  return attempt;
}

/* Releases |attempt| until the node has no memory for more. Returns the number of releases. */
static unsigned fill_outstanding(fake_world *world, unsigned index, rl_attempt *attempt) {
  rl_node *node = world->core.nodes[index];
  unsigned count = 0;
  world->nodes[index].blocked = true;
  while (rl_link_queue_release(&node->link, world->now_us, attempt, 0, false, false)) {
    rl_buffer_clear(&node->link.output); /* as if it had been sent */
    count++;
  }
  assert_int_equal(node->link.outstanding_count, node->link.outstanding_capacity);
  world->nodes[index].blocked = false;
  return count;
}

/* Commands of |attempt| until not one more fits into the memory of the node's output. */
static void fill_output(fake_world *world, unsigned index, rl_attempt *attempt) {
  rl_node *node = world->core.nodes[index];
  world->nodes[index].blocked = true;
  while (rl_link_queue_release(&node->link, world->now_us, attempt, 0, false, false)) {
  }
  size_t least = attempt->resource->key_length + REDLOCK_TOKEN_LENGTH + 256;
  while (node->link.output.capacity - node->link.output.tail >= least) {
    assert_true(rl_link_queue_set(&node->link, world->now_us, RL_OUTSTANDING_HEAL, attempt, 0, 1));
  }
  assert_true(node->link.outstanding_count < node->link.outstanding_capacity);
}

typedef enum queued { SET, EXTEND, RELEASE } queued;

static bool queue(rl_node *node, redlock_time now_us, rl_attempt *attempt, queued what) {
  return what == SET
             ? rl_link_queue_set(&node->link, now_us, RL_OUTSTANDING_ACQUIRE, attempt, 1, 1000)
         : what == EXTEND ? rl_link_queue_extend(&node->link, now_us, attempt, 1, false, 1000)
                          : rl_link_queue_release(&node->link, now_us, attempt, 1, false, true);
}

TEST(command_without_memory_leaves_nothing) {
  for (unsigned i = 0; i < 6; i++) {
    queued what = (queued)(i % 3);
    fake_world *world = fake_world_new(1);
    rl_lock *lock = fake_lock(world, KEY, NULL);
    assert_error(fake_acquire(world, lock), REDLOCK_OK);
    rl_node *node = world->core.nodes[0];
    rl_attempt *attempt = spare_attempt(world, lock);
    if (i < 3) {
      (void)fill_outstanding(world, 0, attempt);
    } else {
      fill_output(world, 0, attempt);
    }
    unsigned outstanding = node->link.outstanding_count;
    unsigned references = attempt->references;
    size_t bytes = rl_buffer_length(&node->link.output);
    arm(1, true);
    bool done = queue(node, world->now_us, attempt, what);
    memory.armed = false;
    assert_false(done);
    assert_true(memory.failed > 0);
    assert_int_equal(node->link.outstanding_count, outstanding);
    assert_int_equal(attempt->references, references);
    assert_int_equal(rl_buffer_length(&node->link.output), bytes);
    assert_true(queue(node, world->now_us, attempt, what)); /* There is memory again. */
    assert_int_equal(node->link.outstanding_count, outstanding + 1);
    assert_int_equal(attempt->references, references + 1);
    assert_true(rl_buffer_length(&node->link.output) > bytes);
    rl_attempt_unref(&world->core.attempts, attempt);
  }
}

/*
 * Held, or with a SET on its way: what finds no room without growing goes out with the next launch.
 */
TEST(free_of_a_lock_allocates_nothing_with_full_queues) {
  for (unsigned in_flight = 0; in_flight <= 1; in_flight++) {
    fake_world *world = fake_world_new(1);
    rl_lock *lock = fake_lock(world, KEY, NULL);
    assert_error(rl_lock_acquire(lock, world->now_us, NULL, false), REDLOCK_OK);
    fake_turn(world);
    if (!in_flight) {
      fake_settle(world);
      assert_error(rl_lock_result(lock), REDLOCK_OK);
    }
    rl_attempt *attempt = spare_attempt(world, lock);
    unsigned before = fill_outstanding(world, 0, attempt);
    assert_false(rl_core_has_unsent(&world->core));
    assert_allocates_nothing(rl_lock_free(lock, world->now_us));
    assert_true(rl_core_wants_send(&world->core));
    assert_true(rl_core_has_unsent(&world->core));
    fake_turn(world);
    assert_false(rl_core_has_unsent(&world->core));
    assert_int_equal(fake_answer(world, 0).verb, in_flight ? FAKE_SET : FAKE_RELEASE);
    while (before-- > 0) {
      fake_deliver(world, 0, ":1\r\n");
    }
    fake_settle(world);
    assert_int_equal(fake_keys(world, KEY), 0);
    assert_false(rl_core_has_unanswered(&world->core));
    rl_attempt_unref(&world->core.attempts, attempt);
    assert_int_equal(world->core.attempts.live, 0);
  }
}

/* Between two attempts, where the first may have left a key on a node that has not answered. */
TEST(free_of_a_lock_between_attempts_allocates_nothing) {
  fake_world *world = fake_world_new(3);
  rl_lock *lock = fake_lock(world, KEY, NULL);
  assert_error(rl_lock_acquire(lock, world->now_us, NULL, false), REDLOCK_OK);
  fake_turn(world);
  (void)fake_reply(world, 1, "$-1\r\n");
  (void)fake_reply(world, 2, "$-1\r\n");
  assert_int_equal(lock->phase, RL_PHASE_DELAY);
  rl_attempt *attempt = spare_attempt(world, lock);
  (void)fill_outstanding(world, 0, attempt);
  assert_allocates_nothing(rl_lock_free(lock, world->now_us));
  assert_true(rl_core_wants_send(&world->core));
  rl_attempt_unref(&world->core.attempts, attempt);
}

/* The others have gone: the lease is released with it. */
TEST(free_of_a_nested_acquire_allocates_nothing) {
  fake_world *world = fake_world_new(3);
  rl_lock *outer = fake_lock(world, KEY, NULL);
  rl_lock *inner = fake_lock(world, KEY, NULL);
  redlock_options longer = {.ttl_us = 60 * SECONDS};
  assert_error(rl_reentry_set_owner(outer, world->now_us, "me", 2), REDLOCK_OK);
  assert_error(rl_reentry_set_owner(inner, world->now_us, "me", 2), REDLOCK_OK);
  assert_error(fake_acquire(world, outer), REDLOCK_OK);
  assert_error(rl_lock_acquire(inner, world->now_us, &longer, false), REDLOCK_OK);
  fake_turn(world);
  assert_int_equal(rl_lock_result(inner), REDLOCK_PENDING);
  assert_error(rl_lock_release(outer, world->now_us, false), REDLOCK_OK);
  rl_attempt *attempt = spare_attempt(world, outer);
  (void)fill_outstanding(world, 0, attempt);
  assert_allocates_nothing(rl_lock_free(inner, world->now_us));
  rl_attempt_unref(&world->core.attempts, attempt);
}

/* It would not report the loss. */
TEST(second_acquire_without_memory_does_not_count) {
  fake_world *world = fake_world_new(3);
  rl_lock *lock = fake_lock(world, KEY, NULL);
  redlock_options notified = {.notify_lost = REDLOCK_YES};
  assert_error(rl_reentry_set_owner(lock, world->now_us, "me", 2), REDLOCK_OK);
  assert_error(fake_acquire(world, lock), REDLOCK_OK);
  for (size_t fail_at = 1; fail_at <= 2; fail_at++) {
    arm(fail_at, true);
    int error = rl_lock_acquire(lock, world->now_us, &notified, false);
    memory.armed = false;
    assert_error(error, REDLOCK_E_NO_MEMORY);
    assert_false(rl_ring_is_shared(lock));
  }
  assert_error(rl_lock_acquire(lock, world->now_us, &notified, false), REDLOCK_OK);
  assert_true(rl_ring_is_shared(lock));
}

/* Releases a lease while there is no memory for the command. */
static rl_lock *release_without_memory(fake_world *world) {
  rl_lock *lock = fake_lock(world, KEY, NULL);
  assert_error(fake_acquire(world, lock), REDLOCK_OK);
  rl_attempt *attempt = spare_attempt(world, lock);
  (void)fill_outstanding(world, 0, attempt);
  assert_error(rl_lock_release(lock, world->now_us, false), REDLOCK_OK);
  arm(1, false);
  fake_turn(world);
  memory.armed = false;
  rl_attempt_unref(&world->core.attempts, attempt);
  assert_error(rl_lock_result(lock), REDLOCK_E_UNAVAILABLE);
  return lock;
}

TEST(release_without_memory_is_retried_after_half_a_second) {
  fake_world *world = fake_world_new(1);
  const rl_lock *lock = release_without_memory(world);
  assert_string_equal(rl_round_reason(lock, 0), "out of memory"); /* The node is not blamed. */
  assert_int_equal(world->core.releases->count, 1);
  assert_false(rl_core_wants_send(&world->core));
  assert_int_equal(rl_core_deadline(&world->core), world->now_us + 500 * MS);
  fake_pass(world, 500 * MS);
  assert_int_equal(world->nodes[0].releases, 1);
  assert_int_equal(world->core.releases->count, 0);
}

/* The k-th allocation fails, for each k, and once at least it mattered. */
static void fail_each(bool (*test)(size_t fail_at, unsigned *failures)) {
  unsigned failures = 0;
  for (size_t fail_at = 1; test(fail_at, &failures); fail_at++) {
  }
  assert_true(failures > 0);
}

/* The node has forgotten the script, and there is no memory for its text: no vote, and no harm. */
static bool forgotten_with(size_t fail_at, unsigned *failures) {
  fake_world *world = fake_world_new(1);
  rl_lock *lock = fake_lock(world, KEY, NULL);
  assert_error(fake_acquire(world, lock), REDLOCK_OK);
  for (unsigned i = 0; i < 2; i++) {
    assert_error(rl_lock_extend(lock, world->now_us, 0, false), REDLOCK_OK);
    fake_turn(world);
    if (i == 0) {
      fake_settle(world);
    }
  }
  rl_attempt *attempt = spare_attempt(world, lock);
  fill_output(world, 0, attempt);
  redlock_time expired_us = lock->lease->expired_us;
  world->now_us += 10 * MS;
  arm(fail_at, true);
  rl_core_input(&world->core, 0, world->now_us, "-NOSCRIPT x\r\n", 13);
  memory.armed = false;
  bool failed = memory.failed > 0;
  if (failed && world->core.nodes[0]->link.phase == RL_LINK_UP) {
    assert_error(rl_lock_result(lock), REDLOCK_E_UNAVAILABLE);
    const char *reason = rl_round_reason(lock, 0);
    assert_true(strcmp(reason, "NOSCRIPT x") == 0 || strcmp(reason, "out of memory") == 0);
    assert_int_equal(lock->lease->expired_us, expired_us);
    ++*failures;
  } else if (!failed) {
    assert_int_equal(rl_lock_result(lock), REDLOCK_PENDING);
    assert_int_equal(lock->lease->expired_us, expired_us + 10 * MS);
  }
  assert_true(rl_lock_remaining(lock, world->now_us) > 0);
  rl_attempt_unref(&world->core.attempts, attempt);
  assert_true(fake_world_end(world));
  return failed;
}

TEST(script_without_memory_is_no_vote) {
  fail_each(forgotten_with);
}

static bool healed_with(size_t fail_at, unsigned *failures) {
  fake_world *world = fake_world_new(3);
  rl_lock *lock = fake_lock(world, KEY, NULL);
  assert_error(fake_acquire(world, lock), REDLOCK_OK);
  fake_store_remove(&world->nodes[2].store, KEY);
  assert_error(rl_lock_extend(lock, world->now_us, 0, false), REDLOCK_OK);
  fake_turn(world);
  (void)fake_answer(world, 0);
  (void)fake_answer(world, 1);
  assert_error(rl_lock_result(lock), REDLOCK_OK);
  rl_attempt *attempt = spare_attempt(world, lock);
  fill_output(world, 2, attempt);
  unsigned outstanding = world->core.nodes[2]->link.outstanding_count;
  arm(fail_at, true);
  rl_core_input(&world->core, 2, world->now_us, ":0\r\n", 4);
  memory.armed = false;
  bool failed = memory.failed > 0;
  if (world->core.nodes[2]->link.phase ==
      RL_LINK_UP) { /* It was answered; it is healed or it is not. */
    assert_int_equal(world->core.nodes[2]->link.outstanding_count,
                     failed ? outstanding - 1 : outstanding);
    *failures += failed;
  }
  assert_error(rl_lock_result(lock), REDLOCK_OK);
  rl_attempt_unref(&world->core.attempts, attempt);
  assert_true(fake_world_end(world));
  return failed;
}

TEST(heal_without_memory_is_skipped) {
  fail_each(healed_with);
}

/* More locks than there is room for without growing wait for a node that comes up. */
static bool joined_with(size_t fail_at, unsigned *failures) {
  enum { LOCKS = 150 };
  fake_world *world = fake_world_new(3);
  rl_lock *locks[LOCKS];
  unsigned joined = 0;
  world->nodes[2].policy = FAKE_SILENT;
  for (unsigned i = 0; i < LOCKS; i++) {
    locks[i] = fake_lock(world, KEY, NULL);
    assert_error(rl_lock_acquire(locks[i], world->now_us, NULL, false), REDLOCK_OK);
    fake_turn(world);
    (void)fake_reply(world, 0, "+OK\r\n");
    (void)fake_reply(world, 1, "+OK\r\n");
  }
  world->nodes[2].blocked = true;
  arm(fail_at, true);
  rl_core_input(&world->core, 2, world->now_us, FAKE_HANDSHAKE, strlen(FAKE_HANDSHAKE));
  memory.armed = false;
  bool failed = memory.failed > 0;
  for (unsigned i = 0; i < LOCKS; i++) {
    assert_error(rl_lock_result(locks[i]), REDLOCK_OK);
    joined += (locks[i]->lease->sent & 4) != 0;
  }
  assert_int_equal(world->core.nodes[2]->link.outstanding_count, joined);
  assert_true(failed ? joined < LOCKS : joined == LOCKS);
  *failures += failed && joined > 0;
  assert_true(fake_world_end(world));
  return failed;
}

TEST(backfill_without_memory_skips_the_node) {
  fail_each(joined_with);
}
