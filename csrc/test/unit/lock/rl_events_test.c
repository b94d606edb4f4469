/*
 * The queue of events.
 *
 * SPDX-License-Identifier: MIT
 */
#include "lock/rl_events.h"
#include "rl_test.h"

TEST(queue_returns_events_in_order) {
  rl_events *events = NULL;
  assert_error(rl_events_open(&events), REDLOCK_OK);
  rl_events *first = events;
  assert_error(rl_events_open(&events), REDLOCK_OK);
  assert_ptr_equal(events, first);
  rl_events_note_node(events, 7, REDLOCK_EVENT_DOWN, 3, "Connection refused");
  rl_events_note_node(events, 9, REDLOCK_EVENT_UP, 3, "");
  const rl_events_entry *entry = rl_events_take(events);
  assert_int_equal(entry->event, REDLOCK_EVENT_DOWN);
  assert_int_equal(entry->at_us, 7);
  assert_int_equal(entry->node, 3);
  assert_string_equal(entry->reason, "Connection refused");
  assert_true(rl_events_are_there(events));
  entry = rl_events_take(events);
  assert_int_equal(entry->event, REDLOCK_EVENT_UP);
  assert_string_equal(entry->reason, "");
  assert_false(rl_events_are_there(events));
  assert_null(rl_events_take(events));
  rl_events_close(&events);
  assert_null(events);
}

TEST(full_queue_drops_new_events_and_counts_them) {
  rl_events *events = NULL;
  assert_error(rl_events_open(&events), REDLOCK_OK);
  for (unsigned round = 0; round < 3; round++) { /* from other places of the ring, too */
    for (unsigned i = 0; i < RL_EVENTS_MAX + 5; i++) {
      rl_events_note_node(events, i, REDLOCK_EVENT_UP, i % 5, "");
    }
    for (unsigned i = 0; i < RL_EVENTS_MAX; i++) {
      const rl_events_entry *entry = rl_events_take(events);
      assert_int_equal(entry->at_us, i);
      assert_int_equal(entry->missed, 0);
    }
    assert_null(rl_events_take(events));
    rl_events_note_node(events, 77, REDLOCK_EVENT_UP, 0, "");
    assert_int_equal(rl_events_take(events)->missed, 5);
  }
  assert_int_equal(events->total, 3 * (RL_EVENTS_MAX + 1));
  rl_events_close(&events);
}

TEST(events_of_locks_keep_their_resource) {
  rl_events *events = NULL;
  assert_error(rl_events_open(&events), REDLOCK_OK);
  rl_resource *resource = rl_resource_new("p:", 2, "orders", 6);
  rl_events_note_loss(events, 1, REDLOCK_EVENT_LOST, resource, REDLOCK_E_MAX_HOLD);
  rl_events_note_loss(events, 2, REDLOCK_EVENT_WARNED, resource, REDLOCK_E_UNAVAILABLE);
  rl_events_note_loss(events, 3, REDLOCK_EVENT_WARNED, resource, REDLOCK_E_CLOCK);
  rl_events_note_wait(events, 4, resource, REDLOCK_E_TAKEN, 5 * SECONDS);
  rl_events_note_wait(events, 5, resource, REDLOCK_OK, 6 * SECONDS);
  rl_resource_unref(resource);
  static const redlock_event kinds[] = {REDLOCK_EVENT_LOST, REDLOCK_EVENT_WARNED,
                                        REDLOCK_EVENT_WARNED, REDLOCK_EVENT_WAITED};
  static const int codes[] = {REDLOCK_E_MAX_HOLD, REDLOCK_E_UNAVAILABLE, REDLOCK_E_CLOCK,
                              REDLOCK_E_TAKEN};
  for (unsigned i = 0; i < COUNT_OF(kinds); i++) {
    const rl_events_entry *entry = rl_events_take(events);
    assert_int_equal(entry->event, kinds[i]);
    assert_error(entry->code, codes[i]);
    assert_int_equal(entry->waited_us, i == 3 ? 5 * SECONDS : 0);
    assert_memory_equal(rl_resource_at(entry->resource, 0).resource, "orders", 6);
    assert_int_equal(rl_resource_at(entry->resource, 0).length, 6);
  }
  rl_events_close(&events); /* with one that was not taken; the leak checker looks */
}

TEST(reset_drops_all_events) {
  rl_events *events = NULL;
  assert_error(rl_events_open(&events), REDLOCK_OK);
  rl_resource *resource = rl_resource_new("", 0, "orders", 6);
  for (unsigned i = 0; i < RL_EVENTS_MAX + 1; i++) {
    rl_events_note_loss(events, 1, REDLOCK_EVENT_LOST, resource, REDLOCK_E_EXPIRED);
  }
  (void)rl_events_take(events);
  rl_events_reset(events);
  assert_int_equal(resource->references, 1);
  assert_null(rl_events_take(events));
  rl_events_note_loss(events, 1, REDLOCK_EVENT_LOST, resource, REDLOCK_E_LOST);
  assert_int_equal(rl_events_take(events)->missed, 0);
  rl_events_close(&events);
  assert_int_equal(resource->references, 1);
  rl_resource_unref(resource);
}

TEST(missing_queue_takes_no_events) {
  rl_resource *resource = rl_resource_new("", 0, "orders", 6);
  rl_events_note_node(NULL, 1, REDLOCK_EVENT_UP, 0, "");
  rl_events_note_loss(NULL, 1, REDLOCK_EVENT_LOST, resource, REDLOCK_E_LOST);
  rl_events_note_wait(NULL, 1, resource, REDLOCK_OK, 1);
  assert_null(rl_events_take(NULL));
  assert_false(rl_events_are_there(NULL));
  rl_events_reset(NULL);
  assert_int_equal(resource->references, 1);
  rl_resource_unref(resource);
}
