/*
 * Operations that requests of nginx wait for.
 *
 * SPDX-License-Identifier: MIT
 *
 * Of each operation that is waited for, the driver keeps a number, the slot, and no object: requests
 * die at any time, and what they left behind must be collectable. The handle knows which lock a slot
 * stands for, without keeping it alive: a lock that is collected takes itself out.
 */
#include "rl_lua_nginx_wait.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "api/rl_handle.h"
#include "client/rl_client.h"
#include "client/rl_pump.h"
#include "lock/rl_result.h"
#include "rl_lua_call.h"
#include "rl_lua_lock.h"
#include "rl_lua_loss.h"
#include "rl_lua_nginx_handle.h"
#include "rl_lua_nginx_owner.h"
#include "rl_lua_nginx_released.h"
#include "rl_lua_object.h"
#include "rl_lua_option.h"
#include "rl_lua_result.h"
#include "rl_lua_share.h"

/* When what could not be launched at once is again. */
#define LAUNCH_SOON (5 * REDLOCK_MILLISECONDS)

/* ---------------------------------------------------------------------------------------- slots */

/* The slot in which a request waits for the lock's operation, or 0. */
static size_t slot_of(const rl_lua_lock *self) {
  return self->worker == NULL ? 0 : ((const rl_lua_nginx_lock *)self)->slot;
}

/* The place of the lock, which has a worker, among those of a request. */
static rl_lua_nginx_owned *owned_of(rl_lua_lock *self) {
  return &rl_lua_nginx_lock_of(self)->owned;
}

/* The lock belongs to nobody any more. It has a worker. */
static void take_from_owner(rl_lua_lock *self) {
  rl_lua_nginx_owners_take(&rl_lua_nginx_of(self->worker)->owners, owned_of(self));
}

/* Nobody waits for the lock's operation any more. */
static void leave_slot(rl_lua_lock *self) {
  size_t slot = slot_of(self);

  if (slot == 0)
    return;
  rl_lua_nginx_of(self->worker)->waiting[slot - 1] = NULL;
  rl_lua_nginx_of(self->worker)->waited--;
  rl_lua_nginx_lock_of(self)->slot = 0;
}

/* Returns false when out of memory. */
static bool enter_slot(rl_lua_lock *self, size_t slot) {
  rl_lua_nginx *nginx = rl_lua_nginx_of(self->worker);

  leave_slot(self);
  if (slot > nginx->waiting_count) {
    size_t count = slot + slot / 2 + 15;
    rl_lua_nginx_lock **grown = realloc(nginx->waiting, count * sizeof nginx->waiting[0]);
    if (grown == NULL)
      return false;
    memset(grown + nginx->waiting_count, 0, (count - nginx->waiting_count) * sizeof grown[0]);
    nginx->waiting = grown;
    nginx->waiting_count = count;
  }
  if (nginx->waiting[slot - 1] != NULL)
    leave_slot(&nginx->waiting[slot - 1]->base); /* Nobody came to wait for it. */
  nginx->waiting[slot - 1] = rl_lua_nginx_lock_of(self);
  nginx->waited++;
  nginx->waiting[slot - 1]->slot = slot;
  return true;
}

/* Nothing of a lock is touched after Lua was called: it may be collected by that. */
static void push_slot(lua_State *L, int list, int index, size_t slot) {
  lua_pushnumber(L, (lua_Number)slot);
  lua_rawseti(L, list, index);
}

int rl_lua_nginx_wait_collect(lua_State *L, rl_lua_nginx *self, int list, int count) {
  rl_lock *ended;

  while ((ended = rl_core_next_ended(&self->client->core)) != NULL) {
    rl_lua_lock *lock = ended->data;
    if (slot_of(lock) != 0)
      push_slot(L, list, ++count, slot_of(lock));
    else if (lock->operation == RL_OPERATION_RELEASE)
      rl_lua_nginx_released_give_back(lock); /* Nobody has waited for it. */
  }
  return count;
}

/* Ends what is in flight, but for a release, and releases the lease. Nobody is told. */
static void give_up(rl_lua_lock *self, redlock_time now_us) {
  rl_lock *lock = rl_lock_of(self->lock);

  take_from_owner(self);
  if (lock->operation != RL_OPERATION_RELEASE)
    rl_lock_cancel(lock, now_us, REDLOCK_E_CANCELLED);
  if (rl_ring_owner(lock)->lease != NULL)
    rl_lock_expire(lock, now_us);
}

