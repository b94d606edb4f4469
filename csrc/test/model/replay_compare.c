/*
 * The state of the model and that of cores and nodes, side by side.
 *
 * SPDX-License-Identifier: MIT
 */
#include <string.h>

#include "lease/rl_fence.h"
#include "replay.h"

bool replay_holds(const replay *run, const replay_client *client) {
  const rl_lock *lock = client->lock;
  return lock->lease != NULL &&
         (run->config->deadline_ignored || rl_lock_remaining(lock, replay_now(client)) > 0);
}

/* Compares the key of a node: its token and its expiry. */
static void replay_compare_node(replay *run, const model_state *state, unsigned node) {
  const model_node *model = &state->nodes[node];
  redlock_time now_us = replay_node_now(run);
  const char *token = fake_store_token(&run->stores[node], now_us, "k");
  redlock_time expires_us = fake_store_expiry(&run->stores[node], now_us, "k");
  unsigned holder = 0;
  if (token != NULL) {
    holder = (unsigned)(token[1] - '0');
  }
  unsigned expected = model->owner == 0 ? 0 : model_token(run->config, model->owner - 1u);
  if (holder != expected) {
    replay_differ(run, "node %u has the key of token %u (0: none), the model of token %u", node + 1,
                  holder, expected);
  } else if (holder != 0 && expires_us != (run->ticks + model->remaining) * REPLAY_TICK_US) {
    replay_differ(run, "node %u keeps the key for another time than the model", node + 1);
  }
  uint64_t counter = fake_store_counter(&run->stores[node], now_us, "k");
  if (run->config->fence &&
      counter != (model->counter == 0 ? 0 : REPLAY_NUMBERS + model->counter)) {
    replay_differ(run, "node %u has counted to another number than %u, the model's", node + 1,
                  model->counter);
  }
}

/*
 * Compares the second round: the number to be confirmed, and the number of nodes that have
 * confirmed it.
 */
static void replay_compare_fence(replay *run, const replay_client *client,
                                 const model_state *state) {
  const model_client *model = &state->clients[client - run->clients];
  const rl_fence *fence = rl_fence_of(client->lock);
  unsigned token = state->tokens[model->attempt];
  if (!run->config->fence) {
    return;
  }
  if (fence->settled != (token != 0)) {
    replay_differ(run, "%c %s what is to be confirmed, in the model it does%s",
                  replay_letter(run, client), token != 0 ? "does not know" : "knows",
                  token != 0 ? "" : " not");
  } else if (token != 0 && fence->highest != REPLAY_NUMBERS + token) {
    replay_differ(run, "%c has another number confirmed than %u, the model's",
                  replay_letter(run, client), token);
  } else if (token != 0 && rl_quorum_count(fence->confirmed) != model->confirms) {
    replay_differ(run, "%c has counted %u confirmations, the model %u", replay_letter(run, client),
                  rl_quorum_count(fence->confirmed), model->confirms);
  }
}

static bool replay_releasing(const rl_lock *lock) {
  return lock->phase == RL_PHASE_ROUND && lock->operation == RL_OPERATION_RELEASE;
}

/* The lease ends in the middle of a tick: the one before the model's. */
static void replay_compare_lease(replay *run, const replay_client *client,
                                 const model_client *model, const uint8_t *tokens) {
  const rl_lock *lock = client->lock;
  char letter = replay_letter(run, client);
  redlock_time deadline_us = (client->ticks + model->validity) * REPLAY_TICK_US;
  if (lock->lease == NULL) {
    replay_differ(run, "%c has no lease, in the model it has one for %u ticks", letter,
                  model->validity);
  } else if (model->validity > 0 && lock->deadline_us > replay_now(client) &&
             (lock->deadline_us >= deadline_us ||
              lock->deadline_us < deadline_us - REPLAY_TICK_US)) {
    replay_differ(run, "%c's lease lasts for another number of ticks than %u, the model's", letter,
                  model->validity);
  } else if ((rl_lock_remaining(lock, replay_now(client)) > 0) != (model->validity > 0)) {
    replay_differ(run, "%c's lease %s, in the model it has %u ticks left", letter,
                  model->validity > 0 ? "has expired" : "is valid", model->validity);
  } else if (rl_attempt_token(lock->lease)[1] !=
             (char)('0' + model_token(run->config, model->attempt))) {
    replay_differ(run, "%c's lease is of another attempt", letter);
  } else if (run->config->fence && model->validity > 0 &&
             rl_fence_token(lock) != REPLAY_NUMBERS + tokens[model->attempt]) {
    replay_differ(run, "%c's lease has another fencing token than %u, the model's", letter,
                  tokens[model->attempt]);
  }
}

