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

typedef struct rl_sentinel_master {
  char host[RL_ADDRESS_HOST_MAX + 1]; /* an IP address or a name */
  char port[8];
} rl_sentinel_master;

/*
 * Fills |master| with the address that most of the Sentinels name. Blocks for half a second for
 * each Sentinel, and for the resolution of its name. Returns false if they name none, with a reason
 * of RL_STREAM_ERROR_MAX bytes in |error|, without secrets.
 */
bool rl_sentinel_find(const rl_address_sentinels *sentinels, rl_sentinel_master *master,
                      char *error);

#endif
