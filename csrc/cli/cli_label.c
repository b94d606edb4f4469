/*
 * redlock(1): the label of a lock: "HOST pid N COMMAND".
 *
 * SPDX-License-Identifier: MIT
 */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "cli.h"

#define CLI_LABEL_HOST_MAX 28

void cli_label_set(cli_settings *settings) {
  char host[256] = "";
  const char *command = settings->line.verb->name;
  long pid = (long)getpid();
  if (settings->line.verb->call == cli_run || settings->line.verb->call == cli_lead) {
    const char *slash = strrchr(settings->operands[2], '/');
    command = slash != NULL && slash[1] != '\0' ? slash + 1 : settings->operands[2];
  } else if (settings->line.verb->call != cli_hold) {
    pid = (long)getppid(); /* The program that has called us goes on with the lock. */
  }
  (void)gethostname(host, sizeof host - 1);
  (void)snprintf(settings->label, sizeof settings->label, "%.*s pid %ld %s", CLI_LABEL_HOST_MAX,
                 host, pid, command);
  for (char *byte = settings->label; *byte != '\0'; byte++) {
    *byte = *byte >= ' ' && *byte <= '~' ? *byte : '?';
  }
  settings->options.label = settings->label;
}
