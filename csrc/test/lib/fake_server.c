/*
 * A server that answers as no Redis server should.
 *
 * SPDX-License-Identifier: MIT
 */
#include "fake_server.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>

#include "resp.h"
#include "support.h"

#define FAKE_REQUEST_MAX 65536

typedef struct fake_connection {
  const fake_behaviour *behaviour;
  int fd;
  long sent;
  size_t held;
  char bytes[FAKE_REQUEST_MAX];
} fake_connection;

/*
 * Ends the connection. Reads the client's bytes first: closing with bytes unread would reset the
 * connection, which may overtake the sent ones.
 */
static void fake_hang_up(const fake_connection *connection) {
  char ignored[512];
  (void)shutdown(connection->fd, SHUT_WR);
  while (recv(connection->fd, ignored, sizeof ignored, 0) > 0) {
  }
  _exit(0);
}

static void fake_send(fake_connection *connection, const char *text) {
  size_t length = strlen(text);
  size_t at = 0;
  while (at < length) {
    size_t count = connection->behaviour->one_by_one ? 1 : length - at;
    long limit = connection->behaviour->close_after;
    if (limit > 0 && (long)count > limit - connection->sent) {
      count = (size_t)(limit - connection->sent);
    }
    if (send(connection->fd, text + at, count, MSG_NOSIGNAL) != (ssize_t)count) {
      fake_hang_up(connection);
    }
    at += count;
    connection->sent += (long)count;
    if (limit > 0 && connection->sent >= limit) {
      fake_hang_up(connection);
    }
    if (connection->behaviour->one_by_one) {
      (void)poll(NULL, 0, 1); /* So that the client reads each on its own. */
    }
  }
}

static void fake_answer(fake_connection *connection, const resp_request *request) {
  const fake_behaviour *behaviour = connection->behaviour;
  const char *reply = "+OK\r\n";
  bool flood = false;
  if (resp_is(request, 0, "CLIENT")) {
    if (behaviour->closes_at_name ||
        (behaviour->closes_at_info && resp_is(request, 1, "SETINFO"))) {
      fake_hang_up(connection);
    }
    reply = behaviour->setname != NULL ? behaviour->setname : reply;
    flood = behaviour->flood_handshake;
  } else if (resp_is(request, 0, "EXISTS")) {
    reply = ":0\r\n";
  } else if (resp_is(request, 0, "SET")) {
    reply = behaviour->set != NULL ? behaviour->set : reply;
    flood = !behaviour->flood_handshake;
  } else if (resp_is(request, 0, "EVALSHA") || resp_is(request, 0, "EVAL")) {
    reply = behaviour->script != NULL ? behaviour->script : ":1\r\n";
  }
  fake_send(connection, reply);
  while (flood && behaviour->flood != NULL) {
    fake_send(connection, behaviour->flood);
  }
}

/* Answers complete requests, and keeps the rest. */
static void fake_answer_all(fake_connection *connection) {
  resp_request request;
  long used;
  while ((used = resp_read(&request, connection->bytes, connection->held)) > 0) {
    fake_answer(connection, &request);
    connection->held -= (size_t)used;
    memmove(connection->bytes, connection->bytes + used, connection->held);
  }
  if (used < 0) {
    fake_hang_up(connection);
  }
}

static void fake_serve(int fd, const fake_behaviour *behaviour) {
  static fake_connection connection;
  int on = 1;
  connection.behaviour = behaviour;
  connection.fd = fd;
  (void)setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  if (behaviour->greeting != NULL) {
    fake_send(&connection, behaviour->greeting);
  }
  for (;;) {
    ssize_t got =
        recv(fd, connection.bytes + connection.held, sizeof connection.bytes - connection.held, 0);
    if (got <= 0) {
      fake_hang_up(&connection);
    }
    connection.held += (size_t)got;
    fake_answer_all(&connection);
  }
}

static void fake_listen(int listener, const fake_server *self, const fake_behaviour *behaviour) {
  pid_t server = getpid();
  (void)signal(SIGCHLD, SIG_IGN);
  for (;;) {
    int fd = accept(listener, NULL, NULL);
    *self->accepted += fd >= 0;
    if (fd >= 0 && fork() == 0) {
      (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
      if (getppid() != server) {
        _exit(0);
      }
      (void)close(listener);
      fake_serve(fd, behaviour);
    }
    (void)close(fd);
  }
}

void fake_start(fake_server *server, const fake_behaviour *behaviour) {
  struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
  socklen_t length = sizeof address;
  pid_t parent = getpid();
  int listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  assert_true(listener >= 0);
  assert_int_equal(bind(listener, (struct sockaddr *)&address, length), 0);
  assert_int_equal(listen(listener, 16), 0);
  assert_int_equal(getsockname(listener, (struct sockaddr *)&address, &length), 0);
  server->port = ntohs(address.sin_port);
  (void)snprintf(server->address, sizeof server->address, "127.0.0.1:%d", server->port);
  server->accepted = mmap(NULL, sizeof *server->accepted, PROT_READ | PROT_WRITE,
                          MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  assert_true(server->accepted != MAP_FAILED);
  server->pid = fork();
  assert_true(server->pid >= 0);
  if (server->pid == 0) {
    (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent) {
      _exit(0);
    }
    fake_listen(listener, server, behaviour);
  }
  (void)close(listener);
}

void fake_end(fake_server *server) {
  (void)kill(server->pid, SIGKILL);
  (void)waitpid(server->pid, NULL, 0);
  (void)munmap((void *)server->accepted, sizeof *server->accepted);
}
