/*
 * The result of the last operation of the caller on a lock.
 *
 * SPDX-License-Identifier: MIT
 *
 * An automatic extend uses the round and the votes of the lock. A copy keeps the result of the
 * caller's last operation until the caller begins another one. The copy is in rl_renewal, the state
 * for rl_renew.c and rl_loss.c.
 */
#ifndef RL_RESULT_H
#define RL_RESULT_H

#include "lock/rl_lock.h"

typedef struct rl_result {
  const char *refused;
  redlock_duration ttl_us;
  redlock_time round_start_us;
  uint32_t took_us;
  uint32_t deniers;
  rl_quorum quorum;
  int8_t result;
  uint8_t operation;
} rl_result;

/* An unreported loss of a lease (rl_loss.h). */
typedef struct rl_loss {
  rl_list queue;
  rl_lock *lock;
  redlock_time since_us;
} rl_loss;

/* State of a lock whose leases are auto-extended, or whose loss is reported. */
typedef struct rl_renewal {
  redlock_time max_hold_ends_us; /* automatic extends do not go beyond */
  rl_loss loss;
  rl_result result;    /* of the last operation, while lock->automatic */
  rl_reason **reasons; /* of that operation */
  rl_vote votes[];
} rl_renewal;

/* Returns true if |options| need an rl_renewal. */
static inline bool rl_renewal_is_asked(const rl_options *options) {
  return options->auto_extend == REDLOCK_YES || options->notify_lost == REDLOCK_YES;
}

/* Returns true if a loss of the lease is reported. */
static inline bool rl_renewal_reports(const rl_lock *lock) {
  return lock->renewal != NULL && rl_renewal_is_asked(lock->current);
}

/* Returns true if the leases of the lock are auto-extended. */
static inline bool rl_renewal_is_on(const rl_lock *lock) {
  return lock->renewal != NULL && lock->current->auto_extend == REDLOCK_YES;
}

/* Returns true if the keys live as long as max_hold allows (rl_renew.c). */
bool rl_renewal_is_capped(const rl_lock *lock);

/* Returns the result of the last operation of the caller. */
static inline rl_result rl_result_of(const rl_lock *lock) {
  if (lock->automatic) {
    return lock->renewal->result;
  }
  const char *refused = lock->has_refused ? lock->refused : NULL;
  rl_result result = {refused,       lock->ttl_us, lock->round_start_us, lock->round_took_us,
                      lock->deniers, lock->quorum, lock->result,         (uint8_t)lock->operation};
  return result;
}

/* Return the votes of that operation, and their reasons. */
const rl_vote *rl_result_votes(const rl_lock *lock);
rl_reason *const *rl_result_reasons(const rl_lock *lock);

/*
 * Change the result of the last operation: to |result|; to the nodes that now deny the lock; to a
 * refusal of |operation|, for |refused| or NULL.
 */
void rl_result_replace(rl_lock *lock, int result);
void rl_result_note_deniers(rl_lock *lock);
void rl_result_refuse(rl_lock *lock, rl_operation operation, int result, const char *refused);

/*
 * Keeps the result apart, because an automatic extend begins. Does nothing if it is apart already.
 */
void rl_result_keep_apart(rl_lock *lock);

/* Drops a result that is kept apart: the caller begins an operation. */
void rl_result_drop(rl_lock *lock);

/* Returns REDLOCK_PENDING, or the result of the last operation of the caller. */
int rl_lock_result(const rl_lock *lock);

#endif
