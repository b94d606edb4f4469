/*
 * Threads that wait in blocking calls on one client: leader and followers.
 *
 * SPDX-License-Identifier: MIT
 *
 * One of the waiting threads, the leader, polls for all of them, without the mutex. The others, the
 * followers, sleep, each on its own semaphore. The words:
 *
 *   enter      to lock the client's mutex (rl_client_enter())
 *   turn       one pass of the core: it reads the input, and does what is due (rl_turn_process())
 *   sleeper    a follower in the list |asleep|
 *   woken      taken out of that list by a thread with the mutex
 *   posted     woken, and its semaphore is set; a thread that is woken but not posted is unposted
 *   arriving   woken, and without the mutex so far
 *   sender     the thread that wakes in order to send for all, if no arriving thread does it before
 *
 *   THR-1. A thread that begins an operation sends its bytes itself, with the mutex
 *          (rl_turn_start()), or leaves them to the last arriving thread.
 *   THR-2. Then it waits. If there is no leader, it leads: it notes what it will poll for, unlocks
 *          the mutex, polls, locks it again, and takes a turn. Otherwise it sleeps until it is
 *          woken.
 *   THR-3. A thread that unlocks the mutex wakes each thread whose operation has ended. After a
 *          turn it also wakes the threads that check after each turn (in close(), and while a call
 *          waits for late nodes in the grace period). To wake a polling leader, it sets the
 *          leader's event.
 *   THR-4. If there is no leader, a thread that unlocks the mutex wakes a sleeper to lead. This
 *          hands the lead on when the leader's own operation has ended.
 *   THR-5. A thread that unlocks the mutex sets the event of a polling leader if the poll lacks
 *          something that is now needed: a descriptor, room to send, or an earlier time.
 *   THR-6. At most eight posted threads are on their way to the mutex. When some have locked it,
 *          the next unlocking thread posts as many more. If all were posted together, they would
 *          queue for the mutex (64 threads: 2.9 context switches for each acquire and release
 *          instead of 2.1). Signal handlers may delay the eight. So while
 *          threads are unposted, the leader polls for 1 ms at most, and then posts the next eight.
 *          A thread that is woken to lead is posted immediately. All woken threads are posted
 *          immediately after redlock_client_wakeup(), or if one of them checks after each turn.
 *
 * No wake-up is lost. The reasons to wake change only under the mutex, and each thread that unlocks
 * it does THR-3 to THR-6. So whenever the mutex is free:
 *   - No sleeper has an operation that has ended. An arriving thread is posted; or it waits for its
 *     post, and eight posted threads or the leader will give it.
 *   - If a thread sleeps, there is a leader: it is woken and will lock the mutex, or it polls.
 *   - For a polling leader one of three things is true:
 *       - it polls for all that is needed;
 *       - its event is set, and stays set until the leader has locked the mutex, even if the event
 *         was set before the poll began;
 *       - threads are arriving, and the last of them does THR-5.
 * A follower nevertheless has a time-out, a little after its operation is due. A signal handler may
 * delay the leader, or, without a leader, all eight posted threads. After its time-out the follower
 * takes a turn itself, without polling.
 *
 * One turn of the leader often ends many operations, whose threads return and begin the next ones.
 * If each of them sent immediately, nodes would receive single commands instead of many in one
 * packet. That costs ten times as much (64 threads, five nodes). So operations and bytes wait while
 * threads are arriving, and the last of these threads sends for all. This wait is limited to 1 ms,
 * because the threads may be slow. One thread, the leader or a sleeper, is the sender: it wakes
 * after this 1 ms, and sends. If threads do not arrive
 * in time, the leader sends, and does not wait for the same threads again (|missed|). A thread
 * that unlocks the mutex sends immediately if there is no sender, if the sender's time has passed,
 * or if it has just woken the sender. After sending, a thread checks its operation again before it
 * sleeps or polls (rl_wait_step()).
 */
#include "client/rl_client_wait.h"

