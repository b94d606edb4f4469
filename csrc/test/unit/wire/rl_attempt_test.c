/*
 * Attempts: references, the pool, the key, how long a node may hold it.
 *
 * SPDX-License-Identifier: MIT
 */
#include "rl_test.h"
#include "wire/rl_attempt.h"

static const unsigned char ENTROPY[RL_ATTEMPT_ENTROPY] = {0xab, 0xcd};

TEST(attempt_has_a_token_and_the_key_of_its_resource) {
  rl_attempt_pool pool = {0};
  rl_resource *resource = rl_resource_new("p:", 2, "name", 4);
  rl_attempt *attempt = rl_attempt_new(&pool, resource, NULL, ENTROPY, 0, NULL);
  rl_command_key key = rl_attempt_key(attempt);
  assert_int_equal(key.key_length, 6);
  assert_memory_equal(key.key, "p:name", 6);
  assert_string_equal(key.token, "abcd000000000000000000000000000000000000");
  assert_int_equal(pool.live, 1);
  rl_resource_unref(resource); /* The attempt keeps it. */
  assert_memory_equal(rl_attempt_key(attempt).key, "p:name", 6);
  rl_attempt_unref(&pool, attempt);
  assert_int_equal(pool.live, 0);
  rl_attempt_pool_free(&pool);
}

/* Each byte of the entropy has two digits of its own. */
TEST(token_is_the_entropy_in_lower_case_hexadecimal_digits) {
  static const unsigned char entropy[RL_ATTEMPT_ENTROPY] = {
      0x00, 0x01, 0x0f, 0x10, 0x7f, 0x80, 0xff, 0xa5, 0x5a, 0xde,
      0xad, 0xbe, 0xef, 0x12, 0x34, 0x56, 0x78, 0x9a, 0xbc, 0xf0};
  rl_attempt_pool pool = {0};
  rl_resource *resource = rl_resource_new(NULL, 0, "name", 4);
  rl_attempt *attempt = rl_attempt_new(&pool, resource, NULL, entropy, 0, NULL);
  assert_string_equal(rl_attempt_token(attempt), "00010f107f80ffa55adeadbeef123456789abcf0");
  rl_attempt_unref(&pool, attempt);
  rl_resource_unref(resource);
  rl_attempt_pool_free(&pool);
}

TEST(last_reference_returns_attempt_to_pool) {
  rl_attempt_pool pool = {0};
  rl_resource *resource = rl_resource_new(NULL, 0, "name", 4);
  rl_attempt *attempt = rl_attempt_new(&pool, resource, NULL, ENTROPY, 0, NULL);
  assert_ptr_equal(rl_attempt_ref(attempt), attempt);
  rl_attempt_unref(&pool, attempt);
  assert_int_equal(pool.live, 1);
  rl_attempt_unref(&pool, attempt);
  assert_int_equal(pool.live, 0);
  rl_attempt_unref(&pool, NULL);
  assert_int_equal(resource->references, 1);
  rl_resource_unref(resource);
  rl_attempt_pool_free(&pool);
}

TEST(reused_attempt_is_cleared) {
  rl_attempt_pool pool = {0};
  rl_resource *resource = rl_resource_new(NULL, 0, "name", 4);
  rl_attempt *attempt = rl_attempt_new(&pool, resource, NULL, ENTROPY, 0, NULL);
  attempt->sent = 7;
  attempt->due = 7;
  attempt->released = 7;
  attempt->releasing = true;
  attempt->expired_us = 99;
  rl_attempt_unref(&pool, attempt);
  rl_attempt *again = rl_attempt_new(&pool, resource, NULL, ENTROPY, 0, NULL);
  assert_ptr_equal(again, attempt);
  assert_int_equal(again->sent | again->due | again->released, 0);
  assert_false(again->releasing);
  assert_int_equal(again->expired_us, 0);
  rl_attempt *other = rl_attempt_new(&pool, resource, NULL, ENTROPY, 0, NULL);
  assert_ptr_not_equal(other, again);
  rl_attempt_unref(&pool, other);
  rl_attempt_unref(&pool, again);
  rl_resource_unref(resource);
  rl_attempt_pool_free(&pool);
}

