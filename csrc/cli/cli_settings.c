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

#define CLI_VERB_HELP(name, fewest, most, operands, does) "  " #name operands "\n      " does "\n"
static const char cli_help[] =
    "usage: redlock [option]... VERB [operand]...\n"
    "\n" CLI_VERBS(
        CLI_VERB_HELP) "\n"
                       "  -n, --node ADDRESS              a node, once for each; or REDLOCK_NODES, between spaces\n"
                       "  -w, --wait TIME                 for the lock; 0 = try once [four attempts, about a second]\n"
                       "  -t, --ttl TIME                  after which the lock ends when this program dies [10s]\n"
                       "      --max-hold TIME             after which the lock is extended no more [never]\n"
                       "      --node-timeout TIME         for one attempt [100ms, at most a tenth of the ttl]\n"
                       "      --quorum NUMBER             nodes that are needed, if more than a majority\n"
                       "      --guard                     nodes vote only when they have forgotten no lock. As does any of\n"
                       "      --guard-max-ttl TIME        the longest ttl that any client uses [30s]\n"
                       "      --guard-cluster NAME        a name for the list of nodes [a hash of it]\n"
                       "  -p, --prefix TEXT               before the name of the resource\n"
                       "  -E, --conflict-exit-code NUMBER when the lock is taken [1]\n"
                       "      --keys                      doctor: look for locks without an expiry, too\n"
                       "  -h, --help    -V, --version\n"
                       "\n"
                       "      --tls                       with nodes that are no Unix sockets; or rediss:// for one. As does any of\n"
                       "      --tls-ca FILE, --tls-ca-path DIRECTORY   whom to trust [the system's CAs]\n"
                       "      --tls-crl FILE              certificates that were revoked\n"
                       "      --tls-cert FILE, --tls-key FILE, --tls-key-password-file FILE\n"
                       "      --tls-server-name NAME      whom the certificates are for [the host of the node]\n"
                       "      --tls-min-version 1.2|1.3, --tls-ciphers LIST, --tls-dangerously-unverified\n"
                       "\n"
                       "A TIME is a number and ms, s, m or h: 500ms, 10s.\n"
                       "It exits with the status of the command (128 and the signal that ended it), or 1: the lock is\n"
                       "taken; 64: usage; 69: too few nodes; 71: system; 75: the command succeeded, but its lock ended\n"
                       "before; 126, 127: the command cannot be executed, is not there.\n";

static int cli_wrong(const char *what, const char *text) {
  return cli_fail(CLI_USAGE, "%s '%s'; redlock --help shows what there is", what, text);
}

