/*
 * Asks Sentinels for the address of their master.
 *
 * SPDX-License-Identifier: MIT
 *
 *   SNT-1. The Sentinels are asked one after the other, with half a second for each.
 *   SNT-2. An address counts if more than half of the listed Sentinels name it. A Sentinel that is
 *          cut off from the others still names the former master.
 *   SNT-3. The server at the address proves nothing here. A replica answers READONLY later, and a
 *          former master without replicas NOREPLICAS. Either ends its connection, so that the
 *          Sentinels are asked again. The guard examines the rest.
 *   SNT-4. Of an error only the first word is kept, because servers quote what they have received.
 */
#include "net/rl_sentinel.h"

#include <assert.h>
#include <errno.h>
#include <netdb.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/rl_time.h"
#include "net/rl_lookup.h"
#include "node/rl_link.h"
#include "options/rl_address.h"
#include "os/rl_descriptor.h"
#include "wire/rl_command.h"

#define RL_SENTINEL_TIMEOUT_US (500 * REDLOCK_MILLISECONDS)
#define RL_SENTINEL_REPLY_MAX 1024

static_assert(RL_ADDRESS_SENTINELS_MAX / 2 * RL_SENTINEL_TIMEOUT_US < RL_LINK_CONNECT_TIMEOUT_US,
              "a look-up ends in time although a minority of the Sentinels hangs");

/* One Sentinel. */
typedef struct rl_sentinel {
  const char *name; /* "host:port", in the list */
  size_t name_length;
  rl_sentinel_connection *connection;
  int fd; /* the connection's, which only this thread changes */
  redlock_time until_us;
  char reply[RL_SENTINEL_REPLY_MAX + 1];
  size_t length;
  char error[RL_STREAM_ERROR_MAX];
} rl_sentinel;

static bool rl_sentinel_fail(rl_sentinel *self, const char *why) {
  (void)snprintf(self->error, sizeof self->error, "%s", why);
  return false;
}

/* ------------------------------------------------------------------------------- the connection */

/* Waits for |events|. Returns false at the end of the time. */
static bool rl_sentinel_wait(const rl_sentinel *self, short events) {
  for (;;) {
    redlock_duration left_us = rl_time_sub(self->until_us, redlock_now());
    struct pollfd ready = {self->fd, events, 0};
    int count = left_us == 0 ? 0 : poll(&ready, 1, (int)(left_us / REDLOCK_MILLISECONDS) + 1);
    if (count >= 0 || errno != EINTR) {
      return count > 0;
    }
  }
}

/* Opens a socket, or closes it if |family| is AF_UNSPEC. Returns 0 or an errno. */
static int rl_sentinel_set(rl_sentinel *self, int family) {
  int error = 0;
  rl_mutex_lock(&self->connection->mutex);
  if (family != AF_UNSPEC) {
    self->fd = rl_descriptor_socket(family);
    error = self->fd < 0 ? errno : 0;
  } else if (self->fd >= 0) {
    (void)close(self->fd);
    self->fd = -1;
  }
  self->connection->fd = self->fd;
  rl_mutex_unlock(&self->connection->mutex);
  return error;
}

static bool rl_sentinel_connect_to(rl_sentinel *self, const struct addrinfo *address) {
  socklen_t length = sizeof(int);
  int error = rl_sentinel_set(self, address->ai_family);
  if (error != 0) {
    rl_stream_explain(self->error, error);
    return false;
  }
  if (connect(self->fd, address->ai_addr, address->ai_addrlen) != 0) {
    error = errno;
    if (error == EINPROGRESS && !rl_sentinel_wait(self, POLLOUT)) {
      error = ETIMEDOUT;
    } else if (error == EINPROGRESS &&
               getsockopt(self->fd, SOL_SOCKET, SO_ERROR, &error, &length) != 0) {
      error = errno;
    }
  }
  if (error != 0) {
    rl_stream_explain(self->error, error);
  }
  return error == 0;
}

static void rl_sentinel_close(rl_sentinel *self) {
  (void)rl_sentinel_set(self, AF_UNSPEC);
}

