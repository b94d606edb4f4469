/*
 * Operations that requests of nginx wait for, where no nginx is needed.
 *
 * SPDX-License-Identifier: MIT
 */
#include <stdlib.h>
#include <string.h>

#include <lauxlib.h>
#include <lua.h>
#include <lualib.h>

#include "rl_lua.h"
#include "rl_test.h"

static bool out_of_memory;

void *__real_realloc(void *block, size_t size);
void *__wrap_realloc(void *block, size_t size);

void *__wrap_realloc(void *block, size_t size) {
  return out_of_memory ? NULL : __real_realloc(block, size);
}

static int set_out_of_memory(lua_State *L) {
  out_of_memory = lua_toboolean(L, 1);
  return 0;
}

/* Runs |code|, which returns a text. */
static void assert_says(const char *code, const char *expected) {
  lua_State *L = luaL_newstate();
  assert_non_null(L);
  luaL_openlibs(L);
  lua_pushcfunction(L, luaopen_redlock_core);
  assert_int_equal(lua_pcall(L, 0, 1, 0), 0);
  lua_setglobal(L, "core");
  lua_pushcfunction(L, set_out_of_memory);
  lua_setglobal(L, "set_out_of_memory");
  assert_int_equal(luaL_loadstring(L, code), 0);
  int error = lua_pcall(L, 0, 1, 0);
  assert_string_equal(lua_tostring(L, -1), expected);
  assert_int_equal(error, 0);
  lua_close(L);
}

/* No request waits at a sleeper, so the operation must have ended before start() returns. */
static void operation_without_memory_for_its_sleeper_ends_at_once(void **state) {
  assert_says("local client = core.client(nil, true)\n"
              "core.add(client, '127.0.0.1:1')\n"
              "local nginx = core.nginx\n"
              "local handle = nginx.new(client)\n"
              "nginx.attach(client, {})\n"
              "local lock = core.lock(client, 'name')\n"
              "local function acquire()\n"
              "  local _, pending = nginx.start(lock, core.operations.acquire.code, nil, 1)\n"
              "  return tostring(pending) .. ' ' .. tostring((select(4, nginx.state(handle))))\n"
              "end\n"
              "set_out_of_memory(true)\n"
              "local said = acquire()\n"
              "set_out_of_memory(false)\n"
              "local ok, message = pcall(nginx.result, lock)\n"
              "message = message:gsub('^.-:%d+: ', '')\n"
              "said = said .. ', ' .. tostring(ok) .. ' ' .. message\n"
              "return said .. ', ' .. acquire()",
              "false false, false redlock: 'name': out of memory, true true");
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(operation_without_memory_for_its_sleeper_ends_at_once),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
