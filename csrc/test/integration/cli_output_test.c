/*
 * The output of redlock(1): colours, JSON, and -q, -v.
 *
 * SPDX-License-Identifier: MIT
 */
#include <fcntl.h>

#include "cli_support.h"
#include "json.h"

/* Verbs that print something and end by themselves. */
static const char *const verbs[] = {
    "acquire -w 0 job",     "inspect job",           "nodes", "doctor", "--guard -t 10s bootstrap",
    "bench --duration 1ms", "force-release job none"};
#define VERBS (sizeof verbs / sizeof verbs[0])

static int terminal = -1;
static const char *terminal_type, *no_color;

static void use_terminal(void) {
  (void)dup2(terminal, STDOUT_FILENO);
  (void)setenv("TERM", terminal_type, 1);
  (void)unsetenv("NO_COLOR");
  if (no_color != NULL) {
    (void)setenv("NO_COLOR", no_color, 1);
  }
}

/* Runs the tool on a terminal, whose output replaces that of the run. */
static void check_on_terminal(const char *arguments, const char *type, const char *refusal,
                              int expected) {
  int master = posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC);
  assert_true(master >= 0 && grantpt(master) == 0 && unlockpt(master) == 0);
  terminal = open(ptsname(master), O_RDWR | O_NOCTTY | O_CLOEXEC);
  terminal_type = type;
  no_color = refusal;
  assert_true(terminal >= 0);
  tool_run run = cli_begin_after(use_terminal, arguments);
  (void)close(terminal);
  (void)close(run.output);
  run.output = master;
  cli_finish(&run, expected);
}

TEST(terminal_gets_colours_and_columns) {
  farm_kill(&three, 2);
  check_on_terminal("nodes", "xterm", NULL, 0);
  assert_contains(cli_last.text, "\033[32mgranted\033[0m");
  assert_contains(cli_last.text, "\033[31merror\033[0m");
  assert_contains(cli_last.text, "ANSWER");
  assert_null(strchr(cli_last.text, '\t'));
  check_on_terminal("nodes", "xterm", "", 0);
  assert_contains(cli_last.text, "\033[32m");
  static const char *const plain[][2] = {{"xterm", "1"}, {"dumb", NULL}};
  for (unsigned i = 0; i < 2; i++) {
    check_on_terminal("nodes", plain[i][0], plain[i][1], 0);
    assert_null(strchr(cli_last.text, '\033'));
    assert_contains(cli_last.text, "  granted  ");
  }
  check_on_terminal("doctor", "xterm", NULL, 1);
  assert_contains(cli_last.text, "\033[31merror\033[0m");
}

TEST(pipe_gets_neither_colours_nor_titles) {
  (void)setenv("TERM", "xterm", 1);
  for (size_t i = 0; i < VERBS; i++) {
    tool_run run = cli_begin(verbs[i]);
    (void)tool_wait(&run);
    assert_null(strchr(run.text, '\033'));
    assert_null(strstr(run.text, "NODE"));
  }
}

static void silence_errors(void) {
  (void)dup2(open("/dev/null", O_WRONLY), STDERR_FILENO);
}

TEST(every_verb_prints_json) {
  for (unsigned down = 0; down < 3; down++) {
    for (size_t i = 0; i < VERBS; i++) {
      char arguments[128];
      (void)snprintf(arguments, sizeof arguments, "--json --node-timeout 500ms %s", verbs[i]);
      tool_run run = cli_begin_after(silence_errors, arguments);
      (void)tool_wait(&run);
      if (!json_lines_are_valid(run.text)) {
        fail_msg("%s: no JSON: %s", arguments, run.text);
      }
      assert_int_equal(strcspn(run.text, "\n") + 1, strlen(run.text));
    }
    farm_kill(&three, down);
  }
}

