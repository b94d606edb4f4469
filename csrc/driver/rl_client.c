/*
 * A client: the core, its sockets and its clock.
 *
 * SPDX-License-Identifier: MIT
 *
 * One turn (redlock_client_process()):
 *   1. read what the sockets that are ready hold, and give it to the core;
 *   2. let the core look at the clock;
 *   3. make the sockets what the core wants them to be;
 *   4. launch what was begun, with a clock reading from before the first byte;
 *   5. send what the sockets take.
 */
#include "rl_client.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#if defined(__linux__)
#include <sys/epoll.h>
#endif

#include "rl_entropy.h"

#define RL_CLIENT_READ_SIZE 16384
#define RL_CLIENT_READS_MAX 16   /* of one socket in one turn: the others want to be heard too */
#define RL_CLIENT_ROUNDS_MAX 4   /* of steps 2 to 5 in one turn */
#define RL_CLIENT_ENTROPY_MAX 64 /* attempts that are given entropy at once */
/*
 * After a pause as long as this, connections may have been closed and replies have come: look before
 * sending.
 */
#define RL_CLIENT_STALE_US REDLOCK_MILLISECONDS

/* ---------------------------------------------------------------------------------- life */

static const redlock_settings rl_client_settings = {.size = sizeof(redlock_settings)};
static const redlock_node rl_client_node = {
    .size = sizeof(redlock_node), .port = RL_ADDRESS_PORT, .db = -1, .tls = -1};

void redlock_settings_default_sized(redlock_settings *settings, size_t size) {
  rl_options_fill(settings, size, &rl_client_settings, sizeof rl_client_settings);
}

void redlock_node_default_sized(redlock_node *node, size_t size) {
  rl_options_fill(node, size, &rl_client_node, sizeof rl_client_node);
}

static int rl_client_fail(int error, const char *sentence, char *message, size_t message_size) {
  if (message != NULL && message_size > 0) {
    (void)snprintf(message, message_size, "%s",
                   sentence != NULL ? sentence : redlock_strerror(error));
  }
  return error;
}

/* strdup() of what may be NULL; false when out of memory. */
static bool rl_client_copy(char **copy, const char *text) {
  *copy = text == NULL ? NULL : strdup(text);
  return text == NULL || *copy != NULL;
}

static int rl_client_configure(redlock_client *client, const redlock_settings *given, char *message,
                               size_t message_size) {
  redlock_settings read = rl_client_settings;
  const redlock_settings *settings = &read;
  redlock_options_default(&client->options);
  if (given != NULL && !rl_options_copy(&read, sizeof read, given, given->size)) {
    return rl_client_fail(REDLOCK_E_INVALID,
                          "settings.size is wrong: fill with redlock_settings_default()", message,
                          message_size);
  }
  if (settings->options != NULL) {
    int error = rl_options_read(&client->options, settings->options, message, message_size);
    if (error != REDLOCK_OK) {
      return error;
    }
  }
  if (settings->prefix_length > REDLOCK_KEY_MAX ||
      (settings->prefix == NULL && settings->prefix_length > 0)) {
    return rl_client_fail(REDLOCK_E_INVALID, "prefix must be at most REDLOCK_KEY_MAX bytes",
                          message, message_size);
  }
  if (settings->tls != 0) {
    return rl_client_fail(REDLOCK_E_UNSUPPORTED, "tls: TLS is not built in this version", message,
                          message_size);
  }
  client->db = settings->db;
  client->tls = settings->tls;
  if (!rl_client_copy(&client->username, settings->username) ||
      !rl_client_copy(&client->password, settings->password) ||
      rl_core_init(&client->core, settings->prefix, settings->prefix_length) != REDLOCK_OK) {
    return rl_client_fail(REDLOCK_E_NO_MEMORY, NULL, message, message_size);
  }
  return REDLOCK_OK;
}

int redlock_client_new(redlock_client **made, const redlock_settings *settings, char *message,
                       size_t message_size) {
  if (made == NULL) {
    return rl_client_fail(REDLOCK_E_INVALID, "client is NULL", message, message_size);
  }
  *made = NULL;
  redlock_client *client = calloc(1, sizeof *client);
  if (client == NULL) {
    return rl_client_fail(REDLOCK_E_NO_MEMORY, NULL, message, message_size);
  }
  client->references = 1;
  client->epoll_fd = -1;
  for (unsigned i = 0; i < REDLOCK_NODES_MAX; i++) {
    rl_socket_init(&client->sockets[i]);
  }
  rl_fork_init(&client->mark);
  int error = rl_client_configure(client, settings, message, message_size);
  if (error != REDLOCK_OK) {
    rl_client_destroy(client);
    return error;
  }
  *made = client;
  return REDLOCK_OK;
}

