/*
 * Threads that wait in blocking calls on one client: leader and followers.
 *
 * SPDX-License-Identifier: MIT
 *
 * One of the threads that wait polls for all, outside the mutex: the leader. The others, the followers,
 * sleep, each on a semaphore of its own.
 *
 *   W1. A thread that begins an operation sends the bytes itself, under the mutex (rl_turn_start()), or the
 *       last of those that come with it does (below).
 *   W2. Then it waits. When nobody leads it leads: it notes what it is going to wait for, leaves the
 *       mutex, polls, enters, and takes a turn with what has come. Else it sleeps until it is called.
 *   W3. Whoever leaves the mutex calls the threads whose operation has ended, and nobody else (but those
 *       that asked to look after each turn: in close(), and for late nodes). If one of them is the leader,
 *       which polls, its event is set.
 *   W4. When a thread leaves while nobody leads, it calls one of those that sleep to lead. So the lead is
 *       handed on when the leader's own operation has ended.
 *   W5. When a thread leaves while the leader polls for less than there is to wait for now (another
 *       descriptor, room to send, an earlier time), it sets the leader's event.
 *   W6. Of the threads that have been called, eight are on their way at once: whoever leaves wakes as many of the
 *       others, which are due, as have come. All at once they would only meet at the mutex (64 threads: 2.9 changes
 *       of threads a pair instead of 2.1). The eight may be held up, in signal handlers: so while others are
 *       due the leader polls for 1 ms at most, and the next eight are woken, whatever has become of those.
 *       The thread that is called to lead is woken at once, and all are by redlock_client_wakeup().
 *
 * No wake-up is lost. What threads wait for changes only under the mutex, and whoever leaves it does W3
 * to W6: so whenever the mutex is free,
 *   - a thread that sleeps for an operation which has ended has been called, and is woken, or due while eight
 *     others or the leader are on their way;
 *   - when a thread sleeps, there is a leader: one that has been called and will enter, or one that polls;
 *   - the one that polls waits for all there is to wait for, or its event is set, or threads are coming, of
 *     which the last looks (W5). The event stays set until the leader has entered again, so that it does not
 *     matter whether it polls already.
 * A follower has a time of its own all the same, a little after its operation wants to be looked at: a leader
 * may be held up in a signal handler, or eight that have been woken while nobody leads. Then the follower takes a
 * turn without waiting.
 *
 * One turn of the leader often ends many operations, whose threads all come back and begin the next. When
 * each of them launched and sent at once, the nodes would be sent single commands instead of many in one
 * packet, at ten times the cost (64 threads, five nodes). So what they begin waits, and so do bytes, while
 * threads that have been called are on their way to the mutex, and the last of them launches and sends for
 * all. That waits 1 ms at most, for those threads may be slow to come: the leader, or one of those that sleep, is
 * the sender, and wakes then. A leader waits but once for those that do not come. Whoever leaves the mutex
 * while there is no sender, or after its time, sends at once; so does whoever calls a sender that sleeps. After
 * a launch a thread looks whether what it waits for has come, before it sleeps or polls (rl_wait_step()).
 */
#include "client/rl_client_wait.h"

#include "client/rl_client_enter.h"
#include "client/rl_poll.h"
#include "client/rl_turn.h"
#include "client/rl_watchdog_due.h"
#include "lock/rl_round.h"
#include "os/rl_clock.h"

#define RL_WAIT_POSTED_MAX 8 /* threads that are on their way out of their sleep at once */
#define RL_WAIT_POSTS_MAX 64 /* threads that are woken when the mutex is free again */
/* How much later than its operation a follower looks for itself. */
#define RL_WAIT_SLACK_US (10 * REDLOCK_MILLISECONDS)
/* How long to wait at most where there is no descriptor for the event. */
#define RL_WAIT_BLIND_US (10 * REDLOCK_MILLISECONDS)
/* How late after a suspend a poll without the timer may end: not less than the default of |node_timeout|. */
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
 * When the operation of a lock wants to be looked at; REDLOCK_NEVER when it does not. One that is launched by
 * another thread, while its own sleeps, has as long from about now as its nodes have to answer.
 */
