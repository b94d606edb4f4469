/*
 * A line: the locks of one client that wait for the same resource. Only the first of them talks to the nodes.
 *
 * SPDX-License-Identifier: MIT
 *
 * Who stands behind the first costs the nodes nothing, and keeps a budget of its own.
 */
#ifndef RL_LINE_H
#define RL_LINE_H

#include <stdbool.h>

#include "rl_lock.h"

struct rl_place;

typedef struct rl_line {
  struct rl_line *next; /* of its bucket; or among those that are free */
  rl_resource *resource;
  uint64_t hash;
  rl_lock *front;         /* the one that asks the nodes */
  rl_list behind;         /* the others, in the order in which they came */
  struct rl_place *place; /* of the front in the queues of the nodes (rl_call.h); or NULL */
  redlock_time
      ours_us; /* since when locks of this line have had it, one after the other; 0: they have not */
  redlock_time behind_us; /* when a front has last tried behind a release of ours (W4); or 0 */
  redlock_time last_us;   /* when the front's last attempt was begun; 0 before the first */
  bool has_waited;        /* the front has waited, if not in a queue (C2 of rl_call.c) */
} rl_line;

typedef struct rl_lines {
  rl_line **buckets;
  size_t bucket_count; /* a power of 2, or 0 */
  size_t count;        /* of lines */
  size_t parked;       /* locks that stand behind another */
  uint64_t seed;       /* so that nobody can choose names that meet in one bucket */
  uint64_t random;     /* for delays and channels; not core->random, which connections draw from */
  rl_line *free;
} rl_lines;

void rl_lines_free(struct rl_core *core);

/*
 * W1. A lock is to be launched. Returns whether it stands in line behind another now, and is not launched. |entropy| is
 * that of its attempt, which is not used up then.
 */
bool rl_line_enter(rl_lock *lock, redlock_time now_us, const unsigned char *entropy);

/* The acquire of |lock|, which is in a line, has ended with |result|: it makes way. */
void rl_line_leave(rl_lock *lock, redlock_time now_us, int result);

/* The budget of a lock that stands behind another is over. */
void rl_line_give_up(rl_lock *lock, redlock_time now_us);

/* W4. A lease on the resource is being released by this client. */
void rl_line_released(struct rl_core *core, const rl_resource *resource, redlock_time now_us);

/* W4. Somebody else has it: what this client keeps to itself is counted anew. */
void rl_line_others_have_it(const struct rl_core *core, const rl_resource *resource);

/* A line of the resource, or NULL; and the hash by which it is found. */
rl_line *rl_line_find(const struct rl_core *core, const rl_resource *resource);
uint64_t rl_line_hash(const struct rl_core *core, const rl_resource *resource);

/* A number that nobody can foresee, for delays. */
uint64_t rl_line_random(struct rl_core *core);

#endif
