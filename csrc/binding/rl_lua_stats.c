/*
 * client:stats().
 *
 * SPDX-License-Identifier: MIT
 */
#include <math.h>

#include "base/rl_stats.h"
#include "rl_lua_object.h"
#include "rl_lua_result.h"

static void set_outcomes(lua_State *L, const char *field, const redlock_outcomes *outcomes) {
  lua_createtable(L, 0, 10);
#define SET_OUTCOME(name, value) rl_lua_set_whole(L, #name, outcomes->name);
  RL_OUTCOMES(SET_OUTCOME)
  rl_lua_set_whole(L, "error", outcomes->error);
  lua_setfield(L, -2, field);
}

static void set_histogram(lua_State *L, const char *field, const redlock_histogram *histogram) {
  lua_createtable(L, 0, 3);
  rl_lua_set_whole(L, "count", histogram->count);
  rl_lua_push_seconds(L, histogram->sum_us);
  lua_setfield(L, -2, "sum");
  lua_createtable(L, REDLOCK_BUCKETS, 0);
  for (int i = 0; i < REDLOCK_BUCKETS; i++) {
    redlock_duration bound_us = redlock_bucket_bound((size_t)i);
    lua_createtable(L, 0, 2);
    lua_pushnumber(L, bound_us == REDLOCK_NEVER
                          ? (lua_Number)HUGE_VAL
                          : (lua_Number)bound_us / (lua_Number)REDLOCK_SECONDS);
    lua_setfield(L, -2, "le");
    rl_lua_set_whole(L, "count", histogram->buckets[i]);
    lua_rawseti(L, -2, i + 1);
  }
  lua_setfield(L, -2, "buckets");
  lua_setfield(L, -2, field);
}

static void push_node_stats(lua_State *L, const redlock_node_stats_info *info) {
  lua_createtable(L, 0, 10);
  rl_lua_set_text(L, "node", info->name);
  rl_lua_set_boolean(L, "up", info->up == REDLOCK_YES);
  rl_lua_set_boolean(L, "quarantined", info->quarantined == REDLOCK_YES);
  lua_createtable(L, 0, 6);
#define SET_VOTES(vote, name, count) rl_lua_set_whole(L, #name, info->votes_##name);
  RL_VOTES(SET_VOTES)
  rl_lua_set_whole(L, "late", info->votes_late);
  lua_setfield(L, -2, "votes");
  set_histogram(L, "latency", &info->latency);
  rl_lua_set_whole(L, "connections", info->connections);
  rl_lua_set_whole(L, "failures", info->failures);
  rl_lua_set_whole(L, "heals", info->heals);
  rl_lua_set_whole(L, "quarantines", info->quarantines);
  rl_lua_set_whole(L, "outstanding", info->outstanding);
}

static void set_nodes(lua_State *L, redlock_client *client) {
  redlock_node_stats_info info;

  lua_newtable(L);
  for (size_t i = 0; redlock_client_node_stats(client, i, &info) == REDLOCK_OK; i++) {
    push_node_stats(L, &info);
    lua_rawseti(L, -2, (int)i + 1);
  }
  lua_setfield(L, -2, "nodes");
}

int rl_lua_stats(lua_State *L) {
  rl_lua_client *self = rl_lua_check_client(L, RL_LUA_DIRECT, "client:stats()");
  redlock_stats_info info = {0};

  luaL_checkstack(L, 8, "redlock: client:stats()");
  (void)redlock_client_stats(self->client, &info);
  lua_createtable(L, 0, 10);
  lua_createtable(L, 0, 4);
  set_outcomes(L, "acquire", &info.acquire);
  set_outcomes(L, "extend", &info.extend);
  set_outcomes(L, "auto_extend", &info.auto_extend);
  set_outcomes(L, "release", &info.release);
  lua_setfield(L, -2, "operations");
  rl_lua_set_whole(L, "attempts", info.attempts);
  set_nodes(L, self->client);
  rl_lua_set_whole(L, "quorum", info.quorum);
  set_histogram(L, "acquire_time", &info.acquire_time);
  set_histogram(L, "wait_time", &info.wait_time);
  rl_lua_set_whole(L, "held", info.held);
  rl_lua_set_whole(L, "waiting", info.waiting);
  lua_createtable(L, 0, 3);
  rl_lua_set_whole(L, "expired", info.lost_expired);
  rl_lua_set_whole(L, "lost", info.lost_denied);
  rl_lua_set_whole(L, "max_hold", info.lost_max_hold);
  lua_setfield(L, -2, "lost");
  lua_createtable(L, 0, 2);
  rl_lua_set_whole(L, "unavailable", info.warned_unavailable);
  rl_lua_set_whole(L, "clock", info.warned_clock);
  lua_setfield(L, -2, "warnings");
  return 1;
}
