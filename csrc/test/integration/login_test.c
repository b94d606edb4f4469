/*
 * Users and passwords on real servers. spec/credentials_spec.lua has passwords of any bytes,
 * rotated ones, and functions that answer at once.
 *
 * SPDX-License-Identifier: MIT
 */
#include <pthread.h>
#include <stdatomic.h>

#include "support.h"

static void let_in(const char *user, const char *password) {
  farm_command_all(&three, "ACL", "SETUSER", user, "reset", "on", password, "~*", "+@all", NULL);
}

static void assert_locks(redlock_client *client) {
  redlock_lock *lock = new_lock(client, "r");
  assert_ok(lock, redlock_lock_acquire(lock, NULL, NULL));
  pump_until(client, all_up(client));
  assert_ok(lock, redlock_lock_release(lock));
  free_with_client(lock);
}

static redlock_client *new_client(const redlock_settings *base) {
  redlock_client *client = NULL;
  redlock_options usual = once();
  redlock_settings settings = base != NULL ? *base : (redlock_settings){0};
  settings.options = &usual;
  assert_int_equal(redlock_client_new(&client, &settings, NULL, 0), REDLOCK_OK);
  return client;
}

static redlock_client *client_as(const redlock_settings *settings) {
  redlock_client *client = new_client(settings);
  for (unsigned i = 0; i < three.count; i++) {
    assert_int_equal(redlock_client_add(client, three.nodes[i].address, NULL, 0), REDLOCK_OK);
  }
  return client;
}

/* -------------------------------------------------------------------------------- any bytes */

/* Redis accepts all bytes but NUL and blanks. */
TEST(user_may_have_any_bytes) {
  char user[256];
  size_t length = 0;
  for (unsigned byte = 1; byte < 256; byte++) {
    if (strchr(" \t\n\v\f\r", (int)byte) == NULL) {
      user[length++] = (char)byte;
    }
  }
  user[length] = '\0';
  assert_contains(farm_command(&three, 0, "ACL", "SETUSER", "a b", NULL), "-ERR");
  let_in(user, ">p");
  redlock_settings settings = {.username = user, .password = "p"};
  assert_locks(client_as(&settings));
}

/* --------------------------------------------------------------------------- rotated passwords */

static bool node_reports(redlock_client *client, size_t node, const char *text) {
  redlock_node_info info;
  assert_int_equal(redlock_client_node_info(client, node, &info), REDLOCK_OK);
  assert_true(info.error == NULL || strstr(info.error, "s3cr3t") == NULL);
  return info.state != REDLOCK_NODE_UP && info.error != NULL && strstr(info.error, text) != NULL;
}

static bool all_report(redlock_client *client, const char *text) {
  for (unsigned i = 0; i < three.count; i++) {
    if (!node_reports(client, i, text)) {
      return false;
    }
  }
  return true;
}

static void end_connections(const char *user) {
  farm_command_all(&three, "CLIENT", "KILL", "USER", user, NULL);
}

/* ------------------------------------------------------------------------- from a function */

typedef struct vault {
  pthread_mutex_t mutex;
  const char *user;
  char password[REDLOCK_PASSWORD_MAX];
  size_t length;
  int result;
  atomic_uint asked[FARM_NODES_MAX];
  bool names_match;
} vault;

static void vault_put(vault *self, const char *user, const char *password) {
  (void)pthread_mutex_lock(&self->mutex);
  self->user = user;
  self->length = strlen(password);
  memcpy(self->password, password, self->length);
  (void)pthread_mutex_unlock(&self->mutex);
}

static int vault_answer(redlock_client *client, size_t node, redlock_credentials *filled,
                        void *data) {
  vault *self = data;
  (void)client;
  (void)pthread_mutex_lock(&self->mutex);
  self->names_match = self->names_match && strcmp(filled->name, three.nodes[node].address) == 0;
  if (self->user != NULL) {
    (void)snprintf(filled->username, sizeof filled->username, "%s", self->user);
  }
  memcpy(filled->password, self->password, self->length);
  filled->password_length = self->length;
  (void)snprintf(filled->message, sizeof filled->message, "the vault is locked");
  int result = self->result;
  (void)pthread_mutex_unlock(&self->mutex);
  atomic_fetch_add(&self->asked[node], 1);
  return result;
}

static void vault_init(vault *self) {
  memset(self, 0, sizeof *self);
  (void)pthread_mutex_init(&self->mutex, NULL);
  self->names_match = true;
}

static redlock_client *client_of_vault(vault *self) {
  redlock_settings settings = {.credentials = vault_answer, .credentials_data = self};
  return client_as(&settings);
}

