/*
 * Fault tests on real servers: the declarations of the supervisor, the workers and the proxy.
 *
 * SPDX-License-Identifier: MIT
 *
 * The supervisor (chaos_main.c) starts redis-servers, a proxy and worker processes, and injects
 * faults. Each process logs events, line by line; chaos_check.c judges the logs. The processes
 * share memory: settings, orders to the proxy and the workers, and for each resource the worker
 * that is inside.
 */
#ifndef CHAOS_H
#define CHAOS_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "redlock.h"

typedef unsigned long long ull; /* for printf() */

#define CHAOS_NODES 5
#define CHAOS_WORKERS_MAX 32
#define CHAOS_RESOURCES 6
#define CHAOS_SIGNALS 65
#define CHAOS_PREFIX "lock:"

/*
 * Options of all locks. A key lives for ttl + lock_delay at most. With lock_delay, wall clocks may
 * be set forward. Without it, nothing hides a lease that is a little too long. Both are tried.
 */
#define CHAOS_TTL_MIN_US (300 * REDLOCK_MILLISECONDS)
#define CHAOS_TTL_USUAL_US (800 * REDLOCK_MILLISECONDS)
#define CHAOS_TTL_MAX_US (2000 * REDLOCK_MILLISECONDS)
#define CHAOS_LOCK_DELAY_US (200 * REDLOCK_MILLISECONDS)
#define CHAOS_KEY_LIFE_US (CHAOS_TTL_MAX_US + CHAOS_LOCK_DELAY_US)
#define CHAOS_NODE_TIMEOUT_US (100 * REDLOCK_MILLISECONDS)

typedef enum chaos_phase {
  CHAOS_WARMING, /* no faults yet */
  CHAOS_FAULTS,
  CHAOS_SETTLING, /* faults have stopped, connections are being made again */
  CHAOS_SETTLED,
  CHAOS_ENDING /* workers end */
} chaos_phase;

typedef enum chaos_proxy_mode {
  CHAOS_PASS,
  CHAOS_DROP_REQUESTS, /* swallowed; the connection is broken when the fault ends */
  CHAOS_HALF_OPEN,     /* swallowed; the connection stays, and carries nothing from now on */
  CHAOS_DROP_REPLIES,  /* the server executes, the client hears nothing */
  CHAOS_DELAY
} chaos_proxy_mode;

typedef enum chaos_fork {
  CHAOS_FORK_NONE,
  CHAOS_FORK_EXIT, /* the child exits at once */
  CHAOS_FORK_CALL, /* the child uses the API */
  CHAOS_FORK_EXEC, /* the child executes another program, which counts its descriptors */
  CHAOS_FORKS
} chaos_fork;

/* A deliberate error of a worker: the negative controls. */
typedef enum chaos_misdeed {
  CHAOS_HONEST,
  CHAOS_HOLDS_TOO_LONG,    /* goes on after its deadline */
  CHAOS_FORGETS_RELEASE,   /* logs a release that it does not make */
  CHAOS_LEAVES_KEYS,       /* ends with locks held, ttl a minute */
  CHAOS_LOGS_SLOW_CALLS,   /* logs 5 seconds more than a call took */
  CHAOS_LEAKS_DESCRIPTORS, /* in the worker, not in the library */
  CHAOS_LEAKS_MEMORY,
  CHAOS_USES_OTHER_NODES, /* half of the workers */
  CHAOS_DIES,             /* one worker aborts */
  CHAOS_TAKES_ONE_OF_TWO, /* locks one resource, and believes that it holds two */
  CHAOS_KEEPS_DETACHED,   /* goes on with a lease that it has detached */
  CHAOS_LOGS_ATTACHED,    /* logs an attach that was refused */
  CHAOS_REUSES_TOKEN,
  CHAOS_COUNTS_TOO_MANY, /* goes on after the last release of a nested lock */
  CHAOS_LOGS_WRONG_HOLDER
} chaos_misdeed;

/* Other ways to use locks than one resource for one worker. */
typedef enum chaos_way {
  CHAOS_WAY_SEVERAL,
  CHAOS_WAY_DETACHED,
  CHAOS_WAY_ATTACHED,
  CHAOS_WAY_REFUSED, /* another worker has attached it */
  CHAOS_WAY_SUPPLIED,
  CHAOS_WAY_NESTED,
  CHAOS_WAY_INSPECTED,
  CHAOS_WAYS
} chaos_way;

