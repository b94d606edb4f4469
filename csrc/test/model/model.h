/*
 * A formal model of the protocol: its states, its steps, its properties, and the search through all
 * of them. docs/model.md describes its scope.
 *
 * SPDX-License-Identifier: MIT
 *
 * Two clients want one resource on N nodes. Each makes a number of attempts, each attempt with a
 * token of its own. Time is a number of ticks, and everything else is a step between two ticks: a
 * node executes one request, one reply reaches its client, a client acts, something breaks. Any
 * possible step may come next, or never. So messages are delayed without bound, lost (a step that
 * never comes) and reordered, and clients are paused without bound.
 *
 *   model_state.c     the state, its packed and its canonical form
 *   model_step.c      the possible steps
 *   model_node.c      requests that a node executes, and its faults
 *   model_client.c    actions of a client, and its reactions to replies
 *   model_fence.c     the second round of an attempt that asks for a fencing token
 *   model_native.c    extends without a script
 *   model_guard.c     the nodes that a client lets vote, by their lineage records
 *   model_property.c  the properties that must hold
 *   model_search.c    all states, breadth first
 *   model_table.c     the configurations, and the expected result of each
 *   model_print.c     states, steps and traces in words
 *   model_walk.c      random walks
 */
#ifndef MODEL_H
#define MODEL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

typedef unsigned long long ull; /* for printf() */

#define MODEL_NODES_MAX 5
#define MODEL_CLIENTS 2
#define MODEL_ATTEMPTS_MAX 4 /* of both clients together */
#define MODEL_TTL_MAX 7
#define MODEL_EXTENDS_MAX 3

/* ------------------------------------------------------------------------------ configuration */

/* In which order a node executes the requests of one client. */
typedef enum model_order {
  MODEL_ORDER_ANY = 0, /* connections break and are made anew: anything may overtake anything */
  MODEL_ORDER_ATTEMPT, /* those of one attempt in the order in which they were sent */
  MODEL_ORDER_FIFO,    /* all: one connection that never breaks */
  MODEL_ORDER_RESENT /* any, but behind the releases of earlier attempts: the core sends those again
                          in front of everything else on a new connection */
} model_order;

/* The properties. */
typedef enum model_property {
  MODEL_EXCLUSION = 1, /* no two clients hold at once */
  MODEL_REVIVAL = 2,   /* no lease comes back to life */
  MODEL_CONTINUITY =
      4,           /* no other client held between the acquire and the last extend that succeeded */
  MODEL_TOUCH = 8, /* no release or extend touches a key that another attempt has set */
  MODEL_ORPHAN = 16, /* no key is set for an attempt that is over, with no release on its way */
  MODEL_FENCE =
      32 /* no fencing token is issued twice, and each is greater than those that were issued
                        before its attempt began */
} model_property;

#define MODEL_SAFETY (MODEL_EXCLUSION | MODEL_REVIVAL | MODEL_CONTINUITY | MODEL_TOUCH)
#define MODEL_PROPERTIES (2 * MODEL_FENCE - 1)