static bool rl_sentinel_connect(rl_sentinel *self) {
  struct addrinfo *addresses;
  char host[RL_ADDRESS_HOST_MAX + 1], port[8];
  const char *colon = self->name + self->name_length;
  while (*--colon != ':') {
  }
  bool brackets = self->name[0] == '[';
  size_t length = (size_t)(colon - self->name) - (brackets ? 2 : 0);
  (void)snprintf(host, sizeof host, "%.*s", (int)length, self->name + brackets);
  (void)snprintf(port, sizeof port, "%.*s", (int)(self->name + self->name_length - colon - 1),
                 colon + 1);
  int error = rl_lookup_name(host, port, &addresses);
  if (error != 0) {
    return rl_sentinel_fail(self, gai_strerror(error));
  }
  bool connected = false;
  redlock_time end_us = rl_time_add(redlock_now(), RL_SENTINEL_TIMEOUT_US);
  for (const struct addrinfo *at = addresses; at != NULL && !connected; at = at->ai_next) {
    rl_sentinel_close(self);
    /* An address that is not the last one leaves half of the time to those behind it. */
    redlock_duration left_us = rl_time_sub(end_us, redlock_now());
    self->until_us = at->ai_next == NULL ? end_us : rl_time_sub(end_us, left_us / 2);
    connected = rl_sentinel_connect_to(self, at);
  }
  self->until_us = end_us;
  freeaddrinfo(addresses);
  return connected;
}

static bool rl_sentinel_send(rl_sentinel *self, const char *bytes, size_t length) {
  while (length > 0) {
    ssize_t sent = send(self->fd, bytes, length, MSG_NOSIGNAL);
    if (sent < 0 && errno != EINTR && (errno != EAGAIN || !rl_sentinel_wait(self, POLLOUT))) {
      return rl_sentinel_fail(self, "the connection has ended");
    }
    bytes += sent > 0 ? sent : 0;
    length -= sent > 0 ? (size_t)sent : 0;
  }
  return true;
}

/* -------------------------------------------------------------------------------- the reply */

/* Copies the line at |*at| without its end, and moves |*at| behind it. Returns false if there is
 * none yet. */
static bool rl_sentinel_line(const char **at, char line[RL_SENTINEL_REPLY_MAX + 1]) {
  const char *end = strstr(*at, "\r\n");
  if (end == NULL) {
    return false;
  }
  (void)snprintf(line, RL_SENTINEL_REPLY_MAX + 1, "%.*s", (int)(end - *at), *at);
  *at = end + 2;
  return true;
}

static bool rl_sentinel_is_host(const char *line) {
  return line[0] != '\0' && strlen(line) <= RL_ADDRESS_HOST_MAX;
}

/* getaddrinfo() takes 65537 for 1, and a sign. */
static bool rl_sentinel_is_port(const char *line) {
  size_t length = strlen(line);
  long port = length <= 5 && strspn(line, "0123456789") == length ? strtol(line, NULL, 10) : 0;
  return port >= 1 && port <= 65535;
}

/* Reads the lines of the array of host and port. Returns true if the reply is complete or wrong:
 * |self->error| says so. */
static bool rl_sentinel_parse(rl_sentinel *self, bool login, rl_sentinel_master *master) {
  char line[RL_SENTINEL_REPLY_MAX + 1];
  const char *at = self->reply;
  unsigned expected = login ? 6 : 5; /* +OK, *2, $n, host, $n, port */
  for (unsigned i = 6 - expected; i < 6; i++) {
    if (!rl_sentinel_line(&at, line)) {
      return false;
    }
    static const char types[] = "+*$ $ ";
    bool text = types[i] == ' ';
    if (!text && line[0] == '-') { /* SNT-4 */
      line[1 + strcspn(line + 1, " ")] = '\0';
      bool unknown = i > 0 && strcmp(line + 1, "ERR") == 0; /* i is 0 for the login. */
      (void)snprintf(self->error, sizeof self->error, "it answers %.60s%s", line + 1,
                     unknown ? "; is this a Sentinel?" : "");
      return true;
    }
    if (!text && (strcmp(line, "*-1") == 0 || strcmp(line, "$-1") == 0)) {
      (void)rl_sentinel_fail(self, "it knows no master of this name");
      return true;
    }
    if (text ? !(i == 3 ? rl_sentinel_is_host(line) : rl_sentinel_is_port(line))
             : line[0] != types[i] || (i == 1 && strcmp(line, "*2") != 0)) {
      (void)rl_sentinel_fail(self, "its answer is not that of a Sentinel");
      return true;
    }
    if (text) {
      memcpy(i == 3 ? master->host : master->port, line, strlen(line) + 1);
    }
  }
  return true;
}

