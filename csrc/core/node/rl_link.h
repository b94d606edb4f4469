/*
 * A connection to a node: its phase, its handshake, the commands for it and what is owed for them.
 *
 * SPDX-License-Identifier: MIT
 *
 * A node has one connection, on which the commands of all operations are pipelined. Replies come in
 * the order of the commands, so a queue of what is owed tells what each reply answers. Nothing is
 * ever waited for to be drained: a reply for an attempt that is over is taken off and dropped.
 */
#ifndef RL_LINK_H
#define RL_LINK_H

#include <stdbool.h>

#include "base/rl_buffer.h"
#include "base/rl_time.h"
#include "node/rl_guard_state.h"
#include "node/rl_node_clock.h"
#include "options/rl_address.h"
#include "options/rl_login.h"
#include "wire/rl_attempt.h"
#include "wire/rl_reply.h"

/*
 * Bounds. New acquires stop well before the others do, so that what was acquired can be released
 * even when a node has stopped answering.
 */
#define RL_LINK_OUTSTANDING_ACQUIRE_MAX 16384
#define RL_LINK_OUTSTANDING_MAX 65536
#define RL_LINK_OUTPUT_ACQUIRE_MAX ((size_t)4 << 20)
#define RL_LINK_OUTPUT_MAX ((size_t)16 << 20)

#define RL_LINK_CONNECT_TIMEOUT_US (3 * REDLOCK_SECONDS)
#define RL_LINK_SILENCE_US (3 * REDLOCK_SECONDS)
#define RL_LINK_IDLE_US (10 * REDLOCK_SECONDS) /* before rl_link_keep() is due */

typedef enum rl_link_phase {
  RL_LINK_DOWN = 0,   /* no connection */
  RL_LINK_CONNECTING, /* the driver resolves the name and connects */
  RL_LINK_HANDSHAKE,  /* connected; logging in */
  RL_LINK_UP
} rl_link_phase;

typedef enum rl_outstanding_kind {
  RL_OUTSTANDING_HANDSHAKE,
  RL_OUTSTANDING_GUARD, /* the record of the guard (rl_guard.c); |step| says what is to be made */
  RL_OUTSTANDING_ACQUIRE,
  RL_OUTSTANDING_EXTEND,
  RL_OUTSTANDING_HEAL,
  RL_OUTSTANDING_RELEASE,
  RL_OUTSTANDING_ATTACH,
  RL_OUTSTANDING_CONFIRM, /* raises counters, and sets no key */
  RL_OUTSTANDING_ENQUEUE, /* these are of no attempt (rl_notify.c); |round| is the place */
  RL_OUTSTANDING_DEQUEUE,
  RL_OUTSTANDING_PROBE,
  RL_OUTSTANDING_ASK /* and all that follow, one for each operation: they leave no key behind */
} rl_outstanding_kind;

/* The kind of the commands of an operation that asks (operator/rl_ask.h). */
#define RL_OUTSTANDING_OF(operation) ((uint8_t)(RL_OUTSTANDING_ASK + (operation)))

/* A reply that the node owes: for which attempt, in which round of its lock. */
typedef struct rl_outstanding {
  rl_attempt *attempt; /* a reference; NULL for the handshake, and the guard's */
  redlock_time sent_us;
  uint32_t round;
  uint8_t kind;
  uint8_t by_text; /* EVAL: there is nothing to fall back to */
  uint8_t
      step; /* of the handshake, or of the doctor; TAKE: whether it asks for the server's past */
  uint8_t script; /* the rl_script that was sent, if it was one */
} rl_outstanding;

