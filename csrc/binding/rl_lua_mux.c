/*
 * The core for drivers that own no sockets: OpenResty's, whose connections are cosockets.
 *
 * SPDX-License-Identifier: MIT
 *
 * The driver is written in Lua (redlock/nginx.lua) and does what csrc/driver/rl_client.c does, with
 * the same steps. Clients and locks are the usual objects, but the client's own sockets stay closed,
 * and a mux stands for it in the driver's threads: they must not keep the client itself alive.
 *
 * Of each operation that is waited for, the driver keeps a number, the slot, and no object: requests
 * die at any time, and what they left behind must be collectable.
 *
 * The user value that a client shares with its locks holds the driver's table at MUX_DRIVER and the
 * mux at MUX_SELF.
 */
#include "rl_lua_mux.h"

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "rl_client.h"
#include "rl_entropy.h"

#define MUX_DRIVER 3
#define MUX_SELF 4

#define OUTPUT_MAX 32768  /* bytes handed to a writer at once */
#define ENTROPY_MAX 64    /* attempts that are given entropy at once */
#define LAUNCHES_MAX 1024 /* such bunches in one call */
#define LAST_CHANCE (100 * REDLOCK_MILLISECONDS)
#define SLOT_MARK ((uintptr_t)1 << 40) /* tells a slot from the number that a lock is born with */

typedef struct rl_lua_mux {
  redlock_client *client;
  uint32_t open;        /* nodes that the driver has a connection, or is making one, for */
  uint32_t woken;       /* nodes whose writer knows that there is something to send */
  redlock_time wake_us; /* when the driver's clock looks next */
} rl_lua_mux;

/* What the driver asks of a lock, as it numbers it. */
enum { CODE_ACQUIRE = 1, CODE_EXTEND = 2, CODE_RELEASE = 3, CODE_RELEASE_UNHEARD = 4 };

static uint32_t node_bit(unsigned node) {
  return (uint32_t)1 << node;
}

/* A worker that inherited the client from the master has none of its connections. */
static void check_fork(rl_lua_mux *self) {
  if (!rl_fork_happened(&self->client->mark))
    return;
  rl_client_check_fork(self->client);
  self->open = 0;
  self->woken = 0;
  self->wake_us = 0;
}

static rl_lua_mux *check_mux(lua_State *L) {
  rl_lua_mux *self = luaL_checkudata(L, 1, RL_LUA_MUX);

  if (self->client == NULL)
    luaL_error(L, "redlock: the connections have been given up");
  check_fork(self);
  return self;
}

/* The index of a node, which Lua counts from 1. */
static unsigned check_node(lua_State *L, const rl_lua_mux *self) {
  lua_Integer index = luaL_checkinteger(L, 2);

  if (index < 1 || index > (lua_Integer)self->client->core.node_count) {
    luaL_error(L, "redlock: there is no such node");
  }
  return (unsigned)(index - 1);
}

/* ------------------------------------------------------------------------ what the core wants */

/* Sends what was begun into the nodes' buffers. False when the kernel has no entropy. */
static bool launch(redlock_client *client) {
  unsigned char entropy[ENTROPY_MAX * RL_LOCK_ENTROPY];

  for (int i = 0; i < LAUNCHES_MAX && rl_core_wants_launch(&client->core); i++) {
    size_t wanted = rl_core_entropy_wanted(&client->core);
    wanted = wanted < sizeof entropy ? wanted : sizeof entropy;
    if (wanted > 0 && !rl_entropy_fill(entropy, wanted))
      return false;
    /* The clock of the attempts: read before their first byte. */
    rl_core_launch(&client->core, redlock_now(), entropy, wanted);
  }
  return true;
}

