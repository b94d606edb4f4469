/*
 * Leaders: locks whose use is that of redlock_client_lead().
 *
 * SPDX-License-Identifier: MIT
 *
 * The first lock of some clients is acquired when rl_campaign says so. Its term is the time in
 * which the function of the program runs: it may go on after the loss of the lease, because the
 * program has not noticed it.
 */
#ifndef SIM_TERM_H
#define SIM_TERM_H

#include "sim.h"

/* Draws the clients that lead, from a source of its own. Only with fencing tokens. */
void sim_term_draw(sim *s);

bool sim_term_leads(const sim *s, const sim_client *client, const sim_lock *own);

/* Sets the options of a campaign's acquire. */
void sim_term_options(const sim *s, const sim_client *client, const sim_lock *own,
                      rl_options *options);

/* The idle lock of a leader is due. Returns true if its campaign begins an acquire. */
bool sim_term_campaigns(sim *s, const sim_client *client, sim_lock *own);

/* The acquire of a leader has ended. */
void sim_term_acquired(sim *s, const sim_client *client, sim_lock *own, int result);

/* The next action of the function of a term. */
typedef enum sim_term_step {
  SIM_TERM_GOES_ON,
  SIM_TERM_RETURNS,  /* The lock must be released. */
  SIM_TERM_CAMPAIGNS /* The campaign is due, although the function has not returned. */
} sim_term_step;

sim_term_step sim_term_use(sim *s, const sim_client *client, sim_lock *own, uint64_t reading_us);

/* A child inherits no term. */
void sim_term_forget(sim_lock *own);

#endif
