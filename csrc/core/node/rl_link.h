/*
 * A connection to a node: its phase, its handshake, its commands and the outstanding replies.
 *
 * SPDX-License-Identifier: MIT
 *
 * A node has one connection for commands, on which those of all operations are pipelined. A second
 * one receives notifications (rl_subscriber.h). Replies arrive in the order of the commands, so a
 * queue of outstanding commands identifies each reply. A reply for an attempt that has ended is
 * read and dropped.
 */
#ifndef RL_LINK_H
#define RL_LINK_H

#include <stdbool.h>

#include "base/rl_buffer.h"
#include "base/rl_time.h"
#include "node/rl_guard_state.h"
#include "node/rl_node_clock.h"
#include "node/rl_outstanding.h"
#include "options/rl_address.h"
#include "options/rl_login.h"
#include "wire/rl_reply.h"

/*
 * Bounds. Acquires have lower ones than other commands, so that a lease can be released even if a
 * node has stopped answering.
 */
#define RL_LINK_OUTSTANDING_ACQUIRE_MAX 16384
#define RL_LINK_OUTSTANDING_MAX 65536
#define RL_LINK_OUTPUT_ACQUIRE_MAX ((size_t)4 << 20)
#define RL_LINK_OUTPUT_MAX ((size_t)16 << 20)

#define RL_LINK_CONNECT_TIMEOUT_US (3 * REDLOCK_SECONDS)
#define RL_LINK_SILENCE_US (3 * REDLOCK_SECONDS)
#define RL_LINK_IDLE_US                                                                            \
  (10 * REDLOCK_SECONDS) /* ordinary time before rl_link_check_idle() is due */

typedef enum rl_link_phase {
  RL_LINK_DOWN = 0,   /* no connection */
  RL_LINK_CONNECTING, /* the driver resolves the name and connects */
  RL_LINK_HANDSHAKE,  /* connected */
  RL_LINK_UP
} rl_link_phase;

/* The native commands of a connection (rl_native.h). The order is that of the tries. */
typedef enum rl_native {
  RL_NATIVE_OFF,     /* the core does not use them */
  RL_NATIVE_UNKNOWN, /* the connection has released nothing yet */
  RL_NATIVE_WANTED,  /* the next suitable release is followed by the tries */
  RL_NATIVE_TRIED,   /* the answers to the tries are outstanding */
  RL_NATIVE_DELIFEQ, /* Valkey 9.0 and later */
  RL_NATIVE_DELEX,   /* Redis 8.4 and later */
  RL_NATIVE_NONE     /* the node knows neither, or the user may use neither */
} rl_native;

typedef struct rl_link {
  const rl_address *address;      /* the node's */
  const struct rl_link *previous; /* of the client's previous node; NULL for the first */
  rl_link_phase phase;
  bool useful;  /* an operation was answered on this connection */
  uint32_t bit; /* of its node in a set */
  /* Each turn reads these, so they share cache lines with the phase. */
  unsigned outstanding_count;
  unsigned outstanding_head;
  unsigned outstanding_capacity;
  unsigned answerable;         /* outstanding commands that the last bytes may answer */
  rl_outstanding *outstanding; /* a ring buffer */
  rl_buffer output;
  redlock_time received_us;    /* time of the last byte, or of the first outstanding command */
  redlock_duration latency_us; /* of the last reply; REDLOCK_NEVER before the first */
  redlock_duration fastest_us; /* shortest latency of this connection */
  rl_guard *guard;             /* the node's; NULL without a guard or for a subscriber */
  const char *channel;         /* of a subscriber; or NULL */
  const char *notify_channel;  /* the channel of the client's own tickets; or NULL */
  /* Until then releases do not notify: the user lacks the right, and the ACL log notes each try. */
  redlock_time notify_denied_until_us;
  redlock_time no_scripts_until_us; /* the node has refused EVAL: no right, or no interpreter */
  rl_native native;                 /* the native commands of this connection */
  bool knows[RL_SCRIPT_COUNT];      /* the node has, or receives, the script on this connection */
  rl_reply_reader reader;
  uint32_t compared;    /* nodes with which this connection was tested for twins (rl_twin.h) */
  size_t exists_unsent; /* bytes of the output up to the end of EXISTS in the handshake */
  bool skips_name;      /* the next connection sends EXISTS instead of CLIENT SETNAME */
  bool was_silent;      /* the last handshake got no reply: the next one asks EXISTS first */
  bool skips_info;      /* the next connection does not send CLIENT SETINFO */
  bool skips_native;    /* the next connections try no native commands */
  bool lacks_ifeq;      /* the node has refused SET IFEQ on this connection */
  bool reconnect_now;   /* the next connection needs no delay, because it skips such a command */
  redlock_time up_us;   /* time of the end of the handshake */
  redlock_time phase_deadline_us; /* of CONNECTING and HANDSHAKE */
  rl_node_clock clock;            /* the node's clock */
  bool looks_up;                  /* CONNECTING: the driver looks the address up */
  bool login_supplied;            /* the connection uses a caller-supplied login */
  rl_login login; /* caller-supplied, during the handshake; precedes the address's */
} rl_link;

/* |address| must outlive the link. */
void rl_link_init(rl_link *link, const rl_address *address);
void rl_link_free(rl_link *link, rl_attempt_pool *pool);

/* DOWN -> CONNECTING */
void rl_link_connecting(rl_link *link, redlock_time now_us);

/* Returns true if the driver must supply a login before it connects. */
static inline bool rl_link_awaits_login(const rl_link *link) {
  return link->phase == RL_LINK_CONNECTING && link->login.awaited;
}

