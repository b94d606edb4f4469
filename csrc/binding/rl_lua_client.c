/*
 * The client object.
 *
 * SPDX-License-Identifier: MIT
 */
#include "rl_lua_client.h"

#include <math.h>
#include <stdint.h>
#include <string.h>

#include "client/rl_client.h"
#include "client/rl_poll.h"
#include "client/rl_turn.h"
#include "rl_lua_argument.h"
#include "rl_lua_credentials.h"
#include "rl_lua_hook.h"
#include "rl_lua_loss.h"
#include "rl_lua_object.h"
#include "rl_lua_option.h"
#include "rl_lua_reentry.h"
#include "rl_lua_result.h"
#include "rl_lua_worker.h"

rl_lua_client *rl_lua_client_push(lua_State *L) {
  rl_lua_client *self = lua_newuserdata(L, sizeof *self);

  memset(self, 0, sizeof *self);
  luaL_getmetatable(L, RL_LUA_CLIENT);
  lua_setmetatable(L, -2);

  /* The locks share this user value, which keeps anchor and client alive for them. */
  lua_createtable(L, 2, 0);
  lua_getfield(L, LUA_REGISTRYINDEX, RL_LUA_ANCHOR);
  self->anchor = lua_touserdata(L, -1);
  lua_rawseti(L, -2, 1);
  lua_pushvalue(L, -2);
  lua_rawseti(L, -2, 2);
  lua_setuservalue(L, -2);
  return self;
}

/* Pushes nil and the reason why redlock_client_new() or redlock_client_add_node() failed. */
static int push_refusal(lua_State *L, int error, const char *message) {
  char text[RL_LUA_MESSAGE_SIZE];

  rl_lua_copy_message(text, sizeof text, message[0] != '\0' ? message : redlock_strerror(error));
  lua_pushnil(L);
  lua_pushstring(L, text);
  return 2;
}

/* (options, without_watchdog) -> client; or nil, message. |without_watchdog|: only calls extend
   leases. */
static int client_new(lua_State *L) {
  redlock_settings settings;
  redlock_options options;
  rl_options defaults;
  rl_lua_client *self;
  char message[RL_LUA_MESSAGE_SIZE] = "";
  int error, of_worker, reentrant;

  lua_settop(L, 2);
  rl_lua_read_options(L, 1, &rl_options_of_client, &settings);
  rl_lua_read_lease_options(L, 1, &options);
  rl_options_default(&defaults);
  if (rl_lua_lease_is_empty(&defaults, &options, message, sizeof message))
    return push_refusal(L, REDLOCK_E_INVALID, message);
  settings.options = &options;

  of_worker = rl_lua_read_owner(L, 1, 0);
  reentrant = rl_lua_reentry_read(L, 1);
  self = rl_lua_client_push(L);
  rl_lua_tend(self->anchor);
  self->of_worker = of_worker;
  self->reentrant = reentrant;
  error = redlock_client_new(&self->client, &settings, message, sizeof message);
  if (error != REDLOCK_OK) {
    self->client = NULL;
    return push_refusal(L, error, message);
  }
  self->client->watchdog.forbidden = lua_toboolean(L, 2);
  rl_lua_loss_note_client(L, self);
  (void)rl_lua_keep_option(L, 1, "credentials", RL_LUA_CREDENTIALS);
  error = rl_lua_event_note_client(L, self);
  return error == REDLOCK_OK ? 1 : push_refusal(L, error, message);
}

/* (client, userdata of redlock.tls): sets the transport of nodes that speak TLS. -> nothing, or
   message. */
static int client_set_transport(lua_State *L) {
  rl_lua_client *self = rl_lua_check_client(L, RL_LUA_WRAPPED, "redlock.new()");
  const redlock_transport *const *transport = luaL_testudata(L, 2, RL_LUA_TRANSPORT);

  if (transport == NULL) {
    lua_pushliteral(L, "the module redlock.tls belongs to another version of redlock; install both "
                       "from one build");
    return 1;
  }
  self->client->settings.transport = *transport;
  return 0;
}

/* (client, address or parts) -> true; or nil, message, true if the node needs TLS and there is no
   transport. */
static int client_add(lua_State *L) {
  rl_lua_client *self = rl_lua_check_client(L, RL_LUA_WRAPPED, "redlock.new()");
  char message[RL_LUA_MESSAGE_SIZE] = "";
  redlock_node node;
  size_t length, bytes;
  int error;

  lua_settop(L, 2);
  if (lua_type(L, 2) == LUA_TSTRING) {
    memset(&node, 0, sizeof node);
    node.address = lua_tolstring(L, 2, &length);
    if (strlen(node.address) != length)
      rl_lua_misuse(L, RL_LUA_WRAPPED, "redlock: the address contains a NUL byte");
  } else {
    rl_lua_read_options(L, 2, &rl_options_of_node, &node);
  }
  error = redlock_client_add_node(self->client, &node, message, sizeof message);
  if (error != REDLOCK_OK) {
    push_refusal(L, error, message);
    lua_pushboolean(L, error == REDLOCK_E_UNSUPPORTED && self->client->settings.transport == NULL);
    return 3;
  }
  bytes = rl_client_size(self->client);
  rl_lua_memory_take(L, &self->anchor->memory, bytes - self->bytes);
  self->bytes = bytes;
  return rl_lua_push_true(L);
}

