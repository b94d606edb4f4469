/*
 * redlock lead: a command that runs while its host leads.
 *
 * SPDX-License-Identifier: MIT
 */
#include "cli_support.h"

static int start(void **state) {
  (void)cli_start(state);
  cli_define("SHOW", "echo \"$REDLOCK_RESOURCE $REDLOCK_FENCE $REDLOCK_NODES.\"; exit 3");
  cli_define("LEADER", "trap 'echo quit $REDLOCK_FENCE; exit 0' TERM\n"
                       "echo began $REDLOCK_FENCE; while :; do sleep 0.01; done");
  cli_define("POLITE", "trap 'echo got TERM; exit 5' TERM\n"
                       "echo began $REDLOCK_FENCE; while :; do sleep 0.01; done");
  cli_define("RELOADER", "trap 'echo reloaded' HUP; trap 'exit 0' TERM\n"
                         "echo began $REDLOCK_FENCE; while :; do sleep 0.01; done");
  cli_define("STUBBORN", "trap '' TERM; echo began $REDLOCK_FENCE; read word <GATE");
  return 0;
}

static void let_run_scripts(void) {
  farm_command_all(&three, "ACL", "SETUSER", "default", "+eval", NULL);
}

static int reset(void **state) {
  (void)three_reset(state);
  let_run_scripts();
  return 0;
}

/* Returns the fencing token behind occurrence |number| of |word|, from 0; 0 if there is none. */
static unsigned long long fence_after(const tool_run *run, const char *word, unsigned number) {
  const char *at = strstr(run->text, word);
  for (; at != NULL && number > 0; number--) {
    at = strstr(at + 1, word);
  }
  return at != NULL ? strtoull(at + strlen(word), NULL, 10) : 0;
}

#define until_fence(run, word, number)                                                             \
  eventually(!tool_read((run), 2) || fence_after((run), (word), (number)) > 0)

/* Ends a leader. On a slow machine its lease may have ended just then: it stops or stands by. */
static void finish_leader(tool_run *run) {
  (void)kill(run->pid, SIGTERM);
  int status = tool_wait(run);
  if (status != 0) {
    tool_check_status(run, status, 128 + SIGTERM);
  }
  cli_last = *run;
}

static void delete_lock(void) {
  farm_command_all(&three, "DEL", "job", NULL);
}

TEST(lead_ends_with_the_status_of_its_command) {
  char environment[64];
  cli_check("lead job -- SHOW", 3);
  unsigned long long fence = fence_after(&cli_last, "job ", 0);
  assert_true(fence > 0);
  (void)snprintf(environment, sizeof environment, "job %llu .", fence);
  assert_contains(cli_last.text, environment);
  assert_int_equal(farm_count(&three, "job", NULL), 0);
  cli_check("lead job SHOW", 3);
  assert_true(fence_after(&cli_last, "job ", 0) > fence);
  cli_check("lead job true", 0);
  cli_check("lead job -- /nonexistent/command", 127);
  assert_int_equal(farm_count(&three, "job", NULL), 0);
}

TEST(command_is_stopped_after_a_loss_and_started_in_the_next_term) {
  tool_run run = cli_begin("-t 1500ms --kill-after 60s -v lead job -- LEADER");
  for (unsigned term = 0; term < 3; term++) {
    until_fence(&run, "began ", term);
    delete_lock();
    until_fence(&run, "quit ", term);
  }
  until_fence(&run, "began ", 3);
  finish_leader(&run);
  unsigned long long last = 0;
  const char *at = cli_last.text;
  for (unsigned term = 0; term < 4; term++) { /* One term at a time, in the order of the fences. */
    unsigned long long fence = fence_after(&cli_last, "began ", term);
    assert_true(fence > last);
    assert_true(fence_after(&cli_last, "quit ", term) == fence);
    last = fence;
    const char *began = strstr(at, "began ");
    const char *ended = strstr(at, "quit ");
    assert_true(began != NULL && ended != NULL && began < ended);
    at = ended + 1;
    assert_true(strstr(at, "quit ") == NULL || strstr(at, "began ") < strstr(at, "quit "));
  }
  assert_contains(cli_last.text, "'job' has ended, and the command is stopped");
  assert_contains(cli_last.text, "'job': leads with the fencing token ");
}

/* The nodes hang for so long that the tool stops the command before the end of its lease. */
TEST(strict_lead_stops_the_command_and_leads_again) {
  tool_run run =
      cli_begin("-t 2s --node-timeout 200ms --kill-after 60s --strict lead job -- LEADER");
  until_fence(&run, "began ", 0);
  farm_each(&three, 0, 2, farm_stop);
  until_fence(&run, "quit ", 0);
  farm_each(&three, 0, 2, farm_continue);
  until_fence(&run, "began ", 1);
  assert_true(fence_after(&run, "began ", 1) > fence_after(&run, "began ", 0));
  finish_leader(&run);
}