#include "client/rl_client_enter.h"
#include "client/rl_poll.h"
#include "client/rl_turn.h"
#include "client/rl_watchdog_due.h"
#include "lock/rl_round.h"
#include "os/rl_clock.h"

#define RL_WAIT_POSTED_MAX 8 /* posted threads that have not locked the mutex yet (THR-6) */
#define RL_WAIT_POSTS_MAX 64 /* threads that are posted after the mutex was unlocked */
/* How long after its operation is due a follower checks by itself. */
#define RL_WAIT_SLACK_US (10 * REDLOCK_MILLISECONDS)
/* Longest poll if the event has no descriptor. */
#define RL_WAIT_BLIND_US (10 * REDLOCK_MILLISECONDS)
/*
 * Longest poll without the timer. After a suspend such a poll ends this late. Must be at least the
 * default node_timeout_us.
 */
#define RL_WAIT_SHORT_US (100 * REDLOCK_MILLISECONDS)

/* ------------------------------------------------------------------------------------ waiters */

rl_waiter *rl_wait_of(const redlock_lock *lock) {
  unsigned number = rl_lock_of(lock)->waited;
  return number == 0 ? NULL : rl_client_of(lock)->wait.made[number - 1];
}

rl_waiter *rl_wait_begin(redlock_client *client, redlock_lock *lock) {
  rl_wait *wait = &client->wait;
  rl_waiter *self = rl_wait_take_spare(wait);
  if (self == NULL) {
    return NULL;
  }
  self->lock = lock;
  self->event = &wait->event;
  self->each_turn = false;
  self->in_use = true;
  self->wakeups = atomic_load(&wait->wakeups);
  if (lock != NULL) {
    rl_lock_of(lock)->waited = self->number & RL_LOCK_WAITED_MAX;
  } else {
    rl_wait_watch(client, self);
  }
  return self;
}

void rl_wait_watch(redlock_client *client, rl_waiter *self) {
  client->wait.watchers += !self->each_turn;
  self->each_turn = true;
}

/*
 * Returns when the operation of a lock is due, or REDLOCK_NEVER. While operations are unsent,
 * assumes that this one is sent now: it is due when its nodes' time to answer has passed.
 */
static redlock_time rl_wait_due(const redlock_client *client, const rl_lock *lock) {
  redlock_time due_us = lock->timer.index == RL_TIMERS_NONE ? REDLOCK_NEVER : lock->timer.due_us;
  return client->wait.unstarted
             ? rl_time_min(due_us, rl_time_add(redlock_now(), rl_round_patience(lock)))
             : due_us;
}

void rl_wait_end(redlock_client *client, rl_waiter *self) {
  if (!self->in_use) {
    return; /* This is a child that was forked during the call. */
  }
  if (self->lock != NULL) {
    rl_lock_of(self->lock)->waited = 0;
  }
  rl_wait_yield_lead(client, self);
  client->wait.watchers -= self->each_turn;
  self->in_use = false;
  rl_list_append(&client->wait.spare, &self->list);
}

void rl_wait_yield_lead(redlock_client *client, rl_waiter *self) {
  if (client->wait.leader == self) {
    client->wait.leader = NULL;
  }
}

/* ------------------------------------------------------------------------------------ sending */

/* Returns an unsent acquire with a waiting thread, or NULL. */
static rl_lock *rl_wait_unsent(const redlock_client *client) {
  rl_lock *lock = rl_lock_queue_first(&client->core.pacer.acquires);
  while (lock != NULL && lock->waited == 0) {
    lock = rl_lock_queue_next(&client->core.pacer.acquires, lock);
  }
  return lock;
}

/*
 * Ends the acquires for which there is no entropy. Their own threads get the error; the thread that
 * sends for them does not. Returns true if there were such acquires.
 */
static bool rl_wait_end_without_entropy(redlock_client *client) {
  bool refused = false;
  for (rl_lock *lock; (lock = rl_wait_unsent(client)) != NULL; refused = true) {
    rl_lock_cancel(lock, redlock_now(), REDLOCK_E_SYSTEM);
  }
  return refused;
}

