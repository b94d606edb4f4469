/*
 * redlock acquire, extend and release: a lock as text between runs of the tool.
 *
 * SPDX-License-Identifier: MIT
 */
#include <fcntl.h>

#include "cli_support.h"
#include "json.h"
#include "relay.h"

static char text[REDLOCK_HANDOVER_MAX];
static char arguments[REDLOCK_HANDOVER_MAX + 64];

static void silence_errors(void) {
  (void)dup2(open("/dev/null", O_WRONLY), STDERR_FILENO);
}

/* Runs the tool, whose standard output must be one line of text. Copies it into |text|. */
static void check_text(const char *words) {
  cli_check_after(silence_errors, words, 0);
  size_t length = strcspn(cli_last.text, "\n");
  assert_int_equal(strlen(cli_last.text), length + 1);
  assert_true(length > 0 && strcspn(cli_last.text, " \t'\"$") > length);
  (void)snprintf(text, sizeof text, "%.*s", (int)length, cli_last.text);
}

/* Returns |verb| and the text as arguments. */
static const char *with_text(const char *verb) {
  (void)snprintf(arguments, sizeof arguments, "%s %s", verb, text);
  return arguments;
}

static int input = -1;

static void use_input(void) {
  (void)dup2(input, STDIN_FILENO);
}

/* Gives the next tool |bytes| as standard input. */
static void set_input(const char *bytes) {
  int ends[2];
  assert_int_equal(pipe2(ends, O_CLOEXEC), 0);
  assert_int_equal(write(ends[1], bytes, strlen(bytes)), strlen(bytes));
  (void)close(ends[1]);
  input = ends[0];
}

TEST(lock_is_handed_from_acquire_to_extend_to_release) {
  char old[64];
  check_text("acquire job");
  assert_true(farm_count(&three, "job", NULL) >= 2); /* The slowest node may be too late. */
  unsigned one = strlen(farm_command(&three, 0, "GET", "job", (char *)NULL)) >= 40 ? 0 : 1;
  (void)snprintf(old, sizeof old, "%s", farm_command(&three, one, "GET", "job", (char *)NULL));
  check_text(with_text("extend"));
  assert_true(farm_count(&three, "job", NULL) >= 2);
  assert_true(farm_count(&three, "job", old) <= 1);
  cli_check(with_text("release"), 0);
  assert_string_equal(cli_last.text, "");
  assert_int_equal(farm_count(&three, "job", NULL), 0);
}

TEST(extend_sets_the_full_ttl) {
  check_text("acquire -t 60s job");
  farm_command_all(&three, "PEXPIRE", "job", "20000", NULL);
  check_text(with_text("extend"));
  unsigned extended = 0; /* The slowest node may be too late. */
  for (unsigned i = 0; i < 3; i++) {
    extended += atoi(farm_command(&three, i, "PTTL", "job", (char *)NULL)) > 20000;
  }
  assert_true(extended >= 2);
}

TEST(text_is_read_from_the_standard_input) {
  check_text("acquire job");
  char line[REDLOCK_HANDOVER_MAX + 2];
  (void)snprintf(line, sizeof line, "%s\r\n", text);
  set_input(line);
  cli_check_after(use_input, "release -", 0);
  assert_int_equal(farm_count(&three, "job", NULL), 0);
  (void)close(input);
  set_input("");
  cli_check_after(use_input, "release -", 64);
  assert_contains(cli_last.text, "no text of a lock");
  (void)close(input);
}

TEST(used_text_reports_a_lost_lock) {
  check_text("acquire job");
  char words[sizeof arguments];
  (void)snprintf(words, sizeof words, "%s", with_text("release"));
  check_text(with_text("extend"));
  cli_check(words, 75);
  assert_contains(cli_last.text, "'job' is lost");
  assert_true(farm_count(&three, "job", NULL) >= 2);
  cli_check(with_text("release"), 0);
  cli_check(with_text("release"), 75);
  cli_check(with_text("extend"), 75);
}

static relay far;