int redlock_client_add(redlock_client *client, const char *address, char *message,
                       size_t message_size) {
  redlock_node node;
  redlock_node_default(&node);
  node.address = address;
  return redlock_client_add_node(client, &node, message, message_size);
}

int redlock_client_add_node(redlock_client *client, const redlock_node *given, char *message,
                            size_t message_size) {
  redlock_settings inherited;
  redlock_node node = rl_client_node;
  rl_address address;
  if (client == NULL || given == NULL || !rl_options_copy(&node, sizeof node, given, given->size)) {
    return rl_client_fail(REDLOCK_E_INVALID,
                          client == NULL ? "client is NULL"
                                         : "node.size is wrong: fill with redlock_node_default()",
                          message, message_size);
  }
  rl_client_check_fork(client);
  redlock_settings_default(&inherited);
  inherited.username = client->username;
  inherited.password = client->password;
  inherited.db = client->db;
  inherited.tls = client->tls;
  int error = rl_address_read(&address, &node, &inherited, message, message_size);
  if (error != REDLOCK_OK && !(error == REDLOCK_E_UNSUPPORTED && client->tls_carried)) {
    return error;
  }
  for (unsigned i = 0; i < client->core.node_count; i++) {
    const rl_address *other = &client->core.nodes[i]->address;
    if (strcmp(other->name, address.name) == 0) {
      return rl_client_fail(REDLOCK_E_INVALID, "the node is named twice", message, message_size);
    }
  }
  error = rl_core_add(&client->core, &address);
  const char *sentence = error == REDLOCK_E_LIMIT ? "there are more than REDLOCK_NODES_MAX nodes"
                         : error == REDLOCK_E_BUSY
                             ? "a lock has been made: it is too late for nodes"
                             : NULL;
  return error == REDLOCK_OK ? REDLOCK_OK : rl_client_fail(error, sentence, message, message_size);
}

redlock_client *redlock_client_ref(redlock_client *client) {
  client->references++;
  return client;
}

static void rl_client_close_sockets(redlock_client *client, bool forked) {
  for (unsigned i = 0; i < client->core.node_count; i++) {
    rl_socket_free(&client->sockets[i], forked);
    rl_socket_init(&client->sockets[i]);
  }
  if (client->epoll_fd >= 0) {
    (void)close(client->epoll_fd);
    client->epoll_fd = -1;
  }
}

void rl_client_destroy(redlock_client *client) {
  rl_client_close_sockets(client, rl_fork_happened(&client->mark));
  if (client->core.releases_tail != NULL) {
    rl_core_free(&client->core);
  }
  rl_fork_free(&client->mark);
  free(client->username);
  free(client->password);
  free(client);
}

void redlock_client_free(redlock_client *client) {
  if (client == NULL || --client->references > 0) {
    return;
  }
  rl_client_check_fork(client);
  rl_core_close(&client->core, redlock_now());
  rl_client_drain(client, rl_time_add(redlock_now(), RL_CLIENT_DRAIN_US));
  rl_client_destroy(client);
}

void rl_client_drain(redlock_client *client, redlock_time deadline_us) {
  redlock_time now_us = redlock_now();
  redlock_duration patience_us = rl_time_sub(deadline_us, now_us);
  rl_client_flush(client);
  while (now_us < deadline_us && rl_core_awaits(&client->core, now_us, patience_us)) {
    (void)rl_client_wait(client, deadline_us);
    now_us = redlock_now();
  }
}

int redlock_client_close(redlock_client *client, redlock_duration timeout_us) {
  if (client == NULL) {
    return REDLOCK_E_INVALID;
  }
  rl_client_check_fork(client);
  rl_core_close(&client->core, redlock_now());
  rl_client_drain(client, rl_time_add(redlock_now(), timeout_us));
  bool owed = rl_core_unanswered(&client->core);
  rl_client_close_sockets(client, false);
  rl_core_forget(&client->core);
  return owed ? REDLOCK_E_UNAVAILABLE : REDLOCK_OK;
}

void rl_client_check_fork(redlock_client *client) {
  if (!rl_fork_happened(&client->mark)) {
    return;
  }
  rl_client_close_sockets(client, true);
  rl_core_forget(&client->core);
  rl_fork_adopt(&client->mark);
}

/* --------------------------------------------------------------------------------------- nodes */

size_t redlock_client_node_count(const redlock_client *client) {
  return client == NULL ? 0 : client->core.node_count;
}

