/*
 * The keys of an attempt that failed, and of a lease that ended, are released on every node to
 * which a SET went, at once or with the next connection, and go. Nothing else is sent for such a
 * token.
 *
 * SPDX-License-Identifier: MIT
 *
 * No client can prevent one case: a SET in flight on a broken connection, which a node executes
 * after the release. Such an orphan lives for its ttl.
 */
#include "check.h"

/*
 * Nodes where a key under a caller-supplied token may be another client's: they have not confirmed
 * that they set it.
 */
static uint32_t check_leftover_doubted(const sim_token *token) {
  return token->supplied && !token->granted ? ~token->votes : 0;
}

/*
 * Returns true if the release has begun in an earlier call of the core: one call may set and
 * release, on each node.
 */
static bool check_leftover_begun(const sim *s, const sim_token *token) {
  return token->over || (token->releasing && token->releasing_call < s->calls);
}

/*
 * Nodes that have refused the SET in an earlier call of the core: one call may release before it
 * has read that.
 */
static uint32_t check_leftover_refused(const sim *s, const sim_token *token) {
  return token->set_refused & ~(token->refused_call + 1 == s->calls ? token->refused_now : 0);
}

/* Returns true if a majority has confirmed the extend of the lock's last round. */
static bool check_leftover_confirmed(const sim_config *config, const sim_client *client,
                                     const sim_token *token, const rl_lock *lock) {
  unsigned votes = 0;
  for (uint32_t left = token->extend_votes; left != 0; left &= left - 1) {
    votes++;
  }
  return token->round == lock->round && votes >= sim_config_quorum(config, client->nodes);
}

static void check_leftover_set(sim *s, const sim_client *client, unsigned node,
                               const sim_sent *sent) {
  const sim_token *token = &s->tokens[sent->token];
  const rl_lock *lock = client->locks[token->lock].lock;
  if (check_leftover_begun(s, token) || (token->release_sent >> node & 1) != 0) {
    sim_violation(s, "leftover", "client %u sets token %u, which it has given up", client->index,
                  sent->token);
  } else if (!sent->heal && ((token->sent & ~token->unknown) >> node & 1) != 0) {
    sim_violation(s, "leftover", "client %u sends the SET of token %u to node %u twice",
                  client->index, sent->token, node);
  } else if (sent->heal && !check_leftover_confirmed(&s->config, client, token, lock)) {
    sim_violation(s, "votes",
                  "client %u creates the key of token %u anew, before a majority "
                  "has confirmed its extension",
                  client->index, sent->token);
  }
}

static void check_leftover_sent(sim *s, const sim_client *client, unsigned node,
                                const sim_sent *sent) {
  const sim_token *token = &s->tokens[sent->token];
  const rl_lock *lock = client->locks[token->lock].lock;
  if (sent->kind == SIM_COMMAND_SET) {
    check_leftover_set(s, client, node, sent);
  } else if (sent->kind == SIM_COMMAND_EXTEND) {
    if (!token->granted || check_leftover_begun(s, token)) {
      sim_violation(s, "leftover", "client %u extends token %u, which is not its lease",
                    client->index, sent->token);
    } else if (token->asked_round == sent->round && (token->asked >> node & 1) != 0 &&
               ((!sent->by_text && !sent->native) ||
                (lock->phase != RL_PHASE_ROUND &&
                 !check_leftover_confirmed(&s->config, client, token, lock)))) {
      sim_violation(s, "votes", "client %u sends an extend twice, or after its round",
                    client->index);
    }
  } else if (sent->kind == SIM_COMMAND_RELEASE && !token->abandoned && !sent->tests) {
    /*
     * The client that attaches a detached token releases it, and does not know the earlier answers.
     */
    uint32_t useless =
        check_leftover_refused(s, token) & ~(token->set_lost | token->queued | token->release_sent);
    /* A release that dequeues is of use, too; without the right to notify it is a plain one. */
    const rl_link *link = &client->core.nodes[node]->link;
    bool mute = (link->notify_denied_until_us != 0 || link->no_scripts_until_us != 0) &&
                (token->enqueued >> node & 1) != 0;
    if ((useless >> node & 1) != 0 && !sent->leaves && !mute) {
      sim_violation(s, "leftover", "client %u releases token %u on node %u, which has refused it",
                    client->index, sent->token, node);
    }
    if ((check_leftover_doubted(token) >> node & 1) != 0) {
      sim_violation(
          s, "leftover",
          "client %u releases token %u, which was given, on node %u, where it may be another's",
          client->index, sent->token, node);
    }
    if (((token->sent | token->queued) >> node & 1) == 0) {
      sim_violation(s, "leftover", "client %u releases token %u on node %u, which never got it",
                    client->index, sent->token, node);
    }
    if (lock != NULL && lock->lease != NULL && rl_lock_remaining(lock, client->reading_us) > 0 &&
        sim_tap_token(rl_attempt_token(lock->lease), REDLOCK_TOKEN_LENGTH) == sent->token) {
      sim_violation(s, "leftover", "client %u releases token %u while it is its lease",
                    client->index, sent->token);
    }
    sim_count_if(s,
                 (token->release_ever >> node & 1) != 0 && (token->release_sent >> node & 1) == 0,
                 SIM_RELEASE_RESENT);
  }
}

