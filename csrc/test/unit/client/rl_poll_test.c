/*
 * redlock_client_pollfd(): a loop that polls nothing else, without a time-out.
 *
 * SPDX-License-Identifier: MIT
 */
#include "client/rl_poll.h"

#include <fcntl.h>
#include <sys/eventfd.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include "api/rl_handle.h"
#include "api/rl_handle_run.h"
#include "client/rl_client.h"
#include "fake_clock.h"
#include "loopback.h"
#include "rl_test.h"

#define PATIENCE_MS 10000

static const char KEY[] = "orders:42";

int __real_eventfd_write(int fd, eventfd_t value);
int __wrap_eventfd_write(int fd, eventfd_t value);
int __real_eventfd_read(int fd, eventfd_t *value);
int __wrap_eventfd_read(int fd, eventfd_t *value);

static unsigned event_calls;

int __wrap_eventfd_write(int fd, eventfd_t value) {
  event_calls++;
  return __real_eventfd_write(fd, value);
}

int __wrap_eventfd_read(int fd, eventfd_t *value) {
  event_calls++;
  return __real_eventfd_read(fd, value);
}

int __real_epoll_create1(int flags);
int __wrap_epoll_create1(int flags);
int __real_timerfd_create(int clock, int flags);
int __wrap_timerfd_create(int clock, int flags);

/* Number of first descriptors of a set that get high numbers. */
static unsigned others_move_up;

static int move_up(int fd) {
  int high = fcntl(fd, F_DUPFD_CLOEXEC, 100);
  (void)close(fd);
  return high;
}

int __wrap_epoll_create1(int flags) {
  int fd = __real_epoll_create1(flags);
  return others_move_up > 0 ? move_up(fd) : fd;
}

int __wrap_timerfd_create(int clock, int flags) {
  int fd = __real_timerfd_create(clock, flags);
  return others_move_up > 1 ? move_up(fd) : fd;
}

static unsigned take_calls(unsigned *calls) {
  unsigned taken = *calls;
  *calls = 0;
  return taken;
}

typedef struct loop {
  loopback *farm;
  redlock_client *client;
  redlock_lock *lock;
  int fd;
  unsigned turns;
} loop;

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

static redlock_options patient(void) {
  redlock_options options = {0};
  options.node_timeout_us = 5 * SECONDS; /* More than a slow machine needs. */
  options.ttl_us = 60 * SECONDS;
  options.retry_count = REDLOCK_RETRIES_NONE;
  return options;
}

static loop loop_begin(unsigned nodes) {
  loop self = {0};
  redlock_options options = patient();
  self.farm = loopback_new(nodes, LOOPBACK_UNIX);
  loopback_run(self.farm);
  assert_error(redlock_client_new(&self.client, NULL, NULL, 0), REDLOCK_OK);
  for (unsigned i = 0; i < nodes; i++) {
    assert_error(redlock_client_add(self.client, self.farm->nodes[i].address, NULL, 0), REDLOCK_OK);
  }
  assert_error(redlock_lock_new(&self.lock, self.client, KEY, strlen(KEY), &options), REDLOCK_OK);
  self.fd = redlock_client_pollfd(self.client);
  assert_true(self.fd >= 0);
  return self;
}

static void loop_end(loop *self) {
  redlock_lock_free(self->lock);
  redlock_client_free(self->client);
  assert_true(loopback_end(self->farm));
}

static int begin(void **state) {
  static loop one;
  one = loop_begin((unsigned)(uintptr_t)*state);
  *state = &one;
  return 0;
}

static int end(void **state) {
  loop_end(*state);
  return 0;
}

