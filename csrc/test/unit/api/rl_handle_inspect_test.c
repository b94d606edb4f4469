/*
 * Inspect and force release, with servers on loopback in a thread.
 *
 * SPDX-License-Identifier: MIT
 */
#include "api/rl_handle.h"
#include "api/rl_handle_run.h"
#include "client_world.h"
#include "fake_clock.h"

static const char KEY[] = "orders:42";
static const char DEAD[] = "the token of one that has died";

static void put(world *one, unsigned nodes, const char *token) {
  loopback_lock(one->farm);
  for (unsigned i = 0; i < nodes; i++) {
    fake_store_put(&one->farm->nodes[i].store, KEY, token, redlock_now() + 60 * SECONDS);
  }
  loopback_unlock(one->farm);
}

TEST(inspect_checks_its_arguments) {
  world *one = world_new(3);
  redlock_key_info key;
  redlock_holder_info holder;
  assert_error(redlock_lock_inspect(NULL), REDLOCK_E_INVALID);
  assert_error(redlock_lock_inspect_start(NULL), REDLOCK_E_INVALID);
  assert_error(redlock_lock_key(NULL, 0, &key), REDLOCK_E_INVALID);
  assert_error(redlock_lock_key(one->lock, 0, NULL), REDLOCK_E_INVALID);
  assert_error(redlock_lock_key(one->lock, 2, &key), REDLOCK_OK);
  assert_error(redlock_lock_key(one->lock, 3, &key), REDLOCK_E_INVALID);
  assert_error(redlock_lock_holder(NULL, &holder), REDLOCK_E_INVALID);
  assert_error(redlock_lock_holder(one->lock, NULL), REDLOCK_E_INVALID);
  assert_error(redlock_lock_force_release(NULL, "x", 1), REDLOCK_E_INVALID);
  assert_error(redlock_lock_force_release_start(NULL, "x", 1), REDLOCK_E_INVALID);
}

TEST(key_is_unknown_before_inspect) {
  world *one = world_new(3);
  redlock_key_info key;
  redlock_holder_info holder;
  assert_error(redlock_lock_key(one->lock, 0, &key), REDLOCK_OK);
  assert_int_equal(key.state, REDLOCK_KEY_UNKNOWN);
  assert_string_equal(key.name, one->farm->nodes[0].name);
  assert_null(key.error);
  assert_null(key.token);
  assert_error(redlock_lock_holder(one->lock, &holder), REDLOCK_E_NOT_HELD);
  assert_null(holder.token);
}

TEST(inspect_reports_the_key_of_each_node) {
  world *one = world_new(3);
  redlock_key_info key;
  redlock_holder_info holder;
  put(one, 2, DEAD);
  for (unsigned by_loop = 0; by_loop < 2; by_loop++) {
    if (by_loop == 1) {
      assert_error(redlock_lock_inspect_start(one->lock), REDLOCK_OK);
      assert_error(redlock_lock_inspect(one->lock), REDLOCK_E_BUSY);
      assert_error(loopback_finish(one->client, one->lock), REDLOCK_OK);
      assert_ptr_equal(redlock_client_next_ended(one->client), one->lock);
    } else {
      assert_error(redlock_lock_inspect(one->lock), REDLOCK_OK);
      assert_null(redlock_client_next_ended(one->client));
    }
    assert_error(redlock_lock_key(one->lock, 1, &key), REDLOCK_OK);
    assert_int_equal(key.state, REDLOCK_KEY_HELD);
    assert_int_equal(key.token_length, strlen(DEAD));
    assert_string_equal(key.token, DEAD);
    assert_true(key.ttl_us > 0 && key.ttl_us <= 60 * SECONDS);
    assert_null(key.error);
    assert_error(redlock_lock_key(one->lock, 2, &key), REDLOCK_OK);
    assert_int_equal(key.state, REDLOCK_KEY_FREE);
    assert_null(key.token);
    assert_error(redlock_lock_holder(one->lock, &holder), REDLOCK_OK);
    assert_string_equal(holder.token, DEAD);
    assert_int_equal(holder.token_length, strlen(DEAD));
    assert_int_equal(holder.nodes, 2);
  }
}

