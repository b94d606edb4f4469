/*
 * The keeper: a thread that does what is due between the calls of a program.
 *
 * SPDX-License-Identifier: MIT
 *
 * A lock with auto_extend has to be extended while the program computes, sleeps or waits for a child. So a
 * blocking call that begins such a lease starts a thread, one for each client.
 *
 *   K1. While threads are in blocking calls, one of them leads, and does whatever is due; the keeper
 *       sleeps. When the last of them leaves, it calls the keeper, if that would wake too late
 *       (rl_wait_wake_threads()).
 *   K2. RL_WATCHDOG_QUIET_US after the last turn, or as soon as something is due, it takes a turn: extends
 *       begin, late replies are read, connections are made, what finalizers have left is sent. Not
 *       at once: each call of a busy program would cost two changes of threads.
 *   K3. Then it leads: it polls, and takes a turn for whatever comes or is due, until a thread that
 *       begins to wait takes the lead from it (rl_wait_step()).
 *   K4. Where a loop of the program's waits for the nodes, by redlock_client_pollfd(), it does not poll
 *       beside it. When something has been due, or replies were not looked for, for RL_WATCHDOG_LOOP_US, the loop
 *       is busy with something else: then it is as if there was none, until it comes again.
 *   K5. When leases are lost, whoever notices it calls the keeper, and it tells the program, if that has asked for it
 *       (redlock_client_on_lost()): without the mutex, for the program will call.
 *   K6. The program may close the client there, or give up the last reference to it. The keeper cannot join
 *       itself: it ends when the program has returned, and with the last reference it ends the client, too.
 *
 * It holds the mutex for turns only, which wait for nothing, and waits in poll() or on its semaphore: so it can
 * be joined at any time, and who wants the mutex, also a finalizer, waits for a turn at most. It has all
 * signals blocked, and knows nothing of Lua. fork() waits for the mutex (rl_mutex.c), and a child has no keeper
 * until it begins a lease of its own.
 */
#include "client/rl_watchdog.h"

#include "client/rl_client_wait.h"
#include "client/rl_poll.h"
#include "client/rl_turn.h"
#include "client/rl_watchdog_due.h"
#include "os/rl_thread.h"

#define RL_WATCHDOG_STACK ((size_t)256 * 1024)

/* K1. */
static void rl_watchdog_sleep(redlock_client *client, redlock_time until_us) {
  rl_watchdog *keeper = &client->watchdog;
  rl_wait_wake_threads(client, false);
  keeper->until_us = until_us;
  rl_mutex_unlock(&client->mutex);
  (void)rl_semaphore_wait(&keeper->self.semaphore, until_us);
  rl_mutex_lock(&client->mutex);
  keeper->until_us = 0;
}

/* K2, K3. */
static void rl_watchdog_lead(redlock_client *client) {
  rl_watchdog *keeper = &client->watchdog;
  keeper->loop_is_late = true;
  int error = rl_turn_process(client, NULL, 0);
  rl_poll_wake(client);
  while (error == REDLOCK_OK && !keeper->stops && rl_watchdog_is_alone(client) &&
         !rl_watchdog_has_loop(client) && !rl_watchdog_has_losses(client)) {
    error = rl_wait_lead(client, &keeper->self, REDLOCK_NEVER, NULL);
    rl_wait_pause(client, &keeper->self);
  }
  if (error != REDLOCK_OK && !keeper->stops) {
    rl_watchdog_sleep(client, rl_time_add(redlock_now(), RL_WATCHDOG_QUIET_US)); /* No entropy. */
  }
}

/* K5. */
static void rl_watchdog_report(redlock_client *client) {
  rl_watchdog *keeper = &client->watchdog;
  redlock_lost_function *told = keeper->on_lost;
  void *data = keeper->on_lost_data;
  keeper->reported_count = client->core.losses->count;
  rl_wait_wake_threads(client, true);
  told(client, data);
  rl_mutex_lock(&client->mutex);
}

/* K6: nobody else refers to the client. */
static void rl_watchdog_end_self(redlock_client *client) {
  client->watchdog.runs = false;
  (void)pthread_detach(pthread_self());
  rl_semaphore_free(&client->watchdog.self.semaphore);
  rl_event_close(&client->watchdog.event);
}

static void *rl_watchdog_run(void *argument) {
  redlock_client *client = argument;
  rl_watchdog *keeper = &client->watchdog;
  rl_mutex_lock(&client->mutex);
  while (!keeper->stops) {
    redlock_time due_us = rl_watchdog_is_alone(client) ? rl_watchdog_due(client) : REDLOCK_NEVER;
    if (rl_watchdog_has_losses(client)) {
      rl_watchdog_report(client);
    } else if (due_us > redlock_now()) {
      rl_watchdog_sleep(client, due_us);
    } else {
      rl_watchdog_lead(client);
    }
  }
  void (*ends_client)(redlock_client *) = keeper->ends_client;
  rl_wait_wake_threads(client, true);
  if (ends_client != NULL) {
    rl_watchdog_end_self(client);
    ends_client(client);
  }
  return NULL;
}

int rl_watchdog_start(redlock_client *client) {
  rl_watchdog *keeper = &client->watchdog;
  if (keeper->runs || keeper->forbidden || client->external) {
    return REDLOCK_OK;
  }
  if (!rl_event_open(&keeper->event)) {
    return REDLOCK_E_SYSTEM;
  }
  keeper->stops = false;
  keeper->until_us = 0;
  keeper->runs = rl_semaphore_init(&keeper->self.semaphore) &&
                 rl_thread_start(&keeper->thread, RL_WATCHDOG_STACK, rl_watchdog_run, client) == 0;
  if (!keeper->runs) {
    rl_event_close(&keeper->event);
    return REDLOCK_E_SYSTEM;
  }
  return REDLOCK_OK;
}

bool rl_watchdog_is_self(const redlock_client *client) {
  return client->watchdog.runs && pthread_equal(client->watchdog.thread, pthread_self());
}

void rl_watchdog_stop(redlock_client *client) {
  rl_watchdog *keeper = &client->watchdog;
  if (!keeper->runs) {
    return;
  }
  keeper->stops = true;
  if (rl_watchdog_is_self(client)) {
    return; /* K6 */
  }
  keeper->runs = false;
  rl_semaphore_post(&keeper->self.semaphore);
  rl_event_set(&keeper->event);
  rl_wait_wake_threads(client, true);
  (void)pthread_join(keeper->thread, NULL);
  rl_mutex_lock(&client->mutex);
  rl_semaphore_free(&keeper->self.semaphore);
  rl_event_close(&keeper->event);
}
