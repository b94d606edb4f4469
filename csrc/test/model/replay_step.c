/*
 * One step of the model, in calls of the core.
 *
 * SPDX-License-Identifier: MIT
 */
#include <string.h>

#include "fake_guard.h"
#include "lease/rl_fence.h"
#include "replay.h"

static bool replay_acquiring(const rl_lock *lock) {
  return lock->phase == RL_PHASE_ROUND && lock->operation == RL_OPERATION_ACQUIRE;
}

/* ------------------------------------------------------------------------------------- acquire */

/* Begins the next attempt: of the acquire that goes on after its delay, or of a new one. */
static void replay_begin(replay *run, replay_client *client, unsigned attempt) {
  unsigned index = (unsigned)(client - run->clients);
  unsigned last = model_first_attempt(run->config, index) + run->config->attempts[index] - 1;
  redlock_options options = replay_options(run, last - attempt);
  rl_lock *lock = client->lock;
  if (lock->phase == RL_PHASE_DELAY) {
    replay_wait(run, client, lock->timer.due_us);
    rl_core_advance(&client->core, replay_now(client));
    run->events[REPLAY_EVENT_RETRIED]++;
    return;
  }
  rl_lock_cancel(lock, replay_now(client), REDLOCK_E_CANCELLED);
  int error = rl_lock_acquire(lock, replay_now(client), &options, false);
  if (error != REDLOCK_OK) {
    replay_differ(run, "%c may not acquire: %s", replay_letter(run, client),
                  redlock_error_name(error));
  }
}

static void replay_launch(replay_client *client, unsigned token) {
  unsigned char entropy[RL_LOCK_ENTROPY];
  memset(entropy, (int)token, sizeof entropy);
  rl_core_send(&client->core, replay_now(client), entropy, sizeof entropy);
}

/* The attempt, or the lease, is over: its releases are about to go out. */
static void replay_closed(replay *run, replay_client *client) {
  replay_break_for(run, client, REPLAY_RELEASE, client->attempt, 0);
  replay_settle(run, client);
}

static void replay_start(replay *run, replay_client *client, unsigned attempt) {
  redlock_duration patience_us = replay_options(run, 0).node_timeout_us;
  replay_settle(run, client);
  replay_begin(run, client, attempt);
  for (unsigned i = 0; i < client->nodes; i++) {
    /* A node that is too far behind would not be asked. */
    if (rl_link_oldest_age(&client->core.nodes[i]->link, replay_now(client)) > patience_us) {
      replay_break(run, client, i);
    }
  }
  replay_break_for(run, client, REPLAY_SET, attempt, 0);
  for (unsigned i = 0; i < client->nodes; i++) {
    if (run->plan->joins[attempt][i]) {
      replay_hang(run, client, i);
    }
  }
  replay_settle(run, client);
  client->attempt = attempt;
  for (unsigned i = 0; i < client->nodes && run->config->guard; i++) {
    /* One that is not to vote is asked again, once a second. */
    const rl_guard *guard = client->core.nodes[i]->link.guard;
    if (!rl_guard_may_vote(guard, replay_now(client))) {
      run->events[REPLAY_EVENT_QUARANTINED]++;
      replay_wait(run, client, rl_time_add(guard->asked_us, RL_GUARD_ASK_EVERY_US));
    }
  }
  client->floor = 0;
  for (unsigned i = 0; i < run->token_count; i++) {
    client->floor = rl_time_max(client->floor, run->tokens[i]);
  }
  replay_launch(client, model_token(run->config, attempt));
  replay_settle(run, client);
}

/*
 * The vote makes the core send the fencing token at once. Connections on which it would arrive too
 * late break before. That of the vote itself cannot.
 */
static bool replay_prepare_confirm(replay *run, replay_client *client, const model_state *before,
                                   const model_step *step) {
  model_state after = *before;
  model_take(run->config, &after, step);
  for (unsigned i = 0; i < client->nodes; i++) {
    bool asked = before->nodes[i].messages[step->who].confirm == MODEL_CONFIRM_NONE &&
                 after.nodes[i].messages[step->who].confirm == MODEL_CONFIRM_REQUESTED;
    if (!asked || !replay_must_break(run, client, i, REPLAY_CONFIRM, step->who, 0)) {
      continue;
    }
    if (i == step->node) {
      run->cut = true;
      return false;
    }
    replay_break(run, client, i);
  }
  replay_settle(run, client);
  return true;
}

