/*
 * The lineage record, which the guard keeps on a node, and the node's answer about it. rl_guard.c
 * judges the answer.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef RL_LINEAGE_H
#define RL_LINEAGE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/rl_time.h"

#define RL_LINEAGE_KEY "redlock:lineage" /* followed by ":" and the cluster's name, if any */
/*
 * A record's seal is a key of this text and the first digits of the record's SHA-1. It is short
 * because newer servers count the key when they choose an encoding of the value (rl_command.c).
 */
#define RL_LINEAGE_SEAL RL_LINEAGE_KEY " "
#define RL_LINEAGE_SEAL_DIGITS "12"
#define RL_LINEAGE_SEAL_MAX (sizeof RL_LINEAGE_SEAL - 1 + 12)
#define RL_LINEAGE_CLUSTER_MAX 64
#define RL_LINEAGE_KEY_MAX (sizeof RL_LINEAGE_KEY + RL_LINEAGE_CLUSTER_MAX)
#define RL_LINEAGE_RUN_ID_MAX 96
#define RL_LINEAGE_FINGERPRINT_MAX 255
#define RL_LINEAGE_MAX 400

/* The settings that clients with common nodes must share. */
typedef struct rl_lineage_fingerprint {
  unsigned nodes;
  unsigned quorum;
  redlock_duration max_ttl_us;
  const char *cluster;                  /* the name of the list of nodes; or NULL */
  const char *names[REDLOCK_NODES_MAX]; /* of the nodes, in any order; for NULL */
  int dbs[REDLOCK_NODES_MAX];
  const void *prefix; /* any bytes */
  size_t prefix_length;
} rl_lineage_fingerprint;

/* Writes the fingerprint as printable words. */
void rl_lineage_write_fingerprint(char text[RL_LINEAGE_FINGERPRINT_MAX + 1],
                                  const rl_lineage_fingerprint *fingerprint);

/* Writes the name of the key. |cluster| may be NULL. */
void rl_lineage_write_key(char key[RL_LINEAGE_KEY_MAX + 1], const char *cluster);

/* Why a record must be created, or was created. X(why, word in the record, sentence). */
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

const char *rl_lineage_why_sentence(rl_lineage_why why);

/* The answer of a node to rl_command_guard(). */
typedef struct rl_lineage_answer {
  uint64_t now_us; /* the node's clock */
  char run_id[RL_LINEAGE_RUN_ID_MAX + 1];
  rl_lineage_why create_for; /* why a record must be created; NONE if there is one: */
  char record[RL_LINEAGE_MAX + 1];
  uint64_t created_us;        /* creation time, by the node's clock */
  rl_lineage_why created_for; /* reason of the creation */
  const char *fingerprint;    /* of the record's clients; points into |record| */
} rl_lineage_answer;

/* Reads the |bytes| of a node, which may be anything. Returns false if they are no answer. */
bool rl_lineage_read(rl_lineage_answer *answer, const char *bytes, size_t length);

/*
 * Writes the differences of two fingerprints: "THEIRS (ours OURS), ...", or "" if they are equal.
 * Returns |text|.
 */
const char *rl_lineage_difference(char *text, size_t size, const char *theirs, const char *ours);

#endif
