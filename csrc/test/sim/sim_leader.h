/*
 * The state of a lock whose client campaigns with it. See sim_term.h.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef SIM_LEADER_H
#define SIM_LEADER_H

#include "lease/rl_campaign.h"

typedef struct sim_term {
  bool runs; /* the function of the program */
  rl_campaign campaign;
} sim_term;

#endif
