/*
 * The client object.
 *
 * SPDX-License-Identifier: MIT
 */
#include <limits.h>
#include <stdint.h>
#include <string.h>

#include "rl_client.h"
#include "rl_lua.h"
#include "rl_lua_mux.h"

/* A text without NUL, or NULL for nil. Lua keeps it as long as it is on the stack. */
static const char *check_text(lua_State *L, int index, const char *name) {
  size_t length;
  const char *text;

  if (lua_isnoneornil(L, index))
    return NULL;
  text = luaL_checklstring(L, index, &length);
  if (strlen(text) != length) {
    rl_lua_misuse(L, RL_LUA_WRAPPED, "redlock: %s must not contain a NUL byte", name);
  }
  return text;
}

static int check_number(lua_State *L, int index, const char *name, int low, int absent) {
  if (lua_isnoneornil(L, index))
    return absent;
  return (int)rl_lua_check_whole(L, index, name, "", low, INT_MAX, RL_LUA_WRAPPED);
}

rl_lua_client *rl_lua_client_push(lua_State *L) {
  rl_lua_client *self = lua_newuserdata(L, sizeof *self);

  memset(self, 0, sizeof *self);
  redlock_options_default(&self->options);
  luaL_getmetatable(L, RL_LUA_CLIENT);
  lua_setmetatable(L, -2);

  /* This table becomes the user value of the locks as well, and keeps both objects for them. */
  lua_createtable(L, 2, 0);
  lua_getfield(L, LUA_REGISTRYINDEX, RL_LUA_SENTINEL);
  self->sentinel = lua_touserdata(L, -1);
  lua_rawseti(L, -2, 1);
  lua_pushvalue(L, -2);
  lua_rawseti(L, -2, 2);
  lua_setuservalue(L, -2);
  return self;
}

/* (prefix, username, password, db, tls, options..., owner) -> client, or nil and what is wrong. */
int rl_lua_client_new(lua_State *L) {
  redlock_settings settings;
  redlock_options options;
  rl_lua_client *self;
  char message[RL_LUA_MESSAGE_SIZE];

  lua_settop(L, 5 + RL_LUA_OPTION_COUNT + 1);
  redlock_settings_default(&settings);
  redlock_options_default(&options);
  if (!lua_isnil(L, 1))
    settings.prefix = luaL_checklstring(L, 1, &settings.prefix_length);
  settings.username = check_text(L, 2, "option 'username'");
  settings.password = check_text(L, 3, "option 'password'");
  settings.db = check_number(L, 4, "option 'db'", 0, settings.db);
  settings.tls = lua_toboolean(L, 5);
  rl_lua_check_options(L, 6, &options, RL_LUA_WRAPPED);
  settings.options = &options;
  if (rl_lua_lease_is_nothing(&options, message, sizeof message)) {
    lua_pushnil(L);
    lua_pushstring(L, message);
    return 2;
  }

  self = rl_lua_client_push(L);
  rl_lua_tend(self->sentinel);
  self->options = options;
  self->of_worker = rl_lua_check_owner(L, 5 + RL_LUA_OPTION_COUNT + 1, 0);
  message[0] = '\0';
  {
    int error = redlock_client_new(&self->client, &settings, message, sizeof message);
    if (error == REDLOCK_OK)
      return 1;
    self->client = NULL;
    lua_pushnil(L);
    lua_pushstring(L, message[0] != '\0' ? message : redlock_strerror(error));
    return 2;
  }
}

/* Tells the collector by how much the client has grown. */
static void note_size(lua_State *L, rl_lua_client *self) {
  size_t bytes = rl_client_size(self->client);
  size_t grown = bytes - self->bytes;

  self->bytes = bytes;
  rl_lua_memory_take(L, &self->sentinel->memory, grown);
}