static void rl_wait_send(redlock_client *client) {
  if (client->wait.unstarted && rl_turn_send_due(client) != REDLOCK_OK) {
    (void)rl_wait_end_without_entropy(client);
  }
  client->wait.unsent = false;
  rl_turn_flush(client);
  rl_poll_sync(client);
}

void rl_wait_flush(redlock_client *client) {
  if (client->wait.arriving > 0) {
    rl_wait_leave_unsent(&client->wait);
  } else {
    rl_wait_send(client);
  }
}

/* ------------------------------------------------------------------------------------- waking */

typedef struct rl_wait_posts {
  unsigned count;
  rl_semaphore *semaphores[RL_WAIT_POSTS_MAX];
} rl_wait_posts;

/* Ends the leader's poll. There must be a leader. */
static void rl_wait_set_event_of_leader(rl_wait *wait) {
  if (wait->polls && !wait->poked) {
    wait->poked = true;
    rl_event_set(wait->leader->event);
  }
}

static void rl_wait_wake(rl_wait *wait, rl_waiter *waiter) {
  if (waiter == wait->leader) {
    rl_wait_set_event_of_leader(wait);
  }
  if (!waiter->sleeps || waiter->woken) {
    return; /* The thread runs, and checks its operation itself. */
  }
  waiter->woken = waiter->unposted = true;
  rl_list_remove(&waiter->list);
  rl_list_append(&wait->unposted, &waiter->list);
  wait->arriving++;
  wait->sender = waiter == wait->sender
                     ? NULL
                     : wait->sender; /* The sender is among the arriving threads now. */
}

static void rl_wait_post_one(rl_wait *wait, rl_waiter *waiter, rl_wait_posts *posts) {
  waiter->unposted = false;
  rl_list_remove(&waiter->list);
  wait->posted++;
  if (posts->count == RL_WAIT_POSTS_MAX) {
    rl_semaphore_post(&waiter->semaphore);
  } else {
    posts->semaphores[posts->count++] = &waiter->semaphore;
  }
}

/* THR-6. Collects the semaphores to set, for rl_wait_deliver(). */
static void rl_wait_post(rl_wait *wait, rl_wait_posts *posts) {
  posts->count = 0;
  if (wait->leader != NULL && wait->leader->unposted) {
    rl_wait_post_one(wait, wait->leader, posts);
  }
  rl_waiter *waiter;
  while ((waiter = rl_wait_first(&wait->unposted)) != NULL &&
         (wait->posted < RL_WAIT_POSTED_MAX || wait->hurried)) {
    rl_wait_post_one(wait, waiter, posts);
  }
  wait->hurried = false;
}

/* THR-3. Wakes the threads that the changes under the mutex concern. */
static void rl_wait_wake_concerned(redlock_client *client) {
  rl_wait *wait = &client->wait;
  while (rl_lock_queue_first(&client->core.waited) != NULL) {
    rl_lock *lock = rl_lock_queue_first(&client->core.waited);
    rl_waiter *waiter = rl_wait_of(rl_handle_of(lock));
    rl_list_remove(&lock->queue);
    if (waiter != NULL) {
      rl_wait_wake(wait, waiter);
    }
  }
  unsigned wakeups = atomic_load(&wait->wakeups);
  bool woken = wakeups != wait->wakeups_seen;
  bool watched = wait->turned && wait->watchers > 0;
  if (woken || watched) {
    RL_LIST_EACH(&wait->asleep, waiter, rl_waiter, list) {
      if (woken || waiter->each_turn) {
        rl_wait_wake(wait, waiter);
        wait->hurried = true;
      }
    }
  }
  if (wait->turned && wait->leader != NULL && wait->leader->each_turn) {
    rl_wait_set_event_of_leader(wait);
  }
  wait->wakeups_seen = wakeups;
  wait->turned = false;
}

