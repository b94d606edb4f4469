/*
 * A mix of all kinds of waiters. See sim_mix.c.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef SIM_MIX_H
#define SIM_MIX_H

#include <stdbool.h>
#include <stdint.h>

#include "redlock.h"

#define SIM_MIX_LOCKS 12 /* of all clients */

/* X(kind, name). The locks of OTHER are on the second resource, those of PAIR on both. */
#define SIM_MIX_KINDS(X)                                                                           \
  X(SINGLE, "single")                                                                              \
  X(PAIR, "pair")                                                                                  \
  X(OWNED, "owned")                                                                                \
  X(SUPPLIED, "supplied")                                                                          \
  X(OTHER, "other")                                                                                \
  X(POLLING, "polling")

typedef enum sim_mix_kind {
#define SIM_MIX_KIND_NAME(kind, name) SIM_MIX_##kind,
  SIM_MIX_KINDS(SIM_MIX_KIND_NAME)
#undef SIM_MIX_KIND_NAME
      SIM_MIX_KIND_COUNT
} sim_mix_kind;

typedef struct sim_mix_state {
  uint8_t kinds[SIM_MIX_LOCKS];
  uint64_t since_us[SIM_MIX_LOCKS]; /* true time: since when the lock is wanted; 0: it is not */
  unsigned grants[SIM_MIX_LOCKS];   /* since |measured_us| */
  unsigned granted;                 /* all of them together */
  uint64_t measured_us;             /* true time: the waits from then on are measured */
} sim_mix_state;

struct sim;
struct sim_client;
struct sim_lock;
struct rl_options;

void sim_mix_draw(struct sim *s); /* the last of the configuration */

/* The phase begins. Returns how long it may last. */
uint64_t sim_mix_begin(struct sim *s);
bool sim_mix_is_over(const struct sim *s);

unsigned sim_mix_index(const struct sim *s, const struct sim_client *client,
                       const struct sim_lock *own);
bool sim_mix_is(const struct sim *s, const struct sim_client *client, const struct sim_lock *own,
                sim_mix_kind kind);

/* The resources of a lock that is made. */
void sim_mix_resources(const struct sim *s, const struct sim_client *client, struct sim_lock *own);

/* The options of an acquire, which is about to begin. */
void sim_mix_options(struct sim *s, const struct sim_client *client, const struct sim_lock *own,
                     struct rl_options *options);

/* The longest lease of the mix with the hand-over to the next waiter. */
uint64_t sim_mix_turn_us(const struct sim *s);

#endif
