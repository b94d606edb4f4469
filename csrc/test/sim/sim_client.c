/*
 * The driver's loop around the core, as csrc/core/rl_core.h prescribes it.
 *
 * SPDX-License-Identifier: MIT
 *
 * A turn is a sequence of steps, each at most one call of the core. The client can be paused
 * between any two of them, and between the reading of its clock and the call that uses the reading.
 */
#include <stdlib.h>
#include <string.h>

#include "check.h"
#include "lease/rl_semaphore.h"
#include "lifecycle/rl_grace.h"
#include "sim.h"
#include "sim_client.h"
#include "sim_trace.h"

/* Time of an extend without faults: a lease with less left cannot be extended. */
#define SIM_CLIENT_TIME_TO_EXTEND_US 5000

uint64_t sim_client_clock(const sim *s, const sim_client *client) {
  return sim_clock_read(&client->clock, s->now_us);
}

void sim_client_wake(sim *s, unsigned index, uint64_t at_us) {
  sim_client *client = &s->clients[index];
  at_us = at_us < client->paused_until_us ? client->paused_until_us : at_us;
  at_us = at_us < s->now_us ? s->now_us : at_us;
  if (!client->alive || at_us >= client->wake_us) {
    return;
  }
  client->wake_us = at_us;
  sim_queue_add(s, at_us, SIM_EVENT_CLIENT, index, 0, ++client->generation);
}

void sim_client_hear(sim *s, unsigned index) {
  if (!s->clients[index].asleep) {
    sim_client_wake(s, index, s->now_us);
  }
}

void sim_client_pause(sim *s, unsigned index, uint64_t for_us) {
  sim_client *client = &s->clients[index];
  uint64_t until_us = s->now_us + for_us;
  if (!client->alive || until_us <= client->paused_until_us) {
    return;
  }
  uint64_t from_us = client->paused_until_us > s->now_us ? client->paused_until_us : s->now_us;
  client->paused_us +=
      sim_clock_read(&client->clock, until_us) - sim_clock_read(&client->clock, from_us);
  client->paused_until_us = until_us;
  client->wake_us = SIM_NEVER;
  sim_client_wake(s, index, until_us);
  if (s->breach == SIM_BREACH_FROZEN_CLOCK && client->clock.ppm != -1000000) {
    client->ppm = client->clock.ppm;
    sim_clock_step(&client->clock, s->now_us, 0);
    client->clock.ppm = -1000000;
    s->breached = true;
  }
}

static void sim_client_thaw(sim *s, sim_client *client) {
  if (client->clock.ppm == -1000000) {
    sim_clock_step(&client->clock, s->now_us, 0);
    client->clock.ppm = client->ppm;
  }
}

/* ------------------------------------------------------------- changes by a call of the core */

static uint32_t sim_client_token(const rl_attempt *attempt) {
  return attempt == NULL ? SIM_NO_TOKEN
                         : sim_tap_token(rl_attempt_token(attempt), REDLOCK_TOKEN_LENGTH);
}

void sim_client_over(sim *s, const sim_client *client, uint32_t token) {
  if (token < s->token_count && !s->tokens[token].over) {
    sim_tap_over(s, token);
    s->tokens[token].over_us = client->reading_us;
  }
}

void sim_client_forced(sim *s, uint32_t token) {
  for (unsigned i = 0; i < s->config.clients; i++) {
    for (unsigned k = 0; k < s->config.locks; k++) {
      sim_lock *own = &s->clients[i].locks[k];
      own->calm = own->calm && own->lease != token;
    }
  }
}

void sim_client_confirmed(const sim *s, sim_client *client, uint32_t lease) {
  for (unsigned i = 0; i < s->config.locks; i++) {
    sim_lock *lock = &client->locks[i];
    if (lock->inside > 0 && lock->inside_token == lease) {
      lock->reported = REDLOCK_OK;
    }
  }
}

/* Notes that the lock waits in a wait list, or in queues. */
static void sim_client_wait_of(sim *s, sim_lock *own) {
  const rl_waitlist *line = own->lock->waitlist;
  if (line != NULL && own->queued_call == 0) {
    own->queued_call = s->calls;
    sim_count_if(s, own->lock->phase == RL_PHASE_QUEUED, SIM_WAIT_QUEUED);
  }
  own->enqueued = own->enqueued || (line != NULL && line->head == own->lock &&
                                    line->ticket != NULL && line->ticket->enqueued != 0);
}

