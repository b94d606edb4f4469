/*
 * With a guard a lease counts only votes of nodes that were not in quarantine, by their own clocks.
 *
 * SPDX-License-Identifier: MIT
 *
 * sim_watch.c, which knows no client, has noted the age of a node's lineage record when it set the
 * key. check_exclusion.c detects a quarantine that is too short.
 */
#include "check.h"

static void check_guard_granted(sim *s, const sim_client *client, const sim_lock *own) {
  const sim_token *token = &s->tokens[own->lease];
  unsigned ripe = 0;
  if (!s->config.guard || own->attaches) {
    return;
  }
  for (uint32_t left = token->votes & token->ripe; left != 0; left &= left - 1) {
    ripe++;
  }
  if (ripe < sim_config_quorum(&s->config, client->nodes)) {
    sim_violation(s, "guard",
                  "client %u was given a lease, though only %u of the nodes %#x that granted it "
                  "were not in quarantine",
                  client->index, ripe, token->votes);
  }
}

/* A node whose record is unknown gets no SET, and no key: an extend would count on that. */
static void check_guard_sent(sim *s, const sim_client *client, unsigned node,
                             const sim_sent *sent) {
  const sim_token *token = &s->tokens[sent->token];
  bool sets =
      sent->kind == SIM_COMMAND_SET && (token->granted || !client->locks[token->lock].attaches);
  if (s->config.guard && sets && !sent->guarded) {
    sim_violation(s, "guard", "client %u sets its key on node %u, whatever the record of that",
                  client->index, node);
  }
}

const checker check_guard = {
    .name = "guard",
    .granted = check_guard_granted,
    .sent = check_guard_sent,
};
