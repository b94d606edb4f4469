/*
 * Operators: clients that inspect nodes now and then, and delete by force the tokens that they have
 * seen.
 *
 * SPDX-License-Identifier: MIT
 *
 * They release their own tokens without force: on the wire the two look the same.
 */
#include <stdlib.h>
#include <string.h>

#include "check.h"
#include "lease/rl_reentry.h"
#include "operator/rl_inspect.h"
#include "sim.h"
#include "sim_trace.h"

#define SIM_OPERATOR_INSPECTS 3 /* one of so many times when a lock is idle */
#define SIM_OPERATOR_ANY 6      /* one of so many forces is for any token */
#define SIM_OPERATOR_MISTAKES 8

static uint64_t sim_operator_draw(sim *s, uint64_t below) {
  return sim_below(&s->random_operator, below);
}

/*
 * Returns true if the client may ask now: with one lock at a time, so that sim_tap.c can tell the
 * locks apart.
 */
static bool sim_operator_may(const sim *s, const sim_client *client, const sim_lock *own) {
  bool may = (s->config.operators >> client->index & 1) != 0 && s->phase == SIM_PHASE_SAFETY &&
             !own->named_both;
  for (unsigned i = 0; i < s->config.locks; i++) {
    const sim_lock *other = &client->locks[i];
    may = may && !(other->state == SIM_APPLICATION_BUSY &&
                   (other->operation == RL_OPERATION_INSPECT ||
                    other->operation == RL_OPERATION_FORCE_RELEASE));
  }
  return may;
}

/* The core has begun it. */
static void sim_operator_begun(sim *s, sim_client *client, sim_lock *own, rl_operation operation,
                               uint64_t reading_us) {
  own->inside = 0;
  own->options = *rl_lock_options(own->lock);
  own->ttl_us = own->options.ttl_us;
  own->ask = ++s->asks;
  own->asked = own->answered = own->deleted = 0;
  own->resource = own->named;
  own->both = own->named_both;
  memset(own->seen, 0, sizeof own->seen);
  sim_client_moves(s, client);
  sim_application_begun(s, client, own, operation, reading_us);
}

static int sim_operator_force(sim *s, sim_client *client, sim_lock *own, uint64_t reading_us) {
  bool any = sim_operator_draw(s, SIM_OPERATOR_ANY) == 0;
  uint32_t token = own->found;
  int result =
      rl_lock_ask(own->lock, reading_us, RL_OPERATION_FORCE_RELEASE,
                  &(rl_question){.token = any ? NULL : own->found_text,
                                 .token_length = any ? REDLOCK_TOKEN_ANY : own->found_length},
                  true);
  own->found = SIM_NO_TOKEN;
  if (result == REDLOCK_OK) {
    own->forced = any ? SIM_NO_TOKEN : token;
    sim_operator_begun(s, client, own, RL_OPERATION_FORCE_RELEASE, reading_us);
    SIM_TRACE(s, "client %u, lock %u: forces %s %u", client->index, (unsigned)(own - client->locks),
              any ? "whatever holds" : "token", any ? own->named : token);
    sim_count_if(s, any, SIM_FORCE_ANY);
  }
  return result;
}

static int sim_operator_inspect(sim *s, sim_client *client, sim_lock *own, uint64_t reading_us) {
  int result = rl_lock_ask(own->lock, reading_us, RL_OPERATION_INSPECT, NULL, true);
  if (result == REDLOCK_OK) {
    sim_operator_begun(s, client, own, RL_OPERATION_INSPECT, reading_us);
  }
  return result;
}

bool sim_operator_begins(sim *s, sim_client *client, sim_lock *own, uint64_t reading_us) {
  if (!sim_operator_may(s, client, own)) {
    return false;
  }
  bool held = rl_ring_remaining(own->lock, reading_us) > 0;
  bool forces = own->found != SIM_NO_TOKEN && sim_chance(&s->random_operator, s->config.forces);
  if (!forces && sim_operator_draw(s, SIM_OPERATOR_INSPECTS) != 0) {
    return false;
  }
  int result = forces ? sim_operator_force(s, client, own, reading_us)
                      : sim_operator_inspect(s, client, own, reading_us);
  if (held ? result != REDLOCK_E_HELD : result != REDLOCK_OK) {
    sim_violation(s, forces ? "force" : "inspect", "client %u, lock %u, which is %sheld: %d",
                  client->index, (unsigned)(own - client->locks), held ? "" : "not ", result);
  }
  return result == REDLOCK_OK;
}

void sim_operator_mistakes(sim *s, sim_client *client, sim_lock *own, uint64_t reading_us) {
  bool busy = rl_lock_is_busy(own->lock);
  if (!sim_operator_may(s, client, own) || rl_ring_remaining(own->lock, reading_us) == 0 || busy ||
      sim_operator_draw(s, SIM_OPERATOR_MISTAKES) != 0) {
    return;
  }
  int result = rl_lock_ask(own->lock, reading_us, RL_OPERATION_INSPECT, NULL, true);
  sim_count(s, SIM_INSPECT_HELD);
  if (result != REDLOCK_E_HELD) {
    sim_violation(s, "inspect", "client %u inspects what it holds: %d", client->index, result);
  }
}

/* Notes a token of another client for a later force: that of the holder if there is one. */
static void sim_operator_finds(sim *s, const sim_client *client, sim_lock *own) {
  redlock_duration ttl_us;
  unsigned nodes;
  const rl_inspected *holder = rl_inspect_holder(own->lock, &ttl_us, &nodes);
  unsigned first = (unsigned)sim_operator_draw(s, client->nodes);
  bool held = false;
  own->found = SIM_NO_TOKEN;
  for (unsigned i = 0; i < client->nodes; i++) {
    const rl_inspected *one = rl_inspect_of(own->lock, (first + i) % client->nodes);
    uint32_t token = one->state == REDLOCK_KEY_HELD ? sim_tap_token(one->token, one->token_length)
                                                    : SIM_NO_TOKEN;
    held = held || token != SIM_NO_TOKEN;
    sim_count_if(s, one->state == REDLOCK_KEY_OTHER, SIM_INSPECT_OTHER);
    if (token < s->token_count && s->tokens[token].client != client->index &&
        (own->found == SIM_NO_TOKEN || one == holder)) {
      own->found = token;
      own->found_length = one->token_length;
      memcpy(own->found_text, one->token, one->token_length);
    }
  }
  if (held) {
    sim_count(s, holder != NULL ? SIM_INSPECT_HOLDER : SIM_INSPECT_MINORITY);
  }
}

void sim_operator_ended(sim *s, sim_client *client, sim_lock *own, int result) {
  bool inspects = own->operation == RL_OPERATION_INSPECT;
  sim_application_idle(s, own);
  if (result == REDLOCK_E_CANCELLED || client->closing) {
    return;
  }
  check_answered(s, client, own, result);
  if (inspects) {
    sim_count(s, result == REDLOCK_OK ? SIM_INSPECT_OK : SIM_INSPECT_UNAVAILABLE);
    sim_operator_finds(s, client, own);
  } else {
    sim_count(s, result == REDLOCK_OK           ? SIM_FORCE_OK
                 : result == REDLOCK_E_NOT_HELD ? SIM_FORCE_NOT_HELD
                                                : SIM_FORCE_UNAVAILABLE);
  }
}
