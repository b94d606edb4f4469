/*
 * redlock(1): JSON on the standard output.
 *
 * SPDX-License-Identifier: MIT
 */
#include "cli_json.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "cli.h"
#include "cli_output.h"

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

cli_json cli_json_begin_lock(const redlock_lock *lock) {
  cli_json json = {0};
  size_t length;
  const void *resource = redlock_lock_resource(lock, &length);
  cli_json_begin(&json, NULL, '{');
  cli_json_bytes(&json, "resource", resource, length);
  return json;
}

void cli_json_begin(cli_json *json, const char *name, char bracket) {
  cli_json_name(json, name);
  (void)fputc(bracket, stdout);
  json->comma = false;
}

void cli_json_end(cli_json *json, char bracket) {
  (void)fputc(bracket, stdout);
  json->comma = true;
}

void cli_json_end_line(cli_json *json) {
  (void)fputs("}\n", stdout);
  json->comma = false;
}

void cli_json_text(cli_json *json, const char *name, const char *text) {
  if (text != NULL) {
    cli_json_bytes(json, name, text, strlen(text));
    return;
  }
  cli_json_name(json, name);
  (void)fputs("null", stdout);
}

void cli_json_bytes(cli_json *json, const char *name, const void *bytes, size_t length) {
  const unsigned char *at = bytes;
  const unsigned char *end = at + length;
  cli_json_name(json, name);
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

void cli_json_token(cli_json *json, const char *name, const void *bytes, size_t length) {
  char text[4 * REDLOCK_TOKEN_MAX + 1];
  cli_copy_text(text, sizeof text, bytes, length);
  cli_json_text(json, name, text);
}

void cli_json_label(cli_json *json, const char *label, size_t length) {
  if (label != NULL) {
    cli_json_bytes(json, "label", label, length);
  } else {
    cli_json_text(json, "label", NULL);
  }
}

void cli_json_number(cli_json *json, const char *name, uint64_t number) {
  cli_json_name(json, name);
  (void)printf("%" PRIu64, number);
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
