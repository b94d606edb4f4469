/*
 * The simulator: several clients, each with the real core, simulated nodes, network and clocks.
 *
 * SPDX-License-Identifier: MIT
 *
 * One seed decides everything. Time is virtual; |now_us| is true time, which no client and no node
 * knows. docs/testing.md describes its use.
 *
 *   sim_config.c       parameters of a run, drawn from its seed
 *   sim_queue.c        the events to come
 *   sim_network.c      connections: delays, pieces, breaks, partitions
 *   sim_node.c         a Redis server: its connections, errors and restarts
 *   sim_script.c       its commands and scripts
 *   sim_watch.c        its scripts of fencing tokens and of a guard
 *   sim_lineage.c      its lineage record
 *   sim_key.c          its keys
 *   sim_calls.c        its wait queues, and the scripts for them
 *   sim_publish.c      its subscribers, and the messages to them
 *   sim_client.c       the driver's loop around the core, with pauses between any two calls
 *   sim_client_life.c  the start and the end of a client
 *   sim_tap.c          commands of the core and replies of the nodes, recorded for the checkers
 *   sim_application.c  the use of locks by the clients
 *   sim_result.c       the results of its operations
 *   sim_hold.c         releases that keep their keys
 *   sim_handover.c     leases that are handed over from client to client
 *   sim_guard.c        the guard: first records, nodes that lose data, wrong clocks
 *   sim_waiting.c      faults of notifications; long waits
 *   sim_mix.c          waiters of all kinds, without faults
 *   sim_operator.c     clients that inspect nodes, and delete keys by force
 *   sim_fault.c        the other faults
 *   sim_run.c          the phases of a run
 *   check_*.c          the checkers, see check.h
 *   sim_trace.c        the timeline and the picture
 *   sim_main.c         the command line
 */
#ifndef SIM_H
#define SIM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "resp.h"
#include "rl_core.h"
#include "sim_clock.h"
#include "sim_config.h"
#include "sim_counters.h"
#include "sim_handover.h"
#include "sim_leader.h"
#include "sim_mix.h"
#include "sim_network.h"
#include "sim_random.h"

#define SIM_NODES_MAX 7
#define SIM_SOCKETS_MAX                                                                            \
  (2 * SIM_NODES_MAX)   /* of a client: one for each node, and one for its subscription */
#define SIM_LOCKS_MAX 3 /* of one client */
#define SIM_RESOURCES_MAX 2
#define SIM_DATABASES_MAX 2
#define SIM_CONNECTIONS_MAX 1024
#define SIM_DATABASE 3       /* the one that is selected, in runs that select one */
#define SIM_CLOSE_PPM 2500   /* of clocks that keep close */
#define SIM_CLOSE_US 1900000 /* they are so near to the true time, with all their steps */
#define SIM_SHA1_LENGTH 40
#define SIM_NAMINGS_MAX 64 /* a power of two */
#define SIM_SCRIPTS_MAX 16
#define SIM_WATCHES_MAX 8   /* scripts of fencing tokens and of a guard */
#define SIM_NAMED_MAX 6     /* of them, for one process alone, that a node knows */
#define SIM_RECORDS_MAX 2   /* under different keys */
#define SIM_RECORD_MAX 512  /* bytes */
#define SIM_ENTRY_LENGTH 24 /* and 8 digits of a ticket */
#define SIM_WAITERS_MAX 48  /* in a queue; a real one takes 1024 */
#define SIM_ENQUEUED_MAX 64 /* tickets of a client in the queues of a node */
#define SIM_NO_CONNECTION (-1)
#define SIM_NO_TOKEN UINT32_MAX
#define SIM_FOREIGN_TOKEN (UINT32_MAX - 1)

typedef struct sim sim;
typedef unsigned long long ull; /* for printf() */

/* ---- nodes (sim_node.c) ---- */

typedef struct sim_key {
  bool used;
  bool foreign_type;
  uint32_t token;      /* SIM_FOREIGN_TOKEN: another program's */
  uint64_t expire_ms;  /* on the node's wall clock */
  uint64_t written_us; /* true time */
  uint8_t value_length;
  char value[RL_LABELLED_MAX + RL_LABEL_PERMITS_MAX];
} sim_key;

typedef struct sim_record {
  bool used;
  bool unsealed; /* it was not made in the memory where it is */
  uint8_t key_length;
  uint16_t length;
  int64_t since_us; /* true time: since when it has been there, for clients */
  char key[64];
  char text[SIM_RECORD_MAX];
  char sha1[SIM_SHA1_LENGTH + 1]; /* of the text, as its seal is named */
} sim_record;

