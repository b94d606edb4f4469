/*
 * C functions of nginx's driver, which has cosockets instead of sockets of its own.
 *
 * SPDX-License-Identifier: MIT
 *
 * The driver is written in Lua (redlock/nginx_driver.lua). Like each driver, it follows rl_core.h
 * and uses rl_pump.h. The client's own sockets stay closed. rl_lua_nginx_wait.c has the functions
 * by which requests wait.
 */
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "client/rl_client.h"
#include "client/rl_credentials.h"
#include "client/rl_pump.h"
#include "lease/rl_renew.h"
#include "rl_lua_client.h"
#include "rl_lua_credentials.h"
#include "rl_lua_loss.h"
#include "rl_lua_nginx_handle.h"
#include "rl_lua_nginx_owner.h"
#include "rl_lua_nginx_released.h"
#include "rl_lua_nginx_wait.h"
#include "rl_lua_object.h"
#include "rl_lua_result.h"

#define OUTPUT_MAX 32768       /* bytes that a writer gets at once */
#define NGINX_LOCKS_SEEN 10000 /* locks that nginx_locks() looks at */

#define NGINX_DRAIN_BUDGET                                                                         \
  (100 * REDLOCK_MILLISECONDS) /* time to send releases when the worker ends */

static uint32_t bit_of(unsigned connection) {
  return (uint32_t)1 << connection;
}

/* Returns the number of the connection at index 2, which Lua counts from 1. A connection for
   notifications may still be open when the core has dropped it. */
static unsigned check_connection(lua_State *L, const rl_lua_nginx *self) {
  const rl_core *core = &self->client->core;
  lua_Integer index = luaL_checkinteger(L, 2);

  if (index < 1 || index > 2 * (lua_Integer)core->node_count ||
      !rl_core_has_connection(core, (unsigned)(index - 1)))
    luaL_error(L, "redlock: no such connection");
  return (unsigned)(index - 1);
}

static rl_core *check_core(lua_State *L) {
  return &rl_lua_nginx_check(L)->client->core;
}

/* Ends each step of the driver: -> number of operations that have ended, |count| of which are in
   the table at |list| already; writers to wake; true if the clock must be woken. */
static int push_wakes(lua_State *L, rl_lua_nginx *self, int list, int count) {
  uint32_t writers;
  bool clock;

  (void)rl_pump_send(&self->client->core);
  writers = rl_lua_nginx_wake_writers(self);
  clock = rl_lua_nginx_wake_clock(self);
  lua_pushinteger(L, rl_lua_nginx_wait_collect(L, self, list, count));
  lua_pushnumber(L, (lua_Number)writers);
  lua_pushboolean(L, clock);
  return 3;
}

/* Makes |client| a user of the connections of |nginx|. */
static void add_user(rl_lua_client *client, rl_lua_nginx *nginx) {
  client->worker = &nginx->worker;
  nginx->users++;
}

/* Releases the locks of |client| and ends their operations. */
static void close_locks(const rl_lua_nginx *self, const rl_lua_client *client) {
  redlock_time now_us = redlock_now();

  RL_LIST_EACH(&self->client->core.locks, lock, rl_lock, locks) {
    /* |data| points to the object only after an operation has begun. */
    bool begun = rl_lock_is_busy(lock) || rl_ring_owner(lock)->lease != NULL;
    if (begun && ((const rl_lua_lock *)lock->data)->client == client)
      rl_lock_close(lock, now_us);
  }
  rl_core_before_pause(&self->client->core, now_us);
}

/* (client) -> true if it was closed alone, because other clients use its connections; false if it
   is the last. */
static int nginx_close_one(lua_State *L) {
  rl_lua_client *client = rl_lua_check_client(L, RL_LUA_WRAPPED, "client:close()");
  rl_lua_nginx *self = rl_lua_nginx_of(client->worker);

  if (!client->closed && self->users > 1 && self->client != NULL) {
    client->closed = true;
    self->users--;
    rl_lua_nginx_check_fork(self);
    close_locks(self, client);
  }
  lua_pushboolean(L, client->closed);
  return 1;
}

