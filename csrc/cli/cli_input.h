/*
 * redlock(1): notices the end of the standard input without taking bytes from other programs.
 *
 * SPDX-License-Identifier: MIT
 *
 * Of a pipe and a socket only the hang-up counts, so nothing is read. A terminal ends with Ctrl-D,
 * which only a read shows. It is read through a description of its own, which does not block, and
 * only in the foreground. A file, /dev/null and a closed descriptor never end.
 */
#ifndef CLI_INPUT_H
#define CLI_INPUT_H

#include <poll.h>
#include <stdbool.h>

typedef struct cli_input {
  struct pollfd poll; /* its |fd| is -1 if the input never ends */
  int terminal;       /* own descriptor of the terminal, or -1 */
} cli_input;

void cli_input_open(cli_input *input);

/* Prepares |input->poll|. Returns true if the caller must call again after a second. */
bool cli_input_prepare(cli_input *input);

/* Reads |input->poll| after a poll(). Returns true if the input has ended. */
bool cli_input_ended(cli_input *input);

void cli_input_close(cli_input *input);

#endif
