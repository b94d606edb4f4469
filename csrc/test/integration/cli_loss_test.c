/*
 * redlock(1) loses its lock, is killed, or holds its lock for a time.
 *
 * SPDX-License-Identifier: MIT
 *
 * Environment: CLI_ROUNDS, how often the repeated tests repeat [3 or 5].
 */
#include "heartbeat.h"
#include "relay.h"
#include "shell.h"

/* Two of the three nodes are behind relays. So the test can cut them off from the tool alone. */
static relay relays[2];
static int dead_port;

static int start(void **state) {
  (void)shell_start(state);
  dead_port = farm_free_port();
  return 0;
}

static int reset(void **state) {
  (void)shell_reset(state);
  for (unsigned i = 0; i < 2; i++) {
    char name[8];
    relay_start(&relays[i], three.nodes[i].port, 0);
    (void)snprintf(name, sizeof name, "RELAY%u", i + 1);
    assert_int_equal(setenv(name, relays[i].address, 1), 0);
  }
  return 0;
}

static int end_relays(void **state) {
  for (unsigned i = 0; i < 2; i++) {
    relay_end(&relays[i]);
  }
  return 0;
}

/* The tool no longer reaches a majority. Both keys stay on their nodes until they expire. */
static void cut_off(relay_switch how) {
  for (unsigned i = 0; i < 2; i++) {
    relay_turn_to(&relays[i], dead_port, how);
  }
}

static unsigned rounds(unsigned usual) {
  const char *text = getenv("CLI_ROUNDS"); /* NOLINT(concurrency-mt-unsafe) */
  return text != NULL ? (unsigned)strtoul(text, NULL, 10) : usual;
}

static heartbeat open_beat(const char *name) {
  char path[SCRATCH_PATH_MAX + 32];
  (void)snprintf(path, sizeof path, "%s/%s", shell_directory(), name);
  return heartbeat_open(path);
}

/* The lease is short, so that a test lasts seconds. A loaded machine may need several attempts. */
#define RUN "exec $TOOL -n $RELAY1 -n $RELAY2 -n $NODE3 -t 1500ms --node-timeout 150ms -w 30s "

/* Returns when no client could see the key on either node: another holder is possible then. */
static redlock_time until_expired(void) {
  for (unsigned i = 0; i < 2; i++) {
    eventually(strcmp(farm_command(&three, i, "EXISTS", "job", (char *)NULL), "0") == 0);
  }
  return redlock_now();
}

/* ----------------------------------------------------------------------------- --strict */

/* How long the scheduler may delay a round: less than the eighth of the ttl that the tool keeps. */
#define DELAY_MAX_US MS(50)
#define TRIES 20
static bool delayed; /* the last round */

/* One round. Returns true if the command ran to the time at which the lock had ended. */
static bool outlives(const char *script, relay_switch how, tool_run *run) {
  heartbeat beat = open_beat("beat");
  *run = shell_begin(script);
  eventually(*beat.last != 0);
  redlock_time begun_us = stopwatch();
  cut_off(how);
  redlock_time ended_us = until_expired();
  bool outlived = false;
  /* Without the fault it is dead by now; with it, it beats for seconds. */
  for (unsigned i = 0; i < 100 && !outlived; i++) {
    outlived = *beat.last > ended_us;
    (void)poll(NULL, 0, 2);
  }
  delayed = witness_delay_us(begun_us) > DELAY_MAX_US;
  heartbeat_close(&beat);
  return outlived;
}

TEST(strict_kills_the_command_before_the_lock_ends) {
  tool_run run;
  unsigned tries = 0;
  for (unsigned round = 0; round < rounds(3); round++) {
    relay_switch how = round % 2 == 0 ? RELAY_SILENCE : RELAY_CLOSE;
    bool outlived = outlives(RUN "--strict run job -- $SELF beat $DIR/beat ignore", how, &run);
    int status = tool_wait(&run);
    shell_last = run;
    if (outlived && delayed && ++tries < TRIES) {
      print_message("# repeated: the tool was delayed, too\n");
      round--;
    } else if (outlived) {
      fail_msg("round %u: the command outlived its lock: %s", round, run.text);
    }
    tool_check_status(&shell_last, status, 75);
    assert_contains(run.text, "'job'");
    (void)end_relays(state);
    (void)reset(state);
  }
}

/* The control: the test above can tell. */
TEST(warning_lets_the_command_outlive_the_lock) {
  tool_run run;
  assert_true(outlives(RUN "--on-lost=warn run job -- $SELF beat $DIR/beat", RELAY_CLOSE, &run));
  tool_until_output(&run, "job");
  (void)kill(run.pid, SIGTERM);
  shell_finish(&run, 128 + SIGTERM);
}

/* --------------------------------------------------------------------------- TERM, then KILL */

/* Also to one in a session of its own. */
TEST(loss_sends_term_to_descendants) {
  tool_run run = shell_begin(
      RUN "run job -- sh -c 'trap : TERM; setsid sh -c \"trap \\\"echo got TERM; : >$DIR/end; exit"
          "\\\" TERM; echo ready; " SHELL_UNTIL("end") "\" & " SHELL_UNTIL("end") "'");
  tool_until_output(&run, "ready");
  shell_take("job");
  shell_finish(&run, 75);
  assert_contains(shell_last.text, "got TERM");
}

/* The tool notices the loss when it extends the lock, after 500 ms. */
TEST(kill_after_is_five_seconds_by_default) {
  heartbeat beat = open_beat("beat");
  tool_run run = shell_begin(RUN "run job -- $SELF beat $DIR/beat ignore");
  eventually(*beat.last != 0);
  redlock_time begun_us = stopwatch();
  shell_take("job");
  shell_finish(&run, 75);
  assert_took(begun_us, MS(5000), MS(7000));
  heartbeat_close(&beat);
}

/* ------------------------------------------------------------------- the end of the tool itself */

/* --------------------------------------------------------------------------------- --hold-for */

/* Three hosts start the job within its hold time, the last when the first has long ended. */
TEST(job_runs_once_within_its_hold_time) {
  static const char script[] =
      "job() { sleep 0.$1; $R --hold-for 60s -w 0 -E 0 run $2 -- sh -c 'echo ran'; }; "
      "for host in 0 1 2; do job $((host * DELAY)) job-$ROUND & done 2>/dev/null; wait; "
      "job 0 job-$ROUND";
  for (unsigned round = 0; round < rounds(5); round++) {
    char text[16];
    (void)snprintf(text, sizeof text, "%u", round);
    assert_int_equal(setenv("ROUND", text, 1), 0);
    /* At once; or one after the other. */
    assert_int_equal(setenv("DELAY", round % 2 == 0 ? "0" : "3", 1), 0);
    tool_run run = shell_begin(script);
    assert_int_equal(tool_wait(&run), 0);
    unsigned count = 0;
    for (const char *at = run.text; (at = strstr(at, "ran\n")) != NULL; at++) {
      count++;
    }
    if (count != 1) {
      fail_msg("round %u: the job ran %u times: %s", round, count, run.text);
    }
  }
}

int main(int argc, char **argv) {
  heartbeat_main(argc, argv);
  return tests_run(
      &(tests_fixture){.start = start, .before = reset, .after = end_relays, .end = shell_end});
}