/* THR-4. Wakes the newest sleeper to lead: its own operation is likely to end last. */
static void rl_wait_wake_leader(rl_wait *wait) {
  if (rl_wait_first(&wait->asleep) != NULL) {
    wait->leader = RL_OWNER(wait->asleep.previous, rl_waiter, list);
    rl_wait_wake(wait, wait->leader);
  }
}

static rl_wait_wants rl_wait_wants_of(const redlock_client *client) {
  rl_wait_wants wants = {0, 0, rl_poll_deadline(client)};
  for (unsigned i = 0; i < rl_core_connection_count(&client->core); i++) {
    wants.changes += client->sockets[i].changes;
  }
  wants.writable = rl_poll_writable(client);
  return wants;
}

/* THR-5. Returns true if the leader's poll lacks something that is now needed. */
static bool rl_wait_poll_lacks_something(const redlock_client *client) {
  const rl_wait_wants *polled = &client->wait.wants;
  rl_wait_wants wants = rl_wait_wants_of(client);
  return wants.changes != polled->changes || (wants.writable & ~polled->writable) != 0 ||
         wants.deadline_us < polled->deadline_us ||
         (rl_wait_first(&client->wait.unposted) != NULL && !client->wait.brief) || /* THR-6 */
         (client->wait.leader == &client->watchdog.self &&
          rl_watchdog_has_news(client)); /* WDOG-5 */
}

/*
 * THR-3 to THR-6, and WDOG-1, before the mutex is unlocked. Sends now what was left to arriving
 * threads, unless a sender will send it in time.
 */
static void rl_wait_before_unlock(redlock_client *client, rl_wait_posts *posts) {
  rl_wait *wait = &client->wait;
  if (wait->unsent && (wait->arriving == 0 || redlock_now() >= wait->send_us)) {
    rl_wait_send(client);
  }
  rl_wait_wake_concerned(client);
  if (wait->leader == NULL) {
    rl_wait_wake_leader(wait);
  }
  if (wait->unsent && wait->sender == NULL) {
    rl_wait_send(client);
    rl_wait_wake_concerned(client);
  }
  rl_wait_post(wait, posts);
  if (wait->leader != NULL && wait->polls && !wait->unsent &&
      rl_wait_poll_lacks_something(client)) {
    rl_wait_set_event_of_leader(wait);
  }
  if (rl_watchdog_is_late(client)) {
    client->watchdog.until_us = 0;
    rl_semaphore_post(&client->watchdog.self.semaphore);
  }
}

static void rl_wait_deliver(const rl_wait_posts *posts) {
  for (unsigned i = 0; i < posts->count; i++) {
    rl_semaphore_post(posts->semaphores[i]);
  }
}

void rl_wait_wake_threads(redlock_client *client, bool unlock) {
  rl_wait_posts posts;
  rl_wait_before_unlock(client, &posts);
  if (unlock) {
    rl_mutex_unlock(&client->mutex);
  }
  rl_wait_deliver(&posts);
}

/* ------------------------------------------------------------------------------------ waiting */

/*
 * Takes a turn for a blocking call. Wakes the program's loop if operations of that loop have ended.
 */
static int rl_wait_turn(redlock_client *client, const struct pollfd *fds, size_t count) {
  int result = rl_turn_process(client, fds, count);
  if (result != REDLOCK_OK && rl_wait_end_without_entropy(client)) {
    result = REDLOCK_OK;
  }
  rl_poll_wake(client);
  return result;
}

/*
 * poll() does not count suspend; the timer does, so a long poll also waits for it. Without a timer
 * a long poll ends early. A short poll needs no timer, which saves a system call. Returns the
 * timer's descriptor, or -1.
 */
static int rl_wait_set_timer(rl_wait *wait, redlock_time *until_us) {
  redlock_time now_us = redlock_now();
  if (*until_us == REDLOCK_NEVER || rl_time_sub(*until_us, now_us) <= RL_WAIT_SHORT_US) {
    return -1;
  }
  if (!rl_timer_open(&wait->timer)) {
    *until_us = rl_time_add(now_us, rl_clock_slice(*until_us));
    return -1;
  }
  rl_timer_set(&wait->timer, *until_us);
  return wait->timer.fd;
}

