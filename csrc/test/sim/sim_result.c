/*
 * The results of the clients' operations.
 *
 * SPDX-License-Identifier: MIT
 */
#include "check.h"
#include "lease/rl_loss.h"
#include "lease/rl_reentry.h"
#include "lease/rl_renew.h"
#include "sim.h"
#include "sim_application.h"
#include "sim_term.h"
#include "sim_trace.h"

/*
 * Returns the lock whose lease a successful acquire counts on. An owner has two leases of one
 * resource when an operator has deleted the first, unknown to its holder, and a lock that was
 * waiting then has got the second. check_exclusion.c reports any other two. A lock that counts
 * already goes on to count on the same lease. For another lock the core decides, because either
 * lease is as good.
 */
static const sim_lock *sim_application_counts_on(const sim *s, const sim_client *client,
                                                 const sim_lock *own) {
  const sim_lock *holder = own->lease != SIM_NO_TOKEN ? own : NULL;
  if (own->inside > 0) {
    return check_reentry_holder(s, client, own->inside_token);
  }
  for (unsigned i = 0; i < s->config.locks && own->lease == SIM_NO_TOKEN; i++) {
    const sim_lock *other = &client->locks[i];
    bool covers =
        s->config.permits > 0 || other->both || (!own->named_both && other->resource == own->named);
    if (other->lock == NULL || other->lease == SIM_NO_TOKEN || other->owner != own->owner ||
        !covers) {
      continue;
    }
    bool two = holder != NULL && holder->deadline_us > client->reading_us &&
               other->deadline_us > client->reading_us;
    if (holder == NULL || (two ? rl_ring_owner(own->lock) == other->lock
                               : other->deadline_us > holder->deadline_us)) {
      holder = other;
    }
  }
  return holder;
}

/* The acquire counts: on a lease of its own, or on one of its owner's. */
static void sim_application_inside(sim *s, const sim_client *client, sim_lock *own) {
  const sim_lock *holder = sim_application_counts_on(s, client, own);
  uint32_t token = holder == NULL ? SIM_NO_TOKEN : holder->lease;
  bool again = own->inside > 0 && own->inside_token == token;
  bool others = holder != NULL && check_reentry_count(s, client, token) > 0;
  own->inside = again ? own->inside + 1 : 1;
  own->inside_token = token;
  own->ends_us = holder == NULL ? s->now_us : holder->ends_us;
  check_reentry_acquired(s, client, own);
  if (again || own != holder || others) {
    check_hold_nested(s, client, own, token);
  }
  if (again) {
    sim_count(s, SIM_REENTRY_AGAIN);
  } else if (others && own == holder) {
    sim_count(s, SIM_REENTRY_EXTENDED);
  } else if (own != holder) {
    sim_count(s, own->attempts > 0 ? SIM_REENTRY_LATE : SIM_REENTRY_COUNTED);
  }
}

/* Returns true if a node did not vote because it was in quarantine. */
static bool sim_application_quarantined(const sim *s, const sim_client *client,
                                        const sim_lock *own) {
  bool any = false;
  for (unsigned i = 0; i < client->nodes && s->config.guard; i++) {
    any = any || own->lock->votes[i].vote == REDLOCK_VOTE_QUARANTINED;
  }
  return any;
}

