/*
 * The use of locks by the clients: acquire, hold, extend, release, free; at the worst moments.
 *
 * SPDX-License-Identifier: MIT
 */
#include <stdlib.h>
#include <string.h>

#include "check.h"
#include "lease/rl_attach.h"
#include "lease/rl_custom_token.h"
#include "lease/rl_reentry.h"
#include "lease/rl_renew.h"
#include "sim.h"
#include "sim_application.h"
#include "sim_hold.h"
#include "sim_term.h"
#include "sim_trace.h"

#define SIM_CALM_RETRY_US 40000

void sim_application_schedule(sim *s, sim_lock *lock, uint64_t in_us) {
  lock->due_us = s->now_us + in_us;
}

uint64_t sim_application_draw(sim *s, uint64_t below) {
  return sim_below(&s->random_application, below);
}

bool sim_application_calm(const sim *s) {
  return s->phase != SIM_PHASE_SAFETY;
}

/* When to do something with a lease of which so much is left: often near its end. */
uint64_t sim_application_hold(sim *s, const sim_lock *own) {
  uint64_t left_us = own->ends_us > s->now_us ? own->ends_us - s->now_us : 0;
  uint64_t around_us = sim_application_draw(s, 6000);
  uint64_t hold_us;
  if (own->acquired.auto_extend == REDLOCK_YES && sim_application_draw(s, 2) == 0) {
    return sim_application_draw(s, 3 * own->ttl_us); /* It keeps itself meanwhile. */
  }
  if (sim_application_calm(s)) {
    return sim_application_draw(s, s->config.mix ? s->config.mix_hold_us : 2000);
  }
  switch (sim_application_draw(s, 7)) {
  case 0:
    return left_us / 2;
  case 1:
  case 2:
    hold_us = left_us + around_us;
    return hold_us > 3000 ? hold_us - 3000 : 1;
  case 3:
    return left_us + sim_application_draw(s, own->ttl_us);
  default:
    return sim_application_draw(s, left_us / 3 + 1);
  }
}

void sim_application_keep(sim *s, sim_lock *own) {
  own->state = SIM_APPLICATION_HOLD;
  sim_application_schedule(s, own, sim_application_hold(s, own));
}

uint64_t sim_application_think(sim *s) {
  return sim_application_draw(s, sim_application_calm(s) ? 2000 : s->config.think_us + 1);
}

void sim_application_idle(sim *s, sim_lock *own) {
  uint64_t moment_us = sim_guard_moment(s);
  own->state = SIM_APPLICATION_IDLE;
  sim_application_schedule(s, own, moment_us != 0 ? moment_us : sim_application_think(s));
}

void sim_application_begun(sim *s, sim_client *client, sim_lock *own, rl_operation operation,
                           uint64_t reading_us) {
  own->state = SIM_APPLICATION_BUSY;
  own->operation = operation;
  own->sent = false;
  own->waiting_us = reading_us;
  own->waited_us = 0;
  own->pacing_due_us = 0;
  own->begun_us = reading_us;
  own->paused_us = client->reading_paused_us;
  own->attempts = 0;
  own->begun_true_us = s->now_us;
  own->overtaken = 0;
  own->attempts_before = sim_waiting_others(s, client->index, own->named);
  own->queued_call = 0;
  own->enqueued = false;
  own->slept_us = 0;
  own->due_us = SIM_NEVER;
  if (!sim_application_calm(s) && sim_chance(&s->random_application, s->config.cancels)) {
    sim_application_schedule(s, own, sim_application_draw(s, own->ttl_us));
  }
}

static redlock_duration sim_application_duration(redlock_duration duration_us) {
  return duration_us == 0 ? REDLOCK_DURATION_NONE : duration_us;
}

/* The options that differ from the lock's, as the interface takes them. */
static redlock_options sim_application_explicit(const rl_options *options) {
  redlock_options given = {0};
  given.ttl_us = options->ttl_us;
  given.retry_count = options->retry_count;
  given.retry_delay_us = sim_application_duration(options->retry_delay_us);
  given.retry_jitter_us = sim_application_duration(options->retry_jitter_us);
  given.wait_us = sim_application_duration(options->wait_us);
  given.node_timeout_us = options->node_timeout_us;
  given.auto_extend = options->auto_extend;
  given.notify_lost = options->notify_lost;
  given.extend_every_us = sim_application_duration(options->extend_every_us);
  given.max_hold_us = sim_application_duration(options->max_hold_us);
  given.hold_at_least_us = sim_application_duration(options->hold_at_least_us);
  given.fence = options->fence;
  given.fair = options->fair;
  given.notify = options->notify;
  given.poll_interval_us = options->poll_interval_us;
  return given;
}

