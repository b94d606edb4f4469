/*
 * Applies what the guard has found (rl_guard_news) to leases and rounds.
 *
 * SPDX-License-Identifier: MIT
 */
#include "lease/rl_guard_effects.h"

#include "lease/rl_backfill.h"
#include "lease/rl_margin.h"
#include "lease/rl_renew.h"
#include "lock/rl_events.h"
#include "lock/rl_round.h"
#include "node/rl_guard.h"

void rl_guard_effects_prepare(rl_core *core) {
  if (core->guards != NULL) {
    rl_guard_prepare(core->guards, rl_core_quorum(core, RL_OPERATION_ACQUIRE), core->prefix,
                     core->prefix_length);
  }
}

/* FILL-2 */
static void rl_guard_effects_backfill(rl_core *core, uint32_t nodes) {
  for (unsigned i = 0; nodes != 0 && i < core->node_count; i++) {
    if ((nodes >> i & 1) != 0) {
      rl_backfill_note_well(core, core->nodes[i]);
    }
  }
}

/*
 * Counts and reports a node that the guard excludes since now. A quarantine that is over may have
 * ended without a call: then a second one begins.
 */
static void rl_guard_effects_note_quarantine(rl_core *core, rl_node *node, redlock_time now_us) {
  const rl_guard *guard = node->link.guard;
  char reason[RL_REASON_MAX + 1];
  if (guard->state == RL_GUARD_UNKNOWN) {
    return;
  }
  if (!rl_guard_excludes(guard, now_us)) {
    node->quarantine_ends_us = 0;
    return;
  }
  if (node->quarantine_ends_us <= now_us) {
    node->stats.quarantines++;
    rl_events_note_node(core->events, now_us, REDLOCK_EVENT_QUARANTINED, node->index,
                        rl_guard_reason(guard, now_us, reason, sizeof reason));
  }
  node->quarantine_ends_us = rl_time_add(now_us, rl_guard_quarantined(guard, now_us));
}

static void rl_guard_effects_note_quarantines(rl_core *core, redlock_time now_us) {
  for (unsigned i = 0; i < core->node_count; i++) {
    rl_guard_effects_note_quarantine(core, core->nodes[i], now_us);
  }
}

static void rl_guard_effects_act(rl_core *core, const rl_node *node, const rl_guard_news *news) {
  if (news->lost_keys) {
    rl_margin_suspect(core, node);
  }
  rl_guard_effects_backfill(core, news->near);
}

bool rl_guard_effects_note_clock(rl_core *core, rl_node *node, redlock_time now_us,
                                 const rl_outstanding *command, uint64_t node_us) {
  rl_guard_news news = rl_guard_note_clock(node, now_us, command, node_us);
  rl_guard_effects_act(core, node, &news);
  return news.review;
}

void rl_guard_effects_answered(rl_core *core, rl_node *node, redlock_time now_us,
                               const rl_outstanding *command, bool came_up) {
  rl_guard_news news = rl_guard_answered(node, now_us, command);
  rl_guard_effects_act(core, node, &news);
  if (news.review) {
    rl_renew_warn_all(core, now_us);
  }
  uint32_t near = rl_guard_review(core->guards, now_us);
  rl_guard_effects_backfill(core, near);
  rl_guard_effects_note_quarantines(core, now_us);
  uint32_t known = came_up ? near & ~rl_node_bit(node) : near | rl_node_bit(node);
  for (unsigned i = 0; i < core->node_count; i++) {
    if ((known >> i & 1) != 0 && core->nodes[i]->link.phase == RL_LINK_UP) {
      RL_LIST_EACH(&core->locks, lock, rl_lock, locks) {
        rl_round_node_up(lock, now_us, core->nodes[i]);
      }
    }
  }
}

void rl_guard_effects_review(rl_core *core, redlock_time now_us) {
  if (core->guards != NULL) {
    rl_guard_effects_backfill(core, rl_guard_review(core->guards, now_us));
    rl_guard_effects_note_quarantines(core, now_us);
  }
}
