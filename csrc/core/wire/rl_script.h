/*
 * The scripts that nodes run: names, texts, SHA-1s.
 *
 * SPDX-License-Identifier: MIT
 *
 * rl_command.h has their arguments and answers.
 */
#ifndef RL_SCRIPT_H
#define RL_SCRIPT_H

#include <stdbool.h>

typedef enum rl_script {
  RL_SCRIPT_NONE = 0, /* the command is no script */
  RL_SCRIPT_RELEASE,  /* deletes the key if it has the token: 1, otherwise 0 */
  RL_SCRIPT_EXTEND,   /* prolongs the key if it has the token: 1, otherwise 0 */
  /* For several keys: */
  RL_SCRIPT_RELEASE_ALL, /* deletes each key with the token: 1 if all had it, otherwise 0 */
  RL_SCRIPT_EXTEND_ALL,  /* prolongs all keys if each has the token: 1, otherwise 0 */
  RL_SCRIPT_ACQUIRE_ALL, /* sets all keys if none exists: OK, otherwise the number of one */
  RL_SCRIPT_HEAL_ALL,    /* sets all keys if none has another token: OK, otherwise its number */
  /* With a fencing token or a guard, for one or several keys (rl_command_fenced()): */
  RL_SCRIPT_TAKE,    /* sets all keys if none exists, and raises their counters */
  RL_SCRIPT_PROLONG, /* prolongs all keys if each has the token, and raises their counters */
  RL_SCRIPT_CONFIRM, /* raises the counters of all keys if each has the token */
  /* With the queue of waiters beside a key, a string (rl_notify.c): */
  RL_SCRIPT_RELEASE_NOTIFY,     /* RELEASE, and notifies the first ticket: 2; if denied: 3 */
  RL_SCRIPT_RELEASE_ALL_NOTIFY, /* the same for several keys */
  /* Releases that keep the keys for a while (rl_command_hold()): */
  RL_SCRIPT_HOLD,          /* sets the expiry of each key with the token: 1 if all had it */
  RL_SCRIPT_HOLD_NOTIFY,   /* HOLD, and notifies the first tickets: as RELEASE_NOTIFY */
  RL_SCRIPT_ENQUEUE,       /* enqueues a ticket (rl_command_queue()) */
  RL_SCRIPT_ENQUEUE_LABEL, /* ENQUEUE, which also answers the label of the holder */
  RL_SCRIPT_ENQUEUE_ALL,   /* the same in several queues (rl_command_enqueue_all()) */
  RL_SCRIPT_DEQUEUE,       /* dequeues a ticket, and notifies the first one if the key is free */
  RL_SCRIPT_ENQUEUE_SLOTS, /* ENQUEUE of a semaphore */
  RL_SCRIPT_DEQUEUE_SLOTS, /* DEQUEUE of a semaphore */
  RL_SCRIPT_SLOTS,         /* which slots of a semaphore exist (rl_command_slots()) */
  RL_SCRIPT_TAKE_HERE,     /* TAKE, with the hash of one record in its text (rl_guard.c) */
  RL_SCRIPT_COUNT
} rl_script;

/* Returns true if the script is TAKE or TAKE_HERE. */
static inline bool rl_script_takes(rl_script script) {
  return script == RL_SCRIPT_TAKE || script == RL_SCRIPT_TAKE_HERE;
}

/* Return the text for EVAL, and the 40 digits for EVALSHA. TAKE_HERE has those of TAKE. */
const char *rl_script_text(rl_script script);
const char *rl_script_sha1(rl_script script);

/* Returns the text of rl_command_guard(). An error of it begins with RL_SCRIPT_NO_SEAL. */
const char *rl_script_guard_text(void);
#define RL_SCRIPT_NO_SEAL "NOSEAL a short string is"

/* Returns the text of rl_command_attach(). With |here| it also compares the node's record. */
const char *rl_script_attach_text(bool here);

#endif