/* Sets a caller-supplied token that no other client has. Returns it, or SIM_NO_TOKEN. */
static uint32_t sim_application_supply_token(sim *s, const sim_client *client, sim_lock *own) {
  char text[REDLOCK_TOKEN_LENGTH + 1];
  if (s->breach != SIM_BREACH_NONE || own->attaches || sim_term_leads(s, client, own) ||
      !(sim_mix_is(s, client, own, SIM_MIX_SUPPLIED) ||
        sim_chance(&s->random_application, s->config.supplied))) {
    return SIM_NO_TOKEN;
  }
  uint32_t token = sim_tap_new_token(s, client->index, (unsigned)(own - client->locks));
  (void)snprintf(text, sizeof text, "%08x%032x", token, 0);
  if (rl_custom_token_set(own->lock, text, REDLOCK_TOKEN_LENGTH) != REDLOCK_OK) {
    abort();
  }
  s->tokens[token].supplied = true;
  sim_count(s, SIM_TOKEN_SUPPLIED);
  return token;
}

/*
 * Draws the owner of the lock. Returns false when the lock is held for another owner, and cannot be
 * acquired now.
 */
static bool sim_application_own(sim *s, sim_client *client, sim_lock *own, uint64_t reading_us) {
  static const char *const owners[] = {"", "one", "two", "three"};
  bool without = s->config.mix && !sim_mix_is(s, client, own, SIM_MIX_OWNED);
  if ((s->config.reentrant >> client->index & 1) == 0 || without) {
    return true;
  }
  unsigned drawn = (unsigned)sim_application_draw(s, 8);
  unsigned owner = s->config.mix ? 1 + (unsigned)(own - client->locks) : drawn < 2 ? drawn : 2;
  int result = rl_reentry_set_owner(own->lock, reading_us, owners[owner], strlen(owners[owner]));
  if (result == REDLOCK_OK) {
    sim_client_moves(s, client);
    own->inside = owner == own->owner ? own->inside : 0;
    own->owner = owner;
    return true;
  }
  if (rl_ring_remaining(own->lock, reading_us) == 0) {
    sim_violation(s, "reentry", "a lock that is not held cannot have another owner");
  }
  sim_count(s, SIM_ACQUIRE_HELD);
  sim_application_keep(s, own);
  return false;
}

/* Returns true if another lock of the owner explains the result. */
static bool sim_application_refused(sim *s, const sim_client *client, const sim_lock *own,
                                    int result) {
  for (unsigned i = 0; i < s->config.locks; i++) {
    const sim_lock *other = &client->locks[i];
    if (other == own || other->lock == NULL || other->owner != own->owner ||
        (other->inside == 0 && other->lease == SIM_NO_TOKEN)) {
      continue;
    }
    if (result == REDLOCK_E_HELD) {
      sim_count(s, SIM_REENTRY_PART);
      return true;
    }
    if (result == REDLOCK_E_EXPIRED || result == REDLOCK_E_LOST) {
      sim_count(s, SIM_REENTRY_OVER);
      return true;
    }
  }
  return false;
}

static void sim_application_draw_options(sim *s, const sim_client *client, const sim_lock *own,
                                         rl_options *options) {
  options->ttl_us = s->config.ttl_us[sim_application_draw(s, 2)];
  options->retry_count = s->config.retry_count == -1  ? 0
                         : s->config.retry_count == 0 ? REDLOCK_RETRIES_NONE
                                                      : s->config.retry_count;
  options->retry_delay_us = s->config.retry_delay_us;
  options->retry_jitter_us = s->config.retry_jitter_us;
  options->wait_us = s->config.wait_us;
  options->node_timeout_us = s->config.node_timeout_us;
  if ((s->config.reentrant >> client->index & 1) != 0 && sim_application_draw(s, 3) == 0) {
    /* A nested acquire has options of its own, whatever those of the first acquire were. */
    bool waits = sim_application_draw(s, 3) == 0;
    options->node_timeout_us = sim_between(&s->random_application, 1000, 2 * options->ttl_us);
    options->wait_us = waits ? sim_application_draw(s, options->ttl_us) : options->wait_us;
  }
  if (sim_application_calm(s)) {
    options->retry_count = 0;
    options->retry_delay_us = SIM_CALM_RETRY_US;
    options->retry_jitter_us = SIM_CALM_RETRY_US;
    options->wait_us = REDLOCK_NEVER;
    options->node_timeout_us = 0;
  }
  sim_waiting_options(s, options);
  if ((s->config.auto_extending >> client->index & 1) != 0) {
    options->auto_extend = sim_application_draw(s, 4) > 0 ? REDLOCK_YES : REDLOCK_NO;
    options->notify_lost = sim_application_draw(s, 2) > 0 ? REDLOCK_YES : REDLOCK_NO;
    options->extend_every_us = s->config.extend_every_us;
    options->max_hold_us = s->config.max_hold_us;
  }
  if (s->config.fenced != 0) {
    bool fenced = sim_chance(&s->random_watch, s->config.fenced);
    fenced =
        fenced && !(own->attaches && own->handed_fence == 0); /* It cannot be asked for later. */
    options->fence = fenced ? REDLOCK_YES : REDLOCK_NO;
  }
  sim_term_options(s, client, own, options);
  options->hold_at_least_us = sim_hold_option(s);
  sim_mix_options(s, client, own, options);
}

