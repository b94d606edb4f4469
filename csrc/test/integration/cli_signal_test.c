/*
 * Signals at redlock(1) and at its command.
 *
 * SPDX-License-Identifier: MIT
 */
#include "cli_support.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <pty.h>
#include <sys/socket.h>

static int start(void **state) {
  (void)cli_start(state);
  cli_define("SUICIDE", "ulimit -c 0; kill -$1 $$; sleep 600");
  cli_define("COUNTER", "trap 'echo got TERM' TERM; trap 'echo got INT' INT\n"
                        "trap 'echo got HUP' HUP; trap 'echo the end; exit 0' USR1\n"
                        "echo started; while :; do sleep 0.01; done");
  return 0;
}

static unsigned count_of(const char *text, const char *part) {
  unsigned count = 0;
  for (; (text = strstr(text, part)) != NULL; text += strlen(part)) {
    count++;
  }
  return count;
}

/* nohup(1) may have started the test, and a background process of a shell ignores SIGINT. */
static void restore_signals(void) {
  (void)signal(SIGHUP, SIG_DFL);
  (void)signal(SIGINT, SIG_DFL);
  (void)signal(SIGQUIT, SIG_DFL);
}

static void begin_group(void) {
  restore_signals();
  (void)setpgid(0, 0);
}

/* SIGUSR1, for the tool alone, is passed on after all signals before. */
static void end_counter(tool_run *run) {
  redlock_time until_us = redlock_now() + EVENTUALLY_US;
  while (strstr(run->text, "the end") == NULL) {
    assert_true(redlock_now() < until_us);
    (void)kill(run->pid, SIGUSR1);
    (void)tool_read(run, 100);
  }
  cli_finish(run, 0);
}

/* The Sentinels accept connections, and never answer. */
TEST(interrupt_ends_tool_at_once_while_sentinels_hang) {
  static const char *const verbs[] = {"acquire", "run", "lead", "inspect"};
  struct sockaddr_in local = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
  socklen_t size = sizeof local;
  int listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  assert_int_equal(bind(listener, (struct sockaddr *)&local, size), 0);
  assert_int_equal(listen(listener, 64), 0);
  assert_int_equal(getsockname(listener, (struct sockaddr *)&local, &size), 0);
  for (size_t i = 0; i < sizeof verbs / sizeof verbs[0]; i++) {
    char address[128];
    int port = ntohs(local.sin_port);
    (void)snprintf(address, sizeof address, "sentinel://127.0.0.1:%d,localhost:%d/mymaster", port,
                   port);
    bool starts = i == 1 || i == 2;
    const char *const words[] = {
        tool_path(), "-n",     address, "--node-timeout",       "60s", "-t",
        "300s",      verbs[i], "job",   starts ? "true" : NULL, NULL};
    tool_run run = tool_start(restore_signals, words);
    struct pollfd asked = {listener, POLLIN, 0};
    assert_int_equal(poll(&asked, 1, 30000), 1);
    redlock_time begun_us = stopwatch();
    (void)kill(run.pid, SIGINT);
    cli_finish(&run, 128 + SIGINT);
    assert_took(begun_us, 0, MS(300));
    int left;
    while ((left = accept4(listener, NULL, NULL, SOCK_CLOEXEC)) >= 0) {
      (void)close(left);
      if (poll(&asked, 1, 0) == 0) {
        break;
      }
    }
  }
  (void)close(listener);
}

TEST(signal_for_the_tool_is_passed_on_once) {
  static const int numbers[] = {SIGTERM, SIGINT, SIGHUP};
  static const char *const shown[] = {"got TERM\n", "got INT\n", "got HUP\n"};
  for (unsigned i = 0; i < 3; i++) {
    tool_run run = cli_begin_after(begin_group, "run job -- COUNTER");
    tool_until_output(&run, "started");
    (void)kill(-run.pid, SIGTERM); /* A signal for all does not hide the next one. */
    tool_until_output(&run, "got TERM\n");
    (void)poll(NULL, 0, 200);
    (void)kill(run.pid, numbers[i]);
    eventually(!tool_read(&run, 2) || count_of(run.text, shown[i]) == (i == 0 ? 2 : 1));
    end_counter(&run);
    assert_int_equal(count_of(cli_last.text, shown[i]), i == 0 ? 2 : 1);
  }
}