/* The waiters for a resource on a node, in the order of their arrival. */
typedef struct sim_waiters {
  uint8_t count;
  uint64_t expire_ms;         /* on the node's wall clock; 0: never */
  uint64_t sign_ms;           /* likewise: end of the waiters flag; 0: there is none */
  uint64_t reserved_until_ms; /* likewise: for so long is the free key reserved */
  char reserved_for[SIM_ENTRY_LENGTH];
  char entries[SIM_WAITERS_MAX][SIM_ENTRY_LENGTH];
} sim_waiters;

/* The data of a node, which it can lose. */
typedef struct sim_data {
  sim_key keys[SIM_DATABASES_MAX][SIM_RESOURCES_MAX];
  uint64_t counters[SIM_DATABASES_MAX][SIM_RESOURCES_MAX]; /* of fencing tokens; 0: none */
  sim_record records[SIM_DATABASES_MAX][SIM_RECORDS_MAX];
  sim_waiters waiters[SIM_DATABASES_MAX][SIM_RESOURCES_MAX];
} sim_data;

/* A script that is known under a name of its own. */
typedef struct sim_named {
  char name[41];
  uint8_t watch;
} sim_named;

/*
 * SHA-1 of the text of a script with the SHA-1 of a record behind it: a cache, because SHA-1 is
 * slow.
 */
typedef struct sim_naming {
  bool used;
  uint8_t watch;
  char record_sha1[40];
  char name[41];
} sim_naming;

typedef enum sim_node_error {
  SIM_NODE_ERROR_NONE,
  SIM_NODE_ERROR_OOM,
  SIM_NODE_ERROR_READONLY,
  SIM_NODE_ERROR_BUSY,
  SIM_NODE_ERROR_MISCONF,
  SIM_NODE_ERROR_NOREPLICAS,
  SIM_NODE_ERROR_MASTERDOWN,
  SIM_NODE_ERROR_NOPERM,
  SIM_NODE_ERROR_NOPERM_SCRIPT,
  SIM_NODE_ERROR_UNKNOWN_SETNAME,
  SIM_NODE_ERROR_COUNT
} sim_node_error;

/* Rights that a node denies its clients. */
typedef enum sim_deaf { SIM_DEAF_SUBSCRIBE = 1, SIM_DEAF_PUBLISH = 2, SIM_DEAF_QUEUE = 4 } sim_deaf;

typedef struct sim_node {
  bool up;
  bool restart_empty;
  bool wrong_clock; /* its clock is far from the true time, and is to be set right */
  bool was_wrong;   /* in this run */
  uint64_t lost_us; /* true time: when it last lost something, or was another process; 0: never */
  uint64_t back_us; /* down until */
  uint64_t loading_until_us;
  uint64_t stopped_until_us;
  uint64_t slow_until_us, service_us;
  uint64_t error_until_us;
  sim_node_error error;
  unsigned odd_replies;  /* to come */
  unsigned false_errors; /* executed, but answered with an error */
  unsigned swallowed;    /* replies to lose: only as a breach */
  uint32_t epoch;        /* which process it is */
  uint32_t scripts;      /* loaded */
  uint32_t watches;      /* likewise */
  uint32_t calling;      /* likewise: those of notifications */
  uint8_t native;        /* the native command that it knows, an rl_native; 0: none */
  bool lacks_scripts, lacks_ifeq;
  unsigned deaf; /* a set of sim_deaf */
  uint64_t deaf_until_us;
  uint32_t incarnation;
  char run_id[58]; /* and behind a "-" its replication history */
  unsigned named_count;
  sim_named named[SIM_NAMED_MAX];
  uint64_t stepped_us;   /* when the wall clock was stepped forward last */
  uint64_t back_step_us; /* all backward steps together */
  sim_clock clock;
  sim_data data;
  sim_data copy; /* a replica's, behind */
} sim_node;

/* ---- clients (sim_client.c, sim_tap.c) ---- */

