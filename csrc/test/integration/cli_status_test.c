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

TEST(success_is_0) {
  static const status_case cases[] = {
      {"$R run job -- true", 0, ""},
      {"$R run job true", 0, ""},
      {"$R run job -- true >&-", 0, ""},
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

TEST(status_of_the_command_is_returned) {
  static const int statuses[] = {1, 2, 42, 64, 69, 71, 75, 99, 125, 126, 127, 128, 143, 255};
  char script[64];
  for (size_t i = 0; i < sizeof statuses / sizeof statuses[0]; i++) {
    (void)snprintf(script, sizeof script, "$R run job -- sh -c 'exit %d'", statuses[i]);
    shell_check(script, statuses[i]);
    assert_string_equal(shell_last.text, "");
    assert_int_equal(tool_signal(&shell_last), 0);
  }
}

TEST(taken_lock_is_1) {
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

TEST(wrong_usage_is_64) {
  static const status_case cases[] = {
      {"$R run '' true", 64, "RESOURCE is empty"},
      {"$R run job ''", 64, "usage: redlock run"},
      {"$R run -w5s ./backup.sh", 64, ""},
      {"$R run --guard ./backup.sh", 64, "usage: redlock run"},
      {"$R run -job -- echo ran", 64, "-j"},
      {"$R run -- -job echo ran", 64, "run"},
  };
  CHECK_ALL(cases);
}

TEST(missing_majority_is_69) {
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

TEST(system_error_is_71) {
  static const status_case cases[] = {
      {"ulimit -n 4; $R run job -- echo ran", 71, ""},
      /* With some of the limits the lock is granted, and then there is no descriptor left. */
      {"for n in 7 8 9 10 11 12 13 14 15 16; do"
       "  (ulimit -n $n; $R run job -- true) 2>&1; [ $? != 126 ] || exit 126; done; exit 71",
       71, "redlock: true: Too many open files"},
      {"$R nodes >&-", 71, "cannot write to the standard output"},
      {"$R --help >/dev/full", 71, "No space left"},
  };
  CHECK_ALL(cases);
}

TEST(lost_lock_is_75) {
  static const status_case cases[] = {
      {"$R --max-hold 1s -t 1s run job -- sleep 600", 75, "'job'"},
  };
  CHECK_ALL(cases);
}

TEST(command_that_cannot_run_is_126_or_127) {
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

int main(void) {
  return tests_run(&(tests_fixture){.start = shell_start, .before = shell_reset, .end = shell_end});
}
