/*
 * redlock(1) as a shell uses it.
 *
 * SPDX-License-Identifier: MIT
 */
#include <fcntl.h>
#include <sys/stat.h>

#include "cli_support.h"

/* Returns the number of scripts that the first node has run: an extend is one. */
static unsigned scripts(void) {
  return farm_calls(&three, 0, "evalsha") + farm_calls(&three, 0, "eval");
}

static void take_job(void) {
  farm_command_all(&three, "SET", "job", "another", NULL);
}

static void until_held(void) {
  eventually(farm_count(&three, "job", NULL) == 3);
}

/* ----------------------------------------------------------------------------------------- run */

TEST(run_returns_the_status_of_its_command) {
  tool_run run = cli_begin("run job -- HELD");
  until_held();
  cli_let_go();
  cli_finish(&run, 0);
  assert_string_equal(cli_last.text, "");
  assert_int_equal(farm_count(&three, "job", NULL), 0);
  static const struct {
    const char *arguments;
    int status;
    const char *output;
  } cases[] = {
      {"run job sh -c exit\t7", 7, ""}, /* The words are passed on unchanged. */
      {"-p cron: run job -- true", 0, ""},
      {"run job -- SCRIPT word", 7, "script word\n"},
      {"--quorum 3 run job -- true", 0, ""},
  };
  for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
    cli_check(cases[i].arguments, cases[i].status);
    assert_contains(cli_last.text, cases[i].output);
    assert_int_equal(farm_count(&three, "job", NULL) + farm_count(&three, "cron:job", NULL), 0);
  }
}

TEST(run_extends_the_lease) {
  tool_run run = cli_begin("-t 8s run job -- HELD");
  until_held();
  eventually(scripts() >= 2);
  assert_int_equal(farm_count(&three, "job", NULL), 3);
  cli_let_go();
  cli_finish(&run, 0);
  assert_string_equal(cli_last.text, "");
}

static void stop_two(void) {
  farm_stop(&three, 0);
  farm_stop(&three, 1);
}

static void kill_two(void) {
  farm_kill(&three, 0);
  farm_kill(&three, 1);
}

TEST(warned_run_lets_its_command_run_on) {
  static const struct {
    const char *arguments;
    void (*damage)(void); /* NULL: the lock ends by itself */
    const char *report;
    int status;
  } cases[] = {
      {"-t 4s -w 60s run --on-lost=warn job -- HELD", take_job,
       "too many nodes no longer have the token", 75},
      {"-t 4s -w 60s run --on-lost=warn job -- FAILING", take_job,
       "too many nodes no longer have the token", 3},
      {"-t 6s --node-timeout 600ms -w 60s run --on-lost=warn job -- HELD", stop_two,
       "'job' could not be extended; it ends in ", 75},
      {"-t 4s -w 60s run --on-lost=warn job -- HELD", kill_two, three.nodes[0].address, 75},
      {"-t 1s --max-hold 1s -w 60s run --on-lost=warn job -- HELD", NULL, "", 75},
  };
  for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
    tool_run run = cli_begin(cases[i].arguments);
    if (cases[i].damage != NULL) {
      until_held();
      cases[i].damage();
    }
    tool_until_output(&run, "'job' has ended, and the command still runs: ");
    cli_let_go();
    cli_finish(&run, cases[i].status);
    assert_contains(cli_last.text, cases[i].report);
    if (cases[i].status == 75) {
      assert_contains(cli_last.text, "'job' ended before the command did");
    }
    if (cases[i].damage == kill_two) {
      assert_contains(cli_last.text, three.nodes[1].address);
      assert_null(strstr(cli_last.text, three.nodes[2].address));
    }
    assert_int_equal(farm_count(&three, "job", "another"), cases[i].damage == take_job ? 3 : 0);
    (void)three_reset(state);
  }
}

/* ------------------------------------------------------------------------------------- signals */

static void block_all_signals(void) {
  sigset_t all;
  (void)sigfillset(&all);
  (void)sigprocmask(SIG_SETMASK, &all, NULL);
}