/* X(field, smallest, largest, meaning). The last 25 switch rules of the protocol off. */
#define MODEL_FIELDS(X)                                                                            \
  X(nodes, 1, MODEL_NODES_MAX, "nodes")                                                            \
  X(ttl, 1, MODEL_TTL_MAX, "of keys, in ticks")                                                    \
  X(drift, 0, MODEL_TTL_MAX, "ticks by which a lease ends before its keys")                        \
  X(extends, 0, MODEL_EXTENDS_MAX, "extends of each lease")                                        \
  X(native, 0, 2, "extends by SET IFEQ, of any life; 2: or by scripts")                            \
  X(hands, 0, 1, "a lease may be detached, and attached by any attempt")                           \
  X(order, 0, 3, "of requests: 0 any, 1 as sent in an attempt, 2 as sent, 3 releases first")       \
  X(list, 0, MODEL_NODES_MAX, "nodes that client B knows; 0: all")                                 \
  X(properties, 0, MODEL_PROPERTIES, "the sum of the model_property that are checked")             \
  X(fence, 0, 1, "attempts ask for fencing tokens")                                                \
  X(ahead, 0, 9, "up to where a clock may raise a counter; else by 1")                             \
  X(timeless, 0, 1, "no ticks: keys vanish at any moment, and leases at none")                     \
  X(guard, 0, 1, "only nodes vote whose lineage record is old enough")                             \
  X(prompt, 0, 1, "clients read a record as soon as they must, between rounds")                    \
  X(crashes, 0, 3, "restarts without keys")                                                        \
  X(kept, 0, 1, "the record may survive the restart")                                              \
  X(flushes, 0, 3, "times that a running node loses its keys and its record")                      \
  X(quarantine, 0, 7, "ticks for which a restarted node, or a new record, grants nothing")         \
  X(proxy, 0, 1, "connections survive the restart")                                                \
  X(losses, 0, 3, "keys that a node loses: clock step, eviction, FLUSHALL")                        \
  X(early, 0, 1, "any key may expire a tick early")                                                \
  X(freezes, 0, 3, "ticks that a client's clock misses")                                           \
  X(doubles, 0, 3, "keys that are granted though another attempt has them")                        \
  X(no_elapsed, 0, 1, "elapsed time is not subtracted")                                            \
  X(no_recheck, 0, 1, "the deadline is not checked after the votes")                               \
  X(extend_any, 0, 1, "one confirmation is enough for an extend")                                  \
  X(extend_foreign, 0, 1, "\"not yours\" counts for an extend")                                    \
  X(extend_recreate, 0, 1, "an extend sets missing keys at once")                                  \
  X(extend_late, 0, 1, "an extend may succeed after the old deadline")                             \
  X(round_unchecked, 0, 1, "late replies of one extend count for the next")                        \
  X(token_reused, 0, 1, "one token for all attempts of a client")                                  \
  X(set_overwrites, 0, 1, "SET without NX")                                                        \
  X(release_blind, 0, 1, "a release deletes any key")                                              \
  X(release_to_voters, 0, 1, "a release goes only where a vote was counted")                       \
  X(attach_keeps, 0, 1, "an attach keeps the handed token")                                        \
  X(attach_creates, 0, 1, "a key that is missing is attached, too")                                \
  X(attach_all, 0, 1, "a node that may yet execute a SET of the handed token has a vote")          \
  X(deadline_ignored, 0, 1, "a holder goes on after its deadline")                                 \
  X(fence_naive, 0, 1, "the greatest number of a majority is issued, unconfirmed")                 \
  X(fence_unawaited, 0, 1, "the nodes are sent that number, but not waited for")                   \
  X(fence_blind, 0, 1, "nodes take it also if the key has another token")                          \
  X(fence_above, 0, 1, "a later vote with a greater number confirms")                              \
  X(guard_unchecked, 0, 1, "only the handshake reads the record")                                  \
  X(guard_nameless, 0, 1, "the script does not compare the run_id of the record")                  \
  X(guard_heals, 0, 1, "a lease's key is given to nodes that may not vote, too")                   \
  X(native_shortens, 0, 1, "a SET IFEQ may ask for less than is left of the lease's keys")         \
  X(native_grows, 0, 1, "after an unanswered SET IFEQ the next may ask for more")                  \
  X(native_scripts, 0, 1, "and so may a script")

/* One configuration. All zero but nodes, ttl, attempts and properties is the protocol as it is. */
typedef struct model_config {
  unsigned attempts[MODEL_CLIENTS]; /* how many each client makes */
  unsigned quorum[MODEL_CLIENTS];   /* 0: a majority */
#define MODEL_FIELD(field, smallest, largest, text) unsigned field;
  MODEL_FIELDS(MODEL_FIELD)
#undef MODEL_FIELD
} model_config;

/* Defaults: 3 nodes, ttl 3, one attempt each, all safety properties. */
model_config model_config_default(void);

