/*
 * The command line of redlock(1).
 *
 * SPDX-License-Identifier: MIT
 */
#include "cli_support.h"
#include "sentinel.h"

TEST(mistakes_are_reported) {
  static const struct {
    const char *arguments;
    const char *message;
  } cases[] = {
      {"", "no verb; use one of run lead acquire"},
      {"steal job", "unknown verb 'steal'"},
      {"run job", "usage: redlock run RESOURCE [--] COMMAND"},
      {"run job --", "usage: redlock run RESOURCE [--] COMMAND"},
      {"run -- true", "no operand before '--'; usage: redlock run RESOURCE"}, /* $JOB is unset */
      {"run -- -x true", "no operand before '--'; usage: redlock run RESOURCE"},
      {"run -x true", "unknown option '-x'; see redlock run --help"},
      {"run --lock-x true", "unknown option '--lock-x'; see redlock run --help"},
      {"doctor -- -job", "invalid resource '-job': it must not begin with '-'"},
      {"run - true", "invalid resource '-': it must not begin with '-'"},
      {"run --help true", "unexpected operand 'true' beside this option"}, /* $JOB */
      {"run -V true now", "unexpected operand 'true' beside this option"},
      {"run --help -- true", "no operand before '--'"},
      {"-- run job true", "no verb before '--'"},
      {"--wai 1s run job true", "unknown option '--wai'; see redlock --help"},
      {"run --guard=yes job true", "option '--guard' takes no value"},
      {"nodes -w 1s", "option '--wait' has no meaning for this verb; see redlock nodes --help"},
      {"--keys run job true", "option '--keys' has no meaning for this verb"},
      {"run job -w", "missing value after '-w'"},
      {"run job --wait", "missing value after '--wait'"},
      {"help steal", "unknown verb 'steal'"},
      {"--nodes-file /none run job true", "cannot read the nodes from /none: No such file"},
      {"--nodes-file /dev/null run job true", "/dev/null names no node"},
      {"--nodes-file /dev/zero run job true", "/dev/zero must be a text of at most 65536 bytes"},
      {"--nodes-file / run job true", "cannot read the nodes from /: Is a directory"},
      {"-n a:b:c nodes", "node 4: "},
      {"nodes all", "unexpected operand 'all'"},
      {"doctor job more", "unexpected operand 'more'"},
      {"bootstrap", "add --guard"},
      {"-t 10 run job true", "invalid value '10' for --ttl: use a number with ms, s, m, h or d"},
      {"-t 0 run job true", "invalid value '0' for --ttl: it must be more than 0"},
      {"-t 1s5 run job true", "invalid value '1s5' for --ttl: use a number with ms, s, m, h or d"},
      {"-t .5s run job true", "invalid value '.5s' for --ttl: use a number with ms, s, m, h or d"},
      {"-t 5.s run job true", "invalid value '5.s' for --ttl: use a number with ms, s, m, h or d"},
      {"-t inf run job true", "invalid value 'inf' for --ttl: use a number with ms, s, m, h or d"},
      {"-t 99999h run job true", "invalid value '99999h' for --ttl: it is more than a year (366d)"},
      {"-t 366.1d run job true", "invalid value '366.1d' for --ttl: it is more than a year (366d)"},
      {"-t 99999999999999999999ms run job true", "it is more than a year (366d)"},
      {"-t 0.0001ms run job true", "invalid value '0.0001ms' for --ttl: it must be more than 0"},
      {"-t 1ms run job true", "invalid value '1ms' for --ttl: a ttl must be at least 4ms"},
      {"-w -1s run job true", "invalid value '-1s' for --wait: use a number"},
      {"--quorum 0 run job true", "invalid value '0' for --quorum: it must be from 1 to 32"},
      {"--quorum two run job true", "invalid value 'two' for --quorum"},
      {"--quorum 1 run job true", "quorum must be from a majority of its nodes to all of them"},
      {"--quorum 4 run job true", "quorum must be from a majority of its nodes to all of them"},
      {"-E 256 run job true",
       "invalid value '256' for --conflict-exit-code: it must be from 0 to 255"},
      {"-n 127.0.0.1:x run job true", "port"},
      {"-n redis://:a,b@host run job true",
       "the host is missing; write a comma in a password as %2C"},
      {"-n redis://u:1,b@host:x run job true", "; write a comma in a password as %2C"},
      {"steal\033[2J job", "unknown verb 'steal?[2J'"},
      {"--node= run job true", "--node names no node"}, /* an unset variable */
      {"-n , run job true", "--node names no node"},
      {"-x run job true", "unknown option '-x'"},
      {"-t", "missing value after '-t'"},
      {"run --strict --on-lost=warn job -- true", "--strict and --on-lost=warn exclude"},
      {"run --on-lost kill job -- true", "invalid value 'kill' for --on-lost: use term or warn"},
      {"run --max-hold 1s --hold-for 2s job -- true", "--hold-for is longer than --max-hold"},
      {"-t 10s --guard run --hold-for 60s job -- true", "hold_at_least 60000 ms"},
      {"run --label a\tb job -- true", "label"},
      {"run --hold-for 0 job -- true", "invalid value '0' for --hold-for: it must be more than 0"},
      {"nodes --strict", "option '--strict' has no meaning for this verb"},
      {"--fence lead job true", "--fence"},
      {"--hold-for 1s lead job true", "--hold-for"},
      {"--on-lost=warn lead job true", "--on-lost"},
      {"--json lead job true", "--json"},
      {"lead job", "usage: redlock lead"},
      {"lead", "usage: redlock lead"},
  };
  for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
    cli_check(cases[i].arguments, 64);
    assert_contains(cli_last.text, cases[i].message);
  }
  assert_int_equal(farm_count(&three, "job", NULL), 0);
}

