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
  cli_inspection *inspections;             /* likewise */
  size_t states[CLI_LOCK_UNAVAILABLE + 1]; /* slots with each state */
  size_t next;                             /* slot whose row is next */
  char number[16], ttl[24];
} cli_slots;

static void cli_slots_close(cli_slots *slots) {
  for (size_t i = 0; slots->locks != NULL && i < slots->count; i++) {
    redlock_lock_free(slots->locks[i]);
  }
  free(slots->locks);
  free(slots->inspections);
}

/* Makes a lock for each slot. Returns -1, or the exit status after a message. */
static int cli_slots_open(cli_slots *slots, redlock_client *client) {
  static const redlock_options plain = {.permits = REDLOCK_PERMITS_NONE};
  char name[REDLOCK_KEY_MAX + 16];
  slots->count = (size_t)slots->settings->options.permits;
  slots->locks = calloc(slots->count, sizeof(redlock_lock *));
  slots->inspections = calloc(slots->count, sizeof *slots->inspections);
  if (slots->locks == NULL || slots->inspections == NULL) {
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
  int status = cli_inspect_await(slots->settings, loop, slots->locks[0]); /* It connects. */
  for (size_t i = 1; i < slots->count && status < 0; i++) {
    int error = redlock_lock_inspect_start(slots->locks[i]);
    status = error != REDLOCK_OK ? cli_await(slots->settings, loop, slots->locks[i], error) : -1;
  }
  for (size_t i = 0; i < slots->count && status < 0; i++) {
    status = cli_await(slots->settings, loop, slots->locks[i], REDLOCK_OK);
    cli_inspection_read(&slots->inspections[i], slots->settings, slots->locks[i]);
    slots->states[slots->inspections[i].state]++;
  }
  return status;
}

static bool cli_slots_row(void *context, size_t index, cli_cell cells[static CLI_COLUMNS_MAX]) {
  cli_slots *slots = context;
  (void)index;
  while (slots->next < slots->count && slots->inspections[slots->next].state == CLI_LOCK_FREE) {
    slots->next++;
  }
  if (slots->next == slots->count) {
    return false;
  }
  const cli_inspection *inspection = &slots->inspections[slots->next++];
  const redlock_holder_info *holder = &inspection->holder;
  (void)snprintf(slots->number, sizeof slots->number, "%zu", slots->next);
  cells[0].text = slots->number;
  cells[1].text = cli_lock_state_name(inspection->state);
  cells[1].color = cli_lock_state_color(inspection->state);
  if (inspection->state == CLI_LOCK_HELD) {
    cells[2].text =
        holder->ttl_us == REDLOCK_NEVER ? "endless" : cli_format_time(slots->ttl, holder->ttl_us);
    cells[3].text = holder->token;
    cells[3].length = cli_token_length(holder->token_length, holder->label, holder->label_length);
    cells[4].text = holder->label;
    cells[4].length = holder->label_length;
  }
  return true;
}

static void cli_slots_json(const cli_slots *slots) {
  cli_json json = {0};
  const char *name = slots->settings->operands[1];
  cli_json_begin(&json, NULL, '{');
  cli_json_bytes(&json, "resource", name, strlen(name));
  cli_json_number(&json, "permits", slots->count);
  cli_json_number(&json, "held", slots->states[CLI_LOCK_HELD]);
  cli_json_number(&json, "free", slots->states[CLI_LOCK_FREE]);
  cli_json_begin(&json, "slots", '[');
  for (size_t i = 0; i < slots->count; i++) {
    if (slots->inspections[i].state != CLI_LOCK_FREE) {
      cli_json_begin(&json, NULL, '{');
      cli_json_number(&json, "slot", i + 1);
      cli_inspection_json(&json, &slots->inspections[i]);
      cli_json_end(&json, '}');
    }
  }
  cli_json_end(&json, ']');
  cli_json_end_line(&json);
}

/* Writes "'pool' is held in 2 of 3 slots" and a row for each slot that is not free. */
static void cli_slots_text(cli_slots *slots) {
  static const char *const titles[] = {"SLOT", "STATE", "TTL", "TOKEN", "LABEL"};
  const char *name = slots->settings->operands[1];
  size_t held = slots->states[CLI_LOCK_HELD], free = slots->states[CLI_LOCK_FREE];
  (void)cli_put_text(stdout, name, strlen(name));
  (void)printf(" is held in %zu of %zu slots; %zu free\n", held, slots->count, free);
  if (free < slots->count) {
    cli_put_table(titles, sizeof titles / sizeof titles[0], cli_slots_row, slots);
  }
}

int cli_inspect_slots(const cli_settings *settings, cli_loop *loop) {
  cli_slots slots = {.settings = settings};
  int status = cli_slots_open(&slots, loop->client);
  status = status < 0 ? cli_slots_inspect(&slots, loop) : status;
  if (status < 0) {
    if (settings->json) {
      cli_slots_json(&slots);
    } else if (settings->quiet) {
      (void)printf("%zu\n", slots.states[CLI_LOCK_HELD]);
    } else {
      cli_slots_text(&slots);
    }
    status = cli_print_result(settings, slots.locks[0]);
  }
  cli_slots_close(&slots);
  return status;
}
