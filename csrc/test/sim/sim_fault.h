/*
 * The faults that a run may draw.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef SIM_FAULT_H
#define SIM_FAULT_H

/*
 * X(fault, name, group). The group decides which function causes the fault, and which runs draw it.
 *   NODE, NETWORK, CLIENT  all runs; sim_fault.c
 *   ASSUMPTION             runs that break an assumption of docs/safety.md; sim_fault.c
 *   GUARD                  runs with a guard; sim_guard.c
 *   NOTIFICATIONS          runs with notifications; sim_waiting.c
 */
#define SIM_FAULTS(X)                                                                              \
  X(CRASH_WITH_DATA, "crash-with-data", NODE)                                                      \
  X(CRASH_EMPTY, "crash-empty", NODE)                                                              \
  X(STOP, "stop", NODE)                                                                            \
  X(SLOW_NODE, "slow-node", NODE)                                                                  \
  X(ERRORS, "errors", NODE)                                                                        \
  X(ODD_REPLY, "odd-reply", NODE)                                                                  \
  X(SCRIPT_FLUSH, "script-flush", NODE)                                                            \
  X(FOREIGN, "foreign-key", NODE)                                                                  \
  X(PARTITION, "partition", NETWORK)                                                               \
  X(SLOW_LINK, "slow-link", NETWORK)                                                               \
  X(BREAK, "break", NETWORK)                                                                       \
  X(HALF_OPEN, "half-open", NETWORK)                                                               \
  X(STEP_BACK, "step-back", NODE)                                                                  \
  X(STEP_FORWARD, "step-forward", NODE)                                                            \
  X(SUSPEND, "suspend", CLIENT)                                                                    \
  X(CLIENT, "client", CLIENT)                                                                      \
  X(ASSUMPTION, "assumption", ASSUMPTION)                                                          \
  X(RESTART_EMPTY, "restart-empty", GUARD)                                                         \
  X(FLUSH, "flush", GUARD)                                                                         \
  X(PROMOTE, "promote", GUARD)                                                                     \
  X(RESTORE, "restore", GUARD)                                                                     \
  X(FAR_STEP, "far-step", GUARD)                                                                   \
  X(WRONG_CLOCK, "wrong-clock", GUARD)                                                             \
  X(NOTIFICATIONS, "notifications", NOTIFICATIONS)

typedef enum sim_fault {
#define SIM_FAULT_NAME(fault, name, group) SIM_FAULT_##fault,
  SIM_FAULTS(SIM_FAULT_NAME)
#undef SIM_FAULT_NAME
      SIM_FAULT_KINDS
} sim_fault;

typedef enum sim_fault_group {
  SIM_FAULTS_NODE,
  SIM_FAULTS_NETWORK,
  SIM_FAULTS_CLIENT,
  SIM_FAULTS_ASSUMPTION,
  SIM_FAULTS_GUARD,
  SIM_FAULTS_NOTIFICATIONS
} sim_fault_group;

#endif
