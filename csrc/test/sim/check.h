/*
 * The checkers. Each is a file, sees all clients and nodes at once, and judges in true time.
 *
 * SPDX-License-Identifier: MIT
 *
 *   check_exclusion.c  no two leases of a resource are valid at once
 *   check_validity.c   a lease ends before the majority of its keys does, whatever the clocks show
 *   check_votes.c      a lease stands on the votes of a majority, each for its own attempt and round;
 *                      replies of old ones change nothing
 *   check_leftover.c   the keys of an attempt that failed, and of a lease that ended, are released
 *                      on every node, at once or with the next connection, and go
 *   check_touch.c      nobody's key is deleted, prolonged or overwritten by another
 *   check_revival.c    no lease comes back to life, none grows shorter
 *   check_renewal.c    a lease that keeps itself is extended in time, never beyond max_hold, and its
 *                      loss is told in time and once
 *   check_budget.c     every call ends within its budget
 *   check_bounds.c     memory and queues are bounded
 *   check_liveness.c   after the faults have stopped somebody locks, within a stated bound
 */
#ifndef CHECK_H
#define CHECK_H

#include "sim.h"

/* X(what a checker calls itself when it tells of a violation, which is what --only takes). */
#define CHECKERS(X)                                                                                \
  X(exclusion)                                                                                     \
  X(validity)                                                                                      \
  X(votes)                                                                                         \
  X(leftover)                                                                                      \
  X(touch)                                                                                         \
  X(revival)                                                                                       \
  X(renewal)                                                                                       \
  X(budget)                                                                                        \
  X(bounds)                                                                                        \
  X(liveness)                                                                                      \
  X(wire)                                                                                          \
  X(simulator)

/* A lease has begun. */
void check_exclusion(sim *s, const sim_client *client, const sim_lock *lock);

/* A lease has begun, or has been prolonged. */
void check_validity(sim *s, const sim_client *client, const sim_lock *lock);
/* A node is given the key of a lease late, for |ttl_us|: what is left, and no more. */
void check_validity_joins(sim *s, const sim_client *client, const sim_lock *lock, uint64_t ttl_us);

void check_votes_granted(sim *s, const sim_client *client, const sim_lock *lock);
void check_votes_extended(sim *s, const sim_client *client, const sim_lock *lock);
void check_votes_released(sim *s, const sim_client *client, const sim_lock *lock, uint32_t token,
                          int result);

typedef struct check_votes_state {
  rl_attempt *lease[SIM_LOCKS_MAX];
  redlock_time deadline_us[SIM_LOCKS_MAX];
  rl_phase phase[SIM_LOCKS_MAX];
  int result[SIM_LOCKS_MAX];
  rl_quorum quorum[SIM_LOCKS_MAX];
} check_votes_state;
void check_votes_before(const sim_client *client, check_votes_state *state);
void check_votes_unchanged(sim *s, const sim_client *client, const check_votes_state *state);

/* The core has sent a command. */
void check_sent(sim *s, const sim_client *client, unsigned node, const sim_sent *sent);

/* A turn of the client's loop has ended. */
void check_leftover(sim *s, const sim_client *client);
/* A client that does nothing between its calls returns from one. */
void check_leftover_returned(sim *s, const sim_client *client);
/* The core wants the connection closed. */
void check_leftover_closed(sim *s, const sim_client *client, unsigned node);
/* All is quiet. */
void check_leftover_settled(sim *s);

/* A node is about to execute a command of |token| that changes |key|, which is there. */
void check_touch(sim *s, unsigned node, const sim_connection *connection, const sim_key *key,
                 uint32_t token, sim_command_kind kind);

/* After every call of the core; |reading_us| is what it was given. */
void check_revival(sim *s, sim_client *client, sim_lock *lock, uint32_t before, uint32_t after,
                   uint64_t reading_us);
void check_revival_observed(sim *s, sim_client *client, uint64_t reading_us);

/* A turn of the client's loop has ended. */
void check_renewal(sim *s, const sim_client *client);
/* A lease has been prolonged. */
void check_renewal_extended(sim *s, const sim_client *client, const sim_lock *own);
/* The core has sent an extend. */
void check_renewal_sent(sim *s, const sim_client *client, const sim_lock *own,
                        const sim_sent *sent);
/* The core tells that a lease is lost. */
void check_renewal_told(sim *s, const sim_client *client, const sim_lock *own, int reason);
/* An application is about to do something with a lease. */
void check_renewal_calm(sim *s, const sim_client *client, const sim_lock *own);

void check_budget(sim *s, sim_client *client);
/* How long one round of the lock's operation may take. */
uint64_t check_budget_round_us(const sim_lock *lock);

void check_bounds(sim *s, const sim_client *client);
/* A SET has been sent. */
void check_bounds_asked(sim *s, const sim_client *client, unsigned node, const sim_sent *sent);
void check_bounds_settled(sim *s, const sim_client *client);

uint64_t check_liveness_bound_us(const sim *s);
void check_liveness(sim *s);

#endif
