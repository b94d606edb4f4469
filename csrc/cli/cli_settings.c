/*
 * redlock(1): the settings of a command line and of the environment.
 *
 * SPDX-License-Identifier: MIT
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli.h"
#include "cli_output.h"

#define CLI_KILL_AFTER_US (5 * REDLOCK_SECONDS)

/* A finite wait has no limit of attempts. */
static int cli_settings_wait(redlock_options *options, const cli_choice *choice) {
  if (strcmp(choice->value, "inf") == 0) {
    options->wait_us = REDLOCK_TTL_MAX_US;
    return -1;
  }
  return cli_value_time(&options->wait_us, REDLOCK_DURATION_NONE, choice);
}

static int cli_settings_on_lost(cli_settings *settings, const cli_choice *choice) {
  const char *text = choice->value;
  bool warn = strcmp(text, "warn") == 0;
  settings->on_lost = warn ? CLI_ON_LOST_WARN : CLI_ON_LOST_TERM;
  return warn || strcmp(text, "term") == 0
             ? -1
             : cli_value_reject(choice, "invalid action", ": use term or warn");
}

/* 0 is a time, too. */
static int cli_settings_kill_after(cli_settings *settings, const cli_choice *choice) {
  int status = cli_value_time(&settings->kill_after_us, REDLOCK_DURATION_NONE, choice);
  if (settings->kill_after_us == REDLOCK_DURATION_NONE) {
    settings->kill_after_us = 0;
  }
  return status;
}

/* Sets an option of the verb. */
static int cli_settings_verb_option(cli_settings *settings, const cli_choice *choice) {
  switch (choice->option->code) {
  case CLI_OPTION_WAIT:
    return cli_settings_wait(&settings->options, choice);
  case CLI_OPTION_CONFLICT:
    return cli_value_number(&settings->taken_status, "invalid exit status", 0, 255, choice);
  case CLI_OPTION_MAX_HOLD:
    return cli_value_time(&settings->options.max_hold_us, 0, choice);
  case CLI_OPTION_CTDB:
    settings->ctdb = true;
    return -1;
  case CLI_OPTION_INTERVAL:
    return cli_value_time(&settings->interval_us, 0, choice);
  case CLI_OPTION_DURATION:
    return cli_value_time(&settings->duration_us, 0, choice);
  case CLI_OPTION_LABEL:
    settings->options.label = choice->value;
    return -1;
  case CLI_OPTION_NO_LABEL:
    settings->options.label = "";
    return -1;
  case CLI_OPTION_FENCE:
    settings->options.fence = REDLOCK_YES;
    return -1;
  case CLI_OPTION_PERMITS:
    return cli_value_number(&settings->options.permits, "invalid number of permits", 1,
                            REDLOCK_PERMITS_MAX, choice);
  case CLI_OPTION_HOLD_FOR:
    return cli_value_time(&settings->options.hold_at_least_us, 0, choice);
  case CLI_OPTION_ON_LOST:
    return cli_settings_on_lost(settings, choice);
  case CLI_OPTION_STRICT:
    settings->strict = true;
    return -1;
  case CLI_OPTION_KILL_AFTER:
    return cli_settings_kill_after(settings, choice);
  case CLI_OPTION_KEYS:
    settings->keys = true;
    return -1;
  case CLI_OPTION_QUIET:
    settings->quiet = true;
    return -1;
  case CLI_OPTION_VERBOSE:
    settings->verbose = true;
    return -1;
  case CLI_OPTION_JSON:
    settings->json = true;
    return -1;
  default:
    return -1;
  }
}