TEST(standby_leads_after_the_death_of_the_leader) {
  tool_run first = cli_begin("-t 1500ms lead job -- LEADER");
  until_fence(&first, "began ", 0);
  tool_run second = cli_begin("-t 1500ms lead job -- LEADER");
  (void)kill(first.pid, SIGKILL);
  until_fence(&second, "began ", 0);
  assert_true(fence_after(&second, "began ", 0) > fence_after(&first, "began ", 0));
  finish_leader(&second);
  cli_finish(&first, 128 + SIGKILL);
}

TEST(signal_ends_standby) {
  static const int numbers[] = {SIGTERM, SIGINT, SIGHUP, SIGUSR1};
  redlock_lock *held = held_lock(client_of(&three, 3, NULL), "job");
  for (size_t i = 0; i < sizeof numbers / sizeof numbers[0]; i++) {
    tool_run run = cli_begin("-v lead job -- LEADER");
    tool_until_output(&run, "is held by");
    (void)kill(run.pid, numbers[i]);
    cli_finish(&run, 128 + numbers[i]);
    assert_null(strstr(cli_last.text, "began"));
  }
  free_with_client(held);
}

TEST(signal_at_leader_is_passed_to_the_command) {
  tool_run run = cli_begin("lead job -- POLITE");
  until_fence(&run, "began ", 0);
  (void)kill(run.pid, SIGTERM);
  cli_finish(&run, 5);
  assert_contains(cli_last.text, "got TERM");
  assert_int_equal(farm_count(&three, "job", NULL), 0);
}

/* The command ignores SIGTERM, and ends later. */
TEST(signal_during_the_stop_of_the_command_ends_lead) {
  tool_run run = cli_begin("-t 1500ms --kill-after 60s lead job -- STUBBORN");
  until_fence(&run, "began ", 0);
  delete_lock();
  tool_until_output(&run, "the command is stopped");
  (void)kill(run.pid, SIGTERM);
  cli_let_go();
  cli_finish(&run, 128 + SIGTERM);
  assert_true(fence_after(&cli_last, "began ", 1) == 0);
  assert_int_equal(farm_count(&three, "job", NULL), 0);
}

/* The command takes SIGHUP as the order to read its configuration again. */
TEST(reload_does_not_end_lead_after_a_later_loss) {
  tool_run run = cli_begin("-t 1500ms --kill-after 60s lead job -- RELOADER");
  until_fence(&run, "began ", 0);
  (void)kill(run.pid, SIGHUP);
  tool_until_output(&run, "reloaded");
  delete_lock();
  until_fence(&run, "began ", 1);
  assert_true(fence_after(&run, "began ", 1) > fence_after(&run, "began ", 0));
  finish_leader(&run);
}

TEST(wait_limits_the_campaign_of_lead) {
  redlock_lock *held = held_lock(client_of(&three, 3, NULL), "job");
  cli_check("-w 0 lead job -- LEADER", 1);
  cli_check("-w 50ms -E 9 lead job -- LEADER", 9);
  free_with_client(held);
}

/* On a slow machine the number in front of it depends on the answers that have arrived. */
#define LACK " of 3 nodes can vote (2 needed); waiting"

TEST(unreachable_nodes_are_reported_once) {
  farm_each(&three, 0, 2, farm_kill);
  tool_run run = cli_begin("lead job -- LEADER");
  tool_until_output(&run, LACK);
  tool_until_output(&run, three.nodes[1].address);
  farm_each(&three, 0, 2, farm_restart);
  until_fence(&run, "began ", 0);
  finish_leader(&run);
  const char *once = strstr(cli_last.text, "waiting");
  assert_null(strstr(once + 1, "waiting"));
}

/* The nodes are connected, but do not let the user run scripts. */
TEST(refusing_nodes_are_reported_once) {
  farm_command_all(&three, "ACL", "SETUSER", "default", "-eval", NULL);
  tool_run run = cli_begin("lead job -- LEADER");
  tool_until_output(&run, LACK);
  tool_until_output(&run, three.nodes[0].address);
  tool_until_output(&run, " has no permissions to run the 'eval' command");
  let_run_scripts();
  until_fence(&run, "began ", 0);
  finish_leader(&run);
  const char *once = strstr(cli_last.text, "waiting");
  assert_null(strstr(once + 1, "waiting"));
  const char *began = strstr(cli_last.text, "began ");
  once = strstr(cli_last.text, three.nodes[0].address);
  const char *twice = strstr(once + 1, three.nodes[0].address);
  assert_true(twice == NULL || twice > began);
}

TEST(rejected_password_ends_the_campaign) {
  cli_check_shell("exec \"$0\" -n redis://u:hidden@$1,redis://u:hidden@$2,$3 lead job true", 69);
  assert_contains(cli_last.text, "'job': 2 of 3 nodes reject the password");
  assert_null(strstr(cli_last.text, "hidden"));
}

int main(void) {
  return tests_run(&(tests_fixture){.start = start, .before = reset, .end = three_end});
}
