/*
 * A host in C that embeds Lua: clients that it pushes, and finalizers that a script gets hold of.
 *
 * SPDX-License-Identifier: MIT
 */
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include <lauxlib.h>
#include <lua.h>
#include <lualib.h>

#include "client/rl_client.h"
#include "redlock.h"
#include "rl_lua.h"
#include "rl_test.h"

static redlock_client *new_client(void) {
  redlock_client *client;
  assert_error(redlock_client_new(&client, NULL, NULL, 0), REDLOCK_OK);
  assert_error(redlock_client_add(client, "127.0.0.1:1", NULL, 0), REDLOCK_OK);
  return client;
}

static int push(lua_State *L) {
  return redlock_lua_push_client(L, lua_touserdata(L, 1));
}

static lua_State *new_state(bool with_module) {
  lua_State *L = luaL_newstate();
  assert_non_null(L);
  luaL_openlibs(L);
  if (with_module) {
    lua_pushcfunction(L, luaopen_redlock_core);
    assert_int_equal(lua_pcall(L, 0, 1, 0), 0);
    lua_setglobal(L, "core");
  }
  return L;
}

static int pcall_push(lua_State *L, redlock_client *client) {
  lua_pushcfunction(L, push);
  lua_pushlightuserdata(L, client);
  return lua_pcall(L, 1, 1, 0);
}

static void client_pushed_before_require_raises_advice(void **state) {
  lua_State *L = new_state(false);
  redlock_client *client = new_client();
  assert_int_equal(pcall_push(L, client), LUA_ERRRUN);
  assert_non_null(strstr(lua_tostring(L, -1), "require \"redlock\" before a client is pushed"));
  lua_close(L);
  assert_int_equal(client->references, 1);
  redlock_client_free(client);
}

static void pushed_client_outlives_its_host(void **state) {
  lua_State *L = new_state(true);
  redlock_client *client = new_client();
  assert_int_equal(pcall_push(L, client), 0);
  assert_int_equal(client->references, 2);
  lua_setglobal(L, "client");
  redlock_client_free(client);
  assert_int_equal(luaL_loadstring(L, "return #core.client_methods.nodes(client)"), 0);
  assert_int_equal(lua_pcall(L, 0, 1, 0), 0);
  assert_int_equal(lua_tonumber(L, -1), 1);
  lua_close(L);
}

/* Runs |code|; its result is on top of the stack. */
static void run(lua_State *L, const char *code) {
  assert_int_equal(luaL_loadstring(L, code), 0);
  if (lua_pcall(L, 0, 1, 0) != 0) {
    fail_msg("%s", lua_tostring(L, -1));
  }
}

static void collector_accounts_for_memory_of_client(void **state) {
  lua_State *L = new_state(true);
  lua_getfield(L, LUA_REGISTRYINDEX, RL_LUA_ANCHOR);
  rl_lua_anchor *anchor = lua_touserdata(L, -1);
  run(L, "client = assert(core.client({})) return client");
  rl_lua_client *self = lua_touserdata(L, -1);
  for (unsigned i = 0; i < 2; i++) {
    run(L, i == 0 ? "assert(core.add(client, 'a'))" : "assert(core.add(client, 'b'))");
    lua_pop(L, 1);
    assert_int_equal(anchor->memory.unseen, rl_client_size(self->client));
  }
  lua_settop(L, 0);
  run(L, "client = nil collectgarbage() collectgarbage()");
  assert_int_equal(anchor->memory.unseen, 0);
  lua_close(L);
}

/* As in a program that has closed its standard input. */
static void client_uses_descriptor_0(void **state) {
  lua_State *L = new_state(true);
  int input = fcntl(0, F_DUPFD_CLOEXEC, 3);
  (void)close(0);
  run(L, "client = assert(core.client({})) return client:pollfd()");
  assert_true(lua_isnumber(L, -1));
  assert_int_equal(lua_tonumber(L, -1), 0);
  lua_close(L);
  if (input >= 0) {
    assert_int_equal(dup2(input, 0), 0);
    (void)close(input);
  }
}

