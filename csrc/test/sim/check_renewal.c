/*
 * An auto-extended lease is extended in time, never beyond max_hold, and its loss is reported in
 * time and once.
 *
 * SPDX-License-Identifier: MIT
 *
 * In time: after each turn, the core's next timer is not later than the next due extend, which is
 * computed here anew from the deadline of the lease. So a lease that was taken after the faults had
 * stopped, and whose client goes on, is not lost.
 */
#include "check.h"

static bool check_renewal_extends(const sim_lock *own) {
  return own->acquired.auto_extend == REDLOCK_YES;
}

static bool check_renewal_reports(const sim_lock *own) {
  return check_renewal_extends(own) || own->acquired.notify_lost == REDLOCK_YES;
}

/* How long a lease of the ttl that it was acquired for lasts. */
static uint64_t check_renewal_validity(const sim_lock *own) {
  double drift_us = (double)own->acquired.ttl_us * own->acquired.drift_factor;
  uint64_t whole_us = (uint64_t)drift_us + ((double)(uint64_t)drift_us < drift_us) + 2000;
  return own->acquired.ttl_us > whole_us ? own->acquired.ttl_us - whole_us : 0;
}

static bool check_renewal_capped(const sim_lock *own) {
  uint64_t keys_end_us = own->lock->keys_end_us;
  return own->acquired.max_hold_us != 0 &&
         keys_end_us + 1000 > own->taken_us + own->acquired.max_hold_us;
}

/* The latest time for the core's next timer. */
static uint64_t check_renewal_due(const sim_lock *own, uint64_t now_us) {
  uint64_t valid_us = check_renewal_validity(own);
  uint64_t every_us = own->acquired.extend_every_us;
  uint64_t third_us = own->acquired.ttl_us / 3;
  uint64_t least_us = third_us < 10000 ? third_us : 10000;
  every_us = every_us == 0 ? third_us : every_us > least_us ? every_us : least_us;
  every_us = every_us < valid_us - valid_us / 3 ? every_us : valid_us - valid_us / 3;
  uint64_t due_us = own->deadline_us + every_us - valid_us;
  if (check_renewal_capped(own) || !check_renewal_extends(own)) {
    return own->deadline_us;
  }
  /*
   * The result of a lock that is acquired again is that of the nested acquire, not of the extend
   * that failed.
   */
  if (own->lock->result != REDLOCK_OK || own->owner != 0) {
    uint64_t left_us = own->deadline_us > now_us ? own->deadline_us - now_us : 0;
    uint64_t again_us = now_us + (left_us / 4 > 5000 ? left_us / 4 : 5000);
    due_us = due_us > again_us ? due_us : again_us;
  }
  due_us = due_us > now_us ? due_us : now_us;
  return due_us < own->deadline_us ? due_us : own->deadline_us;
}

static void check_renewal_turned(sim *s, sim_client *client) {
  uint64_t now_us = client->reading_us;
  for (unsigned i = 0; i < s->config.locks; i++) {
    const sim_lock *own = &client->locks[i];
    if (own->lock == NULL || own->lease == SIM_NO_TOKEN || !check_renewal_reports(own) ||
        rl_lock_is_in_flight(own->lock)) {
      continue;
    }
    bool is_reported = own->reported == REDLOCK_E_EXPIRED || own->reported == REDLOCK_E_MAX_HOLD;
    if (client->advance_us >= own->deadline_us && !is_reported) {
      sim_violation(s, "renewal", "client %u: the expiry of the lease of token %u is not reported",
                    client->index, own->lease);
    }
    uint64_t due_us = check_renewal_due(own, now_us);
    if (now_us < own->deadline_us && rl_core_deadline(&client->core) > due_us) {
      sim_violation(s, "renewal",
                    "client %u has its next timer for the lease of token %u %llu us too late",
                    client->index, own->lease, (ull)(rl_core_deadline(&client->core) - due_us));
    }
  }
}

