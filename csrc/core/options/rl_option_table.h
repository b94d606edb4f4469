/*
 * The table of all options: name, kind, field, bounds.
 *
 * SPDX-License-Identifier: MIT
 *
 * rl_options.c checks options by this table, and the Lua module reads them by it
 * (rl_lua_option.c). CONTRIBUTING.md has the recipe (An option).
 */
#ifndef RL_OPTION_TABLE_H
#define RL_OPTION_TABLE_H

#include <stdbool.h>
#include <stddef.h>

#include "redlock.h"

#define RL_OPTION_RETRIES_MAX 1000000
#define RL_OPTION_DB_MAX 1000000
#define RL_OPTION_PORT_MAX 65535
#define RL_OPTION_FILE_MAX 4096 /* bytes */
#define RL_OPTION_KEY_PASSWORD_MAX 1024
#define RL_OPTION_SERVER_NAME_MAX 255
#define RL_OPTION_CIPHERS_MAX 1023

/*
 * Kinds of fields: the C type and the Lua type. X(kind, name, C type). 0 or NULL means "not set".
 *   DURATION  redlock_duration, in microseconds; a number of milliseconds
 *   COUNT     int; an integer
 *   FACTOR    double below the upper bound; a number
 *   FLAG      int, REDLOCK_YES or REDLOCK_NO; a boolean
 *   CHOICE    int, from 1; one of the words
 *   TEXT      const char *; a string without NUL. If the upper bound is 0, its reader checks the
 *             length
 *   BYTES     const void *, with its length in the next field; a string
 *   LABEL     const char *; a string: a label (rl_label.h), or "" for none
 *   SECRET    const char *, with its length in the field NAME_length, where 0 means up to the NUL;
 *             a string. No message contains it
 *   FUNCTION  a function, with its argument in the field NAME_data; a function
 */
#define RL_OPTION_KINDS(X)                                                                         \
  X(DURATION, duration, redlock_duration)                                                          \
  X(COUNT, count, int)                                                                             \
  X(FACTOR, factor, double)                                                                        \
  X(FLAG, flag, int)                                                                               \
  X(CHOICE, choice, int)                                                                           \
  X(TEXT, text, const char *)                                                                      \
  X(BYTES, bytes, const void *)                                                                    \
  X(LABEL, label, const char *)                                                                    \
  X(SECRET, secret, const char *)                                                                  \
  X(FUNCTION, function, void (*)(void))
#define RL_OPTION_KIND(kind, name, type) RL_OPTION_##kind,
typedef enum rl_option_kind { RL_OPTION_KINDS(RL_OPTION_KIND) } rl_option_kind;

const char *rl_option_kind_name(rl_option_kind kind);

/* Values of a field beside those within its bounds: */
#define RL_OPTION_NONE 1u  /* the value of its kind that means 0; in Lua 0 */
#define RL_OPTION_NEVER 2u /* REDLOCK_NEVER */

#define RL_OPTION_COUNT_NONE REDLOCK_RETRIES_NONE

/*
 * Options of a client, a lock or an operation. X(name in Lua, kind, field, lowest, highest, further
 * values, default, sentence). rl_options.c resolves a default of 0.
 */
