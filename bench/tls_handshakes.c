/*
 * Connections with TLS per second, and the share that resumes a session: by csrc/tls and the
 * driver's sockets, one connection after the other, each until the reply to a PING.
 *
 *     tls_handshakes <seconds> <host:port> <CA file>
 *
 * SPDX-License-Identifier: MIT
 */
#include <poll.h>
#include <stdlib.h>
#include <string.h>

#include "measure.h"
#include "net/rl_socket.h"
#include "rl_tls.h"

static void wait_for(rl_socket *socket) {
  struct pollfd fd = {-1, 0, 0};

  fd.fd = rl_socket_wait(socket, false, &fd.events);
  if (poll(&fd, 1, 5000) <= 0)
    bench_die("tls_handshakes: no reply");
}

/* Returns whether the session was resumed. */
static bool connect_once(rl_socket *socket, const rl_address *address, const rl_route *route) {
  char bytes[64];
  bool resumed;
  long got = 0;

  rl_socket_connect(socket, address, route, redlock_now());
  while (!rl_socket_is_open(socket)) {
    if (rl_socket_is_closed(socket))
      bench_die("tls_handshakes: %s", socket->error);
    wait_for(socket);
    rl_socket_progress(socket, redlock_now());
  }
  if (rl_socket_send(socket, "PING\r\n", 6) != 6)
    bench_die("tls_handshakes: not sent: %s", socket->error);
  while (got == 0) {
    wait_for(socket);
    got = rl_socket_receive(socket, bytes, sizeof bytes);
  }
  if (got != 7 || memcmp(bytes, "+PONG\r\n", 7) != 0)
    bench_die("tls_handshakes: no PONG: %s", socket->error);
  resumed = SSL_session_reused(socket->stream.inner->ssl) == 1;
  rl_socket_close(socket);
  return resumed;
}

static void measure(const char *name, double seconds, const rl_address *address,
                    const rl_route *route, bool forget) {
  rl_socket socket;
  uint64_t begun_ns = bench_now_ns(), end_ns = begun_ns + (uint64_t)(seconds * 1e9);
  unsigned count = 0, resumed = 0;

  rl_socket_init(&socket);
  while (bench_now_ns() < end_ns) {
    resumed += connect_once(&socket, address, route);
    count++;
    if (forget)
      rl_tls_node_forget_session(route->node);
  }
  printf("  %-8s %6.0f connections a second, %5.1f %% of %u resumed\n", name,
         count / ((double)(bench_now_ns() - begun_ns) / 1e9), 100.0 * resumed / count, count);
  rl_socket_free(&socket, false);
}

int main(int argc, char **argv) {
  rl_transport_options options = {.host = "127.0.0.1", .ca = argc > 3 ? argv[3] : NULL};
  rl_route route = {redlock_tls(), NULL};
  rl_address address;
  char message[256];
  char *port = argc > 2 ? strrchr(argv[2], ':') : NULL;

  if (port == NULL)
    bench_die("usage: tls_handshakes <seconds> <host:port> <CA file>");
  memset(&address, 0, sizeof address);
  memcpy(address.host, "127.0.0.1", 10);
  address.port = atoi(port + 1);
  if (route.transport->node_new(&route.node, &options, message, sizeof message) != REDLOCK_OK)
    bench_die("tls_handshakes: %s", message);
  measure("full", atof(argv[1]), &address, &route, true);
  measure("resumed", atof(argv[1]), &address, &route, false);
  route.transport->node_free(route.node);
  return 0;
}
