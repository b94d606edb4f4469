/*
 * redlock help: prints the tables of verbs and options.
 *
 * SPDX-License-Identifier: MIT
 */
#include <stdio.h>
#include <string.h>

#include "cli.h"

#define CLI_GROUP_TITLE(group, title) title,
static const char *const cli_group_titles[] = {CLI_GROUPS(CLI_GROUP_TITLE)};

/* Column of the meanings. */
#define CLI_HELP_COLUMN 29

static const char cli_help_end[] =
    "\n"
    "A TIME is a number with ms, s, m, h or d: 500ms, 0.5s, 10m.\n"
    "\n"
    "Exit status: that of the command (128 + signal number if a signal ended it), or\n"
    "  1    the lock is taken, doctor found an error, or force-release found no such token\n"
    "  64   wrong usage\n"
    "  69   too few nodes\n"
    "  71   system error\n"
    "  75   the lock ended before the command, extend, release or hold did; lead: the command\n"
    "       cannot be killed\n"
    "  126  the command cannot be executed\n"
    "  127  the command was not found\n"
    "\n"
    "The manual page is redlock(1); docs/cli.md has tables of signals and of the output.\n";

static const char cli_help_examples[] =
    "\n"
    "Examples:\n"
    "  redlock run --wait 30s deploy -- ./deploy.sh\n"
    "  redlock run --wait 3s --hold-for 30s -E 0 report -- ./report   # cron on several hosts\n"
    "  redlock run --permits 5 --wait inf convert -- ./convert        # at most five at once\n"
    "  redlock lead --strict server -- ./server                       # a standby takes over\n";

static void cli_help_option(const cli_option *option) {
  char head[64];
  char letter[] = {'-', option->letter, ',', '\0'};
  (void)snprintf(head, sizeof head, "  %3s --%s%s%s", option->letter != 0 ? letter : "",
                 option->name, option->value != NULL ? " " : "",
                 option->value != NULL ? option->value : "");
  bool fits = strlen(head) < CLI_HELP_COLUMN - 1;
  (void)printf("%-*s%s%s\n", fits ? CLI_HELP_COLUMN : 0, head, fits ? "" : "  ", option->meaning);
}

/* Prints the options of a group, and in the help of all verbs the verbs that accept them. */
static void cli_help_group(size_t group, bool verbs) {
  (void)printf("\n%s", cli_group_titles[group]);
  const char *before = " (";
  for (const cli_verb *verb = cli_verbs; verbs && verb->name != NULL; verb++) {
    if ((verb->groups & 1U << group) != 0) {
      (void)printf("%s%s", before, verb->name);
      before = ", ";
    }
  }
  (void)printf("%s:\n", before[0] == ',' ? ")" : "");
  for (size_t i = 0; i < CLI_OPTION_COUNT; i++) {
    if (cli_options[i].group == 1U << group) {
      cli_help_option(&cli_options[i]);
    }
  }
}

void cli_help_print(const cli_verb *verb) {
  unsigned groups = CLI_FOR_ALWAYS;
  (void)printf("usage: redlock [option]... %s",
               verb == NULL ? "VERB [option]... [operand]...\n\n" : "");
  for (const cli_verb *each = cli_verbs; each->name != NULL; each++) {
    if (verb == NULL) {
      (void)printf("  %s%s\n      %s\n", each->name, each->operands, each->purpose);
    } else if (verb == each) {
      (void)printf("%s [option]...%s\n\n  %s\n", verb->name, verb->operands, verb->purpose);
    }
    groups |= verb == NULL || verb == each ? each->groups : 0;
  }
  for (size_t group = 0; group < CLI_GROUP_COUNT; group++) {
    if (verb != NULL && group == CLI_GROUP_TLS && (groups & CLI_FOR_TLS) != 0) {
      (void)puts("\nTLS: redlock --help lists the options.");
    } else if ((groups & 1U << group) != 0) {
      bool some = group != CLI_GROUP_CLIENT && group != CLI_GROUP_TLS;
      cli_help_group(group, verb == NULL && some);
    }
  }
  if (verb != NULL && verb->call == cli_run) {
    (void)fputs(cli_help_examples, stdout);
  }
  (void)fputs(cli_help_end, stdout);
}

int cli_help(const cli_settings *settings, cli_loop *loop, redlock_lock *lock) {
  (void)loop;
  (void)lock;
  const char *name = settings->operands[1];
  const cli_verb *verb = name != NULL ? cli_verb_find(name) : NULL;
  if (name != NULL && verb == NULL) {
    return cli_reject(NULL, "unknown verb", name, "");
  }
  cli_help_print(verb);
  return cli_flush();
}
