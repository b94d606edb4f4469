/*
 * The checkers. Each is a file, sees all clients and nodes at once, and judges in true time.
 *
 * SPDX-License-Identifier: MIT
 *
 * A new checker is a file that ends with its |checker|, and a name in CHECKERS. The checker names
 * the moments of CHECK_MOMENTS at which it runs. The simulator reports each moment to all checkers
 * (check_granted(), ...).
 */
#ifndef CHECK_H
#define CHECK_H

#include "sim.h"

/* In the order in which they run. X(the name of a violation, which --only takes) */
#define CHECKERS(X)                                                                                \
  X(votes)                                                                                         \
  X(validity)                                                                                      \
  X(exclusion)                                                                                     \
  X(permits)                                                                                       \
  X(guard)                                                                                         \
  X(fence)                                                                                         \
  X(term)                                                                                          \
  X(hold)                                                                                          \
  X(leftover)                                                                                      \
  X(touch)                                                                                         \
  X(margin)                                                                                        \
  X(revival)                                                                                       \
  X(renewal)                                                                                       \
  X(reentry)                                                                                       \
  X(inspect)                                                                                       \
  X(force)                                                                                         \
  X(budget)                                                                                        \
  X(waiting)                                                                                       \
  X(mix)                                                                                           \
  X(bounds)                                                                                        \
  X(stats)                                                                                         \
  X(liveness)

/* Names of violations that the simulator finds itself. */
#define CHECKERS_WITHOUT_FILE(X)                                                                   \
  X(wire)                                                                                          \
  X(simulator)

/*
 * X(moment, parameters, the same as arguments):
 *
 *   granted     a lease has begun
 *   extended    it has been prolonged
 *   released    a release has ended with |result|
 *   lost        the core reports that a lease is lost
 *   used        an application is about to use a lease
 *   locked      an application has learned that it holds a lock
 *   led         a term has begun: an application has learned that it leads
 *   campaigned  an application is about to campaign
 *   sent        the core has sent a command with a token; the token does not have it yet
 *   asked       the core has sent an operator's command for the lock |own|; NULL: for no lock
 *   answered    an inspection or a force has ended with |result|
 *   touched     a node is about to execute a command of |token| that changes |key|, which exists
 *   kept        a node has executed a release of |token| that keeps |key|
 *   clock_read  a client's clock has been read
 *   changed     a call of the core, at client->reading_us, has changed a lease
 *   closed      the core wants the connection closed
 *   returned    a blocking client returns from a call
 *   turned      a turn of a client's loop has ended
 *   killed      a client has ended
 *   watched     with notifications, after the faults have stopped, every 20 ms
 *   settled     nothing is in flight
 */
#define CHECK_MOMENTS(X)                                                                           \
  X(granted, (sim * s, const sim_client *client, const sim_lock *own), (s, client, own))           \
  X(extended, (sim * s, const sim_client *client, const sim_lock *own), (s, client, own))          \
  X(released, (sim * s, const sim_client *client, const sim_lock *own, int result),                \
    (s, client, own, result))                                                                      \
  X(lost, (sim * s, const sim_client *client, const sim_lock *own, int reason),                    \
    (s, client, own, reason))                                                                      \
  X(used, (sim * s, const sim_client *client, const sim_lock *own), (s, client, own))              \
  X(locked, (sim * s), (s))                                                                        \
  X(led, (sim * s, const sim_client *client, const sim_lock *own), (s, client, own))               \
  X(campaigned, (sim * s, const sim_client *client, const sim_lock *own), (s, client, own))        \
  X(sent, (sim * s, const sim_client *client, unsigned node, const sim_sent *sent),                \
    (s, client, node, sent))                                                                       \
  X(asked,                                                                                         \
    (sim * s, const sim_client *client, const sim_lock *own, unsigned node, const sim_sent *sent), \
    (s, client, own, node, sent))                                                                  \
  X(answered, (sim * s, const sim_client *client, const sim_lock *own, int result),                \
    (s, client, own, result))                                                                      \
  X(touched,                                                                                       \
    (sim * s, const sim_connection *connection, const sim_key *key, uint32_t token,                \
     sim_command_kind kind),                                                                       \
    (s, connection, key, token, kind))                                                             \
  X(kept, (sim * s, const sim_connection *connection, const sim_key *key, uint32_t token),         \
    (s, connection, key, token))                                                                   \
  X(clock_read, (sim * s, sim_client * client), (s, client))                                       \
  X(changed,                                                                                       \
    (sim * s, const sim_client *client, const sim_lock *own, uint32_t before, uint32_t after),     \
    (s, client, own, before, after))                                                               \
  X(closed, (sim * s, const sim_client *client, unsigned node), (s, client, node))                 \
  X(returned, (sim * s, const sim_client *client), (s, client))                                    \
  X(turned, (sim * s, sim_client * client), (s, client))                                           \
  X(killed, (sim * s, const sim_client *client), (s, client))                                      \
  X(watched, (sim * s), (s))                                                                       \
  X(settled, (sim * s), (s))

/* The functions of a checker; NULL: none. */
#define CHECK_MOMENT(moment, parameters, arguments) void(*moment) parameters;
typedef struct checker {
  const char *name;
  CHECK_MOMENTS(CHECK_MOMENT)
} checker;

#define CHECK_CHECKER(name) extern const checker check_##name;
CHECKERS(CHECK_CHECKER)

#define CHECK_TELL(moment, parameters, arguments) void check_##moment parameters;
CHECK_MOMENTS(CHECK_TELL)

/* Replies of old rounds are about to be read, and have been: the votes are the same. */
typedef struct check_votes_state {
  rl_attempt *lease[SIM_LOCKS_MAX];
  redlock_time deadline_us[SIM_LOCKS_MAX];
  rl_phase phase[SIM_LOCKS_MAX];
  int result[SIM_LOCKS_MAX];
  rl_quorum quorum[SIM_LOCKS_MAX];
} check_votes_state;
void check_votes_before(const sim_client *client, check_votes_state *state);
void check_votes_unchanged(sim *s, const sim_client *client, const check_votes_state *state);

/*
 * The lock of the client that has the lease of the token, or NULL; how many acquires count on the
 * lease; and the start of a release by a lock that counted on it.
 */
const sim_lock *check_reentry_holder(const sim *s, const sim_client *client, uint32_t token);
unsigned check_reentry_count(const sim *s, const sim_client *client, uint32_t token);
void check_reentry_released(sim *s, const sim_client *client, const sim_lock *own, uint32_t token);

/*
 * The server has deleted a key of |token| by force. The release that keeps the token promises
 * nothing more if too few nodes keep it.
 */
void check_hold_forced(sim *s, unsigned server, uint32_t token);

/* An acquire has ended well that counts on |lease|, or on none. */
void check_hold_nested(sim *s, const sim_client *client, const sim_lock *own, uint32_t lease);

/* An acquire has ended well. */
void check_reentry_acquired(sim *s, const sim_client *client, const sim_lock *own);

/* Notes a lease of the client that is gone. |lock| is NULL if its lock was freed. */
void check_stats_lease_ended(sim_client *client, const rl_lock *lock, uint64_t deadline_us);

/* Rounds of an attempt of a semaphore: it tries four slots at most, and asks after each. */
#define CHECK_BUDGET_ROUNDS 8u

/* How long one round of the lock's operation may take. */
uint64_t check_budget_round_us(const sim_lock *lock);

/* The time by which a client must have locked after the faults have stopped. */
uint64_t check_liveness_bound_us(const sim *s);

#endif