static unsigned replay_denied(const replay *run, const model_state *state, unsigned attempt) {
  unsigned denied = 0;
  for (unsigned i = 0; i < run->config->nodes; i++) {
    denied += state->nodes[i].messages[attempt].extend == MODEL_EXTEND_DENIED;
  }
  return denied;
}

static void replay_compare_round(replay *run, const replay_client *client, const model_state *state,
                                 rl_operation operation) {
  const rl_lock *lock = client->lock;
  const model_client *model = &state->clients[client - run->clients];
  if (lock->phase != RL_PHASE_ROUND || lock->operation != operation) {
    replay_differ(run, "%c's operation has ended (%s), in the model it has not",
                  replay_letter(run, client), redlock_error_name(lock->result));
  } else if (lock->quorum.granted != model->votes) {
    replay_differ(run, "%c has counted %u votes, the model %u", replay_letter(run, client),
                  lock->quorum.granted, model->votes);
  } else if (operation == RL_OPERATION_EXTEND &&
             lock->quorum.denied != replay_denied(run, state, model->attempt)) {
    replay_differ(run, "%c has counted another number of refusals than the model",
                  replay_letter(run, client));
  }
}

static void replay_compare_client(replay *run, const replay_client *client,
                                  const model_state *state) {
  const rl_lock *lock = client->lock;
  const model_client *model = &state->clients[client - run->clients];
  bool rests = !rl_lock_is_busy(lock) || lock->phase == RL_PHASE_DELAY;
  switch ((model_phase)model->phase) {
  case MODEL_ACQUIRING:
    replay_compare_round(run, client, state, RL_OPERATION_ACQUIRE);
    if (!run->differs) {
      replay_compare_fence(run, client, state);
    }
    break;
  case MODEL_HELD:
    replay_compare_lease(run, client, model, state->tokens);
    if (model->extends > 0 && model->validity > 0 && model->confirmed == 0 &&
        rl_quorum_count(lock->deniers) != replay_denied(run, state, model->attempt)) {
      replay_differ(run, "%c knows of another number of late refusals than the model",
                    replay_letter(run, client));
    }
    if (!rests) {
      replay_differ(run, "%c's operation has not ended, in the model it has",
                    replay_letter(run, client));
    }
    break;
  case MODEL_EXTENDING:
    replay_compare_round(run, client, state, RL_OPERATION_EXTEND);
    replay_compare_lease(run, client, model, state->tokens);
    break;
  case MODEL_IDLE:
  case MODEL_DONE:
  default:
    if (lock->lease != NULL) {
      replay_differ(run, "%c has a lease, in the model it has none", replay_letter(run, client));
    } else if (!rests && !replay_releasing(lock)) {
      replay_differ(run, "%c's operation has not ended, in the model it has",
                    replay_letter(run, client));
    }
    break;
  }
}

/* Compares the requests that were sent and not executed. No SET and no extend is sent twice. */
static void replay_compare_requests(replay *run, const replay_client *client, unsigned node,
                                    unsigned attempt, const model_messages *model) {
  const replay_link *link = &client->links[node];
  unsigned sets = link->hanging && attempt == client->attempt;
  unsigned extends = 0;
  unsigned confirms = 0;
  for (unsigned i = 0; i < link->count; i++) {
    const replay_request *request = &link->requests[i];
    if (request->attempt == attempt && request->progress == REPLAY_SENT) {
      sets += request->kind == REPLAY_SET || request->kind == REPLAY_HEAL;
      extends += request->kind == REPLAY_EXTEND;
      confirms += request->kind == REPLAY_CONFIRM;
    }
  }
  if (sets != (model->set == MODEL_SET_REQUESTED) + (unsigned)model->heal) {
    replay_differ(run, "%c has %u SETs on their way to node %u, the model %u",
                  replay_letter(run, client), sets, node + 1,
                  (model->set == MODEL_SET_REQUESTED) + (unsigned)model->heal);
  } else if (extends != (model->extend == MODEL_EXTEND_REQUESTED) + (unsigned)model->stale) {
    replay_differ(run, "%c has %u extends on their way to node %u, the model %u",
                  replay_letter(run, client), extends, node + 1,
                  (model->extend == MODEL_EXTEND_REQUESTED) + (unsigned)model->stale);
  } else if (confirms != (model->confirm == MODEL_CONFIRM_REQUESTED)) {
    replay_differ(run, "%c has %u fencing tokens on their way to node %u, the model %u",
                  replay_letter(run, client), confirms, node + 1,
                  model->confirm == MODEL_CONFIRM_REQUESTED);
  }
}

/*
 * Compares the nodes that the client lets vote, and their records. During a round it need not know
 * a record.
 */
