/*
 * Re-entrance: an owner that acquires what it holds already counts, and waits for nobody.
 *
 * SPDX-License-Identifier: MIT
 *
 * An owner is a few bytes that the caller gives: a coroutine's number, a request's, a name. Locks of one
 * client with the same owner count on one lease. Nodes know nothing of it: there is one token.
 *   O1. The lock that was granted the lease carries it. The locks that count on it stand in a ring with it,
 *       and each of them is held as long as the lease lasts.
 *   O2. An acquire of resources that its owner holds by one lease, all of them, counts: it joins the ring and
 *       ends there and then. Nothing is sent. That is looked at when it begins, and before each attempt.
 *   O3. Two thirds of what it asks for must be left: an extend would be due else (R1 of rl_renew.c). Otherwise
 *       the lease goes to the lock that acquires, which extends it first (E1 to E6). It counts if that
 *       ends well, else it leaves again, and the others are where they were. If it is alone by then, it releases.
 *       No such extend goes beyond max_hold (R4): what counts at the end counts on what is left. It lasts no
 *       longer than the node_timeout of its acquire; all other extends go by the options of the lease.
 *   O4. It is refused, for it would wait for itself, where its owner holds only some of the resources, or
 *       holds them by several leases, or where it brings a token of its own, or asks for a fencing token where the
 *       lease has none. It is also refused where the
 *       lease has run out or is lost: whoever is inside of that must not go on as if nothing were.
 *   O5. A release of a lock that others count with takes it out of the ring, and sends nothing. If it carried
 *       the lease, another carries it from then on, as it is: token, deadline, and how it keeps itself.
 *       Alone, it is released. The last release releases, whichever lock that is.
 *   O6. A lock that extends takes the lease first. An automatic extend in flight ends (R3), an extend of the
 *       owner's by another of its locks is not disturbed: BUSY.
 *   O7. A lease that is lost is lost for all locks of the ring, and each release that is due says so.
 */
#include "lease/rl_reentry.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/rl_validity.h"
#include "lease/rl_fence.h"
#include "lease/rl_renew.h"
#include "lock/rl_lock.h"
#include "lock/rl_outbox.h"

/* -------------------------------------------------------------------------------- the carriers */

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

static void rl_reentry_carry(rl_lock *lock, rl_resource *resource) {
  rl_reentry *reentry = rl_reentry_of(lock);
  uint64_t hash = resource->count > 1 ? rl_reentry_hash_owner(reentry)
                                      : rl_reentry_hash(reentry, rl_resource_at(resource, 0));
  resource->references++;
  reentry->lease_resource = resource;
  rl_hash_insert(&lock->core->reentries->carriers, &reentry->entry, hash);
}

static void rl_reentry_put_down(const rl_lock *lock) {
  rl_reentry *reentry = rl_reentry_of(lock);
  if (reentry->lease_resource != NULL) {
    rl_hash_remove(&lock->core->reentries->carriers, &reentry->entry);
    rl_resource_unref(reentry->lease_resource);
    reentry->lease_resource = NULL;
  }
}

static bool rl_reentry_has(const rl_reentry *carrier, const rl_reentry *owner,
                           rl_resource_name name) {
  const rl_resource *carried = carrier->lease_resource;
  bool found = false;
  for (unsigned i = 0; i < carried->count && !found; i++) {
    rl_resource_name other = rl_resource_at(carried, i);
    found = other.length == name.length && memcmp(other.resource, name.resource, name.length) == 0;
  }
  return found && rl_reentry_same_owner(carrier, owner);
}

static rl_lock *rl_reentry_find_in(const rl_core *core, uint64_t hash, const rl_reentry *owner,
                                   rl_resource_name name) {
  rl_hash_entry *entry = rl_hash_find(&core->reentries->carriers, hash);
  for (; entry != NULL; entry = rl_hash_find_next(entry)) {
    const rl_reentry *carrier = RL_OWNER(entry, rl_reentry, entry);
    if (rl_reentry_has(carrier, owner, name)) {
      return carrier->lock;
    }
  }
  return NULL;
}

