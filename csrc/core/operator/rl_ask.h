/*
 * Asking: an operation that asks every node once about a lock that the client does not hold.
 *
 * SPDX-License-Identifier: MIT
 *
 * A new operation of this kind is a row in rl_operation.h, and a file beside this one with its
 * steps (rl_steps.h). CONTRIBUTING.md names the files beyond the core.
 *   ASK-1. A held lock refuses these operations (HELD), because its round belongs to the lease.
 *   ASK-2. A lock on several resources refuses them, too, because each resource has its own answer.
 *   ASK-3. The operation waits for all nodes, until the round's deadline.
 */
#ifndef RL_ASK_H
#define RL_ASK_H

#include "lock/rl_lock.h"
#include "lock/rl_steps.h"

/*
 * Begins |operation|. |question| may be NULL. |notify| puts the lock in the queue of ended
 * operations at the end. Errors: INVALID, BUSY, CLOSED, HELD, NO_MEMORY.
 */
int rl_lock_ask(rl_lock *lock, redlock_time now_us, rl_operation operation,
                const rl_question *question, bool notify);

/*
 * Returns the answers to the lock's last |operation|, which live as long as the lock; NULL if none.
 */
void *rl_ask_answers(const rl_lock *lock, rl_operation operation);

/* -- for the operations -- */

/* Returns the outstanding command that step |step| of the lock's operation sends at |now_us|. */
rl_outstanding rl_ask_command(const rl_lock *lock, redlock_time now_us, unsigned step);

/* Queues |arguments| as step |step|. Returns NULL, or why they were not queued. */
const char *rl_ask_send(const rl_lock *lock, redlock_time now_us, rl_node *node, unsigned step,
                        const rl_command_bytes *arguments, unsigned count);

/* Returns true if |command| belongs to the round in flight of its lock. */
bool rl_ask_awaits(const rl_outstanding *command);

/* ASK-3. Returns true if each node has a vote, or will have none. */
bool rl_ask_is_answered(const rl_lock *lock);

/* Ends the operation. */
void rl_ask_end(rl_lock *lock, redlock_time now_us, int result);

/* ASK-3. The step |decide| of an operation that succeeds if a majority has answered. */
void rl_ask_decide(rl_lock *lock, redlock_time now_us);

#endif
