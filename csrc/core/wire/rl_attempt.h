/*
 * An attempt: one token of a lock, and what the nodes may still hold under it.
 *
 * SPDX-License-Identifier: MIT
 *
 * An attempt outlives the operation that made it: it exists until every command that carries its
 * token has been answered or its connection has gone, and its release has been sent to every node
 * that may hold it. Attempts are pooled, so that a lock that is taken again allocates nothing.
 */
#ifndef RL_ATTEMPT_H
#define RL_ATTEMPT_H

#include <stdalign.h>
#include <stdbool.h>

#include "base/rl_list.h"
#include "base/rl_time.h"
#include "wire/rl_command.h"
#include "wire/rl_resource.h"

struct rl_lock;

typedef struct rl_attempt rl_attempt;

struct rl_attempt {
  rl_list queue; /* of the releases, which has a reference then; or of the pool */
  rl_resource *resource;
  struct rl_lock *lock; /* NULL once the lock has nothing to do with it any more */
  unsigned references;
  uint32_t sent;            /* nodes to which a SET may have gone */
  uint32_t asked;           /* nodes that owe the answer to a SET */
  uint32_t refused;         /* nodes that have said that they did not set the key */
  uint32_t due;             /* nodes to which the release is still to be sent */
  uint32_t later;           /* of these, the nodes for which it is not time before later_us */
  uint32_t uncertain;       /* nodes that may yet execute a SET of a connection that has ended */
  uint32_t released;        /* nodes that have answered the release */
  uint32_t tested;          /* nodes that owe the answer to a test (rl_twin.h) */
  uint32_t tests;           /* nodes that were tested */
  redlock_duration life_us; /* how long a key that is set for it lives at most */
  redlock_time later_us;
  redlock_time expired_us; /* when the keys have expired, if no node is late; not tried longer */
  /* The token that was drawn; where it is, with |apart|. Aligned, so that tools find what is allocated. */
  alignas(char *) char digits[REDLOCK_TOKEN_LENGTH + 1];
  bool releasing : 1; /* its release has begun: nothing but releases may be sent for it */
  bool held : 1;      /* it has been a lease */
  bool any : 1;       /* release by force: whatever the key holds */
  bool twins : 1;     /* a test has found two nodes that are one server */
  bool custom : 1;    /* its token is the caller's: others may have it, too */
  bool apart : 1;     /* its token is allocated */
  bool shorter : 1; /* its last extend asks for less than is left of the lease (rl_margin.c, M3) */
  uint16_t token_length;
  uint32_t
      set; /* nodes that have said that they set the key; of a lease: that they have it (rl_margin.h) */
  uint32_t suspect; /* nodes that may have lost it since they have answered (rl_margin.h) */
  uint32_t
      ticket; /* of a lease: the place in queues that its release leaves (rl_notify.h), or 0 ... */
  uint32_t enqueued; /* ... on these nodes */
};

/* Attempts are allocated this many at once. */
#define RL_ATTEMPT_SLAB 64

typedef struct rl_attempt_slab rl_attempt_slab;

struct rl_attempt_slab {
  rl_attempt_slab *next;
  rl_attempt attempts[RL_ATTEMPT_SLAB];
};

typedef struct rl_attempt_pool {
  rl_list *free;
  rl_attempt_slab *slabs;
  size_t live; /* attempts in use */
} rl_attempt_pool;

/* An attempt with one reference, the caller's, or NULL when out of memory. */
rl_attempt *rl_attempt_new(rl_attempt_pool *pool, rl_resource *resource, struct rl_lock *lock,
                           const unsigned char *entropy);

/* The same with a token that the caller gives: a copy of it. */
rl_attempt *rl_attempt_new_custom(rl_attempt_pool *pool, rl_resource *resource,
                                  struct rl_lock *lock, const void *token, size_t token_length);
rl_attempt *rl_attempt_ref(rl_attempt *attempt);

/*
 * A node is sent something at |now_us| that lets the key live for |key_ms|: until when a node can
 * still hold it at most, its clock being a tenth off and the command a second on its way.
 */
void rl_attempt_will_live(rl_attempt *attempt, redlock_time now_us, uint64_t key_ms);

/* A SET has been sent to the nodes |bits|. */
void rl_attempt_set_sent(rl_attempt *attempt, redlock_time now_us, uint32_t bits, uint64_t key_ms);

/*
 * A connection on which such a command was not answered has ended. The node may still read it, and
 * the key begins to live only then.
 */
void rl_attempt_unanswered(rl_attempt *attempt, redlock_time now_us);

/* Gives a reference up; with the last one the attempt goes back to the pool. NULL is allowed. */
void rl_attempt_unref(rl_attempt_pool *pool, rl_attempt *attempt);

/* Frees what the pool holds; live attempts must be gone. */
void rl_attempt_pool_free(rl_attempt_pool *pool);

/* Returns true if its release is due. */
static inline bool rl_attempt_is_queued(const rl_attempt *attempt) {
  return rl_list_is_in(&attempt->queue);
}

/* Its token, with a NUL behind it; one that was given may hold others. */
const char *rl_attempt_token(const rl_attempt *attempt);

/* What to write on the wire. */
rl_command_key rl_attempt_key(const rl_attempt *attempt);

#endif
