/*
 * The clients of the load: each is the real core with one lock, and what its user does with it.
 *
 * SPDX-License-Identifier: MIT
 */
#include "load.h"

#include <math.h>

#define LOAD_TURNS_MAX 64

static void client_arm(load *c, load_client *client, redlock_time at_us) {
  if (at_us < client->armed_us) {
    client->armed_us = rl_time_max(at_us, c->now_us);
    load_push(c, client->armed_us, &client->wake);
  }
}

void client_start(load *c, load_client *client, redlock_duration pause_us) {
  const char *name = c->keys[client->key].name;
  rl_address address;
  client->state = LOAD_PAUSES;
  client->due_us = c->now_us + pause_us;
  client->armed_us = REDLOCK_NEVER;
  client->life = ++c->lives;
  client->judged = 0;
  if (rl_core_init(&client->core, NULL, 0) != REDLOCK_OK ||
      (c->notifies && rl_notify_open(&client->core) != REDLOCK_OK)) {
    bench_die("load: no core");
  }
  client->core.options = c->lock_options;
  for (unsigned n = 0; n < LOAD_NODES; n++) {
    memset(&address, 0, sizeof address);
    (void)snprintf(address.host, sizeof address.host, "10.0.0.%u", n);
    (void)snprintf(address.name, sizeof address.name, "10.0.0.%u", n);
    if (rl_core_add(&client->core, &address) != REDLOCK_OK) {
      bench_die("load: no node");
    }
  }
  client->lock = rl_lock_new(&client->core, name, strlen(name), &client->core.options);
  if (client->lock == NULL) {
    bench_die("load: no lock");
  }
  client_arm(c, client, client->due_us);
}

/* Ends the client. Unsent bytes are never sent. */
void client_end(load *c, load_client *client) {
  if (client->state == LOAD_DEAD) {
    return;
  }
  client->state = LOAD_DEAD;
  rl_lock_free(client->lock, c->now_us);
  rl_core_free(&client->core);
  for (unsigned n = 0; n < LOAD_CONNECTIONS; n++) {
    load_hang_up(c, client, n);
  }
}

static void client_die(load *c, load_client *client) {
  double replaced_s = c->options->replaced_s;
  c->died++;
  load_freed(c, client, LOAD_NOWHERE, load_frees_itself(c, client));
  client_end(c, client);
  client->armed_us = REDLOCK_NEVER;
  client->due_us = replaced_s == 0 ? REDLOCK_NEVER : c->now_us + load_ms(replaced_s * 1000);
  client_arm(c, client, client->due_us);
}

static void client_want(load *c, load_client *client) {
  client->state = LOAD_WAITS;
  client->wanted_us = c->now_us;
  client->due_us = REDLOCK_NEVER;
  c->keys[client->key].waiting++;
  (void)rl_lock_acquire(client->lock, c->now_us, NULL, true);
}

static void client_release(load *c, load_client *client) {
  client->state = LOAD_RELEASES;
  client->due_us = REDLOCK_NEVER;
  load_freed(c, client, client->region, c->now_us);
  (void)rl_lock_release(client->lock, c->now_us, true);
}

/* Runs the client at its due time. */
static void client_act(load *c, load_client *client) {
  if (client->due_us > c->now_us) {
    return;
  }
  if (client->state == LOAD_PAUSES) {
    client_want(c, client);
  } else if (client->state == LOAD_HOLDS && client->dies) {
    client_die(c, client);
  } else if (client->state == LOAD_HOLDS) {
    client_release(c, client);
  }
}

