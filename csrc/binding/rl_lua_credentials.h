/*
 * credentials: a Lua function that says as whom to log in, for each connection.
 *
 * SPDX-License-Identifier: MIT
 *
 * A connection may be begun by any thread, in the middle of a turn, where Lua cannot be called. So the library is
 * answered that the credentials come later, and the node is noted. The function is called at the next moment at
 * which Lua runs anyway: while a call of this Lua state waits, with the next call into the module, or by a driver
 * written in Lua, in a coroutine of its own.
 *
 * The function stands in the user value of the client object, and nowhere else: so what it refers to lives no
 * longer than that, the client itself included.
 */
#ifndef RL_LUA_CREDENTIALS_H
#define RL_LUA_CREDENTIALS_H

#include "rl_lua.h"

#define RL_LUA_CREDENTIALS 9 /* in the user value of the client */

/* What the library calls; it answers REDLOCK_PENDING, and notes the node. */
int rl_lua_credentials_later(redlock_client *client, size_t node, redlock_credentials *credentials,
                             void *data);

/* The client on top of the stack was made with the options at |index|. */
void rl_lua_credentials_note(lua_State *L, int index);

/* Returns true if the function has been asked for, and nobody but this call is to answer. Costs nothing without a function. */
bool rl_lua_credentials_wanted(redlock_client *client);

/*
 * Asks the function of the object at index 1, a client or a lock, for each node that waits for it. Returns whether
 * an error is on the stack that is to be raised: Ctrl-C, which came while the function ran.
 */
bool rl_lua_credentials_run(lua_State *L, redlock_client *client);

/* What a function has returned, or raised, and what that means. Strings live as long as those on the stack. */
typedef struct rl_lua_credentials_answer {
  bool had;
  const char *username; /* NULL: none */
  const char *password;
  size_t length;
  char why[REDLOCK_TEXT_MAX]; /* not had */
} rl_lua_credentials_answer;

/* Returns true if it ended well is at |index|, as pcall() returns it, and two values behind it. */
void rl_lua_credentials_read(lua_State *L, int index, rl_lua_credentials_answer *answer);

/*
 * Takes the next node from |from| on that waits for its credentials, and has not been asked for; |name| has
 * RL_LUA_NAME_SIZE. Returns false if there is none.
 */
bool rl_lua_credentials_take(redlock_client *client, unsigned from, unsigned *node, char *name);

/* Pushes the function of the object at |index|, a client or a lock; nil if there is none. */
void rl_lua_credentials_push(lua_State *L, int index);

/* Gives the answer to the library. What came too late is asked for again. */
void rl_lua_credentials_give(redlock_client *client, unsigned node,
                             const rl_lua_credentials_answer *answer);

#endif /* RL_LUA_CREDENTIALS_H */
