/*
 * In a mix of all kinds of waiters, each gets the lock within its bound, and each kind gets a fair
 * share (docs/operating.md, "Waiting").
 *
 * SPDX-License-Identifier: MIT
 *
 * A waiter waits for one turn of each waiter before it. A lock on both resources waits for its turn
 * in each queue, and then for the lease that is held. A waiter that loses an attempt to a polling
 * client waits for one more lease. Two that split the votes try again after up to 100 ms. So a wait
 * is shorter than CHECK_MIX_TIMES turns of each lock and such a pause. A turn is the longest hold
 * and a hand-over. Waiters that poll have no bound and no share. Next to them, supplied tokens have
 * none either, because each makes one attempt.
 */
#include "check.h"
#include "sim_mix.h"

#define CHECK_MIX_TIMES 3
#define CHECK_MIX_SPLIT_US 100000
#define CHECK_MIX_SHARE 2 /* A kind gets at least such a part of its fair share. */

static const char *const check_mix_names[SIM_MIX_KIND_COUNT] = {
#define CHECK_MIX_NAME(kind, name) [SIM_MIX_##kind] = name,
    SIM_MIX_KINDS(CHECK_MIX_NAME)
#undef CHECK_MIX_NAME
};

/* Returns true if the mix has a waiter of the kind. */
static bool check_mix_has(const sim *s, sim_mix_kind kind) {
  for (unsigned i = 0; i < SIM_MIX_LOCKS; i++) {
    if (s->mix.kinds[i] == kind) {
      return true;
    }
  }
  return false;
}

static bool check_mix_is_bound(const sim *s, unsigned index) {
  sim_mix_kind kind = (sim_mix_kind)s->mix.kinds[index];
  bool polling = check_mix_has(s, SIM_MIX_POLLING);
  return kind != SIM_MIX_POLLING && !(kind == SIM_MIX_SUPPLIED && polling);
}

/* The waiter has waited until now. */
static void check_mix_waits(sim *s, unsigned index) {
  uint64_t since_us = s->mix.since_us[index];
  since_us = since_us < s->mix.measured_us ? s->mix.measured_us : since_us;
  uint64_t bound_us = CHECK_MIX_TIMES * (SIM_MIX_LOCKS * sim_mix_turn_us(s) + CHECK_MIX_SPLIT_US);
  if (s->mix.since_us[index] != 0 && check_mix_is_bound(s, index) &&
      s->now_us > since_us + bound_us) {
    sim_violation(s, "mix", "lock %u (%s) has waited for %llu us, may for %llu us", index,
                  check_mix_names[s->mix.kinds[index]], (ull)(s->now_us - since_us), (ull)bound_us);
  }
}

static bool check_mix_measures(const sim *s) {
  return s->phase == SIM_PHASE_MIX && s->now_us >= s->mix.measured_us;
}

static void check_mix_granted(sim *s, const sim_client *client, const sim_lock *own) {
  unsigned index = sim_mix_index(s, client, own);
  if (!s->config.mix) {
    return;
  }
  if (check_mix_measures(s)) {
    check_mix_waits(s, index);
    s->mix.grants[index]++;
    s->mix.granted++;
  }
  s->mix.since_us[index] = 0;
}

/* A waiter that never gets the lock is not granted. */
static void check_mix_watched(sim *s) {
  for (unsigned i = 0; i < SIM_MIX_LOCKS && check_mix_measures(s); i++) {
    check_mix_waits(s, i);
  }
}

/* Counts the grants and the waiters of one kind, or of all kinds of a resource. */
typedef struct check_mix_sum {
  unsigned grants, waiters;
} check_mix_sum;

static void check_mix_add(const sim *s, check_mix_sum *sum, unsigned index) {
  sum->grants += s->mix.grants[index];
  sum->waiters++;
}

/* The locks on both resources have the share of the first one, for which more locks wait. */
static void check_mix_settled(sim *s) {
  check_mix_sum kinds[SIM_MIX_KIND_COUNT] = {0}, resources[SIM_RESOURCES_MAX] = {0};
  for (unsigned i = 0; i < SIM_MIX_LOCKS && s->config.mix; i++) {
    sim_mix_kind kind = (sim_mix_kind)s->mix.kinds[i];
    if (check_mix_is_bound(s, i)) {
      check_mix_add(s, &kinds[kind], i);
      check_mix_add(s, &resources[kind == SIM_MIX_OTHER], i);
    }
  }
  for (unsigned i = 0; i < SIM_MIX_KIND_COUNT; i++) {
    const check_mix_sum *all = &resources[i == SIM_MIX_OTHER];
    if (CHECK_MIX_SHARE * kinds[i].grants * all->waiters < all->grants * kinds[i].waiters) {
      sim_violation(s, "mix", "the %u waiters of kind %s got %u of %u grants for %u waiters",
                    kinds[i].waiters, check_mix_names[i], kinds[i].grants, all->grants,
                    all->waiters);
    }
  }
}

const checker check_mix = {
    .name = "mix",
    .granted = check_mix_granted,
    .watched = check_mix_watched,
    .settled = check_mix_settled,
};
