/*
 * The timeline of one run.
 *
 * SPDX-License-Identifier: MIT
 */
#include "sim_trace.h"

#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "grow.h"
#include "sim_trace_marks.h"

sim_trace *sim_trace_new(FILE *text) {
  sim_trace *trace = calloc(1, sizeof *trace);
  if (trace == NULL) {
    abort();
  }
  trace->text = text;
  return trace;
}

void sim_trace_free(sim_trace *trace) {
  if (trace != NULL) {
    free(trace->marks);
    free(trace);
  }
}

static void sim_trace_time(const sim *s) {
  (void)fprintf(s->trace->text, "%10.3f ms  ", (double)s->now_us / 1000.0);
}

void sim_trace_line(sim *s, const char *format, ...) {
  va_list arguments;
  if (s->trace->text == NULL) {
    return;
  }
  sim_trace_time(s);
  va_start(arguments, format);
  (void)vfprintf(s->trace->text, format, arguments);
  va_end(arguments);
  (void)fputc('\n', s->trace->text);
}

static sim_mark *sim_trace_add(sim *s, sim_mark_kind kind, unsigned row, unsigned lane) {
  sim_trace *trace = s->trace;
  trace->marks = grow(trace->marks, sizeof *trace->marks, trace->count, &trace->capacity);
  sim_mark *mark = &trace->marks[trace->count++];
  memset(mark, 0, sizeof *mark);
  mark->kind = kind;
  mark->row = row;
  mark->lane = lane;
  mark->from_us = mark->until_us = s->now_us;
  return mark;
}

void sim_trace_fault(sim *s, unsigned row, uint64_t until_us, const char *format, ...) {
  va_list arguments;
  if (s->trace == NULL) {
    return;
  }
  sim_mark *mark = sim_trace_add(s, SIM_MARK_FAULT, row, 0);
  mark->until_us = until_us;
  va_start(arguments, format);
  (void)vsnprintf(mark->text, sizeof mark->text, format, arguments);
  va_end(arguments);
  if (until_us > s->now_us) {
    sim_trace_line(s, "%s %u: %s (%.3f ms)", row < SIM_NODES_MAX ? "node" : "client",
                   row % SIM_NODES_MAX, mark->text, (double)(until_us - s->now_us) / 1000.0);
  } else {
    sim_trace_line(s, "%s %u: %s", row < SIM_NODES_MAX ? "node" : "client", row % SIM_NODES_MAX,
                   mark->text);
  }
}

/* The last bar of a row and lane ends here; another begins, if there is a token. */
static void sim_trace_bar(sim *s, sim_mark_kind kind, unsigned row, unsigned lane,
                          unsigned resource, uint32_t token, uint64_t ends_us) {
  for (size_t i = s->trace->count; i > 0; i--) {
    sim_mark *mark = &s->trace->marks[i - 1];
    if (mark->kind != kind || mark->row != row || mark->lane != lane) {
      continue;
    }
    if (mark->until_us > s->now_us) {
      mark->until_us = s->now_us;
    }
    if (mark->token == token && token != SIM_NO_TOKEN) {
      mark->until_us = ends_us;
      return;
    }
    break;
  }
  if (token != SIM_NO_TOKEN) {
    sim_mark *mark = sim_trace_add(s, kind, row, lane);
    mark->token = token;
    mark->resource = resource;
    mark->until_us = ends_us;
  }
}

void sim_trace_lease(sim *s, unsigned client, unsigned lock, unsigned resource, uint32_t token,
                     uint64_t ends_us) {
  if (s->trace != NULL) {
    sim_trace_bar(s, SIM_MARK_LEASE, SIM_NODES_MAX + client, lock, resource, token, ends_us);
  }
}

void sim_trace_key(sim *s, unsigned node, unsigned resource, uint32_t token, uint64_t ends_us) {
  if (s->trace != NULL) {
    sim_trace_bar(s, SIM_MARK_KEY, node, resource, resource, token, ends_us);
  }
}
