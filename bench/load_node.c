/*
 * The nodes of the load: what they keep, and how they answer.
 *
 * SPDX-License-Identifier: MIT
 */
#include "load.h"

#define LOAD_REPLIES_MAX 4096

/* Each command is a function of the request, and returns the reply. */

/* Returns the slot of the key, which may be empty. */
load_stored *node_slot(load_node *node, const char *name, size_t length) {
  uint64_t hash = 0xcbf29ce484222325u;
  for (size_t i = 0; i < length; i++) {
    hash = (hash ^ (unsigned char)name[i]) * 0x100000001b3u;
  }
  for (size_t at = hash ^ hash >> 32, tries = 0; tries <= node->mask; at++, tries++) {
    load_stored *slot = &node->stored[at & node->mask];
    if (slot->length == 0 && length > 0 && length <= sizeof slot->name) {
      slot->length = length;
      memcpy(slot->name, name, length);
    }
    if (slot->length == length && memcmp(slot->name, name, length) == 0) {
      return slot;
    }
  }
  bench_die("load: a node has no slot for a key");
}

static load_stored *node_key(load_node *node, const resp_request *request, unsigned index) {
  return node_slot(node, request->words[index], request->lengths[index]);
}

/* Returns true if the word at |index| is what the key holds. */
static bool node_holds(const load_node *node, const load_stored *key, const resp_request *request,
                       unsigned index) {
  return key->ends_us > node->now_us && resp_equals(request, index, key->token, key->token_length);
}

static const char *node_set(load_node *node, const resp_request *request) {
  if (request->count != 6 || !resp_is(request, 3, "NX") || !resp_is(request, 4, "PX") ||
      request->lengths[2] > REDLOCK_TOKEN_LENGTH) {
    return NULL;
  }
  load_stored *key = node_key(node, request, 1);
  node->scripts[RL_SCRIPT_NONE]++;
  if (key->ends_us > node->now_us && !node->breaks) {
    return "$-1\r\n";
  }
  key->token_length = request->lengths[2];
  memcpy(key->token, request->words[2], key->token_length);
  key->ends_us = node->now_us + resp_number(request, 5) * REDLOCK_MILLISECONDS;
  return "+OK\r\n";
}

static const char *node_delete(load_node *node, const resp_request *request) {
  load_stored *key = request->count == 2 ? node_key(node, request, 1) : NULL;
  if (key == NULL) {
    return NULL;
  }
  bool there = key->ends_us > node->now_us;
  key->ends_us = 0;
  return there ? ":1\r\n" : ":0\r\n";
}

static const char *node_release(load_node *node, load_stored *key, const resp_request *request) {
  bool ours = node_holds(node, key, request, 4);
  node->inside += ours ? 2 : 1; /* GET, DEL */
  key->ends_us = ours ? 0 : key->ends_us;
  return request->count != 5 ? NULL : ours ? ":1\r\n" : ":0\r\n";
}

static const char *node_extend(load_node *node, load_stored *key, const resp_request *request) {
  bool ours = node_holds(node, key, request, 4);
  redlock_time ends_us = node->now_us + resp_number(request, 5) * REDLOCK_MILLISECONDS;
  bool longer = ours && ends_us > key->ends_us;
  node->inside += longer ? 3 : ours ? 2 : 1; /* GET, PTTL, PEXPIRE */
  key->ends_us = longer ? ends_us : key->ends_us;
  return request->count != 6 ? NULL : ours ? ":1\r\n" : ":0\r\n";
}

/* EVAL and EVALSHA: a server knows a script for all connections once it got the text. */
static const char *node_script(load_node *node, const resp_request *request) {
  static const struct {
    rl_script script;
    const char *(*execute)(load_node *, load_stored *, const resp_request *);
  } scripts[] = {{RL_SCRIPT_RELEASE, node_release},
                 {RL_SCRIPT_EXTEND, node_extend},
                 {RL_SCRIPT_RELEASE_NOTIFY, queue_release},
                 {RL_SCRIPT_ENQUEUE, queue_enqueue},
                 {RL_SCRIPT_DEQUEUE, queue_dequeue}};
  bool by_text = resp_is(request, 0, "EVAL");
  for (size_t i = 0; i < sizeof scripts / sizeof scripts[0] && request->count > 4; i++) {
    rl_script script = scripts[i].script;
    if (resp_is(request, 1, by_text ? rl_script_text(script) : rl_script_sha1(script))) {
      node->knows[script] = node->knows[script] || by_text;
      node->scripts[script]++;
      return node->knows[script] ? scripts[i].execute(node, node_key(node, request, 3), request)
                                 : "-NOSCRIPT No matching script. Please use EVAL.\r\n";
    }
  }
  return NULL;
}

static const char *node_handshake(load_node *node, const resp_request *request) {
  (void)request;
  node->commands--;
  return "+OK\r\n";
}

/* Of a connection that has subscribed. */
/* A native command of newer servers. */
static const char *node_unknown(load_node *node, const resp_request *request) {
  (void)node;
  (void)request;
  return "-ERR unknown command\r\n";
}

static const char *node_ping(load_node *node, const resp_request *request) {
  (void)node;
  (void)request;
  return "*2\r\n$4\r\npong\r\n$0\r\n\r\n";
}

static const char *node_execute(load_node *node, const resp_request *request) {
  static const struct {
    const char *name;
    const char *(*execute)(load_node *, const resp_request *);
  } commands[] = {
      {"SET", node_set},          {"EVALSHA", node_script},       {"EVAL", node_script},
      {"DEL", node_delete},       {"CLIENT", node_handshake},     {"AUTH", node_handshake},
      {"SELECT", node_handshake}, {"SUBSCRIBE", queue_subscribe}, {"PUBLISH", queue_probe},
      {"PING", node_ping},        {"DELIFEQ", node_unknown},      {"DELEX", node_unknown}};
  node->commands++;
  for (size_t i = 0; i < sizeof commands / sizeof commands[0]; i++) {
    const char *reply =
        resp_is(request, 0, commands[i].name) ? commands[i].execute(node, request) : NULL;
    if (reply != NULL) {
      return reply;
    }
  }
  bench_die("load: a node does not know the command %.*s", (int)request->lengths[0],
            request->words[0]);
}

/* A packet has whole commands, because a client sends all its output at once. */
void node_hear(load *c, const load_event *event) {
  load_client *client = &c->clients[event->client];
  load_node *node = &c->nodes[event->end % LOAD_NODES];
  const char *bytes = (const char *)(event + 1);
  char replies[LOAD_REPLIES_MAX];
  resp_request request;
  size_t length = 0;
  node->now_us = c->now_us;
  node->heard = event;
  if (event->kind == LOAD_HUNG_UP) {
    queue_hang_up(node, event);
    return;
  }
  for (size_t at = 0; at < event->length;) {
    long used = resp_read(&request, bytes + at, event->length - at);
    if (used <= 0) {
      bench_die("load: a node was sent what is no command");
    }
    at += (size_t)used;
    const char *reply = node_execute(node, &request);
    if (length + strlen(reply) > sizeof replies) {
      bench_die("load: a node was sent too much at once");
    }
    memcpy(replies + length, reply, strlen(reply));
    length += strlen(reply);
  }
  if (client->connections[event->end].number == event->connection) {
    load_send(c, LOAD_REPLIES, client, event->end, replies, length);
  }
}