/* A signal for the group of the tool misses it. */
TEST(command_in_its_own_group_gets_the_signal) {
  char script[SCRATCH_PATH_MAX + 64];
  (void)snprintf(script, sizeof script, "exec setsid %s", cli_path("COUNTER"));
  cli_define("SESSION", script);
  tool_run run = cli_begin_after(begin_group, "run job -- SESSION");
  tool_until_output(&run, "started");
  (void)kill(-run.pid, SIGTERM);
  tool_until_output(&run, "got TERM\n");
  end_counter(&run);
  assert_int_equal(count_of(cli_last.text, "got TERM\n"), 1);
}

/* Writes a file of /proc/|pid| into |text|, with spaces in place of NULs. False: no process. */
static bool read_proc(pid_t pid, const char *name, char text[static 512]) {
  char path[64];
  (void)snprintf(path, sizeof path, "/proc/%d/%s", (int)pid, name);
  FILE *file = fopen(path, "re");
  if (file == NULL) {
    return false;
  }
  size_t length = fread(text, 1, 511, file);
  (void)fclose(file);
  text[length] = '\0';
  for (size_t i = 0; i < length; i++) {
    text[i] = text[i] == '\0' ? ' ' : text[i];
  }
  return true;
}

/* Returns the child of |parent| with that name, or 0. */
static pid_t child_named(pid_t parent, const char *name) {
  char children[512];
  char path[64];
  (void)snprintf(path, sizeof path, "task/%d/children", (int)parent);
  assert_true(read_proc(parent, path, children));
  char *rest = NULL;
  for (char *word = strtok_r(children, " ", &rest); word != NULL;
       word = strtok_r(NULL, " ", &rest)) {
    char comm[512];
    if (!read_proc((pid_t)atol(word), "comm", comm)) {
      continue; /* It has just ended. */
    }
    if (strcmp(comm, name) == 0) {
      return (pid_t)atol(word);
    }
  }
  return 0;
}

/*
 * pkill(1) must not hit the canary, or the tool would pass nothing on. A reader of the output must
 * not wait for it.
 */
TEST(canary_has_neither_name_nor_descriptors) {
  char line[512];
  char path[64];
  pid_t canary = 0;
  tool_run run = cli_begin("run job -- ENDLESS");
  eventually((canary = child_named(run.pid, "lock-canary\n")) != 0);
  assert_true(read_proc(canary, "cmdline", line));
  assert_null(strstr(line, "redlock"));
  (void)snprintf(path, sizeof path, "/proc/%d/fd/2", (int)canary);
  eventually(access(path, F_OK) != 0);
  (void)kill(run.pid, SIGTERM);
  cli_finish(&run, 128 + SIGTERM);
  eventually(kill(canary, 0) != 0);
}

/* Otherwise the tool would take the next signal for one that the command has got. */
TEST(signal_for_the_canary_hides_no_other) {
  static const int numbers[] = {SIGTERM, SIGKILL};
  for (size_t i = 0; i < sizeof numbers / sizeof numbers[0]; i++) {
    pid_t first = 0;
    pid_t second = 0;
    tool_run run = cli_begin("-t 30m run job -- COUNTER"); /* no extend wakes it */
    tool_until_output(&run, "started");
    eventually((first = child_named(run.pid, "lock-canary\n")) != 0);
    (void)kill(first, numbers[i]);
    eventually((second = child_named(run.pid, "lock-canary\n")) != 0 && second != first);
    (void)kill(second, SIGSTOP);
    (void)kill(run.pid, SIGTERM);
    tool_until_output(&run, "got TERM\n");
    end_counter(&run);
  }
}

/* A canary that was stopped beyond all times, as by a suspend, still sends SIGKILL. */
TEST(stopped_canary_ends_the_command_of_a_killed_tool) {
  pid_t canary = 0;
  cli_define("DEAF", "(trap 'echo got TERM' TERM; while :; do sleep 0.01; done) &\n"
                     "trap '' TERM; echo pid $$; exec sleep 600");
  tool_run run = cli_begin("run --kill-after 1s job -- DEAF");
  tool_until_output(&run, "pid ");
  eventually((canary = child_named(run.pid, "lock-canary\n")) != 0);
  (void)kill(run.pid, SIGKILL);
  tool_until_output(&run, "got TERM\n"); /* from the canary, which now looks every 50 ms */
  redlock_time stop_us = redlock_now() + REDLOCK_SECONDS / 5;
  eventually(redlock_now() >= stop_us);
  (void)kill(canary, SIGSTOP);
  eventually(redlock_now() >= stop_us + 7 * REDLOCK_SECONDS);
  (void)kill(canary, SIGCONT);
  cli_finish(&run, 128 + SIGKILL); /* reads the output until both processes are dead */
}

/* ------------------------------------------------------------------------------------ terminal */

int main(void) {
  return tests_run(&(tests_fixture){.start = start, .before = three_reset, .end = three_end});
}