/* The lock by which the owner holds a resource, or NULL. */
static rl_lock *rl_reentry_find(const rl_core *core, const rl_reentry *owner,
                                rl_resource_name name) {
  rl_lock *lock = rl_reentry_find_in(core, rl_reentry_hash(owner, name), owner, name);
  return lock != NULL ? lock : rl_reentry_find_in(core, rl_reentry_hash_owner(owner), owner, name);
}

/* The lock by which the owner holds the resources of |lock|. |*all|: all of them, and by no other. */
static rl_lock *rl_reentry_find_all(const rl_lock *lock, bool *all) {
  rl_lock *carrier =
      rl_reentry_find(lock->core, rl_reentry_of(lock), rl_resource_at(lock->resource, 0));
  *all = true;
  for (unsigned i = 1; i < lock->resource->count; i++) {
    rl_lock *other =
        rl_reentry_find(lock->core, rl_reentry_of(lock), rl_resource_at(lock->resource, i));
    *all = *all && other == carrier;
    carrier = carrier != NULL ? carrier : other;
  }
  return carrier;
}

/* ------------------------------------------------------------------------------------ the ring */

/* The newest stands before the carrier, which it will ask for most. */
static void rl_reentry_join_ring(rl_lock *lock, rl_lock *carrier) {
  rl_list_remove(&rl_reentry_of(lock)->ring);
  rl_list_append(&rl_reentry_of(carrier)->ring, &rl_reentry_of(lock)->ring);
}

static void rl_reentry_leave_ring(rl_lock *lock) {
  rl_reentry *reentry = rl_reentry_of(lock);
  rl_list_remove(&reentry->ring);
  rl_list_init(&reentry->ring);
  reentry->depth = 0;
  reentry->nesting = false;
}

/*
 * O5. |to| carries what |from| has carried, a lease or one that was lost. Both are in the ring, and neither
 * has an operation of the user's in flight.
 */
static void rl_reentry_move(rl_lock *from, rl_lock *to, redlock_time now_us) {
  rl_attempt *lease = from->lease;
  redlock_time deadline_us = from->deadline_us;
  rl_renew_stop(from, now_us);
  assert(!rl_lock_is_in_flight(from) && !rl_lock_is_in_flight(to));
  rl_reentry_carry(to, rl_reentry_of(from)->lease_resource);
  rl_reentry_put_down(from);
  if (lease == NULL) {
    return;
  }
  rl_lock_end_grace(from);
  rl_lock_set_lease(from, NULL, 0);
  rl_lock_set_lease(to, lease, deadline_us);
  lease->lock = to;
  rl_lock_end_grace(to);
  to->round =
      (from->round > to->round ? from->round : to->round) + 1; /* No late reply is a vote. */
  rl_renew_copy_end(to, from);
  to->lease_ttl_us = from->lease_ttl_us;
  rl_fence_adopt(to, rl_fence_token(from)); /* F6 */
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
    rl_reentry_put_down(lock);
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
    bool room = rl_lock_reserve_extension(lock) && rl_hash_reserve(&all->carriers, all->owned + 1);
    reentry = room ? calloc(1, sizeof *reentry) : NULL;
    if (reentry == NULL) {
      return REDLOCK_E_NO_MEMORY;
    }
    all->owned++;
    reentry->lock = lock;
    rl_list_init(&reentry->ring);
    lock->extension->reentry = reentry;
  }
  rl_reentry_leave(lock, now_us); /* What it was inside of has run out. */
  reentry->owner_length = (uint8_t)length;
  if (length > 0) {
    memcpy(reentry->owner, owner, length);
  }
  return REDLOCK_OK;
}

