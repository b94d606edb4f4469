/*
 * The guard, over scripted nodes and a fake clock.
 *
 * SPDX-License-Identifier: MIT
 */
#include "node/rl_guard.h"

#include "guarded_world.h"
#include "lease/rl_attach.h"
#include "lease/rl_guard_effects.h"
#include "lifecycle/rl_detach.h"
#include "lock/rl_round.h"

/* ------------------------------------------------------------------------------------- records */

TEST(new_node_votes_after_the_longest_lease) {
  open_world_of_new_nodes(3);
  assert_error(fake_acquire(world, lock), REDLOCK_E_UNAVAILABLE);
  assert_acquire(lock, REDLOCK_E_UNAVAILABLE, "qqq");
  redlock_time made_us = world->now_us;
  for (unsigned i = 0; i < 3; i++) {
    assert_int_equal(world->nodes[i].sets, 0);
    assert_contains(world->nodes[i].store.record, " empty nodes=3 quorum=2 max_ttl=20000 list=");
  }
  fake_pass(world, QUARANTINE - 1);
  assert_acquire(lock, REDLOCK_E_UNAVAILABLE, "qqq");
  fake_pass(world, 1);
  assert_int_equal(world->now_us, made_us + QUARANTINE);
  assert_acquire(lock, REDLOCK_OK, "ggg");
}

TEST(quarantine_lasts_at_least_six_seconds) {
  static const struct {
    redlock_duration max_ttl_us, quarantine_us;
  } cases[] = {{0, 35 * SECONDS + 2 * MS}, /* the default is 30 s */
               {1 * SECONDS, 6 * SECONDS},
               {3635 * MS, 6 * SECONDS + 500},
               {3634 * MS, 6 * SECONDS},
               {REDLOCK_TTL_MAX_US, REDLOCK_TTL_MAX_US / 10 * 11 + 2 * SECONDS + 2 * MS}};
  for (unsigned i = 0; i < COUNT_OF(cases); i++) {
    world = fake_world_new_guarded(1, cases[i].max_ttl_us);
    assert_int_equal(world->core.guards->quarantine_us, cases[i].quarantine_us);
  }
}

TEST(old_record_lets_node_vote_at_once) {
  open_world_with_records(3);
  put_record(1, QUARANTINE - 1, "empty");
  assert_acquire(lock, REDLOCK_OK, "gqg");
  assert_reason(lock, 1, "for 0.1 s more: it has no record");
  assert_int_equal(fake_keys(world, KEY), 2); /* Nor does the node join. */
  assert_error(fake_release(world, lock), REDLOCK_OK);
  fake_pass(world, 1);
  assert_acquire(lock, REDLOCK_OK, "ggg");
}

TEST(record_of_another_server_is_replaced) {
  open_world_with_records(3);
  fake_store_restart(&world->nodes[2].store, "run7", false);
  assert_acquire(lock, REDLOCK_OK, "ggq");
  assert_contains(world->nodes[2].store.record, "run7 ");
  assert_contains(world->nodes[2].store.record, " restart ");
  assert_error(fake_release(world, lock), REDLOCK_OK);
  fake_pass(world, 1 * SECONDS);
  assert_error(fake_acquire(world, lock), REDLOCK_OK);
  assert_reason(lock, 2, "for 23.1 s more: the server was restarted, replaced or promoted");
}

TEST(record_waits_for_clocks_of_a_majority) {
  open_world_of_new_nodes(5);
  for (unsigned i = 2; i < 5; i++) {
    world->nodes[i].policy = FAKE_REFUSES;
  }
  assert_error(fake_acquire(world, lock), REDLOCK_E_UNAVAILABLE);
  assert_string_equal(world->nodes[0].store.record, "");
  assert_error(fake_acquire(world, lock), REDLOCK_E_UNAVAILABLE);
  assert_reason(lock, 0, "its quarantine begins when a majority of the nodes is connected");
  world->nodes[2].policy = FAKE_ACCEPTS;
  fake_pass(world, 10 * SECONDS);
  assert_error(fake_acquire(world, lock), REDLOCK_E_UNAVAILABLE);
  fake_settle(world);
  for (unsigned i = 0; i < 3; i++) {
    assert_string_not_equal(world->nodes[i].store.record, "");
  }
  fake_pass(world, QUARANTINE);
  assert_error(fake_acquire(world, lock), REDLOCK_OK);
}

static void assert_guard_reason(unsigned node, const char *expected) {
  char reason[RL_REASON_MAX + 1];
  assert_string_equal(rl_guard_reason(guard_of(node), world->now_us, reason, sizeof reason),
                      expected);
}

