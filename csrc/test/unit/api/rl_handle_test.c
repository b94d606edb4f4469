/*
 * Blocking calls, with servers on loopback in a thread.
 *
 * SPDX-License-Identifier: MIT
 */
#include <stdio.h>

#include <poll.h>
#include <signal.h>
#include <sys/time.h>

#include "api/rl_handle.h"
#include "api/rl_handle_run.h"
#include "client/rl_client.h"
#include "client/rl_poll.h"
#include "fake_clock.h"
#include "loopback.h"
#include "rl_test.h"

static const char KEY[] = "orders:42";
bool __real_rl_entropy_fill(unsigned char *bytes, size_t length);
bool __wrap_rl_entropy_fill(unsigned char *bytes, size_t length);

static bool no_entropy;

bool __wrap_rl_entropy_fill(unsigned char *bytes, size_t length) {
  return !no_entropy && __real_rl_entropy_fill(bytes, length);
}

static bool no_memory;
void *__real_calloc(size_t count, size_t size);
void *__wrap_calloc(size_t count, size_t size);
char *__real_strdup(const char *text);
char *__wrap_strdup(const char *text);

void *__wrap_calloc(size_t count, size_t size) {
  return no_memory ? NULL : __real_calloc(count, size);
}

char *__wrap_strdup(const char *text) {
  return no_memory ? NULL : __real_strdup(text);
}

/* Number of waits after the operation had ended, and of those that watch each turn. */
static unsigned late_steps;
static unsigned looking_steps;

int __real_rl_caller_wait(redlock_client *client, rl_caller *self, redlock_time until_us,
                          bool *interrupted);
int __wrap_rl_caller_wait(redlock_client *client, rl_caller *self, redlock_time until_us,
                          bool *interrupted);

int __wrap_rl_caller_wait(redlock_client *client, rl_caller *self, redlock_time until_us,
                          bool *interrupted) {
  if (self->lock != NULL && !rl_lock_is_busy(rl_lock_of(self->lock))) {
    late_steps++;
    looking_steps += self->each_turn;
  }
  return __real_rl_caller_wait(client, self, until_us, interrupted);
}

/* Number of calls of rl_core_rest(). */
static unsigned rests;

void __real_rl_core_rest(rl_core *core, redlock_time now_us);
void __wrap_rl_core_rest(rl_core *core, redlock_time now_us);

void __wrap_rl_core_rest(rl_core *core, redlock_time now_us) {
  rests++;
  __real_rl_core_rest(core, now_us);
}

static const char OTHER[] = "ffffffffffffffffffffffffffffffffffffffff";

/* Waits as a blocking call does, once. */
static int wait_once(redlock_client *client, redlock_time until_us) {
  rl_client_enter(client);
  rl_caller *caller = rl_caller_begin(client, NULL);
  assert_non_null(caller);
  int error = rl_caller_wait(client, caller, until_us, NULL);
  rl_caller_end(client, caller);
  rl_client_leave(client);
  return error;
}

static redlock_client *make_client(const loopback *farm) {
  redlock_client *client;
  redlock_settings settings = {0};
  redlock_options options;
  memset(&options, 0, sizeof options);
  options.retry_count = REDLOCK_RETRIES_NONE;
  options.ttl_us = 60 * SECONDS;
  options.node_timeout_us = 10 * SECONDS; /* More than a slow machine needs. */
  settings.options = &options;
  assert_error(redlock_client_new(&client, &settings, NULL, 0), REDLOCK_OK);
  for (unsigned i = 0; i < farm->count; i++) {
    assert_error(redlock_client_add(client, farm->nodes[i].address, NULL, 0), REDLOCK_OK);
  }
  return client;
}

static redlock_lock *make_lock(redlock_client *client) {
  redlock_lock *lock;
  assert_error(redlock_lock_new(&lock, client, KEY, strlen(KEY), NULL), REDLOCK_OK);
  return lock;
}

static loopback *make_farm(unsigned count) {
  loopback *farm = loopback_new(count, LOOPBACK_UNIX);
  loopback_run(farm);
  return farm;
}

static void end(redlock_client *client, redlock_lock *lock, loopback *farm) {
  redlock_lock_free(lock);
  redlock_client_free(client);
  assert_true(loopback_end(farm));
}

typedef struct world {
  loopback *farm;
  redlock_client *client;
  redlock_lock *lock;
} world;

/* Runs as many servers as |*state| says, with a client and a lock. */
static int begin_world(void **state) {
  static world one;
  one.farm = make_farm((unsigned)(uintptr_t)*state);
  one.client = make_client(one.farm);
  one.lock = make_lock(one.client);
  *state = &one;
  return 0;
}

