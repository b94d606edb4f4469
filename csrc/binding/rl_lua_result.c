/*
 * Results: values that methods return to Lua.
 *
 * SPDX-License-Identifier: MIT
 */
#include "rl_lua_result.h"

#include <string.h>

#include "base/rl_error.h"
#include "options/rl_option_table.h"
#include "rl_lua_argument.h"

void rl_lua_copy(char *destination, size_t size, const char *text) {
  size_t length = text == NULL ? 0 : strlen(text);

  if (length >= size) {
    length = size - 1;
    while (length > 0 && ((unsigned char)text[length] & 0xc0) == 0x80)
      length--;
  }
  if (length > 0)
    memcpy(destination, text, length);
  destination[length] = '\0';
}

/* Returns the length of the C name of a TLS setting that |text| begins with, or 0. */
static size_t setting_of_tls(const char *text) {
  static const char *const names[] = {
#define NAME_OF_SETTING(name, kind, field, lowest, highest, other, must) #name,
      RL_OPTIONS_OF_TLS(NAME_OF_SETTING)};
  size_t length = strspn(text, "abcdefghijklmnopqrstuvwxyz_");

  for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
    if (strlen(names[i]) == length && memcmp(names[i], text, length) == 0)
      return length;
  }
  return 0;
}

void rl_lua_copy_message(char *destination, size_t size, const char *text) {
  char *at = destination;

  rl_lua_copy(destination, size, text);
  /* Only whole words: a path may contain such a name. */
  while (*at != '\0') {
    size_t length = setting_of_tls(at);
    char behind = at[length];
    if (length > 0 && (behind == '\0' || behind == ' ' || behind == ':' || behind == ','))
      at[3] = '.';
    at += strcspn(at, " ");
    at += strspn(at, " ");
  }
}

void rl_lua_push_whole(lua_State *L, uint64_t number) {
#if LUA_VERSION_NUM >= 503
  lua_pushinteger(L, (lua_Integer)number);
#else
  /* Integers of these versions may have 32 bits, too few for a long lease. */
  lua_pushnumber(L, (lua_Number)number);
#endif
}

void rl_lua_push_milliseconds(lua_State *L, redlock_duration duration) {
  rl_lua_push_whole(L, duration / REDLOCK_MILLISECONDS);
}

void rl_lua_push_seconds(lua_State *L, redlock_duration duration) {
  if (duration == REDLOCK_NEVER)
    lua_pushnil(L);
  else
    lua_pushnumber(L, (lua_Number)duration / (lua_Number)REDLOCK_SECONDS);
}

void rl_lua_set_text(lua_State *L, const char *field, const char *text) {
  if (text == NULL || text[0] == '\0')
    return;
  lua_pushstring(L, text);
  lua_setfield(L, -2, field);
}

void rl_lua_set_message(lua_State *L, const char *field, const char *message) {
  char text[RL_LUA_MESSAGE_SIZE];

  rl_lua_copy_message(text, sizeof text, message);
  rl_lua_set_text(L, field, text);
}

void rl_lua_set_whole(lua_State *L, const char *field, uint64_t number) {
  rl_lua_push_whole(L, number);
  lua_setfield(L, -2, field);
}

void rl_lua_set_boolean(lua_State *L, const char *field, bool value) {
  lua_pushboolean(L, value);
  lua_setfield(L, -2, field);
}

void rl_lua_set_latency(lua_State *L, redlock_duration latency_us) {
  if (latency_us == REDLOCK_NEVER)
    return;
  lua_pushnumber(L, (lua_Number)latency_us / (lua_Number)REDLOCK_MILLISECONDS);
  lua_setfield(L, -2, "latency");
}

int rl_lua_push_true(lua_State *L) {
  lua_pushboolean(L, 1);
  return 1;
}

int rl_lua_push_error(lua_State *L, int error, const char *message, int level) {
  char text[RL_LUA_MESSAGE_SIZE];

  if (message == NULL || message[0] == '\0')
    message = redlock_strerror(error);
  rl_lua_copy_message(text, sizeof text, message);
  /* Lack of descriptors is no misuse: the caller may try again, as for "unavailable". */
  if (error != REDLOCK_E_SYSTEM && rl_error_kind_of(error) != RL_ERROR_FAILURE) {
    rl_lua_misuse(L, level, "redlock: %s", text);
  }
  lua_pushnil(L);
  lua_pushstring(L, text);
  lua_pushstring(L, redlock_error_name(error == REDLOCK_E_SYSTEM ? REDLOCK_E_UNAVAILABLE : error));
  return 3;
}

void rl_lua_push_codes(lua_State *L) {
  int count = 0;

  lua_newtable(L);
#define PUSH_CODE(error, name, kind, sentence)                                                     \
  if (RL_ERROR_##kind == RL_ERROR_FAILURE) {                                                       \
    lua_pushliteral(L, #name);                                                                     \
    lua_rawseti(L, -2, ++count);                                                                   \
  }
  RL_ERRORS(PUSH_CODE)
}
