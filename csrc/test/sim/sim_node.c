/*
 * A Redis server, as far as a lock sees it: its answers, errors and restarts.
 *
 * SPDX-License-Identifier: MIT
 *
 * It parses the output of the core byte by byte. sim_script.c executes the commands.
 */
#include "sim_node.h"

#include <string.h>

#include "resp.h"
#include "sim_calls.h"
#include "sim_hold.h"
#include "sim_native.h"
#include "sim_publish.h"
#include "sim_script.h"
#include "sim_trace.h"
#include "sim_watch.h"

static const char *const sim_node_error_texts[SIM_NODE_ERROR_COUNT] = {
    "",
    "-OOM command not allowed when used memory > 'maxmemory'.\r\n",
    "-READONLY You can't write against a read only replica.\r\n",
    "-BUSY Redis is busy running a script.\r\n",
    "-MISCONF Redis is configured to save RDB snapshots.\r\n",
    "-NOREPLICAS Not enough good replicas to write.\r\n",
    "-MASTERDOWN Link with MASTER is down.\r\n",
    "-NOPERM this user has no permissions to run the 'set' command\r\n",
    "-NOPERM this user has no permissions to run the 'evalsha' command\r\n",
    "-ERR unknown subcommand 'SETNAME'\r\n",
};

void sim_node_init(sim *s, unsigned index) {
  sim_node *node = &s->nodes[index];
  sim_random *random = &s->random_node;
  int64_t bound = (int64_t)s->config.node_ppm;
  memset(node, 0, sizeof *node);
  node->up = true;
  sim_native_init(s, index);
  sim_watch_restart(s, index);
  node->clock.local_us = 1700000000000000u + sim_below(random, 1000000000u);
  switch (sim_below(random, 4)) {
  case 0:
    node->clock.ppm = bound;
    break;
  case 1:
    node->clock.ppm = -bound;
    break;
  default:
    node->clock.ppm = (int64_t)sim_below(random, (uint64_t)(2 * bound + 1)) - bound;
    break;
  }
  if (s->config.close_clocks) {
    node->clock.local_us = SIM_NODE_EPOCH_US - (uint64_t)s->config.close_us / 2 +
                           sim_below(&s->random_watch, (uint64_t)s->config.close_us);
  }
  if (s->breach == SIM_BREACH_FAST_NODE) {
    node->clock.ppm = 3 * (int64_t)(s->config.drift_factor * 1000000) + 100000;
  }
}

void sim_node_reply(sim *s, int connection, const sim_request *request, const char *text,
                    sim_outcome outcome) {
  sim_note note = {.token = request->token,
                   .kind = (uint8_t)request->kind,
                   .outcome = (uint8_t)outcome,
                   .by_text = request->by_text,
                   .asked = true,
                   .fence = request->fence,
                   .held = request->held,
                   .age_us = request->age_us,
                   .seen = request->seen,
                   .full = request->full,
                   .read_only = strncmp(text, "-READONLY ", 10) == 0 ||
                                strncmp(text, "-NOREPLICAS ", 12) == 0};
  sim_node *node = &s->nodes[s->connections[connection].node];
  if (node->swallowed > 0 && request->kind == SIM_COMMAND_SET) {
    node->swallowed--;
    s->breached = true;
    return;
  }
  if (node->false_errors > 0 && request->kind != SIM_COMMAND_HANDSHAKE &&
      outcome != SIM_OUTCOME_NO_SCRIPT) {
    node->false_errors--;
    sim_count(s, SIM_INJECTED_ERROR_AFTER_EXECUTION);
    text = "-ERR the proxy lost its patience\r\n";
    note.read_only = false;
    note.outcome = SIM_OUTCOME_ERROR;
  } else if (node->odd_replies > 0 && request->kind != SIM_COMMAND_SLOTS &&
             sim_calls_is_queue(request->kind)) {
    node->odd_replies--;
    text = sim_calls_odd(s); /* The core may believe it, and keeps the connection. */
    note.full = false;
    sim_count(s, SIM_ENQUEUE_ODD);
  } else if (node->odd_replies > 0 && request->kind != SIM_COMMAND_GUARD) {
    static const char *const odd[] = {"$3\r\nfoo\r\n",      "*0\r\n",    ":7\r\n", "+QUEUED\r\n",
                                      "*2\r\n:1\r\n:1\r\n", "?what\r\n", ":-1\r\n"};
    node->odd_replies--;
    text = odd[sim_below(&s->random_node, sizeof odd / sizeof odd[0])];
    /* An inspection would take a string for the value of the key. */
    text = request->kind == SIM_COMMAND_INSPECT && text[0] == '$' ? odd[1] : text;
    /* An attach takes -1 for another record. */
    text = s->config.guard && request->kind == SIM_COMMAND_SET && text[1] == '-' ? odd[1] : text;
    note.outcome = SIM_OUTCOME_ODD;
    sim_count(s, SIM_INJECTED_GARBAGE);
    if (sim_below(&s->random_node, 4) == 0) {
      sim_note unasked = {
          .token = SIM_NO_TOKEN, .kind = SIM_COMMAND_UNKNOWN, .outcome = SIM_OUTCOME_ODD};
      sim_count(s, SIM_INJECTED_GARBAGE_UNASKED);
      sim_network_reply(s, connection, "*1\r\n+hello\r\n", 12, &unasked);
    }
  }
  sim_mix(s, (uint64_t)note.outcome << 40 | request->token);
  sim_network_reply(s, connection, text, strlen(text), &note);
}