static void push_node(lua_State *L, const redlock_node_info *info) {
  lua_createtable(L, 0, 8);
  rl_lua_set_text(L, "node", info->name);
  rl_lua_set_text(L, "state", redlock_node_state_name(info->state));
  rl_lua_set_message(L, "error", info->error);
  rl_lua_set_text(L, "quarantine", info->quarantine);
  if (info->quarantine != NULL) {
    lua_pushnumber(L, info->quarantined_us == REDLOCK_NEVER
                          ? (lua_Number)HUGE_VAL
                          : (lua_Number)info->quarantined_us / (lua_Number)REDLOCK_MILLISECONDS);
    lua_setfield(L, -2, "quarantined");
  }
  rl_lua_set_boolean(L, "notifies", info->notifies == REDLOCK_YES);
  rl_lua_set_message(L, "notify_error", info->notify_error);
  rl_lua_set_latency(L, info->latency_us);
}

static int client_nodes(lua_State *L) {
  rl_lua_client *self = rl_lua_check_client(L, RL_LUA_DIRECT, "client:nodes()");
  redlock_node_info info;

  lua_newtable(L);
  for (size_t i = 0; redlock_client_node_info(self->client, i, &info) == REDLOCK_OK; i++) {
    push_node(L, &info);
    lua_rawseti(L, -2, (int)i + 1);
  }
  return 1;
}

/* Returns the time that an operation of |client| may take, and that closing the client may take. */
static redlock_duration node_timeout(const redlock_client *client) {
  return rl_options_node_timeout(&client->core.options, client->core.options.ttl_us);
}

/* Waits for |budget|, but no longer than until a hook is set, for example by Ctrl-C. Lua runs that
   hook later: an error raised here would hide an error that leaves the scope. */
static int close_client(lua_State *L, redlock_client *client, redlock_duration budget) {
  redlock_time deadline = rl_time_add(redlock_now(), budget);
  redlock_time until;
  rl_lua_hook hook;

  rl_lua_hook_note(L, &hook, false);
  do {
    until = rl_time_min(deadline, rl_time_add(redlock_now(), RL_LUA_HOOK_PATIENCE));
  } while (rl_client_closing(client, until, budget) && redlock_now() < deadline &&
           !rl_lua_hook_is_new(L, &hook));
  return redlock_client_close(client, 0);
}

static int close_within(lua_State *L, redlock_client *client, redlock_duration budget, int level) {
  int error = close_client(L, client, budget);

  if (error != REDLOCK_OK)
    return rl_lua_push_error(L, error, redlock_client_message(client), level);
  return rl_lua_push_true(L);
}

static int client_close(lua_State *L) {
  rl_lua_client *self = rl_lua_check_client(L, RL_LUA_DIRECT, "client:close()");

  return close_within(L, self->client, node_timeout(self->client), RL_LUA_DIRECT);
}

/* (client): closes without waiting, for drivers that have waited already. */
static int client_close_now(lua_State *L) {
  rl_lua_client *self = rl_lua_check_client(L, RL_LUA_WRAPPED, "client:close()");

  return close_within(L, self->client, 0, RL_LUA_WRAPPED);
}

/* (client): releases its locks and ends their operations, and leaves the connections open for the
   replies. */
static int client_shut(lua_State *L) {
  rl_lua_client *self = rl_lua_check_client(L, RL_LUA_WRAPPED, "client:close()");

  rl_client_enter(self->client);
  rl_core_close(&self->client->core, redlock_now());
  rl_turn_flush(self->client);
  rl_client_leave(self->client);
  return 0;
}

/*
 * (client) -> number of outstanding replies, and the seconds for which close() may wait for them.
 */
static int client_outstanding(lua_State *L) {
  rl_lua_client *self = rl_lua_check_client(L, RL_LUA_WRAPPED, "client:close()");
  size_t outstanding = 0;
  redlock_node_info info;

  for (size_t i = 0; redlock_client_node_info(self->client, i, &info) == REDLOCK_OK; i++)
    outstanding += info.outstanding;
  lua_pushnumber(L, (lua_Number)outstanding);
  rl_lua_push_seconds(L, node_timeout(self->client));
  return 2;
}

/* (client, seconds): makes its descriptor readable after that time, so that a driver needs no
   timer. */
static int client_set_timer(lua_State *L) {
  rl_lua_client *self = rl_lua_check_client(L, RL_LUA_WRAPPED, "set_timer()");
  lua_Number seconds = luaL_checknumber(L, 2);
  redlock_duration wait_us =
      seconds > 0 ? (redlock_duration)(seconds * (lua_Number)REDLOCK_SECONDS) : 0;

  rl_client_enter(self->client);
  rl_poll_at(self->client, rl_time_add(redlock_now(), wait_us));
  rl_client_leave(self->client);
  return 0;
}

