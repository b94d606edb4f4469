/*
 * Decisions, for one to eight nodes, every tally, and every number of nodes that may be asked for.
 *
 * SPDX-License-Identifier: MIT
 */
#include "base/rl_quorum.h"
#include "rl_test.h"

#define NODES_MAX 8

static unsigned settled(const rl_quorum *quorum) {
  return 0u + quorum->granted + quorum->denied + quorum->failed + quorum->unsent;
}

/* The unit under test is given this; what is expected is reckoned with it. */
static unsigned needed;

/* Calls |check| for every tally of 1 to 8 nodes. Returns how many there were. */
static unsigned for_all(bool release, void (*check)(const rl_quorum *quorum)) {
  unsigned tallies = 0;
  rl_quorum quorum = {0, 0, 0, 0, 0};
  for (quorum.nodes = 1; quorum.nodes <= NODES_MAX; quorum.nodes++) {
    for (quorum.granted = 0; quorum.granted <= quorum.nodes; quorum.granted++) {
      for (quorum.denied = 0; quorum.denied <= quorum.nodes; quorum.denied++) {
        for (quorum.failed = 0; quorum.failed <= quorum.nodes; quorum.failed++) {
          for (quorum.unsent = 0; quorum.unsent <= (release ? quorum.nodes : 0); quorum.unsent++) {
            if (settled(&quorum) <= quorum.nodes) {
              check(&quorum);
              tallies++;
            }
          }
          quorum.unsent = 0;
        }
      }
    }
  }
  return tallies;
}

/* Returns true if any completion of the tally has a majority of |which| (an offset). */
static bool reachable(const rl_quorum *quorum, unsigned votes) {
  unsigned pending = quorum->nodes - settled(quorum);
  return 2 * (votes + pending) > quorum->nodes;
}

static bool most(const rl_quorum *quorum, unsigned votes) {
  return 2 * votes > quorum->nodes;
}

TEST(majority_is_more_than_half) {
  static const unsigned majorities[] = {1, 1, 2, 2, 3, 3, 4, 4, 5};
  for (unsigned nodes = 1; nodes <= 64; nodes++) {
    unsigned majority = rl_quorum_majority(nodes);
    assert_true(2 * majority > nodes);
    assert_true(2 * (majority - 1) <= nodes);
    if (nodes <= NODES_MAX) {
      assert_int_equal(majority, majorities[nodes]);
    }
  }
}

/* The decisions of an acquire and an extend after all nodes have answered. */
static rl_decision refer_acquire(const rl_quorum *quorum) {
  return quorum->granted >= needed                         ? RL_DECISION_GRANTED
         : 0u + quorum->granted + quorum->denied >= needed ? RL_DECISION_DENIED
                                                           : RL_DECISION_UNAVAILABLE;
}

static rl_decision refer_extend(const rl_quorum *quorum) {
  return quorum->granted >= needed                         ? RL_DECISION_GRANTED
         : 0u + quorum->granted + quorum->failed >= needed ? RL_DECISION_UNAVAILABLE
                                                           : RL_DECISION_DENIED;
}

/*
 * What is decided is what every completion of the tally would be decided as, so that it does not
 * depend on the order of the answers; and it is decided with the vote that makes it so.
 */
static void check_alike(const rl_quorum *quorum, rl_decision decision,
                        rl_decision (*refer_to)(const rl_quorum *quorum)) {
  unsigned pending = quorum->nodes - settled(quorum);
  bool alike = true;
  rl_decision end = RL_DECISION_NONE;
  for (unsigned granted = 0; granted <= pending; granted++) {
    for (unsigned taken = 0; granted + taken <= pending; taken++) {
      rl_quorum full = *quorum;
      full.granted = (full.granted + granted) & 63;
      full.denied = (full.denied + taken) & 63;
      full.failed = (full.failed + pending - granted - taken) & 63;
      rl_decision one = refer_to(&full);
      alike = alike && (end == RL_DECISION_NONE || end == one);
      end = one;
    }
  }
  assert_int_equal(decision, alike ? end : RL_DECISION_NONE);
}

/* For every number of nodes that can be asked for: from the first that is more than half to all. */
static void check_acquire(const rl_quorum *quorum) {
  for (needed = quorum->nodes / 2 + 1; needed <= quorum->nodes; needed++) {
    check_alike(quorum, rl_quorum_decide_acquire(quorum, needed), refer_acquire);
  }
}

static void check_extend(const rl_quorum *quorum) {
  for (needed = quorum->nodes / 2 + 1; needed <= quorum->nodes; needed++) {
    check_alike(quorum, rl_quorum_decide_extend(quorum, needed), refer_extend);
    if (settled(quorum) == quorum->nodes && quorum->failed == 0 && quorum->granted < needed) {
      assert_true(rl_quorum_denied(quorum->nodes, quorum->denied, needed));
    }
  }
}

