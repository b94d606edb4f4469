/*
 * Operations that requests of nginx wait for.
 *
 * SPDX-License-Identifier: MIT
 *
 * For each operation that a request waits for, the driver keeps only the number of a semaphore (the
 * sleeper). So objects of ended requests can be collected. The handle maps a sleeper to its lock
 * without keeping it alive: the finalizer of a lock clears its sleeper.
 */
#include "rl_lua_nginx_wait.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "api/rl_handle_run.h"
#include "client/rl_client.h"
#include "client/rl_pump.h"
#include "lock/rl_result.h"
#include "rl_lua_lock.h"
#include "rl_lua_loss.h"
#include "rl_lua_nginx_handle.h"
#include "rl_lua_nginx_owner.h"
#include "rl_lua_nginx_released.h"
#include "rl_lua_object.h"
#include "rl_lua_operation.h"
#include "rl_lua_option.h"
#include "rl_lua_result.h"

/* Time until the next look at an operation that could not be sent at once. */
#define SEND_AGAIN (5 * REDLOCK_MILLISECONDS)

/* Returns the sleeper at which a request waits for the lock's operation, or 0. */
static size_t sleeper_of(const rl_lua_lock *self) {
  return self->worker == NULL ? 0 : ((const rl_lua_nginx_lock *)self)->sleeper;
}

/* Returns the list entry of a lock that has a worker. */
static rl_lua_nginx_owned *owned_of(rl_lua_lock *self) {
  return &rl_lua_nginx_lock_of(self)->owned;
}

/* Takes a lock that has a worker from its owner. */
static void take_from_owner(rl_lua_lock *self) {
  rl_lua_nginx_owners_take(&rl_lua_nginx_of(self->worker)->owners, owned_of(self));
}

/* Clears the lock's sleeper: no request waits for its operation. */
static void leave_sleeper(rl_lua_lock *self) {
  size_t sleeper = sleeper_of(self);

  if (sleeper == 0)
    return;
  rl_lua_nginx_of(self->worker)->waiting[sleeper - 1] = NULL;
  rl_lua_nginx_of(self->worker)->waited--;
  rl_lua_nginx_lock_of(self)->sleeper = 0;
}

/* Returns false when out of memory. */
static bool enter_sleeper(rl_lua_lock *self, size_t sleeper) {
  rl_lua_nginx *nginx = rl_lua_nginx_of(self->worker);

  leave_sleeper(self);
  if (sleeper > nginx->waiting_count) {
    size_t count = sleeper + sleeper / 2 + 15;
    rl_lua_nginx_lock **grown = realloc(nginx->waiting, count * sizeof nginx->waiting[0]);
    if (grown == NULL)
      return false;
    memset(grown + nginx->waiting_count, 0, (count - nginx->waiting_count) * sizeof grown[0]);
    nginx->waiting = grown;
    nginx->waiting_count = count;
  }
  if (nginx->waiting[sleeper - 1] != NULL)
    leave_sleeper(&nginx->waiting[sleeper - 1]->base); /* No request came to wait for it. */
  nginx->waiting[sleeper - 1] = rl_lua_nginx_lock_of(self);
  nginx->waited++;
  nginx->waiting[sleeper - 1]->sleeper = sleeper;
  return true;
}

/* The caller must not use a lock after this call of Lua, which may collect it. */
static void push_sleeper(lua_State *L, int list, int index, size_t sleeper) {
  lua_pushnumber(L, (lua_Number)sleeper);
  lua_rawseti(L, list, index);
}

int rl_lua_nginx_wait_collect(lua_State *L, rl_lua_nginx *self, int list, int count) {
  rl_lock *ended;

  while ((ended = rl_core_next_ended(&self->client->core)) != NULL) {
    rl_lua_lock *lock = ended->data;
    if (sleeper_of(lock) != 0)
      push_sleeper(L, list, ++count, sleeper_of(lock));
    else if (lock->operation == RL_OPERATION_RELEASE)
      rl_lua_nginx_released_free(lock); /* No request waits for it. */
  }
  return count;
}

