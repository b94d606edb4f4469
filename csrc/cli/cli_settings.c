/*
 * redlock(1): the settings of a command line and of the environment.
 *
 * SPDX-License-Identifier: MIT
 */
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli.h"
#include "cli_output.h"

/* A shorter ttl leaves nothing after the drift allowance. */
#define CLI_TTL_MIN_US (4 * REDLOCK_MILLISECONDS)
#define CLI_LABEL_HOST_MAX 28

/* --------------------------------------------------------------------------------------- values */

typedef struct cli_field cli_field;

/* Sets a field to the value of an option. Returns -1, or the exit status after a message. */
typedef int cli_set(cli_settings *settings, const cli_field *field, const cli_choice *choice);

/* The field that an option sets. */
struct cli_field {
  cli_set *set;
  size_t offset;        /* in the settings */
  int least, most;      /* bounds of a number */
  const char *variable; /* replaces a missing option; or NULL */
};

static void *cli_field_of(cli_settings *settings, const cli_field *field) {
  return (char *)settings + field->offset;
}

/* Rejects a value that breaks |rule|. */
static int cli_reject_value(const cli_choice *choice, const char *rule) {
  char named[128];
  bool option = choice->variable == NULL;
  (void)snprintf(named, sizeof named, " for %s%s: %s", option ? "--" : "",
                 option ? choice->option->name : choice->variable, rule);
  return cli_reject(NULL, "invalid value", choice->value, named);
}

static int cli_set_flag(cli_settings *settings, const cli_field *field, const cli_choice *choice) {
  (void)choice;
  *(int *)cli_field_of(settings, field) = REDLOCK_YES;
  return -1;
}

static int cli_set_text(cli_settings *settings, const cli_field *field, const cli_choice *choice) {
  const char *text = choice->value != NULL ? choice->value : "";
  memcpy(cli_field_of(settings, field), &text, sizeof text);
  return -1;
}

static int cli_set_number(cli_settings *settings, const cli_field *field,
                          const cli_choice *choice) {
  char rule[64];
  char *end;
  long number = strtol(choice->value, &end, 10);
  if (isdigit((unsigned char)choice->value[0]) == 0 || *end != '\0' || number < field->least ||
      number > field->most) {
    (void)snprintf(rule, sizeof rule, "it must be from %d to %d", field->least, field->most);
    return cli_reject_value(choice, rule);
  }
  *(int *)cli_field_of(settings, field) = (int)number;
  return -1;
}

/* Returns the length of a unit in microseconds, or 0 if |name| is none. */
static redlock_duration cli_unit(const char *name) {
  static const struct {
    const char *name;
    redlock_duration length_us;
  } units[] = {{"ms", REDLOCK_MILLISECONDS},
               {"s", REDLOCK_SECONDS},
               {"m", 60 * REDLOCK_SECONDS},
               {"h", 3600 * REDLOCK_SECONDS},
               {"d", 86400 * REDLOCK_SECONDS}};
  for (size_t i = 0; i < sizeof units / sizeof units[0]; i++) {
    if (strcmp(name, units[i].name) == 0) {
      return units[i].length_us;
    }
  }
  return 0;
}

/* Reads "10s" or "0.5s". A 0 needs no unit. */
static int cli_set_time_or_zero(cli_settings *settings, const cli_field *field,
                                const cli_choice *choice) {
  const char *text = choice->value;
  char *end;
  double number = strtod(text, &end);
  redlock_duration unit_us = cli_unit(end);
  bool plain = isdigit((unsigned char)text[0]) != 0 && end == text + strspn(text, "0123456789.") &&
               end[-1] != '.'; /* strtod() reads more than that, such as 1e3. */
  bool zero = number == 0 && *end == '\0';
  if (!plain || (unit_us == 0 && !zero)) {
    return cli_reject_value(choice, "use a number with ms, s, m, h or d, such as 0.5s");
  }
  double time_us = number * (double)unit_us;
  if (time_us > (double)REDLOCK_TTL_MAX_US) {
    return cli_reject_value(choice, "it is more than a year (366d)");
  }
  *(redlock_duration *)cli_field_of(settings, field) = (redlock_duration)(time_us + 0.5);
  return -1;
}

