/*
 * Cores, clocks, nodes and connections.
 *
 * SPDX-License-Identifier: MIT
 */
#include <assert.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "replay.h"

static const char REPLAY_KEY[] = "k";

/* -------------------------------------------------------------------------------------- clocks */

redlock_time replay_now(const replay_client *client) {
  return client->ticks * REPLAY_TICK_US + client->past_us;
}

redlock_time replay_node_now(const replay *run) {
  return run->ticks * REPLAY_TICK_US;
}

char replay_letter(const replay *run, const replay_client *client) {
  return client == &run->clients[0] ? 'A' : 'B';
}

void replay_differ(replay *run, const char *format, ...) {
  va_list arguments;
  if (run->differs) {
    return;
  }
  run->differs = true;
  va_start(arguments, format);
  (void)vsnprintf(run->difference, sizeof run->difference, format, arguments);
  va_end(arguments);
}

void replay_wait(replay *run, replay_client *client, redlock_time until_us) {
  if (until_us > replay_now(client)) {
    client->past_us = until_us - client->ticks * REPLAY_TICK_US;
  }
  if (client->past_us >= REPLAY_TICK_US / 4) {
    replay_differ(run, "%c waits for more than a quarter of a tick", replay_letter(run, client));
  }
}

/* ------------------------------------------------------------------------------------ lifetime */

redlock_options replay_options(const replay *run, unsigned retries) {
  redlock_options options = {0};
  double ttl_us = (double)(run->config->ttl * REPLAY_TICK_US);
  double drift_us =
      (double)(run->config->drift * REPLAY_TICK_US + REPLAY_TICK_US / 2 - 2 * REDLOCK_MILLISECONDS);
  options.ttl_us = run->config->ttl * REPLAY_TICK_US;
  options.drift_factor = drift_us / ttl_us;
  options.node_timeout_us = options.ttl_us - REPLAY_TICK_US / 4;
  options.retry_count = retries == 0 ? REDLOCK_RETRIES_NONE : (int)retries;
  options.retry_delay_us = REDLOCK_MILLISECONDS;
  options.retry_jitter_us = REDLOCK_DURATION_NONE;
  return options;
}

static void replay_must(bool ok) {
  if (!ok) {
    (void)fprintf(stderr, "model_replay: out of memory\n");
    abort();
  }
}

static void replay_open_client(replay *run, unsigned index) {
  replay_client *client = &run->clients[index];
  redlock_options given = replay_options(run, 0);
  rl_options options;
  rl_options_default(&options);
  replay_must(rl_options_read(&options, &given) == NULL);
  client->nodes = model_list_length(run->config, index);
  client->ticks = run->ticks;
  replay_must(rl_core_init(&client->core, NULL, 0) == REDLOCK_OK);
  for (unsigned i = 0; i < client->nodes; i++) {
    redlock_settings settings = {0};
    redlock_node node;
    rl_address address;
    memset(&node, 0, sizeof node);
    node.address = "10.0.0.1";
    replay_must(rl_address_read(&address, &node, &settings, NULL, 0) == REDLOCK_OK &&
                rl_core_add(&client->core, &address) == REDLOCK_OK);
  }
  client->lock = rl_lock_new(&client->core, REPLAY_KEY, strlen(REPLAY_KEY), &options);
  replay_must(client->lock != NULL);
  replay_settle(run, client);
}

void replay_open(replay *run, const model_config *config, const replay_plan *plan) {
  memset(run, 0, sizeof *run);
  run->config = config;
  run->plan = plan;
  run->ticks = REPLAY_FIRST_TICK;
  for (unsigned i = 0; i < MODEL_CLIENTS; i++) {
    replay_open_client(run, i);
  }
}

void replay_close(replay *run) {
  for (unsigned i = 0; i < MODEL_CLIENTS; i++) {
    replay_client *client = &run->clients[i];
    rl_lock_free(client->lock, replay_now(client));
    rl_core_free(&client->core);
  }
}

/* --------------------------------------------------------------------------------- connections */