static redlock_time rl_wait_due(const redlock_client *client, const rl_lock *lock) {
  redlock_time due_us = lock->timer.index == RL_TIMERS_NONE ? REDLOCK_NEVER : lock->timer.due_us;
  return client->wait.unstarted
             ? rl_time_min(due_us, rl_time_add(redlock_now(), rl_round_patience(lock)))
             : due_us;
}

void rl_wait_end(redlock_client *client, rl_waiter *self) {
  if (!self->in_use) {
    return; /* The process has forked in the middle of the call, and this is the child. */
  }
  if (self->lock != NULL) {
    rl_lock_of(self->lock)->waited = 0;
  }
  rl_wait_pause(client, self);
  client->wait.watchers -= self->each_turn;
  self->in_use = false;
  self->next = client->wait.spare;
  client->wait.spare = self;
}

void rl_wait_pause(redlock_client *client, rl_waiter *self) {
  if (client->wait.leader == self) {
    client->wait.leader = NULL;
  }
}

/* ------------------------------------------------------------------------------------ sending */

/* An acquire that is to be launched, and that a thread waits for; or NULL. */
static rl_lock *rl_wait_unsent(const redlock_client *client) {
  rl_lock *lock = rl_lock_queue_first(&client->core.pacer.acquires);
  while (lock != NULL && lock->waited == 0) {
    lock = rl_lock_queue_next(&client->core.pacer.acquires, lock);
  }
  return lock;
}

/*
 * There was no entropy for a turn. Only acquires want some, and their threads hear it, not the thread that
 * took the turn for them. Returns whether there were any.
 */
static bool rl_wait_refuse(redlock_client *client) {
  bool refused = false;
  for (rl_lock *lock; (lock = rl_wait_unsent(client)) != NULL; refused = true) {
    rl_lock_cancel(lock, redlock_now(), REDLOCK_E_SYSTEM);
  }
  return refused;
}

