/*
 * The report: what the user sees of his last operation on a lock.
 *
 * SPDX-License-Identifier: MIT
 *
 * An automatic extend uses the lock's round and its votes. What the user's last operation ended with
 * is kept apart meanwhile, until he begins another.
 */
#ifndef RL_REPORT_H
#define RL_REPORT_H

#include "rl_lock.h"

typedef struct rl_report {
  const char *refused;
  redlock_duration ttl_us;
  redlock_time round_start_us;
  uint32_t took_us;
  uint32_t denied;
  rl_quorum quorum;
  int8_t result;
  uint8_t operation;
} rl_report;

/* What is to be shown, the votes that go with it, and their reasons. */
rl_report rl_report_of(const rl_lock *lock);
const rl_vote *rl_report_votes(const rl_lock *lock);
rl_reason *const *rl_report_reasons(const rl_lock *lock);

/* What it ended with is |result| after all; it was the refusal of |operation|, for |refused| or NULL. */
void rl_report_end(rl_lock *lock, int result);
void rl_report_denied(rl_lock *lock);
void rl_report_refuse(rl_lock *lock, rl_operation operation, int result, const char *refused);

/* An automatic extend is about to begin: keeps the report, unless that has been done. */
void rl_report_keep(rl_lock *lock);

/* The user begins an operation: it is the lock's own from here on. */
void rl_report_drop(rl_lock *lock);

#endif
