/*
 * redlock(1), as a shell uses it.
 *
 * SPDX-License-Identifier: MIT
 */
#include <fcntl.h>
#include <libgen.h>
#include <signal.h>
#include <sys/stat.h>

#include "support.h"

#define ARGUMENTS_MAX 32

static char tool[512];
static char
    gate[SCRATCH_PATH_MAX + 8]; /* a pipe: the command "HELD" ends when the test writes to it */
static char held[SCRATCH_PATH_MAX + 8];
static char failing[SCRATCH_PATH_MAX + 8]; /* the same, with status 3 */
static char endless[SCRATCH_PATH_MAX + 8]; /* the command "ENDLESS" says that it has started */
static const char *told; /* both outputs of the last program that was waited for */

typedef struct running {
  pid_t pid;
  int output;
  size_t length;
  char text[4096];
} running;

static void write_script(const char *path, const char *command, const char *operand) {
  FILE *script = fopen(path, "we");
  assert_non_null(script);
  (void)fprintf(script, "#!/bin/sh\n%s%s\n", command, operand);
  (void)fclose(script);
  assert_int_equal(chmod(path, 0700), 0);
}

static int start(void **state) {
  (void)state;
  char self[256] = "";
  char after[sizeof gate + 16];
  farm_start(&three, 3, NULL);
  assert_true(readlink("/proc/self/exe", self, sizeof self - 1) > 0);
  (void)snprintf(tool, sizeof tool, "%s/../../bin/redlock", dirname(self));
  (void)snprintf(gate, sizeof gate, "%s/gate", three.scratch.path);
  (void)snprintf(held, sizeof held, "%s/held", three.scratch.path);
  (void)snprintf(failing, sizeof failing, "%s/failing", three.scratch.path);
  (void)snprintf(endless, sizeof endless, "%s/endless", three.scratch.path);
  assert_int_equal(mkfifo(gate, 0600), 0);
  write_script(held, "read word <", gate);
  (void)snprintf(after, sizeof after, "%s; exit 3", gate);
  write_script(failing, "read word <", after);
  write_script(endless, "echo started; exec sleep ", "600");
  return 0;
}

/* Returns the word as it is, or what it stands for. */
static char *word_of(char *word) {
  return strcmp(word, "HELD") == 0      ? held
         : strcmp(word, "FAILING") == 0 ? failing
         : strcmp(word, "ENDLESS") == 0 ? endless
                                        : word;
}

/*
 * Starts the tool with the three nodes and |arguments|, words with spaces between them, after |prepare|.
 * "HELD" is a command that ends with let_go(), "FAILING" one with status 3. Healthy nodes get more time than a loaded machine needs,
 * unless the arguments say otherwise.
 */
static running begin_after(void (*prepare)(void), const char *arguments) {
  char words[1024];
  char *argv[ARGUMENTS_MAX] = {tool, (char *)"--node-timeout", (char *)"5s", (char *)"-t",
                               (char *)"60s"};
  int count = 5;
  int ends[2];
  for (unsigned i = 0; i < 3; i++) {
    argv[count++] = (char *)"-n";
    argv[count++] = three.nodes[i].address;
  }
  (void)snprintf(words, sizeof words, "%s", arguments);
  char *rest = NULL;
  for (char *word = strtok_r(words, " ", &rest); word != NULL; word = strtok_r(NULL, " ", &rest)) {
    assert_true(count < ARGUMENTS_MAX - 1);
    argv[count++] = word_of(word);
  }
  assert_int_equal(pipe2(ends, O_CLOEXEC), 0);
  running self = {.pid = fork(), .output = ends[0]};
  if (self.pid == 0) {
    (void)dup2(ends[1], STDOUT_FILENO);
    (void)dup2(ends[1], STDERR_FILENO);
    prepare();
    (void)execv(tool, argv);
    _exit(99);
  }
  (void)close(ends[1]);
  return self;
}

static void nothing(void) {}

static running begin(const char *arguments) {
  return begin_after(nothing, arguments);
}

