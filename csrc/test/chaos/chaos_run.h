/*
 * A chaos run, as its supervisor sees it.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef CHAOS_RUN_H
#define CHAOS_RUN_H

#include "chaos_farm.h"
#include "sim_random.h"

#define CHAOS_FAULTS_MAX 16
#define CHAOS_KINDS_MAX 40

typedef struct chaos_run chaos_run;
typedef struct chaos_fault chaos_fault;

/* The resource that a fault needs for itself. */
typedef enum chaos_claim {
  CLAIM_NOTHING,
  CLAIM_PROCESS, /* the node's process */
  CLAIM_GATE,    /* the node's proxy */
  CLAIM_NODE_UP, /* a node whose process has no fault, for a moment */
  CLAIM_NODE,    /* a node in any state, for a moment */
  CLAIM_WORKER,  /* a worker that holds something */
  CLAIM_VICTIM   /* the same, and not a veteran */
} chaos_claim;

typedef struct chaos_kind {
  const char *name;
  chaos_claim claim;
  unsigned shortest_ms;
  unsigned longest_ms;
  bool (*begin)(chaos_run *run, chaos_fault *fault);                     /* false: not now */
  bool (*step)(chaos_run *run, chaos_fault *fault, redlock_time now_us); /* true: it is over */
  int argument;        /* of begin(): a mode of the proxy, a kind of fork */
  const char *command; /* of begin(): sent to the node */
} chaos_kind;

struct chaos_fault {
  const chaos_kind *kind; /* NULL: a free slot */
  unsigned target;        /* a node, a worker, or a set of nodes */
  unsigned stage;
  unsigned held; /* the most locks that were held meanwhile */
  redlock_time from_us;
  redlock_time until_us;
};

typedef struct chaos_node {
  bool process_claimed;
  bool gate_claimed;
  redlock_time forward_us; /* when its clock was last set forward */
  redlock_time horizon_us; /* until when its keys can live, by reason of backward steps */
} chaos_node;

typedef struct chaos_hand {
  unsigned generation;
  bool claimed;
} chaos_hand;

typedef struct chaos_settings {
  unsigned seconds;
  unsigned calm_seconds; /* between two calm moments */
  unsigned warm_seconds;
  unsigned flat_seconds; /* from when on memory is judged */
  unsigned settle_ms;
  unsigned workers;
  unsigned pace_ms;
  uint64_t seed;
  const char *directory;
  const char *only; /* one kind of fault */
  unsigned parent;  /* process whose end is this one's, too; 0: none */
  const struct chaos_control *control;
} chaos_settings;

struct chaos_run {
  chaos_settings settings;
  chaos_shared *shared;
  chaos_farm farm;
  int log;
  pid_t proxy;
  sim_random random;
  char shared_path[256];
  char worker_path[256];
  chaos_hand hands[CHAOS_WORKERS_MAX];
  chaos_node nodes[CHAOS_NODES];
  chaos_fault faults[CHAOS_FAULTS_MAX];
  const chaos_kind *deck[CHAOS_KINDS_MAX]; /* all kinds, in the order in which they come */
  unsigned deck_count;
  unsigned deck_next;
  unsigned impaired_max;          /* nodes with a fault at the same time */
  bool calm;                      /* faults end, none begins */
  bool overtime;                  /* the time is over, but something that must occur has not */
  unsigned felt[CHAOS_KINDS_MAX]; /* faults of each kind, of those with a lock held meanwhile */
  int next_signal;
  redlock_time next_fault_us;
  redlock_time next_limit_us;
  redlock_time next_sample_us;
};

/* A negative control. */
typedef struct chaos_control {
  const char *name;
  chaos_misdeed misdeed;
  bool longer_holds;
  bool volatile_nodes;                /* no node keeps its keys over a restart */
  void (*breaks)(chaos_run *run);     /* every now and then, instead of faults; or NULL */
  void (*at_the_end)(chaos_run *run); /* when faults have stopped; or NULL */
} chaos_control;

extern const chaos_control chaos_controls[];
const chaos_control *chaos_control_named(const char *name);

/* Fills the deck with all kinds of faults, or with one; false if there is no such kind. */
bool chaos_faults_deal(chaos_run *run, const char *only);
/* Begins, continues and ends faults. */
void chaos_faults_turn(chaos_run *run, redlock_time now_us);
bool chaos_faults_active(const chaos_run *run);

/* Returns the index of a kind among all kinds, or CHAOS_KINDS_MAX. */
unsigned chaos_kind_place(const char *name);

/* Returns true if this run is long enough for all that must occur to occur. */
bool chaos_need_applies(const chaos_run *run);
/*
 * Returns true if an event that must occur is missing; of a kind of fault, or of any if |kind| is
 * NULL.
 */
bool chaos_need_missing(const chaos_run *run, const char *kind);
/* A fault is over. */
void chaos_need_met(chaos_run *run, const char *kind, unsigned held);
/* Logs the events that must occur; and, at the end, those that have occurred. */
void chaos_need_log(const chaos_run *run);
void chaos_need_log_counts(chaos_run *run);

/* Not those that the system, or its C library, keeps for itself. */
bool chaos_can_be_caught(int number);

unsigned chaos_held(const chaos_run *run);
void chaos_worker_start(chaos_run *run, unsigned index);
void chaos_worker_kill(chaos_run *run, unsigned index);

#endif
