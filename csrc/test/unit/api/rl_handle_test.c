/*
 * Blocking calls, with servers on loopback in a thread.
 *
 * SPDX-License-Identifier: MIT
 */
#include <stdio.h>

#include <signal.h>
#include <sys/time.h>

#include "api/rl_handle.h"
#include "api/rl_handle_run.h"
#include "client/rl_poll.h"
#include "client_world.h"
#include "fake_clock.h"

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

/* Number of calls of rl_core_before_pause(). */
static unsigned rests;

void __real_rl_core_before_pause(rl_core *core, redlock_time now_us);
void __wrap_rl_core_before_pause(rl_core *core, redlock_time now_us);

void __wrap_rl_core_before_pause(rl_core *core, redlock_time now_us) {
  rests++;
  __real_rl_core_before_pause(core, now_us);
}

static const char OTHER[] = "ffffffffffffffffffffffffffffffffffffffff";

TEST(lock_is_acquired_extended_and_released) {
  world *one = world_new(3);
  redlock_duration validity_us = 0;
  redlock_time before_us = redlock_now();
  assert_error(redlock_lock_acquire(one->lock, NULL, &validity_us), REDLOCK_OK);
  redlock_duration lease_us = 200 * SECONDS - 2002 * MS;
  assert_true(validity_us > 0 && validity_us <= lease_us);
  redlock_time deadline_us = redlock_lock_deadline(one->lock);
  assert_true(deadline_us >= before_us + lease_us && deadline_us <= redlock_now() + lease_us);
  assert_true(redlock_lock_remaining(one->lock) <= validity_us);
  assert_true(loopback_keys(one->farm, KEY) >= 2);
  assert_string_equal(redlock_lock_message(one->lock), "");
  assert_null(redlock_client_next_ended(one->client));
  assert_error(redlock_lock_extend(one->lock, 400 * SECONDS, &validity_us), REDLOCK_OK);
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

TEST(borrowed_token_lives_until_the_next_operation) {
  world *one = world_new(1);
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

TEST(expired_lease_has_no_token) {
  world *one = world_new(1);
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

TEST(fencing_token_lasts_as_long_as_the_lease_and_grows) {
  redlock_options options = {.fence = REDLOCK_YES};
  redlock_options off = {.fence = REDLOCK_NO};
  redlock_lock *lock = new_lock(world_new(3)->client, "fenced", &options);
  uint64_t last = 0;
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
  redlock_lock_free(lock);
}

TEST(supplied_token_may_begin_with_a_nul) {
  world *one = world_new(1);
  size_t length = 0;
  assert_error(redlock_lock_give_token(one->lock, "\0x", 2), REDLOCK_OK);
  assert_error(redlock_lock_acquire(one->lock, NULL, NULL), REDLOCK_OK);
  assert_memory_equal(redlock_lock_token_bytes(one->lock, &length), "\0x", 2);
  assert_int_equal(length, 2);
}

/* Its text would be the reason of an earlier failure. */
TEST(refused_call_replaces_the_message_of_an_earlier_failure) {
  static const char text[REDLOCK_TOKEN_MAX + REDLOCK_OWNER_MAX + 1];
  world *one = world_new(1);
  char handover[8];
  assert_error(redlock_lock_extend(one->lock, 1, NULL), REDLOCK_E_INVALID);
  assert_non_null(strstr(redlock_lock_message(one->lock), "ttl"));
  assert_error(redlock_lock_give_token(one->lock, text, sizeof text), REDLOCK_E_LIMIT);
  assert_non_null(strstr(redlock_lock_message(one->lock), "token is longer"));
  assert_error(redlock_lock_give_token(one->lock, "", 0), REDLOCK_E_INVALID);
  assert_non_null(strstr(redlock_lock_message(one->lock), "token is empty"));
  assert_error(redlock_lock_set_owner(one->lock, text, sizeof text), REDLOCK_E_LIMIT);
  assert_non_null(strstr(redlock_lock_message(one->lock), "owner is longer"));
  assert_error(redlock_lock_set_owner(one->lock, NULL, 1), REDLOCK_E_INVALID);
  assert_non_null(strstr(redlock_lock_message(one->lock), "owner is NULL"));
  assert_error(redlock_lock_detach(one->lock, handover, sizeof handover, NULL), REDLOCK_E_NOT_HELD);
  assert_non_null(strstr(redlock_lock_message(one->lock), redlock_strerror(REDLOCK_E_NOT_HELD)));
  assert_error(redlock_lock_acquire(one->lock, NULL, NULL), REDLOCK_OK);
  assert_error(redlock_lock_extend(one->lock, 1, NULL), REDLOCK_E_INVALID);
  assert_error(redlock_lock_detach(one->lock, handover, sizeof handover, NULL), REDLOCK_E_LIMIT);
  assert_non_null(strstr(redlock_lock_message(one->lock), "does not fit"));
}

TEST(release_send_sends_at_once) {
  world *one = world_new(1);
  assert_error(redlock_lock_acquire(one->lock, NULL, NULL), REDLOCK_OK);
  assert_error(redlock_lock_release_send(one->lock), REDLOCK_OK);
  eventually(loopback_keys(one->farm, KEY) == 0);
}

/* Otherwise it is acquired by its first owner, which then shares the lease. */
TEST(lock_gets_another_owner_after_release_send) {
  world *one = world_new(3);
  redlock_lock *others = new_lock(one->client, KEY, NULL);
  assert_error(redlock_lock_set_owner(one->lock, "first", 5), REDLOCK_OK);
  assert_error(redlock_lock_set_owner(others, "first", 5), REDLOCK_OK);
  assert_error(redlock_lock_acquire(one->lock, NULL, NULL), REDLOCK_OK);
  assert_error(redlock_lock_release_send(one->lock), REDLOCK_OK);
  assert_error(redlock_lock_set_owner(one->lock, "second", 6), REDLOCK_OK);
  assert_error(redlock_lock_acquire(one->lock, NULL, NULL), REDLOCK_OK);
  assert_error(redlock_lock_acquire(others, NULL, NULL), REDLOCK_E_TAKEN);
  redlock_lock_free(others);
}

TEST(owner_is_checked_and_stays_during_a_call) {
  world *one = world_new(1);
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

TEST(token_and_message_are_returned_without_memory) {
  world *one = world_new(1);
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
static redlock_lock *lock_with_a_slow_node(const world *one, const loopback *slow) {
  redlock_client *client = new_client_of(one->farm, (redlock_settings){0});
  assert_error(redlock_client_add(client, slow->nodes[0].address, NULL, 0), REDLOCK_OK);
  return new_lock(client, KEY, NULL);
}

TEST(core_rests_after_the_grace_period) {
  loopback *slow = loopback_new(1, LOOPBACK_UNIX);
  redlock_lock *lock = lock_with_a_slow_node(world_new(2), slow);
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
  free_with_client(lock);
  assert_true(loopback_end(slow));
}

/* Another polling thread may serve the slow node, which ends the wait. */
TEST(call_in_its_grace_period_watches_each_turn) {
  const world *one = world_new(2);
  loopback *slow = loopback_new(1, LOOPBACK_UNIX);
  late_steps = looking_steps = 0;
  for (unsigned i = 0; i < 50 && late_steps == 0; i++) { /* It may be over on a slow machine. */
    redlock_lock *lock = lock_with_a_slow_node(one, slow);
    assert_error(redlock_lock_acquire(lock, NULL, NULL), REDLOCK_OK);
    assert_error(redlock_lock_release(lock), REDLOCK_OK);
    free_with_client(lock);
  }
  assert_true(late_steps > 0);
  assert_int_equal(looking_steps, late_steps);
  assert_true(loopback_end(slow));
}

TEST(poll_does_nothing_for_a_started_operation) {
  world *one = world_new(1);
  struct pollfd ready = {redlock_client_pollfd(one->client), POLLIN, 0};
  assert_int_equal(poll(&ready, 1, 0), 0);
  assert_error(redlock_lock_acquire_start(one->lock, NULL), REDLOCK_OK);
  assert_int_equal(poll(&ready, 1, 0), 1);
  rl_handle_poll(one->lock);
  assert_int_equal(one->client->sockets[0].fd, -1);
}

TEST(texts_of_a_node_live_in_the_programs_struct) {
  world *one = world_new(1);
  redlock_vote_info vote;
  redlock_node_info node;
  stop_server(one->farm, 0);
  assert_error(redlock_lock_acquire(one->lock, NULL, NULL), REDLOCK_E_UNAVAILABLE);
  assert_error(redlock_lock_vote(one->lock, 0, &vote), REDLOCK_OK);
  assert_ptr_equal(vote.error, vote.text);
  assert_error(redlock_client_node_info(one->client, 0, &node), REDLOCK_OK);
  assert_ptr_equal(node.error, node.text);
}

TEST(votes_are_reported_node_by_node) {
  world *one = world_new(3);
  redlock_vote_info vote;
  redlock_vote_info *none = NULL;
  assert_error(redlock_lock_vote(one->lock, 0, &vote), REDLOCK_OK);
  assert_int_equal(vote.vote, REDLOCK_VOTE_UNKNOWN);
  assert_int_equal(vote.latency_us, REDLOCK_NEVER);
  fake_store_put(&one->farm->nodes[0].store, KEY, OTHER, REDLOCK_NEVER);
  fake_store_put(&one->farm->nodes[1].store, KEY, OTHER, REDLOCK_NEVER);
  one->farm->nodes[2].says = "-LOADING Redis is loading\r\n";
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
TEST(call_never_outlives_its_budget) {
  world *one = world_new(1);
  redlock_options options = {.node_timeout_us = 30 * MS};
  one->farm->nodes[0].deaf = true;
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

/* Returns true if every node is connected, with nothing outstanding. */
static bool is_well(redlock_client *client) {
  for (size_t i = 0; i < redlock_client_node_count(client); i++) {
    redlock_node_info info;
    assert_error(redlock_client_node_info(client, i, &info), REDLOCK_OK);
    if (info.state != REDLOCK_NODE_UP || info.outstanding > 0) {
      return false;
    }
  }
  return true;
}

static void wait_well(redlock_client *client) {
  eventually_by((void)wait_once(client, redlock_now() + MS), is_well(client));
}

/* EINTR neither lengthens nor shortens a wait. */
TEST(signals_change_no_result) {
  world *one = world_new(3);
  redlock_options options = {.node_timeout_us = 40 * MS};
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

TEST(last_reference_releases_held_locks) {
  const world *one = world_new(3);
  redlock_client *client = new_client_of(one->farm, (redlock_settings){0});
  redlock_lock *lock = new_lock(client, KEY, NULL);
  assert_error(redlock_lock_acquire(lock, NULL, NULL), REDLOCK_OK);
  assert_ptr_equal(redlock_client_ref(client), client);
  redlock_client_free(client);
  free_with_client(lock); /* waits for the replies */
  assert_int_equal(loopback_keys(one->farm, KEY), 0);
}

/* Takes turns until the operation has ended, without reading its result. */
static void turn_until_ended(redlock_client *client, const redlock_lock *lock) {
  eventually_by((void)wait_once(client, redlock_now() + MS),
                redlock_client_next_ended(client) == lock);
}

static void wait_out(const redlock_lock *lock) {
  while (redlock_lock_remaining(lock) > 0) {
  }
}

/* The lease is valid at the decision, and over when the loop reads the result. */
TEST(expired_lease_is_no_lock_when_its_result_is_read) {
  world *one = world_new(3);
  /* The keys do not expire meanwhile. */
  redlock_options options = {
      .ttl_us = 300 * MS, .node_timeout_us = 250 * MS, .lock_delay_us = 60 * SECONDS};
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
    eventually(loopback_keys(one->farm, KEY) == 0); /* Without another call on the client. */
    assert_non_null(strstr(redlock_lock_message(one->lock), KEY));
    assert_error(redlock_lock_result(one->lock), REDLOCK_E_EXPIRED); /* However often it is read. */
    assert_error(redlock_lock_release(one->lock), REDLOCK_E_NOT_HELD);
    wait_well(one->client);
  }
  assert_true(one->farm->nodes[0].releases >= 3);
}

/* The call ends its operation with the error: the next one is not BUSY. */
TEST(call_without_entropy_leaves_nothing_in_flight) {
  world *one = world_new(3);
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

TEST(lease_shorter_than_the_callers_unit_is_no_lock) {
  world *one = world_new(3);
  redlock_duration left_us = 0;
  assert_error(redlock_lock_acquire(one->lock, NULL, NULL), REDLOCK_OK);
  assert_error(rl_handle_outcome(one->lock, MS, &left_us), REDLOCK_OK);
  assert_true(left_us >= MS && left_us <= 200 * SECONDS);
  assert_error(rl_handle_outcome(one->lock, 200 * SECONDS, &left_us), REDLOCK_E_EXPIRED);
  assert_int_equal(left_us, 0);
  assert_int_equal(redlock_lock_remaining(one->lock), 0);
}

/* There is no lock with a message. */
TEST(client_names_a_wrong_option_of_lock_new) {
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
TEST(extend_options_need_auto_extend) {
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

TEST(lock_takes_at_most_350_bytes_and_auto_extended_lease_660) {
  redlock_options options = {.ttl_us = 3 * SECONDS};
  redlock_options kept = {.auto_extend = REDLOCK_YES};
  redlock_settings settings = {.options = &kept};
  redlock_client *client = client_without_servers(5);
  redlock_lock *lock = new_lock(client, KEY, NULL);
  assert_true(rl_handle_size(lock) <= 350);
  redlock_lock *other = new_lock(client, KEY, &options);
  assert_int_equal(rl_handle_size(other), rl_handle_size(lock) + sizeof(rl_options));
  assert_int_equal(redlock_lock_ttl(other), 3 * SECONDS);
  redlock_lock_free(other);
  free_with_client(lock);
  assert_error(redlock_client_new(&client, &settings, NULL, 0), REDLOCK_OK);
  add_nodes_without_servers(client, 5);
  lock = new_lock(client, KEY, NULL);
  /* With its token and its entries in two heaps. The other 50 of 700 bytes are for connections. */
  size_t lease = sizeof(rl_attempt) + REDLOCK_TOKEN_LENGTH + 1;
  assert_true(rl_handle_size(lock) + lease + 2 * sizeof(rl_lock *) <= 660);
  free_with_client(lock);
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
  const world *one = world_new(1);
  loopback_down(one->farm, 0);
  assert_error(redlock_lock_acquire(one->lock, NULL, NULL), REDLOCK_E_UNAVAILABLE);
  let_one_come(one->client, true);
  readings = 0;
  leaps = late ? one->client : NULL;
  fake_clock.at_reading = leap;
  redlock_time before_us = redlock_now();
  assert_error(redlock_lock_acquire(one->lock, NULL, NULL), REDLOCK_E_UNAVAILABLE);
  assert_true(redlock_now() - before_us < 20 * MS);
  assert_int_equal(readings >= 2, late);
  fake_clock.at_reading = NULL;
  let_one_come(one->client, false);
}

TEST(operation_that_ends_while_it_is_sent_ends_its_call) {
  refuse_while_one_comes(false);
}

/* The arriving threads are late: the next poller sends it. */
TEST(operation_that_ends_as_its_poller_sends_it_ends_its_call) {
  refuse_while_one_comes(true);
}

/* The first pair costs twice the time for arriving threads. */
TEST(missing_thread_delays_a_poller_only_once) {
  world *one = world_new(3);
  let_one_come(one->client, true);
  for (unsigned i = 0; i < 5; i++) {
    redlock_time before_us = redlock_now();
    assert_error(redlock_lock_acquire(one->lock, NULL, NULL), REDLOCK_OK);
    assert_error(redlock_lock_release(one->lock), REDLOCK_OK);
    assert_true(redlock_now() - before_us < (i == 0 ? 3 * MS : MS));
  }
  let_one_come(one->client, false);
}