/* Reads what the tool or its command has written. Returns false at the end. */
static bool hear(running *self, int timeout_ms) {
  struct pollfd readable = {self->output, POLLIN, 0};
  if (poll(&readable, 1, timeout_ms) == 0) {
    return true;
  }
  ssize_t got = read(self->output, self->text + self->length, sizeof self->text - 1 - self->length);
  self->length += got > 0 ? (size_t)got : 0;
  self->text[self->length] = '\0';
  return got > 0;
}

#define until_told(self, part) eventually(!hear((self), 2) || strstr((self)->text, (part)) != NULL)

/* Waits for its end. Returns what a shell would call its exit status. */
static int wait_for(running *self) {
  static char text[sizeof self->text];
  int state;
  eventually(!hear(self, 2));
  (void)close(self->output);
  assert_int_equal(waitpid(self->pid, &state, 0), self->pid);
  (void)memcpy(text, self->text, sizeof text);
  told = text;
  return WIFSIGNALED(state) ? 128 + WTERMSIG(state) : WEXITSTATUS(state);
}

static int run(const char *arguments) {
  running self = begin(arguments);
  return wait_for(&self);
}

static int run_after(void (*prepare)(void), const char *arguments) {
  running self = begin_after(prepare, arguments);
  return wait_for(&self);
}

/* Ends the command "HELD". */
static void let_go(void) {
  int fd = -1;
  eventually((fd = open(gate, O_WRONLY | O_NONBLOCK | O_CLOEXEC)) >= 0);
  assert_int_equal(write(fd, "go\n", 3), 3);
  (void)close(fd);
}

/* How many scripts the first node has run: an extend is one. */
static unsigned scripts(void) {
  return farm_calls(&three, 0, "evalsha") + farm_calls(&three, 0, "eval");
}

static void assert_status(int status, int expected) {
  if (status != expected) {
    fail_msg("exit status %d, not %d: %s", status, expected, told);
  }
}

/* Somebody else holds the key on all nodes. */
static void take_by_hand(const char *key) {
  for (unsigned i = 0; i < 3; i++) {
    (void)farm_command(&three, i, "SET", key, "somebody", (char *)NULL);
  }
}

static void a_command_runs_under_the_lock_and_its_status_is_ours(void **state) {
  (void)state;
  running self = begin("run job -- HELD");
  eventually(farm_count(&three, "job", NULL) == 3);
  let_go();
  assert_status(wait_for(&self), 0);
  assert_string_equal(told, "");
  assert_int_equal(farm_count(&three, "job", NULL), 0);
  assert_status(run("run job true"), 0);
  assert_status(run("run job -- false"), 1);
  assert_status(run("run job sh -c exit\t7"), 7); /* the words are handed on as they are */
  assert_status(run("-p cron: run job -- env"), 0);
  assert_int_equal(farm_count(&three, "cron:job", NULL), 0);
}

static void a_taken_lock_runs_nothing(void **state) {
  (void)state;
  take_by_hand("job");
  assert_status(run("-w 0 run job -- echo ran"), 1);
  assert_contains(told, "'job' is taken");
  assert_null(strstr(told, "ran\n"));
  assert_status(run("-w 0 -E 9 run job -- echo ran"), 9);
  /* On a loaded machine 50 ms may be over before a node was asked: 69. */
  eventually(run("-w 50ms run job -- echo ran") == 1);
  assert_null(strstr(told, "ran\n"));
  assert_int_equal(farm_count(&three, "job", "somebody"), 3);
}

static void it_waits_for_the_lock_as_long_as_it_is_told(void **state) {
  (void)state;
  running first = begin("run job -- HELD");
  eventually(farm_count(&three, "job", NULL) == 3);
  unsigned before = farm_calls(&three, 0, "set");
  running second = begin("-w 600s run job -- echo ran");
  eventually(farm_calls(&three, 0, "set") > before);
  let_go();
  assert_status(wait_for(&first), 0);
  assert_status(wait_for(&second), 0);
  assert_string_equal(told, "ran\n");
}

static void the_lease_is_extended_while_the_command_runs(void **state) {
  (void)state;
  running self = begin("-t 4s run job -- HELD");
  eventually(farm_count(&three, "job", NULL) == 3);
  eventually(scripts() >= 2);
  assert_int_equal(farm_count(&three, "job", NULL), 3);
  let_go();
  assert_status(wait_for(&self), 0);
  assert_string_equal(told, "");
}

