/*
 * The checker of a chaos run: the rules.
 *
 * SPDX-License-Identifier: MIT
 *
 *     chaos_check [--report FILE] [--flat] LOG...
 *
 * Prints violations, and ends with status 1 if there are any. With --flat the memory of the
 * veterans must not grow, as in a run of an hour; without it there is some tolerance.
 */
#include "chaos_check.h"

#include "chaos.h"

#include <limits.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#define MS 1000u
#define ALLOWANCE_US (500 * MS) /* delay of a call by the scheduler */
#define LINGER_US (500 * MS)    /* for how long a key may be there after its release */
#define LOCK_DELAY_US (200 * MS)
#define PRINTED 10
#define DESCRIPTORS_MAX 40
#define SUBSCRIBERS_MAX 5 /* of a worker: one for each node */
#define ROOM_KILOBYTES 2048
#define FLAT_KILOBYTES 256
#define EDGE_US (30000u * MS) /* how much of the beginning and the end memory is compared of */

void check_violated(check *self, const char *rule, const char *format, ...) {
  static struct {
    char rule[16];
    unsigned count;
  } seen[32];
  unsigned i = 0;
  va_list list;
  while (i < 31 && seen[i].rule[0] != '\0' && strcmp(seen[i].rule, rule) != 0) {
    i++;
  }
  (void)snprintf(seen[i].rule, sizeof seen[i].rule, "%s", rule);
  self->violations++;
  if (++seen[i].count > PRINTED) {
    return;
  }
  FILE *outputs[2] = {stdout, self->report};
  for (unsigned output = 0; output < 2; output++) {
    if (outputs[output] != NULL) {
      (void)fprintf(outputs[output], "VIOLATION %s: ", rule);
      va_start(list, format);
      (void)vfprintf(outputs[output], format, list);
      va_end(list);
      (void)fputs(seen[i].count == PRINTED ? " (and maybe more)\n" : "\n", outputs[output]);
    }
  }
}

uint64_t check_hold_end(const check_hold *hold) {
  return hold->left_us < hold->deadline_us ? hold->left_us : hold->deadline_us;
}

/* ---------------------------------------------------------------------------------- exclusion */

static int by_resource_and_time(const void *left, const void *right) {
  const check_hold *a = *(check_hold *const *)left;
  const check_hold *b = *(check_hold *const *)right;
  if (a->resource != b->resource) {
    return a->resource < b->resource ? -1 : 1;
  }
  return a->from_us < b->from_us ? -1 : a->from_us > b->from_us;
}

/* No two holds of a resource have a microsecond in common. The end of a hold is not part of it. */
static void check_exclusion(check *self) {
  check_hold **sorted = calloc(self->holds.count + 1, sizeof(check_hold *));
  const check_hold *last = NULL; /* of those so far, the one that ends last */
  if (sorted == NULL) {
    check_violated(self, "log", "out of memory");
    return;
  }
  for (size_t i = 0; i < self->holds.count; i++) {
    sorted[i] = &self->holds.items[i];
  }
  qsort((void *)sorted, self->holds.count, sizeof(check_hold *), by_resource_and_time);
  for (size_t i = 0; i < self->holds.count; i++) {
    const check_hold *hold = sorted[i];
    if (check_hold_end(hold) <= hold->from_us) {
      continue;
    }
    if (last != NULL && last->resource == hold->resource && hold->from_us < check_hold_end(last)) {
      check_violated(
          self, "exclusion",
          "resource %u: worker %u.%u believed from %llu until %llu (%.8s), worker %u.%u from %llu (%.8s)",
          hold->resource, last->worker, last->generation, (ull)last->from_us,
          (ull)check_hold_end(last), last->token, hold->worker, hold->generation,
          (ull)hold->from_us, hold->token);
    }
    if (last == NULL || last->resource != hold->resource ||
        check_hold_end(hold) > check_hold_end(last)) {
      last = hold;
    }
  }
  free((void *)sorted);
}

/* ---------------------------------------------------------------------------- other ways of use */

