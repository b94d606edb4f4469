/*
 * Fencing tokens: numbers that only grow, one for each grant of a lock.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef RL_FENCE_H
#define RL_FENCE_H

#include "lock/rl_lock.h"
#include "node/rl_node.h"

/*
 * A token counts tenths of a millisecond: 14 digits until the year 2286, as many as LuaJIT and Lua
 * 5.1 print.
 */
#define RL_FENCE_TICK_US 100
#define RL_FENCE_MAX RL_NUMBER_MAX

/* The fencing token of a lock, and its state in an attempt. */
typedef struct rl_fence {
  uint64_t token;     /* of the lease */
  uint64_t last;      /* the greatest that nodes have reported to this lock */
  uint64_t proposed;  /* p of this attempt */
  uint64_t highest;   /* m of this attempt */
  uint32_t granted;   /* nodes that have raised their counters in this attempt */
  uint32_t confirmed; /* nodes that confirm m */
  uint32_t asked;     /* nodes with an outstanding CONFIRM */
  uint32_t refused;   /* nodes that will not confirm m */
  bool settled;       /* a majority has granted: m no longer grows */
} rl_fence;

/* Returns the state of the lock, or NULL. */
static inline rl_fence *rl_fence_of(const rl_lock *lock) {
  return lock->extension == NULL ? NULL : lock->extension->fence;
}

/* Returns true if the operation and the lease of the lock have a fencing token. */
static inline bool rl_fence_is_on(const rl_lock *lock) {
  return lock->current->fence == REDLOCK_YES;
}

/*
 * Makes room for what |options| ask for, until the lock is freed. Returns false when out of memory.
 */
bool rl_fence_reserve(rl_lock *lock, const rl_options *options);
void rl_fence_free(rl_lock *lock);

/* Returns the token of the lock's lease; 0 if it has none. */
uint64_t rl_fence_token(const rl_lock *lock);

/* FEN-6. Notes the token of a lease that comes from another lock or process. */
void rl_fence_adopt(rl_lock *lock, uint64_t token);

/* FEN-1. Begins an attempt: chooses its proposal. */
void rl_fence_begin(rl_lock *lock, redlock_time now_us);

/*
 * FEN-2. Notes that |node| has granted its vote to |command|, with |value| in its counters. Call it
 *        before the vote counts.
 */
void rl_fence_note_grant(rl_lock *lock, const rl_node *node, const rl_outstanding *command,
                         uint64_t value);

/*
 * FEN-3, FEN-4. A majority has granted: asks nodes with a smaller counter to confirm. Returns
 *               MAJORITY if a majority has confirmed, UNAVAILABLE if none can, otherwise NONE.
 */
rl_decision rl_fence_decide(rl_lock *lock, redlock_time now_us);

/* FEN-3. CONFIRM was answered, or never will be because of |error|: notes it, and decides. */
void rl_fence_answered(rl_lock *lock, redlock_time now_us, const rl_node *node,
                       const rl_outstanding *command, redlock_vote vote, const char *error);

/* FEN-3. Sends CONFIRM by the text of its script. Returns true if it was sent. */
bool rl_fence_send_text(rl_node *node, redlock_time now_us, const rl_outstanding *command);

/* FEN-4. The round has ended: outstanding confirmations fail, with the reason |missed|. */
void rl_fence_time_out(rl_lock *lock, const char *missed);

/* FEN-4. The lock is granted: m becomes its token. */
void rl_fence_granted(rl_lock *lock);

/*
 * Queue the SET of an acquire, a backfill or a heal, or an extend, with the token if there is one.
 * Return false when out of memory.
 */
bool rl_fence_queue_set(const rl_lock *lock, redlock_time now_us, rl_node *node,
                        rl_outstanding_kind kind, rl_attempt *attempt, uint64_t key_ms);
bool rl_fence_queue_extend(const rl_lock *lock, redlock_time now_us, rl_node *node, bool by_text,
                           uint64_t key_ms);

#endif