/* |kind|: SET, or CONFIRM. */
static void replay_reply_vote(replay *run, replay_client *client, const model_state *before,
                              const model_step *step, replay_kind kind) {
  bool was_acquiring = replay_acquiring(client->lock);
  if (run->config->fence && kind == REPLAY_SET &&
      !replay_prepare_confirm(run, client, before, step)) {
    return;
  }
  replay_request *request = replay_find(client, step->node, kind, step->who, REPLAY_EXECUTED);
  if (request == NULL || !replay_grants(request) || !replay_deliver(client, step->node, request)) {
    replay_differ(run, "there is no vote of node %u that could reach %c", step->node + 1u,
                  replay_letter(run, client));
    return;
  }
  run->events[REPLAY_EVENT_SECOND_ROUND] += kind == REPLAY_CONFIRM;
  run->events[REPLAY_EVENT_GUARDED] +=
      run->config->guard && was_acquiring && client->lock->lease != NULL;
  run->events[REPLAY_EVENT_FENCED] +=
      run->config->fence && was_acquiring && client->lock->lease != NULL;
  if (was_acquiring && client->lock->lease != NULL) {
    run->events[REPLAY_EVENT_GRANTED]++;
  } else if (was_acquiring && !replay_acquiring(client->lock)) {
    run->events[REPLAY_EVENT_TOO_LATE]++;
    replay_closed(run, client);
  }
  replay_settle(run, client);
}

/* The refusal of a node that can reach the client now. */
static const replay_request *replay_refusal(replay_client *client, unsigned node) {
  const replay_link *link = &client->links[node];
  const replay_request *request =
      replay_find(client, node, REPLAY_SET, client->attempt, REPLAY_EXECUTED);
  if (request == NULL || replay_grants(request) || replay_declines(request) ||
      request->connection != link->connection) {
    return NULL;
  }
  for (const replay_request *older = link->requests; older < request; older++) {
    if (older->connection == link->connection && older->progress == REPLAY_SENT) {
      return NULL;
    }
  }
  return request;
}

/* How many nodes may fail to vote while as many as are needed are still possible. */
static unsigned replay_spare(const replay_client *client) {
  return client->nodes - rl_core_quorum(&client->core, RL_OPERATION_ACQUIRE);
}

/*
 * Delivers the refusals of nodes without the key. Returns true if they make a majority of
 * confirmations impossible.
 */
static bool replay_give_up_unconfirmed(replay *run, replay_client *client) {
  for (unsigned i = 0; i < client->nodes && replay_acquiring(client->lock); i++) {
    const replay_request *request =
        replay_find(client, i, REPLAY_CONFIRM, client->attempt, REPLAY_EXECUTED);
    if (request != NULL && !replay_grants(request)) {
      (void)replay_deliver(client, i, request);
    }
  }
  bool failed = !replay_acquiring(client->lock);
  run->events[REPLAY_EVENT_UNCONFIRMED] += failed;
  return failed;
}

/* If the refusals that could reach the client make it certain that there is no lock, they do. */
static bool replay_give_up_refused(replay *run, replay_client *client) {
  rl_quorum quorum = client->lock->quorum;
  for (unsigned i = 0; i < client->nodes; i++) {
    const replay_request *request = replay_refusal(client, i);
    if (request != NULL && request->reply[0] == '-') {
      quorum.failed++;
    } else if (request != NULL) {
      quorum.denied++;
    }
  }
  rl_decision decision =
      rl_quorum_decide_acquire(&quorum, rl_core_quorum(&client->core, RL_OPERATION_ACQUIRE));
  bool decided = decision != RL_DECISION_NONE && decision != RL_DECISION_GRANTED;
  for (unsigned i = 0; i < client->nodes && decided; i++) {
    const replay_request *request = replay_refusal(client, i);
    if (request != NULL) {
      (void)replay_deliver(client, i, request);
    }
  }
  run->events[REPLAY_EVENT_REFUSED] += decided;
  return decided;
}

