/*
 * Results of methods.
 *
 * SPDX-License-Identifier: MIT
 */
#include <string.h>

#include <lauxlib.h>
#include <lua.h>

#include "redlock.h"
#include "rl_lua_result.h"
#include "rl_test.h"

/* Returns the part of |text| that fits into |size| bytes, and checks the bytes behind them. */
static const char *copied(size_t size, const char *text) {
  static char room[16];
  memset(room, '#', sizeof room);
  rl_lua_copy(room, size, text);
  for (size_t i = size; i < sizeof room; i++) {
    assert_int_equal(room[i], '#');
  }
  return room;
}

static void too_long_text_is_cut_between_characters(void **state) {
  assert_string_equal(copied(8, NULL), "");
  assert_string_equal(copied(8, ""), "");
  assert_string_equal(copied(8, "seven b"), "seven b");
  assert_string_equal(copied(8, "eight by"), "eight b");
  assert_string_equal(copied(1, "x"), "");
  assert_string_equal(copied(8, "\u00e9t\u00e9 ou"), "\u00e9t\u00e9 o"); /* 2 + 1 + 2 + 1 + 2 */
  assert_string_equal(copied(8, "\u20ac\u20ac\u20ac"), "\u20ac\u20ac");
  assert_string_equal(copied(3, "\u20ac"), ""); /* no part of a character */
  assert_string_equal(copied(2, "\u20ac"), "");
  assert_string_equal(copied(4, "\x80\x80\x80\x80\x80"),
                      ""); /* the rest of one, and nothing else */
}

static void latency_is_in_milliseconds(void **state) {
  lua_State *L = luaL_newstate();
  assert_non_null(L);
  lua_newtable(L);
  rl_lua_set_latency(L, REDLOCK_NEVER);
  lua_getfield(L, -1, "latency");
  assert_true(lua_isnil(L, -1));
  lua_pop(L, 1);
  rl_lua_set_latency(L, 1500);
  lua_getfield(L, -1, "latency");
  assert_true(lua_tonumber(L, -1) == 1.5);
  lua_pop(L, 1);
  rl_lua_push_milliseconds(L, 2999);
  assert_true(lua_tonumber(L, -1) == 2);
  rl_lua_push_milliseconds(L, 366 * 24 * 3600 * SECONDS);
  assert_true(lua_tonumber(L, -1) == 31622400000.0);
  lua_close(L);
}

static void error_without_message_has_text_of_its_code(void **state) {
  lua_State *L = luaL_newstate();
  assert_non_null(L);
  for (unsigned i = 0; i < 2; i++) {
    assert_int_equal(rl_lua_push_error(L, REDLOCK_E_TAKEN, i == 0 ? NULL : "", 1), 3);
    assert_true(lua_isnil(L, -3));
    assert_string_equal(lua_tostring(L, -2), redlock_strerror(REDLOCK_E_TAKEN));
    assert_string_equal(lua_tostring(L, -1), "taken");
  }
  assert_int_equal(rl_lua_push_error(L, REDLOCK_E_SYSTEM, "no descriptors are left", 1), 3);
  assert_string_equal(lua_tostring(L, -2), "no descriptors are left");
  assert_string_equal(lua_tostring(L, -1), "unavailable");
  lua_close(L);
}

static int misuse(lua_State *L) {
  return rl_lua_push_error(L, (int)lua_tonumber(L, 1), "said", 1);
}

static void misuse_is_raised_and_failure_is_returned(void **state) {
  static const int raised[] = {REDLOCK_E_INVALID};
  static const int returned[] = {REDLOCK_E_TAKEN, REDLOCK_E_SYSTEM};
  lua_State *L = luaL_newstate();
  assert_non_null(L);
  for (unsigned i = 0; i < COUNT_OF(raised) + COUNT_OF(returned); i++) {
    bool raises = i < COUNT_OF(raised);
    lua_pushcfunction(L, misuse);
    lua_pushnumber(L, raises ? raised[i] : returned[i - COUNT_OF(raised)]);
    assert_int_equal(lua_pcall(L, 1, 0, 0), raises ? LUA_ERRRUN : 0);
    if (raises) {
      assert_non_null(strstr(lua_tostring(L, -1), "redlock: said"));
    }
  }
  lua_close(L);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(too_long_text_is_cut_between_characters),
      cmocka_unit_test(latency_is_in_milliseconds),
      cmocka_unit_test(error_without_message_has_text_of_its_code),
      cmocka_unit_test(misuse_is_raised_and_failure_is_returned),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
