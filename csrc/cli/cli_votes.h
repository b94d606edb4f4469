/*
 * redlock(1): the answer of each node to an operation for operators.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef CLI_VOTES_H
#define CLI_VOTES_H

#include "cli.h"

typedef struct cli_vote_words {
  const char *granted, *taken; /* names for these votes */
  const char *label;           /* of the holder, or NULL */
  size_t label_length;
} cli_vote_words;

/*
 * Prints a row for each node, as text or as JSON: its name, the vote, and the error. A line with
 * the label precedes them. With -q, only nodes that have not granted get a row.
 */
void cli_put_votes(const cli_settings *settings, redlock_lock *lock, const cli_vote_words *words);

#endif
