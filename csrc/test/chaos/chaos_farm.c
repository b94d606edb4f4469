/*
 * The redis-servers of a chaos run.
 *
 * SPDX-License-Identifier: MIT
 */
#include "chaos_farm.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "port.h"

#define FARM_REPLY_MS 200
#define FARM_WORDS_MAX 16
#define FARM_START_US (60 * REDLOCK_SECONDS) /* More than a slow machine needs. */

int chaos_free_port(void) {
  int port = port_reserve();
  if (port == 0) {
    chaos_fail("no free port");
  }
  return port;
}

const char *chaos_farm_ask(chaos_farm *self, unsigned node, const char *command) {
  char text[1024];
  const char *words[FARM_WORDS_MAX + 1];
  char *rest = NULL;
  size_t count = 0;
  if ((size_t)snprintf(text, sizeof text, "%s", command) >= sizeof text) {
    chaos_fail("a command is too long");
  }
  for (char *word = strtok_r(text, " ", &rest); word != NULL && count < FARM_WORDS_MAX;
       word = strtok_r(NULL, " ", &rest)) {
    words[count++] = word;
  }
  words[count] = NULL;
  return server_ask(self->servers[node].port, FARM_REPLY_MS, self->reply, words);
}

const char *chaos_farm_eval(chaos_farm *self, unsigned node, const char *script) {
  const char *const words[] = {"EVAL", script, "0", NULL};
  return server_ask(self->servers[node].port, FARM_REPLY_MS, self->reply, words);
}

/* --------------------------------------------------------------------------------- processes */

/* jemalloc's thread would spin: it waits for a time of the wall clock, which the shim shifts. */
void chaos_farm_launch(chaos_farm *self, unsigned node, const char *load_delay_us) {
  chaos_server *server = &self->servers[node];
  char name[16];
  char clock[128];
  char preload[512];
  const char *const environment[] = {clock, preload, NULL};
  const char *const arguments[] = {"--appendonly",
                                   server->append_only ? "yes" : "no",
                                   "--appendfsync",
                                   "always",
                                   "--auto-aof-rewrite-min-size",
                                   "8mb",
                                   "--jemalloc-bg-thread",
                                   "no",
                                   "--key-load-delay",
                                   load_delay_us == NULL ? "0" : load_delay_us,
                                   NULL};
  if (server->port == 0) {
    server->port = chaos_free_port();
  }
  (void)snprintf(name, sizeof name, "%u", node);
  (void)snprintf(clock, sizeof clock, "CHAOS_CLOCK=%s/clock-%u", self->scratch.path, node);
  (void)snprintf(preload, sizeof preload, "LD_PRELOAD=%s", self->shim);
  server->pid = server_launch(&(server_start){.port = server->port,
                                              .directory = self->scratch.path,
                                              .name = name,
                                              .arguments = arguments,
                                              .environment = environment});
  if (server->pid < 0) {
    chaos_fail("cannot fork");
  }
}

bool chaos_farm_ready(chaos_farm *self, unsigned node) {
  chaos_server *server = &self->servers[node];
  if (server->pid > 0 && waitpid(server->pid, NULL, WNOHANG) == server->pid) {
    server->pid = 0; /* Its port is still in use: again. The first time it can be another one. */
    server->port = server->seen ? server->port : 0;
    chaos_farm_launch(self, node, NULL);
    return false;
  }
  bool ready = server_ready(server->port, server->pid, FARM_REPLY_MS, self->reply);
  server->seen = server->seen || ready;
  return ready;
}

void chaos_farm_kill(chaos_farm *self, unsigned node) {
  chaos_server *server = &self->servers[node];
  server_kill(server->pid);
  server->pid = 0;
}

/* The end of a server's log; the log itself goes with the directory. */
static void farm_show_log(const chaos_farm *self, unsigned node) {
  char path[128];
  char text[2048];
  (void)snprintf(path, sizeof path, "%s/%u.log", self->scratch.path, node);
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

static volatile int64_t *farm_clock(const chaos_farm *self, unsigned node) {
  char path[128];
  (void)snprintf(path, sizeof path, "%s/clock-%u", self->scratch.path, node);
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
  if (!scratch_open(&self->scratch, "chaos")) {
    chaos_fail("no directory for the servers");
  }
  for (unsigned i = 0; i < CHAOS_NODES; i++) {
    self->servers[i].clock_us = farm_clock(self, i);
  }
}

void chaos_farm_close(chaos_farm *self) {
  for (unsigned i = 0; i < CHAOS_NODES; i++) {
    chaos_farm_kill(self, i);
  }
  scratch_close(&self->scratch);
}
