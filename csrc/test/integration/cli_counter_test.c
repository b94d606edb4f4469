/*
 * Twenty shells increment a number in a file under redlock(1), while nodes are killed: no update is
 * lost.
 *
 * SPDX-License-Identifier: MIT
 *
 * Environment: COUNTER_ROUNDS, how often each shell does [2].
 */
#include "shell.h"

#define SHELLS "20"

/* Without a lock, shells read the same number, and write the same sum. */
#define INCREMENT                                                                                  \
  "printf 'n=$(cat $DIR/counter)\\necho $((n + 1)) >$DIR/counter.$$\\n"                            \
  "mv $DIR/counter.$$ $DIR/counter\\n' >$DIR/increment; echo 0 >$DIR/counter; "
#define SHELLS_INCREMENT(command)                                                                  \
  INCREMENT                                                                                        \
  "for shell in $(seq " SHELLS "); do { for round in $(seq $COUNTER_ROUNDS); do " command          \
  " sh $DIR/increment && echo ok >>$DIR/ok.$shell || echo $? >>$DIR/failed.$shell; done; } & "     \
  "done 2>$DIR/messages; wait; touch $DIR/ok.0 $DIR/failed.0; "                                    \
  "cat $DIR/ok.* | wc -l; cat $DIR/failed.* | wc -l; cat $DIR/counter"

typedef struct counts {
  unsigned long ok, failed, counter;
} counts;

static counts read_counts(const tool_run *run) {
  counts self;
  char *rest = NULL;
  self.ok = strtoul(run->text, &rest, 10);
  self.failed = strtoul(rest, &rest, 10);
  self.counter = strtoul(rest, NULL, 10);
  return self;
}

/* Kills a node, or the majority, and starts it again with its keys. */
static void disturb(unsigned turn) {
  unsigned count = turn % 5 == 4 ? 2 : 1;
  for (unsigned i = 0; i < count; i++) {
    farm_kill(&three, (turn + i) % 3);
  }
  (void)poll(NULL, 0, 50);
  for (unsigned i = 0; i < count; i++) {
    farm_restart(&three, (turn + i) % 3);
  }
}

TEST(killed_nodes_lose_no_update) {
  tool_run run =
      shell_begin(SHELLS_INCREMENT("$TOOL -t 5s --node-timeout 1s -w 600s run counter --"));
  unsigned turns = 0;
  while (tool_read(&run, 400)) {
    disturb(turns);
    turns++;
  }
  shell_finish(&run, 0);
  counts found = read_counts(&shell_last);
  print_message("# %lu increments, %lu failures, the counter is %lu, nodes were killed %u times\n",
                found.ok, found.failed, found.counter, turns);
  assert_true(turns > 0);
  assert_true(found.ok > 0);
  /* A command that was killed after its increment has failed, too. */
  assert_between(found.counter, found.ok, found.ok + found.failed);
}

/* The control: the shells do disturb each other. */
TEST(shells_without_a_lock_lose_updates) {
  assert_int_equal(setenv("COUNTER_ROUNDS", "2", 1), 0);
  for (unsigned tries = 0; tries < 20; tries++) {
    shell_check(SHELLS_INCREMENT("env"), 0);
    counts found = read_counts(&shell_last);
    if (found.counter < found.ok) {
      return;
    }
    (void)shell_reset(state);
  }
  fail_msg("no update was lost without a lock");
}

int main(void) {
  (void)setenv("COUNTER_ROUNDS", "2", 0);
  return tests_run(
      &(tests_fixture){.start = shell_start_durable, .before = shell_reset, .end = shell_end});
}
