/*
 * The command of redlock run: its environment, the loss of its lock, and --hold-for.
 *
 * SPDX-License-Identifier: MIT
 */
#include "cli_support.h"

#include <fcntl.h>
#include <sys/ptrace.h>

#define PROCESSES_MAX 8

/* Processes of the command that the test observes; the scripts print "pid N". */
static struct {
  pid_t pids[PROCESSES_MAX];
  unsigned count;
} seen;

static int start(void **state) {
  (void)cli_start(state);
  cli_define("TREE", "echo pid $$; sh -c 'echo pid $$; exec sleep 600' &\n"
                     "sh -c 'setsid sh -c \"echo pid \\$\\$; exec sleep 600\" &'; wait");
  cli_define("STUBBORN", "trap '' TERM; echo pid $$; sh -c 'echo pid $$; exec sleep 600' &\n"
                         "setsid sh -c 'echo pid $$; exec sleep 600' &\n"
                         "while :; do sleep 600; done");
  cli_define("HANDLER", "trap 'echo got term; exit 0' TERM; echo pid $$; sleep 600 & wait");
  cli_define("MORTAL", "echo pid $$; exec sleep 600");
  cli_define("DEAF", "trap '' TERM; echo pid $$; exec sleep 600");
  cli_define("BACKGROUND", "sh -c 'echo pid $$; exec sleep 600' >&2 & exit 0");
  cli_define("VARIABLES", "env | grep REDLOCK_ | grep -v REDLOCK_RUN= | sort");
  return 0;
}

/* Reads output until |count| processes have printed their number. */
static void see(tool_run *run, unsigned count) {
  bool runs = true;
  seen.count = 0;
  while (runs && seen.count < count) {
    const char *at = run->text;
    runs = tool_read(run, 10);
    for (seen.count = 0; (at = strstr(at, "pid ")) != NULL && strchr(at, '\n') != NULL; at++) {
      assert_true(seen.count < PROCESSES_MAX);
      seen.pids[seen.count++] = (pid_t)atol(at + strlen("pid "));
    }
  }
  if (seen.count < count) {
    fail_msg("only %u of %u processes have begun: %s", seen.count, count, run->text);
  }
}

/* Returns how many of the processes live. A zombie is dead. */
static unsigned living(void) {
  unsigned count = 0;
  for (unsigned i = 0; i < seen.count; i++) {
    count += strchr("ZX", process_state(seen.pids[i])) == NULL;
  }
  return count;
}

static void take_job(void) {
  farm_command_all(&three, "SET", "job", "another", NULL);
}

static void until_held(void) {
  eventually(farm_count(&three, "job", NULL) == 3);
}

/* Returns how many scripts the node has run: an extend is one. */
static unsigned scripts(unsigned node) {
  return farm_calls(&three, node, "evalsha") + farm_calls(&three, node, "eval");
}

static long long key_ms(unsigned node) {
  return atoll(farm_command(&three, node, "PTTL", "job", (char *)NULL));
}

/* --------------------------------------------------------------------------------- environment */

static void set_outer_variables(void) {
  (void)setenv("REDLOCK_NODES", "redis://u:hidden@h", 1);
  (void)setenv("REDLOCK_RESOURCE", "outer", 1);
  (void)setenv("REDLOCK_FENCE", "7", 1);
}

TEST(command_of_a_semaphore_gets_its_slot) {
  cli_check_after(set_outer_variables, "run --permits 1 pool -- VARIABLES", 0);
  assert_contains(cli_last.text, "REDLOCK_SLOT=1\n");
  eventually(farm_count(&three, "pool/1", NULL) == 0); /* The release may be under way. */
  cli_check("inspect --permits 3 pool", 0);
  assert_contains(cli_last.text, "pool is held in 0 of 3 slots; 3 free");
  farm_command_all(&three, "SET", "pool/1", "another", NULL);
  cli_check("run --wait 0 --permits 1 pool -- VARIABLES", 1);
  cli_check("run --wait 0 --permits 2 pool -- VARIABLES", 0);
  assert_contains(cli_last.text, "REDLOCK_SLOT=2\n");
  cli_check("inspect --permits 2 --quiet pool", 0);
  assert_string_equal(cli_last.text, "1\n");
  cli_check("run --permits 1025 pool -- VARIABLES", 64);
}

