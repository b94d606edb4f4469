/*
 * The doctor, over scripted nodes and a fake clock.
 *
 * SPDX-License-Identifier: MIT
 */
#include "fake_guard.h"
#include "keys.h"
#include "operator/rl_doctor.h"
#include "operator/rl_finding.h"
#include "wait/rl_subscriber.h"
#include "waiting_world.h"
#include "world_steps.h"

static const char NO_SCRIPT[] = "-NOSCRIPT No matching script. Please use EVAL.\r\n";

static rl_lock *begin(fake_world *world, const redlock_options *options) {
  rl_lock *lock = fake_lock(world, KEY, options);
  assert_error(rl_lock_ask(lock, world->now_us, RL_OPERATION_DOCTOR, NULL, true), REDLOCK_OK);
  fake_turn(world);
  return lock;
}

/* The node answers the probe, and the examination by |said|. */
static void answer(fake_world *world, unsigned node, const char *said) {
  char reply[RL_REPLY_BYTES_MAX + 32];
  (void)snprintf(reply, sizeof reply, "$%zu\r\n%s\r\n", strlen(said), said);
  assert_int_equal(fake_reply(world, node, NO_SCRIPT).verb, FAKE_PROBE);
  assert_int_equal(fake_reply(world, node, reply).verb, FAKE_EXAMINE);
}

static const rl_doctor_node *of(const rl_lock *lock, unsigned node) {
  const rl_doctor *doctor = rl_doctor_of(lock);
  assert_non_null(doctor);
  assert_true(node < doctor->count);
  return &doctor->nodes[node];
}

/* The same for three nodes, of which the first two are well, and the test answers for the third. */
static rl_lock *begin_third(fake_world *world) {
  rl_lock *lock = begin(world, NULL);
  answer(world, 0, "role=master");
  answer(world, 1, "role=master");
  return lock;
}

/* The name of the |index|th finding, or "". */
static const char *found(const rl_lock *lock, unsigned index) {
  rl_finding finding;
  return rl_finding_at(rl_doctor_of(lock), index, &finding) ? finding.name : "";
}

TEST(doctor_keeps_answer_of_each_node) {
  fake_world *world = fake_world_new(3);
  rl_lock *lock = begin(world, NULL);
  answer(world, 0, "role=master");
  answer(world, 1, "role=slave read_only=1");
  assert_error(rl_lock_result(lock), REDLOCK_PENDING);
  assert_null(rl_doctor_of(lock));
  answer(world, 2, "role=master");
  assert_error(rl_lock_result(lock), REDLOCK_OK);
  assert_ptr_equal(rl_core_next_ended(&world->core), lock);
  assert_string_equal(of(lock, 1)->said, "role=slave read_only=1");
  assert_string_equal(found(lock, 0), "replica");
  assert_string_equal(found(lock, 1), "");
}

TEST(inspection_changes_no_key) {
  fake_world *world = fake_world_new(3);
  rl_lock *lock = begin(world, NULL);
  fake_settle(world);
  assert_error(rl_lock_result(lock), REDLOCK_OK);
  assert_string_equal(found(lock, 0), "");
  rl_lock_free(lock, world->now_us);
  fake_pass(world, SECONDS);
  for (unsigned i = 0; i < 3; i++) {
    assert_int_equal(world->nodes[i].queued, 0);
    assert_int_equal(world->nodes[i].sets + world->nodes[i].extends + world->nodes[i].releases, 0);
  }
}

/* Otherwise a server reads both at once, and answers both when it has done both. */
TEST(keys_are_searched_after_probe) {
  fake_world *world = fake_world_new(1);
  rl_lock *lock = begin(world, NULL);
  assert_int_equal(world->nodes[0].queued, 2);
  answer(world, 0, "role=master");
  assert_error(rl_lock_result(lock), REDLOCK_OK);
  assert_error(rl_lock_ask(lock, world->now_us, RL_OPERATION_DOCTOR,
                           &(rl_question){.flags = REDLOCK_DOCTOR_KEYS}, false),
               REDLOCK_OK);
  fake_turn(world);
  assert_int_equal(world->nodes[0].queued, 1);
  assert_int_equal(fake_reply(world, 0, NO_SCRIPT).verb, FAKE_PROBE);
  assert_error(rl_lock_result(lock), REDLOCK_PENDING);
  assert_int_equal(world->nodes[0].queued, 1);
  assert_int_equal(fake_reply(world, 0, "$11\r\nrole=master\r\n").verb, FAKE_EXAMINE);
  assert_error(rl_lock_result(lock), REDLOCK_OK);
}

