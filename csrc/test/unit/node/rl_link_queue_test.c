/*
 * Commands of a round: each node gets the bytes for its own connection.
 *
 * SPDX-License-Identifier: MIT
 *
 * A command is a copy of the previous node's where that has the same bytes. Each row queues a
 * command on a first node, on a node after it, and on a lone one, which never copies. The latter
 * two must write the same.
 */
#include "fake_nodes.h"
#include "node/rl_link_queue.h"
#include "node/rl_node.h"
#include "rl_test.h"

#define START_US (100 * SECONDS)
#define CHANNEL RL_COMMAND_CHANNEL "0123456789abcdef"

enum { FIRST, AFTER, LONE, NODES };

typedef struct fixture {
  rl_node nodes[NODES];
  rl_attempt_pool pool;
  rl_resource *resource;
  rl_attempt *attempts[2];
} fixture;

static rl_link *link_of(fixture *it, unsigned node) {
  return &it->nodes[node].link;
}

static void bring_up(rl_node *node) {
  rl_outstanding command;
  const char *reason = NULL;
  bool came_up = false;
  node->link.notify_channel = CHANNEL;
  node->link.skips_native = true;
  rl_link_connecting(&node->link, START_US);
  rl_node_connected(node, START_US);
  rl_link_sent(&node->link, rl_buffer_length(&node->link.output));
  assert_null(rl_link_feed(&node->link, START_US, FAKE_HANDSHAKE, strlen(FAKE_HANDSHAKE)));
  assert_int_equal(rl_link_next(&node->link, START_US, &command, &came_up, &reason), 0);
  assert_true(came_up);
}

static fixture *make(void) {
  static const unsigned char entropy[][20] = {{1}, {2}};
  redlock_settings settings = {0};
  redlock_node named = {.address = "h"};
  rl_address address;
  fixture *it = calloc(1, sizeof *it);
  assert_non_null(it);
  assert_error(rl_address_read(&address, &named, &settings, NULL, 0), REDLOCK_OK);
  it->resource = rl_resource_new(NULL, 0, "k", 1);
  assert_non_null(it->resource);
  for (unsigned i = 0; i < NODES; i++) {
    rl_node_init(&it->nodes[i], i, &address);
    bring_up(&it->nodes[i]);
  }
  link_of(it, AFTER)->previous = link_of(it, FIRST);
  for (unsigned i = 0; i < COUNT_OF(entropy); i++) {
    it->attempts[i] = rl_attempt_new(&it->pool, it->resource, NULL, entropy[i], 0, NULL);
    assert_non_null(it->attempts[i]);
  }
  return it;
}

static void destroy(fixture *it) {
  for (unsigned i = 0; i < NODES; i++) {
    rl_node_free(&it->nodes[i], &it->pool);
  }
  for (unsigned i = 0; i < COUNT_OF(it->attempts); i++) {
    rl_attempt_unref(&it->pool, it->attempts[i]);
  }
  rl_resource_unref(it->resource);
  rl_attempt_pool_free(&it->pool);
  free(it);
}

/* Difference between the first node's command and that of other nodes. */
typedef struct difference {
  const char *name;
  rl_outstanding_kind kind;
  redlock_duration later_us;
  unsigned rounds;
  unsigned attempt;
  uint64_t less_ms;
  bool knows_script;  /* only the first node does */
  bool denies_notify; /* only the first node does */
  uint32_t enqueued;  /* nodes where the release dequeues a ticket */
  size_t sent;        /* bytes of the first node's output */
  bool disconnects;   /* the first node does, before the others get the command */
} difference;

static const difference rows[] = {
    {"SET", .kind = RL_OUTSTANDING_ACQUIRE},
    {"SET at another time", .kind = RL_OUTSTANDING_ACQUIRE, .later_us = 1, .less_ms = 1},
    {"SET of another round", .kind = RL_OUTSTANDING_ACQUIRE, .rounds = 1, .less_ms = 1},
    {"SET of another attempt", .kind = RL_OUTSTANDING_ACQUIRE, .attempt = 1},
    {"SET after a part was sent", .kind = RL_OUTSTANDING_ACQUIRE, .sent = 1},
    {"SET after all was sent", .kind = RL_OUTSTANDING_ACQUIRE, .sent = SIZE_MAX},
    {"SET after a disconnection", .kind = RL_OUTSTANDING_ACQUIRE, .disconnects = true},
    {"extend", .kind = RL_OUTSTANDING_EXTEND},
    {"extend for another time", .kind = RL_OUTSTANDING_EXTEND, .less_ms = 1},
    {"release", .kind = RL_OUTSTANDING_RELEASE},
    {"release by hash, then by text", .kind = RL_OUTSTANDING_RELEASE, .knows_script = true},
    {"release without, then with notification", .kind = RL_OUTSTANDING_RELEASE,
     .denies_notify = true},
    {"release, then one that dequeues", .kind = RL_OUTSTANDING_RELEASE,
     .enqueued = 1u << AFTER | 1u << LONE},
    {"release that dequeues, then one that does not", .kind = RL_OUTSTANDING_RELEASE,
     .enqueued = 1u << FIRST},
};

