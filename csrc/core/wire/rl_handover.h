/*
 * A lease as text, on its way from one process to another.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef RL_HANDOVER_H
#define RL_HANDOVER_H

#include <stddef.h>

#include "base/rl_time.h"

typedef struct rl_handover {
  unsigned node_count;
  uint32_t suspect; /* nodes that may yet execute a SET of the token */
  uint64_t nodes;   /* tells clients with other nodes, or in another order, apart */
  redlock_duration ttl_us;
  redlock_duration lock_delay_us;
  uint64_t fence;                      /* the fencing token; 0 for none */
  const unsigned char *prefix, *token; /* any bytes */
  size_t prefix_length, token_length;
  size_t resource_count;
  redlock_resource resources[REDLOCK_RESOURCES_MAX];
  unsigned char *bytes; /* of a text that was read: what the others point into */
} rl_handover;

/* What tells nodes apart from those of other clients: a hash of their names, in order. */
uint64_t rl_handover_nodes(const char *const *names, unsigned count);

/* How long the text is, without a NUL. */
size_t rl_handover_length(const rl_handover *handover);

/* Writes the text and a NUL. There is room for it. */
void rl_handover_write(const rl_handover *handover, char *text);

/*
 * Reads the text. Returns REDLOCK_OK, and rl_handover_free() is due; REDLOCK_E_LOST when it is not such a text,
 * or was changed on its way; REDLOCK_E_NO_MEMORY.
 */
int rl_handover_read(rl_handover *handover, const char *text, size_t length);
void rl_handover_free(rl_handover *handover);

#endif