/* (handle, driver) -> another client with the same connections; or nil if these are closed. */
static int nginx_another(lua_State *L) {
  rl_lua_nginx *self = luaL_checkudata(L, 1, RL_LUA_NGINX);
  rl_lua_client *client;

  lua_settop(L, 2);
  if (self->client == NULL || self->client->core.closed) {
    lua_pushnil(L);
    return 1;
  }
  client = rl_lua_client_push(L);
  lua_getuservalue(L, -1);
  lua_pushvalue(L, 2);
  lua_rawseti(L, -2, RL_LUA_NGINX_DRIVER);
  lua_pushvalue(L, 1);
  lua_rawseti(L, -2, RL_LUA_NGINX_SELF);
  lua_pop(L, 1);
  client->of_worker = self->of_worker;
  client->reentrant = self->reentrant;
  client->client = redlock_client_ref(self->client);
  add_user(client, self);
  return 1;
}

/* Sends the outstanding releases over connections of the client's own. */
static void drain(redlock_client *client) {
  redlock_time now_us = redlock_now();
  rl_core *core = &client->core;

  rl_core_close(core, now_us);
  for (unsigned i = 0; i < rl_core_connection_count(core); i++)
    rl_core_disconnected(core, i, now_us, "the worker has ended");
  for (unsigned i = 0; i < core->node_count; i++) {
    rl_node *node = core->nodes[i];
    /* Neither TLS nor Lua, for credentials, is available here. */
    bool reachable = !node->address.tls && !rl_credentials_are_asked(client, i);
    node->connect_at_us = reachable ? 0 : REDLOCK_NEVER;
  }
  rl_client_enter(client);
  rl_client_drain(client, rl_time_add(now_us, NGINX_DRAIN_BUDGET));
  rl_core_reset(core);
  rl_client_leave(client);
}

/* Drops a reference to a client of the driver. The last one sends the outstanding releases, so that
   a worker that ends leaves nothing locked. Calls no Lua. */
static void free_client(redlock_client *client) {
  if (client->references == 1) {
    rl_client_check_fork(client);
    drain(client);
  }
  redlock_client_free(client);
}

/* Removes a client that is being collected. */
static void remove_user(rl_lua_client *self, redlock_client *client) {
  if (!self->closed)
    rl_lua_nginx_of(self->worker)->users--;
  free_client(client);
}

static uint64_t request_number(lua_State *L, rl_lua_lock *self, int index) {
  return rl_lua_nginx_owners_number(&rl_lua_nginx_of(self->worker)->owners,
                                    rl_lua_nginx_request_at(L, index));
}

static bool owner_has_ended(const rl_lua_lock *self) {
  return rl_lua_nginx_owner_has_ended(&((const rl_lua_nginx_lock *)self)->owned);
}

static const rl_lua_worker_functions worker_functions = {
    .lock_size = rl_lua_nginx_released_size,
    .revive = rl_lua_nginx_released_revive,
    .forget_lock = rl_lua_nginx_wait_forget_lock,
    .owner_has_ended = owner_has_ended,
    .request_number = request_number,
    .free_client = remove_user,
};

/*
 * (client, idle milliseconds before rl_link_check_idle(), or nil) -> handle. From now on the driver
 * makes the client's connections. Cosockets lack some options of sockets.
 */
static int nginx_new(lua_State *L) {
  rl_lua_client *client = rl_lua_check_client(L, RL_LUA_WRAPPED, "redlock.new()");
  lua_Integer idle_ms = luaL_optinteger(L, 2, RL_LINK_IDLE_US / REDLOCK_MILLISECONDS);
  rl_lua_nginx *self;

  lua_settop(L, 1);
  self = lua_newuserdata(L, sizeof *self);
  memset(self, 0, sizeof *self);
  self->worker.functions = &worker_functions;
  rl_lua_nginx_owners_init(&self->owners);
  luaL_getmetatable(L, RL_LUA_NGINX);
  lua_setmetatable(L, -2);
  lua_getuservalue(L, 1);
  lua_pushvalue(L, -2);
  lua_rawseti(L, -2, RL_LUA_NGINX_SELF);
  lua_pop(L, 1);

  self->client = redlock_client_ref(client->client);
  self->client->external = true;
  self->client->driver_reports_losses = true;
  self->client->core.keep_us = (redlock_duration)idle_ms * REDLOCK_MILLISECONDS;
  self->of_worker = client->of_worker;
  self->reentrant = client->reentrant;
  add_user(client, self);
  return 1;
}

