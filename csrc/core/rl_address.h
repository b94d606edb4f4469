/*
 * Where a node is, and as whom to log in.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef RL_ADDRESS_H
#define RL_ADDRESS_H

#include <stddef.h>

#include "rl_option_table.h"

#define RL_ADDRESS_PORT 6379
#define RL_ADDRESS_HOST_MAX 255 /* bytes of a host name, as DNS has it */
#define RL_ADDRESS_PATH_MAX 107 /* what a Unix socket's address holds */
#define RL_ADDRESS_SECRET_MAX 512

/* Strings that are absent are empty; has_* tells an empty password from none. */
typedef struct rl_address {
  char host[RL_ADDRESS_HOST_MAX + 1]; /* without brackets; empty when path is set */
  char path[RL_ADDRESS_PATH_MAX + 1];
  int port;
  int db;
  int tls; /* 0 or 1; whether TLS can be spoken is for the driver to say */
  int has_username;
  int has_password;
  char username[RL_ADDRESS_SECRET_MAX + 1];
  char password[RL_ADDRESS_SECRET_MAX + 1];
  char name[RL_ADDRESS_HOST_MAX + 16]; /* for people, without secrets */
} rl_address;

/*
 * Fills |address| from |node|, and from |settings| what the node leaves open. Returns REDLOCK_OK, or
 * REDLOCK_E_INVALID with a sentence in |message| that holds no secret.
 */
int rl_address_read(rl_address *address, const redlock_node *node, const redlock_settings *settings,
                    char *message, size_t message_size);

#endif
