/*
 * Semaphores: locks with several permits, each of which is a slot with a lock of its own.
 *
 * SPDX-License-Identifier: MIT
 *
 * A semaphore of K permits has the slots name/1 to name/K. Each slot is a lock: a holder has the
 * majority of the nodes for one slot, with a token of its own. The nodes count nothing: three nodes
 * that each admitted two holders would give three clients a majority.
 *   SEM-1. An attempt tries one slot by ACQ-1 to ACQ-5: the one that this client has released last,
 *          otherwise a random one. If more than half of the slots were taken a moment ago, the
 *          acquire begins with SEM-2 instead: a random slot would probably be taken.
 *   SEM-2. If the slot is taken, ask the nodes which slots have a key. The question changes
 *          nothing. Its attempt has no key, so it needs no release.
 *   SEM-3. If a slot is free on as many nodes as an acquire needs, try one of these slots, a random
 *          one. Decide as soon as the answers suffice. If no slot can be free on enough nodes, the
 *          semaphore is taken. The acquire pauses (ACQ-5). The acquire also pauses after
 *          RL_SEMAPHORE_TRIES slots. A waiter enters the wait list then (WAIT-1). When a node
 *          notifies it of a slot, it tries that slot; otherwise its attempts begin with SEM-2.
 *   SEM-4. The token names the number of permits that its client uses. If the token of a slot names
 *          another number, the answer of SEM-2 has that number: the clients disagree.
 * The answers of SEM-2 may be late or wrong. They only choose a slot. Safety rests on the attempts.
 */
#include "lease/rl_semaphore.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "lease/rl_attach.h"
#include "lease/rl_slots.h"
#include "lock/rl_outbox.h"
#include "lock/rl_ring.h"
#include "lock/rl_round.h"
#include "node/rl_link_queue.h"
#include "wait/rl_notify.h"

#define RL_SEMAPHORE_TRIES 4                         /* slots between two pauses (SEM-3) */
#define RL_SEMAPHORE_MOSTLY_TAKEN_US REDLOCK_SECONDS /* how long SEM-2 comes first */

/* ------------------------------------------------------------------------------------ the lock */

const char *rl_semaphore_wrong_count(const rl_options *options, size_t count) {
  return options->permits > 0 && count > 1
             ? "permits: a lock with several resources is no semaphore; make a lock with permits for "
               "each resource"
             : NULL;
}

const char *rl_semaphore_wrong(const rl_lock *lock, const rl_options *options, bool custom) {
  if (options->permits <= 0) {
    return NULL;
  }
  return lock->resource->count > 1 ? rl_semaphore_wrong_count(options, lock->resource->count)
         : custom                  ? "permits: an acquire of a semaphore supplies no token"
         : lock->resource->key_length + RL_RESOURCE_SUFFIX_MAX > REDLOCK_KEY_MAX
             ? "permits: prefix, resource and the number of a slot together are longer than 4096 "
               "bytes"
             : NULL;
}

/* An acquire begins. */
static void rl_semaphore_begin(rl_semaphore *semaphore) {
  semaphore->next = semaphore->other = 0;
  semaphore->tries = 0;
  semaphore->asks = semaphore->full = false;
}

bool rl_semaphore_reserve(rl_lock *lock, const rl_options *options) {
  if (options->permits <= 0) {
    return true;
  }
  if (!rl_slots_reserve(lock->core) || !rl_lock_reserve_extension(lock)) {
    return false;
  }
  rl_semaphore *semaphore = lock->extension->semaphore;
  if (semaphore != NULL && semaphore->count >= options->permits) {
    rl_semaphore_begin(semaphore);
    return true;
  }
  rl_semaphore *larger = realloc(semaphore, sizeof *semaphore + (size_t)options->permits);
  if (larger == NULL) {
    return false;
  }
  if (semaphore == NULL) {
    memset(larger, 0, sizeof *larger);
  }
  larger->count = (uint16_t)options->permits;
  lock->extension->semaphore = larger;
  rl_semaphore_begin(larger);
  return true;
}

void rl_semaphore_free(rl_lock *lock) {
  rl_semaphore *semaphore = lock->extension != NULL ? lock->extension->semaphore : NULL;
  if (semaphore != NULL && semaphore->slot != NULL) {
    rl_resource_unref(semaphore->slot);
  }
  free(semaphore);
}

unsigned rl_semaphore_slot(const rl_lock *lock, redlock_time now_us) {
  const rl_lock *owner = rl_ring_owner(lock);
  return rl_lock_remaining(owner, now_us) > 0 ? rl_resource_slot(owner->lease->resource) : 0;
}

unsigned rl_semaphore_other(const rl_lock *lock) {
  const rl_semaphore *semaphore = rl_semaphore_of(lock);
  return semaphore == NULL ? 0 : semaphore->other;
}

