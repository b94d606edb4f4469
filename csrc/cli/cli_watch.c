/*
 * redlock watch: prints a line for each change of a lock, until a signal.
 *
 * SPDX-License-Identifier: MIT
 *
 * The verb inspects the lock again and again. So a lock that is taken and released between two
 * inspections is not seen. A line says what the inspection found, and when it ended.
 */
#include <string.h>
#include <time.h>

#include "cli_inspect.h"

/* Content of the last line. */
typedef struct cli_watch_line {
  bool begun;
  bool undecided; /* the last inspection was */
  cli_lock_state state;
  size_t token_length;
  char token[REDLOCK_TOKEN_MAX];
} cli_watch_line;

/* Writes the time as "2026-11-26T08:00:00.123Z" into |text|. */
static void cli_watch_time(char text[static 32]) {
  struct timespec now = {0};
  struct tm parts = {0};
  (void)clock_gettime(CLOCK_REALTIME, &now);
  (void)gmtime_r(&now.tv_sec, &parts);
  size_t length = strftime(text, 32, "%Y-%m-%dT%H:%M:%S", &parts);
  (void)snprintf(text + length, 32 - length, ".%03ldZ", now.tv_nsec / 1000000);
}

/*
 * Remembers |inspection|. Returns true if it differs from the last line. An undecided state counts
 * if two inspections find it: an inspection during an acquire or a release finds a mixture.
 */
static bool cli_watch_changed(cli_watch_line *last, const cli_inspection *inspection) {
  const redlock_holder_info *holder = &inspection->holder;
  bool held = inspection->state == CLI_LOCK_HELD;
  bool undecided = inspection->state == CLI_LOCK_UNDECIDED;
  if (undecided && !last->undecided) {
    last->undecided = true;
    return false;
  }
  last->undecided = undecided;
  size_t length = held && holder->token_length <= sizeof last->token ? holder->token_length : 0;
  bool same = last->begun && last->state == inspection->state && last->token_length == length &&
              (length == 0 || memcmp(last->token, holder->token, length) == 0);
  last->begun = true;
  last->state = inspection->state;
  last->token_length = length;
  if (length > 0) {
    memcpy(last->token, holder->token, length);
  }
  return !same;
}

static void cli_watch_print(const cli_settings *settings, const cli_inspection *inspection,
                            redlock_lock *lock) {
  char time[32];
  const char *error = inspection->state == CLI_LOCK_UNAVAILABLE ? redlock_lock_message(lock) : NULL;
  cli_watch_time(time);
  if (settings->json) {
    cli_json json = cli_json_begin_lock(lock);
    cli_json_text(&json, "time", time);
    cli_inspection_json(&json, inspection);
    cli_json_text(&json, "error", error);
    cli_json_end_line(&json);
    return;
  }
  cli_put_color(CLI_DIM, time);
  (void)fputs("  ", stdout);
  cli_put_color(cli_lock_states[inspection->state].color, cli_lock_states[inspection->state].name);
  if (inspection->state == CLI_LOCK_HELD) {
    (void)fputs("         ", stdout);
    cli_put_holder(stdout, &inspection->holder);
  } else if (error != NULL) {
    (void)fputs("  ", stdout);
    (void)cli_put_text(stdout, error, strlen(error));
  }
  (void)fputc('\n', stdout);
}

int cli_watch(const cli_settings *settings, cli_loop *loop, redlock_lock *lock) {
  cli_watch_line last = {0};
  cli_inspection inspection;
  int status = -1;
  while (status < 0) {
    redlock_time next_us = redlock_now() + settings->interval_us;
    status = last.begun ? cli_await(settings, loop, lock, redlock_lock_inspect_start(lock))
                        : cli_inspect_await(settings, loop, lock);
    if (status >= 0) {
      return status;
    }
    cli_inspection_read(&inspection, settings, lock);
    bool first = !last.begun;
    if (cli_watch_changed(&last, &inspection) && !(first && settings->quiet)) {
      cli_watch_print(settings, &inspection, lock);
      status = cli_flush();
      if (status != 0) {
        return status;
      }
    }
    status = cli_pause(loop, next_us);
  }
  return status;
}
