/*
 * The knowledge of a client of the slots of its semaphores (SEM-1 of rl_semaphore.c).
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef RL_SLOTS_H
#define RL_SLOTS_H

#include <stdbool.h>

#include "lock/rl_lock.h"

#define RL_SLOTS_KNOWN 64
typedef struct rl_slots {
  struct {
    uint32_t hash; /* of the semaphore's key */
    uint16_t slot; /* that this client has released last; 0: none, or it is in use */
    redlock_time mostly_taken_until_us; /* more than half of its slots were taken */
  } at[RL_SLOTS_KNOWN];
} rl_slots;

/* Makes room for what the client will know. Returns false when out of memory. */
bool rl_slots_reserve(rl_core *core);
void rl_slots_forget(rl_core *core);

/* Notes that this client has released the slot of |lease|. */
void rl_slots_released(rl_core *core, const rl_attempt *lease);

/* Returns the slot that this client has released last, and forgets it; 0 if there is none. */
unsigned rl_slots_take(const rl_lock *lock);

/* Returns true if more than half of the slots were taken a moment ago. */
bool rl_slots_mostly_taken(const rl_lock *lock, redlock_time now_us);

/* Notes until when more than half of the slots count as taken; 0: they are free. */
void rl_slots_note_taken(const rl_lock *lock, redlock_time until_us);

#endif