const char *sim_node_refuses(const sim *s, unsigned index, sim_command_kind kind, bool scripted) {
  const sim_node *node = &s->nodes[index];
  sim_node_error error = node->error;
  if (s->now_us < node->loading_until_us) {
    return "-LOADING Redis is loading the dataset in memory\r\n";
  }
  if (s->now_us >= node->error_until_us || error == SIM_NODE_ERROR_NONE ||
      error == SIM_NODE_ERROR_UNKNOWN_SETNAME) {
    return NULL;
  }
  /* Out of memory, scripts that only delete or prolong still run. */
  bool set_only = error == SIM_NODE_ERROR_OOM || error == SIM_NODE_ERROR_NOPERM;
  bool script_only = error == SIM_NODE_ERROR_NOPERM_SCRIPT;
  bool sets = kind == SIM_COMMAND_SET || kind == SIM_COMMAND_CONFIRM;
  if ((set_only && !sets) || (script_only && sets && !scripted)) {
    return NULL;
  }
  return sim_node_error_texts[error];
}

static void sim_node_handshake(sim *s, int connection, const resp_request *command,
                               const sim_request *request) {
  sim_connection *from = &s->connections[connection];
  const sim_node *node = &s->nodes[from->node];
  const char *text = "+OK\r\n";
  if (resp_is(command, 0, "AUTH")) {
    from->authenticated = resp_is(command, command->count - 1, "secret");
    text = from->authenticated ? text : "-WRONGPASS invalid username-password pair\r\n";
  } else if (s->config.passwords && !from->authenticated) {
    text = "-NOAUTH Authentication required.\r\n";
  } else if (s->now_us < node->loading_until_us) {
    text = "-LOADING Redis is loading the dataset in memory\r\n";
  } else if (resp_is(command, 0, "SELECT")) {
    from->database = resp_is(command, 1, "3") ? 1 : 0;
  } else if (s->now_us < node->error_until_us && node->error == SIM_NODE_ERROR_UNKNOWN_SETNAME) {
    text = sim_node_error_texts[node->error];
  }
  if (resp_is(command, 0, "EXISTS") && text[0] == '+') {
    text = ":0\r\n";
  }
  bool listens = resp_is(command, 0, "SUBSCRIBE") || resp_is(command, 0, "PING");
  if (listens && text[0] == '+' && sim_publish_listen(s, connection, command, request)) {
    return;
  }
  text = listens && text[0] == '+' ? SIM_CALLS_NOPERM : text;
  sim_count_if(s, text[0] == '-', SIM_HANDSHAKE_REFUSED);
  sim_node_reply(s, connection, request, text,
                 text[0] == '-' ? SIM_OUTCOME_ERROR : SIM_OUTCOME_GRANTED);
}

/*
 * Returns true if it releases a token of another client's, which has not been handed over. That
 * client may have had the same number, and be gone.
 */
static bool sim_node_forces(const sim *s, const sim_connection *from, const sim_request *request) {
  if (request->kind != SIM_COMMAND_RELEASE || request->token >= s->token_count ||
      s->config.operators == 0) {
    return false;
  }
  const sim_token *token = &s->tokens[request->token];
  bool other = token->client != from->client || (token->abandoned && from->client_open);
  return other && !token->handed;
}

