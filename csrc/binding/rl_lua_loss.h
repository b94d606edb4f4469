/*
 * on_lost: which function is told that which lock is lost.
 *
 * SPDX-License-Identifier: MIT
 *
 * The function of a client stands in the user value that the client shares with its locks. A lock that
 * has one of its own, or of its last acquire, has a user value of its own, with all of it. So what a
 * function refers to lives no longer than the object that it was given to.
 */
#ifndef RL_LUA_LOSS_H
#define RL_LUA_LOSS_H

#include "rl_lua.h"

/* In the user value. */
#define RL_LUA_ON_LOST_CLIENT 5
#define RL_LUA_ON_LOST_LOCK 6
#define RL_LUA_ON_LOST_CALL 7
#define RL_LUA_OWNER_NAME 8 /* of a lock (rl_lua_reentry.h) */

/* Makes the table by which locks are found again, if the Lua state has none yet. */
void rl_lua_loss_init(lua_State *L);

/* Returns true if the options at |index| have on_lost; nil and nothing have not. */
int rl_lua_loss_asked(lua_State *L, int index);

/* Pushes a user value of the lock's own; what it had so far is the client's. The lock is at |index|. */
void rl_lua_loss_push_own(lua_State *L, rl_lua_lock *self, int index);

/* The client on top of the stack was made with the options at |index|. */
void rl_lua_loss_note_client(lua_State *L, rl_lua_client *self, int index);

/* The lock on top of the stack was made with the options at |index|. */
void rl_lua_loss_note_lock(lua_State *L, rl_lua_lock *self, int index);

/* Notes that |lock| is the object at index 1, so that it is found again while that lives. */
void rl_lua_loss_watch(lua_State *L, const redlock_lock *lock);

/* Pushes the object of |lock| and returns 1; 0, and nothing is pushed, if it has not been noted or is garbage. */
int rl_lua_loss_find(lua_State *L, const redlock_lock *lock);

/*
 * The lock at index 1 is about to be acquired with the options at |index|, 0 for none: pushes what note_call() takes
 * once that has begun. An error then would leave an acquire that nobody ends, so all that may raise one is done here.
 */
void rl_lua_loss_prepare_call(lua_State *L, rl_lua_lock *self, int index);
void rl_lua_loss_note_call(lua_State *L, rl_lua_lock *self);

/* Pushes the function that is told when the lock at |index| is lost; nil if there is none. */
void rl_lua_loss_push(lua_State *L, int index);

/* The function on top of the stack is told in its place, until the lock at index 1 is acquired again; pops it. */
void rl_lua_loss_replace(lua_State *L, rl_lua_lock *self);

/*
 * Takes losses off the client's queue up to one that somebody is to be told of, and pushes the function,
 * the lock and the reason; or nothing. Returns how many values.
 */
int rl_lua_loss_take(lua_State *L, redlock_client *client);

/* The function on top of the stack calls an on_lost, and catches what it raises; pops it. */
void rl_lua_loss_dispatch_by(lua_State *L);

/*
 * "By the next call into the module": tells what is to be told of a client that no driver in Lua looks
 * after. Raises nothing.
 */
void rl_lua_loss_run(lua_State *L, redlock_client *client);

#endif /* RL_LUA_LOSS_H */
