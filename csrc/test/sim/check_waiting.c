/*
 * No waiter waits in vain, and every entry of a queue or a wait list has a reason.
 *
 * SPDX-License-Identifier: MIT
 *
 * check_budget.c checks that a waiting acquire ends within its budget. Here:
 *
 *   - Between two attempts or polls at most poll_interval and an eighth pass, or the longest delay
 *     between attempts, even if notifications are lost.
 *   - After the faults have stopped, no waiter waits much longer than that for a free resource.
 *   - There are no more attempts than delays that have passed, or 50 ms each where delays are
 *     longer, except in response to attempts of other clients: an operation that cannot succeed
 *     does not repeat as fast as the nodes answer.
 *   - A queued waiter has a waiter of its client before it that is about to acquire.
 *   - No later waiter overtakes an earlier one of its wait list. Waiters with equal options share
 *     one.
 *   - After the faults have stopped, no waiter of any kind is overtaken more often than
 *     CHECK_WAITING_OVERTAKEN times the number of locks.
 *   - A ticket is dequeued when no waiter has it any more, or with the lease that it led to.
 */
#include "check.h"
#include "sim_calls.h"
#include "wait/rl_notify.h"
#include "wait/rl_pause.h"

#define CHECK_WAITING_SLACK_US 5000
#define CHECK_WAITING_HEAD_SLACK_US 1000
#define CHECK_WAITING_HURRY_US 50000
#define CHECK_WAITING_ATTEMPTS 12
#define CHECK_WAITING_OVERTAKEN 1 /* times by each other lock */
#define CHECK_WAITING_ROW 8       /* waiters in a queue */

/*
 * Time until connections that were silent when the faults stopped have been given up and made anew.
 */
#define CHECK_WAITING_CALM_US (9 * REDLOCK_SECONDS)

/*
 * Longest sleep of a waiter. A waiter with |rows| of eight waiters before it polls less often.
 * Before its first attempt it sleeps for a round, if no majority answers.
 */
static uint64_t check_waiting_bound_us(const sim_lock *own, unsigned rows) {
  const rl_options *options = &own->options;
  uint64_t round_us = check_budget_round_us(own);
  uint64_t slow_us = (options->poll_interval_us + options->poll_interval_us / 8) * (1 + rows);
  uint64_t delay_us = options->retry_delay_us + options->retry_jitter_us;
  delay_us = delay_us > round_us ? delay_us : round_us;
  return slow_us > delay_us ? slow_us : delay_us;
}

/* Returns the smallest number of rows of eight waiters before the ticket on any node. */
static unsigned check_waiting_rows(const sim_client *client, const rl_ticket *place) {
  unsigned before = place == NULL ? 0 : SIM_WAITERS_MAX;
  for (unsigned i = 0; place != NULL && i < client->nodes; i++) {
    bool known = ((place->held | place->outranked) >> i & 1) != 0;
    if (known && place->at[i].position <= before) {
      before = place->at[i].position - 1;
    }
  }
  return before == SIM_WAITERS_MAX ? 0 : before / CHECK_WAITING_ROW;
}

static bool check_waiting_acquires(const sim_lock *own) {
  return own->lock != NULL && own->state == SIM_APPLICATION_BUSY &&
         own->operation == RL_OPERATION_ACQUIRE && rl_lock_result(own->lock) == REDLOCK_PENDING;
}

