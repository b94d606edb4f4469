/*
 * Asks Sentinels for the address of their master.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef RL_SENTINEL_H
#define RL_SENTINEL_H

#include <stdbool.h>

#include "net/rl_stream.h"
#include "options/rl_address.h"
#include "os/rl_mutex.h"

/*
 * The connection to the Sentinel that is asked now. It must outlive the question also in a forked
 * child, whose list of mutexes contains the mutex.
 */
typedef struct rl_sentinel_connection {
  rl_mutex mutex; /* of |fd|, so that a forked child finds the right number */
  int fd;         /* -1 before and after a question */
} rl_sentinel_connection;

typedef struct rl_sentinel_master {
  char host[RL_ADDRESS_HOST_MAX + 1]; /* an IP address or a name */
  char port[8];
} rl_sentinel_master;

/*
 * Fills |master| with the address that most of the Sentinels name. Blocks for half a second for
 * each Sentinel, and for the resolution of its name. Returns false if they name none, with a reason
 * of RL_STREAM_ERROR_MAX bytes in |error|, without secrets. The thread must hold no
 * mutex.
 */
bool rl_sentinel_find(const rl_address_sentinels *sentinels, rl_sentinel_connection *connection,
                      rl_sentinel_master *master, char *error);

/* In a child that was forked while another thread asks: closes the connection. */
void rl_sentinel_forget(rl_sentinel_connection *connection);

#endif
