/*
 * The commands for a node, in RESP.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef RL_COMMAND_H
#define RL_COMMAND_H

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "base/rl_buffer.h"
#include "wire/rl_script.h"

/* An argument of a command: any bytes. */
typedef struct rl_command_bytes {
  const char *bytes;
  size_t length;
} rl_command_bytes;

/* The keys and the token of a lock; any bytes. */
typedef struct rl_command_key {
  const char *key;
  size_t key_length;
  const char *token;
  size_t token_length;
  unsigned count;          /* of keys, which are contiguous in |key|; 0 means 1 */
  const uint16_t *lengths; /* of several keys */
  rl_command_bytes base;   /* base key, which names queue and waiters flag; NULL: each key is */
} rl_command_key;

static inline rl_command_bytes rl_command_word(const char *text) {
  return (rl_command_bytes){text, text != NULL ? strlen(text) : 0};
}

/*
 * Each function appends one command. It returns false, and appends nothing, if there is no room
 * (rl_buffer_reserve()).
 */

/* A command of |count| arguments. */
bool rl_command_arguments(rl_buffer *buffer, const rl_command_bytes *arguments, unsigned count);

/* SET key token NX PX ttl_ms, for one key. */
bool rl_command_set(rl_buffer *buffer, const rl_command_key *key, uint64_t ttl_ms);

/*
 * Native compare-and-delete: DELIFEQ key token (Valkey 9.0), or with |delex| DELEX key IFEQ token
 * (Redis 8.4). 1 if the key had the token, otherwise 0. With |grow| false nothing is allocated.
 */
bool rl_command_delete_if(rl_buffer *buffer, const rl_command_key *key, bool delex, bool grow);

/* EXISTS of the waiters flag of the base key. */
bool rl_command_flag(rl_buffer *buffer, const rl_command_key *key);

/*
 * SET key token IFEQ token PX ttl_ms (Valkey 8.1, Redis 8.4): OK if the key had the token,
 * otherwise nil. The key then lives for |ttl_ms|, even if that is shorter (rl_native.h).
 */
bool rl_command_set_if(rl_buffer *buffer, const rl_command_key *key, uint64_t ttl_ms);

/*
 * EVALSHA, or EVAL with |by_text|, of |script|. |ttl_ms| is the life of the key; a release ignores
 * it. With |grow| false nothing is allocated.
 */
bool rl_command_script(rl_buffer *buffer, rl_script script, bool by_text, const rl_command_key *key,
                       uint64_t ttl_ms, bool grow);

/*
 * Suffixes of a base key: its queue of waiters, and its waiters flag. The prefix of a client's
 * channel.
 */
#define RL_COMMAND_QUEUE ":redlock-queue"
#define RL_COMMAND_WAIT ":redlock-wait"
#define RL_COMMAND_CHANNEL "redlock:call:"

/*
 * A script that releases and notifies. It also dequeues |entry|, which may be NULL. It reads the
 * queue of the base key of |key|.
 */
bool rl_command_release(rl_buffer *buffer, rl_script script, bool by_text,
                        const rl_command_key *key, const char *entry, bool grow);

/*
 * HOLD and HOLD_NOTIFY: the keys with the token then live for |rest_ms|, whether that is more or
 * less than before. With |fenced| their counters live for a week more. HOLD_NOTIFY also dequeues
 * |entry|, which may be NULL.
 */
bool rl_command_hold(rl_buffer *buffer, rl_script script, bool by_text, const rl_command_key *key,
                     uint64_t rest_ms, bool fenced, const char *entry, bool grow);

/*
 * ENQUEUE and DEQUEUE in the queue of the base key |bytes|. |entry| has 16 hexadecimal digits of a
 * client's channel, and 8 of a ticket's id. A notification is a message of these 8 and the base
 * key. Modes:
 *   NEW     the entry is certainly not in the queue
 *   CHECK   the entry may be in the queue
 *   EVICT   from there on: the entry's position when the key was last free. If the key is free
 *           again, and the position is the same, the first ticket is unresponsive, and is evicted
 *   APPEND  as NEW; but behind other waiters it only appends, and answers as if the key did not
 *           expire
 * ENQUEUE answers 0 if the key is free and |entry| is first. Otherwise it answers the position
 * in the queue, from 1, or 0 if the queue is full, plus units: the remaining ms of the key and two
 * more; none if the key is free and an earlier waiter is notified; one if the key does not expire,
 * or if the queue is full.
 * ENQUEUE_SLOTS and DEQUEUE_SLOTS also get the number of |permits| of the semaphore; otherwise that
 * is 0. Its key counts as free if a slot is, and a notification names that slot instead of the base
 * key. The remaining ms are those of the slot that expires first, if there are up to 64.
 * ENQUEUE_LABEL answers a string if the key expires and its token may have a label: that number, a
 * colon, the label. The caller must check the label (rl_label.h).
 */
#define RL_COMMAND_ENQUEUE_UNIT 2000
#define RL_COMMAND_QUEUE_MAX 1024
typedef enum rl_command_enqueue {
  RL_COMMAND_ENQUEUE_NEW,
  RL_COMMAND_ENQUEUE_CHECK,
  RL_COMMAND_ENQUEUE_EVICT,
  RL_COMMAND_ENQUEUE_APPEND = RL_COMMAND_QUEUE_MAX + 1
} rl_command_enqueue;

bool rl_command_queue(rl_buffer *buffer, rl_script script, bool by_text, const char *bytes,
                      size_t length, const char *entry, unsigned mode, unsigned permits);