/* ---------------------------------------------------------------------------------------- SEM-1 */

void rl_semaphore_plan(rl_lock *lock, redlock_time now_us) {
  rl_semaphore *semaphore = rl_semaphore_of(lock);
  if (semaphore == NULL || semaphore->tries > 0 || semaphore->next != 0 || semaphore->asks) {
    return;
  }
  semaphore->next = (uint16_t)rl_notify_slot(lock->core, lock->waitlist);
  bool asks = lock->result == REDLOCK_E_TAKEN || rl_slots_mostly_taken(lock, now_us);
  semaphore->asks =
      semaphore->next == 0 && rl_lock_attach(lock) == NULL && lock->current->permits > 1 && asks;
}

/* Makes |number| the slot that is tried. Returns false when out of memory. */
static bool rl_semaphore_set_slot(const rl_lock *lock, rl_semaphore *semaphore, unsigned number) {
  if (semaphore->slot != NULL && rl_resource_slot(semaphore->slot) == number) {
    return true;
  }
  rl_resource *slot = rl_resource_new_slot(lock->resource, number);
  if (slot != NULL && semaphore->slot != NULL) {
    rl_resource_unref(semaphore->slot);
  }
  semaphore->slot = slot != NULL ? slot : semaphore->slot;
  return slot != NULL;
}

static unsigned rl_semaphore_next(rl_lock *lock, rl_semaphore *semaphore) {
  const rl_attach *attach = rl_lock_attach(lock);
  if (attach != NULL) {
    return rl_resource_slot(attach->handed->resource);
  }
  unsigned number = semaphore->next != 0 ? semaphore->next : rl_slots_take(lock);
  semaphore->next = 0;
  return number != 0 ? number : 1 + (unsigned)(lock->random % (unsigned)lock->current->permits);
}

rl_attempt *rl_semaphore_attempt(rl_lock *lock, const unsigned char *entropy) {
  rl_semaphore *semaphore = rl_semaphore_of(lock);
  if (semaphore->asks) {
    memset(semaphore->free, 0, (size_t)lock->current->permits);
    return rl_attempt_new(&lock->core->attempts, lock->resource, lock, entropy, 0, NULL);
  }
  semaphore->tries++;
  return rl_semaphore_set_slot(lock, semaphore, rl_semaphore_next(lock, semaphore))
             ? rl_attempt_new(&lock->core->attempts, semaphore->slot, lock, entropy,
                              (unsigned)lock->current->permits, &lock->current->label)
             : NULL;
}

/* ---------------------------------------------------------------------------------------- SEM-2 */

/* Begins the next round of the acquire at once: the question, or an attempt. */
static void rl_semaphore_next_round(rl_lock *lock, redlock_time now_us) {
  rl_round_await_none(lock);
  rl_lock_set_result(lock, REDLOCK_E_TAKEN);
  rl_outbox_enter(lock, now_us);
}

bool rl_semaphore_begin_question(rl_lock *lock, redlock_time now_us) {
  rl_semaphore *semaphore = rl_semaphore_of(lock);
  if (semaphore == NULL || rl_lock_attach(lock) != NULL || lock->current->permits < 2 ||
      semaphore->asks || semaphore->tries >= RL_SEMAPHORE_TRIES) {
    return false;
  }
  semaphore->asks = true;
  rl_semaphore_next_round(lock, now_us);
  return true;
}

const char *rl_semaphore_send(const rl_lock *lock, redlock_time now_us, rl_node *node) {
  return rl_link_queue_slots(&node->link, now_us, lock->attempt, lock->round, false,
                             (unsigned)lock->current->permits)
             ? NULL
             : "out of memory";
}

bool rl_semaphore_send_again(rl_node *node, redlock_time now_us, const rl_outstanding *command) {
  const rl_lock *lock = command->attempt->lock;
  return lock != NULL && lock->phase == RL_PHASE_ROUND && lock->attempt == command->attempt &&
         now_us < lock->round_deadline_us &&
         rl_link_queue_slots(&node->link, now_us, command->attempt, command->round, true,
                             (unsigned)lock->current->permits);
}

/* Returns the value of a hexadecimal digit; 16 if it is none. */
static unsigned rl_semaphore_digit(char digit) {
  return digit >= '0' && digit <= '9'   ? (unsigned)(digit - '0')
         : digit >= 'a' && digit <= 'f' ? (unsigned)(digit - 'a' + 10)
                                        : 16;
}

/*
 * Returns how many digits an answer has: one for four slots. Returns 0 if it is no answer. |*other|
 * receives the number of permits behind the digits, or 0.
 */
