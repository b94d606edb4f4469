/*
 * redlock(1) in the places where users run it: a terminal, cron, a service, a pipe.
 *
 * SPDX-License-Identifier: MIT
 */
#include "shell.h"

#include <fcntl.h>

/* ------------------------------------------------------------------------------ a terminal */

#define LOOP(command)                                                                              \
  "for host in one two three; do echo start $host; " command "; done; echo end of the loop"

/* Types |keys| when |run|, a loop in bash, is ready. Checks that the loop ends by |number|. */
static void interrupt(tool_run *run, const char *keys, int number) {
  tool_type(run, keys);
  shell_finish(run, 128 + number);
  assert_int_equal(tool_signal(&shell_last), number);
  assert_null(strstr(shell_last.text, "start two"));
  assert_null(strstr(shell_last.text, "end of the loop"));
}

TEST(interrupt_ends_a_loop_of_the_shell) {
  tool_run run = shell_begin_on_terminal(LOOP("$R run job -- sleep 600"));
  tool_until_output(&run, "start one");
  shell_until_held("job");
  interrupt(&run, "\x03", SIGINT);
  assert_int_equal(farm_count(&three, "job", NULL), 0);
}

TEST(interrupt_of_the_wait_ends_a_loop_of_the_shell) {
  shell_take("job");
  unsigned before = farm_calls(&three, 0, "set");
  tool_run run = shell_begin_on_terminal(LOOP("$R -w 600s run job -- echo ran"));
  eventually(farm_calls(&three, 0, "set") > before);
  interrupt(&run, "\x03", SIGINT);
  assert_null(strstr(shell_last.text, "ran\r"));
}

/* Returns the number that the command prints behind "pid=". The terminal echoes its script. */
static pid_t until_pid(tool_run *run) {
  long pid = 0;
  while (pid == 0) {
    const char *at = run->text;
    tool_until_output(run, "pid=");
    (void)tool_read(run, 2);
    while (pid == 0 && (at = strstr(at, "pid=")) != NULL && strpbrk(at, "\r\n") != NULL) {
      at += strlen("pid=");
      pid = strtol(at, NULL, 10);
    }
  }
  return (pid_t)pid;
}

/*
 * A shell with job control: Ctrl-Z, fg, input from the terminal, Ctrl-D. The shell takes the
 * terminal as soon as the tool has stopped. On a busy machine the command may still be about to
 * stop, and would read the next line.
 */
TEST(command_stops_and_continues_with_its_job) {
  tool_run run = tool_start_on_terminal(
      NULL, (const char *[]){"/bin/bash", "--norc", "--noprofile", "-i", NULL});
  tool_type(&run, "PS1=; $R run job -- sh -c 'echo pid=$$; exec cat'\n");
  shell_until_held("job");
  pid_t command = until_pid(&run);
  tool_type(&run, "first\n");
  tool_until_output(&run, "first\r\nfirst");
  tool_type(&run, "\x1a");
  tool_until_output(&run, "Stopped");
  eventually(process_state(command) == 'T');
  tool_type(&run, "echo $((40+2)); fg\n");
  tool_until_output(&run, "42\r\n$R run job -- sh -c 'echo pid=$$; exec cat'\r\n"); /* of fg */
  tool_type(&run, "second\n");
  tool_until_output(&run, "second\r\nsecond");
  tool_type(&run, "\x04");
  eventually(farm_count(&three, "job", NULL) == 0);
  tool_type(&run, "echo status=$?; exit 6\n");
  shell_finish(&run, 6);
  assert_contains(shell_last.text, "status=0");
}

TEST(closed_terminal_ends_the_command) {
  tool_run run = shell_begin_on_terminal("exec $R run job -- sleep 600");
  shell_until_held("job");
  (void)close(run.output);
  run.output = open("/dev/null", O_RDONLY | O_CLOEXEC);
  shell_finish(&run, 128 + SIGHUP);
  eventually(farm_count(&three, "job", NULL) == 0);
}

/* --------------------------------------------------------------------- input and descriptors */

TEST(command_reads_the_input_of_the_caller) {
  shell_check("printf 'a\\nb\\n' | { $R run job -- head -c 2; cat; }", 0);
  assert_string_equal(shell_last.text, "a\nb\n");
  shell_check(
      "echo data >$DIR/file; $R run job -- sh -c 'read -r word <&7; echo $word' 7<$DIR/file", 0);
  assert_string_equal(shell_last.text, "data\n");
}

/* A pipe or a terminal shares its flags with every process that has it. */
TEST(tool_changes_no_flags_of_descriptors) {
  shell_check(
      "flags='grep flags: /proc/self/fdinfo/0 /proc/self/fdinfo/1 /proc/self/fdinfo/2'; "
      "sleep 0 | { $flags | cat; $R run job -- $flags | cat; } | sort | uniq -c | grep -c ' 2 '",
      0);
  assert_string_equal(shell_last.text, "3\n");
}

/* ----------------------------------------------------------------------------------- scripts */

