/*
 * Requests to a node, and its answers. See sim_node.c.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef SIM_NODE_H
#define SIM_NODE_H

#include "sim.h"

typedef struct sim_request {
  sim_command_kind kind;
  uint32_t token;
  bool by_text;
  bool forced;     /* a release of another client's token */
  bool own;        /* TAKE of a lease */
  bool held;       /* PROLONG and CONFIRM: the keys were the token's */
  uint64_t age_us; /* TAKE: for how long the record had been there: sim_watch_age() */
  uint64_t fence;
  sim_seen seen;
  bool full; /* ENQUEUE: the queue has no room */
} sim_request;

/* |text| is the reply in RESP, |outcome| its meaning. A fault of the node may replace both. */
void sim_node_reply(sim *s, int connection, const sim_request *request, const char *text,
                    sim_outcome outcome);

/*
 * Returns the error of a node that does not execute a command of the kind, |scripted| or not; NULL
 * if it does.
 */
const char *sim_node_refuses(const sim *s, unsigned node, sim_command_kind kind, bool scripted);

#endif
