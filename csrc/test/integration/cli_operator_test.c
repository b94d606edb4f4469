/*
 * redlock inspect, force-release, watch and bench.
 *
 * SPDX-License-Identifier: MIT
 */
#include <fcntl.h>

#include "cli_support.h"
#include "json.h"

/* Gives |key| on the first |count| nodes a value, for 60 s. */
static void set_key(const char *key, unsigned count, const char *value) {
  for (unsigned i = 0; i < count; i++) {
    (void)farm_command(&three, i, "SET", key, value, "PX", "60000", (char *)NULL);
  }
}

/* --------------------------------------------------------------------------------- inspect */

TEST(inspect_shows_the_state_of_the_lock) {
  char row[128];
  cli_check("inspect job", 0);
  assert_contains(cli_last.text, "job is free on 3 of 3 nodes\n");
  (void)snprintf(row, sizeof row, "%s\tfree\t-\t-\t-\t-\n", three.nodes[0].address);
  assert_contains(cli_last.text, row);
  set_key("job", 3, "holder");
  cli_check("inspect job", 0);
  assert_contains(cli_last.text, "job is held on 3 of 3 nodes; ends in ");
  assert_contains(cli_last.text, "\tholder\t-\t-\n");
  set_key("job", 1, "second");
  (void)farm_command(&three, 2, "DEL", "job", (char *)NULL);
  cli_check("inspect -q job", 0);
  assert_string_equal(cli_last.text, "undecided\n");
  (void)farm_command(&three, 1, "RPUSH", "list", "x", (char *)NULL);
  (void)farm_command(&three, 1, "SET", "endless", "x", (char *)NULL);
  cli_check("inspect list", 0);
  assert_contains(cli_last.text, "\tother\t");
  cli_check("inspect endless", 0);
  assert_contains(cli_last.text, "\theld\tendless\tx\t-\t-\n");
  farm_kill(&three, 0);
  farm_kill(&three, 1);
  cli_check("inspect job", 69);
  assert_contains(cli_last.text, "job is unavailable: 1 of 3 nodes answered\n");
  assert_contains(cli_last.text, "\tunknown\t-\t-\t-\tConnection refused\n");
}

/* ---------------------------------------------------------------------------- force-release */

TEST(force_release_deletes_only_the_token) {
  set_key("job", 3, "holder");
  cli_check("force-release job other", 1);
  assert_contains(cli_last.text, "no node that answered has such a key");
  assert_contains(cli_last.text, "inspect it again");
  assert_int_equal(farm_count(&three, "job", NULL), 3);
  cli_check("force-release job holder", 0);
  assert_contains(cli_last.text, "\tdeleted\t-\n");
  assert_int_equal(farm_count(&three, "job", NULL), 0);
  cli_check("force-release job", 64);
  cli_check("force-release job a\\b", 64);
  assert_contains(cli_last.text, "invalid token; copy it from redlock inspect");
}

/* Tokens of other programs may have any bytes. */
TEST(force_release_accepts_the_token_of_inspect) {
  static const char token[] = "a\\\x1b[31m\xff\xc3\xa4\"\xc2\x9b\xe2\x80\xae";
  char arguments[256];
  set_key("job", 3, token);
  cli_check("inspect job", 0);
  assert_null(strchr(cli_last.text, '\x1b'));
  assert_null(strchr(cli_last.text, '\xff'));
  assert_null(strstr(cli_last.text, "\xe2\x80\xae"));
  const char *shown = "a\\\\\\x1b[31m\\xff\xc3\xa4\"\\xc2\\x9b\\xe2\\x80\\xae";
  assert_contains(cli_last.text, shown);
  (void)snprintf(arguments, sizeof arguments, "force-release job %s", shown);
  cli_check(arguments, 0);
  assert_int_equal(farm_count(&three, "job", NULL), 0);
}

#define DIGITS "0123456789abcdef0123456789abcdef01234567"