/* A command that was sent and not answered yet. */
typedef struct sim_sent {
  uint64_t at_us; /* client's clock */
  uint64_t ttl_us;
  uint32_t token;
  uint32_t round;
  uint8_t kind;
  bool heal;
  bool leased;    /* SET: for a lease that is there */
  bool backfills; /* the node could not be asked when the lock was taken */
  bool by_text;
  bool forces;     /* a release by force */
  bool tests;      /* a release that finds out that two nodes are one server */
  uint8_t lock;    /* of which it is the question or the force */
  bool guarded;    /* TAKE: with a record */
  bool own;        /* TAKE: a key of the token is no obstacle */
  uint64_t fence;  /* 0: none */
  uint32_t ticket; /* ENQUEUE, DEQUEUE, and a release that dequeues */
  bool leaves;
  bool native; /* no script: compare-and-delete, SET IFEQ */
  bool aside;  /* goes with a release, and is none: a try, or the notification behind a flag */
} sim_sent;

/* A ticket that was sent to a queue of a node, and not dequeued yet. */
typedef struct sim_enqueued {
  uint32_t ticket;
  uint8_t resource;
} sim_enqueued;

typedef struct sim_socket {
  int connection;
  bool open;                      /* the core knows that it is */
  bool connected, refused, reset; /* to be reported to the core */
  size_t tapped;                  /* bytes of the core's output that were recorded */
  uint64_t heard_us; /* client's clock: the last byte, or the first command without an answer */
  uint64_t begun_us; /* client's clock: when it was begun */
  bool up;           /* the handshake is over */
  bool odd;          /* the node broke the protocol, or refused the handshake */
  bool scriptless;   /* it had refused scripts before the last call of the core */
  uint8_t tested;    /* tests for twins that were sent */
  sim_sent *sent;    /* a ring; its capacity is 0 or a power of two */
  size_t sent_head, sent_count, sent_capacity;
  sim_enqueued enqueued[SIM_ENQUEUED_MAX];
  unsigned enqueued_count;
} sim_socket;

typedef enum sim_application_state {
  SIM_APPLICATION_IDLE,
  SIM_APPLICATION_BUSY,
  SIM_APPLICATION_HOLD,
  SIM_APPLICATION_DONE
} sim_application_state;

typedef struct sim_lock {
  rl_lock *lock;     /* NULL in a client that is gone */
  unsigned resource; /* of its lease, while it has one */
  bool both;         /* resources, this one first */
  unsigned named;    /* the same of the lock itself */
  bool named_both;
  unsigned owner;        /* 0: none */
  unsigned inside;       /* acquires that count, and are to be released */
  uint32_t inside_token; /* token of the lease that they count on */
  bool counting_down;    /* the release in flight is not the last */
  bool forgotten_down;   /* nor was the last fire-and-forget release */
  bool wants_notice;     /* of its loss, whether it got an auto-extended lease or not */
  rl_options taken;      /* of the acquire that took the lease, while it has it */
  sim_application_state state;
  uint64_t due_us; /* when the application does something */
  unsigned extends_left;
  bool failed_before; /* the last extend failed */
  bool repeated;

  /* The operation in flight. */
  rl_operation operation;
  bool sent;
  uint32_t drawn;           /* token for the attempt that is being sent */
  uint64_t waiting_us;      /* client's clock: since when it is paced; 0: it is not */
  uint64_t waited_us;       /* time of all pacing together */
  uint64_t pacing_due_us;   /* end of the pacing, as read last; or 0 */
  uint64_t begun_true_us;   /* true time */
  unsigned overtaken;       /* leases of acquires that began later, while this one has waited */
  uint64_t attempts_before; /* of other clients for its resource, when it was begun */
  uint64_t queued_call;     /* call of the core after which it was first in a wait list; 0: none */
  uint64_t slept_us; /* client's clock: since when it sleeps between two attempts; 0: it does not */
  uint64_t slept_paused_us;
  unsigned slept_rows;     /* maximum of the rows of eight waiters before it in the queues, then */
  uint64_t slept_needs_us; /* round trip time of a majority, then */
  uint64_t slept_since_us; /* start of its wait or of its last poll, then */
  uint32_t slept_round;    /* of the lock, then */
  bool enqueued;           /* in a queue, in the operation in flight */
  rl_options options;      /* of the operation */
  rl_options acquired;     /* those of the last acquire: extend and release go by them */
  redlock_duration ttl_us;
  uint64_t begun_us;  /* client's clock */
  uint64_t paused_us; /* of the client, when it began */
  unsigned attempts;  /* tokens drawn for it */
  uint32_t released;  /* the token that it releases */

  /* The lease, as seen after the last call of the core. */
  uint32_t lease; /* token, or SIM_NO_TOKEN */
  uint32_t attempt;
  uint64_t deadline_us; /* client's clock */
  uint64_t ends_us;     /* true time */
  uint64_t taken_us;    /* client's clock: the start of the round that took it */
  bool moved;           /* which was that of another lock of its owner's */
  bool over_seen;
  bool calm; /* its taking was begun after the faults had stopped, with time enough to extend it */
  int reported; /* reported reason of its loss; REDLOCK_OK: none */
  sim_term term;

  bool attaches;           /* the acquire takes over a detached lease */
  uint64_t detached_us;    /* true time: when that was */
  uint64_t handed_fence;   /* which it is to have */
  uint64_t handed_hold_us; /* true time: until when a release keeps its keys; 0: none */
  uint64_t handed_rest_us; /* for how long a release could have kept them when it was detached */

  /* The inspection or the force in flight, or the last, as sim_tap.c has seen it. */
  uint32_t ask;             /* which one of the run; 0: none */
  uint32_t asked, answered; /* nodes */
  uint32_t deleted;         /* nodes that had a key for the force to delete */
  sim_seen seen[SIM_NODES_MAX];
  uint32_t forced; /* token to be deleted by force, or SIM_NO_TOKEN: any */
  uint32_t found; /* token that the inspection has found, for a release by force; or SIM_NO_TOKEN */
  char found_text[RL_LABELLED_MAX + RL_LABEL_PERMITS_MAX];
  size_t found_length;
} sim_lock;

