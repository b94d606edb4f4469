/*
 * Callers: their rules, and failures of memory, sleepers and descriptors.
 *
 * SPDX-License-Identifier: MIT
 */
#include "client/rl_caller.h"

#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <sys/resource.h>
#include <unistd.h>

#include "api/rl_handle.h"
#include "api/rl_handle_run.h"
#include "client/rl_client.h"
#include "client/rl_poll.h"
#include "client/rl_turn.h"
#include "client_world.h"

static bool no_sleeper;
static bool no_growth;

void *__real_realloc(void *block, size_t size);
void *__wrap_realloc(void *block, size_t size);

void *__wrap_realloc(void *block, size_t size) {
  return no_growth ? NULL : __real_realloc(block, size);
}

bool __real_rl_sleeper_init(rl_sleeper *sleeper);
bool __wrap_rl_sleeper_init(rl_sleeper *sleeper);
bool __real_rl_sleeper_wait(rl_sleeper *sleeper, redlock_time until_us);
bool __wrap_rl_sleeper_wait(rl_sleeper *sleeper, redlock_time until_us);

bool __wrap_rl_sleeper_init(rl_sleeper *sleeper) {
  return !no_sleeper && __real_rl_sleeper_init(sleeper);
}

static unsigned wake_ups_by_nobody; /* number of next sleeps that end so */
static bool time_stands_still;

bool __wrap_rl_sleeper_wait(rl_sleeper *sleeper, redlock_time until_us) {
  if (wake_ups_by_nobody > 0) {
    wake_ups_by_nobody--;
    return true;
  }
  return __real_rl_sleeper_wait(sleeper, time_stands_still ? REDLOCK_NEVER : until_us);
}

/* How many threads were called, and how many of them while the mutex of |guarded| was held. */
static redlock_client *guarded;
static unsigned posts;
static unsigned guarded_posts;

void __real_rl_sleeper_post(rl_sleeper *sleeper);
void __wrap_rl_sleeper_post(rl_sleeper *sleeper);

void __wrap_rl_sleeper_post(rl_sleeper *sleeper) {
  if (guarded != NULL) {
    posts++;
    if (pthread_mutex_trylock(&guarded->mutex.mutex) == 0) {
      (void)pthread_mutex_unlock(&guarded->mutex.mutex);
    } else {
      guarded_posts++;
    }
  }
  __real_rl_sleeper_post(sleeper);
}

/* Descriptors that the poller polls. */
static redlock_client *observed;
static size_t polled_count;
static bool polled_undisturbed;

int __real_rl_poll_until(struct pollfd *fds, size_t count, redlock_time until_us);
int __wrap_rl_poll_until(struct pollfd *fds, size_t count, redlock_time until_us);

int __wrap_rl_poll_until(struct pollfd *fds, size_t count, redlock_time until_us) {
  if (observed != NULL) {
    polled_count = count;
    polled_undisturbed = observed->callers.polling && !observed->callers.event_is_set;
  }
  return __real_rl_poll_until(fds, count, until_us);
}

static unsigned readings; /* of the clock */

redlock_time __real_redlock_now(void);
redlock_time __wrap_redlock_now(void);

redlock_time __wrap_redlock_now(void) {
  readings++;
  return __real_redlock_now();
}

/* That of the test. */
static redlock_client *client;

static int begin(void **state) {
  redlock_options options = {.node_timeout_us = 10 * SECONDS,
                             .ttl_us = 200 * SECONDS,
                             .retry_count = REDLOCK_RETRIES_NONE};
  redlock_settings settings = {.options = &options};
  assert_error(redlock_client_new(&client, &settings, NULL, 0), REDLOCK_OK);
  return 0;
}

static void free_client(void) {
  redlock_client_free(client);
  client = NULL;
}

static int end(void **state) {
  free_client();
  return 0;
}

/* Returns a lock on a node that is down. */
static redlock_lock *lock_without_server(void) {
  add_nodes_without_servers(client, 1);
  return new_lock(client, "r", NULL);
}

