/*
 * Automatic extension: the core extends a lease with auto_extend by itself.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef RL_RENEW_H
#define RL_RENEW_H

#include "lease/rl_loss.h"

#define RL_RENEW_RETRY_MIN_US (5 * REDLOCK_MILLISECONDS)  /* REN-2 */
#define RL_RENEW_EVERY_MIN_US (10 * REDLOCK_MILLISECONDS) /* REN-1 */

/*
 * Makes room for what |options| ask for, until the lock is freed. Returns false when out of memory.
 */
bool rl_renew_reserve(rl_lock *lock, const rl_options *options);
void rl_renew_free(rl_lock *lock);

/* REN-1, REN-2. An operation has ended: sets the timer of the lock. */
void rl_renew_ended(rl_lock *lock, redlock_time now_us);

/* REN-1, REN-5. The timer is due, and nothing is in flight: extends, or reports the loss. */
void rl_renew_timer(rl_lock *lock, redlock_time now_us);

/* Sets the timer: a lease has come from another lock of its owner, or another lock shares it. */
void rl_renew_schedule(rl_lock *lock, redlock_time now_us);

/*
 * REN-6. A node may have lost its keys (rl_margin_suspect()): warns the holders whose leases have
 *        too few certain keys, and extends these leases soon.
 */
void rl_renew_warn_all(rl_core *core, redlock_time now_us);

/*
 * REN-4. Shortens the ttl of an extend that the user did not ask for, so that the lease ends at
 *        |max_hold|. The lease must last, and must not be capped yet (rl_renewal_is_capped()).
 */
void rl_renew_cap(rl_lock *lock, redlock_time now_us);

/* Copies the end of the lease of |lease_owner| to |lock|. */
void rl_renew_copy_end(rl_lock *lock, const rl_lock *lease_owner);

/* REN-3. Ends the automatic extend in flight, if there is one. The lease stays as it is. */
void rl_renew_stop(rl_lock *lock, redlock_time now_us);

#endif
