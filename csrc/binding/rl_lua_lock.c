/*
 * The lock object.
 *
 * SPDX-License-Identifier: MIT
 */
#include "rl_lua_lock.h"

#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "api/rl_handle.h"
#include "api/rl_handle_run.h"
#include "rl_lua_argument.h"
#include "rl_lua_credentials.h"
#include "rl_lua_hook.h"
#include "rl_lua_loss.h"
#include "rl_lua_object.h"
#include "rl_lua_operation.h"
#include "rl_lua_operator.h"
#include "rl_lua_option.h"
#include "rl_lua_reentry.h"
#include "rl_lua_result.h"
#include "rl_lua_worker.h"

#define STILL_COUNTED                                                                              \
  "its owner has acquired it more than once: release the other lock objects first"
#define SHOWN_NAME_MAX 80 /* bytes of a resource name that tostring(lock) and messages show */
#define SHOWN_NAME_SIZE (4 * SHOWN_NAME_MAX + 16)

/* Writes |length| bytes as printable ASCII, with \\x1b for other bytes, and shortens long names. */
static void show_name(char *shown, size_t size, const unsigned char *name, size_t length) {
  shown[0] = '\0';
  size_t limit = length < SHOWN_NAME_MAX ? length : SHOWN_NAME_MAX;
  size_t used = 0;

  for (size_t index = 0; index < limit && used + 8 < size; index++) {
    int printable = name[index] >= 0x20 && name[index] < 0x7f && name[index] != '\\';
    int written = snprintf(shown + used, size - used, printable ? "%c" : "\\x%02x", name[index]);
    if (written > 0)
      used += (size_t)written;
  }
  (void)snprintf(shown + used, size - used, "%s", limit < length ? "..." : "");
}

/* Writes the first of |count| resources, and the number of the rest. */
static void show_resources(char *shown, size_t size, const redlock_resource *first, size_t count) {
  size_t used;

  show_name(shown, size, first->bytes, first->length);
  used = strlen(shown);
  if (count > 1)
    (void)snprintf(shown + used, size - used, " and %d more", (int)count - 1);
}

void rl_lua_lock_show(const rl_lua_lock *self, char *shown, size_t size) {
  redlock_resource first = {NULL, 0};

  (void)redlock_lock_resource_at(self->lock, 0, &first);
  show_resources(shown, size, &first, redlock_lock_resource_count(self->lock));
}

/* Returns true for the names that bootstrap() and doctor() use, which no caller has chosen. */
static bool is_own(const redlock_resource *resource) {
  static const char *const names[] = {"redlock-bootstrap", "redlock-doctor"};
  bool own = false;

  for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
    own = own || (resource->length == strlen(names[i]) &&
                  memcmp(resource->bytes, names[i], resource->length) == 0);
  return own;
}

/* Reports that no lock object was created: pushes nil, message and code, or raises an error. */
static int refuse_lock(lua_State *L, int error, redlock_client *client,
                       const redlock_resource *resources, size_t count) {
  char name[SHOWN_NAME_SIZE];
  char text[sizeof name + 128];
  size_t longest = 0;
  const char *why = client != NULL ? redlock_client_message(client) : redlock_strerror(error);

  if (error == REDLOCK_E_LIMIT) {
    for (size_t i = 0; i < count; i++)
      longest = resources[i].length > longest ? resources[i].length : longest;
    return rl_lua_misuse(L, RL_LUA_WRAPPED,
                         "redlock: resource is too long: it has %d bytes, and prefix and resource "
                         "together may have %d",
                         (int)longest, REDLOCK_KEY_MAX);
  }
  show_resources(name, sizeof name, resources, count);
  if (count == 1 && is_own(resources))
    (void)snprintf(text, sizeof text, "%s", why);
  else
    (void)snprintf(text, sizeof text, "'%s': %s", name, why);
  return rl_lua_push_error(L, error, text, RL_LUA_WRAPPED);
}

/* Reads the resource, or the list of resources, at index 2, and returns their number. Leaves the
   strings on the stack, because a finalizer may change the list meanwhile. */