/* Cancels the operation in flight, unless it is a release, and releases the lease, without a
   report. */
static void give_up(rl_lua_lock *self, redlock_time now_us) {
  rl_lock *lock = rl_lock_of(self->lock);

  take_from_owner(self);
  if (lock->operation != RL_OPERATION_RELEASE)
    rl_lock_cancel(lock, now_us, REDLOCK_E_CANCELLED);
  if (rl_ring_owner(lock)->lease != NULL)
    rl_lock_expire(lock, now_us);
}

/* Cancels or undoes a nested acquire. */
static void count_down(rl_lock *lock, redlock_time now_us) {
  if (rl_lock_is_busy(lock))
    rl_lock_cancel(lock, now_us, REDLOCK_E_CANCELLED);
  else
    (void)rl_reentry_release(lock, now_us);
}

int rl_lua_nginx_wait_release_ended(lua_State *L, rl_lua_nginx *self, int list) {
  redlock_time now_us = redlock_now();
  rl_lua_nginx_owned *owned;
  int count = 0;

  while ((owned = rl_lua_nginx_owners_next_ended(&self->owners)) != NULL) {
    rl_lua_lock *lock = &RL_OWNER(owned, rl_lua_nginx_lock, owned)->base;
    size_t sleeper = sleeper_of(lock);
    lock->owner_ended = 1;
    give_up(lock, now_us);
    leave_sleeper(lock);
    rl_lua_nginx_released_free(lock);
    if (sleeper != 0)
      push_sleeper(L, list, ++count, sleeper);
  }
  return count;
}

void rl_lua_nginx_wait_forget(rl_lua_nginx *self) {
  for (size_t i = 0; i < self->waiting_count; i++) {
    if (self->waiting[i] != NULL)
      self->waiting[i]->sleeper = 0;
  }
  free(self->waiting);
  self->waiting = NULL;
  self->waiting_count = 0;
  self->waited = 0;
  rl_lua_nginx_owners_free(&self->owners);
}

void rl_lua_nginx_wait_forget_lock(rl_lua_lock *self) {
  leave_sleeper(self);
  take_from_owner(self);
}

/*
 * Pushes the driver's table. Returns the handle of the lock at index 1; NULL if its client blocks.
 */
static rl_lua_nginx *push_driver(lua_State *L, rl_lua_lock *self) {
  lua_getuservalue(L, 1);
  lua_rawgeti(L, -1, RL_LUA_NGINX_DRIVER);
  lua_remove(L, -2);
  return rl_lua_nginx_of(self->worker);
}

/* Returns true if another request holds the lock by the same object. Refuses the acquire, whatever
   its owner's name: the end of either request would end the lease of both. */
static bool is_held_by_another(lua_State *L, rl_lua_lock *self) {
  rl_lock *lock = rl_lock_of(self->lock);

  if (!rl_lua_nginx_owner_is_another(owned_of(self), rl_lua_nginx_request_at(L, RL_LUA_REQUEST)) ||
      !rl_ring_is_owned(lock) || rl_lock_is_busy(lock) ||
      rl_ring_remaining(lock, redlock_now()) == 0)
    return false;
  rl_result_refuse(
      lock, RL_OPERATION_ACQUIRE, REDLOCK_E_HELD,
      "another request holds it by the same lock object; make a lock object for each request");
  return true;
}

/* Returns true if a nested acquire leaves the lock with its owner, the worker. */
static bool stays_with_worker(rl_lua_lock *self) {
  return owned_of(self)->owner == NULL && rl_ring_is_reacquired(rl_lock_of(self->lock));
}

