/*
 * A lease has the votes of a majority, each for its own attempt and round. Replies of old attempts
 * and rounds change nothing.
 *
 * SPDX-License-Identifier: MIT
 *
 * The votes are those of sim_tap.c, which knows the meaning and the round of every reply.
 */
#include "check.h"

static unsigned check_votes_count(uint32_t nodes) {
  unsigned count = 0;
  for (; nodes != 0; nodes &= nodes - 1) {
    count++;
  }
  return count;
}

/* Two nodes that are one server have one vote. */
static uint32_t check_votes_servers(const sim *s, const sim_token *token, uint32_t nodes) {
  uint32_t servers = 0;
  for (unsigned i = 0; i < s->config.nodes; i++) {
    unsigned server = sim_config_server(&s->config, i);
    servers |= (nodes >> i & 1) << (sim_tap_is_twin(s, token, i) ? server : i);
  }
  return servers;
}

/* No node is taken for the same server as another. */
static void check_votes_twins(sim *s, const sim_client *client) {
  for (unsigned i = 0; i < client->nodes && s->breach == SIM_BREACH_NONE; i++) {
    if (client->core.nodes[i]->twins != 0 &&
        (!s->config.twins || (i != 0 && i != client->nodes - 1))) {
      sim_violation(s, "votes", "client %u takes node %u for the same server as another",
                    client->index, i);
    }
  }
}

static unsigned check_votes_majority(const sim_client *client) {
  return client->nodes / 2 + 1;
}

static void check_votes_granted(sim *s, const sim_client *client, const sim_lock *lock) {
  const sim_token *token = &s->tokens[lock->lease];
  unsigned votes = check_votes_count(check_votes_servers(s, token, token->votes));
  check_votes_twins(s, client);
  if (votes < sim_config_quorum(&s->config, client->nodes)) {
    sim_violation(s, "votes", "client %u was given a lease on %u votes of %u nodes", client->index,
                  votes, client->nodes);
  }
  if (lock->lock->operation != RL_OPERATION_ACQUIRE || token->over) {
    sim_violation(s, "votes", "client %u was given a lease by an attempt that is over",
                  client->index);
  }
}

static void check_votes_extended(sim *s, const sim_client *client, const sim_lock *lock) {
  const sim_token *token = &s->tokens[lock->lease];
  bool now = token->round == lock->lock->round;
  check_votes_twins(s, client);
  unsigned votes = now ? check_votes_count(check_votes_servers(s, token, token->extend_votes)) : 0;
  if (votes < sim_config_quorum(&s->config, client->nodes)) {
    sim_violation(s, "votes", "client %u was given an extension on %u votes of %u nodes",
                  client->index, votes, client->nodes);
  }
}

static void check_votes_released(sim *s, const sim_client *client, const sim_lock *lock,
                                 int result) {
  const sim_token *token;
  uint32_t index = lock->released;
  uint32_t all = (1u << client->nodes) - 1;
  if (index >= s->token_count) {
    sim_violation(s, "votes", "client %u released a token that it never had", client->index);
    return;
  }
  token = &s->tokens[index];
  uint32_t never = token->set_refused & ~token->set_lost; /* They had answered so to the SET. */
  uint32_t certain = token->release_certain | (all & ~token->sent) | never;
  unsigned gone = 0;
  for (unsigned i = 0; i < client->nodes; i++) {
    bool later = (token->orphaned >> sim_config_server(&s->config, client->base + i) & 1) != 0;
    /*
     * A node that refused the SET, or was not sent it, counts as one without the key if its twin
     * has it.
     */
    bool twin = s->config.twins && ((never | ~token->sent) >> i & 1) != 0;
    bool kept = (token->kept >> sim_config_server(&s->config, client->base + i) & 1) != 0;
    gone += later || twin || kept || !sim_key_has(s, client->base + i, lock, index);
  }
  if (result == REDLOCK_OK && (check_votes_count(certain) < check_votes_majority(client) ||
                               gone < check_votes_majority(client))) {
    sim_violation(
        s, "votes",
        "client %u: token %u is reported as released; %u of %u nodes confirmed that, from %u it "
        "is gone",
        client->index, index, check_votes_count(certain), client->nodes, gone);
  }
  bool holds = token->hold_end_us != 0; /* It is lost if no majority can keep it. */
  uint32_t lacking = token->release_refused | never | (holds ? all & ~token->sent : 0);
  unsigned lost =
      holds ? client->nodes - check_votes_majority(client) + 1 : check_votes_majority(client);
  if (result == REDLOCK_E_LOST && check_votes_count(lacking) < lost) {
    sim_violation(s, "votes", "client %u: its lease is reported as lost; %u of %u nodes denied it",
                  client->index, check_votes_count(token->release_refused), client->nodes);
  }
}

void check_votes_before(const sim_client *client, check_votes_state *state) {
  for (unsigned i = 0; i < SIM_LOCKS_MAX; i++) {
    const rl_lock *lock = client->locks[i].lock;
    if (lock != NULL) {
      state->lease[i] = lock->lease;
      state->deadline_us[i] = lock->deadline_us;
      state->phase[i] = lock->phase;
      state->result[i] = lock->result;
      state->quorum[i] = lock->quorum;
    }
  }
}

/* A reply for a decided round may still be shown as a vote; it must not be counted as one. */
void check_votes_unchanged(sim *s, const sim_client *client, const check_votes_state *state) {
  for (unsigned i = 0; i < SIM_LOCKS_MAX; i++) {
    const rl_lock *lock = client->locks[i].lock;
    if (lock == NULL) {
      continue;
    }
    if (sim_keys_went(s) && lock->lost && lock->lease == NULL && state->lease[i] != NULL) {
      continue; /* A late denial has shown that the lease is lost, which an operator has ended. */
    }
    bool voting = lock->phase == RL_PHASE_ROUND;
    /* A late denial of another lease has begun to release it: its waiters try at once. */
    bool hurries = state->phase[i] == RL_PHASE_DELAY && lock->phase == RL_PHASE_SEND;
    if (state->lease[i] != lock->lease || state->deadline_us[i] != lock->deadline_us ||
        (state->phase[i] != lock->phase && !hurries) || state->result[i] != lock->result ||
        (voting && (state->quorum[i].granted != lock->quorum.granted ||
                    state->quorum[i].denied != lock->quorum.denied ||
                    state->quorum[i].failed != lock->quorum.failed))) {
      sim_violation(s, "votes", "client %u, lock %u: a reply of an old round changed it",
                    client->index, i);
    }
  }
}

const checker check_votes = {
    .name = "votes",
    .granted = check_votes_granted,
    .extended = check_votes_extended,
    .released = check_votes_released,
};
