/*
 * A caller: a thread in a blocking call on a client, and what it does for the other callers.
 *
 * SPDX-License-Identifier: MIT
 *
 * One caller, the poller, polls for all callers, without the client's mutex. Each other caller
 * sleeps on its own sleeper until a thread wakes it:
 *
 *   state      in list      meaning
 *   asleep     |asleep|     no thread has woken the caller
 *   unposted   |unposted|   a thread with the mutex has woken it; its sleeper is not set yet
 *   posted     none         its sleeper is set, and the caller is on its way to the mutex
 *   running    none         it has locked the mutex (rl_caller_arrive())
 *   polling    none         it polls as the poller, without the mutex
 *
 * Three more words:
 *
 *   arriving   unposted or posted
 *   turn       one pass of the core: it reads the input, and does what is due (rl_turn_process())
 *   sender     the caller that wakes after 1 ms in order to send for all (THR-7)
 *
 *   THR-1. A caller that begins an operation sends its bytes itself, with the mutex
 *          (rl_turn_start()), or leaves them to the last arriving caller (THR-7).
 *   THR-2. Then it waits (rl_caller_wait()). If there is no poller, it becomes the poller: it notes
 *          what it will poll for, unlocks the mutex, polls, locks the mutex again, and takes a
 *          turn. Otherwise it sleeps.
 *   THR-3. A thread that unlocks the mutex wakes each caller whose operation has ended. After a
 *          turn it also wakes the callers that check after each turn (in close(), and while a call
 *          waits for late nodes in the grace period). To wake the poller, it sets the poller's
 *          event.
 *   THR-4. If there is no poller, a thread that unlocks the mutex wakes a sleeping caller to poll.
 *          So another caller polls when the operation of the poller has ended.
 *   THR-5. A thread that unlocks the mutex sets the poller's event if the poll lacks something that
 *          is now needed: a descriptor, room to send, or an earlier time.
 *   THR-6. At most eight callers are posted at a time. When some of them have locked the mutex, the
 *          next thread that unlocks it posts as many more. If all were posted together, they would
 *          queue for the mutex (64 threads: 2.9 context switches for each acquire and release
 *          instead of 2.1). Signal handlers may delay the eight. So while callers are unposted, the
 *          poller polls for at most 1 ms. Then the poller, or a sleeping caller after its time-out,
 *          posts the next ones. Three kinds of callers are posted immediately: one that is woken to
 *          poll, all after redlock_client_wakeup(), and all if one of them checks after each turn.
 *   THR-7. While callers are arriving, new operations and bytes wait, and the last arriving caller
 *          sends for all. One turn often ends many operations, and their callers begin the next
 *          ones. If each caller sent immediately, the nodes would get single commands instead of
 *          many in one packet, at ten times the cost (64 threads, five nodes). The wait is limited
 *          to 1 ms, because the callers may be slow: the sender, which is the poller or a sleeping
 *          caller, wakes then and sends. The poller does not wait again for callers that have not
 *          arrived in time: |missed| counts them. A thread that unlocks the mutex sends immediately
 *            - if the 1 ms has passed,
 *            - if there is no sender,
 *            - if it has just woken the sender.
 *          A caller that has sent checks its operation again before it sleeps or polls.
 *
 * No wake-up is lost. The reasons to wake change only under the mutex, and each thread that unlocks
 * it does THR-3 to THR-6. So whenever the mutex is free:
 *   - No caller is asleep whose operation has ended. If it is unposted, one of the eight posted
 *     callers or the poller will post it.
 *   - If a caller is asleep, there is a poller: it polls, or it is arriving.
 *   - For a poller that polls one of three things is true:
 *       - it polls for all that is needed;
 *       - its event is set, perhaps since before the poll began; it stays set until the poller has
 *         locked the mutex;
 *       - callers are arriving, and the last of them does THR-5.
 * A sleeping caller nevertheless has a time-out, a little after its operation is due, because a
 * signal handler may delay the poller, or, without a poller, all eight posted callers. After its
 * time-out the caller takes a turn itself, without polling.
 */
