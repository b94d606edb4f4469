/*
 * The commands that a node is sent, in RESP.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef RL_COMMAND_H
#define RL_COMMAND_H

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "base/rl_buffer.h"

typedef enum rl_script {
  RL_SCRIPT_NONE = 0, /* the command is none */
  RL_SCRIPT_RELEASE,  /* delete the key if it holds the token: 1, else 0 */
  RL_SCRIPT_EXTEND,   /* prolong the key if it holds the token: 1, else 0 */
  /* These are for several keys. */
  RL_SCRIPT_RELEASE_ALL, /* delete each key that holds the token: 1 if all did, else 0 */
  RL_SCRIPT_EXTEND_ALL,  /* prolong all keys if each of them holds the token: 1, else 0 */
  RL_SCRIPT_ACQUIRE_ALL, /* set all keys if none is there: OK, else the number of one that is */
  RL_SCRIPT_HEAL_ALL,    /* set all keys if none holds anything but the token: likewise */
  /* With a fencing token or a guard, for one or several keys: rl_command_watched(). */
  RL_SCRIPT_TAKE, /* set all keys if none is there, and raise their counters */
  RL_SCRIPT_KEEP, /* prolong all keys if each of them holds the token, and raise their counters */
  RL_SCRIPT_CONFIRM, /* raise the counters of all keys if each of them holds the token */
  /* Beside a key there is a queue of those who wait for it, a string: rl_notify.c. */
  RL_SCRIPT_RELEASE_NOTIFY, /* RELEASE, and call the first of them: 2 if there is one, 3 if we may not */
  RL_SCRIPT_RELEASE_ALL_NOTIFY, /* the same of several keys */
  RL_SCRIPT_ENQUEUE,            /* stand in the queue: rl_command_queue() */
  RL_SCRIPT_DEQUEUE,            /* leave it, and call the first if the key is free */
  RL_SCRIPT_TAKE_HERE,          /* TAKE of one record, whose hash is in the text: rl_guard.c */
  RL_SCRIPT_COUNT
} rl_script;

/* The keys and the value of a lock on the wire; any bytes. */
typedef struct rl_command_key {
  const char *key;
  size_t key_length;
  const char *token;
  size_t token_length;
  unsigned count;          /* of keys that stand one behind the other in |key|; 0 is one */
  const uint16_t *lengths; /* of each of them, where there are several */
} rl_command_key;

/*
 * Each appends one command and returns 1, or returns 0, having appended nothing, when there was no
 * room (rl_buffer_reserve()).
 */

/* SET key token NX PX ttl_ms, for one key. */
int rl_command_set(rl_buffer *buffer, const rl_command_key *key, uint64_t ttl_ms);

/*
 * EVALSHA, or EVAL with |by_text|, of |script| for |key|. |ttl_ms| is how long the key is to live; the
 * scripts that release have no such argument. Only a release may be asked for with |grow| false.
 */
int rl_command_script(rl_buffer *buffer, rl_script script, int by_text, const rl_command_key *key,
                      uint64_t ttl_ms, int grow);

/*
 * What is put behind a key for the queue of those who wait for it, and for the sign that there is one; and before a
 * client's channel.
 */
#define RL_COMMAND_QUEUE ":redlock-queue"
#define RL_COMMAND_WAIT ":redlock-wait"
#define RL_COMMAND_CHANNEL "redlock:call:"

/* One of the scripts that release and call. |entry| leaves the queue with it, unless it is NULL. */
int rl_command_release(rl_buffer *buffer, rl_script script, int by_text, const rl_command_key *key,
                       const char *entry, int grow);

/*
 * STAND and LEAVE: |entry| is 16 hexadecimal digits of a channel, and 8 by which its client knows what waits. A call is
 * a message of these 8 and the key. How to stand:
 *   NEW     it certainly does not stand there yet
 *   CHECK   it may
 *   EVICT   and from there on the position in which it stood when the key was free the last time. If the key is free
 *           again, and nobody who stood before it has left, then who is first has not come, and goes
 *   JOIN    as NEW; but where others stand already it does no more than stand behind them, and answers as if the key
 *           did not expire
 * STAND answers 0 when the key is free, and nobody comes before |entry|. Else the position in the queue, from 1, or 0
 * when that is full, and so many units as ms are left of the key and two more; none of a key that is free, where
 * others come first and have been called; one of a key that does not expire, or where the queue is full.
 */
#define RL_COMMAND_ENQUEUE_UNIT 2000
#define RL_COMMAND_QUEUE_MAX 1024
typedef enum rl_command_enqueue {
  RL_COMMAND_ENQUEUE_NEW,
  RL_COMMAND_ENQUEUE_CHECK,
  RL_COMMAND_ENQUEUE_EVICT,
  RL_COMMAND_ENQUEUE_APPEND = RL_COMMAND_QUEUE_MAX + 1
} rl_command_enqueue;