TEST(signal_that_the_caller_blocks_ends_the_wait) {
  take_job();
  unsigned before = farm_calls(&three, 0, "set");
  tool_run run = cli_begin_after(block_all_signals, "-w 600s run job -- echo ran");
  eventually(farm_calls(&three, 0, "set") > before);
  (void)kill(run.pid, SIGTERM);
  cli_finish(&run, 128 + SIGTERM);
  assert_int_equal(farm_count(&three, "job", "another"), 3);
}

/* ------------------------------------------------------------------------- the process's state */

TEST(command_inherits_the_blocked_signals_of_the_caller) {
  cli_check_after(block_all_signals, "run job -- grep SigBlk: /proc/self/status", 0);
  assert_contains(cli_last.text, "SigBlk:\tfffffffe7ffb"); /* Some signals cannot be blocked. */
}

static void close_other_descriptors(void) {
  for (int fd = STDERR_FILENO + 1; fd < 1024; fd++) {
    (void)close(fd);
  }
}

TEST(command_inherits_no_descriptor_of_the_tool) {
  cli_check_after(close_other_descriptors, "run job -- ls /proc/self/fd", 0);
  assert_string_equal(cli_last.text, "0\n1\n2\n3\n"); /* 3 is the directory. */
}

/* run ... 2>&1 | head: the reader of the report has gone. */
TEST(broken_pipe_ends_neither_tool_nor_command) {
  tool_run run = cli_begin("-t 2s -w 60s run --on-lost=warn job -- HELD");
  until_held();
  (void)close(run.output);
  run.output = open("/dev/null", O_RDONLY | O_CLOEXEC);
  take_job();
  unsigned before = scripts();
  redlock_time reported_us = redlock_now() + MS(3000); /* By then the lease has ended. */
  eventually(scripts() > before || redlock_now() > reported_us);
  cli_let_go();
  cli_finish(&run, 75);
}

static void close_standard_descriptors(void) {
  for (int fd = 0; fd <= STDERR_FILENO; fd++) {
    (void)close(fd);
  }
}

/* Otherwise the connection to a node would be the standard error. */
TEST(closed_standard_descriptors_are_replaced) {
  tool_run run = cli_begin_after(close_standard_descriptors, "run job -- HELD");
  until_held();
  for (int fd = 0; fd <= STDERR_FILENO; fd++) {
    char path[64];
    char target[64] = "";
    (void)snprintf(path, sizeof path, "/proc/%d/fd/%d", (int)run.pid, fd);
    assert_true(readlink(path, target, sizeof target - 1) > 0);
    assert_string_equal(target, "/dev/null");
  }
  cli_let_go();
  cli_finish(&run, 0);
}

/* --------------------------------------------------------------------------------- other verbs */

TEST(unavailable_nodes_are_named) {
  farm_kill(&three, 0);
  cli_check("-w 0 run job -- true", 0);
  cli_check("--quorum 3 -w 0 run job -- echo ran", 69);
  farm_kill(&three, 1);
  cli_check("-w 0 run job -- echo ran", 69);
  assert_contains(cli_last.text, three.nodes[0].address);
  assert_null(strstr(cli_last.text, "ran\n"));
}

static void configure_append_only(const char *value) {
  farm_command_all(&three, "CONFIG", "SET", "appendonly", value, NULL);
}

TEST(doctor_reports_findings) {
  char line[96];
  configure_append_only("yes");
  cli_check("doctor", 0);
  assert_string_equal(cli_last.text, "nothing is wrong with the 3 nodes\n");
  (void)farm_command(&three, 1, "SET", "lost", "0123456789abcdef0123456789abcdef01234567",
                     (char *)NULL);
  cli_check("--keys doctor job", 0);
  (void)snprintf(line, sizeof line, "warning\tendless_keys\t%s holds 1 key",
                 three.nodes[1].address);
  assert_int_equal(strncmp(cli_last.text, line, strlen(line)), 0);
  farm_kill(&three, 2);
  cli_check("doctor", 1);
  (void)snprintf(line, sizeof line, "error\tdown\t%s did not answer: ", three.nodes[2].address);
  assert_int_equal(strncmp(cli_last.text, line, strlen(line)), 0);
  farm_kill(&three, 1);
  cli_check("doctor", 69);
  (void)three_reset(state);
  configure_append_only("no");
}

int main(void) {
  return tests_run(&(tests_fixture){.start = cli_start, .before = three_reset, .end = three_end});
}
