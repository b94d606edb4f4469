/*
 * The report: what the user sees of his last operation on a lock.
 *
 * SPDX-License-Identifier: MIT
 *
 * An automatic extend uses the lock's round and its votes. What the user's last operation ended with
 * is kept apart meanwhile, until he begins another.
 */
#ifndef RL_RESULT_H
#define RL_RESULT_H

#include "lock/rl_lock.h"

typedef struct rl_result {
  const char *refused;
  redlock_duration ttl_us;
  redlock_time round_start_us;
  uint32_t took_us;
  uint32_t denied;
  rl_quorum quorum;
  int8_t result;
  uint8_t operation;
} rl_result;

/* The loss of a lease, which is to be told (rl_loss.h). */
typedef struct rl_loss {
  rl_list queue;
  rl_lock *lock;
  redlock_time since_us;
} rl_loss;

/* What a lock has besides when its leases keep themselves, or their loss is to be told. */
typedef struct rl_renewal {
  redlock_time hold_until_us; /* no automatic extend goes beyond: max_hold */
  rl_loss loss;
  rl_result report;    /* the user's last operation, while lock->automatic */
  rl_reason **reasons; /* that go with it */
  rl_vote votes[];
} rl_renewal;

/* Returns true if |options| ask for it. */
static inline bool rl_renewal_is_asked(const rl_options *options) {
  return options->auto_extend == REDLOCK_YES || options->notify_lost == REDLOCK_YES;
}

/* Returns true if the loss of the lock's lease is to be told. */
static inline bool rl_renewal_reports(const rl_lock *lock) {
  return lock->renewal != NULL && rl_renewal_is_asked(lock->current);
}

/* Returns true if the leases of the lock keep themselves. */
static inline bool rl_renewal_is_on(const rl_lock *lock) {
  return lock->renewal != NULL && lock->current->auto_extend == REDLOCK_YES;
}

/* R4 of rl_renew.c. Returns true if the keys live as long as max_hold lets them. */
bool rl_renewal_is_capped(const rl_lock *lock);

/* What is to be shown, the votes that go with it, and their reasons. */
rl_result rl_result_of(const rl_lock *lock);
const rl_vote *rl_result_votes(const rl_lock *lock);
rl_reason *const *rl_result_reasons(const rl_lock *lock);

/* What it ended with is |result| after all; it was the refusal of |operation|, for |refused| or NULL. */
void rl_result_end(rl_lock *lock, int result);
void rl_result_denied(rl_lock *lock);
void rl_result_refuse(rl_lock *lock, rl_operation operation, int result, const char *refused);

/* An automatic extend is about to begin: keeps the report, unless that has been done. */
void rl_result_keep(rl_lock *lock);

/* The user begins an operation: it is the lock's own from here on. */
void rl_result_drop(rl_lock *lock);

/* Returns REDLOCK_PENDING, or the result of the user's last operation. */
int rl_lock_result(const rl_lock *lock);

#endif
