/*
 * Tickets: what they note of each node, and what they send to it.
 *
 * SPDX-License-Identifier: MIT
 */
#include "wait/rl_ticket.h"

#include "wait/rl_queue_report.h"
#include "waiting_world.h"

static const char SAME_LENGTH[] = "orders:43";

/* Returns the ticket of a waiter for two keys, of which KEY is taken. */
static rl_ticket *wait_for_two(fake_world *world) {
  static const char *const names[] = {KEY, SAME_LENGTH};
  redlock_options options = patient_options();
  rl_lock *lock = fake_lock_many(world, names, 2, &options);
  assert_error(fake_acquire(world, lock), REDLOCK_PENDING);
  return lock->waitlist->ticket;
}

static bool note_notified(fake_world *world, rl_ticket *ticket, unsigned node, const char *key) {
  return rl_ticket_note_notified(world->core.notify, ticket, node, key, strlen(key));
}

static void notify_of(fake_world *world, const rl_ticket *ticket, const char *key) {
  char said[64];
  (void)snprintf(said, sizeof said, "%08x%s", (unsigned)ticket->id, key);
  deliver_message(world, 0, said);
}

TEST(enqueue_names_the_notified_keys) {
  fake_world *world = world_with_taken_key(3);
  rl_ticket *ticket = wait_for_two(world);
  rl_ticket_note_places(ticket, world->now_us, 0, "0", 1);
  notify_of(world, ticket, KEY);
  assert_int_equal(ticket->outstanding, 1);
  notify_of(world, ticket, SAME_LENGTH);
  assert_int_equal(ticket->prompted, 1);
  fake_command first = fake_answer(world, 0), second = fake_answer(world, 0);
  assert_string_equal(first.notified, "10");
  assert_string_equal(second.notified, "01");
  assert_int_equal(fake_next(world, 0), FAKE_OTHER);
  rl_ticket_request_enqueue(world->core.notify, ticket, 1);
  fake_turn(world);
  assert_string_equal(fake_answer(world, 0).notified, "");
  assert_int_equal(ticket->prompted, 0);
}

/* The memory behind the kept bytes of a message is no part of a key. */
TEST(message_with_a_part_of_a_key_notifies_of_no_key) {
  char name[RL_REPLY_BYTES_MAX - 1];
  const redlock_resource names[] = {{KEY, strlen(KEY)}, {name, sizeof name}};
  rl_reply reply;
  fake_world *world = world_with_taken_key(3);
  rl_ticket *ticket = wait_for_two(world);
  rl_resource *own = ticket->base;
  char id[9];
  memset(name, 'f', sizeof name);
  memset(&reply, 'f', sizeof reply);
  (void)snprintf(id, sizeof id, "%08x", (unsigned)ticket->id);
  memcpy(reply.bytes, id, 8);
  reply.length = 8 + sizeof name;
  ticket->base = rl_resource_new_many("", 0, names, 2);
  rl_queue_report_message(&world->core, 1, world->now_us, &reply);
  assert_int_equal(ticket->places[1].notified, 0);
  assert_int_equal(ticket->to_enqueue, 2);
  rl_resource_unref(ticket->base);
  ticket->base = own;
}

TEST(reservation_counts_until_the_next_query) {
  fake_world *world = world_with_taken_key(3);
  rl_ticket *ticket = wait_for_two(world);
  assert_int_equal(ticket->reserved, 7);
  rl_ticket_note_places(ticket, world->now_us, 1, "0", 1);
  assert_int_equal(ticket->reserved, 5);
  rl_ticket_request_enqueue(world->core.notify, ticket, 1);
  fake_turn(world);
  assert_int_equal(ticket->reserved, 4);
}

TEST(node_that_offers_all_keys_is_not_asked) {
  fake_world *world = world_with_taken_key(3);
  rl_ticket *ticket = wait_for_two(world);
  rl_ticket_note_places(ticket, world->now_us, 1, "0", 1);
  assert_false(note_notified(world, ticket, 1, KEY));
  assert_int_equal(ticket->to_enqueue, 2);
  assert_true(note_notified(world, ticket, 1, SAME_LENGTH));
  assert_int_equal(ticket->to_enqueue, 0);
  rl_ticket_request_enqueue(world->core.notify, ticket, 1);
  fake_turn(world);
  assert_false(note_notified(world, ticket, 0, KEY));
  assert_int_equal(ticket->again, 1);
  rl_ticket_note_places(ticket, world->now_us, 0, "2", 1);
  assert_true(note_notified(world, ticket, 0, KEY));
  assert_int_equal(ticket->again, 0);
  assert_int_equal(ticket->reserved, 4);
}

TEST(places_of_a_reply_are_read) {
  static const struct {
    const char *text;
    unsigned reserved;
    bool kept;
  } rows[] = {
      {"129,2,1", 129, true},
      {"255", 255, true},
      {"256", 0, true},
      {"2,456789012345678901234567890123456789012345678", 2, true},
      {"2,4567890123456789012345678901234567890123456789", 2, false},
  };
  static const redlock_resource names[] = {{"a", 1}, {"b", 1}, {"c", 1}, {"d", 1},
                                           {"e", 1}, {"f", 1}, {"g", 1}, {"h", 1}};
  fake_world *world = fake_world_new_notifying(3);
  rl_resource *keys = rl_resource_new_many("", 0, names, 8);
  rl_ticket *ticket = rl_ticket_new(&world->core, keys);
  rl_resource_unref(keys);
  for (unsigned i = 0; i < sizeof rows / sizeof rows[0]; i++) {
    rl_ticket_note_places(ticket, world->now_us, 0, rows[i].text, strlen(rows[i].text));
    assert_int_equal(ticket->places[0].reserved, rows[i].reserved);
    assert_string_equal(ticket->places[0].before, rows[i].kept ? rows[i].text : "");
  }
  rl_ticket_free(world->core.notify, ticket);
}

TEST(query_of_a_node_leaves_the_appended_tickets_of_others) {
  fake_world *world = world_with_taken_key(3);
  rl_ticket *ticket = begin_waiter(world)->waitlist->ticket;
  ticket->unqueried = 7;
  rl_ticket_request_enqueue(world->core.notify, ticket, 1);
  fake_turn(world);
  assert_int_equal(ticket->unqueried, 6);
}

TEST(tickets_are_found_after_their_array_has_grown) {
  fake_world *world = world_with_taken_key(3);
  rl_notify_state *notify = world->core.notify;
  rl_resource *base = begin_waiter(world)->waitlist->ticket->base;
  rl_ticket *tickets[16];
  for (unsigned i = 0; i < 16; i++) {
    assert_int_equal(notify->ticket_capacity, 16);
    tickets[i] = rl_ticket_new(&world->core, base);
  }
  assert_int_equal(notify->ticket_capacity, 32);
  for (unsigned i = 0; i < 16; i++) {
    assert_ptr_equal(rl_ticket_find(notify, tickets[i]->id), tickets[i]);
    rl_ticket_free(notify, tickets[i]);
  }
}