/* Returns true if a command of the token has not been answered: its connection may yet break. */
static bool check_leftover_outstanding(const sim_client *client, uint32_t token) {
  for (unsigned i = 0; i < client->nodes; i++) {
    const sim_socket *socket = &client->sockets[i];
    for (size_t k = 0; k < socket->sent_count; k++) {
      if (sim_tap_sent(socket, k)->token == token) {
        return true;
      }
    }
  }
  return false;
}

/* Returns true if the release of the token has begun, and is paced (check_budget.c). */
static bool check_leftover_waits(const sim_client *client, const sim_token *token, uint32_t index) {
  const sim_lock *own = &client->locks[token->lock];
  return own->lock != NULL && own->lock->phase == RL_PHASE_SEND &&
         own->lock->operation == RL_OPERATION_RELEASE && own->released == index;
}

/* Nodes whose answer to the SET of an attempt that failed may still be awaited. */
static uint32_t check_leftover_answers(const sim_client *client, const sim_token *token,
                                       uint32_t index, uint64_t now_us) {
  uint32_t nodes = 0;
  if (token->granted || now_us >= token->over_us + RL_RELEASE_ANSWER_US) {
    return 0;
  }
  for (unsigned i = 0; i < client->nodes; i++) {
    const sim_socket *socket = &client->sockets[i];
    for (size_t k = 0; k < socket->sent_count; k++) {
      const sim_sent *sent = sim_tap_sent(socket, k);
      nodes |= (uint32_t)(sent->token == index && sent->kind == SIM_COMMAND_SET) << i;
    }
  }
  return nodes;
}

/* After each turn, everything that can be released has been. */
static void check_leftover_turned(sim *s, sim_client *client) {
  uint32_t up = 0;
  size_t kept = 0;
  uint64_t now_us = client->advance_us;
  sim_token_list *over = &s->over[client->index];
  for (unsigned i = 0; i < client->nodes; i++) {
    up |= (uint32_t)(client->core.nodes[i]->link.phase == RL_LINK_UP) << i;
  }
  for (size_t i = 0; i < over->count; i++) {
    uint32_t index = over->tokens[i];
    sim_token *token = &s->tokens[index];
    uint32_t missing = token->sent & ~token->release_answered;
    missing &= ~(token->set_refused & ~token->set_lost);
    missing &= ~check_leftover_answers(client, token, index, now_us);
    missing &=
        ~(check_leftover_doubted(token) | (token->supplied && !token->granted ? token->gone : 0));
    for (unsigned k = 0; k < client->nodes; k++) {
      /* The core may have seen a later reading than that of its timers. */
      missing &= ~((uint32_t)(client->reading_us >= token->expired_us[k]) << k);
    }
    if (missing == 0 && !check_leftover_outstanding(client, index)) {
      token->live = false;
      continue;
    }
    over->tokens[kept++] = index;
    if ((missing & up & ~token->release_sent) != 0 && !check_leftover_waits(client, token, index) &&
        s->breach != SIM_BREACH_WALL_CLOCK) {
      sim_violation(s, "leftover",
                    "client %u does not release token %u of resource %u on nodes %#x, which it can "
                    "reach",
                    client->index, index, token->resource, missing & up & ~token->release_sent);
    }
  }
  over->count = kept;
}

/* The shortest grace period for connections that are being made for the first time. */
#define CHECK_LEFTOVER_MOMENT_US (100 * REDLOCK_MILLISECONDS)

/*
 * Returns true if a blocking call returns although a node may be about to come up. This concerns
 * only the lock whose round took the lease: a lock to which the lease has moved since has not asked
 * the nodes. A nested acquire has no grace period, nor has a cancelled operation.
 */