#include "client/rl_caller.h"

#include "client/rl_client_enter.h"
#include "client/rl_poll.h"
#include "client/rl_turn.h"
#include "client/rl_watchdog_due.h"
#include "lock/rl_round.h"
#include "os/rl_clock.h"

#define RL_CALLER_POSTED_MAX 8 /* THR-6 */
#define RL_CALLER_POSTS_MAX 64 /* callers posted after an unlock of the mutex */
/* How long after its operation is due a sleeping caller takes a turn itself. */
#define RL_CALLER_SLACK_US (10 * REDLOCK_MILLISECONDS)
/* Longest poll if the event has no descriptor. */
#define RL_CALLER_BLIND_US (10 * REDLOCK_MILLISECONDS)
/*
 * Longest poll without the timer. After a suspend such a poll ends this late. Must be at least the
 * default node_timeout_us.
 */
#define RL_CALLER_SHORT_US (100 * REDLOCK_MILLISECONDS)

/* ------------------------------------------------------------------------------------ callers */

rl_caller *rl_caller_of(const redlock_lock *lock) {
  unsigned number = rl_lock_of(lock)->caller_number;
  return number == 0 ? NULL : rl_client_of(lock)->callers.all[number - 1];
}

rl_caller *rl_caller_begin(redlock_client *client, redlock_lock *lock) {
  rl_callers *callers = &client->callers;
  rl_caller *self = rl_callers_take_spare(callers);
  if (self == NULL) {
    return NULL;
  }
  self->lock = lock;
  self->event = &callers->event;
  self->each_turn = false;
  self->in_use = true;
  self->wakeups = atomic_load(&callers->wakeups);
  if (lock != NULL) {
    rl_lock_of(lock)->caller_number = self->number & RL_LOCK_CALLERS_MAX;
  } else {
    rl_caller_check_each_turn(client, self);
  }
  return self;
}

void rl_caller_check_each_turn(redlock_client *client, rl_caller *self) {
  client->callers.turn_checkers += !self->each_turn;
  self->each_turn = true;
}

/*
 * Returns when the operation of a lock is due, or REDLOCK_NEVER. While operations are unsent, this
 * one may be among them and have no timer: then it is due when nodes that are asked now should have
 * answered.
 */
static redlock_time rl_caller_due(const redlock_client *client, const rl_lock *lock) {
  redlock_time due_us = lock->timer.index == RL_TIMERS_NONE ? REDLOCK_NEVER : lock->timer.due_us;
  return client->callers.unsent_operations
             ? rl_time_min(due_us, rl_time_add(redlock_now(), rl_round_patience(lock)))
             : due_us;
}

void rl_caller_end(redlock_client *client, rl_caller *self) {
  if (!self->in_use) {
    return; /* This is a child that was forked during the call. */
  }
  if (self->lock != NULL) {
    rl_lock_of(self->lock)->caller_number = 0;
  }
  rl_caller_yield_poll(client, self);
  client->callers.turn_checkers -= self->each_turn;
  self->in_use = false;
  rl_list_append(&client->callers.spare, &self->list);
}

void rl_caller_yield_poll(redlock_client *client, rl_caller *self) {
  if (client->callers.poller == self) {
    client->callers.poller = NULL;
  }
}

/* ------------------------------------------------------------------------------------ sending */

/* Returns the first unsent acquire with a caller, or NULL. */
static rl_lock *rl_caller_first_unsent(const redlock_client *client) {
  rl_lock *lock = rl_lock_queue_first(&client->core.pacer.acquires);
  while (lock != NULL && lock->caller_number == 0) {
    lock = rl_lock_queue_next(&client->core.pacer.acquires, lock);
  }
  return lock;
}

/*
 * Ends the acquires for which there is no entropy. Their own callers get the error, not the caller
 * that sends for them. Returns true if there were such acquires.
 */
static bool rl_caller_end_without_entropy(redlock_client *client) {
  bool refused = false;
  for (rl_lock *lock; (lock = rl_caller_first_unsent(client)) != NULL; refused = true) {
    rl_lock_cancel(lock, redlock_now(), REDLOCK_E_SYSTEM);
  }
  return refused;
}

