/*
 * The checker of a chaos run: the format of the logs.
 *
 * SPDX-License-Identifier: MIT
 *
 * A log is lines of words. Times are microseconds of redlock_now(), which all processes of a
 * machine share.
 *
 *     wI.G hold RESOURCE TOKEN FROM DEADLINE      worker I, its Gth process, believes from now on;
 *                                                 TOKEN+ for the second of two resources
 *     wI.G extend RESOURCE TOKEN NOW DEADLINE
 *     wI.G leave RESOURCE TOKEN NOW               before the release
 *     wI.G detach RESOURCE TOKEN NOW              the lease is handed over
 *     wI.G attach RESOURCE TOKEN NOW              the lease with that token has been attached
 *     wI.G inspect RESOURCE TOKEN FROM UNTIL      a majority had this token in that time
 *     wI.G call NAME RESULT PHASE STARTED TOOK BUDGET
 *     wI.G witness RESOURCE FROM UNTIL wJ FROM UNTIL
 *     wI.G child KIND STATUS
 *     main phase NAME NOW
 *     main fault KIND TARGET FROM UNTIL HELD      HELD locks were held meanwhile
 *     main stop WORKER FROM UNTIL                 the worker was stopped
 *     main late FROM UNTIL                        the whole machine was delayed
 *     main memory I G NOW KILOBYTES DESCRIPTORS PHASE
 *     main key NOW NODE RESOURCE TOKEN            the key exists
 *     main bound FROM UNTIL                       every resource must be acquired in that time
 *     main died I G STATUS expected|unexpected|hung
 *     main empty TOOK LEFT                        at the end, with the number of remaining keys
 *     main count NAME N     main set NAME N     main need fault|count|child NAME N
 *
 * "main set began" requires resources, bounds and needs. "main set partial" exempts a run from
 * needs: a control, a single kind of fault, or a run too short for all of them.
 */
#ifndef CHAOS_CHECK_H
#define CHAOS_CHECK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

typedef unsigned long long ull; /* for printf() */

#define CHECK_WORD 48
#define CHECK_WORDS 10

typedef struct check_hold {
  unsigned worker;
  unsigned generation;
  unsigned resource;
  char token[CHECK_WORD];
  uint64_t from_us;
  uint64_t deadline_us;
  uint64_t left_us; /* UINT64_MAX: not logged */
  bool detached;    /* it has left the lease to another */
} check_hold;

/* An attached lease, by its detached token; or the holder that an inspection has found. */
typedef struct check_claim {
  unsigned worker;
  unsigned resource;
  char token[CHECK_WORD];
  uint64_t from_us;
  uint64_t until_us;
} check_claim;

typedef struct check_call {
  unsigned worker;
  unsigned generation;
  char name[16];
  char result[16];
  uint64_t started_us;
  uint64_t took_us;
  uint64_t budget_us;
} check_call;

typedef struct check_span {
  unsigned worker; /* UINT_MAX: all */
  uint64_t from_us;
  uint64_t until_us;
} check_span;

typedef struct check_memory {
  unsigned worker;
  unsigned generation;
  uint64_t at_us;
  uint64_t kilobytes;
  uint64_t descriptors;
  char phase[12];
} check_memory;

typedef struct check_key {
  uint64_t at_us;
  unsigned node;
  unsigned resource;
  char token[CHECK_WORD];
} check_key;

/* Something counted by its name: kinds of faults, counters, settings, deaths. */
typedef struct check_count {
  char what[CHECK_WORD];
  char name[CHECK_WORD];
  uint64_t count;
  uint64_t longest_us;
} check_count;

#define CHECK_LIST(type)                                                                           \
  struct {                                                                                         \
    type *items;                                                                                   \
    size_t count;                                                                                  \
    size_t capacity;                                                                               \
  }

typedef struct check {
  CHECK_LIST(check_hold) holds;
  CHECK_LIST(check_claim) attaches;
  CHECK_LIST(check_claim) inspections;
  CHECK_LIST(check_call) calls;
  CHECK_LIST(check_span) spans;  /* when workers, or all, were stopped */
  CHECK_LIST(check_span) bounds; /* of progress */
  CHECK_LIST(check_memory) memories;
  CHECK_LIST(check_key) keys;
  CHECK_LIST(check_count) counts;
  size_t *places; /* of holds, by token */
  size_t place_count;
  FILE *report;
  size_t violations;
} check;

/* Reads a log. A malformed line is a violation. */
void check_read(check *self, const char *path);

check_hold *check_hold_of(const check *self, const char *token);
uint64_t check_counted(const check *self, const char *what, const char *name);
uint64_t check_hold_end(const check_hold *hold);

/* Puts down a violation of a rule. Of each rule the first few are printed. */
void check_violated(check *self, const char *rule, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

void check_report(const check *self);

#endif
