/*
 * Shell scripts that use redlock(1) as a user does.
 *
 * SPDX-License-Identifier: MIT
 */
#include "shell.h"

#include <fcntl.h>
#include <sys/stat.h>

static char directory[SCRATCH_PATH_MAX + 8];
tool_run shell_last;

/* CLI_TEST='name*' runs these tests alone. */
__attribute__((constructor)) static void filter_tests(void) {
  const char *pattern = getenv("CLI_TEST"); /* NOLINT(concurrency-mt-unsafe) */
  if (pattern != NULL) {
    cmocka_set_test_filter(pattern);
  }
}

static void set(const char *name, const char *value) {
  assert_int_equal(setenv(name, value, 1), 0);
}

static void set_variables(void) {
  char text[1024];
  (void)snprintf(directory, sizeof directory, "%s/shell", three.scratch.path);
  set("DIR", directory);
  set("TOOL", tool_path());
  /* Nodes get more time than a loaded machine needs. */
  (void)snprintf(text, sizeof text, "%s --node-timeout 5s -t 60s", tool_path());
  set("R", text);
  (void)snprintf(text, sizeof text, "%s %s %s", three.nodes[0].address, three.nodes[1].address,
                 three.nodes[2].address);
  set("REDLOCK_NODES", text);
  for (unsigned i = 0; i < 3; i++) {
    (void)snprintf(text, sizeof text, "NODE%u", i + 1);
    set(text, three.nodes[i].address);
  }
  ssize_t length = readlink("/proc/self/exe", text, sizeof text - 1);
  assert_true(length > 0);
  text[length] = '\0';
  set("SELF", text);
}

int shell_start(void **state) {
  (void)three_start(state);
  tool_clean_environment();
  set_variables();
  return 0;
}

int shell_start_durable(void **state) {
  static const char *const durable[] = {"--appendonly", "yes", "--appendfsync", "always", NULL};
  farm_start(&three, 3, durable);
  set_variables();
  return 0;
}

int shell_reset(void **state) {
  (void)three_reset(state);
  tool_run run = tool_start(
      NULL, (const char *[]){"/bin/sh", "-c", "rm -rf \"$DIR\" && mkdir \"$DIR\"", NULL});
  assert_int_equal(tool_wait(&run), 0);
  return 0;
}

int shell_end(void **state) {
  return three_end(state);
}

const char *shell_directory(void) {
  return directory;
}

tool_run shell_begin_after(void (*prepare)(void), const char *script) {
  return tool_start(prepare, (const char *[]){"/bin/sh", "-c", script, NULL});
}

tool_run shell_begin(const char *script) {
  return shell_begin_after(NULL, script);
}

tool_run shell_begin_on_terminal(const char *script) {
  return tool_start_on_terminal(NULL, (const char *[]){"/bin/bash", "-c", script, NULL});
}

void shell_finish(tool_run *run, int status) {
  int found = tool_wait(run);
  shell_last = *run;
  tool_check_status(&shell_last, found, status);
}

void shell_check(const char *script, int status) {
  tool_run run = shell_begin(script);
  shell_finish(&run, status);
}

static const char *path_of(const char *name) {
  static char path[sizeof directory + 64];
  (void)snprintf(path, sizeof path, "%s/%s", directory, name);
  return path;
}

bool shell_has(const char *name) {
  return access(path_of(name), F_OK) == 0;
}

void shell_touch(const char *name) {
  int fd = open(path_of(name), O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
  assert_true(fd >= 0);
  (void)close(fd);
}

void shell_until_held(const char *resource) {
  eventually(farm_count(&three, resource, NULL) == 3);
}

void shell_take(const char *resource) {
  farm_command_all(&three, "SET", resource, "another", NULL);
}
