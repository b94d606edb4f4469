/*
 * Connections between clients and nodes.
 *
 * SPDX-License-Identifier: MIT
 *
 * Bytes of one direction of one connection arrive in order, or not at all; connections are
 * independent. Bytes that are in flight when a client gives a connection up may still arrive and be
 * executed.
 */
#include <stdlib.h>
#include <string.h>

#include "base/rl_validity.h"
#include "grow.h"
#include "sim.h"
#include "sim_trace.h"

#define SIM_CALM_FROM_US 50
#define SIM_CALM_TO_US 300
#define SIM_UNNOTICED_US 8000000 /* time for which a node keeps a connection whose client is gone */
#define SIM_AFTER_PARTITION_US 400 /* until TCP notices that it is over, at most */

/* ------------------------------------------------------------------------------------- streams */

void sim_stream_compact(sim_stream *stream) {
  if (stream->head == stream->tail) {
    stream->head = stream->arrived = stream->tail = 0;
  }
}

static void sim_stream_add(sim_stream *stream, const void *bytes, size_t length) {
  if (stream->tail + length > stream->capacity && stream->head > 0) {
    memmove(stream->bytes, stream->bytes + stream->head, stream->tail - stream->head);
    stream->arrived -= stream->head;
    stream->tail -= stream->head;
    stream->head = 0;
  }
  if (stream->tail + length > stream->capacity) {
    stream->capacity = (stream->tail + length) * 2 + 1024;
    stream->bytes = realloc(stream->bytes, stream->capacity);
    if (stream->bytes == NULL) {
      abort();
    }
  }
  memcpy(stream->bytes + stream->tail, bytes, length);
  stream->tail += length;
  stream->written += length;
}

static void sim_stream_reset(sim_stream *stream) {
  unsigned char *bytes = stream->bytes;
  size_t capacity = stream->capacity;
  memset(stream, 0, sizeof *stream);
  stream->bytes = bytes;
  stream->capacity = capacity;
}

/* -------------------------------------------------------------------------------------- delays */

/* A delay near one at which something changes: that is where rare mistakes live. */
uint64_t sim_network_boundary(sim *s, sim_random *random) {
  const sim_config *config = &s->config;
  uint64_t ttl_us = config->ttl_us[sim_below(random, 2)];
  uint64_t drift_us = rl_validity_drift(ttl_us, config->drift_factor);
  uint64_t around_us = sim_below(random, 10000);
  uint64_t delay_us;
  switch (sim_below(random, 7)) {
  case 0:
    delay_us = ttl_us / 2;
    break;
  case 1:
  case 2:
    delay_us = ttl_us > drift_us ? ttl_us - drift_us : ttl_us;
    break;
  case 3:
    delay_us = ttl_us + config->lock_delay_us;
    around_us = sim_below(random, 6000) + 2000;
    break;
  case 4:
    delay_us = config->node_timeout_us != 0 ? config->node_timeout_us : ttl_us / 10;
    around_us = sim_below(random, 4000) + 3000;
    break;
  case 5:
    delay_us = ttl_us + sim_below(random, ttl_us);
    break;
  default:
    delay_us = sim_below(random, 2 * ttl_us);
    break;
  }
  /* Both directions may share it. */
  delay_us = sim_below(random, 3) == 0 ? delay_us / 2 : delay_us;
  return delay_us + around_us > 5000 ? delay_us + around_us - 5000 : 1;
}

static uint64_t sim_network_delay(sim *s, const sim_connection *connection) {
  const sim_link *link = &s->links[connection->client][connection->node];
  sim_random *random = &s->random_network;
  if (s->phase != SIM_PHASE_SAFETY) {
    return sim_between(random, SIM_CALM_FROM_US, SIM_CALM_TO_US);
  }
  uint64_t delay_us = sim_between(random, s->config.delay_from_us, s->config.delay_to_us);
  if (s->now_us < link->slow_until_us) {
    delay_us += link->slow_us;
  }
  if (sim_chance(random, s->config.tail)) {
    sim_count(s, SIM_INJECTED_TAIL_DELAY);
    delay_us = sim_network_boundary(s, random);
  }
  return delay_us;
}