/* (client, driver): sets the table that start() returns for the client's locks. */
static int nginx_attach(lua_State *L) {
  rl_lua_check_client(L, RL_LUA_WRAPPED, "redlock.new()");
  luaL_checktype(L, 2, LUA_TTABLE);
  lua_getuservalue(L, 1);
  lua_pushvalue(L, 2);
  lua_rawseti(L, -2, RL_LUA_NGINX_DRIVER);
  return 0;
}

/* (client, name of the called method) -> the driver's table, or nil. */
static int nginx_driver(lua_State *L) {
  char method[32];

  (void)snprintf(method, sizeof method, "client:%s()", luaL_checkstring(L, 2));
  rl_lua_check_client(L, RL_LUA_WRAPPED, method);
  lua_getuservalue(L, 1);
  lua_rawgeti(L, -1, RL_LUA_NGINX_DRIVER);
  return 1;
}

static int nginx_gc(lua_State *L) {
  rl_lua_nginx *self = luaL_testudata(L, 1, RL_LUA_NGINX);

  if (self != NULL && self->client != NULL) {
    redlock_client *client = self->client;
    self->client = NULL;
    rl_lua_nginx_wait_forget(self);
    free_client(client);
  }
  return 0;
}

/*
 * (handle, connection) -> host, port (or "unix:" and a path, nil), true for TLS, name of the node.
 */