static void sim_application_acquired(sim *s, sim_client *client, sim_lock *own, int result,
                                     bool ran_out) {
  sim_term_acquired(s, client, own, result);
  switch (result) {
  case REDLOCK_OK:
    sim_count(s, SIM_ACQUIRE_OK);
    sim_count_if(s, sim_application_quarantined(s, client, own), SIM_GUARD_GRANTED);
    sim_count_if(s, own->attempts > 1, SIM_ACQUIRE_RETRIED);
    sim_count_if(s, own->attaches, SIM_ATTACHED);
    sim_count_if(s, own->attaches && own->handed_hold_us > s->now_us, SIM_HOLD_HANDED_OVER);
    check_locked(s);
    s->grants++;
    sim_count_if(s, own->enqueued, SIM_WAIT_SERVED);
    sim_count_if(s, own->acquired.fair == REDLOCK_YES, SIM_WAIT_FAIR);
    own->state = SIM_APPLICATION_HOLD;
    sim_application_inside(s, client, own);
    sim_application_schedule(s, own, sim_application_hold(s, own));
    return;
  case REDLOCK_E_TAKEN:
    sim_count(s, SIM_ACQUIRE_TAKEN);
    break;
  case REDLOCK_E_UNAVAILABLE:
    sim_count(s, SIM_ACQUIRE_UNAVAILABLE);
    sim_count_if(s, sim_application_quarantined(s, client, own), SIM_GUARD_QUARANTINED);
    sim_count_if(s,
                 own->acquired.fence == REDLOCK_YES &&
                     own->lock->quorum.granted >= sim_config_quorum(&s->config, client->nodes),
                 SIM_FENCE_UNCONFIRMED);
    break;
  case REDLOCK_E_EXPIRED:
    sim_count(s, ran_out ? SIM_ACQUIRE_RAN_OUT : SIM_ACQUIRE_EXPIRED);
    break;
  case REDLOCK_E_CANCELLED:
    sim_count(s, SIM_ACQUIRE_CANCELLED);
    break;
  default:
    if (result == REDLOCK_E_LOST && own->attaches) {
      sim_count(s, SIM_ATTACH_LOST);
    } else if (!client->closing && !sim_application_lost_before(s, result)) {
      sim_violation(s, "budget", "acquire ended with %d", result);
    }
    break;
  }
  sim_count_if(s, own->enqueued, SIM_WAIT_ENDED);
  if (ran_out) {
    own->inside = 0;
  }
  if (own->inside > 0) { /* Only the nested acquire has failed. */
    sim_count(s, SIM_REENTRY_NOT_EXTENDED);
    sim_application_keep(s, own);
    return;
  }
  sim_application_idle(s, own);
}

static void sim_application_extended(sim *s, sim_client *client, sim_lock *own, int result) {
  switch (result) {
  case REDLOCK_OK:
    sim_count(s, SIM_EXTEND_OK);
    /* The nodes answer again, though the deadline may be where it was. */
    own->reported = REDLOCK_OK;
    sim_client_confirmed(s, client, own->lease != SIM_NO_TOKEN ? own->lease : own->inside_token);
    sim_count_if(s, own->failed_before, SIM_EXTEND_AFTER_FAILURE);
    break;
  case REDLOCK_E_UNAVAILABLE:
    sim_count(s, SIM_EXTEND_UNAVAILABLE);
    own->extends_left++;
    break;
  case REDLOCK_E_EXPIRED:
    sim_count(s, SIM_EXTEND_EXPIRED);
    break;
  case REDLOCK_E_LOST:
    sim_count(s, SIM_EXTEND_LOST);
    /*
     * A majority keeps the keys until after the deadline. Only an operator can make this true
     * before.
     */
    if (s->breach == SIM_BREACH_NONE && !sim_keys_went(s)) {
      sim_violation(s, "validity", "client %u: its lease is reported as lost", client->index);
    }
    break;
  case REDLOCK_E_CANCELLED:
    sim_count(s, SIM_EXTEND_CANCELLED);
    break;
  default:
    if (!client->closing) {
      sim_violation(s, "budget", "extend ended with %d", result);
    }
    break;
  }
  own->failed_before = result != REDLOCK_OK;
  sim_application_keep(s, own);
}

