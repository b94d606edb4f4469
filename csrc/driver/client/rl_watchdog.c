/*
 * The watchdog: a thread that does what is due between the calls of a program.
 *
 * SPDX-License-Identifier: MIT
 *
 * A lease with auto_extend must be extended while the program computes, sleeps or waits for a
 * child. So a blocking call that begins such a lease starts a thread, one for each client.
 *
 *   WDOG-1. While threads are in blocking calls, one of them is the poller (rl_caller.c) and does
 *           what is due; the watchdog sleeps. The last thread that leaves wakes the watchdog if the
 *           watchdog's own time is too late (rl_caller_wake_threads()).
 *   WDOG-2. RL_WATCHDOG_QUIET_US after the last turn, or when something is due, the watchdog takes
 *           a turn: it begins extends, reads late replies, connects, and sends what finalizers have
 *           left. It does not do so immediately after each call: a busy program would pay two
 *           context switches for each call.
 *   WDOG-3. Then the watchdog is the poller: it polls, and takes a turn for each event, until a
 *           thread that begins to wait relieves it (rl_caller_wait()).
 *   WDOG-4. While a loop of the program polls redlock_client_pollfd(), the watchdog does not poll.
 *           If something has been due, or replies unread, for RL_WATCHDOG_LOOP_US, the loop counts
 *           as absent until its next redlock_client_process().
 *   WDOG-5. A thread that notices a loss or an event wakes the watchdog, which calls the program's
 *           function (redlock_client_on_lost(), redlock_client_on_event()). The watchdog calls it
 *           without the mutex, because that function calls the library.
 *   WDOG-6. The function may close the client or give up its last reference. The watchdog cannot
 *           join itself. It ends after the function, and frees the client if no reference is left.
 *
 * The watchdog holds the mutex only in its turns, and turns do not wait. Otherwise it waits in
 * poll() or on its sleeper. So it can be joined at any time, and a thread that wants the mutex,
 * also a finalizer, waits for one turn at most. All signals are blocked in the watchdog, and it
 * knows nothing of Lua. fork() waits for the mutex (rl_mutex.c). A child has no watchdog until it
 * begins such a lease.
 */
#include "client/rl_watchdog.h"

#include "client/rl_caller.h"
#include "client/rl_poll.h"
#include "client/rl_turn.h"
#include "client/rl_watchdog_due.h"
#include "lock/rl_events.h"
#include "os/rl_thread.h"

#define RL_WATCHDOG_STACK ((size_t)256 * 1024) /* bytes */

/* WDOG-1. */
static void rl_watchdog_sleep(redlock_client *client, redlock_time until_us) {
  rl_watchdog *watchdog = &client->watchdog;
  rl_caller_wake_threads(client, false);
  watchdog->until_us = until_us;
  rl_mutex_unlock(&client->mutex);
  (void)rl_sleeper_wait(&watchdog->self.sleeper, until_us);
  rl_mutex_lock(&client->mutex);
  watchdog->until_us = 0;
}

/* WDOG-2, WDOG-3. */
static void rl_watchdog_poll(redlock_client *client) {
  rl_watchdog *watchdog = &client->watchdog;
  watchdog->loop_is_absent = true;
  int error = rl_turn_process(client, NULL, 0);
  rl_poll_wake(client);
  while (error == REDLOCK_OK && !watchdog->stops && rl_watchdog_is_alone(client) &&
         !rl_watchdog_has_loop(client) && !rl_watchdog_has_news(client)) {
    error = rl_caller_poll(client, &watchdog->self, REDLOCK_NEVER, NULL);
    rl_caller_yield_poll(client, &watchdog->self);
  }
  if (error != REDLOCK_OK && !watchdog->stops) { /* No entropy. */
    rl_watchdog_sleep(client, rl_time_add(redlock_now(), RL_WATCHDOG_QUIET_US));
  }
}

/* WDOG-5. */
static void rl_watchdog_report_events(redlock_client *client) {
  rl_watchdog *watchdog = &client->watchdog;
  redlock_event_function *on_event = watchdog->on_event;
  void *data = watchdog->on_event_data;
  watchdog->reported_events = client->core.events->total;
  rl_caller_wake_threads(client, true);
  on_event(client, data);
  rl_mutex_lock(&client->mutex);
}

static void rl_watchdog_report_losses(redlock_client *client) {
  rl_watchdog *watchdog = &client->watchdog;
  redlock_lost_function *on_lost = watchdog->on_lost;
  void *data = watchdog->on_lost_data;
  watchdog->reported_count = client->core.losses->count;
  rl_caller_wake_threads(client, true);
  on_lost(client, data);
  rl_mutex_lock(&client->mutex);
}

static void *rl_watchdog_run(void *argument) {
  redlock_client *client = argument;
  rl_watchdog *watchdog = &client->watchdog;
  rl_mutex_lock(&client->mutex);
  while (!watchdog->stops) {
    redlock_time due_us = rl_watchdog_is_alone(client) ? rl_watchdog_due(client) : REDLOCK_NEVER;
    if (rl_watchdog_has_losses(client)) {
      rl_watchdog_report_losses(client);
    } else if (rl_watchdog_has_events(client)) {
      rl_watchdog_report_events(client);
    } else if (due_us > redlock_now()) {
      rl_watchdog_sleep(client, due_us);
    } else {
      rl_watchdog_poll(client);
    }
  }
  void (*ends_client)(redlock_client *) = watchdog->ends_client;
  rl_caller_wake_threads(client, true);
  if (ends_client != NULL) { /* WDOG-6: no other reference is left. */
    watchdog->runs = false;
    (void)pthread_detach(pthread_self());
    rl_sleeper_free(&watchdog->self.sleeper);
    rl_eventfd_close(&watchdog->event);
    ends_client(client);
  }
  return NULL;
}

int rl_watchdog_start(redlock_client *client) {
  rl_watchdog *watchdog = &client->watchdog;
  if (watchdog->runs || watchdog->forbidden || client->external) {
    return REDLOCK_OK;
  }
  if (!rl_eventfd_open(&watchdog->event)) {
    return REDLOCK_E_SYSTEM;
  }
  watchdog->stops = false;
  watchdog->until_us = 0;
  watchdog->runs =
      rl_sleeper_init(&watchdog->self.sleeper) &&
      rl_thread_start(&watchdog->thread, RL_WATCHDOG_STACK, rl_watchdog_run, client) == 0;
  if (!watchdog->runs) {
    rl_eventfd_close(&watchdog->event);
    return REDLOCK_E_SYSTEM;
  }
  return REDLOCK_OK;
}

bool rl_watchdog_is_self(const redlock_client *client) {
  return client->watchdog.runs && pthread_equal(client->watchdog.thread, pthread_self());
}

void rl_watchdog_stop(redlock_client *client) {
  rl_watchdog *watchdog = &client->watchdog;
  if (!watchdog->runs) {
    return;
  }
  watchdog->stops = true;
  if (rl_watchdog_is_self(client)) {
    return; /* WDOG-6 */
  }
  watchdog->runs = false;
  rl_sleeper_post(&watchdog->self.sleeper);
  rl_eventfd_set(&watchdog->event);
  rl_caller_wake_threads(client, true);
  (void)pthread_join(watchdog->thread, NULL);
  rl_mutex_lock(&client->mutex);
  rl_sleeper_free(&watchdog->self.sleeper);
  rl_eventfd_close(&watchdog->event);
}
