/*
 * Scripted nodes and a fake clock over the core: the whole world of a unit test.
 *
 * SPDX-License-Identifier: MIT
 *
 * The test determines when time passes, when a node executes a command, and when its reply arrives,
 * in any order among the nodes. Nothing here allocates, but the core does.
 */
#ifndef FAKE_NODES_H
#define FAKE_NODES_H

#include "fake_store.h"
#include "rl_core.h"

#define FAKE_NODES_MAX 8
#define FAKE_QUEUE_MAX 32
#define FAKE_INPUT_MAX 16384
#define FAKE_START_US (1000 * REDLOCK_SECONDS)

typedef enum fake_policy {
  FAKE_ACCEPTS = 0, /* connections succeed at once, and the handshake is answered */
  FAKE_REFUSES,     /* connections are refused at once */
  FAKE_HANGS,       /* connections are neither made nor refused */
  FAKE_SILENT       /* connections succeed, but the handshake is left to the test */
} fake_policy;

typedef struct fake_node {
  fake_policy policy;
  bool connected;
  bool blocked;     /* the socket takes no bytes */
  fake_store store; /* a subscriber's is its node's */
  unsigned queued;
  size_t input_length;
  /* Totals since the beginning. */
  unsigned connections;
  unsigned sets;
  unsigned extends;
  unsigned releases;
  unsigned enqueues;
  unsigned dequeues;
  bool mark; /* the test's own */
  /* The rest is not zeroed for each world: that took a quarter of a test's time. */
  fake_command queue[FAKE_QUEUE_MAX]; /* received, not answered yet; oldest first */
  char input[FAKE_INPUT_MAX];
} fake_node;

typedef struct fake_world {
  struct fake_world *next; /* of those that end with the test */
  rl_core core;
  redlock_time now_us;
  uint64_t draws;  /* of entropy; each attempt gets another token */
  uint64_t jitter; /* the random number of the next attempts */
  bool no_entropy;
  bool keeps_locks;    /* fake_world_close() does not free them */
  bool broken;         /* a node received a command that the library does not have */
  bool holds_messages; /* messages arrive only with fake_deliver_message() */
  unsigned count;
  fake_node
      nodes[2 * FAKE_NODES_MAX]; /* by connection: |count| nodes, and then their subscribers */
} fake_world;

/* Opens a core with |count| nodes that accept. Returns REDLOCK_OK or an error. */
int fake_world_open(fake_world *world, unsigned count, const char *prefix);

/* The same with a guard. |max_ttl_us| may be 0. The nodes are new: they have no record. */
int fake_world_open_guarded(fake_world *world, unsigned count, const char *prefix,
                            redlock_duration max_ttl_us);

/* The same with nodes that notify waiters. */
int fake_world_open_notifying(fake_world *world, unsigned count);

/*
 * Lets the core try native commands. The nodes know |native|, an rl_native, and SET IFEQ; with 0
 * none. The test must call this before the first turn.
 */
void fake_enable_native(fake_world *world, unsigned native);

/* Frees all locks and the core. */
void fake_world_close(fake_world *world);

/*
 * The same in memory of its own, until the end of the test, which fails if a command was malformed.
 */
fake_world *fake_world_new(unsigned count);
fake_world *fake_world_new_notifying(unsigned count);
fake_world *fake_world_new_guarded(unsigned count, redlock_duration max_ttl_us);

/* Ends such a world earlier. Returns true if every command was well formed. */
bool fake_world_end(fake_world *world);

/* One turn of a driver: timers, connections, launching, sending. No node answers. */
void fake_turn(fake_world *world);

/* Time passes, and then a turn. */
void fake_pass(fake_world *world, redlock_duration duration_us);

/* Takes the oldest command of the node off its queue; its verb is FAKE_OTHER when there is none. */
fake_command fake_take(fake_world *world, unsigned node);

/* The node executes its oldest command; its reply is written to |reply|, and not delivered. */
fake_command fake_execute(fake_world *world, unsigned node, char reply[FAKE_REPLY_MAX]);

/* These bytes arrive from the node, and then a turn. */
void fake_deliver(fake_world *world, unsigned node, const char *reply);

/*
 * Takes the oldest command off, and |reply| arrives. With CLIENT SETNAME it takes and answers
 * CLIENT SETINFO.
 */
fake_command fake_reply(fake_world *world, unsigned node, const char *reply);

/* The node executes its oldest command and the reply arrives. */
fake_command fake_answer(fake_world *world, unsigned node);

/*
 * The same for the tests of nodes that refused the attempt of |lock| (rl_twin.h). There must be
 * some.
 */
void fake_answer_tests(fake_world *world, const rl_lock *lock);

/*
 * The oldest message of the node arrives at its subscriber, and then a turn. Returns true if there
 * was one.
 */
bool fake_deliver_message(fake_world *world, unsigned node);

/* The connection breaks; unexecuted commands are gone. Then a turn. */
void fake_break(fake_world *world, unsigned node, const char *reason);

/* All nodes answer everything until nothing is left to do. Time does not pass. */
void fake_settle(fake_world *world);

/* Returns the verb of the oldest command of the node. */
fake_verb fake_next(const fake_world *world, unsigned node);

/* A lock with options that differ from the defaults in |change|, which may be NULL. */
rl_lock *fake_lock(fake_world *world, const char *resource, const redlock_options *options);

/* The same for a resource of any bytes. */
rl_lock *fake_lock_of(fake_world *world, const void *resource, size_t length,
                      const redlock_options *options);

/* The same for several resources. */
rl_lock *fake_lock_many(fake_world *world, const char *const *resources, size_t count,
                        const redlock_options *options);

/* The default options with one attempt only. */
redlock_options fake_once(void);

/* Starts an acquire; all nodes answer. Returns the result. */
int fake_acquire(fake_world *world, rl_lock *lock);

/* On how many nodes the key holds |token|. */
unsigned fake_holders(fake_world *world, const char *key, const char *token);

/* On how many nodes the key exists. */
unsigned fake_keys(fake_world *world, const char *key);

#endif
