/*
 * redlock(1) as a shell uses it.
 *
 * SPDX-License-Identifier: MIT
 */
#include <fcntl.h>
#include <sys/stat.h>

#include "support.h"
#include "tool.h"

#define ARGUMENTS_MAX 32

/* Commands, by a word for each. HELD and FAILING end when the test calls let_go(). */
static struct {
  const char *word;
  const char *text; /* of the script; "GATE" at its end is the pipe of let_go() */
  char path[SCRATCH_PATH_MAX + 16];
} commands[] = {
    {"HELD", "read word <GATE", ""},
    {"FAILING", "read word <GATE; exit 3", ""},
    {"ENDLESS", "echo started; exec sleep 600", ""},
    {"SCRIPT", "echo script $1; exit 7", ""}, /* without "#!" */
};
#define COMMANDS (sizeof commands / sizeof commands[0])

static char gate[SCRATCH_PATH_MAX + 8];
static tool_run last; /* the run that has ended last */

static void write_command(size_t i) {
  const char *pipe = strstr(commands[i].text, "GATE");
  int length = pipe == NULL ? (int)strlen(commands[i].text) : (int)(pipe - commands[i].text);
  (void)snprintf(commands[i].path, sizeof commands[i].path, "%s/%s", three.scratch.path,
                 commands[i].word);
  FILE *script = fopen(commands[i].path, "we");
  assert_non_null(script);
  (void)fprintf(script, "%s%.*s%s%s\n",
                strcmp(commands[i].word, "SCRIPT") == 0 ? "" : "#!/bin/sh\n", length,
                commands[i].text, pipe == NULL ? "" : gate, pipe == NULL ? "" : pipe + 4);
  (void)fclose(script);
  assert_int_equal(chmod(commands[i].path, 0700), 0);
}

static int start(void **state) {
  (void)three_start(state);
  (void)snprintf(gate, sizeof gate, "%s/gate", three.scratch.path);
  assert_int_equal(mkfifo(gate, 0600), 0);
  for (size_t i = 0; i < COMMANDS; i++) {
    write_command(i);
  }
  return 0;
}

static const char *word_of(const char *word) {
  for (size_t i = 0; i < COMMANDS; i++) {
    if (strcmp(commands[i].word, word) == 0) {
      return commands[i].path;
    }
  }
  return word;
}

/*
 * Starts the tool with the three nodes and |arguments|, which are words with spaces between them.
 * Unless the arguments change it, nodes have more time than a loaded machine needs.
 */
static tool_run begin_after(void (*prepare)(void), const char *arguments) {
  static char words[1024];
  const char *argv[ARGUMENTS_MAX] = {tool_path(), "--node-timeout", "5s", "-t", "60s"};
  int count = 5;
  for (unsigned i = 0; i < 3; i++) {
    argv[count++] = "-n";
    argv[count++] = three.nodes[i].address;
  }
  (void)snprintf(words, sizeof words, "%s", arguments);
  char *rest = NULL;
  for (char *word = strtok_r(words, " ", &rest); word != NULL; word = strtok_r(NULL, " ", &rest)) {
    assert_true(count < ARGUMENTS_MAX - 1);
    argv[count++] = word_of(word);
  }
  return tool_start(prepare, argv);
}

static tool_run begin(const char *arguments) {
  return begin_after(NULL, arguments);
}

static void finish(tool_run *run, int expected) {
  int status = tool_wait(run);
  last = *run;
  tool_check_status(&last, status, expected);
}

static void check_after(void (*prepare)(void), const char *arguments, int expected) {
  tool_run run = begin_after(prepare, arguments);
  finish(&run, expected);
}

static void check(const char *arguments, int expected) {
  check_after(NULL, arguments, expected);
}

/* Ends the command HELD or FAILING. */
static void let_go(void) {
  int fd = -1;
  eventually((fd = open(gate, O_WRONLY | O_NONBLOCK | O_CLOEXEC)) >= 0);
  assert_int_equal(write(fd, "go\n", 3), 3);
  (void)close(fd);
}

