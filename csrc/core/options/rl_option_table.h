/*
 * The table of all options: name, kind, field, bounds.
 *
 * SPDX-License-Identifier: MIT
 *
 * A new option is a line here, a field in redlock.h, and a line each in docs/c.md, docs/lua.md and
 * lua/redlock/types.lua; spec/option_table_spec.lua finds what is missing. The library checks by this
 * table (rl_options.c), and the Lua module reads by it (rl_lua_option.c).
 */
#ifndef RL_OPTION_TABLE_H
#define RL_OPTION_TABLE_H

#include <stdbool.h>
#include <stddef.h>

#include "redlock.h"

#define RL_OPTION_RETRIES_MAX 1000000
#define RL_OPTION_DB_MAX 1000000
#define RL_OPTION_PORT_MAX 65535
#define RL_OPTION_FILE_MAX 4096 /* bytes of a file's name, and so on */
#define RL_OPTION_KEY_PASSWORD_MAX 1024
#define RL_OPTION_SERVER_NAME_MAX 255
#define RL_OPTION_CIPHERS_MAX 1023

/*
 * What a field holds, and what a Lua script writes for it; X(kind, its name). In each, 0 or NULL is
 * "not said".
 *   DURATION  redlock_duration, in microseconds; a number of milliseconds
 *   COUNT     int; a whole number
 *   FACTOR    double, less than the highest; a number
 *   FLAG      int, REDLOCK_YES or REDLOCK_NO; a boolean
 *   CHOICE    int, from 1; one of the words
 *   TEXT      const char *; a string without NUL. With a highest number of bytes it has a lowest; without, whoever
 *             reads it looks
 *   BYTES     const void *, and its length in the next field; a string
 *   SECRET    const char *, and its length in the field of that name with _length, where 0 is up to the NUL; a
 *             string. No message tells it
 *   FUNCTION  a function, and what it is given in the field of that name with _data; a function
 */
#define RL_OPTION_KINDS(X)                                                                         \
  X(DURATION, duration)                                                                            \
  X(COUNT, count)                                                                                  \
  X(FACTOR, factor)                                                                                \
  X(FLAG, flag)                                                                                    \
  X(CHOICE, choice)                                                                                \
  X(TEXT, text)                                                                                    \
  X(BYTES, bytes)                                                                                  \
  X(SECRET, secret)                                                                                \
  X(FUNCTION, function)
#define RL_OPTION_KIND(kind, name) RL_OPTION_##kind,
typedef enum rl_option_kind { RL_OPTION_KINDS(RL_OPTION_KIND) } rl_option_kind;

const char *rl_option_kind_name(rl_option_kind kind);

/* Besides what lies within its bounds, a field may hold: */
#define RL_OPTION_NONE 1u  /* what means 0 for its kind; a Lua script writes 0 */
#define RL_OPTION_NEVER 2u /* REDLOCK_NEVER */

#define RL_OPTION_COUNT_NONE REDLOCK_RETRIES_NONE

/*
 * Of a lock, fit for a client, for a lock and for a call. X(name in Lua, kind, field, lowest,
 * highest, what else, default, what it must be). A default of 0 is what rl_options.c makes of it.
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
  X(fence, FLAG, fence, 0, 0, 0, REDLOCK_NO, "REDLOCK_YES or REDLOCK_NO")                          \
  X(poll_interval, DURATION, poll_interval_us, REDLOCK_MILLISECONDS, REDLOCK_TTL_MAX_US, 0,        \
    2 * REDLOCK_SECONDS, "from 1 ms to 366 days")                                                  \
  X(fair, FLAG, fair, 0, 0, 0, REDLOCK_NO, "REDLOCK_YES or REDLOCK_NO")                            \
  X(notify, FLAG, notify, 0, 0, 0, REDLOCK_YES, "REDLOCK_YES or REDLOCK_NO")

/*
 * What a node has, and takes from its client where it says nothing of its own. rl_address has a field for
 * each. X(name, kind, field, lowest, highest, what else, what it must be).
 */
#define RL_OPTIONS_INHERITED(X)                                                                    \
  X(username, TEXT, username, 0, 0, 0, "")                                                         \
  X(password, SECRET, password, 0, 0, 0, "a text, or bytes with their password_length")            \
  X(db, COUNT, db, 1, RL_OPTION_DB_MAX, RL_OPTION_NONE, "from 1 to 1000000, or REDLOCK_DB_ZERO")   \
  X(tls, FLAG, tls, 0, 0, 0, "REDLOCK_YES or REDLOCK_NO")

