/*
 * The doctor: what was found, as a list of tables.
 *
 * SPDX-License-Identifier: MIT
 *
 * It is for the module's own Lua code, which makes a lock for the examination and forgets it.
 */
#include "rl_lua_doctor.h"

#include "rl_lua_object.h"
#include "rl_lua_result.h"

static void push_finding(lua_State *L, const redlock_finding_info *info) {
  char node[RL_LUA_NAME_SIZE];
  char message[RL_LUA_MESSAGE_SIZE];

  rl_lua_copy(node, sizeof node, info->node);
  rl_lua_copy_message(message, sizeof message, info->message);
  lua_createtable(L, 0, 4);
  lua_pushstring(L, redlock_severity_name(info->severity));
  lua_setfield(L, -2, "severity");
  lua_pushstring(L, info->name);
  lua_setfield(L, -2, "name");
  lua_pushstring(L, message);
  lua_setfield(L, -2, "message");
  if (node[0] != '\0') {
    lua_pushstring(L, node);
    lua_setfield(L, -2, "node");
  }
}

/* (lock that was examined with) -> { { severity =, name =, node =, message = }, ... }. */
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
