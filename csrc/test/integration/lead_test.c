/*
 * redlock_client_lead() on real servers.
 *
 * SPDX-License-Identifier: MIT
 */
#include <pthread.h>

#include "support.h"

#define TERMS_MAX 64

typedef struct terms {
  redlock_client *client, *other;
  unsigned count, wanted;
  uint64_t fences[TERMS_MAX];
  unsigned failures;
  int lost;
} terms;

static int lead_until_wanted(redlock_lock *term, void *data) {
  terms *own = data;
  assert_true(redlock_lock_remaining(term) > 0);
  own->fences[own->count++] = redlock_lock_fence(term);
  return own->count == own->wanted ? REDLOCK_RESIGN : REDLOCK_CAMPAIGN;
}

static int lead_never(redlock_lock *term, void *data) {
  fail_msg("it must not lead");
  return REDLOCK_RESIGN;
}

static void assert_grows(const terms *own) {
  for (unsigned i = 0; i < own->count; i++) {
    assert_true(own->fences[i] > (i > 0 ? own->fences[i - 1] : 0));
  }
}

TEST(fence_grows_from_term_to_term) {
  terms own = {.client = client_of(&three, 3, NULL), .wanted = 5};
  redlock_client *other = client_of(&three, 3, NULL);
  assert_int_equal(redlock_client_lead(own.client, "r", 1, NULL, lead_until_wanted, NULL, &own),
                   REDLOCK_OK);
  own.wanted = 10;
  assert_int_equal(redlock_client_lead(other, "r", 1, NULL, lead_until_wanted, NULL, &own),
                   REDLOCK_OK);
  assert_int_equal(own.count, 10);
  assert_grows(&own);
  pump_until(own.client, farm_count(&three, "r", NULL) == 0);
  redlock_client_free(own.client);
  redlock_client_free(other);
}

/* Another client deletes the key. The function goes on for a while, without a new campaign. */
static int lead_until_lost(redlock_lock *term, void *data) {
  terms *own = data;
  own->fences[own->count++] = redlock_lock_fence(term);
  if (own->count == 1) {
    farm_command_all(&three, "DEL", "r", NULL);
    eventually(redlock_lock_lost(term, NULL) == REDLOCK_E_LOST);
    assert_true(redlock_lock_remaining(term) == 0);
    for (unsigned i = 0; i < 20; i++) {
      assert_int_equal(farm_count(&three, "r", NULL), 0);
      (void)poll(NULL, 0, 5);
    }
  }
  return own->count == own->wanted ? REDLOCK_RESIGN : REDLOCK_CAMPAIGN;
}

TEST(campaign_begins_only_after_function_of_lost_term_has_returned) {
  redlock_options options = {.ttl_us = 60 * REDLOCK_SECONDS, .extend_every_us = MS(20)};
  terms own = {.client = client_of(&three, 3, NULL), .wanted = 2};
  options.auto_extend = REDLOCK_YES;
  assert_int_equal(redlock_client_lead(own.client, "r", 1, &options, lead_until_lost, NULL, &own),
                   REDLOCK_OK);
  assert_int_equal(own.count, 2);
  assert_grows(&own);
  own.count = 0;
  own.wanted = 1;
  assert_int_equal(redlock_client_lead(own.client, "r", 1, &options, lead_until_lost, NULL, &own),
                   REDLOCK_E_LOST);
  redlock_client_free(own.client);
}

static int note_failure(redlock_client *client, int error, const char *message, void *data) {
  terms *own = data;
  assert_ptr_equal(client, own->client);
  assert_int_equal(error, REDLOCK_E_UNAVAILABLE);
  assert_contains(message, "'r'");
  return ++own->failures == own->wanted ? REDLOCK_RESIGN : REDLOCK_CAMPAIGN;
}

TEST(unreachable_nodes_are_reported_until_program_resigns) {
  static const char *const nowhere[] = {"127.0.0.1:1", "127.0.0.1:2", "127.0.0.1:3"};
  terms own = {.client = client_at(nowhere, 3, NULL), .wanted = 2};
  assert_int_equal(redlock_client_lead(own.client, "r", 1, NULL, lead_never, note_failure, &own),
                   REDLOCK_E_UNAVAILABLE);
  assert_int_equal(own.failures, 2);
  assert_contains(redlock_client_message(own.client), "'r'");
  redlock_client_free(own.client);
}

TEST(wrong_password_ends_campaign) {
  redlock_settings settings = {.password = "not-this-one"};
  char message[256];
  terms own = {.wanted = 100};
  assert_int_equal(redlock_client_new(&own.client, &settings, message, sizeof message), REDLOCK_OK);
  for (unsigned i = 0; i < 3; i++) {
    assert_int_equal(
        redlock_client_add(own.client, three.nodes[i].address, message, sizeof message),
        REDLOCK_OK);
  }
  assert_int_equal(redlock_client_lead(own.client, "r", 1, NULL, lead_never, note_failure, &own),
                   REDLOCK_E_UNAVAILABLE);
  assert_int_equal(own.failures, 0);
  assert_null(strstr(redlock_client_message(own.client), "not-this-one"));
  redlock_client_free(own.client);
}

