/*
 * Re-entrance: an owner acquires again what it holds, without waiting.
 *
 * SPDX-License-Identifier: MIT
 *
 * An owner is a few bytes from the caller: the number of a coroutine or a request, or a name. Locks
 * of one client with the same owner share one lease. The nodes do not know it: there is one token.
 *   OWN-1. The lock that was granted the lease is the lease owner. The locks that share the lease
 *          are in a ring with it, and each of them is held as long as the lease lasts.
 *   OWN-2. If one lease of the owner covers all resources of an acquire, the acquire shares it: the
 *          lock enters the ring and the operation ends at once. Nothing is sent. This is checked at
 *          the beginning, and before and after each attempt. When a waiter is granted a lease, this
 *          is checked for all other waiters of its owner: no waiter waits for its own owner. A
 *          waiter that needs further resources, or brings a token, waits for the release, as
 *          another owner would.
 *   OWN-3. Two thirds of the requested time must be left, because otherwise an extend would be due
 *          (REN-1). If less is left, the acquiring lock becomes the lease owner and extends the
 *          lease first (EXT-1 to EXT-6). It shares the lease if that succeeds. Otherwise it leaves
 *          the ring, and nothing has changed for the other locks; if there are none, it releases.
 *          Such an extend does not go beyond max_hold (REN-4): near the end the acquire shares what
 *          is left. The node_timeout of the acquire limits this extend. The options of the lease
 *          limit all other extends.
 *   OWN-4. An acquire is refused if it would wait for itself: if its owner holds only some of the
 *          resources, or holds them by several leases. It is refused if it brings a token of its
 *          own, or asks for a fencing token that the lease lacks. It is also refused if the lease
 *          has expired or is lost. The outer section has lost its lock, so the inner one must not
 *          begin.
 *   OWN-5. The release of a lock that shares its lease takes it out of the ring, and sends nothing.
 *          If it was the lease owner, another lock becomes the lease owner, with the same token,
 *          deadline and automatic extends. The last release of the ring releases the lease,
 *          whichever lock that is.
 *   OWN-6. A lock that extends becomes the lease owner first. An automatic extend in flight ends
 *          (REN-3). An extend by another lock of the owner is not disturbed: BUSY.
 *   OWN-7. A lost lease is lost for all locks of the ring, and each release of them reports it.
 *
 * Copies of OWN-3 and OWN-4: lua/redlock/fake_operation.lua.
 */
#include "lease/rl_reentry.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/rl_validity.h"
#include "lease/rl_fence.h"
#include "lease/rl_hold.h"
#include "lease/rl_renew.h"
#include "lock/rl_lock.h"
#include "lock/rl_outbox.h"

/* --------------------------------------------------------------------------- the lease owners */

static uint64_t rl_reentry_hash_owner(const rl_reentry *owner) {
  return rl_hash_bytes(0, owner->owner, owner->owner_length);
}

static uint64_t rl_reentry_hash(const rl_reentry *owner, rl_resource_name name) {
  return rl_hash_bytes(rl_reentry_hash_owner(owner), name.resource, name.length);
}

static bool rl_reentry_same_owner(const rl_reentry *one, const rl_reentry *other) {
  return one->owner_length == other->owner_length &&
         memcmp(one->owner, other->owner, one->owner_length) == 0;
}

static void rl_reentry_own(rl_lock *lock, rl_resource *resource) {
  rl_reentry *reentry = rl_reentry_of(lock);
  uint64_t hash = resource->count > 1 ? rl_reentry_hash_owner(reentry)
                                      : rl_reentry_hash(reentry, rl_resource_at(resource, 0));
  resource->references++;
  reentry->lease_resource = resource;
  rl_hash_insert(&lock->core->reentries->lease_owners, &reentry->entry, hash);
}

