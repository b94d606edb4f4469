/*
 * What programs call between operations: their own loop, losses, and pending credentials.
 *
 * SPDX-License-Identifier: MIT
 */
#include <limits.h>

#include "client/rl_client.h"
#include "client/rl_credentials.h"
#include "client/rl_poll.h"
#include "client/rl_pump.h"
#include "client/rl_turn.h"
#include "os/rl_clock.h"

/* ------------------------------------------------------------------------- the program's loop */

int redlock_client_pollfd(redlock_client *client) {
  if (client == NULL) {
    return -1;
  }
  rl_client_enter(client);
  if (client->epoll_fd < 0 && !client->core.closed) {
    rl_poll_open(client);
  }
  int fd = client->epoll_fd;
  rl_client_leave(client);
  return fd;
}

size_t redlock_client_pollfds(redlock_client *client, struct pollfd *fds, size_t capacity) {
  if (client == NULL) {
    return 0;
  }
  rl_client_enter(client);
  size_t count = rl_poll_fds(client, fds, capacity);
  rl_client_leave(client);
  return count;
}

redlock_duration redlock_client_timeout(redlock_client *client) {
  if (client == NULL) {
    return REDLOCK_NEVER;
  }
  rl_client_enter(client);
  redlock_time deadline_us = rl_poll_process_deadline(client);
  rl_client_leave(client);
  return deadline_us == REDLOCK_NEVER ? REDLOCK_NEVER : rl_clock_slice(deadline_us);
}

int redlock_client_timeout_ms(redlock_client *client) {
  redlock_duration timeout_us = redlock_client_timeout(client);
  if (timeout_us == REDLOCK_NEVER) {
    return -1;
  }
  uint64_t timeout_ms = rl_time_ms_up(timeout_us);
  return timeout_ms > INT_MAX ? INT_MAX : (int)timeout_ms;
}

int redlock_client_process(redlock_client *client, const struct pollfd *fds, size_t count) {
  if (client == NULL) {
    return REDLOCK_E_INVALID;
  }
  rl_client_enter(client);
  client->watchdog.loop_is_absent = false; /* WDOG-4 */
  int result = rl_turn_process(client, fds, count);
  if (result == REDLOCK_OK && client->core.closed) {
    result = REDLOCK_E_CLOSED;
  }
  rl_client_leave(client);
  return result;
}

redlock_lock *redlock_client_next_ended(redlock_client *client) {
  if (client == NULL) {
    return NULL;
  }
  rl_client_enter(client);
  rl_lock *lock = rl_core_next_ended(&client->core);
  if (lock != NULL) {
    rl_poll_wake(client); /* A loop may take only one each time. */
  }
  rl_client_leave(client);
  return rl_handle_of(lock);
}

/* ------------------------------------------------------------------------------------- losses */

redlock_lock *redlock_client_next_lost(redlock_client *client) {
  if (client == NULL) {
    return NULL;
  }
  rl_client_enter(client);
  rl_lock *lock = rl_loss_next(&client->core, redlock_now());
  if (lock != NULL) {
    rl_poll_wake(client);
  }
  rl_client_leave(client);
  return rl_handle_of(lock);
}

int redlock_client_on_lost(redlock_client *client, redlock_lost_function *on_lost, void *data) {
  if (client == NULL || client->external) {
    return REDLOCK_E_INVALID;
  }
  rl_client_enter(client);
  int error = client->core.closed ? REDLOCK_E_CLOSED
              : on_lost != NULL   ? rl_watchdog_start(client)
                                  : REDLOCK_OK;
  if (error == REDLOCK_OK) {
    rl_watchdog *watchdog = &client->watchdog;
    watchdog->on_lost = on_lost;
    watchdog->on_lost_data = data;
    watchdog->reported_count =
        client->core.losses->count - (!rl_list_is_empty(&client->core.losses->queue));
  }
  rl_client_leave(client);
  return error;
}

/* -------------------------------------------------------------------------------- credentials */

/* Returns REDLOCK_OK if a connection to |node| waits for credentials. */
static int rl_client_may_answer(redlock_client *client, size_t node) {
  unsigned connection;
  return client->external || node >= client->core.node_count               ? REDLOCK_E_INVALID
         : client->core.closed                                             ? REDLOCK_E_CLOSED
         : rl_credentials_are_awaited(client, (unsigned)node, &connection) ? REDLOCK_OK
                                                                           : REDLOCK_E_EXPIRED;
}

int redlock_client_give_credentials(redlock_client *client, size_t node, const char *username,
                                    const void *password, size_t length) {
  unsigned connection;
  if (client == NULL || rl_credentials_wrong(username, password, length) != NULL) {
    return REDLOCK_E_INVALID;
  }
  rl_client_enter(client);
  int error = rl_client_may_answer(client, node);
  if (error == REDLOCK_OK) {
    while (rl_credentials_are_awaited(client, (unsigned)node, &connection)) {
      int given = rl_core_login(&client->core, connection, username, password, length);
      if (given == REDLOCK_OK) {
        rl_turn_open(client, connection);
      } else {
        rl_credentials_refused(client, connection, redlock_strerror(given));
        error = given;
      }
    }
    rl_poll_wake(client);
  }
  rl_client_leave(client);
  return error;
}

int redlock_client_refuse_credentials(redlock_client *client, size_t node, const char *why) {
  unsigned connection;
  if (client == NULL) {
    return REDLOCK_E_INVALID;
  }
  rl_client_enter(client);
  int error = rl_client_may_answer(client, node);
  if (error == REDLOCK_OK) {
    while (rl_credentials_are_awaited(client, (unsigned)node, &connection)) {
      rl_credentials_refused(client, connection, why);
    }
    rl_poll_wake(client);
  }
  rl_client_leave(client);
  return error;
}
