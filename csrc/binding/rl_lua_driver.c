/*
 * Functions for drivers that are written in Lua: losses and credentials.
 *
 * SPDX-License-Identifier: MIT
 */
#include "api/rl_handle.h"
#include "lease/rl_loss.h"
#include "lease/rl_renew.h"
#include "rl_lua_credentials.h"
#include "rl_lua_lock.h"
#include "rl_lua_loss.h"
#include "rl_lua_object.h"
#include "rl_lua_result.h"

/* (client): from now on the driver calls on_lost and the credentials function. */
static int driver_serves(lua_State *L) {
  rl_lua_client *self = rl_lua_check_client(L, RL_LUA_WRAPPED, "redlock.new()");

  rl_client_enter(self->client);
  self->client->driver_reports_losses = true;
  self->client->asked_by_driver = true;
  rl_client_leave(self->client);
  return 0;
}

/* (client) -> a function to call with the lock and the reason, which follow; or nothing. */
static int driver_next_lost(lua_State *L) {
  rl_lua_client *self = rl_lua_check_client(L, RL_LUA_WRAPPED, "next_lost()");

  return rl_lua_loss_take(L, self->client);
}

/*
 * (function): sets the function that calls an on_lost, its first argument, and catches its errors.
 */
static int driver_dispatch_by(lua_State *L) {
  luaL_checktype(L, 1, LUA_TFUNCTION);
  lua_settop(L, 1);
  rl_lua_loss_dispatch_by(L);
  return 0;
}

/* (lock) -> milliseconds of the lease that are left; or nil, message. */
static int driver_left(lua_State *L) {
  rl_lua_lock *self = rl_lua_check_lock(L, RL_LUA_WRAPPED, "lock:check()");
  redlock_duration left_us = redlock_lock_remaining(self->lock);
  char name[RL_LUA_NAME_SIZE + 64];
  redlock_time since_us;
  int reason;

  if (left_us >= REDLOCK_MILLISECONDS) {
    rl_lua_push_milliseconds(L, left_us);
    return 1;
  }
  reason = rl_handle_lost(self->lock, REDLOCK_MILLISECONDS, &since_us);
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

/* (lock) -> true if its driver must extend the lease or report its loss. That is so after the
   deadline, too, until the loss is reported: the machine may have stalled since the last turn. */
static int driver_is_watched(lua_State *L) {
  rl_lua_lock *self = rl_lua_check_lock(L, RL_LUA_WRAPPED, "watched()");
  redlock_client *client = redlock_lock_client(self->lock);
  const rl_lock *lock = rl_lock_of(self->lock);
  bool watched;

  rl_client_enter(client);
  watched = rl_renewal_reports(lock) && lock->lease != NULL &&
            (lock->loss == REDLOCK_OK || rl_loss_only_warns(lock->loss));
  rl_client_leave(client);
  lua_pushboolean(L, watched);
  return 1;
}

/* (client) -> its credentials function, and name and number of the next node to call it for; or
   nothing. */
static int driver_next_asked(lua_State *L) {
  rl_lua_client *self = rl_lua_check_client(L, RL_LUA_WRAPPED, "next_asked()");
  const char *name = NULL;
  unsigned node;

  if (self->client->settings.credentials != rl_lua_credentials_later ||
      !rl_lua_credentials_take(self->client, 0, &node, &name))
    return 0;
  rl_lua_credentials_push(L);
  lua_pushstring(L, name);
  lua_pushinteger(L, (lua_Integer)node + 1);
  return 3;
}

/* (client, number of a node, results of pcall(function, ...)): gives the credentials to the
   library. */
static int driver_give_credentials(lua_State *L) {
  rl_lua_client *self = rl_lua_check_client(L, RL_LUA_WRAPPED, "give_credentials()");
  lua_Integer node = luaL_checkinteger(L, 2);
  rl_lua_credentials_answer answer;

  lua_settop(L, 5);
  rl_lua_credentials_read(L, &answer);
  rl_lua_credentials_give(self->client, (unsigned)(node - 1), &answer);
  return 0;
}

/* (client) -> its credentials function, or nil. */
static int driver_credentials_of(lua_State *L) {
  (void)rl_lua_check_client(L, RL_LUA_WRAPPED, "credentials_of()");
  rl_lua_credentials_push(L);
  return 1;
}

void rl_lua_driver_register(lua_State *L) {
  static const luaL_Reg functions[] = {{"driver_serves", driver_serves},
                                       {"next_lost", driver_next_lost},
                                       {"dispatch_by", driver_dispatch_by},
                                       {"left", driver_left},
                                       {"watched", driver_is_watched},
                                       {"next_asked", driver_next_asked},
                                       {"give_credentials", driver_give_credentials},
                                       {"credentials_of", driver_credentials_of},
                                       {NULL, NULL}};

  luaL_setfuncs(L, functions, 0);
}