static void a_lock_that_ends_under_the_command_is_told_and_changes_success(void **state) {
  (void)state;
  running self = begin("-t 2s -w 60s run job -- HELD");
  eventually(farm_count(&three, "job", NULL) == 3);
  take_by_hand("job");
  until_told(&self, "the lock has ended, and the command still runs: too many nodes say");
  let_go();
  assert_status(wait_for(&self), 75);
  assert_contains(told, "the lock has ended, and the command still runs: too many nodes say");
  assert_contains(told, "the lock ended before the command did");
  assert_int_equal(farm_count(&three, "job", "somebody"), 3);
}

static void command_that_fails_keeps_its_status_though_the_lock_has_ended(void **state) {
  (void)state;
  running self = begin("-t 2s -w 60s run job -- FAILING");
  eventually(farm_count(&three, "job", NULL) == 3);
  take_by_hand("job");
  until_told(&self, "the lock has ended, and the command still runs: ");
  let_go();
  assert_status(wait_for(&self), 3);
}

static void nodes_that_hang_end_the_lock_and_not_the_command(void **state) {
  (void)state;
  running self = begin("-t 3s --node-timeout 300ms -w 60s run job -- HELD");
  eventually(farm_count(&three, "job", NULL) == 3);
  farm_stop(&three, 0);
  farm_stop(&three, 1);
  until_told(&self, "the lock has ended, and the command still runs: ");
  let_go();
  assert_status(wait_for(&self), 75);
  assert_contains(told, "the lock could not be extended; it ends in ");
  assert_contains(told, "the lock has ended, and the command still runs: ");
}

static void a_node_that_is_down_is_named_when_the_lock_ends(void **state) {
  (void)state;
  running self = begin("-t 2s -w 60s run job -- HELD");
  eventually(farm_count(&three, "job", NULL) == 3);
  farm_kill(&three, 0);
  farm_kill(&three, 1);
  until_told(&self, "the lock has ended, and the command still runs: ");
  let_go();
  assert_status(wait_for(&self), 75);
  assert_contains(told, three.nodes[0].address);
  assert_contains(told, three.nodes[1].address);
  assert_null(strstr(told, three.nodes[2].address));
  farm_restart(&three, 0);
  farm_restart(&three, 1);
}

static void a_command_that_is_stuck_holds_no_longer_than_it_may(void **state) {
  (void)state;
  running self = begin("-t 1s --max-hold 1s -w 60s run job -- HELD");
  until_told(&self, "the lock has ended, and the command still runs: ");
  let_go();
  assert_status(wait_for(&self), 75);
  assert_contains(told, "the lock has ended, and the command still runs: ");
}

static void a_signal_is_handed_on_and_the_lock_given_back(void **state) {
  (void)state;
  running self = begin("run job -- ENDLESS");
  until_told(&self, "started");
  eventually(farm_count(&three, "job", NULL) == 3);
  (void)kill(self.pid, SIGINT); /* from a terminal the command would have it as well */
  (void)poll(NULL, 0, 50);
  assert_int_equal(farm_count(&three, "job", NULL), 3);
  (void)kill(self.pid, SIGTERM);
  assert_status(wait_for(&self), 128 + SIGTERM);
  assert_int_equal(farm_count(&three, "job", NULL), 0);
}

static void a_signal_ends_the_waiting_and_leaves_nothing(void **state) {
  (void)state;
  take_by_hand("job");
  running self = begin("-w 600s run job -- echo ran");
  eventually(farm_calls(&three, 0, "set") >= 2);
  (void)kill(self.pid, SIGTERM);
  assert_status(wait_for(&self), 128 + SIGTERM);
  assert_int_equal(farm_count(&three, "job", "somebody"), 3);
}

static void block_all_signals(void) {
  sigset_t all;
  (void)sigfillset(&all);
  (void)sigprocmask(SIG_SETMASK, &all, NULL);
}

