/*
 * An attempt: one token of a lock, and the nodes that may hold it. The granted one is the lease.
 *
 * SPDX-License-Identifier: MIT
 *
 * Every attempt has its own token: a release of attempt 1 that arrives late would otherwise delete
 * the key of attempt 2. Tokens are hexadecimal because people and other Redlock clients read them.
 */
#include "wire/rl_attempt.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static_assert(REDLOCK_TOKEN_LENGTH == 2 * RL_ATTEMPT_ENTROPY, "two digits for each byte");

static size_t rl_attempt_size(bool labelled) {
  size_t size = sizeof(rl_attempt) +
                (labelled ? RL_LABELLED_MAX + RL_LABEL_PERMITS_MAX : REDLOCK_TOKEN_LENGTH) + 1;
  return (size + alignof(rl_attempt) - 1) / alignof(rl_attempt) * alignof(rl_attempt);
}

static bool rl_attempt_grow(rl_attempt_pool *pool, bool labelled) {
  size_t size = rl_attempt_size(labelled);
  rl_attempt_slab *slab = malloc(sizeof *slab + RL_ATTEMPT_SLAB * size);
  if (slab == NULL) {
    return false;
  }
  slab->next = pool->slabs;
  pool->slabs = slab;
  for (unsigned i = 0; i < RL_ATTEMPT_SLAB; i++) {
    rl_attempt *attempt = (rl_attempt *)(void *)(slab->attempts + i * size);
    rl_list_push(&pool->free[labelled], &attempt->queue);
  }
  return true;
}

static rl_attempt *rl_attempt_take(rl_attempt_pool *pool, rl_resource *resource,
                                   struct rl_lock *lock, bool labelled) {
  if (pool->free[labelled] == NULL && !rl_attempt_grow(pool, labelled)) {
    return NULL;
  }
  rl_attempt *attempt = RL_OWNER(rl_list_pop(&pool->free[labelled]), rl_attempt, queue);
  memset(attempt, 0, sizeof *attempt);
  attempt->references = 1;
  attempt->resource = resource;
  resource->references++;
  attempt->lock = lock;
  attempt->labelled = labelled;
  pool->live++;
  return attempt;
}

static void rl_attempt_write_token(rl_attempt *attempt, const unsigned char *entropy) {
  static const char digits[] = "0123456789abcdef";
  for (unsigned i = 0; i < RL_ATTEMPT_ENTROPY; i++) {
    attempt->bytes[2 * i] = digits[entropy[i] >> 4];
    attempt->bytes[2 * i + 1] = digits[entropy[i] & 15];
  }
  attempt->bytes[REDLOCK_TOKEN_LENGTH] = '\0';
}

rl_attempt *rl_attempt_new(rl_attempt_pool *pool, rl_resource *resource, struct rl_lock *lock,
                           const unsigned char *entropy, unsigned permits, const rl_label *label) {
  size_t label_length = label != NULL ? label->length : 0;
  rl_attempt *attempt = rl_attempt_take(pool, resource, lock, permits > 0 || label_length > 0);
  if (attempt == NULL) {
    return NULL;
  }
  char *end = attempt->bytes + REDLOCK_TOKEN_LENGTH;
  rl_attempt_write_token(attempt, entropy);
  if (permits > 0) {
    end += snprintf(end, RL_LABEL_PERMITS_MAX + 1, "/%u", permits);
  }
  if (label_length > 0) {
    *end++ = ':';
    memcpy(end, label->text, label_length + 1);
    end += label_length;
  }
  attempt->token_length = (uint16_t)(end - attempt->bytes);
  return attempt;
}

/* Gives |copy| to the attempt, which frees it. */
static void rl_attempt_keep(rl_attempt *attempt, char *copy, size_t length) {
  attempt->token_is_allocated = true;
  memcpy(attempt->bytes, &copy, sizeof copy);
  attempt->token_length = (uint16_t)length;
}

rl_attempt *rl_attempt_new_custom(rl_attempt_pool *pool, rl_resource *resource,
                                  struct rl_lock *lock, const void *token, size_t token_length) {
  char *copy = malloc(token_length + 1);
  rl_attempt *attempt = copy == NULL ? NULL : rl_attempt_take(pool, resource, lock, false);
  if (attempt == NULL) {
    free(copy);
    return NULL;
  }
  if (token_length > 0) {
    memcpy(copy, token, token_length);
  }
  copy[token_length] = '\0';
  rl_attempt_keep(attempt, copy, token_length);
  return attempt;
}

rl_attempt *rl_attempt_ref(rl_attempt *attempt) {
  assert(attempt->references > 0);
  attempt->references++;
  return attempt;
}

void rl_attempt_will_live(rl_attempt *attempt, redlock_time now_us, uint64_t key_ms) {
  redlock_duration life_us = key_ms * REDLOCK_MILLISECONDS;
  life_us = rl_time_add(life_us, rl_time_add(life_us / 10, REDLOCK_SECONDS));
  redlock_duration kept_us = rl_time_min(life_us, RL_ATTEMPT_LIFE_MAX_US);
  attempt->life_us = rl_time_max(attempt->life_us, kept_us) & RL_ATTEMPT_LIFE_MAX_US;
  attempt->expired_us = rl_time_max(attempt->expired_us, rl_time_add(now_us, life_us));
}

void rl_attempt_set_sent(rl_attempt *attempt, redlock_time now_us, uint32_t bits, uint64_t key_ms) {
  attempt->refused |= bits & ~attempt->sent;
  attempt->sent |= bits;
  attempt->set_outstanding |= bits;
  rl_attempt_will_live(attempt, now_us, key_ms);
}

void rl_attempt_unanswered(rl_attempt *attempt, redlock_time now_us) {
  attempt->expired_us = rl_time_max(attempt->expired_us, rl_time_add(now_us, attempt->life_us));
}

void rl_attempt_unref(rl_attempt_pool *pool, rl_attempt *attempt) {
  if (attempt == NULL) {
    return;
  }
  assert(attempt->references > 0);
  if (--attempt->references > 0) {
    return;
  }
  assert(!rl_attempt_is_queued(attempt));
  rl_resource_unref(attempt->resource);
  attempt->resource = NULL;
  if (attempt->token_is_allocated) {
    free((void *)(uintptr_t)rl_attempt_token(attempt));
  }
  rl_list_push(&pool->free[attempt->labelled], &attempt->queue);
  assert(pool->live > 0);
  pool->live--;
}

void rl_attempt_pool_free(rl_attempt_pool *pool) {
  assert(pool->live == 0);
  while (pool->slabs != NULL) {
    rl_attempt_slab *slab = pool->slabs;
    pool->slabs = slab->next;
    free(slab);
  }
  pool->free[false] = pool->free[true] = NULL;
}

const char *rl_attempt_token(const rl_attempt *attempt) {
  const char *apart;
  if (!attempt->token_is_allocated) {
    return attempt->bytes;
  }
  memcpy(&apart, attempt->bytes, sizeof apart);
  return apart;
}

rl_command_key rl_attempt_key(const rl_attempt *attempt) {
  const rl_resource *resource = attempt->resource;
  rl_command_key key = {
      .key = resource->key,
      .key_length = resource->key_length,
      .token = rl_attempt_token(attempt),
      .token_length = attempt->token_length,
      .count = resource->count,
      .lengths = rl_resource_lengths(resource),
  };
  if (resource->suffix_length > 0) {
    key.base = (rl_command_bytes){resource->key, rl_resource_base_length(resource)};
  }
  return key;
}