static void sim_application_acquire(sim *s, sim_client *client, sim_lock *own,
                                    uint64_t reading_us) {
  rl_options options = *rl_lock_options(own->lock);
  if (!sim_application_own(s, client, own, reading_us)) {
    return;
  }
  bool held = rl_ring_remaining(own->lock, reading_us) > 0;
  own->attaches = rl_lock_attach(own->lock) != NULL;
  sim_application_draw_options(s, client, own, &options);
  redlock_options given = sim_application_explicit(&options);
  if (own->attaches && options.hold_at_least_us == 0) {
    given.hold_at_least_us = 0; /* The rest of the lease's own counts. */
  }
  uint32_t token = sim_application_supply_token(s, client, own);
  client->account.calls[RL_STATS_ACQUIRE]++;
  int result = rl_lock_acquire(own->lock, reading_us, &given, true);
  if (token != SIM_NO_TOKEN && result != REDLOCK_OK) {
    sim_tap_over(s, token); /* It has been used up. */
  }
  sim_count_if(s, result == REDLOCK_E_HELD && own->owner != 0 && options.fence == REDLOCK_YES,
               SIM_FENCE_HELD);
  if (!held) {
    own->inside = 0;
    own->reported = REDLOCK_OK;
    own->acquired = options;
    own->resource = own->named;
    own->both = own->named_both;
    own->calm = false;
  }
  sim_client_moves(s, client);
  if (result == REDLOCK_OK) {
    own->ttl_us = options.ttl_us;
    own->options = options;
    own->wants_notice = options.auto_extend == REDLOCK_YES || options.notify_lost == REDLOCK_YES ||
                        (held && own->wants_notice);
    own->extends_left = (unsigned)sim_application_draw(s, s->config.extends + 1);
    own->failed_before = false;
    own->repeated = false;
    sim_application_begun(s, client, own, RL_OPERATION_ACQUIRE, reading_us);
    if (held && own->owner == 0) {
      sim_violation(s, "revival", "acquire was begun though the lock is held");
    }
  } else if (own->owner != 0 && !held && sim_application_refused(s, client, own, result)) {
    sim_application_idle(s, own);
  } else if (result == REDLOCK_E_HELD) {
    sim_count(s, SIM_ACQUIRE_HELD);
    sim_application_keep(s, own);
    if (!held) {
      sim_violation(s, "budget", "held, though it was not acquired");
    }
  } else {
    sim_violation(s, "budget", "acquire could not be begun: %d", result);
  }
}

/* An extend has found that out, which only an operator or a broken assumption makes possible. */
bool sim_application_lost_before(const sim *s, int result) {
  return result == REDLOCK_E_LOST &&
         (sim_keys_went(s) || (s->config.auto_extending != 0 && s->breach != SIM_BREACH_NONE));
}

static void sim_application_extend(sim *s, sim_client *client, sim_lock *own, uint64_t reading_us) {
  uint64_t ttl_us = s->config.ttl_us[sim_application_draw(s, 2)];
  bool held = rl_ring_remaining(own->lock, reading_us) > 0;
  client->account.calls[RL_STATS_EXTEND]++;
  int result = rl_lock_extend(own->lock, reading_us, ttl_us, true);
  if (result == REDLOCK_OK) {
    sim_client_moves(s, client);
    own->extends_left--;
    own->ttl_us = ttl_us;
    own->options = own->acquired;
    own->options.ttl_us = ttl_us;
    sim_application_begun(s, client, own, RL_OPERATION_EXTEND, reading_us);
    if (!held) {
      sim_violation(s, "revival", "extend was begun though the lease had expired");
    }
  } else if (result == REDLOCK_E_BUSY && own->inside > 0 && own->lease == SIM_NO_TOKEN) {
    sim_count(s, SIM_REENTRY_BUSY);
    sim_application_schedule(s, own, sim_application_think(s));
  } else if (result == REDLOCK_E_EXPIRED || result == REDLOCK_E_NOT_HELD ||
             sim_application_lost_before(s, result)) {
    sim_count(s, result == REDLOCK_E_EXPIRED ? SIM_EXTEND_EXPIRED : SIM_EXTEND_NOT_HELD);
    own->extends_left = 0;
    sim_application_schedule(s, own, sim_application_think(s));
  } else {
    sim_violation(s, "budget", "extend could not be begun: %d", result);
  }
}