/* Account of the acts of a client, for check_stats.c. */
typedef struct sim_account {
  uint64_t calls[RL_STATS_KINDS]; /* operations that the application has asked for */
  uint64_t ended[RL_STATS_KINDS]; /* of them, those whose result it has read */
  uint64_t attempts; /* tokens that were drawn, and that an attempt took for longer than a call */
  uint64_t draws;    /* entropy for attempts that might begin */
  uint64_t leases;   /* that have begun */
  uint64_t denied;   /* that nodes have denied */
  uint64_t expired;  /* that were given up at or after their deadline */
  uint64_t replies[SIM_NODES_MAX]; /* to commands of locks */
  uint64_t granted[SIM_NODES_MAX]; /* of them, those that may be granted votes */
  uint64_t heals[SIM_NODES_MAX];
  uint64_t backfills[SIM_NODES_MAX]; /* or heals of keys that the node was never sent */
  bool odd;                          /* a node has broken the protocol, or refused a handshake */
} sim_account;

typedef enum sim_step {
  SIM_STEP_INPUT,
  SIM_STEP_ADVANCE,
  SIM_STEP_CONNECTION,
  SIM_STEP_APPLICATION,
  SIM_STEP_SEND,
  SIM_STEP_OUTPUT,
  SIM_STEP_ENDED,
  SIM_STEP_WAIT
} sim_step;

typedef struct sim_client {
  bool alive;
  bool closing;
  rl_core core;
  sim_clock clock;
  unsigned index;
  unsigned base, nodes; /* of its list: differ only as a breach */
  int64_t ppm;          /* of its clock, kept while that is frozen: only as a breach */
  sim_lock locks[SIM_LOCKS_MAX];
  sim_socket sockets[SIM_SOCKETS_MAX];
  uint64_t dies_us; /* true time: when it is killed because it was notified; or SIM_NEVER */
  sim_step step;
  unsigned cursor;
  bool in_turn;
  bool has_reading;
  bool asleep; /* between two blocking calls: no event wakes it */
  bool again;
  uint64_t reading_us;        /* of its clock, for the next call of the core */
  uint64_t reading_paused_us; /* how long it had been paused by then */
  size_t reading_bytes;       /* that had come by then */
  uint64_t advance_us;        /* the reading that rl_core_advance() got in this turn */
  uint64_t paused_until_us;
  uint64_t paused_us;   /* all pauses together, by its clock */
  uint64_t close_by_us; /* true time */
  uint64_t wake_us;
  uint32_t generation; /* of its SIM_EVENT_CLIENT */
  sim_account account;
} sim_client;

