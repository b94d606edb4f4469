/*
 * A lease as text: written and read, damaged and forged.
 *
 * SPDX-License-Identifier: MIT
 */
#include "fake_nodes.h"
#include "lifecycle/rl_detach.h"
#include "rl_test.h"
#include "wire/rl_handover.h"

static void fill(unsigned char *bytes, size_t length, unsigned seed) {
  for (size_t i = 0; i < length; i++) {
    bytes[i] = (unsigned char)(i * 7 + seed);
  }
}

static const size_t lengths[] = {0, 1, 2, 3, 4, 40, 255, 256};

static char text[2 * REDLOCK_RESOURCES_MAX * REDLOCK_KEY_MAX];

/* |count| resources of |resource| bytes each, of which no two are equal. */
static size_t write_lease(rl_handover *handover, size_t prefix, size_t resource, size_t count,
                          size_t token) {
  static unsigned char bytes[2][REDLOCK_KEY_MAX], names[REDLOCK_RESOURCES_MAX][REDLOCK_KEY_MAX];
  *handover = (rl_handover){.node_count = 5,
                            .may_set = 0x80000001u,
                            .nodes = 0x123456789abcdef0u,
                            .ttl_us = 10 * SECONDS,
                            .lock_delay_us = 7,
                            .prefix_length = prefix,
                            .resource_count = count,
                            .token_length = token};
  fill(bytes[0], prefix, 1);
  fill(bytes[1], token, 3);
  handover->prefix = bytes[0];
  handover->token = bytes[1];
  for (unsigned i = 0; i < count; i++) {
    fill(names[i], resource, 2 + i);
    handover->resources[i] = (redlock_resource){names[i], resource};
  }
  rl_handover_write(handover, text);
  return strlen(text);
}

static void assert_same(const rl_handover *a, const rl_handover *b) {
  assert_int_equal(a->node_count, b->node_count);
  assert_int_equal(a->may_set, b->may_set);
  assert_true(a->nodes == b->nodes && a->ttl_us == b->ttl_us);
  assert_true(a->lock_delay_us == b->lock_delay_us);
  assert_int_equal(a->prefix_length, b->prefix_length);
  assert_int_equal(a->token_length, b->token_length);
  assert_memory_equal(a->prefix, b->prefix, a->prefix_length);
  assert_memory_equal(a->token, b->token, a->token_length);
  assert_int_equal(a->resource_count, b->resource_count);
  for (size_t i = 0; i < a->resource_count; i++) {
    assert_int_equal(a->resources[i].length, b->resources[i].length);
    assert_memory_equal(a->resources[i].bytes, b->resources[i].bytes, a->resources[i].length);
  }
}

static bool reads(rl_handover *got, size_t length) {
  int error = rl_handover_read(got, text, length);
  assert_true(error == REDLOCK_OK || error == REDLOCK_E_LOST);
  return error == REDLOCK_OK;
}

/* Earlier versions read and write the same text. */
TEST(text_without_a_fencing_token_keeps_its_format) {
  static const char old[] =
      "redlock1.AwAAAAIAAAAAAAAATQAAAAAAmJaAAAAAAAAAE4gAAgAoAQAJcDpvcmRlcnM6NDIwMTIzNDU2Nzg5YWJjZGVmMDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3fZciw1DBn8k";
  rl_handover got;
  memcpy(text, old, sizeof old);
  assert_true(reads(&got, strlen(old)));
  assert_int_equal(got.node_count, 3);
  assert_int_equal(got.ttl_us, 10 * SECONDS);
  assert_true(got.fence == 0);
  rl_handover_write(&got, text);
  assert_string_equal(text, old);
  rl_handover_free(&got);
}

TEST(fencing_token_survives_the_text) {
  static const uint64_t fences[] = {1, 255, 1763900000123456, 9007199254740991};
  for (unsigned i = 0; i < COUNT_OF(fences); i++) {
    rl_handover written, got;
    (void)write_lease(&written, 3, 9, 2, 40);
    written.fence = fences[i];
    rl_handover_write(&written, text);
    assert_int_equal(rl_handover_length(&written), strlen(text));
    assert_int_equal(strncmp(text, "redlock2.", 9), 0);
    assert_true(reads(&got, strlen(text)));
    assert_same(&written, &got);
    assert_true(got.fence == fences[i]);
    rl_handover_free(&got);
  }
}

