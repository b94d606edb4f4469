/*
 * As whom to log in on one connection, where that is asked for each of them.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef RL_LOGIN_H
#define RL_LOGIN_H

#include <stdbool.h>
#include <stddef.h>

typedef struct rl_login {
  bool awaited; /* it has been asked for, and has not come */
  bool supplied;
  char *username; /* with a NUL behind it; NULL: none was given */
  char *password; /* any bytes; NULL: none was given */
  size_t password_length;
} rl_login;

/*
 * Keeps a copy of what was given, in place of what there was. |username| and |password| may be NULL. Returns
 * REDLOCK_OK, REDLOCK_E_INVALID when one of them is too long, or REDLOCK_E_NO_MEMORY.
 */
int rl_login_give(rl_login *login, const char *username, const void *password, size_t length);

/* Forgets it: nothing of it is left in memory, and nothing is awaited. */
void rl_login_wipe(rl_login *login);

/* Overwrites memory, also when nobody reads it any more. */
void rl_login_overwrite(void *memory, size_t size);

#endif
