/*
 * A lease as text: written and read, damaged and forged.
 *
 * SPDX-License-Identifier: MIT
 */
#include "fake_nodes.h"
#include "rl_handover.h"
#include "rl_test.h"

static void fill(unsigned char *bytes, size_t length, unsigned seed) {
  for (size_t i = 0; i < length; i++) {
    bytes[i] = (unsigned char)(i * 7 + seed);
  }
}

static const size_t lengths[] = {0, 1, 2, 3, 4, 40, 255, 256};

static size_t write(char text[REDLOCK_HANDOVER_MAX], rl_handover *handover, size_t prefix,
                    size_t resource, size_t token) {
  static unsigned char bytes[3][REDLOCK_KEY_MAX];
  rl_handover written = {.node_count = 5,
                         .doubtful = 0x80000001u,
                         .nodes = 0x123456789abcdef0u,
                         .ttl_us = 10 * SECONDS,
                         .lock_delay_us = 7,
                         .prefix_length = prefix,
                         .resource_length = resource,
                         .token_length = token};
  fill(bytes[0], prefix, 1);
  fill(bytes[1], resource, 2);
  fill(bytes[2], token, 3);
  written.prefix = bytes[0];
  written.resource = bytes[1];
  written.token = bytes[2];
  *handover = written;
  return rl_handover_write(handover, text, REDLOCK_HANDOVER_MAX);
}

static void assert_same(const rl_handover *a, const rl_handover *b) {
  assert_int_equal(a->node_count, b->node_count);
  assert_int_equal(a->doubtful, b->doubtful);
  assert_true(a->nodes == b->nodes && a->ttl_us == b->ttl_us);
  assert_true(a->lock_delay_us == b->lock_delay_us);
  assert_int_equal(a->prefix_length, b->prefix_length);
  assert_int_equal(a->resource_length, b->resource_length);
  assert_int_equal(a->token_length, b->token_length);
  assert_memory_equal(a->prefix, b->prefix, a->prefix_length);
  assert_memory_equal(a->resource, b->resource, a->resource_length);
  assert_memory_equal(a->token, b->token, a->token_length);
}

static void what_is_written_is_read_again(void **state) {
  (void)state;
  for (unsigned i = 0; i < COUNT_OF(lengths) * COUNT_OF(lengths); i++) {
    char text[REDLOCK_HANDOVER_MAX];
    unsigned char bytes[RL_HANDOVER_BYTES_MAX];
    rl_handover written, got;
    size_t token = i % 2 == 0 ? 40 : 1 + i;
    size_t length = write(text, &written, lengths[i / COUNT_OF(lengths)],
                          lengths[i % COUNT_OF(lengths)], token);
    assert_true(length > 0);
    assert_int_equal(strlen(text), length);
    assert_int_equal(
        strspn(text, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789.-_"), length);
    assert_true(rl_handover_read(&got, bytes, text, length));
    assert_same(&written, &got);
  }
}

static void the_longest_fits(void **state) {
  (void)state;
  char text[REDLOCK_HANDOVER_MAX];
  unsigned char bytes[RL_HANDOVER_BYTES_MAX];
  rl_handover written, got;
  size_t length = write(text, &written, 96, REDLOCK_KEY_MAX - 96, REDLOCK_TOKEN_MAX);
  assert_true(length > 0);
  assert_true(rl_handover_read(&got, bytes, text, length));
  assert_same(&written, &got);
  for (size_t size = 0; size <= length; size += length / 16) {
    assert_int_equal(rl_handover_write(&written, text, size), 0);
  }
  assert_int_equal(rl_handover_write(&written, text, length), 0);
  assert_int_equal(rl_handover_write(&written, text, length + 1), length);
}

static void any_change_is_found(void **state) {
  (void)state;
  char text[REDLOCK_HANDOVER_MAX];
  unsigned char bytes[RL_HANDOVER_BYTES_MAX];
  rl_handover handover;
  size_t length = write(text, &handover, 3, 9, 40);
  for (size_t cut = 0; cut < length; cut++) {
    assert_false(rl_handover_read(&handover, bytes, text, cut));
  }
  for (size_t i = 0; i < length; i++) {
    char was = text[i];
    for (int byte = 0; byte < 256; byte++) {
      text[i] = (char)byte;
      assert_true(rl_handover_read(&handover, bytes, text, length) == ((char)byte == was));
    }
    text[i] = was;
  }
  text[length] = 'A';
  assert_false(rl_handover_read(&handover, bytes, text, length + 1));
}

static void numbers_out_of_bounds_are_refused(void **state) {
  (void)state;
  static const rl_handover rows[] = {
      {.ttl_us = 0, .token_length = 1},
      {.ttl_us = REDLOCK_TTL_MAX_US + 1, .token_length = 1},
      {.ttl_us = 1, .lock_delay_us = REDLOCK_TTL_MAX_US + 1, .token_length = 1},
      {.ttl_us = 1, .token_length = 0},
      {.ttl_us = 1, .token_length = REDLOCK_TOKEN_MAX + 1},
      {.ttl_us = 1, .token_length = 1, .resource_length = REDLOCK_KEY_MAX + 1},
  };
  for (unsigned i = 0; i < COUNT_OF(rows); i++) {
    static const unsigned char zeros[REDLOCK_KEY_MAX + 1];
    char text[REDLOCK_HANDOVER_MAX];
    unsigned char bytes[RL_HANDOVER_BYTES_MAX];
    rl_handover handover = rows[i];
    handover.prefix = handover.resource = handover.token = zeros;
    size_t length = rl_handover_write(&handover, text, sizeof text);
    assert_true(length > 0);
    assert_false(rl_handover_read(&handover, bytes, text, length));
  }
}

static void other_nodes_or_another_order_are_told_apart(void **state) {
  (void)state;
  fake_world *three = fake_world_new(3);
  fake_world *four = fake_world_new(4);
  uint64_t nodes = rl_handover_nodes(&three->core);
  assert_true(nodes != rl_handover_nodes(&four->core));
  rl_node *first = three->core.nodes[0];
  three->core.nodes[0] = three->core.nodes[1];
  three->core.nodes[1] = first;
  assert_true(nodes != rl_handover_nodes(&three->core));
  assert_true(fake_world_end(three));
  assert_true(fake_world_end(four));
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(what_is_written_is_read_again),
      cmocka_unit_test(the_longest_fits),
      cmocka_unit_test(any_change_is_found),
      cmocka_unit_test(numbers_out_of_bounds_are_refused),
      cmocka_unit_test(other_nodes_or_another_order_are_told_apart),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
