/*
 * A lock: its options, its lease, and the operation on it.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef RL_LOCK_H
#define RL_LOCK_H

#include <assert.h>
#include <stdalign.h>
#include <stdbool.h>
#include <stddef.h>

#include "base/rl_list.h"
#include "base/rl_operation.h"
#include "base/rl_quorum.h"
#include "base/rl_stats.h"
#include "base/rl_timers.h"
#include "base/rl_vote.h"
#include "node/rl_node.h"
#include "options/rl_options.h"
#include "wire/rl_attempt.h"

/* Entropy of an attempt: its token, and a random number for the delay after it. */
#define RL_LOCK_ENTROPY (RL_ATTEMPT_ENTROPY + 8)

/*
 * IDLE, SUCCEEDED -> SEND -> ROUND -> SUCCEEDED           success
 *                           ROUND -> IDLE                failure
 *                           ROUND -> DELAY -> SEND       acquire: between attempts
 *                           ROUND -> SEND                acquire of a semaphore: another slot
 *                           ROUND -> QUEUED              acquire of a semaphore: it waits
 *                    SEND -> DELAY                       acquire: waits first
 *                    SEND -> QUEUED -> DELAY or SEND     acquire: behind another lock
 *                    SEND, DELAY, QUEUED -> SUCCEEDED    acquire: shares a lease of its owner
 *
 * Cancelling leads from each phase to IDLE.
 */
typedef enum rl_phase {
  RL_PHASE_IDLE = 0,
  RL_PHASE_SUCCEEDED, /* until the next operation: late votes count, and nodes get their keys */
  RL_PHASE_SEND,      /* in the outbox: its commands are sent when the nodes have room */
  RL_PHASE_ROUND,     /* its commands are sent; votes are awaited */
  RL_PHASE_DELAY,     /* the next attempt begins at the timer, or by a notification */
  RL_PHASE_QUEUED     /* behind the head of its wait list (rl_waitlist.h) */
} rl_phase;

#define RL_LOCK_CALLERS_MAX 32767u /* threads in a blocking call at once */

typedef struct rl_lock rl_lock;

/* State that few locks have. Other locks pay one pointer for all of it. */
typedef struct rl_extension {
  struct rl_attach *attach;       /* lease that the next acquire takes over, or NULL */
  rl_attempt *custom_token;       /* a reference: the caller-supplied token, or NULL */
  struct rl_fence *fence;         /* fencing tokens of its leases, or NULL */
  struct rl_semaphore *semaphore; /* slots, or NULL for a lock */
  struct rl_reentry *reentry;     /* owner of the lock and the ring of its leases, or NULL */
  rl_attempt *borrowed_lease;     /* a reference: lease whose token the caller borrows, or NULL */
  void *answers
      [RL_OPERATIONS_ASKED]; /* answers of the nodes to the last operation of each kind, or NULL */
  char *borrowed_message;    /* message that the caller borrows, or NULL */
  rl_label holder;           /* label of the client that prevented its last acquire, if known */
} rl_extension;

/* More attempts than a caller can ask for. */
#define RL_LOCK_ATTEMPTS_ALL ((1u << 21) - 1)

struct rl_lock {
  rl_timers_entry timer; /* first field: rl_lock_of_timer() */
  struct rl_core *core;
  void *data;    /* of the caller */
  rl_list locks; /* in core->locks */
  rl_list queue; /* in the outbox, in a wait list, or in a queue of ended locks */
  rl_resource *resource;
  struct rl_waitlist *waitlist; /* of its acquire, or NULL */

  /* The lease. Held while lease is not NULL and the clock is before deadline_us. */
  rl_attempt *lease;
  redlock_time deadline_us; /* also of an expired lease until it is released */
  redlock_time
      keys_end_us; /* expiry of the keys without lock_delay; after a loss: time of the loss */
  redlock_duration lease_ttl_us; /* ttl of the acquire; |current| has the other options */
  rl_attempt *unreleased;        /* lease whose release was not confirmed and may be repeated */
  struct rl_renewal *renewal;    /* of an auto-extended lease, or to report a loss; or NULL */
  rl_extension *extension;       /* or NULL */

