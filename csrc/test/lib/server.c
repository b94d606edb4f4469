/*
 * A redis-server as a child process.
 *
 * SPDX-License-Identifier: MIT
 */
#include "server.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#define ARGUMENTS_MAX 64
#define REQUEST_MAX 8192

static struct sockaddr_in server_address(int port) {
  return (struct sockaddr_in){.sin_family = AF_INET,
                              .sin_port = htons((uint16_t)port),
                              .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
}

/* ---------------------------------------------------------------------------------- processes */

static const char *server_program(void) {
  const char *program = getenv("REDLOCK_TEST_SERVER"); /* NOLINT(concurrency-mt-unsafe) */
  return program != NULL && program[0] != '\0' ? program : "redis-server";
}

static void server_exec(const server_start *start) {
  char port[16];
  char log[192];
  char aof[64];
  char rdb[64];
  const char *const usual[] = {server_program(),
                               "--bind",
                               "127.0.0.1",
                               "--port",
                               port,
                               "--dir",
                               start->directory,
                               "--logfile",
                               log,
                               "--daemonize",
                               "no",
                               "--appenddirname",
                               aof,
                               "--dbfilename",
                               rdb,
                               "--save",
                               "",
                               "--enable-debug-command",
                               "yes"};
  const char *arguments[ARGUMENTS_MAX];
  size_t count = sizeof usual / sizeof usual[0];
  (void)snprintf(port, sizeof port, "%d", start->port);
  (void)snprintf(log, sizeof log, "%s/%s.log", start->directory, start->name);
  (void)snprintf(aof, sizeof aof, "%s.aof", start->name);
  (void)snprintf(rdb, sizeof rdb, "%s.rdb", start->name);
  memcpy(arguments, usual, sizeof usual);
  for (size_t i = 0; start->arguments != NULL && start->arguments[i] != NULL; i++) {
    if (count + 1 == ARGUMENTS_MAX) {
      _exit(127);
    }
    arguments[count++] = start->arguments[i];
  }
  arguments[count] = NULL;
  for (size_t i = 0; start->environment != NULL && start->environment[i] != NULL; i++) {
    (void)putenv((char *)(uintptr_t)start->environment[i]);
  }
  (void)execvp(arguments[0], (char *const *)(void *)arguments);
  _exit(127);
}

pid_t server_launch(const server_start *start) {
  pid_t parent = getpid();
  pid_t pid = fork();
  if (pid == 0) {
    (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent) {
      _exit(127);
    }
    server_exec(start);
  }
  return pid;
}

void server_kill(pid_t pid) {
  if (pid > 0) {
    (void)kill(pid, SIGKILL);
    (void)waitpid(pid, NULL, 0);
  }
}

/* ---------------------------------------------------------------------------------- questions */

static int server_connect(int port) {
  struct sockaddr_in address = server_address(port);
  int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (fd >= 0 && connect(fd, (struct sockaddr *)&address, sizeof address) != 0) {
    (void)close(fd);
    return -1;
  }
  return fd;
}

bool server_listens(int port) {
  int fd = server_connect(port);
  if (fd >= 0) {
    (void)close(fd);
  }
  return fd >= 0;
}

/* Returns the length of the request, 0 when there is no room for it. */
static size_t server_request(char request[REQUEST_MAX], const char *const *words) {
  size_t count = 0;
  while (words[count] != NULL) {
    count++;
  }
  size_t length = (size_t)snprintf(request, REQUEST_MAX, "*%zu\r\n", count);
  for (size_t i = 0; i < count && length < REQUEST_MAX; i++) {
    length += (size_t)snprintf(request + length, REQUEST_MAX - length, "$%zu\r\n%s\r\n",
                               strlen(words[i]), words[i]);
  }
  return length < REQUEST_MAX ? length : 0;
}

/* Returns the length of a complete reply of one line or one string; 0 when it is incomplete. */
static size_t server_whole(const char *reply, size_t length) {
  const char *end = memchr(reply, '\n', length);
  if (end == NULL) {
    return 0;
  }
  size_t line = (size_t)(end - reply) + 1;
  long bulk = reply[0] == '$' ? strtol(reply + 1, NULL, 10) : -1;
  size_t whole = bulk < 0 ? line : line + (size_t)bulk + 2;
  return length >= whole ? whole : 0;
}

/* Returns the length of the reply, 0 when there is none. */
static size_t server_receive(int fd, int timeout_ms, char reply[SERVER_REPLY_MAX]) {
  size_t held = 0;
  size_t whole = 0;
  while (whole == 0) {
    struct pollfd readable = {fd, POLLIN, 0};
    if (held + 1 == SERVER_REPLY_MAX || poll(&readable, 1, timeout_ms) <= 0) {
      return 0;
    }
    ssize_t got = read(fd, reply + held, SERVER_REPLY_MAX - 1 - held);
    if (got <= 0) {
      return 0;
    }
    held += (size_t)got;
    whole = server_whole(reply, held);
  }
  return whole;
}

const char *server_ask(int port, int timeout_ms, char reply[SERVER_REPLY_MAX],
                       const char *const *words) {
  char request[REQUEST_MAX];
  size_t length = server_request(request, words);
  size_t whole = 0;
  int fd = length > 0 ? server_connect(port) : -1;
  if (fd < 0) {
    return NULL;
  }
  if (send(fd, request, length, MSG_NOSIGNAL) == (ssize_t)length) {
    whole = server_receive(fd, timeout_ms, reply);
  }
  (void)close(fd);
  if (whole == 0) {
    return NULL;
  }
  reply[whole - 2] = '\0';
  if (reply[0] == '$') {
    return reply[1] == '-' ? "(nil)" : strchr(reply, '\n') + 1;
  }
  return reply[0] == '-' ? reply : reply + 1;
}

bool server_ready(int port, pid_t pid, int timeout_ms, char reply[SERVER_REPLY_MAX]) {
  static const char *const words[] = {"INFO", NULL};
  char wanted[48];
  const char *info = server_ask(port, timeout_ms, reply, words);
  (void)snprintf(wanted, sizeof wanted, "process_id:%ld\r", (long)pid);
  return info != NULL && strstr(info, wanted) != NULL && strstr(info, "\nloading:0\r") != NULL;
}
