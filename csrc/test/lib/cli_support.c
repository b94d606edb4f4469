/*
 * Runs redlock(1) with the three nodes of support.h.
 *
 * SPDX-License-Identifier: MIT
 */
#include "cli_support.h"

#include <fcntl.h>
#include <sys/stat.h>

#define ARGUMENTS_MAX 32

/* Commands, by a word for each. */
static struct {
  char word[16];
  char path[SCRATCH_PATH_MAX + 16];
} commands[16];
static size_t command_count;

static char gate[SCRATCH_PATH_MAX + 8];
tool_run cli_last; /* the run that has ended last */

static void write_command(const char *word, const char *first, const char *text) {
  char *path = commands[command_count].path;
  assert_true(command_count < sizeof commands / sizeof commands[0]);
  (void)snprintf(commands[command_count].word, sizeof commands->word, "%s", word);
  (void)snprintf(path, sizeof commands->path, "%s/%s", three.scratch.path, word);
  command_count++;
  FILE *script = fopen(path, "we");
  assert_non_null(script);
  const char *pipe = strstr(text, "GATE");
  int length = pipe == NULL ? (int)strlen(text) : (int)(pipe - text);
  (void)fprintf(script, "%s%.*s%s%s\n", first, length, text, pipe == NULL ? "" : gate,
                pipe == NULL ? "" : pipe + strlen("GATE"));
  (void)fclose(script);
  assert_int_equal(chmod(path, 0700), 0);
}

void cli_define(const char *word, const char *text) {
  write_command(word, "#!/bin/sh\n", text);
}

int cli_start(void **state) {
  (void)three_start(state);
  tool_clean_environment();
  (void)snprintf(gate, sizeof gate, "%s/gate", three.scratch.path);
  assert_int_equal(mkfifo(gate, 0600), 0);
  command_count = 0;
  cli_define("HELD", "read word <GATE");
  cli_define("FAILING", "read word <GATE; exit 3");
  cli_define("ENDLESS", "echo started; exec sleep 600");
  write_command("SCRIPT", "", "echo script $1; exit 7");
  return 0;
}

const char *cli_path(const char *word) {
  for (size_t i = 0; i < command_count; i++) {
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
    argv[count++] = cli_path(word);
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

static const char *shell_script;

static void run_shell(void) {
  (void)execl("/bin/sh", "sh", "-c", shell_script, tool_path(), three.nodes[0].address,
              three.nodes[1].address, three.nodes[2].address, (char *)NULL);
}

void cli_check_shell(const char *script, int expected) {
  shell_script = script;
  cli_check_after(run_shell, "", expected);
}
