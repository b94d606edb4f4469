/*
 * A lock: its lease, and the operation on it.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef RL_LOCK_H
#define RL_LOCK_H

#include <stdbool.h>

#include "base/rl_list.h"
#include "base/rl_operation.h"
#include "base/rl_quorum.h"
#include "base/rl_timers.h"
#include "base/rl_token.h"
#include "base/rl_vote.h"
#include "node/rl_node.h"
#include "options/rl_options.h"
#include "wire/rl_attempt.h"

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
  RL_PHASE_GRACE, /* the operation has ended well; late answers are noted, heal and join */
  RL_PHASE_SEND,  /* its commands are to be sent, when the nodes have room for them */
  RL_PHASE_ROUND, /* commands are out; votes are awaited */
  RL_PHASE_DELAY, /* the attempt failed; the next one comes when the timer does, or a call */
  RL_PHASE_QUEUED /* another lock of the client waits for the same before it (rl_waitlist.h) */
} rl_phase;

#define RL_LOCK_WAITED_MAX 32767u /* threads in a blocking call at once */

typedef struct rl_lock rl_lock;

/* What few locks have. It is apart, so that the others pay a pointer for all of it. */
typedef struct rl_extension {
  struct rl_attach *attach;           /* the lease that the next acquire takes over; or NULL */
  rl_attempt *custom_token;           /* a reference: the token that it is given; or NULL */
  struct rl_fence *fence;             /* the fencing tokens of its leases; or NULL */
  struct rl_reentry *reentry;         /* whose it is, and who counts on it, too; or NULL */
  rl_attempt *borrowed_lease;         /* a reference: whose token was lent to the caller; or NULL */
  void *answers[RL_OPERATIONS_ASKED]; /* of the nodes to the last operation of each kind; or NULL */
  char *borrowed_message;             /* that was lent to the caller; or NULL */
} rl_extension;

/* More than an acquire may be told to make. */
#define RL_LOCK_ATTEMPTS_ALL ((1u << 21) - 1)

struct rl_lock {
  rl_timers_entry timer; /* the first: rl_lock_of_timer() */
  struct rl_core *core;
  void *data;    /* the caller's */
  rl_list locks; /* of the core */
  rl_list
      queue; /* the one that it is in: of acquires to be sent, behind another, or of ended ones */
  rl_resource *resource;
  struct rl_waitlist *waitlist; /* in which its acquire waits; or NULL */

  /* The lease. Held while lease is not NULL and the clock is before deadline_us. */
  rl_attempt *lease;
  redlock_time deadline_us;      /* also of one that has run out, until it is given back */
  redlock_time keys_end_us;      /* the keys of the lease live until then, without lock_delay;
                                    when the lease is lost: since when */
  redlock_duration lease_ttl_us; /* what it was acquired for; the other options are |current| */
  rl_attempt *unreleased;        /* its release was not confirmed: it may be repeated */
  struct rl_renewal *renewal;    /* when it keeps itself, or its loss is to be told; or NULL */
  rl_extension *extension;       /* or NULL */