static void rl_caller_send_now(redlock_client *client) {
  if (client->callers.unsent_operations && rl_turn_send_due(client, redlock_now()) != REDLOCK_OK) {
    (void)rl_caller_end_without_entropy(client);
  }
  client->callers.unsent = false;
  rl_turn_flush(client);
  rl_poll_sync(client);
}

void rl_caller_send(redlock_client *client) {
  if (client->callers.arriving > 0) {
    rl_callers_leave_unsent(&client->callers);
  } else {
    rl_caller_send_now(client);
  }
}

/* ------------------------------------------------------------------------------------- waking */

typedef struct rl_caller_posts {
  unsigned count;
  rl_sleeper *sleepers[RL_CALLER_POSTS_MAX];
} rl_caller_posts;

/* Ends the poll of the poller. There must be a poller. */
static void rl_caller_end_poll(rl_callers *callers) {
  if (callers->polling && !callers->event_is_set) {
    callers->event_is_set = true;
    rl_eventfd_set(callers->poller->event);
  }
}

static void rl_caller_wake(rl_callers *callers, rl_caller *caller) {
  if (caller == callers->poller) {
    rl_caller_end_poll(callers);
  }
  if (!caller->sleeps || caller->woken) {
    return; /* It runs, and checks its operation itself. */
  }
  caller->woken = caller->unposted = true;
  rl_list_remove(&caller->list);
  rl_list_append(&callers->unposted, &caller->list);
  callers->arriving++;
  if (caller == callers->sender) {
    callers->sender = NULL; /* It is an arriving caller now. */
  }
}

static void rl_caller_add_post(rl_callers *callers, rl_caller *caller, rl_caller_posts *posts) {
  caller->unposted = false;
  rl_list_remove(&caller->list);
  callers->posted++;
  if (posts->count == RL_CALLER_POSTS_MAX) {
    rl_sleeper_post(&caller->sleeper);
  } else {
    posts->sleepers[posts->count++] = &caller->sleeper;
  }
}

/* THR-6. Collects the sleepers to set, for rl_caller_set_sleepers(). */
static void rl_caller_choose_posts(rl_callers *callers, rl_caller_posts *posts) {
  posts->count = 0;
  if (callers->poller != NULL && callers->poller->unposted) {
    rl_caller_add_post(callers, callers->poller, posts);
  }
  rl_caller *caller;
  while ((caller = rl_callers_first(&callers->unposted)) != NULL &&
         (callers->posted < RL_CALLER_POSTED_MAX || callers->post_all)) {
    rl_caller_add_post(callers, caller, posts);
  }
  callers->post_all = false;
}

/* THR-3. Wakes the callers that the changes under the mutex concern. */
static void rl_caller_wake_concerned(redlock_client *client) {
  rl_callers *callers = &client->callers;
  while (rl_lock_queue_first(&client->core.ended_awaited) != NULL) {
    rl_lock *lock = rl_lock_queue_first(&client->core.ended_awaited);
    rl_caller *caller = rl_caller_of(rl_handle_of(lock));
    rl_list_remove(&lock->queue);
    if (caller != NULL) {
      rl_caller_wake(callers, caller);
    }
  }
  unsigned wakeups = atomic_load(&callers->wakeups);
  bool woken = wakeups != callers->wakeups_seen;
  bool turn_checked = callers->turned && callers->turn_checkers > 0;
  if (woken || turn_checked) {
    RL_LIST_EACH(&callers->asleep, caller, rl_caller, list) {
      if (woken || caller->each_turn) {
        rl_caller_wake(callers, caller);
        callers->post_all = true;
      }
    }
  }
  if (callers->turned && callers->poller != NULL && callers->poller->each_turn) {
    rl_caller_end_poll(callers);
  }
  callers->wakeups_seen = wakeups;
  callers->turned = false;
}

