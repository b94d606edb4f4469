/*
 * The commands that a node is sent, in RESP.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef RL_COMMAND_H
#define RL_COMMAND_H

#include <stdint.h>

#include "rl_buffer.h"

typedef enum rl_script {
  RL_SCRIPT_NONE = 0, /* the command is none */
  RL_SCRIPT_RELEASE,  /* delete the key if it holds the token: 1, else 0 */
  RL_SCRIPT_EXTEND,   /* prolong the key if it holds the token: 1, else 0 */
  /* These are for several keys. */
  RL_SCRIPT_RELEASE_ALL, /* delete each key that holds the token: 1 if all did, else 0 */
  RL_SCRIPT_EXTEND_ALL,  /* prolong all keys if each of them holds the token: 1, else 0 */
  RL_SCRIPT_ACQUIRE_ALL, /* set all keys if none is there: OK, else the number of one that is */
  RL_SCRIPT_HEAL_ALL,    /* set all keys if none holds anything but the token: likewise */
  RL_SCRIPT_COUNT
} rl_script;

/* The keys and the value of a lock on the wire; any bytes. */
typedef struct rl_command_key {
  const char *key;
  size_t key_length;
  const char *token;
  size_t token_length;
  unsigned count;          /* of keys that stand one behind the other in |key|; 0 is one */
  const uint16_t *lengths; /* of each of them, where there are several */
} rl_command_key;

/*
 * Each appends one command and returns 1, or returns 0, having appended nothing, when there was no
 * room (rl_buffer_reserve()).
 */

/* SET key token NX PX ttl_ms, for one key. */
int rl_command_set(rl_buffer *buffer, const rl_command_key *key, uint64_t ttl_ms);

/*
 * EVALSHA, or EVAL with |by_text|, of |script| for |key|. |ttl_ms| is how long the key is to live; the
 * scripts that release have no such argument. Only a release may be asked for with |grow| false.
 */
int rl_command_script(rl_buffer *buffer, rl_script script, int by_text, const rl_command_key *key,
                      uint64_t ttl_ms, int grow);

/*
 * EVAL of a script that puts the token of |key| in the place of that of |old|, if all keys hold that and
 * more than |floor_ms| is left of each; 1, else 0. The keys then live for |ttl_ms|.
 */
int rl_command_attach(rl_buffer *buffer, const rl_command_key *key, const rl_command_key *old,
                      uint64_t ttl_ms, uint64_t floor_ms);

/* EVAL of a script that tells what holds the key (rl_inspect.c). */
int rl_command_inspect(rl_buffer *buffer, const rl_command_key *key);

/* DEL key, whatever it holds. */
int rl_command_delete(rl_buffer *buffer, const rl_command_key *key);

/* A command of |count| strings, each ending with NUL. */
int rl_command_strings(rl_buffer *buffer, const char *const *strings, unsigned count);

/* The text of a script, and the SHA-1 by which EVALSHA names it. */
const char *rl_command_script_text(rl_script script);
const char *rl_command_script_sha1(rl_script script);

#endif
