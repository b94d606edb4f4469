/*
 * redlock(1): text for people, JSON for programs, and tables that become either.
 *
 * SPDX-License-Identifier: MIT
 */
#include "cli_output.h"

#include <ctype.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli.h"

/* ----------------------------------------------------------------------------------------- text */

/*
 * Returns the number of bytes of the character of UTF-8 that |bytes| begin with; 0 if they are no
 * valid UTF-8. |*point| is its code point.
 */
static size_t cli_utf8(const unsigned char *bytes, size_t length, unsigned *point) {
  static const unsigned least[] = {0, 0, 0x80, 0x800, 0x10000};
  unsigned first = length > 0 ? bytes[0] : 0xff;
  size_t count = first < 0x80 ? 1 : first < 0xc2 ? 0 : first < 0xe0 ? 2 : first < 0xf0 ? 3 : 4;
  if (count == 0 || count > length || first > 0xf4) {
    return 0;
  }
  *point = count == 1 ? first : first & (0x7fu >> count);
  for (size_t i = 1; i < count; i++) {
    if ((bytes[i] & 0xc0) != 0x80) {
      return 0;
    }
    *point = *point << 6 | (bytes[i] & 0x3f);
  }
  bool surrogate = *point >= 0xd800 && *point <= 0xdfff;
  return *point < least[count] || *point > 0x10ffff || surrogate ? 0 : count;
}

/* Returns true for control characters, and for those that change or hide the text around them. */
static bool cli_is_invisible(unsigned point) {
  static const struct {
    unsigned first, last;
  } ranges[] = {{0, 0x1f},        {0x7f, 0x9f},     {0xad, 0xad},     {0x61c, 0x61c},
                {0x180e, 0x180e}, {0x200b, 0x200f}, {0x2028, 0x202e}, {0x2060, 0x206f},
                {0xfe00, 0xfe0f}, {0xfeff, 0xfeff}, {0xfff9, 0xfffb}, {0xe0000, 0xe0fff}};
  for (size_t i = 0; i < sizeof ranges / sizeof ranges[0]; i++) {
    if (point >= ranges[i].first && point <= ranges[i].last) {
      return true;
    }
  }
  return false;
}

size_t cli_put_text(FILE *out, const void *bytes, size_t length) {
  const unsigned char *at = bytes;
  const unsigned char *end = at + length;
  size_t columns = 0;
  while (at < end) {
    char text[8];
    unsigned point = 0;
    size_t count = cli_utf8(at, (size_t)(end - at), &point);
    if (count == 0 || cli_is_invisible(point)) {
      /* The other bytes of an invisible character are no valid UTF-8 on their own. */
      (void)snprintf(text, sizeof text, "\\x%02x", *at);
      count = 1;
      columns += 4;
    } else {
      size_t written = *at == '\\' ? 2 : count;
      memcpy(text, *at == '\\' ? (const void *)"\\\\" : at, written);
      text[written] = '\0';
      columns += *at == '\\' ? 2 : 1;
    }
    if (out != NULL) {
      (void)fputs(text, out);
    }
    at += count;
  }
  return columns;
}

void cli_mask_text(char *text, size_t length) {
  size_t count;
  for (size_t i = 0; i < length; i += count) {
    unsigned point = 0;
    count = cli_utf8((const unsigned char *)text + i, length - i, &point);
    bool masked = count == 0 || cli_is_invisible(point);
    count = count == 0 ? 1 : count;
    if (masked) {
      memset(text + i, '?', count);
    }
  }
}

void cli_copy_text(char *text, size_t size, const void *bytes, size_t length) {
  FILE *memory = fmemopen(text, size, "w");
  text[0] = '\0';
  if (memory != NULL) {
    (void)cli_put_text(memory, bytes, length);
    (void)fclose(memory);
  }
  text[size - 1] = '\0';
}

bool cli_read_text(char *text, size_t *length) {
  char *to = text;
  for (const char *from = text; *from != '\0'; from++) {
    if (*from != '\\') {
      *to++ = *from;
      continue;
    }
    from++;
    if (*from == 'x' && isxdigit((unsigned char)from[1]) && isxdigit((unsigned char)from[2])) {
      const char digits[] = {from[1], from[2], '\0'};
      *to++ = (char)strtol(digits, NULL, 16);
      from += 2;
    } else if (*from == '\\') {
      *to++ = '\\';
    } else {
      return false;
    }
  }
  *length = (size_t)(to - text);
  return true;
}

const char *cli_format_time(char text[static 24], redlock_duration time_us) {
  if (time_us == REDLOCK_NEVER) {
    (void)snprintf(text, 24, "-");
  } else if (time_us < REDLOCK_MILLISECONDS) {
    (void)snprintf(text, 24, "%uus", (unsigned)time_us);
  } else if (time_us < REDLOCK_SECONDS) {
    (void)snprintf(text, 24, "%.1fms", (double)time_us / (double)REDLOCK_MILLISECONDS);
  } else {
    (void)snprintf(text, 24, "%.1fs", (double)time_us / (double)REDLOCK_SECONDS);
  }
  return text;
}

