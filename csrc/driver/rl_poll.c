/*
 * What a client waits for: descriptors, an epoll set, and until when.
 *
 * SPDX-License-Identifier: MIT
 */
#include "rl_poll.h"

#include <limits.h>
#include <time.h>
#include <unistd.h>

#if defined(__linux__)
#include <sys/epoll.h>
#endif

#include "rl_pump.h"

/* --------------------------------------------------------------------------------------- epoll */

void rl_poll_sync(redlock_client *client) {
  if (client->epoll_fd < 0) {
    return;
  }
  uint32_t output = rl_pump_output(&client->core);
  for (unsigned i = 0; i < client->core.node_count; i++) {
    rl_socket_register(&client->sockets[i], client->epoll_fd, (output >> i & 1) != 0);
  }
}

void rl_poll_close(redlock_client *client) {
  if (client->epoll_fd >= 0) {
    (void)close(client->epoll_fd);
    client->epoll_fd = -1;
  }
}

#if defined(__linux__)
int redlock_client_pollfd(redlock_client *client) {
  if (client == NULL) {
    return -1;
  }
  rl_client_check_fork(client);
  if (client->epoll_fd < 0 && !client->core.closed) {
    client->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
    rl_poll_sync(client);
  }
  return client->epoll_fd;
}
#else
int redlock_client_pollfd(redlock_client *client) {
  (void)client;
  return -1;
}
#endif

/* ------------------------------------------------------------------------ caller-owned loops */

size_t redlock_client_pollfds(redlock_client *client, struct pollfd *fds, size_t capacity) {
  size_t count = 0;
  if (client == NULL) {
    return 0;
  }
  rl_client_check_fork(client);
  uint32_t output = rl_pump_output(&client->core);
  for (unsigned i = 0; i < client->core.node_count; i++) {
    short events;
    int fd = rl_socket_wait(&client->sockets[i], (output >> i & 1) != 0, &events);
    if (fd < 0) {
      continue;
    }
    if (count < capacity) {
      fds[count].fd = fd;
      fds[count].events = events;
      fds[count].revents = 0;
    }
    count++;
  }
  return count;
}

/* Whether bytes wait that nobody has tried to send yet. */
static bool rl_poll_untried(const redlock_client *client) {
  uint32_t output = rl_pump_output(&client->core);
  for (unsigned i = 0; i < client->core.node_count; i++) {
    const rl_socket *socket = &client->sockets[i];
    if (socket->phase == RL_SOCKET_OPEN && !socket->blocked && (output >> i & 1) != 0) {
      return true;
    }
  }
  return false;
}

redlock_duration redlock_client_timeout(redlock_client *client) {
  if (client == NULL) {
    return REDLOCK_NEVER;
  }
  rl_client_check_fork(client);
  redlock_time deadline_us = rl_core_deadline(&client->core);
  if (deadline_us == 0 || rl_poll_untried(client)) {
    return 0;
  }
  for (unsigned i = 0; i < client->core.node_count; i++) {
    deadline_us = rl_time_min(deadline_us, rl_socket_deadline(&client->sockets[i]));
  }
  return deadline_us == REDLOCK_NEVER ? REDLOCK_NEVER : rl_time_sub(deadline_us, redlock_now());
}

int redlock_client_timeout_ms(redlock_client *client) {
  redlock_duration timeout_us = redlock_client_timeout(client);
  if (timeout_us == REDLOCK_NEVER) {
    return -1;
  }
  uint64_t timeout_ms = rl_time_ms_up(timeout_us);
  return timeout_ms > INT_MAX ? INT_MAX : (int)timeout_ms;
}

/* ---------------------------------------------------------------------------------- waiting */

int rl_poll_wait(redlock_client *client, redlock_time deadline_us) {
  struct pollfd fds[REDLOCK_NODES_MAX];
  size_t count = redlock_client_pollfds(client, fds, REDLOCK_NODES_MAX);
  redlock_duration timeout_us = redlock_client_timeout(client);
  if (deadline_us != REDLOCK_NEVER) {
    timeout_us = rl_time_min(timeout_us, rl_time_sub(deadline_us, redlock_now()));
  }
  if (timeout_us == REDLOCK_NEVER && count == 0) {
    return REDLOCK_E_SYSTEM; /* Nothing could ever end this wait. */
  }
#if defined(__linux__)
  struct timespec timeout = {(time_t)(timeout_us / REDLOCK_SECONDS),
                             (long)(timeout_us % REDLOCK_SECONDS) * 1000};
  int ready = ppoll(fds, (nfds_t)count, timeout_us == REDLOCK_NEVER ? NULL : &timeout, NULL);
#else
  uint64_t timeout_ms = rl_time_ms_up(timeout_us);
  int ready = poll(fds, (nfds_t)count,
                   timeout_us == REDLOCK_NEVER ? -1
                   : timeout_ms > INT_MAX      ? INT_MAX
                                               : (int)timeout_ms);
#endif
  /* Interrupted: nothing is ready, and the next turn computes the rest of the wait. */
  return redlock_client_process(client, fds, ready > 0 ? count : 0);
}