static bool rl_sentinel_receive(rl_sentinel *self, bool login, rl_sentinel_master *master) {
  self->length = 0;
  self->reply[0] = self->error[0] = '\0';
  while (!rl_sentinel_parse(self, login, master)) {
    if (self->length == RL_SENTINEL_REPLY_MAX || !rl_sentinel_wait(self, POLLIN)) {
      return rl_sentinel_fail(self, "it does not answer");
    }
    ssize_t got =
        recv(self->fd, self->reply + self->length, RL_SENTINEL_REPLY_MAX - self->length, 0);
    if (got == 0 || (got < 0 && errno != EINTR && errno != EAGAIN)) {
      return rl_sentinel_fail(self, "it has closed the connection");
    }
    self->length += got > 0 ? (size_t)got : 0;
    self->reply[self->length] = '\0';
  }
  return self->error[0] == '\0';
}

/* ------------------------------------------------------------------------------ the Sentinels */

static bool rl_sentinel_request(const rl_address_sentinels *sentinels, rl_buffer *request) {
  const rl_command_bytes login[] = {
      rl_command_word("AUTH"),
      rl_command_word(sentinels->username),
      {sentinels->password, sentinels->password_length},
  };
  const rl_command_bytes alone[] = {login[0], login[2]};
  const rl_command_bytes question[] = {rl_command_word("SENTINEL"),
                                       rl_command_word("get-master-addr-by-name"),
                                       rl_command_word(sentinels->master)};
  bool asks = !sentinels->has_password  ? true
              : sentinels->has_username ? rl_command_arguments(request, login, 3)
                                        : rl_command_arguments(request, alone, 2);
  return asks && rl_command_arguments(request, question, 3);
}

/* SNT-1 */
static bool rl_sentinel_ask(rl_sentinel *self, const rl_buffer *request, bool login,
                            rl_sentinel_master *master) {
  bool answered =
      rl_sentinel_connect(self) &&
      rl_sentinel_send(self, request->data + request->head, rl_buffer_length(request)) &&
      rl_sentinel_receive(self, login, master);
  rl_sentinel_close(self);
  return answered;
}

/* SNT-2. Returns true if more than half of the Sentinels have given the |count|th answer. */
static bool rl_sentinel_is_majority(const rl_sentinel_master *answers, unsigned count,
                                    unsigned sentinels) {
  unsigned alike = 0;
  for (unsigned i = 0; i <= count; i++) {
    alike += strcmp(answers[i].host, answers[count].host) == 0 &&
             strcmp(answers[i].port, answers[count].port) == 0;
  }
  return alike > sentinels / 2;
}

/* Creates the mutex here, because the caller of the thread holds that of its client. */
bool rl_sentinel_find(const rl_address_sentinels *sentinels, rl_sentinel_connection *connection,
                      rl_sentinel_master *master, char *error) {
  rl_sentinel_master answers[RL_ADDRESS_SENTINELS_MAX];
  rl_buffer request = {0};
  unsigned count = 0;
  bool found = false;
  rl_sentinel one = {.name = sentinels->list, .connection = connection, .fd = -1};
  bool locks = rl_mutex_init(&connection->mutex);
  bool ready = locks && rl_sentinel_request(sentinels, &request);
  (void)snprintf(error, RL_STREAM_ERROR_MAX,
                 ready ? "the Sentinels name different masters" : "out of memory");
  for (unsigned i = 0; i < sentinels->count && ready && !found; i++) {
    one.name_length = strcspn(one.name, ",");
    if (rl_sentinel_ask(&one, &request, sentinels->has_password, &answers[count])) {
      found = rl_sentinel_is_majority(answers, count, sentinels->count);
      *master = answers[count++];
    } else {
      (void)snprintf(error, RL_STREAM_ERROR_MAX, "too few Sentinels name a master: %.*s: %.80s",
                     (int)one.name_length, one.name, one.error);
    }
    one.name += one.name_length + 1;
  }
  rl_buffer_free(&request);
  if (locks) {
    rl_mutex_free(&connection->mutex);
  }
  return found;
}

void rl_sentinel_forget(rl_sentinel_connection *connection) {
  if (connection->fd >= 0) {
    (void)close(connection->fd);
  }
}