/* Compares the lock with its state before the call of the core. */
static void sim_client_look(sim *s, sim_client *client, sim_lock *own) {
  const rl_lock *lock = own->lock;
  bool acquiring = lock->operation == RL_OPERATION_ACQUIRE && rl_lock_is_busy(lock);
  uint32_t attempt = acquiring ? sim_client_token(lock->attempt) : SIM_NO_TOKEN;
  uint32_t before = own->lease;
  uint32_t lease = sim_client_token(lock->lease);
  uint64_t deadline_us = lock->lease != NULL ? lock->deadline_us : 0;
  if (own->attempt != attempt && own->attempt != lease) {
    sim_client_over(s, client, own->attempt);
  }
  sim_client_wait_of(s, own);
  own->attempt = attempt;
  if (before == lease && own->deadline_us == deadline_us) {
    return;
  }
  check_changed(s, client, own, before, lease);
  if (before != lease) {
    if (before != SIM_NO_TOKEN) {
      check_stats_lease_ended(client, lock, own->deadline_us);
    }
    sim_client_over(s, client, before);
    own->over_seen = false;
  }
  own->lease = lease;
  own->deadline_us = deadline_us;
  own->ends_us = lease == SIM_NO_TOKEN ? s->now_us : sim_clock_when(&client->clock, deadline_us);
  sim_mix(s, deadline_us ^ lease);
  unsigned index = (unsigned)(own - client->locks);
  if (s->trace != NULL) {
    sim_trace_lease(s, client->index, index, own->resource, lease, own->ends_us);
  }
  if (lease == SIM_NO_TOKEN || lease >= s->token_count) {
    return;
  }
  if (before != lease) {
    SIM_TRACE(s, "client %u, lock %u: HOLDS %u with token %u for %lld us", client->index, index,
              own->resource, lease, (long long)(own->ends_us - s->now_us));
    s->tokens[lease].granted = true;
    s->tokens[lease].ticket = lock->lease->ticket;
    s->tokens[lease].enqueued = lock->lease->enqueued;
    own->reported = REDLOCK_OK;
    own->taken = own->acquired;
    own->taken_us = lock->round_start_us;
    own->moved = false;
    /* Its keys may have been deleted by force since they were set. */
    own->calm = s->phase != SIM_PHASE_SAFETY && s->tokens[lease].begun_us > s->calm_us &&
                s->tokens[lease].forced == 0 && s->tokens[lease].forgotten == 0 &&
                deadline_us > client->reading_us + SIM_CLIENT_TIME_TO_EXTEND_US;
    check_granted(s, client, own);
  } else {
    SIM_TRACE(s, "client %u, lock %u: EXTENDED to %lld us", client->index, index,
              (long long)(own->ends_us - s->now_us));
    sim_count_if(s, lock->automatic, SIM_RENEWED);
    sim_client_confirmed(s, client, lease);
    own->reported = REDLOCK_OK;
    check_extended(s, client, own);
  }
}

/* The lease of |from| is that of |to| from now on. */
static void sim_client_move(sim *s, sim_client *client, sim_lock *from, sim_lock *to) {
  int notify_lost = to->acquired.notify_lost;
  SIM_TRACE(s, "client %u: token %u goes from lock %u to lock %u", client->index, from->lease,
            (unsigned)(from - client->locks), (unsigned)(to - client->locks));
  sim_count(s, SIM_REENTRY_MOVED);
  if (from->owner == 0 || from->owner != to->owner) {
    sim_violation(s, "reentry", "client %u: a lease goes to a lock of another owner",
                  client->index);
  }
  if (to->lease != SIM_NO_TOKEN) {
    check_stats_lease_ended(client, to->lock, to->deadline_us);
  }
  to->lease = from->lease;
  to->deadline_us = from->deadline_us;
  to->ends_us = from->ends_us;
  to->taken_us = from->taken_us;
  to->moved = true;
  to->over_seen = from->over_seen;
  to->calm = from->calm;
  to->taken = from->taken;
  to->acquired = from->taken;
  to->acquired.notify_lost = notify_lost;
  sim_token *token = &s->tokens[to->lease];
  to->resource = token->resource; /* |from| may have its own again, if it acquires. */
  to->both = token->both;
  token->lock = (uint8_t)(to - client->locks);
  from->lease = SIM_NO_TOKEN;
  from->deadline_us = 0;
  from->calm = false;
  from->resource = from->named;
  from->both = from->named_both;
}

