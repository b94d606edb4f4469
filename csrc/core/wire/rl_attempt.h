/*
 * An attempt: what the key of a lock contains on each node; a new lock mode (read, write) begins
 * here. It has one token, and the nodes that may store it. The granted attempt is the lease.
 *
 * SPDX-License-Identifier: MIT
 *
 * An attempt outlives its operation. It lives until each command with its token is answered or
 * lost, and its release is sent to each node that may hold the token. lock->lease is the attempt
 * that was granted. A pool keeps attempts, so that a repeated acquire allocates nothing.
 *
 * Fields here tell what the key contains, and for how long. rl_command.c and rl_script.c send it.
 * A new lock mode is an option, then a field here.
 *
 * csrc/core/wire has bytes and texts: commands, replies, resources, tokens, records. It knows no
 * connection, and a lock only as a pointer. It includes base, and hiredis's parser.
 */
#ifndef RL_ATTEMPT_H
#define RL_ATTEMPT_H

#include <stdalign.h>
#include <stdbool.h>

#include "base/rl_label.h"
#include "base/rl_list.h"
#include "base/rl_time.h"
#include "wire/rl_command.h"
#include "wire/rl_resource.h"

struct rl_lock;

typedef struct rl_attempt rl_attempt;

struct rl_attempt {
  rl_list queue; /* of due releases, which holds a reference; or the stack of the pool */
  rl_resource *resource;
  struct rl_lock *lock; /* NULL after the lock has dropped the attempt */
  unsigned references;
  uint32_t sent;            /* nodes that may have received a SET */
  uint32_t set_outstanding; /* nodes with an outstanding SET */
  uint32_t refused;         /* nodes of |sent| where no answered or lost SET may have set the key */
  uint32_t due;             /* nodes that must still be sent the release */
  uint32_t delayed;         /* nodes of |due| whose release waits until delayed_until_us */
  uint32_t may_set;         /* nodes that may still execute a SET of an ended connection */
  uint32_t released;        /* nodes that have answered the release */
  uint32_t test_outstanding; /* nodes with an outstanding test (rl_twin.h) */
  union {
    uint32_t tested; /* before it is a lease: nodes that were tested */
    uint32_t
        may_prolong; /* of a lease: nodes that may keep the key longer than HOLD asks (HLD-4) */
  };
  redlock_time delayed_until_us;
  redlock_time expired_us; /* when its keys have expired on all certain nodes; then releases end */
  redlock_duration life_us : 48; /* longest life of its keys */
  uint16_t token_length;
  redlock_time keep_until_us : 54; /* until then a release keeps the keys (rl_hold.h); 0: none */
  bool releasing : 1;              /* its release has begun: only releases may be sent */
  bool held : 1;                   /* it has been a lease */
  bool deletes_any_token : 1;      /* by a release by force */
  bool twins : 1;                  /* a test has found two nodes that are one server */
  bool custom : 1;             /* the caller supplied the token: another client may use it, too */
  bool token_is_allocated : 1; /* |bytes| has a pointer to it */
  bool fenced : 1;             /* its keys have counters of fencing tokens */
  bool labelled : 1;           /* it has room for a token with a label */
  bool caller_awaits : 1;      /* a caller awaits the answers to its release (rl_native.h) */
  bool extend_is_shorter : 1;  /* it asks for less than remains of the lease (MAR-3) */
  uint32_t confirmed;          /* nodes that have confirmed the key (rl_margin.h) */
  uint32_t suspect;            /* nodes that may have lost the key since (rl_margin.h) */
  uint32_t ticket;             /* of a lease: id of the ticket that its release dequeues, or 0 */
  uint32_t enqueued;           /* nodes with that ticket in their queue */
  uint32_t may_shorten; /* nodes that may still execute a native extend of an ended connection */
  uint32_t least_ms;    /* shortest life that a native extend asked for; 0: there was none */
  /*
   * The random token, with a NUL. With |token_is_allocated|: a pointer to the token, aligned so
   * that leak checkers see it.
   */
  alignas(char *) char bytes[];
};

