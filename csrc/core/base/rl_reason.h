/*
 * Reasons why a node gave no vote: texts that locks share.
 *
 * SPDX-License-Identifier: MIT
 *
 * A node that is down has the same reason for every lock. The locks share one text with a reference
 * count, because a copy per lock and node would cost most of a lock's memory.
 */
#ifndef RL_REASON_H
#define RL_REASON_H

#include <stddef.h>

#define RL_REASON_MAX 255 /* bytes; a longer text is cut */

typedef struct rl_reason {
  unsigned references;
  char text[];
} rl_reason;

/* Drops a reference. NULL is allowed. */
void rl_reason_unref(rl_reason *reason);

/*
 * Sets the reason of |node| among the |count| reasons of a lock. The array is NULL before the first
 * reason, because most locks never have one. Without memory the node has no reason. |*last| is a
 * reference to the latest reason, or NULL: shared if its text is the same, otherwise replaced.
 */
void rl_reasons_set(rl_reason ***reasons, unsigned count, unsigned node, rl_reason **last,
                    const char *text);

/* Returns the text of a node's reason, or NULL. */
const char *rl_reasons_text(rl_reason *const *reasons, unsigned node);

/* Drop the reason of one node; of all nodes. */
void rl_reasons_drop(rl_reason **reasons, unsigned node);
void rl_reasons_clear(rl_reason **reasons, unsigned count);

#endif