TEST(wrong_clock_creates_no_record) {
  open_world_with_records(3);
  world->nodes[0].store.ahead_us = world->nodes[2].store.ahead_us = 50 * SECONDS;
  world->nodes[1].store.ahead_us = 52 * SECONDS + 1;
  world->nodes[1].store.record[0] = '\0';
  assert_acquire(lock, REDLOCK_OK, "gqg");
  assert_guard_reason(1, "its clock is 2.1 s ahead of those of the other nodes");
  assert_string_equal(world->nodes[1].store.record, "");
  assert_error(fake_release(world, lock), REDLOCK_OK);
  world->nodes[1].store.ahead_us = 52 * SECONDS;
  fake_pass(world, 1 * SECONDS);
  assert_error(fake_acquire(world, lock), REDLOCK_OK); /* It is asked again now. */
  fake_settle(world);
  assert_string_not_equal(world->nodes[1].store.record, "");
}

/*
 * The client is stopped between its question and the answer, which says little of what the clock
 * shows now.
 */
TEST(uncertain_clock_creates_no_record) {
  char reply[FAKE_REPLY_MAX];
  open_world_with_records(3);
  world->nodes[1].store.ahead_us = 10 * SECONDS;
  world->nodes[1].store.record[0] = '\0';
  acquire_and_release(lock);
  fake_pass(world, 2 * SECONDS);
  fake_begin_acquire(world, lock);
  assert_int_equal(fake_next(world, 1), FAKE_GUARD);
  (void)fake_execute(world, 1, reply);
  world->now_us += 30 * SECONDS;
  fake_deliver(world, 1, reply);
  assert_false(guard_of(1)->near);
  assert_false(guard_of(1)->distant);
  assert_int_equal(fake_next(world, 1), FAKE_OTHER);
  fake_settle(world);
  assert_string_equal(world->nodes[1].store.record, "");
}

TEST(node_with_a_known_clock_receives_the_key) {
  char reply[FAKE_REPLY_MAX];
  open_world_with_records(3);
  assert_error(fake_acquire(world, lock), REDLOCK_OK);
  fake_begin_extend(world, lock, 0);
  fake_answer(world, 0);
  fake_answer(world, 2);
  (void)fake_execute(world, 1, reply);
  world->now_us += 5 * SECONDS; /* The client is stopped. */
  fake_deliver(world, 1, reply);
  assert_false(guard_of(1)->near);
  assert_error(fake_release(world, lock), REDLOCK_OK);
  fake_begin_acquire(world, lock);
  for (unsigned i = 0; i < 3; i += 2) {
    while (fake_next(world, i) != FAKE_OTHER) {
      fake_answer(world, i);
    }
  }
  assert_error(rl_lock_result(lock), REDLOCK_OK);
  assert_int_equal(fake_keys(world, KEY), 2);
  fake_settle(world);
  fake_pass(world, 1 * SECONDS);
  fake_settle(world);
  assert_true(guard_of(1)->near);
  assert_int_equal(fake_keys(world, KEY), 3);
}

TEST(node_with_a_wrong_clock_does_not_vote) {
  open_world_with_records(3);
  world->nodes[0].store.ahead_us = 100 * SECONDS;
  assert_acquire(lock, REDLOCK_OK, "qgg");
  assert_true(rl_guard_quarantined(guard_of(0), world->now_us) == REDLOCK_NEVER);
}

/* ---------------------------------------------------------------------------- while connected */

TEST(script_is_sent_once_as_text_then_by_hash) {
  open_world_of_new_nodes(1);
  rl_guard_effects_prepare(&world->core);
  (void)snprintf(world->nodes[0].store.run_id, sizeof world->nodes[0].store.run_id, "run0-5e");
  put_record(0, QUARANTINE, "ready");
  for (unsigned i = 0; i < 6; i++) {
    /* It has reported its history before, and is asked now and then. */
    fake_pass(world, i == 3 || i == 5 ? TRUSTED : 0);
    fake_begin_acquire(world, lock);
    fake_command command = fake_answer(world, 0);
    assert_int_equal(command.verb, FAKE_SET);
    assert_true(command.guarded);
    assert_int_equal(command.by_text, i == 0);
    assert_string_equal(command.run_id, i == 0 ? "run0-5e" : i == 3 || i == 5 ? "-5e" : "");
    assert_string_equal(command.seal, guard_of(0)->seal);
    assert_int_equal(command.fence, 0);
    assert_error(rl_lock_result(lock), REDLOCK_OK);
    assert_error(fake_release(world, lock), REDLOCK_OK);
  }
}

/*
 * It lacks the key while nothing is known of its clock; the answer of another node makes its clock
 * near.
 */
TEST(node_whose_clock_becomes_near_is_backfilled) {
  open_world_after_a_lease(3);
  rl_node *node = world->core.nodes[1];
  guard_of(1)->near = false;
  guard_of(1)->distant = false;
  node->lacks_keys = true;
  world->core.backfills->due = 0;
  rl_guard_effects_review(&world->core, world->now_us);
  assert_true(guard_of(1)->near);
  assert_int_equal(world->core.backfills->due, rl_node_bit(node));
}

