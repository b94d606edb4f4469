/*
 * The lineage record, which the guard keeps on a node, and the node's answer about it.
 *
 * SPDX-License-Identifier: MIT
 *
 * A record is "run_id created why fingerprint". A fingerprint has five words, each a name and a
 * value:
 *
 *   nodes=5 quorum=3 max_ttl=30000 list=7c4a8d09ca3762af prefix=da39a3ee/orders:
 *
 * list is a hash of the nodes' sorted names. A named list has cluster=name instead. prefix is a
 * hash of the prefix and its first bytes.
 */
#include "wire/rl_lineage.h"

#include <stdio.h>
#include <string.h>

#include "base/rl_number.h"
#include "base/rl_printable.h"
#include "base/rl_sha1.h"

#define RL_LINEAGE_WORDS 5
#define RL_LINEAGE_LIST_DIGITS 16
#define RL_LINEAGE_PREFIX_DIGITS 8
#define RL_LINEAGE_PREFIX_SHOWN 24

/* The bytes of a run_id and the replication history behind it. */
#define RL_LINEAGE_RUN_ID_BYTES "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789+-"

/* ----------------------------------------------------------------------------------- writing */

/*
 * Writes a hash of the names and databases of the nodes, in any order. It sorts their hashes and
 * hashes them together, which needs no room for all names.
 */
static void rl_lineage_list(char digits[RL_SHA1_LENGTH + 1],
                            const rl_lineage_fingerprint *fingerprint) {
  char sorted[REDLOCK_NODES_MAX][RL_SHA1_LENGTH];
  char name[512], hash[RL_SHA1_LENGTH + 1];
  for (unsigned i = 0; i < fingerprint->nodes; i++) {
    unsigned at = i;
    (void)snprintf(name, sizeof name, "%s/%d", fingerprint->names[i], fingerprint->dbs[i]);
    rl_sha1(hash, name, strlen(name));
    for (; at > 0 && memcmp(sorted[at - 1], hash, RL_SHA1_LENGTH) > 0; at--) {
      memcpy(sorted[at], sorted[at - 1], RL_SHA1_LENGTH);
    }
    memcpy(sorted[at], hash, RL_SHA1_LENGTH);
  }
  rl_sha1(digits, sorted, (size_t)fingerprint->nodes * RL_SHA1_LENGTH);
}

void rl_lineage_write_fingerprint(char text[RL_LINEAGE_FINGERPRINT_MAX + 1],
                                  const rl_lineage_fingerprint *fingerprint) {
  char list[RL_SHA1_LENGTH + 1] = "";
  char prefix[RL_SHA1_LENGTH + 1];
  char shown[RL_LINEAGE_PREFIX_SHOWN + 1];
  bool named = fingerprint->cluster != NULL;
  if (!named) {
    rl_lineage_list(list, fingerprint);
    list[RL_LINEAGE_LIST_DIGITS] = '\0';
  }
  rl_sha1(prefix, fingerprint->prefix_length > 0 ? fingerprint->prefix : "",
          fingerprint->prefix_length);
  rl_printable_copy(shown, sizeof shown, fingerprint->prefix, fingerprint->prefix_length, '!');
  (void)snprintf(text, RL_LINEAGE_FINGERPRINT_MAX + 1,
                 "nodes=%u quorum=%u max_ttl=%llu %s=%.*s prefix=%.*s/%s", fingerprint->nodes,
                 fingerprint->quorum, (unsigned long long)rl_time_ms_up(fingerprint->max_ttl_us),
                 named ? "cluster" : "list", RL_LINEAGE_CLUSTER_MAX,
                 named ? fingerprint->cluster : list, RL_LINEAGE_PREFIX_DIGITS, prefix, shown);
}

void rl_lineage_write_key(char key[RL_LINEAGE_KEY_MAX + 1], const char *cluster) {
  (void)snprintf(key, RL_LINEAGE_KEY_MAX + 1, "%s%s%.*s", RL_LINEAGE_KEY,
                 cluster != NULL ? ":" : "", RL_LINEAGE_CLUSTER_MAX,
                 cluster != NULL ? cluster : "");
}

/* ----------------------------------------------------------------------------------- reading */

static const struct {
  const char *word, *sentence;
} rl_lineage_whys[] = {
#define RL_LINEAGE_WHY_ROW(why, word, sentence) [RL_LINEAGE_##why] = {word, sentence},
    RL_LINEAGE_WHYS(RL_LINEAGE_WHY_ROW)};