static unsigned replay_sent_before(const replay_link *link, replay_kind kind, unsigned attempt) {
  unsigned count = 0;
  for (unsigned i = 0; i < link->count; i++) {
    count += link->requests[i].kind == kind && link->requests[i].attempt == attempt;
  }
  return count;
}

/* What the attempt's number is; with a token for several, the latest that has begun. */
static unsigned replay_attempt_of(const replay *run, const replay_client *client,
                                  const char *token) {
  unsigned number = (unsigned)strtoul((const char[]){token[0], token[1], '\0'}, NULL, 16);
  return run->config->token_reused ? client->attempt : number - 1;
}

/*
 * A key that joins lives for what is left, of a clock that is up to a quarter of a tick past it: to
 * whole ticks, as the model counts. False when it is no such time.
 */
static bool replay_round(const replay *run, fake_command *command) {
  const uint64_t tick_ms = REPLAY_TICK_US / REDLOCK_MILLISECONDS;
  uint64_t rounded_ms = (command->ttl_ms + tick_ms / 2) / tick_ms * tick_ms;
  uint64_t off_ms =
      rounded_ms > command->ttl_ms ? rounded_ms - command->ttl_ms : command->ttl_ms - rounded_ms;
  command->ttl_ms = rounded_ms;
  return off_ms < tick_ms / 4 && rounded_ms > 0 && rounded_ms <= run->config->ttl * tick_ms;
}

static void replay_receive(replay *run, replay_client *client, unsigned node,
                           const fake_command *command) {
  replay_link *link = &client->links[node];
  uint64_t ttl_ms = run->config->ttl * (REPLAY_TICK_US / REDLOCK_MILLISECONDS);
  if (link->count == REPLAY_REQUESTS_MAX) {
    replay_differ(run, "too many requests");
    return;
  }
  replay_request *request = &link->requests[link->count];
  request->attempt = replay_attempt_of(run, client, command->token);
  if (request->attempt >= MODEL_ATTEMPTS_MAX ||
      replay_sent_before(link, REPLAY_EXTEND, request->attempt) == REPLAY_ORDINALS ||
      replay_sent_before(link, REPLAY_HEAL, request->attempt) == REPLAY_ORDINALS ||
      strcmp(command->key, REPLAY_KEY) != 0 ||
      (command->verb == FAKE_EXTEND && command->ttl_ms != ttl_ms)) {
    replay_differ(run, "%c sends a command too many, or with another key, token or ttl",
                  replay_letter(run, client));
    return;
  }
  request->kind = command->verb == FAKE_EXTEND                                  ? REPLAY_EXTEND
                  : command->verb == FAKE_RELEASE                               ? REPLAY_RELEASE
                  : replay_sent_before(link, REPLAY_SET, request->attempt) == 0 ? REPLAY_SET
                                                                                : REPLAY_HEAL;
  request->ordinal = request->kind == REPLAY_RELEASE
                         ? 0
                         : replay_sent_before(link, request->kind, request->attempt);
  request->connection = link->connection;
  request->progress = link->dead ? REPLAY_GONE : REPLAY_SENT;
  request->command = *command;
  if (command->verb == FAKE_SET && !replay_round(run, &request->command)) {
    replay_differ(run, "%c sets a key for a wrong time", replay_letter(run, client));
  }
  if (command->verb != FAKE_RELEASE) {
    uint64_t life = request->command.ttl_ms * REDLOCK_MILLISECONDS / REPLAY_TICK_US;
    uint64_t gone_tenths = 10 * client->ticks + 11 * life;
    client->gone_tenths = gone_tenths > client->gone_tenths ? gone_tenths : client->gone_tenths;
  }
  link->count++;
}