TEST(labelled_token_is_digits_colon_and_label) {
  static const rl_label none = {0, ""};
  rl_attempt_pool pool = {0};
  rl_resource *resource = rl_resource_new(NULL, 0, "name", 4);
  rl_label label;
  char longest[REDLOCK_LABEL_MAX + 1];
  memset(longest, 'x', sizeof longest);
  rl_label_set(&label, longest, REDLOCK_LABEL_MAX);
  rl_attempt *attempts[2 * RL_ATTEMPT_SLAB];
  for (unsigned i = 0; i < COUNT_OF(attempts); i++) { /* several slabs of both kinds */
    attempts[i] = rl_attempt_new(&pool, resource, NULL, ENTROPY, 0, i % 2 == 0 ? &label : &none);
    assert_non_null(attempts[i]);
  }
  for (unsigned i = 0; i < COUNT_OF(attempts); i++) {
    rl_command_key key = rl_attempt_key(attempts[i]);
    assert_int_equal(key.token_length, i % 2 == 0 ? RL_LABELLED_MAX : REDLOCK_TOKEN_LENGTH);
    assert_int_equal(strlen(key.token), key.token_length);
    assert_memory_equal(key.token, "abcd000000000000000000000000000000000000:x",
                        i % 2 == 0 ? 42 : 40);
    rl_attempt_unref(&pool, attempts[i]);
  }
  rl_attempt *again = rl_attempt_new(&pool, resource, NULL, ENTROPY, 0, NULL);
  assert_false(again->labelled); /* One with room is kept for a label. */
  assert_int_equal(again->token_length, REDLOCK_TOKEN_LENGTH);
  rl_attempt_unref(&pool, again);
  rl_resource_unref(resource);
  rl_attempt_pool_free(&pool);
}

/* The ttl, a tenth of it for the node's clock, and a second for the way. */
TEST(key_has_expired_a_tenth_and_a_second_after_ttl) {
  static const struct {
    uint64_t key_ms;
    redlock_duration life_us;
  } cases[] = {{0, SECONDS},
               {1, SECONDS + 1100},
               {1000, 2100 * MS},
               {10000, 12 * SECONDS},
               {REDLOCK_TTL_MAX_US / MS, REDLOCK_TTL_MAX_US + REDLOCK_TTL_MAX_US / 10 + SECONDS}};
  for (unsigned i = 0; i < COUNT_OF(cases); i++) {
    rl_attempt attempt;
    memset(&attempt, 0, sizeof attempt);
    rl_attempt_will_live(&attempt, 70 * SECONDS, cases[i].key_ms);
    assert_int_equal(attempt.life_us, cases[i].life_us);
    assert_int_equal(attempt.expired_us, 70 * SECONDS + cases[i].life_us);
  }
}

TEST(longest_life_counts) {
  rl_attempt attempt;
  memset(&attempt, 0, sizeof attempt);
  rl_attempt_will_live(&attempt, 100 * SECONDS, 10000);
  rl_attempt_will_live(&attempt, 101 * SECONDS, 1000); /* a shorter one: gone after 2.1 s */
  assert_int_equal(attempt.life_us, 12 * SECONDS);
  assert_int_equal(attempt.expired_us, 112 * SECONDS);
  rl_attempt_will_live(&attempt, 110 * SECONDS, 1000);
  assert_int_equal(attempt.life_us, 12 * SECONDS);
  assert_int_equal(attempt.expired_us, 112 * SECONDS + 100 * MS);
  rl_attempt_will_live(&attempt, 111 * SECONDS, 20000);
  assert_int_equal(attempt.life_us, 23 * SECONDS);
  assert_int_equal(attempt.expired_us, 134 * SECONDS);
  rl_attempt_will_live(&attempt, REDLOCK_NEVER - 1, 1);
  assert_int_equal(attempt.expired_us, REDLOCK_NEVER);
}

/* The node may read the command only when its connection has ended, and the key lives from then. */
TEST(unanswered_key_lives_from_the_end_of_the_connection) {
  rl_attempt attempt;
  memset(&attempt, 0, sizeof attempt);
  rl_attempt_will_live(&attempt, 100 * SECONDS, 10000);
  rl_attempt_unanswered(&attempt, 130 * SECONDS);
  assert_int_equal(attempt.expired_us, 142 * SECONDS);
  rl_attempt_unanswered(&attempt, 130 * SECONDS - 1); /* never earlier than it was */
  assert_int_equal(attempt.expired_us, 142 * SECONDS);
  rl_attempt_unanswered(&attempt, 130 * SECONDS + 1);
  assert_int_equal(attempt.expired_us, 142 * SECONDS + 1);
  assert_int_equal(attempt.life_us, 12 * SECONDS);
  rl_attempt_unanswered(&attempt, REDLOCK_NEVER);
  assert_int_equal(attempt.expired_us, REDLOCK_NEVER);
}
