/*
 * Verdicts: what a reply is, and what it proves. All commands are tried in rl_acquire_test.c,
 * rl_extend_test.c and rl_release_test.c.
 *
 * SPDX-License-Identifier: MIT
 */
#include "node/rl_verdict.h"

#include "rl_test.h"

TEST(each_reply_has_its_verdict) {
  static const struct {
    rl_reply reply;
    rl_script script;
    rl_verdict verdict;
  } rows[] = {
      {{.type = RL_REPLY_STATUS, .text = "OK"},
       RL_SCRIPT_NONE,
       {REDLOCK_VOTE_GRANTED, .ran = true}},
      {{.type = RL_REPLY_NIL},
       RL_SCRIPT_NONE,
       {REDLOCK_VOTE_TAKEN, .ran = true, .set_nothing = true}},
      {{.type = RL_REPLY_ERROR, .text = "OOM command not allowed"},
       RL_SCRIPT_NONE,
       {REDLOCK_VOTE_ERROR, .set_nothing = true}},
      {{.type = RL_REPLY_ERROR, .text = "ERR of whatever kind"},
       RL_SCRIPT_NONE,
       {.vote = REDLOCK_VOTE_ERROR}},
      {{.type = RL_REPLY_ERROR, .text = "NOSCRIPT No matching script."},
       RL_SCRIPT_ACQUIRE_ALL,
       {REDLOCK_VOTE_ERROR, .set_nothing = true, .wants_text = true}},
      {{.type = RL_REPLY_INTEGER, .integer = 7},
       RL_SCRIPT_NONE,
       {REDLOCK_VOTE_ERROR, .unreadable = true}},
  };
  for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
    rl_outstanding command = {.kind = RL_OUTSTANDING_ACQUIRE, .script = (uint8_t)rows[i].script};
    rl_verdict verdict = rl_verdict_read(&command, &rows[i].reply);
    assert_int_equal(verdict.vote, rows[i].verdict.vote);
    assert_int_equal(verdict.ran, rows[i].verdict.ran);
    assert_int_equal(verdict.set_nothing, rows[i].verdict.set_nothing);
    assert_int_equal(verdict.wants_text, rows[i].verdict.wants_text);
    assert_int_equal(verdict.unreadable, rows[i].verdict.unreadable);
  }
}

TEST(release_reports_a_notified_waiter) {
  static const unsigned kinds[] = {RL_OUTSTANDING_RELEASE, RL_OUTSTANDING_FORCE_RELEASE};
  for (unsigned i = 0; i < 2; i++) {
    for (long long answer = -1; answer <= 4; answer++) {
      rl_outstanding command = {.kind = (uint8_t)kinds[i], .script = RL_SCRIPT_RELEASE_NOTIFY};
      rl_reply reply = {.type = RL_REPLY_INTEGER, .integer = answer};
      rl_verdict verdict = rl_verdict_read(&command, &reply);
      assert_int_equal(verdict.vote == REDLOCK_VOTE_GRANTED, answer >= 1 && answer <= 3);
      assert_int_equal(verdict.vote == REDLOCK_VOTE_TAKEN, answer == 0);
      assert_int_equal(verdict.notified, answer == 2);
      assert_int_equal(verdict.notify_denied, answer == 3);
      assert_int_equal(verdict.unreadable, answer < 0 || answer > 3);
    }
  }
}

TEST(other_scripts_never_answer_2) {
  static const rl_outstanding rows[] = {
      {.kind = RL_OUTSTANDING_EXTEND, .script = RL_SCRIPT_EXTEND},
      {.kind = RL_OUTSTANDING_ACQUIRE, .script = RL_SCRIPT_NONE},
      {.kind = RL_OUTSTANDING_ATTACH, .script = RL_SCRIPT_NONE},
  };
  for (unsigned i = 0; i < COUNT_OF(rows); i++) {
    rl_reply reply = {.type = RL_REPLY_INTEGER, .integer = 2};
    rl_verdict verdict = rl_verdict_read(&rows[i], &reply);
    assert_true(verdict.unreadable);
    assert_false(verdict.notified);
  }
}
