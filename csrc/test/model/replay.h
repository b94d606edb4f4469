/*
 * Replaying traces of the model in the real core.
 *
 * SPDX-License-Identifier: MIT
 *
 * Each client of the model is a core with one lock, on a clock of its own. Each node is a simulated
 * store that parses the bytes of the cores. A step of the model becomes calls of the core and
 * commands that nodes execute, and after it the two states must be equal. docs/model.md has the
 * table.
 *
 * Time. A tick is 100 s. A client's clock may be up to a quarter of a tick past it, because a core
 * needs a moment between two attempts and between two connections; a node's clock never is.
 * drift_factor is such that a lease ends half a tick earlier than the model's: then the two agree
 * exactly, at every instant that occurs, whether it is valid.
 *
 * Order. A connection delivers commands in the order of sending. Where a trace has another order,
 * the connection breaks just before the later request is sent, and the node still reads the bytes
 * on the broken one, when the trace wants it. The trace is known in advance (replay_plan.c).
 *
 * Numbers. A node issues the number of the trace, on a scale of its own: its clock is set, for that
 * command, so that the core's proposal leads to this number.
 *
 *   replay_plan.c      the step at which the trace executes each request
 *   replay_world.c     cores, clocks, nodes, connections
 *   replay_step.c      one step of the model
 *   replay_compare.c   the two states, side by side
 *   replay_run.c       a whole trace
 *   replay_main.c      random walks, counter-examples, controls
 */
#ifndef REPLAY_H
#define REPLAY_H

#include "fake_store.h"
#include "model.h"
#include "rl_core.h"

#define REPLAY_TICK_US (100 * REDLOCK_SECONDS)
#define REPLAY_FIRST_TICK 1000
#define REPLAY_REQUESTS_MAX 128
#define REPLAY_DIFFERENCE_MAX 240
#define REPLAY_NEVER SIZE_MAX
#define REPLAY_NUMBERS (UINT64_C(1) << 45) /* the model's number 0 */

typedef enum replay_kind {
  REPLAY_SET = 0,
  REPLAY_EXTEND,
  REPLAY_HEAL,
  REPLAY_RELEASE,
  REPLAY_CONFIRM,
  REPLAY_KINDS
} replay_kind;

#define REPLAY_TOKENS_MAX (2 * MODEL_ATTEMPTS_MAX)

#define REPLAY_ORDINALS 3 /* of extends, and of heals, of an attempt */

/* At which step of the trace each request is executed, or REPLAY_NEVER. */
typedef struct replay_plan {
  size_t at[MODEL_ATTEMPTS_MAX][MODEL_NODES_MAX][REPLAY_KINDS][REPLAY_ORDINALS];
  bool joins[MODEL_ATTEMPTS_MAX][MODEL_NODES_MAX]; /* the SET waits for its connection until then */
} replay_plan;

typedef enum replay_progress {
  REPLAY_SENT = 0,
  REPLAY_EXECUTED,
  REPLAY_DELIVERED,
  REPLAY_GONE /* with the node that was to read it */
} replay_progress;

typedef struct replay_request {
  replay_kind kind;
  unsigned attempt;
  unsigned ordinal;
  unsigned connection; /* the how manieth of this client to this node */
  replay_progress progress;
  redlock_time sent_us; /* by its client's clock */
  fake_command command;
  char reply[FAKE_REPLY_MAX];
} replay_request;

/* Everything between a client and a node. */
typedef struct replay_link {
  unsigned connection; /* the present one */
  bool dead;           /* the node has closed it, and the client does not know yet */
  bool hanging;        /* it is being made, for as long as the replay likes */
  bool asking;         /* it is made anew for the guard to ask the node */
  unsigned count;
  replay_request requests[REPLAY_REQUESTS_MAX];
} replay_link;

typedef struct replay_client {
  rl_core core;
  rl_lock *lock;
  uint64_t ticks;            /* of its clock */
  redlock_duration past_us;  /* how far its clock is past the tick */
  unsigned nodes;            /* how many it knows */
  unsigned attempt;          /* the current one, or the last one */
  uint64_t gone_tenths;      /* tenths of ticks: when its keys have certainly expired */
  const rl_attempt *ran_out; /* a lease that has run out: it must not come back */
  const rl_attempt *leased;  /* the lease whose fencing token is known */
  uint64_t floor;            /* the greatest token that was issued when the attempt began */
  bool learned;              /* of another record, amid a round: too soon for the model */
  replay_link links[MODEL_NODES_MAX];
} replay_client;

/* Each must occur in the walks: a walk without it has not tested it. */
#define REPLAY_EVENT_LIST(X)                                                                       \
  X(GRANTED, "granted")                                                                            \
  X(TOO_LATE, "majority too late")                                                                 \
  X(REFUSED, "refused")                                                                            \
  X(TIMED_OUT, "timed out")                                                                        \
  X(CANCELLED, "cancelled")                                                                        \
  X(BROKEN, "failed by broken connections")                                                        \
  X(RETRIED, "retried within the acquire")                                                         \
  X(JOINED, "nodes that came up during the round")                                                 \
  X(EXTENDED, "extended")                                                                          \
  X(NOT_EXTENDED, "not extended")                                                                  \
  X(LOST, "lost")                                                                                  \
  X(HEALED, "heals executed")                                                                      \
  X(RELEASED, "released")                                                                          \
  X(BREAKS, "connections broken")                                                                  \
  X(OLD_CONNECTION, "requests executed from a broken connection")                                  \
  X(REPEATED_RELEASE, "repeated releases executed")                                                \
  X(RESTARTS, "restarts without keys")                                                             \
  X(FENCED, "granted with a fencing token")                                                        \
  X(SECOND_ROUND, "confirmations of a fencing token")                                              \
  X(UNCONFIRMED, "failed unconfirmed")                                                             \
  X(GUARDED, "granted with a guard")                                                               \
  X(QUARANTINED, "nodes that were not to vote")                                                    \
  X(DECLINED, "nodes with another record than the SET had")                                        \
  X(FLUSHED, "flushed nodes")