/*
 * ENQUEUE_ALL in the queues of all keys of |key|, whose token is the entry. It answers as ENQUEUE
 * in the mode CHECK: 0 if all keys are free, and the entry is first in all queues; otherwise the
 * largest position, and the longest remaining life of a key. A colon and places follow, which
 * |before| of the next query repeats: the sum of 2^i of the keys that are reserved for the entry,
 * and for each key a comma and the position, if the key is free and another entry is first. A first
 * entry is evicted if it has no reservation, and the position is the same again. A waiter with a
 * reservation must ask every RL_COMMAND_RESERVE_MS / 4, and loses it if |notified| is
 * RL_COMMAND_YIELDS: then the next waiters of the free keys are notified. Otherwise |notified| has
 * a digit for each key: 1 if the node has notified the entry of it, 0 if not. It is empty for a
 * query of the waiter's own.
 */
#define RL_COMMAND_QUEUES_MAX 8   /* keys; a lock on more keys enters no queue */
#define RL_COMMAND_PLACES_SIZE 48 /* of |before| */
#define RL_COMMAND_RESERVE_MS 400
#define RL_COMMAND_RESERVED ":redlock-reserved"
#define RL_COMMAND_YIELDS "-"

bool rl_command_enqueue_all(rl_buffer *buffer, bool by_text, const rl_command_key *key,
                            const char *before, const char *notified);

/*
 * Arguments of TAKE, PROLONG and CONFIRM. Each answers "word now fence": the node's clock in
 * microseconds, and the counter if TAKE has raised it, otherwise 0. The word is
 *   OK     done;
 *   1...   TAKE: the key of that number exists. Nothing is changed;
 *   no     PROLONG, CONFIRM: a key does not have the token. Nothing is changed;
 *   other  TAKE: the record's seal or |run_id| differs. Nothing is changed.
 * An error says that a key has another type (WRONGTYPE). For TAKE also that a counter is no number,
 * or is exhausted. Nothing is changed then. PROLONG and CONFIRM overwrite a counter that is no
 * number, because a lease outlives its counter. They prolong a counter that is high enough, which
 * also works on a node that is out of memory.
 */
typedef struct rl_command_fence {
  rl_script script;
  const char *body; /* text or SHA-1, if it is not that of the table; or NULL */
  bool by_text;
  bool own;           /* TAKE: a key with the token is no obstacle, and |fence| was issued */
  uint64_t fence;     /* 0 for none. TAKE: the proposal; otherwise the issued token, a minimum */
  uint64_t ttl_ms;    /* life of the keys; their counters live for a week more */
  const char *seal;   /* TAKE with a guard: the key of the record's seal; or NULL */
  const char *run_id; /* TAKE with a seal: the server, "run_id-history" or "-history"; or NULL */
} rl_command_fence;

bool rl_command_fenced(rl_buffer *buffer, const rl_command_key *key,
                       const rl_command_fence *fenced);

/*
 * Asks which of the slots 1 to |permits| of the semaphore |base| exist. It changes nothing. The
 * answer is a hexadecimal digit for each four slots, the first slot in the highest bit; and, if a
 * token names another number of permits (rl_label_permits()), a space and that number.
 */
bool rl_command_slots(rl_buffer *buffer, bool by_text, const rl_command_bytes *base,
                      unsigned permits);

/* The suffix of a key's counter of fencing tokens. */
#define RL_COMMAND_COUNTER ":redlock-fence"

/*
 * EVAL of the script that checks the record of a node. |action|:
 *   look    RL_GUARD_CHECK: only checks
 *   make    RL_GUARD_CREATE: creates a record if there is none, or if the record is of another
 *           server or of the future
 *   clock   RL_GUARD_RECREATE: also if the record is |expected|, because the clock was stepped
 *   spoil   RL_GUARD_INVALIDATE: deletes the record if it is |expected|, because the clock was
 *           stepped, and is too wrong to create one
 *   ready   RL_GUARD_BOOTSTRAP: always creates a record, of the age |age_us|
 * It answers "now run_id why record": the node's clock in microseconds, its identity, why a record
 * must be created ("empty", "restart", "clock"; "-" if there is one), and the record or nothing. A
 * record is "run_id created why fingerprint", with the node's time of the creation.
 * A record with another fingerprint is answered and not replaced (but by "ready"), even if it is of
 * another server: then under the identity of this one. So is one in another database than |db|,
 * with " database=n". A new record has a seal (RL_LINEAGE_SEAL). A server on which a seal proves
 * nothing gets neither, and answers an error: RL_SCRIPT_NO_SEAL and the encodings of a short
 * string.
 */
bool rl_command_guard(rl_buffer *buffer, const char *record_key, const char *action,
                      const char *fingerprint, uint64_t age_us, const char *expected, unsigned db);

/*
 * EVAL of a script that replaces the token of |old| by that of |key|, if all keys have it for more
 * than |floor_ms|. It answers "OK" and the longest life that one of them had left, in ms; otherwise
 * 0. The keys then live for |ttl_ms|. With |here|, which may be NULL, it first compares the node's
 * record and run_id: -1 if they differ.
 */
typedef struct rl_command_here {
  const char *record_key;
  const char *record;
  const char *run_id;
} rl_command_here;

bool rl_command_attach(rl_buffer *buffer, const rl_command_key *key, const rl_command_key *old,
                       uint64_t ttl_ms, uint64_t floor_ms, const rl_command_here *here);

#endif
