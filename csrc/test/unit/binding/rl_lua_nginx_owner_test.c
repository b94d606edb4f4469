/*
 * Locks that requests own: request, lock and client end in any order.
 *
 * SPDX-License-Identifier: MIT
 */
#include "rl_lua_nginx_owner.h"

#include <stdlib.h>
#include <string.h>

#include "rl_test.h"

#define REQUESTS 70000

/* The part of a request of nginx that the module uses. */
typedef struct request {
  rl_lua_nginx_cleanup *cleanups;
} request;

static bool out_of_memory;
static bool no_buckets;

void *__real_calloc(size_t count, size_t size);
void *__wrap_calloc(size_t count, size_t size);

void *__wrap_calloc(size_t count, size_t size) {
  return no_buckets && size == sizeof(void *) ? NULL : __real_calloc(count, size);
}

static rl_lua_nginx_cleanup *cleanup_add(void *owner, size_t size) {
  request *self = owner;
  rl_lua_nginx_cleanup *cleanup;
  if (out_of_memory) {
    return NULL;
  }
  cleanup = calloc(1, sizeof *cleanup + size);
  assert_non_null(cleanup);
  cleanup->data = cleanup + 1;
  cleanup->next = self->cleanups;
  self->cleanups = cleanup;
  return cleanup;
}

static void end(request *self) {
  rl_lua_nginx_cleanup *cleanup = self->cleanups;
  self->cleanups = NULL;
  while (cleanup != NULL) {
    rl_lua_nginx_cleanup *next = cleanup->next;
    if (cleanup->handler != NULL) {
      cleanup->handler(cleanup->data);
    }
    free(cleanup);
    cleanup = next;
  }
}

static void init(rl_lua_nginx_owners *owners) {
  rl_lua_nginx_owners_init(owners);
  owners->cleanup_add = cleanup_add;
}

static void end_of_request_lists_its_locks(void **state) {
  rl_lua_nginx_owners owners;
  request one = {0}, two = {0};
  rl_lua_nginx_owned a = {0}, b = {0}, c = {0};
  init(&owners);
  assert_true(rl_lua_nginx_owners_give(&owners, &one, &a));
  assert_true(rl_lua_nginx_owners_give(&owners, &two, &b));
  assert_true(rl_lua_nginx_owners_give(&owners, &one, &c));
  assert_true(rl_lua_nginx_owners_give(&owners, &one, &a)); /* once more */
  assert_int_equal(owners.owned_count, 3);
  assert_null(rl_lua_nginx_owners_next_ended(&owners));
  end(&one);
  assert_int_equal(owners.owned_count, 1);
  assert_ptr_equal(rl_lua_nginx_owners_next_ended(&owners), &a);
  assert_ptr_equal(rl_lua_nginx_owners_next_ended(&owners), &c);
  assert_null(rl_lua_nginx_owners_next_ended(&owners));
  end(&two);
  rl_lua_nginx_owners_take(&owners, &b); /* Released in the log phase. */
  assert_null(rl_lua_nginx_owners_next_ended(&owners));
  rl_lua_nginx_owners_free(&owners);
}

static void request_registers_one_cleanup_for_all_locks(void **state) {
  rl_lua_nginx_owners owners;
  request one = {0};
  rl_lua_nginx_owned owned = {0};
  init(&owners);
  for (int i = 0; i < 1000; i++) {
    assert_true(rl_lua_nginx_owners_give(&owners, &one, &owned));
    rl_lua_nginx_owners_take(&owners, &owned);
  }
  assert_non_null(one.cleanups);
  assert_null(one.cleanups->next);
  end(&one);
  assert_null(rl_lua_nginx_owners_next_ended(&owners));
  rl_lua_nginx_owners_free(&owners);
}

static void handed_over_lock_belongs_to_new_owner_or_none(void **state) {
  rl_lua_nginx_owners owners;
  request one = {0}, two = {0};
  rl_lua_nginx_owned a = {0}, b = {0};
  init(&owners);
  assert_true(rl_lua_nginx_owners_give(&owners, &one, &a));
  assert_true(rl_lua_nginx_owners_give(&owners, &two, &a));
  assert_true(rl_lua_nginx_owners_give(&owners, &one, &b));
  assert_false(rl_lua_nginx_owners_give(&owners, NULL, &b));
  end(&one);
  assert_null(rl_lua_nginx_owners_next_ended(&owners));
  end(&two);
  assert_ptr_equal(rl_lua_nginx_owners_next_ended(&owners), &a);
  rl_lua_nginx_owners_free(&owners);
}

static void end_of_request_after_client_does_nothing(void **state) {
  rl_lua_nginx_owners *owners = malloc(sizeof *owners);
  request one = {0};
  rl_lua_nginx_owned *a = calloc(1, sizeof *a);
  rl_lua_nginx_owned *ended = calloc(1, sizeof *ended);
  request two = {0};
  init(owners);
  assert_true(rl_lua_nginx_owners_give(owners, &one, a));
  assert_true(rl_lua_nginx_owners_give(owners, &two, ended));
  end(&two);
  rl_lua_nginx_owners_free(owners);
  assert_null(a->list.next);
  assert_null(ended->list.next);
  memset(owners, 0x5a, sizeof *owners);
  free(owners);
  free(a);
  free(ended);
  assert_null(one.cleanups->handler); /* The module of the handler may be unloaded. */
  end(&one);
}

