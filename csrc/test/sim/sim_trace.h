/*
 * The timeline and the picture of one run.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef SIM_TRACE_H
#define SIM_TRACE_H

#include "sim.h"

/* |text| gets the timeline, as it happens, unless it is NULL. */
sim_trace *sim_trace_new(FILE *text);
void sim_trace_free(sim_trace *trace);

/* Writes a line of the timeline. Costs nothing when there is none. */
#define SIM_TRACE(s, ...)                                                                          \
  do {                                                                                             \
    if ((s)->trace != NULL) {                                                                      \
      sim_trace_line(s, __VA_ARGS__);                                                              \
    }                                                                                              \
  } while (0)
__attribute__((format(printf, 2, 3))) void sim_trace_line(sim *s, const char *format, ...);

/* A fault, in the timeline and in the picture. |row| is a node, or SIM_NODES_MAX + a client. */
__attribute__((format(printf, 4, 5))) void sim_trace_fault(sim *s, unsigned row, uint64_t until_us,
                                                           const char *format, ...);

/*
 * Records the holder of a lease or a key for the picture; |row| is a client. A later record may
 * move the end.
 */
void sim_trace_lease(sim *s, unsigned client, unsigned lock, unsigned resource, uint32_t token,
                     uint64_t ends_us);
void sim_trace_key(sim *s, unsigned node, unsigned resource, uint32_t token, uint64_t ends_us);

/*
 * Writes the picture of a stretch of the run. If |until_us| is 0: of the whole run, or of the time
 * before a violation.
 */
bool sim_trace_svg(const sim *s, const char *path, uint64_t from_us, uint64_t until_us);

#endif