#define RL_OPTIONS_OF_LOCK(X)                                                                      \
  X(ttl, DURATION, ttl_us, REDLOCK_MILLISECONDS, REDLOCK_TTL_MAX_US, 0, 10 * REDLOCK_SECONDS,      \
    "from 1 ms to 366 days")                                                                       \
  X(retry_count, COUNT, retry_count, 1, RL_OPTION_RETRIES_MAX, RL_OPTION_NONE, 0,                  \
    "from 1 to 1000000, or REDLOCK_RETRIES_NONE")                                                  \
  X(retry_delay, DURATION, retry_delay_us, 1, REDLOCK_TTL_MAX_US, RL_OPTION_NONE,                  \
    200 * REDLOCK_MILLISECONDS, "at most 366 days, or REDLOCK_DURATION_NONE")                      \
  X(retry_jitter, DURATION, retry_jitter_us, 1, REDLOCK_TTL_MAX_US, RL_OPTION_NONE,                \
    100 * REDLOCK_MILLISECONDS, "at most 366 days, or REDLOCK_DURATION_NONE")                      \
  X(wait, DURATION, wait_us, 1, REDLOCK_TTL_MAX_US, RL_OPTION_NONE | RL_OPTION_NEVER,              \
    REDLOCK_NEVER, "at most 366 days, or REDLOCK_DURATION_NONE, or REDLOCK_NEVER")                 \
  X(node_timeout, DURATION, node_timeout_us, 1, REDLOCK_TTL_MAX_US, 0, 0, "at most 366 days")      \
  X(drift_factor, FACTOR, drift_factor, 0, 1, RL_OPTION_NONE, 0.01,                                \
    "more than 0 and less than 1, or REDLOCK_DRIFT_NONE")                                          \
  X(lock_delay, DURATION, lock_delay_us, 1, REDLOCK_TTL_MAX_US, RL_OPTION_NONE, 0,                 \
    "at most 366 days, or REDLOCK_DURATION_NONE")                                                  \
  X(auto_extend, FLAG, auto_extend, 0, 0, 0, REDLOCK_NO, "REDLOCK_YES or REDLOCK_NO")              \
  X(notify_lost, FLAG, notify_lost, 0, 0, 0, REDLOCK_NO, "REDLOCK_YES or REDLOCK_NO")              \
  X(extend_every, DURATION, extend_every_us, 1, REDLOCK_TTL_MAX_US, RL_OPTION_NONE, 0,             \
    "at most 366 days, or REDLOCK_DURATION_NONE")                                                  \
  X(max_hold, DURATION, max_hold_us, 1, REDLOCK_TTL_MAX_US, RL_OPTION_NONE, 0,                     \
    "at most 366 days, or REDLOCK_DURATION_NONE")                                                  \
  X(hold_at_least, DURATION, hold_at_least_us, 1, REDLOCK_TTL_MAX_US, RL_OPTION_NONE, 0,           \
    "at most 366 days, or REDLOCK_DURATION_NONE")                                                  \
  X(fence, FLAG, fence, 0, 0, 0, REDLOCK_NO, "REDLOCK_YES or REDLOCK_NO")                          \
  X(poll_interval, DURATION, poll_interval_us, REDLOCK_MILLISECONDS, REDLOCK_TTL_MAX_US, 0,        \
    2 * REDLOCK_SECONDS, "from 1 ms to 366 days")                                                  \
  X(fair, FLAG, fair, 0, 0, 0, REDLOCK_NO, "REDLOCK_YES or REDLOCK_NO")                            \
  X(notify, FLAG, notify, 0, 0, 0, REDLOCK_YES, "REDLOCK_YES or REDLOCK_NO")                       \
  X(label, LABEL, label, 0, REDLOCK_LABEL_MAX, 0, 0,                                               \
    "at most 64 bytes of UTF-8 without control characters")                                        \
  X(permits, COUNT, permits, 1, REDLOCK_PERMITS_MAX, RL_OPTION_NONE, 0,                            \
    "from 1 to 1024, or REDLOCK_PERMITS_NONE")

/*
 * Settings of a node, which default to those of its client: rl_address_inherit() resolves each.
 * X(name, kind, field, lowest, highest, further values, sentence).
 */
#define RL_OPTIONS_INHERITED(X)                                                                    \
  X(username, TEXT, username, 0, 0, 0, "")                                                         \
  X(password, SECRET, password, 0, 0, 0, "a text, or bytes with their password_length")            \
  X(db, COUNT, db, 1, RL_OPTION_DB_MAX, RL_OPTION_NONE, "from 1 to 1000000, or REDLOCK_DB_ZERO")   \
  X(tls, FLAG, tls, 0, 0, 0, "REDLOCK_YES or REDLOCK_NO")

/*
 * TLS settings of a node, which default to those of its client. The driver passes them on
 * (rl_transport.h). In Lua they are in the table |tls|, without "tls_" in their names.
 */
#define RL_OPTIONS_OF_TLS(X)                                                                       \
  X(tls_ca, TEXT, tls_ca, 1, RL_OPTION_FILE_MAX, 0, "a file: from 1 to 4096 bytes")                \
  X(tls_ca_path, TEXT, tls_ca_path, 1, RL_OPTION_FILE_MAX, 0, "a directory: from 1 to 4096 bytes") \
  X(tls_crl, TEXT, tls_crl, 1, RL_OPTION_FILE_MAX, 0, "a file: from 1 to 4096 bytes")              \
  X(tls_cert, TEXT, tls_cert, 1, RL_OPTION_FILE_MAX, 0, "a file: from 1 to 4096 bytes")            \
  X(tls_key, TEXT, tls_key, 1, RL_OPTION_FILE_MAX, 0, "a file: from 1 to 4096 bytes")              \
  X(tls_key_password, TEXT, tls_key_password, 1, RL_OPTION_KEY_PASSWORD_MAX, 0,                    \
    "from 1 to 1024 bytes")                                                                        \
  X(tls_server_name, TEXT, tls_server_name, 1, RL_OPTION_SERVER_NAME_MAX, 0,                       \
    "a name or an address: from 1 to 255 bytes")                                                   \
  X(tls_ciphers, TEXT, tls_ciphers, 1, RL_OPTION_CIPHERS_MAX, 0, "from 1 to 1023 bytes")           \
  X(tls_min_version, CHOICE, tls_min_version, REDLOCK_TLS_1_2, REDLOCK_TLS_1_3, 0,                 \
    "REDLOCK_TLS_1_2 or REDLOCK_TLS_1_3")                                                          \
  X(tls_dangerously_unverified, FLAG, tls_dangerously_unverified, 0, 0, 0,                         \
    "REDLOCK_YES or REDLOCK_NO")