/* A front that sleeps wakes up in time. */
static void check_waiting_sleeps(sim *s, const sim_client *client, sim_lock *own) {
  if (own->lock->phase != RL_PHASE_DELAY || own->lock->waitlist == NULL) {
    own->slept_us = 0;
    return;
  }
  const rl_ticket *place = own->lock->waitlist->ticket;
  uint64_t looked_us = place == NULL ? 0 : place->polled_us;
  unsigned rows = check_waiting_rows(client, place);
  if (own->slept_us == 0 || own->slept_round != own->lock->round ||
      own->slept_since_us != looked_us) {
    own->slept_round = own->lock->round;
    own->slept_needs_us = rl_pause_reply_time(&client->core);
    own->slept_since_us = looked_us;
    own->slept_rows = rows;
    own->slept_us = client->reading_us;
    own->slept_paused_us = client->paused_us;
    return;
  }
  own->slept_rows = rows > own->slept_rows ? rows : own->slept_rows;
  uint64_t spent_us = client->advance_us > own->slept_us ? client->advance_us - own->slept_us : 0;
  uint64_t bound_us = check_waiting_bound_us(own, own->slept_rows) + CHECK_WAITING_HEAD_SLACK_US +
                      3 * own->slept_needs_us;
  if (spent_us > bound_us + client->paused_us - own->slept_paused_us + CHECK_WAITING_SLACK_US) {
    sim_violation(s, "waiting", "client %u, lock %u: sleeps for %llu us, may for %llu us",
                  client->index, (unsigned)(own - client->locks), (ull)spent_us, (ull)bound_us);
  }
}

/* Nor does it try too often. */
static void check_waiting_pace(sim *s, const sim_client *client, const sim_lock *own) {
  uint64_t pace_us = own->options.retry_delay_us > own->options.retry_jitter_us
                         ? own->options.retry_delay_us - own->options.retry_jitter_us
                         : 0;
  uint64_t spent_us = client->reading_us - own->begun_us;
  pace_us = pace_us > CHECK_WAITING_HURRY_US ? CHECK_WAITING_HURRY_US : pace_us;
  pace_us = pace_us < REDLOCK_MILLISECONDS ? REDLOCK_MILLISECONDS : pace_us;
  uint64_t others = sim_waiting_others(s, client->index, own->named) - own->attempts_before;
  uint64_t most = CHECK_WAITING_ATTEMPTS + spent_us / pace_us + 2 * others;
  if (own->attempts > (s->config.permits > 0 ? CHECK_BUDGET_ROUNDS * most : most)) {
    sim_violation(s, "waiting", "client %u, lock %u: %u attempts in %llu us, others have made %llu",
                  client->index, (unsigned)(own - client->locks), own->attempts, (ull)spent_us,
                  (ull)others);
  }
}

/* A queued waiter has another one before it. */
static void check_waiting_queued(sim *s, const sim_client *client, const sim_lock *own) {
  if (own->lock->phase != RL_PHASE_QUEUED) {
    return;
  }
  for (unsigned i = 0; i < s->config.locks; i++) {
    const sim_lock *other = &client->locks[i];
    if (other != own && check_waiting_acquires(other) && other->named == own->named &&
        other->lock->phase != RL_PHASE_QUEUED && other->lock->waitlist == own->lock->waitlist) {
      return;
    }
  }
  sim_violation(s, "waiting", "client %u, lock %u: is queued behind no waiter", client->index,
                (unsigned)(own - client->locks));
}

/*
 * Returns true if a waiter has the ticket, or the ticket is about to be dequeued, or belongs to a
 * lease.
 */
static bool check_waiting_used(const sim *s, const sim_client *client, uint32_t place) {
  const rl_notify_state *calls = client->core.notify;
  for (uint32_t i = 0; calls != NULL && i < calls->ticket_count; i++) {
    const rl_ticket *at = calls->tickets[i];
    if (at->id == place &&
        (at->waitlist != NULL || (at->base != NULL && rl_list_is_in(&at->queue)) || at->granted)) {
      return true;
    }
  }
  for (size_t i = 0; i < s->token_count; i++) {
    const sim_token *token = &s->tokens[i];
    if (token->client == client->index && token->enqueued != 0 && token->ticket == place) {
      return true;
    }
  }
  return false;
}

