/*
 * redlock(1): the answer of each node to an operation for operators.
 *
 * SPDX-License-Identifier: MIT
 */
#include "cli_votes.h"

#include "cli_json.h"
#include "cli_output.h"

typedef struct cli_votes {
  redlock_lock *lock;
  bool quiet;
  const cli_vote_words *words;
  redlock_vote_info vote;
} cli_votes;

static const char *cli_vote_name(const cli_votes *votes) {
  return votes->vote.vote == REDLOCK_VOTE_GRANTED ? votes->words->granted
         : votes->vote.vote == REDLOCK_VOTE_TAKEN ? votes->words->taken
                                                  : redlock_vote_name((int)votes->vote.vote);
}

static bool cli_vote_row(void *context, size_t index, cli_cell cells[static CLI_COLUMNS_MAX]) {
  cli_votes *votes = context;
  redlock_vote_info *vote = &votes->vote;
  size_t seen = 0;
  for (size_t i = 0; redlock_lock_vote(votes->lock, i, vote) == REDLOCK_OK; i++) {
    bool shown = !votes->quiet || vote->vote != REDLOCK_VOTE_GRANTED;
    if (shown && seen++ == index) {
      cells[0].text = vote->name;
      cells[1].text = cli_vote_name(votes);
      cells[1].color = vote->vote == REDLOCK_VOTE_GRANTED ? CLI_GOOD
                       : vote->vote == REDLOCK_VOTE_TAKEN ? CLI_WARN
                                                          : CLI_BAD;
      cells[2].text = vote->error;
      return true;
    }
  }
  return false;
}

static void cli_votes_json(cli_votes *votes) {
  cli_json json = cli_json_begin_lock(votes->lock);
  redlock_vote_info *vote = &votes->vote;
  cli_json_bool(&json, "ok", redlock_lock_result(votes->lock) == REDLOCK_OK);
  if (votes->words->label_length > 0) {
    cli_json_label(&json, votes->words->label, votes->words->label_length);
  }
  cli_json_begin(&json, "nodes", '[');
  for (size_t i = 0; redlock_lock_vote(votes->lock, i, vote) == REDLOCK_OK; i++) {
    cli_json_begin(&json, NULL, '{');
    cli_json_text(&json, "node", vote->name);
    cli_json_text(&json, "state", cli_vote_name(votes));
    cli_json_text(&json, "error", vote->error);
    cli_json_end(&json, '}');
  }
  cli_json_end(&json, ']');
  cli_json_end_line(&json);
}

void cli_put_votes(const cli_settings *settings, redlock_lock *lock, const cli_vote_words *words) {
  static const char *const titles[] = {"NODE", "STATE", "ERROR"};
  cli_votes votes = {.lock = lock, .quiet = settings->quiet, .words = words};
  if (settings->json) {
    cli_votes_json(&votes);
    return;
  }
  if (words->label_length > 0 && !settings->quiet) {
    (void)fputs("the holder was: ", stdout);
    (void)cli_put_text(stdout, words->label, words->label_length);
    (void)fputc('\n', stdout);
  }
  cli_put_table(titles, sizeof titles / sizeof titles[0], cli_vote_row, &votes);
}
