/*
 * Inspecting: what the nodes hold under a lock's key.
 *
 * SPDX-License-Identifier: MIT
 *
 *   I1. A lock that is held is not inspected: its round is the lease's business.
 *   I2. One script asks each node for the key's type, what is left of it, and its value, all of one
 *       moment. It changes nothing.
 *   I3. A string of at most REDLOCK_TOKEN_MAX bytes is a token, whoever wrote it. Anything else is no
 *       lock of ours or of our peers, and stands in the way all the same.
 *   I4. All nodes are waited for, until the round's deadline: people look at this.
 *   I5. A token that a majority holds is the holder's. Its majority ends when so many of its keys have
 *       expired that the rest is none.
 */
#include "operator/rl_inspect.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lease/rl_release.h"
#include "lifecycle/rl_lifecycle.h"
#include "lock/rl_lock.h"
#include "lock/rl_round.h"

const char *redlock_key_state_name(int state) {
  switch (state) {
#define RL_KEY_STATE_NAME(value, name)                                                             \
  case value:                                                                                      \
    return #name;
    RL_KEY_STATES(RL_KEY_STATE_NAME)
  default:
    return "unknown";
  }
}

static rl_inspection *rl_inspect_find(const rl_lock *lock) {
  return lock->extension == NULL ? NULL : lock->extension->inspection;
}

int rl_lock_inspect(rl_lock *lock, redlock_time now_us, bool notify) {
  static const unsigned char no_entropy[RL_TOKEN_ENTROPY]; /* Its token is never sent. */
  unsigned count = lock->core->node_count;
  int error = rl_lock_may_ask(lock, now_us, RL_OPERATION_INSPECT); /* I1 */
  if (error != REDLOCK_OK) {
    return error;
  }
  size_t size = sizeof(rl_inspection) + count * sizeof(rl_inspected);
  rl_inspection *inspection = rl_lock_reserve_extension(lock) ? calloc(1, size) : NULL;
  rl_attempt *attempt =
      inspection == NULL ? NULL
                         : rl_attempt_new(&lock->core->attempts, lock->resource, lock, no_entropy);
  if (attempt == NULL) {
    free(inspection);
    return rl_lock_ask_nothing(lock, RL_OPERATION_INSPECT);
  }
  free(lock->extension->inspection);
  inspection->count = count;
  lock->extension->inspection = inspection;
  return rl_lock_ask(lock, RL_OPERATION_INSPECT, now_us, attempt, notify);
}

/* I2. Sends the question. Returns NULL, or why it was not sent. */
static const char *rl_inspect_send(rl_lock *lock, redlock_time now_us, rl_node *node) {
  if (!rl_link_has_room(&node->link, RL_OUTSTANDING_INSPECT)) {
    return "too many commands are waiting for the node";
  }
  return rl_link_queue_inspect(&node->link, now_us, lock->attempt, lock->round) ? NULL
                                                                                : "out of memory";
}

/* I3. A word up to the next space, and how many bytes it and the space have; 0 when it is empty. */
static size_t rl_inspect_word(char *word, size_t size, const char *bytes, size_t length) {
  size_t used = 0;
  while (used < length && bytes[used] != ' ' && used + 1 < size) {
    word[used] = bytes[used] >= 0x21 && bytes[used] < 0x7f ? bytes[used] : '?';
    used++;
  }
  word[used] = '\0';
  return used == 0 ? 0 : used + (used < length);
}

/* A number of milliseconds; what is none means that the key does not expire: a node says -1. */
static redlock_duration rl_inspect_ttl(const char *word) {
  redlock_duration ttl_us = 0;
  for (; *word != '\0'; word++) {
    if (*word < '0' || *word > '9' || ttl_us > REDLOCK_NEVER / 100) {
      return REDLOCK_NEVER;
    }
    ttl_us = ttl_us * 10 + (redlock_duration)(*word - '0') * REDLOCK_MILLISECONDS;
  }
  return ttl_us;
}

