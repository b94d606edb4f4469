/*
 * redlock(1): splits the command line into options and operands.
 *
 * SPDX-License-Identifier: MIT
 */
#include "cli_options.h"

#include <stdio.h>
#include <string.h>

#include "cli.h"

#define CLI_OPTION_ROW(code, letter, name, value, group, meaning)                                  \
  {CLI_OPTION_##code, letter, name, value, CLI_FOR_##group, meaning},
const cli_option cli_options[CLI_OPTION_COUNT] = {CLI_OPTIONS(CLI_OPTION_ROW)};

#define CLI_VERB_ROW(function, name, fewest, most, operands, groups, purpose)                      \
  {cli_##function, name, fewest, most, operands, groups, purpose},
const cli_verb cli_verbs[] = {
    CLI_VERBS(CLI_VERB_ROW){NULL, NULL, 0, 0, NULL, 0, NULL},
};

const cli_verb *cli_verb_find(const char *name) {
  for (const cli_verb *verb = cli_verbs; verb->name != NULL; verb++) {
    if (strcmp(verb->name, name) == 0) {
      return verb;
    }
  }
  return NULL;
}

/* Returns true if |value| contains the text of a lock, "redlock1." or "redlock2." and so on. */
static bool cli_has_lock_text(const char *value) {
  static const char head[] = "redlock";
  for (const char *at = value; (at = strstr(at, head)) != NULL; at += strlen(head)) {
    const char *version = at + strlen(head);
    if (version[0] >= '0' && version[0] <= '9' && version[1] == '.') {
      return true;
    }
  }
  return false;
}

int cli_reject(const cli_verb *verb, const char *what, const char *value, const char *rule) {
  /* An address may contain a password, and the text of a lock contains its token. */
  const char *shown = strstr(value, "://") != NULL ? "(an address)"
                      : cli_has_lock_text(value)   ? "(a text of a lock)"
                                                   : value;
  return cli_fail(CLI_USAGE, "%s '%s'%s; see redlock %s%s--help", what, shown, rule,
                  verb != NULL ? verb->name : "", verb != NULL ? " " : "");
}

/* --------------------------------------------------------------------------------- split a line */

typedef struct cli_scan {
  cli_line *line;
  char **next;  /* the next word */
  bool command; /* "--" or the command has ended the options */
} cli_scan;

static const cli_option *cli_option_find(const char *name, size_t length, char letter) {
  for (size_t i = 0; i < CLI_OPTION_COUNT; i++) {
    const cli_option *option = &cli_options[i];
    bool same = name == NULL
                    ? option->letter == letter
                    : strncmp(option->name, name, length) == 0 && option->name[length] == 0;
    if (same) {
      return option;
    }
  }
  return NULL;
}

/* Adds an option; its value is |value| or the next word. Returns -1, or the exit status. */
static int cli_scan_choice(cli_scan *scan, const cli_option *option, const char *word,
                           const char *value) {
  if (option->value != NULL && value == NULL) {
    if (*scan->next == NULL) {
      return cli_reject(scan->line->verb, "missing value after", word, "");
    }
    value = *scan->next++;
  }
  if (scan->line->choice_count == CLI_CHOICES_MAX) {
    return cli_fail(CLI_USAGE, "more than %d options", CLI_CHOICES_MAX);
  }
  scan->line->choices[scan->line->choice_count++] = (cli_choice){option, value, NULL};
  return -1;
}

/* Reads "--name", "--name value" or "--name=value". */
static int cli_scan_long(cli_scan *scan, const char *word) {
  char name[64];
  size_t length = strcspn(word + 2, "=");
  const char *value = word[2 + length] == '=' ? word + 2 + length + 1 : NULL;
  const cli_option *option = cli_option_find(word + 2, length, 0);
  /* No message has the value, which may contain a password. */
  (void)snprintf(name, sizeof name, "--%.*s", (int)(length < 60 ? length : 60), word + 2);
  if (strcmp(name, "--tls-key-password") == 0) {
    return cli_fail(CLI_USAGE, "other users can read the command line; pass the password with "
                               "--tls-key-password-file or REDLOCK_TLS_KEY_PASSWORD");
  }
  if (option == NULL) {
    return cli_reject(scan->line->verb, "unknown option", name, "");
  }
  if (option->value == NULL && value != NULL) {
    return cli_reject(scan->line->verb, "option", name, " takes no value");
  }
  return cli_scan_choice(scan, option, name, value);
}

/* Reads "-a", "-ab", "-w value" or "-wvalue". */
static int cli_scan_letters(cli_scan *scan, const char *word) {
  int status = -1;
  for (const char *at = word + 1; status < 0 && *at != '\0'; at++) {
    char name[] = {'-', *at, '\0'};
    const cli_option *option = cli_option_find(NULL, 0, *at);
    if (option == NULL) {
      return cli_reject(scan->line->verb, "unknown option", name, "");
    }
    bool joined = option->value != NULL && at[1] != '\0';
    status = cli_scan_choice(scan, option, name, joined ? at + 1 : NULL);
    if (joined) {
      break;
    }
  }
  return status;
}

static int cli_scan_operand(cli_scan *scan, char *word) {
  cli_line *line = scan->line;
  if (line->operand_count == 0) {
    line->verb = cli_verb_find(word);
    if (line->verb == NULL) {
      return cli_reject(NULL, "unknown verb", word, "");
    }
  }
  line->operands[line->operand_count++] = word;
  /* The third word begins the command. Its options are its own. */
  scan->command =
      scan->command || (line->verb->most == CLI_OPERANDS_ANY && line->operand_count > 2);
  return -1;
}

/*
 * An unset shell variable as resource, quoted or not, would make all such scripts share a lock. So
 * "--" must not stand for it.
 */
static int cli_scan_separator(cli_scan *scan) {
  const cli_verb *verb = scan->line->verb;
  scan->command = true;
  if (verb == NULL) {
    return cli_fail(CLI_USAGE, "no verb before '--'; see redlock --help");
  }
  return verb->fewest > 0 && scan->line->operand_count == 1
             ? cli_fail(CLI_USAGE, "no operand before '--'; usage: redlock %s%s", verb->name,
                        verb->operands)
             : -1;
}

int cli_line_read(cli_line *line, int argc, char **argv) {
  cli_scan scan = {line, argv + (argc > 0), false};
  int status = -1;
  memset(line, 0, sizeof *line);
  line->title = argv[0];
  for (int i = 0; i < argc && argv[i] == line->title + line->title_size; i++) {
    line->title_size += strlen(argv[i]) + 1;
  }
  line->operands = argv;
  while (status < 0 && *scan.next != NULL) {
    char *word = *scan.next++;
    bool option = !scan.command && word[0] == '-' && word[1] != '\0';
    status = !option           ? cli_scan_operand(&scan, word)
             : word[1] != '-'  ? cli_scan_letters(&scan, word)
             : word[2] != '\0' ? cli_scan_long(&scan, word)
                               : cli_scan_separator(&scan);
  }
  line->operands[line->operand_count] = NULL;
  return status;
}

/* --------------------------------------------------------------------------------- check a line */

static int cli_line_check_options(const cli_line *line) {
  /* An alias with the nodes serves also verbs without nodes. */
  unsigned groups = line->verb->groups | CLI_FOR_NODES | CLI_FOR_ALWAYS;
  for (size_t i = 0; i < line->choice_count; i++) {
    const cli_option *option = line->choices[i].option;
    if ((option->group & groups) == 0) {
      char name[64];
      (void)snprintf(name, sizeof name, "--%s", option->name);
      return cli_reject(line->verb, "option", name, " has no meaning for this verb");
    }
  }
  return -1;
}

int cli_line_check(const cli_line *line) {
  const cli_verb *verb = line->verb;
#define CLI_VERB_NAME(function, name, fewest, most, operands, groups, purpose) " " name
  if (verb == NULL) {
    return cli_fail(CLI_USAGE,
                    "no verb; use one of" CLI_VERBS(CLI_VERB_NAME) "; see redlock --help");
  }
  size_t count = line->operand_count - 1;
  if (count > verb->most) {
    return cli_reject(verb, "unexpected operand", line->operands[verb->most + 1], "");
  }
  const char *first = line->operands[1];
  bool command = verb->most == CLI_OPERANDS_ANY;
  bool resource = strstr(verb->operands, "RESOURCE") != NULL;
  if (resource && count > 0 && first[0] == '\0') {
    return cli_reject(verb, "invalid resource", first, ": RESOURCE is empty");
  }
  if (count < verb->fewest || (count > 0 && first[0] == '\0') ||
      (command && line->operands[2][0] == '\0')) {
    return cli_fail(CLI_USAGE, "usage: redlock %s%s", verb->name, verb->operands);
  }
  if (resource && count > 0 && first[0] == '-') {
    return cli_reject(verb, "invalid resource", first, ": it must not begin with '-'");
  }
  return cli_line_check_options(line);
}
