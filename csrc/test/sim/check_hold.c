/*
 * No client gets a lock before hold_at_least of the last grant is over, if its release has
 * succeeded. A release keeps no key for longer than it must.
 *
 * SPDX-License-Identifier: MIT
 *
 * The time counts from the reading of the client's clock with which the core granted the lease, in
 * true time. A lease that is handed over keeps it, and its rest does not grow. A nested acquire may
 * add to it: here from its start, which is earlier than its grant.
 */
#include "check.h"
#include "sim_trace.h"

/* Returns the true time of a reading of the client's clock, which is not later than now. */
static uint64_t check_hold_true_us(const sim *s, const sim_client *client, uint64_t reading_us) {
  uint64_t true_us = sim_clock_when(&client->clock, reading_us);
  return true_us < s->now_us ? true_us : s->now_us;
}

/* The longest rest that a release of the run may ask for. */
static uint64_t check_hold_longest_us(const sim *s) {
  return sim_config_hold_us(&s->config) + s->config.lock_delay_us;
}

/* A control that breaks only the promises of releases leaves the check on. */
static bool check_hold_is_off(const sim *s) {
  return s->breach != SIM_BREACH_NONE && s->breach != SIM_BREACH_FORCE_SPREADS;
}

static bool check_hold_meet(const sim_lock *lock, unsigned resource) {
  return lock->both || lock->resource == resource;
}

static void check_hold_granted(sim *s, const sim_client *client, const sim_lock *lock) {
  sim_token *token = &s->tokens[lock->lease];
  const rl_options *options = lock->lock->current;
  uint64_t begun_us = check_hold_true_us(s, client, client->reading_us);
  token->hold_end_us = token->keep_until_us = 0;
  if (options->hold_at_least_us != 0) {
    token->hold_end_us = begun_us + options->hold_at_least_us;
    token->keep_until_us = client->reading_us + rl_options_hold_us(options);
  } else if (lock->attaches) {
    token->hold_end_us = lock->handed_hold_us;
    token->keep_until_us =
        lock->handed_hold_us == 0 ? 0 : client->reading_us + lock->handed_rest_us;
  }
  if (lock->ends_us <= s->now_us || token->forced != 0 || check_hold_is_off(s)) {
    return; /* It may be over already, because the client was paused. */
  }
  for (unsigned i = 0; i < s->config.resources; i++) {
    if (check_hold_meet(lock, i) && s->kept_until_us[i] > s->now_us) {
      sim_violation(
          s, "hold",
          "client %u was given resource %u, which a release must keep for another %llu us",
          client->index, i, (ull)(s->kept_until_us[i] - s->now_us));
    }
  }
}

void check_hold_nested(sim *s, const sim_client *client, const sim_lock *own, uint32_t lease) {
  redlock_duration hold_us = own->options.hold_at_least_us;
  if (lease == SIM_NO_TOKEN || hold_us == 0) {
    return;
  }
  sim_token *token = &s->tokens[lease];
  uint64_t end_us = check_hold_true_us(s, client, own->begun_us) + hold_us;
  uint64_t until_us = client->reading_us + check_hold_longest_us(s);
  token->hold_end_us = end_us > token->hold_end_us ? end_us : token->hold_end_us;
  token->keep_until_us = until_us > token->keep_until_us ? until_us : token->keep_until_us;
}

static void check_hold_sent(sim *s, const sim_client *client, unsigned node, const sim_sent *sent) {
  const sim_token *token = &s->tokens[sent->token];
  bool nested = (s->config.reentrant >> client->index & 1) != 0; /* It may not have ended yet. */
  if (sent->kind != SIM_COMMAND_RELEASE || sent->forces || sent->tests || token->abandoned) {
    return;
  }
  if (sent->ttl_us == 0 && token->hold_end_us > s->now_us && !token->hold_over) {
    sim_violation(s, "hold",
                  "client %u deletes the key of token %u on node %u, %llu us before the end of its "
                  "time",
                  client->index, sent->token, node, (ull)(token->hold_end_us - s->now_us));
  }
  uint64_t left_us = nested ? check_hold_longest_us(s)
                     : token->keep_until_us > client->reading_us
                         ? token->keep_until_us - client->reading_us
                         : 0;
  if (sent->ttl_us > left_us + 1000) {
    sim_violation(
        s, "hold",
        "client %u keeps the key of token %u on node %u for %llu us, of which %llu us are "
        "left",
        client->index, sent->token, node, (ull)sent->ttl_us, (ull)left_us);
  }
}

