/*
 * redlock hold: holds a lock for another program.
 *
 * SPDX-License-Identifier: MIT
 */
#include <fcntl.h>
#include <sys/socket.h>

#include "cli_support.h"
#include "json.h"

static int input = -1;  /* end of the tool */
static int feeder = -1; /* end of the test */

static void use_input(void) {
  (void)dup2(input, STDIN_FILENO);
}

static void use_no_input(void) {
  (void)dup2(open("/dev/null", O_RDONLY), STDIN_FILENO);
}

/* Starts "hold" with one of the ends of a pipe or socket pair as its standard input. */
static tool_run begin_with(const int ends[2], const char *arguments) {
  input = ends[0];
  feeder = ends[1];
  tool_run run = cli_begin_after(use_input, arguments);
  (void)close(input);
  return run;
}

static void until_held(tool_run *run) {
  tool_until_output(run, "held job\n");
  eventually(farm_count(&three, "job", NULL) == 3);
}

TEST(hold_ends_with_its_input) {
  for (unsigned kind = 0; kind < 2; kind++) {
    int ends[2];
    assert_int_equal(kind == 0 ? pipe2(ends, O_CLOEXEC)
                               : socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends),
                     0);
    tool_run run = begin_with(ends, "hold job");
    until_held(&run);
    assert_int_equal(write(feeder, "text", 4), 4);
    (void)poll(NULL, 0, 20);
    assert_int_equal(farm_count(&three, "job", NULL), 3);
    (void)close(feeder);
    cli_finish(&run, 0);
    assert_string_equal(cli_last.text, "held job\n");
    assert_int_equal(farm_count(&three, "job", NULL), 0);
  }
}

/* Ctrl-D at a terminal is the end of its input. */
TEST(hold_ends_with_the_end_of_a_terminal) {
  int ends[2];
  ends[1] = posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC);
  assert_true(ends[1] >= 0 && grantpt(ends[1]) == 0 && unlockpt(ends[1]) == 0);
  ends[0] = open(ptsname(ends[1]), O_RDWR | O_NOCTTY | O_CLOEXEC);
  assert_true(ends[0] >= 0);
  tool_run run = begin_with(ends, "hold job");
  until_held(&run);
  assert_int_equal(write(feeder, "text\n", 5), 5);
  (void)poll(NULL, 0, 20);
  assert_int_equal(farm_count(&three, "job", NULL), 3);
  assert_int_equal(write(feeder, "\4", 1), 1);
  cli_finish(&run, 0);
  (void)close(feeder);
  assert_int_equal(farm_count(&three, "job", NULL), 0);
}

TEST(hold_keeps_the_lock_without_an_input) {
  static const int numbers[] = {SIGTERM, SIGINT};
  for (unsigned i = 0; i < 2; i++) {
    tool_run run = cli_begin_after(use_no_input, "hold job");
    until_held(&run);
    (void)poll(NULL, 0, 20);
    assert_int_equal(farm_count(&three, "job", NULL), 3);
    (void)kill(run.pid, numbers[i]);
    cli_finish(&run, 128 + numbers[i]);
    assert_int_equal(farm_count(&three, "job", NULL), 0);
  }
}

TEST(end_of_the_input_ends_the_wait) {
  int ends[2];
  farm_command_all(&three, "SET", "job", "another", NULL);
  assert_int_equal(pipe2(ends, O_CLOEXEC), 0);
  unsigned before = farm_calls(&three, 0, "set");
  tool_run run = begin_with(ends, "hold -w inf job");
  eventually(farm_calls(&three, 0, "set") > before);
  (void)close(feeder);
  cli_finish(&run, 1); /* It never held the lock. */
  assert_string_equal(cli_last.text,
                      "redlock: 'job': the input ended before the lock was granted\n");
  assert_int_equal(farm_count(&three, "job", "another"), 3);
}

TEST(hold_reports_a_loss) {
  tool_run run = cli_begin_after(use_no_input, "hold -t 6s -w 60s --json job");
  tool_until_output(&run, "\"state\": \"held\"");
  farm_command_all(&three, "SET", "job", "another", NULL);
  cli_finish(&run, 75);
  assert_contains(cli_last.text, "'job' is lost: too many nodes no longer have the token");
  assert_contains(
      cli_last.text,
      "{\"resource\": \"job\", \"state\": \"lost\", \"fence\": null, \"slot\": null}\n");
  assert_int_equal(farm_count(&three, "job", "another"), 3);
}

/* CTDB reads one byte, and takes a second one as the loss of the lock. */
TEST(hold_prints_one_digit_for_ctdb) {
  tool_run run = cli_begin_after(use_no_input, "hold --ctdb --json job"); /* no JSON for CTDB */
  tool_until_output(&run, "0");
  eventually(farm_count(&three, "job", NULL) == 3);
  cli_check_after(use_no_input, "hold --ctdb -w 0 job", 1);
  assert_string_equal(cli_last.text, "1");
  (void)kill(run.pid, SIGTERM);
  cli_finish(&run, 128 + SIGTERM);
  assert_string_equal(cli_last.text, "0");
  assert_int_equal(farm_count(&three, "job", NULL), 0);
  farm_kill(&three, 0);
  farm_kill(&three, 1);
  cli_check_after(use_no_input, "hold --ctdb -w 0 job", 69);
  assert_true(cli_last.text[0] == '3');
}

/* The tool as $0, its address as $1: the shell is the parent, and ends with its input. */
static void run_shell(void) {
  use_input();
  (void)execl("/bin/sh", "sh", "-c", "\"$0\" hold --ctdb -n $1 job & read word", tool_path(),
              three.nodes[0].address, (char *)NULL);
}

TEST(hold_for_ctdb_ends_with_its_parent) {
  int ends[2];
  assert_int_equal(pipe2(ends, O_CLOEXEC), 0);
  input = ends[0];
  tool_run run = cli_begin_after(run_shell, "");
  (void)close(input);
  tool_until_output(&run, "0");
  assert_int_equal(farm_count(&three, "job", NULL), 1);
  (void)close(ends[1]);
  eventually(farm_count(&three, "job", NULL) == 0);
  (void)tool_wait(&run);
}

int main(void) {
  return tests_run(&(tests_fixture){.start = cli_start, .before = three_reset, .end = three_end});
}
