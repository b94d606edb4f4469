/*
 * redlock: a distributed lock over N independent Redis or Valkey masters.
 *
 * SPDX-License-Identifier: MIT
 *
 * The shortest correct program (cc program.c $(pkg-config --cflags --libs redlock)):
 *
 *     #include <redlock.h>
 *     #include <stdio.h>
 *
 *     int main(void) {
 *       static const char *const nodes[] = {"127.0.0.1:7001", "127.0.0.1:7002", "127.0.0.1:7003"};
 *       redlock_client *client = NULL;
 *       redlock_lock *lock = NULL;
 *       char message[256] = "";
 *
 *       int error = redlock_client_new(&client, NULL, message, sizeof message);
 *       for (size_t i = 0; error == REDLOCK_OK && i < 3; i++)
 *         error = redlock_client_add(client, nodes[i], message, sizeof message);
 *       if (error != REDLOCK_OK) {
 *         fprintf(stderr, "%s\n", message);
 *       } else if ((error = redlock_lock_new(&lock, client, "orders:42", 9, NULL)) != REDLOCK_OK) {
 *         fprintf(stderr, "%s\n", redlock_client_message(client));
 *       } else if ((error = redlock_lock_acquire(lock, NULL, NULL)) != REDLOCK_OK) {
 *         fprintf(stderr, "%s\n", redlock_lock_message(lock));
 *       } else {
 *         puts("held: work here, and stop when redlock_lock_remaining(lock) is 0");
 *         error = redlock_lock_release(lock);
 *       }
 *       redlock_lock_free(lock);
 *       redlock_client_free(client);
 *       return error != REDLOCK_OK;
 *     }
 *
 * A client has one connection to each node, and a second one while it waits for notifications. A
 * lock names a resource. A lock that is held has a lease: it is yours until the lease's deadline,
 * not until you are done.
 *
 * The algorithm is Redlock. SPEC below means its specification, the page "Distributed Locks with
 * Redis" of the Redis documentation. docs/design.md lists the corrections, docs/safety.md what is
 * promised and assumed, docs/c.md is the guide.
 *
 * READ THIS ONCE
 *
 * Lease. A process may be paused between its last call of redlock_lock_remaining() and the write
 * that the lock protects. It may then write after its lease has ended, while another client holds
 * the lock. No lease can prevent that. A resource that must not see such a write checks a fencing
 * token: redlock_lock_fence().
 *
 * Nodes. Redlock assumes that a node keeps a key for its whole ttl. A node loses keys by a restart
 * without persistence, by eviction, by FLUSHALL or by a forward step of its wall clock. If it
 * loses the key of a held lock, a second client may get the lock. docs/operating.md says how to run
 * nodes so that this does not happen, and what settings.guard does about it.
 *
 * Clocks. Leases are measured with CLOCK_BOOTTIME where it exists, so that time in suspend counts,
 * else with CLOCK_MONOTONIC. No lease depends on the wall clock of this machine. A hypervisor may
 * stop a virtual machine without moving either clock: a lease that was held across such a stop is
 * not safe. After a suspend the library does at once what is due: blocking calls whose time has
 * passed end, leases are extended, losses are reported. Without a timerfd on CLOCK_BOOTTIME (other
 * systems than Linux, no descriptor left) the library notices a suspend up to a second late.
 *
 * Threads. Any thread may call any function. One client serves any number of threads, also in
 * blocking calls. A lock belongs to one thread at a time. Meanwhile other threads may call only
 * redlock_lock_cancel() for it, and the functions that return a value of it: remaining, deadline,
 * margin, fence, slot, result, lost, vote, ttl, client and resource. Message, token, key and holder
 * are text of the lock, which the next operation frees: they belong to the lock's thread. A second
 * operation is refused with REDLOCK_E_BUSY, except a release while an extend begun by
 * redlock_lock_extend_start() is in flight. Do not free a lock that another thread uses. Each
 * thread that uses a client must hold a reference to it, or own one of its locks. A call needs less
 * than 48 kB of stack. Do not end a thread inside a call by pthread_cancel() or by longjmp() from a
 * signal handler: it would keep the client's mutex.
 *
 * Signals. Only redlock_client_wakeup() may be called from a signal handler. The library installs
 * no handler and raises no SIGPIPE. EINTR neither lengthens nor shortens a wait.
 *
 * Forks. A child inherits neither connections nor leases. Locks of an inherited client are not held
 * in the child. The first call on such a client closes the inherited descriptors without sending
 * anything; the client connects anew when an operation needs a node. The child never releases or
 * extends what its parent holds. It must call redlock_client_pollfd(), redlock_client_on_lost() and
 * redlock_client_on_event() again. Its statistics begin at zero. fork() waits for the client's
 * mutexes, which no thread keeps while it waits for a node. A clone() that bypasses fork() is safe
 * only in a process with one thread. All descriptors have FD_CLOEXEC.
 *
 * Threads of the library. They have all signals blocked. Each look-up of a host name gets a
 * short-lived thread; a process has at most 32 of these at once. A client with leases that are
 * extended automatically has one more, the watchdog: see "Automatic extends".
 *
 * The library never exits, aborts or prints, and keeps no mutable static data except the number of
 * look-ups and a list of mutexes for fork(). No message contains a password. A process that exits
 * without releasing leaves its keys to their ttl.
 *
 * Conventions. A function that returns int returns REDLOCK_OK or one of the errors that its comment
 * lists. It returns REDLOCK_E_INVALID if a required pointer is NULL; other functions then return 0,
 * NULL or "". Functions block only where their comment says so: docs/c.md has a table. Arguments
 * are copied unless a comment says otherwise. Text that a lock returns (message, token) lives until
 * the next operation or redlock_lock_set_owner() on the lock begins, and a message at most until
 * the next call of redlock_lock_message(). Pointers in an info struct may point into the struct: a
 * copy of it points into the original.
 *
 * ABI. Programs that were compiled with an older redlock.h run with any newer library of the same
 * soname. With an older library they run if they call no function and set no field that it lacks.
 * Functions, the values of enumerators, and the meanings of fields do not change. Structs only grow
 * at their end, and 0 keeps the meaning "not set". A call with a struct is an inline function here,
 * which passes the size that the struct had when the program was compiled:
 *   - options, settings, node: fields that an older program does not have are not set. Fields that
 *     a newer program sets, and this library does not know, are refused with REDLOCK_E_INVALID.
 *   - *_info: the library fills as many bytes as the program has, never more.
 *   - redlock_credentials: the library allocates it, so it may grow, too.
 *   - redlock_resource never changes, because programs pass arrays of it; nor do redlock_histogram
 *     and redlock_outcomes, because other structs contain them.
 * Programs that cannot use inline functions (FFI) call the function with the suffix _sized, and
 * pass the size of the struct that they know.
 */
#ifndef REDLOCK_H
#define REDLOCK_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define REDLOCK_VERSION "0.1.0"

#if defined(REDLOCK_EXTERN)
#elif defined(__GNUC__)
#define REDLOCK_EXTERN __attribute__((visibility("default")))
#else
#define REDLOCK_EXTERN
#endif

#define REDLOCK_INLINE static inline

struct pollfd;    /* <poll.h> */
struct lua_State; /* <lua.h> */

/* A point in time on the clock of redlock_now(), and a length of time. Both in microseconds. */
typedef uint64_t redlock_time;
typedef uint64_t redlock_duration;

#define REDLOCK_NEVER UINT64_MAX
#define REDLOCK_MILLISECONDS ((redlock_duration)1000)
#define REDLOCK_SECONDS ((redlock_duration)1000000)

/* Limits. Values beyond them are refused with REDLOCK_E_INVALID or REDLOCK_E_LIMIT. */
#define REDLOCK_NODES_MAX 32
#define REDLOCK_KEY_MAX 4096     /* bytes of prefix and resource together */
#define REDLOCK_RESOURCES_MAX 64 /* resources of one lock */
#define REDLOCK_PERMITS_MAX 1024 /* permits of a semaphore */
#define REDLOCK_TTL_MAX_US ((redlock_duration)86400 * 366 * 1000000) /* 366 days */
#define REDLOCK_TOKEN_LENGTH                                                                       \
  40                              /* hexadecimal digits of a token: 160 random bits. With a label,
                                     a colon and the label follow */
#define REDLOCK_TOKEN_MAX 256     /* bytes of a token that a program supplies */
#define REDLOCK_LABEL_MAX 64      /* bytes of a label */
#define REDLOCK_OWNER_MAX 72      /* bytes of an owner */
#define REDLOCK_USERNAME_MAX 512  /* bytes */
#define REDLOCK_TEXT_MAX 192      /* bytes of a text of an info struct, with its NUL */
#define REDLOCK_FINDING_MAX 512   /* bytes of a finding's sentence, with its NUL */
#define REDLOCK_BUCKETS 19        /* of a histogram */
#define REDLOCK_HANDOVER_MAX 8192 /* bytes of a detached lock of one resource, with its NUL */
/* Bytes of a password that a redlock_credentials_function supplies. Other passwords: 512. */
#define REDLOCK_PASSWORD_MAX 16384

/*
 * Results of calls: 0, or a negative error. The list is complete.
 *
 * Errors -1 to -19 can happen in every program and must be handled; redlock_lock_message() explains
 * them. Errors from -20 down are mistakes of the program, or a lack of memory, descriptors, threads
 * or entropy.
 */
