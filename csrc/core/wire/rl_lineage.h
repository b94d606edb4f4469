/*
 * The record of a guard: what a node keeps of its past, and how it answers when it is asked for it.
 *
 * SPDX-License-Identifier: MIT
 *
 * These are texts. What follows from them, rl_guard.c says.
 */
#ifndef RL_LINEAGE_H
#define RL_LINEAGE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/rl_time.h"

#define RL_LINEAGE_KEY "redlock:lineage" /* and ":" and the cluster's name, where it has one */
/*
 * The key of a record's seal is this and the first digits of the record's SHA-1. It is short,
 * because newer servers count it when they choose how to store the value (rl_command.c).
 */
#define RL_LINEAGE_SEAL RL_LINEAGE_KEY " "
#define RL_LINEAGE_SEAL_DIGITS "12"
#define RL_LINEAGE_SEAL_MAX (sizeof RL_LINEAGE_SEAL - 1 + 12)
#define RL_LINEAGE_CLUSTER_MAX 64
#define RL_LINEAGE_KEY_MAX (sizeof RL_LINEAGE_KEY + RL_LINEAGE_CLUSTER_MAX)
#define RL_LINEAGE_RUN_ID_MAX 96
#define RL_LINEAGE_FINGERPRINT_MAX 255
#define RL_LINEAGE_MAX 400

/* What clients that share nodes must have in common. */
typedef struct rl_lineage_fingerprint {
  unsigned nodes;
  unsigned quorum;
  redlock_duration max_ttl_us;
  const char *cluster;                  /* the name of the list of nodes; or NULL, and */
  const char *names[REDLOCK_NODES_MAX]; /* the nodes, in any order */
  int dbs[REDLOCK_NODES_MAX];
  const void *prefix; /* any bytes */
  size_t prefix_length;
} rl_lineage_fingerprint;

/* Writes it as printable text, of words with spaces between them. */
void rl_lineage_write_fingerprint(char text[RL_LINEAGE_FINGERPRINT_MAX + 1],
                                  const rl_lineage_fingerprint *fingerprint);

/* Writes the name of the key. |cluster| may be NULL. */
void rl_lineage_write_key(char key[RL_LINEAGE_KEY_MAX + 1], const char *cluster);

/* What has happened to a node whose record is to be made, or was. X(why, the word in the record, a sentence). */
#define RL_LINEAGE_WHYS(X)                                                                         \
  X(NONE, "-", "")                                                                                 \
  X(EMPTY, "empty",                                                                                \
    "it has no record: it is new, was restarted without its keys or flushed, or is another "       \
    "database")                                                                                    \
  X(RESTART, "restart", "the server was restarted, replaced or promoted")                          \
  X(CLOCK, "clock", "its clock was stepped")                                                       \
  X(READY, "ready", "it was bootstrapped")

#define RL_LINEAGE_WHY(why, word, sentence) RL_LINEAGE_##why,
typedef enum rl_lineage_why { RL_LINEAGE_WHYS(RL_LINEAGE_WHY) } rl_lineage_why;

/* As a sentence for people. */
const char *rl_lineage_why_sentence(rl_lineage_why why);

/* What a node answers (rl_command_guard()). */
typedef struct rl_lineage_answer {
  uint64_t now_us; /* the node's clock */
  char run_id[RL_LINEAGE_RUN_ID_MAX + 1];
  rl_lineage_why create_for; /* why its record is still to be made; NONE when it is there, as */
  char record[RL_LINEAGE_MAX + 1]; /* it is; and in it */
  uint64_t created_us;             /* when it was made, by the node's clock */
  rl_lineage_why created_for;      /* why */
  const char *fingerprint;         /* whose it is; in |record| */
} rl_lineage_answer;

/* Reads it. False when it is none: |bytes| are the node's, and may be anything. */
bool rl_lineage_read(rl_lineage_answer *answer, const char *bytes, size_t length);

/*
 * Writes what differs in two fingerprints: "theirs (ours mine), ...". Nothing where they are equal. Returns |text|.
 */
const char *rl_lineage_difference(char *text, size_t size, const char *theirs, const char *ours);

#endif