/* ---------------------------------------------------------------------------------------- cells */

/* Returns true if the output is a terminal that shows colours, and NO_COLOR is not set. */
static bool cli_color_wanted(void) {
  /* The program has one thread. NOLINTBEGIN(concurrency-mt-unsafe) */
  const char *refusal = getenv("NO_COLOR");
  const char *terminal = getenv("TERM");
  /* NOLINTEND(concurrency-mt-unsafe) */
  return (refusal == NULL || refusal[0] == '\0') && terminal != NULL && terminal[0] != '\0' &&
         strcmp(terminal, "dumb") != 0 && isatty(STDOUT_FILENO) != 0;
}

/* Writes a cell as text, or only measures it. Returns the number of columns. */
static size_t cli_put_cell(const cli_cell *cell, bool measured) {
  static const char *const colors[] = {NULL, "\033[32m", "\033[33m", "\033[31m", "\033[2m"};
  const char *color = !measured && cli_color_wanted() ? colors[cell->color] : NULL;
  const char *text = cell->text;
  size_t length = cell->length - (cell->kind == CLI_TOKEN ? cell->label_length : 0);
  char number[24];
  if (cell->kind == CLI_NUMBER) {
    (void)snprintf(number, sizeof number, "%" PRIu64, cell->number);
    text = number;
  } else if (cell->kind == CLI_TTL && cell->number == REDLOCK_NEVER) {
    text = "endless";
  } else if (cell->kind == CLI_TIME || cell->kind == CLI_TTL) {
    text = cli_format_time(number, cell->number);
  }
  text = text != NULL ? text : "-";
  (void)(color != NULL && fputs(color, stdout));
  length = length > 0 ? length : strlen(text);
  size_t columns = cli_put_text(measured ? NULL : stdout, text, length);
  (void)(color != NULL && fputs("\033[0m", stdout));
  return columns;
}

void cli_put_color(cli_color color, const char *text) {
  (void)cli_put_cell(&(cli_cell){.text = text, .color = color}, false);
}

void cli_set_token(cli_cell cells[static 2], const char *token, size_t length, const char *label,
                   size_t label_length) {
  size_t behind = label != NULL ? label_length + 1 : 0;
  cells[0] = (cli_cell){.kind = CLI_TOKEN, .text = token, .length = length, .label_length = behind};
  cells[1] = (cli_cell){.text = label, .length = label_length};
}

/* ----------------------------------------------------------------------------------------- JSON */

/* Writes what precedes a value. */
static void cli_json_name(cli_json *json, const char *name) {
  if (json->comma) {
    (void)fputs(", ", stdout);
  }
  if (name != NULL) {
    (void)printf("\"%s\": ", name);
  }
  json->comma = true;
}

void cli_json_begin(cli_json *json, const char *name, char bracket) {
  cli_json_name(json, name);
  (void)fputc(bracket, stdout);
  json->comma = false;
}

cli_json cli_json_begin_lock(const redlock_lock *lock) {
  cli_json json = {0};
  size_t length;
  const void *resource = redlock_lock_resource(lock, &length);
  cli_json_begin(&json, NULL, '{');
  cli_json_bytes(&json, "resource", resource, length);
  return json;
}

void cli_json_end(cli_json *json, char bracket) {
  (void)fputc(bracket, stdout);
  json->comma = true;
}

void cli_json_end_line(cli_json *json) {
  (void)fputs("}\n", stdout);
  json->comma = false;
}

void cli_json_bytes(cli_json *json, const char *name, const void *bytes, size_t length) {
  cli_json_name(json, name);
  if (bytes == NULL) {
    (void)fputs("null", stdout);
    return;
  }
  const unsigned char *at = bytes;
  const unsigned char *end = at + length;
  (void)fputc('"', stdout);
  while (at < end) {
    unsigned point = 0;
    size_t count = cli_utf8(at, (size_t)(end - at), &point);
    if (count == 0) {
      (void)fputs("\xef\xbf\xbd", stdout);
      count = 1;
    } else if (point < 0x20 || (point >= 0x7f && point < 0xa0)) {
      (void)printf("\\u%04x", point);
    } else {
      (void)printf("%s%.*s", point == '"' || point == '\\' ? "\\" : "", (int)count,
                   (const char *)at);
    }
    at += count;
  }
  (void)fputc('"', stdout);
}

void cli_json_text(cli_json *json, const char *name, const char *text) {
  cli_json_bytes(json, name, text, text != NULL ? strlen(text) : 0);
}

void cli_json_number(cli_json *json, const char *name, uint64_t number) {
  cli_json_name(json, name);
  (void)printf("%" PRIu64, number);
}

void cli_json_count(cli_json *json, const char *name, uint64_t number) {
  if (number > 0) {
    cli_json_number(json, name, number);
  } else {
    cli_json_text(json, name, NULL);
  }
}

void cli_json_real(cli_json *json, const char *name, double number) {
  cli_json_name(json, name);
  (void)printf("%.3f", number);
}

