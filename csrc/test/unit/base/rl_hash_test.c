/*
 * The hash table: growth, equal hashes, removal, and a table without memory.
 *
 * SPDX-License-Identifier: MIT
 */
#include "base/rl_hash.h"
#include "base/rl_number.h"
#include "rl_test.h"

#define MANY 1000

static bool out_of_memory;

void *__real_calloc(size_t count, size_t size);
void *__wrap_calloc(size_t count, size_t size);

void *__wrap_calloc(size_t count, size_t size) {
  return out_of_memory ? NULL : __real_calloc(count, size);
}

/* Every seventh entry has a hash that an earlier one has, too. */
static uint64_t hash_of(size_t i) {
  return rl_hash_bytes(1, &(size_t){i % 7 == 0 ? 0 : i}, sizeof i);
}

static void fill(rl_hash *table, rl_hash_entry *entries, bool grows) {
  for (size_t i = 0; i < MANY; i++) {
    out_of_memory = !grows && i > 0;
    assert_true(rl_hash_reserve(table, i + 1));
    rl_hash_insert(table, &entries[i], hash_of(i));
  }
  out_of_memory = false;
}

TEST(entries_are_found_until_they_are_removed) {
  for (int grows = 0; grows < 2; grows++) {
    rl_hash table = {0};
    static rl_hash_entry entries[MANY];
    assert_null(rl_hash_find(&table, hash_of(1)));
    fill(&table, entries, grows == 1);
    assert_int_equal(table.bucket_count, grows == 1 ? 1024 : 16);
    for (size_t i = 0; i < MANY; i++) {
      rl_hash_entry *entry = rl_hash_find(&table, hash_of(i));
      while (entry != &entries[i]) {
        assert_non_null(entry);
        entry = rl_hash_find_next(entry);
      }
      rl_hash_remove(&table, entry);
      assert_int_equal(table.count, MANY - 1 - i);
    }
    assert_null(rl_hash_find(&table, hash_of(0)));
    rl_hash_free(&table);
  }
}

TEST(entries_with_one_hash_are_all_found_after_growth) {
  rl_hash table = {0};
  rl_hash_entry entries[3];
  bool found[COUNT_OF(entries)] = {false};
  assert_true(rl_hash_reserve(&table, 16));
  for (unsigned i = 0; i < COUNT_OF(entries); i++) {
    rl_hash_insert(&table, &entries[i], 5);
  }
  assert_true(rl_hash_reserve(&table, 17));
  assert_int_equal(table.bucket_count, 32);
  rl_hash_entry *entry = rl_hash_find(&table, 5);
  for (unsigned i = 0; i < COUNT_OF(entries); i++, entry = rl_hash_find_next(entry)) {
    assert_non_null(entry);
    found[entry - entries] = true;
  }
  assert_null(entry);
  assert_true(found[0] && found[1] && found[2]);
  rl_hash_free(&table);
}

TEST(table_without_memory_has_no_buckets) {
  rl_hash table = {0};
  out_of_memory = true;
  assert_false(rl_hash_reserve(&table, 1));
  out_of_memory = false;
  assert_int_equal(table.bucket_count, 0);
}

TEST(hash_depends_on_seed_length_and_every_byte) {
  unsigned char bytes[20] = {0};
  for (size_t length = 1; length <= sizeof bytes; length++) {
    uint64_t hash = rl_hash_bytes(3, bytes, length);
    assert_true(hash == rl_hash_bytes(3, bytes, length));
    assert_true(hash != rl_hash_bytes(4, bytes, length));
    assert_true(hash != rl_hash_bytes(3, bytes, length - 1));
    for (size_t i = 0; i < length; i++) {
      bytes[i] = 1;
      assert_true(hash != rl_hash_bytes(3, bytes, length));
      bytes[i] = 0;
    }
  }
}

/* Otherwise a seed of the simulator would have another trace on some processors. */
TEST(hash_does_not_depend_on_byte_order) {
  assert_true(rl_hash_bytes(1, "redlock:jobs", 12) == UINT64_C(0xdf25b191ec90a3a7));
  assert_true(rl_number_in_bytes("\x01\x02\x03", 3) == 0x030201);
  assert_true(rl_number_in_bytes("\x01\0\0\0\0\0\0\xff", 8) == UINT64_C(0xff00000000000001));
}