/* Sets the owner and the sleeper after an operation has begun. */
static void note_begun(lua_State *L, rl_lua_lock *self, rl_operation operation, int of_worker) {
  rl_lua_nginx *nginx = rl_lua_nginx_of(self->worker);
  size_t sleeper = (size_t)lua_tonumber(L, RL_LUA_SLEEPER);

  redlock_lock_set_data(self->lock, self);
  if (operation == RL_OPERATION_ACQUIRE) {
    of_worker = of_worker || stays_with_worker(self);
    self->owner_ended = 0;
    (void)rl_lua_nginx_owners_give(&nginx->owners,
                                   of_worker ? NULL : rl_lua_nginx_request_at(L, RL_LUA_REQUEST),
                                   owned_of(self));
  } else if (operation == RL_OPERATION_RELEASE &&
             rl_ring_owner(rl_lock_of(self->lock))->lease == NULL) {
    take_from_owner(self);
  }
  if (sleeper != 0 && !enter_sleeper(self, sleeper))
    rl_lock_cancel(rl_lock_of(self->lock), redlock_now(), REDLOCK_E_NO_MEMORY);
}

/*
 * (lock, code of an operation, argument, sleeper, request) ->
 *
 *     driver's table, true, writers, clock    it is in flight: wake these writers, and the clock
 *     driver's table, false, writers, clock   it has ended, and has a result
 *     driver's table, nil, sleeper            it has not begun: the caller at that sleeper must
 *                                             first take the result of the last operation
 *     nil, message, code                      it has failed
 *     false                                   the client of the lock blocks
 */
static int wait_start(lua_State *L) {
  const rl_lua_operation *row = rl_lua_check_operation(L);
  rl_lua_lock *self = rl_lua_check_lock(L, RL_LUA_WRAPPED, row->method);
  rl_lua_nginx *nginx;
  int error, of_worker = 0;

  lua_settop(L, 5);
  nginx = push_driver(L, self);
  if (nginx == NULL) {
    lua_pushboolean(L, 0);
    return 1;
  }
  if (nginx->client == NULL || self->client->closed)
    return rl_lua_push_error(L, REDLOCK_E_CLOSED, NULL, RL_LUA_WRAPPED);
  rl_lua_nginx_check_fork(nginx);
  if (sleeper_of(self) != 0) {
    lua_pushnil(L);
    lua_pushnumber(L, (lua_Number)sleeper_of(self));
    return 3;
  }
  if (row->operation == RL_OPERATION_ACQUIRE && is_held_by_another(L, self))
    return rl_lua_push_failure(L, self, REDLOCK_E_HELD, RL_LUA_WRAPPED);
  if (row->operation ==
      RL_OPERATION_ACQUIRE) /* First: an error after the beginning would leave the operation. */
    of_worker = rl_lua_read_owner(L, RL_LUA_ARGUMENT, self->of_worker);
  error = rl_lua_begin(L, self, row, RL_LUA_WORKER);
  if (error != REDLOCK_OK)
    return rl_lua_push_failure(L, self, error, RL_LUA_WRAPPED);
  lua_settop(L, 6); /* Options that are strings were above the driver. */
  self->operation = row->operation;
  note_begun(L, self, row->operation, of_worker);
  if (rl_pump_send(&nginx->client->core) != REDLOCK_OK)
    rl_lock_cancel(rl_lock_of(self->lock), redlock_now(), REDLOCK_E_SYSTEM);
  if (row->forget) {
    /* The release goes on without the lock. */
    rl_lock_cancel(rl_lock_of(self->lock), redlock_now(), REDLOCK_E_CANCELLED);
  }
  if (!rl_lock_is_busy(rl_lock_of(self->lock)))
    rl_list_remove(&rl_lock_of(self->lock)->queue);
  lua_pushboolean(L, rl_lock_is_busy(rl_lock_of(self->lock)));
  lua_pushnumber(L, (lua_Number)rl_lua_nginx_wake_writers(nginx));
  if (sleeper_of(self) == 0 && row->operation == RL_OPERATION_RELEASE)
    rl_lua_nginx_released_free(self);
  lua_pushboolean(L, rl_lua_nginx_wake_clock(nginx));
  return 4;
}

