/*
 * redlock(1): text for people: columns, colours, and bytes that no terminal obeys.
 *
 * SPDX-License-Identifier: MIT
 *
 * A table has tabs between its columns if the standard output is no terminal; otherwise it is
 * aligned and has titles. Each row has every column: "-" stands for a missing value.
 */
#ifndef CLI_OUTPUT_H
#define CLI_OUTPUT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

#include "redlock.h"

typedef enum cli_color {
  CLI_PLAIN,
  CLI_GOOD, /* green */
  CLI_WARN, /* yellow */
  CLI_BAD,  /* red */
  CLI_DIM
} cli_color;

/* Returns true if |out| is a terminal that shows colours, and NO_COLOR is not set. */
bool cli_color_wanted(FILE *out);

/* Writes |text| in a colour if colours are wanted. Returns the number of columns. */
size_t cli_put_color(FILE *out, cli_color color, const char *text);

/*
 * Returns the number of bytes of the character of UTF-8 that |bytes| begin with; 0 if they are no
 * valid UTF-8. |*point| is its code point.
 */
size_t cli_utf8(const unsigned char *bytes, size_t length, unsigned *point);

/*
 * Writes |bytes| as printable text. A backslash becomes "\\". A control character, an invisible
 * character and a byte that is no valid UTF-8 become "\xNN" for each byte. Returns the number of
 * columns. |out| may be NULL.
 */
size_t cli_put_text(FILE *out, const void *bytes, size_t length);

/* Replaces each byte that cli_put_text() would escape by "?", except a backslash. */
void cli_mask_text(char *text, size_t length);

/* Writes the same into |text|, up to |size| bytes with its NUL. */
void cli_copy_text(char *text, size_t size, const void *bytes, size_t length);

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

#define CLI_COLUMNS_MAX 8

typedef struct cli_cell {
  const char *text; /* NULL: "-" */
  size_t length;    /* 0: up to its NUL */
  cli_color color;
} cli_cell;

/*
 * Fills |cells| with row |index|, from 0. Returns false if there is no such row. The texts live
 * until the next call. |context| is that of cli_put_table().
 */
typedef bool cli_row(void *context, size_t index, cli_cell cells[static CLI_COLUMNS_MAX]);

/* Writes all rows to the standard output. |titles| has a title for each of |count| columns. */
void cli_put_table(const char *const *titles, size_t count, cli_row *row, void *context);

#endif