typedef enum redlock_error {
  REDLOCK_OK = 0,
  REDLOCK_PENDING = 1, /* not an error: the operation has not ended yet */

  REDLOCK_E_TAKEN = -1,       /* another client holds the lock on so many nodes that no quorum is
                                 left. Also if an earlier attempt found it so and the last one
                                 got no answer in time */
  REDLOCK_E_UNAVAILABLE = -2, /* too many nodes did not answer, or answered with an error */
  REDLOCK_E_EXPIRED = -3,     /* the quorum answered too late, or the lease has run out */
  REDLOCK_E_LOST = -4,        /* too few nodes still have the token: no majority, or with
                                 settings.quorum no quorum */
  REDLOCK_E_HELD = -5,        /* acquire of a lock that is held already */
  REDLOCK_E_NOT_HELD = -6,    /* extend or release of a lock that is not held */
  REDLOCK_E_CLOSED = -7,      /* the client has been closed */
  REDLOCK_E_CANCELLED = -8,   /* the operation was cancelled */
  REDLOCK_E_MAX_HOLD = -9,    /* redlock_lock_lost(), redlock_client_lead(): max_hold_us is over */
  REDLOCK_E_CLOCK = -10,      /* only from redlock_lock_lost(): clocks of nodes were stepped */

  REDLOCK_E_INVALID = -20,     /* an argument is wrong */
  REDLOCK_E_BUSY = -21,        /* the lock has an operation in flight */
  REDLOCK_E_UNSUPPORTED = -22, /* TLS without settings.transport, or with one of another version */
  REDLOCK_E_LIMIT = -23,       /* one of the limits above */
  REDLOCK_E_NO_MEMORY = -24,
  REDLOCK_E_SYSTEM = -25 /* the system refused a descriptor, a thread, a clock or entropy */
} redlock_error;

/* Answer of a node in the last round of a lock. */
typedef enum redlock_vote {
  REDLOCK_VOTE_UNKNOWN = 0,    /* no reply, or the connection broke: the node may have the key */
  REDLOCK_VOTE_GRANTED = 1,    /* the exact success reply, in time, for this round */
  REDLOCK_VOTE_TAKEN = 2,      /* acquire: the key has another token. Extend, release: the key does
                                  not have our token */
  REDLOCK_VOTE_ERROR = 3,      /* the node answered with an error, or is known to be unreachable */
  REDLOCK_VOTE_QUARANTINED = 4 /* guard: the node may have forgotten locks, and was not asked */
} redlock_vote;

/* State of the connection to a node. */
typedef enum redlock_node_state {
  REDLOCK_NODE_DOWN = 0,       /* no connection. The next one is made after the back-off, or when an
                                  operation needs the node. Also the state of a node that answered
                                  READONLY or NOREPLICAS, until it executes a write */
  REDLOCK_NODE_CONNECTING = 1, /* resolving, connecting or in the handshake */
  REDLOCK_NODE_UP = 2
} redlock_node_state;

/* Content of a lock's key on a node. */
typedef enum redlock_key_state {
  REDLOCK_KEY_UNKNOWN = 0, /* the node did not answer, or answered with an error */
  REDLOCK_KEY_FREE = 1,    /* no key */
  REDLOCK_KEY_HELD = 2,    /* a token, of this library or of another program */
  REDLOCK_KEY_OTHER = 3    /* a value of another type, or too long; it also blocks the lock */
} redlock_key_state;

/* Severity of a finding of the doctor. */
typedef enum redlock_severity {
  REDLOCK_SEVERITY_NOTE = 1,    /* worth knowing */
  REDLOCK_SEVERITY_WARNING = 2, /* will cause a failure some day */
  REDLOCK_SEVERITY_ERROR = 3    /* locks fail because of it, or are not safe */
} redlock_severity;

/* Kind of an event. */
typedef enum redlock_event {
  REDLOCK_EVENT_UP = 1,          /* a node is connected, for the first time or again */
  REDLOCK_EVENT_DOWN = 2,        /* a node cannot be reached, or is no master */
  REDLOCK_EVENT_QUARANTINED = 3, /* the guard excludes a node */
  REDLOCK_EVENT_LOST = 4,        /* a lease has ended without a release */
  REDLOCK_EVENT_WARNED = 5,      /* a lease may be lost soon: redlock_lock_lost() */
  REDLOCK_EVENT_WAITED = 6       /* an acquire has ended that waited for REDLOCK_LONG_WAIT_US or
                                    longer */
} redlock_event;

#define REDLOCK_LONG_WAIT_US REDLOCK_SECONDS

typedef struct redlock_client redlock_client;
typedef struct redlock_lock redlock_lock;
typedef struct redlock_transport redlock_transport; /* redlock_tls.h has one */

/* In the structs below 0 and NULL mean "not set": a struct of zeros is all defaults.
   These values mean "none": */
#define REDLOCK_RETRIES_NONE (-1) /* retry_count: try once */
#define REDLOCK_DURATION_NONE                                                                      \
  (REDLOCK_NEVER - 1)             /* a duration of 0: no delay, no jitter, no wait */
#define REDLOCK_PERMITS_NONE (-1) /* permits: a lock, no semaphore */
#define REDLOCK_DRIFT_NONE (-1.0) /* drift_factor: 0 */
#define REDLOCK_DB_ZERO (-1)      /* db: 0 */
#define REDLOCK_YES 1
#define REDLOCK_NO (-1)

#define REDLOCK_TLS_1_2 1
#define REDLOCK_TLS_1_3 2

/*
 * How a lock is acquired:
 *
 *     redlock_options options = {0};
 *     options.wait_us = 5 * REDLOCK_SECONDS;
 *
 * A client, a lock and one acquire can each have options. A field that is not set is taken from the
 * level above: from the lock's options, then the client's, then the default [in brackets]. If
 * a level sets wait_us but not retry_count, a retry_count of the levels above has no effect. A
 * duration is at most 366 days.
 */
typedef struct redlock_options {
  /* Length of the lease. Rounded down to whole milliseconds. Must exceed the drift allowance by
     1 ms: at least 4 ms with the default drift_factor [10 s]. */
  redlock_duration ttl_us;
  /* Attempts after the first, at most 1000000, or REDLOCK_RETRIES_NONE. An attempt after a
     notification counts. A waiter that nodes notify gives up after retry_count x retry_delay_us.
     SPEC, Retry on failure [3; no limit if a finite wait_us is set]. */
  int retry_count;
  /* Pause between two attempts, at least 1 ms [200 ms]. */
  redlock_duration retry_delay_us;
  /* Each pause is retry_delay_us +- a random part of this: SPEC, Retry on failure [100 ms]. */
  redlock_duration retry_jitter_us;
  /* Hard limit for the whole acquire. The last attempt begins early enough for a majority to
     answer, and 5 ms more. REDLOCK_DURATION_NONE: try once. REDLOCK_NEVER: only retry_count limits
     [REDLOCK_NEVER]. */
  redlock_duration wait_us;
  /* Limit for one attempt, connecting included: SPEC, algorithm step 2 [100 ms, or ttl/10 if
     that is less]. */
  redlock_duration node_timeout_us;
  /* Allowance for clock drift: the validity is shorter by ttl x factor + 2 ms. Less than 1, or
     REDLOCK_DRIFT_NONE. SPEC, algorithm step 3 [0.01]. */
  double drift_factor;
  /* How much longer the keys live than the lease. Protects against forward steps of the nodes'
     clocks up to this length [none]. */
  redlock_duration lock_delay_us;
  /* REDLOCK_YES: the lease is extended until it is released: "Automatic extends" [REDLOCK_NO]. */
  int auto_extend;
  /* REDLOCK_YES: losses are reported also without auto_extend [REDLOCK_NO]. */
  int notify_lost;
  /* Time between automatic extends. A value outside 10 ms to 2/3 of the validity counts as the
     nearer bound [ttl/3]. */
  redlock_duration extend_every_us;
  /* Limit, counted from the acquire or attach, up to which automatic extends prolong the lease. Set
     it in production: a program that is stuck would hold the lock for ever. Setting this or
     extend_every_us is an error for a lock or an acquire without auto_extend. Inherited values are
     ignored there [none]. */
  redlock_duration max_hold_us;
  /* A release before this time, counted from the grant, keeps the keys until then on a majority, so
     that no client gets the lock sooner: "at most once per period". The caller goes on at once, and
     no longer holds the lock. A crash keeps the keys for their ttl only. A failed acquire keeps
     nothing [none]. */
  redlock_duration hold_at_least_us;
  /* REDLOCK_YES: each grant has a fencing token: redlock_lock_fence() [REDLOCK_NO]. */
  int fence;
  /* Time between polls of a waiter that nodes notify, in case a notification was lost; values above
     40 s count as 40 s [2 s]. */
  redlock_duration poll_interval_us;
  /* REDLOCK_YES: an acquire never overtakes waiters, even if the lock is free. This costs one
     round trip. No effect on an acquire that tries once, or has more than 8 resources. Without it
     only an acquire that arrives at a free lock may overtake; waiters keep their order
     [REDLOCK_NO]. */
  int fair;
  /* REDLOCK_NO: poll instead of waiting for notifications. If a client's options set it, the
     client's releases notify no waiters [REDLOCK_YES]. */
  int notify;
  /* Text for people, such as "host a, pid 7, nightly". It is a part of each token, so all clients
     and users of the nodes can read it; other libraries see an opaque token. At most
     REDLOCK_LABEL_MAX bytes of UTF-8 without control characters; "": none. redlock_lock_holder()
     and redlock_lock_key() return it. If a waiter has a label, too, its message of REDLOCK_E_TAKEN
     names that of the holder. A supplied token has none [none]. */
  const char *label;
  /* Up to so many holders at once, from 1 to REDLOCK_PERMITS_MAX: the lock is a semaphore. All
     clients of a resource must use the same number. A holder has one of the slots resource/1 to
     resource/permits, each of which is a lock of its own: redlock_lock_slot(). A lock of the same
     resource without permits excludes no holder. REDLOCK_PERMITS_NONE: a lock [none]. */
  int permits;
} redlock_options;

/* One resource of a lock: any bytes. */
typedef struct redlock_resource {
  const void *bytes;
  size_t length;
} redlock_resource;

/*
 * Filled in by a redlock_credentials_function. A user without a password logs in with an empty
 * one. Without user and password the client does not log in.
 */