static unsigned vault_asked(vault *self) {
  unsigned count = 0;
  for (unsigned i = 0; i < FARM_NODES_MAX; i++) {
    count += atomic_load(&self->asked[i]);
  }
  return count;
}

/*
 * ---------------------------------------------------------------------------------- asynchronously
 */

typedef struct deliverer {
  redlock_client *client;
  vault *vault;
  pthread_t thread;
  atomic_bool stops;
} deliverer;

/* A thread that supplies the credentials for which the function has returned PENDING. */
static void *deliver(void *argument) {
  deliverer *self = argument;
  unsigned supplied[FARM_NODES_MAX] = {0};
  while (!atomic_load(&self->stops)) {
    for (unsigned i = 0; i < three.count; i++) {
      unsigned asked = atomic_load(&self->vault->asked[i]);
      /*
       * It is expired until the function has returned, and if the connection has ended: again,
       * then.
       */
      if (asked > supplied[i] && redlock_client_give_credentials(self->client, i, "token", "s3cr3t",
                                                                 6) != REDLOCK_E_EXPIRED) {
        supplied[i] = asked;
      }
    }
    (void)poll(NULL, 0, 1);
  }
  return NULL;
}

static void deliverer_begin(deliverer *self, redlock_client *client, vault *own) {
  self->client = client;
  self->vault = own;
  atomic_init(&self->stops, false);
  assert_int_equal(pthread_create(&self->thread, NULL, deliver, self), 0);
}

static void deliverer_end(deliverer *self) {
  atomic_store(&self->stops, true);
  assert_int_equal(pthread_join(self->thread, NULL), 0);
}

TEST(late_credentials_wake_a_blocking_call) {
  vault own;
  deliverer helper;
  vault_init(&own);
  own.result = REDLOCK_PENDING;
  let_in("token", ">s3cr3t");
  redlock_client *client = client_of_vault(&own);
  deliverer_begin(&helper, client, &own);
  redlock_lock *lock = new_lock(client, "r");
  redlock_time begun_us = stopwatch();
  assert_ok(lock, redlock_lock_acquire(lock, NULL, NULL));
  /* After 3 s the connection would end, and wake the call, too. */
  assert_took(begun_us, 0, MS(2000));
  deliverer_end(&helper);
  free_with_client(lock);
}

TEST(late_credentials_wake_a_loop) {
  vault own;
  vault_init(&own);
  own.result = REDLOCK_PENDING;
  let_in("token", ">s3cr3t");
  redlock_client *client = client_of_vault(&own);
  struct pollfd fd = {redlock_client_pollfd(client), POLLIN, 0};
  redlock_lock *lock = new_lock(client, "r");
  assert_int_equal(redlock_lock_acquire_start(lock, NULL), REDLOCK_OK);
  pump_until(client, vault_asked(&own) == 3);
  pump(client, 0);
  assert_true(redlock_client_timeout(client) > 0); /* Nothing is due. */
  assert_int_equal(poll(&fd, 1, 0), 0);
  assert_int_equal(redlock_client_give_credentials(client, 3, NULL, NULL, 0), REDLOCK_E_INVALID);
  for (unsigned i = 0; i < three.count; i++) {
    assert_int_equal(redlock_client_give_credentials(client, i, "token", "s3cr3t", 6), REDLOCK_OK);
    assert_int_equal(redlock_client_give_credentials(client, i, "token", "s3cr3t", 6),
                     REDLOCK_E_EXPIRED);
  }
  assert_int_equal(poll(&fd, 1, 2000), 1);
  pump_until(client, redlock_lock_result(lock) != REDLOCK_PENDING);
  assert_ok(lock, redlock_lock_result(lock));
  free_with_client(lock);
}

TEST(missing_credentials_time_out) {
  vault own;
  vault_init(&own);
  own.result = REDLOCK_PENDING;
  redlock_client *client = client_of_vault(&own);
  redlock_lock *lock = new_lock(client, "r");
  redlock_options options = once();
  options.node_timeout_us = MS(50);
  redlock_time begun_us = stopwatch();
  assert_int_equal(redlock_lock_acquire(lock, &options, NULL), REDLOCK_E_UNAVAILABLE);
  assert_took(begun_us, MS(40), MS(1000));
  unsigned turns = 0;
  while (!all_report(client, "its credentials did not arrive in time")) {
    assert_true(redlock_now() - begun_us < EVENTUALLY_US);
    pump(client, 1000);
    turns++;
  }
  assert_true(redlock_now() - begun_us >= MS(2900));
  assert_true(turns < 20); /* The loop slept meanwhile. */
  free_with_client(lock);
}