static void check_waiting_tickets(sim *s, const sim_client *client) {
  for (unsigned i = 0; i < client->nodes; i++) {
    const sim_socket *socket = &client->sockets[i];
    bool mute = client->core.nodes[i]->link.no_scripts_until_us != 0;
    for (unsigned k = 0; k < socket->enqueued_count && socket->up && !mute; k++) {
      if (!check_waiting_used(s, client, socket->enqueued[k].ticket)) {
        sim_violation(s, "waiting",
                      "client %u: ticket %x is in a queue of node %u without a waiter",
                      client->index, socket->enqueued[k].ticket, i);
      }
    }
  }
}

static void check_waiting_turned(sim *s, sim_client *client) {
  if (s->breach != SIM_BREACH_NONE) {
    return;
  }
  for (unsigned i = 0; i < s->config.locks; i++) {
    if (check_waiting_acquires(&client->locks[i])) {
      check_waiting_sleeps(s, client, &client->locks[i]);
      check_waiting_queued(s, client, &client->locks[i]);
      check_waiting_pace(s, client, &client->locks[i]);
    } else {
      client->locks[i].slept_us = 0;
    }
  }
  check_waiting_tickets(s, client);
}

/* Returns true if the two belong to one wait list (WAIT-1 of rl_waitlist.c). */
static bool check_waiting_alike(const sim_lock *own, const sim_lock *other) {
  return own->options.retry_delay_us == other->options.retry_delay_us &&
         own->options.retry_jitter_us == other->options.retry_jitter_us &&
         own->options.poll_interval_us == other->options.poll_interval_us &&
         own->options.notify == other->options.notify &&
         own->lock->current->fence == other->lock->current->fence &&
         rl_options_node_timeout(own->lock->current, own->lock->ttl_us) ==
             rl_options_node_timeout(other->lock->current, other->lock->ttl_us);
}

/* A waiter with less time left is not promoted (rl_waitlist.c) while there are other waiters. */
#define CHECK_WAITING_LEFT_US 7000

static bool check_waiting_has_time(const sim *s, const sim_client *client, const sim_lock *other) {
  uint64_t slower_us = 2 * s->config.delay_to_us; /* So slow the nodes may have been before. */
  return other->lock->budget_ends_us >= client->reading_us + slower_us + CHECK_WAITING_LEFT_US;
}

static bool check_waiting_shares(const sim_lock *own, const sim_lock *other) {
  return own->named_both || other->named_both || own->named == other->named;
}

/*
 * The faults have stopped: no acquire is overtaken again and again, whatever its kind and that of
 * the others.
 */
static void check_waiting_overtakes(sim *s, const sim_lock *own) {
  unsigned count = s->config.clients * s->config.locks;
  if (s->phase == SIM_PHASE_SAFETY || s->breach != SIM_BREACH_NONE || s->config.guard ||
      !s->config.notifications || s->config.mix) {
    return;
  }
  for (unsigned i = 0; i < count; i++) {
    sim_client *client = &s->clients[i / s->config.locks];
    sim_lock *other = &client->locks[i % s->config.locks];
    if (other == own || !client->alive || !check_waiting_acquires(other) ||
        other->begun_true_us >= own->begun_true_us || !check_waiting_shares(own, other)) {
      continue;
    }
    other->overtaken++;
    if (other->overtaken > CHECK_WAITING_OVERTAKEN * count) {
      sim_violation(s, "waiting", "client %u, lock %u: overtaken %u times", client->index,
                    i % s->config.locks, other->overtaken);
    }
  }
}

/* A lease has begun: its lock was the first of its wait list. */
static void check_waiting_granted(sim *s, const sim_client *client, const sim_lock *own) {
  check_waiting_overtakes(s, own);
  for (unsigned i = 0; i < s->config.locks && own->queued_call != 0; i++) {
    const sim_lock *other = &client->locks[i];
    if (other != own && check_waiting_acquires(other) && other->queued_call != 0 &&
        other->queued_call < own->queued_call && other->lock->phase == RL_PHASE_QUEUED &&
        other->named == own->named && other->named_both == own->named_both &&
        check_waiting_alike(own, other) && check_waiting_has_time(s, client, other)) {
      sim_violation(s, "waiting", "client %u, lock %u: passed over by lock %u", client->index, i,
                    (unsigned)(own - client->locks));
    }
  }
}

