/*
 * Throw-away redis-servers for the integration tests.
 *
 * SPDX-License-Identifier: MIT
 */
#include "farm.h"

#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

#include "port.h"
#include "support.h"

#define FARM_WORDS_MAX 16
#define FARM_ARGUMENTS_MAX 32
#define FARM_REPLY_TIMEOUT_MS 30000 /* More than a loaded machine needs. */
#define FARM_READY_TIMEOUT_MS 2000
#define FARM_START_TIMEOUT_MS 10000

const farm_tls *farm_over_tls;

int farm_free_port(void) {
  int port = port_reserve();
  assert_true(port > 0);
  return port;
}

/* ---------------------------------------------------------------------------------- commands */

static void farm_words(const char *words[FARM_WORDS_MAX], va_list list) {
  size_t count = 0;
  while ((words[count] = va_arg(list, const char *)) != NULL) {
    count++;
    assert_true(count < FARM_WORDS_MAX);
  }
}

const char *farm_command(farm *self, unsigned node, ...) {
  const char *words[FARM_WORDS_MAX];
  va_list list;
  va_start(list, node);
  farm_words(words, list);
  va_end(list);
  return server_ask(self->nodes[node].port, FARM_REPLY_TIMEOUT_MS, self->reply, words);
}

void farm_command_all(farm *self, ...) {
  const char *words[FARM_WORDS_MAX];
  va_list list;
  va_start(list, self);
  farm_words(words, list);
  va_end(list);
  for (unsigned i = 0; i < self->count; i++) {
    const char *reply = server_ask(self->nodes[i].port, FARM_REPLY_TIMEOUT_MS, self->reply, words);
    if (reply == NULL || reply[0] == '-') {
      fail_msg("%s, %s: %s", self->nodes[i].address, words[0], reply != NULL ? reply : "no answer");
    }
  }
}

void farm_each(farm *self, unsigned from, unsigned until, void (*action)(farm *, unsigned)) {
  for (unsigned i = from; i < until; i++) {
    action(self, i);
  }
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
  while ((list = strstr(list, " addr=")) != NULL) {
    count++;
    list++;
  }
  return count - 1; /* One is the connection of farm_ask(). */
}

unsigned farm_calls(farm *self, unsigned node, const char *command) {
  char wanted[64];
  const char *found = farm_ask(self, node, "INFO", "commandstats");
  (void)snprintf(wanted, sizeof wanted, "cmdstat_%s:calls=", command);
  found = strstr(found, wanted);
  return found == NULL ? 0 : (unsigned)strtoul(found + strlen(wanted), NULL, 10);
}

/* -------------------------------------------------------------------------------- processes */

/* |name| and |value| are one more argument, or NULL. */
static pid_t farm_spawn(const farm *self, const farm_node *node, const char *name,
                        const char *value) {
  char files[16];
  char tls_port[16];
  const char *arguments[FARM_ARGUMENTS_MAX];
  size_t count = 0;
  (void)snprintf(files, sizeof files, "%d", node->port);
  for (size_t i = 0; self->arguments != NULL && self->arguments[i] != NULL; i++) {
    assert_true(count + 5 < FARM_ARGUMENTS_MAX);
    arguments[count++] = self->arguments[i];
  }
  const char *const *more = farm_over_tls == NULL ? NULL : farm_over_tls->arguments();
  for (size_t i = 0; more != NULL && more[i] != NULL; i++) {
    assert_true(count + 5 < FARM_ARGUMENTS_MAX);
    arguments[count++] = more[i];
  }
  if (node->tls_port != 0) {
    (void)snprintf(tls_port, sizeof tls_port, "%d", node->tls_port);
    arguments[count++] = "--tls-port";
    arguments[count++] = tls_port;
  }
  arguments[count] = name;
  arguments[count + 1] = value;
  arguments[count + 2] = NULL;
  return server_launch(&(server_start){
      .port = node->port, .directory = self->scratch.path, .name = files, .arguments = arguments});
}

/* While it reads its files it listens, but seldom answers. */
static bool farm_launch(farm *self, unsigned index, const char *name, const char *value,
                        bool loading) {
  farm_node *node = &self->nodes[index];
  node->pid = farm_spawn(self, node, name, value);
  assert_true(node->pid > 0);
  node->stopped = false;
  redlock_time give_up_us = redlock_now() + FARM_START_TIMEOUT_MS * REDLOCK_MILLISECONDS;
  while (redlock_now() < give_up_us) {
    if (loading ? server_listens(node->port)
                : server_ready(node->port, node->pid, FARM_READY_TIMEOUT_MS, self->reply)) {
      return true;
    }
    if (waitpid(node->pid, NULL, WNOHANG) == node->pid) {
      node->pid = 0;
      break; /* Another process has taken the port. */
    }
    (void)poll(NULL, 0, 2);
  }
  farm_kill(self, index);
  return false;
}

int farm_client_port(const farm *self, unsigned node) {
  return farm_over_tls != NULL ? self->nodes[node].tls_port : self->nodes[node].port;
}

/* Ports for a node, and the addresses of them. */
static void farm_draw_ports(farm_node *node, bool tls) {
  node->port = farm_free_port();
  do {
    node->tls_port = tls ? farm_free_port() : 0;
  } while (node->tls_port == node->port);
  (void)snprintf(node->address, sizeof node->address, "127.0.0.1:%d",
                 farm_over_tls != NULL ? node->tls_port : node->port);
  (void)snprintf(node->tls_address, sizeof node->tls_address, "rediss://127.0.0.1:%d",
                 node->tls_port);
}

static void farm_begin(farm *self, unsigned count, const char *const *arguments, bool tls) {
  memset(self, 0, sizeof *self);
  self->count = count;
  self->arguments = arguments;
  assert_true(scratch_open(&self->scratch, "farm"));
  for (unsigned i = 0; i < count; i++) {
    bool started = false;
    for (unsigned tries = 0; tries < 5 && !started; tries++) {
      farm_draw_ports(&self->nodes[i], tls);
      started = farm_launch(self, i, NULL, NULL, false);
    }
    if (!started) {
      fail_msg("no redis-server could be started");
    }
  }
}

void farm_start(farm *self, unsigned count, const char *const *arguments) {
  farm_begin(self, count, arguments, farm_over_tls != NULL);
}

void farm_start_tls(farm *self, unsigned count, const char *const *arguments) {
  farm_begin(self, count, arguments, true);
}

void farm_kill(farm *self, unsigned index) {
  farm_node *node = &self->nodes[index];
  server_kill(node->pid);
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
  scratch_close(&self->scratch);
}

char process_state(pid_t pid) {
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

/* Repeats the signal: another process may just have continued the node (build-aux/busy.c). */
void farm_stop(farm *self, unsigned index) {
  pid_t pid = self->nodes[index].pid;
  eventually(kill(pid, SIGSTOP) == 0 && process_state(pid) == 'T');
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