TEST(refused_credentials_are_reported) {
  vault own;
  vault_init(&own);
  own.result = REDLOCK_PENDING;
  redlock_client *client = client_of_vault(&own);
  redlock_lock *lock = new_lock(client, "r");
  assert_int_equal(redlock_lock_acquire_start(lock, NULL), REDLOCK_OK);
  pump_until(client, vault_asked(&own) == 3);
  for (unsigned i = 0; i < three.count; i++) {
    assert_int_equal(redlock_client_refuse_credentials(client, i, "no network"), REDLOCK_OK);
    assert_int_equal(redlock_client_refuse_credentials(client, i, NULL), REDLOCK_E_EXPIRED);
  }
  assert_true(all_report(client, "it got no credentials: no network"));
  pump_until(client, redlock_lock_result(lock) != REDLOCK_PENDING);
  assert_int_equal(redlock_lock_result(lock), REDLOCK_E_UNAVAILABLE);
  free_with_client(lock);
}

TEST(client_ends_while_it_awaits_credentials) {
  for (unsigned i = 0; i < 2; i++) {
    vault own;
    vault_init(&own);
    own.result = REDLOCK_PENDING;
    redlock_client *client = client_of_vault(&own);
    redlock_lock *lock = new_lock(client, "r");
    redlock_time begun_us = stopwatch();
    assert_int_equal(redlock_lock_acquire_start(lock, NULL), REDLOCK_OK);
    pump_until(client, vault_asked(&own) == 3);
    if (i == 0) {
      (void)redlock_client_close(client, MS(50));
      assert_int_equal(redlock_client_give_credentials(client, 0, "u", "p", 1), REDLOCK_E_CLOSED);
      assert_int_equal(redlock_lock_result(lock), REDLOCK_E_CLOSED);
    }
    free_with_client(lock);
    /* The connections would end after 3 s. */
    assert_took(begun_us, 0, MS(2000));
  }
}

/*
 * No thread is in a call: the watchdog calls the function, and another thread supplies the
 * credentials.
 */
TEST(watchdog_reconnects_with_late_credentials) {
  vault own;
  deliverer helper;
  vault_init(&own);
  own.result = REDLOCK_PENDING;
  let_in("token", ">s3cr3t");
  redlock_client *client = client_of_vault(&own);
  deliverer_begin(&helper, client, &own);
  redlock_lock *lock = new_lock(client, "r");
  redlock_options options = once();
  options.auto_extend = REDLOCK_YES;
  options.extend_every_us = MS(20);
  assert_ok(lock, redlock_lock_acquire(lock, &options, NULL));
  for (unsigned killed = 0; killed < 3; killed++) {
    eventually(all_up(client)); /* The nodes know the user of each connection. */
    unsigned asked = vault_asked(&own);
    end_connections("token");
    eventually(vault_asked(&own) >= asked + 3);
    redlock_time deadline_us = redlock_lock_deadline(lock);
    eventually(redlock_lock_deadline(lock) > deadline_us);
  }
  deliverer_end(&helper);
  free_with_client(lock);
}

typedef struct inherited {
  redlock_client *client;
  vault *vault;
} inherited;

static int use_in_child(void *argument) {
  inherited *self = argument;
  if (redlock_client_give_credentials(self->client, 0, "token", "s3cr3t", 6) != REDLOCK_E_EXPIRED) {
    return 1; /* The parent's request is not the child's. */
  }
  self->vault->result = REDLOCK_OK;
  redlock_lock *lock = NULL;
  return redlock_lock_new(&lock, self->client, "r", 1, NULL) != REDLOCK_OK
             ? 2
             : redlock_lock_acquire(lock, NULL, NULL);
}

TEST(forked_child_requests_credentials_again) {
  vault own;
  vault_init(&own);
  own.result = REDLOCK_PENDING;
  vault_put(&own, "token", "s3cr3t");
  let_in("token", ">s3cr3t");
  redlock_client *client = client_of_vault(&own);
  redlock_lock *lock = new_lock(client, "other");
  assert_int_equal(redlock_lock_acquire_start(lock, NULL), REDLOCK_OK);
  pump_until(client, vault_asked(&own) == 3);
  inherited both = {client, &own};
  in_child(use_in_child, &both);
  free_with_client(lock);
}

int main(void) {
  return tests_run(&(tests_fixture){.start = three_start, .before = three_reset, .end = three_end});
}