/* Calls the finalizer of a class with the value on top of the stack, and pops it. */
static void finalize(lua_State *L, const char *class) {
  lua_getfield(L, LUA_REGISTRYINDEX, class);
  lua_getfield(L, -1, "__gc");
  assert_true(lua_isfunction(L, -1));
  lua_remove(L, -2);
  lua_insert(L, -2);
  assert_int_equal(lua_pcall(L, 1, 0, 0), 0);
}

static void finalizers_called_by_script_do_no_harm(void **state) {
  static const char *const classes[] = {RL_LUA_CLIENT, RL_LUA_LOCK, RL_LUA_ANCHOR_CLASS};
  lua_State *L = new_state(true);
  redlock_client *client = new_client();
  assert_int_equal(pcall_push(L, client), 0);
  for (unsigned i = 0; i < COUNT_OF(classes); i++) {
    lua_pushnil(L);
    finalize(L, classes[i]);
    (void)lua_newuserdata(L, 1);
    finalize(L, classes[i]);
  }
  for (unsigned i = 0; i < 2; i++) {
    lua_getfield(L, LUA_REGISTRYINDEX, RL_LUA_ANCHOR);
    finalize(L, RL_LUA_ANCHOR_CLASS);
    lua_pushvalue(L, -1);
    finalize(L, RL_LUA_CLIENT); /* After the anchor, which would have sent the rest. */
  }
  assert_int_equal(client->references, 1);
  redlock_client_free(client);
  lua_close(L);
}

/* Calls metamethod |name| of a class with the value on top of the stack, and pops it. */
static void call_method(lua_State *L, const char *class, const char *name) {
  lua_getfield(L, LUA_REGISTRYINDEX, class);
  lua_getfield(L, -1, name);
  assert_true(lua_isfunction(L, -1));
  lua_remove(L, -2);
  lua_insert(L, -2);
  assert_int_equal(lua_pcall(L, 1, 1, 0), 0);
}

static void metamethods_called_on_other_values_do_no_harm(void **state) {
  static const char *const classes[] = {RL_LUA_CLIENT, RL_LUA_LOCK};
  static const char *const shown[] = {"redlock.client (collected)", "redlock.lock (collected)"};
  lua_State *L = new_state(true);
  run(L, "client = assert(core.client({})) assert(core.add(client, 'a'))"
         "lock = assert(core.lock(client, 'r'))");
  for (unsigned i = 0; i < COUNT_OF(classes); i++) {
    for (unsigned with = 0; with < 3; with++) {
      for (unsigned shows = 0; shows < 2; shows++) {
        if (with == 0) {
          lua_pushnil(L);
        } else if (with == 1) {
          (void)lua_newuserdata(L, 1);
        } else {
          lua_getglobal(L, i == 0 ? "client" : "lock"); /* finalized */
        }
        call_method(L, classes[i], shows ? "__tostring" : "__close");
        if (shows) {
          assert_string_equal(lua_tostring(L, -1), shown[i]);
        }
        lua_pop(L, 1);
      }
      lua_getglobal(L, i == 0 ? "client" : "lock");
      finalize(L, classes[i]);
    }
  }
  assert_int_equal(luaL_loadstring(L, "core.add(client, 'b')"), 0);
  assert_int_equal(lua_pcall(L, 0, 0, 0), LUA_ERRRUN);
  assert_non_null(strstr(lua_tostring(L, -1), "on a client that has been collected"));
  assert_int_equal(luaL_loadstring(L, "core.pending(lock)"), 0);
  assert_int_equal(lua_pcall(L, 0, 0, 0), LUA_ERRRUN);
  assert_non_null(strstr(lua_tostring(L, -1), "on a lock that has been collected"));
  lua_close(L);
}