TEST(message_hides_addresses) {
  static const char *const cases[] = {
      "redis://:hidden@host run job true", "--nod=redis://:hidden@host run job true",
      "nodes redis://:hidden@host", "-n redis://:hid,hidden@host nodes",
      "-t redis://:hidden@host run job true"};
  for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
    cli_check(cases[i], 64);
    assert_null(strstr(cli_last.text, "hidden"));
  }
}

TEST(message_hides_the_text_of_a_lock) {
  static const char *const cases[] = {
      "redlock1.hidden", "release job redlock1.hidden", "-q extend redlock1.hidden redlock1.hidden",
      "run -w redlock2.hidden job true", "help redlock-redlock2.hidden"};
  for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
    cli_check(cases[i], 64);
    assert_null(strstr(cli_last.text, "hidden"));
  }
}

TEST(options_stand_before_and_after_the_verb) {
  static const struct {
    const char *arguments;
    const char *output;
  } cases[] = {
      {"run -w5s -E9 job echo ran", "ran\n"},
      {"run job -w 5s -- echo -w 6s", "-w 6s\n"},
      {"-w 5s run --wait=6s job -t 5s echo --ttl 1s", "--ttl 1s\n"},
      {"run job echo -- -n", "-- -n\n"},
      {"run job -- echo -- -n", "-- -n\n"},
      {"run -w inf job -- echo ran", "ran\n"},
      {"run -w 0.5s -t 0.5m job -- echo ran", "ran\n"},
      {"run -w 0.0000001s -t 1.5d job -- echo ran", "ran\n"},
      {"doctor --keys job", ""},
  };
  for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
    cli_check(cases[i].arguments, 0);
    if (cases[i].output[0] != '\0') {
      assert_string_equal(cli_last.text, cases[i].output);
    }
  }
}

