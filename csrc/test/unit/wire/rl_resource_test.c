/*
 * Resources and their keys: one, and several.
 *
 * SPDX-License-Identifier: MIT
 */
#include "rl_test.h"
#include "wire/rl_resource.h"

static void assert_name(const rl_resource *resource, unsigned index, const char *key,
                        size_t key_length, size_t prefix_length) {
  rl_resource_name name = rl_resource_at(resource, index);
  assert_int_equal(name.key_length, key_length);
  assert_memory_equal(name.key, key, key_length);
  assert_int_equal(name.length, key_length - prefix_length);
  assert_ptr_equal(name.resource, name.key + prefix_length);
}

TEST(resource_is_prefix_and_name) {
  rl_resource *resource = rl_resource_new("a\0:", 3, "b\0", 2);
  assert_int_equal(resource->count, 1);
  assert_int_equal(resource->prefix_length, 3);
  assert_int_equal(resource->key_length, 5);
  assert_null(rl_resource_lengths(resource));
  assert_name(resource, 0, "a\0:b\0", 5, 3);
  rl_resource_unref(resource);
  resource = rl_resource_new(NULL, 0, NULL, 0);
  assert_name(resource, 0, "", 0, 0);
  rl_resource_unref(resource);
}

TEST(one_resource_stores_no_lengths) {
  rl_resource *resource = rl_resource_new("p:", 2, "name", 4);
  assert_int_equal(rl_resource_size(resource), sizeof *resource + 6);
  assert_int_equal(sizeof *resource, sizeof(unsigned) + sizeof(uint32_t) + 2 * sizeof(uint16_t));
  rl_resource_unref(resource);
}

TEST(each_of_several_has_the_prefix) {
  static const redlock_resource names[] = {{"a", 1}, {NULL, 0}, {"b\0c", 3}, {"dd", 2}};
  rl_resource *resource = rl_resource_new_many("p:", 2, names, 4);
  assert_int_equal(resource->count, 4);
  assert_int_equal(resource->key_length, 14);
  assert_memory_equal(resource->key, "p:ap:p:b\0cp:dd", 14);
  assert_name(resource, 0, "p:a", 3, 2);
  assert_name(resource, 1, "p:", 2, 2);
  assert_name(resource, 2, "p:b\0c", 5, 2);
  assert_name(resource, 3, "p:dd", 4, 2);
  assert_int_equal(rl_resource_size(resource), sizeof *resource + 14 + 4 * sizeof(uint16_t));
  rl_resource_unref(resource);
}

TEST(largest_resources_fit) {
  static char bytes[REDLOCK_KEY_MAX];
  redlock_resource names[REDLOCK_RESOURCES_MAX];
  memset(bytes, 'x', sizeof bytes);
  for (unsigned i = 0; i < REDLOCK_RESOURCES_MAX; i++) {
    names[i] = (redlock_resource){bytes, sizeof bytes - i};
  }
  rl_resource *resource = rl_resource_new_many(NULL, 0, names, REDLOCK_RESOURCES_MAX);
  for (unsigned i = 0; i < REDLOCK_RESOURCES_MAX; i++) {
    assert_name(resource, i, bytes, sizeof bytes - i, 0);
  }
  rl_resource_unref(resource);
}

TEST(repeated_resource_is_found) {
  static const redlock_resource different[] = {
      {"a", 1}, {"ab", 2}, {"a\0", 2}, {NULL, 0}, {"b", 1}};
  static const redlock_resource same[] = {{"a", 1}, {"b\0c", 3}, {"d", 1}, {"b\0c", 3}};
  static const redlock_resource empty[] = {{NULL, 0}, {"a", 1}, {"", 0}};
  assert_false(rl_resource_repeats(different, 5));
  assert_true(rl_resource_repeats(same, 4));
  assert_false(rl_resource_repeats(same, 3));
  assert_true(rl_resource_repeats(empty, 3));
  assert_false(rl_resource_repeats(empty, 1));
}