/* The nodes whose writers are to be woken; each is said once until it has asked for its bytes. */
static uint32_t wake_writers(rl_lua_mux *self) {
  const rl_core *core = &self->client->core;
  uint32_t nodes = 0;

  for (unsigned i = 0; i < core->node_count; i++) {
    if (rl_buffer_length(&core->nodes[i]->link.output) > 0)
      nodes |= node_bit(i);
  }
  nodes &= self->open & ~self->woken;
  self->woken |= nodes;
  return nodes;
}

/* Whether the driver's clock sleeps for too long; said once. */
static bool wake_clock(rl_lua_mux *self) {
  redlock_time deadline_us = rl_core_deadline(&self->client->core);

  if (deadline_us >= self->wake_us)
    return false;
  self->wake_us = deadline_us;
  return true;
}

/*
 * Writes the slots of the operations that have ended into the table at |list|, and returns how many
 * there are. Nothing of a lock is touched after Lua was called: it may be collected by that.
 */
static int collect(lua_State *L, const rl_lua_mux *self, int list) {
  int count = 0;
  rl_lock *ended;

  while ((ended = rl_core_next_ended(&self->client->core)) != NULL) {
    uintptr_t data = (uintptr_t)((redlock_lock *)ended->owner)->data;
    if (data < SLOT_MARK)
      continue;
    lua_pushnumber(L, (lua_Number)(data - SLOT_MARK));
    lua_rawseti(L, list, ++count);
  }
  return count;
}

/* Every step of the driver ends in this: -> how many ended, writers to wake, whether the clock is. */
static int push_wakes(lua_State *L, rl_lua_mux *self, int list) {
  uint32_t writers;
  bool clock;

  (void)launch(self->client);
  writers = wake_writers(self);
  clock = wake_clock(self);
  lua_pushinteger(L, collect(L, self, list));
  lua_pushnumber(L, (lua_Number)writers);
  lua_pushboolean(L, clock);
  return 3;
}

/* --------------------------------------------------------------------------------- life */

/* (client, tls) -> mux. From here on the client's connections are the driver's. */
static int mux_new(lua_State *L) {
  rl_lua_client *client = rl_lua_check_client(L, RL_LUA_WRAPPED, "redlock.new()");
  rl_lua_mux *self;

  lua_settop(L, 2);
  self = lua_newuserdata(L, sizeof *self);
  memset(self, 0, sizeof *self);
  luaL_getmetatable(L, RL_LUA_MUX);
  lua_setmetatable(L, -2);
  lua_getuservalue(L, 1);
  lua_pushvalue(L, -2);
  lua_rawseti(L, -2, MUX_SELF);
  lua_pop(L, 1);

  self->client = redlock_client_ref(client->client);
  self->client->tls_carried = true;
  self->client->tls = lua_toboolean(L, 2);
  client->external = 1;
  return 1;
}

/* (client, driver): the table that start() returns for the client's locks. */
static int mux_attach(lua_State *L) {
  rl_lua_check_client(L, RL_LUA_WRAPPED, "redlock.new()");
  luaL_checktype(L, 2, LUA_TTABLE);
  lua_getuservalue(L, 1);
  lua_pushvalue(L, 2);
  lua_rawseti(L, -2, MUX_DRIVER);
  return 0;
}

/* (client) -> the driver's table, or nil. */
static int mux_driver(lua_State *L) {
  rl_lua_check_client(L, RL_LUA_WRAPPED, "client:close()");
  lua_getuservalue(L, 1);
  lua_rawgeti(L, -1, MUX_DRIVER);
  return 1;
}

static int mux_gc(lua_State *L) {
  rl_lua_mux *self = luaL_testudata(L, 1, RL_LUA_MUX);

  if (self != NULL && self->client != NULL) {
    redlock_client *client = self->client;
    self->client = NULL;
    rl_lua_mux_free_client(client);
  }
  return 0;
}