static void rl_reentry_disown(const rl_lock *lock) {
  rl_reentry *reentry = rl_reentry_of(lock);
  if (reentry->lease_resource != NULL) {
    rl_hash_remove(&lock->core->reentries->lease_owners, &reentry->entry);
    rl_resource_unref(reentry->lease_resource);
    reentry->lease_resource = NULL;
  }
}

static bool rl_reentry_has_permits(const rl_options *options) {
  return options->permits > 0;
}

/* A semaphore and a lock of the same name are different resources. */
static bool rl_reentry_holds(const rl_reentry *lease_owner, const rl_reentry *owner,
                             rl_resource_name name) {
  const rl_resource *resource = lease_owner->lease_resource;
  bool found = false;
  if (rl_reentry_has_permits(lease_owner->lock->current) !=
      rl_reentry_has_permits(owner->lock->current)) {
    return false;
  }
  for (unsigned i = 0; i < resource->count && !found; i++) {
    rl_resource_name other = rl_resource_at(resource, i);
    found = other.length == name.length && memcmp(other.resource, name.resource, name.length) == 0;
  }
  return found && rl_reentry_same_owner(lease_owner, owner);
}

/* With |alive_us| only a lease that is valid at that time; with |fenced| one with a token. */
static rl_lock *rl_reentry_find_in(const rl_core *core, uint64_t hash, const rl_reentry *owner,
                                   rl_resource_name name, redlock_time alive_us, bool fenced) {
  rl_hash_entry *entry = rl_hash_find(&core->reentries->lease_owners, hash);
  for (; entry != NULL; entry = rl_hash_find_next(entry)) {
    const rl_reentry *lease_owner = RL_OWNER(entry, rl_reentry, entry);
    if (rl_reentry_holds(lease_owner, owner, name) &&
        (alive_us == 0 || rl_lock_remaining(lease_owner->lock, alive_us) > 0) &&
        (!fenced || rl_fence_token(lease_owner->lock) != 0)) {
      return lease_owner->lock;
    }
  }
  return NULL;
}

/* Returns the lock by which the owner holds a resource, or NULL. */
static rl_lock *rl_reentry_find(const rl_core *core, const rl_reentry *owner, rl_resource_name name,
                                redlock_time alive_us, bool fenced) {
  rl_lock *lock =
      rl_reentry_find_in(core, rl_reentry_hash(owner, name), owner, name, alive_us, fenced);
  return lock != NULL ? lock
                      : rl_reentry_find_in(core, rl_reentry_hash_owner(owner), owner, name,
                                           alive_us, fenced);
}

/*
 * Returns the lock by which the owner holds a resource of |lock|, or NULL. |*all| receives true if
 * it holds all of them by that lock.
 */
static rl_lock *rl_reentry_find_all(const rl_lock *lock, redlock_time alive_us, bool fenced,
                                    bool *all) {
  const rl_reentry *owner = rl_reentry_of(lock);
  rl_lock *lease_owner =
      rl_reentry_find(lock->core, owner, rl_resource_at(lock->resource, 0), alive_us, fenced);
  *all = true;
  for (unsigned i = 1; i < lock->resource->count; i++) {
    rl_lock *other =
        rl_reentry_find(lock->core, owner, rl_resource_at(lock->resource, i), alive_us, fenced);
    *all = *all && other == lease_owner;
    lease_owner = lease_owner != NULL ? lease_owner : other;
  }
  return lease_owner;
}

/*
 * The same for an acquire with the options |asked|: an owner may have several leases of a
 * semaphore, and only one with a fencing token.
 */
static rl_lock *rl_reentry_find_for(const rl_lock *lock, redlock_time alive_us,
                                    const rl_options *asked, bool *all) {
  rl_lock *lease_owner = asked->fence == REDLOCK_YES && asked->permits > 0
                             ? rl_reentry_find_all(lock, alive_us, true, all)
                             : NULL;
  return lease_owner != NULL ? lease_owner : rl_reentry_find_all(lock, alive_us, false, all);
}

/* ------------------------------------------------------------------------------------ the ring */

