/*
 * Addresses of nodes, with their credentials.
 *
 * SPDX-License-Identifier: MIT
 *
 * csrc/core/options has settings as values: options, addresses, logins, delays. It includes base
 * only.
 */
#ifndef RL_ADDRESS_H
#define RL_ADDRESS_H

#include <stddef.h>

#include "options/rl_option_table.h"

#define RL_ADDRESS_PORT 6379
#define RL_ADDRESS_HOST_MAX 255 /* bytes of a DNS name */
#define RL_ADDRESS_NAME_MAX 335 /* "sentinel://LIST/MASTER" */
#define RL_ADDRESS_PATH_MAX 107 /* bytes of a Unix socket's path */
#define RL_ADDRESS_TEXT_MAX 512
#define RL_ADDRESS_SENTINEL_PORT 26379
#define RL_ADDRESS_SENTINELS_MAX 9
#define RL_ADDRESS_MASTER_MAX 64 /* bytes of a master's name at its Sentinels */
typedef char rl_address_string[RL_ADDRESS_TEXT_MAX + 1];

/* The Sentinels that know a node's address. |count| is 0 if the node has an address of its own. */
typedef struct rl_address_sentinels {
  unsigned count;
  char list[RL_ADDRESS_HOST_MAX + 1]; /* "10.0.0.1:26379,[::1]:26379" */
  char master[RL_ADDRESS_MASTER_MAX + 1];
  int has_username, has_password; /* their own, not those of the master */
  rl_address_string username, password;
  size_t password_length;
} rl_address_sentinels;

/*
 * Absent strings are empty; has_... distinguishes an empty text from none. The driver checks if it
 * supports |tls|.
 */
typedef struct rl_address {
  char host[RL_ADDRESS_HOST_MAX + 1]; /* without brackets; empty with a path or Sentinels */
  char path[RL_ADDRESS_PATH_MAX + 1];
  int port;
  rl_address_sentinels sentinels;
  int has_username, has_password;
  rl_address_string username, password; /* the password: any bytes, with a NUL */
  size_t password_length;
  int db, tls;                        /* 0 means 0; a flag is 0 or 1 */
  char name[RL_ADDRESS_NAME_MAX + 1]; /* for people, without secrets */
} rl_address;

/*
 * Fills |address| from |node|, and from |settings| where the node sets nothing. Returns REDLOCK_OK,
 * or REDLOCK_E_INVALID with a sentence without secrets in |message|.
 */
int rl_address_read(rl_address *address, const redlock_node *node, const redlock_settings *settings,
                    char *message, size_t message_size);

#endif