static int cli_set_time(cli_settings *settings, const cli_field *field, const cli_choice *choice) {
  int status = cli_set_time_or_zero(settings, field, choice);
  return status < 0 && *(redlock_duration *)cli_field_of(settings, field) == 0
             ? cli_reject_value(choice, "it must be more than 0")
             : status;
}

static int cli_set_ttl(cli_settings *settings, const cli_field *field, const cli_choice *choice) {
  int status = cli_set_time(settings, field, choice);
  return status < 0 && settings->options.ttl_us < CLI_TTL_MIN_US
             ? cli_reject_value(choice, "a ttl must be at least 4ms, more than the drift allowance")
             : status;
}

/* A finite wait has no limit of attempts. */
static int cli_set_wait(cli_settings *settings, const cli_field *field, const cli_choice *choice) {
  redlock_duration *wait_us = &settings->options.wait_us;
  if (strcmp(choice->value, "inf") == 0) {
    *wait_us = REDLOCK_TTL_MAX_US;
    return -1;
  }
  int status = cli_set_time_or_zero(settings, field, choice);
  *wait_us = *wait_us == 0 ? REDLOCK_DURATION_NONE : *wait_us;
  return status;
}

static int cli_set_on_lost(cli_settings *settings, const cli_field *field,
                           const cli_choice *choice) {
  (void)field;
  settings->warn = strcmp(choice->value, "warn") == 0;
  return settings->warn || strcmp(choice->value, "term") == 0
             ? -1
             : cli_reject_value(choice, "use term or warn");
}

static int cli_set_tls_version(cli_settings *settings, const cli_field *field,
                               const cli_choice *choice) {
  bool newer = strcmp(choice->value, "1.3") == 0;
  *(int *)cli_field_of(settings, field) = newer ? REDLOCK_TLS_1_3 : REDLOCK_TLS_1_2;
  return newer || strcmp(choice->value, "1.2") == 0 ? -1
                                                    : cli_reject_value(choice, "use 1.2 or 1.3");
}

static int cli_set_node(cli_settings *settings, const cli_field *field, const cli_choice *choice) {
  (void)field;
  return cli_addresses_option(settings, (char *)(uintptr_t)choice->value);
}

static int cli_set_file(cli_settings *settings, const cli_field *field, const cli_choice *choice) {
  (void)field;
  return cli_addresses_file(settings, choice->value);
}

static int cli_set_key_password(cli_settings *settings, const cli_field *field,
                                const cli_choice *choice) {
  (void)field;
  return cli_tls_key_password(settings, choice->value);
}

/* --------------------------------------------------------------------------------------- fields */