/* Returns how many threads can be in a call at once. */
static unsigned begin_all(unsigned most) {
  static rl_caller *callers[RL_LOCK_CALLERS_MAX + 1];
  unsigned count = 0;
  assert_true(most <= RL_LOCK_CALLERS_MAX + 1);
  rl_client_enter(client);
  while (count < most && (callers[count] = rl_caller_begin(client, NULL)) != NULL) {
    count++;
    assert_int_equal(callers[count - 1]->number, count);
  }
  while (count > 0 && callers[count - 1] != NULL) {
    rl_caller_end(client, callers[--count]);
  }
  count = (unsigned)client->callers.count;
  rl_client_leave(client);
  return count;
}

TEST(begin_reports_missing_memory_and_sleepers) {
  no_growth = true;
  assert_int_equal(begin_all(1), 0);
  no_growth = false;
  no_sleeper = true;
  assert_int_equal(begin_all(1), 0);
  no_sleeper = false;
  assert_int_equal(begin_all(1), 1);
}

TEST(four_threads_wait_without_memory_for_a_fifth) {
  assert_int_equal(begin_all(4), 4);
  no_growth = true;
  assert_int_equal(begin_all(5), 4);
  no_growth = false;
  assert_int_equal(begin_all(5), 5);
}

TEST(begin_refuses_more_threads_than_a_lock_can_number) {
  assert_int_equal(begin_all(RL_LOCK_CALLERS_MAX + 1), RL_LOCK_CALLERS_MAX);
}

/* As after a fork in a signal handler during a call. */
LINUX_TEST(child_inherits_no_call) {
  rl_client_enter(client);
  rl_caller *before = rl_caller_begin(client, NULL);
  assert_true(rl_timerfd_open(&client->callers.timer));
  rl_callers_reset(&client->callers);
  assert_int_equal(client->callers.timer.fd, -1); /* It is the parent's, too. */
  rl_caller_end(client, before);
  rl_caller *one = rl_caller_begin(client, NULL);
  rl_caller *other = rl_caller_begin(client, NULL);
  assert_ptr_not_equal(one, other);
  rl_caller_end(client, one);
  rl_caller_end(client, other);
  rl_client_leave(client);
}

TEST(bytes_wait_for_arriving_threads) {
  rl_client_enter(client);
  client->callers.arriving = 1;
  rl_caller_send(client);
  assert_true(client->callers.unsent);
  client->callers.arriving = 0;
  rl_caller_send(client);
  assert_false(client->callers.unsent);
  rl_client_leave(client);
}

/* Enters and leaves without other changes. */
static void pass_through(void) {
  rl_client_enter(client);
  rl_client_leave(client);
}

TEST(leaving_thread_sends_without_arriving_threads) {
  rl_caller sender = {0};
  for (unsigned i = 0; i < 8; i++) {
    bool come = (i & 1) != 0, sends = (i & 2) != 0, late = (i & 4) != 0;
    client->callers.unsent = true;
    client->callers.send_us = late ? 0 : REDLOCK_NEVER;
    client->callers.arriving = come;
    client->callers.sender = sends ? &sender : NULL;
    pass_through();
    assert_true(client->callers.unsent == (come && sends && !late));
  }
  client->callers.arriving = 0;
  client->callers.sender = NULL;
}

