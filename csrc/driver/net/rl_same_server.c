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

/*
 * Reads the address of the server, an IPv4 address as a mapped IPv6 address. Returns false for a
 * Unix socket, and for a connection that has ended.
 */
static bool rl_same_server_of(int fd, struct sockaddr_in6 *peer) {
  struct sockaddr_storage name = {0};
  socklen_t length = sizeof name;
  memset(peer, 0, sizeof *peer);
  if (getpeername(fd, (struct sockaddr *)&name, &length) != 0) {
    return false;
  }
  if (name.ss_family == AF_INET) {
    const struct sockaddr_in *in = (const struct sockaddr_in *)&name;
    peer->sin6_addr.s6_addr[10] = peer->sin6_addr.s6_addr[11] = 0xff;
    memcpy(peer->sin6_addr.s6_addr + 12, &in->sin_addr, sizeof in->sin_addr);
    peer->sin6_port = in->sin_port;
    return true;
  }
  memcpy(peer, &name, sizeof *peer);
  return name.ss_family == AF_INET6;
}

static bool rl_same_server_has(const struct sockaddr_in6 *peer, const void *address) {
  return memcmp(&peer->sin6_addr, address, sizeof peer->sin6_addr) == 0;
}

static bool rl_same_server_is_name(const rl_address *address) {
  struct in6_addr parsed;
  return inet_pton(AF_INET, address->host, &parsed) != 1 &&
         inet_pton(AF_INET6, address->host, &parsed) != 1;
}

/* Returns true for 127.0.0.1 and ::1, the addresses of "localhost". */
static bool rl_same_server_is_this_host(const struct sockaddr_in6 *peer) {
  static const unsigned char mapped[16] = {[10] = 0xff, 0xff, 127, 0, 0, 1};
  return rl_same_server_has(peer, &in6addr_loopback) || rl_same_server_has(peer, mapped);
}

bool rl_same_server(int first, const rl_address *a, int second, const rl_address *b) {
  struct sockaddr_in6 one, other;
  if (a->db != b->db || !rl_same_server_of(first, &one) || !rl_same_server_of(second, &other) ||
      one.sin6_port != other.sin6_port) {
    return false;
  }
  if (rl_same_server_has(&one, &other.sin6_addr)) {
    return one.sin6_scope_id == other.sin6_scope_id;
  }
  return (rl_same_server_is_name(a) || rl_same_server_is_name(b)) &&
         rl_same_server_is_this_host(&one) && rl_same_server_is_this_host(&other);
}
