/*
 * Classes of userdata, and the client or lock that a method is called on.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef RL_LUA_OBJECT_H
#define RL_LUA_OBJECT_H

#include "rl_lua.h"

/* Creates class |name| from its metamethods and methods, and pushes the table of methods. */
void rl_lua_class(lua_State *L, const char *name, const char *public_name,
                  const luaL_Reg *metamethods, const luaL_Reg *methods);

/* Sends what collected clients have left to send. */
static inline void rl_lua_tend(rl_lua_anchor *anchor) {
  if (anchor->linger.first != NULL)
    rl_linger_process(&anchor->linger);
}

/* Return the object at index 1, or raise misuse of |method|. */
rl_lua_client *rl_lua_check_client(lua_State *L, int level, const char *method);
rl_lua_lock *rl_lua_check_lock(lua_State *L, int level, const char *method);

#endif /* RL_LUA_OBJECT_H */
