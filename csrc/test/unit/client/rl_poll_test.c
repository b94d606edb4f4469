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
#include "client_world.h"
#include "fake_clock.h"

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
} loop;

static loop loop_of(redlock_lock *lock) {
  loop self = {.client = redlock_lock_client(lock), .lock = lock};
  self.fd = redlock_client_pollfd(self.client);
  assert_true(self.fd >= 0);
  return self;
}

static loop *loop_new(unsigned nodes) {
  static loop self;
  const world *one = world_new(nodes);
  self = loop_of(one->lock);
  self.farm = one->farm;
  return &self;
}

/* A second client of the first server. */
static redlock_lock *other_clients_lock(const loop *self, const redlock_options *options) {
  redlock_client *client;
  assert_error(redlock_client_new(&client, NULL, NULL, 0), REDLOCK_OK);
  assert_error(redlock_client_add(client, self->farm->nodes[0].address, NULL, 0), REDLOCK_OK);
  return new_lock(client, KEY, options);
}

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

/* ------------------------------------------------------------------------------------ it fires */

TEST(pollfd_loop_does_not_hang_after_a_start) {
  loop *one = loop_new(3);
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

TEST(pollfd_loop_does_not_hang_if_asked_for_late) {
  redlock_lock *lock = other_clients_lock(loop_new(3), NULL);
  assert_error(redlock_lock_acquire_start(lock, NULL), REDLOCK_OK);
  loop late = loop_of(lock);
  assert_error(loop_finish(&late, lock), REDLOCK_OK);
  free_with_client(lock);
}

/* Opened after a time-out has expired, when nothing else will happen. */
TEST(expired_time_out_makes_a_new_pollfd_readable) {
  loop *one = loop_new(3);
  redlock_options options = {.node_timeout_us = 20 * MS, .retry_count = REDLOCK_RETRIES_NONE};
  set_deaf(one->farm, true);
  redlock_lock *lock = other_clients_lock(one, &options);
  redlock_client *client = redlock_lock_client(lock);
  assert_error(redlock_lock_acquire_start(lock, NULL), REDLOCK_OK);
  assert_error(redlock_client_process(client, NULL, 0), REDLOCK_OK);
  assert_error(redlock_client_process(client, NULL, 0), REDLOCK_OK);
  while (redlock_client_timeout(client) > 0) {
  }
  loop late = loop_of(lock);
  assert_error(loop_finish(&late, lock), REDLOCK_E_UNAVAILABLE);
  free_with_client(lock);
}

/*
 * A program that has closed its standard input: each of the three descriptors may get its number.
 */
TEST(descriptor_0_is_one_as_well) {
  loop *one = loop_new(1);
  for (unsigned which = 0; which < 3; which++) {
    redlock_lock *lock = other_clients_lock(one, NULL);
    int input = dup(0);
    assert_true(input >= 0);
    (void)close(0);
    others_move_up = which;
    loop closed = loop_of(lock);
    others_move_up = 0;
    assert_int_equal(closed.fd == 0, which == 0);
    assert_true(fcntl(0, F_GETFD) >= 0);
    assert_int_equal(redlock_client_pollfd(closed.client), closed.fd);
    acquire(&closed);
    release(&closed);
    free_with_client(lock);
    assert_int_equal(fcntl(0, F_GETFD), -1); /* Given back. */
    assert_int_equal(dup2(input, 0), 0);
    (void)close(input);
  }
}

TEST(pollfd_loop_does_not_hang_on_silent_nodes) {
  loop *one = loop_new(3);
  redlock_options options = {.node_timeout_us = 30 * MS};
  acquire(one);
  release(one);
  set_deaf(one->farm, true);
  redlock_time before_us = redlock_now();
  assert_error(redlock_lock_acquire_start(one->lock, &options), REDLOCK_OK);
  assert_error(loop_finish(one, one->lock), REDLOCK_E_UNAVAILABLE);
  assert_true(redlock_now() - before_us >= 30 * MS);
  assert_true(redlock_now() - before_us < 5 * SECONDS); /* Not the earlier operations' time-out. */
}

TEST(pollfd_loop_reconnects_to_a_returning_node) {
  loop *one = loop_new(1);
  redlock_node_info info;
  stop_server(one->farm, 0);
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
TEST(blocking_call_wakes_the_loop_for_replies_that_it_reads) {
  loop *one = loop_new(3);
  acquire(one);
  release(one);
  redlock_lock *other = new_lock(one->client, "other", NULL);
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
TEST(cancel_wakes_the_loop_despite_later_calls) {
  loop *one = loop_new(3);
  acquire(one);
  release(one);
  redlock_lock *other = new_lock(one->client, "other", NULL);
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
TEST(end_outside_of_the_loop_leaves_no_time_to_wait) {
  loop *one = loop_new(3);
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

TEST(untaken_result_wakes_the_loop_again) {
  loop *one = loop_new(3);
  redlock_lock *locks[8];
  for (unsigned i = 0; i < COUNT_OF(locks); i++) {
    locks[i] = new_lock(one->client, (char[]){(char)('a' + i), '\0'}, NULL);
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
TEST(untried_bytes_leave_no_time_to_wait) {
  loop *one = loop_new(3);
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

/* Without it the client would seem to have been held up, and silent nodes would seem slower. */
TEST(turn_with_nothing_due_reads_the_clock) {
  loop *one = loop_new(1);
  acquire(one);
  loop_rest(one, 50 * MS);
  fake_clock.now_us += 10 * MS;
  redlock_time before_us = fake_clock.now_us;
  assert_true(redlock_client_timeout(one->client) > 0);
  assert_error(redlock_client_process(one->client, NULL, 0), REDLOCK_OK);
  assert_true(one->client->core.now_us > before_us);
  assert_true(one->client->processed_us > before_us);
}

/* More than a turn sends. The clock of the test advances only if a time-out is above 0. */
TEST(operations_that_begin_together_leave_no_time_to_wait) {
  enum { LOCKS = 1000 };
  static redlock_lock *locks[LOCKS];
  loop *one = loop_new(3);
  for (unsigned i = 0; i < LOCKS; i++) { /* They begin when the nodes are up. */
    char name[16];
    (void)snprintf(name, sizeof name, "%u", i);
    locks[i] = new_lock(one->client, name, NULL);
    assert_error(redlock_lock_acquire_start(locks[i], NULL), REDLOCK_OK);
  }
  unsigned left = 0;
  redlock_time begun_us = redlock_now();
  for (unsigned ended = 0; ended < LOCKS;) {
    struct pollfd fds[REDLOCK_NODES_MAX];
    size_t count = redlock_client_pollfds(one->client, fds, REDLOCK_NODES_MAX);
    assert_true(poll(fds, (nfds_t)count, redlock_client_timeout_ms(one->client)) >= 0);
    assert_error(redlock_client_process(one->client, fds, count), REDLOCK_OK);
    if (rl_core_wants_send(&one->client->core)) {
      left++;
      assert_int_equal(redlock_client_timeout(one->client), 0);
    }
    while (redlock_client_next_ended(one->client) != NULL) {
      ended++;
    }
  }
  assert_true(left > 0);
  assert_true(redlock_now() - begun_us < 500 * MS);
  for (unsigned i = 0; i < LOCKS; i++) {
    assert_error(redlock_lock_result(locks[i]), REDLOCK_OK);
    redlock_lock_free(locks[i]);
  }
}

/* That thread sends when it has arrived: to poll without a time would be to spin. */
TEST(bytes_that_another_thread_sends_leave_time_to_wait) {
  loop *one = loop_new(3);
  acquire(one);
  loop_rest(one, 50 * MS);
  rl_lock_expire(rl_lock_of(one->lock), redlock_now());
  assert_int_equal(rl_poll_deadline(one->client), 0);
  one->client->callers.unsent = true;
  assert_true(rl_poll_deadline(one->client) > redlock_now());
  one->client->callers.unsent = false;
}

/* Between two attempts, with all nodes down, there is a time and no descriptor. */
TEST(wait_without_descriptors_needs_a_time) {
  loop *one = loop_new(1);
  redlock_options options = {
      .retry_count = 2, .retry_delay_us = 20 * MS, .retry_jitter_us = REDLOCK_DURATION_NONE};
  assert_error(wait_once(one->client, REDLOCK_NEVER), REDLOCK_E_SYSTEM);
  stop_server(one->farm, 0);
  assert_error(redlock_lock_acquire(one->lock, &options, NULL), REDLOCK_E_UNAVAILABLE);
  assert_non_null(strstr(redlock_lock_message(one->lock), "0 of 1 nodes granted it"));
}

/* ------------------------------------------------------------------------------------- it rests */

/* A loop that only reacts to the descriptor. */
TEST(pollfd_loop_extends_a_lease_and_reports_its_loss) {
  loop *one = loop_new(3);
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

TEST(loss_outside_of_the_loop_wakes_it) {
  loop *one = loop_new(3);
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
TEST(unfetched_loss_does_not_keep_the_loop_busy) {
  loop *one = loop_new(3);
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
TEST(loop_that_only_reads_results_rests) {
  loop *one = loop_new(3);
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

TEST(operation_costs_two_event_calls_at_most) {
  loop *one = loop_new(3);
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

TEST(driver_time_makes_pollfd_readable_once) {
  loop *one = loop_new(1);
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
TEST(pending_question_leaves_no_time_to_wait) {
  loop *one = loop_new(1);
  acquire(one);
  release(one);
  loop_rest(one, 200 * MS);
  assert_true(redlock_client_timeout(one->client) > 0);
  one->client->wants_credentials = 1;
  assert_true(redlock_client_timeout(one->client) == 0);
  one->client->asking = true;
  assert_true(redlock_client_timeout(one->client) > 0);
  one->client->wants_credentials = 0;
  one->client->asking = false;
}

TEST(client_without_pollfd_sets_no_timer) {
  redlock_lock *lock = other_clients_lock(loop_new(3), NULL);
  (void)take_calls(&fake_clock.timer_calls);
  (void)take_calls(&event_calls);
  assert_error(redlock_lock_acquire(lock, NULL, NULL), REDLOCK_OK);
  assert_error(redlock_lock_release(lock), REDLOCK_OK);
  assert_int_equal(take_calls(&fake_clock.timer_calls), 0);
  assert_int_equal(take_calls(&event_calls), 0);
  free_with_client(lock);
}
