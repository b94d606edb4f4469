/*
 * redlock(1) and signals: a test for each row of the table in docs/cli.md.
 *
 * SPDX-License-Identifier: MIT
 */
#include <sys/resource.h>

#include "shell.h"

/* A command that notes the names of the signals that it gets, and ends with $DIR/end. */
#define NOTING                                                                                     \
  "for s in HUP INT QUIT TERM USR1 USR2 ALRM; do trap \"echo $s >>$DIR/got\" $s; done; "           \
  ": >$DIR/ready; " SHELL_UNTIL("end")
#define NOTER "exec $R run job -- sh -c '" NOTING "'"
/* One that notes nothing, and ends by $DIR/end or by a signal. */
#define PLAIN "exec $R run job -- sh -c ': >$DIR/ready; " SHELL_UNTIL("end") "'"

typedef struct named_signal {
  int number;
  const char *name;
} named_signal;

/* Signals that end a program, and that the tool passes on. */
static const named_signal ending[] = {{SIGTERM, "TERM"}, {SIGHUP, "HUP"}, {SIGUSR1, "USR1"},
                                      {SIGUSR2, "USR2"}, {SIGINT, "INT"}, {SIGQUIT, "QUIT"}};
#define COUNT_OF(array) (sizeof(array) / sizeof(array)[0])

/* Gives the caller of the tool the default of each signal. */
static void restore_signals(void) {
  for (size_t i = 0; i < COUNT_OF(ending); i++) {
    (void)signal(ending[i].number, SIG_DFL);
  }
  (void)signal(SIGPIPE, SIG_DFL);
  (void)signal(SIGALRM, SIG_DFL);
}

static tool_run begin_command(const char *script) {
  tool_run run = shell_begin_after(restore_signals, script);
  eventually(shell_has("ready"));
  shell_until_held("job");
  return run;
}

/* Returns the names of the signals that the command has noted. */
static const char *noted(void) {
  static tool_run cat;
  cat = shell_begin("cat $DIR/got 2>/dev/null | tr '\\n' ' '");
  assert_int_equal(tool_wait(&cat), 0);
  return cat.text;
}

static void check_noted(const char *name) {
  char expected[16];
  (void)snprintf(expected, sizeof expected, "%s%s", name, name[0] == '\0' ? "" : " ");
  assert_string_equal(noted(), expected);
}

/* The tool itself leaves no core file. */
static void check_signal(int expected) {
  assert_false(WCOREDUMP(shell_last.state));
  if (tool_signal(&shell_last) != expected) {
    fail_msg("ended by signal %d, not %d: %s", tool_signal(&shell_last), expected, shell_last.text);
  }
}

/* ---------------------------------------------------------- at the tool, while the command runs */

TEST(tool_passes_a_signal_to_the_command_once) {
  for (size_t i = 0; i < COUNT_OF(ending); i++) {
    tool_run run = begin_command(NOTER);
    assert_int_equal(kill(run.pid, ending[i].number), 0);
    eventually(noted()[0] != '\0');
    assert_int_equal(farm_count(&three, "job", NULL), 3); /* The command still runs. */
    shell_touch("end");
    shell_finish(&run, 0);
    check_noted(ending[i].name);
    assert_int_equal(farm_count(&three, "job", NULL), 0);
    (void)shell_reset(state);
  }
}

TEST(stopped_tool_keeps_its_lock_when_it_continues) {
  tool_run run = begin_command(NOTER);
  assert_int_equal(kill(run.pid, SIGSTOP), 0);
  assert_int_equal(kill(run.pid, SIGTERM), 0);
  assert_int_equal(kill(run.pid, SIGCONT), 0);
  eventually(noted()[0] != '\0');
  assert_int_equal(farm_count(&three, "job", NULL), 3);
  shell_touch("end");
  shell_finish(&run, 0);
}

/* ------------------------------------------------------------- at the tool, while it waits */

TEST(signal_ends_a_waiting_tool_by_itself) {
  for (size_t i = 0; i < COUNT_OF(ending); i++) {
    shell_take("job");
    unsigned before = farm_calls(&three, 0, "set");
    tool_run run = shell_begin_after(restore_signals, "exec $R -w 600s run job -- echo ran");
    eventually(farm_calls(&three, 0, "set") > before);
    assert_int_equal(kill(run.pid, ending[i].number), 0);
    shell_finish(&run, 128 + ending[i].number);
    check_signal(ending[i].number);
    assert_string_equal(shell_last.text, "");
    assert_int_equal(farm_count(&three, "job", "another"), 3);
  }
}

/* ---------------------------------------------------------------------- at the command */

/* A shell that runs the tool sees the death by a signal, as if it had run the command itself. */
TEST(tool_dies_from_the_signal_that_ended_its_command) {
  static const int numbers[] = {SIGTERM, SIGHUP,  SIGUSR1, SIGUSR2, SIGINT,
                                SIGQUIT, SIGALRM, SIGPIPE, SIGABRT, SIGSEGV};
  char script[80];
  for (size_t i = 0; i < COUNT_OF(numbers); i++) {
    (void)snprintf(script, sizeof script, "exec $R run job -- sh -c 'ulimit -c 0; kill -%d $$'",
                   numbers[i]);
    tool_run run = shell_begin_after(restore_signals, script);
    shell_finish(&run, 128 + numbers[i]);
    check_signal(numbers[i]);
    assert_string_equal(shell_last.text, "");
    assert_int_equal(farm_count(&three, "job", NULL), 0);
  }
  shell_check("exec $R run job -- sh -c 'kill -9 $$'", 128 + SIGKILL);
  assert_int_equal(farm_count(&three, "job", NULL), 0);
}