typedef struct rl_link {
  const rl_address *address; /* the node's */
  rl_link_phase phase;
  bool useful;          /* it has answered an operation */
  bool tested;          /* it was tested on this connection (rl_twin.h) */
  size_t exists_unsent; /* bytes of the output up to the end of EXISTS in the handshake */
  bool skips_name;      /* the peer has closed a connection at CLIENT SETNAME */
  bool reconnect_now;   /* the next connection, without that command, is worth a try at once */
  redlock_time up_us;   /* since when it is up */
  redlock_time phase_deadline_us; /* CONNECTING, HANDSHAKE: not after */
  redlock_time received_us;       /* the last byte, or since when something is owed */
  redlock_duration latency_us;    /* of the last reply; REDLOCK_NEVER before the first */
  redlock_duration nearest_us;    /* the shortest latency on this connection */
  rl_node_clock clock;            /* the node's, of this connection */
  bool login_supplied;            /* this connection has logged in by one that was given */
  rl_guard *guard;                /* the link's; or NULL, when there is none */
  const char *channel;            /* a listener's, to which it subscribes; or NULL */
  const char *notify_channel;     /* where releases call: the channel of our own places; or NULL */
  redlock_time
      notify_denied_until_us; /* we may call nobody there: the plain release does it until then, or
                                 each would be noted in the ACL log. Rights may be given meanwhile */
  uint32_t bit;               /* of its node in a set */
  rl_login login; /* of this connection, while it is made; it goes before the address's */
  rl_reply_reader reader;
  rl_buffer output;
  rl_outstanding *outstanding; /* a ring */
  unsigned outstanding_capacity;
  unsigned outstanding_head;
  unsigned outstanding_count;
  bool knows[RL_SCRIPT_COUNT]; /* the node has run the script on this connection, or is about to */
} rl_link;

/* |address| must outlive the link. Cannot fail. */
void rl_link_init(rl_link *link, const rl_address *address);
void rl_link_free(rl_link *link, rl_attempt_pool *pool);

/* DOWN -> CONNECTING */
void rl_link_connecting(rl_link *link, redlock_time now_us);

/* CONNECTING: the connection is not begun before its login has come, which the core is told. */
static inline bool rl_link_awaits_login(const rl_link *link) {
  return link->phase == RL_LINK_CONNECTING && link->login.awaited;
}

/* CONNECTING -> HANDSHAKE; false when out of memory: it must be given up. */
bool rl_link_connected(rl_link *link, redlock_time now_us);

/*
 * The peer has closed the connection, which rl_link_disconnected() follows. If the handshake was at what any
 * reply will do for, the next connection sends the other command (rl_link.c).
 */
void rl_link_closed(rl_link *link);

/* Any phase -> DOWN. What is owed is left for the caller to take, by rl_link_take(). */
void rl_link_disconnected(rl_link *link);

/* The instant at which rl_link_overdue() will answer; REDLOCK_NEVER if none is known. */
static inline redlock_time rl_link_deadline(const rl_link *link) {
  switch (link->phase) {
  case RL_LINK_DOWN:
    return REDLOCK_NEVER;
  case RL_LINK_CONNECTING:
  case RL_LINK_HANDSHAKE:
    return link->phase_deadline_us;
  case RL_LINK_UP:
  default:
    return link->outstanding_count == 0 ? REDLOCK_NEVER
                                        : rl_time_add(link->received_us, RL_LINK_SILENCE_US);
  }
}

/* Why the connection must be given up by now, or NULL. */
const char *rl_link_overdue(const rl_link *link, redlock_time now_us);

/* For how long the oldest reply has been owed; 0 when none is. */
redlock_duration rl_link_oldest_age(const rl_link *link, redlock_time now_us);

/* Returns for how long the node has sent nothing although it owes a reply; 0 if it owes none. */
redlock_duration rl_link_silence(const rl_link *link, redlock_time now_us);

/* Returns true if a command of |kind| may be queued: the node is up and below its bounds. */
bool rl_link_has_room(const rl_link *link, rl_outstanding_kind kind);

/*
 * Queue a command of an attempt. Each takes a reference of the attempt and returns true, or returns
 * false, having done nothing, when out of memory. With |grow| false nothing is allocated. A script
 * goes by its text with |by_text|, and until the node has shown that it knows it. A SET of several keys
 * is a script.
 */
bool rl_link_queue_set(rl_link *link, redlock_time now_us, rl_outstanding_kind kind,
                       rl_attempt *attempt, uint32_t round, uint64_t ttl_ms);
bool rl_link_queue_extend(rl_link *link, redlock_time now_us, rl_attempt *attempt, uint32_t round,
                          bool by_text, uint64_t ttl_ms);
bool rl_link_queue_release(rl_link *link, redlock_time now_us, rl_attempt *attempt, uint32_t round,
                           bool by_text, bool grow);

