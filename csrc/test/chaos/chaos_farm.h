/*
 * The redis-servers of a chaos run: starts, kills, restarts and questions.
 *
 * SPDX-License-Identifier: MIT
 *
 * Nothing here waits for a server longer than 200 ms, because the supervisor has other duties.
 * Servers end with the supervisor, however it ends, and so does their directory.
 */
#ifndef CHAOS_FARM_H
#define CHAOS_FARM_H

#include "chaos.h"
#include "scratch.h"
#include "server.h"

typedef struct chaos_server {
  pid_t pid; /* 0 when it is not running */
  int port;
  bool append_only;
  bool seen;                  /* it has answered on its port */
  volatile int64_t *clock_us; /* how far its wall clock is off */
} chaos_server;

typedef struct chaos_farm {
  scratch_directory scratch;
  const char *shim;
  chaos_server servers[CHAOS_NODES];
  char reply[SERVER_REPLY_MAX];
} chaos_farm;

/* Makes the directory, without servers. |shim| is preloaded into them. */
void chaos_farm_open(chaos_farm *self, const char *shim);
void chaos_farm_close(chaos_farm *self);

/* Starts a server on its port, or on a free one the first time. Does not wait for it. */
void chaos_farm_launch(chaos_farm *self, unsigned node, const char *load_delay_us);

/*
 * Starts all servers and waits for them. Those whose bit is set in |append_only| keep their keys.
 */
void chaos_farm_start(chaos_farm *self, unsigned append_only);

/* Returns true if it runs, answers and has read its files. */
bool chaos_farm_ready(chaos_farm *self, unsigned node);

void chaos_farm_kill(chaos_farm *self, unsigned node);

/*
 * Sends the words of |command|, separated by spaces. Returns the reply as text, see server_ask(),
 * or NULL on a time-out.
 */
const char *chaos_farm_ask(chaos_farm *self, unsigned node, const char *command);

/* Runs a script without keys; its result must be one string. */
const char *chaos_farm_eval(chaos_farm *self, unsigned node, const char *script);

/* Returns a free port of 127.0.0.1. */
int chaos_free_port(void);

#endif
