/*
 * Removes passwords and tokens from the errors of a node.
 *
 * SPDX-License-Identifier: MIT
 *
 * Servers quote the arguments that they received. The texts come from an rl_reply, which has
 * shortened them and replaced unprintable bytes by '?'.
 */
#ifndef RL_MASK_H
#define RL_MASK_H

#include <stdbool.h>
#include <stddef.h>

/*
 * Returns true if the text may contain the secret, or ends within it. A secret of less than 4 bytes
 * counts only outside of words: the e in "ERR invalid password" does not tell that e is a password.
 */
bool rl_mask_may_contain(char *text, const char *secret, size_t length);

/* Overwrites each occurrence of the secret by '*'. */
void rl_mask_secret(char *text, const char *secret, size_t length);

/* Cuts the text before its first quotation that may be an argument. */
void rl_mask_cut_arguments(char *text);

#endif
