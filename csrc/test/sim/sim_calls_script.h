/*
 * The scripts for queues, as the simulated nodes know them. See sim_calls_script.c.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef SIM_CALLS_SCRIPT_H
#define SIM_CALLS_SCRIPT_H

#include "sim_node.h"

typedef enum sim_calls_script {
  SIM_CALLS_RELEASE,
  SIM_CALLS_RELEASE_ALL,
  SIM_CALLS_STAND,
  SIM_CALLS_STAND_LABEL,
  SIM_CALLS_STAND_ALL,
  SIM_CALLS_LEAVE,
  SIM_CALLS_STAND_SLOTS,
  SIM_CALLS_LEAVE_SLOTS,
  SIM_CALLS_SLOTS,
  SIM_CALLS_NONE
} sim_calls_script;

/* Returns the script that EVAL or EVALSHA names, or SIM_CALLS_NONE. */
sim_calls_script sim_calls_find(sim *s, const resp_request *command);

#endif
