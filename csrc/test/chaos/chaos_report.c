/*
 * The checker of a chaos run: the report for a person.
 *
 * SPDX-License-Identifier: MIT
 */
#include <string.h>

#include "chaos_check.h"

static void report_counts(const check *self, const char *what, const char *title) {
  bool titled = false;
  for (size_t i = 0; i < self->counts.count; i++) {
    const check_count *counter = &self->counts.items[i];
    if (strcmp(counter->what, what) != 0) {
      continue;
    }
    if (!titled) {
      (void)fprintf(self->report, "\n%s\n", title);
      titled = true;
    }
    (void)fprintf(self->report, "  %-24s %10llu", counter->name, (ull)counter->count);
    if (counter->longest_us > 0) {
      (void)fprintf(self->report, "   longest %8.3f s", (double)counter->longest_us / 1e6);
    }
    (void)fputc('\n', self->report);
  }
}

/* ------------------------------------------------------------------------------------ holds */

static void report_holds(const check *self) {
  uint64_t held_us = 0;
  size_t killed = 0;
  for (size_t i = 0; i < self->holds.count; i++) {
    const check_hold *hold = &self->holds.items[i];
    uint64_t end_us = check_hold_end(hold);
    held_us += end_us > hold->from_us ? end_us - hold->from_us : 0;
    killed += hold->left_us == UINT64_MAX;
  }
  (void)fprintf(
      self->report,
      "\nholds\n  %zu, for %.1f s together; %llu times extended; %zu ended with their worker\n",
      self->holds.count, (double)held_us / 1e6, (ull)check_counted(self, "holds", "extended"),
      killed);
}

static void report_memory(const check *self) {
  (void)fputs("\nmemory and descriptors of the workers that lived from the beginning to the end\n"
              "  worker   kB first   kB warm    kB last    kB most   fds settled   fds most\n",
              self->report);
  uint64_t flat_from_us = check_counted(self, "set", "flat-from");
  for (unsigned worker = 0; worker < check_counted(self, "set", "veterans"); worker++) {
    ull first = 0;
    ull warm = 0;
    ull last = 0;
    ull most = 0;
    ull settled = 0;
    ull descriptors = 0;
    for (size_t i = 0; i < self->memories.count; i++) {
      const check_memory *memory = &self->memories.items[i];
      if (memory->worker != worker) {
        continue;
      }
      first = first == 0 ? memory->kilobytes : first;
      warm = warm == 0 && memory->at_us >= flat_from_us ? memory->kilobytes : warm;
      last = memory->kilobytes;
      most = memory->kilobytes > most ? memory->kilobytes : most;
      settled = strcmp(memory->phase, "settled") == 0 ? memory->descriptors : settled;
      descriptors = memory->descriptors > descriptors ? memory->descriptors : descriptors;
    }
    (void)fprintf(self->report, "  %6u %10llu %9llu %10llu %10llu %13llu %10llu\n", worker, first,
                  warm, last, most, settled, descriptors);
  }
}

void check_report(const check *self) {
  if (self->report == NULL) {
    return;
  }
  ull took_us = check_counted(self, "set", "ended") - check_counted(self, "set", "began");
  (void)fprintf(self->report, "chaos: seed %llu, %llu workers, %.0f s\n%zu violations\n",
                (ull)check_counted(self, "set", "seed"), (ull)check_counted(self, "set", "workers"),
                (double)took_us / 1e6, self->violations);
  (void)fprintf(self->report, "%llu keys left at the end, all gone %.3f s after the workers\n",
                (ull)check_counted(self, "end", "left"),
                (double)check_counted(self, "end", "empty-us") / 1e6);
  report_holds(self);
  report_counts(self, "fault", "faults, with a lock held meanwhile");
  report_counts(self, "child", "children of workers that ended well");
  report_counts(self, "count", "what was seen of them");
  report_counts(self, "died", "ends of workers");
  report_memory(self);
}