/* What the driver's connections owe is taken up by connections of the client's own. */
static void last_chance(redlock_client *client) {
  redlock_time now_us = redlock_now();
  rl_core *core = &client->core;

  rl_core_close(core, now_us);
  for (unsigned i = 0; i < core->node_count; i++) {
    rl_node *node = core->nodes[i];
    rl_core_disconnected(core, i, now_us, "the worker has ended");
    /* They speak no TLS. */
    node->connect_at_us = node->address.tls > 0 ? REDLOCK_NEVER : 0;
  }
  rl_client_drain(client, rl_time_add(now_us, LAST_CHANCE));
  rl_core_forget(core);
}

void rl_lua_mux_free_client(redlock_client *client) {
  if (client->references == 1) {
    rl_client_check_fork(client);
    last_chance(client);
  }
  redlock_client_free(client);
}

/* --------------------------------------------------------------------------------- operations */

/* (lock) -> the driver's table; and the mux of the lock, or NULL for a client that blocks. */
static rl_lua_mux *push_driver(lua_State *L) {
  rl_lua_mux *mux;

  lua_getuservalue(L, 1);
  lua_rawgeti(L, -1, MUX_SELF);
  mux = lua_touserdata(L, -1);
  lua_pop(L, 1);
  lua_rawgeti(L, -1, MUX_DRIVER);
  lua_remove(L, -2);
  return mux;
}

/* The nodes have a part in some errors; the others are sentences of their own. */
static int push_failure(lua_State *L, rl_lua_lock *self, int error) {
  bool outcome = error >= REDLOCK_E_LOST || error == REDLOCK_E_CANCELLED;

  return rl_lua_push_error(L, error, outcome ? redlock_lock_message(self->lock) : NULL,
                           RL_LUA_WRAPPED);
}

static int begin(lua_State *L, rl_lua_lock *self, int code) {
  rl_lock *lock = self->lock->core;
  redlock_options options = self->options;
  redlock_duration ttl = 0;
  int given;

  switch (code) {
  case CODE_ACQUIRE:
    given = rl_lua_check_options(L, 4, &options, RL_LUA_WRAPPED);
    return rl_lock_acquire(lock, redlock_now(), given ? &options : NULL, true);
  case CODE_EXTEND:
    if (!lua_isnoneornil(L, 4)) {
      ttl = rl_lua_check_duration(L, 4, "lock:extend(): ttl", 1, RL_LUA_WRAPPED);
    }
    return rl_lock_extend(lock, redlock_now(), ttl, true);
  default:
    return rl_lock_release(lock, redlock_now(), code == CODE_RELEASE);
  }
}

/*
 * (lock, code, slot, options or ttl) -> the driver's table, whether the operation is in flight,
 * writers to wake, whether to wake the clock; or nil, message, code; or false for a lock of a client
 * that blocks. An operation that is not in flight any more has a result already.
 */
static int mux_start(lua_State *L) {
  static const char *const names[] = {"lock:acquire()", "lock:extend()", "lock:release()",
                                      "lock:release()"};
  static const rl_lua_operation operations[] = {RL_LUA_ACQUIRE, RL_LUA_EXTEND, RL_LUA_RELEASE,
                                                RL_LUA_RELEASE};
  int code = (int)luaL_checkinteger(L, 2);
  rl_lua_lock *self;
  rl_lua_mux *mux;
  uint32_t writers;
  int error;

  if (code < CODE_ACQUIRE || code > CODE_RELEASE_UNHEARD)
    return luaL_error(L, "no such operation");
  self = rl_lua_check_lock(L, RL_LUA_WRAPPED, names[code - 1]);
  lua_settop(L, 3 + RL_LUA_OPTION_COUNT);
  mux = push_driver(L);
  if (mux == NULL) {
    lua_pushboolean(L, 0);
    return 1;
  }
  check_fork(mux);
  error = begin(L, self, code);
  if (error != REDLOCK_OK)
    return push_failure(L, self, error);
  self->operation = operations[code - 1];
  redlock_lock_set_data(self->lock, (void *)(SLOT_MARK + (uintptr_t)lua_tonumber(L, 3)));
  if (!launch(mux->client)) {
    rl_lock_cancel(self->lock->core, redlock_now(), REDLOCK_E_SYSTEM);
  }
  if (code == CODE_RELEASE_UNHEARD) {
    /* It goes on without the lock, for which nobody waits. */
    rl_lock_cancel(self->lock->core, redlock_now(), REDLOCK_E_CANCELLED);
  }
  if (rl_lock_result(self->lock->core) != REDLOCK_PENDING)
    rl_lock_dequeue(self->lock->core);
  writers = wake_writers(mux);
  lua_pushboolean(L, rl_lock_result(self->lock->core) == REDLOCK_PENDING);
  lua_pushnumber(L, (lua_Number)writers);
  lua_pushboolean(L, wake_clock(mux));
  return 4;
}