static void replay_give_up_broken(replay *run, replay_client *client) {
  run->events[REPLAY_EVENT_BROKEN]++;
  for (unsigned i = 0; i < client->nodes && replay_acquiring(client->lock); i++) {
    if (!client->lock->votes[i].settled || replay_asked(client, i)) {
      replay_break(run, client, i);
    }
  }
}

/* The attempt fails: at its deadline, refused, by broken connections, or cancelled. */
static void replay_give_up(replay *run, replay_client *client, const model_client *before,
                           const model_step *step) {
  rl_lock *lock = client->lock;
  bool cancelled = false;
  if (!replay_acquiring(lock)) {
    replay_differ(run, "%c is not acquiring any more", replay_letter(run, client));
    return;
  }
  if (before->elapsed == run->config->ttl) {
    run->events[REPLAY_EVENT_TIMED_OUT]++;
    rl_core_advance(&client->core, replay_now(client));
  } else if (!replay_give_up_refused(run, client) && !replay_give_up_unconfirmed(run, client)) {
    cancelled = run->config->order == MODEL_ORDER_FIFO || (step->random & 1) == 0;
    run->events[REPLAY_EVENT_CANCELLED] += cancelled;
    if (cancelled) {
      rl_lock_cancel(lock, replay_now(client), REDLOCK_E_CANCELLED);
    } else {
      replay_give_up_broken(run, client);
    }
  }
  bool more = !cancelled && lock->attempts_left > 0;
  if (lock->phase != (more ? RL_PHASE_DELAY : RL_PHASE_IDLE) || lock->result >= 0) {
    replay_differ(run, "%c's attempt has failed, and the core is in phase %d with %s",
                  replay_letter(run, client), (int)lock->phase, redlock_error_name(lock->result));
  }
  replay_closed(run, client);
}

/* ------------------------------------------------------------------------------ extend, release */

static void replay_extend(replay *run, replay_client *client, const model_client *before) {
  replay_break_for(run, client, REPLAY_EXTEND, client->attempt, before->extends);
  replay_settle(run, client);
  int error = rl_lock_extend(client->lock, replay_now(client), 0, false);
  if (error != REDLOCK_OK) {
    replay_differ(run, "%c may not extend: %s", replay_letter(run, client),
                  redlock_error_name(error));
    return;
  }
  replay_launch(client, 0);
  replay_settle(run, client);
}

/* |old|: of an extend that is over. */
static void replay_reply_extend(replay *run, replay_client *client, const model_client *before,
                                const model_step *step, bool old) {
  replay_link *link = &client->links[step->node];
  const rl_lock *lock = client->lock;
  for (unsigned i = 0; i < link->count; i++) {
    const replay_request *request = &link->requests[i];
    if (request->kind == REPLAY_EXTEND && request->attempt == step->who &&
        request->progress == REPLAY_EXECUTED && (request->ordinal + 1 < before->extends) == old) {
      bool in_round = lock->phase == RL_PHASE_ROUND;
      bool held = lock->lease != NULL;
      (void)replay_deliver(client, step->node, request);
      if (held && lock->lease == NULL) {
        run->events[REPLAY_EVENT_LOST]++;
        replay_closed(run, client);
      }
      if (in_round && lock->phase != RL_PHASE_ROUND) {
        run->events[lock->result == REDLOCK_OK ? REPLAY_EVENT_EXTENDED
                                               : REPLAY_EVENT_NOT_EXTENDED]++;
      }
      replay_settle(run, client);
      return;
    }
  }
  replay_differ(run, "there is no answer of node %u to the extend that could reach %c",
                step->node + 1u, replay_letter(run, client));
}

/* The extend fails: at its deadline, or because it is cancelled. */
static void replay_end_extend(replay *run, replay_client *client, const model_client *before) {
  rl_lock *lock = client->lock;
  if (lock->phase != RL_PHASE_ROUND || lock->operation != RL_OPERATION_EXTEND) {
    replay_differ(run, "%c is not extending any more", replay_letter(run, client));
    return;
  }
  if (before->validity == 0) {
    rl_core_advance(&client->core, replay_now(client));
  } else {
    rl_lock_cancel(lock, replay_now(client), REDLOCK_E_CANCELLED);
  }
  run->events[REPLAY_EVENT_NOT_EXTENDED]++;
  replay_settle(run, client);
}

