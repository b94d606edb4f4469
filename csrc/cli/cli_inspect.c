/*
 * redlock inspect: shows the holder of a lock, and the key on each node. Changes nothing.
 *
 * SPDX-License-Identifier: MIT
 */
#include "cli_inspect.h"

#include <poll.h>
#include <string.h>
#include <unistd.h>

#define CLI_INSPECT_RETRIES 3
#define CLI_INSPECT_DELAY_US (200 * REDLOCK_MILLISECONDS)

/* ------------------------------------------------------------------------------------ the state */

const cli_lock_state_words cli_lock_states[] = {
    {"free", CLI_GOOD}, {"held", CLI_PLAIN}, {"undecided", CLI_WARN}, {"unavailable", CLI_BAD}};

void cli_inspection_read(cli_inspection *inspection, const cli_settings *settings,
                         redlock_lock *lock) {
  redlock_key_info key;
  memset(inspection, 0, sizeof *inspection);
  for (size_t i = 0; redlock_lock_key(lock, i, &key) == REDLOCK_OK; i++) {
    inspection->node_count++;
    inspection->answered += key.state != REDLOCK_KEY_UNKNOWN;
    inspection->free += key.state == REDLOCK_KEY_FREE;
  }
  size_t quorum = cli_quorum(settings, inspection->node_count);
  inspection->state = redlock_lock_result(lock) != REDLOCK_OK ? CLI_LOCK_UNAVAILABLE
                      : redlock_lock_holder(lock, &inspection->holder) == REDLOCK_OK ? CLI_LOCK_HELD
                      : inspection->free >= quorum                                   ? CLI_LOCK_FREE
                                                   : CLI_LOCK_UNDECIDED;
}

size_t cli_token_length(size_t token_length, const char *label, size_t label_length) {
  return label != NULL ? token_length - label_length - 1 : token_length;
}

void cli_put_holder(FILE *out, const redlock_holder_info *holder) {
  (void)cli_put_text(out, holder->token,
                     cli_token_length(holder->token_length, holder->label, holder->label_length));
  if (holder->label != NULL) {
    (void)fputs(" (", out);
    (void)cli_put_text(out, holder->label, holder->label_length);
    (void)fputc(')', out);
  }
}

int cli_pause(cli_loop *loop, redlock_time until_us) {
  struct pollfd output = {.fd = STDOUT_FILENO};
  while (redlock_now() < until_us) {
    int number = cli_loop_turn(loop, until_us, &output, 1);
    if (number != 0) {
      return CLI_SIGNAL + number;
    }
    if ((output.revents & POLLERR) != 0) {
      return cli_fail(CLI_SYSTEM, "the reader of the standard output has gone");
    }
  }
  return -1;
}

int cli_inspect_await(const cli_settings *settings, cli_loop *loop, redlock_lock *lock) {
  int status = cli_await(settings, loop, lock, redlock_lock_inspect_start(lock));
  for (unsigned i = 0;
       i < CLI_INSPECT_RETRIES && status < 0 && redlock_lock_result(lock) == REDLOCK_E_UNAVAILABLE;
       i++) {
    status = cli_pause(loop, redlock_now() + CLI_INSPECT_DELAY_US);
    if (status < 0) {
      status = cli_await(settings, loop, lock, redlock_lock_inspect_start(lock));
    }
  }
  return status;
}

/* --------------------------------------------------------------------------------------- output */

void cli_inspection_cells(const cli_inspection *inspection, cli_cell cells[static 6]) {
  const redlock_holder_info *holder = &inspection->holder;
  cells[0].text = cli_lock_states[inspection->state].name;
  cells[0].color = cli_lock_states[inspection->state].color;
  if (inspection->state == CLI_LOCK_HELD) {
    cells[1] = (cli_cell){.kind = CLI_TTL, .number = holder->ttl_us};
    cli_set_token(cells + 2, holder->token, holder->token_length, holder->label,
                  holder->label_length);
    cells[4] = (cli_cell){.kind = CLI_NUMBER, .number = holder->nodes};
    cells[5] =
        (cli_cell){.kind = holder->fence > 0 ? CLI_NUMBER : CLI_TEXT, .number = holder->fence};
  }
}