/* Before the lease owner, which the lock will look for most. */
static void rl_reentry_enter_ring(rl_lock *lock, rl_lock *lease_owner) {
  rl_list_remove(&rl_reentry_of(lock)->ring);
  rl_list_append(&rl_reentry_of(lease_owner)->ring, &rl_reentry_of(lock)->ring);
}

static void rl_reentry_leave_ring(rl_lock *lock) {
  rl_reentry *reentry = rl_reentry_of(lock);
  rl_list_remove(&reentry->ring);
  rl_list_init(&reentry->ring);
  reentry->depth = 0;
  reentry->nesting = false;
}

/*
 * OWN-5. Makes |to| the lease owner in place of |from|, even of a lost lease. Both are in the ring,
 *        and neither has an operation of the user in flight.
 */
static void rl_reentry_move(rl_lock *from, rl_lock *to, redlock_time now_us) {
  rl_attempt *lease = from->lease;
  redlock_time deadline_us = from->deadline_us;
  rl_renew_stop(from, now_us);
  assert(!rl_lock_is_in_flight(from) && !rl_lock_is_in_flight(to));
  rl_reentry_own(to, rl_reentry_of(from)->lease_resource);
  rl_reentry_disown(from);
  if (lease == NULL) {
    return;
  }
  rl_lock_ignore_late_votes(from);
  bool loss_counted = from->loss_counted;
  rl_lock_set_lease(from, NULL, 0);
  rl_lock_set_lease(to, lease, deadline_us);
  to->loss_counted = loss_counted;
  lease->lock = to;
  rl_lock_ignore_late_votes(to);
  to->round =
      (from->round > to->round ? from->round : to->round) + 1; /* No reply in flight is a vote. */
  rl_renew_copy_end(to, from);
  to->lease_ttl_us = from->lease_ttl_us;
  rl_fence_adopt(to, rl_fence_token(from)); /* FEN-6 */
  to->random = from->random;
  rl_renew_schedule(to, now_us);
}

void rl_reentry_leave(rl_lock *lock, redlock_time now_us) {
  rl_reentry *reentry = rl_reentry_of(lock);
  if (reentry == NULL) {
    return;
  }
  rl_lock *next = rl_ring_next(lock);
  if (next != lock && reentry->lease_resource != NULL) {
    rl_reentry_move(lock, next, now_us);
  }
  rl_reentry_forget(lock);
}

void rl_reentry_forget(rl_lock *lock) {
  if (rl_reentry_of(lock) != NULL) {
    rl_reentry_disown(lock);
    rl_reentry_leave_ring(lock);
  }
}

/* ---------------------------------------------------------------------------------- operations */

int rl_reentry_set_owner(rl_lock *lock, redlock_time now_us, const void *owner, size_t length) {
  rl_reentry *reentry = rl_reentry_of(lock);
  rl_reentries *all = lock->core->reentries;
  if (length == 0 ? reentry == NULL || reentry->owner_length == 0
                  : reentry != NULL && reentry->owner_length == length &&
                        memcmp(reentry->owner, owner, length) == 0) {
    return REDLOCK_OK;
  }
  if (rl_ring_remaining(lock, now_us) > 0) {
    rl_result_refuse(lock, RL_OPERATION_ACQUIRE, REDLOCK_E_HELD, "another owner holds it");
    return REDLOCK_E_HELD;
  }
  if (reentry == NULL) {
    bool room = rl_lock_reserve_extension(lock) &&
                rl_hash_reserve(&all->lease_owners, all->owned + 1) &&
                rl_hash_reserve(&all->acquiring, all->owned + 1);
    reentry = room ? calloc(1, sizeof *reentry) : NULL;
    if (reentry == NULL) {
      return REDLOCK_E_NO_MEMORY;
    }
    all->owned++;
    reentry->lock = lock;
    rl_list_init(&reentry->ring);
    lock->extension->reentry = reentry;
  }
  rl_reentry_leave(lock, now_us); /* The lease that it shared has expired. */
  reentry->owner_length = (uint8_t)length;
  if (length > 0) {
    memcpy(reentry->owner, owner, length);
  }
  return REDLOCK_OK;
}