/*
 * Unlocks the mutex, polls as the leader, and locks the mutex again. |fds| has room for one more
 * descriptor.
 */
static int rl_wait_poll(redlock_client *client, struct pollfd *fds, size_t count,
                        redlock_time until_us) {
  rl_wait *wait = &client->wait;
  rl_wait_posts posts;
  rl_wait_before_unlock(client, &posts);
  wait->brief = rl_wait_first(&wait->unposted) != NULL;
  if (wait->brief) {
    until_us = rl_time_min(until_us, rl_time_add(redlock_now(), RL_WAIT_UNSENT_US));
  }
  fds[count] = (struct pollfd){rl_wait_set_timer(wait, &until_us), POLLIN, 0};
  count += fds[count].fd >= 0;
  wait->polls = true;
  wait->poked = false;
  rl_mutex_unlock(&client->mutex);
  rl_wait_deliver(&posts);
  int ready = rl_poll_until(fds, count, until_us);
  rl_client_enter(client);
  return ready;
}

int rl_wait_lead(redlock_client *client, rl_waiter *self, redlock_time until_us,
                 bool *interrupted) {
  rl_wait *wait = &client->wait;
  struct pollfd fds[REDLOCK_NODES_MAX + 2];
  bool defers = wait->unsent && wait->arriving > wait->missed && redlock_now() < wait->send_us;
  if (wait->unsent && !defers) {
    bool sends = wait->unstarted;
    rl_wait_send(client);
    if (sends) {
      return REDLOCK_OK; /* The caller's operation may have ended. */
    }
  }
  size_t count = rl_poll_fds(client, fds, REDLOCK_NODES_MAX);
  wait->wants = rl_wait_wants_of(client);
  if (defers) { /* The last arriving thread does what is due now. */
    wait->sender = wait->sender == NULL ? self : wait->sender;
    wait->wants.deadline_us = 0;
    until_us = rl_time_min(until_us, wait->send_us);
  } else {
    until_us = rl_time_min(until_us, wait->wants.deadline_us);
  }
  if (until_us == REDLOCK_NEVER && count == 0 && self != &client->watchdog.self) {
    return REDLOCK_E_SYSTEM; /* Nothing could end this wait. */
  }
  fds[count] = (struct pollfd){rl_event_fd(self->event), POLLIN, 0};
  if (fds[count].fd < 0) {
    until_us = rl_time_min(until_us, rl_time_add(redlock_now(), RL_WAIT_BLIND_US));
  }
  wait->leader = self;
  int ready = rl_wait_poll(client, fds, count + 1, until_us);
  if (ready > 0 && fds[count].revents != 0) {
    rl_event_clear(self->event);
  }
  wait->sender = wait->sender == self ? NULL : wait->sender;
  if (wait->leader != self) {
    return REDLOCK_OK; /* Another thread took the lead; or this is a forked child. */
  }
  wait->polls = wait->brief = false;
  wait->posted = 0;
  if (interrupted != NULL) {
    *interrupted = ready < 0;
  }
  if (wait->unsent && redlock_now() >= wait->send_us) {
    wait->missed = wait->arriving;
    rl_wait_send(client);
  }

  return rl_wait_turn(client, fds, ready > 0 ? count : 0);
}

static void rl_wait_lie_down(rl_wait *wait, rl_waiter *self) {
  self->sleeps = true;
  self->woken = false;
  rl_list_append(&wait->asleep, &self->list);
}

static void rl_wait_get_up(rl_wait *wait, rl_waiter *self) {
  if (!self->in_use) {
    return; /* This is a child that was forked during the sleep. */
  }
  rl_list_remove(&self->list);
  if (self->woken && !self->unposted) {
    wait->posted -= wait->posted > 0;
  }
  self->unposted = false; /* It woke by its time-out, so it needs no post. */
  wait->arriving -= self->woken;
  wait->missed = wait->missed < wait->arriving ? wait->missed : wait->arriving;
  self->sleeps = false;
}

