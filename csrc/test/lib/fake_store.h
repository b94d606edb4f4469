/*
 * A simulated Redis for tests: keys with a token and an expiry, and the commands that we send.
 *
 * SPDX-License-Identifier: MIT
 *
 * It allocates nothing, so that tests which make memory run out can use it.
 */
#ifndef FAKE_STORE_H
#define FAKE_STORE_H

#include <stdbool.h>
#include <stddef.h>

#include "base/rl_label.h"
#include "base/rl_sha1.h"
#include "redlock.h"

#define FAKE_KEYS_MAX 4
#define FAKE_KEY_MAX 128
#define FAKE_REPLY_MAX 512
#define FAKE_RUN_ID_MAX 40
#define FAKE_RECORD_MAX 400
#define FAKE_FINGERPRINT_MAX 255
#define FAKE_TOKEN_MAX (RL_LABELLED_MAX + RL_LABEL_PERMITS_MAX)
#define FAKE_NAMES_MAX 3  /* of the keys of one command */
#define FAKE_ENTRY_MAX 24 /* bytes of an entry in a queue */
#define FAKE_ENTRIES_MAX 32
#define FAKE_CHANNEL_MAX 16 /* digits of a channel */
#define FAKE_SUBSCRIBERS_MAX 16
#define FAKE_MESSAGES_MAX 16

/* The replies to CLIENT SETNAME and CLIENT SETINFO. */
#define FAKE_HANDSHAKE "+OK\r\n+OK\r\n+OK\r\n"

typedef enum fake_verb {
  FAKE_OTHER = 0,
  FAKE_AUTH,
  FAKE_SELECT,
  FAKE_SETNAME,
  FAKE_SETINFO,
  FAKE_EXISTS,
  FAKE_SUBSCRIBE,
  FAKE_PING,
  FAKE_SET,
  FAKE_EXTEND,
  FAKE_RELEASE,
  FAKE_INSPECT,
  FAKE_DELETE,
  FAKE_ATTACH,
  FAKE_CONFIRM,
  FAKE_PROBE,
  FAKE_EXAMINE,
  FAKE_ROLE,
  FAKE_GUARD,
  FAKE_SLOTS,
  FAKE_FLAG,    /* EXISTS of a waiters flag */
  FAKE_ENQUEUE, /* these are for notifications: fake_queue.h */
  FAKE_DEQUEUE,
  FAKE_PUBLISH
} fake_verb;

typedef struct fake_name {
  size_t length;
  char bytes[FAKE_KEY_MAX + 1];
} fake_name;

/* A command as a node has received it. */
typedef struct fake_command {
  fake_verb verb;
  bool by_text; /* EVAL instead of EVALSHA */
  size_t key_length;
  char key[FAKE_KEY_MAX + 1];
  char token[FAKE_TOKEN_MAX + 1];
  char handed[FAKE_TOKEN_MAX + 1]; /* attach: the token that is to be replaced */
  uint64_t ttl_ms;
  uint64_t floor_ms;
  uint64_t keep_ms; /* FAKE_RELEASE: the keys with the token live for so long; 0: they go */
  unsigned count; /* of several keys, of which |key| is the first; 0 or 1 when it is the only one */
  fake_name names[FAKE_NAMES_MAX];
  bool heals;     /* FAKE_SET of several: keys with the token may be there */
  bool watched;   /* TAKE, PROLONG, CONFIRM: FAKE_SET, FAKE_EXTEND, FAKE_CONFIRM */
  uint64_t fence; /* of these: the proposed or issued token; 0: none */
  bool guarded;   /* TAKE of one server: has a seal, and a run_id where it must be compared */
  char seal[FAKE_KEY_MAX + 1];
  char record[FAKE_RECORD_MAX + 1]; /* FAKE_GUARD: which one is to be made anew */
  char run_id[FAKE_RUN_ID_MAX + 1];
  char sha1[RL_SHA1_LENGTH + 1]; /* TAKE of a guard: the script's name */
  char make[8];                  /* FAKE_GUARD */
  char fingerprint[FAKE_FINGERPRINT_MAX + 1];
  uint64_t age_us;
  unsigned native;                /* FAKE_RELEASE: an rl_native; FAKE_EXTEND: not 0; 0: a script */
  bool notifies;                  /* FAKE_RELEASE: notifies the waiters */
  bool labels;                    /* ENQUEUE: it also answers the label of the holder */
  char entry[FAKE_ENTRY_MAX + 1]; /* ENQUEUE, DEQUEUE, and a release that dequeues */
  unsigned mode;                  /* ENQUEUE: an rl_command_enqueue */
  char before[64], notified[16];  /* ENQUEUE_ALL */
  char line[FAKE_KEY_MAX + 1]; /* the arguments of the handshake's commands, with spaces between */
} fake_command;