/* Sets "name=value". False when there is no such name, or the value is out of bounds. */
bool model_config_set(model_config *config, const char *assignment);

/* Sets each "name=value" of a text, separated by spaces. Ends the program if one is wrong. */
void model_config_read(model_config *config, const char *settings);
/* Prints all names with their meaning, one per line. */
void model_config_print_names(FILE *out);

/* Prints the differences from the defaults, as on the command line. */
void model_config_print(FILE *out, const model_config *config);

/* The number of nodes, the first ones, that a client knows; and the votes that it needs. */
unsigned model_list_length(const model_config *config, unsigned client);
unsigned model_quorum(const model_config *config, unsigned client);
unsigned model_extend_quorum(const model_config *config, unsigned client);

/* -------------------------------------------------------------------------------------- state */

typedef enum model_set {
  MODEL_SET_NONE = 0,
  MODEL_SET_REQUESTED, /* SET NX PX, or TAKE with a fencing token, is on its way to the node */
  MODEL_SET_GRANTED,   /* the node has set the key, and its reply is on its way to the client */
  MODEL_SET_COUNTED    /* release_to_voters, fence: the client has counted the vote */
} model_set;

/* Of the record that a SET carries. */
typedef enum model_record {
  MODEL_RECORD_CURRENT = 0, /* it is the node's */
  MODEL_RECORD_OUTDATED,    /* the node has another one by now */
  MODEL_RECORD_UNSENT       /* the SET waits for the client to know the record */
} model_record;

typedef enum model_confirm {
  MODEL_CONFIRM_NONE = 0,
  MODEL_CONFIRM_REQUESTED, /* the token, for a node that has granted with a smaller one */
  MODEL_CONFIRM_DONE       /* the node has taken it, and its reply is on its way */
} model_confirm;

typedef enum model_extend {
  MODEL_EXTEND_NONE = 0,
  MODEL_EXTEND_REQUESTED,
  MODEL_EXTEND_CONFIRMED, /* prolonged; the reply is on its way */
  MODEL_EXTEND_REFUSED,   /* not there, or of another token; the reply is in flight */
  MODEL_EXTEND_COUNTED,   /* round_unchecked: the client has counted the confirmation */
  MODEL_EXTEND_DENIED     /* the client has counted the refusal */
} model_extend;

/* Messages in flight between a node and a client for one attempt. */
typedef struct model_messages {
  uint8_t set;         /* model_set */
  uint8_t extend;      /* model_extend: the extend of the round in flight, or the last one */
  uint8_t stale;       /* requests of extends that are over */
  uint8_t stale_reply; /* round_unchecked: a confirmation of an extend that is over */
  uint8_t heal;        /* SET NX requests that give the key back after a confirmed extend */
  uint8_t release;     /* compare-and-delete requests */
  uint8_t number;      /* fence: the number of the node's grant, while it matters */
  uint8_t confirm;     /* model_confirm */
  uint8_t record;      /* guard: model_record */
  uint8_t life;        /* native: request of the extend; 0: it is not sent yet */
  uint8_t earlier[MODEL_EXTENDS_MAX - 1]; /* native: requests before it on this connection */
  uint8_t loose[MODEL_EXTENDS_MAX];       /* native: requests of ended connections */
  uint8_t unsure;                         /* native: a SET IFEQ may be among these */
  uint8_t void_heal;                      /* prompt: heals that carry an outdated record */
} model_messages;

/* A client's knowledge of a node's record. */
typedef struct model_guard_state {
  uint8_t asked;   /* it has read a record on this connection; 2: and must read it again (prompt) */
  uint8_t current; /* and that is the node's record still */
  uint8_t wait;    /* ticks of its own clock for which the node is not to vote */
} model_guard_state;