void cli_json_bool(cli_json *json, const char *name, bool value) {
  cli_json_name(json, name);
  (void)fputs(value ? "true" : "false", stdout);
}

void cli_json_time(cli_json *json, const char *name, redlock_duration time_us) {
  if (time_us == REDLOCK_NEVER) {
    cli_json_text(json, name, NULL);
    return;
  }
  cli_json_name(json, name);
  (void)printf("%" PRIu64 ".%03" PRIu64, time_us / REDLOCK_MILLISECONDS,
               time_us % REDLOCK_MILLISECONDS);
}

void cli_json_failure(const redlock_lock *lock, int error, const char *message) {
  cli_json json = cli_json_begin_lock(lock);
  cli_json_text(&json, "error", redlock_error_name(error));
  cli_json_text(&json, "message", message);
  cli_json_end_line(&json);
  (void)cli_flush();
}

/* Writes a token as cli_put_text() does, so that force-release accepts it. */
static void cli_json_token(cli_json *json, const char *name, const cli_cell *cell) {
  char text[4 * REDLOCK_TOKEN_MAX + 1];
  cli_copy_text(text, sizeof text, cell->text, cell->length);
  cli_json_text(json, name, cell->text != NULL ? text : NULL);
}

static void cli_json_cell(cli_json *json, const char *name, const cli_cell *cell) {
  switch (cell->kind) {
  case CLI_NUMBER:
    cli_json_number(json, name, cell->number);
    break;
  case CLI_TIME:
  case CLI_TTL:
    cli_json_time(json, name, cell->number);
    break;
  case CLI_TOKEN:
    cli_json_token(json, name, cell);
    break;
  default:
    if (cell->length > 0) {
      cli_json_bytes(json, name, cell->text, cell->length);
    } else {
      cli_json_text(json, name, cell->text);
    }
  }
}

void cli_json_cells(cli_json *json, const cli_column *columns, const cli_cell *cells) {
  for (; columns->title != NULL || columns->member != NULL; columns++, cells++) {
    if (columns->member != NULL) {
      cli_json_cell(json, columns->member, cells);
    }
  }
}

/* ---------------------------------------------------------------------------------------- table */

/* Fills |cells| with the next row from |*index|. Returns false if there is none. */
static bool cli_table_next(const cli_table *table, size_t *index,
                           cli_cell cells[static CLI_COLUMNS_MAX]) {
  int row;
  do {
    memset(cells, 0, CLI_COLUMNS_MAX * sizeof *cells);
    row = table->row(table->context, (*index)++, cells);
  } while (row == CLI_ROW_SKIP);
  return row != CLI_ROW_END;
}

/* |widths| is NULL for tabs. */
static void cli_put_row(const cli_table *table, const cli_cell *cells, const size_t *widths) {
  for (size_t i = 0; table->columns[i].title != NULL; i++) {
    size_t used = cli_put_cell(&cells[i], false);
    if (table->columns[i + 1].title == NULL) {
      (void)fputc('\n', stdout);
    } else if (widths == NULL) {
      (void)fputc('\t', stdout);
    } else {
      (void)printf("%*s", (int)(widths[i] - used + 2), "");
    }
  }
}

/* Measures all rows, and writes the titles if there are rows. */
static void cli_put_titles(const cli_table *table, size_t widths[static CLI_COLUMNS_MAX]) {
  cli_cell cells[CLI_COLUMNS_MAX];
  cli_cell titles[CLI_COLUMNS_MAX] = {{0}};
  size_t index = 0;
  for (size_t i = 0; table->columns[i].title != NULL; i++) {
    titles[i] = (cli_cell){.text = table->columns[i].title, .color = CLI_DIM};
    widths[i] = strlen(titles[i].text);
  }
  while (cli_table_next(table, &index, cells)) {
    for (size_t i = 0; table->columns[i].title != NULL; i++) {
      size_t width = cli_put_cell(&cells[i], true);
      widths[i] = width > widths[i] ? width : widths[i];
    }
  }
  index = 0;
  if (cli_table_next(table, &index, cells)) {
    cli_put_row(table, titles, widths);
  }
}

void cli_put_table(const cli_table *table) {
  cli_cell cells[CLI_COLUMNS_MAX];
  size_t widths[CLI_COLUMNS_MAX] = {0};
  size_t index = 0;
  bool aligned = isatty(STDOUT_FILENO) != 0;
  if (aligned) {
    cli_put_titles(table, widths);
  }
  while (cli_table_next(table, &index, cells)) {
    cli_put_row(table, cells, aligned ? widths : NULL);
  }
}

void cli_json_table(cli_json *json, const char *name, const cli_table *table) {
  cli_cell cells[CLI_COLUMNS_MAX];
  size_t index = 0;
  cli_json_begin(json, name, '[');
  while (cli_table_next(table, &index, cells)) {
    cli_json_begin(json, NULL, '{');
    cli_json_cells(json, table->columns, cells);
    cli_json_end(json, '}');
  }
  cli_json_end(json, ']');
}