/* (lock) -> what the method returns for the operation that has ended; nil while it is in flight. */
static int mux_result(lua_State *L) {
  rl_lua_lock *self = rl_lua_check_lock(L, RL_LUA_WRAPPED, "lock");
  redlock_duration remaining = redlock_lock_remaining(self->lock);
  int error = rl_lock_result(self->lock->core);

  if (error == REDLOCK_PENDING)
    return 0;
  redlock_lock_set_data(self->lock, NULL);
  if (error == REDLOCK_OK && self->operation != RL_LUA_RELEASE && remaining == 0) {
    /* The worker was held up after the decision: no validity, no lock. */
    rl_lock_lapse(self->lock->core, redlock_now());
    error = REDLOCK_E_EXPIRED;
  }
  if (error != REDLOCK_OK) {
    return push_failure(L, self, error);
  }
  if (self->operation == RL_LUA_RELEASE) {
    lua_pushboolean(L, 1);
  } else {
    rl_lua_push_milliseconds(L, remaining);
  }
  return 1;
}

/* (lock) -> the driver's table: ends the operation in flight, as lock:cancel() does. */
static int mux_cancel(lua_State *L) {
  rl_lua_lock *self = rl_lua_check_lock(L, RL_LUA_WRAPPED, "lock:cancel()");

  redlock_lock_cancel(self->lock);
  lua_settop(L, 1);
  push_driver(L);
  return 1;
}

/* (lock) -> whether it is a lock of a client that blocks. */
static int mux_is_blocking(lua_State *L) {
  rl_lua_check_lock(L, RL_LUA_WRAPPED, "lock:start()");
  lua_settop(L, 1);
  lua_pushboolean(L, push_driver(L) == NULL);
  return 1;
}

/*
 * (mux, slot): the request that waited in |slot| is dead. What it was to acquire is released; a lease
 * that it was to extend may be another's business.
 */
static int mux_disown(lua_State *L) {
  rl_lua_mux *self = check_mux(L);
  uintptr_t data = SLOT_MARK + (uintptr_t)luaL_checknumber(L, 2);
  redlock_time now_us = redlock_now();

  for (rl_lock *lock = self->client->core.locks; lock != NULL; lock = lock->next) {
    redlock_lock *owner = lock->owner;
    if ((uintptr_t)owner->data != data)
      continue;
    owner->data = NULL;
    if (lock->operation == RL_OPERATION_ACQUIRE) {
      rl_lock_cancel(lock, now_us, REDLOCK_E_CANCELLED);
      rl_lock_dequeue(lock);
      if (lock->lease != NULL)
        (void)rl_lock_release(lock, now_us, false);
    }
    break;
  }
  return 0;
}

/* --------------------------------------------------------------------------------- connections */

/* (mux, node) -> host and port, or "unix:" and a path and nil; whether to speak TLS; its name. */
static int mux_address(lua_State *L) {
  rl_lua_mux *self = check_mux(L);
  const rl_address *address = &self->client->core.nodes[check_node(L, self)]->address;

  if (address->path[0] != '\0') {
    lua_pushfstring(L, "unix:%s", address->path);
    lua_pushnil(L);
  } else {
    lua_pushfstring(L, strchr(address->host, ':') != NULL ? "[%s]" : "%s", address->host);
    lua_pushinteger(L, address->port);
  }
  lua_pushboolean(L, address->tls > 0);
  lua_pushstring(L, address->name);
  return 4;
}

