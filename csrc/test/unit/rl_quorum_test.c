/*
 * Decisions, for one to eight nodes and every tally.
 *
 * SPDX-License-Identifier: MIT
 */
#include "rl_quorum.h"
#include "rl_test.h"

#define NODES_MAX 8

static unsigned settled(const rl_quorum *quorum) {
  return quorum->granted + quorum->taken + quorum->failed + quorum->unsent;
}

/* Calls |check| for every tally of 1 to 8 nodes. Returns how many there were. */
static unsigned for_all(bool release, void (*check)(const rl_quorum *quorum)) {
  unsigned tallies = 0;
  rl_quorum quorum = {0, 0, 0, 0, 0};
  for (quorum.nodes = 1; quorum.nodes <= NODES_MAX; quorum.nodes++) {
    for (quorum.granted = 0; quorum.granted <= quorum.nodes; quorum.granted++) {
      for (quorum.taken = 0; quorum.taken <= quorum.nodes; quorum.taken++) {
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

/* Whether any completion of the tally has a majority of |which| (an offset). */
static bool reachable(const rl_quorum *quorum, unsigned votes) {
  unsigned pending = quorum->nodes - settled(quorum);
  return 2 * (votes + pending) > quorum->nodes;
}

static bool most(const rl_quorum *quorum, unsigned votes) {
  return 2 * votes > quorum->nodes;
}

static void a_majority_is_more_than_half(void **state) {
  (void)state;
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

static void check_decision(const rl_quorum *quorum) {
  rl_decision decision = rl_quorum_decide(quorum);
  bool majority = most(quorum, quorum->granted);
  assert_int_equal(decision == RL_DECISION_MAJORITY, majority);
  /* Undecided exactly while a majority may still come. */
  assert_int_equal(decision == RL_DECISION_NONE, !majority && reachable(quorum, quorum->granted));
  if (decision == RL_DECISION_TAKEN) {
    assert_true(2 * quorum->taken >= quorum->nodes);
  } else if (decision == RL_DECISION_UNAVAILABLE) {
    assert_true(2 * quorum->failed >= quorum->nodes && 2 * quorum->taken < quorum->nodes);
  } else if (decision == RL_DECISION_SPLIT) {
    assert_true(2 * quorum->failed < quorum->nodes && 2 * quorum->taken < quorum->nodes);
    assert_true(quorum->failed > 0 && quorum->taken > 0);
  }
}

static void a_decision_is_taken_with_the_vote_that_makes_it_certain(void **state) {
  (void)state;
  assert_int_equal(for_all(false, check_decision), 494);
}

/* Whatever comes after a decision, it is not reversed. */
static void check_final(const rl_quorum *quorum) {
  rl_decision decision = rl_quorum_decide(quorum);
  if (decision == RL_DECISION_NONE || settled(quorum) == quorum->nodes) {
    return;
  }
  for (unsigned vote = 0; vote < 3; vote++) {
    rl_quorum next = *quorum;
    next.granted += vote == 0;
    next.taken += vote == 1;
    next.failed += vote == 2;
    assert_int_equal(rl_quorum_decide(&next) == RL_DECISION_MAJORITY,
                     decision == RL_DECISION_MAJORITY);
    assert_true(rl_quorum_decide(&next) != RL_DECISION_NONE);
  }
}

static void decisions_are_final(void **state) {
  (void)state;
  (void)for_all(false, check_final);
}

static rl_decision refer(const rl_quorum *quorum) {
  bool certain = most(quorum, quorum->granted + quorum->taken + quorum->unsent);
  if (most(quorum, quorum->granted)) {
    return RL_DECISION_MAJORITY;
  }
  if (most(quorum, quorum->taken)) {
    return RL_DECISION_TAKEN;
  }
  return certain ? RL_DECISION_MAJORITY : RL_DECISION_UNAVAILABLE;
}

/*
 * What is decided early is what every completion of the tally would be decided as. Once neither a
 * majority that deleted it nor one that did not know it is possible, there is no waiting for nothing.
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
      full.granted += granted;
      full.taken += taken;
      full.failed += pending - granted - taken;
      rl_decision one = refer(&full);
      alike = alike && (end == RL_DECISION_NONE || end == one);
      end = one;
      if (decision != RL_DECISION_NONE) {
        assert_int_equal(one, decision);
      }
    }
  }
  if (alike && !reachable(quorum, quorum->granted) && !reachable(quorum, quorum->taken)) {
    assert_int_equal(decision, end);
  }
}

static void a_release_is_decided_alike_in_any_order(void **state) {
  (void)state;
  assert_int_equal(for_all(true, check_release), 1286);
}

static void a_tie_is_a_refusal(void **state) {
  (void)state;
  for (unsigned nodes = 2; nodes <= NODES_MAX; nodes += 2) {
    rl_quorum quorum = {nodes, nodes / 2, nodes / 2, 0, 0};
    assert_int_equal(rl_quorum_decide(&quorum), RL_DECISION_TAKEN);
    quorum.granted = 0;
    assert_int_equal(rl_quorum_decide(&quorum), RL_DECISION_TAKEN);
    quorum.taken--;
    assert_int_equal(rl_quorum_decide(&quorum), RL_DECISION_NONE);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(a_majority_is_more_than_half),
      cmocka_unit_test(a_decision_is_taken_with_the_vote_that_makes_it_certain),
      cmocka_unit_test(decisions_are_final),
      cmocka_unit_test(a_release_is_decided_alike_in_any_order),
      cmocka_unit_test(a_tie_is_a_refusal),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