/* A command, and its kind for the part of the simulator that executes it, otherwise UNKNOWN. */
typedef struct sim_parsed {
  sim_request request;
  sim_command_kind native, queue;
  bool watches;
} sim_parsed;

static sim_parsed sim_node_parse(sim *s, const sim_connection *from, const resp_request *command) {
  unsigned native_token = 0;
  sim_parsed parsed = {.request = {.kind = SIM_COMMAND_HANDSHAKE, .token = SIM_NO_TOKEN}};
  sim_request *request = &parsed.request;
  parsed.watches = sim_watch_like(command) && sim_watch_kind(s, command) != SIM_COMMAND_UNKNOWN;
  parsed.queue = sim_calls_kind(s, command);
  parsed.native = s->config.native ? sim_native_kind(command, &native_token) : SIM_COMMAND_UNKNOWN;
  if (parsed.native != SIM_COMMAND_UNKNOWN) {
    request->kind = parsed.native;
    request->token =
        parsed.native != SIM_COMMAND_FLAG
            ? sim_tap_token(command->words[native_token], command->lengths[native_token])
            : SIM_NO_TOKEN;
    request->forced = sim_node_forces(s, from, request);
  } else if (sim_calls_is_queue(parsed.queue)) {
    request->kind = parsed.queue;
    request->by_text = command->lengths[0] == 4;
  } else if (resp_is(command, 0, "SET")) {
    request->kind = SIM_COMMAND_SET;
    request->token = sim_tap_token(command->words[2], command->lengths[2]);
  } else if (resp_is(command, 0, "DEL")) {
    request->kind = SIM_COMMAND_RELEASE;
  } else if (resp_is(command, 0, "EVAL") && command->count == 4) {
    request->kind = SIM_COMMAND_INSPECT;
  } else if (resp_is(command, 0, "EVAL") || resp_is(command, 0, "EVALSHA")) {
    unsigned token = sim_script_token(s, command);
    request->kind = sim_script_kind(s, command);
    request->by_text = command->lengths[0] == 4;
    request->token = command->count > token
                         ? sim_tap_token(command->words[token], command->lengths[token])
                         : SIM_NO_TOKEN;
    request->forced = sim_node_forces(s, from, request);
  }
  return parsed;
}

/* Returns the error with which the node refuses the command, or NULL. */
static const char *sim_node_error_of(sim *s, const sim_connection *from,
                                     const resp_request *command, const sim_parsed *parsed) {
  const sim_node *node = &s->nodes[from->node];
  const char *error = sim_node_refuses(s, from->node, parsed->request.kind, parsed->watches);
  if (parsed->native != SIM_COMMAND_UNKNOWN && node->error == SIM_NODE_ERROR_NOPERM_SCRIPT &&
      s->now_us >= node->loading_until_us) {
    error = NULL; /* Only scripts are refused. */
  } else if (error == NULL && sim_native_refuses(s, from->node, command) != NULL) {
    error = sim_native_refuses(s, from->node, command);
    sim_count(s, SIM_LACKS_SCRIPTS);
  }
  return s->config.passwords && !from->authenticated ? "-NOAUTH Authentication required.\r\n"
                                                     : error;
}

static void sim_node_run(sim *s, int connection, const resp_request *command, sim_parsed *parsed) {
  sim_request *request = &parsed->request;
  if (sim_hold_is(s, command)) {
    sim_hold_eval(s, connection, command, request);
  } else if (parsed->native != SIM_COMMAND_UNKNOWN) {
    sim_native_execute(s, connection, command, request);
  } else if (parsed->queue != SIM_COMMAND_UNKNOWN) {
    sim_calls_eval(s, connection, command, request);
  } else if (resp_is(command, 0, "SET")) {
    sim_script_set(s, connection, command, request);
  } else if (resp_is(command, 0, "DEL")) {
    sim_script_delete(s, connection, command, request);
  } else if (parsed->watches) {
    sim_watch_eval(s, connection, command, request);
  } else if (request->kind == SIM_COMMAND_INSPECT) {
    sim_script_inspect(s, connection, command, request);
  } else {
    sim_script_eval(s, connection, command, request);
  }
}