/* Pushes the on_lost of the lock at index 1 and returns 1, if the lock may outlive its request. */
static int push_outliving(lua_State *L, rl_lua_lock *self) {
  if (self->worker == NULL || !rl_lua_nginx_of(self->worker)->client->has_on_lost ||
      owned_of(self)->owner != NULL)
    return 0;
  rl_lua_loss_push(L, 1);
  return 1;
}

/* (lock) -> results of the method whose operation has ended; nothing while it is in flight. The
   lock's on_lost follows the validity of an acquire, if the lock may outlive its request. */
static int push_result(lua_State *L, rl_lua_lock *self) {
  redlock_duration validity = 0;
  int error = rl_handle_outcome(self->lock, REDLOCK_MILLISECONDS, &validity);

  if (error == REDLOCK_PENDING)
    return 0;
  leave_sleeper(self);
  if (self->owner_ended)
    error = REDLOCK_E_NOT_HELD;
  if (error != REDLOCK_OK) {
    if (rl_ring_owner(rl_lock_of(self->lock))->lease == NULL && self->worker != NULL)
      take_from_owner(self);
    return rl_lua_push_failure(L, self, error, RL_LUA_WRAPPED);
  }
  rl_lua_push_success(L, self, self->operation, validity);
  if (self->operation == RL_OPERATION_RELEASE)
    rl_lua_nginx_released_free(self);
  return 1 + (self->operation == RL_OPERATION_ACQUIRE ? push_outliving(L, self) : 0);
}

static int wait_result(lua_State *L) {
  return push_result(L, rl_lua_check_lock(L, RL_LUA_WRAPPED, "lock"));
}

/*
 * (lock, code of an operation): frees the lock for that operation. -> results that the caller of
 * the last operation must return. A release cancels an extend in flight; any other operation on a
 * busy lock is misuse.
 */
static int wait_overtake(lua_State *L) {
  const rl_lua_operation *row = rl_lua_check_operation(L);
  rl_lua_lock *self = rl_lua_check_lock(L, RL_LUA_WRAPPED, row->method);
  rl_lock *lock = rl_lock_of(self->lock);

  if (row->operation == RL_OPERATION_RELEASE && rl_lock_is_extending(lock)) {
    rl_lock_cancel(lock, redlock_now(), REDLOCK_E_CANCELLED);
    rl_list_remove(&lock->queue);
  }
  if (rl_lock_is_busy(lock))
    return rl_lua_push_failure(L, self, REDLOCK_E_BUSY, RL_LUA_WRAPPED + 1);
  return push_result(L, self);
}

/* (lock) -> the driver's table: cancels the operation in flight. */
static int wait_cancel(lua_State *L) {
  rl_lua_lock *self = rl_lua_check_lock(L, RL_LUA_WRAPPED, "lock:cancel()");

  redlock_lock_cancel(self->lock);
  lua_settop(L, 1);
  push_driver(L, self);
  return 1;
}

/* (lock) -> the driver's table, and the sleeper of a caller that has not taken the last result, if
   any. */
static int wait_caller(lua_State *L) {
  rl_lua_lock *self = rl_lua_check_lock(L, RL_LUA_WRAPPED, "lock:detach()");

  lua_settop(L, 1);
  push_driver(L, self);
  if (sleeper_of(self) == 0)
    return 1;
  lua_pushnumber(L, (lua_Number)sleeper_of(self));
  return 2;
}

/* (lock) -> true if its client blocks. */
static int wait_is_blocking(lua_State *L) {
  rl_lua_lock *self = rl_lua_check_lock(L, RL_LUA_WRAPPED, "lock:start()");

  lua_pushboolean(L, self->worker == NULL);
  return 1;
}

/* (handle, sleeper): the caller that waited at |sleeper| is gone. Releases the lock if it was
   acquiring. An extend or a release goes on until the next operation. */
