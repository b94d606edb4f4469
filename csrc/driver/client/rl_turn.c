/*
 * One turn of a client over its own sockets.
 *
 * SPDX-License-Identifier: MIT
 *
 * redlock_client_process():
 *   1. read the ready sockets into the core. If the last turn was long ago, read them once more: a
 *      node with an unread reply is not silent;
 *   2. note the time, unless input brought it. Most replies end no round and make nothing due: then
 *      the turn ends here. Else let the core do what is due;            (rl_pump.c)
 *   3. open and close sockets as the core wants;
 *   4. send what has begun, by a clock reading from before its first byte; (rl_pump.c)
 *   5. send what the sockets take.
 */
#include "client/rl_turn.h"

#include <stdio.h>

#include "client/rl_credentials.h"
#include "client/rl_poll.h"
#include "client/rl_pump.h"
#include "net/rl_same_server.h"

#define RL_TURN_READ_SIZE 16384
#define RL_TURN_READS_MAX 16 /* of one socket in one turn, for fairness */
/* After such a pause read before sending: replies may have come, or connections been closed. */
#define RL_TURN_STALE_US REDLOCK_MILLISECONDS
#define RL_TURN_HELD_UP_US (500 * REDLOCK_MILLISECONDS) /* much less than a node may be silent */

/* --------------------------------------------------------------------------------------- input */

/*
 * A port for TLS closes a connection without TLS before any reply. A proxy that does not know
 * CLIENT SETNAME closes only the first connection, because the next one skips that command. So a
 * connection that skips it and is closed probably leads to a TLS port.
 */
static void rl_turn_suggest_tls(redlock_client *client, unsigned node) {
  char reason[RL_STREAM_ERROR_MAX];
  rl_socket *socket = &client->sockets[node];
  const rl_node *asked = rl_core_peer(&client->core, node);
  if (asked->link.phase == RL_LINK_HANDSHAKE && !asked->address.tls && asked->link.skips_name) {
    (void)snprintf(reason, sizeof reason, "%.100s before any answer; is this a TLS port?",
                   socket->error);
    (void)snprintf(socket->error, sizeof socket->error, "%s", reason);
  }
}

static void rl_turn_read(redlock_client *client, unsigned node) {
  unsigned char bytes[RL_TURN_READ_SIZE];
  rl_socket *socket = &client->sockets[node];
  for (unsigned i = 0; i < RL_TURN_READS_MAX && rl_socket_is_open(socket); i++) {
    long got = rl_socket_receive(socket, bytes, sizeof bytes);
    if (got == 0) {
      return;
    }
    if (got < 0) {
      rl_turn_suggest_tls(client, node);
      rl_core_disconnected(&client->core, node, redlock_now(), socket->error);
      return;
    }
    rl_core_input(&client->core, node, redlock_now(), bytes, (size_t)got);
    if ((size_t)got < sizeof bytes && !rl_socket_holds_input(socket)) {
      return;
    }
  }
}

/* Returns another node that is the same database of the same server, or NULL. */
static const rl_node *rl_turn_twin(const redlock_client *client, unsigned node) {
  rl_node *const *nodes = client->core.nodes;
  int fd = client->sockets[node].fd;
  for (unsigned i = 0; i < client->core.node_count && node < client->core.node_count; i++) {
    const rl_socket *other = &client->sockets[i];
    if (i != node && rl_socket_is_open(other) &&
        rl_same_server(other->fd, &nodes[i]->address, fd, &nodes[node]->address)) {
      return nodes[i];
    }
  }
  return NULL;
}

/*
 * Reports the state of a socket that was not open to the core. A server with two names would vote
 * twice, the second time that the key is taken.
 */
static void rl_turn_report(redlock_client *client, unsigned node) {
  char reason[192];
  rl_socket *socket = &client->sockets[node];
  const rl_node *twin = rl_socket_is_open(socket) ? rl_turn_twin(client, node) : NULL;
  if (twin != NULL) {
    (void)snprintf(reason, sizeof reason,
                   "it is the same server as %.100s; each node must be a server of its own",
                   twin->address.name);
    rl_socket_give_up(socket, reason);
  }
  if (rl_socket_is_open(socket)) {
    rl_core_connected(&client->core, node, redlock_now());
    redlock_duration left_us = rl_stream_certificate(&socket->stream);
    if (left_us != REDLOCK_NEVER) {
      rl_core_certificate(&client->core, node, redlock_now(), left_us);
    }
  } else if (rl_socket_is_closed(socket)) {
    rl_core_disconnected(&client->core, node, redlock_now(), socket->error);
  } else {
    rl_core_looks_up(&client->core, node, socket->phase == RL_SOCKET_RESOLVING);
  }
}

