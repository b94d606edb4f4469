/*
 * Minimum hold: a release before |hold_at_least| is over keeps the keys until then.
 *
 * SPDX-License-Identifier: MIT
 *
 *   HLD-1. A grant sets the end of the keys (rl_options_hold_us()): the time of the grant, and
 *          hold_at_least, its drift and lock_delay. The grant comes after the start of its round,
 *          so the keys never end too early. A failed acquire sets nothing, and deletes its keys.
 *   HLD-2. Before that time the release sends HOLD in place of compare-and-delete (REL-2), with the
 *          rest of the time. It lengthens a key that would end earlier, and shortens one that would
 *          end later. Each repetition computes the rest anew. After that time it deletes the key.
 *   HLD-3. For the lock the lease ends as with any release. The release succeeds if a majority
 *          keeps the key. It is unavailable while missing answers could still make a majority.
 *          Otherwise the lock is lost.
 *          HOLD dequeues the ticket of the lease, and notifies the first tickets of the queues:
 *          their attempts fail, and ENQUEUE then reports when the key will end.
 *   HLD-4. A node may read an extend, a SET or a HOLD of an ended connection after the last HOLD,
 *          and keep the key longer. A node that executes HOLD late also keeps the key longer,
 *          because the rest begins then. If the client still exists when the hold ends, it deletes
 *          the key on such a node.
 *   HLD-5. A nested acquire may move the end of the keys, but not to an earlier time. The last
 *          release of the owner keeps the keys. A lease that is handed over takes its time
 *          along (ATT-9).
 *
 * Copies of HLD-1: option.hold() in lua/redlock/fake_option.lua. Copies of HLD-2:
 * csrc/test/sim/sim_hold.c.
 */
#ifndef RL_HOLD_H
#define RL_HOLD_H

#include "lock/rl_lock.h"

/* If a HOLD is answered later than this, the client deletes the key at the end (HLD-4). */
#define RL_HOLD_LATE_US (500 * REDLOCK_MILLISECONDS)

/* HLD-1. Sets the end of the hold of a granted lease; |handed_us| of an attached one, or 0. */
void rl_hold_granted(rl_lock *lock, redlock_time now_us, redlock_duration handed_us);

/* HLD-5. Moves the end of the hold: a nested acquire asks for |hold_us| (rl_options_hold_us()). */
void rl_hold_nested(rl_attempt *lease, redlock_time now_us, redlock_duration hold_us);

/* HLD-1. Drops the hold: the acquire of the lease has failed, although nodes granted it. */
void rl_hold_forget(rl_attempt *lease);

/* HLD-3. Notes if the node |bit|, which has answered a release, has the key. */
void rl_hold_answered(rl_attempt *attempt, uint32_t bit, bool granted);

/*
 * HLD-3. Returns true if the node |bit| should keep the key, but its answer shows that it lacks it.
 */
bool rl_hold_is_broken(const rl_attempt *attempt, redlock_time now_us, uint32_t bit);

/*
 * HLD-4. Notes that the node |bit| may execute a command of |attempt| late: its connection ended.
 */
void rl_hold_unanswered(rl_attempt *attempt, uint32_t bit);

/*
 * HLD-4. The node |bit| has answered the release |command|: notes if it may keep the key for too
 *        long. Returns true if the release must be repeated at the end of the hold.
 */
bool rl_hold_note_late(rl_attempt *attempt, redlock_time now_us, uint32_t bit,
                       const rl_outstanding *command);

#endif
