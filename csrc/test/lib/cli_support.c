/*
 * Runs redlock(1) with the three nodes of support.h.
 *
 * SPDX-License-Identifier: MIT
 */
#include "cli_support.h"

#include <fcntl.h>
#include <sys/stat.h>

#define ARGUMENTS_MAX 32

/* Commands, by a word for each. HELD and FAILING end when the test calls cli_let_go(). */
static struct {
  const char *word;
  const char *text; /* of the script; "GATE" at its end is the pipe of cli_let_go() */
  char path[SCRATCH_PATH_MAX + 16];
} commands[] = {
    {"HELD", "read word <GATE", ""},
    {"FAILING", "read word <GATE; exit 3", ""},
    {"ENDLESS", "echo started; exec sleep 600", ""},
    {"SCRIPT", "echo script $1; exit 7", ""}, /* without "#!" */
};
#define COMMANDS (sizeof commands / sizeof commands[0])

static char gate[SCRATCH_PATH_MAX + 8];
tool_run cli_last; /* the run that has ended last */

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

int cli_start(void **state) {
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
tool_run cli_begin_after(void (*prepare)(void), const char *arguments) {
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

tool_run cli_begin(const char *arguments) {
  return cli_begin_after(NULL, arguments);
}

void cli_finish(tool_run *run, int expected) {
  int status = tool_wait(run);
  cli_last = *run;
  tool_check_status(&cli_last, status, expected);
}

void cli_check_after(void (*prepare)(void), const char *arguments, int expected) {
  tool_run run = cli_begin_after(prepare, arguments);
  cli_finish(&run, expected);
}

void cli_check(const char *arguments, int expected) {
  cli_check_after(NULL, arguments, expected);
}

/* Ends the command HELD or FAILING. */
void cli_let_go(void) {
  int fd = -1;
  eventually((fd = open(gate, O_WRONLY | O_NONBLOCK | O_CLOEXEC)) >= 0);
  assert_int_equal(write(fd, "go\n", 3), 3);
  (void)close(fd);
}
