/*
 * redlock inspect --permits: shows the holders of a semaphore. Changes nothing.
 *
 * SPDX-License-Identifier: MIT
 *
 * Each slot is a lock: its name is that of the semaphore, a slash and its number. All slots are
 * inspected at once.
 */
#include <stdlib.h>
#include <string.h>

#include "cli_inspect.h"

typedef struct cli_slots {
  const cli_settings *settings;
  size_t count;
  redlock_lock **locks;                    /* of each slot */
  size_t states[CLI_LOCK_UNAVAILABLE + 1]; /* slots with each state */
} cli_slots;

static void cli_slots_close(cli_slots *slots) {
  for (size_t i = 0; slots->locks != NULL && i < slots->count; i++) {
    redlock_lock_free(slots->locks[i]);
  }
  free(slots->locks);
}

/* Makes a lock for each slot. Returns -1, or the exit status after a message. */
static int cli_slots_open(cli_slots *slots, redlock_client *client) {
  static const redlock_options plain = {.permits = REDLOCK_PERMITS_NONE};
  char name[REDLOCK_KEY_MAX + 16];
  slots->count = (size_t)slots->settings->options.permits;
  slots->locks = calloc(slots->count, sizeof(redlock_lock *));
  if (slots->locks == NULL) {
    return cli_fail(CLI_SYSTEM, "out of memory");
  }
  for (size_t i = 0; i < slots->count; i++) {
    int length = snprintf(name, sizeof name, "%s/%zu", slots->settings->operands[1], i + 1);
    if (redlock_lock_new(&slots->locks[i], client, name, (size_t)length, &plain) != REDLOCK_OK) {
      return cli_fail(CLI_USAGE, "%s", redlock_client_message(client));
    }
  }
  return -1;
}

/* Inspects all slots. Returns -1, or the exit status. */
static int cli_slots_inspect(cli_slots *slots, cli_loop *loop) {
  cli_inspection inspection;
  int status = cli_inspect_await(slots->settings, loop, slots->locks[0]); /* It connects. */
  for (size_t i = 1; i < slots->count && status < 0; i++) {
    int error = redlock_lock_inspect_start(slots->locks[i]);
    status = error != REDLOCK_OK ? cli_fail_lock(slots->settings, slots->locks[i], error) : -1;
  }
  for (size_t i = 0; i < slots->count && status < 0; i++) {
    status = cli_await(slots->settings, loop, slots->locks[i], REDLOCK_OK);
    cli_inspection_read(&inspection, slots->settings, slots->locks[i]);
    slots->states[inspection.state]++;
  }
  return status;
}

static int cli_slots_row(void *context, size_t index, cli_cell cells[static CLI_COLUMNS_MAX]) {
  const cli_slots *slots = context;
  cli_inspection inspection;
  if (index == slots->count) {
    return CLI_ROW_END;
  }
  cli_inspection_read(&inspection, slots->settings, slots->locks[index]);
  cells[0] = (cli_cell){.kind = CLI_NUMBER, .number = index + 1};
  cli_inspection_cells(&inspection, cells + 1);
  return inspection.state == CLI_LOCK_FREE ? CLI_ROW_SKIP : CLI_ROW_SHOW;
}

/* Writes "pool is held in 2 of 3 slots; 1 free" and a row for each slot that is not free. */
static void cli_slots_print(cli_slots *slots) {
  static const cli_column columns[] = {{"SLOT", "slot"}, CLI_INSPECTION_COLUMNS, {0}};
  const cli_table table = {cli_slots_row, slots, columns};
  const char *name = slots->settings->operands[1];
  size_t held = slots->states[CLI_LOCK_HELD];
  size_t free = slots->states[CLI_LOCK_FREE];
  if (slots->settings->json) {
    cli_json json = {0};
    cli_json_begin(&json, NULL, '{');
    cli_json_text(&json, "resource", name);
    cli_json_number(&json, "permits", slots->count);
    cli_json_number(&json, "held", held);
    cli_json_number(&json, "free", free);
    cli_json_table(&json, "slots", &table);
    cli_json_end_line(&json);
  } else if (slots->settings->quiet) {
    (void)printf("%zu\n", held);
  } else {
    (void)cli_put_text(stdout, name, strlen(name));
    (void)printf(" is held in %zu of %zu slots; %zu free\n", held, slots->count, free);
    cli_put_table(&table);
  }
}

int cli_inspect_slots(const cli_settings *settings, cli_loop *loop) {
  cli_slots slots = {.settings = settings};
  int status = cli_slots_open(&slots, loop->client);
  status = status < 0 ? cli_slots_inspect(&slots, loop) : status;
  if (status < 0) {
    cli_slots_print(&slots);
    status = cli_print_result(settings, slots.locks[0]);
  }
  cli_slots_close(&slots);
  return status;
}