static void sim_application_released(sim *s, sim_client *client, sim_lock *own, int result) {
  if (own->counting_down) {
    if (result != REDLOCK_OK && result != REDLOCK_E_EXPIRED) {
      sim_violation(s, "reentry", "a release that is not the last ended with %d", result);
    }
    own->counting_down = false;
    if (own->inside > 0) {
      sim_application_keep(s, own);
    } else {
      sim_application_idle(s, own);
    }
    return;
  }
  check_released(s, client, own, result);
  switch (result) {
  case REDLOCK_OK:
    sim_count(s, SIM_RELEASE_OK);
    break;
  case REDLOCK_E_EXPIRED:
    sim_count(s, SIM_RELEASE_EXPIRED);
    break;
  case REDLOCK_E_LOST:
    sim_count(s, SIM_RELEASE_LOST);
    break;
  case REDLOCK_E_UNAVAILABLE:
    sim_count(s, SIM_RELEASE_UNAVAILABLE);
    if (!own->repeated && !sim_application_calm(s) && sim_application_draw(s, 2) == 0) {
      own->repeated = true;
      own->extends_left = 0;
      own->state = SIM_APPLICATION_HOLD; /* It will be released once more. */
      sim_application_schedule(s, own, sim_application_think(s));
      return;
    }
    break;
  case REDLOCK_E_CANCELLED:
    break;
  default:
    if (!client->closing) {
      sim_violation(s, "budget", "release ended with %d", result);
    }
    break;
  }
  sim_application_idle(s, own);
}

void sim_application_ended(sim *s, sim_client *client, rl_lock *lock, uint64_t reading_us) {
  sim_lock *own = lock->data;
  bool granted = rl_lock_result(lock) == REDLOCK_OK;
  rl_stats_kind kind = rl_stats_kind_of(own->operation);
  if (kind < RL_STATS_KINDS) {
    client->account.ended[kind]++;
  }
  uint32_t lease = own->lease;
  int result = rl_lock_outcome(lock, reading_us);
  bool ran_out = granted && result != REDLOCK_OK;
  if (ran_out && own->operation == RL_OPERATION_ACQUIRE && lease != SIM_NO_TOKEN) {
    s->tokens[lease].hold_over = true; /* A failed acquire deletes its keys. */
  }
  sim_mix(s, (uint64_t)(int64_t)result << 8 | (uint64_t)own->operation);
  SIM_TRACE(s, "client %u, lock %u: %s: %s", client->index, (unsigned)(own - client->locks),
            own->operation == RL_OPERATION_ACQUIRE   ? "acquire"
            : own->operation == RL_OPERATION_EXTEND  ? "extend"
            : own->operation == RL_OPERATION_RELEASE ? "release"
            : own->operation == RL_OPERATION_INSPECT ? "inspection"
                                                     : "release by force",
            result == REDLOCK_OK ? "ok" : redlock_error_name(result));
  if (own->state != SIM_APPLICATION_BUSY) {
    sim_violation(s, "budget", "an operation has ended that was not in flight");
  } else if (own->operation == RL_OPERATION_ACQUIRE) {
    sim_application_acquired(s, client, own, result, ran_out);
  } else if (own->operation == RL_OPERATION_EXTEND) {
    own->inside = ran_out ? 0 : own->inside;
    sim_application_extended(s, client, own, result);
  } else if (own->operation != RL_OPERATION_RELEASE) {
    sim_operator_ended(s, client, own, result);
  } else {
    sim_application_released(s, client, own, result);
  }
  if (client->closing) {
    own->due_us = SIM_NEVER;
  }
}

void sim_application_lost(sim *s, sim_client *client, rl_lock *lock) {
  sim_lock *own = lock->data;
  int reason = lock->loss;
  sim_mix(s, (uint64_t)(int64_t)reason << 8);
  SIM_TRACE(s, "client %u, lock %u: LOST: %s", client->index, (unsigned)(own - client->locks),
            redlock_error_name(reason));
  sim_count(s, reason == REDLOCK_E_MAX_HOLD  ? SIM_LOSS_MAX_HOLD
               : reason == REDLOCK_E_EXPIRED ? SIM_LOSS_EXPIRED
               : reason == REDLOCK_E_LOST    ? SIM_LOSS_LOST
                                             : SIM_LOSS_UNAVAILABLE);
  check_lost(s, client, own, reason);
  own->reported = reason;
}
