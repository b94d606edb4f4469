/*
 * measure.h for client.lua: Lua has no monotonic clock, and percentiles need a cheap one. The C
 * peers use the same code.
 *
 * SPDX-License-Identifier: MIT
 */
#include <lauxlib.h>
#include <lua.h>

#include "measure.h"

/* One measurement at a time, kept in the registry's userdata that is every function's upvalue. */
typedef struct measure {
  bench_goal goal;
  bench_result result;
  uint64_t begun_ns;
  uint64_t held_ns;
} measure;

static measure *measure_of(lua_State *L) {
  return lua_touserdata(L, lua_upvalueindex(1));
}

/* start(line): a new measurement as the line says; false if there is none to make. */
static int measure_start(lua_State *L) {
  measure *self = measure_of(L);

  if (!bench_goal_read(luaL_checkstring(L, 1), &self->goal)) {
    lua_pushboolean(L, 0);
    return 1;
  }
  bench_result_begin(&self->result);
  self->begun_ns = bench_now_ns();
  lua_pushboolean(L, self->begun_ns < self->goal.end_ns && self->goal.pairs > 0);
  return 1;
}

/* held(): the acquire has ended. */
static int measure_held(lua_State *L) {
  measure_of(L)->held_ns = bench_now_ns();
  return 0;
}

/* ended(ok): ends a pair; returns true if another pair must follow. */
static int measure_ended(lua_State *L) {
  measure *self = measure_of(L);
  uint64_t now_ns = bench_now_ns();

  if (!lua_toboolean(L, 1))
    self->result.failures++;
  bench_record(&self->result, self->begun_ns, self->held_ns, now_ns);
  self->begun_ns = now_ns;
  lua_pushboolean(L, now_ns < self->goal.end_ns && self->result.pairs < self->goal.pairs);
  return 1;
}

/* now(): the nanoseconds of a clock, for record(). */
static int measure_now(lua_State *L) {
  lua_pushnumber(L, (lua_Number)bench_now_ns());
  return 1;
}

/* record(begun, held, ok): ends one of many pairs; returns true if another pair must follow. */
static int measure_record(lua_State *L) {
  measure *self = measure_of(L);
  uint64_t begun_ns = (uint64_t)luaL_checknumber(L, 1);
  uint64_t held_ns = (uint64_t)luaL_checknumber(L, 2);
  uint64_t now_ns = bench_now_ns();

  if (!lua_toboolean(L, 3))
    self->result.failures++;
  bench_record(&self->result, begun_ns, held_ns, now_ns);
  lua_pushboolean(L, now_ns < self->goal.end_ns && self->result.pairs < self->goal.pairs);
  return 1;
}

/* print(): the line of the measurement. */
static int measure_print(lua_State *L) {
  bench_result_print(&measure_of(L)->result, stdout);
  return 0;
}

/* name(number): the resource to lock. */
static int measure_name(lua_State *L) {
  char name[BENCH_NAME_SIZE];

  bench_name(name, sizeof name, (unsigned)luaL_optinteger(L, 1, 0));
  lua_pushstring(L, name);
  return 1;
}

int luaopen_bench_measure(lua_State *L);

int luaopen_bench_measure(lua_State *L) {
  static const luaL_Reg functions[] = {{"name", measure_name},  {"start", measure_start},
                                       {"held", measure_held},  {"ended", measure_ended},
                                       {"now", measure_now},    {"record", measure_record},
                                       {"print", measure_print}};
  measure *self;

  lua_newtable(L);
  self = lua_newuserdata(L, sizeof *self);
  self->begun_ns = self->held_ns = 0;
  for (size_t i = 0; i < sizeof functions / sizeof functions[0]; i++) {
    lua_pushvalue(L, -1);
    lua_pushcclosure(L, functions[i].func, 1);
    lua_setfield(L, -3, functions[i].name);
  }
  lua_pop(L, 1);
  return 1;
}