/* (mux, node): a connection is being made. */
static int mux_connecting(lua_State *L) {
  rl_lua_mux *self = check_mux(L);
  unsigned node = check_node(L, self);

  if (self->client->core.nodes[node]->link.phase == RL_LINK_DOWN) {
    rl_core_connecting(&self->client->core, node, redlock_now());
  }
  self->open |= node_bit(node);
  self->woken |= node_bit(node); /* A writer begins by asking for its bytes. */
  return 0;
}

/* (mux, node) -> whether the connection is still wanted. */
static int mux_connected(lua_State *L) {
  rl_lua_mux *self = check_mux(L);
  unsigned node = check_node(L, self);
  bool wanted = self->client->core.nodes[node]->link.phase == RL_LINK_CONNECTING;

  if (wanted)
    rl_core_connected(&self->client->core, node, redlock_now());
  lua_pushboolean(L, wanted);
  return 1;
}

/* (mux, node, reason): it could not be made, or has ended. settle() is to follow. */
static int mux_disconnected(lua_State *L) {
  rl_lua_mux *self = check_mux(L);
  unsigned node = check_node(L, self);

  rl_core_disconnected(&self->client->core, node, redlock_now(), luaL_checkstring(L, 3));
  return 0;
}

/* (mux, node, reason): as above, and nothing of the connection is left: another can be made. */
static int mux_closed(lua_State *L) {
  rl_lua_mux *self = check_mux(L);

  (void)mux_disconnected(L);
  self->open &= ~node_bit(check_node(L, self));
  return 0;
}

/* (mux, list) -> how many ended, writers to wake, whether to wake the clock. */
static int mux_settle(lua_State *L) {
  rl_lua_mux *self = check_mux(L);

  lua_settop(L, 2);
  return push_wakes(L, self, 2);
}

/* (mux, node, bytes, list) -> how many ended, writers to wake, whether to wake the clock. */
static int mux_input(lua_State *L) {
  rl_lua_mux *self = check_mux(L);
  unsigned node = check_node(L, self);
  size_t length;
  const char *bytes = luaL_checklstring(L, 3, &length);

  lua_settop(L, 4);
  rl_core_input(&self->client->core, node, redlock_now(), bytes, length);
  return push_wakes(L, self, 4);
}

/*
 * (mux, node) -> the bytes to send, which count as sent; nil when there are none for now; false when
 * the connection is to be closed.
 */
static int mux_output(lua_State *L) {
  rl_lua_mux *self = check_mux(L);
  unsigned node = check_node(L, self);
  rl_core *core = &self->client->core;
  char copy[OUTPUT_MAX];
  size_t length;
  const void *bytes = rl_core_output(core, node, &length);

  if (core->nodes[node]->link.phase == RL_LINK_DOWN) {
    lua_pushboolean(L, 0);
    return 1;
  }
  if (bytes == NULL) {
    self->woken &= ~node_bit(node);
    lua_pushnil(L);
    return 1;
  }
  /* A finalizer that runs while the string is made may move the buffer. */
  length = length < sizeof copy ? length : sizeof copy;
  memcpy(copy, bytes, length);
  rl_core_output_sent(core, node, length);
  lua_pushlstring(L, copy, length);
  return 1;
}

/* ------------------------------------------------------------------------------------- the clock */

/*
 * (mux, list, longest) -> how many ended, writers to wake, true, how long to wait at most in
 * milliseconds, nodes to connect to, nodes whose connection is to be closed.
 */