/* A lease that was detached goes to one, however often its text is used. */
static void check_attaches(check *self) {
  for (size_t i = 0; i < self->attaches.count; i++) {
    const check_claim *one = &self->attaches.items[i];
    for (size_t j = i + 1; j < self->attaches.count; j++) {
      const check_claim *other = &self->attaches.items[j];
      if (strcmp(one->token, other->token) == 0) {
        check_violated(self, "attach", "resource %u: worker %u and worker %u have attached %.8s",
                       one->resource, one->worker, other->worker, one->token);
      }
    }
  }
}

static bool same_token(const char *left, const char *right) {
  size_t length = strcspn(left, "+");
  return length == strcspn(right, "+") && strncmp(left, right, length) == 0;
}

/*
 * A worker that holds a resource during a whole inspection has a majority at every moment of it. So
 * the inspection can find no other holder.
 */
static void check_inspections(check *self) {
  for (size_t i = 0; i < self->inspections.count; i++) {
    const check_claim *found = &self->inspections.items[i];
    for (size_t j = 0; j < self->holds.count; j++) {
      const check_hold *hold = &self->holds.items[j];
      if (hold->resource == found->resource && hold->from_us <= found->from_us &&
          check_hold_end(hold) >= found->until_us && !same_token(hold->token, found->token)) {
        check_violated(
            self, "inspect", "resource %u: worker %u found %.8s to hold it, at %llu, but %.8s did",
            found->resource, found->worker, found->token, (ull)found->from_us, hold->token);
      }
    }
  }
}

/* ------------------------------------------------------------------------------------- budget */

/* How long a worker could not run, as far as is known, between two moments. */
static uint64_t excuse_us(const check *self, unsigned worker, uint64_t from_us, uint64_t until_us) {
  uint64_t sum_us = 0;
  for (size_t i = 0; i < self->spans.count; i++) {
    const check_span *span = &self->spans.items[i];
    if (span->worker == worker || span->worker == UINT_MAX) {
      uint64_t first_us = span->from_us > from_us ? span->from_us : from_us;
      uint64_t last_us = span->until_us < until_us ? span->until_us : until_us;
      sum_us += last_us > first_us ? last_us - first_us : 0;
    }
  }
  return sum_us;
}

/* The same of the worker that was kept from running for longest. */
static uint64_t longest_excuse_us(const check *self, uint64_t from_us, uint64_t until_us) {
  uint64_t longest_us = excuse_us(self, UINT_MAX, from_us, until_us);
  for (unsigned worker = 0; worker < CHAOS_WORKERS_MAX; worker++) {
    uint64_t late_us = excuse_us(self, worker, from_us, until_us);
    longest_us = late_us > longest_us ? late_us : longest_us;
  }
  return longest_us;
}

static void check_budget(check *self) {
  static const char *const never[] = {"invalid", "busy",        "no_memory",
                                      "system",  "unsupported", "limit"};
  for (size_t i = 0; i < self->calls.count; i++) {
    const check_call *call = &self->calls.items[i];
    for (size_t j = 0; j < sizeof never / sizeof never[0]; j++) {
      if (strcmp(call->result, never[j]) == 0) {
        check_violated(self, "error", "worker %u.%u: %s ended with %s", call->worker,
                       call->generation, call->name, call->result);
      }
    }
    if (call->took_us > call->budget_us + ALLOWANCE_US &&
        call->took_us >
            call->budget_us + ALLOWANCE_US +
                excuse_us(self, call->worker, call->started_us, call->started_us + call->took_us)) {
      check_violated(self, "budget", "worker %u.%u: %s (%s) took %llu us at %llu, budget %llu us",
                     call->worker, call->generation, call->name, call->result, (ull)call->took_us,
                     (ull)call->started_us, (ull)call->budget_us);
    }
  }
}

/* ----------------------------------------------------------------------------------- leftover */

/*
 * Returns the end of a token: its release, or the end of its lease; UINT64_MAX while it is in use.
 */
static uint64_t token_over_us(const check *self, const char *token) {
  const check_hold *hold = check_hold_of(self, token);
  if (hold == NULL) {
    return 0; /* No worker has held it: an attempt failed, or is about to succeed. */
  }
  return hold->left_us != UINT64_MAX && !hold->detached ? hold->left_us
                                                        : hold->deadline_us + LOCK_DELAY_US;
}

/*
 * Reports a key that is seen twice, with time between, and whose token had ended before the first
 * time.
 */