/* A script that calls redlock.core directly reaches these checks. */
static void binding_refuses_unchecked_arguments(void **state) {
  static const char *const wrong[][2] = {
      {"core.client({drift_factor = 1})", "option 'drift_factor' must be a number >= 0 and < 1"},
      {"core.client({drift_factor = -0.1})", "option 'drift_factor' must be a number >= 0"},
      {"core.client({drift_factor = 0/0})", "option 'drift_factor' must be a number >= 0"},
      {"core.client({drift_factor = '0'})", "option 'drift_factor' must be a number >= 0"},
      {"core.client({ttl = 0})", "option 'ttl' must be an integer >= 1 (milliseconds), got 0"},
      {"core.client({ttl = 1.5})", "option 'ttl' must be an integer >= 1 (milliseconds), got 1.5"},
      {"core.client({ttl = 0/0})", "got nan"},
      {"core.client({ttl = 1e300})", "option 'ttl' must be at most 31622400000 (milliseconds)"},
      {"core.client({ttl = 31622400001})", "must be at most 31622400000 (milliseconds)"},
      {"core.client({ttl = true})", "option 'ttl' must be an integer >= 1 (milliseconds), got a"},
      {"core.client({tls = 1})", "option 'tls' must be true or false"},
      {"core.client({auto_extend = 1})", "option 'auto_extend' must be true or false"},
      {"core.client({tls = 'x'})", "option 'tls' must be true or false"},
      {"core.client({tls = {ca = 1}})", "option 'tls.ca' must be a string"},
      {"core.client({tls = {min_version = '1'}})",
       "option 'tls.min_version' must be one of 1.2|1.3"},
      {"core.client({tls = {min_version = 1.2}})", "option 'tls.min_version' must be one of"},
      {"core.client({owner = 'req'})", "option 'owner' must be one of request|worker"},
      {"core.client({owner = 'requesT'})", "option 'owner' must be one of request|worker"},
      {"core.client({owner = 1})", "option 'owner' must be one of request|worker"},
      {"core.client({username = 'a\\0b'})", "option 'username' must not contain a NUL byte"},
      {"core.client({username = 1})", "option 'username' must be a string"},
      {"core.client(7)", "options must be a table, got a number"},
      {"core.add(client, 'a\\0b')", "the address contains a NUL byte"},
      {"core.add(client, 7)", "options must be a table, got a number"},
      {"core.add(nil, 'b')", "needs a client before the colon, got nil"},
      {"core.add(7, 'b')", "needs a client before the colon, got a number"},
      {"core.lock(client, {})", "a lock needs at least one resource"},
      {"core.lock(client, {1})", "resource must be a string"},
      {"core.run(lock, 0)", "no such operation"},
      {"core.run(lock, 99)", "no such operation"},
  };
  lua_State *L = new_state(true);
  run(L, "client = assert(core.client({drift_factor = 0.5, ttl = 31622400000}))"
         "assert(core.add(client, 'a')) lock = assert(core.lock(client, 'r'))");
  lua_pop(L, 1);
  for (unsigned i = 0; i < COUNT_OF(wrong); i++) {
    if (luaL_loadstring(L, wrong[i][0]) != 0 || lua_pcall(L, 0, 0, 0) == 0) {
      fail_msg("%s is taken", wrong[i][0]);
    }
    if (strstr(lua_tostring(L, -1), wrong[i][1]) == NULL) {
      fail_msg("%s: %s", wrong[i][0], lua_tostring(L, -1));
    }
    lua_pop(L, 1);
  }
  lua_close(L);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(client_pushed_before_require_raises_advice),
      cmocka_unit_test(pushed_client_outlives_its_host),
      cmocka_unit_test(collector_accounts_for_memory_of_client),
      cmocka_unit_test(client_uses_descriptor_0),
      cmocka_unit_test(finalizers_called_by_script_do_no_harm),
      cmocka_unit_test(metamethods_called_on_other_values_do_no_harm),
      cmocka_unit_test(binding_refuses_unchecked_arguments),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