TEST(command_gets_resource_and_fencing_token) {
  cli_check_after(set_outer_variables, "-p pre: run job -- VARIABLES", 0);
  assert_string_equal(cli_last.text, "REDLOCK_RESOURCE=job\n");
  cli_check_after(set_outer_variables, "run --fence job -- VARIABLES", 0);
  const char *fence = strstr(cli_last.text, "REDLOCK_FENCE=");
  assert_non_null(fence);
  long long first = atoll(fence + strlen("REDLOCK_FENCE="));
  assert_true(first > 7);
  cli_check("run job --fence VARIABLES", 0);
  fence = strstr(cli_last.text, "REDLOCK_FENCE=");
  assert_non_null(fence);
  assert_true(atoll(fence + strlen("REDLOCK_FENCE=")) > first);
}

TEST(label_names_host_process_and_command) {
  char expected[128];
  char host[64] = "";
  (void)gethostname(host, sizeof host - 1);
  tool_run run = cli_begin("run job -- MORTAL");
  see(&run, 1);
  until_held();
  (void)snprintf(expected, sizeof expected, ":%.28s pid %d MORTAL", host, (int)run.pid);
  assert_string_equal(farm_command(&three, 0, "GET", "job", (char *)NULL) + 40, expected);
  (void)kill(run.pid, SIGTERM);
  cli_finish(&run, 128 + SIGTERM);
  static const struct {
    const char *arguments, *label;
  } cases[] = {{"run --label nightly job -- MORTAL", ":nightly"},
               {"run --no-label job -- MORTAL", ""},
               {"run --no-label --label nightly job -- MORTAL", ":nightly"}};
  for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
    run = cli_begin(cases[i].arguments);
    see(&run, 1);
    until_held();
    assert_string_equal(farm_command(&three, 0, "GET", "job", (char *)NULL) + 40, cases[i].label);
    (void)kill(run.pid, SIGTERM);
    cli_finish(&run, 128 + SIGTERM);
  }
}

/* ---------------------------------------------------------------------------------- lost locks */

TEST(descendants_end_with_the_lock) {
  static const struct {
    const char *arguments;
    unsigned processes;
    const char *output;
  } cases[] = {
      {"-t 4s -w 60s run job -- TREE", 3, "the command is stopped"},
      {"-t 4s -w 60s run --on-lost=term job -- HANDLER", 1, "got term"},
      {"-t 4s -w 60s run --kill-after 100ms job -- STUBBORN", 3, "the command is stopped"},
      {"-t 4s -w 60s run --kill-after 0 job -- STUBBORN", 3, "the command is stopped"},
      {"-t 4s -w 60s run --strict job -- STUBBORN", 3, "the command is stopped"},
      {"-t 4s -w 60s run --strict job -- TREE", 3, "the command is stopped"},
  };
  for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
    tool_run run = cli_begin(cases[i].arguments);
    see(&run, cases[i].processes);
    until_held();
    take_job();
    cli_finish(&run, 75);
    assert_int_equal(living(), 0);
    assert_contains(cli_last.text, "'job' has ended, and the command is stopped: ");
    assert_contains(cli_last.text, cases[i].output);
    (void)three_reset(state);
  }
}

TEST(stopped_process_ends_with_the_lock) {
  tool_run run = cli_begin("-t 4s -w 60s run --kill-after 60s job -- MORTAL");
  see(&run, 1);
  until_held();
  (void)kill(seen.pids[0], SIGSTOP);
  take_job();
  cli_finish(&run, 75);
}

TEST(descendant_of_a_command_that_ended_is_killed) {
  cli_define("FORKER", "trap 'exit 0' TERM; sh -c 'trap \"\" TERM; echo pid $$; "
                       "while :; do sleep 600; done' & echo pid $$; while :; do sleep 600; done");
  tool_run run = cli_begin("-t 4s -w 60s run --kill-after 300ms job -- FORKER");
  see(&run, 2);
  until_held();
  take_job();
  cli_finish(&run, 75);
  assert_int_equal(living(), 0);
}

