/*
 * Semaphores: locks with several permits, each of which is a slot with a lock of its own.
 *
 * SPDX-License-Identifier: MIT
 *
 * rl_semaphore.c has the rules.
 */
#ifndef RL_SEMAPHORE_H
#define RL_SEMAPHORE_H

#include "lock/rl_lock.h"
#include "lock/rl_steps.h"

/* State of a lock with permits. */
typedef struct rl_semaphore {
  rl_resource *slot; /* a reference: the slot that was tried last, or NULL */
  uint16_t count;    /* permits of |free| */
  uint16_t next;     /* slot that the next attempt tries; 0: none is known */
  uint16_t other;    /* another number of permits that a node has reported, or 0 */
  uint8_t tries;     /* slots that were tried since the last pause */
  bool asks;         /* the next round, or the one in flight, asks which slots are free (SEM-2) */
  bool full;         /* the last question has found no free slot */
  uint8_t free[];    /* by slot: number of nodes that have reported it free in that round */
} rl_semaphore;

/*
 * Returns why a lock on |count| resources cannot have the options, as a static sentence, or NULL.
 */
const char *rl_semaphore_wrong_count(const rl_options *options, size_t count);

/* Returns why an acquire with |options| is refused, as a static sentence, or NULL. */
const char *rl_semaphore_wrong(const rl_lock *lock, const rl_options *options, bool custom);

/* Makes room for an acquire with |options|. Returns false when out of memory. */
bool rl_semaphore_reserve(rl_lock *lock, const rl_options *options);
void rl_semaphore_free(rl_lock *lock);

/* Returns the state of a lock whose last acquire had permits, or NULL. */
static inline rl_semaphore *rl_semaphore_of(const rl_lock *lock) {
  return lock->current->permits > 0 && lock->extension != NULL ? lock->extension->semaphore : NULL;
}

/* Returns true if the round in flight asks which slots are free. */
static inline bool rl_semaphore_asks(const rl_lock *lock) {
  const rl_semaphore *semaphore = rl_semaphore_of(lock);
  return semaphore != NULL && semaphore->asks;
}

/* Returns the number of the slot that the lock has or shares; 0 if it is not held. */
unsigned rl_semaphore_slot(const rl_lock *lock, redlock_time now_us);

/*
 * Returns another number of permits that a node has reported in the last acquire; 0 if there is
 * none.
 */
unsigned rl_semaphore_other(const rl_lock *lock);

/* SEM-1. Decides if the next round asks. An acquire begins, or goes on. */
void rl_semaphore_plan(rl_lock *lock, redlock_time now_us);

/* SEM-1. Returns an attempt for the next round, or NULL if out of memory. */
rl_attempt *rl_semaphore_attempt(rl_lock *lock, const unsigned char *entropy);

/* SEM-2. Sends the question. Returns NULL, or why it was not sent. */
const char *rl_semaphore_send(const rl_lock *lock, redlock_time now_us, rl_node *node);
bool rl_semaphore_send_again(rl_node *node, redlock_time now_us, const rl_outstanding *command);

/* SEM-2. Reads the answer. */
void rl_semaphore_note(rl_answer *answer);

/*
 * SEM-3. Begins an attempt for a free slot, or waits for more answers: returns true. Returns false
 *        if the votes decide the acquire.
 */
bool rl_semaphore_decide(rl_lock *lock, redlock_time now_us);

/* SEM-2. A slot was taken: begins the question, and returns true. Or returns false. */
bool rl_semaphore_begin_question(rl_lock *lock, redlock_time now_us);

/* SEM-3. The question has ended without a slot: the next attempt begins with SEM-1. */
void rl_semaphore_end_question(rl_lock *lock);

#endif
