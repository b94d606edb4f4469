/*
 * The caller-supplied login of one connection.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef RL_LOGIN_H
#define RL_LOGIN_H

#include <stdbool.h>
#include <stddef.h>

typedef struct rl_login {
  bool awaited; /* the driver must supply the login */
  bool supplied;
  char *username; /* or NULL */
  char *password; /* any bytes; or NULL */
  size_t password_length;
} rl_login;

/*
 * Replaces the login by copies. |username| and |password| may be NULL. Returns REDLOCK_OK,
 * REDLOCK_E_INVALID if one of them is too long, or REDLOCK_E_NO_MEMORY.
 */
int rl_login_supply(rl_login *login, const char *username, const void *password, size_t length);

/* Overwrites and frees the login. */
void rl_login_wipe(rl_login *login);

/* Returns a copy with a NUL, which the caller frees; NULL for NULL, or if out of memory. */
char *rl_login_copy(const void *bytes, size_t length);

/* Overwrites memory, even if no code reads it afterwards. */
void rl_login_overwrite(void *memory, size_t size);

#endif