static size_t check_resources(lua_State *L, redlock_resource *resources) {
  size_t count = 1;

  if (lua_type(L, 2) != LUA_TTABLE) {
    resources[0].bytes = luaL_checklstring(L, 2, &resources[0].length);
    return count;
  }
  luaL_checkstack(L, REDLOCK_RESOURCES_MAX + LUA_MINSTACK, "too many resources");
  for (count = 0;; count++) {
    lua_rawgeti(L, 2, (int)count + 1);
    if (lua_isnil(L, -1))
      break;
    if (count == REDLOCK_RESOURCES_MAX)
      rl_lua_misuse(L, RL_LUA_WRAPPED, "redlock: a lock has at most %d resources",
                    REDLOCK_RESOURCES_MAX);
    if (lua_type(L, -1) != LUA_TSTRING)
      rl_lua_misuse(L, RL_LUA_WRAPPED, "redlock: resource must be a string");
    resources[count].bytes = lua_tolstring(L, -1, &resources[count].length);
  }
  if (count == 0)
    rl_lua_misuse(L, RL_LUA_WRAPPED, "redlock: a lock needs at least one resource");
  return count;
}

/* Pushes a lock object without a lock for the client at index 1, with room for |length| bytes of
   resource. */
static rl_lua_lock *push_lock(lua_State *L, rl_lua_client *client, size_t length, int has_options,
                              int of_worker) {
  size_t size = client->worker == NULL
                    ? sizeof(rl_lua_lock)
                    : client->worker->functions->lock_size(client, length, has_options);
  rl_lua_lock *self = lua_newuserdata(L, size);

  memset(self, 0, size);
  self->has_options = has_options;
  self->client = client;
  self->worker = client->worker;
  self->of_worker = of_worker;
  self->reentrant = client->reentrant;
  luaL_getmetatable(L, RL_LUA_LOCK);
  lua_setmetatable(L, -2);
  lua_getuservalue(L, 1);
  lua_setuservalue(L, -2);
  return self;
}

/* Completes a lock object: gives it an id, and accounts for its memory. */
static int complete_lock(lua_State *L, rl_lua_client *client, rl_lua_lock *self) {
  client->next_id += 1;
  redlock_lock_set_data(self->lock, (void *)(uintptr_t)client->next_id);
  self->bytes = rl_handle_size(self->lock);
  rl_lua_memory_take(L, &self->client->anchor->memory, self->bytes);
  rl_lua_loss_note_lock(L, self);
  rl_lua_reentry_note_lock(L, self);
  return 1;
}

/* (client, resource or list of resources, options) -> lock, or nil, message, code. */
static int lock_new(lua_State *L) {
  rl_lua_client *client = rl_lua_check_client(L, RL_LUA_WRAPPED, "client:new_lock()");
  redlock_resource resources[REDLOCK_RESOURCES_MAX];
  redlock_options options;
  const redlock_options *given;
  size_t count, kept;
  rl_lua_lock *self;
  int error, of_worker;

  lua_settop(L, 3);
  count = check_resources(L, resources);
  given = rl_lua_read_lock_options(L, &client->client->core.options, &options);
  of_worker = rl_lua_read_owner(L, RL_LUA_ARGUMENT, client->of_worker);
  if (client->closed)
    return refuse_lock(L, REDLOCK_E_CLOSED, NULL, resources, count);
  kept = count == 1 ? resources[0].length : 0;
  self = push_lock(L, client, kept, given != NULL, of_worker);
  error = redlock_lock_new_many(&self->lock, client->client, resources, count, given);
  if (error != REDLOCK_OK) {
    self->lock = NULL;
    return refuse_lock(L, error, client->client, resources, count);
  }
  return complete_lock(L, client, self);
}

/* (client, text of lock:detach(), options) -> lock, or nil, message, code. */
static int lock_attach(lua_State *L) {
  rl_lua_client *client = rl_lua_check_client(L, RL_LUA_WRAPPED, "client:attach()");
  redlock_options options;
  const redlock_options *given;
  const char *text;
  size_t length;
  rl_lua_lock *self;
  int error, of_worker;

  lua_settop(L, 3);
  text = luaL_checklstring(L, 2, &length);
  given = rl_lua_read_lock_options(L, &client->client->core.options, &options);
  of_worker = rl_lua_read_owner(L, RL_LUA_ARGUMENT, client->of_worker);
  if (client->closed)
    return rl_lua_push_error(L, REDLOCK_E_CLOSED, NULL, RL_LUA_WRAPPED);
  /* The lease brings options of its own. The text is longer than the resource. */
  self = push_lock(L, client, length, 1, of_worker);
  error = redlock_lock_attach(&self->lock, client->client, text, length, given);
  if (error != REDLOCK_OK) {
    self->lock = NULL;
    return rl_lua_push_error(L, error, redlock_client_message(client->client), RL_LUA_WRAPPED);
  }
  return complete_lock(L, client, self);
}