TEST(label_of_the_holder_is_shown) {
  set_key("job", 3, DIGITS ":host a, pid 7");
  cli_check("inspect job", 0);
  assert_contains(cli_last.text, "\t" DIGITS "\thost a, pid 7\t-\n");
  cli_check("inspect --json job", 0);
  assert_true(json_lines_are_valid(cli_last.text));
  assert_contains(cli_last.text, "\"token\": \"" DIGITS ":host a, pid 7\"");
  assert_contains(cli_last.text, "\"label\": \"host a, pid 7\"");
  tool_run run = cli_begin("watch job");
  tool_until_output(&run, "held         " DIGITS " (host a, pid 7)\n");
  (void)kill(run.pid, SIGTERM);
  cli_finish(&run, 128 + SIGTERM);
  cli_check("force-release job " DIGITS, 0);
  assert_contains(cli_last.text, "the holder was: host a, pid 7\n");
  assert_int_equal(farm_count(&three, "job", NULL), 0);
  set_key("job", 3, DIGITS ":host\\b");
  cli_check("force-release --json job " DIGITS ":host\\\\b", 0);
  assert_true(json_lines_are_valid(cli_last.text));
  assert_contains(cli_last.text, "\"label\": \"host\\\\b\"");
}

/* ------------------------------------------------------------------------------------ watch */

/* Returns the line that begins at |at|, which is "TIME  |rest|". */
static const char *check_line(const char *at, const char *rest) {
  char line[128];
  const char *end = strchr(at, '\n');
  assert_non_null(end);
  (void)snprintf(line, sizeof line, "%.*s", (int)(end - at), at);
  assert_true(strlen(line) > 26 && line[10] == 'T' && line[19] == '.' && line[23] == 'Z');
  assert_string_equal(line + 26, rest);
  return end + 1;
}

/* Skips lines between two states of which the nodes pass one at a time. */
static const char *skip_undecided(const char *at) {
  while (strncmp(at + 26, "undecided", 9) == 0) {
    at = check_line(at, "undecided");
  }
  return at;
}

TEST(watch_prints_a_line_for_each_change) {
  tool_run run = cli_begin("watch --interval 10ms job");
  tool_until_output(&run, "free\n");
  set_key("job", 3, "holder1");
  tool_until_output(&run, "holder1\n");
  set_key("job", 3, "holder2");
  tool_until_output(&run, "holder2\n");
  (void)farm_command(&three, 0, "DEL", "job", (char *)NULL);
  (void)farm_command(&three, 1, "DEL", "job", (char *)NULL);
  eventually(!tool_read(&run, 2) || strstr(strstr(run.text, "holder2\n"), "free\n") != NULL);
  (void)kill(run.pid, SIGTERM);
  cli_finish(&run, 128 + SIGTERM);
  const char *at = check_line(cli_last.text, "free");
  at = check_line(skip_undecided(at), "held         holder1");
  at = check_line(skip_undecided(at), "held         holder2");
  at = check_line(skip_undecided(at), "free");
  assert_string_equal(at, "");
}

TEST(watch_shows_a_lock_without_a_majority) {
  set_key("job", 3, "first");
  set_key("job", 2, "second");
  set_key("job", 1, "third");
  tool_run run = cli_begin("watch --interval 10ms job");
  tool_until_output(&run, "undecided\n");
  (void)kill(run.pid, SIGTERM);
  cli_finish(&run, 128 + SIGTERM);
  assert_string_equal(check_line(cli_last.text, "undecided"), "");
}

TEST(watch_reports_nodes_that_are_down) {
  tool_run run = cli_begin("watch --interval 10ms --json job");
  tool_until_output(&run, "\"free\"");
  farm_kill(&three, 0);
  farm_kill(&three, 1);
  tool_until_output(&run, "\"unavailable\"");
  (void)kill(run.pid, SIGINT);
  cli_finish(&run, 128 + SIGINT);
  assert_true(json_lines_are_valid(cli_last.text));
  assert_contains(cli_last.text, "Connection refused");
}