TEST(poller_is_woken_for_what_it_does_not_poll_for) {
  redlock_lock *lock = lock_without_server();
  rl_client_enter(client);
  rl_caller *poller = rl_caller_begin(client, lock);
  client->callers.poller = poller;
  client->callers.polling = true;
  client->callers.wants = (rl_callers_wants){client->sockets[0].changes, 0, REDLOCK_NEVER, 0};
  rl_client_leave(client);
  pass_through();
  assert_false(client->callers.event_is_set); /* Nothing is new. */
  client->sockets[0].changes++;
  client->callers.unsent = true;
  client->callers.send_us = REDLOCK_NEVER;
  client->callers.arriving = 1;
  client->callers.sender = poller;
  pass_through();
  assert_false(client->callers.event_is_set); /* The last arriving thread checks. */
  client->callers.arriving = 0;
  client->callers.sender = NULL;
  pass_through();
  assert_true(client->callers.event_is_set); /* another descriptor */
  client->callers.wants.changes++;
  client->callers.event_is_set = false;
  pass_through();
  assert_false(client->callers.event_is_set);
  rl_client_enter(client);
  rl_lock_of(lock)->caller_number = 0;
  rl_client_leave(client);
  assert_error(redlock_lock_acquire_start(lock, NULL), REDLOCK_OK);
  assert_true(client->callers.event_is_set); /* an earlier time */
  rl_client_enter(client);
  client->callers.polling = false;
  rl_caller_end(client, poller);
  rl_client_leave(client);
  redlock_lock_free(lock);
}

/* Waits once, in a call that nothing else ends. */
static int wait_until(redlock_time until_us) {
  rl_client_enter(client);
  rl_caller *caller = rl_caller_begin(client, NULL);
  int error = rl_caller_wait(client, caller, until_us, NULL);
  assert_false(client->callers.polling); /* It has returned. */
  rl_caller_end(client, caller);
  rl_client_leave(client);
  return error;
}

TEST(endless_wait_is_refused) {
  (void)alarm(20);
  assert_error(wait_until(REDLOCK_NEVER), REDLOCK_E_SYSTEM);
  assert_error(wait_until(redlock_now() + 1), REDLOCK_OK);
  (void)alarm(0);
}

/* It also polls the timer, because the wait is long. */
LINUX_TEST(poller_polls_and_clears_its_event) {
  assert_error(wait_until(redlock_now() + 1), REDLOCK_OK);
  client->callers.event_is_set = true; /* the one before */
  rl_eventfd_set(&client->callers.event);
  observed = client;
  redlock_time began_us = redlock_now();
  assert_error(wait_until(began_us + 20 * SECONDS), REDLOCK_OK);
  observed = NULL;
  assert_true(redlock_now() - began_us < 10 * SECONDS);
  assert_int_equal(polled_count, 2);
  assert_true(polled_undisturbed);
  struct pollfd one = {rl_eventfd_to_poll(&client->callers.event), POLLIN, 0};
  assert_int_equal(poll(&one, 1, 0), 0);
}

/* The other reading is the turn's. */
TEST(short_poll_reads_the_clock_once) {
  assert_error(wait_until(redlock_now() + 1), REDLOCK_OK); /* It opens the event. */
  redlock_time until_us = redlock_now() + 1;
  readings = 0;
  assert_error(wait_until(until_us), REDLOCK_OK);
  assert_int_equal(readings, 2);
}

TEST(leaving_thread_wakes_a_late_watchdog) {
  client->watchdog.runs = true;
  client->watchdog.until_us = REDLOCK_NEVER;
  pass_through();
  assert_true(client->watchdog.until_us == 0);
  client->watchdog.until_us = 1; /* It wakes soon enough. */
  pass_through();
  assert_true(client->watchdog.until_us == 1);
  client->watchdog.runs = false;
}

/* Silent servers, and a lock on them. */
static loopback *deaf_farm(redlock_lock **lock, const redlock_options *options) {
  loopback *farm = loopback_new(3, LOOPBACK_TCP);
  for (unsigned i = 0; i < 3; i++) {
    farm->nodes[i].deaf = true;
    assert_error(redlock_client_add(client, farm->nodes[i].address, NULL, 0), REDLOCK_OK);
  }
  loopback_run(farm);
  *lock = new_lock(client, "r", options);
  return farm;
}

static void end_farm(redlock_lock *lock, loopback *farm) {
  redlock_lock_free(lock);
  free_client();
  assert_true(loopback_end(farm));
}

