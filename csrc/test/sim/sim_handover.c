/*
 * Leases that are handed over: their texts get lost, come late, and are used twice.
 *
 * SPDX-License-Identifier: MIT
 */
#include <stdlib.h>
#include <string.h>

#include "lease/rl_attach.h"
#include "lease/rl_reentry.h"
#include "lifecycle/rl_detach.h"
#include "sim.h"
#include "sim_trace.h"

#define SIM_HANDOVER_TRIES_MAX 3

bool sim_handover_detach(sim *s, const sim_client *client, sim_lock *own, uint64_t reading_us) {
  sim_random *random = &s->random_application;
  sim_handover *text = &s->handovers[sim_below(random, SIM_HANDOVERS_MAX)];
  rl_handover handover;
  if (rl_lock_describe_lease(own->lock, reading_us, &handover) != REDLOCK_OK ||
      rl_handover_length(&handover) >= sizeof text->text) {
    return false;
  }
  text->tries_left = 1 + (unsigned)sim_below(random, SIM_HANDOVER_TRIES_MAX);
  text->resource = own->resource;
  text->both = own->both;
  text->since_us = s->now_us;
  text->fence = handover.fence;
  const sim_token *token = &s->tokens[own->lease];
  text->hold_us = handover.hold_us == 0 ? 0 : token->hold_end_us;
  text->rest_us = token->keep_until_us > reading_us ? token->keep_until_us - reading_us : 0;
  rl_handover_write(&handover, text->text);
  rl_lock_detach(own->lock);
  own->inside = 0;
  s->tokens[own->lease].handed = true;
  sim_tap_abandon(s, own->lease);
  sim_count(s, SIM_DETACHED);
  SIM_TRACE(s, "client %u, lock %u: detaches token %u", client->index,
            (unsigned)(own - client->locks), own->lease);
  return true;
}

void sim_handover_take(sim *s, const sim_client *client, sim_lock *own) {
  sim_handover *text = &s->handovers[sim_below(&s->random_application, SIM_HANDOVERS_MAX)];
  rl_handover handover;
  if (text->tries_left == 0 || text->both != own->both ||
      (text->resource != own->resource && s->config.permits == 0) ||
      rl_ring_remaining(own->lock, sim_client_clock(s, client)) > 0) {
    return;
  }
  if (rl_handover_read(&handover, text->text, strlen(text->text)) != REDLOCK_OK ||
      rl_attach_set(own->lock, &handover) != REDLOCK_OK) {
    abort();
  }
  rl_handover_free(&handover);
  text->tries_left--;
  own->detached_us = text->since_us;
  own->handed_fence = text->fence;
  own->handed_hold_us = text->hold_us;
  own->handed_rest_us = text->rest_us;
  SIM_TRACE(s, "client %u, lock %u: is to attach", client->index, (unsigned)(own - client->locks));
}