typedef struct redlock_credentials {
  const char *name;                        /* of the node: "10.0.0.1:6379" */
  char username[REDLOCK_USERNAME_MAX + 1]; /* with a NUL; "": that of the node's address, or none */
  char password[REDLOCK_PASSWORD_MAX];     /* any bytes */
  size_t password_length;
  char message[REDLOCK_TEXT_MAX]; /* why there are none, for redlock_node_info */
} redlock_credentials;

/*
 * Supplies user and password for a new connection to node |node|. Called once for each connection,
 * also for the second one that a node gets while an acquire waits. Not called for nodes with a
 * password of their own. |data| is settings.credentials_data, which must live as long as the
 * client.
 *
 * Any thread that works for the client calls it, also the watchdog and threads of a forked child,
 * and holds the client's mutex. So it must return at once, and must not call functions on this
 * client or its locks. A program that has to fetch a token keeps a valid one at hand, or returns
 * REDLOCK_PENDING and calls redlock_client_give_credentials() later.
 *
 * Returns REDLOCK_OK if |credentials| are filled in, or REDLOCK_PENDING. On an error such as
 * REDLOCK_E_UNAVAILABLE the node is down with credentials->message, and is retried as after other
 * failures. The library keeps a copy until the node has answered, then overwrites it.
 */
typedef int redlock_credentials_function(redlock_client *client, size_t node,
                                         redlock_credentials *credentials, void *data);

/* Settings of a client. Everything is copied. A struct of zeros is all defaults. */
typedef struct redlock_settings {
  const redlock_options *options; /* for the client's locks */
  const void *prefix;             /* put before every resource; any bytes [none] */
  size_t prefix_length;
  const char *username;   /* for nodes that set none [none] */
  const char *password;   /* for nodes that set none [none] */
  int db;                 /* for nodes that set none [0] */
  int tls;                /* for nodes that set none and are no Unix sockets [REDLOCK_NO] */
  size_t password_length; /* of a password of any bytes [0: up to its NUL] */
  const redlock_transport *transport; /* redlock_tls(): nodes can be reached by TLS [none] */

  /*
   * How nodes are reached by TLS. These fields alone do not ask for TLS: tls or rediss:// does. A
   * node without either is refused beside them.
   */
  const char *tls_ca;             /* file of CA certificates, PEM [the system's] */
  const char *tls_ca_path;        /* directory of them, by openssl-rehash [the system's] */
  const char *tls_crl;            /* file of revocation lists of all CAs of a chain; a chain
                                     without its list fails [none: not checked] */
  const char *tls_cert;           /* certificate of the client, with its chain, PEM [none] */
  const char *tls_key;            /* its key, PEM [none] */
  const char *tls_key_password;   /* of the key [none] */
  const char *tls_server_name;    /* name or address in the node's certificate [the host] */
  const char *tls_ciphers;        /* names of OpenSSL, separated by ':' [OpenSSL's] */
  int tls_min_version;            /* REDLOCK_TLS_1_2 or _1_3 [REDLOCK_TLS_1_2] */
  int tls_dangerously_unverified; /* REDLOCK_YES: any server is believed and is sent the
                                     password [REDLOCK_NO] */
  redlock_credentials_function *credentials; /* instead of username and password [none] */
  void *credentials_data;

  /*
   * The guard. REDLOCK_YES: a node votes only while it certainly remembers all locks that it has
   * granted. It may forget them by a restart without its keys, a flush, a replacement, a promotion
   * or a step of its clock. After that it does not vote for as long as the longest lease may last
   * (SPEC, delayed restarts). So no lock may live longer than guard_max_ttl_us, lock_delay_us
   * and the drift of hold_at_least_us included. All clients of the nodes must have the same guard.
   * docs/operating.md says how to turn it on, and which rights it needs.
   */
  int guard;                         /* [REDLOCK_NO] */
  redlock_duration guard_max_ttl_us; /* [30 s] */
  const char *guard_cluster;         /* name of the list of nodes, for clients with other addresses:
                                        printable, no spaces [a hash of the list] */

  int quorum; /* nodes that an acquire and an extend need, from a majority to all. A larger quorum
                 makes redlock_lock_margin() larger, and tolerates fewer failed nodes. All clients
                 of a resource must have the same [a majority] */
} redlock_settings;

/* A node in parts. Set exactly one of address, host and path. Everything is copied. */
typedef struct redlock_node {
  const char *address;    /* as for redlock_client_add() */
  const char *host;       /* a name, or an IPv4 or IPv6 address without brackets */
  int port;               /* [6379] */
  const char *path;       /* of a Unix socket */
  const char *username;   /* [the address's, else the client's] */
  const char *password;   /* [the address's, else the client's] */
  int db;                 /* or REDLOCK_DB_ZERO [the address's, else the client's] */
  int tls;                /* REDLOCK_YES or REDLOCK_NO [the address's, else the client's] */
  size_t password_length; /* of a password of any bytes [0: up to its NUL] */

  /* As in redlock_settings; a field that is not set is the client's. Refused without TLS. */
  const char *tls_ca;
  const char *tls_ca_path;
  const char *tls_crl;
  const char *tls_cert;
  const char *tls_key;
  const char *tls_key_password;
  const char *tls_server_name; /* [the client's, else the host] */
  const char *tls_ciphers;
  int tls_min_version;
  int tls_dangerously_unverified;
} redlock_node;

/* State of a node. The name lives as long as the client, the other texts as long as the struct. */
typedef struct redlock_node_info {
  const char *name; /* "10.0.0.1:6379", "[::1]:6379", "unix:/run/redis.sock" */
  redlock_node_state state;
  const char *error;               /* why it is not up, or that it runs no scripts; or NULL */
  redlock_duration latency_us;     /* of the last reply; REDLOCK_NEVER before the first */
  size_t outstanding;              /* commands that it has not answered */
  char text[REDLOCK_TEXT_MAX];     /* holds |error| */
  redlock_duration quarantined_us; /* guard: time until it votes, 0 if it does; REDLOCK_NEVER
                                             until the event that |quarantine| names */
  const char *quarantine;          /* why it does not vote, or NULL */
  char quarantine_text[REDLOCK_TEXT_MAX]; /* holds |quarantine| */
  int notifies;                           /* REDLOCK_YES: it notifies waiters of this client;
                                             REDLOCK_NO: it does not, or none has waited */
  const char *notify_error;               /* why it does not; NULL if nothing is wrong */
  char notify_text[REDLOCK_TEXT_MAX];     /* holds |notify_error| */
} redlock_node_info;

/* Part of one node in the last round of a lock. Texts live as those of redlock_node_info. */
typedef struct redlock_vote_info {
  const char *name;
  redlock_vote vote;
  const char *error;           /* what the node answered, or the network's error; or NULL */
  redlock_duration latency_us; /* from the command to its reply; REDLOCK_NEVER without a reply */
  char text[REDLOCK_TEXT_MAX]; /* holds |error| */
} redlock_vote_info;

/* Content of the key on one node when the lock was inspected. */
typedef struct redlock_key_info {
  const char *name; /* of the node; lives as long as the client */
  redlock_key_state state;
  const char *error; /* UNKNOWN: the node's or the network's error; OTHER: what the key is */
  const void *token; /* HELD: any bytes and a NUL, else NULL; lives until the lock is inspected
                        again or freed */
  size_t token_length;
  redlock_duration ttl_us;     /* time left for the key; REDLOCK_NEVER: it does not expire */
  char text[REDLOCK_TEXT_MAX]; /* holds |error| */
  const char *label; /* options.label of the holder, a part of |token|; NULL: it has none */
  size_t label_length;
  uint64_t fence; /* counter of fencing tokens beside the key; 0: none, or not readable */
} redlock_key_info;

/* Holder of a lock when it was inspected: the token that a majority of the nodes had. */
typedef struct redlock_holder_info {
  const void *token; /* any bytes and a NUL; lives until the lock is inspected again or freed */
  size_t token_length;
  size_t nodes;            /* number of nodes that had it */
  redlock_duration ttl_us; /* time until it has no majority, unless it is extended */
  const char *label;       /* options.label of the holder, a part of |token|; NULL: it has none */
  size_t label_length;
  uint64_t fence; /* its fencing token; 0: none, or not known. Of a holder without options.fence
                     it is that of an earlier holder */
} redlock_holder_info;

/* One finding of the doctor. */
typedef struct redlock_finding_info {
  redlock_severity severity;
  const char *name;    /* "same_server", ...: docs/operating.md has the list; static */
  const char *node;    /* name of the node, lives as long as the client; NULL: all nodes */
  const char *message; /* a sentence: what is wrong and what to do; it is in |text| */
  char text[REDLOCK_FINDING_MAX];
} redlock_finding_info;

/* Durations since the client was made. It never changes, because structs contain it. */
typedef struct redlock_histogram {
  uint64_t count;
  redlock_duration sum_us;
  uint64_t buckets[REDLOCK_BUCKETS]; /* cumulative: durations up to redlock_bucket_bound(index) */
} redlock_histogram;

/* Numbers of operations that ended with each result. It never changes. */
typedef struct redlock_outcomes {
  uint64_t ok;
  uint64_t taken;
  uint64_t unavailable;
  uint64_t expired;
  uint64_t lost;
  uint64_t held;
  uint64_t not_held;
  uint64_t closed;
  uint64_t cancelled;
  uint64_t error; /* other results, for example REDLOCK_E_NO_MEMORY */
} redlock_outcomes;

/*
 * Statistics of a client. |held| and |waiting| are of this moment. Everything else counts from the
 * creation of the client, in a forked child from its first call, and never goes back.
 */
