/*
 * Cores, clocks, nodes and connections.
 *
 * SPDX-License-Identifier: MIT
 */
#include <assert.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "lease/rl_fence.h"
#include "lease/rl_guard_effects.h"
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
  options.fence = run->config->fence ? REDLOCK_YES : REDLOCK_NO;
  return options;
}

static void replay_must(bool ok) {
  if (!ok) {
    (void)fprintf(stderr, "model_replay: out of memory\n");
    abort();
  }
}

/* The quarantine ends half a tick before the model's. */
static void replay_guard(replay *run, replay_client *client) {
  redlock_duration quarantine_us = run->config->quarantine * REPLAY_TICK_US - REPLAY_TICK_US / 2;
  redlock_duration max_ttl_us = (quarantine_us - RL_GUARD_MARGIN_US) * 10 / 11;
  redlock_duration ttl_us = run->config->ttl * REPLAY_TICK_US;
  replay_must(rl_guard_open(&client->core.guards, rl_time_max(max_ttl_us, ttl_us), NULL) ==
              REDLOCK_OK);
  client->core.guards->skew_us =
      REDLOCK_NEVER; /* All clocks are right; an answer may be ticks late. */
  client->core.guards->quarantine_us -= RL_GUARD_SKEW_US; /* Nor does the model allow for it. */
}

