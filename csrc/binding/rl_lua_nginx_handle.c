/*
 * The handles of clients and locks in nginx's driver.
 *
 * SPDX-License-Identifier: MIT
 */
#include "rl_lua_nginx_handle.h"

#include "client/rl_client.h"
#include "client/rl_pump.h"
#include "lock/rl_events.h"

/*
 * LuaJIT's type cdata, which lua.h does not name; lua_topointer() returns the address of its value.
 */
#define TYPE_CDATA 10

void *rl_lua_nginx_request_at(lua_State *L, int index) {
  return lua_type(L, index) == TYPE_CDATA ? *(void *const *)lua_topointer(L, index) : NULL;
}

void rl_lua_nginx_check_fork(rl_lua_nginx *self) {
  if (!rl_fork_happened(&self->client->mark))
    return;
  rl_client_check_fork(self->client);
  self->open = 0;
  self->woken = 0;
  self->wake_us = 0;
}

rl_lua_nginx *rl_lua_nginx_check(lua_State *L) {
  rl_lua_nginx *self = luaL_checkudata(L, 1, RL_LUA_NGINX);

  if (self->client == NULL)
    luaL_error(L, "redlock: the client has been collected");
  rl_lua_nginx_check_fork(self);
  return self;
}

uint32_t rl_lua_nginx_wake_writers(rl_lua_nginx *self) {
  uint32_t writers = rl_core_with_output(&self->client->core) & self->open & ~self->woken;

  self->woken |= writers;
  return writers;
}

bool rl_lua_nginx_has_losses(const rl_lua_nginx *self) {
  const redlock_client *client = self->client;

  return (client->has_on_lost && !rl_list_is_empty(&client->core.losses->queue)) ||
         (client->has_on_event && rl_events_are_there(client->core.events));
}

bool rl_lua_nginx_wake_clock(rl_lua_nginx *self) {
  redlock_time deadline_us = rl_core_deadline(&self->client->core);

  if (rl_lua_nginx_has_losses(self))
    deadline_us = 0;
  if (deadline_us >= self->wake_us)
    return false;
  self->wake_us = deadline_us;
  return true;
}