/* (client, address, host, port, path, username, password, db, tls) -> true, or nil and why not. */
int rl_lua_client_add(lua_State *L) {
  rl_lua_client *self = rl_lua_check_client(L, RL_LUA_WRAPPED, "redlock.new()");
  redlock_node node;
  char message[RL_LUA_MESSAGE_SIZE];
  int error;

  lua_settop(L, 9);
  redlock_node_default(&node);
  node.address = check_text(L, 2, "the address");
  node.host = check_text(L, 3, "option 'host'");
  node.port = check_number(L, 4, "option 'port'", 1, node.port);
  node.path = check_text(L, 5, "option 'path'");
  node.username = check_text(L, 6, "option 'username'");
  node.password = check_text(L, 7, "option 'password'");
  node.db = check_number(L, 8, "option 'db'", 0, node.db);
  if (!lua_isnil(L, 9))
    node.tls = lua_toboolean(L, 9);

  message[0] = '\0';
  error = redlock_client_add_node(self->client, &node, message, sizeof message);
  if (error == REDLOCK_OK) {
    note_size(L, self);
    lua_pushboolean(L, 1);
    return 1;
  }
  lua_pushnil(L);
  lua_pushstring(L, message[0] != '\0' ? message : redlock_strerror(error));
  return 2;
}

static int client_nodes(lua_State *L) {
  static const char *const states[] = {"down", "connecting", "up"};
  rl_lua_client *self = rl_lua_check_client(L, RL_LUA_DIRECT, "client:nodes()");
  size_t count = redlock_client_node_count(self->client);

  lua_createtable(L, (int)count, 0);
  for (size_t index = 0; index < count; index++) {
    char name[RL_LUA_NAME_SIZE];
    char text[RL_LUA_MESSAGE_SIZE];
    redlock_node_info info;

    memset(&info, 0, sizeof info);
    info.size = sizeof info;
    if (redlock_client_node_info(self->client, index, &info) != REDLOCK_OK)
      break;
    rl_lua_copy(name, sizeof name, info.name);
    rl_lua_copy(text, sizeof text, info.error);

    lua_createtable(L, 0, 4);
    lua_pushstring(L, name);
    lua_setfield(L, -2, "node");
    lua_pushstring(L, states[info.state]);
    lua_setfield(L, -2, "state");
    if (text[0] != '\0') {
      lua_pushstring(L, text);
      lua_setfield(L, -2, "error");
    }
    rl_lua_set_latency(L, info.latency_us);
    lua_rawseti(L, -2, (int)index + 1);
  }
  return 1;
}

static int close_within(lua_State *L, redlock_client *client, redlock_duration budget, int level) {
  int error = redlock_client_close(client, budget);

  if (error != REDLOCK_OK)
    return rl_lua_push_error(L, error, NULL, level);
  lua_pushboolean(L, 1);
  return 1;
}

static int client_close(lua_State *L) {
  rl_lua_client *self = rl_lua_check_client(L, RL_LUA_DIRECT, "client:close()");

  return close_within(L, self->client, rl_lua_node_timeout(&self->options), RL_LUA_DIRECT);
}

/* (client): the same without waiting, for drivers that have waited already. */
int rl_lua_client_close_now(lua_State *L) {
  rl_lua_client *self = rl_lua_check_client(L, RL_LUA_WRAPPED, "client:close()");

  return close_within(L, self->client, 0, RL_LUA_WRAPPED);
}

/* (client) -> how many replies are awaited, and for how many seconds close() would do so. */
int rl_lua_client_owed(lua_State *L) {
  rl_lua_client *self = rl_lua_check_client(L, RL_LUA_WRAPPED, "client:close()");
  size_t owed = 0;

  for (size_t index = 0; index < redlock_client_node_count(self->client); index++) {
    redlock_node_info info;
    memset(&info, 0, sizeof info);
    info.size = sizeof info;
    if (redlock_client_node_info(self->client, index, &info) == REDLOCK_OK)
      owed += info.owed;
  }
  lua_pushnumber(L, (lua_Number)owed);
  lua_pushnumber(L, (lua_Number)rl_lua_node_timeout(&self->options) / (lua_Number)REDLOCK_SECONDS);
  return 2;
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
  rl_lua_client *self = rl_lua_check_client(L, RL_LUA_DIRECT, "client:timeout()");
  redlock_duration timeout = redlock_client_timeout(self->client);

  if (timeout == REDLOCK_NEVER) {
    lua_pushnil(L);
  } else {
    lua_pushnumber(L, (lua_Number)timeout / (lua_Number)REDLOCK_SECONDS);
  }
  return 1;
}