  /* The operation in flight, or the last one. */
  const rl_options *current; /* of this operation */
  redlock_duration ttl_us;   /* of this operation */
  rl_operation operation : 4;
  rl_phase phase : 3;
  bool reports_end : 1; /* the lock is appended to core->ended or core->ended_awaited at the end */
  bool had_expired : 1; /* release: the lease had expired before */
  bool repeated : 1;    /* release: repeats a release that was not confirmed */
  bool abandoned : 1;   /* fire-and-forget: no caller waits for the result */
  bool extended : 1;    /* a majority has confirmed the extend of this round in time */
  bool lost : 1;        /* the lease was lost, and no release or acquire followed */
  bool has_options : 1; /* its own options are behind the votes */
  bool renewal_apart : 1; /* |renewal| has an allocation of its own */
  bool automatic : 1;     /* automatic extend; |renewal| has the result of the last operation */
  bool has_refused : 1;   /* the operation was refused for |refused| */
  unsigned caller_number : 15; /* number of the waiting thread in the driver; 0 for none */
  rl_quorum quorum;
  bool limited : 1;            /* acquire: retry_count limits the time, too (rl_pause_limit()) */
  bool has_waited : 1;         /* acquire: it had to wait for an attempt */
  bool loss_counted : 1;       /* the loss of the lease is in core->stats */
  unsigned attempts_left : 21; /* RL_LOCK_ATTEMPTS_ALL: limited by the budget only */
  int8_t result;               /* of the last operation in phase IDLE; REDLOCK_PENDING before */
  uint32_t awaited;            /* nodes that get the command when their connection comes up */
  uint32_t deniers;       /* extend, release: nodes without our token, by votes in time or late */
  uint32_t round;         /* replies to other rounds are not votes */
  uint32_t round_took_us; /* duration; at most 71 minutes */
  int loss;               /* reason of an unreported loss, with |renewal|; else REDLOCK_OK */
  uint64_t random;
  redlock_time begun_us; /* of the operation */
  union {
    redlock_time budget_ends_us; /* when the operation must have ended */
    const char *refused;         /* with |has_refused|: which argument was wrong */
  };

  /* The round in flight, or the last one. */
  rl_attempt *attempt; /* attempt whose commands are sent */
  rl_attempt *failed;  /* previous attempt, whose release is outstanding */
  redlock_time round_start_us;
  redlock_time round_deadline_us;
  rl_reason **reasons;                 /* reasons of the votes; NULL before the first */
  alignas(rl_options) rl_vote votes[]; /* of each node; options may follow */
};
static_assert(offsetof(rl_lock, votes) == sizeof(rl_lock), "the votes are the end");

/*
 * In-flight limit of a node: so many commands, or more if the fastest reply took longer than they
 * need at 10 us each. A distant node then has work while its replies are on their way.
 */
#define RL_PACER_IN_FLIGHT 256
#define RL_PACER_COMMAND_US 10

typedef struct rl_pacer {
  rl_timers renewals;           /* extends and releases, by due time */
  rl_list acquires;             /* in order of arrival */
  unsigned acquire_count;       /* of |acquires|, which need entropy */
  unsigned renewals_in_a_row;   /* sent since the last acquire */
  redlock_time closed_until_us; /* no node has room until then, or until a node answers */
  unsigned in_flight_limit;     /* RL_PACER_IN_FLIGHT; tests reduce it */
  redlock_duration command_us;  /* RL_PACER_COMMAND_US; tests increase it */
} rl_pacer;

/*
 * State of the core that the lock layer and the layers above share. Each module above, except the
 * pacer, keeps its own state behind a pointer.
 */
