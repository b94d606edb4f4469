/*
 * redlock(1): the answer of each node to an operation for operators.
 *
 * SPDX-License-Identifier: MIT
 */
#include "cli.h"
#include "cli_output.h"

typedef struct cli_votes {
  redlock_lock *lock;
  bool quiet;
  const char *granted, *taken;
  redlock_vote_info vote;
} cli_votes;

static int cli_vote_row(void *context, size_t index, cli_cell cells[static CLI_COLUMNS_MAX]) {
  cli_votes *votes = context;
  redlock_vote_info *vote = &votes->vote;
  if (redlock_lock_vote(votes->lock, index, vote) != REDLOCK_OK) {
    return CLI_ROW_END;
  }
  bool granted = vote->vote == REDLOCK_VOTE_GRANTED;
  bool taken = vote->vote == REDLOCK_VOTE_TAKEN;
  cells[0].text = vote->name;
  cells[1].text = granted ? votes->granted
                  : taken ? votes->taken
                          : redlock_vote_name((int)vote->vote);
  cells[1].color = granted ? CLI_GOOD : taken ? CLI_WARN : CLI_BAD;
  cells[2].text = vote->error;
  return votes->quiet && granted ? CLI_ROW_SKIP : CLI_ROW_SHOW;
}

void cli_put_votes(const cli_settings *settings, redlock_lock *lock, const char *granted,
                   const char *taken, const char *label, size_t label_length) {
  static const cli_column columns[] = {
      {"NODE", "node"}, {"STATE", "state"}, {"ERROR", "error"}, {0}};
  cli_votes votes = {.lock = lock,
                     .quiet = settings->quiet && !settings->json,
                     .granted = granted,
                     .taken = taken};
  const cli_table table = {cli_vote_row, &votes, columns};
  if (settings->json) {
    cli_json json = cli_json_begin_lock(lock);
    cli_json_bool(&json, "ok", redlock_lock_result(lock) == REDLOCK_OK);
    cli_json_bytes(&json, "label", label, label_length);
    cli_json_table(&json, "nodes", &table);
    cli_json_end_line(&json);
    return;
  }
  if (label != NULL && !settings->quiet) {
    (void)fputs("the holder was: ", stdout);
    (void)cli_put_text(stdout, label, label_length);
    (void)fputc('\n', stdout);
  }
  cli_put_table(&table);
}