/* Whoever started the tool has left them blocked. */
static void signals_that_were_blocked_arrive_and_stay_blocked_for_the_command(void **state) {
  (void)state;
  running self = begin_after(block_all_signals, "run job -- grep SigBlk /proc/self/status");
  assert_status(wait_for(&self), 0);
  assert_contains(told, "SigBlk:\tfffffffe7ffb"); /* All but those that nobody can block. */
  take_by_hand("job");
  self = begin_after(block_all_signals, "-w 600s run job -- echo ran");
  eventually(farm_calls(&three, 0, "set") >= 2);
  (void)kill(self.pid, SIGTERM);
  assert_status(wait_for(&self), 128 + SIGTERM);
}

static void hang_up_is_default(void) {
  (void)signal(SIGHUP,
               SIG_DFL); /* nohup(1) ignores it, and the tool hands on what is not ignored. */
}

static void a_signal_of_the_users_reaches_the_command_and_ends_no_lock(void **state) {
  static const int numbers[] = {SIGUSR1, SIGUSR2, SIGHUP};
  (void)state;
  for (unsigned i = 0; i < 3; i++) {
    running self = begin_after(hang_up_is_default, "run job -- ENDLESS");
    until_told(&self, "started");
    eventually(farm_count(&three, "job", NULL) == 3);
    (void)kill(self.pid, numbers[i]);
    assert_status(wait_for(&self), 128 + numbers[i]);
    assert_int_equal(farm_count(&three, "job", NULL), 0);
  }
}

#define SHOW_IGNORED "grep SigIgn: /proc/self/status"

/* Returns true if the command SHOW_IGNORED ignores the signal. */
static bool is_ignored(int number) {
  const char *mask = strstr(told, "SigIgn:");
  assert_non_null(mask);
  return (strtoull(mask + strlen("SigIgn:"), NULL, 16) >> (number - 1) & 1) != 0;
}

static void hang_up_is_ignored(void) {
  (void)signal(SIGHUP, SIG_IGN);
}

/* As under nohup(1). */
static void ignored_signal_stays_ignored(void **state) {
  (void)state;
  assert_status(run_after(hang_up_is_ignored, "run job -- " SHOW_IGNORED), 0);
  assert_true(is_ignored(SIGHUP));
}

static void close_other_descriptors(void) {
  for (int fd = STDERR_FILENO + 1; fd < 1024; fd++) {
    (void)close(fd);
  }
}

static void command_inherits_no_descriptor_of_the_tool(void **state) {
  (void)state;
  running self = begin_after(close_other_descriptors, "run job -- ls /proc/self/fd");
  assert_status(wait_for(&self), 0);
  assert_string_equal(told, "0\n1\n2\n3\n"); /* the last one is the directory */
}

static void broken_pipe_is_default(void) {
  (void)signal(SIGPIPE, SIG_DFL);
}

/* The tool ignores SIGPIPE, and `yes | head` in its command would never end. */
static void command_does_not_inherit_that_broken_pipes_are_ignored(void **state) {
  (void)state;
  assert_status(run_after(broken_pipe_is_default, "run job -- " SHOW_IGNORED), 0);
  assert_false(is_ignored(SIGPIPE));
}

/* run ... 2>&1 | head: nobody reads what is told, and the command goes on. */
static void a_reader_that_has_gone_does_not_end_the_tool_before_the_command(void **state) {
  (void)state;
  running self = begin("-t 2s -w 60s run job -- HELD");
  eventually(farm_count(&three, "job", NULL) == 3);
  (void)close(self.output);
  self.output = open("/dev/null", O_RDONLY | O_CLOEXEC);
  take_by_hand("job");
  unsigned before = scripts();
  eventually(scripts() > before);
  let_go();
  assert_status(wait_for(&self), 75);
}

static void close_standard_descriptors(void) {
  for (int fd = 0; fd <= STDERR_FILENO; fd++) {
    (void)close(fd);
  }
}

