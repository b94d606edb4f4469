/*
 * Quarantines that are counted and reported, over scripted nodes and a fake clock.
 *
 * SPDX-License-Identifier: MIT
 */
#include "lease/rl_guard_effects.h"

#include "guarded_world.h"
#include "lock/rl_events.h"

static uint64_t quarantines(unsigned node) {
  return world->core.nodes[node]->stats.quarantines;
}

/* Returns how many events report that |node| is excluded; |reason| gets the last reason. */
static unsigned reported(unsigned node, char reason[RL_REASON_MAX + 1]) {
  unsigned count = 0;
  const rl_events_entry *entry;
  while ((entry = rl_events_take(world->core.events)) != NULL) {
    if (entry->event == REDLOCK_EVENT_QUARANTINED && entry->node == node) {
      count++;
      memcpy(reason, entry->reason, sizeof entry->reason);
    }
  }
  return count;
}

TEST(new_node_is_reported_quarantined_once) {
  char reason[RL_REASON_MAX + 1] = "";
  open_world_of_new_nodes(3);
  assert_error(rl_events_open(&world->core.events), REDLOCK_OK);
  for (unsigned i = 0; i < 10; i++) { /* It is asked again and again. */
    assert_error(fake_acquire(world, lock), REDLOCK_E_UNAVAILABLE);
    fake_pass(world, SECONDS);
    fake_settle(world);
  }
  for (unsigned i = 0; i < 3; i++) {
    assert_int_equal(quarantines(i), 1);
  }
  assert_int_equal(reported(1, reason), 1);
  assert_non_null(strstr(reason, "it has no record"));
  fake_pass(world, QUARANTINE);
  assert_error(fake_acquire(world, lock), REDLOCK_OK);
  assert_int_equal(quarantines(0), 1);
}

TEST(node_that_votes_is_not_reported) {
  open_world_after_a_lease(3);
  for (unsigned i = 0; i < 3; i++) {
    assert_int_equal(quarantines(i), 0);
  }
}

TEST(second_quarantine_of_a_node_counts_again) {
  char reason[RL_REASON_MAX + 1] = "";
  open_world_after_a_lease(3);
  assert_error(rl_events_open(&world->core.events), REDLOCK_OK);
  for (unsigned round = 1; round <= 2; round++) {
    char run_id[16];
    (void)snprintf(run_id, sizeof run_id, "run%u", 70 + round);
    fake_store_restart(&world->nodes[2].store, run_id, false);
    fake_break(world, 2, "Connection reset by peer");
    fake_settle(world);
    assert_acquire(lock, REDLOCK_OK, "ggq");
    assert_int_equal(quarantines(2), round);
    assert_error(fake_release(world, lock), REDLOCK_OK);
    /* Nothing is asked when the quarantine ends. */
    world->now_us += QUARANTINE;
  }
  assert_int_equal(quarantines(0), 0);
  assert_int_equal(reported(2, reason), 2);
  assert_non_null(strstr(reason, "restarted"));
}

TEST(quarantined_node_votes_quarantined) {
  open_world_after_a_lease(3);
  fake_store_restart(&world->nodes[2].store, "run7", false);
  fake_break(world, 2, "Connection reset by peer");
  fake_settle(world);
  assert_error(fake_acquire(world, lock), REDLOCK_OK);
  assert_int_equal(world->core.nodes[2]->stats.votes[REDLOCK_VOTE_QUARANTINED], 1);
  assert_true(rl_guard_excludes(guard_of(2), world->now_us));
  assert_false(rl_guard_excludes(guard_of(0), world->now_us));
}