static void replay_compare_guard(replay *run, const replay_client *client, const model_state *state,
                                 unsigned node) {
  unsigned index = (unsigned)(client - run->clients);
  const model_guard_state *guards = &state->nodes[node].guards[index];
  const rl_guard *guard = client->core.nodes[node]->link.guard;
  if (guards->asked != 1 || client->core.nodes[node]->link.phase != RL_LINK_UP) {
    return;
  }
  char reason[RL_REASON_MAX + 1];
  bool current = replay_knows_record(run, client, node);
  if (rl_guard_may_vote(guard, replay_now(client)) != (guards->wait == 0)) {
    replay_differ(run, "%c %s node %u vote, in the model it %s (%s)", replay_letter(run, client),
                  guards->wait == 0 ? "does not let" : "lets", node + 1,
                  guards->wait == 0 ? "does" : "does not",
                  rl_guard_reason(guard, replay_now(client), reason, sizeof reason));
  } else if (current != (guards->current != 0)) {
    replay_differ(run, "%c %s the record of node %u, in the model it %s",
                  replay_letter(run, client), current ? "knows" : "does not know", node + 1,
                  current ? "does not" : "does");
  }
}

/* Returns true if the node was sent such a request of the attempt. */
static bool replay_was_sent(const replay_link *link, replay_kind kind, unsigned attempt) {
  for (unsigned i = 0; i < link->count; i++) {
    if (link->requests[i].kind == kind && link->requests[i].attempt == attempt) {
      return true;
    }
  }
  return false;
}

/* Returns true if the client knows that the node has refused the SET: then it sends no release. */
static bool replay_was_refused(const replay_link *link, unsigned attempt) {
  for (unsigned i = 0; i < link->count; i++) {
    const replay_request *request = &link->requests[i];
    bool sets = request->kind == REPLAY_SET || request->kind == REPLAY_HEAL;
    if (sets && request->attempt == attempt && !replay_grants(request) &&
        request->progress == REPLAY_DELIVERED) {
      return true;
    }
  }
  return false;
}

/* A release without a connection is not sent any more when the keys have expired (expired_us). */
static bool replay_expired(const replay_client *client) {
  return 10 * client->ticks > client->gone_tenths;
}

/* Releases go out in the step in which the attempt ends, or the lease, and not before. */
static void replay_compare_releases(replay *run, const replay_client *client,
                                    const model_step *step, const model_state *state) {
  unsigned attempt = client->attempt;
  bool open = model_open(run->config, state, attempt);
  bool closing = step->kind == MODEL_GIVE_UP || step->kind == MODEL_RELEASE ||
                 ((step->kind == MODEL_REPLY_SET || step->kind == MODEL_REPLY_CONFIRM) &&
                  step->who == attempt && !open);
  for (unsigned i = 0; i < client->nodes; i++) {
    bool sent = replay_was_sent(&client->links[i], REPLAY_RELEASE, attempt);
    bool expected = state->nodes[i].messages[attempt].release > 0;
    if (closing && expected && !sent && state->nodes[i].owner == attempt + 1) {
      /* The node has executed the SET so late that the key outlives the core's bound. */
      run->cut = run->cut || replay_expired(client);
    }
    if (sent && open && !run->config->token_reused) {
      replay_differ(run, "%c has released an attempt that is not over", replay_letter(run, client));
    } else if (closing && sent != expected &&
               (sent || (!replay_expired(client) &&
                         replay_was_sent(&client->links[i], REPLAY_SET, attempt) &&
                         !replay_was_refused(&client->links[i], attempt)))) {
      replay_differ(run, "%c has sent %s release to node %u, in the model %s",
                    replay_letter(run, client), sent ? "a" : "no", i + 1,
                    expected ? "it has" : "it has not");
    }
  }
}

void replay_compare(replay *run, const model_step *step, const model_state *state) {
  for (unsigned i = 0; i < run->config->nodes; i++) {
    replay_compare_node(run, state, i);
  }
  for (unsigned i = 0; i < MODEL_CLIENTS; i++) {
    const replay_client *client = &run->clients[i];
    unsigned first = model_first_attempt(run->config, i);
    replay_compare_client(run, client, state);
    for (unsigned node = 0; node < client->nodes; node++) {
      if (run->config->guard) {
        replay_compare_guard(run, client, state, node);
      }
      for (unsigned j = first; j < first + run->config->attempts[i]; j++) {
        replay_compare_requests(run, client, node, j, &state->nodes[node].messages[j]);
      }
    }
    bool acts = step->kind == MODEL_REPLY_SET || step->kind == MODEL_REPLY_CONFIRM
                    ? model_client_of(run->config, step->who) == i
                    : step->who == i;
    if (acts) {
      replay_compare_releases(run, client, step, state);
    }
  }
}