typedef struct fake_key {
  size_t length; /* 0: this slot is free */
  char name[FAKE_KEY_MAX];
  char token[FAKE_TOKEN_MAX + 1]; /* empty: a key of another type */
  redlock_time expires_us;
} fake_key;

/* A counter of fencing tokens, beside the key of that name. */
typedef struct fake_counter {
  size_t length; /* 0: this slot is free */
  char name[FAKE_KEY_MAX];
  uint64_t value;
  redlock_time expires_us;
} fake_counter;

/* The queue of those who wait for the key of that name. */
typedef struct fake_queue {
  size_t length; /* 0: this place is free */
  char name[FAKE_KEY_MAX];
  unsigned count;
  char entries[FAKE_ENTRIES_MAX][FAKE_ENTRY_MAX];
} fake_queue;

/* A message for a subscriber. */
typedef struct fake_message {
  unsigned subscriber;
  size_t length;
  char bytes[FAKE_REPLY_MAX / 2];
} fake_message;

typedef struct fake_store {
  fake_key keys[FAKE_KEYS_MAX];
  fake_counter counters[FAKE_KEYS_MAX];
  redlock_duration ahead_us; /* difference of TIME from the test's clock */
  bool forgot_release;       /* the scripts that EVALSHA does not know */
  bool forgot_extend;
  bool forgot_several;       /* those for several keys */
  bool forgot_watched;       /* TAKE, PROLONG and CONFIRM */
  bool forgot_queue_scripts; /* ENQUEUE and DEQUEUE */
  unsigned native;           /* the native command that it knows, an rl_native; 0: none */
  bool knows_ifeq;           /* SET IFEQ */
  bool runs_none;            /* EVAL is forbidden */
  fake_queue queues[FAKE_KEYS_MAX];
  bool mute;                      /* the rights for queues and notifications are missing */
  char entry[FAKE_ENTRY_MAX + 1]; /* what fake_queue_at() returned */
  unsigned queue_max;             /* entries of one at most; 0: FAKE_ENTRIES_MAX */
  char subscribers[FAKE_SUBSCRIBERS_MAX][FAKE_CHANNEL_MAX + 1]; /* their channels; empty: none */
  fake_message messages[FAKE_MESSAGES_MAX];
  unsigned message_count;
  char run_id[FAKE_RUN_ID_MAX + 1];
  char record[FAKE_RECORD_MAX + 1];    /* of a guard; empty: there is none */
  bool unsealed;                       /* it was not made in the memory where it is */
  char elsewhere[FAKE_RECORD_MAX + 1]; /* the same in another database */
  char take_sha1[RL_SHA1_LENGTH + 1];  /* the last TAKE of a guard that was sent by its text */
} fake_store;

/*
 * Parses one command. Returns its length, 0 when it is incomplete, or -1 when the library has no
 * such command.
 */
long fake_command_parse(fake_command *command, const char *bytes, size_t length);

/* Executes |command| and writes the reply of a Redis server, as a string. */
void fake_store_execute(fake_store *store, redlock_time now_us, const fake_command *command,
                        char reply[FAKE_REPLY_MAX]);

/*
 * Returns the token of the key at |now_us|, "" for a key of another type, NULL when there is none.
 */
const char *fake_store_token(fake_store *store, redlock_time now_us, const char *key);

/* When the key expires; 0 when there is none. */
redlock_time fake_store_expiry(fake_store *store, redlock_time now_us, const char *key);

/* Returns the counter of fencing tokens beside the key, 0 when there is none; and sets it. */
uint64_t fake_store_counter(fake_store *store, redlock_time now_us, const char *key);
void fake_store_count(fake_store *store, const char *key, uint64_t value, redlock_time expires_us);

/* Sets a key of another client; |token| is "" for one of another type. */
void fake_store_put(fake_store *store, const char *key, const char *token, redlock_time expires_us);
void fake_store_remove(fake_store *store, const char *key);

#endif
