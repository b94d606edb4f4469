/*
 * Handing a lease over: one process detaches it, another attaches it.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef RL_ATTACH_H
#define RL_ATTACH_H

#include "lock/rl_lock.h"
#include "node/rl_node.h"
#include "wire/rl_handover.h"

/* The lease that the next acquire of a lock attaches. */
typedef struct rl_attach {
  rl_attempt *handed;       /* a reference: the token to replace; only ATT-8 releases it */
  uint32_t may_set;         /* nodes that may still execute a SET of the handed token (ATT-2) */
  uint64_t key_ms;          /* longest time to live of its keys */
  uint64_t fence;           /* the fencing token of the lease; 0 if none */
  redlock_duration hold_us; /* rest of hold_at_least when it was detached; 0: none */
  bool replaces_hold;       /* the acquire has a hold_at_least of its own */
  redlock_duration left_us; /* life of its keys then, at least */
  uint64_t left_ms;         /* longest life of its keys when nodes replaced the token */
  uint64_t floor_ms;        /* at most this time to live: the key belongs to no lease (ATT-6) */
} rl_attach;

/*
 * Sets |options| to the fencing token |fence| of the lease: a lease keeps the token that it was
 * granted with, and gets none later. Returns NULL, or why the options ask for more, as a static
 * sentence.
 */
const char *rl_attach_fit_fence(rl_options *options, uint64_t fence);

/*
 * Returns how many permits the semaphore of the lease has, and its slot in |*slot| and the length
 * of its name in |*base_length|. Returns 0 if the lease is that of a lock.
 */
unsigned rl_attach_permits(const rl_handover *handover, unsigned *slot, size_t *base_length);

/*
 * Fits the options |current| of the acquire to the lease. The caller's |options| may be NULL; with
 * hold_at_least_us they replace that of the lease. Returns NULL, or why they do not fit.
 */
const char *rl_attach_fit(rl_lock *lock, rl_options *current, const redlock_options *options);

/*
 * Makes the next acquire of the lock attach the lease. Returns REDLOCK_OK or REDLOCK_E_NO_MEMORY.
 */
int rl_attach_set(rl_lock *lock, const rl_handover *handover);

/* ATT-9. A node has replaced the token of a key that had |left_ms| to live. */
void rl_attach_note(rl_lock *lock, const rl_outstanding *command, uint64_t left_ms);

/*
 * ATT-9. Returns for how long from now on a release must keep the keys of the lease. |attach| may
 *        be NULL.
 */
redlock_duration rl_attach_hold_us(const rl_attach *attach);

/* ATT-8. The lock has its lease. */
void rl_attach_succeeded(rl_lock *lock, redlock_time now_us);

/* Drops the lease to attach: it was tried, or the lock is freed, or the process has forked. */
void rl_attach_forget(rl_lock *lock);

#endif
