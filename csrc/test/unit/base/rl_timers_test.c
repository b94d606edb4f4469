/*
 * The heap of timers, against a plain list.
 *
 * SPDX-License-Identifier: MIT
 */
#include "base/rl_timers.h"
#include "rl_test.h"

#define LOCKS 200

typedef struct naive {
  bool set;
  redlock_time due_us;
} naive;

static rl_timers_entry **make_locks(void) {
  rl_timers_entry **locks = calloc(LOCKS, sizeof(rl_timers_entry *));
  assert_non_null(locks);
  for (unsigned i = 0; i < LOCKS; i++) {
    locks[i] = calloc(1, sizeof(rl_timers_entry));
    assert_non_null(locks[i]);
    locks[i]->index = RL_TIMERS_NONE;
  }
  return locks;
}

static void free_locks(rl_timers_entry **locks) {
  for (unsigned i = 0; i < LOCKS; i++) {
    free(locks[i]);
  }
  free((void *)locks);
}

static redlock_time earliest(const naive *model) {
  redlock_time least_us = REDLOCK_NEVER;
  for (unsigned i = 0; i < LOCKS; i++) {
    least_us = model[i].set && model[i].due_us < least_us ? model[i].due_us : least_us;
  }
  return least_us;
}

TEST(empty_heap_has_nothing_due) {
  rl_timers timers = {NULL, 0, 0};
  assert_int_equal(rl_timers_next(&timers), REDLOCK_NEVER);
  assert_null(rl_timers_take(&timers, REDLOCK_NEVER));
  rl_timers_free(&timers);
}

TEST(heap_behaves_like_a_sorted_list) {
  rl_timers timers = {NULL, 0, 0};
  rl_timers_entry **locks = make_locks();
  naive model[LOCKS];
  unsigned seed = 4711;
  memset(model, 0, sizeof model);
  assert_true(rl_timers_reserve(&timers, LOCKS));
  for (unsigned step = 0; step < 200000; step++) {
    seed = seed * 1103515245 + 12345;
    unsigned which = seed / 65536 % LOCKS;
    unsigned action = seed >> 29;
    seed = seed * 1103515245 + 12345;
    redlock_time due_us = seed / 65536 % 500;
    if (action < 4) {
      rl_timers_set(&timers, locks[which], due_us);
      model[which] = (naive){true, due_us};
    } else if (action < 6) {
      rl_timers_clear(&timers, locks[which]);
      model[which].set = false;
    } else {
      rl_timers_entry *taken = rl_timers_take(&timers, due_us / 8);
      redlock_time least_us = earliest(model);
      assert_int_equal(taken != NULL, least_us <= due_us / 8);
      for (unsigned i = 0; i < LOCKS && taken != NULL; i++) {
        if (locks[i] == taken) {
          assert_true(model[i].set);
          assert_int_equal(model[i].due_us, least_us);
          model[i].set = false;
          assert_int_equal(taken->index, RL_TIMERS_NONE);
        }
      }
    }
    assert_int_equal(rl_timers_next(&timers), earliest(model));
  }
  for (unsigned i = 0; i < LOCKS; i++) {
    assert_int_equal(locks[i]->index != RL_TIMERS_NONE, model[i].set);
  }
  rl_timers_free(&timers);
  free_locks(locks);
}

/* Up to six timers, due at any of as many times. One is cleared: the rest are due in order. */
TEST(small_heap_survives_any_removal) {
  rl_timers timers = {NULL, 0, 0};
  rl_timers_entry **locks = make_locks();
  assert_true(rl_timers_reserve(&timers, 6));
  for (unsigned count = 1; count <= 6; count++) {
    unsigned orders = 1;
    for (unsigned i = 0; i < count; i++) {
      orders *= count;
    }
    for (unsigned both = 0; both < orders * count; both++) {
      unsigned order = both / count;
      redlock_time last_us = 0;
      for (unsigned i = 0; i < count; i++) {
        rl_timers_set(&timers, locks[i], order % count);
        order /= count;
      }
      rl_timers_clear(&timers, locks[both % count]);
      for (unsigned i = 1; i < count; i++) {
        redlock_time next_us = rl_timers_next(&timers);
        assert_true(next_us >= last_us);
        assert_non_null(rl_timers_take(&timers, next_us));
        last_us = next_us;
      }
      assert_null(rl_timers_take(&timers, REDLOCK_NEVER));
    }
  }
  rl_timers_free(&timers);
  free_locks(locks);
}

TEST(timer_is_due_at_its_time_and_not_before) {
  rl_timers timers = {NULL, 0, 0};
  rl_timers_entry **locks = make_locks();
  assert_true(rl_timers_reserve(&timers, 1));
  rl_timers_set(&timers, locks[0], 100);
  assert_null(rl_timers_take(&timers, 99));
  assert_ptr_equal(rl_timers_take(&timers, 100), locks[0]);
  assert_null(rl_timers_take(&timers, 100));
  rl_timers_clear(&timers, locks[0]);
  rl_timers_free(&timers);
  free_locks(locks);
}

TEST(heap_keeps_and_grows_its_room) {
  rl_timers timers = {NULL, 0, 0};
  static const struct {
    size_t count;
    size_t capacity;
  } steps[] = {{0, 0}, {1, 16}, {16, 16}, {17, 32}, {3, 32}, {32, 32}, {65, 128}, {1024, 1024}};
  for (unsigned i = 0; i < COUNT_OF(steps); i++) {
    assert_true(rl_timers_reserve(&timers, steps[i].count));
    assert_int_equal(timers.capacity, steps[i].capacity);
  }
  rl_timers_free(&timers);
  assert_int_equal(timers.capacity, 0);
}
