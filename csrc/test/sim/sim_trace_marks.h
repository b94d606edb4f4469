/*
 * The marks of the picture.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef SIM_TRACE_MARKS_H
#define SIM_TRACE_MARKS_H

#include "sim_trace.h"

typedef enum sim_mark_kind { SIM_MARK_LEASE, SIM_MARK_KEY, SIM_MARK_FAULT } sim_mark_kind;

typedef struct sim_mark {
  sim_mark_kind kind;
  unsigned row;  /* a node, or SIM_NODES_MAX + a client */
  unsigned lane; /* a lock of the client, a resource of the node */
  unsigned resource;
  uint32_t token;
  uint64_t from_us, until_us;
  char text[64];
} sim_mark;

struct sim_trace {
  FILE *text;
  sim_mark *marks;
  size_t count, capacity;
};

#endif