void cli_inspection_json(cli_json *json, const cli_inspection *inspection) {
  static const cli_column columns[] = {CLI_INSPECTION_COLUMNS, {0}};
  cli_cell cells[CLI_COLUMNS_MAX] = {{0}};
  cli_inspection_cells(inspection, cells);
  cli_json_cells(json, columns, cells);
}

typedef struct cli_inspect_rows {
  redlock_lock *lock;
  redlock_key_info key;
} cli_inspect_rows;

static int cli_inspect_row(void *context, size_t index, cli_cell cells[static CLI_COLUMNS_MAX]) {
  static const cli_color colors[] = {[REDLOCK_KEY_UNKNOWN] = CLI_BAD,
                                     [REDLOCK_KEY_OTHER] = CLI_WARN,
                                     [REDLOCK_KEY_FREE] = CLI_GOOD,
                                     [REDLOCK_KEY_HELD] = CLI_PLAIN};
  cli_inspect_rows *rows = context;
  redlock_key_info *key = &rows->key;
  if (redlock_lock_key(rows->lock, index, key) != REDLOCK_OK) {
    return CLI_ROW_END;
  }
  cells[0].text = key->name;
  cells[1].text = redlock_key_state_name((int)key->state);
  cells[1].color = colors[key->state];
  if (key->state == REDLOCK_KEY_HELD || key->state == REDLOCK_KEY_OTHER) {
    cells[2] = (cli_cell){.kind = CLI_TTL, .number = key->ttl_us};
  }
  cli_set_token(cells + 3, key->token, key->token_length, key->label, key->label_length);
  cells[5].text = key->error;
  return CLI_ROW_SHOW;
}

/* Writes "'job' is held on 3 of 3 nodes, for 9.8s". */
static void cli_inspect_summary(const cli_inspection *inspection, redlock_lock *lock) {
  char ttl[24];
  size_t length;
  const void *resource = redlock_lock_resource(lock, &length);
  (void)cli_put_text(stdout, resource, length);
  (void)fputs(" is ", stdout);
  cli_put_color(cli_lock_states[inspection->state].color, cli_lock_states[inspection->state].name);
  switch (inspection->state) {
  case CLI_LOCK_HELD:
    (void)printf(" on %zu of %zu nodes", inspection->holder.nodes, inspection->node_count);
    if (inspection->holder.fence > 0) {
      (void)printf(" with the fencing token %llu", (unsigned long long)inspection->holder.fence);
    }
    (void)printf("; ends %s%s unless its holder extends it\n",
                 inspection->holder.ttl_us == REDLOCK_NEVER ? "" : "in ",
                 inspection->holder.ttl_us == REDLOCK_NEVER
                     ? "never"
                     : cli_format_time(ttl, inspection->holder.ttl_us));
    break;
  case CLI_LOCK_FREE:
    (void)printf(" on %zu of %zu nodes\n", inspection->free, inspection->node_count);
    break;
  case CLI_LOCK_UNDECIDED:
    (void)puts(": no token is on a majority of the nodes");
    break;
  default:
    (void)printf(": %zu of %zu nodes answered\n", inspection->answered, inspection->node_count);
  }
}

int cli_inspect(const cli_settings *settings, cli_loop *loop, redlock_lock *lock) {
  static const cli_column columns[] = {{"NODE", "node"},
                                       {"STATE", "state"},
                                       {"TTL", "ttl_ms"},
                                       {"TOKEN", "token"},
                                       {"LABEL", "label"},
                                       {"ERROR", "error"},
                                       {0}};
  cli_inspection inspection;
  cli_inspect_rows rows = {.lock = lock};
  const cli_table table = {cli_inspect_row, &rows, columns};
  if (settings->options.permits > 0) {
    return cli_inspect_slots(settings, loop);
  }
  int status = cli_inspect_await(settings, loop, lock);
  if (status >= 0) {
    return status;
  }
  cli_inspection_read(&inspection, settings, lock);
  if (settings->json) {
    cli_json json = cli_json_begin_lock(lock);
    cli_inspection_json(&json, &inspection);
    cli_json_table(&json, "nodes", &table);
    cli_json_end_line(&json);
  } else if (settings->quiet) {
    (void)puts(cli_lock_states[inspection.state].name);
  } else {
    cli_inspect_summary(&inspection, lock);
    cli_put_table(&table);
  }
  return cli_print_result(settings, lock);
}