/* O3. Whether so much is left that no extend is due for what the acquire asks for. */
static bool rl_reentry_suffices(const rl_lock *carrier, redlock_time now_us,
                                const rl_options *asked) {
  redlock_duration asked_us = rl_validity_deadline(0, asked->ttl_us, asked->drift_factor);
  return rl_lock_remaining(carrier, now_us) >= asked_us - asked_us / 3;
}

/* The end of the lease is looked at, if nobody has asked for that yet, and |lock| does. */
static void rl_reentry_watch(const rl_lock *lock, rl_lock *carrier, redlock_time now_us) {
  if (rl_renewal_reports(lock) && !rl_lock_is_in_flight(carrier) &&
      carrier->current->auto_extend != REDLOCK_YES) {
    rl_renew_schedule(carrier, now_us);
  }
}

/*
 * O2. A lock is to count. It has the lease's options from now on, so that nothing has to be allocated when
 * the lease comes to it. False when out of memory.
 */
static bool rl_reentry_join(rl_lock *lock, rl_lock *carrier, redlock_time now_us) {
  rl_options options = *carrier->current;
  options.notify_lost = lock->current->notify_lost;
  if (!rl_renew_reserve(lock, &options) || !rl_fence_reserve(lock, &options) ||
      !rl_lock_set_options(lock, &options)) {
    return false;
  }
  rl_reentry_join_ring(lock, carrier);
  rl_reentry_watch(lock, carrier, now_us);
  return true;
}

/* A lock that counts already is acquired once more. Its loss is to be told from now on, if that asks for it. */
static bool rl_reentry_ask_again(rl_lock *lock, rl_lock *carrier, const rl_options *asked,
                                 redlock_time now_us) {
  redlock_duration ttl_us = lock->ttl_us; /* That of an automatic extend in flight. */
  rl_options options = *lock->current;
  options.notify_lost = REDLOCK_YES;
  if (asked->notify_lost != REDLOCK_YES || lock->current->notify_lost == REDLOCK_YES) {
    return true;
  }
  if (!rl_renew_reserve(lock, &options) || !rl_lock_set_options(lock, &options)) {
    return false;
  }
  lock->ttl_us = ttl_us;
  rl_reentry_watch(lock, carrier, now_us);
  return true;
}

/* A token comes with a grant: a lease that was granted without one has none. */
static bool rl_reentry_lacks_fence(const rl_lock *carrier, const rl_options *asked) {
  return asked->fence == REDLOCK_YES && rl_fence_token(carrier) == 0;
}

/* O4. What stands in the way of counting with |carrier|, and why; REDLOCK_OK if nothing does. */
static int rl_reentry_obstacle(const rl_lock *carrier, redlock_time now_us, const rl_options *asked,
                               bool all, bool given, const char **refused) {
  if (rl_lock_remaining(carrier, now_us) == 0) {
    *refused = "its owner's lease has expired or is lost: release it first";
    return carrier->lost ? REDLOCK_E_LOST : REDLOCK_E_EXPIRED;
  }
  *refused =
      given ? "its owner holds it already, with another token"
      : all
          ? NULL
          : "its owner already holds some of the resources and would wait for itself: acquire all "
            "resources at once";
  if (*refused == NULL && rl_reentry_lacks_fence(carrier, asked)) {
    *refused = "its owner already holds it without a fencing token: set fence in the first acquire";
  }
  return *refused != NULL ? REDLOCK_E_HELD : REDLOCK_OK;
}