TEST(keys_of_counters_and_queues_are_reserved) {
  static const redlock_resource counter = {"a:redlock-fence", 15};
  static const redlock_resource short_of_it = {"redlock-fence", 13};
  static const redlock_resource beyond = {"a:redlock-fence2", 16};
  static const redlock_resource nothing = {NULL, 0};
  static const redlock_resource end = {"fence", 5};
  assert_true(rl_resource_is_reserved(NULL, 0, &counter));
  assert_true(rl_resource_is_reserved("x", 1, &counter));
  assert_false(rl_resource_is_reserved(NULL, 0, &short_of_it));
  assert_false(rl_resource_is_reserved("a", 1, &short_of_it));
  assert_true(rl_resource_is_reserved("a:", 2, &short_of_it));
  assert_false(rl_resource_is_reserved(NULL, 0, &beyond));
  assert_false(rl_resource_is_reserved(NULL, 0, &nothing));
  assert_true(rl_resource_is_reserved("a:redlock-fence", 15, &nothing));
  assert_true(rl_resource_is_reserved(":redlock-", 9, &end));
  assert_false(rl_resource_is_reserved("redlock-", 8, &end));
}

TEST(key_of_a_record_is_reserved) {
  static const redlock_resource record = {"redlock:lineage", 15};
  static const redlock_resource of_cluster = {"redlock:lineage:a", 17};
  static const redlock_resource beyond = {"redlock:lineages", 16};
  static const redlock_resource seal = {"redlock:lineage 5", 17};
  static const redlock_resource short_of_it = {"redlock:lineag", 14};
  assert_true(rl_resource_is_reserved(NULL, 0, &record));
  assert_true(rl_resource_is_reserved(NULL, 0, &of_cluster));
  assert_true(rl_resource_is_reserved(NULL, 0, &seal));
  assert_false(rl_resource_is_reserved(NULL, 0, &beyond));
  assert_false(rl_resource_is_reserved(NULL, 0, &short_of_it));
  assert_false(rl_resource_is_reserved("a:", 2, &record));
  assert_true(rl_resource_is_reserved("redlock:", 8, &(redlock_resource){"lineage", 7}));
}

TEST(slot_is_the_name_of_its_semaphore_and_a_number) {
  static const unsigned slots[] = {1, 9, 10, 1024};
  rl_resource *base = rl_resource_new("a:", 2, "pool/7", 6);
  assert_int_equal(rl_resource_slot(base), 0); /* The name of a lock may look like a slot. */
  for (unsigned i = 0; i < COUNT_OF(slots); i++) {
    rl_resource *slot = rl_resource_new_slot(base, slots[i]);
    assert_int_equal(rl_resource_slot(slot), slots[i]);
    assert_int_equal(rl_resource_base_length(slot), base->key_length);
    assert_int_equal(slot->prefix_length, 2);
    assert_true(rl_resource_equal(base, slot)); /* They have one queue. */
    rl_resource_unref(slot);
  }
  rl_resource_unref(base);
}

TEST(name_of_a_slot_ends_in_its_number) {
  static const struct {
    const char *name;
    unsigned slot;
    size_t length;
  } names[] = {{"a/1", 1, 1},     {"a/1024", 1024, 1}, {"/5", 5, 0},   {"a/b/12", 12, 3},
               {"a/1025", 0, 6},  {"a/0", 0, 3},       {"a/01", 0, 4}, {"a/", 0, 2},
               {"a1", 0, 2},      {"7", 0, 1},         {"", 0, 0},     {"a/99999", 0, 7},
               {"a/12345", 0, 7}, {"a/1 ", 0, 4}};
  for (unsigned i = 0; i < COUNT_OF(names); i++) {
    size_t length = 99;
    assert_int_equal(rl_resource_parse_slot(names[i].name, strlen(names[i].name), &length),
                     names[i].slot);
    assert_int_equal(length, names[i].length);
  }
}