/*
 * How TLS is spoken, where it is. A node's own, else its client's; the driver hands them on (rl_transport.h). The
 * same as above. A Lua script writes them into the table |tls|, each under the rest of its name.
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
 * The guard against nodes that have forgotten their locks. A Lua script writes what has a longer name into the table
 * |guard|.
 */
#define RL_OPTION_CLUSTER_MAX 64
#define RL_OPTIONS_OF_GUARD(X)                                                                     \
  X(guard, FLAG, guard, 0, 0, 0, "REDLOCK_YES or REDLOCK_NO")                                      \
  X(guard_max_ttl, DURATION, guard_max_ttl_us, REDLOCK_MILLISECONDS, REDLOCK_TTL_MAX_US, 0,        \
    "from 1 ms to 366 days")                                                                       \
  X(guard_cluster, TEXT, guard_cluster, 1, RL_OPTION_CLUSTER_MAX, 0, "from 1 to 64 bytes")

/* What else a client has; it is in client->settings. */
#define RL_OPTIONS_OF_CLIENT(X)                                                                    \
  X(prefix, BYTES, prefix, 0, REDLOCK_KEY_MAX, 0, "at most 4096 bytes")                            \
  X(credentials, FUNCTION, credentials, 0, 0, 0, "a function with its credentials_data")           \
  X(quorum, COUNT, quorum, 1, REDLOCK_NODES_MAX, 0,                                                \
    "from a majority of the nodes to all of them, at most 32")                                     \
  RL_OPTIONS_INHERITED(X)                                                                          \
  RL_OPTIONS_OF_GUARD(X)                                                                           \
  RL_OPTIONS_OF_TLS(X)

/* Where a node is, and the rest. */
#define RL_OPTIONS_OF_NODE(X)                                                                      \
  X(host, TEXT, host, 0, 0, 0, "")                                                                 \
  X(port, COUNT, port, 1, RL_OPTION_PORT_MAX, 0, "from 1 to 65535")                                \
  X(path, TEXT, path, 0, 0, 0, "")                                                                 \
  RL_OPTIONS_INHERITED(X)                                                                          \
  RL_OPTIONS_OF_TLS(X)

/* A line of the table. */
typedef struct rl_option {
  const char *name;     /* in Lua */
  const char *field;    /* in redlock.h */
  const char *sentence; /* what the field must be */
  rl_option_kind kind;
  unsigned also;        /* RL_OPTION_NONE, RL_OPTION_NEVER */
  size_t offset, size;  /* of its field in the struct of redlock.h */
  size_t length_offset; /* of the field with its length, or its data; 0 if none */
  uint64_t low, high;
  double fallback;   /* the default as people read it; 0 = none, or it depends */
  const char *words; /* of a CHOICE, with "|" between them */
} rl_option;

typedef struct rl_option_table {
  const rl_option *rows;
  size_t count;
  size_t size; /* of the struct */
} rl_option_table;

/* Of redlock_options, redlock_settings and redlock_node. */
extern const rl_option_table rl_options_of_lock;
extern const rl_option_table rl_options_of_client;
extern const rl_option_table rl_options_of_node;

/* Returns true if the field of |row| in |of| is not 0. */
bool rl_option_said(const rl_option *row, const void *of);

/* What is wrong with the struct |of|, as a static sentence; NULL if nothing is. */
const char *rl_option_wrong(const rl_option_table *table, const void *of);

/*
 * Fills |known|, of this version's size, with a caller's |given| of |given_size|: what the caller's
 * version does not have is 0. Returns NULL, or a static sentence: |given| has something set that this
 * version does not know, or its size cannot be right.
 */
const char *rl_option_fit(const rl_option_table *table, void *known, const void *given,
                          size_t given_size);

/*
 * Makes |copy| a struct with what |of| has, with texts and bytes of its own, to be given up with
 * rl_option_free(); what is no line of the table it has in common with |of|. False when out of memory:
 * then there is nothing to be given up.
 */
bool rl_option_copy(const rl_option_table *table, void *copy, const void *of);
void rl_option_free(const rl_option_table *table, void *copy);

/* The other direction: fills a caller's struct of |to_size| with |from|; what is beyond it with 0. */
void rl_option_fill(void *to, size_t to_size, const void *from, size_t from_size);

#endif
