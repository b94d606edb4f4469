/*
 * Servers on loopback, in this process, that answer like Redis as far as the library can see.
 *
 * SPDX-License-Identifier: MIT
 *
 * Either the test runs loopback_pump() in between, or a thread does. Nothing here allocates.
 */
#ifndef LOOPBACK_H
#define LOOPBACK_H

#include <pthread.h>

#include "fake_store.h"
#include "scratch.h"

#define LOOPBACK_NODES_MAX 8
#define LOOPBACK_CONNECTIONS_MAX 16
#define LOOPBACK_INPUT_MAX 16384

typedef enum loopback_kind { LOOPBACK_TCP, LOOPBACK_UNIX } loopback_kind;

typedef struct loopback_connection {
  int fd; /* -1: none */
  size_t length;
  char input[LOOPBACK_INPUT_MAX];
} loopback_connection;

typedef struct loopback_node {
  loopback_kind kind;
  int listener; /* -1: it is down */
  int port;
  char path[SCRATCH_PATH_MAX + 12];
  char address[128]; /* as redlock_client_add() takes it */
  char name[128];    /* as the library returns it */
  bool deaf;         /* accepts, reads, and answers nothing */
  bool hangs_up;     /* closes the connection instead of the next answer */
  const char *says;  /* answers this to every command but those of the handshake */
  fake_store store;
  unsigned accepted;
  unsigned commands; /* those of the handshake not counted */
  unsigned releases;
  unsigned sets;
  loopback_connection connections[LOOPBACK_CONNECTIONS_MAX];
} loopback_node;

typedef struct loopback {
  struct loopback *before; /* of all that there are */
  unsigned count;
  bool broken; /* a node received a command that the library does not have */
  bool served; /* by loopback_serve() */
  bool running;
  bool stop;
  pthread_t thread;
  pthread_mutex_t mutex; /* held by the thread while it pumps, and by the test while it reads */
  char directory[SCRATCH_PATH_MAX];
  loopback_node nodes[LOOPBACK_NODES_MAX];
} loopback;

/* |count| nodes that listen. Aborts the program when that cannot be had. */
loopback *loopback_new(unsigned count, loopback_kind kind);

/* Ends the thread, closes everything, frees. Returns true if every command was well formed. */
bool loopback_end(loopback *farm);

/* The node goes away with all its connections, and comes back at the same address. */
void loopback_down(loopback *farm, unsigned node);
void loopback_up(loopback *farm, unsigned node);

/* Accepts, reads and answers; waits for at most |timeout_ms| for something to do. */
void loopback_pump(loopback *farm, int timeout_ms);

/* Pumps every farm that is |served|. */
void loopback_serve(void);

/* Starts a thread that pumps. The test takes the mutex to read or change the nodes. */
void loopback_run(loopback *farm);
void loopback_lock(loopback *farm);
void loopback_unlock(loopback *farm);

/* Returns the number of nodes on which the key exists. Takes the mutex. */
unsigned loopback_keys(loopback *farm, const char *key);

/*
 * Runs a loop, beside the thread that runs the servers, until the operation of the lock has ended.
 * Returns its result; aborts the program after 20 s.
 */
int loopback_finish(redlock_client *client, redlock_lock *lock);

#endif