/* THR-4. Wakes the caller that fell asleep last to poll: its operation is likely to end last. */
static void rl_caller_appoint_poller(rl_callers *callers) {
  if (rl_callers_first(&callers->asleep) != NULL) {
    callers->poller = RL_OWNER(callers->asleep.previous, rl_caller, list);
    rl_caller_wake(callers, callers->poller);
  }
}

/* THR-5. Returns true if the poll lacks something that is now needed. */
static bool rl_caller_poll_lacks_something(const redlock_client *client) {
  const rl_callers_wants *polled = &client->callers.wants;
  rl_callers_wants wants = rl_poll_wants(client, NULL, 0);
  return wants.changes != polled->changes || (wants.writable & ~polled->writable) != 0 ||
         wants.deadline_us < polled->deadline_us ||
         (rl_callers_first(&client->callers.unposted) != NULL &&
          !client->callers.polls_briefly) || /* THR-6 */
         (client->callers.poller == &client->watchdog.self &&
          rl_watchdog_has_news(client)); /* WDOG-5 */
}

/*
 * Does THR-3 to THR-7 and WDOG-1 before the mutex is unlocked. Sends now what was left to arriving
 * callers, unless a sender will send it in time.
 */
static void rl_caller_before_unlock(redlock_client *client, rl_caller_posts *posts) {
  rl_callers *callers = &client->callers;
  if (callers->unsent && (callers->arriving == 0 || redlock_now() >= callers->send_us)) {
    rl_caller_send_now(client); /* This is the last arriving caller, or the 1 ms has passed. */
  }
  rl_caller_wake_concerned(client);
  if (callers->poller == NULL) {
    rl_caller_appoint_poller(callers);
  }
  if (callers->unsent && callers->sender == NULL) { /* Perhaps the sender was woken just now. */
    rl_caller_send_now(client);
    rl_caller_wake_concerned(client);
  }
  rl_caller_choose_posts(callers, posts);
  if (callers->poller != NULL && callers->polling && !callers->unsent &&
      rl_caller_poll_lacks_something(client)) {
    rl_caller_end_poll(callers);
  }
  if (rl_watchdog_is_late(client)) {
    client->watchdog.until_us = 0;
    rl_sleeper_post(&client->watchdog.self.sleeper);
  }
}

static void rl_caller_set_sleepers(const rl_caller_posts *posts) {
  for (unsigned i = 0; i < posts->count; i++) {
    rl_sleeper_post(posts->sleepers[i]);
  }
}

void rl_caller_wake_threads(redlock_client *client, bool unlock) {
  rl_caller_posts posts;
  rl_caller_before_unlock(client, &posts);
  if (unlock) {
    rl_mutex_unlock(&client->mutex);
  }
  rl_caller_set_sleepers(&posts);
}

/* ------------------------------------------------------------------------------------ waiting */

/* Takes a turn, and wakes the program's loop if operations of that loop have ended. */
static int rl_caller_take_turn(redlock_client *client, const struct pollfd *fds, size_t count) {
  int result = rl_turn_process(client, fds, count);
  if (result != REDLOCK_OK && rl_caller_end_without_entropy(client)) {
    result = REDLOCK_OK;
  }
  rl_poll_wake(client);
  return result;
}

/*
 * poll() does not count suspend; the timer does, so a long poll also waits for it. Without a timer
 * a long poll ends early. A short poll needs no timer, which saves a system call; the time of the
 * last turn tells without a reading of the clock. Returns the timer's descriptor, or -1.
 */
static int rl_caller_set_timer(redlock_client *client, redlock_time *until_us) {
  rl_callers *callers = &client->callers;
  if (*until_us == REDLOCK_NEVER ||
      rl_time_sub(*until_us, client->core.now_us) <= RL_CALLER_SHORT_US) {
    return -1;
  }
  if (!rl_timerfd_open(&callers->timer)) {
    *until_us = rl_time_add(redlock_now(), rl_clock_slice(*until_us));
    return -1;
  }
  rl_timerfd_set(&callers->timer, *until_us);
  return callers->timer.fd;
}

/*
 * Unlocks the mutex, polls as the poller, and locks the mutex again. |fds| has room for one more
 * descriptor.
 */