static void sim_application_release(sim *s, sim_client *client, sim_lock *own,
                                    uint64_t reading_us) {
  uint32_t inside = own->inside > 0 && !own->lock->lost ? own->inside_token : SIM_NO_TOKEN;
  unsigned count = inside == SIM_NO_TOKEN ? 0 : check_reentry_count(s, client, inside);
  own->counting_down = count > 1 || (own->lock->abandoned && own->forgotten_down);
  bool repeated = own->lock->lease == NULL && count == 0;
  uint32_t token = repeated ? own->released : own->lease;
  client->account.calls[RL_STATS_RELEASE]++;
  int result = rl_lock_release(own->lock, reading_us, true);
  own->inside -= own->inside > 0;
  sim_client_moves(s, client);
  if (count > 0) {
    check_reentry_released(s, client, own, inside);
  }
  sim_count_if(s, count > 1, SIM_REENTRY_COUNTED_DOWN);
  if (result == REDLOCK_OK) {
    own->released = count > 1 ? own->released : token;
    own->options = own->acquired;
    sim_application_begun(s, client, own, RL_OPERATION_RELEASE, reading_us);
    sim_count_if(s, repeated, SIM_RELEASE_REPEATED);
  } else if (own->inside > 0 && sim_application_lost_before(s, result)) {
    sim_application_schedule(s, own, sim_application_think(s)); /* Each of its acquires is lost. */
  } else if (result == REDLOCK_E_NOT_HELD || sim_application_lost_before(s, result)) {
    sim_count(s, SIM_RELEASE_NOT_HELD);
    own->inside = 0;
    sim_application_idle(s, own);
  } else {
    sim_violation(s, "budget", "release could not be begun: %d", result);
  }
}

/*
 * Releases without waiting. A later step may ask for the result, or acquire the lock again before
 * the release has ended.
 */
static bool sim_application_release_and_forget(sim *s, sim_client *client, sim_lock *own,
                                               uint64_t reading_us) {
  uint32_t token = own->lease;
  uint32_t inside = own->inside > 0 && !own->lock->lost ? own->inside_token : SIM_NO_TOKEN;
  unsigned count = inside == SIM_NO_TOKEN ? 0 : check_reentry_count(s, client, inside);
  if ((token == SIM_NO_TOKEN && count == 0) ||
      !sim_chance(&s->random_application, s->config.fire_and_forget)) {
    return false;
  }
  client->account.calls[RL_STATS_RELEASE]++;
  if (rl_lock_release_send(own->lock, reading_us) != REDLOCK_OK) {
    return false;
  }
  own->inside = count > 1 ? own->inside - 1 : 0;
  own->forgotten_down = own->counting_down = count > 1;
  sim_client_moves(s, client);
  if (count > 0) {
    check_reentry_released(s, client, own, inside);
  }
  own->counting_down = false;
  sim_count(s, SIM_RELEASE_FIRE_AND_FORGET);
  if (count > 1) {
    sim_count(s, SIM_REENTRY_FIRE_AND_FORGET);
  } else {
    own->released = token;
  }
  sim_application_idle(s, own);
  if (own->inside > 0) {
    own->state = SIM_APPLICATION_HOLD;
  }
  return true;
}

/* Something is to be done with a lease. */
static void sim_application_use(sim *s, sim_client *client, sim_lock *own, uint64_t reading_us) {
  unsigned index = (unsigned)(own - client->locks);
  sim_count_if(s, rl_ring_remaining(own->lock, reading_us) == 0, SIM_LEASE_RAN_OUT);
  check_used(s, client, own);
  sim_count_if(s, rl_lock_is_in_flight(own->lock), SIM_RENEWAL_OVERTAKEN);
  if (sim_application_calm(s)) {
    sim_application_release(s, client, own, reading_us);
  } else if (sim_chance(&s->random_application, s->config.handovers) &&
             sim_handover_detach(s, client, own, reading_us)) {
    sim_application_idle(s, own);
  } else if (own->extends_left > 0) {
    sim_application_extend(s, client, own, reading_us);
  } else if (sim_chance(&s->random_application, s->config.frees)) {
    sim_count(s, SIM_LOCK_FREED_HELD);
    sim_client_renew_lock(s, client->index, index);
  } else if (sim_application_draw(s, 8) == 0) {
    sim_application_acquire(s, client, own, reading_us); /* Forgotten; or a mistake. */
  } else if (!sim_application_release_and_forget(s, client, own, reading_us)) {
    sim_application_release(s, client, own, reading_us);
  }
}

