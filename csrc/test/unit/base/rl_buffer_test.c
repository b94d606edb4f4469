/*
 * The queue of bytes, against a plain array.
 *
 * SPDX-License-Identifier: MIT
 */
#include "base/rl_buffer.h"
#include "rl_test.h"

static void put(rl_buffer *buffer, const char *bytes, size_t length) {
  char *room = rl_buffer_reserve(buffer, length, true);
  assert_non_null(room);
  memcpy(room, bytes, length);
  rl_buffer_append(buffer, length);
}

TEST(empty_buffer_has_no_memory) {
  rl_buffer buffer = {0};
  assert_int_equal(rl_buffer_length(&buffer), 0);
  assert_null(rl_buffer_reserve(&buffer, 1, false));
  assert_null(rl_buffer_reserve(&buffer, 0, false));
  rl_buffer_clear(&buffer);
  rl_buffer_free(&buffer);
  rl_buffer_free(&buffer);
}

TEST(buffer_returns_bytes_in_order) {
  enum { TOTAL = 300000 };
  rl_buffer buffer = {0};
  unsigned seed = 12345;
  size_t in = 0;
  size_t out = 0;
  while (out < TOTAL) {
    seed = seed * 1103515245 + 12345;
    size_t part = seed / 65536 % 5000;
    if (seed & 0x40000000 && in < TOTAL) {
      char bytes[5000];
      part = part < TOTAL - in ? part : TOTAL - in;
      for (size_t i = 0; i < part; i++) {
        bytes[i] = (char)((in + i) % 251);
      }
      put(&buffer, bytes, part);
      in += part;
    } else {
      part = part < in - out ? part : in - out;
      for (size_t i = 0; i < part; i++) {
        assert_int_equal(buffer.data[buffer.head + i], (char)((out + i) % 251));
      }
      rl_buffer_consume(&buffer, part);
      out += part;
    }
    assert_int_equal(rl_buffer_length(&buffer), in - out);
  }
  rl_buffer_free(&buffer);
  assert_null(buffer.data);
}

TEST(reserve_without_growing_uses_all_memory) {
  rl_buffer buffer = {0};
  put(&buffer, "x", 1);
  size_t capacity = buffer.capacity;
  assert_non_null(rl_buffer_reserve(&buffer, capacity - 1, false));
  assert_null(rl_buffer_reserve(&buffer, capacity, false));
  assert_int_equal(buffer.capacity, capacity);
  buffer.tail = capacity;
  rl_buffer_consume(&buffer, 10); /* Room at the head is room. */
  assert_non_null(rl_buffer_reserve(&buffer, 10, false));
  assert_null(rl_buffer_reserve(&buffer, 11, false));
  assert_int_equal(rl_buffer_length(&buffer), capacity - 10);
  assert_non_null(rl_buffer_reserve(&buffer, 11, true));
  assert_true(buffer.capacity > capacity);
  rl_buffer_free(&buffer);
}

TEST(emptied_buffer_starts_again_at_its_beginning) {
  rl_buffer buffer = {0};
  put(&buffer, "hello", 5);
  const char *data = buffer.data;
  rl_buffer_consume(&buffer, 5);
  assert_int_equal(buffer.head, 0);
  assert_int_equal(buffer.tail, 0);
  assert_ptr_equal(rl_buffer_reserve(&buffer, 5, false), data);
  rl_buffer_free(&buffer);
}

TEST(request_far_beyond_the_capacity_is_met_at_once) {
  rl_buffer buffer = {0};
  char *room = rl_buffer_reserve(&buffer, 100000, true);
  assert_non_null(room);
  memset(room, 0, 100000);
  assert_true(buffer.capacity >= 100000);
  rl_buffer_free(&buffer);
}

TEST(newest_command_is_copied_while_it_is_whole) {
  rl_buffer from = {0}, to = {0};
  assert_false(rl_buffer_copy_newest(&to, &from, true));
  put(&from, "one", 3);
  assert_false(rl_buffer_copy_newest(&to, &from, false)); /* It would have to allocate. */
  assert_true(rl_buffer_copy_newest(&to, &from, true));
  put(&from, "four", 4);
  rl_buffer_consume(&from, 3);
  assert_true(rl_buffer_copy_newest(&to, &from, false));
  rl_buffer_consume(&from, 1);
  assert_false(rl_buffer_copy_newest(&to, &from, true));
  rl_buffer_consume(&from, 3);
  assert_false(rl_buffer_copy_newest(&to, &from, true));
  assert_int_equal(rl_buffer_length(&to), 7);
  assert_memory_equal(to.data, "onefour", 7);
  rl_buffer_free(&from);
  rl_buffer_free(&to);
}