static int wait_disown(lua_State *L) {
  rl_lua_nginx *self = rl_lua_nginx_check(L);
  size_t sleeper = (size_t)luaL_checknumber(L, 2);
  rl_lua_nginx_lock *waiting =
      sleeper < 1 || sleeper > self->waiting_count ? NULL : self->waiting[sleeper - 1];
  rl_lua_lock *lock;

  if (waiting == NULL)
    return 0;
  lock = &waiting->base;
  leave_sleeper(lock);
  if (lock->operation == RL_OPERATION_ACQUIRE) {
    if (rl_ring_is_reacquired(rl_lock_of(lock->lock))) {
      count_down(rl_lock_of(lock->lock), redlock_now());
    } else {
      give_up(lock, redlock_now());
    }
  } else {
    rl_lock_abandon(rl_lock_of(lock->lock));
  }
  return 0;
}

/* (lock) -> milliseconds until the next deadline of its operation, which is in flight. */
static int wait_due(lua_State *L) {
  rl_lua_lock *self = rl_lua_check_lock(L, RL_LUA_WRAPPED, "due()");
  const rl_lock *lock = rl_lock_of(self->lock);
  redlock_duration due_us = SEND_AGAIN;

  if (lock->timer.index != RL_TIMERS_NONE)
    due_us = rl_time_sub(lock->timer.due_us, redlock_now());
  lua_pushnumber(L, (lua_Number)(due_us < REDLOCK_MILLISECONDS ? 1 : rl_time_ms_up(due_us)));
  return 1;
}

/* (lock, function, request or nil) -> number of the request: the function replaces the lock's
   on_lost. */
static int wait_replace_on_lost(lua_State *L) {
  rl_lua_lock *self = rl_lua_check_lock(L, RL_LUA_WRAPPED, "lock");
  uint64_t number = 0;

  lua_settop(L, 3);
  if (self->worker != NULL)
    number = rl_lua_nginx_owners_number(&rl_lua_nginx_of(self->worker)->owners,
                                        rl_lua_nginx_request_at(L, 3));
  lua_pushvalue(L, 2);
  rl_lua_loss_replace(L, self);
  lua_pushnumber(L, (lua_Number)number);
  return 1;
}

/* (lock, request or nil, its number) -> true if the request has not ended. */
static int wait_lasts(lua_State *L) {
  rl_lua_lock *self = rl_lua_check_lock(L, RL_LUA_WRAPPED, "lock");
  uint64_t number = (uint64_t)luaL_checknumber(L, 3);

  lua_pushboolean(L, self->worker != NULL &&
                         rl_lua_nginx_owners_last(&rl_lua_nginx_of(self->worker)->owners,
                                                  rl_lua_nginx_request_at(L, 2), number));
  return 1;
}

/* (lock, request or nil): sets the owner. -> true, and the lock's on_lost if it may outlive its
   request; or nil, message, code if it is not held. */
static int wait_hand_over(lua_State *L) {
  rl_lua_lock *self = rl_lua_check_lock(L, RL_LUA_WRAPPED, "lock:hand_over()");

  if (redlock_lock_remaining(self->lock) == 0)
    return rl_lua_push_failure(L, self, REDLOCK_E_NOT_HELD, RL_LUA_WRAPPED);
  if (self->worker != NULL)
    (void)rl_lua_nginx_owners_give(&rl_lua_nginx_of(self->worker)->owners,
                                   rl_lua_nginx_request_at(L, 2), owned_of(self));
  lua_pushboolean(L, 1);
  return 1 + push_outliving(L, self);
}

void rl_lua_nginx_wait_register(lua_State *L) {
  static const luaL_Reg functions[] = {
      {"start", wait_start},   {"result", wait_result},
      {"cancel", wait_cancel}, {"is_blocking", wait_is_blocking},
      {"disown", wait_disown}, {"hand_over", wait_hand_over},
      {"due", wait_due},       {"replace_on_lost", wait_replace_on_lost},
      {"lasts", wait_lasts},   {"overtake", wait_overtake},
      {"caller", wait_caller}, {NULL, NULL}};

  luaL_setfuncs(L, functions, 0);
}
