/* SPDX-License-Identifier: MIT */
#include "port.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#define PORT_FIRST 10240
#define PORT_COUNT 9760 /* Those above are for scripts (build-aux/nodes.sh), which reserve none. */
#define PORT_TRIES 1000

/* Returns the descriptor of the reservation, or -1 if another process has the port. */
static int reserve(int port) {
  struct sockaddr_un name = {.sun_family = AF_UNIX};
  int length = snprintf(name.sun_path + 1, sizeof name.sun_path - 1, "redlock-port-%d", port);
  socklen_t size = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + (size_t)length);
  int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (fd >= 0 && bind(fd, (struct sockaddr *)&name, size) != 0) {
    (void)close(fd);
    return -1;
  }
  return fd;
}

static bool is_free(int port) {
  struct sockaddr_in address = {.sin_family = AF_INET,
                                .sin_port = htons((uint16_t)port),
                                .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
  int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  bool bound = fd >= 0 && bind(fd, (struct sockaddr *)&address, sizeof address) == 0;
  if (fd >= 0) {
    (void)close(fd);
  }
  return bound;
}

int port_reserve(void) {
  for (unsigned tries = 0; tries < PORT_TRIES; tries++) {
    uint16_t random = 0;
    if (getrandom(&random, sizeof random, 0) != (ssize_t)sizeof random) {
      continue;
    }
    int port = PORT_FIRST + random % PORT_COUNT;
    int fd = reserve(port);
    if (fd >= 0 && is_free(port)) {
      return port; /* |fd| stays open: it is the reservation. */
    }
    if (fd >= 0) {
      (void)close(fd);
    }
  }
  return 0;
}