TEST(flushed_node_has_no_vote) {
  open_world_after_a_lease(3);
  fake_store_flush(&world->nodes[1].store);
  assert_acquire(lock, REDLOCK_OK, "gqg");
  assert_reason(lock, 1,
                "it has no record: it is new, was restarted without its keys or flushed, or "
                "is another database; its quarantine begins now");
  assert_error(fake_release(world, lock), REDLOCK_OK);
  assert_error(fake_acquire(world, lock), REDLOCK_OK);
  assert_reason(lock, 1, "for 24.1 s more: it has no record");
}

TEST(flushed_node_grants_no_second_lease) {
  open_world_after_a_lease(3);
  rl_lock *rival = new_lock(KEY);
  assert_error(fake_acquire(world, lock), REDLOCK_OK);
  fake_store_remove(&world->nodes[2].store, KEY); /* The holder has a bare majority. */
  fake_store_flush(&world->nodes[1].store);
  assert_acquire(rival, REDLOCK_E_TAKEN, "tqg");
  assert_true(rl_lock_remaining(lock, world->now_us) > 0);
}

/* It may be executed at any time: in the trusted tenth of a second, too. */
TEST(heal_compares_the_history) {
  open_world_after_a_lease(3);
  assert_error(fake_acquire(world, lock), REDLOCK_OK);
  fake_store_remove(&world->nodes[2].store, KEY);
  fake_begin_extend(world, lock, 0);
  for (unsigned i = 0; i < 3; i++) {
    (void)fake_answer(world, i);
  }
  fake_command command = fake_answer(world, 2);
  assert_int_equal(command.verb, FAKE_SET);
  assert_true(command.heals && !command.by_text);
  assert_string_equal(command.run_id, world->nodes[2].store.run_id);
}

TEST(a_server_behind_the_same_connection_is_noticed_though_the_record_is_the_same) {
  open_world_after_a_lease(3);
  fake_store_restart(&world->nodes[1].store, "run9", false); /* A proxy has switched. */
  assert_acquire(lock, REDLOCK_OK, "gqg");
  assert_contains(world->nodes[1].store.record, "run9 ");
}

/* Its clock is another one, and what the former server's clock did is past. */
TEST(a_server_with_an_old_record_votes_at_once_in_place_of_another) {
  open_world_after_a_lease(3);
  fake_store *store = &world->nodes[1].store;
  fake_store_restart(store, "run9", false);
  store->ahead_us = 500 * MS;
  put_record(1, QUARANTINE, "ready");
  guard_of(1)->stepped = true;
  (void)fake_acquire(world, lock);
  fake_settle(world);
  assert_contains(store->record, " ready ");
  assert_int_equal(guard_of(1)->state, RL_GUARD_KNOWN);
}

/* Opens a world whose lock was used. Node 1 was never a replica, and has a record of that age. */
static void used_with_record_of(redlock_duration age) {
  open_world_with_records(3);
  (void)snprintf(world->nodes[1].store.run_id, sizeof world->nodes[1].store.run_id, "run1-00");
  put_record(1, age, "ready");
  acquire_and_release(lock);
}

/*
 * It has an older record, and sends the script by its text to a server that has a copy of the
 * present one.
 */
TEST(late_client_teaches_no_script_to_another_server) {
  used_with_record_of(QUARANTINE);
  fake_world *late = world;
  rl_lock *old = lock;
  used_with_record_of(QUARANTINE + SECONDS);
  fake_store_restart(&world->nodes[1].store, "run9-00", false); /* A proxy has switched. */
  late->nodes[1].store = world->nodes[1].store;
  late->core.nodes[1]->link.knows[RL_SCRIPT_TAKE_HERE] = false; /* It had no occasion yet. */
  fake_begin_acquire(late, old);
  fake_command command = fake_answer(late, 1);
  assert_true(command.guarded && command.by_text);
  assert_string_equal(command.seal, late->core.nodes[1]->link.guard->seal);
  assert_string_not_equal(command.seal, guard_of(1)->seal);
  world->nodes[1].store = late->nodes[1].store;
  assert_acquire(lock, REDLOCK_OK, "gqg");
  fake_settle(late);
}

/*
 * It has been a replica for a while: the process, its scripts, and its record, which was a copy,
 * are as they were. It has lost the seal; or it has gone on from where it was, lags, and its past
 * is another one.
 */
TEST(node_that_failed_over_and_back_grants_nothing) {
  for (unsigned lags = 0; lags < 2; lags++) {
    open_world_with_records(3);
    fake_store *store = &world->nodes[1].store;
    (void)snprintf(store->run_id, sizeof store->run_id, "run1-5e");
    put_record(1, QUARANTINE, "ready");
    assert_acquire(lock, REDLOCK_OK, "ggg");
    assert_error(fake_release(world, lock), REDLOCK_OK);
    (void)snprintf(store->run_id, sizeof store->run_id, "run1-6f");
    store->unsealed = lags == 0;
    fake_pass(world, lags == 0 ? 0 : TRUSTED);
    assert_acquire(lock, REDLOCK_OK, "gqg");
    assert_contains(store->record, "6f ");
  }
}

