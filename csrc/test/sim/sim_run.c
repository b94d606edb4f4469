/*
 * A run: a phase with faults in which nothing unsafe may happen, one without faults in which a
 * client must lock, and one in which everything comes to rest.
 *
 * SPDX-License-Identifier: MIT
 */
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "check.h"
#include "sim.h"
#include "sim_trace.h"

#define SIM_SETTLE_EVERY_US 50000

void sim_violation(sim *s, const char *name, const char *format, ...) {
  va_list arguments;
  if (!sim_has_checker(name)) {
    abort(); /* It is missing in the lists of check.h. */
  }
  if (s->failed || (s->only != NULL && strcmp(s->only, name) != 0)) {
    return;
  }
  s->failed = true;
  s->checker = name;
  va_start(arguments, format);
  (void)vsnprintf(s->failure, sizeof s->failure, format, arguments);
  va_end(arguments);
  SIM_TRACE(s, "VIOLATION (%s): %s", name, s->failure);
}

static void sim_run_begin(sim *s, uint64_t seed) {
  uint64_t state = seed * 0x2545f4914f6cdd1du + 1;
  sim_random random_config;
  s->seed = seed;
  s->now_us = 0;
  s->hash = seed;
  s->event_count = 0;
  s->failed = s->breached = s->calm_grant = false;
  s->checker = "";
  s->failure[0] = '\0';
  sim_queue_clear(s);
  s->token_count = 0;
  s->grants = s->calls = s->forced = s->forgotten = 0;
  s->asks = 0;
  s->calm_us = 0;
  memset(s->handovers, 0, sizeof s->handovers);
  memset(s->taken_us, 0, sizeof s->taken_us);
  memset(s->kept_until_us, 0, sizeof s->kept_until_us);
  memset(s->kept_by, 0, sizeof s->kept_by);
  memset(s->fence_count, 0, sizeof s->fence_count);
  memset(s->term_fences, 0, sizeof s->term_fences);
  sim_random_seed(&random_config, &state);
  sim_random_seed(&s->random_network, &state);
  sim_random_seed(&s->random_node, &state);
  sim_random_seed(&s->random_application, &state);
  sim_random_seed(&s->random_fault, &state);
  sim_random_seed(&s->random_entropy, &state);
  sim_random_seed(&s->random_client, &state);
  sim_random_seed(&s->random_operator, &state);
  sim_random_seed(&s->random_watch, &state);
  sim_random_seed(&s->random_calls, &state);
  sim_random_seed(&s->random_term, &state);
  sim_random_seed(&s->random_hold, &state);
  sim_random_seed(&s->random_mix, &state);
  sim_config_draw(s, &random_config);
  memset(s->links, 0, sizeof s->links);
  for (int i = 0; i < SIM_CONNECTIONS_MAX; i++) {
    s->connections[i].used = false;
  }
  s->phase = SIM_PHASE_SAFETY;
  s->phase_us = 0;
  for (unsigned i = 0; i < s->config.nodes; i++) {
    sim_node_init(s, i);
  }
  for (unsigned i = 0; i < SIM_CLIENTS_MAX; i++) {
    s->over[i].count = 0;
  }
  for (unsigned i = 0; i < s->config.clients; i++) {
    sim_client_start(s, i);
  }
  sim_guard_ready(s);
  sim_waiting_begin(s);
  sim_fault_begin(s);
}

static void sim_run_end(sim *s) {
  for (unsigned i = 0; i < s->config.clients; i++) {
    sim_client_kill(s, i);
  }
}

static bool sim_run_quiet(const sim *s) {
  for (unsigned i = 0; i < s->config.clients; i++) {
    const sim_client *client = &s->clients[i];
    for (unsigned k = 0; k < s->config.locks; k++) {
      const rl_lock *lock = client->locks[k].lock;
      if (client->locks[k].state != SIM_APPLICATION_DONE || rl_lock_is_busy(lock) ||
          lock->lease != NULL) {
        return false;
      }
    }
    for (unsigned k = 0; k < client->nodes; k++) {
      if (client->core.nodes[k]->link.outstanding_count > 0) {
        return false;
      }
    }
    if (client->core.releases->count > 0) {
      return false;
    }
  }
  return true;
}

static void sim_run_enter(sim *s, sim_phase phase, uint64_t bound_us) {
  s->phase = phase;
  s->phase_us = s->now_us;
  s->phase_end_us = s->now_us + bound_us;
  SIM_TRACE(s, "---- %s ----",
            phase == SIM_PHASE_LIVENESS ? "faults stop"
            : phase == SIM_PHASE_MIX    ? "all kinds of waiters"
                                        : "all come to rest");
  sim_queue_add(s, s->phase_end_us, SIM_EVENT_PHASE, 0, 0, 0);
}