/* As while a hook of a script runs. */
TEST(absent_caller_is_no_poller) {
  redlock_lock *lock;
  loopback *farm = deaf_farm(&lock, NULL);
  assert_error(rl_handle_prepare(lock, &(rl_request){.operation = RL_OPERATION_ACQUIRE}),
               REDLOCK_OK);
  assert_error(rl_handle_begin(lock), REDLOCK_OK);
  assert_error(rl_handle_go_on(lock, 5 * MS), REDLOCK_OK);
  assert_true(rl_handle_pending(lock));
  assert_null(client->callers.poller);
  assert_error(rl_handle_prepare(lock, &(rl_request){.operation = RL_OPERATION_ACQUIRE}),
               REDLOCK_E_BUSY);
  rl_handle_end(lock, REDLOCK_E_CANCELLED);
  assert_error(redlock_lock_result(lock), REDLOCK_E_CANCELLED);
  end_farm(lock, farm);
}

/* The time of the turn that ended the operation is enough. */
TEST(end_of_a_call_does_not_read_the_clock) {
  redlock_lock *lock;
  loopback *farm = deaf_farm(&lock, NULL);
  assert_error(rl_handle_prepare(lock, &(rl_request){.operation = RL_OPERATION_ACQUIRE}),
               REDLOCK_OK);
  assert_error(rl_handle_begin(lock), REDLOCK_OK);
  readings = 0;
  rl_handle_end(lock, REDLOCK_OK);
  assert_int_equal(readings, 0);
  assert_true(client->core.absent_us == client->core.now_us);
  end_farm(lock, farm);
}

/* The operation has ended, but its thread has not returned. */
TEST(lock_is_busy_until_its_call_has_returned) {
  redlock_lock *lock;
  loopback *farm = deaf_farm(&lock, NULL);
  rl_client_enter(client);
  rl_caller *caller = rl_caller_begin(client, lock);
  assert_ptr_equal(rl_caller_of(lock), caller);
  assert_false(caller->each_turn);
  rl_client_leave(client);
  assert_error(redlock_lock_acquire_start(lock, NULL), REDLOCK_E_BUSY);
  assert_error(redlock_lock_release(lock), REDLOCK_E_BUSY);
  assert_error(redlock_lock_release_send(lock), REDLOCK_E_BUSY);
  assert_error(redlock_lock_inspect(lock), REDLOCK_E_BUSY);
  rl_client_enter(client);
  rl_caller_end(client, caller);
  assert_null(rl_caller_of(lock));
  rl_client_leave(client);
  end_farm(lock, farm);
}

TEST(only_acquire_and_extend_start_the_watchdog) {
  redlock_lock *lock;
  redlock_options options = {.auto_extend = REDLOCK_YES, .node_timeout_us = 20 * MS};
  loopback *farm = deaf_farm(&lock, &options);
  assert_error(redlock_lock_release(lock), REDLOCK_E_NOT_HELD);
  assert_error(redlock_lock_inspect(lock), REDLOCK_E_UNAVAILABLE);
  assert_false(client->watchdog.runs);
  assert_error(redlock_lock_acquire(lock, NULL, NULL), REDLOCK_E_UNAVAILABLE);
  assert_true(client->watchdog.runs);
  end_farm(lock, farm);
}

TEST(close_does_not_wait_without_memory) {
  redlock_lock *lock;
  loopback *farm = deaf_farm(&lock, NULL);
  assert_error(redlock_lock_acquire_start(lock, NULL), REDLOCK_OK);
  assert_error(redlock_client_process(client, NULL, 0), REDLOCK_OK);
  redlock_time began_us = redlock_now();
  no_growth = true;
  assert_false(rl_client_closing(client, began_us + 20 * SECONDS, 20 * SECONDS));
  (void)redlock_client_close(client, 20 * SECONDS);
  no_growth = false;
  assert_true(redlock_now() - began_us < 10 * SECONDS);
  end_farm(lock, farm);
}

/* Begins a call whose thread would poll, but does not now. */
static rl_caller *begin_poller(void) {
  rl_client_enter(client);
  rl_caller *poller = rl_caller_begin(client, NULL);
  client->callers.poller = poller;
  rl_client_leave(client);
  return poller;
}