#define CLI_FIELD(kind, field) cli_set_##kind, offsetof(cli_settings, field)
static const cli_field cli_fields[CLI_OPTION_COUNT] = {
    [CLI_OPTION_NODE] = {CLI_FIELD(node, nodes)},
    [CLI_OPTION_NODES_FILE] = {CLI_FIELD(file, nodes)},
    [CLI_OPTION_TTL] = {CLI_FIELD(ttl, options.ttl_us)},
    [CLI_OPTION_NODE_TIMEOUT] = {CLI_FIELD(time, options.node_timeout_us)},
    [CLI_OPTION_QUORUM] = {CLI_FIELD(number, client.quorum), 1, REDLOCK_NODES_MAX},
    [CLI_OPTION_GUARD] = {CLI_FIELD(flag, client.guard)},
    [CLI_OPTION_GUARD_MAX_TTL] = {CLI_FIELD(time, client.guard_max_ttl_us)},
    [CLI_OPTION_GUARD_CLUSTER] = {CLI_FIELD(text, client.guard_cluster)},
    [CLI_OPTION_PREFIX] = {CLI_FIELD(text, client.prefix)},
    [CLI_OPTION_WAIT] = {CLI_FIELD(wait, options.wait_us)},
    [CLI_OPTION_CONFLICT] = {CLI_FIELD(number, taken_status), 0, 255},
    [CLI_OPTION_MAX_HOLD] = {CLI_FIELD(time, options.max_hold_us)},
    [CLI_OPTION_LABEL] = {CLI_FIELD(text, options.label)},
    [CLI_OPTION_NO_LABEL] = {CLI_FIELD(text, options.label)},
    [CLI_OPTION_FENCE] = {CLI_FIELD(flag, options.fence)},
    [CLI_OPTION_PERMITS] = {CLI_FIELD(number, options.permits), 1, REDLOCK_PERMITS_MAX},
    [CLI_OPTION_HOLD_FOR] = {CLI_FIELD(time, options.hold_at_least_us)},
    [CLI_OPTION_ON_LOST] = {CLI_FIELD(on_lost, warn)},
    [CLI_OPTION_STRICT] = {CLI_FIELD(flag, strict)},
    [CLI_OPTION_KILL_AFTER] = {CLI_FIELD(time_or_zero, kill_after_us)},
    [CLI_OPTION_KEYS] = {CLI_FIELD(flag, keys)},
    [CLI_OPTION_QUIET] = {CLI_FIELD(flag, quiet)},
    [CLI_OPTION_VERBOSE] = {CLI_FIELD(flag, verbose)},
    [CLI_OPTION_JSON] = {CLI_FIELD(flag, json)},
    [CLI_OPTION_CTDB] = {CLI_FIELD(flag, ctdb)},
    [CLI_OPTION_INTERVAL] = {CLI_FIELD(time, interval_us)},
    [CLI_OPTION_DURATION] = {CLI_FIELD(time, duration_us)},
    [CLI_OPTION_TLS] = {CLI_FIELD(flag, client.tls)},
    [CLI_OPTION_TLS_CA] = {CLI_FIELD(text, client.tls_ca), .variable = "REDLOCK_TLS_CA"},
    [CLI_OPTION_TLS_CA_PATH] = {CLI_FIELD(text, client.tls_ca_path),
                                .variable = "REDLOCK_TLS_CA_PATH"},
    [CLI_OPTION_TLS_CRL] = {CLI_FIELD(text, client.tls_crl), .variable = "REDLOCK_TLS_CRL"},
    [CLI_OPTION_TLS_CERT] = {CLI_FIELD(text, client.tls_cert), .variable = "REDLOCK_TLS_CERT"},
    [CLI_OPTION_TLS_KEY] = {CLI_FIELD(text, client.tls_key), .variable = "REDLOCK_TLS_KEY"},
    [CLI_OPTION_TLS_KEY_PASSWORD_FILE] = {CLI_FIELD(key_password, client.tls_key_password)},
    [CLI_OPTION_TLS_SERVER_NAME] = {CLI_FIELD(text, client.tls_server_name),
                                    .variable = "REDLOCK_TLS_SERVER_NAME"},
    [CLI_OPTION_TLS_MIN_VERSION] = {CLI_FIELD(tls_version, client.tls_min_version),
                                    .variable = "REDLOCK_TLS_MIN_VERSION"},
    [CLI_OPTION_TLS_CIPHERS] = {CLI_FIELD(text, client.tls_ciphers),
                                .variable = "REDLOCK_TLS_CIPHERS"},
    [CLI_OPTION_TLS_DANGEROUSLY_UNVERIFIED] = {CLI_FIELD(flag, client.tls_dangerously_unverified)},
};

static int cli_settings_option(cli_settings *settings, const cli_choice *choice) {
  const cli_field *field = &cli_fields[choice->option->code];
  if (choice->option->group == CLI_FOR_TLS) {
    settings->client.tls = REDLOCK_YES;
  }
  return field->set(settings, field, choice);
}

/* Returns the value of a variable, or NULL if it is unset or empty. */
static const char *cli_settings_variable(const char *name) {
  const char *value = getenv(name); /* NOLINT(concurrency-mt-unsafe): the program has one thread. */
  return value != NULL && value[0] != '\0' ? value : NULL;
}