void sim_client_moves(sim *s, sim_client *client) {
  for (unsigned i = 0; i < s->config.locks; i++) {
    sim_lock *from = &client->locks[i];
    const sim_lock *to =
        from->lease == SIM_NO_TOKEN ? NULL : check_reentry_holder(s, client, from->lease);
    if (to != NULL && to != from) {
      sim_client_move(s, client, from, &client->locks[to - client->locks]);
    }
  }
}

void sim_client_after_call(sim *s, sim_client *client) {
  sim_client_moves(s, client);
  sim_tap_output(s, client);
  for (unsigned i = 0; i < rl_core_connection_count(&client->core) && !s->failed; i++) {
    sim_socket *socket = &client->sockets[i];
    const rl_link *link = &rl_core_peer(&client->core, i)->link;
    rl_link_phase phase = link->phase;
    socket->scriptless = link->no_scripts_until_us != 0;
    if (phase == RL_LINK_UP) {
      socket->up = true;
    } else if (phase == RL_LINK_DOWN && (socket->open || socket->sent_count > 0 || socket->up)) {
      if (i < client->nodes) {
        check_closed(s, client, i);
      }
      sim_tap_dropped(s, client, i);
      socket->open = false;
    }
  }
  for (unsigned i = 0; i < s->config.locks && !s->failed; i++) {
    if (client->locks[i].lock != NULL) {
      sim_client_look(s, client, &client->locks[i]);
    }
  }
}

/* --------------------------------------------------------------------------------------- steps */
/* Each returns true if it has called the core. */

static bool sim_client_read(sim *s, sim_client *client, unsigned node) {
  sim_socket *socket = &client->sockets[node];
  sim_stream *stream = &s->connections[socket->connection].to_client;
  check_votes_state state;
  size_t length = client->reading_bytes;
  if (length > 1 && sim_chance(&s->random_client, s->config.pieces)) {
    length = (size_t)sim_between(&s->random_client, 1, length - 1);
  }
  bool old = sim_tap_input(s, client, node, length);
  if (old) {
    check_votes_before(client, &state);
  }
  rl_core_input(&client->core, node, client->reading_us, stream->bytes + stream->head, length);
  stream->head += length;
  stream->read += length;
  sim_stream_compact(stream);
  if (old) {
    check_votes_unchanged(s, client, &state);
  }
  return true;
}

static bool sim_client_input(sim *s, sim_client *client) {
  unsigned node = client->cursor;
  sim_socket *socket = &client->sockets[node];
  if (socket->connection != SIM_NO_CONNECTION && socket->connected) {
    socket->connected = false;
    socket->open = true;
    rl_core_connected(&client->core, node, client->reading_us);
    return true;
  }
  if (socket->connection != SIM_NO_CONNECTION && socket->open && client->reading_bytes > 0 &&
      rl_core_peer(&client->core, node)->link.phase != RL_LINK_DOWN) {
    return sim_client_read(s, client, node);
  }
  if (socket->connection != SIM_NO_CONNECTION && (socket->refused || socket->reset)) {
    socket->odd = true;
    socket->open = true;
    rl_core_disconnected(&client->core, node, client->reading_us,
                         socket->refused ? "connection refused" : "connection reset");
    socket->refused = socket->reset = false;
    client->cursor++;
    return true;
  }
  client->cursor++;
  return false;
}

static bool sim_client_connection(sim *s, sim_client *client) {
  unsigned node = client->cursor++;
  sim_socket *socket = &client->sockets[node];
  rl_connection wanted = rl_core_wanted_connection(&client->core, node, client->reading_us);
  if (wanted == RL_CONNECTION_OPEN) {
    return false;
  }
  if (socket->connection != SIM_NO_CONNECTION) {
    sim_client_close_socket(s, client, node);
  }
  if (wanted != RL_CONNECTION_WANTED) {
    return false;
  }
  rl_core_connecting(&client->core, node, client->reading_us);
  socket->begun_us = client->reading_us;
  socket->connection =
      sim_network_connect(s, client->index, client->base + node % client->nodes, node);
  if (socket->connection == SIM_NO_CONNECTION) {
    sim_violation(s, "simulator", "no connection is left");
  }
  return true;
}

/*
 * The lock whose attempt or lease has the token, or whose attempt with it has just failed; or NULL.
 */
static sim_lock *sim_client_drawer(const sim *s, sim_client *client, uint32_t token) {
  for (unsigned i = 0; i < s->config.locks; i++) {
    sim_lock *own = &client->locks[i];
    const rl_lock *lock = own->lock;
    if (lock != NULL && lock->operation == RL_OPERATION_ACQUIRE &&
        (sim_client_token(lock->attempt) == token || sim_client_token(lock->lease) == token ||
         sim_client_token(lock->failed) == token)) {
      return own;
    }
  }
  return NULL;
}