static void queue(fixture *it, const difference *row, unsigned node) {
  const unsigned other = node != FIRST;
  rl_link *link = link_of(it, node);
  rl_attempt *attempt = it->attempts[other * row->attempt];
  redlock_time now_us = START_US + other * row->later_us;
  uint32_t round = 1 + other * row->rounds;
  uint64_t ttl_ms = 30000 - other * row->less_ms;
  bool queued = row->kind == RL_OUTSTANDING_ACQUIRE
                    ? rl_link_queue_set(link, now_us, row->kind, attempt, round, ttl_ms)
                : row->kind == RL_OUTSTANDING_EXTEND
                    ? rl_link_queue_extend(link, now_us, attempt, round, false, ttl_ms)
                    : rl_link_queue_release(link, now_us, attempt, round, false, true);
  assert_true(queued);
}

static void run(fixture *it, const difference *row) {
  rl_link *first = link_of(it, FIRST);
  first->knows[RL_SCRIPT_RELEASE_NOTIFY] = row->knows_script;
  first->notify_denied_until_us = row->denies_notify ? REDLOCK_NEVER : 0;
  it->attempts[0]->enqueued = row->enqueued;
  it->attempts[0]->ticket = 7;
  queue(it, row, FIRST);
  size_t length = rl_buffer_length(&first->output);
  rl_link_sent(first, row->sent < length ? row->sent : length);
  if (row->disconnects) {
    rl_node_disconnected(&it->nodes[FIRST], START_US, "closed");
  }
  queue(it, row, AFTER);
  queue(it, row, LONE);
}

TEST(node_gets_the_bytes_of_its_own_connection) {
  for (unsigned i = 0; i < COUNT_OF(rows); i++) {
    fixture *it = make();
    run(it, &rows[i]);
    const rl_buffer *after = &link_of(it, AFTER)->output;
    const rl_buffer *lone = &link_of(it, LONE)->output;
    if (rl_buffer_length(after) != rl_buffer_length(lone) ||
        memcmp(after->data, lone->data, lone->tail) != 0) {
      fail_msg("%s: %.*s instead of %.*s", rows[i].name, (int)after->tail, after->data,
               (int)lone->tail, lone->data);
    }
    destroy(it);
  }
}

TEST(equal_command_is_copied_from_the_previous_node) {
  static const struct {
    rl_outstanding_kind kind;
    const char *channel;
  } cases[] = {{RL_OUTSTANDING_ACQUIRE, CHANNEL},
               {RL_OUTSTANDING_RELEASE, CHANNEL},
               {RL_OUTSTANDING_RELEASE, NULL}};
  for (unsigned i = 0; i < COUNT_OF(cases); i++) {
    const difference none = {"none", .kind = cases[i].kind};
    fixture *it = make();
    link_of(it, FIRST)->notify_channel = link_of(it, AFTER)->notify_channel = cases[i].channel;
    queue(it, &none, FIRST);
    const rl_buffer *first = &link_of(it, FIRST)->output;
    const rl_buffer *after = &link_of(it, AFTER)->output;
    first->data[first->tail - 3] = '!'; /* A copy has this mark. */
    queue(it, &none, AFTER);
    assert_int_equal(after->data[after->tail - 3], '!');
    destroy(it);
  }
}

/* ------------------------------------------------------------------------------------- a round */

TEST(nodes_of_one_round_release_as_their_connections_can) {
  static const char key[] = "orders:42";
  fake_world *world = fake_world_new(4);
  fake_enable_native(world, 0);
  world->nodes[1].store.native = RL_NATIVE_DELIFEQ;
  world->nodes[2].store.native = RL_NATIVE_DELEX;
  rl_lock *lock = fake_lock(world, key, NULL);
  assert_null(world->core.nodes[0]->link.previous);
  assert_ptr_equal(world->core.nodes[3]->link.previous, &world->core.nodes[2]->link);
  for (unsigned i = 0; i < 4; i++) { /* The connections learn their commands. */
    assert_error(fake_acquire(world, lock), REDLOCK_OK);
    assert_error(rl_lock_release(lock, world->now_us, false), REDLOCK_OK);
    fake_settle(world);
  }
  fake_break(world, 3, "closed");
  fake_settle(world);
  assert_error(fake_acquire(world, lock), REDLOCK_OK);
  fake_settle(world);
  assert_error(rl_lock_release(lock, world->now_us, false), REDLOCK_OK);
  fake_turn(world);
  static const unsigned native[] = {0, RL_NATIVE_DELIFEQ, RL_NATIVE_DELEX, 0};
  for (unsigned i = 0; i < 4; i++) {
    assert_int_equal(world->nodes[i].queue[0].verb, FAKE_RELEASE);
    assert_int_equal(world->nodes[i].queue[0].native, native[i]);
    assert_int_equal(world->nodes[i].queue[0].by_text, i == 3);
  }
  fake_settle(world);
  assert_int_equal(fake_keys(world, key), 0);
  assert_true(fake_world_end(world));
}