/* Each reads its clock in the middle, and the last answers later. */
TEST(clocks_are_compared_by_middle_of_round_trip) {
  static const redlock_duration took_us[] = {100 * MS, 100 * MS, 500 * MS};
  const uint64_t wall_us = 1700000000 * SECONDS;
  char said[64];
  fake_world *world = fake_world_new(3);
  rl_lock *lock = begin(world, NULL);
  redlock_time asked_us = world->now_us;
  for (unsigned i = 0; i < 3; i++) {
    (void)fake_reply(world, i, NO_SCRIPT);
  }
  for (unsigned i = 0; i < 3; i++) {
    redlock_duration ahead_us = i == 1 ? 7 * MS : 0;
    fake_pass(world, asked_us + took_us[i] - world->now_us);
    unsigned long long now_us = wall_us + took_us[i] / 2 + ahead_us;
    (void)snprintf(said, sizeof said, "$20\r\nnow=%llu\r\n", now_us);
    (void)fake_reply(world, i, said);
  }
  assert_true(of(lock, 2)->has_clock);
  assert_int_equal(of(lock, 2)->clock_error_us, 500 * MS);
  assert_true(of(lock, 0)->clock_us == asked_us - wall_us);
  assert_true(of(lock, 0)->clock_us - of(lock, 1)->clock_us == 7 * MS);
  assert_true(of(lock, 0)->clock_us == of(lock, 2)->clock_us);
}

TEST(missing_evalsha_right_is_reported) {
  fake_world *world = fake_world_new(3);
  rl_lock *lock = begin_third(world);
  (void)fake_reply(world, 2, "-NOPERM this user has no permissions to run 'evalsha'\r\n");
  (void)fake_reply(world, 2, "-NOPERM this user has no permissions to run 'eval'\r\n");
  assert_error(rl_lock_result(lock), REDLOCK_OK);
  assert_string_equal(found(lock, 0), "rights");
  assert_string_equal(found(lock, 1), "scripts");
  assert_string_equal(found(lock, 2), "");
  assert_true(of(lock, 2)->no_evalsha);
}

TEST(server_without_evalsha_is_reported) {
  fake_world *world = fake_world_new(3);
  rl_lock *lock = begin_third(world);
  (void)fake_reply(world, 2, "-ERR unknown command 'EVALSHA', with args beginning with: \r\n");
  (void)fake_reply(world, 2, "$11\r\nrole=master\r\n");
  assert_error(rl_lock_result(lock), REDLOCK_OK);
  assert_string_equal(found(lock, 0), "refuses");
  assert_string_equal(found(lock, 1), "");
  assert_false(of(lock, 1)->unknown_evalsha);
}

TEST(sentinel_is_recognised) {
  static const char *const roles[] = {"*2\r\n$8\r\nsentinel\r\n*1\r\n$8\r\nmymaster\r\n",
                                      "*3\r\n$6\r\nmaster\r\n:0\r\n*0\r\n",
                                      "-ERR unknown command 'ROLE'\r\n"};
  for (unsigned i = 0; i < COUNT_OF(roles); i++) {
    fake_world *world = fake_world_new(3);
    rl_lock *lock = begin_third(world);
    (void)fake_reply(world, 2, "-ERR unknown command 'EVALSHA', with args beginning with: \r\n");
    (void)fake_reply(world, 2, "-ERR unknown command 'EVAL', with args beginning with: \r\n");
    assert_int_equal(fake_next(world, 2), FAKE_ROLE);
    (void)fake_reply(world, 2, roles[i]);
    assert_error(rl_lock_result(lock), REDLOCK_OK);
    assert_int_equal(of(lock, 2)->sentinel, i == 0);
    assert_int_equal(world->core.nodes[2]->link.phase, RL_LINK_UP);
    assert_string_equal(found(lock, 0), i == 0 ? "refuses" : "down");
    assert_string_equal(found(lock, 1), i == 0 ? "" : "refuses");
  }
}

TEST(node_whose_connection_breaks_between_answers_is_down) {
  fake_world *world = fake_world_new(1);
  rl_lock *lock = begin(world, NULL);
  (void)fake_reply(world, 0, NO_SCRIPT);
  fake_break(world, 0, "it was cut");
  assert_error(rl_lock_result(lock), REDLOCK_E_UNAVAILABLE);
  assert_false(of(lock, 0)->answered);
  assert_string_equal(of(lock, 0)->said, "it was cut");
}

/* Answers of a hostile node to the examination. */
TEST(answer_is_printable_and_bounded) {
  char reply[RL_REPLY_BYTES_MAX + 32], said[RL_REPLY_BYTES_MAX + 1];
  fake_world *world = fake_world_new(1);
  rl_lock *lock = begin(world, NULL);
  memset(said, 'x', sizeof said - 1);
  said[sizeof said - 1] = '\0';
  answer(world, 0, said);
  assert_int_equal(strlen(of(lock, 0)->said), RL_REPLY_BYTES_MAX);
  fake_begin_ask(world, lock, RL_OPERATION_DOCTOR);
  (void)fake_reply(world, 0, NO_SCRIPT);
  (void)snprintf(reply, sizeof reply, "$8\r\na\t\r\n\033[2J\r\n");
  (void)fake_reply(world, 0, reply);
  assert_string_equal(of(lock, 0)->said, "a????[2J");
}

