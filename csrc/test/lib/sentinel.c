/*
 * A Sentinel that watches one master.
 *
 * SPDX-License-Identifier: MIT
 */
#include "sentinel.h"

#include <sys/prctl.h>

#include "port.h"
#include "server.h"
#include "support.h"

#define SENTINEL_REPLY_MS 30000

static void sentinel_exec(const char *file) {
  const char *program = getenv("REDLOCK_TEST_SERVER"); /* NOLINT(concurrency-mt-unsafe) */
  program = program != NULL && program[0] != '\0' ? program : "redis-server";
  (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
  (void)execlp(program, program, file, "--sentinel", (char *)NULL);
  _exit(127);
}

void sentinel_start(sentinel *self, const char *directory, int master_port, const char *settings) {
  char file[256];
  self->port = port_reserve();
  assert_true(self->port > 0);
  (void)snprintf(self->address, sizeof self->address, "127.0.0.1:%d", self->port);
  (void)snprintf(file, sizeof file, "%s/sentinel-%d.conf", directory, self->port);
  FILE *out = fopen(file, "w");
  assert_non_null(out);
  (void)fprintf(out,
                "port %d\nbind 127.0.0.1\ndir %s\nlogfile %s.log\n"
                "sentinel monitor " SENTINEL_MASTER " 127.0.0.1 %d 1\n"
                "sentinel down-after-milliseconds " SENTINEL_MASTER " 500\n"
                "sentinel failover-timeout " SENTINEL_MASTER " 1000\n%s",
                self->port, directory, file, master_port, settings != NULL ? settings : "");
  assert_int_equal(fclose(out), 0);
  self->pid = fork();
  assert_true(self->pid >= 0);
  if (self->pid == 0) {
    sentinel_exec(file);
  }
  eventually(server_listens(self->port));
}

void sentinel_end(sentinel *self) {
  server_kill(self->pid);
  self->pid = 0;
}

/* Returns the number after |name| in what the Sentinel reports of its master, or 0. */
static int sentinel_ask(const sentinel *self, const char *name) {
  static const char *const words[] = {"INFO", "sentinel", NULL};
  char reply[SERVER_REPLY_MAX];
  const char *info = server_ask(self->port, SENTINEL_REPLY_MS, reply, words);
  const char *found = info != NULL ? strstr(info, name) : NULL;
  return found != NULL ? (int)strtol(found + strlen(name), NULL, 10) : 0;
}

int sentinel_master(const sentinel *self) {
  return sentinel_ask(self, ",address=127.0.0.1:");
}

int sentinel_replicas(const sentinel *self) {
  return sentinel_ask(self, ",slaves=");
}
