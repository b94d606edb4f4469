/*
 * redlock(1): the command line.
 *
 * SPDX-License-Identifier: MIT
 */
#include "cli.h"

#include <errno.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define CLI_VERB_HELP(name, fewest, most, operands, purpose)                                       \
  "  " #name operands "\n      " purpose "\n"
static const char cli_usage[] =
    "usage: redlock [option]... VERB [operand]...\n\n" CLI_VERBS(CLI_VERB_HELP);
static const char cli_options[] =
    "\n"
    "  -n, --node ADDRESS       a node; once per node, or REDLOCK_NODES with spaces between them\n"
    "  -w, --wait TIME          time to wait for the lock; 0 = try once [four attempts, about 1s]\n"
    "  -t, --ttl TIME           time after which the lock ends if this program dies [10s]\n"
    "      --max-hold TIME      time after which the lock is not extended any longer [unlimited]\n"
    "      --node-timeout TIME  time limit of one attempt [100ms, at most a tenth of the ttl]\n"
    "      --quorum NUMBER      nodes that must grant the lock, if more than a majority\n"
    "      --guard              ignore nodes that may have lost locks (implied by the next two)\n"
    "      --guard-max-ttl TIME longest ttl of any client of the nodes [30s]\n"
    "      --guard-cluster NAME name of the list of nodes [a hash of the list]\n"
    "  -p, --prefix TEXT        text before the name of the resource\n"
    "  -E, --conflict-exit-code NUMBER  exit status if the lock is taken [1]\n"
    "      --keys               doctor: also search for locks that never expire\n"
    "  -h, --help               show this help\n"
    "  -V, --version            show the version\n"
    "\n"
    "TLS (each of these options turns it on; rediss:// turns it on for one node):\n"
    "      --tls                use TLS for all nodes except Unix sockets\n"
    "      --tls-ca FILE, --tls-ca-path DIRECTORY  trusted CA certificates [the system's]\n"
    "      --tls-crl FILE       revoked certificates\n"
    "      --tls-cert FILE, --tls-key FILE, --tls-key-password-file FILE  own certificate and key\n"
    "      --tls-server-name NAME  name in the nodes' certificates [the host of the node]\n"
    "      --tls-min-version 1.2|1.3\n"
    "      --tls-ciphers LIST\n"
    "      --tls-dangerously-unverified  accept any certificate\n"
    "\n"
    "A TIME is a number with ms, s, m or h: 500ms, 10s.\n"
    "\n"
    "Exit status: that of the command (128 + signal number if a signal ended it), or\n"
    "  1    the lock is taken, or doctor found an error\n"
    "  64   wrong usage\n"
    "  69   too few nodes\n"
    "  71   system error\n"
    "  75   the command succeeded, but its lock ended before\n"
    "  126  the command cannot be executed\n"
    "  127  the command was not found\n";

/* Rejects |value|: writes "|what| '|value|' |rule|" with a reference to the help. */
static int cli_reject(const char *what, const char *value, const char *rule) {
  return cli_fail(CLI_USAGE, "%s '%s'%s; see redlock --help", what, value, rule);
}

/*
 * Reads "10s" as microseconds, up to a year. A 0 needs no unit. Returns false if |text| is invalid.
 */
static bool cli_settings_read_time(const char *text, redlock_duration *time_us) {
  static const struct {
    const char *name;
    redlock_duration length_us;
  } units[] = {{"ms", REDLOCK_MILLISECONDS},
               {"s", REDLOCK_SECONDS},
               {"m", 60 * REDLOCK_SECONDS},
               {"h", 3600 * REDLOCK_SECONDS}};
  char *end;
  errno = 0;
  unsigned long long number = strtoull(text, &end, 10);
  if (text[0] < '0' || text[0] > '9' || errno != 0) {
    return false;
  }
  *time_us = 0;
  for (size_t i = 0; i < sizeof units / sizeof units[0]; i++) {
    if (strcmp(end, units[i].name) == 0 && number <= REDLOCK_TTL_MAX_US / units[i].length_us) {
      *time_us = number * units[i].length_us;
      return true;
    }
  }
  return number == 0 && *end == '\0';
}