TEST(acquire_is_decided_alike_in_any_order) {
  assert_int_equal(for_all(false, check_acquire), 494);
}

TEST(extend_is_decided_alike_in_any_order) {
  assert_int_equal(for_all(false, check_extend), 494);
}

static rl_decision refer(const rl_quorum *quorum) {
  bool certain = most(quorum, 0u + quorum->granted + quorum->denied + quorum->unsent);
  if (most(quorum, quorum->granted)) {
    return RL_DECISION_GRANTED;
  }
  if (most(quorum, quorum->denied)) {
    return RL_DECISION_DENIED;
  }
  return certain ? RL_DECISION_GRANTED : RL_DECISION_UNAVAILABLE;
}

/*
 * What is decided early is what every completion of the tally would be decided as. Once neither a
 * majority that deleted it nor one that did not know it is possible, there is no waiting for
 * nothing.
 */
static void check_release(const rl_quorum *quorum) {
  rl_decision decision = rl_quorum_decide_release(quorum);
  unsigned pending = quorum->nodes - settled(quorum);
  if (pending == 0) {
    assert_int_equal(decision, refer(quorum));
    return;
  }
  bool alike = true;
  rl_decision end = RL_DECISION_NONE;
  for (unsigned granted = 0; granted <= pending; granted++) {
    for (unsigned taken = 0; granted + taken <= pending; taken++) {
      rl_quorum full = *quorum;
      full.granted = (full.granted + granted) & 63;
      full.denied = (full.denied + taken) & 63;
      full.failed = (full.failed + pending - granted - taken) & 63;
      rl_decision one = refer(&full);
      alike = alike && (end == RL_DECISION_NONE || end == one);
      end = one;
      if (decision != RL_DECISION_NONE) {
        assert_int_equal(one, decision);
      }
    }
  }
  if (alike && !reachable(quorum, quorum->granted) && !reachable(quorum, quorum->denied)) {
    assert_int_equal(decision, end);
  }
}

TEST(release_is_decided_alike_in_any_order) {
  assert_int_equal(for_all(true, check_release), 1286);
}

/* Half the nodes are no majority. */
TEST(tie_grants_no_lock) {
  for (unsigned nodes = 2; nodes <= NODES_MAX; nodes += 2) {
    unsigned half = nodes / 2;
    rl_quorum quorum = {nodes & 63, half & 63, half & 63, 0, 0};
    unsigned majority = half + 1;
    assert_int_equal(rl_quorum_decide_acquire(&quorum, majority), RL_DECISION_DENIED);
    assert_int_equal(rl_quorum_decide_extend(&quorum, majority), RL_DECISION_DENIED);
    assert_true(rl_quorum_denied(nodes, nodes / 2, majority));
    assert_false(rl_quorum_denied(nodes, nodes / 2 - 1, majority));
  }
}

/*
 * Of |holding| nodes any may lose the key. The margin is the most that can be lost so that those
 * which are left and those that another client needs still are more than there are: they have one
 * in common.
 */
TEST(margin_counts_nodes_until_a_second_holder_is_possible) {
  for (unsigned nodes = 1; nodes <= NODES_MAX; nodes++) {
    for (unsigned asked = nodes / 2 + 1; asked <= nodes; asked++) {
      for (unsigned holding = 0; holding <= nodes; holding++) {
        int margin = -1;
        for (unsigned lost = 0; lost <= holding; lost++) {
          bool another = nodes - (holding - lost) >= asked;
          margin = another ? margin : (int)lost;
        }
        assert_int_equal(rl_quorum_margin(nodes, holding, asked), margin);
      }
    }
  }
}

TEST(margin_equals_the_reference) {
  assert_int_equal(rl_quorum_margin(5, 5, 3), 2);
  assert_int_equal(rl_quorum_margin(5, 3, 3), 0);
  assert_int_equal(rl_quorum_margin(5, 4, 4), 2);
  assert_int_equal(rl_quorum_margin(5, 5, 4), 3);
  assert_int_equal(rl_quorum_margin(3, 3, 3), 2);
  assert_int_equal(rl_quorum_margin(3, 1, 2), -1);
  assert_int_equal(rl_quorum_margin(1, 1, 1), 0);
}

TEST(set_of_nodes_is_counted) {
  assert_int_equal(rl_quorum_count(0), 0);
  assert_int_equal(rl_quorum_count(0x80000001u), 2);
  assert_int_equal(rl_quorum_count(UINT32_MAX), 32);
}