/*
 * Posts the semaphores in |posts|, perhaps its own, and sleeps. Returns false if no thread woke it
 * until |until_us|.
 */
static bool rl_wait_sleep(redlock_client *client, rl_waiter *self, redlock_time until_us,
                          rl_wait_posts *posts) {
  bool in_time;
  do {
    rl_mutex_unlock(&client->mutex);
    rl_wait_deliver(posts);
    posts->count = 0;
    in_time = rl_semaphore_wait(&self->semaphore, until_us);
    rl_mutex_lock(&client->mutex);
  } while (!self->woken && in_time);
  return self->woken;
}

static int rl_wait_follow(redlock_client *client, rl_waiter *self, redlock_time until_us) {
  rl_wait *wait = &client->wait;
  bool sends = wait->unsent && wait->arriving > 0 && wait->sender == NULL;
  wait->sender = sends ? self : wait->sender;
  rl_wait_posts posts;
  rl_wait_lie_down(wait, self); /* First, because rl_wait_before_unlock() may wake it. */
  rl_wait_before_unlock(client, &posts);
  if (self->lock != NULL) {
    redlock_time due_us = rl_wait_due(client, rl_lock_of(self->lock));
    until_us = rl_time_min(until_us, rl_time_add(due_us, RL_WAIT_SLACK_US));
  }
  redlock_time sends_us = sends ? wait->send_us : REDLOCK_NEVER;
  bool woken = rl_wait_sleep(client, self, rl_time_min(until_us, sends_us), &posts);
  rl_wait_get_up(wait, self);
  /*
   * After a time-out the posted threads may be stuck: stop counting them, so that the next ones are
   * posted.
   */
  wait->posted = woken ? wait->posted : 0;
  if (wait->sender == self) {
    wait->sender = NULL;
    if (wait->unsent) {
      rl_wait_send(client);
    }
  }
  return woken || sends_us < until_us ? REDLOCK_OK : rl_wait_turn(client, NULL, 0);
}

/* WDOG-3. The calling thread takes the lead from the watchdog, and ends the watchdog's poll. */
static void rl_wait_take_lead(redlock_client *client) {
  rl_wait *wait = &client->wait;
  if (wait->leader == &client->watchdog.self) {
    rl_event_set(&client->watchdog.event);
    wait->leader = NULL;
    wait->polls = wait->brief = false;
  }
}

int rl_wait_step(redlock_client *client, rl_waiter *self, redlock_time until_us,
                 bool *interrupted) {
  rl_wait *wait = &client->wait;
  if (interrupted != NULL) {
    *interrupted = false;
  }
  if (rl_event_fd(&wait->event) < 0) {
    (void)rl_event_open(&wait->event); /* Without the event rl_wait_lead() polls briefly. */
  }
  if (atomic_load(&wait->wakeups) != self->wakeups) {
    return REDLOCK_E_CANCELLED;
  }
  rl_wait_take_lead(client);
  bool leads = wait->leader == NULL || wait->leader == self;
  if (wait->unstarted && (wait->arriving == 0 || redlock_now() >= wait->send_us)) {
    rl_wait_send(client);
    return REDLOCK_OK; /* The caller's operation may have ended. */
  }
  if (leads) {
    return rl_wait_lead(client, self, until_us, interrupted);
  }
  return rl_wait_follow(client, self, until_us);
}

/*
 * This function raises the count, then sets the event. rl_wait_step() opens the event, then reads
 * the count. So the count is seen, or the event ends the poll.
 */
void redlock_client_wakeup(redlock_client *client) {
  if (client == NULL || rl_fork_happened(&client->mark)) {
    return; /* A child is in no call, and the event is its parent's. */
  }
  (void)atomic_fetch_add(&client->wait.wakeups, 1);
  rl_event_set(&client->wait.event);
}
