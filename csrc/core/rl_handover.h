/*
 * A lease as text, on its way from one process to another.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef RL_HANDOVER_H
#define RL_HANDOVER_H

#include <stdbool.h>
#include <stddef.h>

#include "rl_time.h"

struct rl_core;

/* Bytes that the text stands for, at most. */
#define RL_HANDOVER_BYTES_MAX (64 + REDLOCK_KEY_MAX + REDLOCK_TOKEN_MAX)

typedef struct rl_handover {
  unsigned node_count;
  uint32_t doubtful; /* nodes that may yet execute a SET of the token */
  uint64_t nodes;    /* tells clients with other nodes, or in another order, apart */
  redlock_duration ttl_us;
  redlock_duration lock_delay_us;
  const unsigned char *prefix, *resource, *token; /* any bytes */
  size_t prefix_length, resource_length, token_length;
} rl_handover;

/* What tells the nodes of |core| apart from those of others: a hash of their names, in order. */
uint64_t rl_handover_nodes(const struct rl_core *core);

/* Writes the text and a NUL. Returns its length, or 0 when it does not fit. */
size_t rl_handover_write(const rl_handover *handover, char *text, size_t size);

/*
 * Reads the text into |bytes|, where |handover| then points to. False when it is not such a text, or was
 * changed on its way.
 */
bool rl_handover_read(rl_handover *handover, unsigned char bytes[RL_HANDOVER_BYTES_MAX],
                      const char *text, size_t length);

#endif