/* A status above 128 is no signal. */
TEST(tool_returns_a_status_above_128) {
  shell_check("exec $R run job -- sh -c 'exit 130'", 130);
  check_signal(0);
}

/* --------------------------------------------------------------- ignored at the start */

static int ignored_number;

static void ignore_one(void) {
  restore_signals();
  (void)signal(ignored_number, SIG_IGN);
}

/* As under nohup, and in a script that starts the tool with "&": INT and QUIT. */
TEST(ignored_signal_stays_ignored) {
  for (size_t i = 0; i < COUNT_OF(ending); i++) {
    ignored_number = ending[i].number;
    int after = ignored_number == SIGUSR1 ? SIGUSR2 : SIGUSR1;
    tool_run run = shell_begin_after(ignore_one, NOTER);
    eventually(shell_has("ready"));
    assert_int_equal(kill(run.pid, ignored_number), 0);
    assert_int_equal(kill(run.pid, after), 0);
    eventually(noted()[0] != '\0');
    shell_touch("end");
    shell_finish(&run, 0);
    check_noted(after == SIGUSR1 ? "USR1" : "USR2");
    (void)shell_reset(state);
  }
}

TEST(ignored_signal_does_not_end_the_wait) {
  for (size_t i = 0; i < COUNT_OF(ending); i++) {
    ignored_number = ending[i].number;
    shell_take("job");
    unsigned before = farm_calls(&three, 0, "set");
    tool_run run = shell_begin_after(ignore_one, "exec $R -w 600s run job -- echo ran");
    eventually(farm_calls(&three, 0, "set") > before);
    assert_int_equal(kill(run.pid, ignored_number), 0);
    before = farm_calls(&three, 0, "set");
    (void)poll(NULL, 0, 20);
    (void)farm_command(&three, 0, "DEL", "job", (char *)NULL);
    (void)farm_command(&three, 1, "DEL", "job", (char *)NULL);
    (void)farm_command(&three, 2, "DEL", "job", (char *)NULL);
    shell_finish(&run, 0);
    assert_string_equal(shell_last.text, "ran\n");
  }
}

/* The command has what the caller had: ignored what was ignored, and the default for the rest. */
TEST(command_inherits_the_signals_of_the_caller) {
  static const int numbers[] = {SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGUSR1, SIGUSR2, SIGPIPE};
  static const char script[] = "exec $R run job -- grep SigIgn: /proc/self/status";
  for (size_t i = 0; i <= COUNT_OF(numbers); i++) {
    ignored_number = i < COUNT_OF(numbers) ? numbers[i] : SIGCONT;
    tool_run run = shell_begin_after(i < COUNT_OF(numbers) ? ignore_one : restore_signals, script);
    shell_finish(&run, 0);
    const char *mask = strstr(shell_last.text, "SigIgn:");
    assert_non_null(mask);
    unsigned long long ignored = strtoull(mask + strlen("SigIgn:"), NULL, 16);
    for (size_t k = 0; k < COUNT_OF(numbers); k++) {
      assert_int_equal(ignored >> (numbers[k] - 1) & 1, numbers[k] == ignored_number);
    }
  }
}

TEST(nohup_keeps_the_command_alive) {
  tool_run run = shell_begin(
      "exec nohup $R run job -- sh -c ': >$DIR/ready; " SHELL_UNTIL("end") "' </dev/null");
  eventually(shell_has("ready"));
  shell_until_held("job");
  assert_int_equal(kill(run.pid, SIGHUP), 0);
  (void)poll(NULL, 0, 20);
  assert_int_equal(farm_count(&three, "job", NULL), 3);
  shell_touch("end");
  shell_finish(&run, 0);
}

/* ------------------------------------------------------------------------ at the group */

static void lead_a_group(void) {
  restore_signals();
  (void)setpgid(0, 0);
}

/* timeout(1) and shells signal the group. The command has time to get a second one. */
TEST(signal_at_the_group_arrives_once) {
  for (size_t i = 0; i < COUNT_OF(ending); i++) {
    tool_run run = shell_begin_after(
        lead_a_group, "exec $R run job -- sh -c 'trap \"\" CHLD; " NOTING "; exit 5'");
    eventually(shell_has("ready"));
    assert_int_equal(kill(-run.pid, ending[i].number), 0);
    eventually(noted()[0] != '\0');
    (void)poll(NULL, 0, 300);
    shell_touch("end");
    shell_finish(&run, 5);
    check_noted(ending[i].name);
    (void)shell_reset(state);
  }
}

int main(void) {
  return tests_run(&(tests_fixture){.start = shell_start, .before = shell_reset, .end = shell_end});
}