TEST(help_shows_the_options_of_the_verb) {
  static const struct {
    const char *arguments;
    const char *shown, *hidden;
  } cases[] = {
      {"--help", "usage: redlock [option]... VERB", "usage: redlock [option]... run"},
      {"help", "Waiting for the lock (run", "usage: redlock [option]... run"},
      {"run --help", "usage: redlock [option]... run [option]... RESOURCE", "--keys"},
      {"help run", "Examples:", "--tls-ca"},
      {"-h run", "usage: redlock [option]... run [option]... RESOURCE", "--keys"},
      {"help doctor", "usage: redlock [option]... doctor [option]... [RESOURCE]", "--wait"},
      {"--version", "redlock " REDLOCK_VERSION "\n", "usage"},
  };
  for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
    cli_check(cases[i].arguments, 0);
    assert_contains(cli_last.text, cases[i].shown);
    assert_null(strstr(cli_last.text, cases[i].hidden));
  }
}

TEST(shell_variables_are_read) {
  static const struct {
    const char *command;
    int status;
    const char *message; /* or NULL */
  } cases[] = {
      {"unset REDLOCK_NODES; exec \"$0\" nodes", 64, NULL},
      {"REDLOCK_NODES=' ' exec \"$0\" nodes", 64, NULL},
      {"REDLOCK_NODES=\"$1 $2\r\n$3\" exec \"$0\" nodes", 0, NULL},
      {"REDLOCK_NODES=\"$1,$2, $3,\" exec \"$0\" nodes", 0, NULL},
      {"exec \"$0\" -n \"$1,$2 $3\" nodes", 0, NULL},
      {"exec \"$0\" nodes -n \"$1\" --node=\"$2,\" -n\"$3\"", 0, NULL},
      {"printf '#a b\\n%s #x\\n\\n %s, %s' $1 $2 $3 | exec \"$0\" nodes --nodes-file /dev/stdin", 0,
       NULL},
      /* A byte order mark makes no bad address: a lock needs the only node. */
      {"printf '\\357\\273\\277%s' $3 | exec \"$0\" nodes --nodes-file /dev/stdin", 0, NULL},
      {"exec \"$0\" -n $1 run \"$JOB\" true", 64,
       "invalid resource '': RESOURCE is empty"},                         /* $JOB is unset */
      {"REDLOCK_NODES=\"$1\" exec \"$0\" -n \"$NODES\" nodes", 64, NULL}, /* $NODES is unset */
      {"exec \"$0\" -n $1 run $JOB -- true", 64, NULL},
  };
  for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
    cli_check_shell(cases[i].command, cases[i].status);
    if (cases[i].message != NULL) {
      assert_contains(cli_last.text, cases[i].message);
    }
    if (cases[i].status == 0) {
      assert_contains(cli_last.text, three.nodes[2].address);
    }
  }
}

/* The commas of a list of Sentinels separate no nodes. No process listens on the first port. */
TEST(list_of_sentinels_is_one_node) {
  sentinel watch;
  char command[160];
  sentinel_start(&watch, three.scratch.path, three.nodes[0].port, NULL);
  (void)snprintf(command, sizeof command,
                 "REDLOCK_NODES=sentinel://%s/mymaster,x exec \"$0\" nodes", watch.address);
  cli_check_shell(command, 64);
  (void)snprintf(command, sizeof command,
                 "exec \"$0\" --node-timeout 10s -n \"sentinel://%s,[::1]:1,%s1/mymaster\" nodes",
                 watch.address, "127.0.0.1:");
  cli_check_shell(command, 69);
  assert_contains(cli_last.text, ",[::1]:1,127.0.0.1:1/mymaster");
  assert_contains(cli_last.text, "too few Sentinels name a master: ");
  (void)snprintf(command, sizeof command,
                 "exec \"$0\" --node-timeout 10s -n sentinel://%s/mymaster nodes", watch.address);
  cli_check_shell(command, 0);
  assert_contains(cli_last.text, "sentinel://127.0.0.1:");
  sentinel_end(&watch);
}

int main(void) {
  return tests_run(&(tests_fixture){.start = cli_start, .before = three_reset, .end = three_end});
}