static void thousands_of_requests_end_in_any_order(void **state) {
  static request requests[REQUESTS];
  static rl_lua_nginx_owned owned[REQUESTS];
  rl_lua_nginx_owners owners;
  int count = 0;
  init(&owners);
  for (int i = 0; i < REQUESTS; i++) {
    assert_true(rl_lua_nginx_owners_give(&owners, &requests[i], &owned[i]));
  }
  for (int i = 0; i < REQUESTS; i++) {
    end(&requests[(i * 1237) % REQUESTS]);
  }
  while (rl_lua_nginx_owners_next_ended(&owners) != NULL) {
    count++;
  }
  assert_int_equal(count, REQUESTS);
  assert_int_equal(owners.table.count, 0);
  assert_int_equal(owners.owned_count, 0);
  rl_lua_nginx_owners_free(&owners);
}

static void table_without_memory_to_grow_has_longer_chains(void **state) {
  static request requests[40];
  static rl_lua_nginx_owned owned[40];
  rl_lua_nginx_owners owners;
  init(&owners);
  no_buckets = true;
  assert_false(rl_lua_nginx_owners_give(&owners, &requests[0], &owned[0]));
  no_buckets = false;
  for (int i = 0; i < 40; i++) {
    assert_true(rl_lua_nginx_owners_give(&owners, &requests[i], &owned[i]));
    no_buckets = true;
  }
  no_buckets = false;
  assert_int_equal(owners.table.bucket_count, 16);
  for (int i = 0; i < 40; i++) {
    end(&requests[i]);
    assert_ptr_equal(rl_lua_nginx_owners_next_ended(&owners), &owned[i]);
  }
  rl_lua_nginx_owners_free(&owners);
}

static void lock_without_memory_or_nginx_has_no_owner(void **state) {
  rl_lua_nginx_owners owners;
  request one = {0};
  rl_lua_nginx_owned owned = {0};
  init(&owners);
  out_of_memory = true;
  assert_false(rl_lua_nginx_owners_give(&owners, &one, &owned));
  out_of_memory = false;
  owners.cleanup_add = NULL;
  assert_false(rl_lua_nginx_owners_give(&owners, &one, &owned));
  assert_null(owned.list.next);
  rl_lua_nginx_owners_take(&owners, &owned);
  rl_lua_nginx_owners_free(&owners);
  rl_lua_nginx_owners_init(&owners);
  assert_null(owners.cleanup_add); /* This program is not nginx. */
  rl_lua_nginx_owners_free(&owners);
}

/* nginx reuses the memory of requests: the number tells them apart. */
static void request_at_reused_address_has_new_number(void **state) {
  rl_lua_nginx_owners owners;
  request one = {0}, two = {0};
  rl_lua_nginx_owned owned = {0};
  init(&owners);
  assert_false(rl_lua_nginx_owners_last(&owners, &one, 1));
  uint64_t first = rl_lua_nginx_owners_number(&owners, &one);
  assert_int_equal(rl_lua_nginx_owners_number(&owners, &one), first);
  assert_true(rl_lua_nginx_owners_last(&owners, &one, first));
  assert_false(rl_lua_nginx_owners_last(&owners, &one, 0));
  assert_false(rl_lua_nginx_owners_last(&owners, &two, first));
  assert_false(rl_lua_nginx_owners_last(&owners, NULL, first));
  assert_false(rl_lua_nginx_owner_is_another(&owned, &two));
  assert_true(rl_lua_nginx_owners_give(&owners, &one, &owned));
  assert_false(rl_lua_nginx_owner_is_another(&owned, &one));
  assert_true(rl_lua_nginx_owner_is_another(&owned, &two));
  end(&one);
  assert_false(rl_lua_nginx_owners_last(&owners, &one, first));
  assert_false(rl_lua_nginx_owner_is_another(&owned, &two));
  uint64_t second = rl_lua_nginx_owners_number(&owners, &one);
  assert_true(rl_lua_nginx_owners_last(&owners, &one, second));
  assert_false(rl_lua_nginx_owners_last(&owners, &one, first));
  rl_lua_nginx_owners_free(&owners);
  end(&one);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(end_of_request_lists_its_locks),
      cmocka_unit_test(request_registers_one_cleanup_for_all_locks),
      cmocka_unit_test(handed_over_lock_belongs_to_new_owner_or_none),
      cmocka_unit_test(end_of_request_after_client_does_nothing),
      cmocka_unit_test(thousands_of_requests_end_in_any_order),
      cmocka_unit_test(table_without_memory_to_grow_has_longer_chains),
      cmocka_unit_test(lock_without_memory_or_nginx_has_no_owner),
      cmocka_unit_test(request_at_reused_address_has_new_number),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