/* All nodes have a record since long ago. */
static void replay_make_records(replay *run, replay_client *client) {
  rl_guard_effects_prepare(&client->core);
  for (unsigned i = 0; i < client->nodes; i++) {
    fake_store *store = &run->stores[i];
    char reply[FAKE_REPLY_MAX];
    fake_command ready;
    memset(&ready, 0, sizeof ready);
    ready.verb = FAKE_GUARD;
    ready.age_us = client->core.guards->quarantine_us;
    (void)snprintf(ready.make, sizeof ready.make, "ready");
    (void)snprintf(ready.fingerprint, sizeof ready.fingerprint, "%s",
                   client->core.guards->fingerprint);
    (void)snprintf(store->run_id, sizeof store->run_id, "server%u", i);
    fake_store_execute(store, replay_node_now(run), &ready, reply);
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
  if (run->config->guard) {
    replay_guard(run, client);
  }
  for (unsigned i = 0; i < client->nodes; i++) {
    redlock_settings settings = {0};
    redlock_node node;
    rl_address address;
    memset(&node, 0, sizeof node);
    node.address = "10.0.0.1";
    replay_must(rl_address_read(&address, &node, &settings, NULL, 0) == REDLOCK_OK &&
                rl_core_add(&client->core, &address) == REDLOCK_OK);
  }
  if (run->config->quorum[index] >=
      rl_quorum_majority(client->nodes)) { /* No client may ask for less. */
    client->core.quorum = run->config->quorum[index];
  }
  client->lock = rl_lock_new(&client->core, REPLAY_KEY, strlen(REPLAY_KEY), &options);
  replay_must(client->lock != NULL);
  if (run->config->guard && index == 0) {
    replay_make_records(run, client);
  }
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

/* Returns the attempt of the token; if attempts share it, the latest that has begun. */
static unsigned replay_attempt_of(const replay *run, const replay_client *client,
                                  const char *token) {
  unsigned number = (unsigned)strtoul((const char[]){token[0], token[1], '\0'}, NULL, 16);
  return run->config->token_reused ? client->attempt : number - 1;
}

/*
 * Rounds the time of a backfill to whole ticks, because the client's clock may be up to a quarter
 * of a tick past one. Returns false if it is no such time.
 */
static bool replay_round(const replay *run, fake_command *command) {
  const uint64_t tick_ms = REPLAY_TICK_US / REDLOCK_MILLISECONDS;
  uint64_t rounded_ms = (command->ttl_ms + tick_ms / 2) / tick_ms * tick_ms;
  uint64_t off_ms =
      rounded_ms > command->ttl_ms ? rounded_ms - command->ttl_ms : command->ttl_ms - rounded_ms;
  command->ttl_ms = rounded_ms;
  return off_ms < tick_ms / 4 && rounded_ms > 0 && rounded_ms <= run->config->ttl * tick_ms;
}

/* Returns true if nothing is lost with the connection that the model still counts on. */
static bool replay_may_break(const replay_client *client, unsigned node) {
  const rl_lock *lock = client->lock;
  if (client->core.guards != NULL) {
    return lock->phase != RL_PHASE_ROUND || lock->operation == RL_OPERATION_RELEASE;
  }
  return lock->phase != RL_PHASE_ROUND || lock->operation == RL_OPERATION_RELEASE ||
         (lock->votes[node].settled && !replay_asked(client, node));
}

/* Replaces the time in the reply, its |word|th word, by |shows_us|. */
static void replay_show_clock(redlock_time shows_us, char reply[FAKE_REPLY_MAX], unsigned word) {
  char answer[FAKE_REPLY_MAX] = "";
  const char *bytes = strstr(reply, "\r\n");
  const char *clock = bytes == NULL ? NULL : bytes + 2;
  for (unsigned i = 0; i < word && clock != NULL; i++) {
    clock = strchr(clock, ' ');
    clock = clock == NULL ? NULL : clock + 1;
  }
  if (reply[0] != '$' || clock == NULL) {
    return;
  }
  int length = snprintf(answer, sizeof answer - 8, "%.*s%llu%s", (int)(clock - bytes - 2),
                        bytes + 2, (ull)shows_us, clock + strcspn(clock, " \r"));
  (void)snprintf(reply, FAKE_REPLY_MAX, "$%d\r\n%s", length - 2, answer);
}

/*
 * Returns the number of outstanding answers on this connection, of all or only of extends of the
 * lease.
 */
static unsigned replay_outstanding(const replay_client *client, unsigned node, bool extends) {
  const replay_link *link = &client->links[node];
  unsigned outstanding = 0;
  for (unsigned i = 0; i < link->count; i++) {
    const replay_request *request = &link->requests[i];
    bool counts = !extends || (request->kind == REPLAY_EXTEND && client->lock->lease != NULL &&
                               request->attempt == client->attempt);
    outstanding +=
        counts && request->connection == link->connection && request->progress != REPLAY_DELIVERED;
  }
  return outstanding;
}

/*
 * Answers the guard at once. A question behind other commands is repeated on a new connection, if
 * that loses nothing. A dead node does not answer.
 */
static void replay_answer_guard(replay *run, replay_client *client, unsigned node,
                                const fake_command *command) {
  char reply[FAKE_REPLY_MAX];
  if (client->links[node].dead) {
    return;
  }
  if (replay_outstanding(client, node, false) > 0) {
    run->cut = run->cut || replay_outstanding(client, node, true) > 0 ||
               (!replay_may_break(client, node) && !client->lock->votes[node].settled);
    client->links[node].asking = true;
    replay_break(run, client, node);
    return;
  }
  /* Records that are made in different steps are different. */
  fake_store_execute(&run->stores[node], replay_node_now(run) + run->at, command, reply);
  replay_show_clock(replay_now(client), reply, 0);
  rl_core_input(&client->core, node, replay_now(client), reply, strlen(reply));
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
                  : command->verb == FAKE_CONFIRM                               ? REPLAY_CONFIRM
                  : command->verb == FAKE_RELEASE                               ? REPLAY_RELEASE
                  : command->guarded && command->heals                          ? REPLAY_HEAL
                  : replay_sent_before(link, REPLAY_SET, request->attempt) == 0 ? REPLAY_SET
                                                                                : REPLAY_HEAL;
  request->ordinal = request->kind == REPLAY_RELEASE || request->kind == REPLAY_CONFIRM
                         ? 0
                         : replay_sent_before(link, request->kind, request->attempt);
  request->connection = link->connection;
  request->sent_us = replay_now(client);
  request->progress = link->dead ? REPLAY_GONE : REPLAY_SENT;
  request->command = *command;
  if (command->verb == FAKE_SET && !replay_round(run, &request->command)) {
    replay_differ(run, "%c sets a key for a wrong time", replay_letter(run, client));
  }
  if (command->verb != FAKE_RELEASE && command->verb != FAKE_CONFIRM) {
    uint64_t life = request->command.ttl_ms * REDLOCK_MILLISECONDS / REPLAY_TICK_US;
    uint64_t gone_tenths = 10 * client->ticks + 11 * life;
    client->gone_tenths = gone_tenths > client->gone_tenths ? gone_tenths : client->gone_tenths;
  }
  link->count++;
}

/* Delivers the core's output to the node. The handshake is answered at once. */
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
    } else if (command.verb == FAKE_GUARD) {
      replay_answer_guard(run, client, node, &command);
    } else {
      replay_receive(run, client, node, &command);
    }
  }
}

bool replay_knows_record(const replay *run, const replay_client *client, unsigned node) {
  const rl_guard *guard = client->core.nodes[node]->link.guard;
  const fake_store *store = &run->stores[node];
  return strcmp(guard->record, store->record) == 0 && strcmp(guard->run_id, store->run_id) == 0;
}