int rl_command_queue(rl_buffer *buffer, rl_script script, int by_text, const char *bytes,
                     size_t length, const char *entry, unsigned mode);

/*
 * How TAKE, KEEP and CONFIRM are asked. Each answers "word now fence": the node's clock in microseconds, and
 * 0 but where TAKE has raised the counters. The word is
 *   OK     it was done;
 *   1...   TAKE: the key of that number is somebody's. Nothing was done;
 *   no     KEEP, CONFIRM: a key does not hold the token. Nothing was done;
 *   other  TAKE: the record of the node is not |record|, or the node is not |run_id|. Nothing was done.
 * An error says that a key is of another type (WRONGTYPE), or to TAKE that a counter holds no number, or has come to
 * its end; nothing was done then, either. KEEP and CONFIRM write a number in the place of what is none: a lease is not
 * lost because its counter is. A counter that is high enough they prolong, which a node that is out of memory does, too.
 */
typedef struct rl_command_watch {
  rl_script script;
  const char *body; /* the text, or its SHA-1, where it is not that of the table */
  bool by_text;
  bool own; /* TAKE: a key that holds the token already is no obstacle, and |fence| was issued */
  uint64_t fence; /* 0 for none. TAKE: what to propose; else what was issued: never less is kept */
  uint64_t
      ttl_ms; /* how long the keys are to live; their counters live for a week more, or a little longer */
  const char *seal; /* TAKE, with a guard: the key that shows that the record is ours; else NULL */
  const char
      *run_id; /* TAKE, with a seal: who the node must be, "run_id-past" or "-past"; or NULL */
} rl_command_watch;

int rl_command_watched(rl_buffer *buffer, const rl_command_key *key, const rl_command_watch *watch);

/* What is put behind a key for its counter of fencing tokens. */
#define RL_COMMAND_COUNTER ":redlock-fence"

/*
 * EVAL of the script that looks at the record of a node, and with |make| makes one where it must be made:
 *   look    only looks
 *   make    makes one where there is none, where it is of another server, or is of the future
 *   clock   also where it is |expected|: the node's clock has been stepped
 *   spoil   deletes it where it is |expected|: its clock was stepped, and is too wrong to make one by
 *   ready   always, as if it had been made |age_us| ago
 * It answers "now run_id why record": the node's clock in microseconds, who it is, why the record is to be made
 * ("empty", "restart", "clock"; "-" when it is there, as it is now), and the record, which is nothing where it is
 * still to be made. A record is "run_id born why fingerprint": when it was made, by the node's clock, and why.
 * A record of other clients is answered and not replaced (but with "ready"), even if it is of another server, under
 * the name of this one; and so is one in another database than |db|, with " database=n" behind it. Beside a record that
 * was made is its seal (RL_LINEAGE_SEAL). A server on which a seal would prove nothing keeps neither, and answers an
 * error that begins with RL_COMMAND_NO_SEAL and says how it stores a short string.
 */
#define RL_COMMAND_NO_SEAL "NOSEAL a short string is"

int rl_command_guard(rl_buffer *buffer, const char *record_key, const char *make,
                     const char *fingerprint, uint64_t age_us, const char *expected, unsigned db);

/* The text of that script. */
const char *rl_command_guard_text(void);

/*
 * EVAL of a script that puts the token of |key| in the place of that of |old|, if all keys hold that and
 * more than |floor_ms| is left of each; 1, else 0. The keys then live for |ttl_ms|. With |here|, which may be NULL, the
 * node's record and its run_id are compared first; -1, if they are others.
 */
typedef struct rl_command_here {
  const char *record_key;
  const char *record;
  const char *run_id;
} rl_command_here;

int rl_command_attach(rl_buffer *buffer, const rl_command_key *key, const rl_command_key *old,
                      uint64_t ttl_ms, uint64_t floor_ms, const rl_command_here *here);

/* An argument of a command: any bytes. */
typedef struct rl_command_bytes {
  const char *bytes;
  size_t length;
} rl_command_bytes;

static inline rl_command_bytes rl_command_word(const char *text) {
  return (rl_command_bytes){text, text != NULL ? strlen(text) : 0};
}

/* A command of |count| arguments. */
int rl_command_arguments(rl_buffer *buffer, const rl_command_bytes *arguments, unsigned count);

/* Returns true if the script is TAKE, of whatever server. */
static inline bool rl_command_takes(rl_script script) {
  return script == RL_SCRIPT_TAKE || script == RL_SCRIPT_TAKE_HERE;
}

/* The text of a script, and the SHA-1 by which EVALSHA names it. Of TAKE_HERE what TAKE has. */
const char *rl_command_script_text(rl_script script);
const char *rl_command_script_sha1(rl_script script);

#endif