typedef struct rl_core {
  rl_node *nodes[REDLOCK_NODES_MAX]; /* then the subscribers, or NULL before they are wanted */
  unsigned node_count;
  unsigned connection_count; /* nodes, and subscribers once they exist */
  unsigned quorum;           /* nodes that acquires and extends need; 0: a majority */
  bool active;               /* an operation has begun: connections are wanted */
  bool closed;
  redlock_duration
      keep_us;         /* idle time before rl_link_check_idle(); 0: the sockets have keep-alive */
  redlock_time now_us; /* latest time of a driver; never goes back */
  rl_node_clock wall;  /* wall clock of the program, if the driver has noted it */
  uint64_t random;     /* mixed with the entropy of attempts; for delays of connections */
  redlock_time forgotten_us; /* when a node last did not know a script */
  size_t lock_count;
  size_t busy_count;          /* locks with an operation or an automatic extend in flight */
  size_t lease_count;         /* locks with a lease, perhaps an expired one */
  redlock_time leases_end_us; /* when the last of these leases expires */
  redlock_time absent_us;     /* when the driver last ceased to read replies until its next call */
  rl_stats stats;
  struct rl_events *events; /* NULL: no caller wants to know them */
  rl_list locks;
  rl_pacer pacer;
  rl_list ended;
  rl_list ended_awaited; /* ended locks for which a thread waits */
  rl_timers timers;
  rl_attempt_pool attempts;
  void *prefix;
  size_t prefix_length;
  rl_options options; /* of locks without options of their own */
  rl_guards *guards;  /* or NULL */

  const struct rl_upper *upper; /* functions of the layers above */
  struct rl_waitlists *waitlists;
  struct rl_notify_state *notify; /* NULL: notifications are off */
  struct rl_releases *releases;
  struct rl_backfills *backfills;
  struct rl_losses *losses; /* unreported */
  struct rl_slots *slots;   /* NULL: no semaphore was used */
  struct rl_reentries *reentries;
} rl_core;

/*
 * Returns how many nodes must grant an operation: a majority, or for acquire and extend the quorum
 * of the core.
 */
static inline unsigned rl_core_quorum(const rl_core *core, rl_operation operation) {
  bool grants = rl_operation_has(operation, RL_GRANTS);
  return grants && core->quorum != 0 ? core->quorum : rl_quorum_majority(core->node_count);
}

/* Returns the options with which the lock was created: its own, or those of the core. */
const rl_options *rl_lock_options(const rl_lock *lock);

/* Allocates lock->extension if there is none. Returns false when out of memory. */
bool rl_lock_reserve_extension(rl_lock *lock);

/* Returns the lease that the next acquire takes over, or NULL. */
static inline struct rl_attach *rl_lock_attach(const rl_lock *lock) {
  return lock->extension == NULL ? NULL : lock->extension->attach;
}

/* Returns the remaining time of the own lease at |now_us|; see rl_ring_remaining(). */
redlock_duration rl_lock_remaining(const rl_lock *lock, redlock_time now_us);

/* Returns true if an operation or an automatic extend is in flight. */
static inline bool rl_lock_is_in_flight(const rl_lock *lock) {
  return lock->phase != RL_PHASE_IDLE && lock->phase != RL_PHASE_SUCCEEDED;
}

/*
 * Changes the phase: no other function does. The table in rl_lock.c has the phases that may follow
 * each phase.
 */
void rl_lock_set_phase(rl_lock *lock, rl_phase phase);

/* Sets the result of the operation in flight, or of the last one. */
static inline void rl_lock_set_result(rl_lock *lock, int result) {
  lock->result = (int8_t)result;
}

/* Returns true if an operation of the caller is in flight. */
static inline bool rl_lock_is_busy(const rl_lock *lock) {
  return rl_lock_is_in_flight(lock) && !lock->automatic;
}

/*
 * Sets the options of an operation. Options that differ from rl_lock_options() are copied. Returns
 * false, and changes nothing, when out of memory.
 */
bool rl_lock_set_options(rl_lock *lock, const rl_options *options);

/* Notes the duration of the operation, which has ended. */
void rl_lock_note_end(rl_lock *lock, redlock_time now_us);

/* Sets the lease and its deadline; NULL and 0 for none. */
void rl_lock_set_lease(rl_lock *lock, rl_attempt *lease, redlock_time deadline_us);

static inline rl_lock *rl_lock_of_timer(rl_timers_entry *timer) {
  return (rl_lock *)timer;
}

/* Returns the lock behind |lock| in a queue, the first for NULL; or NULL if there is none. */
static inline rl_lock *rl_lock_queue_next(const rl_list *queue, const rl_lock *lock) {
  return RL_OWNER(rl_list_next(queue, lock == NULL ? queue : &lock->queue), rl_lock, queue);
}

static inline rl_lock *rl_lock_queue_first(const rl_list *queue) {
  return rl_lock_queue_next(queue, NULL);
}

#endif