static void replay_connected(replay *run, replay_client *client, unsigned node) {
  replay_link *link = &client->links[node];
  const rl_guard *guard = client->core.nodes[node]->link.guard;
  bool knows = guard == NULL || guard->record[0] == '\0' || replay_knows_record(run, client, node);
  if (!knows && !link->hanging && !link->asking &&
      (!link->dead || !replay_may_break(client, node))) {
    run->cut = true; /* By this connection it will know the record, too soon for the model. */
  }
  link->hanging = false;
  link->asking = false;
  link->dead = false;
  rl_core_connected(&client->core, node, replay_now(client));
  client->core.nodes[node]->link.compared =
      UINT32_MAX; /* In the model no two nodes are one server. */
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

bool replay_asked(const replay_client *client, unsigned node) {
  const rl_fence *fence = rl_fence_of(client->lock);
  return fence != NULL && (fence->asked >> node & 1) != 0;
}

/* Between rounds the client hears of nodes that are not those that it has asked. */
static void replay_settle_declined(replay *run, replay_client *client, unsigned node) {
  replay_link *link = &client->links[node];
  if (!replay_may_break(client, node)) {
    return;
  }
  for (unsigned i = 0; i < link->count; i++) {
    const replay_request *request = &link->requests[i];
    if (request->progress == REPLAY_EXECUTED && replay_declines(request) &&
        replay_deliver(client, node, request)) {
      run->events[REPLAY_EVENT_DECLINED]++;
      replay_flush(run, client, node);
    }
  }
}

void replay_settle(replay *run, replay_client *client) {
  rl_core_before_pause(&client->core,
                       replay_now(client)); /* The model's releases wait for no answers. */
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
  for (unsigned i = 0; i < client->nodes && run->config->guard; i++) {
    replay_settle_declined(run, client, i);
    if (client->links[i].asking) {
      replay_connecting(run, client, i);
      replay_connected(run, client, i);
    }
  }
}

bool replay_must_break(const replay *run, const replay_client *client, unsigned node,
                       replay_kind kind, unsigned attempt, unsigned ordinal) {
  const replay_link *link = &client->links[node];
  size_t at = run->plan->at[attempt][node][kind][ordinal];
  bool breaks = link->dead;
  for (unsigned i = 0; i < link->count && at != REPLAY_NEVER; i++) {
    const replay_request *older = &link->requests[i];
    size_t then = run->plan->at[older->attempt][node][older->kind][older->ordinal];
    breaks = breaks ||
             (older->connection == link->connection && older->progress == REPLAY_SENT && then > at);
  }
  return breaks;
}

void replay_break_for(replay *run, replay_client *client, replay_kind kind, unsigned attempt,
                      unsigned ordinal) {
  for (unsigned i = 0; i < client->nodes; i++) {
    if (replay_must_break(run, client, i, kind, attempt, ordinal)) {
      replay_break(run, client, i);
    }
  }
}

/* --------------------------------------------------------------------------------------- nodes */

bool replay_grants(const replay_request *request) {
  return request->reply[0] == '+' || strstr(request->reply, "\r\nOK ") != NULL;
}

bool replay_declines(const replay_request *request) {
  return request->command.guarded && (strstr(request->reply, "\r\nother ") != NULL ||
                                      strncmp(request->reply, "-NOSCRIPT", 9) == 0);
}

/*
 * Executes the command with a clock that makes the node issue |number|: a second more than the
 * number, which is its minimum, or a second less, which is its maximum.
 */
static void replay_number(replay *run, unsigned node, replay_request *request, unsigned number) {
  fake_store *store = &run->stores[node];
  const fake_command *command = &request->command;
  redlock_time now_us = replay_node_now(run);
  uint64_t given = REPLAY_NUMBERS + number;
  uint64_t slack = REDLOCK_SECONDS / RL_FENCE_TICK_US;
  uint64_t clock_us = (command->fence > given ? given - slack : given + slack) * RL_FENCE_TICK_US;
  store->ahead_us = clock_us - now_us;
  fake_store_execute(store, now_us, command, request->reply);
  store->ahead_us = 0;
}

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
  if (command->watched) {
    replay_number(run, node, request, run->number);
  } else {
    fake_store_execute(store, replay_node_now(run), command, request->reply);
  }
}

/*
 * Returns true if the release is a repetition, on a new connection, and has nothing to delete. It
 * may be executed early, because the model is not affected.
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

/* Executes the requests before this one on its connection, if the model is not affected. */
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
    if (older->command.watched) {
      /* All clocks agree: the core takes it that it was read half-way. */
      redlock_time took_us = replay_now(client) - older->sent_us;
      replay_show_clock(older->sent_us + took_us / 2, older->reply, 1);
    }
    client->learned = client->learned || (replay_declines(older) && older->kind == REPLAY_SET &&
                                          !replay_may_break(client, node));
    rl_core_input(&client->core, node, replay_now(client), older->reply, strlen(older->reply));
  }
  return true;
}
