/*
 * redlock(1): the state of a lock, from its inspection.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef CLI_INSPECT_H
#define CLI_INSPECT_H

#include "cli.h"
#include "cli_output.h"

typedef enum cli_lock_state {
  CLI_LOCK_FREE,       /* a quorum of the nodes has no key */
  CLI_LOCK_HELD,       /* a majority has the same token */
  CLI_LOCK_UNDECIDED,  /* neither: an acquire or a release is in progress, or nodes lost keys */
  CLI_LOCK_UNAVAILABLE /* too few nodes answered */
} cli_lock_state;

/* Result of an inspection. The holder's texts live until the lock is inspected again. */
typedef struct cli_inspection {
  cli_lock_state state;
  size_t node_count;
  size_t answered;            /* nodes that answered */
  size_t free;                /* nodes without the key */
  redlock_holder_info holder; /* if |state| is CLI_LOCK_HELD */
} cli_inspection;

/* Reads the result of an inspection of |lock| that has ended. */
void cli_inspection_read(cli_inspection *inspection, const cli_settings *settings,
                         redlock_lock *lock);

typedef struct cli_lock_state_words {
  const char *name;
  cli_color color;
} cli_lock_state_words;

extern const cli_lock_state_words cli_lock_states[]; /* of each state */

/* Writes the holder's token, and its label in parentheses if it has one. */
void cli_put_holder(FILE *out, const redlock_holder_info *holder);

/* Returns the number of bytes of a token without its label, which is enough for force-release. */
size_t cli_token_length(size_t token_length, const char *label, size_t label_length);

/*
 * Inspects the lock. Tries again, up to four times, while too few nodes answer, because the first
 * time has to connect. Returns -1, or the exit status if it cannot begin or a signal came.
 */
int cli_inspect_await(const cli_settings *settings, cli_loop *loop, redlock_lock *lock);

/*
 * Waits until |until_us|. Returns -1, or the exit status: if a signal came, or after a message if
 * the reader of the standard output has gone.
 */
int cli_pause(cli_loop *loop, redlock_time until_us);

/* Inspects all slots of a semaphore. Returns the exit status. */
int cli_inspect_slots(const cli_settings *settings, cli_loop *loop);

/* Sets cells of these columns. Those of a lock that is not held are missing values. */
#define CLI_INSPECTION_COLUMNS                                                                     \
  {"STATE", "state"}, {"TTL", "ttl_ms"}, {"TOKEN", "token"}, {"LABEL", "label"},                   \
      {NULL, "holding"}, {                                                                         \
    NULL, "fence"                                                                                  \
  }
void cli_inspection_cells(const cli_inspection *inspection, cli_cell cells[static 6]);

/* Writes them as members of an object. */
void cli_inspection_json(cli_json *json, const cli_inspection *inspection);

#endif