TEST(child_of_the_shell_before_exec_survives) {
  cli_define("SHELL", "sh -c 'echo pid $$; exec sleep 600' & sleep 0.1; exec \"$@\"");
  tool_run run = cli_begin("-t 60s run outer -- true");
  cli_finish(&run, 0);
  char path[600];
  (void)snprintf(path, sizeof path, "%s", tool_path());
  const char *argv[] = {cli_path("SHELL"),
                        path,
                        "-n",
                        three.nodes[0].address,
                        "-n",
                        three.nodes[1].address,
                        "-n",
                        three.nodes[2].address,
                        "--node-timeout",
                        "5s",
                        "-t",
                        "4s",
                        "-w",
                        "60s",
                        "run",
                        "job",
                        "sleep",
                        "600",
                        NULL};
  run = tool_start(NULL, argv);
  see(&run, 1);
  until_held();
  take_job();
  tool_until_output(&run, "the command is stopped");
  int status = 0;
  assert_int_equal(waitpid(run.pid, &status, 0), run.pid);
  assert_int_equal(WEXITSTATUS(status), 75);
  assert_int_equal(living(), 1);
  (void)kill(seen.pids[0], SIGKILL);
  (void)close(run.output);
}

TEST(background_process_survives_a_release) {
  tool_run run = cli_begin("run job -- BACKGROUND");
  see(&run, 1);
  int status = 0;
  assert_int_equal(waitpid(run.pid, &status, 0), run.pid);
  assert_int_equal(status, 0);
  assert_int_equal(living(), 1);
  assert_int_equal(farm_count(&three, "job", NULL), 0);
  (void)kill(seen.pids[0], SIGKILL);
  (void)close(run.output);
}

static void fill_the_errors(void) {
  int ends[2];
  if (pipe(ends) == 0) {
    (void)fcntl(ends[1], F_SETFL, O_NONBLOCK);
    while (write(ends[1], "x", 1) == 1) {
    }
    (void)fcntl(ends[1], F_SETFL, 0);
    (void)dup2(ends[1], STDERR_FILENO);
  }
}

/* The tool writes to a pipe that its reader does not read. */
TEST(full_standard_error_delays_no_kill) {
  tool_run run =
      cli_begin_after(fill_the_errors, "-t 4s -w 60s run --kill-after 100ms job -- STUBBORN");
  see(&run, 3);
  until_held();
  take_job();
  cli_finish(&run, 75);
  assert_int_equal(living(), 0);
}

/* A stopped terminal must not cost a waiter the lock. The second inspection follows the message. */
TEST(full_standard_error_delays_no_acquire) {
  take_job();
  unsigned before = farm_calls(&three, 0, "type");
  tool_run run = cli_begin_after(fill_the_errors, "-v -w 600s run job -- echo ran");
  eventually(farm_calls(&three, 0, "type") > before + 1);
  farm_command_all(&three, "DEL", "job", NULL);
  cli_finish(&run, 0);
  assert_string_equal(cli_last.text, "ran\n");
}

/* The tool is late by as much as the witness; an eighth of the ttl is its reserve. */
TEST(strict_kills_before_the_deadline) {
  static const char *const cases[] = {
      "-t 6s --node-timeout 600ms -w 60s run --strict job -- STUBBORN",
      "-t 6s --node-timeout 600ms -w 60s run --strict --kill-after 0 job -- STUBBORN",
  };
  for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
    tool_run run = cli_begin(cases[i]);
    see(&run, 3);
    until_held();
    redlock_time before_us = redlock_now();
    redlock_duration left_us = (redlock_duration)key_ms(2) * REDLOCK_MILLISECONDS;
    redlock_duration drift_us = 62 * REDLOCK_MILLISECONDS;
    farm_stop(&three, 0);
    farm_stop(&three, 1);
    eventually(living() == 0);
    redlock_time dead_us = redlock_now();
    assert_true(dead_us < before_us + left_us - drift_us + witness_delay_us(before_us));
    cli_finish(&run, 75);
    assert_contains(cli_last.text, "'job' could not be extended; it ends in ");
    assert_contains(cli_last.text, " ms, and the command is stopped");
    (void)three_reset(state);
  }
}

static void refuse_scripts(void) {
  farm_command_all(&three, "ACL", "SETUSER", "default", "-eval", "-evalsha", NULL);
}

static void hang_two(void) {
  farm_stop(&three, 0);
  farm_stop(&three, 1);
}

