/*
 * redlock doctor: reports what is wrong with the nodes, and what to do.
 *
 * SPDX-License-Identifier: MIT
 */
#include "cli.h"

#include <stdio.h>

#include "cli_output.h"

typedef struct cli_doctor_rows {
  redlock_lock *lock;
  bool quiet; /* only errors; they are the first findings */
  redlock_finding_info info;
} cli_doctor_rows;

static int cli_doctor_row(void *context, size_t index, cli_cell cells[static CLI_COLUMNS_MAX]) {
  cli_doctor_rows *rows = context;
  redlock_finding_info *info = &rows->info;
  if (redlock_lock_finding(rows->lock, index, info) != REDLOCK_OK) {
    return CLI_ROW_END;
  }
  cells[0].text = redlock_severity_name(info->severity);
  cells[0].color = info->severity == REDLOCK_SEVERITY_ERROR     ? CLI_BAD
                   : info->severity == REDLOCK_SEVERITY_WARNING ? CLI_WARN
                                                                : CLI_PLAIN;
  cells[1].text = info->name;
  cells[2].text = info->message;
  cells[3].text = info->node;
  return rows->quiet && info->severity != REDLOCK_SEVERITY_ERROR ? CLI_ROW_SKIP : CLI_ROW_SHOW;
}

int cli_doctor(const cli_settings *settings, cli_loop *loop, redlock_lock *lock) {
  static const cli_column columns[] = {
      {"SEVERITY", "severity"}, {"NAME", "name"}, {"FINDING", "message"}, {NULL, "node"}, {0}};
  cli_doctor_rows rows = {.lock = lock, .quiet = settings->quiet && !settings->json};
  const cli_table table = {cli_doctor_row, &rows, columns};
  size_t count = redlock_client_node_count(loop->client);
  redlock_finding_info first;
  int error = redlock_lock_doctor_start(lock, settings->keys ? REDLOCK_DOCTOR_KEYS : 0);
  int status = cli_await(settings, loop, lock, error);
  if (status >= 0) {
    return status;
  }
  bool found = redlock_lock_finding(lock, 0, &first) == REDLOCK_OK;
  if (settings->json) {
    cli_json json = {0};
    cli_json_begin(&json, NULL, '{');
    cli_json_number(&json, "nodes", count);
    cli_json_table(&json, "findings", &table);
    cli_json_end_line(&json);
  } else if (found) {
    cli_put_table(&table);
  } else if (!settings->quiet) {
    (void)printf("nothing is wrong with the %zu nodes\n", count);
  }
  status = cli_print_result(settings, lock);
  bool found_error = found && first.severity == REDLOCK_SEVERITY_ERROR;
  return status == 0 && found_error ? CLI_FOUND : status;
}