typedef struct sim_token {
  uint8_t client, lock, resource;
  bool both;        /* resources */
  bool live;        /* it may still be on a node, and its client is there to release it */
  bool over;        /* the attempt has failed, or the lease has ended: nothing brings it back */
  uint64_t over_us; /* client's clock: when that was seen */
  bool granted;     /* it has been a lease */
  bool releasing;   /* a release has been sent somewhere */
  bool abandoned;   /* its client is gone: no client will release it */
  bool handed;      /* it was detached: another client may replace or release it */
  bool supplied; /* by the caller: released only where it was certainly set, if it was no lease */
  uint64_t releasing_call; /* number of the call of the core that sent it */
  uint32_t round;          /* of the extend that is counted */
  uint32_t asked_round;    /* of the extend that was sent last, and the nodes it went to */
  uint32_t asked;
  uint32_t sent;        /* nodes to which a SET went */
  uint32_t queued;      /* nodes for which an unseen one may have been queued */
  uint32_t healed;      /* nodes to which a second SET went */
  uint32_t votes;       /* nodes whose grant has arrived */
  uint32_t had;         /* nodes that have answered that they set the key */
  uint32_t set_failed;  /* nodes that have answered a SET with an error, and may have set the key */
  uint32_t set_refused; /* nodes that have answered SETs, each time that they did not set the key */
  uint32_t refused_now; /* those of them that answered so in call |refused_call| of the core */
  uint64_t refused_call;
  uint32_t unknown;  /* nodes that did not know the script of the last SET */
  uint32_t set_lost; /* nodes to which a SET went on a connection that has ended */
  uint32_t extend_votes;
  uint32_t release_ever; /* nodes to which a release went */
  uint32_t release_sent; /* on the connection of now */
  uint32_t release_answered;
  uint32_t release_forbidden;
  uint32_t release_certain; /* nodes that answered that they do not have the key (any more) */
  uint32_t release_refused;
  uint32_t released_there; /* nodes that have executed a release */
  uint32_t orphaned;       /* nodes that have executed a SET after that */
  uint32_t forced;         /* nodes whose key was deleted by force, and not set again */
  uint32_t forced_ever;    /* nodes whose key was deleted by force */
  uint32_t forgotten; /* nodes that have lost the key before its time, and were not sent it again */
  uint64_t life_us;   /* the longest that a key of it lives, and some */
  uint64_t expired_us[SIM_NODES_MAX]; /* client's clock: when its key there has certainly expired */
  uint64_t due_ms[SIM_NODES_MAX];     /* when its key was to expire where it is forgotten */
  uint32_t gone;                      /* nodes that had it no more when they were to confirm */
  uint64_t begun_us;                  /* true time: when the first SET of it was sent */
  uint64_t fence;                     /* its fencing token; 0: none */
  uint32_t ripe;                      /* nodes that were not in quarantine when they granted it */
  uint64_t raised[SIM_NODES_MAX];     /* new values of the counters of the nodes that granted it */
  uint64_t confirmed[SIM_NODES_MAX];  /* tokens that they have confirmed in a second round */
  uint32_t confirms;                  /* nodes that were asked to */
  uint32_t ticket;                    /* a lease's, which its release dequeues ... */
  uint32_t enqueued;                  /* ... on these nodes */
  uint64_t hold_end_us;               /* true time: no node may free it sooner; 0: none */
  uint64_t keep_until_us;             /* client's clock: for so long may a release keep it */
  uint32_t kept;                      /* nodes that have executed a release which keeps it */
  bool hold_over;                     /* its acquire was reported as failed */
} sim_token;

/* ---- the picture (sim_trace.c) ---- */

typedef struct sim_trace sim_trace;

/* ---- all of it ---- */

typedef enum sim_phase {
  SIM_PHASE_SAFETY,
  SIM_PHASE_LIVENESS,
  SIM_PHASE_MIX, /* only in runs with a mix */
  SIM_PHASE_SETTLE,
  SIM_PHASE_END
} sim_phase;

/* A release that has promised to keep its keys. */
typedef struct sim_kept {
  uint32_t token;
  uint32_t nodes;    /* that keep it, without those that deleted it by force */
  unsigned majority; /* of the client's nodes */
} sim_kept;

