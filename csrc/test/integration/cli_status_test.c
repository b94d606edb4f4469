/*
 * The exit statuses of redlock(1): a test for each row of the table in docs/cli.md.
 * cli_signal_table_test.c has the row of the signals.
 *
 * SPDX-License-Identifier: MIT
 */
#include "shell.h"

typedef struct status_case {
  const char *script;
  int status;
  const char *text; /* a part of the output */
} status_case;

static void check_all(const status_case *cases, size_t count) {
  for (size_t i = 0; i < count; i++) {
    shell_check(cases[i].script, cases[i].status);
    assert_contains(shell_last.text, cases[i].text);
    assert_null(strstr(shell_last.text, "ran\n")); /* A command that must not run would print it. */
  }
}
#define CHECK_ALL(cases) check_all(cases, sizeof(cases) / sizeof(cases)[0])

/* A lock that an earlier run of the tool has taken, by its text. */
#define HELD "text=$($R acquire job) && "

static void success_is_0(void **state) {
  static const status_case cases[] = {
      {"$R run job -- true", 0, ""},
      {"$R run job true", 0, ""},
      {"$R acquire other", 0, "redlock1."},
      {HELD "text=$($R extend $text) && $R release $text", 0, ""},
      {"(until [ -s $DIR/held ]; do sleep 0.02; done) | $R hold job >$DIR/held && cat $DIR/held", 0,
       "held job"},
      {"$R inspect job", 0, "free"},
      {HELD "$R inspect job && $R release $text", 0, "held"},
      {"$R nodes", 0, "granted"},
      {"$R bench --duration 10ms", 0, "locks per second"},
      {"$R help", 0, "usage: redlock"},
      {"$R run --help", 0, "usage: redlock"},
      {"$R --version", 0, REDLOCK_VERSION},
  };
  CHECK_ALL(cases);
  assert_int_equal(farm_count(&three, "job", NULL), 0);
}

static void status_of_the_command_is_returned(void **state) {
  static const int statuses[] = {1, 2, 42, 64, 69, 71, 75, 99, 125, 126, 127, 128, 143, 255};
  char script[64];
  for (size_t i = 0; i < sizeof statuses / sizeof statuses[0]; i++) {
    (void)snprintf(script, sizeof script, "$R run job -- sh -c 'exit %d'", statuses[i]);
    shell_check(script, statuses[i]);
    assert_string_equal(shell_last.text, "");
    assert_int_equal(tool_signal(&shell_last), 0);
  }
}

static void taken_lock_is_1(void **state) {
  static const status_case cases[] = {
      {"$R -w 0 run job -- echo ran", 1, "'job' is taken"},
      {"$R -w 0 -E 99 run job -- echo ran", 99, "'job' is taken"},
      {"$R -w 0 -E 0 run job -- echo ran", 0, "'job' is taken"},
      {"$R -w 2s run job -- echo ran", 1, "'job' "}, /* A late last attempt has another message. */
      {"$R -w 0 -q run job -- echo ran", 1, ""},
      {"$R -w 0 acquire job", 1, "'job' is taken"},
      {"$R -w 0 -E 9 acquire job", 9, "'job' is taken"},
      {"$R -w 0 hold job", 1, "'job' is taken"},
  };
  shell_take("job");
  CHECK_ALL(cases);
  assert_int_equal(farm_count(&three, "job", "another"), 3);
}

static void finding_of_the_doctor_is_1(void **state) {
  farm_kill(&three, 2);
  shell_check("$R doctor", 1);
  assert_contains(shell_last.text, "error\tdown\t");
}

static void unknown_token_is_1(void **state) {
  static const status_case cases[] = {
      {"$R force-release job wrong", 1, "not_held"},
  };
  shell_take("job");
  CHECK_ALL(cases);
  assert_int_equal(farm_count(&three, "job", "another"), 3);
}

static void wrong_usage_is_64(void **state) {
  static const status_case cases[] = {
      {"$R", 64, "no verb"},
      {"$R steal job", 64, "unknown verb 'steal'"},
      {"$R run job", 64, "usage: redlock run"},
      {"$R run '' true", 64, "usage: redlock run"},
      {"$R run job ''", 64, "usage: redlock run"},
      {"$R run -w5s ./backup.sh", 64, ""},
      {"$R run --guard ./backup.sh", 64, "usage: redlock run"},
      {"$R run -job -- echo ran", 64, "-j"},
      {"$R run -- -job echo ran", 64, "run"},
      {"$R -t 1ms run job -- echo ran", 64, ""},
      {"$R -t 10 run job -- echo ran", 64, "invalid time '10'"},
      {"$R -w 99999h run job -- echo ran", 64, "year"},
      {"$R --quorum 1 run job -- echo ran", 64, "quorum"},
      {"$R bootstrap", 64, "--guard"},
      {"$R extend nonsense", 64, ""},
      {"$R release nonsense", 64, ""},
      {"$R --keys nodes", 64, "--keys"},
      {"unset REDLOCK_NODES; $TOOL nodes", 64, "no nodes"},
      {"$TOOL -n 127.0.0.1:x nodes", 64, "port"},
  };
  CHECK_ALL(cases);
}

static void missing_majority_is_69(void **state) {
  static const status_case cases[] = {
      {"$R -w 0 run job -- echo ran", 69, "of 3 nodes granted it"},
      {"$R -w 0 acquire job", 69, ""},
      {"$R -w 0 hold job", 69, ""},
      {"$R inspect job", 69, ""},
      {"$R nodes", 69, "granted\t"},
      {"$R doctor", 69, "error\tdown\t"},
      {"$R -t 20s --guard bootstrap", 69, ""},
      {"$R bench --duration 10ms", 69, ""},
  };
  farm_kill(&three, 0);
  farm_kill(&three, 1);
  CHECK_ALL(cases);
}