/* Bounds of life_us and keep_until_us: 8 years, and 570 years after the start of the clock. */
#define RL_ATTEMPT_LIFE_MAX_US (((uint64_t)1 << 48) - 1)
#define RL_ATTEMPT_KEEP_MAX_US (((uint64_t)1 << 54) - 1)

/* Attempts are allocated this many at once. */
#define RL_ATTEMPT_SLAB 64

#define RL_ATTEMPT_ENTROPY 20 /* bytes of a token, as the specification recommends */

typedef struct rl_attempt_slab rl_attempt_slab;

struct rl_attempt_slab {
  rl_attempt_slab *next;
  alignas(rl_attempt) char attempts[];
};

typedef struct rl_attempt_pool {
  rl_list *free[2]; /* without and with room for a label */
  rl_attempt_slab *slabs;
  size_t live; /* attempts with a reference */
} rl_attempt_pool;

/*
 * Returns an attempt with one reference, or NULL if out of memory. Its token is RL_ATTEMPT_ENTROPY
 * random bytes as lower-case hexadecimal digits. Behind them stand the |permits| of a semaphore
 * (rl_label_permits()), unless they are 0, and |label|, unless it is NULL or empty.
 */
rl_attempt *rl_attempt_new(rl_attempt_pool *pool, rl_resource *resource, struct rl_lock *lock,
                           const unsigned char *entropy, unsigned permits, const rl_label *label);

/* Does the same with a copy of a caller-supplied token. */
rl_attempt *rl_attempt_new_custom(rl_attempt_pool *pool, rl_resource *resource,
                                  struct rl_lock *lock, const void *token, size_t token_length);
rl_attempt *rl_attempt_ref(rl_attempt *attempt);

/*
 * Notes a command, sent at |now_us|, that gives the key a life of |key_ms|. Allows for a clock that
 * is wrong by a tenth and a command that travels for a second.
 */
void rl_attempt_will_live(rl_attempt *attempt, redlock_time now_us, uint64_t key_ms);

/* Notes a SET that was sent to the nodes |bits| and gives the key a life of |key_ms|. */
void rl_attempt_set_sent(rl_attempt *attempt, redlock_time now_us, uint32_t bits, uint64_t key_ms);

/*
 * Notes the end of a connection while a command that sets or prolongs the key was outstanding. The
 * node may still execute the command, and the life of the key begins only then.
 */
void rl_attempt_unanswered(rl_attempt *attempt, redlock_time now_us);

/* Drops a reference. The last one returns the attempt to the pool. NULL is allowed. */
void rl_attempt_unref(rl_attempt_pool *pool, rl_attempt *attempt);

/* Frees the pool, which must have no live attempts. */
void rl_attempt_pool_free(rl_attempt_pool *pool);

/* Returns the nodes that have never had the key: each of their SETs has certainly set nothing. */
static inline uint32_t rl_attempt_refused(const rl_attempt *attempt) {
  return attempt->refused & ~attempt->set_outstanding;
}

/* Returns true if a release of the attempt is due. */
static inline bool rl_attempt_is_queued(const rl_attempt *attempt) {
  return rl_list_is_in(&attempt->queue);
}

/* Returns for how many ms a release at |now_us| must keep the keys; 0: it deletes them. */
static inline uint64_t rl_attempt_keep_ms(const rl_attempt *attempt, redlock_time now_us) {
  return rl_time_ms_up(rl_time_sub(attempt->keep_until_us, now_us));
}

/* Returns the token and a NUL. A caller-supplied token may contain NUL bytes. */
const char *rl_attempt_token(const rl_attempt *attempt);

/* Returns the keys and the token for a command. */
rl_command_key rl_attempt_key(const rl_attempt *attempt);

#endif