static void end_poller(rl_caller *poller) {
  rl_client_enter(client);
  rl_caller_end(client, poller);
  rl_client_leave(client);
}

typedef struct sleeper {
  pthread_t thread;
  bool looks;                   /* after each turn */
  redlock_duration patience_us; /* 0: 20 s */
  rl_caller *caller;
  redlock_duration slept_us;
  bool turned; /* It took a turn. */
} sleeper;

static void *follow(void *argument) {
  sleeper *self = argument;
  redlock_time began_us = redlock_now();
  rl_client_enter(client);
  self->caller = rl_caller_begin(client, NULL);
  assert_true(self->caller->each_turn);
  client->callers.turn_checkers -= !self->looks;
  self->caller->each_turn = self->looks;
  redlock_duration patience_us = self->patience_us != 0 ? self->patience_us : 20 * SECONDS;
  (void)rl_caller_wait(client, self->caller, rl_time_add(began_us, patience_us), NULL);
  self->slept_us = redlock_now() - began_us;
  self->turned = client->callers.turned;
  assert_false(self->caller->sleeps);
  rl_caller_end(client, self->caller);
  rl_client_leave(client);
  return NULL;
}

/*
 * Enters and leaves, after a turn if |turns|. Returns true if the sleeper sleeps and is not woken.
 */
static bool sleeps_on(sleeper *self, bool turns) {
  rl_client_enter(client);
  if (turns) {
    assert_error(rl_turn_process(client, NULL, 0), REDLOCK_OK);
  }
  rl_client_leave(client);
  rl_client_enter(client);
  bool sleeps = self->caller != NULL && self->caller->sleeps && !self->caller->woken;
  rl_client_leave(client);
  return sleeps;
}

/* Starts its thread, and waits until it sleeps. */
static void fall_asleep(sleeper *self) {
  assert_int_equal(pthread_create(&self->thread, NULL, follow, self), 0);
  eventually(sleeps_on(self, false));
}

static void wake(sleeper *self) {
  assert_int_equal(pthread_join(self->thread, NULL), 0);
  assert_true(self->slept_us < 10 * SECONDS);
}

TEST(sleeper_is_woken_after_a_turn_and_by_a_wakeup) {
  for (unsigned looks = 0; looks < 2; looks++) {
    sleeper one = {.looks = looks == 1};
    rl_caller *poller = begin_poller();
    fall_asleep(&one);
    assert_true(sleeps_on(&one, true) == (looks == 0));
    if (looks == 0) {
      assert_true(sleeps_on(&one, false));
      redlock_client_wakeup(client);
      assert_false(sleeps_on(&one, false));
    }
    wake(&one);
    assert_false(client->callers.turned);
    end_poller(poller);
  }
}

/* They fall asleep in order, and wake in any order. */
TEST(five_woken_sleepers_leave_no_state) {
  sleeper five[5];
  rl_caller *poller = begin_poller();
  for (unsigned i = 0; i < 5; i++) {
    five[i] = (sleeper){.looks = i == 2};
    fall_asleep(&five[i]);
    assert_ptr_equal(client->callers.asleep.previous, five[i].caller);
  }
  assert_ptr_equal(client->callers.asleep.next, five[0].caller);
  assert_ptr_equal(five[0].caller->list.next, five[1].caller);
  assert_ptr_equal(five[4].caller->list.previous, five[3].caller);
  assert_false(sleeps_on(&five[2], true));
  wake(&five[2]);
  assert_ptr_equal(five[1].caller->list.next, five[3].caller);
  assert_ptr_equal(five[3].caller->list.previous, five[1].caller);
  assert_int_equal(client->callers.arriving, 0);
  redlock_client_wakeup(client);
  pass_through();
  for (unsigned i = 0; i < 5; i++) {
    if (i != 2) {
      wake(&five[i]);
    }
    assert_false(five[i].turned);
  }
  assert_null(rl_callers_first(&client->callers.asleep));
  assert_int_equal(client->callers.arriving, 0);
  end_poller(poller);
}