/* OWN-3. Returns true if so much is left that the acquire needs no extend. */
static bool rl_reentry_suffices(const rl_lock *lease_owner, redlock_time now_us,
                                const rl_options *asked) {
  redlock_duration asked_us = rl_validity_deadline(0, asked->ttl_us, asked->drift_factor);
  return rl_lock_remaining(lease_owner, now_us) >= asked_us - asked_us / 3;
}

/* Sets the timer for the end of the lease, if only |lock| reports losses. */
static void rl_reentry_set_loss_timer(const rl_lock *lock, rl_lock *lease_owner,
                                      redlock_time now_us) {
  if (rl_renewal_reports(lock) && !rl_lock_is_in_flight(lease_owner) &&
      lease_owner->current->auto_extend != REDLOCK_YES) {
    rl_renew_schedule(lease_owner, now_us);
  }
}

/*
 * OWN-2. Lets |lock| share the lease. It takes the options of the lease, so that becoming the lease
 *        owner allocates nothing. Returns false when out of memory.
 */
static bool rl_reentry_share(rl_lock *lock, rl_lock *lease_owner, redlock_time now_us) {
  rl_options options = *lease_owner->current;
  options.notify_lost = lock->current->notify_lost;
  if (!rl_renew_reserve(lock, &options) || !rl_fence_reserve(lock, &options) ||
      !rl_lock_set_options(lock, &options)) {
    return false;
  }
  rl_reentry_enter_ring(lock, lease_owner);
  rl_reentry_set_loss_timer(lock, lease_owner, now_us);
  return true;
}

/*
 * The lock shares the lease already. From now on it reports losses if the new acquire asks for it.
 */
static bool rl_reentry_share_again(rl_lock *lock, rl_lock *lease_owner, const rl_options *asked,
                                   redlock_time now_us) {
  redlock_duration ttl_us = lock->ttl_us; /* of an automatic extend in flight */
  rl_options options = *lock->current;
  options.notify_lost = REDLOCK_YES;
  if (asked->notify_lost != REDLOCK_YES || lock->current->notify_lost == REDLOCK_YES) {
    return true;
  }
  if (!rl_renew_reserve(lock, &options) || !rl_lock_set_options(lock, &options)) {
    return false;
  }
  lock->ttl_us = ttl_us;
  rl_reentry_set_loss_timer(lock, lease_owner, now_us);
  return true;
}

/* A lease gets a fencing token only when it is granted. */
static bool rl_reentry_lacks_fence(const rl_lock *lease_owner, const rl_options *asked) {
  return asked->fence == REDLOCK_YES && rl_fence_token(lease_owner) == 0;
}

/* OWN-4. Returns REDLOCK_OK, or why the acquire is refused, with the sentence |*refused|. */
static int rl_reentry_obstacle(const rl_lock *lease_owner, redlock_time now_us,
                               const rl_options *asked, bool all, bool custom,
                               const char **refused) {
  if (rl_lock_remaining(lease_owner, now_us) == 0) {
    *refused = "its owner's lease has expired or is lost: release it first";
    return lease_owner->lost ? REDLOCK_E_LOST : REDLOCK_E_EXPIRED;
  }
  *refused =
      custom ? "its owner holds it already, with another token"
      : !all
          ? "its owner already holds some of the resources and would wait for itself: acquire all "
            "resources at once"
      : rl_reentry_has_permits(asked) != rl_reentry_has_permits(lease_owner->current)
          ? "the lock object is held with other permits: make a lock object for the semaphore"
      : rl_reentry_lacks_fence(lease_owner, asked)
          ? "its owner already holds it without a fencing token: set fence in the first acquire"
          : NULL;
  return *refused != NULL ? REDLOCK_E_HELD : REDLOCK_OK;
}

