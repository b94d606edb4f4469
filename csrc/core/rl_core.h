/*
 * The core: nodes, locks and the algorithm, without input or output.
 *
 * SPDX-License-Identifier: MIT
 *
 * The core never reads a clock, opens a socket, draws a random number or sleeps. Events are
 * arguments, and the driver asks for what the core wants. There are no callbacks. A driver repeats:
 *
 *   1. for each connection that changed: rl_core_connected(), rl_core_disconnected(),
 *      rl_core_input()
 *   2. rl_core_advance(now): timers
 *   3. for each connection: rl_core_wanted_connection() returns what the connection should be
 *   4. rl_core_send(now, entropy): sends the commands of operations that began or are due again;
 *      rl_core_entropy_wanted() returns how much entropy to bring
 *   5. for each connection: rl_core_output(), write the bytes, rl_core_output_sent()
 *   6. rl_core_next_ended(), rl_lock_outcome()
 *   7. wait until rl_core_deadline(), or until a connection changes
 *
 * Read |now| as late as possible before each call, and after the bytes that the call brings.
 */
#ifndef RL_CORE_H
#define RL_CORE_H

#include <stdbool.h>

#include "lease/rl_backfill.h"
#include "lease/rl_loss.h"
#include "lease/rl_reentry.h"
#include "lease/rl_release.h"
#include "lifecycle/rl_lifecycle.h"
#include "lifecycle/rl_pacer.h"
#include "lock/rl_lock.h"
#include "lock/rl_outbox.h"
#include "node/rl_guard.h"
#include "operator/rl_ask.h"
#include "operator/rl_doctor.h"
#include "operator/rl_inspect.h"
#include "wait/rl_notify.h"
#include "wait/rl_queue_report.h"
#include "wait/rl_waitlist.h"

typedef enum rl_connection {
  RL_CONNECTION_NONE,   /* close the connection if there is one */
  RL_CONNECTION_WANTED, /* make a connection now, and call rl_core_connecting() */
  RL_CONNECTION_OPEN    /* being made, or made: leave it alone */
} rl_connection;

/* Returns REDLOCK_OK or REDLOCK_E_NO_MEMORY. */
int rl_core_init(rl_core *core, const void *prefix, size_t prefix_length);

/* The caller has freed all locks. */
void rl_core_free(rl_core *core);

/* Errors: LIMIT, BUSY, CLOSED, NO_MEMORY. */
int rl_core_add(rl_core *core, const rl_address *address);

/*
 * Returns the number of connections: one to each node, numbered like the node, then one subscriber
 * for each node once subscribers exist (rl_subscriber.h). The functions below take both.
 */
static inline unsigned rl_core_connection_count(const rl_core *core) {
  return core->connection_count;
}

/* Returns true if the connection exists, or existed until a reset dropped the subscribers. */
bool rl_core_has_connection(const rl_core *core, unsigned connection);

/* Returns the node or subscriber of a connection: its address, its phase. */
static inline const rl_node *rl_core_peer(const rl_core *core, unsigned connection) {
  return core->nodes[connection];
}

/* ---- in ---- */
void rl_core_connecting(rl_core *core, unsigned connection, redlock_time now_us);
void rl_core_connected(rl_core *core, unsigned connection, redlock_time now_us);

/*
 * Sets user and password of the connection that is being made, instead of those in the address.
 * NULL for no user. Call it between rl_core_connecting() and rl_core_connected(). Returns
 * REDLOCK_OK, REDLOCK_E_INVALID (too long, or no connection is being made) or REDLOCK_E_NO_MEMORY.
 */
int rl_core_login(rl_core *core, unsigned connection, const char *username, const void *password,
                  size_t length);

/* Notes that the credentials come later: until then a connect timeout has another reason. */
void rl_core_await_login(rl_core *core, unsigned connection);

/* Notes that a name server, or Sentinels, must still supply the address. */
void rl_core_looks_up(rl_core *core, unsigned connection, bool looks_up);

/* Notes that the certificate of the new connection expires after |left_us|. */
void rl_core_certificate(rl_core *core, unsigned connection, redlock_time now_us,
                         redlock_duration left_us);