/* Takes what the core has written to the node. The handshake is answered at once. */
static void replay_flush(replay *run, replay_client *client, unsigned node) {
  size_t length;
  const char *bytes;
  while ((bytes = rl_core_output(&client->core, node, &length)) != NULL) {
    fake_command command;
    long used = fake_command_parse(&command, bytes, length);
    if (used <= 0) {
      replay_differ(run, "%c sends something that is no command", replay_letter(run, client));
      return;
    }
    rl_core_output_sent(&client->core, node, (size_t)used);
    if (command.verb < FAKE_SET) {
      rl_core_input(&client->core, node, replay_now(client), "+OK\r\n", 5);
    } else {
      replay_receive(run, client, node, &command);
    }
  }
}

static void replay_connected(replay *run, replay_client *client, unsigned node) {
  replay_link *link = &client->links[node];
  link->hanging = false;
  link->dead = false;
  rl_core_connected(&client->core, node, replay_now(client));
  replay_flush(run, client, node);
}

static void replay_connecting(replay *run, replay_client *client, unsigned node) {
  client->links[node].connection++;
  replay_wait(run, client, client->core.nodes[node]->connect_at_us);
  rl_core_connecting(&client->core, node, replay_now(client));
}

void replay_hang(replay *run, replay_client *client, unsigned node) {
  replay_break(run, client, node);
  replay_connecting(run, client, node);
  client->links[node].hanging = true;
}

void replay_join(replay *run, replay_client *client, unsigned node) {
  if (client->links[node].hanging) {
    run->events[REPLAY_EVENT_JOINED]++;
    replay_connected(run, client, node);
  }
}

void replay_break(replay *run, replay_client *client, unsigned node) {
  if (client->core.nodes[node]->link.phase != RL_LINK_DOWN) {
    run->events[REPLAY_EVENT_BREAKS]++;
    rl_core_disconnected(&client->core, node, replay_now(client), "Connection reset by peer");
  }
}

/* Whether nothing is lost with the connection that the model still counts on. */
static bool replay_may_break(const replay_client *client, unsigned node) {
  const rl_lock *lock = client->lock;
  return lock->phase != RL_PHASE_ROUND || lock->operation == RL_OPERATION_RELEASE ||
         lock->votes[node].settled;
}

void replay_settle(replay *run, replay_client *client) {
  rl_core_rest(&client->core, replay_now(client)); /* The model's releases wait for no answers. */
  for (unsigned i = 0; i < client->nodes; i++) {
    if (client->links[i].dead && replay_may_break(client, i)) {
      replay_break(run, client, i);
    }
    if (client->core.nodes[i]->link.phase == RL_LINK_DOWN) {
      replay_connecting(run, client, i);
      replay_connected(run, client, i);
    } else if (!client->links[i].hanging) {
      replay_flush(run, client, i);
    }
  }
}

void replay_break_for(replay *run, replay_client *client, replay_kind kind, unsigned attempt,
                      unsigned ordinal) {
  for (unsigned i = 0; i < client->nodes; i++) {
    replay_link *link = &client->links[i];
    size_t at = run->plan->at[attempt][i][kind][ordinal];
    bool breaks = link->dead;
    for (unsigned j = 0; j < link->count && at != REPLAY_NEVER; j++) {
      const replay_request *older = &link->requests[j];
      size_t then = run->plan->at[older->attempt][i][older->kind][older->ordinal];
      breaks = breaks || (older->connection == link->connection && older->progress == REPLAY_SENT &&
                          then > at);
    }
    if (breaks) {
      replay_break(run, client, i);
    }
  }
}

/* --------------------------------------------------------------------------------------- nodes */

static void replay_run_command(replay *run, unsigned node, replay_request *request, bool twice) {
  fake_store *store = &run->stores[node];
  const fake_command *command = &request->command;
  request->progress = REPLAY_EXECUTED;
  if (command->verb == FAKE_SET && run->ticks < run->quarantined_until[node]) {
    (void)snprintf(request->reply, sizeof request->reply, "-LOADING not yet\r\n");
    return;
  }
  if (twice) {
    fake_store_remove(store, REPLAY_KEY);
  }
  fake_store_execute(store, replay_node_now(run), command, request->reply);
}

/*
 * A release that is there twice, because it was sent again on a new connection, may be executed early
 * if it has nothing to delete: then the model does not notice.
 */