/* Ends the acquire in flight, or takes it back, of a lock that was held before. */
static void count_down(rl_lock *lock, redlock_time now_us) {
  if (rl_lock_is_busy(lock))
    rl_lock_cancel(lock, now_us, REDLOCK_E_CANCELLED);
  else
    (void)rl_reentry_release(lock, now_us);
}

int rl_lua_nginx_wait_bury(lua_State *L, rl_lua_nginx *self, int list) {
  redlock_time now_us = redlock_now();
  rl_lua_nginx_owned *owned;
  int count = 0;

  while ((owned = rl_lua_nginx_owners_next_ended(&self->owners)) != NULL) {
    rl_lua_lock *lock = &rl_lua_nginx_lock_owned(owned)->base;
    size_t slot = slot_of(lock);
    lock->owner_ended = 1;
    give_up(lock, now_us);
    leave_slot(lock);
    rl_lua_nginx_released_give_back(lock);
    if (slot != 0)
      push_slot(L, list, ++count, slot);
  }
  return count;
}

void rl_lua_nginx_wait_forget(rl_lua_nginx *self) {
  for (size_t i = 0; i < self->waiting_count; i++) {
    if (self->waiting[i] != NULL)
      self->waiting[i]->slot = 0;
  }
  free(self->waiting);
  self->waiting = NULL;
  self->waiting_count = 0;
  self->waited = 0;
  rl_lua_nginx_owners_free(&self->owners);
}

void rl_lua_nginx_wait_forget_lock(rl_lua_lock *self) {
  leave_slot(self);
  take_from_owner(self);
}

/* ----------------------------------------------------------------------------------- operations */

/* (lock) -> the driver's table; and the handle of the lock, or NULL for a client that blocks. */
static rl_lua_nginx *push_driver(lua_State *L, rl_lua_lock *self) {
  lua_getuservalue(L, 1);
  lua_rawgeti(L, -1, RL_LUA_NGINX_DRIVER);
  lua_remove(L, -2);
  return rl_lua_nginx_of(self->worker);
}

/*
 * Returns true if another request is inside of the lock by the same object. Then this one is not let in, whatever its owner's
 * name: the end of either would end the lease of both.
 */
static bool is_anothers(lua_State *L, rl_lua_lock *self) {
  rl_lock *lock = rl_lock_of(self->lock);

  if (!rl_lua_nginx_owner_is_another(owned_of(self), rl_lua_nginx_request_at(L, 4)) ||
      !rl_ring_is_owned(lock) || rl_lock_is_busy(lock) ||
      rl_ring_remaining(lock, redlock_now()) == 0)
    return false;
  rl_result_refuse(
      lock, RL_OPERATION_ACQUIRE, REDLOCK_E_HELD,
      "another request holds it by the same lock object, and each needs one of its own");
  return true;
}

/* Who has counted on a lock that belongs to the worker gives it to no request by that. */
static bool is_to_stay_the_workers(rl_lua_lock *self) {
  return owned_of(self)->owner == NULL && rl_ring_was_again(rl_lock_of(self->lock));
}

/* The operation has been begun: whose the lock is from now on, and who waits. */
static void begun(lua_State *L, rl_lua_lock *self, rl_operation operation, int of_worker) {
  rl_lua_nginx *nginx = rl_lua_nginx_of(self->worker);
  size_t slot = (size_t)lua_tonumber(L, 3);

  redlock_lock_set_data(self->lock, self);
  if (operation == RL_OPERATION_ACQUIRE) {
    of_worker = of_worker || is_to_stay_the_workers(self);
    self->owner_ended = 0;
    (void)rl_lua_nginx_owners_give(&nginx->owners, of_worker ? NULL : rl_lua_nginx_request_at(L, 4),
                                   owned_of(self));
  } else if (operation == RL_OPERATION_RELEASE &&
             rl_ring_owner(rl_lock_of(self->lock))->lease == NULL) {
    take_from_owner(self);
  }
  if (slot != 0 && !enter_slot(self, slot))
    rl_lock_cancel(rl_lock_of(self->lock), redlock_now(), REDLOCK_E_NO_MEMORY);
}

/*
 * (lock, code of a call, slot, request, argument) -> the driver's table, whether the operation is in flight, writers to wake, whether to wake the clock; or nil, message,
 * code; or false for a lock of a client that blocks. An operation that is not in flight any more has
 * a result already. Or the driver's table, nil, and the slot of a caller that has not taken the result of the lock's
 * last operation: nothing was begun.
 */