/* CONNECTING -> HANDSHAKE. Returns false if out of memory: then the connection must end. */
bool rl_link_connected(rl_link *link, redlock_time now_us);

/*
 * Notes that the peer has closed the connection; rl_link_disconnected() must follow. If CLIENT
 * SETNAME or EXISTS was outstanding, the next connection sends the other command. If only CLIENT
 * SETINFO was, the next connection does not send it.
 */
void rl_link_closed(rl_link *link);

/*
 * Notes that the connection is overdue; rl_link_disconnected() must follow. If the peer has
 * answered CLIENT SETNAME and not all that follows, the next connection does not send CLIENT
 * SETINFO.
 */
void rl_link_gave_up(rl_link *link);

/* Any phase -> DOWN. The caller must take the outstanding commands (rl_link_take()). */
void rl_link_disconnected(rl_link *link);

/* Returns the time from which the connection is overdue; REDLOCK_NEVER if there is none. */
static inline redlock_time rl_link_deadline(const rl_link *link) {
  if (link->phase != RL_LINK_UP) {
    return link->phase == RL_LINK_DOWN ? REDLOCK_NEVER : link->phase_deadline_us;
  }
  return link->outstanding_count == 0 ? REDLOCK_NEVER
                                      : rl_time_add(link->received_us, RL_LINK_SILENCE_US);
}

/* Returns what is missing while the address is looked up. */
const char *rl_link_no_address(const rl_link *link);

/* Returns why an overdue connection must end, or NULL. */
const char *rl_link_overdue(const rl_link *link, redlock_time now_us);

/* Returns the age of the oldest outstanding command; 0 if there is none. */
redlock_duration rl_link_oldest_age(const rl_link *link, redlock_time now_us);

/* Returns how long no byte has arrived while a reply is outstanding; 0 if none is. */
redlock_duration rl_link_silence(const rl_link *link, redlock_time now_us);

/*
 * Make room for more outstanding commands, or for one more, before it is written, and add it
 * (rl_link_queue.h). The first two return false if out of memory; the second also if the ring is
 * full and |grow| is false. The third returns true.
 */
bool rl_link_grow_outstanding(rl_link *link);
static inline bool rl_link_reserve_outstanding(rl_link *link, bool grow) {
  return link->outstanding_count < link->outstanding_capacity ||
         (grow && rl_link_grow_outstanding(link));
}
bool rl_link_append(rl_link *link, const rl_outstanding *command);

/* Returns true if a command of |kind| may be queued: the node is up and below its bounds. */
static inline bool rl_link_has_room(const rl_link *link, unsigned kind) {
  bool competes = rl_outstanding_kind_has(kind, RL_COMPETES);
  unsigned outstanding_max = competes ? RL_LINK_OUTSTANDING_ACQUIRE_MAX : RL_LINK_OUTSTANDING_MAX;
  size_t output_max = competes ? RL_LINK_OUTPUT_ACQUIRE_MAX : RL_LINK_OUTPUT_MAX;
  return link->phase == RL_LINK_UP && link->outstanding_count < outstanding_max &&
         rl_buffer_length(&link->output) < output_max;
}

/* Queues the guard's script. The handshake queues the first. */
bool rl_link_ask_guard(rl_link *link, redlock_time now_us, rl_guard_action action);

/* Of an operation that asks: creates the guard's record, so that the node may vote at once. */
bool rl_link_ask_bootstrap(rl_link *link, const rl_outstanding *command);

/* Writes the entry of a queue: the digits of the channel, and those of the ticket's id. */
#define RL_LINK_ENTRY_SIZE (16 + 8 + 1)
void rl_link_entry(const char *channel, uint32_t ticket, char entry[RL_LINK_ENTRY_SIZE]);

/* PING of a subscriber. */
bool rl_link_ping(rl_link *link, redlock_time now_us);

/*
 * Queues CLIENT SETNAME or EXISTS on an idle connection, so that one that a NAT has dropped ends.
 * Returns false if out of memory.
 */
bool rl_link_check_idle(rl_link *link, redlock_time now_us);

/*
 * Returns when rl_link_check_idle() is due, |idle_us| after the last byte; REDLOCK_NEVER unless the
 * connection is up and idle.
 */
redlock_time rl_link_check_idle_at(const rl_link *link, redlock_duration idle_us);

/* Notes that |length| bytes of the output are sent. */
void rl_link_sent(rl_link *link, size_t length);

/* Reads bytes from the node. Returns NULL, or why the connection must end. */
const char *rl_link_feed(rl_link *link, redlock_time now_us, const void *bytes, size_t length);

/*
 * Takes the next complete reply. Returns 1, with the reply in reader.reply and its command, whose
 * reference is the caller's, in |*command|; 0 if there is none; -1 if the connection must end, with
 * |*reason|. Handles replies of the handshake except the guard's, and sets |*came_up| after the
 * last one. For a subscriber it also returns messages.
 */
int rl_link_next(rl_link *link, redlock_time now_us, rl_outstanding *command, bool *came_up,
                 const char **reason);

/* Returns the text of the error in reader.reply, without the password. */
const char *rl_link_error_text(rl_link *link);

/* Masks the token of |attempt| in the error in reader.reply. */
void rl_link_mask_token(rl_link *link, const rl_attempt *attempt);

/* Takes the oldest outstanding command without a reply. Returns false if there is none. */
bool rl_link_take(rl_link *link, rl_outstanding *command);

/* Returns the newest outstanding command; or NULL, also for NULL. */
const rl_outstanding *rl_link_newest(const rl_link *link);

#endif