/* Returns the number of scripts that the first node has run: an extend is one. */
static unsigned scripts(void) {
  return farm_calls(&three, 0, "evalsha") + farm_calls(&three, 0, "eval");
}

static void take_job(void) {
  for (unsigned i = 0; i < 3; i++) {
    (void)farm_command(&three, i, "SET", "job", "another", (char *)NULL);
  }
}

static void until_held(void) {
  eventually(farm_count(&three, "job", NULL) == 3);
}

/* ----------------------------------------------------------------------------------------- run */

static void run_returns_the_status_of_its_command(void **state) {
  tool_run run = begin("run job -- HELD");
  until_held();
  let_go();
  finish(&run, 0);
  assert_string_equal(last.text, "");
  assert_int_equal(farm_count(&three, "job", NULL), 0);
  static const struct {
    const char *arguments;
    int status;
    const char *output;
  } cases[] = {
      {"run job true", 0, ""},
      {"run job -- false", 1, ""},
      {"run job sh -c exit\t7", 7, ""}, /* The words are passed on unchanged. */
      {"-p cron: run job -- true", 0, ""},
      {"run job -- SCRIPT word", 7, "script word\n"},
      {"run job -- no-such-command-here", 127, "no-such-command-here"},
      {"run job -- /", 126, ""},
      {"--quorum 3 run job -- true", 0, ""},
  };
  for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
    check(cases[i].arguments, cases[i].status);
    assert_contains(last.text, cases[i].output);
    assert_int_equal(farm_count(&three, "job", NULL) + farm_count(&three, "cron:job", NULL), 0);
  }
}

static void taken_lock_runs_no_command(void **state) {
  take_job();
  check("-w 0 run job -- echo ran", 1);
  assert_contains(last.text, "'job' is taken");
  assert_null(strstr(last.text, "ran\n"));
  check("-w 0 -E 9 run job -- echo ran", 9);
  check("-w 0 -E 0 run job -- echo ran", 0);
  assert_null(strstr(last.text, "ran\n"));
  assert_int_equal(farm_count(&three, "job", "another"), 3);
}

static void run_waits_for_the_lock(void **state) {
  tool_run first = begin("run job -- HELD");
  until_held();
  unsigned before = farm_calls(&three, 0, "set");
  tool_run second = begin("-w 600s run job -- echo ran");
  eventually(farm_calls(&three, 0, "set") > before);
  let_go();
  finish(&first, 0);
  finish(&second, 0);
  assert_string_equal(last.text, "ran\n");
}

static void run_extends_the_lease(void **state) {
  tool_run run = begin("-t 4s run job -- HELD");
  until_held();
  eventually(scripts() >= 2);
  assert_int_equal(farm_count(&three, "job", NULL), 3);
  let_go();
  finish(&run, 0);
  assert_string_equal(last.text, "");
}

static void stop_two(void) {
  farm_stop(&three, 0);
  farm_stop(&three, 1);
}

static void kill_two(void) {
  farm_kill(&three, 0);
  farm_kill(&three, 1);
}

static void run_reports_a_loss_and_lets_the_command_run(void **state) {
  static const struct {
    const char *arguments;
    void (*damage)(void); /* NULL: the lock ends by itself */
    const char *report;
    int status;
  } cases[] = {
      {"-t 2s -w 60s run job -- HELD", take_job, "too many nodes no longer have the token", 75},
      {"-t 2s -w 60s run job -- FAILING", take_job, "too many nodes no longer have the token", 3},
      {"-t 3s --node-timeout 300ms -w 60s run job -- HELD", stop_two,
       "the lock could not be extended; it ends in ", 75},
      {"-t 2s -w 60s run job -- HELD", kill_two, three.nodes[0].address, 75},
      {"-t 1s --max-hold 1s -w 60s run job -- HELD", NULL, "", 75},
  };
  for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
    tool_run run = begin(cases[i].arguments);
    if (cases[i].damage != NULL) {
      until_held();
      cases[i].damage();
    }
    tool_until_output(&run, "the lock has ended, and the command still runs: ");
    let_go();
    finish(&run, cases[i].status);
    assert_contains(last.text, cases[i].report);
    if (cases[i].status == 75) {
      assert_contains(last.text, "the lock ended before the command did");
    }
    if (cases[i].damage == kill_two) {
      assert_contains(last.text, three.nodes[1].address);
      assert_null(strstr(last.text, three.nodes[2].address));
    }
    assert_int_equal(farm_count(&three, "job", "another"), cases[i].damage == take_job ? 3 : 0);
    (void)three_reset(state);
  }
}