/* While others ask it for its past, too: what was answered to us is what counts. */
TEST(history_is_trusted_from_its_send_time) {
  open_world_after_a_lease(3);
  rl_guard *guard = guard_of(1);
  redlock_time reported_us = guard->history_us;
  fake_pass(world, TRUSTED - 1);
  acquire_and_release(lock);
  assert_int_equal(guard->history_us, reported_us);
  assert_null(rl_guard_history(guard, reported_us + TRUSTED - 1));
  assert_non_null(rl_guard_history(guard, reported_us + TRUSTED));
  fake_pass(world, 1);
  assert_error(rl_lock_acquire(lock, world->now_us, NULL, false), REDLOCK_OK);
  redlock_time asked_us = world->now_us;
  fake_turn(world);
  fake_pass(world, 2 * MS); /* The answer comes later than it was asked for. */
  fake_settle(world);
  assert_int_equal(guard->history_us, asked_us);
}

/*
 * It was asked, and has not been sent the script yet: it teaches a server in its place, which
 * cannot delete now.
 */
TEST(seal_reveals_a_server_that_kept_its_scripts) {
  open_world_with_records(3);
  fake_store *store = &world->nodes[1].store;
  (void)snprintf(store->run_id, sizeof store->run_id, "run1-");
  put_record(1, QUARANTINE, "ready");
  acquire_and_release(lock);
  (void)snprintf(store->run_id, sizeof store->run_id, "run9-"); /* With its scripts. */
  store->unsealed = true;
  assert_acquire(lock, REDLOCK_OK, "gqg");
}

TEST(flushed_script_is_sent_again_only_after_a_check) {
  open_world_after_a_lease(1);
  world->nodes[0].store.take_sha1[0] = '\0';
  fake_begin_acquire(world, lock);
  fake_command command = fake_answer(world, 0);
  assert_false(command.by_text);
  assert_error(rl_lock_result(lock), REDLOCK_PENDING);
  command = fake_answer(world, 0);
  assert_int_equal(command.verb, FAKE_GUARD);
  assert_string_equal(command.make, "look");
  command = fake_answer(world, 0);
  assert_int_equal(command.verb, FAKE_SET);
  assert_true(command.by_text);
  assert_error(rl_lock_result(lock), REDLOCK_OK);
}

TEST(node_bootstrapped_by_another_client_votes_in_the_same_attempt) {
  open_world_after_a_lease(1);
  put_record(0, QUARANTINE + 5, "ready"); /* Another record, by another client. */
  assert_acquire(lock, REDLOCK_OK, "g");
}

TEST(node_without_a_vote_is_checked_once_a_second) {
  open_world_of_new_nodes(3);
  assert_error(fake_acquire(world, lock), REDLOCK_E_UNAVAILABLE);
  for (unsigned i = 0; i < 3; i++) {
    put_record(i, QUARANTINE, "ready");
  }
  fake_pass(world, 999 * MS);
  assert_error(fake_acquire(world, lock), REDLOCK_E_UNAVAILABLE);
  fake_pass(world, 1 * MS);
  assert_error(fake_acquire(world, lock), REDLOCK_E_UNAVAILABLE); /* Now they are asked, */
  assert_error(fake_acquire(world, lock), REDLOCK_OK);            /* and have answered. */
}

TEST(ever_changing_record_is_refused) {
  char other[64];
  open_world_after_a_lease(1);
  unsigned asked = 0;
  fake_begin_acquire(world, lock);
  for (; rl_lock_result(lock) == REDLOCK_PENDING && asked < 20; asked++) {
    (void)snprintf(other, sizeof other, "$18\r\nother 1000000000 0\r\n");
    if (fake_next(world, 0) == FAKE_SET) {
      (void)fake_reply(world, 0, other);
    } else {
      (void)fake_answer(world, 0);
    }
  }
  assert_true(asked < 10);
  assert_error(rl_lock_result(lock), REDLOCK_E_UNAVAILABLE);
  assert_reason(lock, 0, "its record keeps changing");
}

TEST(repeated_bootstrap_is_permitted) {
  open_world_after_a_lease(1);
  for (unsigned i = 0; i < 10; i++) {
    put_record(0, QUARANTINE + 5 + i, "ready");
    acquire_and_release(lock);
  }
}

TEST(new_connection_checks_the_record) {
  open_world_after_a_lease(3);
  fake_store_restart(&world->nodes[0].store, "run5", true);
  fake_break(world, 0, "Connection reset by peer");
  assert_acquire(lock, REDLOCK_OK, "qgg");
}

/* --------------------------------------------------------------------------------- refusals */

/*
 * A restart would else be the moment in which it changes hands, and both halves could find a
 * majority.
 */