/* The answer is "type ttl", or "string ttl value". */
static const char *rl_inspect_read(rl_inspected *node, const rl_reply *reply, char *text,
                                   size_t size) {
  char type[32], ttl[32];
  const char *bytes = reply->bytes;
  size_t used = rl_inspect_word(type, sizeof type, bytes, reply->length);
  size_t behind = used + rl_inspect_word(ttl, sizeof ttl, bytes + used, reply->length - used);
  node->ttl_us = rl_inspect_ttl(ttl);
  if (behind > used && bytes[behind - 1] == ' ' && reply->length - behind <= REDLOCK_TOKEN_MAX) {
    node->state = REDLOCK_KEY_HELD;
    node->token_length = (uint16_t)(reply->length - behind);
    memcpy(node->token, bytes + behind, node->token_length);
    return NULL;
  }
  node->state = REDLOCK_KEY_OTHER;
  (void)snprintf(text, size, "it is a %s%s", type,
                 strcmp(type, "string") == 0 ? " that is too long for a token" : "");
  return text;
}

const char *rl_inspect_note(rl_lock *lock, const rl_node *node, const rl_outstanding *owed,
                            const rl_reply *reply, char *text, size_t size) {
  if (owed->round != lock->round || lock->phase != RL_PHASE_ROUND) {
    return NULL;
  }
  rl_inspected *inspected = &rl_inspect_find(lock)->nodes[node->index];
  if (reply->type == RL_REPLY_STRING) {
    return rl_inspect_read(inspected, reply, text, size);
  }
  inspected->state = REDLOCK_KEY_FREE;
  return NULL;
}

/* I4 */
static void rl_inspect_decide(rl_lock *lock, redlock_time now_us) {
  const rl_quorum *quorum = &lock->quorum;
  if (quorum->granted + quorum->denied + quorum->failed < quorum->nodes) {
    return;
  }
  bool majority = quorum->granted >= rl_quorum_majority(quorum->nodes);
  rl_lock_asked(lock, now_us, majority ? REDLOCK_OK : REDLOCK_E_UNAVAILABLE);
}

const rl_inspected *rl_inspect_of(const rl_lock *lock, unsigned node) {
  const rl_inspection *inspection = rl_inspect_find(lock);
  return inspection == NULL || node >= inspection->count ? NULL : &inspection->nodes[node];
}

static bool rl_inspect_same(const rl_inspected *a, const rl_inspected *b) {
  return a->state == REDLOCK_KEY_HELD && b->state == REDLOCK_KEY_HELD &&
         a->token_length == b->token_length && memcmp(a->token, b->token, a->token_length) == 0;
}

/* I5. When |among| loses its majority: the majority-th of its times to live, from the longest. */
static redlock_duration rl_inspect_lasts(const rl_inspection *inspection,
                                         const rl_inspected *among) {
  redlock_duration lasts_us = 0;
  for (unsigned i = 0; i < inspection->count; i++) {
    const rl_inspected *one = &inspection->nodes[i];
    unsigned longer = 0;
    for (unsigned k = 0; k < inspection->count; k++) {
      const rl_inspected *other = &inspection->nodes[k];
      longer += rl_inspect_same(other, among) && other->ttl_us >= one->ttl_us;
    }
    if (rl_inspect_same(one, among) && longer >= rl_quorum_majority(inspection->count)) {
      lasts_us = rl_time_max(lasts_us, one->ttl_us);
    }
  }
  return lasts_us;
}

const rl_inspected *rl_inspect_holder(const rl_lock *lock, redlock_duration *ttl_us,
                                      unsigned *nodes) {
  const rl_inspection *inspection = rl_inspect_find(lock);
  for (unsigned i = 0; inspection != NULL && i < inspection->count; i++) {
    const rl_inspected *one = &inspection->nodes[i];
    unsigned same = 0;
    for (unsigned k = 0; k < inspection->count; k++) {
      same += rl_inspect_same(&inspection->nodes[k], one);
    }
    if (same >= rl_quorum_majority(inspection->count)) {
      *ttl_us = rl_inspect_lasts(inspection, one);
      *nodes = same;
      return one;
    }
  }
  return NULL;
}

const rl_steps rl_inspect_steps = {
    .send = rl_inspect_send,
    .decide = rl_inspect_decide,
};
