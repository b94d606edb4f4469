/*
 * Option 'credentials': a Lua function that supplies username and password of each connection.
 *
 * SPDX-License-Identifier: MIT
 */
#include "rl_lua_credentials.h"

#include <stdio.h>
#include <string.h>

#include "client/rl_credentials.h"
#include "client/rl_poll.h"
#include "rl_lua_loss.h"
#include "rl_lua_result.h"

/* Message of the error that lua(1) and luajit(1) raise for Ctrl-C. */
#define INTERRUPTED "interrupted!"

#define ASKER "redlock.asker/1" /* registry: ask_all() */

/* Indexes of a result of pcall(). */
enum { STATUS = 3, FIRST, SECOND };

int rl_lua_credentials_later(redlock_client *client, size_t node, redlock_credentials *credentials,
                             void *data) {
  (void)credentials;
  (void)data;
  client->wants_credentials |= (uint32_t)1 << node;
  return REDLOCK_PENDING;
}

void rl_lua_credentials_push(lua_State *L) {
  lua_getuservalue(L, 1);
  lua_rawgeti(L, -1, 2); /* The client. */
  lua_getuservalue(L, -1);
  lua_rawgeti(L, -1, RL_LUA_CREDENTIALS);
  lua_insert(L, -4);
  lua_pop(L, 3);
}

bool rl_lua_credentials_wanted(redlock_client *client) {
  bool wanted;

  if (client->settings.credentials != rl_lua_credentials_later)
    return false;
  rl_client_enter(client);
  wanted = client->wants_credentials != 0 && !client->asking && !client->asked_by_driver;
  rl_client_leave(client);
  return wanted;
}

bool rl_lua_credentials_take(redlock_client *client, unsigned from, unsigned *node,
                             const char **name) {
  bool found = false;
  unsigned connection;

  rl_client_enter(client);
  for (unsigned i = from; i < client->core.node_count && !found; i++) {
    uint32_t bit = (uint32_t)1 << i;
    if ((client->wants_credentials & bit) == 0)
      continue;
    client->wants_credentials &= ~bit;
    found = rl_credentials_are_awaited(client, i, &connection);
    *node = i;
    *name = client->core.nodes[i]->address.name;
  }
  rl_poll_wake(client);
  rl_client_leave(client);
  return found;
}

/* Notes if the function is running. Returns true if it was. */
static bool set_asking(redlock_client *client, bool asking) {
  bool before;

  rl_client_enter(client);
  before = client->asking;
  client->asking = asking;
  rl_client_leave(client);
  return before;
}

/* Copies the error, if it is a string, without control characters. */
static void read_error(lua_State *L, rl_lua_credentials_answer *answer) {
  if (lua_type(L, FIRST) != LUA_TSTRING)
    return;
  rl_lua_copy(answer->why, sizeof answer->why, lua_tostring(L, FIRST));
  for (char *at = answer->why; *at != '\0'; at++)
    if ((unsigned char)*at < ' ' || *at == 0x7f)
      *at = ' ';
}

/* Reads the values of a call that has returned. Returns what is wrong with them, or NULL. */
static const char *read_values(lua_State *L, rl_lua_credentials_answer *answer) {
  int last = lua_isnil(L, SECOND) ? FIRST : SECOND;
  size_t user_length = 0;

  if (!lua_toboolean(L, FIRST)) /* The second value may be a password: hide it. */
    return lua_toboolean(L, SECOND)
               ? "the function returned nil and a second value, which is hidden; raise an error() "
                 "to give a reason"
               : NULL;
  if (lua_type(L, FIRST) != LUA_TSTRING || lua_type(L, last) != LUA_TSTRING)
    return "the function must return a password, or a username and a password";
  answer->had = true;
  answer->password = lua_tolstring(L, last, &answer->length);
  if (last == SECOND)
    answer->username = lua_tolstring(L, FIRST, &user_length);
  return answer->username != NULL && strlen(answer->username) != user_length
             ? "the username contains a NUL byte"
             : rl_credentials_wrong(answer->username, answer->password, answer->length);
}

void rl_lua_credentials_read(lua_State *L, rl_lua_credentials_answer *answer) {
  const char *wrong;

  memset(answer, 0, sizeof *answer);
  if (!lua_toboolean(L, STATUS)) {
    read_error(L, answer);
    return;
  }
  wrong = read_values(L, answer);
  if (wrong != NULL) {
    answer->had = false;
    rl_lua_copy(answer->why, sizeof answer->why, wrong);
  }
}

void rl_lua_credentials_give(redlock_client *client, unsigned node,
                             const rl_lua_credentials_answer *answer) {
  if (answer->had) {
    (void)redlock_client_give_credentials(client, node, answer->username, answer->password,
                                          answer->length);
  } else {
    (void)redlock_client_refuse_credentials(client, node, answer->why);
  }
}

static bool is_interrupt(lua_State *L, int index) {
  size_t length;
  const char *text = lua_type(L, index) == LUA_TSTRING ? lua_tolstring(L, index, &length) : NULL;

  return text != NULL && length >= sizeof INTERRUPTED - 1 &&
         strcmp(text + length - (sizeof INTERRUPTED - 1), INTERRUPTED) == 0;
}

/*
 * (object, client as a pointer): asks once for each node. While a function blocks, new connections
 * may begin; asking for them, too, might never end. Raises Ctrl-C and lack of memory, nothing else.
 */
static int ask_all(lua_State *L) {
  redlock_client *client = lua_touserdata(L, 2);
  const char *name = NULL;
  unsigned node;

  for (unsigned from = 0; rl_lua_credentials_take(client, from, &node, &name); from = node + 1) {
    rl_lua_credentials_answer answer;
    int status;

    lua_settop(L, 2);
    lua_pushboolean(L, 0);
    rl_lua_credentials_push(L);
    if (lua_isnil(L, -1)) {
      (void)redlock_client_refuse_credentials(client, node,
                                              "its function belongs to another Lua state");
      continue;
    }
    lua_pushstring(L, name);
    lua_pushinteger(L, (lua_Integer)node + 1);
    status = lua_pcall(L, 2, 2, 0);
    if (status != 0)
      lua_pushnil(L);
    lua_pushboolean(L, status == 0);
    lua_replace(L, STATUS);
    rl_lua_credentials_read(L, &answer);
    rl_lua_credentials_give(client, node, &answer);
    if (status != 0 && is_interrupt(L, FIRST)) {
      lua_pushvalue(L, FIRST);
      return lua_error(L);
    }
  }
  return 0;
}

/* LuaJIT allocates a C function that is pushed, so ask_all() is pushed only here. */
void rl_lua_credentials_register(lua_State *L) {
  lua_pushcfunction(L, ask_all);
  lua_setfield(L, LUA_REGISTRYINDEX, ASKER);
}

bool rl_lua_credentials_run(lua_State *L, redlock_client *client) {
  bool raises;

  if (!lua_checkstack(L, 8) || set_asking(client, true))
    return false;
  lua_getfield(L, LUA_REGISTRYINDEX, ASKER);
  lua_pushvalue(L, 1);
  lua_pushlightuserdata(L, client);
  raises = lua_pcall(L, 2, 0, 0) != 0;
  (void)set_asking(client, false);
  if (raises && !is_interrupt(L, -1)) {
    lua_pop(L, 1); /* Out of memory: the next call asks again. */
    raises = false;
  }
  return raises;
}
