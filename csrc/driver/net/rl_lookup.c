/*
 * Resolves a host name, and blocks meanwhile.
 *
 * SPDX-License-Identifier: MIT
 *
 * A look-up asks only for families of which an interface has an address, because many name servers
 * are slow to answer for the other. The loopback interface does not count. So numeric addresses and
 * "localhost" are exempt: a host with IPv6 alone can reach "127.0.0.1", too.
 */
#include "net/rl_lookup.h"

#include <netdb.h>
#include <stdbool.h>
#include <stddef.h>
#include <strings.h>
#include <sys/socket.h>

static int rl_lookup_ask(const char *host, const char *port, int flags,
                         struct addrinfo **addresses) {
  struct addrinfo hints = {
      .ai_family = AF_UNSPEC, .ai_socktype = SOCK_STREAM, .ai_flags = flags | AI_NUMERICSERV};
  *addresses = NULL;
  int error = getaddrinfo(host, port, &hints, addresses);
  if (error != 0) {
    *addresses = NULL;
  }
  return error;
}

int rl_lookup_numeric(const char *host, const char *port, struct addrinfo **addresses) {
  return rl_lookup_ask(host, port, AI_NUMERICHOST, addresses);
}

int rl_lookup_name(const char *host, const char *port, struct addrinfo **addresses) {
  if (rl_lookup_numeric(host, port, addresses) == 0) {
    return 0;
  }
  bool local = strcasecmp(host, "localhost") == 0;
  return rl_lookup_ask(host, port, local ? 0 : AI_ADDRCONFIG, addresses);
}