typedef struct redlock_stats_info {
  /* A nested acquire counts, too. OK counts when the nodes have decided: if the lease ends before
     the caller reads the result, its loss is counted, too. */
  redlock_outcomes acquire;
  redlock_outcomes extend;      /* by redlock_lock_extend() */
  redlock_outcomes auto_extend; /* CANCELLED: an operation of the program came first */
  redlock_outcomes release;     /* redlock_lock_free() of a held lock is none */
  uint64_t attempts;            /* of all acquires */

  /* Leases that ended without a release, by reason (redlock_lock_lost()). An expired lease of a
     lock without auto_extend and notify_lost counts when it is next used or freed. */
  uint64_t lost_expired;
  uint64_t lost_denied; /* REDLOCK_E_LOST */
  uint64_t lost_max_hold;
  uint64_t warned_unavailable; /* warnings, by reason */
  uint64_t warned_clock;

  uint64_t held;                  /* leases that last */
  uint64_t waiting;               /* acquires that wait for another client or lock */
  uint64_t quorum;                /* votes that an acquire needs */
  redlock_histogram acquire_time; /* of acquires that asked the nodes and succeeded, waiting
                                     included */
  redlock_histogram wait_time;    /* whole time of acquires that had to wait, with any result */
} redlock_stats_info;

/* Statistics of a node. |up|, |quarantined| and |outstanding| are of this moment. */
typedef struct redlock_node_stats_info {
  const char *name; /* lives as long as the client */
  int up;           /* REDLOCK_YES or REDLOCK_NO */
  int quarantined;  /* REDLOCK_YES: the guard excludes it */

  /* Votes in rounds of all operations, by redlock_vote. */
  uint64_t votes_granted;
  uint64_t votes_taken;
  uint64_t votes_error;
  uint64_t votes_quarantined;
  uint64_t votes_unknown;
  uint64_t votes_late; /* replies that came after the decision, too late to be a vote. The slower
                          nodes of a healthy cluster have many */

  uint64_t connections;      /* that came up: the first one and reconnections */
  uint64_t failures;         /* connections that ended or could not be made */
  uint64_t heals;            /* keys that the node had lost, and got again */
  uint64_t quarantines;      /* how often the guard began to exclude it */
  uint64_t outstanding;      /* commands that it has not answered */
  redlock_histogram latency; /* from each command of an operation to its reply */
} redlock_node_stats_info;

/* An event. Its texts live as those of redlock_node_info. */
typedef struct redlock_event_info {
  redlock_event event;
  redlock_time at_us;   /* on the clock of redlock_now() */
  const char *node;     /* UP, DOWN, QUARANTINED: its name; otherwise NULL */
  const char *reason;   /* DOWN, QUARANTINED: why; otherwise NULL */
  const void *resource; /* LOST, WARNED, WAITED: the first resource, without a NUL; otherwise
                              NULL. It lives until the next call of redlock_client_next_event() */
  size_t resource_length;
  int error;                   /* LOST, WARNED: as redlock_lock_lost(); WAITED: the result of the
                              acquire, perhaps REDLOCK_OK */
  redlock_duration waited_us;  /* WAITED: time of the whole acquire */
  size_t missed;               /* events before this one that were dropped: the queue has 64 */
  char text[REDLOCK_TEXT_MAX]; /* holds |reason| */
} redlock_event_info;

/* ------------------------------------------------------------------------------------ general */

/* Returns the version of the library in use, which may be newer than REDLOCK_VERSION. Static. */
REDLOCK_EXTERN const char *redlock_version(void);

/* Returns a sentence for |error|, static, never NULL. */
REDLOCK_EXTERN const char *redlock_strerror(int error);

/*
 * Return the short names that the Lua module uses: "taken", "not_held"; "granted", "unknown"; "up",
 * "connecting"; "free", "held"; "note", "warning". Static, never NULL; "unknown" for other numbers.
 */
REDLOCK_EXTERN const char *redlock_error_name(int error);
REDLOCK_EXTERN const char *redlock_vote_name(int vote);
REDLOCK_EXTERN const char *redlock_node_state_name(int state);
REDLOCK_EXTERN const char *redlock_key_state_name(int state);
REDLOCK_EXTERN const char *redlock_severity_name(int severity);
REDLOCK_EXTERN const char *redlock_event_name(int event);

/* Returns the time on the clock of all deadlines, in microseconds: see "Clocks". */
REDLOCK_EXTERN redlock_time redlock_now(void);

/* ------------------------------------------------------------------------------------- client */

/*
 * Makes a client without nodes in |*client|; give it up with redlock_client_free(). Sends nothing.
 * |settings| may be NULL. After a failure |*client| is NULL, and |message|, of |message_size|
 * bytes, has a sentence that names the wrong setting. |message| may be NULL.
 * Errors: INVALID, NO_MEMORY, SYSTEM.
 */
REDLOCK_EXTERN int redlock_client_new_sized(redlock_client **client,
                                            const redlock_settings *settings, size_t settings_size,
                                            size_t options_size, char *message,
                                            size_t message_size);
REDLOCK_INLINE int redlock_client_new(redlock_client **client, const redlock_settings *settings,
                                      char *message, size_t message_size) {
  return redlock_client_new_sized(client, settings, sizeof(redlock_settings),
                                  sizeof(redlock_options), message, message_size);
}

/*
 * Adds a node. |address| is one of
 *     host   host:port   [ipv6]:port   redis://[[user]:password@]host[:port][/db]
 *     unix:/path   unix:///path   unix://[user]:password@/path?db=n   rediss://...
 *     sentinel://[[user]:password@]host[:port][,host[:port]...]/master
 * The last one is the master that more than half of these Sentinels name. They are asked for each
 * new connection, without TLS. Their user and password are in the address, those of the master in
 * the settings. User, password and path may have %XX escapes; only a password may have a NUL (%00).
 * Sends nothing: the client connects when it first needs the node. |message| is as for
 * redlock_client_new().
 *
 * All clients of a resource must use the same nodes, because the majority is counted over them.
 * Nodes can be added until the first lock has been made. A server that was added under two names
 * counts once: the node with its second name stays down, and redlock_client_node_info() says why.
 * Errors: INVALID; UNSUPPORTED (TLS without settings.transport: redlock_tls.h); LIMIT; BUSY (a lock
 * has been made); CLOSED, NO_MEMORY.
 */
REDLOCK_EXTERN int redlock_client_add(redlock_client *client, const char *address, char *message,
                                      size_t message_size);

/* As redlock_client_add(), for a node in parts. */
REDLOCK_EXTERN int redlock_client_add_node_sized(redlock_client *client, const redlock_node *node,
                                                 size_t node_size, char *message,
                                                 size_t message_size);
REDLOCK_INLINE int redlock_client_add_node(redlock_client *client, const redlock_node *node,
                                           char *message, size_t message_size) {
  return redlock_client_add_node_sized(client, node, sizeof(redlock_node), message, message_size);
}

/*
 * Supplies what a redlock_credentials_function had pending for node |node|: its connection goes on.
 * |username| and |password|, of |length| bytes, may be NULL for none. A connection is given up 3 s
 * after it was begun; the function is called again for the next one. Wakes threads that wait.
 * Errors: EXPIRED (no connection waits for them), CLOSED; INVALID, NO_MEMORY.
 */
REDLOCK_EXTERN int redlock_client_give_credentials(redlock_client *client, size_t node,
                                                   const char *username, const void *password,
                                                   size_t length);

/*
 * Reports that pending credentials are not available. The node is down with the text |why|, which
 * may be NULL, and is retried as after other failures.
 * Errors: EXPIRED, CLOSED, INVALID.
 */
REDLOCK_EXTERN int redlock_client_refuse_credentials(redlock_client *client, size_t node,
                                                     const char *why);

/*
 * Takes another reference, to be given up with redlock_client_free(), and returns |client|. Every
 * lock has a reference of its own. NULL is allowed.
 */
REDLOCK_EXTERN redlock_client *redlock_client_ref(redlock_client *client);

/*
 * Gives up a reference. If this call gives up the last one, it sends what is left to release, waits
 * for the replies, for 100 ms at most, and frees everything. If redlock_lock_free() does, it
 * waits for no reply. NULL is allowed.
 */
REDLOCK_EXTERN void redlock_client_free(redlock_client *client);

/*
 * Ends all operations of the client's locks with REDLOCK_E_CLOSED, and releases everything that
 * they hold. Blocks for at most |timeout_us| until the nodes have confirmed, then closes all
 * connections. The client and its locks must still be freed; every later operation returns
 * REDLOCK_E_CLOSED. Returns REDLOCK_E_UNAVAILABLE if not all releases were confirmed in time: what
 * they were to delete ends with its ttl. May be called again.
 */
REDLOCK_EXTERN int redlock_client_close(redlock_client *client, redlock_duration timeout_us);

/*
 * Ends all blocking calls on the client that are in progress, in any thread, with
 * REDLOCK_E_CANCELLED. An acquire gives back what it has taken, an extend leaves the old deadline,
 * a release goes on without its caller, redlock_client_close() stops waiting. A call that begins
 * later is not ended: set a flag first, and check it before each call. A call whose operation was
 * decided returns its result.
 *
 * May be called from a signal handler; errno stays as it was. The caller, or another thread, must
 * hold a reference meanwhile. NULL is allowed.
 */
REDLOCK_EXTERN void redlock_client_wakeup(redlock_client *client);

/* Returns the number of nodes; fills |info| for the node |index|, from 0. Errors: INVALID. */
REDLOCK_EXTERN size_t redlock_client_node_count(const redlock_client *client);
REDLOCK_EXTERN int redlock_client_node_info_sized(redlock_client *client, size_t index,
                                                  redlock_node_info *info, size_t info_size);
REDLOCK_INLINE int redlock_client_node_info(redlock_client *client, size_t index,
                                            redlock_node_info *info) {
  return redlock_client_node_info_sized(client, index, info, sizeof(redlock_node_info));
}

/*
 * Returns why the last redlock_lock_new(), redlock_lock_attach(), redlock_client_bootstrap() or
 * redlock_client_close() of any thread failed: a sentence that names the option or the nodes; ""
 * after success. Lives until the next of these calls in any thread: threads that make locks at the
 * same time need a mutex around the call and the reading of this text.
 */
REDLOCK_EXTERN const char *redlock_client_message(redlock_client *client);

/* --------------------------------------------------------------------------------------- lock */