int redlock_client_node_info_sized(redlock_client *client, size_t index, redlock_node_info *info,
                                   size_t size) {
  if (client == NULL || info == NULL || index >= client->core.node_count) {
    return REDLOCK_E_INVALID;
  }
  rl_client_check_fork(client);
  const rl_node *node = client->core.nodes[index];
  redlock_node_info known = {.size = sizeof known};
  known.name = node->address.name;
  known.state = node->phase == RL_NODE_UP     ? REDLOCK_NODE_UP
                : node->phase == RL_NODE_DOWN ? REDLOCK_NODE_DOWN
                                              : REDLOCK_NODE_CONNECTING;
  known.error = node->error[0] != '\0' ? node->error : NULL;
  known.latency_us = node->latency_us;
  known.owed = node->owed_count;
  rl_options_fill(info, size, &known, sizeof known);
  return REDLOCK_OK;
}

/* --------------------------------------------------------------------------------------- input */

static void rl_client_read(redlock_client *client, unsigned node) {
  unsigned char bytes[RL_CLIENT_READ_SIZE];
  rl_socket *socket = &client->sockets[node];
  for (unsigned i = 0; i < RL_CLIENT_READS_MAX && socket->phase == RL_SOCKET_OPEN; i++) {
    long got = rl_socket_receive(socket, bytes, sizeof bytes);
    if (got == 0) {
      return;
    }
    if (got < 0) {
      rl_core_disconnected(&client->core, node, redlock_now(), socket->error);
      return;
    }
    rl_core_input(&client->core, node, redlock_now(), bytes, (size_t)got);
    if ((size_t)got < sizeof bytes) {
      return;
    }
  }
}

/* A socket that was not open has moved, or may have: tells the core what became of it. */
static void rl_client_progress(redlock_client *client, unsigned node) {
  rl_socket *socket = &client->sockets[node];
  rl_socket_progress(socket, redlock_now());
  if (socket->phase == RL_SOCKET_OPEN) {
    rl_core_connected(&client->core, node, redlock_now());
  } else if (socket->phase == RL_SOCKET_CLOSED) {
    rl_core_disconnected(&client->core, node, redlock_now(), socket->error);
  }
}

static void rl_client_input(redlock_client *client, const struct pollfd *fds, size_t count) {
  size_t at = 0;
  for (unsigned i = 0; i < client->core.node_count; i++) {
    rl_socket *socket = &client->sockets[i];
    short events;
    int fd = rl_socket_wait(socket, true, &events);
    for (size_t k = 0; fd >= 0 && k < count; k++, at++) {
      at = at < count ? at : 0;
      if (fds[at].fd == fd) {
        break;
      }
    }
    if (fd < 0 || at >= count || fds[at].fd != fd || fds[at].revents == 0) {
      continue;
    }
    if (socket->phase != RL_SOCKET_OPEN) {
      rl_client_progress(client, i);
      continue;
    }
    socket->blocked = socket->blocked && (fds[at].revents & POLLOUT) == 0;
    if ((fds[at].revents & ~POLLOUT) != 0) {
      rl_client_read(client, i);
    }
  }
}

/* -------------------------------------------------------------------------------------- output */

/* Returns false when the connection has ended, for socket->error. */
static bool rl_client_send(redlock_client *client, unsigned node) {
  rl_socket *socket = &client->sockets[node];
  size_t length;
  const void *bytes = rl_core_output(&client->core, node, &length);
  if (bytes == NULL || socket->blocked || socket->phase != RL_SOCKET_OPEN) {
    return true;
  }
  long sent = rl_socket_send(socket, bytes, length);
  if (sent < 0) {
    return false;
  }
  rl_core_output_sent(&client->core, node, (size_t)sent);
  socket->blocked = (size_t)sent < length;
  return true;
}

void rl_client_flush(redlock_client *client) {
  for (unsigned i = 0; i < client->core.node_count; i++) {
    if (!rl_client_send(client, i)) {
      client->sockets[i].blocked = true; /* poll() will say so, and the next turn act on it. */
    }
  }
}

static void rl_client_output(redlock_client *client) {
  for (unsigned i = 0; i < client->core.node_count; i++) {
    if (!rl_client_send(client, i)) {
      rl_core_disconnected(&client->core, i, redlock_now(), client->sockets[i].error);
    }
  }
}