struct sim {
  uint64_t seed;
  uint64_t now_us;
  uint64_t hash;
  uint64_t event_count;
  sim_phase phase;
  uint64_t phase_us; /* when it began */
  uint64_t phase_end_us;
  bool failed;
  const char *checker;
  const char *only; /* the one checker that is listened to, or NULL */
  char failure[512];
  sim_breach breach;
  bool breached; /* the assumption has been broken */
  sim_config config;
  sim_random random_network, random_node, random_application, random_fault, random_entropy,
      random_client, random_operator, random_watch, random_calls, random_term, random_hold,
      random_mix;
  sim_queue queue;
  sim_connection connections[SIM_CONNECTIONS_MAX];
  sim_link links[SIM_CLIENTS_MAX][SIM_NODES_MAX];
  sim_node nodes[SIM_NODES_MAX];
  sim_client clients[SIM_CLIENTS_MAX];
  sim_handover handovers[SIM_HANDOVERS_MAX];
  uint64_t taken_us[SIM_RESOURCES_MAX];    /* true time: when a lease of it began last */
  uint64_t term_fences[SIM_RESOURCES_MAX]; /* of the last terms */
  sim_fence *fences[SIM_RESOURCES_MAX];    /* in the order in which they were handed out */
  size_t fence_count[SIM_RESOURCES_MAX], fence_capacity[SIM_RESOURCES_MAX];
  sim_token *tokens;
  size_t token_count, token_capacity;
  char script_names[SIM_SCRIPTS_MAX][SIM_SHA1_LENGTH + 1];
  size_t script_lengths[SIM_SCRIPTS_MAX]; /* of the texts */
  char watch_names[SIM_WATCHES_MAX][SIM_SHA1_LENGTH + 1];
  size_t watch_lengths[SIM_WATCHES_MAX];
  sim_naming namings[SIM_NAMINGS_MAX];  /* the last names of texts for one process alone */
  sim_token_list over[SIM_CLIENTS_MAX]; /* tokens of each client that are over, and live */
  uint64_t calls;                       /* of the core */
  bool notifying;                       /* all runs are with notifications */
  bool native;                          /* in all runs nodes have native commands */
  bool scriptless;                      /* in most runs no node runs scripts */
  bool labels;                          /* most locks have a label */
  unsigned nodes_wanted;                /* 0: drawn */
  bool permits;                         /* all locks are semaphores */
  bool mixing;                          /* all runs have a mix of waiters */
  sim_mix_state mix;
  bool holding;                              /* all runs are with releases that keep their keys */
  uint64_t kept_until_us[SIM_RESOURCES_MAX]; /* true time: a release has promised it until then */
  sim_kept kept_by[SIM_RESOURCES_MAX];       /* the release that has promised it */
  uint64_t resource_attempts[SIM_CLIENTS_MAX][SIM_RESOURCES_MAX];
  uint64_t free_us[SIM_RESOURCES_MAX];     /* true time: free since then; SIM_NEVER: it is held */
  uint64_t reserved_us[SIM_RESOURCES_MAX]; /* likewise: last reserved for a waiter for both */
  uint64_t grants, forced;                 /* in this run; keys deleted by force in this run */
  uint64_t forgotten;                      /* keys that nodes have lost before their time */
  bool fenced, leading;                    /* all runs are with fencing tokens, with leaders */
  int often;                               /* a fault that is frequent in all runs; -1: none */
  bool guarded;                            /* all runs are with a guard, those with a breach, too */
  uint32_t asks;                           /* inspections and forces in this run */
  bool calm_grant;                         /* one after the faults had stopped */
  uint64_t calm_us; /* when the last bytes arrive that were on the way when the faults stopped */
  uint64_t counters[SIM_COUNTER_COUNT]; /* over all runs */
  sim_trace *trace;                     /* NULL unless the run is shown */
};

/* sim_run.c */
bool sim_run(sim *s, uint64_t seed); /* false: a checker failed */
void sim_free(sim *s);

/* Returns true if keys have gone before their time: their holders may learn that they are lost. */
static inline bool sim_keys_went(const sim *s) {
  return s->forced > 0 || s->forgotten > 0;
}

/* A checker's finding: the run stops. */
__attribute__((format(printf, 3, 4))) void sim_violation(sim *s, const char *name,
                                                         const char *format, ...);

/* Returns true if there is a checker of that name. */
bool sim_has_checker(const char *name);

static inline void sim_count(sim *s, sim_counter counter) {
  s->counters[counter]++;
}

static inline void sim_count_if(sim *s, bool condition, sim_counter counter) {
  s->counters[counter] += condition;
}

static inline void sim_mix(sim *s, uint64_t value) {
  s->hash = (s->hash ^ value) * 0x9e3779b97f4a7c15u;
  s->hash ^= s->hash >> 29;
}

/* sim_config.c */
void sim_config_draw(sim *s, sim_random *random);
sim_fault_group sim_config_fault_group(unsigned fault);

/* Draws the weights of the faults of the groups from |from| to |to|. */
void sim_config_draw_weights(sim_config *config, sim_random *random, sim_fault_group from,
                             sim_fault_group to);