typedef struct model_node {
  uint8_t owner;      /* the attempt that has set the key, counted from 1; 0: there is no key */
  uint8_t remaining;  /* ticks that the key has to live */
  uint8_t quarantine; /* ticks for which the node grants nothing */
  uint8_t doubtful;   /* it had a SET of the handed token before it when that was detached */
  uint8_t counter;    /* fence: the greatest number that it has issued or confirmed */
  uint8_t record;     /* guard: it has a record */
  uint8_t age;        /* ticks since the record was made; it stops counting at the quarantine */
  model_guard_state guards[MODEL_CLIENTS];
  model_messages messages[MODEL_ATTEMPTS_MAX];
} model_node;

typedef enum model_phase {
  MODEL_IDLE = 0,  /* the next attempt has not begun */
  MODEL_ACQUIRING, /* SETs are out */
  MODEL_HELD, /* a lease, while validity > 0; afterwards one that ran out and is not released */
  MODEL_EXTENDING, /* the same, and extends are out */
  MODEL_DONE       /* no attempts left */
} model_phase;

typedef struct model_client {
  uint8_t phase;    /* model_phase */
  uint8_t attempt;  /* the current one, counted from 0 over both clients */
  uint8_t elapsed;  /* ticks of its own clock since the round began; it stops counting at the ttl */
  uint8_t validity; /* ticks of its own clock that the lease has left */
  uint8_t votes;    /* nodes that have granted, in the round in flight */
  uint8_t extends;  /* extends begun in this lease */
  uint8_t confirmed; /* the last extend was confirmed: nodes that refuse it get the key again; if it
                        was not, and so many refuse that no majority is left, the lease ends */
  uint8_t overtaken; /* the other client has held since this lease was acquired */
  uint8_t confirms;  /* fence: nodes that have the token of the attempt in flight */
  uint8_t asked; /* native: life of the keys that the extend in flight, or the last one, asks for */
  uint8_t least; /* native: shortest life that a SET IFEQ of the lease asked for; 0: none */
  uint8_t floor; /* fence: the greatest token that was issued when the attempt began */
} model_client;

typedef struct model_state {
  model_node nodes[MODEL_NODES_MAX];
  model_client clients[MODEL_CLIENTS];
  uint8_t crashes, losses, freezes, doubles; /* how many there have been */
  uint8_t handed;   /* the attempt whose lease was detached, counted from 1; 0: none */
  uint8_t attaches; /* the attempts that attach it: a bit for each */
  uint8_t taken;    /* a client has held since it was detached */
  uint8_t flushes;
  uint8_t tokens[MODEL_ATTEMPTS_MAX]; /* fence: of each attempt, from when a majority has granted */
  uint8_t issued;                     /* those of attempts that became leases: a bit for each */
} model_state;

void model_initial(const model_config *config, model_state *state);

/* The client that makes an attempt, and the first attempt of a client. */
unsigned model_client_of(const model_config *config, unsigned attempt);
unsigned model_first_attempt(const model_config *config, unsigned client);

/* Tokens are numbers from 1. Without token_reused each attempt has another. */
unsigned model_token(const model_config *config, unsigned attempt);

/* Returns true if the attempt attaches the detached lease. */
bool model_attaches(const model_state *state, unsigned attempt);

/* Returns true if the attempt is the client's current one, and has begun. */
bool model_open(const model_config *config, const model_state *state, unsigned attempt);

/* Returns true if the client believes that it holds. */
bool model_holds(const model_config *config, const model_state *state, unsigned client);

/*
 * Returns true if no further step can violate a property. A violation takes two clients, unless a
 * rule is switched off.
 */
bool model_finished(const model_config *config, const model_state *state);

/* A state in words: one per node, and two for the rest. Equal states have equal words. */
#define MODEL_WORDS_MAX (MODEL_NODES_MAX + 2)
size_t model_width(const model_config *config); /* how many words it has */
void model_unpack(const model_config *config, const uint64_t *words, model_state *state);

/*
 * The same for all states that the search treats as equal: it ignores the order of nodes, the order
 * of clients with the same parameters, and messages that can have no effect.
 */
void model_pack_canonical(const model_config *config, const model_state *state, uint64_t *words);