static int nginx_address(lua_State *L) {
  rl_lua_nginx *self = rl_lua_nginx_check(L);
  const rl_address *address =
      &rl_core_peer(&self->client->core, check_connection(L, self))->address;

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

/* (handle, connection): the driver begins to connect. */
static int nginx_connecting(lua_State *L) {
  rl_lua_nginx *self = rl_lua_nginx_check(L);
  unsigned connection = check_connection(L, self);

  if (rl_core_peer(&self->client->core, connection)->link.phase == RL_LINK_DOWN) {
    rl_core_connecting(&self->client->core, connection, redlock_now());
  }
  self->open |= bit_of(connection);
  self->woken |= bit_of(connection); /* A new writer begins by asking for bytes. */
  return 0;
}

/* (handle, connection): it is connected. -> true if the core still wants it. */
static int nginx_connected(lua_State *L) {
  rl_lua_nginx *self = rl_lua_nginx_check(L);
  unsigned connection = check_connection(L, self);
  bool wanted = rl_core_peer(&self->client->core, connection)->link.phase == RL_LINK_CONNECTING;

  if (wanted)
    rl_core_connected(&self->client->core, connection, redlock_now());
  lua_pushboolean(L, wanted);
  return 1;
}

/* (handle, connection) -> name and number of the node if the driver must ask for its credentials,
   else nil. The connection then waits for answer(), and no socket is open. */
static int nginx_asks(lua_State *L) {
  rl_lua_nginx *self = rl_lua_nginx_check(L);
  unsigned connection = check_connection(L, self);
  rl_core *core = &self->client->core;

  if (!rl_credentials_are_asked(self->client, connection)) {
    lua_pushnil(L);
    return 1;
  }
  rl_core_await_login(core, connection);
  self->open &= ~bit_of(connection);
  lua_pushstring(L, rl_core_peer(core, connection)->address.name);
  lua_pushinteger(L, (lua_Integer)rl_core_peer(core, connection)->index + 1);
  return 2;
}

/* (handle, connection, results of pcall()) -> true if the driver must connect. The caller must call
   wakes(). */
static int nginx_answer(lua_State *L) {
  rl_lua_nginx *self = rl_lua_nginx_check(L);
  unsigned connection = check_connection(L, self);
  rl_core *core = &self->client->core;
  bool goes_on = rl_core_awaits_login(core, connection);
  rl_lua_credentials_answer answer;

  lua_settop(L, 5);
  rl_lua_credentials_read(L, &answer);
  if (goes_on && (!answer.had || rl_core_login(core, connection, answer.username, answer.password,
                                               answer.length) != REDLOCK_OK)) {
    rl_credentials_refused(self->client, connection, answer.why);
    goes_on = false;
  }
  if (goes_on)
    self->open |= bit_of(connection);
  lua_pushboolean(L, goes_on);
  return 1;
}

/* (handle, connection, reason): it failed or has ended. The caller must call wakes(). */
static int nginx_disconnected(lua_State *L) {
  rl_lua_nginx *self = rl_lua_nginx_check(L);
  unsigned connection = check_connection(L, self);

  rl_core_disconnected(&self->client->core, connection, redlock_now(), luaL_checkstring(L, 3));
  return 0;
}

/*
 * (handle, connection, reason): likewise; its threads have ended, so the driver may connect again.
 */
static int nginx_closed(lua_State *L) {
  rl_lua_nginx *self = rl_lua_nginx_check(L);

  (void)nginx_disconnected(L);
  self->open &= ~bit_of(check_connection(L, self));
  return 0;
}

/* (handle, list): after other calls -> results of push_wakes(). */
static int nginx_wakes(lua_State *L) {
  rl_lua_nginx *self = rl_lua_nginx_check(L);

  lua_settop(L, 2);
  return push_wakes(L, self, 2, 0);
}

/* (handle, connection, bytes, list) -> results of push_wakes(). */
static int nginx_input(lua_State *L) {
  rl_lua_nginx *self = rl_lua_nginx_check(L);
  unsigned connection = check_connection(L, self);
  size_t length;
  const char *bytes = luaL_checklstring(L, 3, &length);

  lua_settop(L, 4);
  rl_core_input(&self->client->core, connection, redlock_now(), bytes, length);
  return push_wakes(L, self, 4, 0);
}

/* (handle, connection) -> bytes to send, which count as sent; nil: none now; false: close the
   connection. */
static int nginx_output(lua_State *L) {
  rl_lua_nginx *self = rl_lua_nginx_check(L);
  unsigned connection = check_connection(L, self);
  rl_core *core = &self->client->core;
  char copy[OUTPUT_MAX];
  size_t length;
  const void *bytes = rl_core_output(core, connection, &length);

  if (rl_core_peer(core, connection)->link.phase == RL_LINK_DOWN) {
    lua_pushboolean(L, 0);
    return 1;
  }
  if (bytes == NULL) {
    self->woken &= ~bit_of(connection);
    lua_pushnil(L);
    return 1;
  }
  /* Copy first: a finalizer that runs during the push may move the buffer. */
  length = length < sizeof copy ? length : sizeof copy;
  memcpy(copy, bytes, length);
  rl_core_output_sent(core, connection, length);
  lua_pushlstring(L, copy, length);
  return 1;
}

/* () -> milliseconds of a monotonic clock. */
static int nginx_now(lua_State *L) {
  lua_pushnumber(L, (lua_Number)(redlock_now() / REDLOCK_MILLISECONDS));
  return 1;
}

/* Returns the nodes whose state differs from the logged one, |down|. A node is down if its last
   connection failed and the next one has not begun, or if it is read-only. */
static uint32_t nodes_to_log(const rl_core *core, uint32_t down, redlock_time now_us) {
  uint32_t changed = 0;

  for (unsigned i = 0; i < core->node_count; i++) {
    const rl_node *node = core->nodes[i];
    bool is_up = node->link.phase == RL_LINK_UP && !node->read_only;
    bool failed = node->link.phase == RL_LINK_DOWN && node->failures > 0;
    bool is_down = node->read_only || (failed && node->connect_at_us > now_us);
    if ((down & rl_node_bit(node)) != 0 ? is_up : is_down)
      changed |= rl_node_bit(node);
  }
  return changed;
}

/* Pushes { resource, more, remaining } of a lock: its first resource, the number of the others, and
   the rest of its lease in milliseconds unless it waits. */
static void push_listed(lua_State *L, const rl_lock *lock, redlock_duration remaining) {
  rl_resource_name name = rl_resource_at(lock->resource, 0);

  lua_createtable(L, 0, 3);
  lua_pushlstring(L, name.resource, name.length);
  lua_setfield(L, -2, "resource");
  lua_pushnumber(L, (lua_Number)(lock->resource->count - 1));
  lua_setfield(L, -2, "more");
  if (remaining > 0) {
    lua_pushnumber(L, (lua_Number)rl_time_ms_up(remaining));
    lua_setfield(L, -2, "remaining");
  }
}

/* (handle, count) -> list of at most |count| locks that are held, or whose acquire waits. */
static int nginx_locks(lua_State *L) {
  rl_lua_nginx *self = rl_lua_nginx_check(L);
  lua_Integer count = luaL_checkinteger(L, 2), found = 0;
  redlock_time now_us = redlock_now();
  unsigned seen = 0;

  lua_newtable(L);
  RL_LIST_EACH(&self->client->core.locks, lock, rl_lock, locks) {
    redlock_duration remaining = rl_lock_remaining(lock, now_us);

    if (remaining > 0 || (rl_lock_is_in_flight(lock) && lock->has_waited)) {
      push_listed(L, lock, remaining);
      lua_rawseti(L, -2, (int)++found);
    }
    if (found == count || ++seen == NGINX_LOCKS_SEEN)
      break;
  }
  return 1;
}

/* (handle, node) -> its name, and the reason why it is down. */
static int nginx_why(lua_State *L) {
  rl_lua_nginx *self = rl_lua_nginx_check(L);
  const rl_node *node = rl_core_peer(&self->client->core, check_connection(L, self));

  lua_pushstring(L, node->address.name);
  lua_pushstring(L, node->error);
  return 2;
}

/*
 * (handle, list, longest, nodes logged as down) -> results of push_wakes(), longest wait in
 * milliseconds, connections to make, connections to close, the time, true if there are losses to
 * report, nodes whose state must be logged. |longest| is in milliseconds.
 */
static int nginx_advance(lua_State *L) {
  rl_lua_nginx *self = rl_lua_nginx_check(L);
  rl_core *core = &self->client->core;
  redlock_duration longest = (redlock_duration)luaL_checknumber(L, 3) * REDLOCK_MILLISECONDS;
  rl_pump_wants wants;
  uint32_t down = (uint32_t)luaL_checknumber(L, 4);

  lua_settop(L, 3);
  wants = rl_pump_advance(core, redlock_now());
  push_wakes(L, self, 2, rl_lua_nginx_wait_release_ended(L, self, 2));
  self->wake_us = rl_time_add(redlock_now(), longest);
  self->wake_us = rl_time_min(self->wake_us, rl_core_deadline(core));
  lua_pushnumber(L, (lua_Number)rl_time_ms_up(rl_time_sub(self->wake_us, redlock_now())));
  lua_pushnumber(L, (lua_Number)(wants.connect & ~self->open));
  lua_pushnumber(L, (lua_Number)(wants.close & self->open));
  (void)nginx_now(L);
  lua_pushboolean(L, rl_lua_nginx_has_losses(self));
  lua_pushnumber(L, (lua_Number)(core->closed ? 0 : nodes_to_log(core, down, core->now_us)));
  return 9;
}

/* (handle) -> a function to call with the lock and the reason, which follow; or nothing. */
static int nginx_lost(lua_State *L) {
  return rl_lua_loss_take(L, rl_lua_nginx_check(L)->client);
}

/*
 * (handle) -> number of locks; of leases that may last; of leases that requests own; true if a
 * request waits for an operation, or a closed client has one in flight; true if a client object
 * exists; true if the client is closed. Takes constant time.
 */
static int nginx_state(lua_State *L) {
  rl_lua_nginx *self = luaL_checkudata(L, 1, RL_LUA_NGINX);
  const rl_core *core;

  if (self->client == NULL)
    return 0; /* Finalized. */
  rl_lua_nginx_check_fork(self);
  core = &self->client->core;
  lua_pushnumber(L, (lua_Number)core->lock_count);
  lua_pushnumber(L, (lua_Number)rl_core_leases_at_most(core, redlock_now()));
  lua_pushnumber(L, (lua_Number)self->owners.owned_count);
  /*
   * Thousands of auto-extended leases always have an extend in flight: count only waiting requests.
   */
  lua_pushboolean(L, core->closed ? rl_core_is_busy(core) : self->waited > 0);
  lua_pushboolean(L, self->client->references > 1);
  lua_pushboolean(L, core->closed);
  return 6;
}

/* (handle) -> true if the driver should wait for a node before it closes the connections. */
static int nginx_awaits(lua_State *L) {
  lua_pushboolean(L, rl_core_awaits_replies(check_core(L), redlock_now(), NGINX_DRAIN_BUDGET));
  return 1;
}

/* (handle) -> true if a reply that close() waits for is outstanding. */
static int nginx_unanswered(lua_State *L) {
  lua_pushboolean(L, rl_core_has_unanswered(check_core(L)));
  return 1;
}

/* (handle): releases all idle locks, because the worker ends. */
static int nginx_release_leases(lua_State *L) {
  rl_core *core = check_core(L);
  redlock_time now_us = redlock_now();

  RL_LIST_EACH(&core->locks, lock, rl_lock, locks) {
    if (rl_ring_owner(lock)->lease != NULL && !rl_lock_is_busy(lock))
      rl_lock_expire(lock, now_us);
  }
  return 0;
}

/* (handle) -> true if there are losses or warnings to report. Warns each holder of an auto-extended
   lease (unavailable): an exiting worker extends no lease. */
static int nginx_warn_holders(lua_State *L) {
  rl_lua_nginx *self = rl_lua_nginx_check(L);
  redlock_time now_us = redlock_now();

  RL_LIST_EACH(&self->client->core.locks, lock, rl_lock, locks) {
    if (rl_lock_remaining(lock, now_us) > 0 && rl_renewal_is_on(lock))
      rl_loss_report(lock, REDLOCK_E_UNAVAILABLE, now_us);
  }
  lua_pushboolean(L, rl_lua_nginx_has_losses(self));
  return 1;
}

/* (handle): ends all operations and begins to release all leases. */
static int nginx_close(lua_State *L) {
  rl_core_close(check_core(L), redlock_now());
  return 0;
}

/* (handle): drops all operations and leases without sending anything: their keys expire. */
static int nginx_forget(lua_State *L) {
  rl_core_reset(check_core(L));
  return 0;
}

void rl_lua_nginx_register(lua_State *L) {
  static const luaL_Reg metamethods[] = {{"__gc", nginx_gc}, {NULL, NULL}};
  static const luaL_Reg methods[] = {{NULL, NULL}};
  static const luaL_Reg functions[] = {{"new", nginx_new},
                                       {"attach", nginx_attach},
                                       {"locks", nginx_locks},
                                       {"driver", nginx_driver},
                                       {"address", nginx_address},
                                       {"connecting", nginx_connecting},
                                       {"connected", nginx_connected},
                                       {"asks", nginx_asks},
                                       {"answer", nginx_answer},
                                       {"disconnected", nginx_disconnected},
                                       {"closed", nginx_closed},
                                       {"wakes", nginx_wakes},
                                       {"input", nginx_input},
                                       {"output", nginx_output},
                                       {"advance", nginx_advance},
                                       {"why", nginx_why},
                                       {"state", nginx_state},
                                       {"awaits", nginx_awaits},
                                       {"unanswered", nginx_unanswered},
                                       {"now", nginx_now},
                                       {"release_leases", nginx_release_leases},
                                       {"warn_holders", nginx_warn_holders},
                                       {"close", nginx_close},
                                       {"close_one", nginx_close_one},
                                       {"another", nginx_another},
                                       {"forget", nginx_forget},
                                       {"lost", nginx_lost},
                                       {NULL, NULL}};

  rl_lua_class(L, RL_LUA_NGINX, "redlock.nginx", metamethods, methods);
  lua_pop(L, 1);
  lua_newtable(L);
  luaL_setfuncs(L, functions, 0);
  rl_lua_nginx_wait_register(L);
  lua_setfield(L, -2, "nginx");
}