/*
 * Gives the token that was drawn for |own| to the lock that has taken it. A waiter in a wait list,
 * or of a notification, takes none, and the next lock that is sent takes its token. An untaken
 * token is over.
 */
static void sim_client_drew(sim *s, sim_client *client, sim_lock *own) {
  uint32_t token = own->drawn;
  bool breaks = s->breach == SIM_BREACH_TOKEN_REUSED || s->breach == SIM_BREACH_TOKEN_SHARED;
  sim_lock *drawer = breaks ? own : sim_client_drawer(s, client, token);
  own->drawn = SIM_NO_TOKEN;
  if (drawer != NULL && !rl_semaphore_asks(drawer->lock)) {
    s->resource_attempts[client->index][drawer->named]++;
    client->account.attempts++;
  }
  if (drawer == own) {
    return;
  }
  own->attempts--;
  if (drawer == NULL) {
    sim_tap_over(s, token);
    return;
  }
  drawer->attempts++;
  s->tokens[token].lock = (uint8_t)(drawer - client->locks);
  s->tokens[token].resource = (uint8_t)drawer->resource;
  s->tokens[token].both = drawer->both;
}

static void sim_client_sent(sim *s, sim_client *client) {
  for (unsigned i = 0; i < s->config.locks; i++) {
    sim_lock *own = &client->locks[i];
    bool waits = own->lock != NULL && own->lock->phase == RL_PHASE_SEND;
    own->sent = own->sent || !waits;
    sim_count_if(s, waits, SIM_SEND_PACED);
    if (own->drawn != SIM_NO_TOKEN) {
      sim_client_drew(s, client, own);
    }
  }
}

static uint32_t sim_client_draw_token(sim *s, const sim_client *client, const sim_lock *own) {
  if (own->attempts > 0 && s->breach == SIM_BREACH_TOKEN_REUSED) {
    return (uint32_t)s->token_count - 1;
  }
  return s->token_count > 0 && s->breach == SIM_BREACH_TOKEN_SHARED
             ? 0
             : sim_tap_new_token(s, client->index, (unsigned)(own - client->locks));
}

static bool sim_client_send(sim *s, sim_client *client) {
  unsigned char entropy[SIM_LOCKS_MAX * RL_LOCK_ENTROPY];
  size_t wanted = rl_core_entropy_wanted(&client->core), filled = 0;
  if (!rl_core_wants_send(&client->core)) {
    return false;
  }
  for (rl_lock *lock = rl_lock_queue_first(&client->core.pacer.acquires);
       lock != NULL && filled < wanted;
       lock = rl_lock_queue_next(&client->core.pacer.acquires, lock)) {
    sim_lock *own = lock->data;
    /* A caller-supplied token takes none; but another lock may take the drawn one. */
    uint32_t token = sim_client_draw_token(s, client, own);
    own->attempts++;
    client->account.draws++;
    own->drawn = token;
    for (unsigned i = 0; i < RL_LOCK_ENTROPY; i += 8) {
      uint64_t drawn = sim_random_next(&s->random_entropy);
      for (unsigned k = 0; k < 8 && i + k < RL_LOCK_ENTROPY; k++) {
        entropy[filled + i + k] = (unsigned char)(drawn >> (8 * k));
      }
    }
    for (unsigned i = 0; i < 4; i++) {
      entropy[filled + i] = (unsigned char)(token >> (24 - 8 * i));
    }
    if (s->breach == SIM_BREACH_TOKEN_REUSED || s->breach == SIM_BREACH_TOKEN_SHARED) {
      memset(entropy + filled + 4, 0, RL_ATTEMPT_ENTROPY - 4);
    }
    filled += RL_LOCK_ENTROPY;
  }
  if (s->breach == SIM_BREACH_LATE_READING) {
    client->reading_us += sim_below(&s->random_client, s->config.ttl_max_us / 2);
    s->breached = true;
  }
  rl_core_send(&client->core, client->reading_us, entropy, filled);
  sim_client_sent(s, client);
  return true;
}