TEST(restarted_server_keeps_its_clients) {
  static const char theirs[] =
      "run0 1 ready nodes=5 quorum=3 max_ttl=20000 list=ff prefix=da39a3ee/";
  open_world_with_records(3);
  fake_store *store = &world->nodes[0].store;
  (void)snprintf(store->record, sizeof store->record, "%s", theirs);
  (void)snprintf(store->run_id, sizeof store->run_id, "run9");
  assert_acquire(lock, REDLOCK_OK, "egg");
  assert_string_equal(store->record, theirs);
}

TEST(server_with_a_record_in_another_database_is_refused) {
  open_world_with_records(3);
  fake_store *store = &world->nodes[0].store;
  /* Of the process before a restart: its keys may be there, and its clients come back. */
  (void)snprintf(store->elsewhere, sizeof store->elsewhere, "run7 1 ready %s",
                 world->core.guards->fingerprint);
  store->record[0] = '\0';
  assert_acquire(lock, REDLOCK_OK,
                 "qgg"); /* It is to be made a voter, and is found not to be one. */
  fake_settle(world);
  assert_error(rl_lock_release(lock, world->now_us, true), REDLOCK_OK);
  fake_settle(world);
  assert_acquire(lock, REDLOCK_OK, "egg");
  assert_reason(lock, 0,
                "it is guarded for other clients: prefix=da39a3ee/ database=3 (ours "
                "prefix=da39a3ee/); if it has no others, delete redlock:lineage* in all its "
                "databases");
  assert_string_equal(store->record, "");
}

TEST(record_tells_clients_with_other_settings_apart) {
  rl_guards *guards = NULL;
  char fingerprint[RL_LINEAGE_FINGERPRINT_MAX + 1];
  open_world_of_new_nodes(1);
  assert_error(rl_guard_open(&guards, MAX_TTL, "blue"), REDLOCK_OK);
  assert_string_equal(guards->key, RL_LINEAGE_KEY ":blue");
  rl_guard_close(guards);
  guards = world->core.guards;
  rl_guard_prepare(guards, 1, "p:", 2);
  assert_contains(guards->fingerprint, "/p:");
  memcpy(fingerprint, guards->fingerprint, sizeof fingerprint);
  guards->fingerprint[0] = '\0';
  world->core.nodes[0]->address.db = 3;
  rl_guard_prepare(guards, 1, "p:", 2);
  assert_string_not_equal(guards->fingerprint, fingerprint);
}

/* The difference of a name of this length is cut. The advice after it is not. */
#define SIXTY_FOUR "a-name-of-sixty-four-bytes-xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx"

TEST(clients_with_other_settings_see_the_difference) {
  static const struct {
    const char *theirs, *said;
  } cases[] = {
      {"nodes=5 quorum=3 max_ttl=20000 list=", "nodes=5 (ours nodes=3), quorum=3 (ours quorum=2)"},
      {"nodes=3 quorum=2 max_ttl=10000 list=", "max_ttl=10000 (ours max_ttl=20000)"},
      {"nodes=3 quorum=2 max_ttl=20000 cluster=blue", "cluster=blue (ours list="},
      {"nodes=5 quorum=3 max_ttl=10000 cluster=" SIXTY_FOUR, "max_ttl=20000), cluster=a-name"},
  };
  for (unsigned i = 0; i < COUNT_OF(cases); i++) {
    open_world_with_records(3);
    fake_store *store = &world->nodes[0].store;
    const char *rest = strstr(world->core.guards->fingerprint, "list=");
    rest = strchr(cases[i].theirs, 'c') != NULL ? strchr(rest, ' ') : rest + 5;
    (void)snprintf(store->record, sizeof store->record, "run0 1 ready %s%s", cases[i].theirs, rest);
    assert_acquire(lock, REDLOCK_OK, "egg");
    assert_reason(lock, 0, "it is guarded for other clients: ");
    assert_reason(lock, 0, cases[i].said);
    assert_reason(lock, 0, "; if it has no others, delete redlock:lineage* in all its databases");
  }
}

TEST(two_nodes_of_one_server_have_one_vote) {
  open_world_with_records(3);
  (void)snprintf(world->nodes[2].store.run_id, sizeof world->nodes[2].store.run_id, "run0");
  put_record(2, QUARANTINE, "ready");
  world->nodes[0].policy = FAKE_SILENT; /* The higher number comes first. */
  fake_begin_acquire(world, lock);
  (void)fake_reply(world, 0, "+OK\r\n");
  (void)fake_answer(world, 0);
  assert_string_equal(guard_of(2)->reason, "it is the same server as 10.0.0.1:6379");
  fake_settle(world);
  (void)fake_release(world, lock);
  assert_acquire(lock, REDLOCK_OK, "gge");
}

/* Begins an acquire. Node 0 has been asked by the guard, and has not answered. */
static void begin_question(void) {
  world->nodes[0].policy = FAKE_SILENT;
  fake_begin_acquire(world, lock);
  (void)fake_reply(world, 0, "+OK\r\n");
  assert_int_equal(fake_next(world, 0), FAKE_GUARD);
}