/*
 * Makes a lock for |resource|, of |resource_length| bytes of any kind, in |*lock|; give it up with
 * redlock_lock_free(). Sends nothing. |options| may be NULL for the client's. The lock keeps its
 * client alive. After a failure |*lock| is NULL, and redlock_client_message() explains it.
 *
 * Names that the library uses on the nodes are refused: those that end in ":redlock-fence",
 * ":redlock-queue", ":redlock-reserved" or ":redlock-wait", and "redlock:lineage".
 * Errors: INVALID (also: no nodes, or a quorum that does not fit their number), LIMIT (the key is
 * too long), CLOSED, NO_MEMORY.
 */
REDLOCK_EXTERN int redlock_lock_new_sized(redlock_lock **lock, redlock_client *client,
                                          const void *resource, size_t resource_length,
                                          const redlock_options *options, size_t options_size);
REDLOCK_INLINE int redlock_lock_new(redlock_lock **lock, redlock_client *client,
                                    const void *resource, size_t resource_length,
                                    const redlock_options *options) {
  return redlock_lock_new_sized(lock, client, resource, resource_length, options,
                                sizeof(redlock_options));
}

/*
 * As redlock_lock_new(), for |count| resources that are locked together:
 *
 *     redlock_resource both[] = {{"orders:42", 9}, {"orders:43", 9}};
 *     redlock_lock_new_many(&lock, client, both, 2, NULL);
 *
 * A node grants all of them or none; a majority of the nodes decides, as for one. So two locks with
 * a common resource exclude each other, in any order of names, and never wait for each other in a
 * circle. Each resource has a key of its own, as for a lock on it alone. An extend succeeds on
 * nodes where all keys have the token; a release deletes each key that has it.
 * redlock_lock_message() names the resource and the nodes that prevented an acquire.
 * Errors: as redlock_lock_new(); INVALID also for a repeated resource or none; LIMIT also for more
 * than REDLOCK_RESOURCES_MAX.
 */
REDLOCK_EXTERN int redlock_lock_new_many_sized(redlock_lock **lock, redlock_client *client,
                                               const redlock_resource *resources, size_t count,
                                               const redlock_options *options, size_t options_size);
REDLOCK_INLINE int redlock_lock_new_many(redlock_lock **lock, redlock_client *client,
                                         const redlock_resource *resources, size_t count,
                                         const redlock_options *options) {
  return redlock_lock_new_many_sized(lock, client, resources, count, options,
                                     sizeof(redlock_options));
}

/*
 * Frees the lock. If it is held or has an operation in flight, its token is released without
 * waiting: bytes that the sockets do not take at once go out with the next call on the client, or
 * by the watchdog. Free locks before their client: after the last reference nothing sends such
 * bytes. Allocates nothing and cannot fail, so finalizers may call it. NULL is allowed.
 */
REDLOCK_EXTERN void redlock_lock_free(redlock_lock *lock);

/*
 * Acquires the lock. Blocks until the lock is granted, the attempts are used up, or wait_us is
 * over. |options| may be NULL for the lock's. On success |*validity_us| is the time that is left of
 * the lease, always more than 0; |validity_us| may be NULL.
 *
 * A majority of the nodes decides, or settings.quorum (SPEC, algorithm steps 1 to 5). The first
 * acquire of a client then waits a little longer, so that nodes whose connections are being made
 * get the key, too: for at most 100 ms or four times what the majority took, and never beyond
 * node_timeout_us or a tenth of the ttl.
 * Errors: TAKEN, UNAVAILABLE, EXPIRED, LOST (only after redlock_lock_attach(), or nested:
 * "re-entrance"), HELD, CANCELLED, CLOSED; INVALID, BUSY, NO_MEMORY, SYSTEM.
 */
REDLOCK_EXTERN int redlock_lock_acquire_sized(redlock_lock *lock, const redlock_options *options,
                                              size_t options_size, redlock_duration *validity_us);
REDLOCK_INLINE int redlock_lock_acquire(redlock_lock *lock, const redlock_options *options,
                                        redlock_duration *validity_us) {
  return redlock_lock_acquire_sized(lock, options, sizeof(redlock_options), validity_us);
}

/*
 * Extends the lease of a held lock to now + |ttl_us|; 0 stands for the ttl of its acquire. Succeeds
 * only if a quorum confirms before the old deadline (SPEC, Extending the lock). Never shortens a
 * lease, and never takes a lost lock again. Ends by the old deadline; usually within one
 * node_timeout_us. Next to many started operations it first waits for its turn.
 *
 * A failed extend changes nothing: the old deadline stands, and the next extend may succeed. The
 * exception is REDLOCK_E_LOST: another client may hold the lock. Then the lease is over,
 * redlock_lock_remaining() is 0, and what is left of it is released. This can also turn out after
 * an extend that returned UNAVAILABLE.
 * Errors: UNAVAILABLE, EXPIRED, LOST, NOT_HELD, CANCELLED, CLOSED; INVALID, BUSY, NO_MEMORY,
 * SYSTEM.
 */
REDLOCK_EXTERN int redlock_lock_extend(redlock_lock *lock, redlock_duration ttl_us,
                                       redlock_duration *validity_us);

/*
 * Releases the lock. redlock_lock_remaining() is 0 before the first byte is sent. REDLOCK_OK means
 * that a majority of the nodes no longer has the token (SPEC, Single instance: release by token).
 * Usually ends within one node_timeout_us. Next to many started operations it first waits for its
 * turn, for at most a third of the ttl. Ends an extend that was started, without a report.
 *
 * Before hold_at_least_us is over, the keys are kept until then in place of the deletion, and
 * REDLOCK_OK means that a majority keeps them. REDLOCK_E_UNAVAILABLE: more nodes may yet keep them.
 * REDLOCK_E_LOST: no majority can, so another client may get the lock sooner.
 *
 * After REDLOCK_E_UNAVAILABLE the call may be repeated. The watchdog, and every later call on the
 * client that does I/O, retry on the nodes that have not confirmed. They stop when the key has
 * expired. A lease that has run out can be released once: REDLOCK_OK if a majority still had it,
 * else REDLOCK_E_EXPIRED.
 * Errors: UNAVAILABLE, EXPIRED, LOST (another client could hold it), NOT_HELD, CANCELLED, CLOSED;
 * BUSY, NO_MEMORY, SYSTEM.
 */
REDLOCK_EXTERN int redlock_lock_release(redlock_lock *lock);

/*
 * Releases the lock without waiting: ends the lease, hands to the kernel what the sockets take, and
 * returns. REDLOCK_OK means no more than that. So a pair of acquire and release costs one round
 * trip. Every later call on the client that does I/O sends the rest and retries until the key has
 * expired. Freeing the lock or acquiring it again does not end that. redlock_lock_result() returns
 * the result of the release after a call that does I/O, such as redlock_client_process();
 * redlock_lock_release() waits for it.
 *
 * Close the client before the program ends: the exit of a process with unread replies resets its
 * connections, and a node may then drop what it has not read.
 * Errors: LOST, NOT_HELD, CLOSED; BUSY.
 */
REDLOCK_EXTERN int redlock_lock_release_send(redlock_lock *lock);

/* Returns the time that is left of the lease, in microseconds; 0 if none is held. */
REDLOCK_EXTERN redlock_duration redlock_lock_remaining(const redlock_lock *lock);

/* Returns the end of the lease on the clock of redlock_now(); 0 if none is held. */
REDLOCK_EXTERN redlock_time redlock_lock_deadline(const redlock_lock *lock);

/*
 * Returns how many keys of the lease may vanish before a second holder is possible: nodes that are
 * known to have the key + quorum - N - 1. (A key vanishes by a restart without data or by
 * eviction.) -1: the lock is not held, or a second holder is possible already. Sends nothing.
 *
 * With five nodes and a majority it is 2 if all nodes have the key, and 0 if three have it. Replies
 * after the decision count, and so do nodes that reconnect later: redlock_client_process() and
 * every call that does I/O read them. A node that has lost the key counts until an extend asks it.
 */
REDLOCK_EXTERN int redlock_lock_margin(const redlock_lock *lock);

/*
 * Return the token of the lease, "" if none is held, until the lock's next operation. It has 40
 * digits, with options.label a colon and the label, and a NUL. A supplied token
 * (redlock_lock_give_token()) may have any bytes: redlock_lock_token_bytes() also returns the
 * number of bytes in |*length|.
 */
REDLOCK_EXTERN const char *redlock_lock_token(const redlock_lock *lock);
REDLOCK_EXTERN const void *redlock_lock_token_bytes(const redlock_lock *lock, size_t *length);

/*
 * Returns the fencing token of the lease, from 1 to 2^53 - 1; 0 if no lease is held, or it was
 * acquired without options.fence. Do not write with 0. The token is greater than that of each grant
 * of the resource that was made before this acquire began. It stays the same until the lease ends,
 * also through extends, detach and attach. Call this once after the acquire, and send the token
 * with each write. The store keeps the greatest token, and in the same transaction refuses a
 * smaller one; an equal one must pass (M. Kleppmann, "How to do distributed locking"). Then a
 * holder that was paused beyond its lease does no harm.
 *
 * A grant with a fencing token takes one round trip if the nodes agree, as they usually do, else
 * two within the same node_timeout_us. Each key has a counter on the nodes, with ":redlock-fence"
 * after its name, which lives a week longer than the key. Every client must set fence: a holder
 * without it raises no counter. A lock of several resources has one token, greater than those of
 * each of them.
 */
REDLOCK_EXTERN uint64_t redlock_lock_fence(const redlock_lock *lock);

/*
 * Returns the slot of a held semaphore, from 1 to options.permits; 0 if it is not held, or if the
 * lock has no permits. At any time the slots of all holders differ, so a program may use it as the
 * index of what the semaphore protects. Each slot has a counter of fencing tokens of its own: only
 * tokens of one slot can be compared.
 */
REDLOCK_EXTERN unsigned redlock_lock_slot(const redlock_lock *lock);