/* ------------------------------------------------------------------------------------- signals */

/* nohup(1) may have started the test, and the tool leaves ignored signals ignored. */
static void restore_hang_up(void) {
  (void)signal(SIGHUP, SIG_DFL);
}

static void run_passes_signals_on_and_releases_the_lock(void **state) {
  static const int numbers[] = {SIGTERM, SIGHUP, SIGUSR1, SIGUSR2};
  for (unsigned i = 0; i < 4; i++) {
    tool_run run = begin_after(restore_hang_up, "run job -- ENDLESS");
    tool_until_output(&run, "started");
    until_held();
    (void)kill(run.pid, SIGINT); /* A terminal would send it to the command, too. */
    (void)poll(NULL, 0, 20);
    assert_int_equal(farm_count(&three, "job", NULL), 3);
    (void)kill(run.pid, numbers[i]);
    finish(&run, 128 + numbers[i]);
    assert_int_equal(farm_count(&three, "job", NULL), 0);
  }
}

static void block_all_signals(void) {
  sigset_t all;
  (void)sigfillset(&all);
  (void)sigprocmask(SIG_SETMASK, &all, NULL);
}

static void signal_ends_the_wait(void **state) {
  static void (*const prepare[])(void) = {NULL, block_all_signals};
  for (unsigned i = 0; i < 2; i++) {
    take_job();
    (void)farm_command(&three, 0, "CONFIG", "RESETSTAT", (char *)NULL);
    tool_run run = begin_after(prepare[i], "-w 600s run job -- echo ran");
    eventually(farm_calls(&three, 0, "set") >= 1);
    (void)kill(run.pid, SIGTERM);
    finish(&run, 128 + SIGTERM);
    assert_int_equal(farm_count(&three, "job", "another"), 3);
  }
}

/* ------------------------------------------------------------------------- the process's state */

/* Returns true if the command has shown that it ignores |number|. */
static bool is_ignored(int number) {
  const char *mask = strstr(last.text, "SigIgn:");
  assert_non_null(mask);
  return (strtoull(mask + strlen("SigIgn:"), NULL, 16) >> (number - 1) & 1) != 0;
}

static void ignore_hang_up(void) {
  (void)signal(SIGHUP, SIG_IGN);
}

static void restore_broken_pipe(void) {
  (void)signal(SIGPIPE, SIG_DFL);
}

static void command_inherits_the_signals_of_the_caller(void **state) {
  check_after(block_all_signals, "run job -- grep SigBlk: /proc/self/status", 0);
  assert_contains(last.text, "SigBlk:\tfffffffe7ffb"); /* Some signals cannot be blocked. */
  check_after(ignore_hang_up, "run job -- grep SigIgn: /proc/self/status", 0);
  assert_true(is_ignored(SIGHUP));
  /* The tool ignores SIGPIPE; a command that does would make `yes | head` endless. */
  check_after(restore_broken_pipe, "run job -- grep SigIgn: /proc/self/status", 0);
  assert_false(is_ignored(SIGPIPE));
}

static void close_other_descriptors(void) {
  for (int fd = STDERR_FILENO + 1; fd < 1024; fd++) {
    (void)close(fd);
  }
}

static void command_inherits_no_descriptor_of_the_tool(void **state) {
  check_after(close_other_descriptors, "run job -- ls /proc/self/fd", 0);
  assert_string_equal(last.text, "0\n1\n2\n3\n"); /* 3 is the directory. */
}

/* run ... 2>&1 | head: the reader of the report has gone. */
static void broken_pipe_ends_neither_tool_nor_command(void **state) {
  tool_run run = begin("-t 2s -w 60s run job -- HELD");
  until_held();
  (void)close(run.output);
  run.output = open("/dev/null", O_RDONLY | O_CLOEXEC);
  take_job();
  unsigned before = scripts();
  eventually(scripts() > before);
  let_go();
  finish(&run, 75);
}