static void check_renewal_extended(sim *s, const sim_client *client, const sim_lock *own) {
  uint64_t end_us = own->taken_us + own->acquired.max_hold_us;
  if (own->lock->automatic && own->acquired.max_hold_us != 0 && own->deadline_us > end_us) {
    sim_violation(s, "renewal", "client %u: an automatic extend goes %llu us beyond max_hold",
                  client->index, (ull)(own->deadline_us - end_us));
  }
  if (own->lock->automatic && !check_renewal_extends(own)) {
    sim_violation(s, "renewal", "client %u: a lease is auto-extended unasked", client->index);
  }
}

/*
 * Checks extends. One that is sent again by its text, or natively, belongs to a round that began in
 * time.
 */
static void check_renewal_sent(sim *s, const sim_client *client, unsigned node,
                               const sim_sent *sent) {
  const sim_lock *own = &client->locks[s->tokens[sent->token].lock];
  const sim_token *token = &s->tokens[sent->token];
  bool again = sent->by_text || (sent->native && token->asked_round == sent->round &&
                                 (token->asked >> node & 1) != 0);
  if (sent->kind == SIM_COMMAND_EXTEND && !again && own->lease == sent->token &&
      client->reading_us >= own->deadline_us) {
    sim_violation(s, "renewal", "client %u extends token %u, which has expired", client->index,
                  sent->token);
  }
}

static void check_renewal_lost(sim *s, const sim_client *client, const sim_lock *own, int reason) {
  const sim_lock *holder =
      own->inside > 0 ? check_reentry_holder(s, client, own->inside_token) : NULL;
  /*
   * A client that was paused beyond the end and is closed at once reports a loss without a lease
   * that has the cap.
   */
  bool gone = own->inside > 0 && holder == NULL;
  holder = holder != NULL ? holder : own;
  bool lasts = rl_lock_remaining(holder->lock, client->reading_us) > 0;
  bool capped = check_renewal_extends(holder) && check_renewal_capped(holder);
  bool known = reason == (capped ? REDLOCK_E_MAX_HOLD : REDLOCK_E_EXPIRED) ||
               (gone && reason == (capped ? REDLOCK_E_EXPIRED : REDLOCK_E_MAX_HOLD)) ||
               reason == REDLOCK_E_UNAVAILABLE ||
               (reason == REDLOCK_E_CLOCK && client->core.guards != NULL) ||
               (reason == REDLOCK_E_LOST && (s->breach != SIM_BREACH_NONE || sim_keys_went(s)));
  bool wants = check_renewal_reports(own) || own->wants_notice || check_renewal_extends(holder);
  /*
   * No lock has a lost or closed lease any more, so it is unknown whether that was auto-extended.
   */
  bool ended = own->lock->lost || (client->core.closed && !lasts);
  wants = wants || (own->inside > 0 && own->owner != 0 && ended);
  if (!known || !wants || own->state == SIM_APPLICATION_DONE) {
    sim_violation(s, "renewal", "client %u: an impossible loss is reported: %d", client->index,
                  reason);
  } else if (lasts != rl_loss_only_warns(reason) && !own->lock->lost) {
    sim_violation(s, "renewal", "client %u: %d is reported of a lease with %llu us left",
                  client->index, reason, (ull)rl_lock_remaining(own->lock, client->reading_us));
  } else if (own->reported == reason) {
    sim_violation(s, "renewal", "client %u: %d is reported twice", client->index, reason);
  }
}

static void check_renewal_used(sim *s, const sim_client *client, const sim_lock *own) {
  if (check_renewal_extends(own) && own->calm && !s->config.lacks_scripts &&
      !check_renewal_capped(own) && rl_lock_remaining(own->lock, client->reading_us) == 0 &&
      s->breach == SIM_BREACH_NONE) {
    sim_violation(s, "renewal", "client %u has lost an auto-extended lease without a fault",
                  client->index);
  }
}

const checker check_renewal = {
    .name = "renewal",
    .turned = check_renewal_turned,
    .extended = check_renewal_extended,
    .sent = check_renewal_sent,
    .lost = check_renewal_lost,
    .used = check_renewal_used,
};
