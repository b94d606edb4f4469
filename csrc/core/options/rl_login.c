/* SPDX-License-Identifier: MIT */
#include "options/rl_login.h"

#include <stdlib.h>
#include <string.h>

#include "redlock.h"

void rl_login_overwrite(void *memory, size_t size) {
  volatile unsigned char *bytes = memory; /* Otherwise a compiler may omit dead stores. */
  for (size_t i = 0; i < size; i++) {
    bytes[i] = 0;
  }
}

void rl_login_wipe(rl_login *login) {
  if (login->username != NULL) {
    rl_login_overwrite(login->username, strlen(login->username));
  }
  if (login->password != NULL) {
    rl_login_overwrite(login->password, login->password_length);
  }
  free(login->username);
  free(login->password);
  memset(login, 0, sizeof *login);
}

char *rl_login_copy(const void *bytes, size_t length) {
  char *copy = bytes != NULL ? malloc(length + 1) : NULL;
  if (copy != NULL) {
    memcpy(copy, bytes, length);
    copy[length] = '\0';
  }
  return copy;
}

int rl_login_supply(rl_login *login, const char *username, const void *password, size_t length) {
  if ((username != NULL && strlen(username) > REDLOCK_USERNAME_MAX) ||
      length > REDLOCK_PASSWORD_MAX) {
    return REDLOCK_E_INVALID;
  }
  rl_login_wipe(login);
  login->username = rl_login_copy(username, username != NULL ? strlen(username) : 0);
  login->password = rl_login_copy(password, length);
  login->password_length = password != NULL ? length : 0;
  if ((username != NULL && login->username == NULL) ||
      (password != NULL && login->password == NULL)) {
    rl_login_wipe(login);
    return REDLOCK_E_NO_MEMORY;
  }
  login->supplied = true;
  return REDLOCK_OK;
}
