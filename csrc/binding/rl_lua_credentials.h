/*
 * Option 'credentials': a Lua function that supplies username and password of each connection.
 *
 * SPDX-License-Identifier: MIT
 *
 * Any thread may begin a connection, in the middle of a turn, where it cannot call Lua. So the
 * library's callback answers that the credentials come later, and marks the node. Lua code calls
 * the function: in a waiting call of this Lua state, in the next call into the module, or in a
 * coroutine of a driver written in Lua.
 *
 * Only the user value of the client object refers to the function. So the function's upvalues live
 * no longer than that object, even if the client is one of them.
 */
#ifndef RL_LUA_CREDENTIALS_H
#define RL_LUA_CREDENTIALS_H

#include "rl_lua.h"

/* Prepares the Lua state for rl_lua_credentials_run(). */
void rl_lua_credentials_register(lua_State *L);

/* Callback of the library: returns REDLOCK_PENDING and marks the node. */
int rl_lua_credentials_later(redlock_client *client, size_t node, redlock_credentials *credentials,
                             void *data);

/* Returns true if a node waits for credentials and this call must ask the function. */
bool rl_lua_credentials_wanted(redlock_client *client);

/*
 * Calls the function of the object at index 1, a client or a lock, for each node that waits.
 * Returns true if the caller must raise the error on top of the stack: Ctrl-C while the function
 * ran. Raises nothing itself: an error would leave the operation that the caller waits for.
 */
bool rl_lua_credentials_run(lua_State *L, redlock_client *client);

/* Result of a function. The strings are borrowed from the Lua stack. */
typedef struct rl_lua_credentials_answer {
  bool had;
  const char *username; /* NULL: none */
  const char *password;
  size_t length;              /* bytes of password */
  char why[REDLOCK_TEXT_MAX]; /* reason, unless had */
} rl_lua_credentials_answer;

/* Reads a result of pcall(): the status at index 3, and two values behind it. */
void rl_lua_credentials_read(lua_State *L, rl_lua_credentials_answer *answer);

/* Takes the next node from |from| on that waits for credentials and is not asked for, and its name,
   which lives as long as the client. Returns false if there is none. */
bool rl_lua_credentials_take(redlock_client *client, unsigned from, unsigned *node,
                             const char **name);

/* Pushes the function of the object at index 1, a client or a lock; nil if there is none. */
void rl_lua_credentials_push(lua_State *L);

/* Gives the answer to the library, which asks again if it comes too late. */
void rl_lua_credentials_give(redlock_client *client, unsigned node,
                             const rl_lua_credentials_answer *answer);

#endif /* RL_LUA_CREDENTIALS_H */
