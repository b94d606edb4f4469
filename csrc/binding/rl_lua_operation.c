/*
 * The operations that a script can start.
 *
 * SPDX-License-Identifier: MIT
 */
#include "rl_lua_operation.h"

#include <assert.h>
#include <string.h>

#include "rl_lua_argument.h"
#include "rl_lua_loss.h"
#include "rl_lua_option.h"
#include "rl_lua_reentry.h"
#include "rl_lua_result.h"

#define TOKEN_ANY "any"
#define TTL_MAX_MS ((double)(REDLOCK_TTL_MAX_US / REDLOCK_MILLISECONDS))

static int begin(rl_lua_lock *self, const rl_request *request, rl_lua_driver driver) {
  switch (driver) {
  case RL_LUA_BLOCKING:
    return rl_handle_prepare(self->lock, request);
  case RL_LUA_LOOP:
    return rl_handle_start(self->lock, request);
  case RL_LUA_WORKER:
  default:
    return rl_request_begin(rl_lock_of(self->lock), redlock_now(), request);
  }
}

/* Passes on the token of the options, if there is one. Returns REDLOCK_OK or an error. */
static int set_token(lua_State *L, rl_lua_lock *self) {
  int error = REDLOCK_OK;

  if (!lua_istable(L, RL_LUA_ARGUMENT))
    return REDLOCK_OK;
  lua_getfield(L, RL_LUA_ARGUMENT, "token");
  if (!lua_isnil(L, -1)) {
    size_t length;
    const char *token = luaL_checklstring(L, -1, &length);
    error = redlock_lock_give_token(self->lock, token, length);
  }
  lua_pop(L, 1);
  return error;
}

static int begin_acquire(lua_State *L, rl_lua_lock *self, rl_request *request,
                         rl_lua_driver driver) {
  const rl_options *above = rl_lock_options(rl_lock_of(self->lock));
  int top = lua_gettop(L); /* The options leave their label above it. */
  redlock_options own;
  int error;

  request->options = rl_lua_read_lock_options(L, above, &own);
  request->options_size = sizeof own;
  rl_lua_loss_prepare_call(L, self);
  error = rl_lua_reentry_own(L, self, driver == RL_LUA_WORKER ? RL_LUA_REQUEST : 0);
  if (error == REDLOCK_OK) /* Otherwise the next acquire would use the token. */
    error = set_token(L, self);
  if (error == REDLOCK_OK)
    error = begin(self, request, driver);
  if (error == REDLOCK_OK)
    rl_lua_loss_note_call(L, self);
  lua_settop(L, top);
  return error;
}

static int begin_extend(lua_State *L, rl_lua_lock *self, rl_request *request,
                        rl_lua_driver driver) {
  const char *name = driver == RL_LUA_LOOP ? "lock:start(\"extend\"): ttl" : "lock:extend(): ttl";

  if (!lua_isnoneornil(L, RL_LUA_ARGUMENT))
    request->ttl_us = rl_lua_check_duration(L, RL_LUA_ARGUMENT, name, 1, TTL_MAX_MS);
  return begin(self, request, driver);
}

static int begin_plain(lua_State *L, rl_lua_lock *self, rl_request *request, rl_lua_driver driver) {
  (void)L;
  return begin(self, request, driver);
}

static int begin_release_send(lua_State *L, rl_lua_lock *self, rl_request *request,
                              rl_lua_driver driver) {
  int error;

  (void)L;
  if (driver != RL_LUA_WORKER)
    return begin(self, request, driver);
  error = rl_lock_release_send(rl_lock_of(self->lock), redlock_now());
  if (error == REDLOCK_OK)
    rl_lock_report_end(rl_lock_of(self->lock)); /* The lock's memory is freed at that end. */
  return error;
}

static int begin_force_release(lua_State *L, rl_lua_lock *self, rl_request *request,
                               rl_lua_driver driver) {
  size_t length;
  const char *token = luaL_checklstring(L, RL_LUA_ARGUMENT, &length);
  bool any = length == sizeof TOKEN_ANY - 1 && memcmp(token, TOKEN_ANY, length) == 0;

  if (length > REDLOCK_TOKEN_MAX)
    rl_lua_misuse(L, RL_LUA_WRAPPED, "redlock: token is longer than %d bytes", REDLOCK_TOKEN_MAX);
  request->question.token = any ? NULL : token;
  request->question.token_length = any ? REDLOCK_TOKEN_ANY : length;
  return begin(self, request, driver);
}

