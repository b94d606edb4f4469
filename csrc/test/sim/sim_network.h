/*
 * Events, and connections with the bytes and the replies in flight. See sim_queue.c and
 * sim_network.c.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef SIM_NETWORK_H
#define SIM_NETWORK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define SIM_CLIENTS_MAX 4
#define SIM_CHANNEL_LENGTH 16 /* hexadecimal digits of a client's channel, as the nodes know it */

/* ---- events (sim_queue.c) ---- */

typedef enum sim_event_kind {
  SIM_EVENT_TO_NODE,   /* bytes come to a node */
  SIM_EVENT_TO_CLIENT, /* bytes come to a client */
  SIM_EVENT_EXECUTE,   /* a slow node gets round to a connection */
  SIM_EVENT_RESET,     /* the client learns that its connection is broken */
  SIM_EVENT_CONNECTED,
  SIM_EVENT_REFUSED,
  SIM_EVENT_CLIENT, /* a client has something to do */
  SIM_EVENT_NODE,   /* a node comes back, or continues */
  SIM_EVENT_GONE,   /* a node learns that the client of a connection is gone */
  SIM_EVENT_WATCH,  /* with notifications: the checkers look for waiters of a free resource */
  SIM_EVENT_FAULT,  /* something is to go wrong */
  SIM_EVENT_PHASE
} sim_event_kind;

typedef struct sim_event {
  uint64_t at_us;
  uint64_t order; /* ties are broken by age */
  uint32_t length;
  uint16_t subject; /* connection, client or node */
  uint8_t kind;
  uint32_t generation;
} sim_event;

typedef struct sim_queue {
  sim_event *events; /* a heap, of all but the clients' */
  sim_event clients
      [SIM_CLIENTS_MAX]; /* the last of each, which overtakes those before; at SIM_NEVER: none */
  size_t count, capacity;
  uint64_t order;
} sim_queue;

/* ---- network (sim_network.c) ---- */

typedef struct sim_stream {
  unsigned char *bytes;
  size_t head;    /* not read yet */
  size_t arrived; /* readable up to here */
  size_t tail;    /* on the way up to here */
  size_t capacity;
  uint64_t last_us; /* when the last byte on the way arrives */
  uint64_t read;    /* bytes read since the connection was made */
  uint64_t written;
} sim_stream;

typedef enum sim_command_kind {
  SIM_COMMAND_HANDSHAKE,
  SIM_COMMAND_SET,
  SIM_COMMAND_EXTEND,
  SIM_COMMAND_RELEASE,
  SIM_COMMAND_UNKNOWN,
  SIM_COMMAND_INSPECT,
  SIM_COMMAND_CONFIRM,
  SIM_COMMAND_GUARD,
  SIM_COMMAND_ENQUEUE, /* these have no token */
  SIM_COMMAND_DEQUEUE,
  SIM_COMMAND_PROBE,
  SIM_COMMAND_SLOTS,
  SIM_COMMAND_FLAG,   /* asks for a waiters flag */
  SIM_COMMAND_MESSAGE /* no command: a message to a subscriber */
} sim_command_kind;

typedef enum sim_outcome {
  SIM_OUTCOME_GRANTED, /* +OK to SET, :1 to a script */
  SIM_OUTCOME_REFUSED, /* nil, :0, WRONGTYPE */
  SIM_OUTCOME_NO_SCRIPT,
  SIM_OUTCOME_ERROR,     /* the command may have been executed */
  SIM_OUTCOME_DECLINED,  /* not executed: loading, out of memory and the like */
  SIM_OUTCOME_FORBIDDEN, /* NOPERM, NOAUTH: the client does not ask again */
  SIM_OUTCOME_ODD,       /* no answer to any command */
  SIM_OUTCOME_OTHER      /* not executed: the record is another */
} sim_outcome;

/* State of a key when a node was inspected; all 0 if it has not answered. */
typedef struct sim_seen {
  uint8_t state; /* a redlock_key_state */
  uint32_t token;
  uint64_t ttl_us;
} sim_seen;

/* Meaning of a reply. */
typedef struct sim_note {
  uint64_t end; /* of the reply, in bytes written since the connection was made */
  uint32_t token;
  uint8_t kind;
  uint8_t outcome;
  bool by_text;
  bool asked;
  uint64_t fence;  /* TAKE: new value of its counters */
  bool held;       /* PROLONG and CONFIRM: the keys were the token's */
  uint64_t age_us; /* TAKE: for how long the record had been there: sim_watch_age() */
  sim_seen seen;
  bool full;      /* ENQUEUE: the queue has no room */
  bool read_only; /* an error that makes the core give the connection up */
} sim_note;

typedef struct sim_notes {
  sim_note *notes;
  size_t head, tail, capacity;
} sim_notes;

typedef struct sim_connection {
  bool used;
  bool client_open;  /* the client has it */
  bool node_open;    /* the node has it */
  bool replies_lost; /* nothing arrives at the client from now on */
  bool black_hole;   /* nothing arrives in either direction, unnoticed */
  bool mute;         /* nothing arrives at the client, unnoticed */
  bool authenticated;
  bool executing; /* a SIM_EVENT_EXECUTE is under way */
  uint8_t client;
  uint8_t node;   /* the server */
  uint8_t socket; /* of the client */
  uint8_t database;
  bool subscribed;
  char channel[SIM_CHANNEL_LENGTH];
  uint32_t epoch;   /* of the node's process */
  unsigned events;  /* that name it */
  uint64_t hold_us; /* bytes to the node do not arrive before */
  sim_stream to_node, to_client;
  sim_notes notes;
} sim_connection;

typedef struct sim_link {
  uint64_t requests_blocked_us; /* until then */
  uint64_t replies_blocked_us;
  uint64_t slow_until_us, slow_us;
} sim_link;

#endif
