/*
 * redlock doctor: reports what is wrong with the nodes, and what to do.
 *
 * SPDX-License-Identifier: MIT
 */
#include "cli.h"

#include <stdio.h>

#include "cli_json.h"
#include "cli_output.h"

typedef struct cli_doctor_rows {
  redlock_lock *lock;
  bool quiet; /* only errors; they are the first findings */
  redlock_finding_info info;
} cli_doctor_rows;

static cli_color cli_doctor_color(redlock_severity severity) {
  return severity == REDLOCK_SEVERITY_ERROR     ? CLI_BAD
         : severity == REDLOCK_SEVERITY_WARNING ? CLI_WARN
                                                : CLI_PLAIN;
}

static bool cli_doctor_row(void *context, size_t index, cli_cell cells[static CLI_COLUMNS_MAX]) {
  cli_doctor_rows *rows = context;
  redlock_finding_info *info = &rows->info;
  if (redlock_lock_finding(rows->lock, index, info) != REDLOCK_OK ||
      (rows->quiet && info->severity != REDLOCK_SEVERITY_ERROR)) {
    return false;
  }
  cells[0].text = redlock_severity_name(info->severity);
  cells[0].color = cli_doctor_color(info->severity);
  cells[1].text = info->name;
  cells[2].text = info->message;
  return true;
}

static void cli_doctor_json(const redlock_client *client, redlock_lock *lock) {
  cli_json json = {0};
  redlock_finding_info info;
  cli_json_begin(&json, NULL, '{');
  cli_json_number(&json, "nodes", redlock_client_node_count(client));
  cli_json_begin(&json, "findings", '[');
  for (size_t i = 0; redlock_lock_finding(lock, i, &info) == REDLOCK_OK; i++) {
    cli_json_begin(&json, NULL, '{');
    cli_json_text(&json, "severity", redlock_severity_name(info.severity));
    cli_json_text(&json, "name", info.name);
    cli_json_text(&json, "node", info.node);
    cli_json_text(&json, "message", info.message);
    cli_json_end(&json, '}');
  }
  cli_json_end(&json, ']');
  cli_json_end_line(&json);
}

int cli_doctor(const cli_settings *settings, cli_loop *loop, redlock_lock *lock) {
  static const char *const titles[] = {"SEVERITY", "NAME", "FINDING"};
  cli_doctor_rows rows = {.lock = lock, .quiet = settings->quiet};
  redlock_finding_info first;
  int error = redlock_lock_doctor_start(lock, settings->keys ? REDLOCK_DOCTOR_KEYS : 0);
  int status = cli_await(settings, loop, lock, error);
  if (status >= 0) {
    return status;
  }
  bool found = redlock_lock_finding(lock, 0, &first) == REDLOCK_OK;
  if (settings->json) {
    cli_doctor_json(loop->client, lock);
  } else if (found) {
    cli_put_table(titles, sizeof titles / sizeof titles[0], cli_doctor_row, &rows);
  } else if (!settings->quiet) {
    (void)printf("nothing is wrong with the %zu nodes\n", redlock_client_node_count(loop->client));
  }
  status = cli_print_result(settings, lock);
  bool found_error = found && first.severity == REDLOCK_SEVERITY_ERROR;
  return status == 0 && found_error ? CLI_FOUND : status;
}
