/*
 * redlock(1): JSON on the standard output.
 *
 * SPDX-License-Identifier: MIT
 *
 * A writer keeps track of commas. Every name is that of a member; NULL stands for an element of a
 * list. The output is valid UTF-8: U+FFFD replaces a byte that is not.
 */
#ifndef CLI_JSON_H
#define CLI_JSON_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "redlock.h"

typedef struct cli_json {
  bool comma; /* a value precedes */
} cli_json;

/* Begins a line about |lock|: an object, whose first member is "resource". */
cli_json cli_json_begin_lock(const redlock_lock *lock);

/* Begins an object, '{', or a list, '['. Each ends with cli_json_end() and '}' or ']'. */
void cli_json_begin(cli_json *json, const char *name, char bracket);
void cli_json_end(cli_json *json, char bracket);

/* Ends the outermost object, and the line. */
void cli_json_end_line(cli_json *json);

/* |text| may be NULL, which becomes null. */
void cli_json_text(cli_json *json, const char *name, const char *text);
void cli_json_bytes(cli_json *json, const char *name, const void *bytes, size_t length);

/* Writes a token as cli_put_text() does, so that force-release accepts it. */
void cli_json_token(cli_json *json, const char *name, const void *bytes, size_t length);

/* Writes the member "label"; null if |label| is NULL. */
void cli_json_label(cli_json *json, const char *label, size_t length);

void cli_json_number(cli_json *json, const char *name, uint64_t number);
void cli_json_real(cli_json *json, const char *name, double number);
void cli_json_bool(cli_json *json, const char *name, bool value);

/* Writes milliseconds; REDLOCK_NEVER becomes null. */
void cli_json_time(cli_json *json, const char *name, redlock_duration time_us);

/* Prints a line about the failure of an operation of |lock| that ended with |error|. */
void cli_json_failure(const redlock_lock *lock, int error, const char *message);

#endif