TEST(inspect_reports_the_label_of_the_holder) {
  static const struct {
    const char *token, *label;
  } cases[] = {
      {"0123456789abcdef0123456789abcdef01234567:host a, pid 7", "host a, pid 7"},
      {"0123456789abcdef0123456789abcdef01234567:line\nbreak", NULL},
      {"0123456789abcdef0123456789abcdef01234567", NULL},
      {"another program's:label", NULL},
  };
  world *one = world_new(3);
  redlock_key_info key;
  redlock_holder_info holder;
  for (unsigned i = 0; i < COUNT_OF(cases); i++) {
    put(one, 2, cases[i].token);
    assert_error(redlock_lock_inspect(one->lock), REDLOCK_OK);
    assert_error(redlock_lock_key(one->lock, 1, &key), REDLOCK_OK);
    assert_error(redlock_lock_holder(one->lock, &holder), REDLOCK_OK);
    assert_string_equal(key.token, cases[i].token);
    assert_string_equal(holder.token, cases[i].token);
    assert_int_equal(holder.label_length, cases[i].label == NULL ? 0 : strlen(cases[i].label));
    assert_int_equal(key.label_length, holder.label_length);
    if (cases[i].label == NULL) {
      assert_null(key.label);
      assert_null(holder.label);
    } else {
      assert_string_equal(key.label, cases[i].label);
      assert_string_equal(holder.label, cases[i].label);
    }
    assert_error(redlock_lock_key(one->lock, 2, &key), REDLOCK_OK);
    assert_null(key.label);
    assert_error(redlock_lock_force_release(one->lock, holder.token, holder.token_length),
                 REDLOCK_OK);
    assert_error(redlock_lock_inspect(one->lock), REDLOCK_OK);
    assert_error(redlock_lock_holder(one->lock, &holder), REDLOCK_E_NOT_HELD);
  }
}

TEST(dead_node_is_explained_until_the_next_operation) {
  world *one = world_new(3);
  redlock_key_info key;
  stop_server(one->farm, 2);
  assert_error(redlock_lock_inspect(one->lock), REDLOCK_OK);
  assert_error(redlock_lock_key(one->lock, 2, &key), REDLOCK_OK);
  assert_int_equal(key.state, REDLOCK_KEY_UNKNOWN);
  assert_non_null(key.error);
  assert_ptr_equal(key.error, key.text);
  assert_non_null(strstr(key.error, "refused"));
  assert_error(redlock_lock_acquire(one->lock, NULL, NULL), REDLOCK_OK);
  assert_error(redlock_lock_key(one->lock, 2, &key), REDLOCK_OK);
  assert_null(key.error); /* The node's last error is about another operation. */
  assert_error(redlock_lock_inspect(one->lock), REDLOCK_E_HELD);
}

TEST(force_release_deletes_the_key_by_its_token) {
  world *one = world_new(3);
  for (unsigned by_loop = 0; by_loop < 2; by_loop++) {
    put(one, 3, DEAD);
    assert_error(redlock_lock_force_release(one->lock, "of another", 10), REDLOCK_E_NOT_HELD);
    assert_int_equal(loopback_keys(one->farm, KEY), 3);
    if (by_loop == 1) {
      assert_error(redlock_lock_force_release_start(one->lock, DEAD, strlen(DEAD)), REDLOCK_OK);
      assert_error(redlock_lock_force_release(one->lock, DEAD, strlen(DEAD)), REDLOCK_E_BUSY);
      assert_error(loopback_finish(one->client, one->lock), REDLOCK_OK);
      assert_ptr_equal(redlock_client_next_ended(one->client), one->lock);
    } else {
      assert_error(redlock_lock_force_release(one->lock, DEAD, strlen(DEAD)), REDLOCK_OK);
      assert_null(redlock_client_next_ended(one->client));
    }
    assert_int_equal(loopback_keys(one->farm, KEY), 0);
  }
  put(one, 3, DEAD);
  assert_error(redlock_lock_force_release(one->lock, NULL, REDLOCK_TOKEN_ANY), REDLOCK_OK);
  assert_int_equal(loopback_keys(one->farm, KEY), 0);
}

TEST(call_in_steps_keeps_the_lock_busy) {
  world *one = world_new(3);
  put(one, 3, DEAD);
  rl_request inspect = {.operation = RL_OPERATION_INSPECT};
  rl_request force = {.operation = RL_OPERATION_FORCE_RELEASE,
                      .question.token = DEAD,
                      .question.token_length = strlen(DEAD)};
  for (unsigned by_force = 0; by_force < 2; by_force++) {
    assert_error(rl_handle_prepare(one->lock, by_force == 1 ? &force : &inspect), REDLOCK_OK);
    assert_error(rl_handle_prepare(one->lock, &inspect), REDLOCK_E_BUSY);
    assert_error(rl_handle_prepare(one->lock, &force), REDLOCK_E_BUSY);
    assert_error(finish_in_steps(one->lock), REDLOCK_OK);
    assert_null(redlock_client_next_ended(one->client));
  }
  assert_int_equal(loopback_keys(one->farm, KEY), 0);
}

TEST(force_release_names_a_wrong_token) {
  world *one = world_new(3);
  char token[REDLOCK_TOKEN_MAX + 1];
  memset(token, 'x', sizeof token);
  assert_error(redlock_lock_force_release(one->lock, NULL, 1), REDLOCK_E_INVALID);
  assert_string_equal(redlock_lock_message(one->lock),
                      "'orders:42': there is no token; REDLOCK_TOKEN_ANY is any");
  assert_error(redlock_lock_force_release(one->lock, token, sizeof token), REDLOCK_E_INVALID);
  assert_string_equal(redlock_lock_message(one->lock),
                      "'orders:42': a token has at most 256 bytes");
  assert_error(redlock_lock_force_release_start(one->lock, token, sizeof token - 1), REDLOCK_OK);
  redlock_lock_cancel(one->lock);
}