/* Sets a time; 0 becomes |zero_us|, or is rejected if that is 0. Returns -1, or the exit status. */
static int cli_settings_time(redlock_duration *field_us, redlock_duration zero_us,
                             const char *text) {
  if (!cli_settings_read_time(text, field_us)) {
    return cli_reject("invalid time", text, ": use a number with ms, s, m or h, up to a year");
  }
  if (*field_us == 0) {
    *field_us = zero_us;
  }
  return *field_us == 0 ? cli_reject("invalid time", text, ": it must be more than 0") : -1;
}

/* Sets a number from |least| to |most|. Returns -1, or the exit status. */
static int cli_settings_number(int *field, const char *what, int least, int most,
                               const char *text) {
  char *end;
  long number = strtol(text, &end, 10);
  if (text[0] < '0' || text[0] > '9' || *end != '\0' || number < least || number > most) {
    char rule[64];
    (void)snprintf(rule, sizeof rule, ": it must be from %d to %d", least, most);
    return cli_reject(what, text, rule);
  }
  *field = (int)number;
  return -1;
}

static int cli_settings_node(cli_settings *settings, const char *address) {
  if (settings->node_count == REDLOCK_NODES_MAX) {
    return cli_fail(CLI_USAGE, "more than %d nodes", REDLOCK_NODES_MAX);
  }
  settings->nodes[settings->node_count++] = address;
  return -1;
}

/* Takes the nodes from the environment if the command line names none. */
static int cli_settings_environment(cli_settings *settings) {
  const char *text = getenv("REDLOCK_NODES"); /* NOLINT(concurrency-mt-unsafe) */
  char *rest = NULL;
  if (settings->node_count > 0) {
    return -1;
  }
  settings->environment = strdup(text != NULL ? text : "");
  if (settings->environment == NULL) {
    return cli_fail(CLI_SYSTEM, "out of memory");
  }
  for (char *word = strtok_r(settings->environment, " \t\r\n", &rest); word != NULL;
       word = strtok_r(NULL, " \t\r\n", &rest)) {
    int status = cli_settings_node(settings, word);
    if (status >= 0) {
      return status;
    }
  }
  return settings->node_count > 0
             ? -1
             : cli_fail(CLI_USAGE, "no nodes; use --node, or set REDLOCK_NODES to addresses");
}