/* -------------------------------------------------------------------------------------- steps */

typedef enum model_kind {
  MODEL_TICK = 0,       /* time passes for all */
  MODEL_FREEZE,         /* time passes for all but this client's clock */
  MODEL_START,          /* a client begins an attempt: SET to all nodes */
  MODEL_EXECUTE_SET,    /* a node executes a request; with a fencing token it issues |number| */
  MODEL_EXECUTE_JOIN,   /* the same, of a SET that is sent only now, for the remaining time */
  MODEL_EXECUTE_DOUBLE, /* the same, and grants a key that another attempt has */
  MODEL_EXECUTE_EXTEND,
  MODEL_EXECUTE_STALE, /* an extend that is over */
  MODEL_EXECUTE_LOOSE, /* native: an extend of an ended connection, the |number|th */
  MODEL_EXECUTE_HEAL,
  MODEL_EXECUTE_RELEASE,
  MODEL_EXECUTE_CONFIRM,
  MODEL_REPLY_SET, /* a reply reaches its client, which acts on it at once */
  MODEL_REPLY_EXTEND,
  MODEL_REPLY_STALE,
  MODEL_REPLY_CONFIRM,
  MODEL_GIVE_UP, /* the attempt fails: refused, timed out, cancelled; release to all nodes */
  MODEL_EXTEND, /* a client begins an extend: compare-and-expire to all nodes; native: of |number| */
  MODEL_SEND,   /* native: it sends the extend to a node; |number| 1: as a script */
  MODEL_BREAK,  /* native: a connection with unanswered extends ends */
  MODEL_END_EXTEND, /* the extend fails; the lease stays unchanged */
  MODEL_RELEASE,    /* a client ends its lease: release to all nodes */
  MODEL_DETACH,     /* a client lets go of its lease, and nothing is released */
  MODEL_ATTACH,     /* a client begins an attempt that attaches the detached lease */
  MODEL_ASK,        /* a client reads a node's record, which is made if there is none */
  MODEL_ASK_EARLY,  /* the same, and the node's clock shows a tick more */
  MODEL_CRASH,
  MODEL_CRASH_KEPT, /* the same, and the record is there yet */
  MODEL_FLUSH,
  MODEL_LOSE_KEY,
  MODEL_EXPIRE_EARLY,
  MODEL_KINDS
} model_kind;

typedef struct model_step {
  uint8_t kind;   /* model_kind */
  uint8_t who;    /* an attempt, where a message is concerned; a client, where it does something */
  uint8_t node;   /* where one is concerned */
  uint8_t number; /* where a fencing token is issued; of native extends */
  uint8_t random; /* of random walks: for the replay */
} model_step;

#define MODEL_STEPS_MAX 512

/*
 * Lists the possible steps. With |symmetric| only one of several nodes in the same state has some.
 * Returns their number.
 */
unsigned model_steps(const model_config *config, const model_state *state, bool symmetric,
                     model_step steps[MODEL_STEPS_MAX]);

/* Takes a possible step. */
void model_take(const model_config *config, model_state *state, const model_step *step);

/* Its parts. */
bool model_may_execute(const model_config *config, const model_node *node, unsigned attempt,
                       model_kind kind);
void model_node_step(const model_config *config, model_state *state, const model_step *step);
void model_client_step(const model_config *config, model_state *state, const model_step *step);

/* The attempt has its token and its majority: is it in time for a lease? (ACQ-4) */
void model_granted(const model_config *config, model_state *state, unsigned client);

/* A node's vote, its confirmation; the end of an attempt that asks for a fencing token. */
void model_fence_vote(const model_config *config, model_state *state, unsigned client,
                      unsigned node);
void model_fence_confirmed(const model_config *config, model_state *state, unsigned client);
void model_fence_close(model_state *state, unsigned client);
unsigned
model_fence_greatest(const model_state *state); /* of the tokens that were issued; 0: none */

/* Extends without a script (NAT-5). */
bool model_native_finished(const model_config *config, const model_state *state);
bool model_native_may_send(const model_config *config, const model_state *state, unsigned attempt,
                           unsigned node);