/*
 * The release of a lease that has waited dequeues its ticket and notifies the next waiter, where it
 * may notify.
 */
static void check_waiting_sent(sim *s, const sim_client *client, unsigned node,
                               const sim_sent *sent) {
  const sim_token *token = &s->tokens[sent->token];
  const sim_socket *socket = &client->sockets[node];
  if (sent->kind != SIM_COMMAND_RELEASE || sent->leaves || sent->forces ||
      (token->enqueued >> node & 1) == 0 || token->abandoned ||
      client->core.nodes[node]->link.notify_denied_until_us != 0 ||
      client->core.nodes[node]->link.no_scripts_until_us != 0 ||
      (sent->native && socket->scriptless)) {
    return;
  }
  for (unsigned i = 0; i < socket->enqueued_count; i++) {
    if (socket->enqueued[i].ticket == token->ticket) {
      sim_violation(s, "waiting", "client %u: the release of token %u does not dequeue ticket %x",
                    client->index, sent->token, token->ticket);
    }
  }
}

/* Returns since when all resources of the waiter are free, or SIM_NEVER. */
static uint64_t check_waiting_free_since(const sim *s, const sim_lock *own) {
  uint64_t since_us = s->free_us[own->named];
  for (unsigned i = 0; own->named_both && i < 2; i++) {
    since_us = s->free_us[i] > since_us ? s->free_us[i] : since_us;
  }
  return since_us;
}

/*
 * Returns for how long the free resource may have been reserved for waiters for both. One of them
 * may reserve it after the other.
 */
static uint64_t check_waiting_reserved_us(const sim *s, const sim_lock *own, uint64_t since_us) {
  uint64_t reserved_us = 0;
  for (unsigned i = 0; i < s->config.clients * s->config.locks; i++) {
    const sim_lock *other = &s->clients[i / s->config.locks].locks[i % s->config.locks];
    bool reserves = other->named_both && check_waiting_acquires(other);
    reserved_us +=
        reserves ? other->lock->ttl_us + RL_COMMAND_RESERVE_MS * REDLOCK_MILLISECONDS : 0;
  }
  return !own->named_both && s->reserved_us[own->named] >= since_us ? reserved_us : 0;
}

/* The faults have stopped long ago: a waiter takes free resources. */
static void check_waiting_watched(sim *s) {
  uint64_t well_us = s->calm_us + CHECK_WAITING_CALM_US;
  if (s->config.guard || s->breach != SIM_BREACH_NONE) {
    return; /* Nodes may be in quarantine. */
  }
  for (unsigned i = 0; i < s->config.clients * s->config.locks; i++) {
    const sim_client *client = &s->clients[i / s->config.locks];
    const sim_lock *own = &client->locks[i % s->config.locks];
    if (!client->alive || client->closing || !check_waiting_acquires(own) ||
        check_waiting_free_since(s, own) == SIM_NEVER) {
      continue;
    }
    uint64_t free_us = check_waiting_free_since(s, own);
    uint64_t since_us = well_us > free_us ? well_us : free_us;
    since_us = own->begun_true_us > since_us ? own->begun_true_us : since_us;
    since_us = client->paused_until_us > since_us ? client->paused_until_us : since_us;
    uint64_t bound_us = check_waiting_bound_us(own, own->slept_rows) * 5 / 4 + 500000;
    bound_us += check_waiting_reserved_us(s, own, since_us);
    if (s->now_us > since_us + bound_us) {
      sim_violation(s, "waiting", "client %u, lock %u: waits for %llu us for a free resource",
                    client->index, i % s->config.locks, (ull)(s->now_us - since_us));
    }
  }
}

const checker check_waiting = {
    .name = "waiting",
    .granted = check_waiting_granted,
    .sent = check_waiting_sent,
    .turned = check_waiting_turned,
    .watched = check_waiting_watched,
};