#define ON(nodes, name)                                                                            \
  { #name, name, begin, end, (void *)(uintptr_t)(nodes) }

/* Polls the descriptor alone: a loop that is not woken fails here. */
static void loop_wait(const loop *self) {
  struct pollfd ready = {self->fd, POLLIN, 0};
  assert_int_equal(poll(&ready, 1, PATIENCE_MS), 1);
}

static bool loop_is_ready(const loop *self) {
  struct pollfd ready = {self->fd, POLLIN, 0};
  return poll(&ready, 1, 0) == 1;
}

static int loop_finish(loop *self, redlock_lock *lock) {
  do {
    loop_wait(self);
    assert_error(redlock_client_process(self->client, NULL, 0), REDLOCK_OK);
    self->turns++;
  } while (redlock_client_next_ended(self->client) != lock);
  return redlock_lock_result(lock);
}

/* Takes turns until the descriptor is quiet for longer than any timer that is set. */
static void loop_rest(loop *self, redlock_duration quiet_us) {
  struct pollfd ready = {self->fd, POLLIN, 0};
  while (poll(&ready, 1, (int)(quiet_us / MS)) == 1) {
    assert_error(redlock_client_process(self->client, NULL, 0), REDLOCK_OK);
  }
}

static void acquire(loop *self) {
  assert_error(redlock_lock_acquire_start(self->lock, NULL), REDLOCK_OK);
  assert_error(loop_finish(self, self->lock), REDLOCK_OK);
}

static void release(loop *self) {
  assert_error(redlock_lock_release_start(self->lock), REDLOCK_OK);
  assert_error(loop_finish(self, self->lock), REDLOCK_OK);
}

static void set_deaf(loopback *farm, bool deaf) {
  loopback_lock(farm);
  for (unsigned i = 0; i < 3; i++) {
    farm->nodes[i].deaf = deaf;
  }
  loopback_unlock(farm);
}

/* ------------------------------------------------------------------------------------ it fires */

static void pollfd_loop_does_not_hang_after_a_start(void **state) {
  loop *one = *state;
  assert_false(loop_is_ready(one)); /* Nothing to do. */
  for (unsigned i = 0; i < 3; i++) {
    assert_error(redlock_lock_acquire_start(one->lock, NULL), REDLOCK_OK);
    assert_true(loop_is_ready(one));
    assert_error(loop_finish(one, one->lock), REDLOCK_OK);
    assert_error(redlock_lock_extend_start(one->lock, 0), REDLOCK_OK);
    assert_true(loop_is_ready(one));
    assert_error(loop_finish(one, one->lock), REDLOCK_OK);
    assert_error(redlock_lock_release_start(one->lock), REDLOCK_OK);
    assert_true(loop_is_ready(one));
    assert_error(loop_finish(one, one->lock), REDLOCK_OK);
  }
}

static void pollfd_loop_does_not_hang_if_asked_for_late(void **state) {
  loop *one = *state;
  redlock_client *client;
  redlock_lock *lock;
  assert_error(redlock_client_new(&client, NULL, NULL, 0), REDLOCK_OK);
  assert_error(redlock_client_add(client, one->farm->nodes[0].address, NULL, 0), REDLOCK_OK);
  assert_error(redlock_lock_new(&lock, client, KEY, strlen(KEY), NULL), REDLOCK_OK);
  assert_error(redlock_lock_acquire_start(lock, NULL), REDLOCK_OK);
  loop late = {.client = client, .fd = redlock_client_pollfd(client)};
  assert_error(loop_finish(&late, lock), REDLOCK_OK);
  redlock_lock_free(lock);
  redlock_client_free(client);
}

/* Opened after a time-out has expired, when nothing else will happen. */
static void expired_time_out_makes_a_new_pollfd_readable(void **state) {
  loop *one = *state;
  redlock_options options = patient();
  redlock_client *client;
  redlock_lock *lock;
  options.node_timeout_us = 20 * MS;
  set_deaf(one->farm, true);
  assert_error(redlock_client_new(&client, NULL, NULL, 0), REDLOCK_OK);
  assert_error(redlock_client_add(client, one->farm->nodes[0].address, NULL, 0), REDLOCK_OK);
  assert_error(redlock_lock_new(&lock, client, KEY, strlen(KEY), &options), REDLOCK_OK);
  assert_error(redlock_lock_acquire_start(lock, NULL), REDLOCK_OK);
  assert_error(redlock_client_process(client, NULL, 0), REDLOCK_OK);
  assert_error(redlock_client_process(client, NULL, 0), REDLOCK_OK);
  while (redlock_client_timeout(client) > 0) {
  }
  loop late = {.client = client, .fd = redlock_client_pollfd(client)};
  assert_error(loop_finish(&late, lock), REDLOCK_E_UNAVAILABLE);
  redlock_lock_free(lock);
  redlock_client_free(client);
}

/*
 * A program that has closed its standard input: each of the three descriptors may get its number.
 */
static void descriptor_0_is_one_as_well(void **state) {
  for (unsigned which = 0; which < 3; which++) {
    loop self = loop_begin(1);
    redlock_client *client;
    redlock_lock *lock;
    assert_error(redlock_client_new(&client, NULL, NULL, 0), REDLOCK_OK);
    assert_error(redlock_client_add(client, self.farm->nodes[0].address, NULL, 0), REDLOCK_OK);
    assert_error(redlock_lock_new(&lock, client, KEY, strlen(KEY), NULL), REDLOCK_OK);
    int input = dup(0);
    assert_true(input >= 0);
    (void)close(0);
    others_move_up = which;
    loop closed = {.client = client, .fd = redlock_client_pollfd(client)};
    others_move_up = 0;
    assert_int_equal(closed.fd == 0, which == 0);
    assert_true(fcntl(0, F_GETFD) >= 0);
    assert_int_equal(redlock_client_pollfd(client), closed.fd);
    assert_error(redlock_lock_acquire_start(lock, NULL), REDLOCK_OK);
    assert_error(loop_finish(&closed, lock), REDLOCK_OK);
    redlock_lock_free(lock);
    redlock_client_free(client);
    assert_int_equal(fcntl(0, F_GETFD), -1); /* Given back. */
    assert_int_equal(dup2(input, 0), 0);
    (void)close(input);
    loop_end(&self);
  }
}

static void pollfd_loop_does_not_hang_on_silent_nodes(void **state) {
  loop *one = *state;
  redlock_options options = patient();
  options.node_timeout_us = 30 * MS;
  acquire(one);
  release(one);
  set_deaf(one->farm, true);
  redlock_time before_us = redlock_now();
  assert_error(redlock_lock_acquire_start(one->lock, &options), REDLOCK_OK);
  assert_error(loop_finish(one, one->lock), REDLOCK_E_UNAVAILABLE);
  assert_true(redlock_now() - before_us >= 30 * MS);
  assert_true(redlock_now() - before_us < 5 * SECONDS); /* Not the earlier operations' time-out. */
}

static void pollfd_loop_reconnects_to_a_returning_node(void **state) {
  loop *one = *state;
  redlock_node_info info;
  loopback_lock(one->farm);
  loopback_down(one->farm, 0);
  loopback_unlock(one->farm);
  assert_error(redlock_lock_acquire_start(one->lock, NULL), REDLOCK_OK);
  assert_error(loop_finish(one, one->lock), REDLOCK_E_UNAVAILABLE);
  loopback_lock(one->farm);
  loopback_up(one->farm, 0);
  loopback_unlock(one->farm);
  do {
    loop_wait(one);
    assert_error(redlock_client_process(one->client, NULL, 0), REDLOCK_OK);
    assert_error(redlock_client_node_info(one->client, 0, &info), REDLOCK_OK);
  } while (info.state != REDLOCK_NODE_UP);
}

/* Waits until the replies of all nodes are there, unread. */
static void wait_for_answers(const loop *self) {
  struct pollfd fds[REDLOCK_NODES_MAX];
  size_t count = redlock_client_pollfds(self->client, fds, REDLOCK_NODES_MAX);
  for (size_t i = 0; i < count; i++) {
    assert_int_equal(poll(&fds[i], 1, PATIENCE_MS), 1);
  }
}

/* The thread then waits for its own replies, perhaps for long. */
static void blocking_call_wakes_the_loop_for_replies_that_it_reads(void **state) {
  loop *one = *state;
  redlock_lock *other;
  redlock_options options = patient();
  acquire(one);
  release(one);
  assert_error(redlock_lock_new(&other, one->client, "other", 5, &options), REDLOCK_OK);
  assert_error(redlock_lock_acquire_start(one->lock, NULL), REDLOCK_OK);
  assert_error(redlock_client_process(one->client, NULL, 0), REDLOCK_OK);
  wait_for_answers(one);
  (void)poll(NULL, 0, 5); /* After a pause a call reads before it sends. */
  set_deaf(one->farm, true);
  assert_error(rl_handle_prepare(other, &(rl_request){.operation = RL_OPERATION_ACQUIRE}),
               REDLOCK_OK);
  assert_error(rl_handle_begin(other), REDLOCK_OK);
  assert_error(redlock_lock_result(one->lock), REDLOCK_OK);
  assert_true(loop_is_ready(one));
  assert_error(loop_finish(one, one->lock), REDLOCK_OK);
  set_deaf(one->farm, false);
  while (rl_handle_pending(other)) {
    assert_error(rl_handle_go_on(other, SECONDS), REDLOCK_OK);
  }
  rl_handle_end(other, REDLOCK_OK);
  redlock_lock_free(other);
}

/* A loop that takes one result each time. */
static void cancel_wakes_the_loop_despite_later_calls(void **state) {
  loop *one = *state;
  redlock_lock *other;
  acquire(one);
  release(one);
  assert_error(redlock_lock_new(&other, one->client, "other", 5, NULL), REDLOCK_OK);
  loop_rest(one, 50 * MS);
  set_deaf(one->farm, true); /* No reply wakes the loop. */
  assert_error(redlock_lock_acquire_start(one->lock, NULL), REDLOCK_OK);
  assert_error(redlock_client_process(one->client, NULL, 0), REDLOCK_OK);
  redlock_lock_cancel(one->lock);
  redlock_lock_free(other);
  assert_true(loop_is_ready(one));
  assert_error(loop_finish(one, one->lock), REDLOCK_E_CANCELLED);
}

/* The same for a loop with pollfds() and timeout(). */
static void end_outside_of_the_loop_leaves_no_time_to_wait(void **state) {
  loop *one = *state;
  acquire(one);
  release(one);
  assert_error(redlock_lock_acquire_start(one->lock, NULL), REDLOCK_OK);
  assert_error(redlock_client_process(one->client, NULL, 0), REDLOCK_OK);
  assert_true(redlock_client_timeout(one->client) > 0);
  redlock_lock_cancel(one->lock);
  assert_int_equal(redlock_client_timeout(one->client), 0);
  assert_int_equal(redlock_client_timeout_ms(one->client), 0);
  assert_error(redlock_client_process(one->client, NULL, 0), REDLOCK_OK);
  assert_true(redlock_client_timeout(one->client) >
              0); /* An untaken result does not keep it busy. */
  assert_ptr_equal(redlock_client_next_ended(one->client), one->lock);
}

static void untaken_result_wakes_the_loop_again(void **state) {
  loop *one = *state;
  redlock_lock *locks[8];
  redlock_options options = patient();
  for (unsigned i = 0; i < COUNT_OF(locks); i++) {
    assert_error(redlock_lock_new(&locks[i], one->client, (char[]){(char)('a' + i)}, 1, &options),
                 REDLOCK_OK);
    assert_error(redlock_lock_acquire_start(locks[i], NULL), REDLOCK_OK);
  }
  for (unsigned ended = 0; ended < COUNT_OF(locks);) {
    loop_wait(one);
    assert_error(redlock_client_process(one->client, NULL, 0), REDLOCK_OK);
    ended += redlock_client_next_ended(one->client) != NULL;
  }
  for (unsigned i = 0; i < COUNT_OF(locks); i++) {
    assert_error(redlock_lock_result(locks[i]), REDLOCK_OK);
    redlock_lock_free(locks[i]);
  }
}

/* Bytes that the core queues outside of a turn, without a flush. */
static void untried_bytes_leave_no_time_to_wait(void **state) {
  loop *one = *state;
  acquire(one);
  loop_rest(one, 50 * MS);
  assert_true(redlock_client_timeout(one->client) > 0);
  rl_lock_expire(rl_lock_of(one->lock), redlock_now());
  assert_int_equal(redlock_client_timeout(one->client), 0);
  rl_poll_sync(one->client);
  assert_true(loop_is_ready(one));
  assert_error(redlock_client_process(one->client, NULL, 0), REDLOCK_OK);
  assert_true(redlock_client_timeout(one->client) > 0);
}

/* Between two attempts, with all nodes down, there is a time and no descriptor. */
static void wait_without_descriptors_needs_a_time(void **state) {
  loop *one = *state;
  redlock_options options = patient();
  options.retry_count = 2;
  options.retry_delay_us = 20 * MS;
  options.retry_jitter_us = REDLOCK_DURATION_NONE;
  assert_error(wait_once(one->client, REDLOCK_NEVER), REDLOCK_E_SYSTEM);
  loopback_lock(one->farm);
  loopback_down(one->farm, 0);
  loopback_unlock(one->farm);
  assert_error(redlock_lock_acquire(one->lock, &options, NULL), REDLOCK_E_UNAVAILABLE);
  assert_non_null(strstr(redlock_lock_message(one->lock), "0 of 1 nodes granted it"));
}

/* ------------------------------------------------------------------------------------- it rests */

/* A loop that only reacts to the descriptor. */
static void pollfd_loop_extends_a_lease_and_reports_its_loss(void **state) {
  loop *one = *state;
  redlock_options options = {
      .ttl_us = 2400 * MS, .node_timeout_us = 300 * MS, .auto_extend = REDLOCK_YES};
  redlock_time since_us = 0, before_us = redlock_now();
  assert_error(redlock_lock_acquire_start(one->lock, &options), REDLOCK_OK);
  assert_error(loop_finish(one, one->lock), REDLOCK_OK);
  while (redlock_now() < before_us + 2700 * MS) { /* longer than the ttl */
    assert_true(redlock_lock_remaining(one->lock) > 0);
    loop_wait(one);
    assert_error(redlock_client_process(one->client, NULL, 0), REDLOCK_OK);
    assert_null(redlock_client_next_lost(one->client));
    assert_null(redlock_client_next_ended(one->client));
  }
  assert_error(redlock_lock_lost(one->lock, NULL), REDLOCK_OK);
  assert_error(redlock_lock_result(one->lock), REDLOCK_OK);
  set_deaf(one->farm, true);
  const int reasons[] = {REDLOCK_E_UNAVAILABLE, REDLOCK_E_EXPIRED};
  for (unsigned i = 0; i < COUNT_OF(reasons); i++) {
    while (redlock_client_next_lost(one->client) != one->lock) {
      loop_wait(one);
      assert_error(redlock_client_process(one->client, NULL, 0), REDLOCK_OK);
    }
    assert_error(redlock_lock_lost(one->lock, &since_us), reasons[i]);
    assert_true(since_us > before_us && since_us <= redlock_now());
    assert_int_equal(redlock_lock_remaining(one->lock) > 0, reasons[i] == REDLOCK_E_UNAVAILABLE);
  }
  assert_null(redlock_client_next_lost(one->client));
  assert_error(redlock_lock_lost(NULL, &since_us), REDLOCK_E_INVALID);
  assert_null(redlock_client_next_lost(NULL));
}

static void loss_outside_of_the_loop_wakes_it(void **state) {
  loop *one = *state;
  redlock_options options = {
      .ttl_us = 500 * MS, .node_timeout_us = 300 * MS, .notify_lost = REDLOCK_YES};
  assert_error(redlock_lock_acquire_start(one->lock, &options), REDLOCK_OK);
  assert_error(loop_finish(one, one->lock), REDLOCK_OK);
  assert_error(redlock_client_process(one->client, NULL, 0),
               REDLOCK_OK); /* The loop has taken a turn. */
  while (redlock_lock_remaining(one->lock) > 0) {
  }
  assert_error(redlock_lock_result(one->lock), REDLOCK_E_EXPIRED); /* which ends the lease */
  assert_true(loop_is_ready(one));
  assert_int_equal(redlock_client_timeout(one->client), 0);
  assert_ptr_equal(redlock_client_next_lost(one->client), one->lock);
  assert_error(redlock_lock_lost(one->lock, NULL), REDLOCK_E_EXPIRED);
  loop_rest(one, 50 * MS);
  assert_false(loop_is_ready(one));
}

/* A program that only calls redlock_lock_lost(). */
static void unfetched_loss_does_not_keep_the_loop_busy(void **state) {
  loop *one = *state;
  redlock_options options = {
      .ttl_us = 500 * MS, .node_timeout_us = 300 * MS, .notify_lost = REDLOCK_YES};
  assert_error(redlock_lock_acquire(one->lock, &options, NULL), REDLOCK_OK);
  while (redlock_lock_lost(one->lock, NULL) == REDLOCK_OK) {
  }
  loop_rest(one, 100 * MS);
  assert_false(loop_is_ready(one));
  assert_true(redlock_client_timeout(one->client) > 0);
  assert_ptr_equal(redlock_client_next_lost(one->client), one->lock);
}

/* It takes no results, and must not be woken for them again and again. */
static void loop_that_only_reads_results_rests(void **state) {
  loop *one = *state;
  for (unsigned i = 0; i < 2; i++) {
    assert_error(i == 0 ? redlock_lock_acquire_start(one->lock, NULL)
                        : redlock_lock_release_start(one->lock),
                 REDLOCK_OK);
    while (redlock_lock_result(one->lock) == REDLOCK_PENDING) {
      loop_wait(one);
      assert_error(redlock_client_process(one->client, NULL, 0), REDLOCK_OK);
    }
    loop_rest(one, 50 * MS);
    assert_error(redlock_lock_result(one->lock), REDLOCK_OK);
    assert_false(loop_is_ready(one));
  }
}

static void operation_costs_two_event_calls_at_most(void **state) {
  loop *one = *state;
  acquire(one);
  release(one);
  (void)take_calls(&fake_clock.timer_calls);
  (void)take_calls(&event_calls);
  for (unsigned i = 0; i < 100; i++) {
    acquire(one);
    release(one);
  }
  /* At the start, and when that has been seen. The time-out of 5 s is longer than all of this. */
  assert_true(take_calls(&event_calls) <= 2 * 200);
  assert_true(take_calls(&fake_clock.timer_calls) <= 4);
  for (unsigned i = 0; i < 100; i++) {
    assert_error(redlock_lock_acquire(one->lock, NULL, NULL), REDLOCK_OK);
    assert_error(redlock_lock_release(one->lock), REDLOCK_OK);
  }
  /* A blocking call needs no waking. */
  assert_int_equal(take_calls(&event_calls), 0);
  assert_true(take_calls(&fake_clock.timer_calls) <= 4);
}

static void driver_time_makes_pollfd_readable_once(void **state) {
  loop *one = *state;
  acquire(one);
  release(one);
  loop_rest(one, 200 * MS);
  redlock_time begun_us = redlock_now();
  rl_client_enter(one->client);
  rl_poll_at(one->client, begun_us + 3600 * SECONDS);
  rl_poll_at(one->client, begun_us + 20 * MS);
  rl_poll_at(one->client, begun_us + 7200 * SECONDS);
  rl_client_leave(one->client);
  assert_true(redlock_client_timeout(one->client) <= 20 * MS);
  loop_wait(one);
  assert_true(redlock_now() >= begun_us + 20 * MS);
  assert_error(redlock_client_process(one->client, NULL, 0), REDLOCK_OK);
  loop_rest(one,
            50 * MS); /* Later times are dropped: a coroutine that waits sets its time again. */
  assert_false(loop_is_ready(one));
}

/* process() asks Lua code for credentials, so the loop must take a turn; not while it asks. */
static void pending_question_leaves_no_time_to_wait(void **state) {
  loop *one = *state;
  acquire(one);
  release(one);
  loop_rest(one, 200 * MS);
  assert_true(redlock_client_timeout(one->client) > 0);
  one->client->asks = 1;
  assert_true(redlock_client_timeout(one->client) == 0);
  one->client->asking = true;
  assert_true(redlock_client_timeout(one->client) > 0);
  one->client->asks = 0;
  one->client->asking = false;
}

static void client_without_pollfd_sets_no_timer(void **state) {
  loop *one = *state;
  redlock_client *client;
  redlock_lock *lock;
  assert_error(redlock_client_new(&client, NULL, NULL, 0), REDLOCK_OK);
  assert_error(redlock_client_add(client, one->farm->nodes[0].address, NULL, 0), REDLOCK_OK);
  assert_error(redlock_lock_new(&lock, client, KEY, strlen(KEY), NULL), REDLOCK_OK);
  (void)take_calls(&fake_clock.timer_calls);
  (void)take_calls(&event_calls);
  assert_error(redlock_lock_acquire(lock, NULL, NULL), REDLOCK_OK);
  assert_error(redlock_lock_release(lock), REDLOCK_OK);
  assert_int_equal(take_calls(&fake_clock.timer_calls), 0);
  assert_int_equal(take_calls(&event_calls), 0);
  redlock_lock_free(lock);
  redlock_client_free(client);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      ON(3, pollfd_loop_does_not_hang_after_a_start),
      ON(3, pollfd_loop_does_not_hang_if_asked_for_late),
      ON(3, expired_time_out_makes_a_new_pollfd_readable),
      cmocka_unit_test(descriptor_0_is_one_as_well),
      ON(3, pollfd_loop_does_not_hang_on_silent_nodes),
      ON(1, pollfd_loop_reconnects_to_a_returning_node),
      ON(3, blocking_call_wakes_the_loop_for_replies_that_it_reads),
      ON(3, cancel_wakes_the_loop_despite_later_calls),
      ON(3, end_outside_of_the_loop_leaves_no_time_to_wait),
      ON(3, untaken_result_wakes_the_loop_again),
      ON(3, untried_bytes_leave_no_time_to_wait),
      ON(1, wait_without_descriptors_needs_a_time),
      ON(3, pollfd_loop_extends_a_lease_and_reports_its_loss),
      ON(3, loss_outside_of_the_loop_wakes_it),
      ON(3, unfetched_loss_does_not_keep_the_loop_busy),
      ON(3, loop_that_only_reads_results_rests),
      ON(3, operation_costs_two_event_calls_at_most),
      ON(1, driver_time_makes_pollfd_readable_once),
      ON(1, pending_question_leaves_no_time_to_wait),
      ON(3, client_without_pollfd_sets_no_timer),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