static bool replay_repeated(replay *run, const replay_link *link, unsigned node,
                            const replay_request *request) {
  const char *token = fake_store_token(&run->stores[node], replay_node_now(run), REPLAY_KEY);
  size_t planned = run->plan->at[request->attempt][node][REPLAY_RELEASE][0];
  bool elsewhere = planned == REPLAY_NEVER || planned < run->at;
  if (request->kind != REPLAY_RELEASE ||
      (token != NULL && strcmp(token, request->command.token) == 0)) {
    return false;
  }
  for (unsigned i = 0; i < link->count; i++) {
    const replay_request *other = &link->requests[i];
    elsewhere = elsewhere || (other != request && other->kind == REPLAY_RELEASE &&
                              other->attempt == request->attempt && other->progress == REPLAY_SENT);
  }
  return elsewhere;
}

/* Executes what is before the request on its connection, if the model does not mind. */
static bool replay_reach(replay *run, replay_link *link, unsigned node,
                         const replay_request *request) {
  for (unsigned pass = 0; pass < 2; pass++) {
    for (replay_request *older = link->requests; older < request; older++) {
      if (older->connection != request->connection || older->progress != REPLAY_SENT) {
        continue;
      }
      if (!replay_repeated(run, link, node, older)) {
        run->behind_release = older->kind == REPLAY_RELEASE;
        return false;
      }
      if (pass == 1) {
        run->events[REPLAY_EVENT_REPEATED_RELEASE]++;
        replay_run_command(run, node, older, false);
      }
    }
  }
  return true;
}

replay_request *replay_find(replay_client *client, unsigned node, replay_kind kind,
                            unsigned attempt, replay_progress progress) {
  replay_link *link = &client->links[node];
  for (unsigned i = link->count; i-- > 0;) {
    replay_request *request = &link->requests[i];
    if (request->kind == kind && request->attempt == attempt && request->progress == progress) {
      return request;
    }
  }
  return NULL;
}

/* The same release on other connections: executed at the same moment, or it might strike later. */
static void replay_execute_repeated(replay *run, replay_link *link, unsigned node,
                                    const replay_request *request) {
  for (unsigned i = 0; i < link->count; i++) {
    replay_request *other = &link->requests[i];
    if (other->kind == REPLAY_RELEASE && other->attempt == request->attempt &&
        other->progress == REPLAY_SENT && !run->config->token_reused &&
        replay_reach(run, link, node, other)) {
      run->events[REPLAY_EVENT_REPEATED_RELEASE]++;
      replay_run_command(run, node, other, false);
    }
  }
}

replay_request *replay_execute(replay *run, replay_client *client, unsigned node, replay_kind kind,
                               unsigned attempt, unsigned ordinal, bool twice) {
  replay_link *link = &client->links[node];
  for (unsigned i = link->count; i-- > 0;) {
    replay_request *request = &link->requests[i];
    if (request->kind == kind && request->attempt == attempt && request->progress == REPLAY_SENT &&
        (kind == REPLAY_RELEASE || kind == REPLAY_HEAL || request->ordinal == ordinal) &&
        replay_reach(run, link, node, request)) {
      run->events[REPLAY_EVENT_OLD_CONNECTION] += request->connection != link->connection;
      replay_run_command(run, node, request, twice);
      if (kind == REPLAY_RELEASE) {
        replay_execute_repeated(run, link, node, request);
      }
      return request;
    }
  }
  return NULL;
}

bool replay_deliver(replay_client *client, unsigned node, const replay_request *request) {
  replay_link *link = &client->links[node];
  if (request->connection != link->connection || link->hanging) {
    return false;
  }
  for (replay_request *older = link->requests; older <= request; older++) {
    if (older->connection != link->connection || older->progress == REPLAY_DELIVERED) {
      continue;
    }
    if (older->progress != REPLAY_EXECUTED) {
      return false;
    }
    older->progress = REPLAY_DELIVERED;
    rl_core_input(&client->core, node, replay_now(client), older->reply, strlen(older->reply));
  }
  return true;
}