/*
 * Supplies the token for the next acquire of this lock, in place of a random one: |length| bytes of
 * any kind, from 1 to REDLOCK_TOKEN_MAX. For programs that share a lock with another library under
 * a value that both know (LockTake of StackExchange.Redis, WithValue of redsync). The next acquire
 * uses it up, whatever its result, and makes one attempt. It waits in the nodes' queues before that
 * attempt with options.fair, or if the client has just seen the lock contended. A forked child
 * has no supplied token.
 *
 * DANGER: safety depends on tokens that no other holder has and that are never used twice. A second
 * holder with the same token extends and releases the lock of the first. A late release of the
 * first use deletes the key of the second. Use at least 16 random bytes, once. An acquire that
 * fails deletes the token only on nodes that have confirmed it; on nodes that did not answer, a key
 * may stay for its ttl.
 * Errors: INVALID (no token), LIMIT, NO_MEMORY.
 */
REDLOCK_EXTERN int redlock_lock_give_token(redlock_lock *lock, const void *token, size_t length);

/*
 * Returns the resource without prefix, of |*length| bytes; the first of several. Lives as the lock.
 */
REDLOCK_EXTERN const void *redlock_lock_resource(const redlock_lock *lock, size_t *length);

/*
 * Returns the number of resources; fills |resource| with number |index|, from 0.
 * Errors: INVALID.
 */
REDLOCK_EXTERN size_t redlock_lock_resource_count(const redlock_lock *lock);
REDLOCK_EXTERN int redlock_lock_resource_at(const redlock_lock *lock, size_t index,
                                            redlock_resource *resource);

/* Returns the ttl of the lock's own options. */
REDLOCK_EXTERN redlock_duration redlock_lock_ttl(const redlock_lock *lock);

/* Returns the lock's client, without a new reference. */
REDLOCK_EXTERN redlock_client *redlock_lock_client(const redlock_lock *lock);

/*
 * Returns why the last operation failed or could not begin: a sentence that names the nodes, or the
 * wrong option; "" after success and during an operation. Lives until the next operation on the
 * lock begins, or until the next call of this function.
 * An error of give_token, set_owner or detach takes the place of an earlier failure.
 */
REDLOCK_EXTERN const char *redlock_lock_message(redlock_lock *lock);

/* Fills |vote| with the vote of node |index|, from 0, in the last round. Errors: INVALID. */
REDLOCK_EXTERN int redlock_lock_vote_sized(redlock_lock *lock, size_t index,
                                           redlock_vote_info *vote, size_t vote_size);
REDLOCK_INLINE int redlock_lock_vote(redlock_lock *lock, size_t index, redlock_vote_info *vote) {
  return redlock_lock_vote_sized(lock, index, vote, sizeof(redlock_vote_info));
}

/* Keep a pointer of the program with the lock. Set it before other threads may read it. */
REDLOCK_EXTERN void redlock_lock_set_data(redlock_lock *lock, void *data);
REDLOCK_EXTERN void *redlock_lock_data(const redlock_lock *lock);

/* ------------------------------------------------------------------------------ re-entrance */

/*
 * Sets the owner of the lock from its next acquire on: |length| bytes of any kind, at most
 * REDLOCK_OWNER_MAX; 0 for none, the default. Choose bytes that name a task or a request. Do not
 * use a pointer that may be freed and reused while the lock is held. The calling thread has no
 * meaning.
 *
 * Locks of one client with the same owner are re-entrant. An acquire of a resource that its owner
 * holds already, by any lock, is counted and succeeds at once without the nodes.
 * redlock_lock_release(), redlock_lock_release_send() and redlock_lock_free() count down; the last
 * one releases, on whichever lock. A lock that was acquired n times is released n times; freeing it
 * gives back all n. Releases of a lost lease return REDLOCK_E_LOST as often. Locks of other clients
 * and processes never count.
 *
 *   - All of them share one lease, one token and one deadline, and are lost together. If less than
 *     two thirds of the validity of a nested acquire's ttl is left, it first extends the lease, and
 *     fails if that fails; the other locks still hold. It uses its own wait_us and node_timeout_us.
 *   - auto_extend, extend_every_us and max_hold_us are those of the acquire that took the lease. A
 *     loss of such a lease is reported for each lock. notify_lost, votes and messages are each
 *     lock's own. No nested acquire extends beyond max_hold_us: then it shares what is left.
 *   - An acquire of some of the resources shares the lease of all. An acquire of more is refused
 *     with REDLOCK_E_HELD, because it would wait for itself. So is one with a supplied token, and
 *     one with options.fence if the lease has no fencing token.
 *   - If the lease has run out or is lost, a nested acquire returns REDLOCK_E_EXPIRED or
 *     REDLOCK_E_LOST until all locks that share it are released.
 *   - Two acquires of one owner may be in flight. As soon as one is granted, the others share its
 *     lease, if it has all their resources.
 *   - The locks may be in several threads. During an extend of one, an extend of another one
 *     returns REDLOCK_E_BUSY, and an acquire shares without waiting for it.
 *   - redlock_lock_detach() returns REDLOCK_E_HELD while other locks share the lease.
 *
 * Errors: HELD (by another owner; the lock is unchanged); INVALID, LIMIT, BUSY, NO_MEMORY.
 */
REDLOCK_EXTERN int redlock_lock_set_owner(redlock_lock *lock, const void *owner, size_t length);

/* --------------------------------------------------------------------------- automatic extends */

/*
 * With auto_extend the library extends a lease by itself: a third of the ttl after the last
 * confirmed extend, or extend_every_us; sooner after a failure. A random part is subtracted: up to
 * an eighth, for the first extend up to three quarters. So leases of one moment are not extended in
 * one moment. The rules of redlock_lock_extend() hold: no extend counts after the deadline, none
 * takes a lost lock again. Only redlock_lock_remaining() > 0 means that the lock is held.
 *
 * After redlock_lock_acquire_start() an extend is one more deadline of the program's loop, which
 * has to run. After a blocking acquire a thread of the client extends, the watchdog. It works while
 * no thread waits in a call; then it also reads late replies, reconnects and sends. It ends with
 * redlock_client_close() and with the last reference, at once even if all nodes hang. A forked
 * child has none until it acquires such a lease. If it cannot be started, the call returns
 * REDLOCK_E_SYSTEM.
 *
 * An operation of the program goes before an automatic extend in flight, which never makes it fail.
 * redlock_lock_result(), message and votes are those of the program's last operation. Automatic
 * extends end with a release, redlock_lock_free(), redlock_client_close(), max_hold_us and the loss
 * of the lease. max_hold_us does not limit redlock_lock_extend().
 *
 * Three functions report a loss, for three kinds of programs. redlock_lock_lost() answers for one
 * lock; every program can call it between its steps. redlock_client_next_lost() serves loops.
 * redlock_client_on_lost() serves programs without a loop that compute for long.
 */

/*
 * Returns why the lock's last lease is lost; REDLOCK_OK if it is not, was released, or never was:
 *   - REDLOCK_E_EXPIRED: its deadline has passed;
 *   - REDLOCK_E_LOST: so many nodes do not have the token that another client may hold it;
 *   - REDLOCK_E_MAX_HOLD: its deadline has passed because max_hold_us has ended the extends;
 *   - REDLOCK_E_UNAVAILABLE, a warning: the lease lasts, but automatic extends fail;
 *   - REDLOCK_E_CLOCK, a warning, with a guard and auto_extend or notify_lost: the lease lasts, but
 *     clocks of nodes were stepped forward, and the nodes that certainly have the key are no
 *     quorum.
 * |*since_us| is the time since when, on the clock of redlock_now(); |since_us| may be NULL. Sends
 * nothing.
 * Errors: INVALID.
 */
REDLOCK_EXTERN int redlock_lock_lost(const redlock_lock *lock, redlock_time *since_us);

/*
 * Returns the next lock with auto_extend or notify_lost for which redlock_lock_lost() has a new
 * reason, NULL if there is none. Each lock is returned once for each reason. A warning can recover
 * and come again: the reason is REDLOCK_OK if it has recovered by the time of the question. A clock
 * warning ends when enough nodes have confirmed an extend by at least what is left. Of two warnings
 * the first one counts. A lock that is released, acquired again or freed is not returned.
 * The caller gets no reference: no thread must free the lock before the caller has used it.
 *
 * A new loss makes redlock_client_pollfd() readable and redlock_client_timeout() 0 once: call this
 * function after each redlock_client_process(). A lock that was not fetched stays in the list.
 */
REDLOCK_EXTERN redlock_lock *redlock_client_next_lost(redlock_client *client);

/*
 * Has |on_lost| called with |client| and |data| when redlock_client_next_lost() has something new;
 * |on_lost| then calls that. NULL ends it; a call in progress goes on. Starts the watchdog, which
 * makes the calls: one at a time, without any mutex, so |on_lost| may call every function. No
 * extends of leases happen meanwhile, so it should return soon. Other threads must not free a lock
 * that |on_lost| uses; docs/c.md shows a mutex for that. A program calls redlock_client_next_lost()
 * either here or in its loop, because each loss is returned once.
 *
 * |on_lost| may also close the client or give up its last reference: the thread then ends when
 * |on_lost| has returned. In other threads redlock_client_close() and the call that gives up the
 * last reference wait for |on_lost|. A forked child must call this again.
 * Errors: INVALID (also for a client of nginx), CLOSED, SYSTEM (the thread could not be started).
 */
typedef void redlock_lost_function(redlock_client *client, void *data);
REDLOCK_EXTERN int redlock_client_on_lost(redlock_client *client, redlock_lost_function *on_lost,
                                          void *data);

/* ------------------------------------------------------------------------------ leader election */