/* As docs/cli.md and redlock(1) show it. */
TEST(script_locks_itself) {
  static const char script[] =
      "export PATH=${TOOL%/*}:$PATH; printf '%s\\n' '#!/bin/sh' "
      "'[ \"$REDLOCK_RESOURCE\" = backup ] || exec redlock --node-timeout 5s -w 0 run backup -- "
      "\"$0\" \"$@\"' 'echo \"locked with $2\"' >$DIR/script; chmod +x $DIR/script; "
      "$DIR/script a 'b  c'";
  shell_check(script, 0);
  assert_string_equal(shell_last.text, "locked with b  c\n");
  shell_take("backup");
  shell_check(script, 1);
  assert_contains(shell_last.text, "'backup' is taken");
}

/* ----------------------------------------------------------------------------------- cron */

/* The lines of a crontab. The tool is found by PATH, as in production. */
#define CRONTAB                                                                                    \
  "printf '%s\\n' 'MAILTO=\"\"' \"PATH=${TOOL%/*}:/usr/bin:/bin\" "                                \
  "\"REDLOCK_NODES=\\\"$REDLOCK_NODES\\\"\" "

/*
 * Starts the real cron in a mount namespace, where its directories are empty. Its jobs "@reboot"
 * run at once.
 */
#define CRON                                                                                       \
  "cron=$(PATH=$PATH:/usr/sbin:/sbin command -v cron) && [ $(id -u) = 0 ] && "                     \
  "unshare --mount true || exit 42; export cron; : >$DIR/results; "                                \
  "timeout 60 unshare --mount --pid --fork --kill-child --mount-proc sh -c '"                      \
  "mount --make-rprivate / && mount -t tmpfs none /run && mount -t tmpfs none /var/spool && "      \
  "mkdir -p /var/spool/cron/crontabs && { [ ! -e /etc/crontab ] || "                               \
  "mount --bind /dev/null /etc/crontab; } && { [ ! -d /etc/cron.d ] || "                           \
  "mount -t tmpfs none /etc/cron.d; } && install -m 600 $DIR/crontab "                             \
  "/var/spool/cron/crontabs/root && { $cron -f & " SHELL_UNTIL("done") "; kill $!; }'"

/* cron's own variables, without a terminal and with nothing to read. */
#define LIKE_CRON                                                                                  \
  "setsid env -i HOME=/ LOGNAME=root SHELL=/bin/sh PATH=${TOOL%/*}:/usr/bin:/bin "                 \
  "REDLOCK_NODES=\"$REDLOCK_NODES\" DIR=$DIR /bin/sh -c "

/* The crontab line of the documentation: two hosts at the same time, and the job runs once. */
#define JOB "redlock --node-timeout 5s --wait 3s --hold-for 60s -E 99 run report -- "
TEST(cron_runs_a_job_on_one_of_two_hosts) {
  static const char script[] =
      CRONTAB "\"@reboot " JOB "sh -c 'echo ran >>$DIR/results'; echo \\$? >>$DIR/results\" "
              "\"@reboot " JOB "sh -c 'echo ran >>$DIR/results'; echo \\$? >>$DIR/results\" "
              "\"@reboot until [ \\$(wc -l <$DIR/results) = 3 ] || [ ! -d $DIR ]; do sleep 0.1; "
              "done; : >$DIR/done\" >$DIR/crontab; " CRON "; sort $DIR/results";
  tool_run run = shell_begin(script);
  int status = tool_wait(&run);
  if (status == 42) {
    print_message("# cron needs root, a mount namespace and the package cron; "
                  "its environment replaces it\n");
    run = shell_begin("for host in 1 2; do " LIKE_CRON "'" JOB "echo ran; echo $?' </dev/null & "
                      "done >$DIR/results 2>/dev/null; wait; sort $DIR/results");
    status = tool_wait(&run);
  }
  tool_check_status(&run, status, 0);
  assert_string_equal(run.text, "0\n99\nran\n");
}

/* --------------------------------------------------------------------------------- a service */

static void lead_a_session(void) {
  (void)setsid();
}

/*
 * systemd stops a unit with KillMode=control-group by a TERM to each process. The command gets
 * one TERM.
 */
TEST(service_gets_one_term) {
  char script[64];
  tool_run run =
      shell_begin_after(lead_a_session, "exec $R run job -- sh -c 'trap \"echo TERM\" TERM; "
                                        ": >$DIR/ready; " SHELL_UNTIL("end") "; exit 0'");
  eventually(shell_has("ready"));
  (void)snprintf(script, sizeof script, "kill %d $(ps -o pid= --ppid %d)", (int)run.pid,
                 (int)run.pid);
  tool_run sender = shell_begin(script);
  assert_int_equal(tool_wait(&sender), 0);
  tool_until_output(&run, "TERM");
  (void)poll(NULL, 0, 300); /* for a second one */
  shell_touch("end");
  shell_finish(&run, 0);
  assert_string_equal(shell_last.text, "TERM\n");
}

int main(void) {
  return tests_run(&(tests_fixture){.start = shell_start, .before = shell_reset, .end = shell_end});
}