static int mux_advance(lua_State *L) {
  rl_lua_mux *self = check_mux(L);
  rl_core *core = &self->client->core;
  redlock_duration longest = (redlock_duration)luaL_checknumber(L, 3) * REDLOCK_MILLISECONDS;
  redlock_time now_us = redlock_now();
  uint32_t wanted = 0, unwanted = 0;

  lua_settop(L, 3);
  rl_core_advance(core, now_us);
  (void)launch(self->client);
  for (unsigned i = 0; i < core->node_count; i++) {
    if ((self->open & node_bit(i)) != 0) {
      if (core->nodes[i]->link.phase == RL_LINK_DOWN)
        unwanted |= node_bit(i);
    } else if (rl_core_connection(core, i, now_us) == RL_CONNECTION_WANTED) {
      wanted |= node_bit(i);
    }
  }
  push_wakes(L, self, 2);
  self->wake_us = rl_time_add(redlock_now(), longest);
  self->wake_us = rl_time_min(self->wake_us, rl_core_deadline(core));
  lua_pushnumber(L, (lua_Number)rl_time_ms_up(rl_time_sub(self->wake_us, redlock_now())));
  lua_pushnumber(L, (lua_Number)wanted);
  lua_pushnumber(L, (lua_Number)unwanted);
  return 6;
}

/*
 * (mux) -> how many locks there are, and how many of them are held; whether an operation is in flight;
 * whether a node is still worth waiting for; whether there is somebody who can use the client; whether
 * it has been closed.
 */
static int mux_state(lua_State *L) {
  rl_lua_mux *self = luaL_checkudata(L, 1, RL_LUA_MUX);
  redlock_time now_us = redlock_now();
  const rl_core *core;
  int held = 0, running = 0;

  if (self->client == NULL)
    return 0; /* Finalized, and about to be freed. */
  check_fork(self);
  core = &self->client->core;
  for (const rl_lock *lock = core->locks; lock != NULL; lock = lock->next) {
    held += rl_lock_remaining(lock, now_us) > 0;
    running += rl_lock_result(lock) == REDLOCK_PENDING;
  }
  lua_pushnumber(L, (lua_Number)core->lock_count);
  lua_pushinteger(L, held);
  lua_pushboolean(L, running > 0);
  lua_pushboolean(L, rl_core_awaits(core, now_us, LAST_CHANCE));
  lua_pushboolean(L, self->client->references > 1);
  lua_pushboolean(L, core->closed);
  return 6;
}

/* (mux): ends all operations and begins to release all leases. */
static int mux_close(lua_State *L) {
  rl_lua_mux *self = check_mux(L);

  rl_core_close(&self->client->core, redlock_now());
  return 0;
}

/* (mux): what has not been released by now is left to its ttl. */
static int mux_forget(lua_State *L) {
  rl_lua_mux *self = check_mux(L);

  rl_core_forget(&self->client->core);
  return 0;
}

void rl_lua_mux_register(lua_State *L) {
  static const luaL_Reg metamethods[] = {{"__gc", mux_gc}, {NULL, NULL}};
  static const luaL_Reg methods[] = {{NULL, NULL}};
  static const luaL_Reg functions[] = {{"new", mux_new},
                                       {"attach", mux_attach},
                                       {"driver", mux_driver},
                                       {"start", mux_start},
                                       {"result", mux_result},
                                       {"cancel", mux_cancel},
                                       {"is_blocking", mux_is_blocking},
                                       {"disown", mux_disown},
                                       {"address", mux_address},
                                       {"connecting", mux_connecting},
                                       {"connected", mux_connected},
                                       {"disconnected", mux_disconnected},
                                       {"closed", mux_closed},
                                       {"settle", mux_settle},
                                       {"input", mux_input},
                                       {"output", mux_output},
                                       {"advance", mux_advance},
                                       {"state", mux_state},
                                       {"close", mux_close},
                                       {"forget", mux_forget},
                                       {NULL, NULL}};

  rl_lua_class(L, RL_LUA_MUX, "redlock.mux", metamethods, methods);
  lua_pop(L, 1);
  lua_newtable(L);
  luaL_setfuncs(L, functions, 0);
}