/* It polls for everything. */
static void let_it_poll(void) {
  unsigned changes = 0;
  for (unsigned i = 0; i < client->core.node_count; i++) {
    changes += client->sockets[i].changes;
  }
  client->callers.polling = true;
  client->callers.event_is_set = false;
  client->callers.wants = (rl_callers_wants){changes, UINT32_MAX, 0, 0};
}

TEST(poller_is_woken_after_a_turn_only_if_it_watches) {
  rl_caller *poller = begin_poller();
  for (unsigned i = 0; i < 8; i++) {
    bool polls = (i & 1) != 0, asked = (i & 2) != 0, turned = (i & 4) != 0;
    let_it_poll();
    client->callers.polling = polls;
    client->callers.turned = turned;
    poller->each_turn = asked;
    pass_through();
    assert_true(client->callers.event_is_set == (polls && asked && turned));
  }
  client->callers.polling = false;
  end_poller(poller);
}

/* Another thread has read the last replies. */
TEST(poller_is_woken_when_its_operation_has_ended) {
  redlock_lock *lock = lock_without_server();
  assert_error(rl_handle_prepare(lock, &(rl_request){.operation = RL_OPERATION_ACQUIRE}),
               REDLOCK_OK);
  client->callers.poller = rl_caller_of(lock);
  let_it_poll();
  pass_through();
  assert_false(client->callers.event_is_set);
  redlock_lock_cancel(lock);
  assert_true(client->callers.event_is_set);
  client->callers.polling = false;
  rl_handle_end(lock, REDLOCK_OK);
  redlock_lock_free(lock);
}

static void ignore_losses(redlock_client *of, void *data) {
  (void)of;
  (void)data;
}

TEST(loss_pokes_only_a_leading_watchdog) {
  rl_caller *poller = begin_poller();
  client->watchdog.on_lost = ignore_losses;
  for (unsigned i = 0; i < 4; i++) {
    bool watchdog_polls = (i & 1) != 0, lost = (i & 2) != 0;
    let_it_poll();
    client->callers.poller = watchdog_polls ? &client->watchdog.self : poller;
    client->watchdog.reported_count = client->core.losses->count - lost;
    pass_through();
    assert_true(client->callers.event_is_set == (watchdog_polls && lost));
  }
  client->callers.poller = poller;
  client->callers.polling = false;
  end_poller(poller);
}

TEST(last_arriving_thread_sends_for_all) {
  redlock_lock *lock = lock_without_server();
  for (unsigned in_time = 0; in_time < 2; in_time++) {
    rl_caller *poller = begin_poller();
    assert_error(redlock_lock_acquire_start(lock, NULL), REDLOCK_OK);
    assert_true(rl_core_wants_send(&client->core));
    pass_through();
    assert_true(rl_core_wants_send(&client->core)); /* The program's loop sends it. */
    client->callers.arriving = 1;
    client->callers.sender = poller;
    rl_client_enter(client); /* rl_handle_begin(), with more time than a slow machine needs */
    assert_error(rl_turn_start(client, redlock_now()), REDLOCK_OK);
    client->callers.send_us = rl_time_add(redlock_now(), 600 * SECONDS);
    rl_client_leave(client);
    assert_true(client->callers.unsent_operations);
    assert_true(rl_core_wants_send(&client->core));
    client->callers.sender = NULL;
    client->callers.send_us = rl_time_add(redlock_now(), MS);
    if (in_time == 1) {
      client->callers.arriving = 0;
      pass_through();
    } else { /* The arriving thread is missing. */
      sleeper one = {0};
      (void)follow(&one);
      assert_true(one.slept_us < 10 * SECONDS);
      client->callers.arriving = 0;
    }
    assert_false(rl_core_wants_send(&client->core));
    assert_false(client->callers.unsent_operations);
    assert_false(client->callers.unsent);
    redlock_lock_cancel(lock);
    end_poller(poller);
  }
  redlock_lock_free(lock);
}

TEST(sleeper_takes_a_turn_after_its_time) {
  rl_caller *poller = begin_poller();
  sleeper one = {.patience_us = 5 * MS};
  (void)follow(&one);
  assert_true(one.turned);
  end_poller(poller);
}

