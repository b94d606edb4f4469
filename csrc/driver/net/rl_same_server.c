/*
 * Detects that two nodes are one server.
 *
 * SPDX-License-Identifier: MIT
 */
#include "net/rl_same_server.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <string.h>
#include <sys/socket.h>

/* Prefix of an IPv4 address as an IPv6 address: all addresses here have 16 bytes. */
static const unsigned char rl_same_server_mapped[12] = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff};

typedef struct rl_same_server_peer {
  unsigned char bytes[16];
  uint32_t scope;
  in_port_t port;
} rl_same_server_peer;

/* Returns false for a Unix socket, and for a connection that has ended. */
static bool rl_same_server_of(int fd, rl_same_server_peer *peer) {
  struct sockaddr_storage name = {0};
  socklen_t length = sizeof name;
  memset(peer, 0, sizeof *peer);
  if (getpeername(fd, (struct sockaddr *)&name, &length) != 0) {
    return false;
  }
  if (name.ss_family == AF_INET) {
    const struct sockaddr_in *in = (const struct sockaddr_in *)&name;
    memcpy(peer->bytes, rl_same_server_mapped, sizeof rl_same_server_mapped);
    memcpy(peer->bytes + sizeof rl_same_server_mapped, &in->sin_addr, sizeof in->sin_addr);
    peer->port = in->sin_port;
    return true;
  }
  if (name.ss_family == AF_INET6) {
    const struct sockaddr_in6 *in6 = (const struct sockaddr_in6 *)&name;
    memcpy(peer->bytes, &in6->sin6_addr, sizeof in6->sin6_addr);
    peer->scope = in6->sin6_scope_id;
    peer->port = in6->sin6_port;
    return true;
  }
  return false;
}

static bool rl_same_server_is_name(const rl_address *address) {
  struct in6_addr parsed;
  return inet_pton(AF_INET, address->host, &parsed) != 1 &&
         inet_pton(AF_INET6, address->host, &parsed) != 1;
}

/* Returns true for 127.0.0.1 and ::1, the addresses of "localhost". */
static bool rl_same_server_is_this_host(const rl_same_server_peer *peer) {
  static const unsigned char four[4] = {127, 0, 0, 1};
  struct in6_addr loopback = IN6ADDR_LOOPBACK_INIT;
  return memcmp(peer->bytes, &loopback, sizeof peer->bytes) == 0 ||
         (memcmp(peer->bytes, rl_same_server_mapped, sizeof rl_same_server_mapped) == 0 &&
          memcmp(peer->bytes + sizeof rl_same_server_mapped, four, sizeof four) == 0);
}

bool rl_same_server(int first, const rl_address *a, int second, const rl_address *b) {
  rl_same_server_peer one, other;
  if (a->db != b->db || !rl_same_server_of(first, &one) || !rl_same_server_of(second, &other) ||
      one.port != other.port) {
    return false;
  }
  if (memcmp(one.bytes, other.bytes, sizeof one.bytes) == 0) {
    return one.scope == other.scope;
  }
  return (rl_same_server_is_name(a) || rl_same_server_is_name(b)) &&
         rl_same_server_is_this_host(&one) && rl_same_server_is_this_host(&other);
}