  /* The operation in flight, or the last one. */
  const rl_options
      *current; /* of this operation, and of the lease: rl_lock_options(), or allocated */
  redlock_duration ttl_us; /* of this operation */
  rl_operation operation : 4;
  rl_phase phase : 3;
  bool notify : 1;        /* it goes to a queue of ended operations */
  bool had_expired : 1;   /* release: the lease had run out before */
  bool repeated : 1;      /* release: it was begun before, and not confirmed */
  bool abandoned : 1;     /* the operation has no caller that waits or has asked for its result */
  bool extended : 1;      /* the majority has confirmed the extend of this round, in time */
  bool lost : 1;          /* the lease was lost, and the lock neither released nor acquired since */
  bool has_options : 1;   /* its own are behind the votes */
  bool renewal_apart : 1; /* |renewal| is not behind the lock, but an allocation of its own */
  bool automatic : 1;     /* it is an automatic extend; the user's last one is in |renewal| */
  bool has_refused : 1;   /* it could not begin, for what |refused| says */
  unsigned waited : 15;   /* the driver's number of the thread that waits for it; 0 for none */
  rl_quorum quorum;
  bool limited : 1;            /* acquire: retry_count limits its time, too (rl_pause_limit()) */
  unsigned attempts_left : 21; /* RL_LOCK_ATTEMPTS_ALL: as many as the budget allows */
  int8_t result;               /* of the last operation, once it is IDLE */
  uint32_t waiting;            /* nodes that get the command when their connection is up */
  uint32_t denied;             /* extend, release: nodes that say "not yours", in time or late */
  uint32_t round;              /* replies of another round are not votes */
  uint32_t round_took_us;      /* from its start to its end; at most 71 minutes */
  int loss; /* why its lease was lost, with |renewal|; REDLOCK_OK when nothing is lost */
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

/*
 * What a node may owe before more is launched: so many commands, and those that fit into the time
 * that its fastest reply took, if it needs 10 us for each of them. A node that is far away is given
 * something to do while its replies are on their way.
 */
#define RL_PACER_WINDOW 256
#define RL_PACER_COMMAND_US 10

typedef struct rl_pacer {
  rl_timers renewals;           /* extends and releases, by when they are needed */
  rl_list acquires;             /* in the order in which they were begun */
  unsigned acquire_count;       /* each needs entropy */
  unsigned renewals_in_a_row;   /* launched since the last acquire */
  redlock_time closed_until_us; /* the window is closed until then, or until the nodes answer */
  unsigned window;              /* RL_PACER_WINDOW; a test may make it smaller */
  redlock_duration command_us;  /* RL_PACER_COMMAND_US; a test may make it larger */
} rl_pacer;

/*
 * The state of the core, as far as locks and what is above them share it. The modules above keep states of their own,
 * behind pointers: each knows its own only, and this layer none of them.
 */
typedef struct rl_core {
  rl_node *nodes[REDLOCK_NODES_MAX];
  unsigned node_count;
  unsigned connection_count; /* nodes, and their subscribers once those exist */
  unsigned quorum; /* how many nodes acquires and extends need; 0: a majority */
  bool active;     /* an operation has been begun: connections are wanted */
  bool keeps; /* the driver's sockets have no keep-alive: idle connections are kept by commands */
  bool closed;
  redlock_time now_us;       /* the latest that was said; it never goes back */
  rl_node_clock wall;        /* the program's own wall clock, if the driver has noted it */
  uint64_t random;           /* stirred by what attempts draw; for delays of connections */
  redlock_time forgotten_us; /* when a node last did not know a script any more */
  size_t lock_count;
  size_t busy_count;          /* locks with an operation, or an automatic extend, in flight */
  size_t lease_count;         /* locks with a lease, which may have run out */
  redlock_time leases_end_us; /* when the last of them has */
  rl_list locks;
  rl_pacer pacer;
  rl_list ended;
  rl_list waited; /* ended, too, of those that a thread waits for */
  rl_timers timers;
  rl_attempt_pool attempts;
  void *prefix;
  size_t prefix_length;
  rl_options options; /* of locks that bring none of their own */
  rl_guards *guards;  /* of the guard (rl_guard.c), or NULL */

  const struct rl_upper *upper;   /* what is called of the modules above */
  struct rl_waitlists *waitlists; /* of waiters */
  struct rl_notify_state *notify; /* of nodes, or NULL */
  struct rl_releases *releases;   /* that are due */
  struct rl_backfills *backfills; /* of nodes */
  struct rl_losses *losses;       /* that are to be told */
  struct rl_reentries *reentries; /* of owners */
} rl_core;

/* Returns how many nodes must grant an operation: an acquire and an extend the core's quorum, others a majority. */
static inline unsigned rl_core_quorum(const rl_core *core, rl_operation operation) {
  bool lease = operation == RL_OPERATION_ACQUIRE || operation == RL_OPERATION_EXTEND;
  return lease && core->quorum != 0 ? core->quorum : rl_quorum_majority(core->node_count);
}

/* The options that it was made with: its own, or the core's. */
const rl_options *rl_lock_options(const rl_lock *lock);

/* Makes sure that lock->extension is there, until the lock is freed. False when out of memory. */
bool rl_lock_reserve_extension(rl_lock *lock);

/* The lease that its next acquire takes over, or NULL. */
static inline struct rl_attach *rl_lock_attach(const rl_lock *lock) {
  return lock->extension == NULL ? NULL : lock->extension->attach;
}

/* What is left of the lock's own lease at |now_us|; see rl_ring_remaining(). */
redlock_duration rl_lock_remaining(const rl_lock *lock, redlock_time now_us);

/* Returns true if an operation of the user's, or an automatic extend, is in flight. */
static inline bool rl_lock_is_in_flight(const rl_lock *lock) {
  return lock->phase != RL_PHASE_IDLE && lock->phase != RL_PHASE_GRACE;
}

/*
 * Changes the phase: no other function does. The table in rl_lock.c has the phases that may follow
 * each phase.
 */
void rl_lock_enter(rl_lock *lock, rl_phase phase);

/* Sets the result of the operation in flight, or of the last one. */
static inline void rl_lock_set_result(rl_lock *lock, int result) {
  lock->result = (int8_t)result;
}

/* Returns true if an operation of the user's is in flight. */
static inline bool rl_lock_is_busy(const rl_lock *lock) {
  return rl_lock_is_in_flight(lock) && !lock->automatic;
}

/*
 * The options of an operation are those that the lock was made with, which are referred to, or others that
 * a call has brought, which are allocated. False, and nothing has changed, when out of memory.
 */
bool rl_lock_set_options(rl_lock *lock, const rl_options *options);

/* Notes how long the operation took, which has ended. */
void rl_lock_note_end(rl_lock *lock, redlock_time now_us);

/* The lease is |lease| from now on, until |deadline_us|; NULL and 0 for none. */
void rl_lock_set_lease(rl_lock *lock, rl_attempt *lease, redlock_time deadline_us);

static inline rl_lock *rl_lock_of_timer(rl_timers_entry *timer) {
  return (rl_lock *)timer;
}

/* The first lock of a queue, or the one behind |lock|; NULL if there is none. */
static inline rl_lock *rl_lock_queue_next(const rl_list *queue, const rl_lock *lock) {
  return RL_OWNER(rl_list_next(queue, lock == NULL ? queue : &lock->queue), rl_lock, queue);
}

static inline rl_lock *rl_lock_queue_first(const rl_list *queue) {
  return rl_lock_queue_next(queue, NULL);
}

#endif