static void check_leftover(check *self) {
  for (size_t i = 0; i < self->keys.count; i++) {
    const check_key *first = &self->keys.items[i];
    uint64_t over_us = token_over_us(self, first->token);
    if (over_us > first->at_us) {
      continue;
    }
    for (size_t after = i + 1; after < self->keys.count; after++) {
      const check_key *second = &self->keys.items[after];
      if (second->at_us > first->at_us + 10 * LINGER_US) {
        break;
      }
      if (second->node == first->node && strcmp(second->token, first->token) == 0 &&
          second->at_us >=
              first->at_us + LINGER_US + longest_excuse_us(self, first->at_us, second->at_us)) {
        check_violated(self, "leftover",
                       "node %u: key of resource %u (%.8s) was there at %llu, and still at %llu",
                       first->node, first->resource, first->token, (ull)first->at_us,
                       (ull)second->at_us);
        break;
      }
    }
  }
  if (check_counted(self, "end", "empty") != 1) {
    check_violated(self, "log", "the run did not come to its end");
  }
  if (check_counted(self, "end", "left") > 0) {
    check_violated(self, "leftover", "%llu keys are left at the end",
                   (ull)check_counted(self, "end", "left"));
  }
}

/* ----------------------------------------------------------------------------------- progress */

static void check_progress(check *self) {
  uint64_t resources = check_counted(self, "set", "resources");
  for (size_t i = 0; i < self->bounds.count; i++) {
    const check_span *bound = &self->bounds.items[i];
    for (unsigned resource = 0; resource < resources; resource++) {
      bool acquired = false;
      for (size_t j = 0; j < self->holds.count && !acquired; j++) {
        const check_hold *hold = &self->holds.items[j];
        acquired = hold->resource == resource && hold->from_us >= bound->from_us &&
                   hold->from_us <= bound->until_us;
      }
      if (!acquired) {
        check_violated(self, "progress",
                       "resource %u: no worker acquired it from %llu to %llu, without faults",
                       resource, (ull)bound->from_us, (ull)bound->until_us);
      }
    }
  }
}

static void check_needs(check *self) {
  size_t needs = 0;
  for (size_t i = 0; i < self->counts.count; i++) {
    const check_count *need = &self->counts.items[i];
    if (strncmp(need->what, "need ", 5) == 0) {
      needs++;
      uint64_t counted = check_counted(self, need->what + 5, need->name);
      if (counted < need->count) {
        check_violated(self, "reachability", "%s %s: %llu, at least %llu are needed",
                       need->what + 5, need->name, (ull)counted, (ull)need->count);
      }
    }
  }
  /* Where nothing is demanded, nothing is found either. */
  if (check_counted(self, "set", "began") > 0) {
    if (self->bounds.count == 0) {
      check_violated(self, "log", "nothing is said of when resources had to be acquired");
    }
    if (check_counted(self, "set", "resources") == 0) {
      check_violated(self, "log", "nothing is said of how many resources there are");
    }
    if (needs == 0 && check_counted(self, "set", "partial") == 0) {
      check_violated(self, "log", "nothing is said of what had to occur");
    }
  }
  if (check_counted(self, "count", "sigpipe-by-itself") > 0) {
    check_violated(self, "signal", "a worker got SIGPIPE by its own doing");
  }
}

/* ------------------------------------------------------------------------------------- memory */

/* The most kilobytes of a worker between two moments. */
static uint64_t most_kilobytes(const check *self, unsigned worker, uint64_t from_us,
                               uint64_t until_us) {
  uint64_t most = 0;
  for (size_t i = 0; i < self->memories.count; i++) {
    const check_memory *memory = &self->memories.items[i];
    if (memory->worker == worker && memory->at_us >= from_us && memory->at_us <= until_us &&
        memory->kilobytes > most) {
      most = memory->kilobytes;
    }
  }
  return most;
}

static void check_kilobytes(check *self, unsigned worker, uint64_t first_us, uint64_t last_us,
                            bool flat) {
  uint64_t edge_us = (last_us - first_us) / 4 < EDGE_US ? (last_us - first_us) / 4 : EDGE_US;
  uint64_t before = most_kilobytes(self, worker, first_us, first_us + edge_us);
  uint64_t after = most_kilobytes(self, worker, last_us - edge_us, last_us);
  uint64_t room = flat ? before / 100 + FLAT_KILOBYTES : ROOM_KILOBYTES;
  if (after > before + room) {
    check_violated(self, "memory", "worker %u: %llu kB have become %llu kB", worker, (ull)before,
                   (ull)after);
  }
}

