/*
 * What a node is asked, and how it answers. See sim_node.c.
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
  bool forced;     /* a release of what is another's */
  bool own;        /* TAKE of a lease */
  bool held;       /* KEEP and CONFIRM: the keys were the token's */
  uint64_t age_us; /* TAKE: for how long the record had been there: sim_watch_age() */
  uint64_t fence;
  sim_seen seen;
  bool full; /* STAND: the queue has no room */
} sim_request;

/* |text| is the reply in RESP, |outcome| what it means. The node may say something else in its place. */
void sim_node_reply(sim *s, int connection, const sim_request *request, const char *text,
                    sim_outcome outcome);

/* What it answers to a command of the kind, |scripted| or not, instead of executing it; or NULL. */
const char *sim_node_refuses(const sim *s, unsigned node, sim_command_kind kind, bool scripted);

#endif