const char *rl_lineage_why_sentence(rl_lineage_why why) {
  return rl_lineage_whys[why].sentence;
}

static bool rl_lineage_why_of(rl_lineage_why *why, const char *word) {
  for (size_t i = 0; i < sizeof rl_lineage_whys / sizeof rl_lineage_whys[0]; i++) {
    if (strcmp(rl_lineage_whys[i].word, word) == 0) {
      *why = (rl_lineage_why)i;
      return true;
    }
  }
  return false;
}

/* Copies the word at |*at| to |word|, and moves |*at| behind the next space, or returns false. */
static bool rl_lineage_word(const char **at, char *word, size_t size) {
  size_t length = strcspn(*at, " ");
  if (length == 0 || length >= size || (*at)[length] != ' ') {
    return false;
  }
  memcpy(word, *at, length);
  word[length] = '\0';
  *at += length + 1;
  return true;
}

/* Reads the number at |*at|, and moves |*at| behind the next space, or returns false. */
static bool rl_lineage_number(const char **at, uint64_t *number) {
  size_t length = rl_number_in_digits(*at, strlen(*at), number);
  if (length == 0 || (*at)[length] != ' ' || *number > RL_NUMBER_MAX) {
    return false;
  }
  *at += length + 1;
  return true;
}

/* Reads the record of an answer. */
static bool rl_lineage_read_record(rl_lineage_answer *answer, const char *at) {
  char run_id[RL_LINEAGE_RUN_ID_MAX + 1];
  char why[16];
  size_t length = strlen(at);
  if (length == 0 || length > RL_LINEAGE_MAX) {
    return false;
  }
  memcpy(answer->record, at, length + 1);
  at = answer->record;
  bool ok = rl_lineage_word(&at, run_id, sizeof run_id) && strcmp(run_id, answer->run_id) == 0 &&
            rl_lineage_number(&at, &answer->created_us) && rl_lineage_word(&at, why, sizeof why) &&
            rl_lineage_why_of(&answer->created_for, why);
  answer->fingerprint = at;
  return ok;
}

bool rl_lineage_read(rl_lineage_answer *answer, const char *bytes, size_t length) {
  char text[RL_LINEAGE_MAX + RL_LINEAGE_RUN_ID_MAX + 64];
  char why[16];
  const char *at = text;
  memset(answer, 0, sizeof *answer);
  if (length >= sizeof text) {
    return false;
  }
  for (size_t i = 0; i < length; i++) {
    if (bytes[i] < 0x20 || bytes[i] >= 0x7f) {
      return false;
    }
    text[i] = bytes[i];
  }
  text[length] = '\0';
  if (!rl_lineage_number(&at, &answer->now_us) || answer->now_us == 0 ||
      !rl_lineage_word(&at, answer->run_id, sizeof answer->run_id) ||
      strspn(answer->run_id, RL_LINEAGE_RUN_ID_BYTES) != strlen(answer->run_id) ||
      !rl_lineage_word(&at, why, sizeof why) || !rl_lineage_why_of(&answer->create_for, why)) {
    return false;
  }
  answer->fingerprint = answer->record;
  return answer->create_for != RL_LINEAGE_NONE ? *at == '\0' : rl_lineage_read_record(answer, at);
}

/* -------------------------------------------------------------------------------- difference */

/* Returns the word of |text| at |index|. The last word is the rest of the text. */
static size_t rl_lineage_part(const char *text, unsigned index, const char **part) {
  for (unsigned i = 0; i < index; i++) {
    text += strcspn(text, " ");
    text += *text == ' ';
  }
  *part = text;
  return index + 1 == RL_LINEAGE_WORDS ? strlen(text) : strcspn(text, " ");
}

const char *rl_lineage_difference(char *text, size_t size, const char *theirs, const char *ours) {
  size_t used = 0;
  text[0] = '\0';
  for (unsigned i = 0; i < RL_LINEAGE_WORDS && used < size; i++) {
    const char *one, *other;
    size_t length = rl_lineage_part(theirs, i, &one);
    size_t own_length = rl_lineage_part(ours, i, &other);
    if (length == own_length && memcmp(one, other, length) == 0) {
      continue;
    }
    used += (size_t)snprintf(text + used, size - used, "%s%.*s (ours %.*s)", used > 0 ? ", " : "",
                             (int)(length < 96 ? length : 96), one, (int)own_length, other);
  }
  return text;
}