#define CLI_VERB_ROW(name, fewest, most, operands, purpose)                                        \
  {#name, fewest, most, operands, cli_##name},
static const cli_verb cli_verbs[] = {CLI_VERBS(CLI_VERB_ROW)};
#define CLI_VERB_NAME(name, fewest, most, operands, purpose) " " #name

static const cli_verb *cli_settings_verb(const char *name) {
  for (size_t i = 0; i < sizeof cli_verbs / sizeof cli_verbs[0]; i++) {
    if (strcmp(cli_verbs[i].name, name) == 0) {
      return &cli_verbs[i];
    }
  }
  return NULL;
}

/* Finds the verb and checks the number of its operands. */
static int cli_settings_operands(cli_settings *settings, char **operands) {
  settings->operands = operands;
  if (operands[0] == NULL) {
    return cli_fail(CLI_USAGE,
                    "no verb; use one of" CLI_VERBS(CLI_VERB_NAME) "; see redlock --help");
  }
  const cli_verb *verb = cli_settings_verb(operands[0]);
  if (verb == NULL) {
    return cli_reject("unknown verb", operands[0], "");
  }
  settings->verb = verb;
  size_t count = 0;
  size_t words = 1;
  for (; operands[words] != NULL; words++) {
    /* A "--" may follow the resource. */
    count += words != 2 || strcmp(operands[words], "--") != 0;
  }
  if (count > verb->most) {
    return cli_reject("unexpected operand", operands[verb->most + 1], "");
  }
  /*
   * An unset shell variable as resource, quoted or not, would make all such scripts share a lock.
   */
  bool no_resource =
      verb->fewest > 0 && words > 1 && (operands[1][0] == '\0' || strcmp(operands[1], "--") == 0);
  return count >= verb->fewest && !no_resource
             ? -1
             : cli_fail(CLI_USAGE, "usage: redlock %s%s", verb->name, verb->operands);
}

static int cli_settings_option(cli_settings *settings, int option, char **argv) {
  redlock_options *options = &settings->options;
  redlock_settings *client = &settings->client;
  switch (option) {
  case 'n':
    return cli_settings_node(settings, optarg);
  case 'w':
    return cli_settings_time(&options->wait_us, REDLOCK_DURATION_NONE, optarg);
  case 't':
    return cli_settings_time(&options->ttl_us, 0, optarg);
  case 'M':
    return cli_settings_time(&settings->max_hold_us, 0, optarg);
  case 'T':
    return cli_settings_time(&options->node_timeout_us, 0, optarg);
  case 'p':
    client->prefix = optarg;
    client->prefix_length = strlen(optarg);
    return -1;
  case 'Q':
    return cli_settings_number(&client->quorum, "invalid quorum", 1, REDLOCK_NODES_MAX, optarg);
  case 'G':
    client->guard = REDLOCK_YES;
    return -1;
  case 'L':
    client->guard = REDLOCK_YES;
    return cli_settings_time(&client->guard_max_ttl_us, 0, optarg);
  case 'C':
    client->guard = REDLOCK_YES;
    client->guard_cluster = optarg;
    return -1;
  case 'E':
    return cli_settings_number(&settings->taken_status, "invalid exit status", 0, 255, optarg);
  case 'K':
    settings->keys = true;
    return -1;
  case 'h':
    (void)printf("%s%s", cli_usage, cli_options);
    return 0;
  case 'V':
    (void)printf("redlock %s\n", redlock_version());
    return 0;
  case ':':
    return cli_reject("missing value after", argv[optind - 1], "");
  default:
    return option > CLI_TLS_END || option < CLI_TLS
               ? cli_reject("unknown option", argv[optind - 1], "")
               : cli_tls_option(settings, option, optarg);
  }
}

#define CLI_TLS_NAME(code, name, variable, field) {name, required_argument, NULL, CLI_TLS_##code},

int cli_settings_read(cli_settings *settings, int argc, char **argv) {
  static const struct option names[] = {
      {"node", required_argument, NULL, 'n'},
      {"wait", required_argument, NULL, 'w'},
      {"ttl", required_argument, NULL, 't'},
      {"max-hold", required_argument, NULL, 'M'},
      {"node-timeout", required_argument, NULL, 'T'},
      {"quorum", required_argument, NULL, 'Q'},
      {"guard", no_argument, NULL, 'G'},
      {"guard-max-ttl", required_argument, NULL, 'L'},
      {"guard-cluster", required_argument, NULL, 'C'},
      {"prefix", required_argument, NULL, 'p'},
      {"conflict-exit-code", required_argument, NULL, 'E'},
      {"keys", no_argument, NULL, 'K'},
      {"help", no_argument, NULL, 'h'},
      {"version", no_argument, NULL, 'V'},
      {"tls", no_argument, NULL, CLI_TLS},
      {"tls-min-version", required_argument, NULL, CLI_TLS_MIN_VERSION},
      {"tls-key-password", required_argument, NULL, CLI_TLS_KEY_PASSWORD},
      {"tls-key-password-file", required_argument, NULL, CLI_TLS_KEY_PASSWORD_FILE},
      {"tls-dangerously-unverified", no_argument, NULL, CLI_TLS_DANGEROUSLY_UNVERIFIED},
      CLI_TLS_TEXTS(CLI_TLS_NAME){NULL, 0, NULL, 0}};
  int status = -1;
  int option;
  memset(settings, 0, sizeof *settings);
  settings->taken_status = CLI_TAKEN;
  settings->client.options = &settings->options;
  /* The program has one thread. NOLINTNEXTLINE(concurrency-mt-unsafe) */
  while (status < 0 && (option = getopt_long(argc, argv, "+:n:w:t:p:E:hV", names, NULL)) != -1) {
    status = cli_settings_option(settings, option, argv);
  }
  status = status < 0 ? cli_settings_operands(settings, argv + optind) : status;
  status = status < 0 ? cli_tls_environment(settings) : status;
  return status < 0 ? cli_settings_environment(settings) : status;
}

void cli_settings_free(cli_settings *settings) {
  explicit_bzero(settings->key_password, sizeof settings->key_password);
  free(settings->environment);
}