/* The connection to a node would be the standard error otherwise. */
static void messages_of_a_tool_without_standard_descriptors_reach_no_node(void **state) {
  (void)state;
  for (unsigned i = 0; i < 3; i++) {
    (void)farm_command(&three, i, "CONFIG", "RESETSTAT", (char *)NULL);
  }
  running self = begin_after(close_standard_descriptors, "-t 2s -w 60s run job -- HELD");
  eventually(farm_count(&three, "job", NULL) == 3);
  for (int fd = 0; fd <= STDERR_FILENO; fd++) {
    char path[64];
    char target[64] = "";
    (void)snprintf(path, sizeof path, "/proc/%d/fd/%d", (int)self.pid, fd);
    assert_true(readlink(path, target, sizeof target - 1) > 0);
    assert_string_equal(target, "/dev/null");
  }
  take_by_hand("job");
  unsigned before = scripts();
  eventually(scripts() > before);
  let_go();
  assert_status(wait_for(&self), 75);
  for (unsigned i = 0; i < 3; i++) {
    const char *errors = farm_command(&three, i, "INFO", "errorstats", (char *)NULL);
    assert_null(strstr(errors, "errorstat_ERR"));
  }
}

static void fill_the_output(void) {
  (void)dup2(open("/dev/full", O_WRONLY), STDOUT_FILENO);
}

static void answers_that_cannot_be_written_are_no_success(void **state) {
  (void)state;
  assert_status(run_after(fill_the_output, "nodes"), 71);
  assert_contains(told, "could not be written");
}

/* As env(1) and flock(1) do. */
static void a_script_without_a_first_line_is_run_by_a_shell(void **state) {
  (void)state;
  char arguments[512];
  char path[300];
  (void)snprintf(path, sizeof path, "%s/script", three.scratch.path);
  FILE *script = fopen(path, "we");
  assert_non_null(script);
  (void)fputs("echo script $1; exit 7\n", script);
  (void)fclose(script);
  assert_int_equal(chmod(path, 0700), 0);
  (void)snprintf(arguments, sizeof arguments, "run job -- %s word", path);
  assert_status(run(arguments), 7);
  assert_string_equal(told, "script word\n");
}

static void too_few_nodes_are_told_by_name(void **state) {
  (void)state;
  farm_kill(&three, 0);
  farm_kill(&three, 1);
  assert_status(run("-w 0 run job -- echo ran"), 69);
  assert_contains(told, three.nodes[0].address);
  assert_null(strstr(told, "ran\n"));
  farm_restart(&three, 0);
  farm_restart(&three, 1);
}

static void a_quorum_of_all_nodes_wants_all_of_them(void **state) {
  (void)state;
  assert_status(run("--quorum 3 run job -- true"), 0);
  farm_kill(&three, 0);
  assert_status(run("-w 0 run job -- true"), 0);
  assert_status(run("--quorum 3 -w 0 run job -- echo ran"), 69);
  assert_contains(told, "3 are needed");
  assert_null(strstr(told, "ran\n"));
  farm_restart(&three, 0);
}

static void a_command_that_is_not_there_is_told_and_leaves_no_lock(void **state) {
  (void)state;
  assert_status(run("run job -- no-such-command-here"), 127);
  assert_contains(told, "no-such-command-here");
  assert_status(run("run job -- /"), 126);
  assert_int_equal(farm_count(&three, "job", NULL), 0);
}

static void nodes_shows_what_each_node_answers(void **state) {
  (void)state;
  assert_status(run("nodes"), 0);
  for (unsigned i = 0; i < 3; i++) {
    char line[64];
    (void)snprintf(line, sizeof line, "%s\tgranted\t", three.nodes[i].address);
    assert_contains(told, line);
    assert_string_equal(farm_command(&three, i, "DBSIZE", (char *)NULL), "0");
  }
  farm_kill(&three, 2);
  assert_status(run("nodes"), 0);
  assert_contains(told, "\terror\t");
  farm_restart(&three, 2);
}

/* "unknown", and no word more. */
static void nodes_says_why_a_node_that_hangs_has_not_granted(void **state) {
  (void)state;
  char line[96];
  farm_stop(&three, 2);
  assert_status(run("nodes"), 0);
  farm_continue(&three, 2);
  (void)snprintf(line, sizeof line, "%s\tunknown\tno answer in time\n", three.nodes[2].address);
  assert_contains(told, line);
}