static bool sim_client_output(sim *s, sim_client *client) {
  unsigned node = client->cursor++;
  sim_socket *socket = &client->sockets[node];
  size_t length;
  const void *bytes = rl_core_output(&client->core, node, &length);
  if (bytes == NULL || !socket->open) {
    return false;
  }
  if (length > 1 && sim_chance(&s->random_client, s->config.partial_write)) {
    length = (size_t)sim_between(&s->random_client, 1, length - 1);
    client->again = true;
    sim_count(s, SIM_INJECTED_PARTIAL_WRITE);
  }
  sim_network_request(s, socket->connection, bytes, length);
  rl_core_output_sent(&client->core, node, length);
  socket->tapped -= length;
  return true;
}

static bool sim_client_ended(sim *s, sim_client *client) {
  rl_lock *lock = rl_core_next_ended(&client->core);
  if (lock == NULL) {
    rl_lock *lost;
    while ((lost = rl_loss_next(&client->core, client->reading_us)) != NULL) {
      sim_application_lost(s, client, lost);
    }
    client->step++;
    return false;
  }
  sim_application_ended(s, client, lock, client->reading_us);
  return true;
}

/* ---------------------------------------------------------------------------------------- turns */

static void sim_client_read_clock(sim *s, sim_client *client) {
  client->reading_us = sim_client_clock(s, client);
  client->reading_paused_us = client->paused_us;
  if (client->step == SIM_STEP_INPUT) {
    int connection = client->sockets[client->cursor].connection;
    client->reading_bytes =
        connection != SIM_NO_CONNECTION ? sim_network_readable(s, connection) : 0;
  }
  client->has_reading = true;
}

/* Returns true if the core was called. */
static bool sim_client_step(sim *s, sim_client *client) {
  bool called;
  switch (client->step) {
  case SIM_STEP_INPUT:
    called = sim_client_input(s, client);
    break;
  case SIM_STEP_ADVANCE:
    client->advance_us = client->reading_us;
    rl_core_advance(&client->core, client->reading_us);
    client->step++;
    client->cursor = 0;
    return true;
  case SIM_STEP_CONNECTION:
    called = sim_client_connection(s, client);
    break;
  case SIM_STEP_APPLICATION:
    sim_application_step(s, client, client->reading_us);
    client->step++;
    return true;
  case SIM_STEP_SEND:
    called = sim_client_send(s, client);
    client->step++;
    client->cursor = 0;
    return called;
  case SIM_STEP_OUTPUT:
    called = sim_client_output(s, client);
    break;
  default:
    return sim_client_ended(s, client);
  }
  if (client->cursor >= rl_core_connection_count(&client->core)) {
    client->step++;
    client->cursor = 0;
  }
  return called;
}

/*
 * Returns true if a blocking client is in a call: while an operation is in flight, during the grace
 * period, and until the sockets have taken all bytes.
 */
static bool sim_client_in_call(const sim *s, const sim_client *client) {
  for (unsigned i = 0; i < s->config.locks; i++) {
    const rl_lock *lock = client->locks[i].lock;
    if (lock != NULL &&
        ((rl_lock_is_busy(lock) && !lock->abandoned) || rl_list_is_in(&lock->queue) ||
         rl_grace_until(lock, client->reading_us) > client->reading_us)) {
      return true;
    }
  }
  for (unsigned i = 0; i < rl_core_connection_count(&client->core); i++) {
    size_t length;
    if (client->sockets[i].open && !client->again &&
        rl_core_output(&client->core, i, &length) != NULL) {
      return true;
    }
  }
  return rl_core_wants_send(&client->core);
}

/* Returns true if the client sleeps on, because its next blocking call is not due. */
static bool sim_client_oversleeps(sim *s, sim_client *client) {
  uint64_t at_us = SIM_NEVER;
  for (unsigned i = 0; i < s->config.locks; i++) {
    at_us = client->locks[i].due_us < at_us ? client->locks[i].due_us : at_us;
  }
  if (!client->asleep || client->closing || s->phase != SIM_PHASE_SAFETY || at_us <= s->now_us) {
    client->asleep = false;
    return false;
  }
  if (at_us != SIM_NEVER) {
    sim_client_wake(s, client->index, at_us);
  }
  return true;
}

/* Puts a blocking client to sleep until its next call is due. Returns true if it sleeps. */
static bool sim_client_sleeps(sim *s, sim_client *client) {
  bool blocking = (s->config.blocking >> client->index & 1) != 0;
  if (!blocking || s->phase != SIM_PHASE_SAFETY || client->closing ||
      sim_client_in_call(s, client)) {
    return false;
  }
  sim_count(s, SIM_CALL_RETURNED);
  check_returned(s, client);
  client->asleep = true;
  return sim_client_oversleeps(s, client);
}

