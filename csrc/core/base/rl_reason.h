/*
 * Why a node gave no vote: a text that all locks which quote it share.
 *
 * SPDX-License-Identifier: MIT
 *
 * It is a string with a count of references. What it says, those say who settle a vote: rl_round.c,
 * rl_release.c, rl_link.c.
 *
 * A node that is down says the same to every lock. Each lock would otherwise keep a copy for every
 * node, most of it room for texts that never come.
 */
#ifndef RL_REASON_H
#define RL_REASON_H

#include <stddef.h>

#define RL_REASON_MAX 255 /* bytes of a text that are kept */

typedef struct rl_reason {
  unsigned references;
  char text[];
} rl_reason;

/*
 * A reference to a reason that says |text|: |*last| if that says it, else a new one, to which |*last|
 * then refers too. NULL when out of memory. |*last| is a reference of its own, or NULL.
 */
rl_reason *rl_reason_quote(rl_reason **last, const char *text);

/* Gives a reference up. NULL is allowed. */
void rl_reason_unref(rl_reason *reason);

/*
 * The reasons of a lock's votes, |count| of them, by node: most locks never have one, so they are NULL
 * before the first. Where memory was out there is none.
 */
void rl_reasons_quote(rl_reason ***reasons, unsigned count, unsigned node, rl_reason **last,
                      const char *text);

/* What the node's says, or NULL. */
const char *rl_reasons_text(rl_reason *const *reasons, unsigned node);

/* The node has none any more; none has. */
void rl_reasons_drop(rl_reason **reasons, unsigned node);
void rl_reasons_clear(rl_reason **reasons, unsigned count);

#endif