/* (lock) -> its id, as next_ended() returns it. */
static int lock_id(lua_State *L) {
  const redlock_lock *lock = rl_lua_check_lock(L, RL_LUA_WRAPPED, "id()")->lock;

  lua_pushnumber(L, (lua_Number)(uintptr_t)redlock_lock_data(lock));
  return 1;
}

int rl_lua_push_failure(lua_State *L, rl_lua_lock *self, int error, int level) {
  char name[SHOWN_NAME_SIZE];
  char text[sizeof name + 128];

  if (error != REDLOCK_E_BUSY &&
      (error != REDLOCK_E_NOT_HELD || self->operation == RL_OPERATION_FORCE_RELEASE))
    return rl_lua_push_error(L, error, redlock_lock_message(self->lock), level);
  rl_lua_lock_show(self, name, sizeof name);
  if (error == REDLOCK_E_BUSY)
    return rl_lua_misuse(
        L, level, "redlock: '%s' has an operation in flight, and a lock has one at a time", name);
  (void)snprintf(text, sizeof text,
                 self->owner_ended ? "'%s': the lock was released when the request that took it "
                                     "ended (see owner in docs/openresty.md)"
                                   : "'%s': the lock is not held",
                 name);
  return rl_lua_push_error(L, error, text, level);
}

/* Pushes true, or the results of a failure. */
static int push_done(lua_State *L, rl_lua_lock *self, int error) {
  return error == REDLOCK_OK ? rl_lua_push_true(L)
                             : rl_lua_push_failure(L, self, error, RL_LUA_WRAPPED);
}

/* Pushes the result of |operation|. Lua counts whole milliseconds, so less than one millisecond of
   validity is no lock. */
static int push_outcome(lua_State *L, rl_lua_lock *self, rl_operation operation, int error,
                        int level) {
  redlock_duration validity = 0;

  if (error == REDLOCK_OK)
    error = rl_handle_outcome(self->lock, REDLOCK_MILLISECONDS, &validity);
  if (error != REDLOCK_E_BUSY)
    self->operation = operation; /* lock:result() reports it. */
  if (error != REDLOCK_OK)
    return rl_lua_push_failure(L, self, error, level);
  rl_lua_push_success(L, self, operation, validity);
  return 1;
}

/*
 * Waits for the end of an operation that has begun. A hook that is set meanwhile may raise an
 * error, for example that of Ctrl-C. That cancels the operation, which releases what it has
 * acquired. Unless |may_raise|, any new hook does so, and runs as soon as Lua runs.
 */
static void wait_for_end(lua_State *L, rl_lua_lock *self, bool may_raise) {
  redlock_client *client = redlock_lock_client(self->lock);
  bool interrupted = false;
  rl_lua_hook hook;
  int error;

  rl_lua_hook_note(L, &hook, may_raise);
  error = rl_handle_begin(self->lock);
  while (error == REDLOCK_OK && rl_handle_pending(self->lock)) {
    error = rl_handle_go_on(self->lock, RL_LUA_HOOK_PATIENCE);
    interrupted = rl_lua_credentials_wanted(client) && rl_lua_credentials_run(L, client);
    if (!interrupted && rl_lua_hook_is_new(L, &hook))
      interrupted = !may_raise || rl_lua_hook_run(L, &hook) != 0;
    if (interrupted)
      error = REDLOCK_E_CANCELLED;
  }
  rl_handle_end(self->lock, error);
  if (interrupted && may_raise)
    lua_error(L);
}

/* (lock, code of an operation, argument) -> results of the method: starts it, and waits for its
   end. */
static int lock_run(lua_State *L) {
  const rl_lua_operation *row = rl_lua_check_operation(L);
  rl_lua_lock *self = rl_lua_check_lock(L, RL_LUA_WRAPPED, row->method);
  int error;

  lua_settop(L, 3);
  error = rl_lua_begin(L, self, row, RL_LUA_BLOCKING);
  if (error == REDLOCK_OK)
    wait_for_end(L, self, true);
  return push_outcome(L, self, row->operation, error, RL_LUA_WRAPPED);
}

/* (lock) -> true; or nil, message, code: sends the release, and does not wait. */
static int lock_release_send(lua_State *L) {
  rl_lua_lock *self = rl_lua_check_lock(L, RL_LUA_WRAPPED, "lock:release()");
  int error = redlock_lock_release_send(self->lock);

  if (error != REDLOCK_E_BUSY)
    self->operation = RL_OPERATION_RELEASE;
  return push_done(L, self, error);
}