static void replay_release(replay *run, replay_client *client) {
  int error = rl_lock_release(client->lock, replay_now(client), false);
  if (error != REDLOCK_OK) {
    replay_differ(run, "%c has nothing to release: %s", replay_letter(run, client),
                  redlock_error_name(error));
    return;
  }
  run->events[REPLAY_EVENT_RELEASED]++;
  rl_core_send(&client->core, replay_now(client), NULL, 0);
  replay_closed(run, client);
}

/* --------------------------------------------------------------------------------------- nodes */

static unsigned replay_ordinal(const replay *run, const model_step *step, replay_kind kind) {
  for (unsigned i = 0; i < REPLAY_ORDINALS; i++) {
    if (run->plan->at[step->who][step->node][kind][i] == run->at) {
      return i;
    }
  }
  return 0;
}

/* Returns true if the second round has begun: a node that will not confirm may then decide. */
static bool replay_settled(const replay_client *client) {
  const rl_fence *fence = rl_fence_of(client->lock);
  return fence != NULL && fence->settled;
}

/* A refusal may arrive at once, if it does not decide: sometimes it does. */
static bool replay_refuses_now(replay_client *client, const model_step *step,
                               const replay_request *request) {
  const rl_quorum *quorum = &client->lock->quorum;
  return request->kind == REPLAY_SET && !replay_settled(client) && (step->random & 1) != 0 &&
         request->attempt == client->attempt && replay_acquiring(client->lock) &&
         quorum->denied + quorum->failed < replay_spare(client) &&
         replay_refusal(client, step->node) == request;
}

/* Replies that no step delivers: the answer to a release comes at once. */
static void replay_answer(replay *run, replay_client *client, const model_step *step,
                          const replay_request *request) {
  bool heals = request->kind == REPLAY_HEAL && replay_declines(request);
  if (heals || request->kind == REPLAY_RELEASE || replay_refuses_now(client, step, request)) {
    (void)replay_deliver(client, step->node, request);
  }
  /* That answer ends an extend whose lease has expired. */
  run->cut = run->cut || (heals && rl_lock_remaining(client->lock, replay_now(client)) == 0);
  /* An answer on a connection that is gone does not arrive. */
  run->cut = run->cut || (replay_declines(request) &&
                          request->connection != client->links[step->node].connection);
  replay_settle(run, client);
}

static void replay_execute_step(replay *run, replay_client *client, const model_step *step,
                                replay_kind kind) {
  unsigned ordinal = replay_ordinal(run, step, kind);
  if (kind == REPLAY_RELEASE && client->links[step->node].hanging) {
    run->cut = true; /* With the connection it would bring the SET that is to come later. */
    return;
  }
  if (step->kind == MODEL_EXECUTE_JOIN) {
    replay_join(run, client, step->node);
  }
  run->behind_release = false;
  run->number = step->number;
  const replay_request *request = replay_execute(run, client, step->node, kind, step->who, ordinal,
                                                 step->kind == MODEL_EXECUTE_DOUBLE);
  if (request != NULL) {
    run->events[REPLAY_EVENT_HEALED] += kind == REPLAY_HEAL;
    replay_answer(run, client, step, request);
  } else if (run->behind_release) {
    run->cut = true;
  } else if (kind != REPLAY_RELEASE ||
             replay_find(client, step->node, kind, step->who, REPLAY_SENT) != NULL) {
    replay_differ(run, "node %u has no such request of %c to execute", step->node + 1u,
                  replay_letter(run, client));
  }
}

/* |record|: that of a guard is there yet. */
static void replay_crash(replay *run, unsigned node, bool record) {
  fake_store *store = &run->stores[node];
  char run_id[FAKE_RUN_ID_MAX + 1];
  (void)snprintf(run_id, sizeof run_id, "server%uat%zu", node, run->at);
  fake_store_restart(store, run_id, !record);
  memset(store->keys, 0, sizeof store->keys);
  memset(store->counters, 0, sizeof store->counters);
  run->quarantined_until[node] = run->ticks + (run->config->guard ? 0 : run->config->quarantine);
  run->events[REPLAY_EVENT_RESTARTS]++;
  for (unsigned i = 0; i < MODEL_CLIENTS && !run->config->proxy; i++) {
    replay_client *client = &run->clients[i];
    replay_link *link = &client->links[node];
    for (unsigned j = 0; j < link->count; j++) {
      replay_request *request = &link->requests[j];
      request->progress = request->progress == REPLAY_SENT ? REPLAY_GONE : request->progress;
    }
    link->dead = node < client->nodes && !link->hanging;
    replay_settle(run, client);
  }
}