static int client_process(lua_State *L) {
  rl_lua_client *self = rl_lua_check_client(L, RL_LUA_DIRECT, "client:process()");
  int error = redlock_client_process(self->client, NULL, 0);

  if (error != REDLOCK_OK)
    return rl_lua_push_error(L, error, NULL, RL_LUA_DIRECT);
  lua_pushboolean(L, 1);
  return 1;
}

/* (client) -> the number of the next lock whose started operation has ended, or nil. */
int rl_lua_client_next_ended(lua_State *L) {
  rl_lua_client *self = rl_lua_check_client(L, RL_LUA_WRAPPED, "next_ended()");
  redlock_lock *lock = redlock_client_next_ended(self->client);

  if (lock == NULL) {
    lua_pushnil(L);
  } else {
    lua_pushnumber(L, (lua_Number)(uintptr_t)redlock_lock_data(lock));
  }
  return 1;
}

/* Never blocks: a client that has something left to send is handed to the sentinel. */
static int client_gc(lua_State *L) {
  rl_lua_client *self = luaL_testudata(L, 1, RL_LUA_CLIENT);
  redlock_client *client;

  if (self == NULL || self->client == NULL)
    return 0;
  client = self->client;
  self->client = NULL;
  if (self->sentinel != NULL)
    rl_lua_memory_give_back(&self->sentinel->memory, self->bytes);
  if (self->mux != NULL) {
    rl_lua_mux_free_client(client);
  } else if (self->sentinel != NULL && !self->sentinel->finished) {
    rl_linger_add(&self->sentinel->linger, client);
  } else {
    redlock_client_free(client);
  }
  return 0;
}

static int client_end_of_scope(lua_State *L) {
  rl_lua_client *self = luaL_testudata(L, 1, RL_LUA_CLIENT);

  if (self != NULL && self->client != NULL) {
    (void)redlock_client_close(self->client, rl_lua_node_timeout(&self->options));
  }
  return 0;
}

static int client_tostring(lua_State *L) {
  rl_lua_client *self = luaL_testudata(L, 1, RL_LUA_CLIENT);
  size_t count, up = 0;

  if (self == NULL || self->client == NULL) {
    lua_pushliteral(L, "redlock.client (collected)");
    return 1;
  }
  count = redlock_client_node_count(self->client);
  for (size_t index = 0; index < count; index++) {
    redlock_node_info info;
    memset(&info, 0, sizeof info);
    info.size = sizeof info;
    if (redlock_client_node_info(self->client, index, &info) == REDLOCK_OK &&
        info.state == REDLOCK_NODE_UP) {
      up++;
    }
  }
  lua_pushfstring(L, "redlock.client (%d of %d nodes connected)", (int)up, (int)count);
  return 1;
}

void rl_lua_client_register(lua_State *L) {
  static const luaL_Reg metamethods[] = {{"__gc", client_gc},
                                         {"__close", client_end_of_scope},
                                         {"__tostring", client_tostring},
                                         {NULL, NULL}};
  static const luaL_Reg methods[] = {{"nodes", client_nodes},
                                     {"close", client_close},
                                     {"pollfd", client_pollfd},
                                     {"events", client_events},
                                     {"timeout", client_timeout},
                                     {"process", client_process},
                                     {NULL, NULL}};

  rl_lua_class(L, RL_LUA_CLIENT, "redlock.client", metamethods, methods);
}
