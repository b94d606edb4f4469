/*
 * The lease owner of a lock of a re-entrant client.
 *
 * SPDX-License-Identifier: MIT
 */
#include "rl_lua_reentry.h"

#include <stdint.h>
#include <string.h>

#include "rl_lua_argument.h"
#include "rl_lua_loss.h"
#include "rl_lua_worker.h"

/* registry: numbers of coroutines, weak keys; [0] the last number */
#define COROUTINES "redlock.coroutines/1"
#define NUMBERER "redlock.requests/1" /* registry: function that numbers requests, inside nginx */

enum { OF_COROUTINE = 'c', OF_REQUEST = 'r', OF_CONTEXT = 'v', OF_NAME = 'n' };

rl_lua_reentrant rl_lua_reentry_read(lua_State *L, int index) {
  rl_lua_reentrant option = RL_LUA_REENTRANT_UNSET;
  size_t length;

  if (!lua_istable(L, index))
    return option;
  lua_getfield(L, index, "reentrant");
  if (lua_type(L, -1) == LUA_TSTRING) {
    (void)lua_tolstring(L, -1, &length);
    if (length == 0 || length > RL_LUA_OWNER_NAME_MAX)
      rl_lua_misuse(L, RL_LUA_WRAPPED, "redlock: option 'reentrant' must have from 1 to %d bytes",
                    RL_LUA_OWNER_NAME_MAX);
    return RL_LUA_REENTRANT_NAMED;
  }
  if (!lua_isnil(L, -1)) {
    if (!lua_isboolean(L, -1))
      rl_lua_misuse(L, RL_LUA_WRAPPED, "redlock: option 'reentrant' must be true, false or a name");
    option = lua_toboolean(L, -1) ? RL_LUA_REENTRANT_YES : RL_LUA_REENTRANT_NO;
  }
  lua_pop(L, 1);
  return option;
}

void rl_lua_reentry_note_lock(lua_State *L, rl_lua_lock *self) {
  rl_lua_reentrant option = rl_lua_reentry_read(L, RL_LUA_ARGUMENT);

  if (option != RL_LUA_REENTRANT_UNSET)
    self->reentrant = option;
  if (option != RL_LUA_REENTRANT_NAMED)
    return;
  rl_lua_loss_push_own(L, self, lua_gettop(L) - 1);
  lua_insert(L, -2);
  lua_rawseti(L, -2, RL_LUA_OWNER_NAME);
  lua_pop(L, 1);
}

/* Returns the number of the running coroutine. */
static uint64_t number_of_coroutine(lua_State *L) {
  lua_Number number;

  luaL_checkstack(L, 6, "redlock: coroutines");
  rl_lua_push_weak(L, COROUTINES, "k");
  lua_pushthread(L);
  lua_rawget(L, -2);
  number = lua_tonumber(L, -1);
  lua_pop(L, 1);
  if (number == 0) {
    lua_rawgeti(L, -1, 0);
    number = lua_tonumber(L, -1) + 1;
    lua_pop(L, 1);
    lua_pushthread(L);
    lua_pushnumber(L, number);
    lua_rawset(L, -3);
    lua_pushnumber(L, number);
    lua_rawseti(L, -2, 0);
  }
  lua_pop(L, 1);
  return (uint64_t)number;
}

/* Returns the number of the running request, whatever coroutine it uses; 0 outside of a request. */
static uint64_t number_of_context(lua_State *L) {
  lua_Number number = 0;

  luaL_checkstack(L, 4, "redlock: requests");
  lua_getfield(L, LUA_REGISTRYINDEX, NUMBERER);
  if (!lua_isnil(L, -1)) {
    if (lua_pcall(L, 0, 1, 0) == 0)
      number = lua_tonumber(L, -1);
  }
  lua_pop(L, 1);
  return (uint64_t)number;
}

int rl_lua_reentry_number_by(lua_State *L) {
  luaL_checktype(L, 1, LUA_TFUNCTION);
  lua_settop(L, 1);
  lua_setfield(L, LUA_REGISTRYINDEX, NUMBERER);
  return 0;
}

/* Sets the owner. |of| distinguishes clients that share their connections. */
static int own(rl_lua_lock *self, unsigned char kind, const void *of, const void *bytes,
               size_t length) {
  unsigned char owner[REDLOCK_OWNER_MAX];

  owner[0] = kind;
  memcpy(owner + 1, &of, sizeof of);
  memcpy(owner + 1 + sizeof of, bytes, length);
  return redlock_lock_set_owner(self->lock, owner, 1 + sizeof of + length);
}

/* The client or the anchor distinguishes the numbers of several Lua states that use one client. */
static int own_by_number(rl_lua_lock *self, unsigned char kind, uint64_t number) {
  const void *of = self->worker != NULL ? (const void *)self->client : self->client->anchor;

  return own(self, kind, of, &number, sizeof number);
}

static int own_by_context(lua_State *L, rl_lua_lock *self, int request) {
  uint64_t number = 0;

  if (request != 0)
    number = self->worker->functions->request_number(L, self, request);
  if (number != 0)
    return own_by_number(self, OF_REQUEST, number);
  number = number_of_context(L);
  return number != 0 ? own_by_number(self, OF_CONTEXT, number)
                     : own_by_number(self, OF_COROUTINE, number_of_coroutine(L));
}

/* Pops the name on top of the stack. */
static int own_by_name(lua_State *L, rl_lua_lock *self) {
  size_t length;
  const char *name = lua_tolstring(L, -1, &length);
  int error = own(self, OF_NAME, self->worker != NULL ? self->client : NULL, name, length);

  lua_pop(L, 1);
  return error;
}

int rl_lua_reentry_own(lua_State *L, rl_lua_lock *self, int request) {
  rl_lua_reentrant option = rl_lua_reentry_read(L, RL_LUA_ARGUMENT);
  int error;

  if (option == RL_LUA_REENTRANT_UNSET) {
    option = self->reentrant;
    if (option == RL_LUA_REENTRANT_NAMED) {
      lua_getuservalue(L, 1);
      lua_rawgeti(L, -1, RL_LUA_OWNER_NAME);
      lua_remove(L, -2);
    }
  }
  if (option == RL_LUA_REENTRANT_NAMED) {
    error = own_by_name(L, self);
  } else if (option == RL_LUA_REENTRANT_YES) {
    error = own_by_context(L, self, request);
  } else {
    error = redlock_lock_set_owner(self->lock, NULL, 0);
  }
  return error == REDLOCK_E_BUSY ? REDLOCK_OK : error; /* The acquire reports it. */
}