/*
 * What takes their place with a fencing token or a guard (rl_command_watched()): TAKE in place of the SET, with |own|
 * for a lease that is there already, to which |fence| belongs, else to propose |fence|; KEEP in place of the extend;
 * CONFIRM. A TAKE without |own| is of the server that the guard knows.
 */
bool rl_link_queue_take(rl_link *link, redlock_time now_us, rl_outstanding_kind kind,
                        rl_attempt *attempt, uint32_t round, uint64_t ttl_ms, bool own,
                        uint64_t fence);
bool rl_link_queue_keep(rl_link *link, redlock_time now_us, rl_attempt *attempt, uint32_t round,
                        bool by_text, uint64_t ttl_ms, uint64_t fence);
bool rl_link_queue_confirm(rl_link *link, redlock_time now_us, rl_attempt *attempt, uint32_t round,
                           bool by_text, uint64_t ttl_ms, uint64_t fence);

/* The question of the guard: the first goes with the handshake. */
bool rl_link_queue_guard(rl_link *link, redlock_time now_us, rl_guard_action make);

/* Puts the attempt's token in the place of that of |handed|, if more than |floor_ms| is left of the key. */
bool rl_link_queue_attach(rl_link *link, redlock_time now_us, rl_attempt *attempt, uint32_t round,
                          const rl_attempt *handed, uint64_t ttl_ms, uint64_t floor_ms);

/* Of an operation that asks: the record of the guard is to be made anew, as of a node that may vote. */
bool rl_link_queue_bootstrap(rl_link *link, const rl_outstanding *command);

/* Deletes the key: if it holds the attempt's token, or with attempt->any whatever it holds. */
bool rl_link_queue_force(rl_link *link, const rl_outstanding *command);

/* Any command of |count| arguments, of an operation that asks. */
bool rl_link_queue_arguments(rl_link *link, const rl_outstanding *command,
                             const rl_command_bytes *arguments, unsigned count);

/* What stands in a queue: the digits of the channel, and of the place. */
#define RL_LINK_ENTRY_SIZE (16 + 8 + 1)
void rl_link_entry(const char *channel, uint32_t place, char entry[RL_LINK_ENTRY_SIZE]);

/* Of the queue beside |key|: |entry| is to stand in it; is to leave it (rl_command.h). */
bool rl_link_queue_enqueue(rl_link *link, redlock_time now_us, uint32_t place, const char *key,
                           size_t length, const char *entry, unsigned mode);
bool rl_link_queue_dequeue(rl_link *link, redlock_time now_us, uint32_t place, const char *key,
                           size_t length, const char *entry);

/* PUBLISH of nothing to |channel|; and of a listener PING. */
bool rl_link_queue_probe(rl_link *link, redlock_time now_us, const char *channel);
bool rl_link_ping(rl_link *link, redlock_time now_us);

/*
 * Asks a node that is up for any reply, by the command that the handshake had for that. A connection that a NAT has
 * forgotten ends so.
 */
bool rl_link_keep(rl_link *link, redlock_time now_us);

/* Returns when rl_link_keep() is due; REDLOCK_NEVER if the node owes something, or is not up. */
redlock_time rl_link_keep_at(const rl_link *link);

/* So many bytes of the output have been sent. */
void rl_link_sent(rl_link *link, size_t length);

/* Bytes from the node. Returns NULL, or why the connection must be given up. */
const char *rl_link_feed(rl_link *link, redlock_time now_us, const void *bytes, size_t length);

/*
 * The next complete reply of an operation, in link->link.reader.reply, with what it answers moved to
 * |*owed|, whose reference is the caller's: 1; 0 when there is none yet; -1 when the connection must
 * be given up, for |*reason|. Replies of the handshake are dealt with inside, but for the guard's; *came_up
 * is set when the last of them has come. Of a listener it is the next message.
 */
int rl_link_next(rl_link *link, redlock_time now_us, rl_outstanding *command, bool *came_up,
                 const char **reason);

/* The text of the error in link->link.reader.reply, without what may be the password. */
const char *rl_link_error_text(rl_link *link);

/* Strikes the token of |attempt| out of the error in link->link.reader.reply: servers quote what they were sent. */
void rl_link_mask_token(rl_link *link, const rl_attempt *attempt);

/* Takes the oldest debt off without a reply: false when nothing is owed. */
bool rl_link_take(rl_link *link, rl_outstanding *command);

#endif