static size_t rl_semaphore_digits(const char *bytes, size_t length, unsigned *other) {
  size_t digits = 0;
  *other = 0;
  while (digits < length && rl_semaphore_digit(bytes[digits]) <= 15) {
    digits++;
  }
  for (size_t i = digits + 1; i < length; i++) {
    if (bytes[i] < '0' || bytes[i] > '9' || *other > REDLOCK_PERMITS_MAX) {
      return 0;
    }
    *other = *other * 10 + (unsigned)(bytes[i] - '0');
  }
  return digits == length || bytes[digits] == ' ' ? digits : 0;
}

/* Counts the free slots of an answer, which has a bit for each slot that exists. */
static bool rl_semaphore_read(rl_semaphore *semaphore, unsigned count, const char *bytes,
                              size_t length) {
  unsigned other;
  if (rl_semaphore_digits(bytes, length, &other) != (count + 3) / 4) {
    return false;
  }
  for (unsigned slot = 0; slot < count; slot++) {
    bool is_free = (rl_semaphore_digit(bytes[slot / 4]) >> (3 - slot % 4) & 1) == 0;
    semaphore->free[slot] = (uint8_t)(semaphore->free[slot] + is_free);
  }
  semaphore->other = other > 0 && other <= REDLOCK_PERMITS_MAX ? (uint16_t)other : semaphore->other;
  return true;
}

void rl_semaphore_note(rl_answer *answer) {
  rl_lock *lock = answer->command->attempt->lock;
  const rl_reply *reply = &answer->node->link.reader.reply;
  unsigned other;
  if (reply->type == RL_REPLY_ERROR) {
    return;
  }
  answer->verdict.vote = REDLOCK_VOTE_TAKEN;
  if (reply->type != RL_REPLY_STRING ||
      rl_semaphore_digits(reply->bytes, reply->length, &other) == 0) {
    answer->verdict = rl_verdict_unreadable();
    return;
  }
  if (lock == NULL || lock->phase != RL_PHASE_ROUND || lock->attempt != answer->command->attempt ||
      lock->round != answer->command->round || lock->votes[answer->node->index].settled) {
    return;
  }
  if (!rl_semaphore_read(rl_semaphore_of(lock), (unsigned)lock->current->permits, reply->bytes,
                         reply->length)) {
    answer->verdict = rl_verdict_unreadable();
  }
}

/* ---------------------------------------------------------------------------------------- SEM-3 */

/* Returns the number of slots that are free on |needed| nodes; |*most| receives the most nodes. */
static unsigned rl_semaphore_count(const rl_semaphore *semaphore, unsigned count, unsigned needed,
                                   unsigned *most) {
  unsigned found = 0;
  *most = 0;
  for (unsigned slot = 0; slot < count; slot++) {
    found += semaphore->free[slot] >= needed;
    *most = semaphore->free[slot] > *most ? semaphore->free[slot] : *most;
  }
  return found;
}

/* Returns one of |found| slots that are free on |needed| nodes. */
static unsigned rl_semaphore_pick(const rl_semaphore *semaphore, unsigned needed, uint64_t pick) {
  for (unsigned slot = 0;; slot++) {
    if (semaphore->free[slot] >= needed && pick-- == 0) {
      return slot + 1;
    }
  }
}

bool rl_semaphore_decide(rl_lock *lock, redlock_time now_us) {
  rl_semaphore *semaphore = rl_semaphore_of(lock);
  unsigned count = (unsigned)lock->current->permits;
  unsigned needed = rl_core_quorum(lock->core, RL_OPERATION_ACQUIRE);
  const rl_quorum *quorum = &lock->quorum;
  unsigned open = (unsigned)(quorum->nodes - quorum->granted - quorum->denied - quorum->failed);
  unsigned most;
  unsigned found = rl_semaphore_count(semaphore, count, needed, &most);
  if (found == 0 && most + open >= needed && open > 0) {
    return true;
  }
  semaphore->full = found == 0 && quorum->denied >= needed;
  if (found == 0) {
    return false;
  }
  rl_slots_note_taken(
      lock, found < (count + 1) / 2 ? rl_time_add(now_us, RL_SEMAPHORE_MOSTLY_TAKEN_US) : 0);
  rl_attempt *question = lock->attempt;
  lock->attempt = NULL;
  question->lock = NULL;
  rl_attempt_unref(&lock->core->attempts, question);
  semaphore->next = (uint16_t)rl_semaphore_pick(semaphore, needed, lock->random % found);
  semaphore->asks = false;
  rl_semaphore_next_round(lock, now_us);
  return true;
}

void rl_semaphore_end_question(rl_lock *lock) {
  rl_semaphore *semaphore = rl_semaphore_of(lock);
  semaphore->asks = false;
  semaphore->tries = 0;
}