static void close_standard_descriptors(void) {
  for (int fd = 0; fd <= STDERR_FILENO; fd++) {
    (void)close(fd);
  }
}

/* Otherwise the connection to a node would be the standard error. */
static void closed_standard_descriptors_are_replaced(void **state) {
  tool_run run = begin_after(close_standard_descriptors, "-t 2s -w 60s run job -- HELD");
  until_held();
  for (int fd = 0; fd <= STDERR_FILENO; fd++) {
    char path[64];
    char target[64] = "";
    (void)snprintf(path, sizeof path, "/proc/%d/fd/%d", (int)run.pid, fd);
    assert_true(readlink(path, target, sizeof target - 1) > 0);
    assert_string_equal(target, "/dev/null");
  }
  let_go();
  finish(&run, 0);
}

/* --------------------------------------------------------------------------------- other verbs */

static void unavailable_nodes_are_named(void **state) {
  farm_kill(&three, 0);
  check("-w 0 run job -- true", 0);
  check("--quorum 3 -w 0 run job -- echo ran", 69);
  farm_kill(&three, 1);
  check("-w 0 run job -- echo ran", 69);
  assert_contains(last.text, three.nodes[0].address);
  assert_null(strstr(last.text, "ran\n"));
}

static void nodes_shows_each_answer(void **state) {
  char line[96];
  check("nodes", 0);
  for (unsigned i = 0; i < 3; i++) {
    (void)snprintf(line, sizeof line, "%s\tgranted\t", three.nodes[i].address);
    assert_contains(last.text, line);
    assert_string_equal(farm_command(&three, i, "DBSIZE", (char *)NULL), "0");
  }
  farm_stop(&three, 2);
  check("nodes", 0);
  (void)snprintf(line, sizeof line, "%s\tunknown\tno answer in time\n", three.nodes[2].address);
  assert_contains(last.text, line);
  farm_kill(&three, 2);
  check("nodes", 0);
  assert_contains(last.text, "\terror\t");
}

static void nodes_names_a_node_that_was_not_needed(void **state) {
  char line[128];
  farm_stop(&three, 0);
  farm_kill(&three, 1);
  farm_kill(&three, 2);
  check("nodes", 69);
  (void)snprintf(line, sizeof line, "%s\tunknown\tthe attempt failed before this node answered; ",
                 three.nodes[0].address);
  assert_contains(last.text, line);
}

static void fill_the_output(void) {
  (void)dup2(open("/dev/full", O_WRONLY), STDOUT_FILENO);
}

static void full_output_is_an_error(void **state) {
  check_after(fill_the_output, "nodes", 71);
  assert_contains(last.text, "cannot write to the standard output: No space left");
  check_after(fill_the_output, "doctor", 71);
}

static void configure_append_only(const char *value) {
  for (unsigned i = 0; i < 3; i++) {
    (void)farm_command(&three, i, "CONFIG", "SET", "appendonly", value, (char *)NULL);
  }
}

static void doctor_reports_findings(void **state) {
  char line[96];
  configure_append_only("yes");
  check("doctor", 0);
  assert_string_equal(last.text, "nothing is wrong with the 3 nodes\n");
  (void)farm_command(&three, 1, "SET", "lost", "0123456789abcdef0123456789abcdef01234567",
                     (char *)NULL);
  check("--keys doctor job", 0);
  (void)snprintf(line, sizeof line, "warning\tendless_keys\t%s holds 1 key",
                 three.nodes[1].address);
  assert_int_equal(strncmp(last.text, line, strlen(line)), 0);
  farm_kill(&three, 2);
  check("doctor", 1);
  (void)snprintf(line, sizeof line, "error\tdown\t%s did not answer: ", three.nodes[2].address);
  assert_int_equal(strncmp(last.text, line, strlen(line)), 0);
  farm_kill(&three, 1);
  check("doctor", 69);
  (void)three_reset(state);
  configure_append_only("no");
}

/* ---------------------------------------------------------------------------- the command line */

