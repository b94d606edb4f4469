/*
 * Servers on loopback, in this process, that answer like Redis as far as the library can see.
 *
 * SPDX-License-Identifier: MIT
 */
#include "loopback.h"

#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "fake_queue.h"

#define LOOPBACK_FDS (LOOPBACK_NODES_MAX * (LOOPBACK_CONNECTIONS_MAX + 1))

static void must(bool ok, const char *what) {
  if (!ok) {
    perror(what);
    abort();
  }
}

static void listen_tcp(loopback_node *node) {
  struct sockaddr_in address;
  socklen_t length = sizeof address;
  int on = 1;
  memset(&address, 0, sizeof address);
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  address.sin_port = htons((uint16_t)node->port);
  node->listener = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
  must(node->listener >= 0, "socket");
  must(setsockopt(node->listener, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on) == 0, "setsockopt");
  must(bind(node->listener, (struct sockaddr *)&address, sizeof address) == 0, "bind");
  must(listen(node->listener, 64) == 0, "listen");
  must(getsockname(node->listener, (struct sockaddr *)&address, &length) == 0, "getsockname");
  node->port = ntohs(address.sin_port);
  (void)snprintf(node->address, sizeof node->address, "127.0.0.1:%d", node->port);
  (void)snprintf(node->name, sizeof node->name, "%s", node->address);
}

static void listen_unix(loopback_node *node) {
  struct sockaddr_un address;
  memset(&address, 0, sizeof address);
  address.sun_family = AF_UNIX;
  memcpy(address.sun_path, node->path, strlen(node->path));
  (void)unlink(node->path);
  node->listener = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
  must(node->listener >= 0, "socket");
  must(bind(node->listener, (struct sockaddr *)&address, sizeof address) == 0, "bind");
  must(listen(node->listener, 64) == 0, "listen");
  (void)snprintf(node->address, sizeof node->address, "unix://%s", node->path);
  (void)snprintf(node->name, sizeof node->name, "unix:%s", node->path);
}

/*
 * All farms. A forked child that ends at once has no other pointer to one, and valgrind would
 * report a leak.
 */
static loopback *loopback_latest;

static void loopback_forget(const loopback *farm) {
  loopback **link = &loopback_latest;
  while (*link != farm) {
    link = &(*link)->before;
  }
  *link = farm->before;
}

loopback *loopback_new(unsigned count, loopback_kind kind) {
  loopback *farm = calloc(1, sizeof *farm);
  must(farm != NULL, "calloc");
  farm->before = loopback_latest;
  loopback_latest = farm;
  must(scratch_make(farm->directory, "test"), "a directory for sockets");
  must(pthread_mutex_init(&farm->mutex, NULL) == 0, "pthread_mutex_init");
  farm->count = count;
  for (unsigned i = 0; i < count; i++) {
    loopback_node *node = &farm->nodes[i];
    node->kind = kind;
    (void)snprintf(node->path, sizeof node->path, "%s/%u", farm->directory, i);
    for (unsigned k = 0; k < LOOPBACK_CONNECTIONS_MAX; k++) {
      node->connections[k].fd = -1;
    }
    loopback_up(farm, i);
  }
  return farm;
}

void loopback_up(loopback *farm, unsigned index) {
  loopback_node *node = &farm->nodes[index];
  if (node->kind == LOOPBACK_TCP) {
    listen_tcp(node);
  } else {
    listen_unix(node);
  }
}

static void hang_up(loopback_node *node, loopback_connection *connection) {
  if (connection->fd >= 0) {
    (void)close(connection->fd);
  }
  connection->fd = -1;
  connection->length = 0;
  fake_queue_unsubscribe(&node->store, (unsigned)(connection - node->connections));
}

void loopback_down(loopback *farm, unsigned index) {
  loopback_node *node = &farm->nodes[index];
  if (node->listener >= 0) {
    /* A thread that polls it would keep it listening for a moment. */
    (void)shutdown(node->listener, SHUT_RDWR);
    (void)close(node->listener); /* A path that stays refuses connections, as a port does. */
  }
  node->listener = -1;
  for (unsigned i = 0; i < LOOPBACK_CONNECTIONS_MAX; i++) {
    hang_up(node, &node->connections[i]);
  }
}

