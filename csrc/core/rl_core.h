/*
 * The core: nodes, locks and the algorithm, without any input or output.
 *
 * SPDX-License-Identifier: MIT
 *
 * The core never reads a clock, opens a socket, draws a random number or sleeps. What happens enters
 * as an argument, what it wants is asked for. There are no callbacks. A driver repeats:
 *
 *   1. for each node whose connection moved: rl_core_connected(), rl_core_disconnected(),
 *      rl_core_input()
 *   2. rl_core_advance(now): timers
 *   3. for each node: rl_core_connection() says what its connection should be
 *   4. rl_core_send(now, entropy): sends the commands of operations that were begun, or are due
 *      again; rl_core_entropy_wanted() says how much entropy to bring
 *   5. for each node: rl_core_output(), write it, rl_core_output_sent()
 *   6. rl_core_next_ended(), rl_lock_outcome()
 *   7. wait until rl_core_deadline() or a connection moves
 *
 * |now| is read as late as possible before each call, and after the bytes that the call brings.
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
#include "wait/rl_waitlist.h"

typedef enum rl_connection {
  RL_CONNECTION_NONE,   /* there should be none: close it if there is one */
  RL_CONNECTION_WANTED, /* try one now, and say rl_core_connecting() */
  RL_CONNECTION_OPEN    /* being made, or made: leave it alone */
} rl_connection;

/* Returns REDLOCK_OK or REDLOCK_E_NO_MEMORY. */
int rl_core_init(rl_core *core, const void *prefix, size_t prefix_length);

/* All locks have been freed. */
void rl_core_free(rl_core *core);

/* Errors: LIMIT, BUSY, CLOSED, NO_MEMORY. */
int rl_core_add(rl_core *core, const rl_address *address);

/*
 * How many connections there may be: one to each node, which goes by the node's number, and for calls a second one
 * each, behind them (rl_subscriber.h). What is said of a connection below goes for both.
 */
static inline unsigned rl_core_connection_count(const rl_core *core) {
  return core->connection_count;
}

/* Returns true if there is, or was, a connection of that number: those for calls may have been forgotten. */
bool rl_core_has(const rl_core *core, unsigned connection);

/* The node to which a connection goes: its address, its phase. */
const rl_node *rl_core_end(const rl_core *core, unsigned connection);

/* ---- in ---- */
void rl_core_connecting(rl_core *core, unsigned connection, redlock_time now_us);
void rl_core_connected(rl_core *core, unsigned connection, redlock_time now_us);

/*
 * As whom to log in on the connection that is being made, in place of what the address says; NULL for none. Only
 * between rl_core_connecting() and rl_core_connected(). Returns REDLOCK_OK, REDLOCK_E_INVALID (too long, or no
 * connection is being made) or REDLOCK_E_NO_MEMORY.
 */
int rl_core_login(rl_core *core, unsigned connection, const char *username, const void *password,
                  size_t length);

/* The same is to come later: until then connecting takes too long for another reason. */
void rl_core_await_login(rl_core *core, unsigned connection);

/* The certificate of the connection that has just been made is valid for |left_us| yet. */
void rl_core_certificate(rl_core *core, unsigned connection, redlock_time now_us,
                         redlock_duration left_us);

void rl_core_disconnected(rl_core *core, unsigned connection, redlock_time now_us,
                          const char *reason);
void rl_core_input(rl_core *core, unsigned connection, redlock_time now_us, const void *bytes,
                   size_t length);
void rl_core_advance(rl_core *core, redlock_time now_us);
void rl_core_send(rl_core *core, redlock_time now_us, const unsigned char *entropy,
                  size_t entropy_length);

/* ---- out ---- */
rl_connection rl_core_connection(const rl_core *core, unsigned connection, redlock_time now_us);
bool rl_core_awaits_login(const rl_core *core, unsigned connection);

/* Returns the connections that are down, bit i for connection i: only to those may rl_core_connection() object. */
uint32_t rl_core_without_connection(const rl_core *core);
size_t rl_core_entropy_wanted(const rl_core *core);
bool rl_core_wants_send(const rl_core *core);

/* Returns the connections for which rl_core_output() has bytes, bit i for connection i. */
uint32_t rl_core_with_output(const rl_core *core);

/* The bytes to send to a node; NULL when there are none. Valid until the next call on the core. */
const void *rl_core_output(const rl_core *core, unsigned connection, size_t *length);
void rl_core_output_sent(rl_core *core, unsigned connection, size_t length);

/* When to call rl_core_advance() at the latest; REDLOCK_NEVER when nothing is due. */
redlock_time rl_core_deadline(const rl_core *core);

/* The next lock whose operation has ended, each once. */
rl_lock *rl_core_next_ended(rl_core *core);

/* Returns true if an operation is in flight. */
static inline bool rl_core_is_busy(const rl_core *core) {
  return core->busy_count > 0;
}

/* How many leases may last at |now_us|: 0 is certain, more may have run out since they were taken. */
static inline size_t rl_core_leases(const rl_core *core, redlock_time now_us) {
  return now_us < core->leases_end_us ? core->lease_count : 0;
}

/* Fills |buffer| with what the last operation ended with, "" after success. Returns |buffer|. */
const char *rl_lock_message(const rl_lock *lock, char *buffer, size_t size);

/* ---- ending ---- */

/* Ends all operations with REDLOCK_E_CLOSED and begins to release all leases. Idempotent. */
void rl_core_close(rl_core *core, redlock_time now_us);

/*
 * The driver will not call for a while, as a blocking call that returns: what waits for an answer before
 * it is sent, and for nothing else, is sent now. There may be output afterwards.
 */
void rl_core_rest(rl_core *core, redlock_time now_us);

/* Returns true if bytes, or releases for connections that are being made, are still to be sent. */
bool rl_core_unsent(const rl_core *core);

/* Returns true if a release is still due anywhere, or a reply is owed. */
bool rl_core_unanswered(const rl_core *core);

/*
 * As rl_core_unanswered(), but without the nodes that are not connected and are not about to be, and
 * those whose oldest debt is older than |patience_us|: one
 * that has been silent for so long is not worth waiting for. The others are: a connection that is
 * closed before its replies have come is reset, and the node may drop commands that it has not read.
 */
bool rl_core_awaits(const rl_core *core, redlock_time now_us, redlock_duration patience_us);

/* Drops all connections, leases and operations without sending anything (a forked child). */
void rl_core_reset(rl_core *core);

#endif
