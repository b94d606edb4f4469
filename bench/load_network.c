/*
 * The network of the load: what comes at which moment, and how long the ways are.
 *
 * SPDX-License-Identifier: MIT
 */
#include "load.h"

#include <math.h>

#define LOAD_AGAIN_US (200 * REDLOCK_MILLISECONDS)

const unsigned load_node_regions[LOAD_NODES] = {0, 0, 1, 1, 2};
const redlock_duration load_ways_us[LOAD_REGIONS][LOAD_REGIONS] = {
    {500, 15000, 40000}, {15000, 500, 40000}, {40000, 40000, 500}};

/* --------------------------------------------------------------------------------------- events */

static bool load_before(const load_entry *one, const load_entry *other) {
  return one->at_us < other->at_us || (one->at_us == other->at_us && one->order < other->order);
}

void load_push(load *c, redlock_time at_us, load_event *event) {
  load_entry entry = {at_us, c->orders++, event};
  if (c->heap_count == c->heap_capacity) {
    c->heap_capacity = c->heap_capacity == 0 ? 1024 : 2 * c->heap_capacity;
    c->heap = realloc(c->heap, c->heap_capacity * sizeof *c->heap);
    if (c->heap == NULL) {
      bench_die("load: no memory");
    }
  }
  size_t at = c->heap_count++;
  while (at > 0 && load_before(&entry, &c->heap[(at - 1) / 2])) {
    c->heap[at] = c->heap[(at - 1) / 2];
    at = (at - 1) / 2;
  }
  c->heap[at] = entry;
}

load_entry load_pop(load *c) {
  load_entry first = c->heap[0], last = c->heap[--c->heap_count];
  size_t at = 0, child;
  while ((child = 2 * at + 1) < c->heap_count) {
    child += child + 1 < c->heap_count && load_before(&c->heap[child + 1], &c->heap[child]);
    if (!load_before(&c->heap[child], &last)) {
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
static redlock_time load_arrival(load *c, unsigned from, unsigned to, redlock_time sent_us) {
  unsigned cut = (unsigned)c->options->cut_region;
  bool crosses = from != to && (from == cut || to == cut);
  if (crosses && sent_us >= c->cut_from_us && sent_us < c->cut_to_us) {
    sent_us = c->cut_to_us + sim_below(&c->network, LOAD_AGAIN_US);
  }
  redlock_time at_us = sent_us + load_ways_us[from][to];
  if (sim_chance(&c->network, (unsigned)lround(c->options->late * 100))) {
    at_us += load_ms(c->options->late_ms);
  }
  return at_us;
}

void load_send(load *c, load_kind kind, load_client *client, unsigned end, const void *bytes,
               size_t length) {
  load_connection *connection = &client->connections[end];
  bool there = kind == LOAD_COMMANDS || kind == LOAD_HUNG_UP;
  unsigned region = load_node_regions[end % LOAD_NODES];
  redlock_time *last_us = there ? &connection->there_us : &connection->back_us;
  load_event *event = malloc(sizeof *event + length);
  if (event == NULL) {
    bench_die("load: no memory");
  }
  *event = (load_event){kind, client->wake.client, end, connection->number, (uint32_t)length};
  if (length > 0) {
    memcpy(event + 1, bytes, length);
  }
  redlock_time at_us =
      load_arrival(c, there ? client->region : region, there ? region : client->region, c->now_us);
  *last_us = rl_time_max(*last_us, at_us);
  load_push(c, *last_us, event);
}

/* The first packet goes there and back before anything else can be sent. */
void load_connect(load *c, load_client *client, unsigned end) {
  load_connection *connection = &client->connections[end];
  unsigned region = load_node_regions[end % LOAD_NODES];
  load_event *event = load_allocate(1, sizeof *event);
  connection->number++;
  connection->open = true;
  *event = (load_event){LOAD_CONNECTED, client->wake.client, end, connection->number, 0};
  connection->there_us = load_arrival(c, client->region, region, c->now_us);
  connection->back_us = load_arrival(c, region, client->region, connection->there_us);
  load_push(c, connection->back_us, event);
}

void load_hang_up(load *c, load_client *client, unsigned end) {
  if (end >= LOAD_NODES && client->connections[end].open) {
    load_send(c, LOAD_HUNG_UP, client, end, NULL, 0); /* Nodes only track subscribers. */
  }
  client->connections[end].number++;
  client->connections[end].open = false;
}