/* Returns true if the tool has named the nodes; it may be late if this machine was. */
static bool warning_names_nodes(const char *arguments, void (*damage)(void), const char *reason) {
  redlock_time began_us = redlock_now();
  tool_run run = cli_begin(arguments);
  until_held();
  damage();
  while (tool_read(&run, 10) && strstr(run.text, "nodes extended it") == NULL) {
    /* The tool ends when the lock does. */
  }
  (void)kill(run.pid, SIGTERM);
  (void)three_reset(NULL);
  farm_command_all(&three, "ACL", "SETUSER", "default", "+@all", NULL);
  (void)tool_wait(&run);
  const char *named = strstr(run.text, "nodes extended it (2 needed): ");
  assert_true(named != NULL || witness_delay_us(began_us) > 0);
  return named != NULL && strstr(named, reason) != NULL &&
         (strstr(named, three.nodes[0].address) != NULL ||
          strstr(named, three.nodes[1].address) != NULL);
}

TEST(failed_extend_names_the_nodes) {
  static const struct {
    const char *arguments[2]; /* the second one if this machine is late */
    void (*damage)(void);
    const char *reason;
  } cases[] = {
      {{"-t 4s -w 60s run job -- MORTAL", "-t 40s -w 60s run job -- MORTAL"},
       refuse_scripts,
       ": NOPERM "},
      {{"-t 4s --node-timeout 400ms -w 60s run --max-hold 10m job -- MORTAL",
        "-t 40s --node-timeout 4s -w 60s run --max-hold 10m job -- MORTAL"},
       hang_two,
       ": no reply within "},
      {{"-t 4s -w 60s hold job", "-t 40s -w 60s hold job"}, refuse_scripts, ": NOPERM "},
  };
  for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
    assert_true(warning_names_nodes(cases[i].arguments[0], cases[i].damage, cases[i].reason) ||
                warning_names_nodes(cases[i].arguments[1], cases[i].damage, cases[i].reason));
  }
}

/* An eighth of the ttl is the reserve of the tool. A tool that was later reports the end. */
TEST(strict_ends_the_command_at_max_hold) {
  static const char *const cases[] = {"-t 4s run --max-hold 2s --strict job -- STUBBORN",
                                      "-t 16s run --max-hold 8s --strict job -- STUBBORN"};
  for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
    redlock_time began_us = redlock_now();
    tool_run run = cli_begin(cases[i]);
    cli_finish(&run, 75);
    if (strstr(cli_last.text, " ms, and the command is stopped") != NULL) {
      return;
    }
    assert_true(witness_delay_us(began_us) > 0);
  }
  fail_msg("%s", cli_last.text);
}

TEST(killed_tool_ends_its_command_and_descendants) {
  static const struct {
    const char *arguments;
    unsigned processes;
  } cases[] = {{"run job -- MORTAL", 1},
               {"run --strict job -- DEAF", 1},
               {"run job -- TREE", 3},
               {"run --kill-after 100ms job -- STUBBORN", 3},
               {"run --strict job -- STUBBORN", 3}};
  for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
    tool_run run = cli_begin(cases[i].arguments);
    see(&run, cases[i].processes);
    (void)kill(run.pid, SIGKILL);
    eventually(living() == 0);
    cli_finish(&run, 128 + SIGKILL);
    (void)three_reset(state);
  }
}

/* Returns the time from the death of the tool to that of a command that ignores SIGTERM. */
static redlock_duration kill_at_once(redlock_duration *delay_us) {
  tool_run run = cli_begin("run --kill-after 0 job -- STUBBORN");
  see(&run, 3);
  redlock_time begun_us = stopwatch();
  (void)kill(run.pid, SIGKILL);
  eventually(living() == 0);
  redlock_duration took_us = redlock_now() - begun_us;
  *delay_us = witness_delay_us(begun_us);
  cli_finish(&run, 128 + SIGKILL);
  return took_us;
}

/* The canary looks at the processes every 50 ms. A slow machine delays each try. */
TEST(kill_after_nothing_waits_for_nothing) {
  unsigned undelayed = 0;
  bool ended = false;
  for (unsigned i = 0; i < 50 && !ended; i++) {
    redlock_duration delay_us;
    ended = kill_at_once(&delay_us) < MS(50);
    undelayed += delay_us < MS(5);
    (void)three_reset(state);
  }
  assert_true(ended || undelayed == 0);
}