TEST(spurious_post_does_not_wake_a_sleeper) {
  rl_caller *poller = begin_poller();
  sleeper one = {.patience_us = REDLOCK_NEVER};
  wake_ups_by_nobody = 3;
  fall_asleep(&one);
  assert_int_equal(wake_ups_by_nobody, 0);
  redlock_client_wakeup(client);
  pass_through();
  wake(&one);
  assert_false(one.turned);
  end_poller(poller);
}

/* The woken thread may give up the last reference once the mutex is free. */
TEST(last_reference_wakes_threads_before_it_unlocks) {
  rl_caller *poller = begin_poller();
  sleeper one = {0};
  (void)redlock_client_ref(client);
  fall_asleep(&one);
  redlock_client_wakeup(client);
  guarded = client;
  redlock_client_free(client);
  guarded = NULL;
  assert_int_equal(posts, 1);
  assert_int_equal(guarded_posts, 1);
  wake(&one);
  end_poller(poller);
}

/* Eight posted threads are missing, and nothing else happens. */
TEST(poller_polls_briefly_while_threads_are_unposted) {
  rl_caller *poller = begin_poller();
  rl_caller next = {.sleeps = true, .woken = true, .unposted = true};
  assert_true(rl_sleeper_init(&next.sleeper));
  rl_client_enter(client);
  assert_true(rl_eventfd_open(&client->callers.event));
  rl_list_append(&client->callers.unposted, &next.list);
  client->callers.posted = 8;
  redlock_time began_us = redlock_now();
  assert_error(rl_caller_poll(client, poller, began_us + 20 * SECONDS, NULL), REDLOCK_OK);
  assert_true(redlock_now() - began_us < 10 * SECONDS);
  rl_client_leave(client);
  assert_false(next.unposted);
  assert_true(rl_sleeper_wait(&next.sleeper, redlock_now()));
  rl_sleeper_free(&next.sleeper);
  end_poller(poller);
}

/* Woken threads are missing. */
TEST(bytes_wait_one_millisecond_for_slow_threads) {
  rl_caller *poller = begin_poller();
  sleeper one = {0};
  client->callers.arriving = 1;
  rl_callers_leave_unsent(&client->callers);
  (void)follow(&one);
  assert_true(one.slept_us >= MS / 2 && one.slept_us < 10 * SECONDS);
  assert_false(client->callers.unsent);
  assert_null(client->callers.sender);
  assert_false(one.turned); /* Its own time has not passed. */
  client->callers.arriving = 0;
  end_poller(poller);
}

/* The woken sender may be as slow as other threads. */
TEST(thread_that_wakes_the_sender_sends_instead) {
  sleeper two[2];
  rl_caller *poller = begin_poller();
  time_stands_still = true;
  for (unsigned i = 0; i < 2; i++) {
    two[i] = (sleeper){0};
    fall_asleep(&two[i]);
  }
  rl_client_enter(client);
  client->callers.arriving = 1;
  client->callers.unsent = true;
  client->callers.send_us = REDLOCK_NEVER;
  client->callers.sender = two[1].caller;
  rl_client_leave(client);
  assert_true(client->callers.unsent);
  redlock_client_wakeup(client);
  pass_through();
  assert_false(client->callers.unsent);
  assert_null(client->callers.sender);
  for (unsigned i = 0; i < 2; i++) {
    wake(&two[i]);
    assert_false(two[i].turned);
  }
  time_stands_still = false;
  client->callers.arriving = 0;
  end_poller(poller);
}

/* The watchdog polls. */
TEST(waiting_thread_takes_the_lead_from_the_watchdog) {
  assert_true(rl_eventfd_open(&client->watchdog.event));
  client->callers.poller = &client->watchdog.self;
  client->callers.polling = true;
  assert_error(wait_until(REDLOCK_NEVER), REDLOCK_E_SYSTEM); /* Nothing could end it. */
  assert_null(client->callers.poller);
  assert_false(client->callers.polling);
  struct pollfd one = {rl_eventfd_to_poll(&client->watchdog.event), POLLIN, 0};
  assert_int_equal(poll(&one, 1, 0), 1);
  rl_eventfd_close(&client->watchdog.event);
}