/* (lock, code of an operation, argument) -> true; or nil, message, code: starts it. */
static int lock_start(lua_State *L) {
  const rl_lua_operation *row = rl_lua_check_operation(L);
  rl_lua_lock *self = rl_lua_check_lock(L, RL_LUA_WRAPPED, "lock:start()");
  int error;

  lua_settop(L, 3);
  if (!redlock_lock_client(self->lock)->driver_reports_losses)
    rl_lua_loss_watch(L, self->lock); /* client:next_ended() returns the object. */
  error = rl_lua_begin(L, self, row, RL_LUA_LOOP);
  if (error != REDLOCK_E_BUSY)
    self->operation = row->operation;
  return push_done(L, self, error);
}

/* (lock) -> true; or nil, message, code: no loop runs, so the watchdog extends the lease. */
static int lock_keep(lua_State *L) {
  rl_lua_lock *self = rl_lua_check_lock(L, RL_LUA_WRAPPED, "keep()");
  int error = rl_handle_ensure_watchdog(self->lock);

  return push_done(L, self, error);
}

/* (lock) -> true if an operation is in flight. */
static int lock_pending(lua_State *L) {
  rl_lua_lock *self = rl_lua_check_lock(L, RL_LUA_WRAPPED, "pending()");

  lua_pushboolean(L, rl_handle_pending(self->lock));
  return 1;
}

/* (lock): no caller waits for the operation in flight: the next operation may end it. */
static int lock_abandon(lua_State *L) {
  rl_handle_abandon(rl_lua_check_lock(L, RL_LUA_WRAPPED, "abandon()")->lock);
  return 0;
}

/* (lock) -> seconds of the grace period, in which the loop still serves late nodes; or nothing. */
static int lock_grace(lua_State *L) {
  rl_lua_lock *self = rl_lua_check_lock(L, RL_LUA_WRAPPED, "grace()");
  redlock_duration grace_us = rl_handle_grace(self->lock);

  if (grace_us == 0)
    return 0;
  rl_lua_push_seconds(L, grace_us);
  return 1;
}

static int lock_result(lua_State *L) {
  rl_lua_lock *self = rl_lua_check_lock(L, RL_LUA_DIRECT, "lock:result()");

  if (self->worker == NULL)
    rl_handle_poll(self->lock); /* No caller waits, so the replies may be unread. */
  if (rl_handle_pending(self->lock)) {
    lua_pushnil(L);
    lua_pushliteral(L, "the operation has not ended yet");
    lua_pushliteral(L, "pending");
    return 3;
  }
  if (self->operation == RL_OPERATION_NONE) {
    return rl_lua_misuse(L, RL_LUA_DIRECT, "redlock: lock:result() before any operation");
  }
  return push_outcome(L, self, self->operation, REDLOCK_OK, RL_LUA_DIRECT);
}

/* Returns the lock of a method that a script calls. */
static redlock_lock *check_method(lua_State *L, const char *method) {
  return rl_lua_check_lock(L, RL_LUA_DIRECT, method)->lock;
}

static int lock_cancel(lua_State *L) {
  redlock_lock_cancel(check_method(L, "lock:cancel()"));
  return 0;
}

static int lock_remaining(lua_State *L) {
  rl_lua_push_milliseconds(L, redlock_lock_remaining(check_method(L, "lock:remaining()")));
  return 1;
}

/* Returns true if remaining() > 0: false in the last millisecond. */
static int lock_is_held(lua_State *L) {
  const redlock_lock *lock = check_method(L, "lock:is_held()");

  lua_pushboolean(L, redlock_lock_remaining(lock) >= REDLOCK_MILLISECONDS);
  return 1;
}

/* (lock) -> nil unless it is held; else the margin, -1 if a second holder is possible. */
static int lock_margin(lua_State *L) {
  rl_lua_lock *self = rl_lua_check_lock(L, RL_LUA_DIRECT, "lock:margin()");

  if (redlock_lock_remaining(self->lock) < REDLOCK_MILLISECONDS) {
    lua_pushnil(L);
  } else {
    lua_pushinteger(L, redlock_lock_margin(self->lock));
  }
  return 1;
}

