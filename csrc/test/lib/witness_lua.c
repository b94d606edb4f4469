/*
 * The witness for Lua specs. require "witness" gives start(), now() and delay(since), in
 * milliseconds; and port(), a port that only this process has (port.h), or nil.
 *
 * SPDX-License-Identifier: MIT
 */
#include <lauxlib.h>
#include <lua.h>

#include "port.h"
#include "witness_clock.h"

static int start(lua_State *L) {
  lua_pushboolean(L, witness_clock_start() == 0);
  return 1;
}

static int now(lua_State *L) {
  lua_pushnumber(L, (lua_Number)witness_clock_now_us() / 1000);
  return 1;
}

static int delay(lua_State *L) {
  int64_t since_us = (int64_t)(luaL_checknumber(L, 1) * 1000);
  lua_pushnumber(L, (lua_Number)witness_clock_delay_us(witness_clock_now_us() - since_us) / 1000);
  return 1;
}

static int port(lua_State *L) {
  int reserved = port_reserve();
  if (reserved == 0) {
    return 0;
  }
  lua_pushinteger(L, reserved);
  return 1;
}

__attribute__((visibility("default"))) int luaopen_witness(lua_State *L);

int luaopen_witness(lua_State *L) {
  lua_newtable(L);
  lua_pushcfunction(L, start);
  lua_setfield(L, -2, "start");
  lua_pushcfunction(L, now);
  lua_setfield(L, -2, "now");
  lua_pushcfunction(L, delay);
  lua_setfield(L, -2, "delay");
  lua_pushcfunction(L, port);
  lua_setfield(L, -2, "port");
  return 1;
}