/*
 * The guard against nodes that lost locks. In Lua, guard_max_ttl is max_ttl in the table |guard|.
 */
#define RL_OPTION_CLUSTER_MAX 64
#define RL_OPTIONS_OF_GUARD(X)                                                                     \
  X(guard, FLAG, guard, 0, 0, 0, "REDLOCK_YES or REDLOCK_NO")                                      \
  X(guard_max_ttl, DURATION, guard_max_ttl_us, REDLOCK_MILLISECONDS, REDLOCK_TTL_MAX_US, 0,        \
    "from 1 ms to 366 days")                                                                       \
  X(guard_cluster, TEXT, guard_cluster, 1, RL_OPTION_CLUSTER_MAX, 0, "from 1 to 64 bytes")

/* All settings of a client, in client->settings. */
#define RL_OPTIONS_OF_CLIENT(X)                                                                    \
  X(prefix, BYTES, prefix, 0, REDLOCK_KEY_MAX, 0, "at most 4096 bytes")                            \
  X(credentials, FUNCTION, credentials, 0, 0, 0, "a function with its credentials_data")           \
  X(quorum, COUNT, quorum, 1, REDLOCK_NODES_MAX, 0,                                                \
    "from a majority of the nodes to all of them, at most 32")                                     \
  RL_OPTIONS_INHERITED(X)                                                                          \
  RL_OPTIONS_OF_GUARD(X)                                                                           \
  RL_OPTIONS_OF_TLS(X)

/* All settings of a node. */
#define RL_OPTIONS_OF_NODE(X)                                                                      \
  X(host, TEXT, host, 0, 0, 0, "")                                                                 \
  X(port, COUNT, port, 1, RL_OPTION_PORT_MAX, 0, "from 1 to 65535")                                \
  X(path, TEXT, path, 0, 0, 0, "")                                                                 \
  RL_OPTIONS_INHERITED(X)                                                                          \
  RL_OPTIONS_OF_TLS(X)

/* A row of the table. */
typedef struct rl_option {
  const char *name;     /* in Lua */
  const char *field;    /* in redlock.h */
  const char *sentence; /* the condition, for messages */
  rl_option_kind kind;
  unsigned also;        /* RL_OPTION_NONE, RL_OPTION_NEVER */
  size_t offset, size;  /* of the field in the struct of redlock.h */
  size_t length_offset; /* of the field with the length or the argument; 0 if none */
  uint64_t low, high;
  double fallback;   /* the default, in the units of Lua; 0: none, or not constant */
  const char *words; /* of a CHOICE, with "|" between them */
} rl_option;

typedef struct rl_option_table {
  const rl_option *rows;
  size_t count;
  size_t size; /* of the struct */
} rl_option_table;

/* The tables of redlock_options, redlock_settings and redlock_node. */
extern const rl_option_table rl_options_of_lock;
extern const rl_option_table rl_options_of_client;
extern const rl_option_table rl_options_of_node;

/* Returns NULL, or a static sentence with the first fault of the struct |of|. */
const char *rl_option_wrong(const rl_option_table *table, const void *of);

/*
 * Copies a caller's struct |from| of |from_size| bytes to |known|, a struct of this version. Fields
 * that the caller's version lacks become 0. Returns NULL, or a static sentence if |from| sets a
 * field that this version lacks, or if its size is impossible.
 */
const char *rl_option_fit(const rl_option_table *table, void *known, const void *from,
                          size_t from_size);

/*
 * Copies the struct |of| to |copy|, with copies of the texts and bytes of the table's rows, which
 * rl_option_free() frees. Returns false if out of memory; then there is nothing to free.
 */
bool rl_option_copy(const rl_option_table *table, void *copy, const void *of);
void rl_option_free(const rl_option_table *table, void *copy);

/* Copies |from| to a caller's struct of |to_size| bytes. Fields beyond |from_size| become 0. */
void rl_option_fill(void *to, size_t to_size, const void *from, size_t from_size);

#endif
