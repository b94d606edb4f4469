/*
 * The network of the crowd: what comes at which moment, and how long the ways are.
 *
 * SPDX-License-Identifier: MIT
 */
#include "crowd.h"

#include <math.h>

#define CROWD_AGAIN_US (200 * REDLOCK_MILLISECONDS)

const unsigned crowd_node_regions[CROWD_NODES] = {0, 0, 1, 1, 2};
const redlock_duration crowd_ways_us[CROWD_REGIONS][CROWD_REGIONS] = {
    {500, 15000, 40000}, {15000, 500, 40000}, {40000, 40000, 500}};

/* --------------------------------------------------------------------------------------- events */

static bool crowd_before(const crowd_entry *one, const crowd_entry *other) {
  return one->at_us < other->at_us || (one->at_us == other->at_us && one->order < other->order);
}

void crowd_push(crowd *c, redlock_time at_us, crowd_event *event) {
  crowd_entry entry = {at_us, c->orders++, event};
  if (c->heap_count == c->heap_capacity) {
    c->heap_capacity = c->heap_capacity == 0 ? 1024 : 2 * c->heap_capacity;
    c->heap = realloc(c->heap, c->heap_capacity * sizeof *c->heap);
    if (c->heap == NULL) {
      bench_die("crowd: no memory");
    }
  }
  size_t at = c->heap_count++;
  while (at > 0 && crowd_before(&entry, &c->heap[(at - 1) / 2])) {
    c->heap[at] = c->heap[(at - 1) / 2];
    at = (at - 1) / 2;
  }
  c->heap[at] = entry;
}

crowd_entry crowd_pop(crowd *c) {
  crowd_entry first = c->heap[0], last = c->heap[--c->heap_count];
  size_t at = 0, child;
  while ((child = 2 * at + 1) < c->heap_count) {
    child += child + 1 < c->heap_count && crowd_before(&c->heap[child + 1], &c->heap[child]);
    if (!crowd_before(&c->heap[child], &last)) {
      break;
    }
    c->heap[at] = c->heap[child];
    at = child;
  }
  c->heap[at] = last;
  return first;
}

/* ----------------------------------------------------------------------------------------- ways */

/* When what is sent at |sent_us| arrives. */
static redlock_time crowd_arrival(crowd *c, unsigned from, unsigned to, redlock_time sent_us) {
  unsigned cut = (unsigned)c->options->cut_region;
  bool crosses = from != to && (from == cut || to == cut);
  if (crosses && sent_us >= c->cut_from_us && sent_us < c->cut_to_us) {
    sent_us = c->cut_to_us + sim_below(&c->network, CROWD_AGAIN_US);
  }
  redlock_time at_us = sent_us + crowd_ways_us[from][to];
  if (sim_chance(&c->network, (unsigned)lround(c->options->late * 100))) {
    at_us += crowd_ms(c->options->late_ms);
  }
  return at_us;
}

void crowd_send(crowd *c, crowd_kind kind, crowd_client *client, unsigned end, const void *bytes,
                size_t length) {
  crowd_connection *connection = &client->connections[end];
  bool there = kind == CROWD_COMMANDS || kind == CROWD_HUNG_UP;
  unsigned region = crowd_node_regions[end % CROWD_NODES];
  redlock_time *last_us = there ? &connection->there_us : &connection->back_us;
  crowd_event *event = malloc(sizeof *event + length);
  if (event == NULL) {
    bench_die("crowd: no memory");
  }
  *event = (crowd_event){kind, client->wake.client, end, connection->number, (uint32_t)length};
  if (length > 0) {
    memcpy(event + 1, bytes, length);
  }
  redlock_time at_us =
      crowd_arrival(c, there ? client->region : region, there ? region : client->region, c->now_us);
  *last_us = rl_time_max(*last_us, at_us);
  crowd_push(c, *last_us, event);
}

/* The first packet goes there and back before anything else can be sent. */
void crowd_connect(crowd *c, crowd_client *client, unsigned end) {
  crowd_connection *connection = &client->connections[end];
  unsigned region = crowd_node_regions[end % CROWD_NODES];
  crowd_event *event = crowd_allocate(1, sizeof *event);
  connection->number++;
  connection->open = true;
  *event = (crowd_event){CROWD_CONNECTED, client->wake.client, end, connection->number, 0};
  connection->there_us = crowd_arrival(c, client->region, region, c->now_us);
  connection->back_us = crowd_arrival(c, region, client->region, connection->there_us);
  crowd_push(c, connection->back_us, event);
}

void crowd_hang_up(crowd *c, crowd_client *client, unsigned end) {
  if (end >= CROWD_NODES && client->connections[end].open) {
    crowd_send(c, CROWD_HUNG_UP, client, end, NULL, 0); /* The others the nodes need not forget. */
  }
  client->connections[end].number++;
  client->connections[end].open = false;
}
