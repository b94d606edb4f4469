/*
 * What Lua sees of losses.
 *
 * SPDX-License-Identifier: MIT
 */
#include "rl_lua_loss_methods.h"

#include "api/rl_handle.h"
#include "client/rl_client.h"
#include "lease/rl_renew.h"
#include "rl_lua_lock.h"
#include "rl_lua_loss.h"
#include "rl_lua_object.h"
#include "rl_lua_result.h"

/* (client): a driver in Lua looks after it, and is the one who tells. */
static int loss_by_driver(lua_State *L) {
  rl_lua_client *self = rl_lua_check_client(L, RL_LUA_WRAPPED, "redlock.new()");

  self->client->told_by_driver = true;
  return 0;
}

/* (client) -> a function to be called, the lock and the reason to call it with; or nothing. */
static int loss_next(lua_State *L) {
  rl_lua_client *self = rl_lua_check_client(L, RL_LUA_WRAPPED, "next_lost()");

  return rl_lua_loss_take(L, self->client);
}

/* (function): calls an on_lost, its first argument, with the others, and catches its errors. */
static int loss_dispatch_by(lua_State *L) {
  luaL_checktype(L, 1, LUA_TFUNCTION);
  lua_settop(L, 1);
  rl_lua_loss_dispatch_by(L);
  return 0;
}

/* (lock) -> the milliseconds that are left; or nil, and a sentence that says why it is not held. */
static int loss_left(lua_State *L) {
  rl_lua_lock *self = rl_lua_check_lock(L, RL_LUA_WRAPPED, "lock:check()");
  redlock_duration left = redlock_lock_remaining(self->lock);
  char name[RL_LUA_NAME_SIZE + 64];
  redlock_time since;
  int reason;

  if (left >= REDLOCK_MILLISECONDS) {
    rl_lua_push_milliseconds(L, left);
    return 1;
  }
  reason = rl_handle_lost(self->lock, REDLOCK_MILLISECONDS, &since);
  rl_lua_lock_show(self, name, sizeof name);
  lua_pushnil(L);
  if (self->owner_ended) {
    lua_pushfstring(L,
                    "redlock: '%s' is not held any more: it was released when the request that "
                    "took it ended (see owner in docs/openresty.md)",
                    name);
  } else if (reason == REDLOCK_OK) {
    lua_pushfstring(L, "redlock: '%s' is not held", name);
  } else {
    lua_pushfstring(L, "redlock: '%s' is not held any more: %s (%s)", name,
                    redlock_strerror(reason), redlock_error_name(reason));
  }
  return 2;
}

/*
 * (lock) -> whether somebody has to look after its lease: it keeps itself, or its loss is to be told, and
 * it is not lost.
 */
static int loss_is_watched(lua_State *L) {
  rl_lua_lock *self = rl_lua_check_lock(L, RL_LUA_WRAPPED, "watched()");
  redlock_client *client = redlock_lock_client(self->lock);
  bool tells;

  rl_client_enter(client);
  tells = rl_renewal_reports(rl_lock_of(self->lock));
  rl_client_leave(client);
  lua_pushboolean(L, tells && redlock_lock_remaining(self->lock) > 0);
  return 1;
}

void rl_lua_loss_register(lua_State *L) {
  static const luaL_Reg functions[] = {{"told_by_driver", loss_by_driver}, {"next_lost", loss_next},
                                       {"dispatch_by", loss_dispatch_by},  {"left", loss_left},
                                       {"watched", loss_is_watched},       {NULL, NULL}};

  luaL_setfuncs(L, functions, 0);
  rl_lua_loss_init(L);
}