static void mistakes_are_reported(void **state) {
  static const struct {
    const char *arguments;
    const char *message;
  } cases[] = {
      {"", "no verb; use one of run nodes doctor"},
      {"steal job", "unknown verb 'steal'"},
      {"run job", "usage: redlock run RESOURCE [--] COMMAND"},
      {"run job --", "usage: redlock run RESOURCE [--] COMMAND"},
      {"run -- true", "usage: redlock run RESOURCE [--] COMMAND"}, /* $JOB is unset */
      {"-n a:b:c nodes", "node 4: "},
      {"nodes all", "unexpected operand 'all'"},
      {"doctor job more", "unexpected operand 'more'"},
      {"bootstrap", "add --guard"},
      {"-t 10 run job true", "invalid time '10': use a number with ms, s, m or h"},
      {"-t 0 run job true", "invalid time '0': it must be more than 0"},
      {"-t 9000h run job true",
       "invalid time '9000h': use a number with ms, s, m or h, up to a year"},
      {"-w -1s run job true", "invalid time"},
      {"--quorum 0 run job true", "invalid quorum '0': it must be from 1 to 32"},
      {"--quorum two run job true", "invalid quorum 'two'"},
      {"--quorum 1 run job true", "quorum must be from a majority of its nodes to all of them"},
      {"--quorum 4 run job true", "quorum must be from a majority of its nodes to all of them"},
      {"-E 256 run job true", "invalid exit status '256': it must be from 0 to 255"},
      {"-n 127.0.0.1:x run job true", "port"},
      {"-x run job true", "unknown option '-x'"},
      {"-t", "missing value after '-t'"},
  };
  for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
    check(cases[i].arguments, 64);
    assert_contains(last.text, cases[i].message);
  }
  check("--help", 0);
  assert_contains(last.text, "usage: redlock");
  check("--version", 0);
  assert_contains(last.text, REDLOCK_VERSION);
}

static const char *shell_command;

/* Replaces the tool by a shell, which has the tool as $0 and the addresses as $1 to $3. */
static void run_shell(void) {
  (void)execl("/bin/sh", "sh", "-c", shell_command, tool_path(), three.nodes[0].address,
              three.nodes[1].address, three.nodes[2].address, (char *)NULL);
}

static void shell_variables_are_read(void **state) {
  static const struct {
    const char *command;
    int status;
  } cases[] = {
      {"unset REDLOCK_NODES; exec \"$0\" nodes", 64},
      {"REDLOCK_NODES=' ' exec \"$0\" nodes", 64},
      {"REDLOCK_NODES=\"$1 $2\r\n$3\" exec \"$0\" nodes", 0},
      {"exec \"$0\" -n $1 run \"$JOB\" true", 64}, /* $JOB is unset */
  };
  for (unsigned i = 0; i < 4; i++) {
    shell_command = cases[i].command;
    check_after(run_shell, "", cases[i].status);
    if (cases[i].status == 0) {
      assert_contains(last.text, three.nodes[2].address);
    }
  }
}

#define TEST(name) cmocka_unit_test_setup(name, three_reset)

int main(void) {
  const struct CMUnitTest tests[] = {
      TEST(run_returns_the_status_of_its_command),
      TEST(taken_lock_runs_no_command),
      TEST(run_waits_for_the_lock),
      TEST(run_extends_the_lease),
      TEST(run_reports_a_loss_and_lets_the_command_run),
      TEST(run_passes_signals_on_and_releases_the_lock),
      TEST(signal_ends_the_wait),
      TEST(command_inherits_the_signals_of_the_caller),
      TEST(command_inherits_no_descriptor_of_the_tool),
      TEST(broken_pipe_ends_neither_tool_nor_command),
      TEST(closed_standard_descriptors_are_replaced),
      TEST(unavailable_nodes_are_named),
      TEST(nodes_shows_each_answer),
      TEST(nodes_names_a_node_that_was_not_needed),
      TEST(full_output_is_an_error),
      TEST(doctor_reports_findings),
      TEST(mistakes_are_reported),
      TEST(shell_variables_are_read),
  };
  return cmocka_run_group_tests(tests, start, three_end);
}
