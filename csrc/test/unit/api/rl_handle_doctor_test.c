/*
 * The doctor as programs see it, with servers on loopback in a thread.
 *
 * SPDX-License-Identifier: MIT
 */
#include "api/rl_handle.h"
#include "api/rl_handle_run.h"
#include "client_world.h"
#include "fake_clock.h"

TEST(doctor_checks_its_arguments) {
  world *one = world_new(3);
  redlock_finding_info info;
  assert_error(redlock_lock_doctor(NULL, 0), REDLOCK_E_INVALID);
  assert_error(redlock_lock_doctor_start(NULL, 0), REDLOCK_E_INVALID);
  assert_error(redlock_lock_finding(NULL, 0, &info), REDLOCK_E_INVALID);
  assert_error(redlock_lock_finding(one->lock, 0, NULL), REDLOCK_E_INVALID);
  assert_error(redlock_lock_doctor(one->lock, 2), REDLOCK_E_INVALID);
  assert_string_equal(redlock_lock_message(one->lock),
                      "'orders:42': the flags are 0 or REDLOCK_DOCTOR_KEYS");
}

TEST(no_finding_before_the_examination) {
  world *one = world_new(3);
  redlock_finding_info info;
  memset(&info, 1, sizeof info);
  assert_error(redlock_lock_finding(one->lock, 0, &info), REDLOCK_E_INVALID);
  assert_null(info.name);
  assert_null(info.message);
}

TEST(healthy_nodes_have_no_finding) {
  world *one = world_new(3);
  redlock_finding_info info;
  assert_error(redlock_lock_doctor(one->lock, 0), REDLOCK_OK);
  assert_error(redlock_lock_finding(one->lock, 0, &info), REDLOCK_E_INVALID);
  assert_null(redlock_client_next_ended(one->client));
  assert_error(redlock_lock_doctor(one->lock, REDLOCK_DOCTOR_KEYS), REDLOCK_OK);
  assert_error(redlock_lock_acquire(one->lock, NULL, NULL), REDLOCK_OK);
  assert_error(redlock_lock_doctor(one->lock, 0), REDLOCK_E_HELD);
}

TEST(findings_live_in_the_programs_struct) {
  world *one = world_new(3);
  redlock_finding_info info, other;
  stop_server(one->farm, 1);
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

TEST(minority_of_nodes_is_reported) {
  world *one = world_new(3);
  redlock_finding_info info;
  stop_server(one->farm, 0);
  stop_server(one->farm, 2);
  assert_error(redlock_lock_doctor(one->lock, 0), REDLOCK_E_UNAVAILABLE);
  assert_error(redlock_lock_finding(one->lock, 1, &info), REDLOCK_OK);
  assert_string_equal(info.node, one->farm->nodes[2].name);
  assert_non_null(strstr(redlock_lock_message(one->lock), "1 of 3 nodes were examined"));
}

/* As in a script with a hook. */
TEST(doctor_may_run_in_steps) {
  world *one = world_new(3);
  rl_request doctor = {.operation = RL_OPERATION_DOCTOR};
  assert_error(rl_handle_prepare(one->lock, &doctor), REDLOCK_OK);
  assert_error(rl_handle_prepare(one->lock, &doctor), REDLOCK_E_BUSY);
  assert_error(finish_in_steps(one->lock), REDLOCK_OK);
}
