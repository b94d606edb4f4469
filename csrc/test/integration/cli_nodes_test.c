/*
 * redlock nodes.
 *
 * SPDX-License-Identifier: MIT
 */
#include "cli_support.h"

static void assert_row(unsigned node, const char *answer) {
  char row[128];
  (void)snprintf(row, sizeof row, "%s\t%s", three.nodes[node].address, answer);
  assert_contains(cli_last.text, row);
}

TEST(nodes_shows_each_answer) {
  cli_check("nodes", 0);
  for (unsigned i = 0; i < 3; i++) {
    assert_row(i, "granted\t");
    assert_string_equal(farm_command(&three, i, "DBSIZE", (char *)NULL), "0");
  }
  farm_kill(&three, 2);
  cli_check("nodes", 0);
  assert_row(0, "granted\t");
  assert_row(1, "granted\t");
  assert_row(2, "error\t-\tConnection refused\n");
}

/* An acquire would fail with the second refusal, and ask no other node. */
TEST(nodes_waits_for_a_healthy_node_among_dead_ones) {
  farm_kill(&three, 0);
  farm_kill(&three, 1);
  for (unsigned i = 0; i < 6; i++) {
    cli_check("nodes", 69);
    assert_row(0, "error\t-\tConnection refused\n");
    assert_row(1, "error\t-\tConnection refused\n");
    assert_row(2, "granted\t");
    assert_contains(cli_last.text, "1 of 3 nodes grant locks, and a lock needs 2");
  }
}

TEST(nodes_labels_equal_failures_equally) {
  farm_each(&three, 0, 3, farm_stop);
  cli_check("nodes --node-timeout 50ms", 69);
  for (unsigned i = 0; i < 3; i++) {
    assert_row(i, "unknown\t-\tno connection in time\n");
  }
}

TEST(nodes_shows_a_node_that_refuses_writes) {
  (void)farm_command(&three, 1, "CONFIG", "SET", "maxmemory", "1", (char *)NULL);
  cli_check("nodes", 0);
  (void)farm_command(&three, 1, "CONFIG", "SET", "maxmemory", "0", (char *)NULL);
  assert_row(1, "error\t");
  assert_contains(cli_last.text, "OOM");
}

TEST(nodes_obeys_the_quorum) {
  farm_kill(&three, 1);
  cli_check("--quorum 3 nodes", 69);
  assert_contains(cli_last.text, "2 of 3 nodes grant locks, and a lock needs 3");
  char row[64];
  cli_check("-q --quorum 3 nodes", 69);
  (void)snprintf(row, sizeof row, "%s\terror\t-\tConnection refused\n", three.nodes[1].address);
  assert_string_equal(cli_last.text, row);
}

TEST(nodes_shows_a_server_with_two_names) {
  char arguments[64];
  (void)snprintf(arguments, sizeof arguments, "nodes -n localhost:%d", three.nodes[0].port);
  cli_check(arguments, 0);
  (void)snprintf(arguments, sizeof arguments, "localhost:%d\terror\t", three.nodes[0].port);
  assert_contains(cli_last.text, arguments);
}

/* A new node with a guard does not vote before the longest ttl is over. */
TEST(nodes_shows_quarantined_nodes) {
  cli_check("--guard -t 10s nodes", 69);
  for (unsigned i = 0; i < 3; i++) {
    assert_row(i, "quarantined\t");
  }
  cli_check("--guard -t 10s bootstrap", 0);
  assert_row(0, "ready\t");
  cli_check("--guard -t 10s nodes", 0);
}

int main(void) {
  return tests_run(&(tests_fixture){.start = cli_start, .before = three_reset, .end = three_end});
}
