/*
 * The margin of a lease is no greater than the nodes that hold its keys allow.
 *
 * SPDX-License-Identifier: MIT
 *
 * Keys that an operator has deleted, or that a node has lost before its time, count as held: the
 * client cannot know before it asks. Checked when the lease begins or is prolonged.
 */
#include "check.h"
#include "lease/rl_margin.h"

static void check_margin_counted(sim *s, const sim_client *client, const sim_lock *own) {
  unsigned holders = 0, quorum = sim_config_quorum(&s->config, client->nodes);
  if (own->lease >= s->token_count || own->ends_us <= s->now_us ||
      rl_lock_remaining(own->lock, client->reading_us) == 0) {
    return;
  }
  const sim_token *token = &s->tokens[own->lease];
  for (unsigned i = 0; i < client->nodes; i++) {
    if (sim_tap_is_twin(s, token, client->base + i)) {
      continue; /* It is the first one, and adds no key. */
    }
    unsigned server = sim_config_server(&s->config, client->base + i);
    bool gone = ((token->forced | token->forgotten) >> server & 1) != 0;
    holders += gone || sim_key_keeps(s, client->base + i, own, own->lease) != 0;
  }
  int margin = rl_margin_of(own->lock, client->reading_us);
  int most = (int)holders + (int)quorum - (int)client->nodes - 1;
  int least = 2 * (int)quorum - (int)client->nodes - 1;
  if (s->breach == SIM_BREACH_NONE && (margin > most || (margin < 0 && !sim_keys_went(s)))) {
    sim_violation(s, "margin", "client %u has a margin of %d, where %u of %u nodes hold token %u",
                  client->index, margin, holders, client->nodes, own->lease);
  }
  sim_count_if(s, margin > least, SIM_MARGIN_MORE);
}

const checker check_margin = {
    .name = "margin",
    .granted = check_margin_counted,
    .extended = check_margin_counted,
};