/* "10s" -> microseconds; false when it is no time, or one of more than a year. A bare 0 is one. */
static bool cli_settings_time(const char *text, redlock_duration *time_us) {
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

static int cli_settings_time_of(redlock_duration *field_us, redlock_duration zero_us,
                                const char *text) {
  if (!cli_settings_time(text, field_us)) {
    return cli_wrong("not a time such as 500ms or 10s:", text);
  }
  if (*field_us == 0) {
    *field_us = zero_us;
  }
  return *field_us == 0 ? cli_wrong("a time that must be more than 0:", text) : -1;
}

static int cli_settings_status(int *status, const char *text) {
  char *end;
  long number = strtol(text, &end, 10);
  if (text[0] < '0' || text[0] > '9' || *end != '\0' || number > 255) {
    return cli_wrong("not an exit status from 0 to 255:", text);
  }
  *status = (int)number;
  return -1;
}

static int cli_settings_quorum(int *quorum, const char *text) {
  char *end;
  long number = strtol(text, &end, 10);
  if (text[0] < '1' || text[0] > '9' || *end != '\0' || number > REDLOCK_NODES_MAX) {
    return cli_wrong("not a number of nodes from 1 to 32:", text);
  }
  *quorum = (int)number;
  return -1;
}

static int cli_settings_node(cli_settings *settings, const char *address) {
  if (settings->node_count == REDLOCK_NODES_MAX) {
    return cli_fail(CLI_USAGE, "there are more than %d nodes", REDLOCK_NODES_MAX);
  }
  settings->nodes[settings->node_count++] = address;
  return -1;
}

/* The nodes of the environment, when the command line has named none. */
static int cli_settings_environment(cli_settings *settings) {
  const char *text = getenv("REDLOCK_NODES"); /* NOLINT(concurrency-mt-unsafe) */
  char *rest = NULL;
  if (settings->node_count > 0 || text == NULL) {
    return settings->node_count > 0 ? -1 : cli_fail(CLI_USAGE, "no node: -n or REDLOCK_NODES");
  }
  settings->environment = strdup(text);
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
  return settings->node_count > 0 ? -1 : cli_fail(CLI_USAGE, "REDLOCK_NODES names no node");
}

#define CLI_VERB_ROW(name, fewest, most, operands, does)                                           \
  {#name, fewest, most, operands, cli_##name},
static const cli_verb cli_verbs[] = {CLI_VERBS(CLI_VERB_ROW)};
#define CLI_VERB_NAME(name, fewest, most, operands, does) " " #name

static const cli_verb *cli_settings_verb(const char *name) {
  for (size_t i = 0; i < sizeof cli_verbs / sizeof cli_verbs[0]; i++) {
    if (strcmp(cli_verbs[i].name, name) == 0) {
      return &cli_verbs[i];
    }
  }
  return NULL;
}

/* The verb, and how many operands it wants. */
static int cli_settings_operands(cli_settings *settings, char **operands) {
  settings->operands = operands;
  if (operands[0] == NULL) {
    return cli_fail(CLI_USAGE,
                    "no verb; there are" CLI_VERBS(CLI_VERB_NAME) ": see redlock --help");
  }
  const cli_verb *verb = cli_settings_verb(operands[0]);
  if (verb == NULL) {
    return cli_wrong("unknown verb", operands[0]);
  }
  settings->verb = verb;
  size_t count = 0;
  size_t words = 1;
  for (; operands[words] != NULL; words++) {
    /* A "--" may stand behind the resource. */
    count += words != 2 || strcmp(operands[words], "--") != 0;
  }
  if (count > verb->most) {
    return cli_fail(CLI_USAGE, "%s takes no operand '%s'; redlock --help shows what there is",
                    verb->name, operands[verb->most + 1]);
  }
  /* A variable of a script that is not set, with quotes or without: all such scripts would share a lock. */
  bool no_resource =
      verb->fewest > 0 && words > 1 && (operands[1][0] == '\0' || strcmp(operands[1], "--") == 0);
  return count >= verb->fewest && !no_resource
             ? -1
             : cli_fail(CLI_USAGE, "%s wants%s", verb->name, verb->operands);
}

static int cli_settings_option(cli_settings *settings, int option, char **argv) {
  redlock_options *options = &settings->options;
  switch (option) {
  case 'n':
    return cli_settings_node(settings, optarg);
  case 'w':
    return cli_settings_time_of(&options->wait_us, REDLOCK_DURATION_NONE, optarg);
  case 't':
    return cli_settings_time_of(&options->ttl_us, 0, optarg);
  case 'M':
    return cli_settings_time_of(&settings->max_hold_us, 0, optarg);
  case 'T':
    return cli_settings_time_of(&options->node_timeout_us, 0, optarg);
  case 'p':
    settings->prefix = optarg;
    return -1;
  case 'Q':
    return cli_settings_quorum(&settings->quorum, optarg);
  case 'G':
    settings->guard = true;
    return -1;
  case 'L':
    settings->guard = true;
    return cli_settings_time_of(&settings->guard_max_ttl_us, 0, optarg);
  case 'C':
    settings->guard = true;
    settings->guard_cluster = optarg;
    return -1;
  case 'E':
    return cli_settings_status(&settings->taken_status, optarg);
  case 'K':
    settings->keys = true;
    return -1;
  case 'h':
    (void)fputs(cli_help, stdout);
    return 0;
  case 'V':
    (void)printf("redlock %s\n", redlock_version());
    return 0;
  case ':':
    return cli_wrong("a value is missing after", argv[optind - 1]);
  default:
    return option > CLI_TLS_END || option < CLI_TLS ? cli_wrong("unknown option", argv[optind - 1])
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
  memset(settings, 0, sizeof *settings);
  settings->taken_status = CLI_TAKEN;
  while (status < 0) {
    /* There is one thread yet. NOLINTNEXTLINE(concurrency-mt-unsafe) */
    int option = getopt_long(argc, argv, "+:n:w:t:p:E:hV", names, NULL);
    if (option == -1) {
      break;
    }
    status = cli_settings_option(settings, option, argv);
  }
  if (status < 0) {
    status = cli_settings_operands(settings, argv + optind);
  }
  if (status < 0) {
    status = cli_tls_environment(settings);
  }
  return status < 0 ? cli_settings_environment(settings) : status;
}

void cli_settings_free(cli_settings *settings) {
  explicit_bzero(settings->key_password, sizeof settings->key_password);
  free(settings->environment);
}
