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
 * A token counts tenths of a millisecond, so that it has 14 digits until the year 2286: as many as LuaJIT and Lua 5.1
 * write of a number. No resource is granted more often than that for long.
 */
#define RL_FENCE_TICK_US 100
#define RL_FENCE_MAX RL_NUMBER_MAX

/* What a lock has besides when its leases have fencing tokens. */
typedef struct rl_fence {
  uint64_t token;     /* of the lease */
  uint64_t last;      /* the greatest that nodes have told this lock of */
  uint64_t proposed;  /* p of this attempt */
  uint64_t highest;   /* m of this attempt: what the nodes are to confirm */
  uint32_t granted;   /* nodes that have raised their counters in this attempt */
  uint32_t confirmed; /* nodes that confirm m */
  uint32_t asked;     /* nodes that owe the answer to CONFIRM */
  uint32_t refused;   /* nodes that do not confirm m, and will not */
  bool settled;       /* m does not grow any more */
} rl_fence;

/* What the lock has for it, or NULL. */
static inline rl_fence *rl_fence_of(const rl_lock *lock) {
  return lock->extension == NULL ? NULL : lock->extension->fence;
}

/* Returns true if the lock's operation, and its lease, has a fencing token. */
static inline bool rl_fence_is_on(const rl_lock *lock) {
  return lock->current->fence == REDLOCK_YES;
}

/*
 * Makes room for what |options| ask for, if they do and the lock has none. The room is the lock's until it is
 * freed. False when out of memory.
 */
bool rl_fence_reserve(rl_lock *lock, const rl_options *options);
void rl_fence_free(rl_lock *lock);

/* The token of the lease that the lock has, which lasts; 0 when it has none. */
uint64_t rl_fence_token(const rl_lock *lock);

/* The token of a lease that comes from elsewhere: another lock of its owner, another process. */
void rl_fence_adopt(rl_lock *lock, uint64_t token);

/* F1: an attempt begins. */
void rl_fence_begin(rl_lock *lock, redlock_time now_us);

/* F2: |node| has granted its vote to |command|, and raised its counters to |value|; before the vote is told. */
void rl_fence_note(rl_lock *lock, const rl_node *node, const rl_outstanding *command,
                   uint64_t value);

/*
 * F3, F4: a majority has granted. Whether it has confirmed the token as well (MAJORITY), may yet do so (NONE), or
 * cannot any more (UNAVAILABLE).
 */
rl_decision rl_fence_decide(rl_lock *lock, redlock_time now_us);

/* F3: the answer to CONFIRM, or the certainty that none will come, for |error|. */
void rl_fence_answered(rl_lock *lock, redlock_time now_us, const rl_node *node,
                       const rl_outstanding *command, redlock_vote vote, const char *error);

/* F3: the node does not know the script: once more, by its text. Returns whether it was sent. */
bool rl_fence_send_text(rl_node *node, redlock_time now_us, const rl_outstanding *command);

/* F4: the round is over: who has not confirmed does not, for |missed|. */
void rl_fence_time_out(rl_lock *lock, const char *missed);

/* F4: the lock is granted, with the token that was confirmed. */
void rl_fence_granted(rl_lock *lock);

/*
 * The commands of |lock|, with its token if it has one: the SET of an acquire, a join or a heal; the extend. True, or
 * false when out of memory.
 */
bool rl_fence_queue_set(const rl_lock *lock, redlock_time now_us, rl_node *node,
                        rl_outstanding_kind kind, rl_attempt *attempt, uint64_t key_ms);
bool rl_fence_queue_extend(const rl_lock *lock, redlock_time now_us, rl_node *node, bool by_text,
                           uint64_t key_ms);

#endif