/* Begins an acquire in a new world. Node 0 gives this answer to the guard. */
static void begin_answered(const char *reply) {
  open_world_with_records(3);
  begin_question();
  (void)fake_reply(world, 0, reply);
  fake_settle(world);
}

/* In the words of Redis 7.0, and of Redis 8 and Valkey. */
TEST(error_names_the_forbidden_command_and_the_rights) {
  static const struct {
    const char *answer, *reason;
  } cases[] = {
      {"-NOPERM this user has no permissions to run the 'eval' command\r\n",
       "NOPERM this user has no permissions to run the 'eval' command"},
      {"-ERR The user executing the script can't run this command or subcommand script: "
       "c7e2b2d468714581ec7c87f25acc9a69fdc27e3b, on @user_script:1.\r\n",
       "ERR The user executing the script can't run this command or subcommand"},
      {"-ERR ACL failure in script: User app has no permissions to run the 'append' command "
       "script: c7e2b2d468714581ec7c87f25acc9a69fdc27e3b, on @user_script:1.\r\n",
       "ERR ACL failure in script: User app has no permissions to run the 'append' command"},
      {"-ERR ACL failure in script: User "
       "a-user-with-a-long-namexxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx has no "
       "permissions to run the 'append' command\r\n",
       "...failure in script: User "
       "a-user-with-a-long-namexxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx has no "
       "permissions to run the 'append' command"},
      {"-ERR ACL failure in script: No permissions to access a key script: on @user_script:1.\r\n",
       "ERR ACL failure in script: No permissions to access a key"},
      {"-ERR The words of a later server\r\n", "ERR The words of a later server"},
  };
  for (unsigned i = 0; i < COUNT_OF(cases); i++) {
    char reason[RL_REASON_MAX + 1];
    begin_answered(cases[i].answer);
    (void)snprintf(reason, sizeof reason,
                   "%s; the guard needs +eval +evalsha +info +time +get +set +del +append "
                   "+object +select ~redlock:lineage*",
                   cases[i].reason);
    assert_error(rl_lock_result(lock), REDLOCK_OK);
    assert_votes(lock, "egg");
    assert_reason(lock, 0, reason);
    assert_int_equal(world->core.nodes[0]->link.phase, RL_LINK_UP);
  }
}

/*
 * It reads, so only the write shows the refusal, which ends the connection. In the words of Redis 7
 * and of Redis 6.
 */
TEST(promoted_master_without_replicas_gives_its_refusal) {
  static const char *const refusals[] = {
      "-NOREPLICAS Not enough good replicas to write. script: "
      "c7e2b2d468714581ec7c87f25acc9a69fdc27e3b, on @user_script:1.\r\n",
      "-ERR Error running script (call to f_c7e2b2d468714581ec7c87f25acc9a69fdc27e3b): "
      "@user_script:1: @user_script: 1: -NOREPLICAS Not enough good replicas to write.\r\n"};
  static const char restarted[] =
      "the server was restarted, replaced or promoted; its quarantine begins now";
  static const char reason[] =
      "NOREPLICAS Not enough good replicas to write. Its quarantine begins when it has the "
      "replicas of min-replicas-to-write: start one";
  for (unsigned i = 0; i < COUNT_OF(refusals); i++) {
    open_world_with_records(1);
    fake_store_restart(&world->nodes[0].store, "run7", false);
    world->nodes[0].policy = FAKE_SILENT;
    fake_begin_acquire(world, lock);
    for (unsigned connection = 0; connection < 3; connection++) {
      while (fake_next(world, 0) != FAKE_GUARD) {
        fake_answer(world, 0);
      }
      fake_answer(world, 0); /* the check */
      const rl_guard *guard = guard_of(0);
      assert_int_equal(guard->state, RL_GUARD_MISSING);
      assert_guard_reason(0, connection > 0 ? reason : restarted);
      assert_int_equal(rl_guard_refuses(guard), connection > 0);
      assert_int_equal(rl_guard_missing_vote(guard),
                       connection > 0 ? REDLOCK_VOTE_ERROR : REDLOCK_VOTE_QUARANTINED);
      assert_int_equal(fake_reply(world, 0, refusals[i]).verb, FAKE_GUARD);
      fake_pass(world, 10 * SECONDS);
      fake_turn(world);
    }
    world->nodes[0].policy = FAKE_ACCEPTS; /* It has a replica now. */
    fake_settle(world);
    fake_pass(world, QUARANTINE);
    assert_error(fake_acquire(world, lock), REDLOCK_OK);
  }
}

TEST(server_without_a_seal_is_refused_with_advice) {
  begin_answered("-NOSEAL a short string is raw after SET and raw after APPEND\r\n");
  assert_votes(lock, "egg");
  assert_reason(
      lock, 0,
      "use a server that docs/operating.md names, or no guard: on this one copies of keys "
      "look like the keys, for a short string is raw after SET and raw after APPEND");
}