/* Puts |length| bytes of a stream on the way, in one piece or several. */
static void sim_network_send(sim *s, int index, sim_stream *stream, size_t length,
                             sim_event_kind kind) {
  sim_connection *connection = &s->connections[index];
  unsigned pieces = 1;
  if (length > 1 && sim_chance(&s->random_network, s->config.pieces)) {
    pieces = (unsigned)sim_between(&s->random_network, 2, 4);
    sim_count(s, SIM_INJECTED_PIECES);
  }
  while (length > 0) {
    size_t piece = --pieces == 0 || length == 1
                       ? length
                       : (size_t)sim_between(&s->random_network, 1, length - 1);
    uint64_t at_us = s->now_us + sim_network_delay(s, connection);
    stream->last_us = at_us > stream->last_us ? at_us : stream->last_us;
    connection->events++;
    sim_queue_add(s, stream->last_us, kind, (unsigned)index, (uint32_t)piece, 0);
    length -= piece;
  }
}

/* --------------------------------------------------------------------------------- connections */

int sim_network_connect(sim *s, unsigned client, unsigned node, unsigned socket) {
  for (int i = 0; i < SIM_CONNECTIONS_MAX; i++) {
    sim_connection *connection = &s->connections[i];
    if (connection->used) {
      continue;
    }
    sim_stream to_node = connection->to_node, to_client = connection->to_client;
    sim_notes notes = connection->notes;
    memset(connection, 0, sizeof *connection);
    connection->to_node = to_node;
    connection->to_client = to_client;
    connection->notes = notes;
    connection->notes.head = connection->notes.tail = 0;
    sim_stream_reset(&connection->to_node);
    sim_stream_reset(&connection->to_client);
    connection->used = true;
    connection->client_open = true;
    connection->client = (uint8_t)client;
    connection->node = (uint8_t)sim_config_server(&s->config, node);
    connection->socket = (uint8_t)socket;
    connection->events = 1;
    uint64_t delay_us = sim_network_delay(s, connection) + sim_network_delay(s, connection);
    sim_queue_add(s, s->now_us + delay_us, SIM_EVENT_CONNECTED, (unsigned)i, 0, 0);
    return i;
  }
  return SIM_NO_CONNECTION;
}

void sim_network_release(sim *s, int index) {
  sim_connection *connection = &s->connections[index];
  if (connection->used && !connection->client_open && connection->events == 0 &&
      (!connection->node_open || connection->to_node.head == connection->to_node.arrived)) {
    connection->used = false;
  }
}

/*
 * The node of a subscriber learns that the client is gone, mostly soon. Until then it counts the
 * connection as a subscriber.
 */
static void sim_network_leave(sim *s, int index) {
  sim_connection *connection = &s->connections[index];
  if (!connection->subscribed || !connection->node_open) {
    return;
  }
  bool calm = s->phase != SIM_PHASE_SAFETY;
  uint64_t drawn = sim_below(&s->random_calls, 8);
  uint64_t in_us = drawn > 1 || calm ? sim_network_delay(s, connection)
                   : drawn == 1      ? sim_network_boundary(s, &s->random_calls)
                                     : SIM_UNNOTICED_US;
  connection->events++;
  sim_queue_add(s, s->now_us + in_us, SIM_EVENT_GONE, (unsigned)index, 0, 0);
}

void sim_network_close(sim *s, int index) {
  if (s->connections[index].client_open) {
    sim_network_leave(s, index);
  }
  s->connections[index].client_open = false;
  sim_network_release(s, index);
}

void sim_network_detain(sim *s, int index, uint64_t for_us) {
  sim_stream *stream = &s->connections[index].to_client;
  uint64_t until_us = s->now_us + for_us;
  stream->last_us = until_us > stream->last_us ? until_us : stream->last_us;
}

size_t sim_network_readable(const sim *s, int index) {
  const sim_stream *stream = &s->connections[index].to_client;
  return stream->arrived - stream->head;
}

void sim_network_request(sim *s, int index, const void *bytes, size_t length) {
  sim_connection *connection = &s->connections[index];
  sim_stream_add(&connection->to_node, bytes, length);
  sim_network_send(s, index, &connection->to_node, length, SIM_EVENT_TO_NODE);
}

void sim_network_reply(sim *s, int index, const void *bytes, size_t length, const sim_note *note) {
  sim_connection *connection = &s->connections[index];
  sim_notes *notes = &connection->notes;
  if (!connection->client_open || connection->replies_lost || connection->black_hole ||
      connection->mute) {
    return;
  }
  sim_stream_add(&connection->to_client, bytes, length);
  if (notes->head == notes->tail) {
    notes->head = notes->tail = 0;
  }
  notes->notes = grow(notes->notes, sizeof *note, notes->tail, &notes->capacity);
  notes->notes[notes->tail] = *note;
  notes->notes[notes->tail++].end = connection->to_client.written;
  sim_network_send(s, index, &connection->to_client, length, SIM_EVENT_TO_CLIENT);
}

