/*
 * Results of an operator's questions: inspect and doctor.
 *
 * SPDX-License-Identifier: MIT
 */
#include "rl_lua_operator.h"

#include <string.h>

#include "rl_lua_object.h"
#include "rl_lua_result.h"

/* Sets a field of the table on top of the stack: whole milliseconds, or nothing for a key without
   expiry. */
static void set_ttl(lua_State *L, redlock_duration ttl_us) {
  if (ttl_us == REDLOCK_NEVER)
    return;
  rl_lua_push_milliseconds(L, ttl_us);
  lua_setfield(L, -2, "ttl");
}

/*
 * Sets a field of the table on top of the stack. Copies the bytes first: a finalizer may move them.
 */
static void set_token_field(lua_State *L, const char *field, const void *token, size_t length) {
  char copy[REDLOCK_TOKEN_MAX];

  memcpy(copy, token, length);
  lua_pushlstring(L, copy, length);
  lua_setfield(L, -2, field);
}

/* Sets the field |label| of the table on top of the stack to the holder's label, if it has one. */
static void set_label(lua_State *L, const char *label, size_t length) {
  if (label != NULL)
    set_token_field(L, "label", label, length);
}

/* Sets the field |fence| of the table on top of the stack, unless it is 0. */
static void set_fence(lua_State *L, uint64_t fence) {
  if (fence == 0)
    return;
  rl_lua_push_whole(L, fence);
  lua_setfield(L, -2, "fence");
}

static void push_key(lua_State *L, rl_lua_lock *self, size_t index) {
  char name[RL_LUA_NAME_SIZE], text[RL_LUA_MESSAGE_SIZE];
  redlock_key_info info;

  lua_createtable(L, 0, 4);
  if (redlock_lock_key(self->lock, index, &info) != REDLOCK_OK)
    return;
  rl_lua_copy(name, sizeof name, info.name);
  rl_lua_copy(text, sizeof text, info.error);
  if (info.state == REDLOCK_KEY_HELD) {
    char label[REDLOCK_LABEL_MAX];
    size_t length = info.label_length;
    memcpy(label, info.label != NULL ? info.label : "", length);
    set_token_field(L, "token", info.token, info.token_length);
    set_label(L, length > 0 ? label : NULL, length);
    set_fence(L, info.fence);
  }
  if (info.state == REDLOCK_KEY_HELD || info.state == REDLOCK_KEY_OTHER)
    set_ttl(L, info.ttl_us);
  rl_lua_set_text(L, "node", name);
  rl_lua_set_text(L, "state", redlock_key_state_name(info.state));
  rl_lua_set_text(L, "error", text);
}

int rl_lua_lock_keys(lua_State *L) {
  rl_lua_lock *self = rl_lua_check_lock(L, RL_LUA_WRAPPED, "client:inspect()");
  size_t count = redlock_client_node_count(redlock_lock_client(self->lock));
  redlock_holder_info holder;

  lua_createtable(L, 0, 3);
  if (redlock_lock_holder(self->lock, &holder) == REDLOCK_OK) {
    redlock_duration ttl_us = holder.ttl_us;
    uint64_t fence = holder.fence;
    char label[REDLOCK_LABEL_MAX];
    size_t length = holder.label_length;
    memcpy(label, holder.label != NULL ? holder.label : "", length);
    set_token_field(L, "holder", holder.token, holder.token_length);
    set_label(L, length > 0 ? label : NULL, length);
    set_ttl(L, ttl_us);
    set_fence(L, fence);
  }
  lua_createtable(L, (int)count, 0);
  for (size_t index = 0; index < count; index++) {
    push_key(L, self, index);
    lua_rawseti(L, -2, (int)index + 1);
  }
  lua_setfield(L, -2, "nodes");
  return 1;
}

static void push_finding(lua_State *L, const redlock_finding_info *info) {
  char node[RL_LUA_NAME_SIZE], message[RL_LUA_MESSAGE_SIZE];

  rl_lua_copy(node, sizeof node, info->node);
  rl_lua_copy_message(message, sizeof message, info->message);
  lua_createtable(L, 0, 4);
  rl_lua_set_text(L, "severity", redlock_severity_name(info->severity));
  rl_lua_set_text(L, "name", info->name);
  rl_lua_set_text(L, "message", message);
  rl_lua_set_text(L, "node", node);
}

int rl_lua_lock_findings(lua_State *L) {
  rl_lua_lock *self = rl_lua_check_lock(L, RL_LUA_WRAPPED, "client:doctor()");
  redlock_finding_info info;

  lua_newtable(L);
  for (int index = 0; redlock_lock_finding(self->lock, (size_t)index, &info) == REDLOCK_OK;
       index++) {
    push_finding(L, &info);
    lua_rawseti(L, -2, index + 1);
  }
  return 1;
}
