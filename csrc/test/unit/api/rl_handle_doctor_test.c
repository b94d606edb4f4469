/*
 * The doctor as programs see it, with servers on loopback in a thread.
 *
 * SPDX-License-Identifier: MIT
 */
#include "api/rl_handle.h"
#include "api/rl_handle_run.h"
#include "fake_clock.h"
#include "handle_world.h"

static int begin(void **state) {
  (void)world_begin(state, (redlock_settings){0});
  return 0;
}

static void put_down(world *one, unsigned node) {
  loopback_lock(one->farm);
  loopback_down(one->farm, node);
  loopback_unlock(one->farm);
}

static void doctor_checks_its_arguments(void **state) {
  world *one = *state;
  redlock_finding_info info;
  assert_error(redlock_lock_doctor(NULL, 0), REDLOCK_E_INVALID);
  assert_error(redlock_lock_doctor_start(NULL, 0), REDLOCK_E_INVALID);
  assert_error(redlock_lock_finding(NULL, 0, &info), REDLOCK_E_INVALID);
  assert_error(redlock_lock_finding(one->lock, 0, NULL), REDLOCK_E_INVALID);
  assert_error(redlock_lock_doctor(one->lock, 2), REDLOCK_E_INVALID);
  assert_string_equal(redlock_lock_message(one->lock),
                      "'orders:42': the flags are 0 or REDLOCK_DOCTOR_KEYS");
}

static void no_finding_before_the_examination(void **state) {
  world *one = *state;
  redlock_finding_info info;
  memset(&info, 1, sizeof info);
  assert_error(redlock_lock_finding(one->lock, 0, &info), REDLOCK_E_INVALID);
  assert_null(info.name);
  assert_null(info.message);
}

static void healthy_nodes_have_no_finding(void **state) {
  world *one = *state;
  redlock_finding_info info;
  assert_error(redlock_lock_doctor(one->lock, 0), REDLOCK_OK);
  assert_error(redlock_lock_finding(one->lock, 0, &info), REDLOCK_E_INVALID);
  assert_null(redlock_client_next_ended(one->client));
  assert_error(redlock_lock_doctor(one->lock, REDLOCK_DOCTOR_KEYS), REDLOCK_OK);
  assert_error(redlock_lock_acquire(one->lock, NULL, NULL), REDLOCK_OK);
  assert_error(redlock_lock_doctor(one->lock, 0), REDLOCK_E_HELD);
}

static void findings_live_in_the_programs_struct(void **state) {
  world *one = *state;
  redlock_finding_info info, other;
  put_down(one, 1);
  for (unsigned by_loop = 0; by_loop < 2; by_loop++) {
    if (by_loop == 1) {
      assert_error(redlock_lock_doctor_start(one->lock, 0), REDLOCK_OK);
      assert_error(redlock_lock_doctor(one->lock, 0), REDLOCK_E_BUSY);
      assert_error(loopback_finish(one->client, one->lock), REDLOCK_OK);
      assert_ptr_equal(redlock_client_next_ended(one->client), one->lock);
    } else {
      assert_error(redlock_lock_doctor(one->lock, 0), REDLOCK_OK);
    }
    assert_error(redlock_lock_finding(one->lock, 0, &info), REDLOCK_OK);
    assert_int_equal(info.severity, REDLOCK_SEVERITY_ERROR);
    assert_string_equal(info.name, "down");
    assert_string_equal(info.node, one->farm->nodes[1].name);
    assert_ptr_equal(info.message, info.text);
    assert_non_null(strstr(info.message, "refused"));
    assert_error(redlock_lock_finding(one->lock, 1, &other), REDLOCK_E_INVALID);
    assert_error(redlock_lock_finding(one->lock, SIZE_MAX, &other), REDLOCK_E_INVALID);
  }
}

static void minority_of_nodes_is_reported(void **state) {
  world *one = *state;
  redlock_finding_info info;
  put_down(one, 0);
  put_down(one, 2);
  assert_error(redlock_lock_doctor(one->lock, 0), REDLOCK_E_UNAVAILABLE);
  assert_error(redlock_lock_finding(one->lock, 1, &info), REDLOCK_OK);
  assert_string_equal(info.node, one->farm->nodes[2].name);
  assert_non_null(strstr(redlock_lock_message(one->lock), "1 of 3 nodes were examined"));
}

/* As in a script with a hook. */
static void doctor_may_run_in_steps(void **state) {
  world *one = *state;
  redlock_time until_us = redlock_now() + 20 * SECONDS;
  assert_error(rl_handle_prepare(one->lock, &(rl_request){.operation = RL_OPERATION_DOCTOR}),
               REDLOCK_OK);
  assert_error(rl_handle_prepare(one->lock, &(rl_request){.operation = RL_OPERATION_DOCTOR}),
               REDLOCK_E_BUSY);
  int error = rl_handle_begin(one->lock);
  while (error == REDLOCK_OK && rl_handle_pending(one->lock)) {
    assert_true(redlock_now() < until_us);
    error = rl_handle_go_on(one->lock, 20 * MS);
  }
  rl_handle_end(one->lock, error);
  assert_error(redlock_lock_result(one->lock), REDLOCK_OK);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test_setup_teardown(doctor_checks_its_arguments, begin, world_end),
      cmocka_unit_test_setup_teardown(no_finding_before_the_examination, begin, world_end),
      cmocka_unit_test_setup_teardown(healthy_nodes_have_no_finding, begin, world_end),
      cmocka_unit_test_setup_teardown(findings_live_in_the_programs_struct, begin, world_end),
      cmocka_unit_test_setup_teardown(minority_of_nodes_is_reported, begin, world_end),
      cmocka_unit_test_setup_teardown(doctor_may_run_in_steps, begin, world_end),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
