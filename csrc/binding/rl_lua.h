/*
 * What the files of the Lua binding share.
 *
 * SPDX-License-Identifier: MIT
 *
 * Rules. A userdata is made first, zeroed and with its complete metatable, and what it owns second,
 * so that an error in between leaks nothing. A call of Lua may run finalizers of other objects of
 * the same client, so texts that the library lends are copied before they are pushed. No lua_State
 * is kept, and C never calls Lua functions.
 */
#ifndef RL_LUA_H
#define RL_LUA_H

#include "redlock.h"
#include "rl_client.h"
#include "rl_linger.h"
#include "rl_lua_compat.h"
#include "rl_lua_memory.h"
#include "rl_lua_nginx_owner.h"

/* The number is the version of the structs below: two builds never take each other's objects. */
#define RL_LUA_CLIENT "redlock.client/1"
#define RL_LUA_LOCK "redlock.lock/1"
#define RL_LUA_SENTINEL "redlock.sentinel/1"
#define RL_LUA_SENTINEL_CLASS "redlock.sentinel/1 class"

/* What redlock.tls returns (csrc/tls/lua/rl_lua_tls.c): a pointer to a redlock_carrier. */
#define RL_LUA_CARRIER "redlock.carrier/1"

#define RL_LUA_NAME_SIZE 320     /* of a node: a socket's path, or a host name and a port */
#define RL_LUA_MESSAGE_SIZE 2048 /* of any sentence of the library */

/* Which function of the stack an error is reported for: the one that called the C function, or, for
   functions that only the module's own Lua code calls, the one that called that. */
#define RL_LUA_DIRECT 1
#define RL_LUA_WRAPPED 2

/*
 * One for each Lua state, older than all clients, and therefore finalized after them. It looks after
 * the clients that became garbage before everything of theirs was sent.
 */
typedef struct rl_lua_sentinel {
  rl_linger linger;
  rl_lua_memory memory;
  int finished;
} rl_lua_sentinel;

struct rl_lua_nginx;

/* What a client in nginx, one of those that share their connections, has in common with its locks. */
typedef struct rl_lua_nginx_share {
  size_t references;
  bool closed;
} rl_lua_nginx_share;

typedef struct rl_lua_client {
  redlock_client *client;
  rl_lua_sentinel *sentinel;  /* kept alive by the user value */
  size_t bytes;               /* of it that Lua does not see */
  double next_id;             /* of the next lock */
  struct rl_lua_nginx *nginx; /* what stands for it inside nginx (rl_lua_nginx.h), or NULL */
  int of_worker;              /* whose its locks are inside nginx when nothing else is said */
  int reentrant;              /* what its locks are then (rl_lua_reentry.h) */
  rl_lua_nginx_share
      *share; /* inside nginx; NULL = its memory was out, and it is closed with the others */
} rl_lua_client;

typedef struct rl_lua_lock {
  redlock_lock *lock;
  rl_lua_sentinel *sentinel;  /* kept alive by the user value, which the client shares */
  rl_operation operation;     /* the last one that was started */
  struct rl_lua_nginx *nginx; /* its client's; kept alive by the user value */
  rl_lua_nginx_share *share;  /* its client's, or NULL */
  size_t slot;              /* in which a request of nginx waits for the operation; 0 = none does */
  rl_lua_nginx_owned owned; /* by a request of nginx */
  int of_worker;            /* or by nobody, if nothing else is said */
  int reentrant;            /* rl_lua_reentry.h */
  int owner_ended;          /* it was released because of that */
  int has_options;          /* of its own */
  int has_own_value;        /* a user value of its own: rl_lua_loss.h */
  int given_back;           /* the lock is not there: rl_lua_nginx_released.h */
  int result;               /* of the last operation then */
  int unheard;              /* that was a release whose result may still be asked for */
  size_t resource_length;
  size_t bytes; /* of it that Lua does not see */
} rl_lua_lock;

/* ---------------------------------------------------------------------------- rl_lua_argument.c */

/* Raises a sentence at the line that called level |level|. */
int rl_lua_misuse(lua_State *L, int level, const char *format, ...)
#if defined(__GNUC__)
    __attribute__((noreturn))
#endif
    ;

/* The object at index 1, or misuse of |method|. */
rl_lua_client *rl_lua_check_client(lua_State *L, int level, const char *method);
rl_lua_lock *rl_lua_check_lock(lua_State *L, int level, const char *method);

/* A whole number between |low| and |high| at |index|, or misuse of |name|. */
double rl_lua_check_whole(lua_State *L, int index, const char *name, const char *unit, double low,
                          double high, int level);

/* The same for a duration: milliseconds in Lua. */
redlock_duration rl_lua_check_duration(lua_State *L, int index, const char *name, double low,
                                       int level);

