/*
 * The doctor at real servers that speak TLS: how long their certificates last.
 *
 * SPDX-License-Identifier: MIT
 */
#include "support.h"
#include "tls_farm.h"

static tls_farm nodes;

static int start(void **state) {
  (void)state;
  tls_farm_start(&nodes, 3);
  return 0;
}

static int end(void **state) {
  (void)state;
  tls_farm_end(&nodes);
  return 0;
}

/* What is said of certificates, "" for nothing. */
static const char *examine(redlock_lock *lock) {
  static redlock_finding_info info;
  assert_ok(lock, redlock_lock_doctor(lock, 0));
  for (size_t i = 0; redlock_lock_finding(lock, i, &info) == REDLOCK_OK; i++) {
    if (strcmp(info.name, "certificate") == 0) {
      return info.message;
    }
  }
  return "";
}

/* On a new connection, and on one that resumes the session of the one before. */
static void a_certificate_that_ends_soon_is_found(void **state) {
  (void)state;
  char says[256];
  tls_farm_show(&nodes, 0, "lasting");
  tls_farm_show(&nodes, 1, "three_days");
  tls_farm_show(&nodes, 2, "lasting");
  redlock_client *client = tls_client_of(&nodes, 3, NULL);
  redlock_lock *lock = new_lock(client, "r");
  (void)snprintf(says, sizeof says, "the TLS certificate of %s ends in 2 days: renew it",
                 strstr(nodes.farm.nodes[1].tls_address, "://") + 3);
  for (unsigned i = 0; i < 2; i++) {
    /* The doctor may come before the connection, or when it breaks. */
    eventually(strcmp(examine(lock), says) == 0);
    farm_command(&nodes.farm, 1, "CLIENT", "KILL", "TYPE", "normal", NULL);
  }
  tls_farm_show(&nodes, 1, "lasting");
  farm_command(&nodes.farm, 1, "CLIENT", "KILL", "TYPE", "normal", NULL);
  redlock_client *other = tls_client_of(&nodes, 3, NULL);
  redlock_lock *others = new_lock(other, "r");
  assert_string_equal(examine(others), "");
  redlock_lock_free(others);
  redlock_client_free(other);
  redlock_lock_free(lock);
  redlock_client_free(client);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(a_certificate_that_ends_soon_is_found),
  };
  return cmocka_run_group_tests_name("tls doctor", tests, start, end);
}
