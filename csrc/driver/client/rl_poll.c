/*
 * What a client waits for: descriptors, an epoll set, and how long.
 *
 * SPDX-License-Identifier: MIT
 */
#include "client/rl_poll.h"

#include <limits.h>
#include <unistd.h>

#if defined(__linux__)
#include <sys/epoll.h>
#endif

#include "client/rl_pump.h"
#include "lock/rl_events.h"
#include "os/rl_clock.h"

/* Returns when the connection needs a turn at the latest; 0 = at once. */
static inline redlock_time rl_poll_socket_deadline(const redlock_client *client, unsigned i) {
  const rl_socket *socket = &client->sockets[i];
  if (rl_core_peer(&client->core, i)->link.phase == RL_LINK_DOWN) {
    return rl_socket_is_closed(socket) ? REDLOCK_NEVER : 0; /* The core has dropped it. */
  }
  if (!rl_socket_is_open(socket)) {
    return rl_socket_deadline_to_open(socket);
  }
  /* With |unsent| another thread is about to send. */
  bool untried =
      !socket->stream.blocked && !client->callers.unsent && rl_poll_has_unsent(client, i);
  return untried || rl_socket_holds_input(socket) ? 0 : REDLOCK_NEVER;
}

redlock_time rl_poll_deadline(const redlock_client *client) {
  redlock_time deadline_us = rl_core_deadline(&client->core);
  for (unsigned i = 0; deadline_us != 0 && i < rl_core_connection_count(&client->core); i++) {
    deadline_us = rl_time_min(deadline_us, rl_poll_socket_deadline(client, i));
  }
  return deadline_us;
}

/* Returns true if the program's loop has something to fetch. */
static bool rl_poll_has_news(const redlock_client *client) {
  return rl_lock_queue_first(&client->core.ended) != NULL ||
         !rl_list_is_empty(&client->core.losses->queue) || rl_events_are_there(client->core.events);
}

redlock_time rl_poll_process_deadline(const redlock_client *client) {
  if (client->wants_credentials != 0 && !client->asking) {
    return 0;
  }
  redlock_time turn_us = client->wake && rl_poll_has_news(client) ? 0 : rl_poll_deadline(client);
  return client->driver_due_us != 0 ? rl_time_min(turn_us, client->driver_due_us) : turn_us;
}

void rl_poll_at(redlock_client *client, redlock_time at_us) {
  if (client->driver_due_us == 0 || at_us < client->driver_due_us) {
    client->driver_due_us = at_us;
    rl_poll_sync(client);
  }
}

/* ------------------------------------------------------------------------------ one descriptor */

#if defined(__linux__)
/* Sets or clears the event in the epoll set. */
static void rl_poll_set_event(redlock_client *client, bool wake) {
  if (wake && !client->event_is_set) {
    rl_eventfd_set(&client->event);
  } else if (!wake && client->event_is_set) {
    rl_eventfd_clear(&client->event);
  }
  client->event_is_set = wake;
}

void rl_poll_sync(redlock_client *client) {
  if (client->epoll_fd < 0) {
    return;
  }
  for (unsigned i = 0; i < rl_core_connection_count(&client->core); i++) {
    rl_socket_register(&client->sockets[i], client->epoll_fd, rl_poll_has_unsent(client, i));
  }
  redlock_time deadline_us = rl_poll_process_deadline(client);
  rl_poll_set_event(client, deadline_us == 0);
  if (deadline_us != 0) {
    rl_timerfd_set(&client->timer, deadline_us);
  }
}

static bool rl_poll_add(redlock_client *client, int fd) {
  struct epoll_event event = {.events = EPOLLIN};
  return fd >= 0 && epoll_ctl(client->epoll_fd, EPOLL_CTL_ADD, fd, &event) == 0;
}

void rl_poll_open(redlock_client *client) {
  client->event_is_set = false;
  client->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
  (void)rl_timerfd_open(&client->timer);
  (void)rl_eventfd_open(&client->event);
  if (client->epoll_fd < 0 || !rl_poll_add(client, client->timer.fd) ||
      !rl_poll_add(client, rl_eventfd_to_poll(&client->event))) {
    rl_poll_close(client);
  }
  rl_poll_wake(client);
}
#else
void rl_poll_sync(redlock_client *client) {
  (void)client;
}

void rl_poll_open(redlock_client *client) {
  (void)client;
}
#endif

void rl_poll_wake(redlock_client *client) {
  client->wake = client->wake || rl_poll_has_news(client);
  rl_poll_sync(client);
}

void rl_poll_close(redlock_client *client) {
  if (client->epoll_fd >= 0) {
    (void)close(client->epoll_fd);
  }
  client->epoll_fd = -1;
  rl_timerfd_close(&client->timer);
  rl_eventfd_close(&client->event);
}

/* -------------------------------------------------------------------------------- descriptors */

rl_callers_wants rl_poll_wants(const redlock_client *client, struct pollfd *fds, size_t capacity) {
  rl_callers_wants wants = {0, 0, rl_core_deadline(&client->core), 0};
  for (unsigned i = 0; i < rl_core_connection_count(&client->core); i++) {
    const rl_socket *socket = &client->sockets[i];
    short events;
    int fd = rl_socket_wait(socket, rl_poll_has_unsent(client, i), &events);
    wants.changes += socket->changes; /* The sum grows with each change. */
    wants.deadline_us = rl_time_min(wants.deadline_us, rl_poll_socket_deadline(client, i));
    if (fd < 0) {
      continue;
    }
    wants.writable |= (events & POLLOUT) != 0 ? (uint32_t)1 << i : 0;
    if (wants.count < capacity) {
      fds[wants.count] = (struct pollfd){fd, events, 0};
    }
    wants.count++;
  }
  return wants;
}

size_t rl_poll_fds(const redlock_client *client, struct pollfd *fds, size_t capacity) {
  return rl_poll_wants(client, fds, capacity).count;
}

/* ---------------------------------------------------------------------------------- waiting */

int rl_poll_until(struct pollfd *fds, size_t count, redlock_time until_us) {
  redlock_duration timeout_us =
      until_us == REDLOCK_NEVER ? REDLOCK_NEVER : rl_time_sub(until_us, redlock_now());
#if defined(__linux__)
  struct timespec timeout = {(time_t)(timeout_us / REDLOCK_SECONDS),
                             (long)(timeout_us % REDLOCK_SECONDS) * 1000};
  return ppoll(fds, (nfds_t)count, timeout_us == REDLOCK_NEVER ? NULL : &timeout, NULL);
#else
  uint64_t timeout_ms = rl_time_ms_up(timeout_us);
  return poll(fds, (nfds_t)count,
              timeout_us == REDLOCK_NEVER ? -1
              : timeout_ms > INT_MAX      ? INT_MAX
                                          : (int)timeout_ms);
#endif
}