/* The tool inside ends its command, whose processes have the mark of that tool. */
TEST(killed_tool_ends_the_command_of_a_tool_inside) {
  char arguments[512];
  (void)snprintf(arguments, sizeof arguments,
                 "run --kill-after 100ms job -- %s -n %s,%s,%s run --kill-after 200ms inner -- "
                 "STUBBORN",
                 tool_path(), three.nodes[0].address, three.nodes[1].address,
                 three.nodes[2].address);
  tool_run run = cli_begin(arguments);
  see(&run, 3);
  (void)kill(run.pid, SIGKILL);
  eventually(living() == 0);
  cli_finish(&run, 128 + SIGKILL);
}

TEST(killed_tool_lets_a_warned_command_run_on) {
  tool_run run = cli_begin("run --on-lost=warn job -- MORTAL");
  see(&run, 1);
  (void)kill(run.pid, SIGKILL);
  int status = 0;
  assert_int_equal(waitpid(run.pid, &status, 0), run.pid);
  (void)poll(NULL, 0, 100);
  assert_int_equal(living(), 1);
  (void)kill(seen.pids[0], SIGKILL);
  (void)close(run.output);
}

/* The kernel and the canary must not both signal the command. */
TEST(killed_tool_signals_its_command_once) {
  cli_define("COUNTER", "trap 'echo got TERM' TERM; trap 'echo the end; exit 0' USR1; echo pid $$\n"
                        "while :; do sleep 0.01; done");
  tool_run run = cli_begin("run --kill-after 600s job -- COUNTER");
  see(&run, 1);
  (void)kill(run.pid, SIGKILL);
  tool_until_output(&run, "got TERM\n");
  redlock_time until_us = redlock_now() + REDLOCK_SECONDS / 2;
  eventually(!tool_read(&run, 2) || redlock_now() > until_us);
  (void)kill(seen.pids[0], SIGUSR1);
  cli_finish(&run, 128 + SIGKILL);
  const char *first = strstr(cli_last.text, "got TERM\n");
  assert_non_null(first);
  assert_null(strstr(first + 1, "got TERM\n"));
}

/* ------------------------------------------------------------------------------------ hold-for */

static void be_traced(void) {
  (void)ptrace(PTRACE_TRACEME, 0, NULL, NULL);
}

/* Continues the traced tool until it forks. Returns its child, which is stopped as well. */
static pid_t until_fork(pid_t tool) {
  int state = 0;
  unsigned long child = 0;
  assert_int_equal(waitpid(tool, &state, 0), tool); /* its exec */
  assert_int_equal(ptrace(PTRACE_SETOPTIONS, tool, NULL, (void *)PTRACE_O_TRACEFORK), 0);
  (void)ptrace(PTRACE_CONT, tool, NULL, NULL);
  while (waitpid(tool, &state, 0) == tool && WIFSTOPPED(state) &&
         state >> 8 != (SIGTRAP | PTRACE_EVENT_FORK << 8)) {
    (void)ptrace(PTRACE_CONT, tool, NULL, (void *)(uintptr_t)WSTOPSIG(state));
  }
  assert_true(WIFSTOPPED(state));
  assert_int_equal(ptrace(PTRACE_GETEVENTMSG, tool, NULL, &child), 0);
  assert_int_equal(waitpid((pid_t)child, &state, __WALL), (pid_t)child);
  return (pid_t)child;
}

/* The tool is stopped between the grant and the start of its command, as by a suspend. */
TEST(ended_lock_starts_no_command) {
  static const char *const cases[] = {"-t 2s -w 60s run job -- echo ran",
                                      "-t 2s -w 60s run --on-lost=warn job -- echo ran"};
  for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
    tool_run run = cli_begin_after(be_traced, cases[i]);
    pid_t child = until_fork(run.pid);
    eventually(farm_count(&three, "job", NULL) == 0);
    (void)ptrace(PTRACE_DETACH, child, NULL, NULL);
    (void)ptrace(PTRACE_DETACH, run.pid, NULL, NULL);
    cli_finish(&run, 69);
    assert_contains(cli_last.text, "redlock: 'job' ended before the command began");
    assert_null(strstr(cli_last.text, "ran\n"));
  }
}