/* Sets an option of the client. */
static int cli_settings_option(cli_settings *settings, const cli_choice *choice) {
  redlock_options *options = &settings->options;
  redlock_settings *client = &settings->client;
  const char *value = choice->value;
  switch (choice->option->code) {
  case CLI_OPTION_NODE:
    return cli_addresses_option(settings, (char *)(uintptr_t)value);
  case CLI_OPTION_NODES_FILE:
    return cli_addresses_file(settings, value);
  case CLI_OPTION_TTL:
    return cli_value_ttl(&options->ttl_us, choice);
  case CLI_OPTION_NODE_TIMEOUT:
    return cli_value_time(&options->node_timeout_us, 0, choice);
  case CLI_OPTION_QUORUM:
    return cli_value_number(&client->quorum, "invalid quorum", 1, REDLOCK_NODES_MAX, choice);
  case CLI_OPTION_GUARD:
    client->guard = REDLOCK_YES;
    return -1;
  case CLI_OPTION_GUARD_MAX_TTL:
    client->guard = REDLOCK_YES;
    return cli_value_time(&client->guard_max_ttl_us, 0, choice);
  case CLI_OPTION_GUARD_CLUSTER:
    client->guard = REDLOCK_YES;
    client->guard_cluster = value;
    return -1;
  case CLI_OPTION_PREFIX:
    client->prefix = value;
    client->prefix_length = strlen(value);
    return -1;
  default:
    return choice->option->group == CLI_FOR_TLS
               ? cli_tls_option(settings, choice->option->code, value)
               : cli_settings_verb_option(settings, choice);
  }
}

/* Handles --help and --version. Returns -1 if there is none, or the exit status. */
static int cli_settings_help(const cli_line *line) {
  for (size_t i = 0; i < line->choice_count; i++) {
    cli_option_code code = line->choices[i].option->code;
    if ((code == CLI_OPTION_HELP || code == CLI_OPTION_VERSION) && line->operand_count > 1) {
      /* A variable that stands for the resource: a status of 0 would say that the command ran. */
      return cli_reject(line->verb, "unexpected operand", line->operands[1], " beside this option");
    }
    if (code == CLI_OPTION_HELP) {
      cli_help_print(line->verb);
      return cli_flush();
    }
    if (code == CLI_OPTION_VERSION) {
      (void)printf("redlock %s\n", redlock_version());
      return cli_flush();
    }
  }
  return -1;
}

/* Sets what depends on the verb, or on several options. */
static void cli_settings_complete(cli_settings *settings) {
  const cli_verb *verb = settings->line.verb;
  const char *first = settings->operands[1] != NULL ? settings->operands[1] : "";
  redlock_options *options = &settings->options;
  cli_copy_text(settings->name, sizeof settings->name, first, strlen(first));
  settings->verbose = settings->verbose && !settings->quiet;
  settings->json = settings->json && !settings->ctdb;
  options->auto_extend = (verb->groups & CLI_FOR_KEEP) != 0 ? REDLOCK_YES : REDLOCK_NO;
  if (verb->call == cli_lead) {
    options->fence = REDLOCK_YES;
    options->wait_us = options->wait_us != 0 ? options->wait_us : REDLOCK_TTL_MAX_US;
  }
}

int cli_settings_read(cli_settings *settings, int argc, char **argv) {
  cli_line *line = &settings->line;
  memset(settings, 0, sizeof *settings);
  settings->taken_status = CLI_TAKEN;
  settings->kill_after_us = CLI_KILL_AFTER_US;
  settings->client.options = &settings->options;
  int status = cli_line_read(line, argc, argv);
  status = status < 0 ? cli_settings_help(line) : status;
  status = status < 0 ? cli_line_check(line) : status;
  for (size_t i = 0; status < 0 && i < line->choice_count; i++) {
    status = cli_settings_option(settings, &line->choices[i]);
  }
  settings->operands = line->operands;
  if (status >= 0 || (line->verb->groups & CLI_FOR_CLIENT) == 0) {
    return status;
  }
  cli_settings_complete(settings);
  if ((line->verb->groups & CLI_FOR_LABEL) != 0 && settings->options.label == NULL) {
    cli_label_set(settings);
  }
  status = cli_tls_environment(settings);
  return status < 0 ? cli_addresses_environment(settings) : status;
}

size_t cli_quorum(const cli_settings *settings, size_t nodes) {
  return settings->client.quorum > 0 ? (size_t)settings->client.quorum : nodes / 2 + 1;
}

void cli_settings_free(cli_settings *settings) {
  cli_addresses_free(settings);
  cli_line_free(&settings->line);
}
