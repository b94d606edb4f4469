/*
 * A lock: its lease, and the operation on it.
 *
 * SPDX-License-Identifier: MIT
 *
 * What ends, and by which function:
 *   an operation: rl_lock_end() when votes or time decide it, rl_lock_cancel() when the caller does
 *   a lease: rl_lock_lose() when nodes deny it, rl_lock_expire() when time was up before it was told
 *   both: rl_lock_close() with the client, rl_lock_free() with the lock
 * All of these release what may be left on nodes. rl_lock_forget() ends both in a forked child, and
 * sends nothing.
 */
#ifndef RL_LOCK_H
#define RL_LOCK_H

#include <stdbool.h>

#include "rl_attempt.h"
#include "rl_list.h"
#include "rl_node.h"
#include "rl_operation.h"
#include "rl_options.h"
#include "rl_quorum.h"
#include "rl_timers.h"
#include "rl_token.h"
#include "rl_vote.h"

struct rl_core;

/* What an attempt draws: its token, and a random number for the delay after it. */
#define RL_LOCK_ENTROPY (RL_TOKEN_ENTROPY + 8)

/*
 *   IDLE, LATE -> LAUNCH -> ROUND -> LATE       every operation that ends well, and automatic extends
 *                           ROUND -> IDLE       and that does not
 *                           ROUND -> DELAY -> LAUNCH   acquire, between attempts
 *                           LAUNCH -> LINE -> DELAY    acquire, behind another lock of the client
 *   and from each phase to IDLE, by cancelling.
 */
typedef enum rl_phase {
  RL_PHASE_IDLE = 0,
  RL_PHASE_LATE,   /* the operation has ended well; late answers are noted, heal and join */
  RL_PHASE_LAUNCH, /* its commands are to be sent, when the nodes have room for them */
  RL_PHASE_ROUND,  /* commands are out; votes are awaited */
  RL_PHASE_DELAY,  /* the attempt failed; the next one comes when the timer does, or a call */
  RL_PHASE_LINE    /* another lock of the client waits for the same before it (rl_line.h) */
} rl_phase;

#define RL_LOCK_WAITED_MAX 32767u /* threads in a blocking call at once */

typedef struct rl_lock rl_lock;

/* What few locks have. It is apart, so that the others pay a pointer for all of it. */
typedef struct rl_rare {
  struct rl_attach *attach;         /* the lease that the next acquire takes over; or NULL */
  rl_attempt *given;                /* a reference: the token that it is given; or NULL */
  struct rl_inspection *inspection; /* what the nodes held when it was inspected last; or NULL */
  struct rl_fence *fence;           /* the fencing tokens of its leases; or NULL */
  struct rl_doctor *doctor;         /* what the nodes told the doctor last; or NULL */
  struct rl_reentry *reentry;       /* whose it is, and who counts on it, too; or NULL */
  rl_attempt *lent_lease;           /* a reference: whose token was lent to the caller; or NULL */
  char *lent_message;               /* that was lent to the caller; or NULL */
} rl_rare;

/* More than an acquire may be told to make. */
#define RL_LOCK_ATTEMPTS_ALL ((1u << 21) - 1)

struct rl_lock {
  rl_timers_entry timer; /* the first: rl_lock_of_timer() */
  struct rl_core *core;
  void *data;               /* the caller's */
  rl_lock *previous, *next; /* among all locks of the core */
  rl_list
      queue; /* the one that it is in: of acquires to be sent, behind another, or of ended ones */
  rl_resource *resource;
  struct rl_line *line; /* in which its acquire waits; or NULL */

  /* The lease. Held while lease is not NULL and the clock is before deadline_us. */
  rl_attempt *lease;
  redlock_time deadline_us;      /* also of one that has run out, until it is given back */
  redlock_time keys_end_us;      /* the keys of the lease live until then, without lock_delay;
                                    when the lease is lost: since when */
  redlock_duration lease_ttl_us; /* what it was acquired for; the other options are |current| */
  rl_attempt *unreleased;        /* its release was not confirmed: it may be repeated */
  struct rl_renewal *renewal;    /* when it keeps itself, or its loss is to be told; or NULL */
  rl_rare *rare;                 /* or NULL */

