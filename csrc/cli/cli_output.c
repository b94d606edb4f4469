/*
 * redlock(1): text for people: columns, colours, and bytes that no terminal obeys.
 *
 * SPDX-License-Identifier: MIT
 */
#include "cli_output.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli.h"

/* -------------------------------------------------------------------------------------- colours */

bool cli_color_wanted(FILE *out) {
  /* The program has one thread. NOLINTBEGIN(concurrency-mt-unsafe) */
  const char *refusal = getenv("NO_COLOR");
  const char *terminal = getenv("TERM");
  /* NOLINTEND(concurrency-mt-unsafe) */
  return (refusal == NULL || refusal[0] == '\0') && terminal != NULL && terminal[0] != '\0' &&
         strcmp(terminal, "dumb") != 0 && isatty(fileno(out)) != 0;
}

static const char *cli_color_code(cli_color color) {
  switch (color) {
  case CLI_GOOD:
    return "\033[32m";
  case CLI_WARN:
    return "\033[33m";
  case CLI_BAD:
    return "\033[31m";
  case CLI_DIM:
    return "\033[2m";
  default:
    return NULL;
  }
}

static size_t cli_put_cell(FILE *out, cli_color color, const char *text, size_t length) {
  const char *code = out != NULL && cli_color_wanted(out) ? cli_color_code(color) : NULL;
  if (code == NULL) {
    return cli_put_text(out, text, length);
  }
  (void)fputs(code, out);
  size_t columns = cli_put_text(out, text, length);
  (void)fputs("\033[0m", out);
  return columns;
}

size_t cli_put_color(FILE *out, cli_color color, const char *text) {
  return cli_put_cell(out, color, text, strlen(text));
}

/* ----------------------------------------------------------------------------------------- text */

size_t cli_utf8(const unsigned char *bytes, size_t length, unsigned *point) {
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

static int cli_hex_digit(char digit) {
  static const char digits[] = "0123456789abcdef";
  const char *found = digit != '\0' ? strchr(digits, digit) : NULL;
  return found != NULL ? (int)(found - digits) : -1;
}

bool cli_read_text(char *text, size_t *length) {
  char *to = text;
  for (const char *from = text; *from != '\0'; from++) {
    if (*from != '\\') {
      *to++ = *from;
      continue;
    }
    from++;
    int high = *from == 'x' ? cli_hex_digit(from[1]) : -1;
    int low = high >= 0 ? cli_hex_digit(from[2]) : -1;
    if (low < 0 && *from != '\\') {
      return false;
    }
    *to++ = low < 0 ? '\\' : (char)(unsigned char)(high << 4 | low);
    from += low < 0 ? 0 : 2;
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

/* ---------------------------------------------------------------------------------------- table */

static size_t cli_cell_length(const cli_cell *cell) {
  return cell->text == NULL ? 1 : cell->length > 0 ? cell->length : strlen(cell->text);
}

static const char *cli_cell_text(const cli_cell *cell) {
  return cell->text == NULL ? "-" : cell->text;
}

static void cli_put_row(const cli_cell *cells, const size_t *widths, size_t count) {
  for (size_t i = 0; i < count; i++) {
    size_t used =
        cli_put_cell(stdout, cells[i].color, cli_cell_text(&cells[i]), cli_cell_length(&cells[i]));
    if (i + 1 == count) {
      (void)fputc('\n', stdout);
    } else if (widths == NULL) {
      (void)fputc('\t', stdout);
    } else {
      (void)printf("%*s", (int)(widths[i] - used + 2), "");
    }
  }
}

void cli_put_table(const char *const *titles, size_t count, cli_row *row, void *context) {
  cli_cell cells[CLI_COLUMNS_MAX];
  size_t widths[CLI_COLUMNS_MAX] = {0};
  bool aligned = isatty(STDOUT_FILENO) != 0;
  for (size_t i = 0; i < count; i++) {
    widths[i] = strlen(titles[i]);
    cells[i] = (cli_cell){.text = titles[i], .color = CLI_DIM};
  }
  if (aligned && row(context, 0, (cli_cell[CLI_COLUMNS_MAX]){{0}})) {
    cli_cell measured[CLI_COLUMNS_MAX] = {{0}};
    for (size_t index = 0; row(context, index, measured); index++) {
      for (size_t i = 0; i < count; i++) {
        size_t width =
            cli_put_text(NULL, cli_cell_text(&measured[i]), cli_cell_length(&measured[i]));
        widths[i] = width > widths[i] ? width : widths[i];
      }
      memset(measured, 0, sizeof measured);
    }
    cli_put_row(cells, widths, count);
  }
  memset(cells, 0, sizeof cells);
  for (size_t index = 0; row(context, index, cells); index++) {
    cli_put_row(cells, aligned ? widths : NULL, count);
    memset(cells, 0, sizeof cells);
  }
}
