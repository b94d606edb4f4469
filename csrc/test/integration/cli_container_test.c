/*
 * redlock(1) as process 1 of a container.
 *
 * SPDX-License-Identifier: MIT
 *
 * make check runs these tests, and make test does not: they need a PID namespace, which a container
 * without rights and some systems refuse.
 */
#include "shell.h"

/* unshare(1) makes the tool process 1 of a new namespace; users need one of their own. */
#define AS_PROCESS_1                                                                               \
  "unshare $([ $(id -u) = 0 ] || echo --user --map-root-user) --pid --fork --kill-child "          \
  "--mount-proc "

TEST(this_system_has_namespaces) {
  tool_run run = shell_begin(AS_PROCESS_1 "sh -c 'echo pid $$'");
  int status = tool_wait(&run);
  if (status != 0 || strcmp(run.text, "pid 1\n") != 0) {
    fail_msg("unshare --pid is refused here, so that process 1 cannot be tested: %s", run.text);
  }
}

TEST(process_1_runs_a_command) {
  shell_check(AS_PROCESS_1 "$R run job -- sh -c 'echo ran by $PPID; exit 7'", 7);
  assert_string_equal(shell_last.text, "ran by 1\n");
  assert_int_equal(farm_count(&three, "job", NULL), 0);
}

/* Children whose parents have ended become children of process 1. */
#define ORPHANS                                                                                        \
  "for i in 1 2 3 4 5; do sh -c \"sh -c : &\"; done; sh -c \"echo >$DIR/last &\"; " SHELL_UNTIL(       \
      "last") "; "                                                                                     \
              "while grep -sq \"^State:.Z\" /proc/[0-9]*/status && [ -d $DIR ]; do sleep 0.02; done; " \
              "echo none is left"

TEST(process_1_reaps_orphans) {
  shell_check(AS_PROCESS_1 "$R run job -- sh -c '" ORPHANS "'", 0);
  assert_string_equal(shell_last.text, "none is left\n");
}

/* The end of an orphan is not the end of the command. */
TEST(end_of_an_orphan_does_not_end_the_run) {
  shell_check(AS_PROCESS_1 "$R run job -- sh -c 'sh -c \"(exit 3) &\"; sleep 0.2; exit 7'", 7);
  shell_check("$R run job -- sh -c 'sh -c \"(exit 3) &\"; sleep 0.2; exit 7'", 7);
}

/* Process 1 cannot die from a signal that it does not handle: it exits with the status. */
TEST(process_1_ends_with_its_command) {
  static const int numbers[] = {SIGTERM, SIGINT, SIGKILL};
  char script[256];
  for (size_t i = 0; i < sizeof numbers / sizeof numbers[0]; i++) {
    (void)snprintf(script, sizeof script, AS_PROCESS_1 "$R run job -- sh -c 'kill -%d $$'",
                   numbers[i]);
    shell_check(script, 128 + numbers[i]);
    assert_int_equal(farm_count(&three, "job", NULL), 0);
  }
}

/* Docker stops a container with TERM at process 1, for which the kernel has no default. */
TEST(process_1_passes_term_on) {
  shell_check(
      AS_PROCESS_1 "sh -c '(" SHELL_UNTIL(
          "ready") "; kill 1) & exec $R run job -- "
                   "sh -c \"trap \\\"exit 9\\\" TERM; echo >$DIR/ready; " SHELL_UNTIL("end") "\"'",
      9);
  assert_int_equal(farm_count(&three, "job", NULL), 0);
}

TEST(term_ends_the_wait_of_process_1) {
  shell_take("job");
  /* The kernel drops a signal for which process 1 has no handler yet. */
  shell_check(AS_PROCESS_1
              "sh -c 'while sleep 0.3; do kill 1; done & exec $R -w 600s run job -- echo ran'",
              128 + SIGTERM);
  assert_null(strstr(shell_last.text, "ran\n"));
}

TEST(run_works_without_dev) {
  shell_check(AS_PROCESS_1 "sh -c 'mount -t tmpfs none /dev && exec $R run job -- echo ran'", 0);
  assert_string_equal(shell_last.text, "ran\n");
  shell_check(AS_PROCESS_1 "sh -c 'mount -t tmpfs none /dev && exec $R help <&-'", 71);
  assert_contains(shell_last.text, "redlock: a standard descriptor is closed, and /dev/null");
}

int main(void) {
  return tests_run(&(tests_fixture){.start = shell_start, .before = shell_reset, .end = shell_end});
}