TEST(written_lease_is_read_again) {
  for (unsigned i = 0; i < COUNT_OF(lengths) * COUNT_OF(lengths); i++) {
    rl_handover written, got;
    size_t token = i % 2 == 0 ? 40 : 1 + i;
    size_t length = write_lease(&written, lengths[i / COUNT_OF(lengths)],
                                lengths[i % COUNT_OF(lengths)], 1, token);
    assert_int_equal(rl_handover_length(&written), length);
    assert_int_equal(
        strspn(text, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789.-_"), length);
    assert_true(reads(&got, length));
    assert_same(&written, &got);
    rl_handover_free(&got);
  }
}

TEST(longest_text_of_one_resource_fits) {
  rl_handover written, got;
  size_t length = write_lease(&written, 96, REDLOCK_KEY_MAX - 96, 1, REDLOCK_TOKEN_MAX);
  assert_true(length < REDLOCK_HANDOVER_MAX);
  assert_true(reads(&got, length));
  assert_same(&written, &got);
  rl_handover_free(&got);
}

TEST(longest_text_is_read) {
  rl_handover written, got;
  size_t length =
      write_lease(&written, 96, REDLOCK_KEY_MAX - 96, REDLOCK_RESOURCES_MAX, REDLOCK_TOKEN_MAX);
  assert_true(reads(&got, length));
  assert_same(&written, &got);
  rl_handover_free(&got);
}

/* Both kinds of text, with few and many resources. No text of one kind passes for the other. */
TEST(cut_or_changed_text_is_rejected) {
  static const struct {
    uint64_t fence;
    size_t count;
  } rows[] = {{0, 2}, {1763900000123456, 2}, {1763900000123456, REDLOCK_RESOURCES_MAX}};
  for (unsigned row = 0; row < COUNT_OF(rows); row++) {
    rl_handover handover;
    (void)write_lease(&handover, 3, 2, rows[row].count, 40);
    handover.fence = rows[row].fence;
    rl_handover_write(&handover, text);
    size_t length = strlen(text);
    for (size_t cut = 0; cut < length; cut++) {
      assert_false(reads(&handover, cut));
    }
    for (size_t i = 0; i < length; i++) {
      char was = text[i];
      for (int byte = 0; byte < 256; byte++) {
        text[i] = (char)byte;
        bool read = reads(&handover, length);
        assert_true(read == ((char)byte == was));
        if (read) {
          rl_handover_free(&handover);
        }
      }
      text[i] = was;
    }
  }
}

/* A lease has exactly one text, whatever its length. */
TEST(appended_digit_is_rejected) {
  rl_handover handover;
  for (unsigned token = 1; token <= 8; token++) {
    size_t length = write_lease(&handover, 3, 9, 1, token);
    assert_true(reads(&handover, length));
    rl_handover_free(&handover);
    memset(text + length, 'A', 8);
    for (size_t more = 1; more <= 8; more++) {
      assert_false(reads(&handover, length + more));
    }
  }
}

/* With zeros for the invalid digit, the checksum would be right. */
TEST(invalid_digit_among_zeros_is_rejected) {
  for (unsigned i = 0; i < 4096; i++) {
    rl_handover handover;
    (void)write_lease(&handover, 3, 9, 1, 1 + i % 3);
    handover.nodes = i;
    rl_handover_write(&handover, text);
    size_t length = strlen(text);
    text[length - 1] = '*';
    assert_false(reads(&handover, length));
  }
}

TEST(number_out_of_bounds_is_rejected) {
  static const rl_handover rows[] = {
      {.ttl_us = 0, .token_length = 1, .resource_count = 1},
      {.ttl_us = REDLOCK_TTL_MAX_US + 1, .token_length = 1, .resource_count = 1},
      {.ttl_us = 1,
       .lock_delay_us = REDLOCK_TTL_MAX_US + 1,
       .token_length = 1,
       .resource_count = 1},
      {.ttl_us = 1, .token_length = 0, .resource_count = 1},
      {.ttl_us = 1, .token_length = REDLOCK_TOKEN_MAX + 1, .resource_count = 1},
      {.ttl_us = 1, .token_length = 1, .resource_count = 0},
      {.ttl_us = 1,
       .token_length = 1,
       .resource_count = 1,
       .resources = {{NULL, REDLOCK_KEY_MAX + 1}}},
      {.ttl_us = 1,
       .fence = (uint64_t)1 << 53,
       .token_length = 1,
       .resource_count = 1,
       .resources = {{NULL, 1}}},
      {.ttl_us = 1, .token_length = 1, .resource_count = 2, .resources = {{NULL, 1}, {NULL, 1}}},
  };
  for (unsigned i = 0; i < COUNT_OF(rows); i++) {
    static const unsigned char zeros[REDLOCK_KEY_MAX + 1];
    rl_handover handover = rows[i];
    handover.prefix = handover.token = zeros;
    handover.resources[0].bytes = handover.resources[1].bytes = zeros;
    rl_handover_write(&handover, text);
    assert_false(reads(&handover, strlen(text)));
  }
}

TEST(shortest_and_longest_ttl_are_read) {
  static const redlock_duration ends[] = {1, REDLOCK_TTL_MAX_US};
  for (unsigned i = 0; i < COUNT_OF(ends); i++) {
    rl_handover written, got;
    (void)write_lease(&written, 3, 5, 1, 40);
    written.ttl_us = ends[i];
    written.lock_delay_us = ends[i] - 1 + i;
    rl_handover_write(&written, text);
    assert_true(reads(&got, strlen(text)));
    assert_same(&written, &got);
    rl_handover_free(&got);
  }
}

/* The two processes may have different versions. */
TEST(hash_of_nodes_is_stable) {
  fake_world *world = fake_world_new(3);
  assert_string_equal(world->core.nodes[2]->address.name, "10.0.0.3:6379");
  assert_true(rl_detach_nodes(&world->core) == 0xab26a2d461ec1eb9u);
}

TEST(oversized_text_is_rejected_unread) {
  rl_handover handover;
  size_t length = write_lease(&handover, 0, 1, 1, 40);
  memset(text + length, 'A', sizeof text - length);
  assert_false(reads(&handover, sizeof text));
  assert_int_equal(rl_handover_read(&handover, text, SIZE_MAX), REDLOCK_E_LOST);
}

TEST(hash_distinguishes_nodes_and_their_order) {
  fake_world *three = fake_world_new(3);
  fake_world *four = fake_world_new(4);
  uint64_t nodes = rl_detach_nodes(&three->core);
  assert_true(nodes != rl_detach_nodes(&four->core));
  rl_node *first = three->core.nodes[0];
  three->core.nodes[0] = three->core.nodes[1];
  three->core.nodes[1] = first;
  assert_true(nodes != rl_detach_nodes(&three->core));
  assert_true(fake_world_end(three));
  assert_true(fake_world_end(four));
}
