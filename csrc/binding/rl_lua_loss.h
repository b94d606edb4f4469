/*
 * Options 'on_lost' and 'on_event': the functions that losses and events are reported to.
 *
 * SPDX-License-Identifier: MIT
 *
 * The client's function is in the user value that the client shares with its locks. A lock with an
 * on_lost of its own, or of its last acquire, has a copy of that user value. So the upvalues of a
 * function live no longer than the object that it was set for.
 */
#ifndef RL_LUA_LOSS_H
#define RL_LUA_LOSS_H

#include "rl_lua.h"

/* Indexes of the user value. */
#define RL_LUA_ON_LOST_CLIENT 5
#define RL_LUA_ON_LOST_LOCK 6
#define RL_LUA_ON_LOST_CALL 7
#define RL_LUA_OWNER_NAME 8  /* of a lock (rl_lua_reentry.h) */
#define RL_LUA_CREDENTIALS 9 /* of a client (rl_lua_credentials.h) */
#define RL_LUA_ON_EVENT 10   /* of a client */

/* Pushes the table |name| of the registry, whose keys or values are weak by |mode|. */
void rl_lua_push_weak(lua_State *L, const char *name, const char *mode);

/* Stores option |name| of the options at |index|, if it is set, in the user value of the object on
   top of the stack. Returns true if it is set. */
bool rl_lua_keep_option(lua_State *L, int index, const char *name, int slot);

/* Returns true if the options at |index| are a table with on_lost. */
int rl_lua_loss_has_option(lua_State *L, int index);

/* Pushes the lock's own user value; copies that of the client first, if necessary. The lock is at
   |index|. */
void rl_lua_loss_push_own(lua_State *L, rl_lua_lock *self, int index);

/* Store on_lost of the options, those of a client at index 1, in the object on top of the stack. */
void rl_lua_loss_note_client(lua_State *L, rl_lua_client *self);
void rl_lua_loss_note_lock(lua_State *L, rl_lua_lock *self);

/* The same for on_event: turns events on. Returns REDLOCK_OK or REDLOCK_E_NO_MEMORY. */
int rl_lua_event_note_client(lua_State *L, rl_lua_client *self);

/* Maps |lock| to the object at index 1, while that lives. */
void rl_lua_loss_watch(lua_State *L, const redlock_lock *lock);

/* Pushes the object of |lock| and returns 1. Pushes nothing and returns 0 if it is unknown or
   garbage. */
int rl_lua_loss_find(lua_State *L, const redlock_lock *lock);

/*
 * Prepares an acquire of the lock at index 1: pushes the value that note_call() pops after the
 * acquire has begun. An error after that would leave an acquire that never ends, so prepare_call()
 * does everything that may raise one.
 */
void rl_lua_loss_prepare_call(lua_State *L, rl_lua_lock *self);
void rl_lua_loss_note_call(lua_State *L, rl_lua_lock *self);

/* Pushes the on_lost of the lock at |index|; nil if there is none. */
void rl_lua_loss_push(lua_State *L, int index);

/* Pops a function that replaces the on_lost of the lock at index 1 until its next acquire. */
void rl_lua_loss_replace(lua_State *L, rl_lua_lock *self);

/* Removes losses from the client's queue up to the first one with an on_lost. Pushes that function,
   the lock and the reason and returns 3. After the losses it takes an event, and pushes on_event, a
   table and nil; or returns 0. */
int rl_lua_loss_take(lua_State *L, redlock_client *client);

/* Pops the function that calls an on_lost or on_event, and catches its errors. */
void rl_lua_loss_dispatch_by(lua_State *L);

/* Reports all losses and events of a client that no driver in Lua serves. Raises nothing. */
void rl_lua_loss_run(lua_State *L, redlock_client *client);

#endif /* RL_LUA_LOSS_H */