static void greet(loopback_node *node) {
  int fd = accept4(node->listener, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
  for (unsigned i = 0; i < LOOPBACK_CONNECTIONS_MAX && fd >= 0; i++) {
    if (node->connections[i].fd < 0) {
      node->connections[i].fd = fd;
      node->connections[i].length = 0;
      node->accepted++;
      return;
    }
  }
  if (fd >= 0) {
    (void)close(fd);
  }
}

/* Messages that a command has published arrive before its answer. */
static void call(loopback_node *node) {
  for (unsigned i = 0; i < LOOPBACK_CONNECTIONS_MAX; i++) {
    char message[FAKE_REPLY_MAX];
    size_t length;
    while ((length = fake_queue_take(&node->store, i, message)) > 0) {
      (void)send(node->connections[i].fd, message, length, MSG_NOSIGNAL);
    }
  }
}

/* Answers one command. Returns false if it has closed the connection. */
static bool answer(loopback_node *node, loopback_connection *connection,
                   const fake_command *command) {
  char reply[FAKE_REPLY_MAX];
  const char *text = reply;
  bool operation = command->verb >= FAKE_SET;
  node->commands += operation && !fake_queue_is(command);
  node->sets += command->verb == FAKE_SET;
  node->releases += command->verb == FAKE_RELEASE;
  if (node->deaf) {
    return true;
  }
  if (node->hangs_up && operation) {
    node->hangs_up = false;
    hang_up(node, connection);
    return false;
  }
  fake_store_execute(&node->store, redlock_now(), command, reply);
  if (command->verb == FAKE_SUBSCRIBE) {
    fake_queue_subscribe(&node->store, (unsigned)(connection - node->connections),
                         fake_queue_channel(command));
  }
  call(node);
  if (node->says != NULL && operation) {
    text = node->says;
  }
  (void)send(connection->fd, text, strlen(text), MSG_NOSIGNAL);
  return true;
}

static void serve(loopback *farm, loopback_node *node, loopback_connection *connection) {
  ssize_t got = recv(connection->fd, connection->input + connection->length,
                     sizeof connection->input - connection->length, 0);
  if (got <= 0) {
    hang_up(node, connection);
    return;
  }
  connection->length += (size_t)got;
  size_t at = 0;
  fake_command command;
  long used;
  while ((used = fake_command_parse(&command, connection->input + at, connection->length - at)) >
         0) {
    at += (size_t)used;
    if (!answer(node, connection, &command)) {
      return;
    }
  }
  farm->broken = farm->broken || used < 0;
  memmove(connection->input, connection->input + at, connection->length - at);
  connection->length -= at;
}

static nfds_t watch(const loopback *farm, struct pollfd *fds) {
  nfds_t used = 0;
  for (unsigned i = 0; i < farm->count; i++) {
    const loopback_node *node = &farm->nodes[i];
    fds[used++] = (struct pollfd){node->listener, POLLIN, 0};
    for (unsigned k = 0; k < LOOPBACK_CONNECTIONS_MAX; k++) {
      fds[used++] = (struct pollfd){node->connections[k].fd, POLLIN, 0};
    }
  }
  return used;
}

void loopback_pump(loopback *farm, int timeout_ms) {
  struct pollfd fds[LOOPBACK_FDS];
  nfds_t used = watch(farm, fds);
  size_t at = 0;
  if (poll(fds, used, timeout_ms) <= 0) {
    return;
  }
  for (unsigned i = 0; i < farm->count; i++) {
    loopback_node *node = &farm->nodes[i];
    bool caller = fds[at++].revents != 0;
    for (unsigned k = 0; k < LOOPBACK_CONNECTIONS_MAX; k++, at++) {
      if (fds[at].revents != 0 && node->connections[k].fd == fds[at].fd) {
        serve(farm, node, &node->connections[k]);
      }
    }
    if (caller && node->listener >= 0) {
      greet(node);
    }
  }
}

void loopback_serve(void) {
  for (loopback *farm = loopback_latest; farm != NULL; farm = farm->before) {
    if (farm->served) {
      loopback_pump(farm, 0);
    }
  }
}

static void *run(void *argument) {
  loopback *farm = argument;
  for (;;) {
    struct pollfd fds[LOOPBACK_FDS];
    loopback_lock(farm);
    bool stop = farm->stop;
    nfds_t used = watch(farm, fds);
    loopback_unlock(farm);
    if (stop) {
      return NULL;
    }
    /* Without the mutex, and briefly: the test may change the descriptors. */
    if (poll(fds, used, 5) > 0) {
      loopback_lock(farm);
      loopback_pump(farm, 0);
      loopback_unlock(farm);
    }
  }
}

void loopback_run(loopback *farm) {
  must(pthread_create(&farm->thread, NULL, run, farm) == 0, "pthread_create");
  farm->running = true;
}

void loopback_lock(loopback *farm) {
  (void)pthread_mutex_lock(&farm->mutex);
}

void loopback_unlock(loopback *farm) {
  (void)pthread_mutex_unlock(&farm->mutex);
}

bool loopback_end(loopback *farm) {
  if (farm->running) {
    loopback_lock(farm);
    farm->stop = true;
    loopback_unlock(farm);
    (void)pthread_join(farm->thread, NULL);
  }
  bool ok = !farm->broken;
  for (unsigned i = 0; i < farm->count; i++) {
    loopback_down(farm, i);
    (void)unlink(farm->nodes[i].path);
  }
  (void)rmdir(farm->directory);
  (void)pthread_mutex_destroy(&farm->mutex);
  loopback_forget(farm);
  free(farm);
  return ok;
}

unsigned loopback_keys(loopback *farm, const char *key) {
  unsigned keys = 0;
  loopback_lock(farm);
  for (unsigned i = 0; i < farm->count; i++) {
    keys += fake_store_token(&farm->nodes[i].store, redlock_now(), key) != NULL;
  }
  loopback_unlock(farm);
  return keys;
}

int loopback_finish(redlock_client *client, redlock_lock *lock) {
  redlock_time until_us = redlock_now() + 20 * REDLOCK_SECONDS;
  while (redlock_lock_result(lock) == REDLOCK_PENDING) {
    struct pollfd fds[REDLOCK_NODES_MAX];
    size_t count = redlock_client_pollfds(client, fds, REDLOCK_NODES_MAX);
    (void)poll(fds, (nfds_t)count, 2);
    if (redlock_client_process(client, fds, count) != REDLOCK_OK || redlock_now() > until_us) {
      abort();
    }
  }
  return redlock_lock_result(lock);
}