/* Continues a socket that was not open. */
static void rl_turn_progress(redlock_client *client, unsigned node) {
  rl_socket_progress(&client->sockets[node], redlock_now());
  rl_turn_report(client, node);
}

/* Returns the events of |fd| in |fds|. The search begins at |*at|, which moves on. */
static short rl_turn_revents(const struct pollfd *fds, size_t count, int fd, size_t *at) {
  for (size_t k = 0; k < count && fd >= 0; k++) {
    const struct pollfd *one = &fds[*at];
    *at = *at + 1 < count ? *at + 1 : 0;
    if (one->fd == fd) {
      return one->revents;
    }
  }
  return 0;
}

static void rl_turn_input(redlock_client *client, const struct pollfd *fds, size_t count) {
  size_t at = 0;
  for (unsigned i = 0; i < rl_core_connection_count(&client->core); i++) {
    rl_socket *socket = &client->sockets[i];
    short revents = rl_turn_revents(fds, count, rl_socket_fd(socket), &at);
    if (revents == 0 && !rl_socket_holds_input(socket)) {
      continue;
    }
    if (!rl_socket_is_open(socket)) {
      rl_turn_progress(client, i);
    } else if (rl_socket_polled(socket, revents)) {
      rl_turn_read(client, i);
    }
  }
}

/* Reads all sockets that are ready. Returns true if there were any. */
static bool rl_turn_read_ready(redlock_client *client) {
  struct pollfd fds[REDLOCK_NODES_MAX];
  size_t count = rl_poll_fds(client, fds, REDLOCK_NODES_MAX);
  bool ready = count > 0 && poll(fds, (nfds_t)count, 0) > 0;
  rl_turn_input(client, fds, ready ? count : 0); /* TLS may have read bytes already. */
  return ready;
}

/* -------------------------------------------------------------------------------------- output */

/*
 * Sends what the socket takes of a connection with unsent bytes. Returns false if the connection
 * has ended, with socket->error.
 */
static bool rl_turn_send(redlock_client *client, unsigned node) {
  rl_socket *socket = &client->sockets[node];
  size_t length = 0;
  const void *bytes = rl_core_output(&client->core, node, &length);
  if (!rl_socket_takes(socket)) {
    return true;
  }
  long sent = rl_socket_send(socket, bytes, length);
  if (sent < 0) {
    return false;
  }
  if (sent > 0) {
    rl_core_output_sent(&client->core, node, (size_t)sent);
  }
  return true;
}

void rl_turn_flush(redlock_client *client) {
  for (unsigned i = 0; i < rl_core_connection_count(&client->core); i++) {
    if (rl_poll_has_unsent(client, i)) {
      (void)rl_turn_send(client, i); /* If it has ended, poll() reports that to the next turn. */
    }
  }
}

/* ---------------------------------------------------------------------------------------- turn */

void rl_turn_open(redlock_client *client, unsigned node) {
  rl_socket_connect(&client->sockets[node], &rl_core_peer(&client->core, node)->address,
                    &client->routes[node % client->core.node_count], redlock_now());
  rl_turn_report(client, node);
}

static void rl_turn_connect_node(redlock_client *client, unsigned node, redlock_time now_us) {
  rl_core_connecting(&client->core, node, now_us);
  if (rl_credentials_ask(client, node)) {
    rl_turn_open(client, node);
  }
}

/* Handles the sockets' own time-outs first: they know the reason better than the core. */
static void rl_turn_overdue(redlock_client *client, redlock_time now_us) {
  for (unsigned i = 0; i < rl_core_connection_count(&client->core); i++) {
    if (rl_socket_deadline(&client->sockets[i]) <= now_us) {
      rl_turn_progress(client, i);
    }
  }
}