rl_reentry_answer rl_reentry_acquire(rl_lock *lock, redlock_time now_us, const rl_options *asked,
                                     bool custom, int *error, const char **refused) {
  bool all = true;
  bool again = rl_ring_remaining(lock, now_us) > 0;
  rl_lock *lease_owner = !rl_ring_is_owned(lock) ? NULL
                         : again                 ? (rl_lock *)rl_ring_owner(lock)
                                                 : rl_reentry_find_for(lock, 0, asked, &all);
  if (lease_owner == NULL) {
    return RL_REENTRY_ALONE;
  }
  *error = rl_reentry_obstacle(lease_owner, now_us, asked, all, custom, refused);
  if (*error == REDLOCK_OK && !(again ? rl_reentry_share_again(lock, lease_owner, asked, now_us)
                                      : rl_reentry_share(lock, lease_owner, now_us))) {
    *error = REDLOCK_E_NO_MEMORY;
  }
  if (*error != REDLOCK_OK) {
    return RL_REENTRY_REFUSED;
  }
  rl_reentry_of(lock)->depth += again;
  if (rl_reentry_suffices(lease_owner, now_us, asked) || rl_renewal_is_capped(lease_owner) ||
      rl_lock_is_busy(lease_owner)) { /* An extend is in flight. */
    rl_hold_nested(lease_owner->lease, now_us, rl_options_hold_us(asked));
    return RL_REENTRY_SHARED;
  }
  rl_renew_stop(lease_owner, now_us);
  (void)rl_reentry_take_lease(lock, now_us);
  lock->ttl_us = asked->ttl_us;
  rl_reentry_of(lock)->nesting = true;
  rl_reentry_of(lock)->node_timeout_us = rl_options_node_timeout(asked, asked->ttl_us);
  rl_reentry_of(lock)->hold_us = rl_options_hold_us(asked);
  return RL_REENTRY_EXTENDS;
}

/*
 * Returns the lock whose lease |lock|, which acquires, may share; or NULL. The owner may also have
 * a lost lease of the resource that it has not released yet.
 */
static rl_lock *rl_reentry_to_share(const rl_lock *lock, redlock_time now_us) {
  bool all;
  rl_lock *lease_owner =
      rl_ring_is_owned(lock) ? rl_reentry_find_for(lock, now_us, lock->current, &all) : NULL;
  bool may = lease_owner != NULL && all && rl_lock_remaining(lease_owner, now_us) > 0 &&
             !rl_reentry_lacks_fence(lease_owner, lock->current);
  return may ? lease_owner : NULL;
}

bool rl_reentry_try_share(rl_lock *lock, redlock_time now_us) {
  rl_lock *lease_owner = rl_reentry_to_share(lock, now_us);
  redlock_duration hold_us = rl_options_hold_us(lock->current); /* before it takes the lease's */
  if (lease_owner == NULL || !rl_reentry_share(lock, lease_owner, now_us)) {
    return false;
  }
  rl_hold_nested(lease_owner->lease, now_us, hold_us);
  return true;
}

void rl_reentry_acquire_begins(rl_lock *lock) {
  rl_reentry *reentry = rl_reentry_of(lock);
  if (rl_ring_is_owned(lock) && !reentry->acquiring) {
    reentry->acquiring = true;
    rl_hash_insert(&lock->core->reentries->acquiring, &reentry->acquires,
                   rl_reentry_hash_owner(reentry));
  }
}

void rl_reentry_acquire_ended(rl_lock *lock) {
  rl_reentry *reentry = rl_reentry_of(lock);
  if (reentry != NULL && reentry->acquiring) {
    reentry->acquiring = false;
    rl_hash_remove(&lock->core->reentries->acquiring, &reentry->acquires);
  }
}