/* Its acquire or its release has ended. */
static void client_ended(load *c, load_client *client) {
  bool waited = client->state == LOAD_WAITS;
  bool granted = waited && rl_lock_outcome(client->lock, c->now_us) == REDLOCK_OK;
  redlock_duration next_us = load_ms(granted ? c->options->hold_ms : c->options->pause_ms);
  if (waited) {
    c->keys[client->key].waiting--;
    c->longest_us = rl_time_max(c->longest_us, c->now_us - client->wanted_us);
    c->gave_up += !granted;
  }
  if (granted) {
    load_granted(c, client);
    client->dies = sim_chance(&c->deaths, (unsigned)lround(c->options->deaths * 100));
    next_us = client->dies ? sim_below(&c->deaths, next_us + 1) : next_us;
  }
  client->state = granted ? LOAD_HOLDS : LOAD_PAUSES;
  client->due_us = c->now_us + next_us;
}

static void client_connect(load *c, load_client *client) {
  for (unsigned n = 0; n < rl_core_connection_count(&client->core); n++) {
    rl_connection wanted = rl_core_wanted_connection(&client->core, n, c->now_us);
    if (wanted != RL_CONNECTION_OPEN && client->connections[n].open) {
      load_hang_up(c, client, n);
    }
    if (wanted == RL_CONNECTION_WANTED) {
      rl_core_connecting(&client->core, n, c->now_us);
      load_connect(c, client, n);
    }
  }
}

static void client_begin(load *c, load_client *client) {
  unsigned char entropy[RL_LOCK_ENTROPY];
  size_t wanted = rl_core_entropy_wanted(&client->core);
  if (!rl_core_wants_send(&client->core)) {
    return;
  }
  if (wanted > sizeof entropy) {
    bench_die("load: one lock wants entropy for several");
  }
  for (size_t at = 0; at < wanted; at += sizeof(uint64_t)) {
    uint64_t drawn = sim_random_next(&c->entropy);
    memcpy(entropy + at, &drawn, wanted - at < sizeof drawn ? wanted - at : sizeof drawn);
  }
  rl_core_send(&client->core, c->now_us, entropy, wanted);
}

static void client_send(load *c, load_client *client) {
  for (unsigned n = 0; n < rl_core_connection_count(&client->core); n++) {
    size_t length;
    const void *bytes = rl_core_output(&client->core, n, &length);
    if (bytes != NULL) {
      load_send(c, LOAD_COMMANDS, client, n, bytes, length);
      rl_core_output_sent(&client->core, n, length);
    }
  }
}

/* The steps of rl_core.h, until there is nothing left to do at this moment. */
void client_turn(load *c, load_client *client) {
  redlock_time next_us = 0;
  for (unsigned turn = 0; next_us <= c->now_us; turn++) {
    if (turn == LOAD_TURNS_MAX) {
      bench_die("load: a client does not come to rest");
    }
    rl_core_advance(&client->core, c->now_us);
    client_connect(c, client);
    client_act(c, client);
    if (client->state == LOAD_DEAD) {
      return;
    }
    client_begin(c, client);
    client_send(c, client);
    load_judge(c, client);
    next_us = rl_time_min(client->due_us, rl_core_deadline(&client->core));
    if (rl_core_next_ended(&client->core) != NULL) {
      client_ended(c, client);
      next_us = c->now_us; /* A grant that came too late is released at once. */
    }
  }
  client_arm(c, client, next_us);
}

static void client_queue(load *c, load_client *client) {
  if (!client->queued) {
    client->queued = true;
    c->queued[c->queued_count++] = client;
  }
}

/* Something arrives on a connection. */
void client_hear(load *c, const load_event *event) {
  load_client *client = &c->clients[event->client];
  if (client->connections[event->end].number != event->connection) {
    return;
  }
  if (event->kind == LOAD_CONNECTED) {
    rl_core_connected(&client->core, event->end, c->now_us);
  } else {
    rl_core_input(&client->core, event->end, c->now_us, event + 1, event->length);
  }
  client_queue(c, client);
}

void client_wake(load *c, load_client *client) {
  if (client->armed_us != c->now_us) {
    return; /* An earlier event has replaced it. */
  }
  client->armed_us = REDLOCK_NEVER;
  if (client->state != LOAD_DEAD) {
    client_queue(c, client);
  } else if (client->due_us <= c->now_us) {
    client_start(c, client, load_ms(c->options->pause_ms));
  }
}