static void rl_wait_send(redlock_client *client) {
  if (client->wait.unstarted && rl_turn_send_due(client) != REDLOCK_OK) {
    (void)rl_wait_refuse(client);
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

/* ------------------------------------------------------------------------------------ telling */

typedef struct rl_wait_posts {
  unsigned count;
  rl_semaphore *semaphores[RL_WAIT_POSTS_MAX];
} rl_wait_posts;

/* Ends the poll of the leader, which there is, if it polls. */
static void rl_wait_poke(rl_wait *wait) {
  if (wait->polls && !wait->poked) {
    wait->poked = true;
    rl_event_set(wait->leader->event);
  }
}

static void rl_wait_wake(rl_wait *wait, rl_waiter *waiter) {
  if (waiter == wait->leader) {
    rl_wait_poke(wait);
  }
  if (!waiter->sleeps || waiter->woken) {
    return; /* It runs, and looks for itself. */
  }
  waiter->woken = waiter->unposted = true;
  rl_waiters_remove(&wait->asleep, waiter);
  rl_waiters_append(&wait->unposted, waiter);
  wait->arriving++;
  wait->sender = waiter == wait->sender ? NULL : wait->sender; /* It is one of those to wait for. */
}

static void rl_wait_post_one(rl_wait *wait, rl_waiter *waiter, rl_wait_posts *calls) {
  waiter->unposted = false;
  rl_waiters_remove(&wait->unposted, waiter);
  wait->posted++;
  if (calls->count == RL_WAIT_POSTS_MAX) {
    rl_semaphore_post(&waiter->semaphore);
  } else {
    calls->semaphores[calls->count++] = &waiter->semaphore;
  }
}

/* W6. */
static void rl_wait_post(rl_wait *wait, rl_wait_posts *calls) {
  calls->count = 0;
  if (wait->leader != NULL && wait->leader->unposted) {
    rl_wait_post_one(wait, wait->leader, calls);
  }
  while (wait->unposted.first != NULL && (wait->posted < RL_WAIT_POSTED_MAX || wait->hurried)) {
    rl_wait_post_one(wait, wait->unposted.first, calls);
  }
  wait->hurried = false;
}

/* W3. */
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
  rl_waiter *next = woken || watched ? wait->asleep.first : NULL;
  for (rl_waiter *waiter; (waiter = next) != NULL;) {
    next = waiter->next;
    if (woken || waiter->each_turn) {
      rl_wait_wake(wait, waiter);
      wait->hurried = true;
    }
  }
  if (wait->turned && wait->leader != NULL && wait->leader->each_turn) {
    rl_wait_poke(wait);
  }
  wait->wakeups_seen = wakeups;
  wait->turned = false;
}

/* W4: the one that came last is likely to wait for longest. */
static void rl_wait_wake_leader(rl_wait *wait) {
  if (wait->asleep.last != NULL) {
    wait->leader = wait->asleep.last;
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

/* W5. */
static bool rl_wait_is_short(const redlock_client *client) {
  const rl_wait_wants *polled = &client->wait.wants;
  rl_wait_wants wants = rl_wait_wants_of(client);
  return wants.changes != polled->changes || (wants.writable & ~polled->writable) != 0 ||
         wants.deadline_us < polled->deadline_us ||
         (client->wait.unposted.first != NULL && !client->wait.brief) ||                    /* W6 */
         (client->wait.leader == &client->watchdog.self && rl_watchdog_has_losses(client)); /* K5 */
}

/*
 * W3, W4, W5, and K1: what is to be told while the mutex is still held. Threads that come may be long in coming:
 * what is left to them goes out now, unless a sender would send it, which may be late, too.
 */
static void rl_wait_settle(redlock_client *client, rl_wait_posts *calls) {
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
  rl_wait_post(wait, calls);
  if (wait->leader != NULL && wait->polls && !wait->unsent && rl_wait_is_short(client)) {
    rl_wait_poke(wait);
  }
  if (rl_watchdog_is_late(client)) {
    client->watchdog.until_us = 0;
    rl_semaphore_post(&client->watchdog.self.semaphore);
  }
}

static void rl_wait_deliver(const rl_wait_posts *calls) {
  for (unsigned i = 0; i < calls->count; i++) {
    rl_semaphore_post(calls->semaphores[i]);
  }
}

void rl_wait_wake_threads(redlock_client *client, bool unlock) {
  rl_wait_posts calls;
  rl_wait_settle(client, &calls);
  if (unlock) {
    rl_mutex_unlock(&client->mutex);
  }
  rl_wait_deliver(&calls);
}

/* ------------------------------------------------------------------------------------ waiting */

/* A turn that is not the caller's loop's: what has ended for the loop is to wake it. */
static int rl_wait_turn(redlock_client *client, const struct pollfd *fds, size_t count) {
  int result = rl_turn_process(client, fds, count);
  if (result != REDLOCK_OK && rl_wait_refuse(client)) {
    result = REDLOCK_OK;
  }
  rl_poll_wake(client);
  return result;
}

/*
 * poll() does not count suspend. So a long poll waits for the timer, too, which does; without a timer the poll ends
 * early, and the next turn computes the rest of the wait. A short poll needs neither, and costs no system call
 * more. Returns the timer's descriptor, or -1.
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

/* Leaves the mutex, polls as the leader, and enters. There is room for one descriptor behind |fds|. */
static int rl_wait_poll(redlock_client *client, struct pollfd *fds, size_t count,
                        redlock_time until_us) {
  rl_wait *wait = &client->wait;
  rl_wait_posts calls;
  rl_wait_settle(client, &calls);
  wait->brief = wait->unposted.first != NULL;
  if (wait->brief) {
    until_us = rl_time_min(until_us, rl_time_add(redlock_now(), RL_WAIT_UNSENT_US));
  }
  fds[count] = (struct pollfd){rl_wait_set_timer(wait, &until_us), POLLIN, 0};
  count += fds[count].fd >= 0;
  wait->polls = true;
  wait->poked = false;
  rl_mutex_unlock(&client->mutex);
  rl_wait_deliver(&calls);
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
    bool launches = wait->unstarted;
    rl_wait_send(client);
    if (launches) {
      return REDLOCK_OK; /* What the caller waits for may have come. */
    }
  }
  size_t count = rl_poll_fds(client, fds, REDLOCK_NODES_MAX);
  wait->wants = rl_wait_wants_of(client);
  if (defers) { /* What is due now is what the last of those that come launches. */
    wait->sender = wait->sender == NULL ? self : wait->sender;
    wait->wants.deadline_us = 0;
    until_us = rl_time_min(until_us, wait->send_us);
  } else {
    until_us = rl_time_min(until_us, wait->wants.deadline_us);
  }
  if (until_us == REDLOCK_NEVER && count == 0 && self != &client->watchdog.self) {
    return REDLOCK_E_SYSTEM; /* Nothing could ever end this wait. */
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
    return REDLOCK_OK; /* A thread leads instead of the keeper; or this is a child that was forked. */
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
  /* Interrupted: nothing is ready, and the next turn computes the rest of the wait. */
  return rl_wait_turn(client, fds, ready > 0 ? count : 0);
}

static void rl_wait_lie_down(rl_wait *wait, rl_waiter *self) {
  self->sleeps = true;
  self->woken = false;
  rl_waiters_append(&wait->asleep, self);
}

static void rl_wait_get_up(rl_wait *wait, rl_waiter *self) {
  if (!self->in_use) {
    return; /* The process has forked in its sleep, and this is the child. */
  }
  if (!self->woken) {
    rl_waiters_remove(&wait->asleep, self);
  } else if (self->unposted) {
    rl_waiters_remove(&wait->unposted, self); /* Its time came first. */
    self->unposted = false;
  } else {
    wait->posted -= wait->posted > 0;
  }
  wait->arriving -= self->woken;
  wait->missed = wait->missed < wait->arriving ? wait->missed : wait->arriving;
  self->sleeps = false;
}

/*
 * Sleeps until the thread is called; false when |until_us| came before. |calls| are made before: it may be
 * one of them.
 */
static bool rl_wait_sleep(redlock_client *client, rl_waiter *self, redlock_time until_us,
                          rl_wait_posts *calls) {
  bool in_time;
  do {
    rl_mutex_unlock(&client->mutex);
    rl_wait_deliver(calls);
    calls->count = 0;
    in_time = rl_semaphore_wait(&self->semaphore, until_us);
    rl_mutex_lock(&client->mutex);
  } while (!self->woken && in_time);
  return self->woken;
}

static int rl_wait_follow(redlock_client *client, rl_waiter *self, redlock_time until_us) {
  rl_wait *wait = &client->wait;
  bool sends = wait->unsent && wait->arriving > 0 && wait->sender == NULL;
  wait->sender = sends ? self : wait->sender;
  rl_wait_posts calls;
  rl_wait_lie_down(wait, self); /* First: what is settled may concern it, or wake up all. */
  rl_wait_settle(client, &calls);
  if (self->lock != NULL) {
    redlock_time due_us = rl_wait_due(client, rl_lock_of(self->lock));
    until_us = rl_time_min(until_us, rl_time_add(due_us, RL_WAIT_SLACK_US));
  }
  redlock_time sends_us = sends ? wait->send_us : REDLOCK_NEVER;
  bool called = rl_wait_sleep(client, self, rl_time_min(until_us, sends_us), &calls);
  rl_wait_get_up(wait, self);
  wait->posted = called ? wait->posted : 0; /* They may be held up. */
  if (wait->sender == self) {
    wait->sender = NULL;
    if (wait->unsent) {
      rl_wait_send(client);
    }
  }
  return called || sends_us < until_us ? REDLOCK_OK : rl_wait_turn(client, NULL, 0);
}

/* K3: whoever waits in a call leads rather than the keeper, which ends its wait, and touches nothing. */
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
    (void)rl_event_open(&wait->event); /* Without it rl_wait_lead() waits blindly. */
  }
  if (atomic_load(&wait->wakeups) != self->wakeups) {
    return REDLOCK_E_CANCELLED;
  }
  rl_wait_take_lead(client);
  bool leads = wait->leader == NULL || wait->leader == self;
  if (wait->unstarted && (wait->arriving == 0 || redlock_now() >= wait->send_us)) {
    rl_wait_send(client);
    return REDLOCK_OK; /* What the caller waits for may have come. */
  }
  if (leads) {
    return rl_wait_lead(client, self, until_us, interrupted);
  }
  return rl_wait_follow(client, self, until_us);
}

/*
 * The count is raised before the event is looked for, and rl_wait_step() looks at the count after it has
 * opened the event: one of the two sees the other.
 */
void redlock_client_wakeup(redlock_client *client) {
  if (client == NULL || rl_fork_happened(&client->mark)) {
    return; /* A child is in no call. Its event would be the parent's. */
  }
  (void)atomic_fetch_add(&client->wait.wakeups, 1);
  rl_event_set(&client->wait.event);
}
