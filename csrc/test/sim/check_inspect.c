/*
 * An inspection reports the state of each node during the inspection, and a holder that a majority
 * held.
 *
 * SPDX-License-Identifier: MIT
 *
 * The nodes note their state when they execute the question (sim_node.c). Only answers in the
 * inspection's round count (sim_tap.c). Nodes are asked at several moments: a token that comes or
 * goes may never have had a majority at once.
 */
#include "check.h"
#include "operator/rl_inspect.h"

static void check_inspect_asked(sim *s, const sim_client *client, const sim_lock *own,
                                unsigned node, const sim_sent *sent) {
  if (sent->kind != SIM_COMMAND_INSPECT) {
    return;
  }
  if (own == NULL) {
    sim_violation(s, "inspect", "client %u asks node %u outside of an inspection", client->index,
                  node);
  } else if ((own->asked >> node & 1) != 0) {
    sim_violation(s, "inspect", "client %u asks node %u twice", client->index, node);
  }
}

static void check_inspect_node(sim *s, const sim_client *client, const sim_lock *own,
                               unsigned node) {
  const sim_seen *seen = &own->seen[node];
  const rl_inspected *reported = rl_inspect_of(own->lock, node);
  bool held = seen->state == REDLOCK_KEY_HELD;
  bool timed = held || seen->state == REDLOCK_KEY_OTHER;
  if (reported == NULL || reported->state != seen->state ||
      (held && sim_tap_token(reported->token, reported->token_length) != seen->token) ||
      (timed && reported->ttl_us != seen->ttl_us)) {
    sim_violation(s, "inspect",
                  "client %u: node %u is reported in state %d, but it was in %d, with token %u",
                  client->index, node, reported == NULL ? -1 : (int)reported->state,
                  (int)seen->state, seen->token);
  }
}

static unsigned check_inspect_count(const sim_client *client, const sim_lock *own, unsigned node,
                                    uint64_t at_least_us) {
  unsigned count = 0;
  for (unsigned i = 0; i < client->nodes; i++) {
    const sim_seen *seen = &own->seen[i];
    count += seen->state == REDLOCK_KEY_HELD && seen->token == own->seen[node].token &&
             seen->ttl_us >= at_least_us;
  }
  return count;
}

static void check_inspect_holder(sim *s, const sim_client *client, const sim_lock *own) {
  redlock_duration ttl_us = 0;
  unsigned reported = 0, nodes = 0, majority = client->nodes / 2 + 1;
  const rl_inspected *holder = rl_inspect_holder(own->lock, &ttl_us, &reported);
  uint32_t token = SIM_NO_TOKEN;
  uint64_t lasts_us = 0;
  for (unsigned i = 0; i < client->nodes; i++) {
    unsigned count =
        own->seen[i].state == REDLOCK_KEY_HELD ? check_inspect_count(client, own, i, 0) : 0;
    if (count < majority) {
      continue;
    }
    nodes = count;
    token = own->seen[i].token;
    /* So long a majority of them lives. */
    if (check_inspect_count(client, own, i, own->seen[i].ttl_us) >= majority &&
        own->seen[i].ttl_us > lasts_us) {
      lasts_us = own->seen[i].ttl_us;
    }
  }
  if ((holder != NULL) != (nodes > 0)) {
    sim_violation(s, "inspect", "client %u: %s holder is reported; %u nodes hold token %u",
                  client->index, holder != NULL ? "a" : "no", nodes, token);
  } else if (holder != NULL &&
             (sim_tap_token(holder->token, holder->token_length) != token || reported != nodes)) {
    sim_violation(s, "inspect", "client %u: a holder on %u nodes is reported; %u hold token %u",
                  client->index, reported, nodes, token);
  } else if (holder != NULL && ttl_us != lasts_us) {
    sim_violation(
        s, "inspect",
        "client %u: token %u is reported with a majority for %llu us; it has one for %llu",
        client->index, token, (ull)ttl_us, (ull)lasts_us);
  }
}

static void check_inspect_answered(sim *s, const sim_client *client, const sim_lock *own,
                                   int result) {
  unsigned answers = 0;
  if (own->operation != RL_OPERATION_INSPECT) {
    return;
  }
  for (unsigned i = 0; i < client->nodes; i++) {
    answers += own->answered >> i & 1;
    check_inspect_node(s, client, own, i);
  }
  check_inspect_holder(s, client, own);
  if (result != (answers >= client->nodes / 2 + 1 ? REDLOCK_OK : REDLOCK_E_UNAVAILABLE)) {
    sim_violation(s, "inspect", "client %u: an inspection of which %u nodes knew ended with %d",
                  client->index, answers, result);
  }
}

const checker check_inspect = {
    .name = "inspect",
    .asked = check_inspect_asked,
    .answered = check_inspect_answered,
};