void check_hold_forced(sim *s, unsigned server, uint32_t token) {
  for (unsigned i = 0; i < s->config.resources; i++) {
    sim_kept *kept = &s->kept_by[i];
    for (unsigned node = 0; node < SIM_NODES_MAX && kept->token == token; node++) {
      bool deleted = sim_config_server(&s->config, node) == server;
      kept->nodes &= deleted ? ~(1u << node) : ~0u;
    }
    bool promises = rl_quorum_count(kept->nodes) >= kept->majority;
    s->kept_until_us[i] = promises ? s->kept_until_us[i] : 0;
  }
}

/* A node has executed a release that keeps |key|. */
static void check_hold_kept(sim *s, const sim_connection *connection, const sim_key *key,
                            uint32_t index) {
  const sim_token *token = &s->tokens[index];
  uint64_t dies_us = sim_key_dies_us(&s->nodes[connection->node], key);
  if (dies_us < token->hold_end_us && s->breach == SIM_BREACH_NONE) {
    sim_violation(s, "hold", "node %u keeps token %u for %llu us less than its time",
                  connection->node, index, (ull)(token->hold_end_us - dies_us));
  }
}

/*
 * Returns the nodes that keep the key, or have lost it since: the guard excludes those. |*forced|
 * receives how many kept it until an operator deleted it.
 */
static uint32_t check_hold_nodes(sim *s, const sim_client *client, const sim_lock *lock,
                                 unsigned *forced) {
  const sim_token *token = &s->tokens[lock->released];
  uint32_t nodes = 0;
  *forced = 0;
  for (unsigned i = client->base; i < client->base + client->nodes; i++) {
    uint32_t kept = token->kept & 1u << sim_config_server(&s->config, i);
    bool keeps = sim_key_keeps(s, i, lock, lock->released) >= token->hold_end_us ||
                 (token->forgotten & kept) != 0;
    if (!sim_tap_is_twin(s, token, i)) {
      nodes |= (uint32_t)keeps << i;
      *forced += !keeps && (token->forced_ever & kept) != 0;
    }
  }
  return nodes;
}

static void check_hold_released(sim *s, const sim_client *client, const sim_lock *lock,
                                int result) {
  const sim_token *token = &s->tokens[lock->released];
  unsigned forced, majority = client->nodes / 2 + 1;
  if (result != REDLOCK_OK || token->hold_end_us <= s->now_us || token->hold_over ||
      check_hold_is_off(s)) {
    return;
  }
  uint32_t nodes = check_hold_nodes(s, client, lock, &forced);
  unsigned keep = rl_quorum_count(nodes);
  if (keep + forced < majority) {
    sim_violation(s, "hold", "client %u: token %u is released, and %u of %u nodes keep it",
                  client->index, lock->released, keep, client->nodes);
  }
  for (unsigned i = 0; i < s->config.resources && keep >= majority; i++) {
    if (check_hold_meet(lock, i) && token->hold_end_us > s->kept_until_us[i]) {
      s->kept_until_us[i] = token->hold_end_us;
      s->kept_by[i] = (sim_kept){lock->released, nodes, majority};
    }
  }
  sim_count(s, SIM_HOLD_PROMISED);
}

const checker check_hold = {
    .name = "hold",
    .granted = check_hold_granted,
    .sent = check_hold_sent,
    .kept = check_hold_kept,
    .released = check_hold_released,
};
