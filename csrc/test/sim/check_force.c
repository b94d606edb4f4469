/*
 * A release by force deletes the keys of its token, and no others. Each command is sent once, in
 * its round. The result is right. Only the holder of the lease learns "lost".
 *
 * SPDX-License-Identifier: MIT
 *
 * check_touch.c, too, detects a command that deletes the key of another token.
 */
#include "check.h"

static void check_force_asked(sim *s, const sim_client *client, const sim_lock *own, unsigned node,
                              const sim_sent *sent) {
  if (!sent->forces) {
    return;
  }
  if (own == NULL) {
    sim_violation(s, "force", "client %u deletes a key on node %u, unasked", client->index, node);
  } else if (sent->token != own->forced) {
    sim_violation(s, "force", "client %u is to delete token %u on node %u, and does token %u",
                  client->index, own->forced, node, sent->token);
  } else if ((own->asked >> node & 1) != 0 &&
             client->core.nodes[node]->link.no_scripts_until_us == 0) { /* It refused the first. */
    sim_violation(s, "force", "client %u sends a release by force to node %u twice", client->index,
                  node);
  }
}

/* A release that is none by force. */
static void check_force_sent(sim *s, const sim_client *client, unsigned node,
                             const sim_sent *sent) {
  const sim_token *token = &s->tokens[sent->token];
  if (s->config.operators != 0 && sent->kind == SIM_COMMAND_RELEASE && !token->abandoned &&
      token->client != client->index) {
    sim_violation(s, "force", "client %u releases token %u of client %u on node %u, unasked",
                  client->index, sent->token, token->client, node);
  }
}

static void check_force_answered(sim *s, const sim_client *client, const sim_lock *own,
                                 int result) {
  unsigned answers = 0;
  if (own->operation != RL_OPERATION_FORCE_RELEASE) {
    return;
  }
  for (unsigned i = 0; i < client->nodes; i++) {
    answers += own->answered >> i & 1;
  }
  int expected = answers < client->nodes / 2 + 1 ? REDLOCK_E_UNAVAILABLE
                 : own->deleted != 0             ? REDLOCK_OK
                                                 : REDLOCK_E_NOT_HELD;
  if (result != expected) {
    sim_violation(s, "force",
                  "client %u: a release by force of which %u nodes knew, nodes %#x had it, ended "
                  "with %d",
                  client->index, answers, own->deleted, result);
  }
}

static void check_force_changed(sim *s, const sim_client *client, const sim_lock *own,
                                uint32_t before, uint32_t after) {
  if (own->lock->lost && after == SIM_NO_TOKEN && before < s->token_count &&
      s->tokens[before].forced == 0 && s->tokens[before].forgotten == 0 &&
      s->breach == SIM_BREACH_NONE) {
    sim_violation(s, "force", "client %u has lost token %u, which no operator has deleted",
                  client->index, before);
  }
}

const checker check_force = {
    .name = "force",
    .asked = check_force_asked,
    .sent = check_force_sent,
    .answered = check_force_answered,
    .changed = check_force_changed,
};
