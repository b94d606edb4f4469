/*
 * redlock(1): notices the end of the standard input without taking bytes from other programs.
 *
 * SPDX-License-Identifier: MIT
 */
#include "cli_input.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#ifdef POLLRDHUP
#define CLI_INPUT_HANG_UP POLLRDHUP
#else
#define CLI_INPUT_HANG_UP 0
#endif

/* Returns a descriptor of the terminal that does not block, or -1. */
static int cli_input_terminal(void) {
  char path[256];
  if (isatty(STDIN_FILENO) == 0 || ttyname_r(STDIN_FILENO, path, sizeof path) != 0) {
    return -1;
  }
  return open(path, O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
}

void cli_input_open(cli_input *input) {
  struct stat state;
  bool known = fstat(STDIN_FILENO, &state) == 0;
  bool pipe = known && (S_ISFIFO(state.st_mode) || S_ISSOCK(state.st_mode));
  input->terminal = cli_input_terminal();
  input->poll = (struct pollfd){.fd = pipe ? STDIN_FILENO : input->terminal,
                                .events = pipe ? CLI_INPUT_HANG_UP : POLLIN};
  if (input->terminal >= 0) {
    (void)signal(SIGTTIN, SIG_IGN); /* A read in the background must not stop the tool. */
  }
}

bool cli_input_prepare(cli_input *input) {
  /* Only the controlling terminal has a foreground. */
  pid_t foreground = input->terminal >= 0 ? tcgetpgrp(input->terminal) : -1;
  bool background = foreground >= 0 && foreground != getpgrp();
  if (input->terminal >= 0) {
    input->poll.events = background ? 0 : POLLIN;
  }
  input->poll.revents = 0;
  return background;
}

bool cli_input_ended(cli_input *input) {
  char bytes[512];
  short events = input->poll.revents;
  if (input->terminal < 0 || (events & POLLIN) == 0) {
    return (events & (POLLHUP | POLLERR | POLLNVAL | CLI_INPUT_HANG_UP)) != 0;
  }
  return read(input->terminal, bytes, sizeof bytes) == 0;
}

void cli_input_close(cli_input *input) {
  if (input->terminal >= 0) {
    (void)close(input->terminal);
  }
}