/* Opens and closes sockets as the core wants. */
static void rl_turn_connect(redlock_client *client, redlock_time now_us, rl_pump_wants wants) {
  uint32_t moves = wants.close | wants.connect;
  for (unsigned i = 0; moves != 0 && i < rl_core_connection_count(&client->core); i++) {
    uint32_t bit = (uint32_t)1 << i;
    if ((wants.close & bit) != 0 && !rl_socket_is_closed(&client->sockets[i])) {
      rl_socket_close(&client->sockets[i]);
    }
    if ((wants.connect & bit) != 0) {
      rl_turn_connect_node(client, i, now_us);
    }
  }
}

/* Leaves bytes to arriving callers: rl_caller.c sends for all. */
static void rl_turn_leave_unsent(redlock_client *client) {
  for (unsigned i = 0; i < rl_core_connection_count(&client->core); i++) {
    if (rl_poll_has_unsent(client, i)) {
      rl_callers_leave_unsent(&client->callers);
    }
  }
}

static void rl_turn_output(redlock_client *client) {
  for (unsigned i = 0; i < rl_core_connection_count(&client->core); i++) {
    if (rl_poll_has_unsent(client, i) && !rl_turn_send(client, i)) {
      rl_core_disconnected(&client->core, i, redlock_now(), client->sockets[i].error);
    }
  }
}

/* Steps 2 to 5. Before rl_poll_deadline() they would do nothing but note the time. */
static int rl_turn_run(redlock_client *client, redlock_time now_us) {
  client->callers.unsent_operations = false;
  /* Step 1: read what was there at |now_us| before time-outs are judged by it. */
  if (rl_time_sub(now_us, client->processed_us) > RL_TURN_HELD_UP_US) {
    (void)rl_turn_read_ready(client);
  }
  rl_core_note_time(&client->core, now_us);
  if (rl_poll_deadline(client) > now_us) {
    return REDLOCK_OK;
  }
  rl_turn_overdue(client, now_us);
  rl_turn_connect(client, now_us, rl_pump_advance(&client->core, now_us));
  int result = rl_pump_send(&client->core);
  if (client->callers.arriving == 0) {
    rl_turn_output(client);
  } else {
    rl_turn_leave_unsent(client);
  }
  return result;
}

/* Steps 2 to 5, and notes the turn. */
static int rl_turn_finish(redlock_client *client, redlock_time now_us) {
  int result = rl_turn_run(client, now_us);
  client->wake = false;
  if (client->driver_due_us <= client->core.now_us) {
    client->driver_due_us = 0;
  }
  rl_poll_sync(client);
  client->processed_us = client->core.now_us;
  client->callers.turned = true;
  return result;
}

int rl_turn_process(redlock_client *client, const struct pollfd *fds, size_t count) {
  redlock_time before_us = client->core.now_us;
  if (fds != NULL) {
    rl_turn_input(client, fds, count);
  } else if (rl_turn_read_ready(client)) {
    (void)rl_turn_read_ready(client); /* A connection may have ended behind its last reply. */
  }
  /* After input the core has a clock reading from behind its last byte. */
  redlock_time now_us = client->core.now_us > before_us ? client->core.now_us : redlock_now();
  return rl_turn_finish(client, now_us);
}

/*
 * Returns true if a node has many commands outstanding: a caller that never waits must read, too.
 */
static bool rl_turn_has_many_outstanding(const redlock_client *client) {
  for (unsigned i = 0; i < rl_core_connection_count(&client->core); i++) {
    if (rl_core_peer(&client->core, i)->link.outstanding_count >= RL_PACER_IN_FLIGHT) {
      return true;
    }
  }
  return false;
}

int rl_turn_start(redlock_client *client, redlock_time now_us) {
  if (client->callers.arriving > 0) {
    rl_callers_leave_unsent(&client->callers);
    client->callers.unsent_operations = true;
    return REDLOCK_OK;
  }
  return rl_turn_send_due(client, now_us);
}

int rl_turn_send_due(redlock_client *client, redlock_time now_us) {
  redlock_duration pause_us = rl_time_sub(now_us, client->processed_us);
  int result = pause_us > RL_TURN_STALE_US || rl_turn_has_many_outstanding(client)
                   ? rl_turn_process(client, NULL, 0)
                   : rl_turn_finish(client, now_us);
  rl_poll_wake(client); /* It may have read what the program's loop waits for. */
  return result;
}