TEST(wait_limits_a_campaign) {
  redlock_options options = {.wait_us = MS(50)};
  redlock_client *other = client_of(&three, 3, NULL);
  redlock_lock *held = held_lock(other, "r");
  redlock_client *client = client_of(&three, 3, NULL);
  warm_up(client);
  assert_int_equal(redlock_client_lead(client, "r", 1, &options, lead_never, NULL, NULL),
                   REDLOCK_E_TAKEN);
  options.wait_us = REDLOCK_DURATION_NONE;
  assert_int_equal(redlock_client_lead(client, "r", 1, &options, lead_never, NULL, NULL),
                   REDLOCK_E_TAKEN);
  redlock_client_free(client);
  free_with_client(held);
}

TEST(wrong_arguments_of_lead_are_refused) {
  redlock_client *client = client_of(&three, 3, NULL);
  redlock_options options[] = {{.retry_count = 3},
                               {.fence = REDLOCK_NO},
                               {.auto_extend = REDLOCK_NO},
                               {.ttl_us = 1},
                               {.permits = 3}};
  static const char *const texts[] = {"retry_count", "fence", "auto_extend", "ttl", "permits"};
  for (unsigned i = 0; i < 5; i++) {
    assert_int_equal(redlock_client_lead(client, "r", 1, &options[i], lead_never, NULL, NULL),
                     REDLOCK_E_INVALID);
    assert_contains(redlock_client_message(client), texts[i]);
  }
  assert_int_equal(redlock_client_lead(client, "r", 1, NULL, NULL, NULL, NULL), REDLOCK_E_INVALID);
  assert_int_equal(redlock_client_lead(NULL, "r", 1, NULL, lead_never, NULL, NULL),
                   REDLOCK_E_INVALID);
  assert_int_equal(redlock_client_close(client, MS(100)), REDLOCK_OK);
  assert_int_equal(redlock_client_lead(client, "r", 1, NULL, lead_never, NULL, NULL),
                   REDLOCK_E_CLOSED);
  redlock_client_free(client);
}

typedef struct waker {
  redlock_client *client;
  volatile bool over;
} waker;

static void *wake_until_over(void *data) {
  waker *own = data;
  while (!own->over) {
    redlock_client_wakeup(own->client);
    (void)poll(NULL, 0, 5);
  }
  return NULL;
}

TEST(wakeup_ends_campaign) {
  redlock_client *other = client_of(&three, 3, NULL);
  redlock_lock *held = held_lock(other, "r");
  waker own = {.client = client_of(&three, 3, NULL)};
  pthread_t thread;
  assert_int_equal(pthread_create(&thread, NULL, wake_until_over, &own), 0);
  assert_int_equal(redlock_client_lead(own.client, "r", 1, NULL, lead_never, NULL, NULL),
                   REDLOCK_E_CANCELLED);
  own.over = true;
  assert_int_equal(pthread_join(thread, NULL), 0);
  redlock_client_free(own.client);
  free_with_client(held);
}

static int inspect_own_term(redlock_lock *term, void *data) {
  terms *own = data;
  redlock_holder_info holder = {0};
  redlock_lock *lock = new_lock(own->other, "r");
  pump_until(own->client, redlock_lock_margin(term) == 1); /* All three nodes have the key. */
  assert_ok(lock, redlock_lock_inspect(lock));
  assert_int_equal(redlock_lock_holder(lock, &holder), REDLOCK_OK);
  assert_true(holder.fence == redlock_lock_fence(term));
  assert_int_equal(holder.label_length, 6);
  assert_memory_equal(holder.label, "host a", 6);
  assert_true(holder.ttl_us > 0 && holder.ttl_us <= 60 * REDLOCK_SECONDS);
  redlock_lock_free(lock);
  return REDLOCK_RESIGN;
}

TEST(observer_sees_label_fence_and_time_left_of_leader) {
  redlock_options options = {.label = "host a", .ttl_us = 60 * REDLOCK_SECONDS};
  terms own = {.client = client_of(&three, 3, NULL), .other = client_of(&three, 3, NULL)};
  assert_int_equal(redlock_client_lead(own.client, "r", 1, &options, inspect_own_term, NULL, &own),
                   REDLOCK_OK);
  redlock_client_free(own.client);
  redlock_client_free(own.other);
}

int main(void) {
  return tests_run(&(tests_fixture){.start = three_start, .before = three_reset, .end = three_end});
}