static void sim_network_reset(sim *s, int index) {
  sim_connection *connection = &s->connections[index];
  if (connection->client_open) {
    connection->events++;
    sim_queue_add(s, s->now_us + sim_network_delay(s, connection), SIM_EVENT_RESET, (unsigned)index,
                  0, 0);
  }
}

void sim_network_break(sim *s, int index, unsigned how) {
  sim_connection *connection = &s->connections[index];
  connection->replies_lost = true;
  switch (how) {
  case 0:
    sim_count(s, SIM_INJECTED_BREAK_LOST);
    connection->node_open = false;
    break;
  case 1:
    sim_count(s, SIM_INJECTED_BREAK_EXECUTED);
    break;
  default:
    sim_count(s, SIM_INJECTED_BREAK_LATER);
    connection->hold_us = s->now_us + sim_network_boundary(s, &s->random_network);
    break;
  }
  sim_network_reset(s, index);
}

void sim_network_node_died(sim *s, unsigned node, bool silent) {
  for (int i = 0; i < SIM_CONNECTIONS_MAX; i++) {
    sim_connection *connection = &s->connections[i];
    if (connection->used && connection->node == node && connection->node_open) {
      connection->node_open = false;
      if (!silent) {
        sim_network_reset(s, i);
      }
      sim_network_release(s, i);
    }
  }
}

/* -------------------------------------------------------------------------------------- events */

/* Not yet: again at |until_us|. */
static bool sim_network_later(sim *s, const sim_event *event, uint64_t until_us) {
  if (s->now_us >= until_us) {
    return false;
  }
  s->connections[event->subject].events++;
  sim_queue_add(s, until_us + sim_below(&s->random_network, SIM_AFTER_PARTITION_US),
                (sim_event_kind)event->kind, event->subject, event->length, 0);
  return true;
}

static void sim_network_to_node(sim *s, int index, const sim_event *event) {
  sim_connection *connection = &s->connections[index];
  const sim_link *link = &s->links[connection->client][connection->node];
  uint64_t until_us = link->requests_blocked_us > connection->hold_us ? link->requests_blocked_us
                                                                      : connection->hold_us;
  if (connection->black_hole || sim_network_later(s, event, until_us)) {
    return;
  }
  if (!connection->node_open) {
    if (s->nodes[connection->node].up) {
      sim_network_reset(s, index);
    }
    return;
  }
  connection->to_node.arrived += event->length;
  sim_node_input(s, index);
}

static void sim_network_connected(sim *s, int index, const sim_event *event) {
  sim_connection *connection = &s->connections[index];
  const sim_link *link = &s->links[connection->client][connection->node];
  sim_socket *socket = &s->clients[connection->client].sockets[connection->socket];
  sim_node *node = &s->nodes[connection->node];
  uint64_t until_us = link->requests_blocked_us > link->replies_blocked_us
                          ? link->requests_blocked_us
                          : link->replies_blocked_us;
  if (!connection->client_open || sim_network_later(s, event, until_us)) {
    return;
  }
  if (!node->up) {
    if (sim_below(&s->random_network, 4) != 0) { /* else the machine itself is away */
      socket->refused = true;
      sim_count(s, SIM_CONNECTION_REFUSED);
      sim_client_hear(s, connection->client);
    }
    return;
  }
  connection->node_open = true;
  connection->epoch = node->epoch;
  socket->connected = true;
  sim_client_hear(s, connection->client);
}

void sim_network_event(sim *s, const sim_event *event) {
  int index = event->subject;
  sim_connection *connection = &s->connections[index];
  connection->events--;
  switch ((sim_event_kind)event->kind) {
  case SIM_EVENT_TO_NODE:
    sim_network_to_node(s, index, event);
    break;
  case SIM_EVENT_TO_CLIENT:
    if (connection->client_open && !connection->black_hole && !connection->mute &&
        !connection->replies_lost &&
        !sim_network_later(s, event,
                           s->links[connection->client][connection->node].replies_blocked_us)) {
      connection->to_client.arrived += event->length;
      sim_client_hear(s, connection->client);
    }
    break;
  case SIM_EVENT_EXECUTE:
    connection->executing = false;
    sim_node_input(s, index);
    break;
  case SIM_EVENT_CONNECTED:
    sim_network_connected(s, index, event);
    break;
  case SIM_EVENT_GONE:
    connection->node_open = false;
    break;
  default:
    if (connection->client_open) {
      s->clients[connection->client].sockets[connection->socket].reset = true;
      sim_count(s, SIM_CONNECTION_RESET);
      sim_client_hear(s, connection->client);
    }
    break;
  }
  sim_network_release(s, index);
}