static void sim_node_execute(sim *s, int connection, const resp_request *command) {
  const sim_connection *from = &s->connections[connection];
  sim_parsed parsed = sim_node_parse(s, from, command);
  if (parsed.request.kind == SIM_COMMAND_HANDSHAKE) {
    sim_node_handshake(s, connection, command, &parsed.request);
    return;
  }
  if (from->subscribed) {
    sim_violation(s, "wire", "a command on a connection that has subscribed");
    return;
  }
  sim_count_if(s, !from->client_open || from->replies_lost, SIM_ZOMBIE_EXECUTED);
  const char *error = sim_node_error_of(s, from, command, &parsed);
  if (error == NULL) {
    sim_node_run(s, connection, command, &parsed);
    return;
  }
  SIM_TRACE(s, "node %u: token %u: %.*s", from->node, parsed.request.token,
            (int)strcspn(error, "\r"), error);
  bool forbidden = strncmp(error, "-NO", 3) == 0 && strncmp(error, "-NOREP", 6) != 0;
  sim_node_reply(s, connection, &parsed.request, error,
                 forbidden ? SIM_OUTCOME_FORBIDDEN : SIM_OUTCOME_DECLINED);
}

void sim_node_input(sim *s, int index) {
  sim_connection *connection = &s->connections[index];
  sim_node *node = &s->nodes[connection->node];
  sim_stream *stream = &connection->to_node;
  if (!connection->node_open || s->now_us < node->stopped_until_us || connection->executing) {
    return;
  }
  while (!s->failed) {
    resp_request command;
    long length = resp_read(&command, (const char *)stream->bytes + stream->head,
                            stream->arrived - stream->head);
    if (length == 0) {
      break;
    }
    if (length < 0) {
      sim_violation(s, "wire", "what the core sent is not RESP");
      return;
    }
    sim_node_execute(s, index, &command);
    stream->head += (size_t)length;
    if (s->now_us < node->slow_until_us && stream->head < stream->arrived) {
      connection->executing = true;
      connection->events++;
      sim_queue_add(s, s->now_us + node->service_us, SIM_EVENT_EXECUTE, (unsigned)index, 0, 0);
      break;
    }
  }
  sim_stream_compact(stream);
  sim_network_release(s, index);
}

/* ------------------------------------------------------------------------------ ups and downs */

void sim_node_crash(sim *s, unsigned index, bool empty, uint64_t down_us) {
  sim_node *node = &s->nodes[index];
  node->up = false;
  node->restart_empty = empty;
  node->back_us = s->now_us + down_us;
  node->stopped_until_us = 0;
  node->scripts = node->calling = 0;
  sim_watch_restart(s, index);
  sim_network_node_died(s, index, sim_below(&s->random_node, 4) == 0);
  sim_queue_add(s, node->back_us, SIM_EVENT_NODE, index, 0, 0);
}

void sim_node_stop(sim *s, unsigned index, uint64_t until_us) {
  s->nodes[index].stopped_until_us = until_us;
  sim_queue_add(s, until_us, SIM_EVENT_NODE, index, 0, 0);
}

static void sim_node_restart(sim *s, unsigned index) {
  sim_node *node = &s->nodes[index];
  node->up = true;
  node->epoch++;
  if (node->restart_empty) {
    sim_guard_forgets(s, index, NULL);
  }
  node->lost_us = s->now_us;
  if (s->phase == SIM_PHASE_SAFETY && sim_below(&s->random_node, 2) == 0) {
    sim_count(s, SIM_INJECTED_LOADING);
    node->loading_until_us = s->now_us + sim_below(&s->random_node, 2 * s->config.ttl_max_us);
  }
  sim_trace_fault(s, index, s->now_us, "back%s", node->restart_empty ? ", empty" : "");
}

/* The time has come to be back, or to continue. */
void sim_node_event(sim *s, unsigned index) {
  sim_node *node = &s->nodes[index];
  if (!node->up && s->now_us >= node->back_us) {
    sim_node_restart(s, index);
  }
  if (!node->up || s->now_us < node->stopped_until_us) {
    return;
  }
  for (int i = 0; i < SIM_CONNECTIONS_MAX; i++) {
    if (s->connections[i].used && s->connections[i].node == index) {
      sim_node_input(s, i);
    }
  }
}