static void rejected_password_is_69_at_once(void **state) {
  redlock_time begun_us = stopwatch();
  for (unsigned i = 0; i < 3; i++) {
    (void)farm_command(&three, i, "CONFIG", "SET", "requirepass", "right", (char *)NULL);
  }
  shell_check("nodes=; for n in $REDLOCK_NODES; do nodes=\"$nodes redis://:wrong@$n\"; done; "
              "REDLOCK_NODES=$nodes $R -w 10m run job -- echo ran",
              69);
  assert_contains(shell_last.text, "WRONGPASS");
  unsigned named = 0; /* two decide */
  for (unsigned i = 0; i < 3; i++) {
    named += strstr(shell_last.text, three.nodes[i].address) != NULL;
  }
  assert_true(named >= 2);
  assert_null(strstr(shell_last.text, ":wrong@"));
  assert_took(begun_us, 0, MS(25000));
}

static void system_error_is_71(void **state) {
  static const status_case cases[] = {
      {"ulimit -n 4; $R run job -- echo ran", 71, ""},
      /* With some of the limits the lock is granted, and then there is no descriptor left. */
      {"for n in 7 8 9 10 11 12 13 14 15 16; do"
       "  (ulimit -n $n; $R run job -- true) 2>&1; [ $? != 126 ] || exit 126; done; exit 71",
       71, "redlock: true: Too many open files"},
      {"$R nodes >&-", 71, "cannot write to the standard output"},
      {"$R inspect job >/dev/full", 71, "No space left"},
      {"$R acquire job >/dev/full", 71, "No space left"},
      {"$R --help >/dev/full", 71, "No space left"},
  };
  CHECK_ALL(cases);
}

static void lost_lock_is_75(void **state) {
  static const status_case cases[] = {
      {HELD "$R release $text && $R release $text", 75, "'job' is lost"},
      {HELD "$R release $text && $R extend $text", 75, "'job' is lost"},
      {"$R --max-hold 1s -t 1s run job -- sleep 600", 75, "'job'"},
  };
  CHECK_ALL(cases);
}

/* With any status of the command. */
static void lost_lock_of_a_stopped_command_is_75(void **state) {
  char script[256];
  for (int status = 0; status < 4; status += 3) {
    (void)snprintf(
        script, sizeof script,
        "$R -t 1500ms run job -- sh -c 'trap \"exit %d\" TERM; : >$DIR/ready; " SHELL_UNTIL(
            "end") "'",
        status);
    tool_run run = shell_begin(script);
    eventually(shell_has("ready"));
    shell_take("job");
    shell_finish(&run, 75);
    (void)shell_reset(state);
  }
}

static void lost_lock_of_a_warned_command_is_75_or_its_failure(void **state) {
  for (int status = 0; status < 4; status += 3) {
    char script[256];
    (void)snprintf(script, sizeof script,
                   "$R -t 1500ms --on-lost=warn run job -- sh -c ': >$DIR/ready; " SHELL_UNTIL(
                       "end") "; exit %d'",
                   status);
    tool_run run = shell_begin(script);
    eventually(shell_has("ready"));
    shell_take("job");
    tool_until_output(&run, "the command still runs");
    shell_touch("end");
    shell_finish(&run, status == 0 ? 75 : status);
    (void)shell_reset(state);
  }
}

static void lost_lock_of_a_hold_is_75(void **state) {
  tool_run run = shell_begin("$R -t 1500ms hold job");
  tool_until_output(&run, "held job");
  shell_take("job");
  shell_finish(&run, 75);
}

static void command_that_cannot_run_is_126_or_127(void **state) {
  static const status_case cases[] = {
      {"$R run job -- /", 126, "/: "},
      {"$R run job -- /etc/passwd", 126, "/etc/passwd: "},
      {"$R run job -- no-such-command-here", 127, "no-such-command-here: "},
      {"$R run job -- /no/such/path", 127, "/no/such/path: "},
      {"$R --hold-for 60s run job -- no-such-command-here", 127, "no-such-command-here: "},
  };
  CHECK_ALL(cases);
  assert_int_equal(farm_count(&three, "job", NULL), 0);
}

static int restore_passwords(void **state) {
  for (unsigned i = 0; i < 3; i++) {
    farm_kill(&three, i);
  }
  return 0;
}

int main(void) {
  const struct CMUnitTest tests[] = {
      SHELL_TEST(success_is_0),
      SHELL_TEST(status_of_the_command_is_returned),
      SHELL_TEST(taken_lock_is_1),
      SHELL_TEST(finding_of_the_doctor_is_1),
      SHELL_TEST(unknown_token_is_1),
      SHELL_TEST(wrong_usage_is_64),
      SHELL_TEST(missing_majority_is_69),
      cmocka_unit_test_setup_teardown(rejected_password_is_69_at_once, shell_reset,
                                      restore_passwords),
      SHELL_TEST(system_error_is_71),
      SHELL_TEST(lost_lock_is_75),
      SHELL_TEST(lost_lock_of_a_stopped_command_is_75),
      SHELL_TEST(lost_lock_of_a_warned_command_is_75_or_its_failure),
      SHELL_TEST(lost_lock_of_a_hold_is_75),
      SHELL_TEST(command_that_cannot_run_is_126_or_127),
  };
  return cmocka_run_group_tests(tests, shell_start, shell_end);
}