/* ------------------------------------------------------------------------------ rl_lua_option.c */

/*
 * Fills the struct |of| from the Lua table at |index|, by |table|; nil there, or in place of the whole
 * table, is 0 in the struct. Returns whether there was a table. Strings of the struct stay on the Lua
 * stack, and live as long as they do.
 */
int rl_lua_read_options(lua_State *L, int index, const rl_option_table *table, void *of, int level);

/*
 * The same for the options of a lock, whose auto_extend may be a table, and whose on_lost wants to be
 * told.
 */
int rl_lua_read_keeping(lua_State *L, int index, redlock_options *given, int level);

/* The same for the options of a lock, or of a call, that go over those |above|. */
int rl_lua_read_lock_options(lua_State *L, int index, const rl_options *above,
                             redlock_options *given, int level);

/*
 * Whether not one whole millisecond could be left of a lease with |given| over |above|, so that it
 * could never be acquired, and then a sentence.
 */
int rl_lua_lease_is_nothing(const rl_options *above, const redlock_options *given, char *message,
                            size_t size);

/* Whether option 'owner' of the table at |index| is "worker"; |absent| when it is nil. For nginx. */
int rl_lua_read_owner(lua_State *L, int index, int absent, int level);

/* Pushes { lock = rows, client = rows, node = rows, host = rows }; a row is { name =, field =, kind =, ... }. */
void rl_lua_push_option_tables(lua_State *L);

/* ------------------------------------------------------------------------------ rl_lua_result.c */

/* Copies as much of |text| as fits; NULL is an empty text. Cuts no UTF-8 sequence in two. */
void rl_lua_copy(char *destination, size_t size, const char *text);

/* The same for a message, which calls a setting of TLS as C does: it becomes "tls.ca", as Lua spells it. */
void rl_lua_copy_message(char *destination, size_t size, const char *text);

/* Pushes a whole number below 2^53. */
void rl_lua_push_whole(lua_State *L, uint64_t number);

/* Pushes whole milliseconds, rounded down. */
void rl_lua_push_milliseconds(lua_State *L, redlock_duration duration);

/* Sets a field of the table on top of the stack: fractional milliseconds, nothing for NEVER. */
void rl_lua_set_latency(lua_State *L, redlock_duration latency);

/*
 * Pushes nil, a message and a code, or raises what is a mistake of the caller. |message| may be NULL
 * or empty: the error's own sentence is used then.
 */
int rl_lua_push_error(lua_State *L, int error, const char *message, int level);

/* The same for what an operation of |self| ended with, or why it was not begun. */
int rl_lua_push_failure(lua_State *L, rl_lua_lock *self, int error, int level);

/* Pushes the list of the codes that are returned. */
void rl_lua_push_codes(lua_State *L);

/* ---------------------------------------------------------------------------- rl_lua_inspect.c */

int rl_lua_lock_keys(lua_State *L);

/* ----------------------------------------------------------------------------- rl_lua_doctor.c */

int rl_lua_lock_findings(lua_State *L);

/* ------------------------------------------------------- rl_lua_client.c, rl_lua_lock.c, _module.c */

/* Writes the name of the lock's resource so that it can be printed anywhere, shortened if need be. */
void rl_lua_lock_show(const rl_lua_lock *self, char *shown, size_t size);

/* Never blocks and allocates nothing: the token goes to the client's releases. Calls no Lua. */
void rl_lua_lock_free(rl_lua_lock *self);

/* Sends what collected clients have left to send. */
void rl_lua_tend(rl_lua_sentinel *sentinel);

/* Pushes an empty client object with everything that it needs of the Lua state, but no client. */
rl_lua_client *rl_lua_client_push(lua_State *L);

/* Register the class, and leave its table of methods on the stack. */
void rl_lua_client_register(lua_State *L);
void rl_lua_lock_register(lua_State *L);

/* Adds the functions for the module's own Lua code to the table on top of the stack. */
void rl_lua_lock_add_functions(lua_State *L);

/* Makes class |name| from its metamethods and methods, and leaves the methods on the stack. */
void rl_lua_class(lua_State *L, const char *name, const char *public_name,
                  const luaL_Reg *metamethods, const luaL_Reg *methods);

/* The functions of the module table. */
int rl_lua_client_new(lua_State *L);
int rl_lua_client_add(lua_State *L);
int rl_lua_client_carry(lua_State *L);
int rl_lua_client_next_ended(lua_State *L);
int rl_lua_client_close_now(lua_State *L);
int rl_lua_client_shut(lua_State *L);
int rl_lua_client_owed(lua_State *L);
int rl_lua_client_alarm(lua_State *L);
int rl_lua_client_now(lua_State *L);

#endif /* RL_LUA_H */