static int end_world(void **state) {
  world *one = *state;
  end(one->client, one->lock, one->farm);
  return 0;
}

#define ON(nodes, name)                                                                            \
  { #name, name, begin_world, end_world, (void *)(uintptr_t)(nodes) }

static void lock_is_acquired_extended_and_released(void **state) {
  world *one = *state;
  redlock_duration validity_us = 0;
  redlock_time before_us = redlock_now();
  assert_error(redlock_lock_acquire(one->lock, NULL, &validity_us), REDLOCK_OK);
  redlock_duration lease_us = 60 * SECONDS - 602 * MS;
  assert_true(validity_us > 0 && validity_us <= lease_us);
  redlock_time deadline_us = redlock_lock_deadline(one->lock);
  assert_true(deadline_us >= before_us + lease_us && deadline_us <= redlock_now() + lease_us);
  assert_true(redlock_lock_remaining(one->lock) <= validity_us);
  assert_true(loopback_keys(one->farm, KEY) >= 2);
  assert_string_equal(redlock_lock_message(one->lock), "");
  assert_null(redlock_client_next_ended(one->client));
  assert_error(redlock_lock_extend(one->lock, 120 * SECONDS, &validity_us), REDLOCK_OK);
  assert_true(validity_us > lease_us);
  assert_error(redlock_lock_extend(one->lock, 0, NULL), REDLOCK_OK);
  assert_error(redlock_lock_release(one->lock), REDLOCK_OK);
  assert_int_equal(redlock_lock_remaining(one->lock), 0);
  assert_int_equal(redlock_lock_deadline(one->lock), 0);
  assert_string_equal(redlock_lock_token(one->lock), "");
  assert_error(redlock_lock_release(one->lock), REDLOCK_E_NOT_HELD);
  assert_error(redlock_lock_extend(one->lock, 0, NULL), REDLOCK_E_NOT_HELD);
  assert_string_equal(redlock_lock_message(one->lock), "'orders:42': the lock is not held");
}

static void borrowed_token_lives_until_the_next_operation(void **state) {
  world *one = *state;
  assert_error(redlock_lock_acquire(one->lock, NULL, NULL), REDLOCK_OK);
  const rl_attempt *lease = rl_lock_of(one->lock)->lease;
  unsigned references = lease->references;
  const char *token = redlock_lock_token(one->lock);
  assert_string_equal(token, redlock_lock_token(one->lock));
  assert_int_equal(lease->references, references + 1);
  assert_ptr_equal(rl_lock_of(one->lock)->extension->borrowed_lease, lease);
  assert_error(redlock_lock_extend(one->lock, 0, NULL), REDLOCK_OK);
  assert_null(rl_lock_of(one->lock)->extension->borrowed_lease);
  assert_int_equal(lease->references, references);
}

static void expired_lease_has_no_token(void **state) {
  world *one = *state;
  size_t length = 1;
  assert_error(redlock_lock_acquire(one->lock, NULL, NULL), REDLOCK_OK);
  redlock_time deadline_us = rl_lock_of(one->lock)->deadline_us;
  rl_lock_of(one->lock)->deadline_us = 1;
  assert_string_equal(redlock_lock_token(one->lock), "");
  assert_non_null(redlock_lock_token_bytes(one->lock, &length));
  assert_int_equal(length, 0);
  rl_lock_of(one->lock)->deadline_us = deadline_us;
  assert_int_equal(strlen(redlock_lock_token(one->lock)), REDLOCK_TOKEN_LENGTH);
}

static void fencing_token_lasts_as_long_as_the_lease_and_grows(void **state) {
  redlock_options options = {.fence = REDLOCK_YES};
  redlock_options off = {.fence = REDLOCK_NO};
  loopback *farm = make_farm(3);
  redlock_client *client = make_client(farm);
  redlock_lock *lock;
  uint64_t last = 0;
  assert_error(redlock_lock_new(&lock, client, KEY, strlen(KEY), &options), REDLOCK_OK);
  for (unsigned i = 0; i < 20; i++) {
    assert_true(redlock_lock_fence(lock) == 0);
    assert_error(redlock_lock_acquire(lock, NULL, NULL), REDLOCK_OK);
    assert_true(redlock_lock_fence(lock) > last);
    last = redlock_lock_fence(lock);
    assert_error(redlock_lock_extend(lock, 0, NULL), REDLOCK_OK);
    assert_true(redlock_lock_fence(lock) == last);
    if (i == 0) {
      redlock_time deadline_us = rl_lock_of(lock)->deadline_us;
      rl_lock_of(lock)->deadline_us = 1;
      assert_true(redlock_lock_fence(lock) == 0);
      rl_lock_of(lock)->deadline_us = deadline_us;
    }
    assert_error(redlock_lock_release(lock), REDLOCK_OK);
  }
  assert_error(redlock_lock_acquire(lock, &off, NULL), REDLOCK_OK);
  assert_true(redlock_lock_fence(lock) == 0);
  end(client, lock, farm);
}

static void supplied_token_may_begin_with_a_nul(void **state) {
  world *one = *state;
  size_t length = 0;
  assert_error(redlock_lock_give_token(one->lock, "\0x", 2), REDLOCK_OK);
  assert_error(redlock_lock_acquire(one->lock, NULL, NULL), REDLOCK_OK);
  assert_memory_equal(redlock_lock_token_bytes(one->lock, &length), "\0x", 2);
  assert_int_equal(length, 2);
}

static void release_send_sends_at_once(void **state) {
  world *one = *state;
  redlock_time until_us = redlock_now() + 10 * SECONDS;
  assert_error(redlock_lock_acquire(one->lock, NULL, NULL), REDLOCK_OK);
  assert_error(redlock_lock_release_send(one->lock), REDLOCK_OK);
  while (loopback_keys(one->farm, KEY) > 0) {
    assert_true(redlock_now() < until_us);
    (void)poll(NULL, 0, 1);
  }
}

/* Otherwise it is acquired by its first owner, which then shares the lease. */
static void lock_gets_another_owner_after_release_send(void **state) {
  world *one = *state;
  redlock_lock *others = make_lock(one->client);
  assert_error(redlock_lock_set_owner(one->lock, "first", 5), REDLOCK_OK);
  assert_error(redlock_lock_set_owner(others, "first", 5), REDLOCK_OK);
  assert_error(redlock_lock_acquire(one->lock, NULL, NULL), REDLOCK_OK);
  assert_error(redlock_lock_release_send(one->lock), REDLOCK_OK);
  assert_error(redlock_lock_set_owner(one->lock, "second", 6), REDLOCK_OK);
  assert_error(redlock_lock_acquire(one->lock, NULL, NULL), REDLOCK_OK);
  assert_error(redlock_lock_acquire(others, NULL, NULL), REDLOCK_E_TAKEN);
  redlock_lock_free(others);
}

static void owner_is_checked_and_stays_during_a_call(void **state) {
  world *one = *state;
  char owner[REDLOCK_OWNER_MAX + 1];
  memset(owner, 'x', sizeof owner);
  assert_error(redlock_lock_set_owner(NULL, "x", 1), REDLOCK_E_INVALID);
  assert_error(redlock_lock_set_owner(one->lock, NULL, 1), REDLOCK_E_INVALID);
  assert_error(redlock_lock_set_owner(one->lock, owner, sizeof owner), REDLOCK_E_LIMIT);
  assert_error(redlock_lock_set_owner(one->lock, owner, sizeof owner - 1), REDLOCK_OK);
  assert_error(redlock_lock_set_owner(one->lock, "x", 1), REDLOCK_OK);
  assert_error(redlock_lock_set_owner(one->lock, NULL, 0), REDLOCK_OK);
  assert_error(redlock_lock_acquire_start(one->lock, NULL), REDLOCK_OK);
  assert_error(redlock_lock_set_owner(one->lock, "x", 1), REDLOCK_E_BUSY);
  redlock_lock_cancel(one->lock);
  assert_error(redlock_lock_set_owner(one->lock, "x", 1), REDLOCK_OK);
  assert_error(rl_handle_prepare(one->lock, &(rl_request){.operation = RL_OPERATION_ACQUIRE}),
               REDLOCK_OK);
  redlock_lock_cancel(one->lock); /* Its call has not returned. */
  assert_error(redlock_lock_set_owner(one->lock, "y", 1), REDLOCK_E_BUSY);
  rl_handle_end(one->lock, REDLOCK_OK);
  assert_error(redlock_lock_set_owner(one->lock, "y", 1), REDLOCK_OK);
}

static void token_and_message_are_returned_without_memory(void **state) {
  world *one = *state;
  assert_error(redlock_lock_acquire(one->lock, NULL, NULL), REDLOCK_OK);
  no_memory = true;
  const char *token = redlock_lock_token(one->lock);
  no_memory = false;
  assert_ptr_equal(token, rl_attempt_token(rl_lock_of(one->lock)->lease));
  assert_null(rl_lock_of(one->lock)->extension);
  assert_error(redlock_lock_release(one->lock), REDLOCK_OK);
  assert_error(redlock_lock_release(one->lock), REDLOCK_E_NOT_HELD);
  no_memory = true;
  assert_string_equal(redlock_lock_message(one->lock), redlock_strerror(REDLOCK_E_NOT_HELD));
  no_memory = false;
  assert_string_equal(redlock_lock_message(one->lock), "'orders:42': the lock is not held");
  no_memory = true;
  assert_string_equal(redlock_lock_message(one->lock), redlock_strerror(REDLOCK_E_NOT_HELD));
  no_memory = false;
}

/* A lock with two nodes that answer, and one that never completes its connection. */
static redlock_lock *lock_with_a_slow_node(const loopback *farm, const loopback *slow) {
  redlock_client *client = make_client(farm);
  assert_error(redlock_client_add(client, slow->nodes[0].address, NULL, 0), REDLOCK_OK);
  return make_lock(client);
}

static void core_rests_after_the_grace_period(void **state) {
  loopback *farm = make_farm(2), *slow = loopback_new(1, LOOPBACK_UNIX);
  redlock_lock *lock = lock_with_a_slow_node(farm, slow);
  redlock_client *client = redlock_lock_client(lock);
  assert_error(rl_handle_prepare(lock, &(rl_request){.operation = RL_OPERATION_ACQUIRE}),
               REDLOCK_OK);
  assert_error(rl_handle_begin(lock), REDLOCK_OK);
  while (rl_handle_pending(lock)) {
    assert_error(rl_handle_go_on(lock, SECONDS), REDLOCK_OK);
  }
  redlock_duration left_us;
  do {
    rests = 0;
    left_us = rl_handle_grace(lock);
    assert_int_equal(rests, left_us > 0 ? 0 : 1);
    (void)poll(NULL, 0, 1);
  } while (left_us > 0);
  rl_handle_end(lock, REDLOCK_OK);
  end(client, lock, farm);
  assert_true(loopback_end(slow));
}

/* Another leading thread may serve the slow node, which ends the wait. */
static void call_in_its_grace_period_watches_each_turn(void **state) {
  loopback *farm = make_farm(2), *slow = loopback_new(1, LOOPBACK_UNIX);
  late_steps = looking_steps = 0;
  for (unsigned i = 0; i < 50 && late_steps == 0;
       i++) { /* On a slow machine the grace period is over. */
    redlock_lock *lock = lock_with_a_slow_node(farm, slow);
    redlock_client *client = redlock_lock_client(lock);
    assert_error(redlock_lock_acquire(lock, NULL, NULL), REDLOCK_OK);
    assert_error(redlock_lock_release(lock), REDLOCK_OK);
    redlock_lock_free(lock);
    redlock_client_free(client);
  }
  assert_true(late_steps > 0);
  assert_int_equal(looking_steps, late_steps);
  assert_true(loopback_end(farm));
  assert_true(loopback_end(slow));
}

static void poll_does_nothing_for_a_started_operation(void **state) {
  world *one = *state;
  struct pollfd ready = {redlock_client_pollfd(one->client), POLLIN, 0};
  assert_int_equal(poll(&ready, 1, 0), 0);
  assert_error(redlock_lock_acquire_start(one->lock, NULL), REDLOCK_OK);
  assert_int_equal(poll(&ready, 1, 0), 1);
  rl_handle_poll(one->lock);
  assert_int_equal(one->client->sockets[0].fd, -1);
}

static void texts_of_a_node_live_in_the_programs_struct(void **state) {
  world *one = *state;
  redlock_vote_info vote;
  redlock_node_info node;
  loopback_lock(one->farm);
  loopback_down(one->farm, 0);
  loopback_unlock(one->farm);
  assert_error(redlock_lock_acquire(one->lock, NULL, NULL), REDLOCK_E_UNAVAILABLE);
  assert_error(redlock_lock_vote(one->lock, 0, &vote), REDLOCK_OK);
  assert_ptr_equal(vote.error, vote.text);
  assert_error(redlock_client_node_info(one->client, 0, &node), REDLOCK_OK);
  assert_ptr_equal(node.error, node.text);
}

static void votes_are_reported_node_by_node(void **state) {
  world *one = *state;
  redlock_vote_info vote;
  redlock_vote_info *none = NULL;
  assert_error(redlock_lock_vote(one->lock, 0, &vote), REDLOCK_OK);
  assert_int_equal(vote.vote, REDLOCK_VOTE_UNKNOWN);
  assert_int_equal(vote.latency_us, REDLOCK_NEVER);
  loopback_lock(one->farm);
  fake_store_put(&one->farm->nodes[0].store, KEY, OTHER, REDLOCK_NEVER);
  fake_store_put(&one->farm->nodes[1].store, KEY, OTHER, REDLOCK_NEVER);
  one->farm->nodes[2].says = "-LOADING Redis is loading\r\n";
  loopback_unlock(one->farm);
  assert_error(redlock_lock_acquire(one->lock, NULL, NULL), REDLOCK_E_TAKEN);
  assert_error(redlock_lock_vote(one->lock, 0, &vote), REDLOCK_OK);
  assert_int_equal(vote.vote, REDLOCK_VOTE_TAKEN);
  assert_null(vote.error);
  assert_string_equal(vote.name, one->farm->nodes[0].name);
  assert_true(vote.latency_us != REDLOCK_NEVER);
  assert_error(redlock_lock_vote(one->lock, 3, &vote), REDLOCK_E_INVALID);
  assert_error(redlock_lock_vote(one->lock, 0, none), REDLOCK_E_INVALID);
}

/* A silent node costs an attempt its time-out, and no more. */
static void call_never_outlives_its_budget(void **state) {
  world *one = *state;
  redlock_options options = {0};
  options.retry_count = REDLOCK_RETRIES_NONE;
  options.node_timeout_us = 30 * MS;
  loopback_lock(one->farm);
  one->farm->nodes[0].deaf = true;
  loopback_unlock(one->farm);
  redlock_time before_us = redlock_now();
  assert_error(redlock_lock_acquire(one->lock, &options, NULL), REDLOCK_E_UNAVAILABLE);
  redlock_duration took_us = redlock_now() - before_us;
  assert_true(took_us >= 30 * MS && took_us < SECONDS);
  options.retry_count = 0;
  options.wait_us = 50 * MS;
  before_us = redlock_now();
  assert_error(redlock_lock_acquire(one->lock, &options, NULL), REDLOCK_E_UNAVAILABLE);
  took_us = redlock_now() - before_us;
  assert_true(took_us >= 45 * MS && took_us < SECONDS);
}

/* Waits until every node is connected, with nothing outstanding. */
static void wait_well(redlock_client *client) {
  redlock_time until_us = redlock_now() + 10 * SECONDS;
  for (size_t i = 0; i < redlock_client_node_count(client);) {
    redlock_node_info info;
    assert_true(redlock_now() < until_us);
    assert_error(redlock_client_node_info(client, i, &info), REDLOCK_OK);
    if (info.state == REDLOCK_NODE_UP && info.outstanding == 0) {
      i++;
    } else {
      assert_error(wait_once(client, redlock_now() + MS), REDLOCK_OK);
    }
  }
}

/* EINTR neither lengthens nor shortens a wait. */
static void signals_change_no_result(void **state) {
  world *one = *state;
  redlock_options options = {0};
  options.retry_count = REDLOCK_RETRIES_NONE;
  options.node_timeout_us = 40 * MS;
  fake_clock.interrupts = true;
  for (unsigned round = 0; round < 50; round++) {
    assert_error(redlock_lock_acquire(one->lock, NULL, NULL), REDLOCK_OK);
    assert_error(redlock_lock_release(one->lock), REDLOCK_OK);
  }
  one->farm->nodes[0].deaf = one->farm->nodes[1].deaf = true;
  redlock_time before_us = redlock_now();
  assert_error(redlock_lock_acquire(one->lock, &options, NULL), REDLOCK_E_UNAVAILABLE);
  redlock_duration took_us = redlock_now() - before_us;
  assert_true(took_us >= 40 * MS && took_us < 42 * MS);
  assert_true(fake_clock.waits > 100);
  fake_clock.interrupts = false;
}

static void last_reference_releases_held_locks(void **state) {
  loopback *farm = make_farm(3);
  redlock_client *client = make_client(farm);
  redlock_lock *lock = make_lock(client);
  assert_error(redlock_lock_acquire(lock, NULL, NULL), REDLOCK_OK);
  assert_ptr_equal(redlock_client_ref(client), client);
  redlock_client_free(client);
  redlock_lock_free(lock);
  redlock_client_free(client); /* waits for the replies */
  assert_int_equal(loopback_keys(farm, KEY), 0);
  assert_true(loopback_end(farm));
}

/* Takes turns until the operation has ended, without reading its result. */
static void turn_until_ended(redlock_client *client, const redlock_lock *lock) {
  redlock_time until_us = redlock_now() + 10 * SECONDS;
  while (redlock_client_next_ended(client) != lock) {
    assert_true(redlock_now() < until_us);
    (void)wait_once(client, redlock_now() + MS);
  }
}

static void wait_out(const redlock_lock *lock) {
  while (redlock_lock_remaining(lock) > 0) {
  }
}

/* The lease is valid at the decision, and over when the loop reads the result. */
static void expired_lease_is_no_lock_when_its_result_is_read(void **state) {
  world *one = *state;
  redlock_options options = {0};
  options.retry_count = REDLOCK_RETRIES_NONE;
  options.ttl_us = 300 * MS;
  options.node_timeout_us = 250 * MS;
  options.lock_delay_us = 60 * SECONDS; /* The keys do not expire meanwhile. */
  assert_error(redlock_lock_acquire(one->lock, NULL, NULL), REDLOCK_OK);
  assert_error(redlock_lock_release(one->lock), REDLOCK_OK);
  wait_well(one->client);
  for (unsigned extends = 0; extends < 2; extends++) {
    assert_error(redlock_lock_acquire_start(one->lock, &options), REDLOCK_OK);
    turn_until_ended(one->client, one->lock);
    if (extends == 1) {
      assert_error(redlock_lock_result(one->lock), REDLOCK_OK);
      assert_error(redlock_lock_extend_start(one->lock, 300 * MS), REDLOCK_OK);
      turn_until_ended(one->client, one->lock);
    }
    wait_out(one->lock);
    assert_error(redlock_lock_result(one->lock), REDLOCK_E_EXPIRED);
    redlock_time until_us = redlock_now() + 10 * SECONDS;
    while (loopback_keys(one->farm, KEY) > 0) { /* Without another call on the client. */
      assert_true(redlock_now() < until_us);
      (void)poll(NULL, 0, 1);
    }
    assert_non_null(strstr(redlock_lock_message(one->lock), KEY));
    assert_error(redlock_lock_result(one->lock), REDLOCK_E_EXPIRED); /* However often it is read. */
    assert_error(redlock_lock_release(one->lock), REDLOCK_E_NOT_HELD);
    wait_well(one->client);
  }
  loopback_lock(one->farm);
  assert_true(one->farm->nodes[0].releases >= 3);
  loopback_unlock(one->farm);
}

/* The call ends its operation with the error: the next one is not BUSY. */
static void call_without_entropy_leaves_nothing_in_flight(void **state) {
  world *one = *state;
  no_entropy = true;
  assert_error(redlock_lock_acquire(one->lock, NULL, NULL), REDLOCK_E_SYSTEM);
  assert_error(redlock_lock_result(one->lock), REDLOCK_E_SYSTEM);
  assert_null(redlock_client_next_ended(one->client));
  no_entropy = false;
  assert_error(redlock_lock_acquire(one->lock, NULL, NULL), REDLOCK_OK);
  no_entropy = true; /* Neither needs entropy. */
  assert_error(redlock_lock_extend(one->lock, 0, NULL), REDLOCK_OK);
  assert_error(redlock_lock_release(one->lock), REDLOCK_OK);
  no_entropy = false;
}

static void lease_shorter_than_the_callers_unit_is_no_lock(void **state) {
  world *one = *state;
  redlock_duration left_us = 0;
  assert_error(redlock_lock_acquire(one->lock, NULL, NULL), REDLOCK_OK);
  assert_error(rl_handle_outcome(one->lock, MS, &left_us), REDLOCK_OK);
  assert_true(left_us >= MS && left_us <= 60 * SECONDS);
  assert_error(rl_handle_outcome(one->lock, 60 * SECONDS, &left_us), REDLOCK_E_EXPIRED);
  assert_int_equal(left_us, 0);
  assert_int_equal(redlock_lock_remaining(one->lock), 0);
}

/* There is no lock with a message. */
static void client_names_a_wrong_option_of_lock_new(void **state) {
  redlock_client *client;
  redlock_lock *lock;
  redlock_options options = {.drift_factor = 1.0};
  assert_error(redlock_client_new(&client, NULL, NULL, 0), REDLOCK_OK);
  assert_string_equal(redlock_client_message(client), "");
  assert_error(redlock_lock_new(&lock, client, KEY, 9, NULL), REDLOCK_E_INVALID);
  assert_string_equal(redlock_client_message(client), "the client has no nodes");
  assert_error(redlock_client_add(client, "127.0.0.1:1", NULL, 0), REDLOCK_OK);
  assert_error(redlock_lock_new(&lock, client, KEY, 9, &options), REDLOCK_E_INVALID);
  assert_null(lock);
  assert_string_equal(redlock_client_message(client),
                      "drift_factor must be more than 0 and less than 1, or REDLOCK_DRIFT_NONE");
  assert_error(redlock_lock_new(&lock, client, NULL, 9, NULL), REDLOCK_E_INVALID);
  assert_string_equal(redlock_client_message(client), "resource is NULL, but has a length");
  char long_name[REDLOCK_KEY_MAX + 1] = "";
  assert_error(redlock_lock_new(&lock, client, long_name, sizeof long_name, NULL), REDLOCK_E_LIMIT);
  assert_non_null(strstr(redlock_client_message(client), "4096 bytes"));
  assert_error(redlock_lock_new(&lock, client, KEY, 9, NULL), REDLOCK_OK);
  assert_string_equal(redlock_client_message(client), "");
  redlock_lock_free(lock);
  assert_error(redlock_client_close(client, 0), REDLOCK_OK);
  assert_error(redlock_lock_new(&lock, client, KEY, 9, NULL), REDLOCK_E_CLOSED);
  assert_string_equal(redlock_client_message(client), "the client has been closed");
  assert_string_equal(redlock_client_message(NULL), "");
  redlock_client_free(client);
}

/* Such options would have no effect. Options of a level above are allowed. */
static void extend_options_need_auto_extend(void **state) {
  redlock_client *client;
  redlock_lock *lock;
  redlock_options above = {.max_hold_us = SECONDS, .extend_every_us = SECONDS};
  redlock_settings settings = {.options = &above};
  redlock_options none = {.max_hold_us = REDLOCK_DURATION_NONE};
  redlock_options cases[] = {{.max_hold_us = SECONDS},
                             {.extend_every_us = SECONDS},
                             {.max_hold_us = SECONDS, .auto_extend = REDLOCK_NO}};
  assert_error(redlock_client_new(&client, &settings, NULL, 0), REDLOCK_OK);
  assert_error(redlock_client_add(client, "127.0.0.1:1", NULL, 0), REDLOCK_OK);
  for (unsigned i = 0; i < COUNT_OF(cases); i++) {
    assert_error(redlock_lock_new(&lock, client, KEY, 9, &cases[i]), REDLOCK_E_INVALID);
    assert_string_equal(redlock_client_message(client),
                        "extend_every_us and max_hold_us need auto_extend");
    assert_error(redlock_lock_new(&lock, client, KEY, 9, i == 0 ? &none : NULL), REDLOCK_OK);
    assert_error(redlock_lock_acquire_start(lock, &cases[i]), REDLOCK_E_INVALID);
    assert_non_null(strstr(redlock_lock_message(lock), "need auto_extend"));
    cases[i].auto_extend = REDLOCK_YES;
    assert_error(redlock_lock_acquire_start(lock, &cases[i]), REDLOCK_OK);
    redlock_lock_free(lock);
    assert_error(redlock_lock_new(&lock, client, KEY, 9, &cases[i]), REDLOCK_OK);
    cases[i].auto_extend = 0;
    assert_error(redlock_lock_acquire_start(lock, &cases[i]), REDLOCK_OK); /* as the lock has it */
    redlock_lock_free(lock);
  }
  redlock_client_free(client);
}

static void lock_takes_at_most_350_bytes_and_auto_extended_lease_660(void **state) {
  redlock_client *client, *keeping;
  redlock_lock *lock, *other;
  redlock_options options = {.ttl_us = 3 * SECONDS};
  assert_error(redlock_client_new(&client, NULL, NULL, 0), REDLOCK_OK);
  for (unsigned i = 0; i < 5; i++) {
    char address[16];
    (void)snprintf(address, sizeof address, "127.0.0.1:%u", i + 1);
    assert_error(redlock_client_add(client, address, NULL, 0), REDLOCK_OK);
  }
  assert_error(redlock_lock_new(&lock, client, KEY, sizeof KEY - 1, NULL), REDLOCK_OK);
  assert_true(rl_handle_size(lock) <= 350);
  assert_error(redlock_lock_new(&other, client, KEY, sizeof KEY - 1, &options), REDLOCK_OK);
  assert_int_equal(rl_handle_size(other), rl_handle_size(lock) + sizeof(rl_options));
  assert_int_equal(redlock_lock_ttl(other), 3 * SECONDS);
  redlock_lock_free(other);
  redlock_lock_free(lock);
  redlock_client_free(client);
  redlock_options kept = {.auto_extend = REDLOCK_YES};
  redlock_settings settings = {.options = &kept};
  assert_error(redlock_client_new(&keeping, &settings, NULL, 0), REDLOCK_OK);
  for (unsigned i = 0; i < 5; i++) {
    char address[16];
    (void)snprintf(address, sizeof address, "127.0.0.1:%u", i + 1);
    assert_error(redlock_client_add(keeping, address, NULL, 0), REDLOCK_OK);
  }
  assert_error(redlock_lock_new(&lock, keeping, KEY, sizeof KEY - 1, NULL), REDLOCK_OK);
  /* With its token and its entries in two heaps. The other 50 of 700 bytes are for connections. */
  size_t lease = sizeof(rl_attempt) + REDLOCK_TOKEN_LENGTH + 1;
  assert_true(rl_handle_size(lock) + lease + 2 * sizeof(rl_lock *) <= 660);
  redlock_lock_free(lock);
  redlock_client_free(keeping);
}

/* A thread is woken and does not arrive, or has arrived. */
static void let_one_come(redlock_client *client, bool comes) {
  rl_client_enter(client);
  client->callers.arriving = comes;
  rl_client_leave(client);
}

/*
 * Client for which 2 ms pass at the second clock reading after an operation was left to arriving
 * threads.
 */
static redlock_client *leaps;
static unsigned readings;

static void leap(void) {
  if (leaps != NULL && leaps->callers.unsent_operations && ++readings == 2) {
    fake_clock.now_us += 2 * MS;
  }
}

/* Acquires at a node that refuses connections, and is retried after 50 ms. */
static void refuse_while_one_comes(bool late) {
  loopback *farm = make_farm(1);
  redlock_client *client = make_client(farm);
  redlock_lock *lock = make_lock(client);
  loopback_down(farm, 0);
  assert_error(redlock_lock_acquire(lock, NULL, NULL), REDLOCK_E_UNAVAILABLE);
  let_one_come(client, true);
  readings = 0;
  leaps = late ? client : NULL;
  fake_clock.at_reading = leap;
  redlock_time before_us = redlock_now();
  assert_error(redlock_lock_acquire(lock, NULL, NULL), REDLOCK_E_UNAVAILABLE);
  assert_true(redlock_now() - before_us < 20 * MS);
  assert_int_equal(readings >= 2, late);
  fake_clock.at_reading = NULL;
  let_one_come(client, false);
  end(client, lock, farm);
}

static void operation_that_ends_while_it_is_sent_ends_its_call(void **state) {
  refuse_while_one_comes(false);
}

/* The arriving threads are late: the next poller sends it. */
static void operation_that_ends_as_its_poller_sends_it_ends_its_call(void **state) {
  refuse_while_one_comes(true);
}

/* The first pair costs twice the time for arriving threads. */
static void missing_thread_delays_a_poller_only_once(void **state) {
  world *one = *state;
  let_one_come(one->client, true);
  for (unsigned i = 0; i < 5; i++) {
    redlock_time before_us = redlock_now();
    assert_error(redlock_lock_acquire(one->lock, NULL, NULL), REDLOCK_OK);
    assert_error(redlock_lock_release(one->lock), REDLOCK_OK);
    assert_true(redlock_now() - before_us < (i == 0 ? 3 * MS : MS));
  }
  let_one_come(one->client, false);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      ON(3, lock_is_acquired_extended_and_released),
      ON(1, borrowed_token_lives_until_the_next_operation),
      ON(1, expired_lease_has_no_token),
      cmocka_unit_test(fencing_token_lasts_as_long_as_the_lease_and_grows),
      ON(1, supplied_token_may_begin_with_a_nul),
      ON(1, release_send_sends_at_once),
      ON(3, lock_gets_another_owner_after_release_send),
      ON(1, owner_is_checked_and_stays_during_a_call),
      ON(1, token_and_message_are_returned_without_memory),
      cmocka_unit_test(core_rests_after_the_grace_period),
      cmocka_unit_test(call_in_its_grace_period_watches_each_turn),
      ON(1, poll_does_nothing_for_a_started_operation),
      ON(1, texts_of_a_node_live_in_the_programs_struct),
      ON(3, votes_are_reported_node_by_node),
      ON(1, call_never_outlives_its_budget),
      ON(3, signals_change_no_result),
      cmocka_unit_test(operation_that_ends_while_it_is_sent_ends_its_call),
      cmocka_unit_test(operation_that_ends_as_its_poller_sends_it_ends_its_call),
      ON(3, missing_thread_delays_a_poller_only_once),
      ON(3, expired_lease_is_no_lock_when_its_result_is_read),
      ON(3, call_without_entropy_leaves_nothing_in_flight),
      ON(3, lease_shorter_than_the_callers_unit_is_no_lock),
      cmocka_unit_test(last_reference_releases_held_locks),
      cmocka_unit_test(client_names_a_wrong_option_of_lock_new),
      cmocka_unit_test(extend_options_need_auto_extend),
      cmocka_unit_test(lock_takes_at_most_350_bytes_and_auto_extended_lease_660),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