/* A term is due for its next action. */
static void sim_application_lead(sim *s, sim_client *client, sim_lock *own, uint64_t reading_us) {
  check_used(s, client, own);
  switch (sim_term_use(s, client, own, reading_us)) {
  case SIM_TERM_GOES_ON:
    sim_application_schedule(s, own, 1 + sim_application_hold(s, own));
    break;
  case SIM_TERM_RETURNS:
    sim_application_release(s, client, own, reading_us);
    break;
  case SIM_TERM_CAMPAIGNS:
    sim_application_acquire(s, client, own, reading_us);
  }
}

static void sim_application_interrupt(sim *s, sim_client *client, sim_lock *own,
                                      uint64_t reading_us) {
  unsigned index = (unsigned)(own - client->locks);
  if (rl_lock_result(own->lock) != REDLOCK_PENDING) {
    own->due_us = SIM_NEVER; /* It has just ended, and is about to be reported. */
  } else if (own->operation == RL_OPERATION_EXTEND && sim_application_draw(s, 2) == 0) {
    sim_count(s, SIM_RELEASE_ENDS_EXTEND);
    check_used(s, client, own);
    sim_application_release(s, client, own, reading_us);
  } else if (sim_application_draw(s, 3) == 0) {
    sim_count(s, SIM_LOCK_FREED_BUSY);
    sim_client_renew_lock(s, client->index, index);
  } else {
    own->due_us = SIM_NEVER;
    rl_lock_cancel(own->lock, reading_us, REDLOCK_E_CANCELLED);
    sim_client_moves(s, client); /* Before another lock of the owner's does something. */
  }
}

void sim_application_step(sim *s, sim_client *client, uint64_t reading_us) {
  for (unsigned i = 0; i < s->config.locks && !s->failed; i++) {
    sim_lock *own = &client->locks[i];
    if (client->closing || own->lock == NULL || own->due_us > s->now_us) {
      continue;
    }
    switch (own->state) {
    case SIM_APPLICATION_IDLE:
      if (s->phase >= SIM_PHASE_SETTLE) {
        own->state = SIM_APPLICATION_DONE;
        own->due_us = SIM_NEVER;
      } else if (sim_term_leads(s, client, own)) {
        if (sim_term_campaigns(s, client, own)) {
          sim_application_acquire(s, client, own, reading_us);
        }
      } else if (sim_operator_begins(s, client, own, reading_us)) {
        break;
      } else if (sim_application_draw(s, 60) == 0) {
        sim_application_release(s, client, own, reading_us); /* A mistake. */
      } else if (own->lock->abandoned && sim_application_draw(s, 3) == 0) {
        sim_application_release(s, client, own, reading_us); /* Asks for its result. */
      } else if (sim_application_draw(s, 60) == 0) {
        own->extends_left = 1;
        sim_application_extend(s, client, own, reading_us); /* A mistake. */
      } else {
        if (s->config.handovers != 0 && sim_application_draw(s, 2) == 0) {
          sim_handover_take(s, client, own);
        }
        sim_application_acquire(s, client, own, reading_us);
      }
      break;
    case SIM_APPLICATION_HOLD:
      sim_operator_mistakes(s, client, own, reading_us);
      (sim_term_leads(s, client, own) ? sim_application_lead : sim_application_use)(s, client, own,
                                                                                    reading_us);
      break;
    case SIM_APPLICATION_BUSY:
      sim_application_interrupt(s, client, own, reading_us);
      break;
    default:
      own->due_us = SIM_NEVER;
      break;
    }
  }
}

/* The faults have stopped: locks that wait for the worst moment go on at once. */
void sim_application_settle(sim *s) {
  for (unsigned i = 0; i < s->config.clients; i++) {
    sim_client *client = &s->clients[i];
    for (unsigned k = 0; client->alive && k < s->config.locks; k++) {
      sim_lock *own = &client->locks[k];
      bool waits = own->state == SIM_APPLICATION_IDLE || own->state == SIM_APPLICATION_HOLD;
      if (waits && !client->closing) {
        sim_application_schedule(s, own, sim_application_think(s));
      }
    }
    if (client->alive) {
      sim_client_wake(s, i, s->now_us + 1);
    }
  }
}