/* () -> seconds of a monotonic clock. */
static int client_now(lua_State *L) {
  rl_lua_push_seconds(L, redlock_now());
  return 1;
}

static int client_pollfd(lua_State *L) {
  rl_lua_client *self = rl_lua_check_client(L, RL_LUA_DIRECT, "client:pollfd()");
  int descriptor = redlock_client_pollfd(self->client);

  if (descriptor < 0) {
    lua_pushnil(L);
  } else {
    lua_pushinteger(L, descriptor);
  }
  return 1;
}

static int client_events(lua_State *L) {
  rl_lua_check_client(L, RL_LUA_DIRECT, "client:events()");
  lua_pushliteral(L, "r");
  return 1;
}

static int client_timeout(lua_State *L) {
  rl_lua_push_seconds(
      L, redlock_client_timeout(rl_lua_check_client(L, RL_LUA_DIRECT, "client:timeout()")->client));
  return 1;
}

static int client_process(lua_State *L) {
  rl_lua_client *self = rl_lua_check_client(L, RL_LUA_DIRECT, "client:process()");
  int error = redlock_client_process(self->client, NULL, 0);

  if (rl_lua_credentials_wanted(self->client) && rl_lua_credentials_run(L, self->client))
    return lua_error(L);
  if (error != REDLOCK_OK)
    return rl_lua_push_error(L, error, NULL, RL_LUA_DIRECT);
  return rl_lua_push_true(L);
}

/* (client) -> id of the next lock whose started operation has ended, or nil. */
static int client_next_ended_id(lua_State *L) {
  rl_lua_client *self = rl_lua_check_client(L, RL_LUA_WRAPPED, "next_ended()");
  redlock_lock *lock = redlock_client_next_ended(self->client);

  if (lock == NULL) {
    lua_pushnil(L);
  } else {
    lua_pushnumber(L, (lua_Number)(uintptr_t)redlock_lock_data(lock));
  }
  return 1;
}

/* (client) -> the next lock whose started operation has ended, or nil. Skips collected locks. */
static int client_next_ended(lua_State *L) {
  rl_lua_client *self = rl_lua_check_client(L, RL_LUA_DIRECT, "client:next_ended()");
  redlock_lock *lock;

  while ((lock = redlock_client_next_ended(self->client)) != NULL) {
    if (rl_lua_loss_find(L, lock))
      return 1;
  }
  lua_pushnil(L);
  return 1;
}

/* Never blocks: the anchor takes over a client that has something left to send. */
static int client_gc(lua_State *L) {
  rl_lua_client *self = luaL_testudata(L, 1, RL_LUA_CLIENT);
  redlock_client *client;

  if (self == NULL || self->client == NULL)
    return 0;
  client = self->client;
  self->client = NULL;
  if (self->anchor != NULL)
    rl_lua_memory_give_back(&self->anchor->memory, self->bytes);
  if (self->worker != NULL) {
    self->worker->functions->free_client(self, client);
  } else if (self->anchor != NULL && !self->anchor->finished) {
    rl_linger_add(&self->anchor->linger, client);
  } else {
    redlock_client_free(client);
  }
  return 0;
}

static int client_end_of_scope(lua_State *L) {
  rl_lua_client *self = luaL_testudata(L, 1, RL_LUA_CLIENT);

  if (self != NULL && self->client != NULL)
    (void)close_client(L, self->client, node_timeout(self->client));
  return 0;
}

static int client_tostring(lua_State *L) {
  rl_lua_client *self = luaL_testudata(L, 1, RL_LUA_CLIENT);
  redlock_node_info info;
  int count = 0, up = 0;

  if (self == NULL || self->client == NULL) {
    lua_pushliteral(L, "redlock.client (collected)");
    return 1;
  }
  for (; redlock_client_node_info(self->client, (size_t)count, &info) == REDLOCK_OK; count++)
    up += info.state == REDLOCK_NODE_UP;
  lua_pushfstring(L, "redlock.client (%d of %d nodes connected)", up, count);
  return 1;
}

void rl_lua_client_register(lua_State *L) {
  static const luaL_Reg metamethods[] = {{"__gc", client_gc},
                                         {"__close", client_end_of_scope},
                                         {"__tostring", client_tostring},
                                         {NULL, NULL}};
  static const luaL_Reg methods[] = {
      {"nodes", client_nodes},     {"stats", rl_lua_stats},           {"close", client_close},
      {"pollfd", client_pollfd},   {"events", client_events},         {"timeout", client_timeout},
      {"process", client_process}, {"next_ended", client_next_ended}, {NULL, NULL}};
  static const luaL_Reg functions[] = {{"client", client_new},
                                       {"add", client_add},
                                       {"set_transport", client_set_transport},
                                       {"close", client_close_now},
                                       {"shut", client_shut},
                                       {"outstanding", client_outstanding},
                                       {"set_timer", client_set_timer},
                                       {"now", client_now},
                                       {"next_ended", client_next_ended_id},
                                       {NULL, NULL}};

  luaL_setfuncs(L, functions, 0);
  rl_lua_class(L, RL_LUA_CLIENT, "redlock.client", metamethods, methods);
  lua_setfield(L, -2, "client_methods");
}