static void the_doctor_says_what_is_wrong_and_fails_for_an_error(void **state) {
  (void)state;
  char line[96];
  for (unsigned i = 0; i < 3; i++) {
    (void)farm_command(&three, i, "CONFIG", "SET", "appendonly", "yes", (char *)NULL);
  }
  assert_status(run("doctor"), 0);
  assert_string_equal(told, "nothing is wrong with the 3 nodes\n");
  (void)farm_command(&three, 1, "SET", "job", "of a client that has lost it", (char *)NULL);
  (void)farm_command(&three, 1, "SET", "lost", "0123456789abcdef0123456789abcdef01234567",
                     (char *)NULL);
  assert_status(run("doctor job"), 0);
  assert_status(run("--keys doctor job"), 0);
  (void)snprintf(line, sizeof line, "warning\tendless_keys\t%s holds 1 key",
                 three.nodes[1].address);
  assert_int_equal(strncmp(told, line, strlen(line)), 0);
  farm_kill(&three, 2);
  assert_status(run("doctor"), 1);
  (void)snprintf(line, sizeof line, "error\tdown\t%s did not answer: ", three.nodes[2].address);
  assert_int_equal(strncmp(told, line, strlen(line)), 0);
  farm_kill(&three, 1);
  assert_status(run("doctor"), 69);
  assert_contains(told, "only 1 of 3 nodes let themselves be examined");
  farm_restart(&three, 1);
  farm_restart(&three, 2);
  for (unsigned i = 0; i < 3; i++) {
    (void)farm_command(&three, i, "CONFIG", "SET", "appendonly", "no", (char *)NULL);
  }
  assert_status(run_after(fill_the_output, "doctor"), 71);
}

static void mistakes_are_told_before_anything_is_done(void **state) {
  (void)state;
  static const struct {
    const char *arguments;
    const char *told;
  } cases[] = {
      {"", "no verb; there are run nodes doctor"},
      {"steal job", "unknown verb 'steal'"},
      {"run job", "run wants RESOURCE [--] COMMAND"},
      {"run job --", "run wants RESOURCE [--] COMMAND"},
      {"run -- true", "run wants RESOURCE [--] COMMAND"}, /* "$JOB" without its quotes */
      {"-n a:b:c nodes", "node 4: "},
      {"nodes all", "nodes takes no operand 'all'"},
      {"-t 10 run job true", "not a time such as 500ms or 10s"},
      {"-t 0 run job true", "must be more than 0"},
      {"-t 9000h run job true", "not a time"},
      {"-w -1s run job true", "not a time"},
      {"--quorum 0 run job true", "not a number of nodes from 1 to 32: '0'"},
      {"--quorum two run job true", "not a number of nodes from 1 to 32: 'two'"},
      {"--quorum 1 run job true", "quorum must be from a majority of its nodes to all of them"},
      {"--quorum 4 run job true", "quorum must be from a majority of its nodes to all of them"},
      {"-E 256 run job true", "not an exit status"},
      {"-n 127.0.0.1:x run job true", "port"},
      {"-x run job true", "unknown option"},
      {"-t", "a value is missing"},
  };
  for (unsigned i = 0; i < sizeof cases / sizeof cases[0]; i++) {
    assert_status(run(cases[i].arguments), 64);
    assert_contains(told, cases[i].told);
    assert_null(strstr(told, "secret"));
  }
  assert_status(run("--help"), 0);
  assert_contains(told, "usage: redlock");
  assert_status(run("--version"), 0);
  assert_contains(told, REDLOCK_VERSION);
}

/* "$JOB" that is not set: all such jobs would share a lock. */
static void an_empty_resource_is_a_mistake(void **state) {
  (void)state;
  char *argv[] = {tool,           (char *)"-n", three.nodes[0].address, (char *)"run", (char *)"",
                  (char *)"true", NULL};
  running self = {.pid = fork(), .output = open("/dev/null", O_RDONLY | O_CLOEXEC)};
  if (self.pid == 0) {
    (void)execv(tool, argv);
    _exit(99);
  }
  assert_status(wait_for(&self), 64);
}