  /* The operation in flight, or the last one. */
  const rl_options
      *current; /* of this operation, and of the lease: rl_lock_options(), or allocated */
  redlock_duration ttl_us; /* of this operation */
  rl_operation operation : 3;
  rl_phase phase : 3;
  bool notify : 1;        /* it goes to a queue of ended operations */
  bool ran_out : 1;       /* release: the lease had run out before */
  bool repeated : 1;      /* release: it was begun before, and not confirmed */
  bool unheard : 1;       /* the operation has no caller that waits or has asked for its result */
  bool extended : 1;      /* the majority has confirmed the extend of this round, in time */
  bool lost : 1;          /* the lease was lost, and the lock neither released nor acquired since */
  bool has_options : 1;   /* its own are behind the votes */
  bool renewal_apart : 1; /* |renewal| is not behind the lock, but an allocation of its own */
  bool automatic : 1;     /* it is an automatic extend; the user's last one is in |renewal| */
  bool has_refused : 1;   /* it could not begin, for what |refused| says */
  bool limited : 1;       /* acquire: retry_count limits its time, too (rl_acquire_limit()) */
  unsigned waited : 15;   /* the driver's number of the thread that waits for it; 0 for none */
  rl_quorum quorum;
  unsigned attempts_left : 21; /* RL_LOCK_ATTEMPTS_ALL: as many as the budget allows */
  int8_t result;               /* of the last operation, once it is IDLE */
  uint32_t waiting;            /* nodes that get the command when their connection is up */
  uint32_t denied;             /* extend, release: nodes that say "not yours", in time or late */
  uint32_t round;              /* replies of another round are not votes */
  uint32_t round_took_us;      /* from its start to its end; at most 71 minutes */
  uint64_t random;
  union {
    redlock_time budget_us; /* when the whole operation must have ended */
    const char *refused;    /* with |has_refused|: what of its arguments was wrong */
  };

  /* The round in flight, or the last one. */
  rl_attempt *attempt; /* the one whose commands are out */
  rl_attempt *failed;  /* the one before, when its release waits for answers */
  redlock_time round_start_us;
  redlock_time round_deadline_us;
  rl_reason **reasons; /* of the votes; NULL before the first */
  rl_vote votes[];     /* one per node */
};

/* NULL when out of memory. |options| that are the core's are shared, and must not change any more. */
rl_lock *rl_lock_new(struct rl_core *core, const void *resource, size_t length,
                     const rl_options *options);

/* The same for one to REDLOCK_RESOURCES_MAX resources, none of them twice. */
rl_lock *rl_lock_new_many(struct rl_core *core, const redlock_resource *resources, size_t count,
                          const rl_options *options);

/* The options that it was made with: its own, or the core's. */
const rl_options *rl_lock_options(const rl_lock *lock);

/*
 * Frees the lock; its token is released on every node that may hold it. Allocates nothing.
 */
void rl_lock_free(rl_lock *lock, redlock_time now_us);

/*
 * Begin an operation. The commands go out with the next rl_core_launch(). |notify| puts the lock in
 * the queue of ended operations when it has ended. Errors as redlock.h says.
 */
int rl_lock_acquire(rl_lock *lock, redlock_time now_us, const redlock_options *options,
                    bool notify);
int rl_lock_extend(rl_lock *lock, redlock_time now_us, redlock_duration ttl_us, bool notify);

/* Ends an extend in flight, whose end is not reported. */
int rl_lock_release(rl_lock *lock, redlock_time now_us, bool notify);

/*
 * A release that nobody waits for. It is launched at once, whatever the nodes owe. An acquire or an
 * extend that comes before it has ended takes its place, and it goes on without the lock; another
 * release takes it up, and is told what it ends with.
 */
int rl_lock_release_unheard(rl_lock *lock, redlock_time now_us);

/*
 * The caller of the operation in flight is gone. The operation goes on, and gives way to the next one; another
 * release takes a release up.
 */
void rl_lock_abandon(rl_lock *lock);

/* Returns true if an extend of the user's is in flight, which a release would end. */
bool rl_lock_is_extending(const rl_lock *lock);

/* The end of what is in flight is to be told by rl_core_next_ended(). */
void rl_lock_tell_end(rl_lock *lock);

/* What the nodes hold under the lock's key (rl_inspect.c); deleting it by force (rl_force.c). */
int rl_lock_inspect(rl_lock *lock, redlock_time now_us, bool notify);

/* Has all nodes examined (rl_doctor.c); |flags| are REDLOCK_DOCTOR_.... */
int rl_lock_doctor(rl_lock *lock, redlock_time now_us, unsigned flags, bool notify);

/* Tells all nodes that they may vote (rl_bootstrap.c). */
int rl_lock_bootstrap(rl_lock *lock, redlock_time now_us, bool notify);
int rl_lock_force_release(rl_lock *lock, redlock_time now_us, const void *token,
                          size_t token_length, bool notify);

/*
 * An operation that cannot begin, because an argument is wrong: |wrong| is a static sentence. Returns
 * REDLOCK_E_INVALID, which is the lock's result from now on, or REDLOCK_E_BUSY.
 */
int rl_lock_refuse_argument(rl_lock *lock, rl_operation operation, const char *wrong);

/* Ends the operation in flight with |error|; what it may have set is released. */
void rl_lock_cancel(rl_lock *lock, redlock_time now_us, int error);