void rl_core_disconnected(rl_core *core, unsigned connection, redlock_time now_us,
                          const char *reason);
void rl_core_input(rl_core *core, unsigned connection, redlock_time now_us, const void *bytes,
                   size_t length);
void rl_core_advance(rl_core *core, redlock_time now_us);

/* Notes the time, as rl_core_advance() does: enough before rl_core_deadline(). */
void rl_core_note_time(rl_core *core, redlock_time now_us);
void rl_core_send(rl_core *core, redlock_time now_us, const unsigned char *entropy,
                  size_t entropy_length);

/* ---- out ---- */
rl_connection rl_core_wanted_connection(const rl_core *core, unsigned connection,
                                        redlock_time now_us);
bool rl_core_awaits_login(const rl_core *core, unsigned connection);

/*
 * Returns the connections that are down, bit i for connection i. rl_core_wanted_connection() can
 * only change the state of these.
 */
uint32_t rl_core_without_connection(const rl_core *core);
size_t rl_core_entropy_wanted(const rl_core *core);
bool rl_core_wants_send(const rl_core *core);

/* Returns true if rl_core_output() has bytes. */
static inline bool rl_core_has_output(const rl_core *core, unsigned connection) {
  return rl_buffer_length(&rl_core_peer(core, connection)->link.output) > 0;
}

/* Returns the connections for which rl_core_output() has bytes, bit i for connection i. */
uint32_t rl_core_with_output(const rl_core *core);

/* Returns the bytes to send, or NULL. Valid until the next call on the core. */
const void *rl_core_output(const rl_core *core, unsigned connection, size_t *length);
void rl_core_output_sent(rl_core *core, unsigned connection, size_t length);

/* Returns when to call rl_core_advance() at the latest; REDLOCK_NEVER when nothing is due. */
redlock_time rl_core_deadline(const rl_core *core);

/* Returns the next lock whose operation has ended, each once; or NULL. */
rl_lock *rl_core_next_ended(rl_core *core);

/* Returns true if an operation is in flight. */
static inline bool rl_core_is_busy(const rl_core *core) {
  return core->busy_count > 0;
}

/* Returns how many leases may be valid at |now_us|. 0 is exact; otherwise some may have expired. */
static inline size_t rl_core_leases_at_most(const rl_core *core, redlock_time now_us) {
  return now_us < core->leases_end_us ? core->lease_count : 0;
}

/*
 * Writes the error message of the last operation to |buffer|, "" after success. Returns |buffer|.
 */
const char *rl_lock_message(const rl_lock *lock, char *buffer, size_t size);

/* ---- ending ---- */

/* Ends all operations with REDLOCK_E_CLOSED and begins to release all leases. Idempotent. */
void rl_core_close(rl_core *core, redlock_time now_us);

/*
 * Prepares for a pause of the driver, for example after a blocking call: sends what would only wait
 * for a reply first. There may be output afterwards.
 */
void rl_core_before_pause(rl_core *core, redlock_time now_us);

/* Returns true if there are bytes to send, or releases for connections that are being made. */
bool rl_core_has_unsent(const rl_core *core);

/* Returns true if a reply is outstanding, a release is due, or rl_core_has_unsent(). */
bool rl_core_has_unanswered(const rl_core *core);

/*
 * Like rl_core_has_unanswered(), without nodes that are disconnected and not about to connect, and
 * without nodes whose oldest reply has been outstanding for longer than |patience_us|. The other
 * nodes are worth waiting for: closing a connection before its replies have come resets it, and the
 * node may drop commands that it has not read.
 */
bool rl_core_awaits_replies(const rl_core *core, redlock_time now_us, redlock_duration patience_us);

/* Drops all connections, leases and operations without sending anything (a forked child). */
void rl_core_reset(rl_core *core);

/* ---- statistics ---- */

/* Starts all counters at zero, and drops events (a forked child). */
void rl_core_reset_stats(rl_core *core);

/* Return the number of leases that last, and of acquires that wait. Both look at every lock. */
size_t rl_core_count_leases(const rl_core *core, redlock_time now_us);
size_t rl_core_waiting(const rl_core *core);

#endif