/* Makes the sockets what the core wants them to be. */
static void rl_client_connect(redlock_client *client, redlock_time now_us) {
  for (unsigned i = 0; i < client->core.node_count; i++) {
    rl_socket *socket = &client->sockets[i];
    rl_connection wanted = rl_core_connection(&client->core, i, now_us);
    if (wanted != RL_CONNECTION_OPEN && socket->phase != RL_SOCKET_CLOSED) {
      rl_socket_close(socket);
    }
    if (wanted == RL_CONNECTION_WANTED) {
      rl_core_connecting(&client->core, i, now_us);
      rl_socket_connect(socket, &client->core.nodes[i]->address, now_us);
      if (socket->phase == RL_SOCKET_OPEN) {
        rl_core_connected(&client->core, i, redlock_now());
      } else if (socket->phase == RL_SOCKET_CLOSED) {
        rl_core_disconnected(&client->core, i, redlock_now(), socket->error);
      }
    } else if (rl_socket_deadline(socket) <= now_us) {
      rl_client_progress(client, i);
    }
  }
}

static int rl_client_launch(redlock_client *client) {
  unsigned char entropy[RL_CLIENT_ENTROPY_MAX * RL_LOCK_ENTROPY];
  size_t wanted = rl_core_entropy_wanted(&client->core);
  int result = REDLOCK_OK;
  wanted = wanted < sizeof entropy ? wanted : sizeof entropy;
  if (wanted > 0 && !rl_entropy_fill(entropy, wanted)) {
    wanted = 0;
    result = REDLOCK_E_SYSTEM;
  }
  /* The clock of the attempts: read before their first byte. */
  rl_core_launch(&client->core, redlock_now(), entropy, wanted);
  return result;
}

/* Steps 2 to 5, until nothing more is to be done at once. */
static int rl_client_turn(redlock_client *client) {
  int result = REDLOCK_OK;
  for (unsigned i = 0; i < RL_CLIENT_ROUNDS_MAX && result == REDLOCK_OK; i++) {
    redlock_time now_us = redlock_now();
    rl_core_advance(&client->core, now_us);
    rl_client_connect(client, now_us);
    if (rl_core_wants_launch(&client->core)) {
      result = rl_client_launch(client);
    }
    rl_client_output(client);
    if (rl_core_deadline(&client->core) > now_us) {
      break;
    }
  }
  return result;
}

/* --------------------------------------------------------------------------------------- epoll */

/* Brings the epoll set in line with what redlock_client_pollfds() would say. */
static void rl_client_sync(redlock_client *client) {
  for (unsigned i = 0; client->epoll_fd >= 0 && i < client->core.node_count; i++) {
    size_t length;
    bool output = rl_core_output(&client->core, i, &length) != NULL;
    rl_socket_register(&client->sockets[i], client->epoll_fd, output);
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
    rl_client_sync(client);
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
  for (unsigned i = 0; i < client->core.node_count; i++) {
    size_t length;
    short events;
    bool output = rl_core_output(&client->core, i, &length) != NULL;
    int fd = rl_socket_wait(&client->sockets[i], output, &events);
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
static bool rl_client_untried(const redlock_client *client) {
  for (unsigned i = 0; i < client->core.node_count; i++) {
    size_t length;
    const rl_socket *socket = &client->sockets[i];
    if (socket->phase == RL_SOCKET_OPEN && !socket->blocked &&
        rl_core_output(&client->core, i, &length) != NULL) {
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
  if (deadline_us == 0 || rl_client_untried(client)) {
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

int redlock_client_process(redlock_client *client, const struct pollfd *fds, size_t count) {
  struct pollfd own[REDLOCK_NODES_MAX];
  if (client == NULL) {
    return REDLOCK_E_INVALID;
  }
  rl_client_check_fork(client);
  if (fds == NULL) {
    count = redlock_client_pollfds(client, own, REDLOCK_NODES_MAX);
    if (count > 0 && poll(own, (nfds_t)count, 0) <= 0) {
      count = 0;
    }
    fds = own;
  }
  rl_client_input(client, fds, count);
  int result = rl_client_turn(client);
  rl_client_sync(client);
  client->processed_us = client->core.now_us;
  return result;
}

redlock_lock *redlock_client_next_ended(redlock_client *client) {
  if (client == NULL) {
    return NULL;
  }
  rl_client_check_fork(client);
  rl_lock *lock = rl_core_next_ended(&client->core);
  return lock == NULL ? NULL : lock->owner;
}

/* ---------------------------------------------------------------------------------- waiting */

int rl_client_start(redlock_client *client) {
  struct pollfd none = {-1, 0, 0};
  redlock_duration pause_us = rl_time_sub(redlock_now(), client->processed_us);
  return pause_us > RL_CLIENT_STALE_US ? redlock_client_process(client, NULL, 0)
                                       : redlock_client_process(client, &none, 0);
}

int rl_client_wait(redlock_client *client, redlock_time deadline_us) {
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