/* Computes the sum of the weights of the faults, without which there are none. */
void sim_config_weigh(sim_config *config);
/* The longest life that a release may give to a key, without lock_delay. */
redlock_duration sim_config_hold_us(const sim_config *config);
/* The longest that a key of the run can live, in true time, without backward steps. */
uint64_t sim_config_life_us(const sim_config *config);
const char *sim_resource(unsigned resource, size_t *length);

/* The key of a slot of the semaphore SIM_SEMAPHORE: slot 1 is resource 0. */
#define SIM_SEMAPHORE "app:pool"
#define SIM_PERMITS 2
const char *sim_slot(unsigned resource, size_t *length);

/* How many nodes an acquire and an extend need. */
unsigned sim_config_quorum(const sim_config *config, unsigned nodes);

/* The node that the clients reach at |node|: another one, if that is a proxy before it. */
unsigned sim_config_server(const sim_config *config, unsigned node);

/*
 * Returns true if |node| adds nothing to the lease, because it is the same server as another node,
 * and the client can know that. The client cannot if another client may have the same token, if the
 * command does not report an existing key, or if a SET was not answered. Nor can it if the server
 * has set the key once for each node, because that was deleted by force or expired in between: no
 * reply differs then from those of two servers (docs/safety.md).
 */
bool sim_tap_is_twin(const sim *s, const sim_token *token, unsigned node);

/* sim_queue.c */
void sim_queue_clear(sim *s);
void sim_queue_add(sim *s, uint64_t at_us, sim_event_kind kind, unsigned subject, uint32_t length,
                   uint32_t generation);
bool sim_queue_take(sim *s, sim_event *event);

/* sim_network.c */
int sim_network_connect(sim *s, unsigned client, unsigned node, unsigned socket);
void sim_network_request(sim *s, int connection, const void *bytes, size_t length);
void sim_network_reply(sim *s, int connection, const void *bytes, size_t length,
                       const sim_note *note);
void sim_network_event(sim *s, const sim_event *event);
void sim_network_close(sim *s, int connection); /* the client gives it up */
void sim_network_break(sim *s, int connection, unsigned how);
void sim_network_node_died(sim *s, unsigned node, bool silent);
/* Delays all bytes to the client from now on. */
void sim_network_detain(sim *s, int connection, uint64_t for_us);
size_t sim_network_readable(const sim *s, int connection);
void sim_network_release(sim *s, int connection); /* to be used again, if nothing names it */
uint64_t sim_network_boundary(sim *s, sim_random *random);
void sim_stream_compact(sim_stream *stream);

/* sim_node.c */
void sim_node_init(sim *s, unsigned node);
void sim_node_input(sim *s, int connection);
void sim_node_event(sim *s, unsigned node);
void sim_node_crash(sim *s, unsigned node, bool empty, uint64_t down_us);
void sim_node_stop(sim *s, unsigned node, uint64_t until_us);

/* Time of a right clock at the start of a run. */
#define SIM_NODE_EPOCH_US 1700000500000000u

/* sim_key.c */
/* When the key dies, true time, if its node's clock is not stepped. */
uint64_t sim_key_dies_us(const sim_node *node, const sim_key *key);
sim_key *sim_key_find(sim *s, unsigned node, unsigned database, unsigned resource); /* NULL: none */
/* When the key of |token| dies, true time; 0 when the node does not hold it. */
uint64_t sim_key_holds(sim *s, unsigned node, unsigned resource, uint32_t token);
/* When the first key of |token| dies, of those that |lock| wants; 0 when the node lacks one. */
uint64_t sim_key_keeps(sim *s, unsigned node, const sim_lock *lock, uint32_t token);
/* Returns true if the node holds a key of |token|. */
bool sim_key_has(sim *s, unsigned node, const sim_lock *lock, uint32_t token);

/* sim_script.c */
/* The kind of a script, and the index of its token among the words. */
sim_command_kind sim_script_kind(sim *s, const resp_request *command);
unsigned sim_script_token(sim *s, const resp_request *command);

/* sim_client.c */
void sim_client_start(sim *s, unsigned client);
void sim_client_kill(sim *s, unsigned client);
/* An operator has deleted a key of the token: its holder may lose it without a fault. */
void sim_client_forced(sim *s, uint32_t token);
void sim_client_fork(sim *s, unsigned client);
void sim_client_close(sim *s, unsigned client, uint64_t within_us);
/* Frees the lock in any state, and makes another. */
void sim_client_renew_lock(sim *s, unsigned client, unsigned lock);
/* Moves leases that the core has moved to another lock of their owner. */
void sim_client_moves(sim *s, sim_client *client);
/*
 * The nodes have confirmed an extend of the lease: a loss may be reported once more to all that
 * count on it.
 */
