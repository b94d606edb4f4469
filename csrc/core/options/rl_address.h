/*
 * Where a node is, and as whom to log in.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef RL_ADDRESS_H
#define RL_ADDRESS_H

#include <stddef.h>

#include "options/rl_option_table.h"

#define RL_ADDRESS_PORT 6379
#define RL_ADDRESS_HOST_MAX 255 /* bytes of a host name, as DNS has it */
#define RL_ADDRESS_PATH_MAX 107 /* what a Unix socket's address holds */
#define RL_ADDRESS_TEXT_MAX 512
typedef char rl_address_string[RL_ADDRESS_TEXT_MAX + 1];

/*
 * By the kind of an option that a node may take from its client: the field of rl_address that holds what
 * became of it, where 0 is 0. A flag is 0 or 1. A text has a flag has_... before it, which tells an empty
 * password from none. A secret is any bytes: it has its length, too.
 */
#define RL_ADDRESS_FIELD_DURATION(field) redlock_duration field;
#define RL_ADDRESS_FIELD_COUNT(field) int field;
#define RL_ADDRESS_FIELD_FLAG(field) int field;
#define RL_ADDRESS_FIELD_TEXT(field)                                                               \
  int has_##field;                                                                                 \
  rl_address_string field;
#define RL_ADDRESS_FIELD_SECRET(field)                                                             \
  int has_##field;                                                                                 \
  size_t field##_length;                                                                           \
  rl_address_string field;
#define RL_ADDRESS_FIELD(name, kind, field, low, high, also, must) RL_ADDRESS_FIELD_##kind(field)

/* Strings that are absent are empty. Whether |tls| can be spoken is for the driver to say. */
typedef struct rl_address {
  char host[RL_ADDRESS_HOST_MAX + 1]; /* without brackets; empty when path is set */
  char path[RL_ADDRESS_PATH_MAX + 1];
  int port;
  RL_OPTIONS_INHERITED(RL_ADDRESS_FIELD)
  char name[RL_ADDRESS_HOST_MAX + 16]; /* for people, without secrets */
} rl_address;

/*
 * Fills |address| from |node|, and from |settings| what the node leaves open. Returns REDLOCK_OK, or
 * REDLOCK_E_INVALID with a sentence in |message| that holds no secret.
 */
int rl_address_read(rl_address *address, const redlock_node *node, const redlock_settings *settings,
                    char *message, size_t message_size);

#endif
