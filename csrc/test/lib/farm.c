/*
 * Throw-away redis-servers for the integration tests.
 *
 * SPDX-License-Identifier: MIT
 */
#include "farm.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "support.h"

#define FARM_ARGUMENTS_MAX 48
#define FARM_REPLY_TIMEOUT_MS 2000
#define FARM_START_TIMEOUT_MS 10000

int farm_free_port(void) {
  struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
  socklen_t length = sizeof address;
  int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  assert_true(fd >= 0);
  assert_int_equal(bind(fd, (struct sockaddr *)&address, length), 0);
  assert_int_equal(getsockname(fd, (struct sockaddr *)&address, &length), 0);
  (void)close(fd);
  return ntohs(address.sin_port);
}

/* ---------------------------------------------------------------------------------- commands */

static int farm_connect(int port) {
  struct sockaddr_in address = {.sin_family = AF_INET,
                                .sin_port = htons((uint16_t)port),
                                .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
  int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  assert_true(fd >= 0);
  if (connect(fd, (struct sockaddr *)&address, sizeof address) != 0) {
    (void)close(fd);
    return -1;
  }
  return fd;
}

/* Reads until |buffer| holds |wanted| bytes, or one line if that is 0. Returns how many, or -1. */
static long farm_read(int fd, char *buffer, size_t size, size_t wanted) {
  size_t held = 0;
  while (wanted > 0 ? held < wanted : held < 2 || memcmp(buffer + held - 2, "\r\n", 2) != 0) {
    struct pollfd readable = {fd, POLLIN, 0};
    if (held == size || poll(&readable, 1, FARM_REPLY_TIMEOUT_MS) <= 0) {
      return -1;
    }
    ssize_t got = read(fd, buffer + held, wanted > 0 ? wanted - held : 1);
    if (got <= 0) {
      return -1;
    }
    held += (size_t)got;
  }
  return (long)held;
}

static const char *farm_reply(farm *self, int fd) {
  long length = farm_read(fd, self->reply, sizeof self->reply, 0);
  if (length < 0) {
    return NULL;
  }
  self->reply[length - 2] = '\0';
  if (self->reply[0] != '$') {
    return self->reply[0] == '-' ? self->reply : self->reply + 1;
  }
  long bulk = strtol(self->reply + 1, NULL, 10);
  if (bulk < 0) {
    return "(nil)";
  }
  assert_true((size_t)bulk + 2 < sizeof self->reply);
  if (farm_read(fd, self->reply, sizeof self->reply, (size_t)bulk + 2) < 0) {
    return NULL;
  }
  self->reply[bulk] = '\0';
  return self->reply;
}

const char *farm_command(farm *self, unsigned node, ...) {
  char request[8192];
  const char *words[16];
  size_t count = 0;
  va_list list;
  va_start(list, node);
  while ((words[count] = va_arg(list, const char *)) != NULL) {
    count++;
    assert_true(count < 16);
  }
  va_end(list);
  int length = snprintf(request, sizeof request, "*%zu\r\n", count);
  for (size_t i = 0; i < count; i++) {
    length += snprintf(request + length, sizeof request - (size_t)length, "$%zu\r\n%s\r\n",
                       strlen(words[i]), words[i]);
    assert_true((size_t)length < sizeof request);
  }
  int fd = farm_connect(self->nodes[node].port);
  if (fd < 0) {
    return NULL;
  }
  const char *reply =
      send(fd, request, (size_t)length, MSG_NOSIGNAL) == length ? farm_reply(self, fd) : NULL;
  (void)close(fd);
  return reply;
}

static const char *farm_ask(farm *self, unsigned node, const char *command, const char *argument) {
  const char *reply = farm_command(self, node, command, argument, NULL);
  if (reply == NULL) {
    fail_msg("%s does not answer %s %s", self->nodes[node].address, command, argument);
  }
  return reply;
}

unsigned farm_count(farm *self, const char *key, const char *value) {
  unsigned count = 0;
  for (unsigned i = 0; i < self->count; i++) {
    if (self->nodes[i].pid == 0 || self->nodes[i].stopped) {
      continue;
    }
    const char *found = farm_ask(self, i, "GET", key);
    count += strcmp(found, "(nil)") != 0 && (value == NULL || strcmp(found, value) == 0);
  }
  return count;
}

unsigned farm_connections(farm *self, unsigned node) {
  unsigned count = 0;
  const char *list = farm_ask(self, node, "CLIENT", "LIST");
  while ((list = strstr(list, " name=redlock ")) != NULL) {
    count++;
    list++;
  }
  return count;
}

unsigned farm_calls(farm *self, unsigned node, const char *command) {
  char wanted[64];
  const char *found = farm_ask(self, node, "INFO", "commandstats");
  (void)snprintf(wanted, sizeof wanted, "cmdstat_%s:calls=", command);
  found = strstr(found, wanted);
  return found == NULL ? 0 : (unsigned)strtoul(found + strlen(wanted), NULL, 10);
}

/* -------------------------------------------------------------------------------- processes */

static void farm_exec(const farm *self, const farm_node *node, const char *name,
                      const char *value) {
  char port[16];
  char log[128];
  char aof[32];
  const char *arguments[FARM_ARGUMENTS_MAX];
  const char *const usual[] = {"redis-server",
                               "--bind",
                               "127.0.0.1",
                               "--port",
                               port,
                               "--dir",
                               self->directory,
                               "--logfile",
                               log,
                               "--daemonize",
                               "no",
                               "--appenddirname",
                               aof,
                               "--dbfilename",
                               aof + 4,
                               "--save",
                               "",
                               "--enable-debug-command",
                               "yes"};
  size_t count = sizeof usual / sizeof usual[0];
  (void)snprintf(port, sizeof port, "%d", node->port);
  (void)snprintf(log, sizeof log, "%s/%d.log", self->directory, node->port);
  (void)snprintf(aof, sizeof aof, "aof-rdb-%d", node->port);
  memcpy(arguments, usual, sizeof usual);
  for (size_t i = 0; self->arguments != NULL && self->arguments[i] != NULL; i++) {
    arguments[count++] = self->arguments[i];
  }
  if (name != NULL) {
    arguments[count++] = name;
    arguments[count++] = value;
  }
  arguments[count] = NULL;
  execvp("redis-server", (char *const *)(void *)arguments);
  _exit(127);
}

/* Whether the server that answers is the one that we started, and has read its files. */
static bool farm_answers(farm *self, unsigned node) {
  char wanted[48];
  const char *info = farm_command(self, node, "INFO", NULL);
  (void)snprintf(wanted, sizeof wanted, "process_id:%ld\r", (long)self->nodes[node].pid);
  return info != NULL && strstr(info, wanted) != NULL && strstr(info, "\nloading:0\r") != NULL;
}

/* While it reads its files it listens, but seldom answers. */
static bool farm_listens(const farm *self, unsigned node) {
  int fd = farm_connect(self->nodes[node].port);
  if (fd >= 0) {
    (void)close(fd);
  }
  return fd >= 0;
}

static bool farm_launch(farm *self, unsigned index, const char *name, const char *value,
                        bool loading) {
  farm_node *node = &self->nodes[index];
  pid_t parent = getpid();
  node->pid = fork();
  assert_true(node->pid >= 0);
  if (node->pid == 0) {
    (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent) {
      _exit(127);
    }
    farm_exec(self, node, name, value);
  }
  node->stopped = false;
  redlock_time give_up_us = redlock_now() + FARM_START_TIMEOUT_MS * REDLOCK_MILLISECONDS;
  while (redlock_now() < give_up_us) {
    if (loading ? farm_listens(self, index) : farm_answers(self, index)) {
      return true;
    }
    if (waitpid(node->pid, NULL, WNOHANG) == node->pid) {
      node->pid = 0;
      break; /* Somebody else was faster to take the port. */
    }
    (void)poll(NULL, 0, 2);
  }
  farm_kill(self, index);
  return false;
}

/* Removes the directory when it is told to, or when nobody is left who could tell it. */
static void farm_employ_janitor(farm *self) {
  int fds[2];
  assert_int_equal(pipe2(fds, O_CLOEXEC), 0);
  self->janitor = fork();
  assert_true(self->janitor >= 0);
  if (self->janitor == 0) {
    char byte;
    (void)signal(SIGINT, SIG_IGN);
    (void)signal(SIGTERM, SIG_IGN);
    (void)setpgid(0, 0); /* Who ends the test with all its group must not end this. */
    (void)close(fds[1]);
    while (read(fds[0], &byte, 1) < 0 && errno == EINTR) {
    }
    execlp("rm", "rm", "-rf", self->directory, (char *)NULL);
    _exit(127);
  }
  (void)close(fds[0]);
  self->janitor_fd = fds[1];
}

void farm_start(farm *self, unsigned count, const char *const *arguments) {
  memset(self, 0, sizeof *self);
  self->count = count;
  self->arguments = arguments;
  (void)snprintf(self->directory, sizeof self->directory, "/tmp/redlock-farm-XXXXXX");
  assert_non_null(mkdtemp(self->directory));
  farm_employ_janitor(self);
  for (unsigned i = 0; i < count; i++) {
    bool started = false;
    for (unsigned tries = 0; tries < 5 && !started; tries++) {
      self->nodes[i].port = farm_free_port();
      (void)snprintf(self->nodes[i].address, sizeof self->nodes[i].address, "127.0.0.1:%d",
                     self->nodes[i].port);
      started = farm_launch(self, i, NULL, NULL, false);
    }
    if (!started) {
      fail_msg("no redis-server could be started");
    }
  }
}

void farm_kill(farm *self, unsigned index) {
  farm_node *node = &self->nodes[index];
  if (node->pid > 0) {
    (void)kill(node->pid, SIGKILL);
    (void)waitpid(node->pid, NULL, 0);
  }
  node->pid = 0;
  node->stopped = false;
}

void farm_restart(farm *self, unsigned index) {
  assert_int_equal(self->nodes[index].pid, 0);
  eventually(farm_launch(self, index, NULL, NULL, false));
}

void farm_restart_slowly(farm *self, unsigned index, const char *key_microseconds) {
  assert_int_equal(self->nodes[index].pid, 0);
  eventually(farm_launch(self, index, "--key-load-delay", key_microseconds, true));
}

void farm_end(farm *self) {
  for (unsigned i = 0; i < self->count; i++) {
    farm_kill(self, i);
  }
  assert_int_equal(write(self->janitor_fd, "", 1), 1);
  (void)close(self->janitor_fd);
  (void)waitpid(self->janitor, NULL, 0);
}

static char farm_process_state(pid_t pid) {
  char path[64];
  char text[512];
  (void)snprintf(path, sizeof path, "/proc/%ld/stat", (long)pid);
  FILE *file = fopen(path, "r");
  if (file == NULL) {
    return 'X';
  }
  size_t length = fread(text, 1, sizeof text - 1, file);
  (void)fclose(file);
  text[length] = '\0';
  const char *state = strrchr(text, ')');
  return state == NULL ? 'X' : state[2];
}

void farm_stop(farm *self, unsigned index) {
  assert_int_equal(kill(self->nodes[index].pid, SIGSTOP), 0);
  eventually(farm_process_state(self->nodes[index].pid) == 'T');
  self->nodes[index].stopped = true;
}

void farm_continue(farm *self, unsigned index) {
  assert_int_equal(kill(self->nodes[index].pid, SIGCONT), 0);
  self->nodes[index].stopped = false;
}

void farm_reset(farm *self) {
  for (unsigned i = 0; i < self->count; i++) {
    if (self->nodes[i].pid == 0) {
      farm_restart(self, i);
    }
    if (self->nodes[i].stopped) {
      farm_continue(self, i);
    }
    (void)farm_ask(self, i, "FLUSHALL", "SYNC");
    (void)farm_ask(self, i, "SCRIPT", "FLUSH");
    (void)farm_ask(self, i, "CONFIG", "RESETSTAT");
  }
}
