/*
 * redlock_client_lead() on real servers: terms of one process, and of two of which one is stopped.
 *
 * SPDX-License-Identifier: MIT
 */
#include <pthread.h>
#include <sys/prctl.h>

#include "support.h"

#define LEADERS 2
#define TERMS_MAX 64
#define WRITES_MAX 100000
#define TTL_US MS(1500)

/* ---------------------------------------------------------------------------------- one process */

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

static void fence_grows_from_term_to_term(void **state) {
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
    for (unsigned i = 0; i < three.count; i++) {
      assert_non_null(farm_command(&three, i, "DEL", "r", NULL));
    }
    eventually(redlock_lock_lost(term, NULL) == REDLOCK_E_LOST);
    assert_true(redlock_lock_remaining(term) == 0);
    for (unsigned i = 0; i < 20; i++) {
      assert_int_equal(farm_count(&three, "r", NULL), 0);
      (void)poll(NULL, 0, 5);
    }
  }
  return own->count == own->wanted ? REDLOCK_RESIGN : REDLOCK_CAMPAIGN;
}

static void campaign_begins_only_after_function_of_lost_term_has_returned(void **state) {
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

static void unreachable_nodes_are_reported_until_program_resigns(void **state) {
  static const char *const nowhere[] = {"127.0.0.1:1", "127.0.0.1:2", "127.0.0.1:3"};
  terms own = {.client = client_at(nowhere, 3, NULL), .wanted = 2};
  assert_int_equal(redlock_client_lead(own.client, "r", 1, NULL, lead_never, note_failure, &own),
                   REDLOCK_E_UNAVAILABLE);
  assert_int_equal(own.failures, 2);
  assert_contains(redlock_client_message(own.client), "'r'");
  redlock_client_free(own.client);
}

static void wrong_password_ends_campaign(void **state) {
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

static void wait_limits_a_campaign(void **state) {
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

static void wrong_arguments_of_lead_are_refused(void **state) {
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

static void wakeup_ends_campaign(void **state) {
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

static void observer_sees_label_fence_and_time_left_of_leader(void **state) {
  redlock_options options = {.label = "host a", .ttl_us = 60 * REDLOCK_SECONDS};
  terms own = {.client = client_of(&three, 3, NULL), .other = client_of(&three, 3, NULL)};
  assert_int_equal(redlock_client_lead(own.client, "r", 1, &options, inspect_own_term, NULL, &own),
                   REDLOCK_OK);
  redlock_client_free(own.client);
  redlock_client_free(own.other);
}

/* --------------------------------------------------------------- two processes, one is stopped */

/*
 * The store compares the fence of a write with that of the last write, and keeps all writes. It is
 * memory of both processes; a mutex guards it, in which no process stops.
 */
typedef struct store {
  pthread_mutex_t mutex;
  bool fenced;
  unsigned count, refused[LEADERS];
  uint64_t fences[WRITES_MAX];
  volatile int stop; /* The leader with this number stops between its check and its write. */
  volatile uint64_t term[LEADERS]; /* fence of its term; 0: none */
  unsigned terms;
  uint64_t begun[TERMS_MAX]; /* fences of the terms, in the order in which they began */
} store;

typedef struct writer {
  store *store;
  unsigned number;
} writer;

static void write_to(store *self, unsigned number, uint64_t fence) {
  (void)pthread_mutex_lock(&self->mutex);
  uint64_t last = self->count > 0 ? self->fences[self->count - 1] : 0;
  if (self->fenced && fence < last) {
    self->refused[number]++;
  } else if (self->count < WRITES_MAX) {
    self->fences[self->count++] = fence;
  }
  (void)pthread_mutex_unlock(&self->mutex);
}

static int lead_and_write(redlock_lock *term, void *data) {
  writer *own = data;
  store *self = own->store;
  (void)pthread_mutex_lock(&self->mutex); /* A later leader waits for it, if this one is slow. */
  uint64_t fence = redlock_lock_fence(term);
  if (fence != 0) {
    self->begun[self->terms++ % TERMS_MAX] = fence;
  }
  (void)pthread_mutex_unlock(&self->mutex);
  if (fence == 0) {
    return REDLOCK_CAMPAIGN; /* The lease has ended already. */
  }
  self->term[own->number] = fence;
  while (redlock_lock_remaining(term) > 0) {
    if (self->stop == (int)own->number) {
      self->stop = -1;
      (void)raise(SIGSTOP);
    }
    write_to(self, own->number, fence);
    (void)poll(NULL, 0, 2);
  }
  self->term[own->number] = 0;
  return REDLOCK_CAMPAIGN;
}

static pid_t start_leader(store *self, unsigned number) {
  pid_t parent = getpid();
  pid_t pid = fork();
  if (pid == 0) {
    (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent) {
      _exit(1);
    }
    redlock_options options = {.ttl_us = TTL_US};
    writer own = {.store = self, .number = number};
    redlock_client *client = client_of(&three, 3, NULL);
    (void)redlock_client_lead(client, "r", 1, &options, lead_and_write, NULL, &own);
    _exit(2);
  }
  return pid;
}

static unsigned writes_out_of_order(const store *self) {
  unsigned count = 0;
  for (unsigned i = 1; i < self->count; i++) {
    count += self->fences[i] < self->fences[i - 1];
  }
  return count;
}

/* Stops the leader until the other one has led and written. */
static void stop_leader(store *self, const pid_t *pids) {
  int status;
  unsigned number = self->term[0] > self->term[1] ? 0 : 1;
  unsigned other = 1 - number;
  self->stop = (int)number;
  eventually(self->stop == -1);
  assert_int_equal(waitpid(pids[number], &status, WUNTRACED), pids[number]);
  assert_true(WIFSTOPPED(status));
  uint64_t stopped = self->term[number];
  eventually(self->term[other] > stopped);
  unsigned before = self->count;
  eventually(self->count > before);
  assert_int_equal(kill(pids[number], SIGCONT), 0);
  eventually(self->term[number] != stopped);
}

/* Returns the number of writes that came after a write of a later leader. */
static unsigned stop_leaders(bool fenced, unsigned rounds) {
  pthread_mutexattr_t kind;
  pid_t pids[LEADERS];
  store *self = mmap(NULL, sizeof *self, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  assert_true(self != MAP_FAILED);
  (void)pthread_mutexattr_init(&kind);
  (void)pthread_mutexattr_setpshared(&kind, PTHREAD_PROCESS_SHARED);
  assert_int_equal(pthread_mutex_init(&self->mutex, &kind), 0);
  self->fenced = fenced;
  self->stop = -1;
  for (unsigned i = 0; i < LEADERS; i++) {
    pids[i] = start_leader(self, i);
  }
  for (unsigned round = 0; round < rounds; round++) {
    eventually(self->term[0] != 0 || self->term[1] != 0);
    stop_leader(self, pids);
  }
  for (unsigned i = 0; i < LEADERS; i++) {
    int status;
    assert_int_equal(kill(pids[i], SIGKILL), 0);
    assert_int_equal(waitpid(pids[i], &status, 0), pids[i]);
    assert_true(WIFSIGNALED(status));
  }
  for (unsigned i = 1; i < self->terms && i < TERMS_MAX; i++) {
    assert_true(self->begun[i] > self->begun[i - 1]);
  }
  assert_true(self->terms > rounds);
  assert_true(!fenced || self->refused[0] + self->refused[1] >= rounds);
  unsigned late = writes_out_of_order(self);
  (void)munmap(self, sizeof *self);
  return late;
}

static void store_refuses_late_write_of_stopped_leader(void **state) {
  assert_int_equal(stop_leaders(true, 3), 0);
}

/* The control of the test above: without a fence the late write is stored. */
static void store_without_fence_keeps_late_write_of_stopped_leader(void **state) {
  assert_true(stop_leaders(false, 1) >= 1);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test_setup(fence_grows_from_term_to_term, three_reset),
      cmocka_unit_test_setup(campaign_begins_only_after_function_of_lost_term_has_returned,
                             three_reset),
      cmocka_unit_test_setup(unreachable_nodes_are_reported_until_program_resigns, three_reset),
      cmocka_unit_test_setup(wrong_password_ends_campaign, three_reset),
      cmocka_unit_test_setup(wait_limits_a_campaign, three_reset),
      cmocka_unit_test_setup(wrong_arguments_of_lead_are_refused, three_reset),
      cmocka_unit_test_setup(wakeup_ends_campaign, three_reset),
      cmocka_unit_test_setup(observer_sees_label_fence_and_time_left_of_leader, three_reset),
      cmocka_unit_test_setup(store_refuses_late_write_of_stopped_leader, three_reset),
      cmocka_unit_test_setup(store_without_fence_keeps_late_write_of_stopped_leader, three_reset),
  };
  return cmocka_run_group_tests(tests, three_start, three_end);
}