typedef enum replay_event {
#define REPLAY_EVENT_NAME(name, text) REPLAY_EVENT_##name,
  REPLAY_EVENT_LIST(REPLAY_EVENT_NAME)
#undef REPLAY_EVENT_NAME
      REPLAY_EVENTS
} replay_event;

typedef struct replay {
  const model_config *config;
  const replay_plan *plan;
  size_t at; /* the step being replayed */

  uint64_t ticks; /* true time, and the nodes' */
  fake_store stores[MODEL_NODES_MAX];
  uint64_t quarantined_until[MODEL_NODES_MAX];
  replay_client clients[MODEL_CLIENTS];
  uint64_t events[REPLAY_EVENTS];
  uint64_t tokens[REPLAY_TOKENS_MAX]; /* fencing tokens that were issued */
  unsigned token_count;
  unsigned number;     /* the number that the next SET is to issue */
  bool behind_release; /* the last request that could not be executed is behind a release */
  bool cut;            /* the core has sent releases again in another order than the model */
  bool differs;
  char difference[REPLAY_DIFFERENCE_MAX];
} replay;

/* --------------------------------------------------------------------------------------- plan */

void replay_plan_make(const model_config *config, const model_step *steps, size_t count,
                      replay_plan *plan);

/* -------------------------------------------------------------------------------------- world */

void replay_open(replay *run, const model_config *config, const replay_plan *plan);
void replay_close(replay *run);

redlock_time replay_now(const replay_client *client);
redlock_time replay_node_now(const replay *run);
redlock_options replay_options(const replay *run, unsigned retries);
char replay_letter(const replay *run, const replay_client *client);

/* Records the first difference of core and model. */
void replay_differ(replay *run, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* Breaks the connection; it is made anew by replay_settle(). */
void replay_break(replay *run, replay_client *client, unsigned node);

/* Makes a connection, which hangs until replay_join(). */
void replay_hang(replay *run, replay_client *client, unsigned node);

/* Makes missing connections, and delivers the core's output to the nodes. */
void replay_settle(replay *run, replay_client *client);

/* Lets the connection that hangs come up. */
void replay_join(replay *run, replay_client *client, unsigned node);

/* Gives the client's clock a moment, so that it is at least |until_us|. */
void replay_wait(replay *run, replay_client *client, redlock_time until_us);

/*
 * Breaks the connections on which this kind of request of this attempt would come too late, because
 * something that was sent before it is executed after it.
 */
void replay_break_for(replay *run, replay_client *client, replay_kind kind, unsigned attempt,
                      unsigned ordinal);

/* Returns true if the connection to one node must break for that. */
bool replay_must_break(const replay *run, const replay_client *client, unsigned node,
                       replay_kind kind, unsigned attempt, unsigned ordinal);

/* Returns true if the node has granted, or confirmed, in its answer. */
bool replay_grants(const replay_request *request);

/* Returns true if the client knows the node's record and run_id. */
bool replay_knows_record(const replay *run, const replay_client *client, unsigned node);

/* Returns true if the node has answered that it has another record. */
bool replay_declines(const replay_request *request);

/* Returns true if the core waits for the node's confirmation of a fencing token. */
bool replay_asked(const replay_client *client, unsigned node);

/* The node executes a request. Returns it, or NULL when there is none that it could execute now. */
replay_request *replay_execute(replay *run, replay_client *client, unsigned node, replay_kind kind,
                               unsigned attempt, unsigned ordinal, bool twice);

/* Its reply, and those before it on the connection, reach the client. False if they cannot. */
bool replay_deliver(replay_client *client, unsigned node, const replay_request *request);

/* The request that was sent for it, in this state; NULL if there is none. */
replay_request *replay_find(replay_client *client, unsigned node, replay_kind kind,
                            unsigned attempt, replay_progress progress);

/* -------------------------------------------------------------------------- steps, comparison */

/* |before| is the model's state in which it takes the step. */
void replay_step(replay *run, const model_state *before, const model_step *step);
void replay_compare(replay *run, const model_step *step, const model_state *state);

/* Returns true if the core of this client believes that it holds. */
bool replay_holds(const replay *run, const replay_client *client);

/* --------------------------------------------------------------------------------- whole runs */

typedef struct replay_result {
  bool differs;
  size_t steps; /* replayed */
  size_t step;  /* at which they differ */
  char difference[REPLAY_DIFFERENCE_MAX];
  bool cut;         /* ends here: the two send releases again in another order */
  bool two_holders; /* both cores believed to hold, at the end of some step */
  bool revived;     /* a core's lease came back to life */
  bool repeated;    /* a fencing token was issued that is not greater than those before */
  uint64_t events[REPLAY_EVENTS];
} replay_result;

/* Replays a trace to the first difference, or with |strict| off to its end. */
void replay_trace(const model_config *config, const model_trace *trace, bool strict,
                  replay_result *result);

#endif
