/*
 * The redis-servers of a chaos run.
 *
 * SPDX-License-Identifier: MIT
 */
#include "chaos_farm.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#define FARM_REPLY_MS 200
#define PORT_FIRST 10240
#define PORT_COUNT 20000
#define FARM_START_US (10 * REDLOCK_SECONDS)
#define FARM_REMOVE_US (5 * REDLOCK_SECONDS)

/* Below those that the system gives to clients: one of these would keep a server from its port. */
int chaos_free_port(void) {
  for (unsigned tries = 0; tries < 1000; tries++) {
    uint16_t random = 0;
    bool drawn = getrandom(&random, sizeof random, 0) == (ssize_t)sizeof random;
    int port = PORT_FIRST + random % PORT_COUNT;
    struct sockaddr_in address = {.sin_family = AF_INET,
                                  .sin_port = htons((uint16_t)port),
                                  .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    bool bound = fd >= 0 && bind(fd, (struct sockaddr *)&address, sizeof address) == 0;
    if (fd >= 0) {
      (void)close(fd);
    }
    if (drawn && bound) {
      return port;
    }
  }
  chaos_fail("no free port");
}

/* ---------------------------------------------------------------------------------- commands */

static int farm_connect(int port) {
  struct sockaddr_in address = {.sin_family = AF_INET,
                                .sin_port = htons((uint16_t)port),
                                .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
  int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (fd >= 0 && connect(fd, (struct sockaddr *)&address, sizeof address) != 0) {
    (void)close(fd);
    return -1;
  }
  return fd;
}

/* Whether |text| is a whole reply, of those that the supervisor asks for. */
static bool farm_whole(const char *text, size_t length) {
  const char *end = memchr(text, '\n', length);
  if (end == NULL) {
    return false;
  }
  size_t line = (size_t)(end - text) + 1;
  if (text[0] != '$') {
    return true;
  }
  long bulk = strtol(text + 1, NULL, 10);
  return bulk < 0 || length >= line + (size_t)bulk + 2;
}

static const char *farm_exchange(chaos_farm *self, unsigned node, const char *request,
                                 size_t length) {
  size_t held = 0;
  int fd = farm_connect(self->servers[node].port);
  bool alive = fd >= 0 && send(fd, request, length, MSG_NOSIGNAL) == (ssize_t)length;
  while (alive && !farm_whole(self->reply, held)) {
    struct pollfd readable = {fd, POLLIN, 0};
    ssize_t got = -1;
    if (held + 1 < sizeof self->reply && poll(&readable, 1, FARM_REPLY_MS) > 0) {
      got = read(fd, self->reply + held, sizeof self->reply - 1 - held);
    }
    alive = got > 0;
    held += got > 0 ? (size_t)got : 0;
  }
  if (fd >= 0) {
    (void)close(fd);
  }
  if (!alive) {
    return NULL;
  }
  self->reply[held - 2] = '\0';
  char *value = self->reply;
  if (value[0] == '$') {
    value = strncmp(value, "$-1", 3) == 0 ? value + strlen(value) : strchr(value, '\n') + 1;
  } else if (value[0] != '-') {
    value++;
  }
  return value;
}

static size_t farm_word(char *request, size_t size, size_t length, const char *word, size_t bytes) {
  int added =
      snprintf(request + length, size - length, "$%zu\r\n%.*s\r\n", bytes, (int)bytes, word);
  if (added < 0 || length + (size_t)added >= size) {
    chaos_fail("a command is too long");
  }
  return length + (size_t)added;
}

const char *chaos_farm_ask(chaos_farm *self, unsigned node, const char *command) {
  char words[1024];
  char request[1100];
  size_t length = 0;
  unsigned count = 0;
  while (*command != '\0') {
    size_t bytes = strcspn(command, " ");
    length = farm_word(words, sizeof words, length, command, bytes);
    command += bytes + strspn(command + bytes, " ");
    count++;
  }
  int total = snprintf(request, sizeof request, "*%u\r\n%.*s", count, (int)length, words);
  return farm_exchange(self, node, request, (size_t)total);
}

const char *chaos_farm_eval(chaos_farm *self, unsigned node, const char *script) {
  char request[2048];
  (void)strcpy(request, "*3\r\n$4\r\nEVAL\r\n");
  size_t length = strlen(request);
  length = farm_word(request, sizeof request, length, script, strlen(script));
  length = farm_word(request, sizeof request, length, "0", 1);
  return farm_exchange(self, node, request, length);
}

/* --------------------------------------------------------------------------------- processes */

/* jemalloc's thread would spin: it waits until a time of the wall clock that the shim has told it. */
static void farm_exec(const chaos_farm *self, unsigned node, const char *load_delay_us) {
  const chaos_server *server = &self->servers[node];
  char port[16];
  char log[128];
  char clock[128];
  char appended[32];
  (void)snprintf(port, sizeof port, "%d", server->port);
  (void)snprintf(log, sizeof log, "%s/%u.log", self->directory, node);
  (void)snprintf(appended, sizeof appended, "appended-%u", node);
  (void)snprintf(clock, sizeof clock, "%s/clock-%u", self->directory, node);
  (void)setenv("CHAOS_CLOCK", clock, 1);
  (void)setenv("LD_PRELOAD", self->shim, 1);
  (void)execlp("redis-server", "redis-server", "--bind", "127.0.0.1", "--port", port, "--dir",
               self->directory, "--logfile", log, "--daemonize", "no", "--save", "",
               "--appenddirname", appended, "--appendonly", server->append_only ? "yes" : "no",
               "--appendfsync", "always", "--auto-aof-rewrite-min-size", "8mb",
               "--jemalloc-bg-thread", "no", "--enable-debug-command", "yes", "--key-load-delay",
               load_delay_us, (char *)NULL);
  _exit(127);
}

void chaos_farm_launch(chaos_farm *self, unsigned node, const char *load_delay_us) {
  pid_t parent = getpid();
  chaos_server *server = &self->servers[node];
  if (server->port == 0) {
    server->port = chaos_free_port();
  }
  server->pid = fork();
  if (server->pid < 0) {
    chaos_fail("cannot fork");
  }
  if (server->pid == 0) {
    (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent) {
      _exit(127);
    }
    farm_exec(self, node, load_delay_us == NULL ? "0" : load_delay_us);
  }
}

bool chaos_farm_ready(chaos_farm *self, unsigned node) {
  chaos_server *server = &self->servers[node];
  char wanted[48];
  if (server->pid > 0 && waitpid(server->pid, NULL, WNOHANG) == server->pid) {
    server->pid = 0; /* Its port is still in use: again. The first time it can be another one. */
    server->port = server->seen ? server->port : 0;
    chaos_farm_launch(self, node, NULL);
    return false;
  }
  const char *info = chaos_farm_ask(self, node, "INFO");
  (void)snprintf(wanted, sizeof wanted, "process_id:%ld\r", (long)server->pid);
  bool ready =
      info != NULL && strstr(info, wanted) != NULL && strstr(info, "\nloading:0\r") != NULL;
  server->seen = server->seen || ready;
  return ready;
}

void chaos_farm_kill(chaos_farm *self, unsigned node) {
  chaos_server *server = &self->servers[node];
  if (server->pid > 0) {
    (void)kill(server->pid, SIGKILL);
    (void)waitpid(server->pid, NULL, 0);
  }
  server->pid = 0;
}

/* The end of a server's log; the log itself goes with the directory. */
static void farm_show_log(const chaos_farm *self, unsigned node) {
  char path[128];
  char text[2048];
  (void)snprintf(path, sizeof path, "%s/%u.log", self->directory, node);
  FILE *file = fopen(path, "r");
  if (file == NULL) {
    (void)fprintf(stderr, "chaos: node %u has written no log\n", node);
    return;
  }
  if (fseek(file, -(long)sizeof text, SEEK_END) != 0) {
    rewind(file); /* It is shorter. */
  }
  size_t length = fread(text, 1, sizeof text, file);
  (void)fprintf(stderr, "chaos: the log of node %u ends with:\n%.*s\n", node, (int)length, text);
  (void)fclose(file);
}

void chaos_farm_start(chaos_farm *self, unsigned append_only) {
  redlock_time give_up_us = redlock_now() + FARM_START_US;
  for (unsigned i = 0; i < CHAOS_NODES; i++) {
    self->servers[i].append_only = (append_only >> i & 1) != 0;
    chaos_farm_launch(self, i, NULL);
  }
  for (unsigned i = 0; i < CHAOS_NODES; i++) {
    while (!chaos_farm_ready(self, i)) {
      if (redlock_now() > give_up_us) {
        farm_show_log(self, i);
        chaos_fail("node %u, a redis-server on port %d, could not be started", i,
                   self->servers[i].port);
      }
      chaos_pause(5 * REDLOCK_MILLISECONDS);
    }
  }
}

/* A server's child that rewrites a file outlives the server a little, and may write while we remove. */
static void farm_remove(const chaos_farm *self) {
  redlock_time give_up_us = redlock_now() + FARM_REMOVE_US;
  while (access(self->directory, F_OK) == 0 && redlock_now() < give_up_us) {
    pid_t pid = fork();
    if (pid == 0) {
      (void)execlp("rm", "rm", "-rf", self->directory, (char *)NULL);
      _exit(127);
    }
    (void)waitpid(pid, NULL, 0);
    if (access(self->directory, F_OK) == 0) {
      chaos_pause(10 * REDLOCK_MILLISECONDS);
    }
  }
}

/* Removes the directory when it is told to, or when nobody is left who could tell it. */
static void farm_employ_janitor(chaos_farm *self) {
  int fds[2];
  if (pipe2(fds, O_CLOEXEC) != 0 || (self->janitor = fork()) < 0) {
    chaos_fail("cannot fork");
  }
  if (self->janitor == 0) {
    char byte;
    (void)signal(SIGINT, SIG_IGN);
    (void)signal(SIGTERM, SIG_IGN);
    (void)setpgid(0, 0);
    (void)close(fds[1]);
    while (read(fds[0], &byte, 1) < 0 && errno == EINTR) {
    }
    farm_remove(self);
    _exit(0);
  }
  (void)close(fds[0]);
  self->janitor_fd = fds[1];
}

static volatile int64_t *farm_clock(const chaos_farm *self, unsigned node) {
  char path[128];
  (void)snprintf(path, sizeof path, "%s/clock-%u", self->directory, node);
  int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
  void *memory = MAP_FAILED;
  if (fd >= 0 && ftruncate(fd, sizeof(int64_t)) == 0) {
    memory = mmap(NULL, sizeof(int64_t), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  }
  if (memory == MAP_FAILED) {
    chaos_fail("%s: cannot be mapped", path);
  }
  (void)close(fd);
  return memory;
}

void chaos_farm_open(chaos_farm *self, const char *shim) {
  memset(self, 0, sizeof *self);
  self->shim = shim;
  (void)snprintf(self->directory, sizeof self->directory, "/tmp/redlock-chaos-XXXXXX");
  if (mkdtemp(self->directory) == NULL) {
    chaos_fail("no directory for the servers");
  }
  farm_employ_janitor(self);
  for (unsigned i = 0; i < CHAOS_NODES; i++) {
    self->servers[i].clock_us = farm_clock(self, i);
  }
}

void chaos_farm_close(chaos_farm *self) {
  for (unsigned i = 0; i < CHAOS_NODES; i++) {
    chaos_farm_kill(self, i);
  }
  (void)close(self->janitor_fd);
  (void)waitpid(self->janitor, NULL, 0);
}