/*
 * Runs |lead| while this client leads: at most one client of a resource does. Blocks in the calling
 * thread, which also calls the functions:
 *
 *     static int lead(redlock_lock *term, void *data) {
 *       uint64_t fence = redlock_lock_fence(term);
 *       while (redlock_lock_remaining(term) > 0 && !stopped)
 *         step(data, fence);
 *       return stopped ? REDLOCK_RESIGN : REDLOCK_CAMPAIGN;
 *     }
 *
 *     error = redlock_client_lead(client, "scheduler", 9, NULL, lead, NULL, data);
 *
 * It waits for the lock of the resource, for as long as it takes, and calls |lead| with the held
 * lock, the term. The lease extends itself (the watchdog), and has a fencing token that is greater
 * than that of each term before. If the lease is lost, redlock_lock_lost() and the functions of
 * "Automatic extends" report it. |lead| must then return. The term ends when |lead| has returned:
 * the lock is released, unless |lead| has released it, and freed. Only then the next campaign
 * begins, unless |lead| has returned REDLOCK_RESIGN. |lead| may use the client, but must not free
 * the lock. It must not leave by longjmp() or a C++ exception: the lease would extend itself for
 * ever.
 *
 * So two terms never overlap while |lead| stops at the end of its lease. A paused process cannot
 * stop: pass the fencing token with each write, to a store that rejects a smaller one.
 *
 * While too few nodes answer, |failed| is called after 1 s, then after 2, 4, ... 60 s more, with
 * the result (UNAVAILABLE, EXPIRED) and the text of redlock_lock_message(). If it returns
 * REDLOCK_RESIGN, the call ends with that result. NULL: no reports.
 *
 * |options| are those of the lock, and may be NULL. auto_extend and fence are always on. wait_us
 * limits each campaign, and the call then ends with the failure; unset and REDLOCK_NEVER: no limit.
 * Values of the client's options for these three, retry_count and permits have no effect.
 *
 * Ends with REDLOCK_OK after REDLOCK_RESIGN, or with EXPIRED, LOST or MAX_HOLD if the lease of the
 * last term had ended before. redlock_client_wakeup() ends a campaign with CANCELLED; it does not
 * end |lead|: set a flag that |lead| checks, and repeat the wakeup until the call has ended.
 * redlock_client_close() ends a campaign with CLOSED. After a failure redlock_client_message()
 * explains it. redlock_lock_inspect() and redlock_lock_holder() name the leader: label, fence, ttl.
 * Errors: UNAVAILABLE (too few nodes accept the password, or |failed| resigned), CANCELLED, CLOSED;
 * with wait_us also TAKEN, EXPIRED; INVALID (also: retry_count, permits, auto_extend or fence
 * REDLOCK_NO), LIMIT, NO_MEMORY, SYSTEM.
 */
#define REDLOCK_CAMPAIGN 0 /* go on: campaign again */
#define REDLOCK_RESIGN 1   /* end redlock_client_lead() */
typedef int redlock_lead_function(redlock_lock *term, void *data);
typedef int redlock_failed_function(redlock_client *client, int error, const char *message,
                                    void *data);
REDLOCK_EXTERN int redlock_client_lead_sized(redlock_client *client, const void *resource,
                                             size_t resource_length, const redlock_options *options,
                                             size_t options_size, redlock_lead_function *lead,
                                             redlock_failed_function *failed, void *data);
REDLOCK_INLINE int redlock_client_lead(redlock_client *client, const void *resource,
                                       size_t resource_length, const redlock_options *options,
                                       redlock_lead_function *lead, redlock_failed_function *failed,
                                       void *data) {
  return redlock_client_lead_sized(client, resource, resource_length, options,
                                   sizeof(redlock_options), lead, failed, data);
}

/* ------------------------------------------------------------------------ statistics and events */

/*
 * Fill |info|. They send nothing, and take a time in proportion to the number of locks of the
 * client: about 0.1 ms for 10,000. Errors: INVALID.
 */
REDLOCK_EXTERN int redlock_client_stats_sized(redlock_client *client, redlock_stats_info *info,
                                              size_t info_size);
REDLOCK_INLINE int redlock_client_stats(redlock_client *client, redlock_stats_info *info) {
  return redlock_client_stats_sized(client, info, sizeof(redlock_stats_info));
}

/* Fills |info| for the node |index|, from 0. Errors: INVALID. */
REDLOCK_EXTERN int redlock_client_node_stats_sized(redlock_client *client, size_t index,
                                                   redlock_node_stats_info *info, size_t info_size);
REDLOCK_INLINE int redlock_client_node_stats(redlock_client *client, size_t index,
                                             redlock_node_stats_info *info) {
  return redlock_client_node_stats_sized(client, index, info, sizeof(redlock_node_stats_info));
}

/*
 * Returns the upper bound of a bucket, from 0; it belongs to the bucket. The last bucket,
 * REDLOCK_BUCKETS - 1, has REDLOCK_NEVER. All histograms have the same bounds.
 */
REDLOCK_EXTERN redlock_duration redlock_bucket_bound(size_t bucket);

/*
 * Turns events on, and has |on_event| called with |client| and |data| when there are new ones;
 * |on_event| then calls redlock_client_next_event() until that returns REDLOCK_PENDING. The
 * watchdog makes the calls, as for redlock_client_on_lost(): that comment has the rules. With NULL
 * no calls are made, for a program with a loop, and no thread is started. A forked child must call
 * this again.
 * Errors: INVALID (also for a client of nginx), CLOSED, NO_MEMORY, SYSTEM.
 */
typedef void redlock_event_function(redlock_client *client, void *data);
REDLOCK_EXTERN int redlock_client_on_event(redlock_client *client, redlock_event_function *on_event,
                                           void *data);

/*
 * Fills |info| with the oldest event, each once. Returns REDLOCK_PENDING if there is none. A new
 * event makes redlock_client_pollfd() readable and redlock_client_timeout() 0: a loop calls this
 * after each redlock_client_process(). Only one thread may call it at a time.
 * Errors: INVALID.
 */
REDLOCK_EXTERN int redlock_client_next_event_sized(redlock_client *client, redlock_event_info *info,
                                                   size_t info_size);
REDLOCK_INLINE int redlock_client_next_event(redlock_client *client, redlock_event_info *info) {
  return redlock_client_next_event_sized(client, info, sizeof(redlock_event_info));
}

/* -------------------------------------------------------------------------- to another process */

/*
 * Writes a held lock into |text|, of |size| bytes, for another process: ASCII letters, digits, '.',
 * '-', '_', and a NUL. REDLOCK_HANDOVER_MAX bytes are enough for a lock of one resource. |*length|
 * is the length without NUL, also if |size| is too small; |length| may be NULL. After success the
 * lock is not held here, automatic extends end, and nothing is released: the rest of the lease
 * lasts until another process attaches it. The text has resources, token and ttl: a reader of it
 * can take the lock.
 * Errors: NOT_HELD, LOST, CLOSED; HELD (other locks of its owner share the lease); INVALID, BUSY,
 * LIMIT (|size|; the lock is still held).
 */
REDLOCK_EXTERN int redlock_lock_detach(redlock_lock *lock, char *text, size_t size, size_t *length);

/*
 * Makes a lock from what redlock_lock_detach() wrote, |length| bytes without the NUL. Sends
 * nothing: the first acquire takes the lease over, and tries once. It replaces the token on a
 * majority of the nodes by a fresh one, with a full ttl; validity counts from then. The time
 * between counts against the lease on the nodes: no clocks are compared. The acquire returns
 * REDLOCK_E_LOST if a majority does not have the written token: it was attached before, has run
 * out, or the text was changed. After a failure no client holds the lock, and what is left of it
 * runs out. Unset ttl_us and lock_delay_us are those of the lease; |options| may be NULL. The text
 * has the rest of hold_at_least_us, which the nodes reduce by the time in between. A set
 * hold_at_least_us replaces it and counts from the acquire; REDLOCK_DURATION_NONE drops it.
 *
 * The client must have the same nodes and the same prefix. Attach and acquire in the same process.
 * After a failure redlock_client_message() explains it.
 * Errors: LOST (no such text), CLOSED; INVALID (other nodes, another prefix), NO_MEMORY.
 */
REDLOCK_EXTERN int redlock_lock_attach_sized(redlock_lock **lock, redlock_client *client,
                                             const char *text, size_t length,
                                             const redlock_options *options, size_t options_size);
REDLOCK_INLINE int redlock_lock_attach(redlock_lock **lock, redlock_client *client,
                                       const char *text, size_t length,
                                       const redlock_options *options) {
  return redlock_lock_attach_sized(lock, client, text, length, options, sizeof(redlock_options));
}

/* ------------------------------------------------------------------------------ for operators */

/*
 * The calls of this section ask every node once, on behalf of a lock that must not be held: make
 * another lock for the resource. They block for at most one node_timeout_us, the doctor for longer.
 */

/*
 * Asks all nodes for the key of the lock's resource, the holder's token included. Changes nothing.
 * REDLOCK_OK means that a majority has answered. redlock_lock_key() returns the answers, also after
 * REDLOCK_E_UNAVAILABLE. They are of slightly different moments in the past.
 * Errors: UNAVAILABLE, HELD, CANCELLED, CLOSED; BUSY, NO_MEMORY, SYSTEM.
 */
REDLOCK_EXTERN int redlock_lock_inspect(redlock_lock *lock);
REDLOCK_EXTERN int redlock_lock_inspect_start(redlock_lock *lock);

/* Fills |info| with the last inspection's answer of node |index|, from 0. Errors: INVALID. */
REDLOCK_EXTERN int redlock_lock_key_sized(redlock_lock *lock, size_t index, redlock_key_info *info,
                                          size_t info_size);
REDLOCK_INLINE int redlock_lock_key(redlock_lock *lock, size_t index, redlock_key_info *info) {
  return redlock_lock_key_sized(lock, index, info, sizeof(redlock_key_info));
}

/*
 * Fills |info| with the holder at that time.
 * Errors: NOT_HELD (no token had a majority); INVALID.
 */
REDLOCK_EXTERN int redlock_lock_holder_sized(redlock_lock *lock, redlock_holder_info *info,
                                             size_t info_size);