static bool check_leftover_hurried(const sim_client *client, const sim_lock *own, unsigned node) {
  const rl_lock *lock = own->lock;
  rl_link_phase phase = client->core.nodes[node]->link.phase;
  uint64_t tenth_us = lock->ttl_us / 10;
  uint64_t moment_us = tenth_us < CHECK_LEFTOVER_MOMENT_US ? tenth_us : CHECK_LEFTOVER_MOMENT_US;
  return lock->operation == RL_OPERATION_ACQUIRE && lock->phase == RL_PHASE_SUCCEEDED &&
         !own->moved && client->core.nodes[node]->failures == 0 &&
         (phase == RL_LINK_CONNECTING || phase == RL_LINK_HANDSHAKE) &&
         client->reading_us < client->sockets[node].begun_us + moment_us &&
         client->reading_us < lock->round_deadline_us;
}

/*
 * A blocking call returns, and nothing happens before the next one. The key of a lease has been
 * sent to every node that is connected, may vote and has nothing outstanding, except to those that
 * wait for the next backfill, and to those that may still shorten the key (NAT-5). A fresh
 * connection has had its grace period.
 */
static void check_leftover_returned(sim *s, const sim_client *client) {
  for (unsigned i = 0; i < s->config.locks; i++) {
    const rl_lock *lock = client->locks[i].lock;
    bool held = lock != NULL && rl_lock_remaining(lock, client->reading_us) > 0;
    for (unsigned k = 0; held && k < client->nodes; k++) {
      const rl_node *node = client->core.nodes[k];
      uint32_t excused = client->core.backfills->due | lock->lease->may_shorten;
      bool sent = ((lock->lease->sent | excused) >> k & 1) != 0;
      bool well = node->link.phase == RL_LINK_UP && node->link.outstanding_count == 0 &&
                  rl_guard_may_vote(node->link.guard, client->reading_us);
      if (!sent && node->twins == 0 &&
          (well || check_leftover_hurried(client, &client->locks[i], k))) {
        sim_violation(s, "leftover", "client %u returns, and node %u has not been sent its key",
                      client->index, k);
      }
    }
  }
}

/*
 * The core gives a connection up. A SET may be in flight there, and a release on another connection
 * could overtake it. So the core may do this only after a long silence of the node, and never
 * because an attempt has ended.
 */
static void check_leftover_closed(sim *s, const sim_client *client, unsigned node) {
  const sim_socket *socket = &client->sockets[node];
  uint64_t now_us = client->reading_us;
  bool never_up = !socket->up && now_us >= socket->begun_us + RL_LINK_CONNECT_TIMEOUT_US;
  bool silent = socket->up && now_us >= socket->heard_us + RL_LINK_SILENCE_US;
  if (socket->odd) {
    return; /* It was reset, or broke the protocol. */
  }
  if (!never_up && !silent && s->breach == SIM_BREACH_NONE) {
    sim_violation(s, "leftover",
                  "client %u gave up its connection to node %u, which had spoken %llu us before",
                  client->index, node, (ull)(now_us - socket->heard_us));
  }
  sim_count(s, SIM_CONNECTION_TIMED_OUT);
}

static void check_leftover_settled(sim *s) {
  for (unsigned i = 0; i < s->config.nodes; i++) {
    for (unsigned k = 0; k < s->config.resources; k++) {
      const sim_key *key = sim_key_find(s, i, s->config.databases ? 1 : 0, k);
      if (key == NULL || key->token >= s->token_count) {
        continue;
      }
      const sim_token *token = &s->tokens[key->token];
      uint32_t excused = (token->release_forbidden & ~token->release_certain) |
                         check_leftover_doubted(token) | token->gone;
      uint64_t now_us = sim_client_clock(s, &s->clients[token->client]);
      bool kept = ((token->kept | token->orphaned) >> sim_config_server(&s->config, i) & 1) != 0;
      if (!token->abandoned && !kept && (excused >> i & 1) == 0 && now_us < token->expired_us[i]) {
        sim_violation(s, "leftover", "all is quiet, but node %u still holds token %u of client %u",
                      i, key->token, token->client);
      }
    }
  }
}

const checker check_leftover = {
    .name = "leftover",
    .sent = check_leftover_sent,
    .turned = check_leftover_turned,
    .returned = check_leftover_returned,
    .closed = check_leftover_closed,
    .settled = check_leftover_settled,
};