/* (lock) -> nil; or the code of the loss, and the milliseconds since then. */
static int lock_lost(lua_State *L) {
  rl_lua_lock *self = rl_lua_check_lock(L, RL_LUA_DIRECT, "lock:lost()");
  redlock_time since = 0;
  int reason = rl_handle_lost(self->lock, REDLOCK_MILLISECONDS, &since);

  if (reason == REDLOCK_OK) {
    lua_pushnil(L);
    return 1;
  }
  lua_pushstring(L, redlock_error_name(reason));
  rl_lua_push_milliseconds(L, rl_time_sub(redlock_now(), since));
  return 2;
}

static int lock_resource(lua_State *L) {
  rl_lua_lock *self = rl_lua_check_lock(L, RL_LUA_DIRECT, "lock:resource()");
  size_t length = 0;
  const char *resource = redlock_lock_resource(self->lock, &length);

  lua_pushlstring(L, resource, length);
  return 1;
}

static int lock_resources(lua_State *L) {
  rl_lua_lock *self = rl_lua_check_lock(L, RL_LUA_DIRECT, "lock:resources()");
  redlock_resource resource;

  lua_newtable(L);
  for (size_t i = 0; redlock_lock_resource_at(self->lock, i, &resource) == REDLOCK_OK; i++) {
    lua_pushlstring(L, resource.bytes, resource.length);
    lua_rawseti(L, -2, (int)i + 1);
  }
  return 1;
}

static int lock_token(lua_State *L) {
  rl_lua_lock *self = rl_lua_check_lock(L, RL_LUA_DIRECT, "lock:token()");
  char copy[REDLOCK_TOKEN_MAX];
  size_t length;
  const void *token = redlock_lock_token_bytes(self->lock, &length);

  if (length == 0) {
    lua_pushnil(L);
  } else {
    memcpy(copy, token, length);
    lua_pushlstring(L, copy, length);
  }
  return 1;
}

/* Pushes a whole number, or nil for 0, and returns 1. */
static int push_unless_0(lua_State *L, uint64_t number) {
  if (number == 0) {
    lua_pushnil(L);
  } else {
    rl_lua_push_whole(L, number);
  }
  return 1;
}

static int lock_fence(lua_State *L) {
  return push_unless_0(L, redlock_lock_fence(check_method(L, "lock:fence()")));
}

static int lock_slot(lua_State *L) {
  return push_unless_0(L, redlock_lock_slot(check_method(L, "lock:slot()")));
}

/* (lock) -> the text for client:attach(); or nil, message, code. After success the lock is not
   held. */
static int lock_detach(lua_State *L) {
  rl_lua_lock *self = rl_lua_check_lock(L, RL_LUA_WRAPPED, "lock:detach()");
  char room[REDLOCK_HANDOVER_MAX];
  char *text = room;
  size_t length;
  int error = redlock_lock_detach(self->lock, text, sizeof room, &length);

  if (error == REDLOCK_E_LIMIT) { /* Several long resources need more. */
    text = lua_newuserdata(L, length + 1);
    error = redlock_lock_detach(self->lock, text, length + 1, &length);
  }
  if (error == REDLOCK_E_BUSY || error == REDLOCK_E_NOT_HELD)
    return rl_lua_push_failure(L, self, error, RL_LUA_WRAPPED);
  if (error != REDLOCK_OK)
    return rl_lua_push_error(L, error, error == REDLOCK_E_HELD ? STILL_COUNTED : NULL,
                             RL_LUA_WRAPPED);
  if (self->worker != NULL)
    self->worker->functions->forget_lock(self);
  lua_pushlstring(L, text, length);
  return 1;
}

/* (lock, token): the next acquire uses the token. */
static int lock_give_token(lua_State *L) {
  rl_lua_lock *self = rl_lua_check_lock(L, RL_LUA_WRAPPED, "lock:acquire()");
  size_t length;
  const char *token = luaL_checklstring(L, 2, &length);
  int error = redlock_lock_give_token(self->lock, token, length);

  if (error != REDLOCK_OK)
    return rl_lua_push_error(L, error, NULL, RL_LUA_WRAPPED);
  return 0;
}

static int lock_ttl(lua_State *L) {
  rl_lua_push_milliseconds(L, redlock_lock_ttl(check_method(L, "lock:ttl()")));
  return 1;
}

static int lock_votes(lua_State *L) {
  rl_lua_lock *self = rl_lua_check_lock(L, RL_LUA_DIRECT, "lock:votes()");
  redlock_vote_info info;

  lua_newtable(L);
  for (size_t i = 0; redlock_lock_vote(self->lock, i, &info) == REDLOCK_OK; i++) {
    lua_createtable(L, 0, 4);
    rl_lua_set_text(L, "node", info.name);
    rl_lua_set_text(L, "vote", redlock_vote_name(info.vote));
    rl_lua_set_text(L, "error", info.error);
    rl_lua_set_latency(L, info.latency_us);
    lua_rawseti(L, -2, (int)i + 1);
  }
  return 1;
}

