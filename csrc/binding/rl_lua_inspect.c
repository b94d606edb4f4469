/*
 * What an operator asks of a lock: what the nodes hold.
 *
 * SPDX-License-Identifier: MIT
 *
 * It is for the module's own Lua code, which makes a lock for the question and forgets it.
 */
#include "rl_lua_inspect.h"

#include <string.h>

#include "rl_lua_object.h"
#include "rl_lua_result.h"

/* Sets a field of the table on top of the stack: whole milliseconds, nothing for a key without an end. */
static void set_ttl(lua_State *L, redlock_duration ttl) {
  if (ttl == REDLOCK_NEVER)
    return;
  rl_lua_push_milliseconds(L, ttl);
  lua_setfield(L, -2, "ttl");
}

/* Sets fields of the table on top of the stack. The bytes are copied: a finalizer may move them. */
static void set_token(lua_State *L, const char *field, const void *token, size_t length) {
  char copy[REDLOCK_TOKEN_MAX];

  memcpy(copy, token, length);
  lua_pushlstring(L, copy, length);
  lua_setfield(L, -2, field);
}

static void push_key(lua_State *L, rl_lua_lock *self, size_t index) {
  char name[RL_LUA_NAME_SIZE], text[RL_LUA_MESSAGE_SIZE];
  redlock_key_info info;

  lua_createtable(L, 0, 4);
  if (redlock_lock_key(self->lock, index, &info) != REDLOCK_OK)
    return;
  rl_lua_copy(name, sizeof name, info.name);
  rl_lua_copy(text, sizeof text, info.error);
  if (info.state == REDLOCK_KEY_HELD)
    set_token(L, "token", info.token, info.token_length);
  if (info.state == REDLOCK_KEY_HELD || info.state == REDLOCK_KEY_OTHER)
    set_ttl(L, info.ttl_us);
  lua_pushstring(L, name);
  lua_setfield(L, -2, "node");
  lua_pushstring(L, redlock_key_state_name(info.state));
  lua_setfield(L, -2, "state");
  if (text[0] != '\0') {
    lua_pushstring(L, text);
    lua_setfield(L, -2, "error");
  }
}

/* (lock that was inspected) -> { holder =, ttl =, nodes = { { node =, state =, ... }, ... } }. */
int rl_lua_lock_keys(lua_State *L) {
  rl_lua_lock *self = rl_lua_check_lock(L, RL_LUA_WRAPPED, "client:inspect()");
  size_t count = redlock_client_node_count(redlock_lock_client(self->lock));
  redlock_holder_info holder;

  lua_createtable(L, 0, 3);
  if (redlock_lock_holder(self->lock, &holder) == REDLOCK_OK) {
    redlock_duration ttl = holder.ttl_us;
    set_token(L, "holder", holder.token, holder.token_length);
    set_ttl(L, ttl);
  }
  lua_createtable(L, (int)count, 0);
  for (size_t index = 0; index < count; index++) {
    push_key(L, self, index);
    lua_rawseti(L, -2, (int)index + 1);
  }
  lua_setfield(L, -2, "nodes");
  return 1;
}