TEST(doctor_masks_password) {
  static const struct {
    const char *password, *said, *kept;
  } rows[] = {
      {"geheim", "role=master said=geheim gehei geheimgeheim",
       "role=master said=****** gehei ************"},
      {"geheim", "geheim", "******"},
      {"geheim", "gehei", "gehei"},
      {"aaaa", "aaaaa", "*****"},
      {"aaa", "said=aaa", "said=aaa"}, /* It stands in any text. */
      {NULL, "said=geheim", "said=geheim"},
  };
  for (unsigned i = 0; i < COUNT_OF(rows); i++) {
    redlock_node given = {.address = "10.0.0.1", .password = rows[i].password};
    redlock_settings settings = {0};
    rl_address address;
    fake_world *world = fake_world_new(1);
    rl_lock *lock = begin(world, NULL);
    assert_error(rl_address_read(&address, &given, &settings, NULL, 0), REDLOCK_OK);
    world->core.nodes[0]->address = address;
    answer(world, 0, rows[i].said);
    assert_string_equal(of(lock, 0)->said, rows[i].kept);
  }
}

TEST(reply_that_is_no_answer_ends_connection) {
  static const char *const replies[] = {"+OK\r\n", ":1\r\n", "*0\r\n", "$-1\r\n"};
  for (unsigned i = 0; i < COUNT_OF(replies) * 2; i++) {
    fake_world *world = fake_world_new(1);
    rl_lock *lock = begin(world, NULL);
    if (i % 2 == 1) {
      (void)fake_reply(world, 0, NO_SCRIPT);
    }
    (void)fake_reply(world, 0, replies[i / 2]);
    assert_error(rl_lock_result(lock), REDLOCK_E_UNAVAILABLE);
    assert_string_equal(of(lock, 0)->said, "the node sent an unexpected reply");
  }
}

TEST(cancelled_or_freed_examination_leaves_nothing) {
  for (unsigned freed = 0; freed <= 1; freed++) {
    fake_world *world = fake_world_new(3);
    rl_lock *lock = begin(world, NULL);
    answer(world, 0, "role=slave");
    if (freed) {
      rl_lock_free(lock, world->now_us);
    } else {
      rl_lock_cancel(lock, world->now_us, REDLOCK_E_CANCELLED);
      assert_error(rl_lock_result(lock), REDLOCK_E_CANCELLED);
      assert_null(rl_doctor_of(lock));
    }
    fake_settle(world);
    assert_int_equal(world->core.attempts.live, 0);
  }
}

TEST(doctor_checks_options_of_lock) {
  redlock_options options = {.ttl_us = 300 * MS, .node_timeout_us = 100 * MS};
  fake_world *world = fake_world_new(3);
  rl_lock *lock = begin(world, &options);
  fake_settle(world);
  assert_string_equal(found(lock, 0), "options");
}

TEST(doctor_knows_fence_option) {
  redlock_options options = {.fence = REDLOCK_YES};
  fake_world *world = fake_world_new(3);
  rl_lock *lock = begin(world, &options);
  answer(world, 0, "time=command");
  answer(world, 1, "role=master");
  answer(world, 2, "role=master");
  rl_finding finding;
  assert_true(rl_finding_at(rl_doctor_of(lock), 0, &finding));
  assert_int_equal(finding.severity, REDLOCK_SEVERITY_ERROR);
}

TEST(error_of_subscriber_is_reported) {
  static const char error[] = "ERR unknown command 'SUBSCRIBE'";
  fake_world *world = world_with_subscribers(3);
  (void)rl_subscriber_refuse(&world->core, world->core.nodes[1], world->now_us, error);
  rl_lock *lock = begin(world, NULL);
  for (unsigned i = 0; i < 3; i++) {
    answer(world, i, "role=master");
  }
  assert_string_equal(of(lock, 1)->mute, error);
  assert_string_equal(found(lock, 0), "notifications");
  assert_string_equal(found(lock, 1), "");
}

TEST(quarantined_nodes_are_reported_until_they_vote) {
  redlock_options options = {.ttl_us = 10 * SECONDS};
  fake_world *world = fake_world_new_guarded(3, 20 * SECONDS);
  rl_lock *lock = begin(world, &options);
  fake_settle(world);
  for (unsigned i = 0; i < 3; i++) {
    assert_string_equal(found(lock, i), "quarantined");
    assert_string_equal(of(lock, i)->quarantine,
                        "for 24.1 s more: it has no record: it is new, was restarted without its "
                        "keys or flushed, or is another database");
    assert_false(of(lock, i)->refused);
  }
  assert_string_equal(found(lock, 3), "");
  assert_true(rl_doctor_of(lock)->guard);
  fake_pass(world, 24 * SECONDS + 2 * MS);
  assert_error(fake_ask(world, lock, RL_OPERATION_DOCTOR), REDLOCK_OK);
  assert_string_equal(found(lock, 0), "");
}
