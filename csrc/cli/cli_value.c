/*
 * redlock(1): times and numbers of the command line.
 *
 * SPDX-License-Identifier: MIT
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli.h"

#define CLI_TIME_RULE ": use a number with ms, s, m, h or d, such as 0.5s"

/* Returns the length of a unit in microseconds, or 0 if |name| is none. */
static redlock_duration cli_value_unit(const char *name) {
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

static bool cli_value_is_digit(char byte) {
  return byte >= '0' && byte <= '9';
}

/*
 * Reads "10s" or "0.5s" as microseconds, rounded down. A 0 needs no unit. Returns NULL, or the rule
 * that |text| breaks.
 */
static const char *cli_value_read_time(const char *text, redlock_duration *time_us) {
  char *end;
  errno = 0;
  unsigned long long whole = strtoull(text, &end, 10);
  redlock_duration millionths = 0;
  if (!cli_value_is_digit(text[0]) || (*end == '.' && !cli_value_is_digit(end[1]))) {
    return CLI_TIME_RULE;
  }
  if (*end == '.') {
    redlock_duration weight = 1000000;
    for (end++; cli_value_is_digit(*end); end++) {
      weight /= 10;
      millionths += (redlock_duration)(*end - '0') * weight;
    }
  }
  redlock_duration unit_us = cli_value_unit(end);
  bool zero = whole == 0 && millionths == 0 && *end == '\0';
  if (unit_us == 0 && !zero) {
    return CLI_TIME_RULE;
  }
  if (errno != 0 || (unit_us > 0 && whole > REDLOCK_TTL_MAX_US / unit_us)) {
    return ": it is more than a year (366d)";
  }
  *time_us = whole * unit_us + millionths * unit_us / 1000000;
  return *time_us <= REDLOCK_TTL_MAX_US ? NULL : ": it is more than a year (366d)";
}

int cli_value_reject(const cli_choice *choice, const char *what, const char *rule) {
  char named[128];
  (void)snprintf(named, sizeof named, " for --%s%s", choice->option->name, rule);
  return cli_reject(NULL, what, choice->value, named);
}

int cli_value_time(redlock_duration *field_us, redlock_duration zero_us, const cli_choice *choice) {
  const char *rule = cli_value_read_time(choice->value, field_us);
  if (rule == NULL && *field_us == 0) {
    *field_us = zero_us;
    rule = zero_us == 0 ? ": it must be more than 0" : NULL;
  }
  return rule != NULL ? cli_value_reject(choice, "invalid time", rule) : -1;
}

int cli_value_ttl(redlock_duration *field_us, const cli_choice *choice) {
  int status = cli_value_time(field_us, 0, choice);
  return status < 0 && *field_us < CLI_TTL_MIN_US
             ? cli_value_reject(choice, "invalid time",
                                ": a ttl must be at least 4ms, more than the drift allowance")
             : status;
}

int cli_value_number(int *field, const char *what, int least, int most, const cli_choice *choice) {
  const char *text = choice->value;
  char *end;
  long number = strtol(text, &end, 10);
  if (!cli_value_is_digit(text[0]) || *end != '\0' || number < least || number > most) {
    char rule[64];
    (void)snprintf(rule, sizeof rule, ": it must be from %d to %d", least, most);
    return cli_value_reject(choice, what, rule);
  }
  *field = (int)number;
  return -1;
}