TEST(watch_ends_with_its_reader) {
  tool_run run = cli_begin("watch job");
  tool_until_output(&run, "free\n");
  (void)close(run.output);
  run.output = open("/dev/null", O_RDONLY | O_CLOEXEC);
  cli_finish(&run, 71);
}

TEST(quiet_watch_prints_only_changes) {
  tool_run run = cli_begin("watch -q --interval 10ms job");
  eventually(farm_calls(&three, 0, "type") >= 2);
  set_key("job", 3, "first");
  tool_until_output(&run, "first\n");
  (void)kill(run.pid, SIGTERM);
  cli_finish(&run, 128 + SIGTERM);
  assert_null(strstr(cli_last.text, "free"));
}

/* ------------------------------------------------------------------------------------ bench */

/* Returns the number that follows |name|, and moves |*at| behind it. */
static double number_after(const char **at, const char *name) {
  char *end;
  const char *found = strstr(*at, name);
  assert_non_null(found);
  double number = strtod(found + strlen(name), &end);
  *at = end;
  return number;
}

/* The rows have all acquires, and the last one has the longest. */
static void check_histogram(void) {
  static const char *const names[] = {
      "\"p50_ms\": ", "\"p90_ms\": ", "\"p99_ms\": ", "\"p99_9_ms\": ", "\"most_ms\": "};
  const char *at = strstr(cli_last.text, "\"acquire\"");
  double count = number_after(&at, "\"count\": ");
  double last = number_after(&at, "\"least_ms\": ");
  for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
    double next = number_after(&at, names[i]);
    assert_true(next >= last);
    last = next;
  }
  double bound = 0;
  at = strstr(cli_last.text, "\"histogram\"");
  while (strstr(at, "\"le_ms\"") != NULL) {
    bound = number_after(&at, "\"le_ms\": ");
    count -= number_after(&at, "\"count\": ");
  }
  assert_true(count == 0 && bound >= last);
}

TEST(bench_measures_for_the_duration) {
  set_key("job", 3, "holder");
  cli_check("bench --duration 200ms", 0);
  assert_contains(cli_last.text, " locks per second on 3 nodes, for ");
  assert_contains(cli_last.text, "; 0 failures\n");
  assert_contains(cli_last.text, "\nacquire\t");
  assert_contains(cli_last.text, "\nrelease\t");
  assert_contains(cli_last.text, "acquires by time:\n  <= ");
  assert_int_equal(farm_count(&three, "job", "holder"), 3);
  assert_string_equal(farm_command(&three, 0, "DBSIZE", (char *)NULL), "1");
  cli_check("bench --duration 50ms --json", 0);
  assert_true(json_lines_are_valid(cli_last.text));
  check_histogram();
  cli_check("bench -q --duration 50ms", 0);
  assert_null(strchr(strchr(cli_last.text, '\n') + 1, '\n'));
}

TEST(bench_reports_failures) {
  farm_kill(&three, 0);
  farm_kill(&three, 1);
  cli_check("bench --duration 100ms", 69);
  assert_contains(cli_last.text, "0.0 locks per second on 3 nodes");
  assert_contains(cli_last.text, "the last failure: ");
  assert_contains(cli_last.text, three.nodes[0].address);
}

TEST(signal_ends_a_bench_with_its_figures) {
  tool_run run = cli_begin("bench --duration 600s");
  eventually(farm_calls(&three, 0, "set") >= 10);
  (void)kill(run.pid, SIGINT);
  cli_finish(&run, 128 + SIGINT);
  assert_contains(cli_last.text, "acquires by time:\n");
}

int main(void) {
  return tests_run(&(tests_fixture){.start = cli_start, .before = three_reset, .end = three_end});
}