/* As in a program that has closed its standard input. */
TEST(descriptor_0_is_an_event_as_well) {
  int input = fcntl(0, F_DUPFD_CLOEXEC, 3);
  (void)close(0);
  assert_error(wait_until(redlock_now() + 1), REDLOCK_OK);
  assert_int_equal(rl_eventfd_to_poll(&client->callers.event), 0);
  assert_error(wait_until(redlock_now() + 1), REDLOCK_OK);
  assert_int_equal(rl_eventfd_to_poll(&client->callers.event), 0); /* The same. */
  free_client();
  assert_int_equal(fcntl(0, F_GETFD), -1);
  if (input >= 0) {
    assert_int_equal(dup2(input, 0), 0);
    (void)close(input);
  }
}

TEST(wakeup_in_a_child_wakes_no_thread_of_the_parent) {
  assert_error(wait_until(redlock_now() + 1), REDLOCK_OK);
  redlock_client_wakeup(NULL);
  pid_t child = fork();
  if (child == 0) {
    redlock_client_wakeup(client);
    _exit(0);
  }
  assert_int_equal(exit_status(child), 0);
  struct pollfd one = {rl_eventfd_to_poll(&client->callers.event), POLLIN, 0};
  assert_int_equal(poll(&one, 1, 0), 0);
  redlock_client_wakeup(client);
  assert_int_equal(poll(&one, 1, 0), 1);
}

static atomic_bool awake;

static void *wake_up_again_and_again(void *argument) {
  (void)argument;
  while (!atomic_load(&awake)) {
    redlock_client_wakeup(client);
    (void)poll(NULL, 0, 1);
  }
  return NULL;
}

static bool all_have_accepted(loopback *farm) {
  unsigned count = 0;
  loopback_lock(farm);
  for (unsigned i = 0; i < farm->count; i++) {
    count += farm->nodes[i].connections[0].fd >= 0;
  }
  loopback_unlock(farm);
  return count == farm->count;
}

/* No descriptor is left when the thread begins to wait. */
TEST(wakeup_ends_a_call_without_an_event) {
  struct rlimit limit, none;
  pthread_t thread;
  redlock_lock *lock;
  redlock_options options = {.wait_us = 20 * SECONDS}; /* The thread may be late. */
  loopback *farm = deaf_farm(&lock, &options);
  assert_error(redlock_lock_acquire_start(lock, NULL), REDLOCK_OK);
  assert_error(redlock_client_process(client, NULL, 0), REDLOCK_OK); /* It connects. */
  eventually(all_have_accepted(farm));
  redlock_lock_cancel(lock);
  int lowest = fcntl(0, F_DUPFD_CLOEXEC, 0);
  assert_true(lowest > 4 && close(lowest) == 0);
  assert_int_equal(getrlimit(RLIMIT_NOFILE, &limit), 0);
  none = limit;
  none.rlim_cur = (rlim_t)lowest;
  assert_int_equal(setrlimit(RLIMIT_NOFILE, &none), 0);
  assert_int_equal(pthread_create(&thread, NULL, wake_up_again_and_again, NULL), 0);
  redlock_time began_us = redlock_now();
  assert_error(redlock_lock_acquire(lock, NULL, NULL), REDLOCK_E_CANCELLED);
  assert_true(redlock_now() - began_us < 8 * SECONDS);
  assert_int_equal(rl_eventfd_to_poll(&client->callers.event), -1);
  atomic_store(&awake, true);
  assert_int_equal(pthread_join(thread, NULL), 0);
  assert_int_equal(setrlimit(RLIMIT_NOFILE, &limit), 0);
  end_farm(lock, farm);
}

int main(void) {
  return tests_run(&(tests_fixture){.before = begin, .after = end});
}
