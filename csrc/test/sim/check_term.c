/*
 * Two terms never overlap, the fencing token grows from term to term, and a client campaigns only
 * after the function of its last term has returned.
 *
 * SPDX-License-Identifier: MIT
 *
 * A term lasts from the moment at which the function of the program begins to the moment at which
 * it returns, but it may only act while its lease is valid in true time. An operator who deletes
 * a key ends a lease that its leader still believes in; such a term may overlap with the next one.
 */
#include "check.h"

static bool check_term_forced(const sim *s, const sim_lock *lock) {
  return lock->lease < s->token_count && s->tokens[lock->lease].forced != 0;
}

/* Returns true if the term of |lock| may act now. */
static bool check_term_acts(const sim *s, const sim_lock *lock) {
  return lock->lock != NULL && lock->term.runs && lock->lease != SIM_NO_TOKEN &&
         lock->ends_us > s->now_us && !check_term_forced(s, lock);
}

static bool check_term_meet(const sim_lock *one, const sim_lock *other) {
  return one->both || other->both || one->resource == other->resource;
}

static void check_term_alone(sim *s, const sim_client *client, const sim_lock *own) {
  for (unsigned i = 0; i < s->config.clients; i++) {
    const sim_lock *theirs = &s->clients[i].locks[0];
    if (theirs != own && s->clients[i].alive && check_term_acts(s, theirs) &&
        check_term_meet(own, theirs)) {
      sim_violation(s, "term", "client %u begins a term of resource %u, but client %u leads",
                    client->index, own->resource, i);
    }
  }
}

static void check_term_led(sim *s, const sim_client *client, const sim_lock *own) {
  if (!check_term_acts(s, own)) {
    return; /* The program has learned too late that it leads. */
  }
  check_term_alone(s, client, own);
  uint64_t fence = s->tokens[own->lease].fence;
  for (unsigned i = 0; i < (own->both ? 2u : 1u); i++) {
    uint64_t *last = &s->term_fences[own->resource ^ i];
    if (fence <= *last) {
      sim_violation(s, "term",
                    "client %u begins a term of resource %u with %llu, after one with %llu",
                    client->index, own->resource ^ i, (ull)fence, (ull)*last);
    }
    *last = fence;
  }
}

static void check_term_campaigned(sim *s, const sim_client *client, const sim_lock *own) {
  if (own->term.runs) {
    sim_violation(s, "term", "client %u campaigns before the function of its term has returned",
                  client->index);
  }
}

const checker check_term = {
    .name = "term",
    .led = check_term_led,
    .campaigned = check_term_campaigned,
};