static void replay_flush_store(replay *run, unsigned node) {
  fake_store *store = &run->stores[node];
  memset(store->keys, 0, sizeof store->keys);
  memset(store->counters, 0, sizeof store->counters);
  store->record[0] = '\0';
}

static void replay_pass(replay *run, unsigned frozen) {
  run->ticks++;
  for (unsigned i = 0; i < MODEL_CLIENTS; i++) {
    if (i != frozen) {
      run->clients[i].ticks++;
      run->clients[i].past_us = 0;
    }
  }
}

/* --------------------------------------------------------------------------------------- steps */

static void replay_message_step(replay *run, const model_state *before, const model_step *step) {
  unsigned index = model_client_of(run->config, step->who);
  replay_client *client = &run->clients[index];
  const model_client *model = &before->clients[index];
  switch ((model_kind)step->kind) {
  case MODEL_EXECUTE_SET:
  case MODEL_EXECUTE_JOIN:
  case MODEL_EXECUTE_DOUBLE:
    replay_execute_step(run, client, step, REPLAY_SET);
    break;
  case MODEL_EXECUTE_EXTEND:
  case MODEL_EXECUTE_STALE:
    replay_execute_step(run, client, step, REPLAY_EXTEND);
    break;
  case MODEL_EXECUTE_HEAL:
    replay_execute_step(run, client, step, REPLAY_HEAL);
    break;
  case MODEL_EXECUTE_RELEASE:
    replay_execute_step(run, client, step, REPLAY_RELEASE);
    break;
  case MODEL_EXECUTE_CONFIRM:
    replay_execute_step(run, client, step, REPLAY_CONFIRM);
    break;
  case MODEL_REPLY_SET:
    replay_reply_vote(run, client, before, step, REPLAY_SET);
    break;
  case MODEL_REPLY_CONFIRM:
    replay_reply_vote(run, client, before, step, REPLAY_CONFIRM);
    break;
  default: /* MODEL_REPLY_EXTEND, MODEL_REPLY_STALE */
    replay_reply_extend(run, client, model, step, step->kind == MODEL_REPLY_STALE);
    break;
  }
}

static void replay_client_step(replay *run, const model_state *before, const model_step *step) {
  replay_client *client = &run->clients[step->who];
  const model_client *model = &before->clients[step->who];
  switch ((model_kind)step->kind) {
  case MODEL_START:
    replay_start(run, client, model->attempt);
    break;
  case MODEL_GIVE_UP:
    replay_give_up(run, client, model, step);
    break;
  case MODEL_EXTEND:
    replay_extend(run, client, model);
    break;
  case MODEL_END_EXTEND:
    replay_end_extend(run, client, model);
    break;
  default: /* MODEL_RELEASE */
    replay_release(run, client);
    break;
  }
}

void replay_step(replay *run, const model_state *before, const model_step *step) {
  switch ((model_kind)step->kind) {
  case MODEL_TICK:
    replay_pass(run, MODEL_CLIENTS);
    break;
  case MODEL_FREEZE:
    replay_pass(run, step->who);
    break;
  case MODEL_CRASH:
  case MODEL_CRASH_KEPT:
    replay_crash(run, step->node, step->kind == MODEL_CRASH_KEPT);
    break;
  case MODEL_FLUSH:
    run->events[REPLAY_EVENT_FLUSHED]++;
    replay_flush_store(run, step->node);
    break;
  case MODEL_LOSE_KEY:
  case MODEL_EXPIRE_EARLY:
    fake_store_remove(&run->stores[step->node], "k");
    break;
  case MODEL_START:
  case MODEL_GIVE_UP:
  case MODEL_EXTEND:
  case MODEL_END_EXTEND:
  case MODEL_RELEASE:
    replay_client_step(run, before, step);
    break;
  default:
    replay_message_step(run, before, step);
    break;
  }
}