TEST(hold_for_keeps_the_lock_after_the_command) {
  cli_check("-t 2s run --hold-for 600s job -- true", 0);
  assert_string_equal(cli_last.text, "");
  unsigned kept = 0; /* The slowest node may not have it yet. */
  for (unsigned i = 0; i < 3; i++) {
    kept += key_ms(i) > 500000 && key_ms(i) <= 606100;
  }
  assert_true(kept >= 2);
  cli_check("-w 0 run --hold-for 600s job -- echo ran", 1);
  assert_null(strstr(cli_last.text, "ran\n"));
  (void)three_reset(state);
  cli_check("-t 600s run --hold-for 60s job -- false", 1); /* The ttl is longer. */
  for (unsigned i = 0; i < 3; i++) {
    eventually(key_ms(i) <= 61000);
  }
  assert_true(farm_count(&three, "job", NULL) >= 2);
}

TEST(hold_for_keeps_the_lock_of_a_killed_tool) {
  tool_run run = cli_begin("-t 2s run --hold-for 600s job -- MORTAL");
  see(&run, 1);
  (void)kill(run.pid, SIGKILL);
  (void)tool_wait(&run);
  unsigned kept = 0;
  for (unsigned i = 0; i < 3; i++) {
    kept += key_ms(i) > 500000;
  }
  assert_true(kept >= 2);
}

/* The nodes that do not answer keep their keys by RUN-1. */
TEST(hold_for_keeps_the_lock_during_an_extend) {
  tool_run run = cli_begin("-t 4s --node-timeout 2s -w 60s run --hold-for 600s job -- HELD");
  until_held();
  farm_stop(&three, 0);
  farm_stop(&three, 1);
  unsigned before = scripts(2);
  eventually(scripts(2) > before);
  cli_let_go();
  cli_finish(&run, 0);
  assert_true(key_ms(2) > 500000);
  assert_contains(cli_last.text, "'job': 1 of 3 nodes");
}

TEST(hold_for_ends_with_a_longer_command) {
  tool_run run = cli_begin("run --hold-for 1ms job -- HELD");
  until_held();
  (void)poll(NULL, 0, 5);
  assert_int_equal(farm_count(&three, "job", NULL), 3);
  cli_let_go();
  cli_finish(&run, 0);
  assert_int_equal(farm_count(&three, "job", NULL), 0);
}

/* The text of the lock has the rest of the time. */
TEST(hold_for_keeps_the_lock_of_a_text) {
  cli_check("-t 60s --node-timeout 10s acquire --hold-for 600s job", 0);
  char release[REDLOCK_HANDOVER_MAX + 64];
  (void)snprintf(release, sizeof release, "release %s", cli_last.text);
  release[strcspn(release, "\n")] = '\0';
  cli_check(release, 0);
  unsigned kept = 0;
  for (unsigned i = 0; i < 3; i++) {
    kept += key_ms(i) > 500000 && key_ms(i) <= 606100;
  }
  assert_true(kept >= 2);
}

/* The automatic extends begin only near the end of the time. */
TEST(hold_for_notices_a_loss) {
  tool_run run = cli_begin("-t 4s -w 60s run --hold-for 600s job -- MORTAL");
  see(&run, 1);
  until_held();
  unsigned before = scripts(0);
  eventually(scripts(0) >= before + 2);
  take_job();
  cli_finish(&run, 75);
  assert_contains(cli_last.text, "'job' has ended, and the command is stopped");
  assert_int_equal(farm_count(&three, "job", "another"), 3);
}

/* ----------------------------------------------------------------------------------- start */

TEST(rejected_password_ends_the_wait) {
  within (5 * REDLOCK_SECONDS) {
    cli_check_shell("exec \"$0\" -n redis://u:hidden@$1,redis://u:hidden@$2,$3 -w inf run job true",
                    69);
  }
  assert_contains(cli_last.text, "'job': 2 of 3 nodes reject the password");
  assert_contains(cli_last.text, three.nodes[0].address);
  assert_contains(cli_last.text, ": WRONGPASS");
  assert_null(strstr(cli_last.text, three.nodes[2].address));
  assert_null(strstr(cli_last.text, "hidden"));
  cli_check_shell("exec \"$0\" --node-timeout 5s -n redis://u:hidden@$1,$2,$3 run job true", 0);
}

int main(void) {
  witness_start();
  return tests_run(&(tests_fixture){.start = start, .before = three_reset, .end = three_end});
}