/* The same for one that has only just begun, and may have ended at once: an acquire does not count then. */
void rl_lock_call_off(rl_lock *lock, redlock_time now_us, int error);

/*
 * The lease was granted or extended, but ran out before the caller could be told: it is released, and
 * the result is REDLOCK_E_EXPIRED.
 */
void rl_lock_expire(rl_lock *lock, redlock_time now_us);

/*
 * "No validity, no lock": what a caller may be told at |now_us| that the last operation has ended
 * with. Every result leaves through here. REDLOCK_OK of an acquire or an extend means that the lease
 * lasts at |now_us|; if it does not any more, it expires now, and the result is REDLOCK_E_EXPIRED, or
 * REDLOCK_E_CLOSED when the client was closed. REDLOCK_PENDING while the operation is in flight.
 */
int rl_lock_outcome(rl_lock *lock, redlock_time now_us);

/* The client is closed: ends the operation in flight with REDLOCK_E_CLOSED, releases the lease. */
void rl_lock_close(rl_lock *lock, redlock_time now_us);

/* REDLOCK_PENDING or the last result. */
int rl_lock_result(const rl_lock *lock);

/* Makes sure that lock->rare is there, until the lock is freed. False when out of memory. */
bool rl_lock_reserve_rare(rl_lock *lock);

/* The lease that its next acquire takes over, or NULL. */
static inline struct rl_attach *rl_lock_attach(const rl_lock *lock) {
  return lock->rare == NULL ? NULL : lock->rare->attach;
}

/* What is left of the lock's own lease at |now_us|; see rl_reentry_remaining(). */
redlock_duration rl_lock_remaining(const rl_lock *lock, redlock_time now_us);

/* Fills |buffer| with what the last operation ended with, "" after success. Returns |buffer|. */
const char *rl_lock_message(const rl_lock *lock, char *buffer, size_t size);

/* Whether an operation of the user's, or an automatic extend, is in flight. */
static inline bool rl_lock_is_in_flight(const rl_lock *lock) {
  return lock->phase != RL_PHASE_IDLE && lock->phase != RL_PHASE_LATE;
}

/* Whether an operation of the user's is in flight. */
static inline bool rl_lock_is_busy(const rl_lock *lock) {
  return rl_lock_is_in_flight(lock) && !lock->automatic;
}

/* -- for rl_core.c -- */

/* The lock's timer is due. */
void rl_lock_timer(rl_lock *lock, redlock_time now_us);

/* Forgets lease and operation without releasing anything (a forked child). */
void rl_lock_forget(rl_lock *lock);

/* -- for the operations -- */

/* The lease is lost: it ends, and what is left of it is released. */
void rl_lock_lose(rl_lock *lock, redlock_time now_us);

/*
 * The options of an operation are those that the lock was made with, which are referred to, or others that
 * a call has brought, which are allocated. False, and nothing has changed, when out of memory.
 */
bool rl_lock_set_options(rl_lock *lock, const rl_options *options);

/* The lease is |lease| from now on, until |deadline_us|; NULL and 0 for none. */
void rl_lock_set_lease(rl_lock *lock, rl_attempt *lease, redlock_time deadline_us);

/*
 * An operation that asks all nodes something once, of a lock that is not held: whether it may begin,
 * beginning it with an |attempt| that no node will hold, failing to for lack of memory, and ending it.
 */
int rl_lock_may_ask(rl_lock *lock, redlock_time now_us, rl_operation operation);
int rl_lock_ask(rl_lock *lock, rl_operation operation, redlock_time now_us, rl_attempt *attempt,
                bool notify);
int rl_lock_ask_nothing(rl_lock *lock, rl_operation operation);
void rl_lock_asked(rl_lock *lock, redlock_time now_us, int result);

/* An operation is to be launched. Nothing is in flight, and the lock's timer is not set. */
void rl_lock_launch(rl_lock *lock, rl_operation operation, redlock_time now_us,
                    redlock_time budget_us, bool notify);

/* What is in flight has ended. */
void rl_lock_end(rl_lock *lock, redlock_time now_us, int result);

static inline rl_lock *rl_lock_of_timer(rl_timers_entry *timer) {
  return (rl_lock *)timer;
}

/* The first lock of a queue, or the one behind |lock|; NULL if there is none. */
static inline rl_lock *rl_lock_queue_next(const rl_list *queue, const rl_lock *lock) {
  rl_list *entry = rl_list_next(queue, lock == NULL ? queue : &lock->queue);
  return entry == NULL ? NULL : (rl_lock *)(void *)((char *)entry - offsetof(rl_lock, queue));
}

static inline rl_lock *rl_lock_queue_first(const rl_list *queue) {
  return rl_lock_queue_next(queue, NULL);
}

#endif