rl_reentry_answer rl_reentry_acquire(rl_lock *lock, redlock_time now_us, const rl_options *asked,
                                     bool given, int *error, const char **refused) {
  bool all = true;
  bool again = rl_ring_remaining(lock, now_us) > 0;
  rl_lock *carrier = !rl_ring_is_owned(lock) ? NULL
                     : again                 ? (rl_lock *)rl_ring_owner(lock)
                                             : rl_reentry_find_all(lock, &all);
  if (carrier == NULL) {
    return RL_REENTRY_ALONE;
  }
  *error = rl_reentry_obstacle(carrier, now_us, asked, all, given, refused);
  if (*error == REDLOCK_OK && !(again ? rl_reentry_ask_again(lock, carrier, asked, now_us)
                                      : rl_reentry_join(lock, carrier, now_us))) {
    *error = REDLOCK_E_NO_MEMORY;
  }
  if (*error != REDLOCK_OK) {
    return RL_REENTRY_REFUSED;
  }
  rl_reentry_of(lock)->depth += again;
  if (rl_reentry_suffices(carrier, now_us, asked) || rl_renewal_is_capped(carrier) ||
      rl_lock_is_busy(carrier)) {
    return RL_REENTRY_SHARED; /* What is in flight is an extend. */
  }
  rl_renew_stop(carrier, now_us);
  (void)rl_reentry_take(lock, now_us);
  lock->ttl_us = asked->ttl_us;
  rl_reentry_of(lock)->nesting = true;
  rl_reentry_of(lock)->node_timeout_us = rl_options_node_timeout(asked, asked->ttl_us);
  return RL_REENTRY_EXTENDS;
}

bool rl_reentry_try_share(rl_lock *lock, redlock_time now_us) {
  bool all;
  rl_lock *carrier = rl_ring_is_owned(lock) ? rl_reentry_find_all(lock, &all) : NULL;
  return carrier != NULL && all && rl_lock_remaining(carrier, now_us) > 0 &&
         !rl_reentry_lacks_fence(carrier, lock->current) && rl_reentry_join(lock, carrier, now_us);
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
  bool again = lock->lost && rl_ring_was_again(lock);
  if (again) {
    rl_reentry_of(lock)->depth--;
  }
  return again;
}

int rl_reentry_take(rl_lock *lock, redlock_time now_us) {
  rl_lock *carrier = (rl_lock *)rl_ring_owner(lock);
  if (carrier == lock || rl_lock_remaining(carrier, now_us) == 0) {
    return REDLOCK_OK;
  }
  if (rl_lock_is_busy(carrier)) {
    return REDLOCK_E_BUSY;
  }
  rl_reentry_move(carrier, lock, now_us);
  return REDLOCK_OK;
}

void rl_reentry_granted(rl_lock *lock) {
  if (rl_ring_is_owned(lock)) {
    rl_reentry_carry(lock, lock->resource);
  }
}

bool rl_reentry_failed(rl_lock *lock, int result) {
  if (rl_reentry_of(lock) == NULL || !rl_reentry_of(lock)->nesting) {
    return false;
  }
  bool again = rl_reentry_of(lock)->depth > 0;
  rl_reentry_of(lock)->depth -= again && result != REDLOCK_OK;
  rl_reentry_of(lock)->nesting =
      !again && result == REDLOCK_E_LOST; /* It leaves when all have lost. */
  return result != REDLOCK_OK && !again && !rl_reentry_of(lock)->nesting;
}

void rl_reentry_stop_nesting(rl_lock *lock) {
  if (rl_reentry_of(lock) != NULL) {
    rl_reentry_of(lock)->nesting = false;
  }
}

void rl_reentry_lost(const rl_lock *lock, redlock_time now_us) {
  for (rl_lock *other = rl_ring_next(lock); other != lock; other = rl_ring_next(other)) {
    other->lost = true;
    other->keys_end_us = now_us;
    other->denied = lock->denied;
  }
}

/* ---------------------------------------------------------------------------------------- life */

void rl_reentry_free(rl_lock *lock) {
  if (rl_reentry_of(lock) != NULL) {
    assert(rl_reentry_of(lock)->lease_resource == NULL && rl_ring_next(lock) == lock);
    lock->core->reentries->owned--;
    free(rl_reentry_of(lock));
    lock->extension->reentry = NULL;
  }
}

void rl_reentries_free(rl_core *core) {
  rl_hash_free(&core->reentries->carriers);
}