REDLOCK_INLINE int redlock_lock_holder(redlock_lock *lock, redlock_holder_info *info) {
  return redlock_lock_holder_sized(lock, info, sizeof(redlock_holder_info));
}

/*
 * Examines all nodes: independent servers, persistence, eviction, ACL, clocks, speed. Changes
 * nothing on them. |flags| is 0 or
 *   REDLOCK_DOCTOR_KEYS   also search the client's prefix for locks without an expiry: up to 10,000
 *                         keys of each node, or about 2,000 under the prefix; a node is busy for ms
 *
 * Any lock of one resource will do: its key names are used to try the ACL, its ttl and
 * node_timeout_us are checked. Blocks for one second or one node_timeout_us, whichever is longer.
 * REDLOCK_OK means that a majority could be examined, whatever was found; redlock_lock_finding()
 * returns that, also after REDLOCK_E_UNAVAILABLE. The user of the nodes needs INFO and TIME in
 * addition to the rights for locks; for keys SCAN and STRLEN.
 * Errors: UNAVAILABLE, HELD, CANCELLED, CLOSED; INVALID (also: several resources), BUSY, NO_MEMORY,
 * SYSTEM.
 */
#define REDLOCK_DOCTOR_KEYS 1u
REDLOCK_EXTERN int redlock_lock_doctor(redlock_lock *lock, unsigned flags);
REDLOCK_EXTERN int redlock_lock_doctor_start(redlock_lock *lock, unsigned flags);

/* Fills |info| with finding |index|, from 0, the most severe first. Errors: INVALID (no more). */
REDLOCK_EXTERN int redlock_lock_finding_sized(redlock_lock *lock, size_t index,
                                              redlock_finding_info *info, size_t info_size);
REDLOCK_INLINE int redlock_lock_finding(redlock_lock *lock, size_t index,
                                        redlock_finding_info *info) {
  return redlock_lock_finding_sized(lock, index, info, sizeof(redlock_finding_info));
}

/*
 * With a guard: declares that all nodes remember all locks there are, so that none is quarantined.
 * For new nodes, and after guard_max_ttl_us or the list of nodes was changed.
 *
 * DANGER: this is true only while no client holds a lock. Otherwise, if a node has forgotten a
 * lock, two holders are possible afterwards.
 *
 * REDLOCK_OK means that a quorum may vote. redlock_client_message() explains the rest; after
 * redlock_lock_bootstrap() redlock_lock_vote() does so for each node.
 * Errors: UNAVAILABLE, HELD, CANCELLED, CLOSED; INVALID (no guard), BUSY, NO_MEMORY, SYSTEM.
 */
REDLOCK_EXTERN int redlock_client_bootstrap(redlock_client *client);
REDLOCK_EXTERN int redlock_lock_bootstrap(redlock_lock *lock);
REDLOCK_EXTERN int redlock_lock_bootstrap_start(redlock_lock *lock);

/*
 * Deletes the key of another holder, on every node where it has |token|, of |length| bytes, from
 * redlock_lock_key(). With NULL and REDLOCK_TOKEN_ANY the key is deleted whatever it has.
 *
 * DANGER: the holder does not learn of it. If it is alive, it works on until its deadline, next to
 * the next holder. Use this for a holder that is known to be dead. REDLOCK_TOKEN_ANY may delete the
 * key of a client that has acquired the lock meanwhile. Nothing is retried later.
 *
 * REDLOCK_OK means that a majority of the nodes has no such key now, and at least one had it;
 * redlock_lock_vote() is GRANTED for a deleted key, and TAKEN if the node did not have it so.
 * Errors: UNAVAILABLE, NOT_HELD (no node that answered had it), HELD, CANCELLED, CLOSED; INVALID,
 * BUSY, NO_MEMORY, SYSTEM.
 */
#define REDLOCK_TOKEN_ANY SIZE_MAX
REDLOCK_EXTERN int redlock_lock_force_release(redlock_lock *lock, const void *token, size_t length);
REDLOCK_EXTERN int redlock_lock_force_release_start(redlock_lock *lock, const void *token,
                                                    size_t length);

/* ------------------------------------------------------------------------- the program's loop */

/*
 * Blocking calls are built on the functions below, which never block. A loop is
 *
 *     n = redlock_client_pollfds(client, fds, capacity);
 *     poll(fds, n, redlock_client_timeout_ms(client));
 *     redlock_client_process(client, fds, n);
 *     while ((lock = redlock_client_next_ended(client)) != NULL) ...
 *
 * A function with the suffix _start sends nothing: the next redlock_client_process() does, and
 * redlock_client_timeout() is 0 until then. A loop that wants one descriptor instead of an array
 * and a time-out uses redlock_client_pollfd().
 *
 * A loop and blocking calls of other threads may share a client; whichever wakes first does what is
 * due. Such a loop must wait with redlock_client_pollfd(), which also wakes it for what other
 * threads have ended. An array and a time-out describe only the moment of the question.
 *
 * Two loops need two clients: redlock_client_next_ended() returns each lock once, to the loop that
 * asks first.
 */

/*
 * Begin what the blocking calls of these names do. Freeing the lock abandons the operation.
 * An error means that no operation has begun: redlock_client_next_ended() does not return the lock.
 * Errors: EXPIRED, LOST, HELD, NOT_HELD, CLOSED; INVALID, BUSY, NO_MEMORY.
 */
REDLOCK_EXTERN int redlock_lock_acquire_start_sized(redlock_lock *lock,
                                                    const redlock_options *options,
                                                    size_t options_size);
REDLOCK_INLINE int redlock_lock_acquire_start(redlock_lock *lock, const redlock_options *options) {
  return redlock_lock_acquire_start_sized(lock, options, sizeof(redlock_options));
}
REDLOCK_EXTERN int redlock_lock_extend_start(redlock_lock *lock, redlock_duration ttl_us);
REDLOCK_EXTERN int redlock_lock_release_start(redlock_lock *lock);

/*
 * Returns REDLOCK_PENDING during an operation, then its result until the next one begins. After an
 * acquire or an extend the result REDLOCK_OK turns into REDLOCK_E_EXPIRED when the lease ends, and
 * what is left of the lock is released. It turns into REDLOCK_E_LOST when the lease is lost,
 * into REDLOCK_E_CLOSED with the client, and into REDLOCK_E_NOT_HELD after a detach and in a forked
 * child. A lock without any operation returns REDLOCK_OK.
 */
REDLOCK_EXTERN int redlock_lock_result(const redlock_lock *lock);

/*
 * Ends the operation in flight with REDLOCK_E_CANCELLED; does nothing if there is none. A cancelled
 * acquire releases on every node that its command may have reached. A cancelled extend leaves the
 * old deadline. A cancelled release goes on without its lock.
 */
REDLOCK_EXTERN void redlock_lock_cancel(redlock_lock *lock);

/*
 * Fills |fds|, of |capacity| elements, with descriptors and the events to wait for. Returns their
 * number, which may exceed |capacity|. REDLOCK_NODES_MAX elements are always enough: second
 * connections exist only for up to 16 nodes. Any call on the client may change the set.
 */
REDLOCK_EXTERN size_t redlock_client_pollfds(redlock_client *client, struct pollfd *fds,
                                             size_t capacity);

/*
 * Returns the time until redlock_client_process() is due, in microseconds: 0 for at once,
 * REDLOCK_NEVER if nothing is due, else at most a second. poll(2) does not count suspend, so such a
 * loop is up to a second late after a suspend.
 */
REDLOCK_EXTERN redlock_duration redlock_client_timeout(redlock_client *client);

/* Returns the same for poll(2): in milliseconds, rounded up; -1 if nothing is due. */
REDLOCK_EXTERN int redlock_client_timeout_ms(redlock_client *client);

/*
 * Reads, decides and sends what is possible without blocking. |fds|, of |count| elements, is the
 * array that the program polled, with its revents; if it is NULL, the call polls by itself.
 * Errors: CLOSED, SYSTEM (no entropy: acquires wait until a later call finds it).
 */
REDLOCK_EXTERN int redlock_client_process(redlock_client *client, const struct pollfd *fds,
                                          size_t count);

/*
 * Returns one descriptor for everything. When it is readable, call redlock_client_process(client,
 * NULL, 0), and then redlock_client_next_ended() until it returns NULL. Replies, started
 * operations, retries, time-outs, reconnections, losses, and operations that ended outside of the
 * loop make it readable. Sometimes it is readable although nothing is due; the call sets that
 * right. Do not read from it or change it. Wait for it level-triggered, as poll() does and epoll
 * without EPOLLET.
 *
 * It stays the same until the client is closed or the process forks. Remove it from your loop
 * before you close the client, and call this again in a child.
 *
 * Linux only: an epoll descriptor with the sockets, a timer and an event. Returns -1 elsewhere, and
 * if the system refuses a descriptor: then use redlock_client_pollfds() and
 * redlock_client_timeout_ms(). From the first call on each started operation costs two more system
 * calls.
 */
REDLOCK_EXTERN int redlock_client_pollfd(redlock_client *client);

/*
 * Returns the next lock whose started operation has ended, each once; NULL if there is none. The
 * caller gets no reference.
 */
REDLOCK_EXTERN redlock_lock *redlock_client_next_ended(redlock_client *client);

/* ---------------------------------------------------------------- Lua hosts (libredlock-luaX.Y) */

/*
 * Pushes |client| as the object that redlock.new() returns in Lua, with a reference of its own.
 * require "redlock" must have been called in that state. Returns 1, the number of values pushed.
 * Raises a Lua error if out of memory, or if the module is not loaded.
 */
REDLOCK_EXTERN int redlock_lua_push_client(struct lua_State *L, redlock_client *client);

/* The C module, for hosts that link it statically: package.preload["redlock.core"]. */
REDLOCK_EXTERN int luaopen_redlock_core(struct lua_State *L);

#ifdef __cplusplus
}
#endif

#endif /* REDLOCK_H */