void rl_lua_lock_free(rl_lua_lock *self) {
  redlock_lock *lock = self->lock;

  if (lock == NULL)
    return;
  self->lock = NULL;
  if (self->worker != NULL)
    self->worker->functions->forget_lock(self);
  rl_lua_memory_give_back(&self->client->anchor->memory, self->bytes);
  redlock_lock_free(lock);
}

/* (lock): frees what the collector would free. The caller must drop the object. */
static int lock_discard(lua_State *L) {
  rl_lua_lock_free(rl_lua_check_lock(L, RL_LUA_WRAPPED, "lock"));
  return 0;
}

static int lock_gc(lua_State *L) {
  rl_lua_lock *self = luaL_testudata(L, 1, RL_LUA_LOCK);

  if (self != NULL)
    rl_lua_lock_free(self);
  return 0;
}

/* Waits for the release for one node timeout at most, and no longer at Ctrl-C, after which it goes
   on. Ignores its result: an error here would hide an error that leaves the scope. */
static int lock_end_of_scope(lua_State *L) {
  rl_lua_lock *self = luaL_testudata(L, 1, RL_LUA_LOCK);

  if (self != NULL && self->lock != NULL) {
    redlock_lock_cancel(self->lock);
    if (rl_handle_prepare(self->lock, &(rl_request){.operation = RL_OPERATION_RELEASE}) ==
        REDLOCK_OK)
      wait_for_end(L, self, false);
  }
  return 0;
}

static int lock_tostring(lua_State *L) {
  rl_lua_lock *self = luaL_testudata(L, 1, RL_LUA_LOCK);
  char name[SHOWN_NAME_SIZE];
  char text[sizeof name + 64];
  redlock_duration remaining;

  if (self == NULL || !rl_lua_worker_revive(L, self)) {
    lua_pushliteral(L, "redlock.lock (collected)");
    return 1;
  }
  rl_lua_lock_show(self, name, sizeof name);
  remaining = redlock_lock_remaining(self->lock) / REDLOCK_MILLISECONDS;
  if (rl_handle_pending(self->lock))
    (void)snprintf(text, sizeof text, "redlock.lock %s (%s)", name,
                   rl_operation_words_of[self->operation].gerund);
  else if (remaining > 0)
    (void)snprintf(text, sizeof text, "redlock.lock %s (held, %llu ms left)", name,
                   (unsigned long long)remaining);
  else
    (void)snprintf(text, sizeof text, "redlock.lock %s (not held)", name);
  lua_pushstring(L, text);
  return 1;
}

void rl_lua_lock_register(lua_State *L) {
  static const luaL_Reg metamethods[] = {{"__gc", lock_gc},
                                         {"__close", lock_end_of_scope},
                                         {"__tostring", lock_tostring},
                                         {NULL, NULL}};
  static const luaL_Reg methods[] = {{"result", lock_result},     {"cancel", lock_cancel},
                                     {"token", lock_token},       {"fence", lock_fence},
                                     {"slot", lock_slot},         {"remaining", lock_remaining},
                                     {"resource", lock_resource}, {"resources", lock_resources},
                                     {"ttl", lock_ttl},           {"is_held", lock_is_held},
                                     {"lost", lock_lost},         {"margin", lock_margin},
                                     {"votes", lock_votes},       {NULL, NULL}};
  static const luaL_Reg functions[] = {{"lock", lock_new},
                                       {"attach", lock_attach},
                                       {"detach", lock_detach},
                                       {"run", lock_run},
                                       {"start", lock_start},
                                       {"release_send", lock_release_send},
                                       {"keys", rl_lua_lock_keys},
                                       {"findings", rl_lua_lock_findings},
                                       {"give_token", lock_give_token},
                                       {"keep", lock_keep},
                                       {"pending", lock_pending},
                                       {"abandon", lock_abandon},
                                       {"grace", lock_grace},
                                       {"id", lock_id},
                                       {"discard", lock_discard},
                                       {"number_requests_by", rl_lua_reentry_number_by},
                                       {NULL, NULL}};

  luaL_setfuncs(L, functions, 0);
  rl_lua_class(L, RL_LUA_LOCK, "redlock.lock", metamethods, methods);
  lua_setfield(L, -2, "lock_methods");
}
