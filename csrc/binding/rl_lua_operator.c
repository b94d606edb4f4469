/*
 * Results of an operator's questions: inspect and doctor.
 *
 * SPDX-License-Identifier: MIT
 */
#include "rl_lua_operator.h"

#include "rl_lua_object.h"
#include "rl_lua_result.h"

/* Sets fields of the table on top of the stack: token, label, fencing token and time to live of a
   key, without those that the key does not have. */
static void set_key(lua_State *L, const char *field, const void *token, size_t length,
                    size_t label_length, uint64_t fence, redlock_duration ttl_us) {
  if (token != NULL) {
    lua_pushlstring(L, token, length);
    lua_setfield(L, -2, field);
    if (label_length > 0) { /* It ends the token. */
      lua_pushlstring(L, (const char *)token + length - label_length, label_length);
      lua_setfield(L, -2, "label");
    }
    if (fence != 0)
      rl_lua_set_whole(L, "fence", fence);
  }
  if (ttl_us != REDLOCK_NEVER)
    rl_lua_set_whole(L, "ttl", ttl_us / REDLOCK_MILLISECONDS);
}

static void push_key(lua_State *L, const redlock_key_info *info) {
  lua_createtable(L, 0, 4);
  if (info->state == REDLOCK_KEY_HELD || info->state == REDLOCK_KEY_OTHER)
    set_key(L, "token", info->token, info->token_length, info->label_length, info->fence,
            info->ttl_us);
  rl_lua_set_text(L, "node", info->name);
  rl_lua_set_text(L, "state", redlock_key_state_name(info->state));
  rl_lua_set_text(L, "error", info->error);
}

int rl_lua_lock_keys(lua_State *L) {
  rl_lua_lock *self = rl_lua_check_lock(L, RL_LUA_WRAPPED, "client:inspect()");
  redlock_holder_info holder;
  redlock_key_info info;

  lua_createtable(L, 0, 3);
  if (redlock_lock_holder(self->lock, &holder) == REDLOCK_OK)
    set_key(L, "holder", holder.token, holder.token_length, holder.label_length, holder.fence,
            holder.ttl_us);
  lua_newtable(L);
  for (size_t i = 0; redlock_lock_key(self->lock, i, &info) == REDLOCK_OK; i++) {
    push_key(L, &info);
    lua_rawseti(L, -2, (int)i + 1);
  }
  lua_setfield(L, -2, "nodes");
  return 1;
}

int rl_lua_lock_findings(lua_State *L) {
  rl_lua_lock *self = rl_lua_check_lock(L, RL_LUA_WRAPPED, "client:doctor()");
  redlock_finding_info info;

  lua_newtable(L);
  for (size_t i = 0; redlock_lock_finding(self->lock, i, &info) == REDLOCK_OK; i++) {
    lua_createtable(L, 0, 4);
    rl_lua_set_text(L, "severity", redlock_severity_name(info.severity));
    rl_lua_set_text(L, "name", info.name);
    rl_lua_set_message(L, "message", info.message);
    rl_lua_set_text(L, "node", info.node);
    lua_rawseti(L, -2, (int)i + 1);
  }
  return 1;
}
