/*
 * State that outlives a lease: tokens, fencing tokens, and leases that are handed over.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef SIM_HANDOVER_H
#define SIM_HANDOVER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define SIM_HANDOVERS_MAX 3
#define SIM_HANDOVER_TEXT_MAX 512

/* Tokens in the order in which they were drawn. */
typedef struct sim_token_list {
  uint32_t *tokens;
  size_t count, capacity;
} sim_token_list;

/* A fencing token that was handed out. */
typedef struct sim_fence {
  uint64_t fence;
  uint64_t most;  /* of it and all before */
  uint64_t at_us; /* true time */
} sim_fence;

typedef struct sim_handover {
  unsigned tries_left; /* how often it will be attached */
  unsigned resource;
  bool both;         /* resources, this one first */
  uint64_t since_us; /* true time: when it was detached */
  uint64_t fence;
  uint64_t hold_us; /* true time: until when a release keeps its keys; 0: none */
  uint64_t rest_us; /* for how long a release could have kept them when it was detached */
  char text[SIM_HANDOVER_TEXT_MAX];
} sim_handover;

#endif