TEST(json_escapes_every_byte) {
  static const char resource[] =
      "a\"\\\x01\x7f\x1b\xff\xc0\xaf\xed\xa0\x80\xc3\xa4\xf4\x90\x80\x80";
  static const char *const formats[] = {"acquire --json -w 0 %s", "inspect --json %s",
                                        "force-release --json %s none"};
  for (size_t i = 0; i < 3; i++) {
    char arguments[128];
    (void)snprintf(arguments, sizeof arguments, formats[i], resource);
    tool_run run = cli_begin_after(silence_errors, arguments);
    (void)tool_wait(&run);
    if (!json_lines_are_valid(run.text)) {
      fail_msg("%s: no JSON: %s", arguments, run.text);
    }
    assert_contains(run.text, "\"a\\\"\\\\\\u0001\\u007f\\u001b\xef\xbf\xbd");
  }
}

TEST(terminal_never_gets_bytes_of_a_name) {
  static const char *const formats[] = {"inspect j\033[31m\xff", "acquire -w 0 j\033[31m\xff",
                                        "hold -w 0 j\033[31m\xff"};
  farm_command_all(&three, "SET", "j\033[31m\xff", "another\033[32m", NULL);
  for (size_t i = 0; i < 3; i++) {
    tool_run run = cli_begin(formats[i]);
    (void)tool_wait(&run);
    assert_null(strchr(run.text, '\033'));
    assert_null(strchr(run.text, '\xff'));
  }
}

static void fill_the_output(void) {
  (void)dup2(open("/dev/full", O_WRONLY), STDOUT_FILENO);
}

TEST(full_output_is_an_error_of_every_verb) {
  for (size_t i = 0; i < VERBS; i++) {
    cli_check_after(fill_the_output, verbs[i], 71);
    assert_contains(cli_last.text, "cannot write to the standard output: No space left");
  }
  cli_check_after(fill_the_output, "watch job", 71);
  cli_check_after(fill_the_output, "hold job", 71);
  assert_int_equal(farm_count(&three, "job", NULL), 0);
}

TEST(quiet_verbs_print_only_results) {
  static const struct {
    const char *arguments;
    int status;
    const char *output;
  } cases[] = {
      {"-q nodes", 0, ""},
      {"-q inspect job", 0, "held\n"},
      {"-q acquire -w 0 job", 1, ""},
      {"-q hold -w 0 job", 1, ""},
      {"-q run -w 0 job true", 1, ""},
      {"-q force-release job none", 1, ""},
      {"-q force-release job another", 0, ""},
      {"-q --guard -t 10s bootstrap", 0, ""},
  };
  farm_command_all(&three, "SET", "job", "another", NULL);
  for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
    cli_check(cases[i].arguments, cases[i].status);
    if (cases[i].status == 0) {
      assert_string_equal(cli_last.text, cases[i].output);
    }
  }
}

TEST(quiet_table_without_rows_has_no_titles) {
  check_on_terminal("-q nodes", "xterm", NULL, 0);
  assert_string_equal(cli_last.text, "");
}

TEST(quiet_wait_hides_the_holder) {
  farm_command_all(&three, "SET", "job", "another", NULL);
  cli_check("-q -v acquire -w 1s job", 1);
  assert_string_equal(cli_last.text, "");
}

TEST(verbose_wait_shows_the_holder) {
  static const char *const cases[] = {"run -v -w 60s job true", "acquire -v -w 60s job",
                                      "hold -v -w 60s --ctdb job"};
  for (size_t i = 0; i < 3; i++) {
    farm_command_all(&three, "SET", "job", "another", NULL);
    tool_run run = cli_begin(cases[i]);
    tool_until_output(&run, "redlock: 'job' is held by another on 3 nodes, for ever unless");
    farm_command_all(&three, "SET", "job", "second", NULL);
    tool_until_output(&run, "redlock: 'job' is held by second on 3 nodes");
    farm_command_all(&three, "DEL", "job", NULL);
    tool_until_output(&run, "redlock: 'job' was granted after ");
    (void)kill(run.pid, SIGTERM);
    (void)tool_wait(&run);
    (void)three_reset(state);
  }
}

int main(void) {
  return tests_run(&(tests_fixture){.start = cli_start, .before = three_reset, .end = three_end});
}