static void nodes_come_from_the_environment(void **state) {
  (void)state;
  char value[128];
  (void)snprintf(value, sizeof value, "%s %s\r\n%s", three.nodes[0].address, three.nodes[1].address,
                 three.nodes[2].address);
  static const char *const commands[] = {"unset REDLOCK_NODES; exec \"$0\" nodes",
                                         "REDLOCK_NODES=' ' exec \"$0\" nodes",
                                         "REDLOCK_NODES=\"$1\" exec \"$0\" nodes"};
  for (unsigned i = 0; i < 3; i++) {
    int ends[2];
    assert_int_equal(pipe2(ends, O_CLOEXEC), 0);
    running self = {.pid = fork(), .output = ends[0]};
    if (self.pid == 0) {
      (void)dup2(ends[1], STDOUT_FILENO);
      (void)dup2(ends[1], STDERR_FILENO);
      (void)execl("/bin/sh", "sh", "-c", commands[i], tool, value, (char *)NULL);
      _exit(99);
    }
    (void)close(ends[1]);
    assert_status(wait_for(&self), i < 2 ? 64 : 0);
  }
  assert_contains(told, three.nodes[2].address);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test_setup(a_command_runs_under_the_lock_and_its_status_is_ours, three_reset),
      cmocka_unit_test_setup(a_taken_lock_runs_nothing, three_reset),
      cmocka_unit_test_setup(it_waits_for_the_lock_as_long_as_it_is_told, three_reset),
      cmocka_unit_test_setup(the_lease_is_extended_while_the_command_runs, three_reset),
      cmocka_unit_test_setup(a_lock_that_ends_under_the_command_is_told_and_changes_success,
                             three_reset),
      cmocka_unit_test_setup(command_that_fails_keeps_its_status_though_the_lock_has_ended,
                             three_reset),
      cmocka_unit_test_setup(nodes_that_hang_end_the_lock_and_not_the_command, three_reset),
      cmocka_unit_test_setup(a_node_that_is_down_is_named_when_the_lock_ends, three_reset),
      cmocka_unit_test_setup(a_command_that_is_stuck_holds_no_longer_than_it_may, three_reset),
      cmocka_unit_test_setup(a_signal_is_handed_on_and_the_lock_given_back, three_reset),
      cmocka_unit_test_setup(a_signal_ends_the_waiting_and_leaves_nothing, three_reset),
      cmocka_unit_test_setup(signals_that_were_blocked_arrive_and_stay_blocked_for_the_command,
                             three_reset),
      cmocka_unit_test_setup(a_signal_of_the_users_reaches_the_command_and_ends_no_lock,
                             three_reset),
      cmocka_unit_test_setup(ignored_signal_stays_ignored, three_reset),
      cmocka_unit_test_setup(command_inherits_no_descriptor_of_the_tool, three_reset),
      cmocka_unit_test_setup(command_does_not_inherit_that_broken_pipes_are_ignored, three_reset),
      cmocka_unit_test_setup(a_reader_that_has_gone_does_not_end_the_tool_before_the_command,
                             three_reset),
      cmocka_unit_test_setup(messages_of_a_tool_without_standard_descriptors_reach_no_node,
                             three_reset),
      cmocka_unit_test_setup(answers_that_cannot_be_written_are_no_success, three_reset),
      cmocka_unit_test_setup(a_script_without_a_first_line_is_run_by_a_shell, three_reset),
      cmocka_unit_test_setup(an_empty_resource_is_a_mistake, three_reset),
      cmocka_unit_test_setup(too_few_nodes_are_told_by_name, three_reset),
      cmocka_unit_test_setup(a_quorum_of_all_nodes_wants_all_of_them, three_reset),
      cmocka_unit_test_setup(a_command_that_is_not_there_is_told_and_leaves_no_lock, three_reset),
      cmocka_unit_test_setup(nodes_shows_what_each_node_answers, three_reset),
      cmocka_unit_test_setup(nodes_says_why_a_node_that_hangs_has_not_granted, three_reset),
      cmocka_unit_test_setup(the_doctor_says_what_is_wrong_and_fails_for_an_error, three_reset),
      cmocka_unit_test_setup(mistakes_are_told_before_anything_is_done, three_reset),
      cmocka_unit_test_setup(nodes_come_from_the_environment, three_reset),
  };
  return cmocka_run_group_tests(tests, start, three_end);
}
