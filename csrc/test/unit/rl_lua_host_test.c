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

#include "redlock.h"
#include "rl_client.h"
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

static void a_client_that_is_pushed_too_early_says_what_to_do(void **state) {
  (void)state;
  lua_State *L = new_state(false);
  redlock_client *client = new_client();
  assert_int_equal(pcall_push(L, client), LUA_ERRRUN);
  assert_non_null(strstr(lua_tostring(L, -1), "require \"redlock\" before a client is pushed"));
  lua_close(L);
  assert_int_equal(client->references, 1);
  redlock_client_free(client);
}

static void a_pushed_client_outlives_its_host(void **state) {
  (void)state;
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

static void the_collector_is_told_of_what_a_client_takes(void **state) {
  (void)state;
  lua_State *L = new_state(true);
  lua_getfield(L, LUA_REGISTRYINDEX, RL_LUA_SENTINEL);
  rl_lua_sentinel *sentinel = lua_touserdata(L, -1);
  run(L, "client = assert(core.client({})) return client");
  rl_lua_client *self = lua_touserdata(L, -1);
  for (unsigned i = 0; i < 2; i++) {
    run(L, i == 0 ? "assert(core.add(client, 'a'))" : "assert(core.add(client, 'b'))");
    lua_pop(L, 1);
    assert_int_equal(sentinel->memory.unseen, rl_client_size(self->client));
  }
  lua_settop(L, 0);
  run(L, "client = nil collectgarbage() collectgarbage()");
  assert_int_equal(sentinel->memory.unseen, 0);
  lua_close(L);
}

/* As in a program that has closed its standard input. */
static void descriptor_0_is_as_good_as_any(void **state) {
  (void)state;
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

/* Calls the finalizer of a class with what is on top of the stack, which it takes away. */
static void finalize(lua_State *L, const char *class) {
  lua_getfield(L, LUA_REGISTRYINDEX, class);
  lua_getfield(L, -1, "__gc");
  assert_true(lua_isfunction(L, -1));
  lua_remove(L, -2);
  lua_insert(L, -2);
  assert_int_equal(lua_pcall(L, 1, 0, 0), 0);
}

static void finalizers_that_a_script_calls_do_no_harm(void **state) {
  (void)state;
  static const char *const classes[] = {RL_LUA_CLIENT, RL_LUA_LOCK, RL_LUA_SENTINEL_CLASS};
  lua_State *L = new_state(true);
  redlock_client *client = new_client();
  assert_int_equal(pcall_push(L, client), 0);
  redlock_client_free(client);
  for (unsigned i = 0; i < COUNT_OF(classes); i++) {
    lua_pushnil(L);
    finalize(L, classes[i]);
    (void)lua_newuserdata(L, 1);
    finalize(L, classes[i]);
  }
  for (unsigned i = 0; i < 2; i++) {
    lua_getfield(L, LUA_REGISTRYINDEX, RL_LUA_SENTINEL);
    finalize(L, RL_LUA_SENTINEL_CLASS);
    lua_pushvalue(L, -1);
    finalize(L, RL_LUA_CLIENT); /* After the sentinel: nobody would look after it any more. */
  }
  lua_close(L);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(a_client_that_is_pushed_too_early_says_what_to_do),
      cmocka_unit_test(a_pushed_client_outlives_its_host),
      cmocka_unit_test(the_collector_is_told_of_what_a_client_takes),
      cmocka_unit_test(descriptor_0_is_as_good_as_any),
      cmocka_unit_test(finalizers_that_a_script_calls_do_no_harm),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
