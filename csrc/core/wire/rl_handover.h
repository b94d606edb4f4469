/*
 * A lease as text, for another process.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef RL_HANDOVER_H
#define RL_HANDOVER_H

#include <stddef.h>

#include "base/rl_time.h"

typedef struct rl_handover {
  unsigned node_count;
  uint32_t may_set; /* nodes that may still execute a SET of the token */
  uint64_t nodes;   /* rl_handover_nodes() */
  redlock_duration ttl_us;
  redlock_duration lock_delay_us;
  uint64_t fence;                      /* the fencing token; 0 for none */
  redlock_duration hold_us;            /* rest of hold_at_least (rl_hold.h); 0 for none */
  redlock_duration left_us;            /* with hold_us: life that the keys have left, at least */
  const unsigned char *prefix, *token; /* any bytes */
  size_t prefix_length, token_length;
  size_t resource_count;
  redlock_resource resources[REDLOCK_RESOURCES_MAX];
  unsigned char *bytes; /* after a read: owns the memory of prefix, token and resources */
} rl_handover;

/* Returns a hash of the nodes' names in their order, which identifies the list of nodes. */
uint64_t rl_handover_nodes(const char *const *names, unsigned count);

/* Returns the length of the text without a NUL. */
size_t rl_handover_length(const rl_handover *handover);

/* Writes the text and a NUL. |text| must have room for rl_handover_length() + 1 bytes. */
void rl_handover_write(const rl_handover *handover, char *text);

/*
 * Reads the text. Returns REDLOCK_OK, then rl_handover_free() must follow; REDLOCK_E_LOST if the
 * text is invalid or corrupt; or REDLOCK_E_NO_MEMORY.
 */
int rl_handover_read(rl_handover *handover, const char *text, size_t length);
void rl_handover_free(rl_handover *handover);

#endif