/* Ends phases. */
static void sim_run_advance(sim *s) {
  if (s->phase == SIM_PHASE_SAFETY &&
      (s->event_count >= s->config.events || s->now_us >= s->config.length_us)) {
    sim_fault_stop(s);
    sim_run_enter(s, SIM_PHASE_LIVENESS, check_liveness_bound_us(s));
    sim_application_settle(s);
  } else if (s->phase == SIM_PHASE_LIVENESS && s->calm_grant && s->config.mix) {
    sim_run_enter(s, SIM_PHASE_MIX, sim_mix_begin(s));
  } else if ((s->phase == SIM_PHASE_LIVENESS && s->calm_grant) ||
             (s->phase == SIM_PHASE_MIX && sim_mix_is_over(s))) {
    sim_run_enter(s, SIM_PHASE_SETTLE, check_liveness_bound_us(s));
    sim_queue_add(s, s->now_us + SIM_SETTLE_EVERY_US, SIM_EVENT_PHASE, 0, 0, 0);
    sim_application_settle(s);
  }
}

static void sim_run_phase_event(sim *s) {
  bool late = s->now_us >= s->phase_end_us;
  if (s->phase == SIM_PHASE_LIVENESS && late) {
    sim_violation(s, "liveness", "no client has locked for %llu us after the faults had stopped",
                  (ull)(s->now_us - s->phase_us));
    s->phase = SIM_PHASE_END; /* Where that is not asked for, it would go on for ever. */
  } else if (s->phase == SIM_PHASE_MIX && late) {
    sim_violation(s, "mix", "only %u grants in %llu us", s->mix.granted,
                  (ull)(s->now_us - s->phase_us));
    s->phase = SIM_PHASE_END;
  } else if (s->phase == SIM_PHASE_SETTLE && sim_run_quiet(s)) {
    check_settled(s);
    sim_count(s, SIM_SETTLED);
    s->phase = SIM_PHASE_END;
  } else if (s->phase == SIM_PHASE_SETTLE && late) {
    sim_violation(s, "liveness", "not at rest %llu us after all had been released",
                  (ull)(s->now_us - s->phase_us));
    s->phase = SIM_PHASE_END;
  } else if (s->phase == SIM_PHASE_SETTLE) {
    sim_queue_add(s, s->now_us + SIM_SETTLE_EVERY_US, SIM_EVENT_PHASE, 0, 0, 0);
  }
}

static void sim_run_event(sim *s, const sim_event *event) {
  s->now_us = event->at_us;
  s->event_count++;
  sim_mix(s, event->at_us << 16 ^ (uint64_t)event->kind << 8 ^ event->subject ^
                 (uint64_t)event->length << 40);
  switch ((sim_event_kind)event->kind) {
  case SIM_EVENT_CLIENT:
    sim_client_event(s, event->subject, event->generation);
    break;
  case SIM_EVENT_NODE:
    sim_node_event(s, event->subject);
    break;
  case SIM_EVENT_FAULT:
    sim_fault_event(s);
    break;
  case SIM_EVENT_PHASE:
    sim_run_phase_event(s);
    break;
  case SIM_EVENT_WATCH:
    sim_waiting_watch(s);
    break;
  default:
    sim_network_event(s, event);
    break;
  }
}

bool sim_run(sim *s, uint64_t seed) {
  sim_event event;
  sim_run_begin(s, seed);
  while (!s->failed && s->phase != SIM_PHASE_END && sim_queue_take(s, &event)) {
    if (event.kind == SIM_EVENT_CLIENT &&
        s->clients[event.subject].generation != event.generation) {
      continue; /* It was overtaken. */
    }
    sim_run_event(s, &event);
    sim_run_advance(s);
  }
  if (!s->failed && s->phase != SIM_PHASE_END) {
    sim_violation(s, "liveness", "nothing is left to happen");
  }
  sim_run_end(s);
  return !s->failed;
}

void sim_free(sim *s) {
  for (unsigned i = 0; i < SIM_CLIENTS_MAX; i++) {
    free(s->over[i].tokens);
    for (unsigned k = 0; k < SIM_SOCKETS_MAX; k++) {
      free(s->clients[i].sockets[k].sent);
    }
  }
  for (int i = 0; i < SIM_CONNECTIONS_MAX; i++) {
    free(s->connections[i].to_node.bytes);
    free(s->connections[i].to_client.bytes);
    free(s->connections[i].notes.notes);
  }
  for (unsigned i = 0; i < SIM_RESOURCES_MAX; i++) {
    free(s->fences[i]);
  }
  free(s->queue.events);
  free(s->tokens);
  free(s);
}