rl_lock *rl_reentry_next_waiter(const rl_lock *lock) {
  const rl_core *core = lock->core;
  rl_hash_entry *entry = NULL;
  if (rl_ring_is_owned(lock)) {
    entry = rl_hash_find(&core->reentries->acquiring, rl_reentry_hash_owner(rl_reentry_of(lock)));
  }
  for (; entry != NULL; entry = rl_hash_find_next(entry)) {
    rl_lock *waiter = RL_OWNER(entry, rl_reentry, acquires)->lock;
    bool waits = waiter->phase == RL_PHASE_QUEUED || waiter->phase == RL_PHASE_DELAY ||
                 waiter->phase == RL_PHASE_SEND;
    if (waits && waiter->attempt == NULL && rl_lock_attach(waiter) == NULL &&
        rl_reentry_to_share(waiter, core->now_us) == lock) {
      return waiter;
    }
  }
  return NULL;
}

bool rl_reentry_release(rl_lock *lock, redlock_time now_us) {
  if (!rl_ring_is_shared(lock) || lock->lost) {
    return false;
  }
  if (rl_reentry_of(lock)->depth > 0) {
    rl_reentry_of(lock)->depth--;
  } else {
    rl_reentry_leave(lock, now_us);
    rl_loss_clear(lock);
  }
  return true;
}

bool rl_reentry_release_lost(const rl_lock *lock) {
  bool again = lock->lost && rl_ring_is_reacquired(lock);
  if (again) {
    rl_reentry_of(lock)->depth--;
  }
  return again;
}

int rl_reentry_take_lease(rl_lock *lock, redlock_time now_us) {
  rl_lock *lease_owner = (rl_lock *)rl_ring_owner(lock);
  if (lease_owner == lock || rl_lock_remaining(lease_owner, now_us) == 0) {
    return REDLOCK_OK;
  }
  if (rl_lock_is_busy(lease_owner)) {
    return REDLOCK_E_BUSY;
  }
  rl_reentry_move(lease_owner, lock, now_us);
  return REDLOCK_OK;
}

void rl_reentry_granted(rl_lock *lock) {
  if (rl_ring_is_owned(lock)) {
    rl_reentry_own(lock, lock->resource);
  }
}

bool rl_reentry_end_nesting(rl_lock *lock, redlock_time now_us, int result) {
  if (rl_reentry_of(lock) == NULL || !rl_reentry_of(lock)->nesting) {
    return false;
  }
  if (result == REDLOCK_OK) {
    rl_hold_nested(lock->lease, now_us, rl_reentry_of(lock)->hold_us);
  }
  bool again = rl_reentry_of(lock)->depth > 0;
  rl_reentry_of(lock)->depth -= again && result != REDLOCK_OK;
  rl_reentry_of(lock)->nesting =
      !again && result == REDLOCK_E_LOST; /* It leaves in rl_lease_end_lost(). */
  return result != REDLOCK_OK && !again && !rl_reentry_of(lock)->nesting;
}

void rl_reentry_stop_nesting(rl_lock *lock) {
  if (rl_reentry_of(lock) != NULL) {
    rl_reentry_of(lock)->nesting = false;
  }
}

void rl_reentry_share_loss(const rl_lock *lock, redlock_time now_us) {
  for (rl_lock *other = rl_ring_next(lock); other != lock; other = rl_ring_next(other)) {
    other->lost = true;
    other->keys_end_us = now_us;
    other->deniers = lock->deniers;
  }
}

/* ---------------------------------------------------------------------------------------- life */

void rl_reentry_free(rl_lock *lock) {
  if (rl_reentry_of(lock) != NULL) {
    assert(rl_reentry_of(lock)->lease_resource == NULL && rl_ring_next(lock) == lock);
    assert(!rl_reentry_of(lock)->acquiring);
    lock->core->reentries->owned--;
    free(rl_reentry_of(lock));
    lock->extension->reentry = NULL;
  }
}

void rl_reentries_free(rl_core *core) {
  rl_hash_free(&core->reentries->lease_owners);
  rl_hash_free(&core->reentries->acquiring);
}