/* Valkey 8.1 counts object, key and value together up to 64 bytes. */
TEST(seal_name_does_not_grow_with_cluster_name) {
  char cluster[RL_LINEAGE_CLUSTER_MAX + 1];
  memset(cluster, 'c', sizeof cluster - 1);
  cluster[sizeof cluster - 1] = '\0';
  open_world_with_records(1);
  rl_lineage_write_key(world->core.guards->key, cluster);
  assert_error(fake_acquire(world, lock), REDLOCK_OK);
  assert_int_equal(strlen(guard_of(0)->seal), strlen("redlock:lineage ") + 12);
}

TEST(unreadable_record_is_refused) {
  static const char *const answers[] = {
      "",
      "1000000000",
      "1000000000 run0",
      "1000000000 run0 -",
      "1000000000 run0 - ",
      "1000000000 run0 - run0",
      "1000000000 run0 - run0 1",
      "1000000000 run0 - run0 1 ready",
      "1000000000 run0 - run1 1 ready nodes=3",
      "1000000000 run0 - run0 -5 ready nodes=3",
      "1000000000 run0 - run0 99999999999999999999 ready nodes=3",
      "1000000000 run0 - run0 1 what nodes=3",
      "1000000000 run0 what ",
      "1000000000 run0 empty something",
      "1000000000 ? empty ",
      "1000000000 run/0 empty ",
      "0 run0 empty ",
      "-1 run0 empty ",
      "9007199254740992 run0 empty ",
      "18446744073709551617 run0 empty ",
      "nan run0 empty ",
      "1000000000  run0 empty ",
      "1000000000 run0 emp\001ty ",
  };
  for (unsigned i = 0; i < COUNT_OF(answers); i++) {
    char reply[160];
    (void)snprintf(reply, sizeof reply, "$%zu\r\n%s\r\n", strlen(answers[i]), answers[i]);
    begin_answered(reply);
    assert_error(rl_lock_result(lock), REDLOCK_OK);
    assert_votes(lock, "egg");
    assert_int_equal(guard_of(0)->state, RL_GUARD_REFUSED);
  }
}

TEST(answer_of_another_type_is_refused) {
  static const char *const answers[] = {":1\r\n", "$-1\r\n", "*0\r\n", "+OK\r\n"};
  for (unsigned i = 0; i < COUNT_OF(answers); i++) {
    begin_answered(answers[i]);
    assert_votes(lock, "egg");
  }
}

TEST(node_without_a_record_is_refused) {
  open_world_of_new_nodes(1);
  begin_question();
  (void)fake_reply(world, 0, "$22\r\n1000000000 run0 empty \r\n");
  fake_command command = fake_reply(world, 0, "$22\r\n1000000000 run0 empty \r\n");
  assert_string_equal(command.make, "make");
  assert_int_equal(fake_next(world, 0), FAKE_OTHER);
  assert_string_equal(guard_of(0)->reason, "it does not keep the guard's record");
}

/* ------------------------------------------------------------------------------------- the rest */

TEST(key_beyond_max_ttl_is_refused) {
  char message[512];
  open_world_with_records(1);
  const redlock_options longest = {.ttl_us = MAX_TTL - 5 * SECONDS, .lock_delay_us = 5 * SECONDS};
  const redlock_options longer = {.ttl_us = MAX_TTL - 5 * SECONDS, .lock_delay_us = 5001 * MS};
  assert_error(rl_lock_acquire(lock, world->now_us, &longer, false), REDLOCK_E_INVALID);
  assert_contains(rl_lock_message(lock, message, sizeof message), "the guard's max_ttl");
  assert_error(rl_lock_acquire(lock, world->now_us, &longest, false), REDLOCK_OK);
  fake_settle(world);
  assert_error(rl_lock_extend(lock, world->now_us, MAX_TTL - 5 * SECONDS + 1000, false),
               REDLOCK_E_INVALID);
  assert_error(rl_lock_extend(lock, world->now_us, MAX_TTL - 5 * SECONDS, false), REDLOCK_OK);
}

/* A node that has lost the key would free it before the end of hold_at_least. */
TEST(key_kept_beyond_max_ttl_is_refused) {
  char message[512];
  open_world_with_records(1);
  const redlock_options longest = {.hold_at_least_us = MAX_TTL - MAX_TTL / 100 - 3 * MS};
  const redlock_options longer = {.hold_at_least_us = MAX_TTL - MAX_TTL / 100};
  assert_error(rl_lock_acquire(lock, world->now_us, &longer, false), REDLOCK_E_INVALID);
  assert_contains(rl_lock_message(lock, message, sizeof message), "hold_at_least");
  assert_error(rl_lock_acquire(lock, world->now_us, &longest, false), REDLOCK_OK);
  fake_settle(world);
}