static int rl_caller_poll_unlocked(redlock_client *client, struct pollfd *fds, size_t count,
                                   redlock_time until_us) {
  rl_callers *callers = &client->callers;
  rl_caller_posts posts;
  rl_caller_before_unlock(client, &posts);
  callers->polls_briefly = rl_callers_first(&callers->unposted) != NULL;
  if (callers->polls_briefly) {
    until_us = rl_time_min(until_us, rl_time_add(redlock_now(), RL_CALLERS_UNSENT_US));
  }
  fds[count] = (struct pollfd){rl_caller_set_timer(client, &until_us), POLLIN, 0};
  count += fds[count].fd >= 0;
  callers->polling = true;
  callers->event_is_set = false;
  rl_mutex_unlock(&client->mutex);
  rl_caller_set_sleepers(&posts);
  int ready = rl_poll_until(fds, count, until_us);
  rl_client_enter(client);
  return ready;
}

int rl_caller_poll(redlock_client *client, rl_caller *self, redlock_time until_us,
                   bool *interrupted) {
  rl_callers *callers = &client->callers;
  struct pollfd fds[REDLOCK_NODES_MAX + 2];
  bool defers =
      callers->unsent && callers->arriving > callers->missed && redlock_now() < callers->send_us;
  if (callers->unsent && !defers) {
    bool sends = callers->unsent_operations;
    rl_caller_send_now(client);
    if (sends) {
      return REDLOCK_OK; /* The caller's operation may have ended. */
    }
  }
  callers->wants = rl_poll_wants(client, fds, REDLOCK_NODES_MAX);
  size_t count = callers->wants.count;
  if (defers) { /* The last arriving caller does what is due now. */
    callers->sender = callers->sender == NULL ? self : callers->sender;
    callers->wants.deadline_us = 0;
    until_us = rl_time_min(until_us, callers->send_us);
  } else {
    until_us = rl_time_min(until_us, callers->wants.deadline_us);
  }
  if (until_us == REDLOCK_NEVER && count == 0 && self != &client->watchdog.self) {
    return REDLOCK_E_SYSTEM; /* Nothing could end this wait. */
  }
  fds[count] = (struct pollfd){rl_eventfd_to_poll(self->event), POLLIN, 0};
  if (fds[count].fd < 0) {
    until_us = rl_time_min(until_us, rl_time_add(redlock_now(), RL_CALLER_BLIND_US));
  }
  callers->poller = self;
  int ready = rl_caller_poll_unlocked(client, fds, count + 1, until_us);
  if (ready > 0 && fds[count].revents != 0) {
    rl_eventfd_clear(self->event);
  }
  if (callers->sender == self) {
    callers->sender = NULL;
  }
  if (callers->poller != self) {
    return REDLOCK_OK; /* Another caller relieved the watchdog; or this is a forked child. */
  }
  callers->polling = callers->polls_briefly = false;
  callers->posted = 0; /* THR-6. Those that have not locked the mutex meanwhile may be stuck. */
  if (interrupted != NULL) {
    *interrupted = ready < 0;
  }
  if (callers->unsent && redlock_now() >= callers->send_us) {
    callers->missed = callers->arriving;
    rl_caller_send_now(client);
  }
  return rl_caller_take_turn(client, fds, ready > 0 ? count : 0);
}

static void rl_caller_fall_asleep(rl_callers *callers, rl_caller *self) {
  self->sleeps = true;
  self->woken = false;
  rl_list_append(&callers->asleep, &self->list);
}

/* |self| has locked the mutex after its sleep, woken or after its time-out. */
static void rl_caller_arrive(rl_callers *callers, rl_caller *self) {
  if (!self->in_use) {
    return; /* This is a child that was forked during the sleep. */
  }
  rl_list_remove(&self->list);
  if (self->woken && !self->unposted) {
    callers->posted -= callers->posted > 0;
  }
  self->unposted = false; /* An unposted caller that is here has timed out: it needs no post. */
  callers->arriving -= self->woken;
  callers->missed = callers->missed < callers->arriving ? callers->missed : callers->arriving;
  self->sleeps = false;
}

