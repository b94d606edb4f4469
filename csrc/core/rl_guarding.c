/*
 * What follows for leases and waiting rounds when the guard has learned something of the nodes.
 *
 * SPDX-License-Identifier: MIT
 */
#include "rl_guarding.h"

#include "rl_guard.h"
#include "rl_join.h"
#include "rl_margin.h"
#include "rl_renew.h"
#include "rl_round.h"

void rl_guarding_prepare(rl_core *core) {
  if (core->guards != NULL) {
    rl_guard_prepare(core->guards, rl_core_quorum(core, RL_OPERATION_ACQUIRE), core->prefix,
                     core->prefix_length);
  }
}

/* J2 of rl_join.c. */
static void rl_guarding_join(rl_core *core, uint32_t nodes) {
  for (unsigned i = 0; nodes != 0 && i < core->node_count; i++) {
    if ((nodes >> i & 1) != 0) {
      rl_join_ready(core, core->nodes[i]);
    }
  }
}

static void rl_guarding_act(rl_core *core, const rl_node *node, const rl_guard_news *news) {
  if (news->suspect) {
    rl_margin_doubt(core, node);
  }
  rl_guarding_join(core, news->near);
}

bool rl_guarding_heard(rl_core *core, rl_node *node, redlock_time now_us, const rl_owed *owed,
                       uint64_t node_us) {
  rl_guard_news news = rl_guard_heard(node, now_us, owed, node_us);
  rl_guarding_act(core, node, &news);
  return news.doubtful;
}

void rl_guarding_answered(rl_core *core, rl_node *node, redlock_time now_us, const rl_owed *owed,
                          bool came_up) {
  rl_guard_news news = rl_guard_answered(node, now_us, owed);
  rl_guarding_act(core, node, &news);
  if (news.doubtful) {
    rl_renew_doubt_all(core, now_us);
  }
  uint32_t near = rl_guard_review(core->guards, now_us);
  rl_guarding_join(core, near);
  uint32_t told = came_up ? near & ~rl_node_bit(node) : near | rl_node_bit(node);
  for (unsigned i = 0; i < core->node_count; i++) {
    if ((told >> i & 1) != 0 && core->nodes[i]->link.phase == RL_LINK_UP) {
      for (rl_lock *lock = core->locks; lock != NULL; lock = lock->next) {
        rl_round_node_up(lock, now_us, core->nodes[i]);
      }
    }
  }
}

void rl_guarding_review(rl_core *core, redlock_time now_us) {
  if (core->guards != NULL) {
    rl_guarding_join(core, rl_guard_review(core->guards, now_us));
  }
}