/* Replaces the tool by a shell: the tool is $0, and a node that answers within 1.4 s is $1. */
static void run_far_away(void) {
  (void)execl("/bin/sh", "sh", "-c",
              "set -- -n $1 --node-timeout 2600ms -t 60s; "
              "text=$(\"$0\" acquire \"$@\" job) && \"$0\" release \"$@\" $text",
              tool_path(), far.address, (char *)NULL);
}

/* The one attempt of an attach lasts too short for a connection and a command. */
TEST(handover_connects_to_distant_nodes) {
  relay_start(&far, three.nodes[0].port, MS(700));
  int status = 69;
  bool delayed = true;
  for (unsigned tries = 0; tries < 10 && status == 69 && delayed; tries++) {
    redlock_time begun_us = stopwatch();
    tool_run run = cli_begin_after(run_far_away, "");
    status = tool_wait(&run);
    cli_last = run;
    delayed = witness_delay_us(begun_us) > MS(300); /* The node may have answered too late. */
    if (status == 69) {
      (void)three_reset(state);
    }
  }
  tool_check_status(&cli_last, status, 0);
  assert_int_equal(farm_count(&three, "job", NULL), 0);
  relay_end(&far);
}

TEST(wrong_text_is_wrong_usage) {
  static const char *const cases[] = {"release job", "extend redlock1.AAAA", "release"};
  for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
    cli_check(cases[i], 64);
  }
  check_text("acquire -p one: job");
  cli_check(with_text("-p two: release"), 64);
  assert_contains(cli_last.text, "prefix");
}

TEST(taken_lock_prints_no_text) {
  farm_command_all(&three, "SET", "job", "another", NULL);
  cli_check_after(silence_errors, "acquire -w 0 job", 1);
  assert_string_equal(cli_last.text, "");
  cli_check("acquire -q -E 9 -w 0 job", 9);
  assert_string_equal(cli_last.text, "");
  cli_check_after(silence_errors, "acquire --json -w 0 job", 1);
  assert_true(json_lines_are_valid(cli_last.text));
  assert_contains(cli_last.text, "\"error\": \"taken\"");
}

TEST(fencing_token_is_handed_over) {
  cli_check_after(silence_errors, "acquire --fence --json job", 0);
  assert_contains(cli_last.text, "\"fence\": ");
}

/*
 * Replaces the tool by a shell, which has the tool as $0 and an address as $1. The message of the
 * server contains this password.
 */
static void run_with_wrong_password(void) {
  silence_errors();
  (void)execl("/bin/sh", "sh", "-c", "exec \"$0\" acquire --json -w inf -n \"redis://u:p@$1\" job",
              tool_path(), three.nodes[0].address, (char *)NULL);
}

TEST(rejected_password_is_a_failure_in_json) {
  cli_check_after(run_with_wrong_password, "", 69);
  assert_true(json_lines_are_valid(cli_last.text));
  assert_contains(cli_last.text, "\"error\": \"unavailable\"");
}

static void fill_the_output(void) {
  (void)dup2(open("/dev/full", O_WRONLY), STDOUT_FILENO);
}

/* The work of the holder may go on. */
TEST(unprintable_text_of_an_extend_keeps_the_lock) {
  check_text("acquire job");
  cli_check_after(fill_the_output, with_text("extend"), 71);
  assert_true(farm_count(&three, "job", NULL) >= 2);
}

TEST(handover_prints_json) {
  cli_check_after(silence_errors, "acquire --json job", 0);
  assert_true(json_lines_are_valid(cli_last.text));
  const char *value = strstr(cli_last.text, "\"text\": \"");
  assert_non_null(value);
  value += strlen("\"text\": \"");
  (void)snprintf(text, sizeof text, "%.*s", (int)strcspn(value, "\""), value);
  cli_check(with_text("release --json"), 0);
  assert_true(json_lines_are_valid(cli_last.text));
  assert_contains(cli_last.text, "\"released\": true");
}

int main(void) {
  return tests_run(&(tests_fixture){.start = cli_start, .before = three_reset, .end = three_end});
}