/*
 * Unlocks the mutex, sets the sleepers in |posts|, perhaps that of |self|, sleeps, and locks the
 * mutex again. Returns false if no thread has woken |self| until |until_us|.
 */
static bool rl_caller_sleep_unlocked(redlock_client *client, rl_caller *self, redlock_time until_us,
                                     rl_caller_posts *posts) {
  bool in_time;
  do {
    rl_mutex_unlock(&client->mutex);
    rl_caller_set_sleepers(posts);
    posts->count = 0;
    in_time = rl_sleeper_wait(&self->sleeper, until_us);
    rl_mutex_lock(&client->mutex);
  } while (!self->woken && in_time);
  return self->woken;
}

static int rl_caller_sleep(redlock_client *client, rl_caller *self, redlock_time until_us) {
  rl_callers *callers = &client->callers;
  bool sends = callers->unsent && callers->arriving > 0 && callers->sender == NULL;
  if (sends) {
    callers->sender = self;
  }
  rl_caller_posts posts;
  rl_caller_fall_asleep(callers, self); /* First: rl_caller_before_unlock() may wake it. */
  rl_caller_before_unlock(client, &posts);
  if (self->lock != NULL) {
    redlock_time due_us = rl_caller_due(client, rl_lock_of(self->lock));
    until_us = rl_time_min(until_us, rl_time_add(due_us, RL_CALLER_SLACK_US));
  }
  redlock_time sends_us = sends ? callers->send_us : REDLOCK_NEVER;
  bool woken = rl_caller_sleep_unlocked(client, self, rl_time_min(until_us, sends_us), &posts);
  rl_caller_arrive(callers, self);
  if (!woken) {
    callers->posted = 0; /* Posted callers may be stuck: the next ones are posted (THR-6). */
  }
  if (callers->sender == self) {
    callers->sender = NULL;
    if (callers->unsent) {
      rl_caller_send_now(client);
    }
  }
  return woken || sends_us < until_us ? REDLOCK_OK : rl_caller_take_turn(client, NULL, 0);
}

/* WDOG-3. If the watchdog is the poller, ends its poll: a caller polls from now on. */
static void rl_caller_relieve_watchdog(redlock_client *client) {
  rl_callers *callers = &client->callers;
  if (callers->poller == &client->watchdog.self) {
    rl_eventfd_set(&client->watchdog.event);
    callers->poller = NULL;
    callers->polling = callers->polls_briefly = false;
  }
}

int rl_caller_wait(redlock_client *client, rl_caller *self, redlock_time until_us,
                   bool *interrupted) {
  rl_callers *callers = &client->callers;
  if (interrupted != NULL) {
    *interrupted = false;
  }
  if (rl_eventfd_to_poll(&callers->event) < 0) {
    (void)rl_eventfd_open(&callers->event); /* Without the event rl_caller_poll() polls briefly. */
  }
  if (atomic_load(&callers->wakeups) != self->wakeups) {
    return REDLOCK_E_CANCELLED;
  }
  rl_caller_relieve_watchdog(client);
  bool polls = callers->poller == NULL || callers->poller == self;
  if (callers->unsent_operations && (callers->arriving == 0 || redlock_now() >= callers->send_us)) {
    rl_caller_send_now(client);
    return REDLOCK_OK; /* The caller's operation may have ended. */
  }
  if (polls) {
    return rl_caller_poll(client, self, until_us, interrupted);
  }
  return rl_caller_sleep(client, self, until_us);
}

/*
 * This function raises the count, then sets the event. rl_caller_wait() opens the event, then reads
 * the count. So the count is seen, or the event ends the poll.
 */
void redlock_client_wakeup(redlock_client *client) {
  if (client == NULL || rl_fork_happened(&client->mark)) {
    return; /* A child is in no call, and the event is its parent's. */
  }
  (void)atomic_fetch_add(&client->callers.wakeups, 1);
  rl_eventfd_set(&client->callers.event);
}