void sim_client_confirmed(const sim *s, sim_client *client, uint32_t lease);
void sim_client_event(sim *s, unsigned client, uint32_t generation);
void sim_client_wake(sim *s, unsigned client, uint64_t at_us);
void sim_client_hear(sim *s, unsigned client); /* something has come for it */
void sim_client_pause(sim *s, unsigned client, uint64_t for_us);
uint64_t sim_client_clock(const sim *s, const sim_client *client);

/* sim_tap.c */
/* The |index|th command on the socket that was sent and not answered; 0 is the oldest. */
static inline sim_sent *sim_tap_sent(const sim_socket *socket, size_t index) {
  return &socket->sent[(socket->sent_head + index) & (socket->sent_capacity - 1)];
}
void sim_tap_output(sim *s, sim_client *client); /* after every call of the core */
void sim_tap_dropped(sim *s, sim_client *client, unsigned node);
/* The core is about to read |bytes| more. Returns true if all replies in them are of old rounds. */
bool sim_tap_input(sim *s, sim_client *client, unsigned node, size_t bytes);
/* The simulator's number of a token, by its text. */
uint32_t sim_tap_token(const char *text, size_t length);
bool sim_tap_is_token(const char *text, size_t length);
uint32_t sim_tap_new_token(sim *s, unsigned client, unsigned lock);
/* Nothing brings the token back: from now on its client is to release it. */
void sim_tap_over(sim *s, uint32_t token);
/* No client must release the token from now on. */
void sim_tap_abandon(sim *s, uint32_t token);

/* sim_application.c */
void sim_application_step(sim *s, sim_client *client, uint64_t reading_us);
void sim_application_ended(sim *s, sim_client *client, rl_lock *lock, uint64_t reading_us);
void sim_application_lost(sim *s, sim_client *client, rl_lock *lock);
void sim_application_schedule(sim *s, sim_lock *lock, uint64_t in_us);
void sim_application_settle(sim *s);
void sim_application_begun(sim *s, sim_client *client, sim_lock *lock, rl_operation operation,
                           uint64_t reading_us);
void sim_application_idle(sim *s, sim_lock *lock);

/* sim_operator.c */
/* Returns true if the lock, which is idle, has begun an inspection or a release by force. */
bool sim_operator_begins(sim *s, sim_client *client, sim_lock *lock, uint64_t reading_us);
/* The same with a lock that may be held, and then must not be. */
void sim_operator_mistakes(sim *s, sim_client *client, sim_lock *lock, uint64_t reading_us);
void sim_operator_ended(sim *s, sim_client *client, sim_lock *lock, int result);

/* sim_handover.c */
/* Writes a lease down, and lets go of it. False when there is none. */
bool sim_handover_detach(sim *s, const sim_client *client, sim_lock *lock, uint64_t reading_us);
/* Makes the next acquire of the lock, which is not held, attach a detached lease, if one fits. */
void sim_handover_take(sim *s, const sim_client *client, sim_lock *lock);

/* sim_guard.c */
void sim_guard_draw(sim *s, sim_random *random); /* after all else of the configuration */
void sim_guard_open(sim *s, sim_client *client); /* before its nodes are added */
void sim_guard_ready(sim *s);                    /* the clients are there */
uint64_t sim_guard_quarantine_us(const sim *s);
/* The node is about to have |data| instead of its own, or none if |data| is NULL. */
void sim_guard_forgets(sim *s, unsigned node, const sim_data *data);
/* The clock of the node is about to be stepped forward: keys end early. */
void sim_guard_steps(sim *s, unsigned node, uint64_t step_us);
void sim_guard_fault(sim *s, sim_fault kind);
void sim_guard_stop(sim *s); /* the faults stop */
/* Returns true if the node may be in quarantine from now on: not too many are. */
bool sim_guard_may_forget(const sim *s, unsigned node);
/* Returns true if leases bear it that the node's clock steps forward by so much. */
bool sim_guard_bears(sim *s, unsigned node, uint64_t step_us);
/* Time until an acquire would meet the end of a quarantine; 0: none is near, or none is wanted. */
uint64_t sim_guard_moment(sim *s);

/* sim_fault.c */
void sim_fault_begin(sim *s);
void sim_fault_event(sim *s);
void sim_fault_stop(sim *s);
#include "sim_waiting.h"

#endif