TEST(message_has_the_remaining_quarantine) {
  char message[1024];
  open_world_of_new_nodes(3);
  assert_error(fake_acquire(world, lock), REDLOCK_E_UNAVAILABLE);
  fake_pass(world, 10 * SECONDS);
  assert_error(fake_acquire(world, lock), REDLOCK_E_UNAVAILABLE);
  assert_contains(
      rl_lock_message(lock, message, sizeof message),
      "0 of 3 nodes granted it (2 needed): 3 of 3 nodes are "
      "quarantined, the first for 14.0 s; wait, or bootstrap a new cluster: 10.0.0.1:6379: for "
      "14.1 s more: ");
}

TEST(client_without_a_guard_sends_plain_commands) {
  static const char expected[] = "*3\r\n$6\r\nCLIENT\r\n$7\r\nSETNAME\r\n$7\r\nredlock\r\n"
                                 "*4\r\n$6\r\nCLIENT\r\n$7\r\nSETINFO\r\n$8\r\nLIB-NAME\r\n"
                                 "$7\r\nredlock\r\n*4\r\n$6\r\nCLIENT\r\n$7\r\nSETINFO\r\n"
                                 "$7\r\nLIB-VER\r\n$5\r\n" REDLOCK_VERSION "\r\n"
                                 "*6\r\n$3\r\nSET\r\n$9\r\norders:42\r\n$40\r\n";
  size_t length;
  world = fake_world_new(1);
  lock = new_lock(KEY);
  world->nodes[0].policy = FAKE_SILENT;
  world->nodes[0].blocked = true;
  fake_begin_acquire(world, lock);
  rl_core_input(&world->core, 0, world->now_us, FAKE_HANDSHAKE, strlen(FAKE_HANDSHAKE));
  const char *bytes = rl_core_output(&world->core, 0, &length);
  assert_true(length > sizeof expected);
  assert_memory_equal(bytes, expected, sizeof expected - 1);
  assert_null(world->core.nodes[0]->link.guard);
}

TEST(lease_is_extended_on_nodes_that_do_not_vote) {
  open_world_after_a_lease(3);
  assert_error(fake_acquire(world, lock), REDLOCK_OK);
  for (unsigned i = 0; i < 3; i++) {
    fake_store_restart(&world->nodes[i].store, i == 0 ? "runa" : i == 1 ? "runb" : "runc", false);
    fake_break(world, i, "Connection reset by peer");
  }
  assert_error(fake_extend(world, lock, 0), REDLOCK_OK);
  assert_false(rl_guard_may_vote(guard_of(0), world->now_us));
}

/* Takes the lease of |lock| over, by another lock. Returns what that came to. */
static int handed_over(rl_lock **other, bool restarts) {
  rl_handover handover;
  assert_error(rl_lock_describe_lease(lock, world->now_us, &handover), REDLOCK_OK);
  *other = new_lock(KEY);
  assert_error(rl_attach_set(*other, &handover), REDLOCK_OK);
  rl_lock_detach(lock);
  for (unsigned i = 0; i < 2 && restarts; i++) { /* behind the connection, with all keys */
    fake_store_restart(&world->nodes[i].store, i == 0 ? "runa" : "runb", false);
  }
  return fake_acquire(world, *other);
}

TEST(lease_is_attached_on_voting_nodes) {
  rl_lock *other;
  open_world_after_a_lease(3);
  assert_error(fake_acquire(world, lock), REDLOCK_OK);
  assert_error(handed_over(&other, false), REDLOCK_OK);
  assert_votes(other, "ggg");
}

/* The keys may be those of a copy, from which they had gone meanwhile. */
TEST(lease_is_not_attached_on_another_server) {
  rl_lock *other;
  open_world_after_a_lease(3);
  assert_error(fake_acquire(world, lock), REDLOCK_OK);
  assert_error(handed_over(&other, true), REDLOCK_E_UNAVAILABLE);
  assert_votes(other, "qqu"); /* The third one was not waited for. */
}

/* It is sent nothing: its key still has the token that was handed over. */
TEST(lease_is_not_attached_where_a_node_is_in_quarantine) {
  rl_lock *other;
  open_world_after_a_lease(3);
  char handed[REDLOCK_TOKEN_LENGTH + 1];
  assert_error(fake_acquire(world, lock), REDLOCK_OK);
  (void)snprintf(handed, sizeof handed, "%s", rl_attempt_token(lock->lease));
  for (unsigned i = 0; i < 2; i++) {
    fake_store_restart(&world->nodes[i].store, i == 0 ? "runa" : "runb", false);
    fake_break(world, i, "Connection reset by peer");
  }
  assert_error(fake_extend(world, lock, 0), REDLOCK_OK);
  assert_error(handed_over(&other, false), REDLOCK_E_UNAVAILABLE);
  fake_settle(world);
  for (unsigned i = 0; i < 2; i++) {
    assert_int_equal(other->votes[i].vote, REDLOCK_VOTE_QUARANTINED);
    const char *token = fake_store_token(&world->nodes[i].store, world->now_us, KEY);
    assert_non_null(token);
    assert_string_equal(token, handed);
  }
}