/* ------------------------------------------------------------------------------- descriptors */

typedef struct settled_counts {
  unsigned of[DESCRIPTORS_MAX + 1]; /* samples with so many descriptors */
  unsigned samples;
  uint64_t usual; /* the most in a settled phase before; 0 when there was none */
} settled_counts;

/*
 * Checks the end of a settled phase. Its median counts: a reconnection changes the number of
 * descriptors for a moment, a leak changes all samples. A node that does not permit notifications
 * is not subscribed to for a minute: so there may be up to five descriptors fewer.
 */
static void check_settled(check *self, unsigned worker, settled_counts *counts) {
  unsigned below = 0;
  uint64_t median = 0;
  if (counts->samples == 0) {
    return;
  }
  while (below + counts->of[median] <= counts->samples / 2) {
    below += counts->of[median++];
  }
  bool leaked = median > counts->usual;
  if (counts->usual != 0 && (leaked || median + SUBSCRIBERS_MAX < counts->usual)) {
    check_violated(self, "descriptors", "worker %u had %llu descriptors, now %llu", worker,
                   (ull)counts->usual, (ull)median);
  }
  *counts = (settled_counts){.usual = leaked ? median : counts->usual};
}

static void check_descriptors(check *self, unsigned worker) {
  settled_counts counts = {.usual = 0};
  for (size_t i = 0; i < self->memories.count; i++) {
    const check_memory *memory = &self->memories.items[i];
    if (memory->worker != worker) {
      continue;
    }
    if (memory->descriptors > DESCRIPTORS_MAX) {
      check_violated(self, "descriptors", "worker %u has %llu descriptors", worker,
                     (ull)memory->descriptors);
    } else if (strcmp(memory->phase, "settled") == 0) {
      counts.of[memory->descriptors]++;
      counts.samples++;
      continue;
    }
    check_settled(self, worker, &counts);
  }
  check_settled(self, worker, &counts);
}

/* Of the veterans, which are the same processes from the beginning to the end. */
static void check_memories(check *self, bool flat) {
  uint64_t flat_from_us = check_counted(self, "set", "flat-from");
  uint64_t veterans = check_counted(self, "set", "veterans");
  for (unsigned worker = 0; worker < veterans; worker++) {
    uint64_t first_us = 0;
    uint64_t last_us = 0;
    for (size_t i = 0; i < self->memories.count; i++) {
      const check_memory *memory = &self->memories.items[i];
      if (memory->worker == worker && memory->at_us >= flat_from_us) {
        first_us = first_us == 0 ? memory->at_us : first_us;
        last_us = memory->at_us;
      }
    }
    if (last_us > first_us) {
      check_kilobytes(self, worker, first_us, last_us, flat);
    }
    check_descriptors(self, worker);
  }
}

int main(int count, char **arguments) {
  static check self;
  bool flat = false;
  int first = 1;
  while (first < count && strncmp(arguments[first], "--", 2) == 0) {
    if (strcmp(arguments[first], "--flat") == 0) {
      flat = true;
    } else if (strcmp(arguments[first], "--report") == 0 && first + 1 < count) {
      self.report = fopen(arguments[++first], "w");
      if (self.report == NULL) {
        (void)fprintf(stderr, "chaos_check: %s cannot be written\n", arguments[first]);
        return 2;
      }
    } else {
      count = 0;
    }
    first++;
  }
  if (first >= count) {
    (void)fputs("usage: chaos_check [--report FILE] [--flat] LOG...\n", stderr);
    return 2;
  }
  for (int i = first; i < count; i++) {
    check_read(&self, arguments[i]);
  }
  check_exclusion(&self);
  check_attaches(&self);
  check_inspections(&self);
  check_budget(&self);
  check_leftover(&self);
  check_progress(&self);
  check_needs(&self);
  check_memories(&self, flat);
  check_report(&self);
  if (self.report != NULL) {
    (void)fclose(self.report);
  }
  return self.violations == 0 ? 0 : 1;
}