static int wait_start(lua_State *L) {
  const rl_lua_call *call = rl_lua_check_call(L, 2);
  rl_lua_lock *self = rl_lua_check_lock(L, RL_LUA_WRAPPED, call->method);
  rl_lua_nginx *nginx;
  int error, of_worker = 0;

  lua_settop(L, 5);
  nginx = push_driver(L, self);
  if (nginx == NULL) {
    lua_pushboolean(L, 0);
    return 1;
  }
  if (nginx->client == NULL || rl_lua_share_is_closed(self->share))
    return rl_lua_push_error(L, REDLOCK_E_CLOSED, NULL, RL_LUA_WRAPPED);
  rl_lua_nginx_check_fork(nginx);
  if (slot_of(self) != 0) {
    lua_pushnil(L);
    lua_pushnumber(L, (lua_Number)slot_of(self));
    return 3;
  }
  if (call->operation == RL_OPERATION_ACQUIRE && is_anothers(L, self))
    return rl_lua_push_failure(L, self, REDLOCK_E_HELD, RL_LUA_WRAPPED);
  if (call->operation == RL_OPERATION_ACQUIRE) /* Once it has begun, an error would leave it. */
    of_worker = rl_lua_read_owner(L, 5, self->of_worker, RL_LUA_WRAPPED);
  error = call->begin(L, self, 5, RL_LUA_WORKER);
  if (error != REDLOCK_OK)
    return rl_lua_push_failure(L, self, error, RL_LUA_WRAPPED);
  self->operation = call->operation;
  begun(L, self, call->operation, of_worker);
  if (rl_pump_send(&nginx->client->core) != REDLOCK_OK)
    rl_lock_cancel(rl_lock_of(self->lock), redlock_now(), REDLOCK_E_SYSTEM);
  if (call->unheard) {
    /* It goes on without the lock, for which nobody waits. */
    rl_lock_cancel(rl_lock_of(self->lock), redlock_now(), REDLOCK_E_CANCELLED);
  }
  if (!rl_lock_is_busy(rl_lock_of(self->lock)))
    rl_list_remove(&rl_lock_of(self->lock)->queue);
  lua_pushboolean(L, rl_lock_is_busy(rl_lock_of(self->lock)));
  lua_pushnumber(L, (lua_Number)rl_lua_nginx_wake_writers(nginx));
  if (slot_of(self) == 0 && call->operation == RL_OPERATION_RELEASE)
    rl_lua_nginx_released_give_back(self);
  lua_pushboolean(L, rl_lua_nginx_wake_clock(nginx));
  return 4;
}

/* Pushes what is told when the lock at index 1 is lost, if that may be after its request has ended. */
static int push_outliving(lua_State *L, rl_lua_lock *self) {
  if (self->worker == NULL || !rl_lua_nginx_of(self->worker)->client->tells ||
      owned_of(self)->owner != NULL)
    return 0;
  rl_lua_loss_push(L, 1);
  return 1;
}

/*
 * (lock) -> what the method returns for the operation that has ended; nil while it is in flight. Behind the
 * validity of an acquire stands the lock's on_lost, if the lock may outlive its request.
 */
static int push_result(lua_State *L, rl_lua_lock *self) {
  redlock_duration validity = 0;
  int error = rl_handle_outcome(self->lock, REDLOCK_MILLISECONDS, &validity);

  if (error == REDLOCK_PENDING)
    return 0;
  leave_slot(self);
  if (self->owner_ended)
    error = REDLOCK_E_NOT_HELD;
  if (error != REDLOCK_OK) {
    if (rl_ring_owner(rl_lock_of(self->lock))->lease == NULL && self->worker != NULL)
      take_from_owner(self);
    return rl_lua_push_failure(L, self, error, RL_LUA_WRAPPED);
  }
  rl_lua_push_success(L, self, self->operation, validity);
  if (self->operation == RL_OPERATION_RELEASE)
    rl_lua_nginx_released_give_back(self);
  return 1 + (self->operation == RL_OPERATION_ACQUIRE ? push_outliving(L, self) : 0);
}

static int wait_result(lua_State *L) {
  return push_result(L, rl_lua_check_lock(L, RL_LUA_WRAPPED, "lock"));
}

/*
 * (lock, code of a call): the lock is free for the call although a living caller has not taken the result of the last
 * one. -> what that caller is to return. A release ends an extend in flight; any other call on a lock that is busy is
 * a mistake.
 */
