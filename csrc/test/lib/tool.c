/*
 * Runs programs and collects their output; finds the tool redlock(1).
 *
 * SPDX-License-Identifier: MIT
 */
#include "tool.h"

#include <fcntl.h>
#include <libgen.h>

#include "support.h"

const char *tool_path(void) {
  static char path[512];
  char self[256] = "";
  assert_true(readlink("/proc/self/exe", self, sizeof self - 1) > 0);
  (void)snprintf(path, sizeof path, "%s/../../bin/redlock", dirname(self));
  return path;
}

void tool_clean_environment(void) {
  char name[64];
  for (char **variable = environ; *variable != NULL;) {
    size_t length = strcspn(*variable, "=");
    if (strncmp(*variable, "REDLOCK_", 8) == 0 && strncmp(*variable, "REDLOCK_TEST_", 13) != 0 &&
        length < sizeof name) {
      memcpy(name, *variable, length);
      name[length] = '\0';
      (void)unsetenv(name); /* moves the next variable here */
    } else {
      variable++;
    }
  }
}

/* Never returns. */
static void become(void (*prepare)(void), const char *const *argv) {
  if (prepare != NULL) {
    prepare();
  }
  (void)execv(argv[0], (char *const *)(uintptr_t)argv);
  _exit(99);
}

tool_run tool_start(void (*prepare)(void), const char *const *argv) {
  int ends[2];
  assert_int_equal(pipe2(ends, O_CLOEXEC), 0);
  tool_run self = {.pid = fork(), .output = ends[0]};
  assert_true(self.pid >= 0);
  if (self.pid == 0) {
    (void)dup2(ends[1], STDOUT_FILENO);
    (void)dup2(ends[1], STDERR_FILENO);
    become(prepare, argv);
  }
  (void)close(ends[1]);
  return self;
}

tool_run tool_start_on_terminal(void (*prepare)(void), const char *const *argv) {
  int terminal = posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC);
  char path[64];
  assert_true(terminal >= 0);
  assert_int_equal(grantpt(terminal), 0);
  assert_int_equal(unlockpt(terminal), 0);
  assert_int_equal(ptsname_r(terminal, path, sizeof path), 0);
  tool_run self = {.pid = fork(), .output = terminal};
  assert_true(self.pid >= 0);
  if (self.pid == 0) {
    (void)setsid();
    int fd = open(path, O_RDWR); /* It becomes the terminal of the session. */
    for (int standard = 0; standard <= STDERR_FILENO; standard++) {
      (void)dup2(fd, standard);
    }
    if (fd > STDERR_FILENO) {
      (void)close(fd);
    }
    become(prepare, argv);
  }
  return self;
}

void tool_type(const tool_run *self, const char *text) {
  assert_int_equal(write(self->output, text, strlen(text)), strlen(text));
}

bool tool_read(tool_run *self, int timeout_ms) {
  struct pollfd readable = {self->output, POLLIN, 0};
  if (poll(&readable, 1, timeout_ms) == 0) {
    return true;
  }
  ssize_t got = read(self->output, self->text + self->length, sizeof self->text - 1 - self->length);
  self->length += got > 0 ? (size_t)got : 0;
  self->text[self->length] = '\0';
  return got > 0;
}

void tool_until_output(tool_run *self, const char *part) {
  redlock_time until_us = redlock_now() + EVENTUALLY_US;
  while (tool_read(self, 2) && strstr(self->text, part) == NULL) {
    if (redlock_now() > until_us) {
      fail_msg("in vain waited for \"%s\": %s", part, self->text);
    }
  }
}

int tool_wait(tool_run *self) {
  eventually(!tool_read(self, 2));
  (void)close(self->output);
  assert_int_equal(waitpid(self->pid, &self->state, 0), self->pid);
  return WIFSIGNALED(self->state) ? 128 + WTERMSIG(self->state) : WEXITSTATUS(self->state);
}

int tool_signal(const tool_run *self) {
  return WIFSIGNALED(self->state) ? WTERMSIG(self->state) : 0;
}

void tool_check_status(const tool_run *self, int status, int expected) {
  if (status != expected) {
    fail_msg("exit status %d, not %d: %s", status, expected, self->text);
  }
}