/* The argument is true if the doctor scans the keys, too. */
static int begin_doctor(lua_State *L, rl_lua_lock *self, rl_request *request,
                        rl_lua_driver driver) {
  request->question.flags = lua_toboolean(L, RL_LUA_ARGUMENT) ? REDLOCK_DOCTOR_KEYS : 0;
  return begin(self, request, driver);
}

static void push_validity(lua_State *L, rl_lua_lock *self, redlock_duration validity_us) {
  (void)self;
  rl_lua_push_milliseconds(L, validity_us);
}

static void push_true(lua_State *L, rl_lua_lock *self, redlock_duration validity_us) {
  (void)self;
  (void)validity_us;
  lua_pushboolean(L, 1);
}

/* Pushes the number of nodes that deleted the key. */
static void push_deleted(lua_State *L, rl_lua_lock *self, redlock_duration validity_us) {
  redlock_vote_info info;
  int deleted = 0;

  (void)validity_us;
  for (size_t i = 0; redlock_lock_vote(self->lock, i, &info) == REDLOCK_OK; i++)
    deleted += info.vote == REDLOCK_VOTE_GRANTED;
  lua_pushinteger(L, deleted);
}

/* The code of an operation in Lua is its position from 1. The first row of an rl_operation pushes
   the result of that operation. */
static const rl_lua_operation operations[] = {
    {"acquire", "lock:acquire()", "lock", "options", RL_OPERATION_ACQUIRE, false, begin_acquire,
     push_validity},
    {"extend", "lock:extend()", "lock", "ttl", RL_OPERATION_EXTEND, false, begin_extend,
     push_validity},
    {"release", "lock:release()", "lock", "release", RL_OPERATION_RELEASE, false, begin_plain,
     push_true},
    /* For phases of nginx in which nothing can wait. */
    {"release_forget", "lock:release()", "driver", "none", RL_OPERATION_RELEASE, true, begin_plain,
     push_true},
    /* The caller may ask for the result later. */
    {"release_send", "lock:release()", "driver", "none", RL_OPERATION_RELEASE, false,
     begin_release_send, push_true},
    {"inspect", "client:inspect()", "client", "none", RL_OPERATION_INSPECT, false, begin_plain,
     push_true},
    {"force_release", "client:force_release()", "client", "token", RL_OPERATION_FORCE_RELEASE,
     false, begin_force_release, push_deleted},
    {"doctor", "client:doctor()", "client", "none", RL_OPERATION_DOCTOR, false, begin_doctor,
     push_true},
    {"bootstrap", "client:bootstrap()", "client", "none", RL_OPERATION_BOOTSTRAP, false,
     begin_plain, push_true},
};
#define OPERATION_COUNT ((int)(sizeof operations / sizeof operations[0]))
/* Each operation has a row, and a release two more. */
static_assert(OPERATION_COUNT == RL_OPERATION_COUNT - 1 + 2, "a row is missing");

const rl_lua_operation *rl_lua_check_operation(lua_State *L) {
  lua_Integer code = luaL_checkinteger(L, 2);

  if (code < 1 || code > OPERATION_COUNT)
    luaL_error(L, "no such operation");
  return &operations[code - 1];
}

int rl_lua_begin(lua_State *L, rl_lua_lock *self, const rl_lua_operation *row,
                 rl_lua_driver driver) {
  rl_request request = {.operation = row->operation};

  return row->begin(L, self, &request, driver);
}

void rl_lua_push_success(lua_State *L, rl_lua_lock *self, rl_operation operation,
                         redlock_duration validity_us) {
  const rl_lua_operation *row = operations;

  while (row->operation != operation)
    row++;
  row->push(L, self, validity_us);
}

void rl_lua_push_operations(lua_State *L) {
  lua_createtable(L, 0, OPERATION_COUNT);
  for (int i = 0; i < OPERATION_COUNT; i++) {
    lua_createtable(L, 0, 3);
    lua_pushinteger(L, i + 1);
    lua_setfield(L, -2, "code");
    rl_lua_set_text(L, "of", operations[i].of);
    rl_lua_set_text(L, "argument", operations[i].argument);
    lua_setfield(L, -2, operations[i].name);
  }
}