static int wait_overtake(lua_State *L) {
  const rl_lua_call *call = rl_lua_check_call(L, 2);
  rl_lua_lock *self = rl_lua_check_lock(L, RL_LUA_WRAPPED, call->method);
  rl_lock *lock = rl_lock_of(self->lock);

  if (call->operation == RL_OPERATION_RELEASE && rl_lock_is_extending(lock)) {
    rl_lock_cancel(lock, redlock_now(), REDLOCK_E_CANCELLED);
    rl_list_remove(&lock->queue);
  }
  if (rl_lock_is_busy(lock))
    return rl_lua_push_failure(L, self, REDLOCK_E_BUSY, RL_LUA_WRAPPED + 1);
  return push_result(L, self);
}

/* (lock) -> the driver's table: ends the operation in flight, as lock:cancel() does. */
static int wait_cancel(lua_State *L) {
  rl_lua_lock *self = rl_lua_check_lock(L, RL_LUA_WRAPPED, "lock:cancel()");

  redlock_lock_cancel(self->lock);
  lua_settop(L, 1);
  push_driver(L, self);
  return 1;
}

/* (lock) -> the driver's table, and the slot of the caller that has not taken the last result, if there is one. */
static int wait_caller(lua_State *L) {
  rl_lua_lock *self = rl_lua_check_lock(L, RL_LUA_WRAPPED, "lock:detach()");

  lua_settop(L, 1);
  push_driver(L, self);
  if (slot_of(self) == 0)
    return 1;
  lua_pushnumber(L, (lua_Number)slot_of(self));
  return 2;
}

/* (lock) -> whether it is a lock of a client that blocks. */
static int wait_is_blocking(lua_State *L) {
  rl_lua_lock *self = rl_lua_check_lock(L, RL_LUA_WRAPPED, "lock:start()");

  lua_pushboolean(L, self->worker == NULL);
  return 1;
}

/*
 * (handle, slot): the caller that waited in |slot| is dead. What it was to acquire is released. An extend or a release
 * goes on, and gives way to the next operation.
 */
static int wait_disown(lua_State *L) {
  rl_lua_nginx *self = rl_lua_nginx_check(L);
  size_t slot = (size_t)luaL_checknumber(L, 2);
  rl_lua_nginx_lock *waiting =
      slot < 1 || slot > self->waiting_count ? NULL : self->waiting[slot - 1];
  rl_lua_lock *lock;

  if (waiting == NULL)
    return 0;
  lock = &waiting->base;
  leave_slot(lock);
  if (lock->operation == RL_OPERATION_ACQUIRE) {
    if (rl_ring_was_again(rl_lock_of(lock->lock))) {
      count_down(rl_lock_of(lock->lock), redlock_now());
    } else {
      give_up(lock, redlock_now());
    }
  } else {
    rl_lock_abandon(rl_lock_of(lock->lock));
  }
  return 0;
}

/* (lock) -> in how many milliseconds its operation, which is in flight, wants to be looked at. */
static int wait_due(lua_State *L) {
  rl_lua_lock *self = rl_lua_check_lock(L, RL_LUA_WRAPPED, "due()");
  const rl_lock *lock = rl_lock_of(self->lock);
  redlock_duration due_us = LAUNCH_SOON;

  if (lock->timer.index != RL_TIMERS_NONE)
    due_us = rl_time_sub(lock->timer.due_us, redlock_now());
  lua_pushnumber(L, (lua_Number)(due_us < REDLOCK_MILLISECONDS ? 1 : rl_time_ms_up(due_us)));
  return 1;
}

/* (lock, function, request or nil) -> the request's number: the function is told in place of the lock's on_lost. */
static int wait_guard(lua_State *L) {
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

/* (lock, request or nil, its number) -> whether the request has not ended. */
static int wait_lasts(lua_State *L) {
  rl_lua_lock *self = rl_lua_check_lock(L, RL_LUA_WRAPPED, "lock");
  uint64_t number = (uint64_t)luaL_checknumber(L, 3);

  lua_pushboolean(L, self->worker != NULL &&
                         rl_lua_nginx_owners_last(&rl_lua_nginx_of(self->worker)->owners,
                                                  rl_lua_nginx_request_at(L, 2), number));
  return 1;
}

/*
 * (lock, request or nil): whose the lock is from now on. -> true, and its on_lost if it may outlive its request; or nil, message, code when it is not
 * held.
 */
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
  static const luaL_Reg functions[] = {{"start", wait_start},   {"result", wait_result},
                                       {"cancel", wait_cancel}, {"is_blocking", wait_is_blocking},
                                       {"disown", wait_disown}, {"hand_over", wait_hand_over},
                                       {"due", wait_due},       {"guard", wait_guard},
                                       {"lasts", wait_lasts},   {"overtake", wait_overtake},
                                       {"caller", wait_caller}, {NULL, NULL}};

  luaL_setfuncs(L, functions, 0);
}