/* A lease on its way from one worker to another; used twice. */
#define CHAOS_TEXTS 4
#define CHAOS_TEXT_MAX 512
typedef struct chaos_text {
  _Atomic int users; /* workers that may read it, 0: free, -1: being written */
  unsigned resource;
  char token[48]; /* the handed one */
  char text[CHAOS_TEXT_MAX];
} chaos_text;

/*
 * A worker's belief about one resource. It is valid if |number| is the same before and after
 * reading it.
 */
typedef struct chaos_belief {
  _Atomic uint64_t number; /* 0 while it is being written */
  _Atomic uint64_t from_us;
  _Atomic uint64_t until_us;
} chaos_belief;

typedef struct chaos_slot {
  _Atomic int pid; /* 0 when there is none */
  _Atomic unsigned held;
  _Atomic uint64_t deadline_us; /* the latest deadline of all its locks so far */
  _Atomic uint64_t numbers;     /* of beliefs; goes on with the slot's next worker */
  _Atomic int fork_wanted;
  _Atomic unsigned forks[CHAOS_FORKS];
  chaos_belief beliefs[CHAOS_RESOURCES];
} chaos_slot;

typedef struct chaos_gate {
  int port;        /* where workers connect; 0 = the node has no proxy, -1 = not known yet */
  int server_port; /* where the redis-server listens */
  _Atomic int mode;
  _Atomic uint64_t delay_us;
  _Atomic unsigned resets; /* counted up to have all connections reset */
  _Atomic uint64_t swallowed;
  _Atomic uint64_t delayed;
  _Atomic uint64_t broken; /* connections */
} chaos_gate;

/* Errors that nodes gave as their reason, as far as faults are to be recognised by them. */
typedef enum chaos_reason {
  CHAOS_REASON_OOM,
  CHAOS_REASON_LOADING,
  CHAOS_REASON_REFUSED,
  CHAOS_REASON_NOTHING, /* no reply in time, or the connection broke */
  CHAOS_REASON_OTHER,
  CHAOS_REASONS
} chaos_reason;

typedef struct chaos_shared {
  uint64_t seed;
  unsigned workers;
  unsigned veterans; /* the first ones, that are never killed */
  uint64_t pace_us;  /* mean time between two locks of a worker */
  int misdeed;
  bool longer_holds; /* for controls: more is held when something breaks */
  _Atomic uint64_t
      lock_delay_us; /* changes in calm moments, for locks that are taken from then on */
  _Atomic int phase;
  _Atomic bool quit;
  chaos_gate gates[CHAOS_NODES];
  /* Slot and belief number of the last worker that went in: protected only by the locks. */
  _Atomic uint64_t owners[CHAOS_RESOURCES];
  _Atomic uint64_t acquired[CHAOS_RESOURCES];
  _Atomic uint64_t reasons[CHAOS_REASONS];
  _Atomic uint64_t children[CHAOS_FORKS]; /* that have ended */
  _Atomic uint64_t ways[CHAOS_WAYS];
  chaos_text texts[CHAOS_TEXTS];
  _Atomic uint64_t signals[CHAOS_SIGNALS];
  _Atomic uint64_t own_signals; /* SIGPIPE that a worker got from itself */
  chaos_slot slots[CHAOS_WORKERS_MAX];
} chaos_shared;

/* Creates, or opens, the shared memory in a file. Ends the program when that fails. */
chaos_shared *chaos_share(const char *path, bool create);

/* Prints to stderr, and ends the program with status 1. */
void chaos_fail(const char *format, ...) __attribute__((noreturn, format(printf, 1, 2)));

/* Opens a log to append to; lines are written at once, whole, and survive a SIGKILL. */
int chaos_log_open(const char *directory, const char *name);
void chaos_log(int fd, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* Waits without doing anything; signals do not matter. */
void chaos_pause(redlock_duration duration_us);

extern const char *const chaos_phase_names[];
extern const char *const chaos_fork_names[];
extern const char *const chaos_reason_names[];

#endif