static bool cli_settings_have(const cli_settings *settings, const cli_option *option) {
  for (size_t i = 0; i < settings->line.choice_count; i++) {
    if (settings->line.choices[i].option == option) {
      return true;
    }
  }
  return false;
}

/* Reads the environment for options that are missing. */
static int cli_settings_environment(cli_settings *settings) {
  int status = -1;
  for (size_t i = 0; status < 0 && i < CLI_OPTION_COUNT; i++) {
    const char *name = cli_fields[i].variable;
    cli_choice choice = {&cli_options[i], name != NULL ? cli_settings_variable(name) : NULL, name};
    if (choice.value != NULL && !cli_settings_have(settings, choice.option)) {
      status = cli_settings_option(settings, &choice);
    }
  }
  if (settings->client.tls_key_password == NULL) {
    settings->client.tls_key_password = cli_settings_variable("REDLOCK_TLS_KEY_PASSWORD");
  }
  return status < 0 ? cli_addresses_environment(settings) : status;
}

/* ------------------------------------------------------------------------------------- settings */

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

/* Sets the label of the lock: "HOST pid N COMMAND". */
static void cli_settings_label(cli_settings *settings) {
  char host[256] = "";
  const cli_verb *verb = settings->line.verb;
  const char *command = verb->name;
  if (verb->most == CLI_OPERANDS_ANY) {
    const char *slash = strrchr(settings->operands[2], '/');
    command = slash != NULL && slash[1] != '\0' ? slash + 1 : settings->operands[2];
  }
  /* After acquire and extend, the program that has called us goes on with the lock. */
  long pid = (long)((verb->groups & CLI_FOR_KEEP) != 0 ? getpid() : getppid());
  (void)gethostname(host, sizeof host - 1);
  (void)snprintf(settings->label, sizeof settings->label, "%.*s pid %ld %s", CLI_LABEL_HOST_MAX,
                 host, pid, command);
  cli_mask_text(settings->label, strlen(settings->label));
  settings->options.label = settings->label;
}

/* Sets what depends on the verb, or on several options. */
static void cli_settings_complete(cli_settings *settings) {
  const cli_verb *verb = settings->line.verb;
  const char *first = settings->operands[1] != NULL ? settings->operands[1] : "";
  redlock_options *options = &settings->options;
  redlock_settings *client = &settings->client;
  cli_copy_text(settings->name, sizeof settings->name, first, strlen(first));
  settings->verbose = settings->verbose && !settings->quiet;
  settings->json = settings->json && !settings->ctdb;
  client->prefix_length = client->prefix != NULL ? strlen(client->prefix) : 0;
  if (client->guard_max_ttl_us != 0 || client->guard_cluster != NULL) {
    client->guard = REDLOCK_YES;
  }
  options->auto_extend = (verb->groups & CLI_FOR_KEEP) != 0 ? REDLOCK_YES : REDLOCK_NO;
  if (verb->call == cli_lead) {
    options->fence = REDLOCK_YES;
    options->wait_us = options->wait_us != 0 ? options->wait_us : REDLOCK_TTL_MAX_US;
  }
  if ((verb->groups & CLI_FOR_LABEL) != 0 && options->label == NULL) {
    cli_settings_label(settings);
  }
}

int cli_settings_read(cli_settings *settings, int argc, char **argv) {
  cli_line *line = &settings->line;
  memset(settings, 0, sizeof *settings);
  settings->taken_status = CLI_TAKEN;
  settings->kill_after_us = 5 * REDLOCK_SECONDS;
  settings->interval_us = REDLOCK_SECONDS;
  settings->duration_us = 5 * REDLOCK_SECONDS;
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
  return cli_settings_environment(settings);
}

size_t cli_quorum(const cli_settings *settings, size_t nodes) {
  return settings->client.quorum > 0 ? (size_t)settings->client.quorum : nodes / 2 + 1;
}
