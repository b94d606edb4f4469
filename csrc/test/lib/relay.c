/*
 * What the relays in front of servers (far, lossy, proxy) have in common: a port, and both ends of each connection.
 *
 * SPDX-License-Identifier: MIT
 */
#include "relay.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#define RELAY_BACKLOG 256

void relay_must(bool ok, const char *what) {
  if (!ok) {
    perror(what);
    abort();
  }
}

void *relay_share(size_t size) {
  void *shared = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  relay_must(shared != MAP_FAILED, "relay: mmap");
  return shared;
}

static struct sockaddr_in relay_address(int port) {
  return (struct sockaddr_in){.sin_family = AF_INET,
                              .sin_port = htons((uint16_t)port),
                              .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
}

int relay_listen(char address[32]) {
  struct sockaddr_in bound = relay_address(0);
  socklen_t length = sizeof bound;
  int listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  relay_must(listener >= 0 && bind(listener, (struct sockaddr *)&bound, length) == 0 &&
                 listen(listener, RELAY_BACKLOG) == 0 &&
                 getsockname(listener, (struct sockaddr *)&bound, &length) == 0,
             "relay: a port");
  (void)snprintf(address, 32, "127.0.0.1:%d", ntohs(bound.sin_port));
  return listener;
}

static int relay_undelayed(int fd) {
  int on = 1;
  (void)setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  return fd;
}

int relay_reach(int port) {
  struct sockaddr_in address = relay_address(port);
  int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (fd >= 0 && connect(fd, (struct sockaddr *)&address, sizeof address) != 0) {
    (void)close(fd);
    return -1;
  }
  return relay_undelayed(fd);
}

bool relay_greet(int listener, int port, int ends[2]) {
  ends[0] = relay_undelayed(accept(listener, NULL, NULL));
  ends[1] = ends[0] >= 0 ? relay_reach(port) : -1;
  if (ends[0] >= 0 && ends[1] < 0) {
    (void)close(ends[0]);
    ends[0] = -1;
  }
  return ends[1] >= 0;
}

pid_t relay_fork(void) {
  pid_t pid = fork();
  relay_must(pid >= 0, "relay: fork");
  if (pid == 0) {
    (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
  }
  return pid;
}

void relay_end(pid_t pid) {
  (void)kill(pid, SIGKILL);
  (void)waitpid(pid, NULL, 0);
}
