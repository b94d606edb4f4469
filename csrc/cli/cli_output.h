/*
 * redlock(1): text for people, JSON for programs, and tables that become either.
 *
 * SPDX-License-Identifier: MIT
 *
 * No terminal obeys bytes of the text. JSON is valid UTF-8: U+FFFD replaces a byte that is not.
 */
#ifndef CLI_OUTPUT_H
#define CLI_OUTPUT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "redlock.h"

/* ----------------------------------------------------------------------------------------- text */

/*
 * Writes |bytes| as printable text. A backslash becomes "\\". A control character, an invisible
 * character and a byte that is no valid UTF-8 become "\xNN" for each byte. Returns the number of
 * columns. |out| may be NULL.
 */
size_t cli_put_text(FILE *out, const void *bytes, size_t length);

/* Writes the same into |text|, up to |size| bytes with its NUL. */
void cli_copy_text(char *text, size_t size, const void *bytes, size_t length);

/* Replaces each byte that cli_put_text() would escape by "?", except a backslash. */
void cli_mask_text(char *text, size_t length);

/*
 * Undoes cli_put_text() in place. Returns false if |text| has a backslash that cli_put_text() does
 * not write. |*length| is the number of bytes.
 */
bool cli_read_text(char *text, size_t *length);

/*
 * Writes a time as "310us", "4.2ms" or "8.5s" into |text|; REDLOCK_NEVER becomes "-". Returns
 * |text|.
 */
const char *cli_format_time(char text[static 24], redlock_duration time_us);

typedef enum cli_color {
  CLI_PLAIN,
  CLI_GOOD, /* green */
  CLI_WARN, /* yellow */
  CLI_BAD,  /* red */
  CLI_DIM
} cli_color;

/* Writes |text| to the standard output, in a colour if that is a terminal which shows colours. */
void cli_put_color(cli_color color, const char *text);

/* ----------------------------------------------------------------------------------------- JSON */

/*
 * A writer keeps track of commas. Every name is that of a member; NULL stands for an element of a
 * list.
 */
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

/* NULL becomes null. */
void cli_json_text(cli_json *json, const char *name, const char *text);
void cli_json_bytes(cli_json *json, const char *name, const void *bytes, size_t length);
void cli_json_number(cli_json *json, const char *name, uint64_t number);
/* 0 becomes null. */
void cli_json_count(cli_json *json, const char *name, uint64_t number);
void cli_json_real(cli_json *json, const char *name, double number);
void cli_json_bool(cli_json *json, const char *name, bool value);

/* Writes milliseconds; REDLOCK_NEVER becomes null. */
void cli_json_time(cli_json *json, const char *name, redlock_duration time_us);

/* Prints a line about the failure of an operation of |lock| that ended with |error|. */
void cli_json_failure(const redlock_lock *lock, int error, const char *message);

/* ---------------------------------------------------------------------------------------- table */

#define CLI_COLUMNS_MAX 8

/* A column without a title is only in JSON, and stands last; one without a member only in text. */
typedef struct cli_column {
  const char *title, *member;
} cli_column;

typedef enum cli_kind {
  CLI_TEXT,
  CLI_TOKEN, /* a token; in text without its label */
  CLI_NUMBER,
  CLI_TIME, /* REDLOCK_NEVER: a missing value */
  CLI_TTL   /* REDLOCK_NEVER: "endless", null in JSON */
} cli_kind;

/* A text of NULL is a missing value: "-", null in JSON. A cell of zeros is one. */
typedef struct cli_cell {
  cli_kind kind;
  cli_color color;
  const char *text;
  size_t length;       /* 0: up to its NUL */
  size_t label_length; /* of a token: of its label, with the colon */
  uint64_t number;     /* times in microseconds */
} cli_cell;

/* Sets the cells of a token, or NULL, and of its label, or NULL. */
void cli_set_token(cli_cell cells[static 2], const char *token, size_t length, const char *label,
                   size_t label_length);

/*
 * Fills |cells|, which are zeros, with row |index|, from 0. Returns CLI_ROW_END if there is no such
 * row. The texts live until the next call. |context| is that of the table.
 */
enum { CLI_ROW_END, CLI_ROW_SHOW, CLI_ROW_SKIP };
typedef int cli_row(void *context, size_t index, cli_cell cells[static CLI_COLUMNS_MAX]);

typedef struct cli_table {
  cli_row *row;
  void *context;
  const cli_column *columns; /* ended by one without title and member */
} cli_table;

/*
 * Writes all rows to the standard output, with tabs between the columns. For a terminal they are
 * aligned, and have titles. Each row has every column.
 */
void cli_put_table(const cli_table *table);

/* Writes a list with an object for each row. */
void cli_json_table(cli_json *json, const char *name, const cli_table *table);

/* Writes members of an object; |columns| end as in a table. */
void cli_json_cells(cli_json *json, const cli_column *columns, const cli_cell *cells);

#endif