/* Goes to sleep until something is due. */
static void sim_client_wait(sim *s, sim_client *client) {
  if (sim_client_sleeps(s, client)) {
    return;
  }
  uint64_t deadline_us = rl_core_deadline(&client->core);
  uint64_t at_us =
      deadline_us == REDLOCK_NEVER ? SIM_NEVER : sim_clock_when(&client->clock, deadline_us);
  for (unsigned i = 0; i < s->config.locks; i++) {
    const rl_lock *lock = client->locks[i].lock;
    uint64_t late_us = lock == NULL ? 0 : rl_grace_until(lock, client->reading_us);
    at_us = client->locks[i].due_us < at_us ? client->locks[i].due_us : at_us;
    if (late_us > client->reading_us && sim_clock_when(&client->clock, late_us) < at_us) {
      at_us = sim_clock_when(&client->clock, late_us);
    }
  }
  if (client->again) {
    at_us = s->now_us + 20;
  }
  if (client->closing && at_us > client->close_by_us) {
    at_us = client->close_by_us;
  }
  at_us = client->dies_us < at_us ? client->dies_us : at_us;
  for (unsigned i = 0; i < rl_core_connection_count(&client->core); i++) {
    const sim_socket *socket = &client->sockets[i];
    bool readable = socket->connection != SIM_NO_CONNECTION && socket->open &&
                    sim_network_readable(s, socket->connection) > 0;
    if (readable || socket->connected || socket->reset || socket->refused) {
      at_us = s->now_us + 1;
    }
  }
  if (at_us != SIM_NEVER) {
    sim_client_wake(s, client->index, at_us > s->now_us ? at_us : s->now_us + 1);
  }
}

/*
 * Returns true if a client that is being closed has ended; another client has begun in its place
 * then.
 */
static bool sim_client_closed(sim *s, const sim_client *client) {
  unsigned index = client->index;
  if (!client->closing ||
      (rl_core_has_unanswered(&client->core) && s->now_us < client->close_by_us)) {
    return false;
  }
  sim_client_kill(s, index);
  sim_client_start(s, index);
  return true;
}

static bool sim_client_held_up(sim *s, sim_client *client, unsigned chance, sim_counter counter) {
  if (s->phase != SIM_PHASE_SAFETY || !sim_chance(&s->random_client, chance)) {
    return false;
  }
  sim_count(s, counter);
  uint64_t for_us = sim_below(&s->random_client, 3) == 0
                        ? sim_between(&s->random_client, 1, 1000)
                        : sim_network_boundary(s, &s->random_client);
  sim_trace_fault(s, SIM_NODES_MAX + client->index, s->now_us + for_us, "paused");
  sim_client_pause(s, client->index, for_us);
  return true;
}

static void sim_client_turn(sim *s, sim_client *client) {
  if (!client->in_turn) {
    client->in_turn = true;
    client->step = SIM_STEP_INPUT;
    client->cursor = 0;
    client->again = false;
  }
  while (client->step != SIM_STEP_WAIT && !s->failed) {
    if (!client->has_reading) {
      sim_client_read_clock(s, client);
      check_clock_read(s, client);
      if (sim_client_held_up(s, client, s->config.stale, SIM_INJECTED_STALE_READING)) {
        return;
      }
    }
    client->has_reading = false;
    if (sim_client_step(s, client)) {
      sim_client_after_call(s, client);
      if (sim_client_held_up(s, client, s->config.pause, SIM_INJECTED_PAUSE)) {
        return;
      }
    }
  }
  client->in_turn = false;
  if (s->failed) {
    return;
  }
  check_turned(s, client);
  if (!sim_client_closed(s, client)) {
    sim_client_wait(s, client);
  }
}

/* The client dies after its notification: no client acts on it. */
static void sim_client_die(sim *s, const sim_client *client) {
  unsigned index = client->index;
  sim_count(s, SIM_NOTIFIED_KILLED);
  sim_trace_fault(s, SIM_NODES_MAX + index, s->now_us, "killed after it was called, started again");
  sim_client_kill(s, index);
  sim_client_start(s, index);
}

void sim_client_event(sim *s, unsigned index, uint32_t generation) {
  sim_client *client = &s->clients[index];
  if (!client->alive || generation != client->generation) {
    return;
  }
  client->wake_us = SIM_NEVER;
  sim_client_thaw(s, client);
  if (s->now_us >= client->dies_us) {
    sim_client_die(s, client);
    return;
  }
  if (!sim_client_oversleeps(s, client)) {
    sim_client_turn(s, client);
  }
}