unsigned model_native_request(const model_config *config, const model_state *state,
                              unsigned attempt, unsigned node, bool script);
void model_native_send(const model_config *config, model_state *state, const model_step *step);
void model_native_supersede(model_messages *messages);
void model_native_break(model_messages *messages);
void model_native_close(model_messages *messages); /* the lease is over: all requests are loose */
bool model_native_execute(const model_config *config, model_node *node, unsigned attempt);
void model_native_execute_old(const model_config *config, model_node *node, const model_step *step);

/* Returns true if the client lets the node vote now. */
bool model_guard_votes(const model_config *config, const model_node *node, unsigned client);
void model_guard_initial(const model_config *config, model_node *node);
/* A SET is on its way, or waits for its connection; or none is. */
void model_guard_send(const model_config *config, model_node *node, unsigned client,
                      unsigned attempt);
/* Returns true if a lease may give the node its key, again or late. */
bool model_guard_heals(const model_config *config, const model_node *node, unsigned client);
void model_guard_ask(const model_config *config, model_node *node, unsigned client, bool early);
/* The node has lost its data; |record| is true if it still has its record. */
void model_guard_forget(const model_config *config, model_node *node, bool restarted, bool record);
/* prompt: the node has answered that it has another record. */
void model_guard_suspect(model_node *node, unsigned client);

/* prompt: clients read the records that they must know. */
void model_guard_settle(const model_config *config, model_state *state);
void model_guard_tick(const model_config *config, model_node *node, unsigned frozen);

/* --------------------------------------------------------------------------------- properties */

/* The property, of those that the configuration asks for, that the step violates; 0 if none. */
unsigned model_violation(const model_config *config, const model_state *before,
                         const model_step *step, const model_state *after);
const char *model_property_text(unsigned property);

/* ------------------------------------------------------------------------------------- search */

typedef struct model_trace {
  model_step *steps;
  size_t count;
  size_t capacity;
} model_trace;

void model_trace_add(model_trace *trace, const model_step *step);
void model_trace_free(model_trace *trace);

typedef struct model_result {
  uint64_t states;
  uint64_t transitions;
  unsigned depth;
  double seconds;
  size_t bytes;       /* of memory, at the end */
  bool exhausted;     /* all states were seen; else a violation was, or memory was used up */
  unsigned violation; /* model_property, or 0 */
  model_trace trace;  /* the shortest one to the violation */
} model_result;

/* Searches, breadth first, with at most |memory_max| bytes. The trace is the caller's to free. */
void model_search(const model_config *config, size_t memory_max, model_result *result);

/* -------------------------------------------------------------------------------------- table */

/* The purpose of a configuration: it determines the expected result of the replay. */
typedef enum model_role {
  MODEL_ROLE_PROTOCOL = 0, /* the protocol, assumptions kept: safe, or why it is not is known */
  MODEL_ROLE_ASSUMPTION,   /* an assumption broken: the code is not safe either */
  MODEL_ROLE_RULE          /* a rule left out: the code, which keeps it, is safe */
} model_role;

typedef struct model_entry {
  const char *name;
  const char *text;
  model_role role;
  bool lengthy;      /* not in the suite, only in the long run */
  unsigned expected; /* the property that is violated; 0: safe */
  const char *assumption;
  const char *settings; /* differences from the defaults */
} model_entry;

extern const model_entry model_table[];
extern const unsigned model_table_size;

model_config model_entry_config(const model_entry *entry);

/* -------------------------------------------------------------------------------------- print */

/* The steps of a trace, each with the state after it. */
void model_print_trace(FILE *out, const model_config *config, const model_step *steps,
                       size_t count);

/* --------------------------------------------------------------------------------------- walk */

/* A random walk of at most |steps_max| steps. The same seed is the same walk. */
void model_walk(const model_config *config, uint64_t seed, unsigned steps_max, model_trace *trace);

#endif
