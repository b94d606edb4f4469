/*
 * Functions of an application for sim_application.c and sim_result.c.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef SIM_APPLICATION_H
#define SIM_APPLICATION_H

#include "sim.h"

uint64_t sim_application_draw(sim *s, uint64_t below);

/* Returns true if the faults have stopped. */
bool sim_application_calm(const sim *s);

/* Draws the time until the next use of a lease: often near its end. */
uint64_t sim_application_hold(sim *s, const sim_lock *own);

/* The lock is held: schedules its next use. */
void sim_application_keep(sim *s, sim_lock *own);

/* Draws the time until the next operation of an idle lock. */
uint64_t sim_application_think(sim *s);

/*
 * Returns true if the result says that the lease was lost, and an operator or a broken assumption
 * explains that.
 */
bool sim_application_lost_before(const sim *s, int result);

#endif
