/*
 * redlock: a distributed lock over N independent Redis or Valkey masters.
 *
 * SPDX-License-Identifier: MIT
 *
 * The algorithm is Redlock as the Redis documentation specifies it ("Distributed Locks with
 * Redis"), with the corrections that docs/design.md lists. A lock is a lease: it is yours until its
 * deadline, not until you are done.
 *
 *     redlock_client *client;
 *     redlock_lock *lock;
 *     redlock_duration validity_us;
 *
 *     redlock_client_new(&client, NULL, message, sizeof message);
 *     redlock_client_add(client, "10.0.0.1:6379", message, sizeof message);      (once per node)
 *     redlock_lock_new(&lock, client, "orders:42", 9, NULL);
 *     if (redlock_lock_acquire(lock, NULL, &validity_us) == REDLOCK_OK) {
 *         ... work, and stop when redlock_lock_remaining(lock) has come down to 0 ...
 *         redlock_lock_release(lock);
 *     }
 *     redlock_lock_free(lock);
 *     redlock_client_free(client);
 *
 * CAVEATS, to be read once
 *
 * What Redlock does not promise. A process that is paused between its last look at
 * redlock_lock_remaining() and the write it protects may write after its lease has ended, when
 * somebody else holds the lock. No lease can prevent that; a resource that must never see it has to
 * check a fencing token (redlock_lock_fence()). Redlock assumes that a node keeps a key for its whole ttl: a node that
 * loses keys (a restart without persistence, eviction, FLUSHALL, a forward step of its wall clock)
 * while they are held can help to make a second holder. docs/operating.md says how to run nodes so
 * that this does not happen.
 *
 * Clocks. Leases are measured with CLOCK_BOOTTIME where there is one, so that time spent in suspend
 * counts, else with CLOCK_MONOTONIC. The wall clock of this machine is never read. A virtual machine
 * that is stopped and resumed by its host may see neither clock move: a lease held across such a
 * stop is not safe. After a suspend, what is due is done at once: blocking calls whose time has come end,
 * leases that keep themselves are extended, losses are reported, and redlock_client_pollfd() is readable.
 * Without a timerfd on that clock (outside of Linux, or without a descriptor left) this takes up to a second.
 *
 * Threads. Every function may be called from any thread. One client, with its one connection per node,
 * serves any number of threads, blocking calls included: of those that wait, one polls for all. A lock
 * belongs to one thread at a time: only redlock_lock_cancel(), and what only looks (redlock_lock_remaining()
 * and its kin), may be called on it by others meanwhile; a second operation is refused with REDLOCK_E_BUSY, except a
 * release while a started extend is in flight. Nobody
 * frees a lock that another thread uses. Each thread that uses a client holds a reference to it, or a lock.
 * What a lock lends (its message, its token) lives until the next operation on the lock begins; what a client
 * lends (redlock_client_message()) is of the last call of any thread.
 *
 * Only redlock_client_wakeup() may be called from a signal handler. A thread that is inside of a call must not be
 * ended by pthread_cancel(), nor leave by longjmp() from a handler: it would take the client's mutex along, and all
 * others would wait for it. A call needs less than 48 kB of stack.
 *
 * The library's own threads have all signals blocked. One short-lived thread for each host name that has to be
 * resolved, at most 32 at once in a process, others wait for their turn. And for a client with leases that
 * keep themselves, one that extends them between the calls of the program (see auto_extend).
 *
 * Forks. A child inherits neither connections nor leases. In the child every lock of an inherited
 * client is not held, and the first call on the client closes the inherited descriptors without
 * sending anything, and connects anew when it is needed. The child never releases or extends what
 * its parent holds. On Linux the check costs no system call. fork() waits for the moment in which no thread is
 * inside of a call, which is short: nothing waits for a node there. What goes round fork() (a clone() of one's
 * own) is safe only while a single thread uses the library.
 *
 * Signals. No handler is installed; EINTR never lengthens or shortens a wait; no SIGPIPE is raised.
 *
 * Exit. A process that exits without releasing leaves its locks to their ttl.
 *
 * What the library never does: exit, abort on what a caller or a server does, print, keep mutable
 * static data (but for the number of look-ups, and a list of clients for fork()). No message ever contains a password.
 */
#ifndef REDLOCK_H
#define REDLOCK_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define REDLOCK_VERSION "0.1.0"

#if defined(__GNUC__)
#define REDLOCK_EXTERN __attribute__((visibility("default")))
#else
#define REDLOCK_EXTERN
#endif

/*
 * Structs grow with versions. A call that takes one is an inline function, which tells the library
 * how large the struct was when the caller was compiled: what an older caller does not have is 0, and
 * what a newer caller has set and this library does not know is refused. Callers that cannot use
 * inline functions (FFI) call the function of that name with _sized at its end, with sizeof the
 * struct.
 */
#define REDLOCK_INLINE static inline

struct pollfd;    /* <poll.h> */
struct lua_State; /* <lua.h> */

/* A point in time and a length of time, in microseconds, on the clock of redlock_now(). */
typedef uint64_t redlock_time;
typedef uint64_t redlock_duration;

#define REDLOCK_NEVER UINT64_MAX
#define REDLOCK_MILLISECONDS ((redlock_duration)1000)
#define REDLOCK_SECONDS ((redlock_duration)1000000)

/* Limits. What lies beyond them is refused with REDLOCK_E_INVALID or REDLOCK_E_LIMIT. */
#define REDLOCK_NODES_MAX 32
#define REDLOCK_KEY_MAX 4096     /* bytes of prefix and resource together */
#define REDLOCK_RESOURCES_MAX 64 /* of one lock */
#define REDLOCK_TTL_MAX_US ((redlock_duration)86400 * 366 * 1000000) /* a year */
#define REDLOCK_TOKEN_LENGTH 40    /* hexadecimal digits: 160 random bits */
#define REDLOCK_TEXT_MAX 192       /* bytes of what a node has said, with its NUL */
#define REDLOCK_FINDING_MAX 512    /* bytes of what the doctor says, with its NUL */
#define REDLOCK_TOKEN_MAX 256      /* bytes of a token that others made */
#define REDLOCK_OWNER_MAX 72       /* bytes of an owner */
#define REDLOCK_USERNAME_MAX 512   /* bytes */
#define REDLOCK_PASSWORD_MAX 16384 /* bytes of a password that a function brings; of others 512 */

/*
 * What a call returns: 0, or a negative error. The list is closed.
 *
 * The first group may happen to any program, and is to be handled: redlock_lock_message() says more.
 * The second group is a mistake of the caller, or a machine that has run out of something.
 */
typedef enum redlock_error {
  REDLOCK_OK = 0,
  REDLOCK_PENDING = 1, /* not an error: the operation has not ended yet */

  REDLOCK_E_TAKEN = -1,       /* others hold it on so many nodes that no majority is left; also
                                 when that was so, and the nodes, which still answer, were too
                                 slow for the last attempt */
  REDLOCK_E_UNAVAILABLE = -2, /* too many nodes did not answer, or answered an error */
  REDLOCK_E_EXPIRED = -3,     /* the majority came too late, or the lease had run out */
  REDLOCK_E_LOST = -4,        /* so many nodes say "not yours" that no majority is left; with a
                                 quorum above it, that too few are left for an extend */
  REDLOCK_E_HELD = -5,        /* acquire of a lock that is held already */
  REDLOCK_E_NOT_HELD = -6,    /* extend or release of a lock that is not held */
  REDLOCK_E_CLOSED = -7,      /* the client has been closed */
  REDLOCK_E_CANCELLED = -8,   /* the operation was cancelled */
  REDLOCK_E_MAX_HOLD = -9,    /* only of redlock_lock_lost(): max_hold has ended the extends */
  REDLOCK_E_CLOCK = -10,      /* only of redlock_lock_lost(): clocks of nodes were stepped */

  REDLOCK_E_INVALID = -20,     /* an argument is wrong */
  REDLOCK_E_BUSY = -21,        /* the lock has an operation in flight already */
  REDLOCK_E_UNSUPPORTED = -22, /* what was asked for is not built in this version */
  REDLOCK_E_LIMIT = -23,       /* one of the limits above */
  REDLOCK_E_NO_MEMORY = -24,
  REDLOCK_E_SYSTEM =
      -25 /* the operating system refused a descriptor, a thread, a clock or entropy */
} redlock_error;

/* What a node answered in the last round of a lock. */
typedef enum redlock_vote {
  REDLOCK_VOTE_UNKNOWN = 0, /* nothing came, or the connection broke: the node may hold the key */
  REDLOCK_VOTE_GRANTED = 1, /* the exact success reply, in time, for this round */
  REDLOCK_VOTE_TAKEN = 2,   /* the key is somebody else's; for extend and release: not ours */
  REDLOCK_VOTE_ERROR = 3,   /* the node answered an error, or is known to be unreachable */
  REDLOCK_VOTE_QUARANTINED = 4 /* guard: the node may have forgotten locks, and was not asked */
} redlock_vote;

/* What has become of the connection to a node. */
typedef enum redlock_node_state {
  REDLOCK_NODE_DOWN = 0,       /* no connection; the next attempt waits for its time or for need. Or
                                  the node answered READONLY, and has written nothing since */
  REDLOCK_NODE_CONNECTING = 1, /* resolving, connecting or shaking hands */
  REDLOCK_NODE_UP = 2
} redlock_node_state;

/* What a node holds under the key of a lock. */
typedef enum redlock_key_state {
  REDLOCK_KEY_UNKNOWN = 0, /* it did not answer, or answered an error */
  REDLOCK_KEY_FREE = 1,    /* nothing */
  REDLOCK_KEY_HELD = 2,    /* a token, of this library's or of another's */
  REDLOCK_KEY_OTHER = 3 /* what is no token: of another type, or too long. It is in the way, too */
} redlock_key_state;

/* How grave a finding of the doctor is. */
typedef enum redlock_severity {
  REDLOCK_SEVERITY_NOTE = 1,    /* worth to be known */
  REDLOCK_SEVERITY_WARNING = 2, /* some day it will hurt */
  REDLOCK_SEVERITY_ERROR = 3    /* locks fail because of it, or are not safe */
} redlock_severity;

typedef struct redlock_client redlock_client;
typedef struct redlock_lock redlock_lock;
typedef struct redlock_transport redlock_transport; /* redlock_tls.h has one */

/*
 * In the structs below 0 and NULL mean "not said": a struct of zeros is all defaults. What means
 * "none" has a name:
 */
#define REDLOCK_RETRIES_NONE (-1) /* retry_count: try once */
#define REDLOCK_DURATION_NONE                                                                      \
  (REDLOCK_NEVER - 1)             /* a duration of 0: no delay, no jitter, no wait */
#define REDLOCK_DRIFT_NONE (-1.0) /* drift_factor: 0 */
#define REDLOCK_DB_ZERO (-1)      /* db: 0 */
#define REDLOCK_YES 1
#define REDLOCK_NO (-1)

#define REDLOCK_TLS_1_2 1
#define REDLOCK_TLS_1_3 2

/*
 * How a lock is taken:
 *
 *     redlock_options options = {0};
 *     options.wait_us = 5 * REDLOCK_SECONDS;
 *
 * Options are given to a client, to a lock and to one acquire. What is 0 comes from the level above:
 * from the lock's options, then the client's, then the defaults [in brackets]. A wait_us without a
 * retry_count beside it also overrules a retry_count from above. A duration may be up to
 * 366 days.
 */
typedef struct redlock_options {
  redlock_duration ttl_us;          /* the lease; whole milliseconds count, 1 ms at least [10 s] */
  int retry_count;                  /* further attempts after the first, at most 1000000, or
                                       REDLOCK_RETRIES_NONE. An attempt after a notification
                                       counts. A waiter that the nodes will notify gives up after
                                       as many pauses [3; no limit where there is a wait_us] */
  redlock_duration retry_delay_us;  /* pause between two attempts, at least 1 ms [200 ms] */
  redlock_duration retry_jitter_us; /* each pause is delay +- uniform(jitter) [100 ms] */
  redlock_duration wait_us;         /* hard time limit of the whole call; the last attempt begins
                                       5 ms before. REDLOCK_DURATION_NONE = try once;
                                       REDLOCK_NEVER = only retry_count ends it [REDLOCK_NEVER] */
  redlock_duration node_timeout_us; /* budget of one attempt, connecting included [100 ms, but at
                                       most a tenth of the ttl] */
  double drift_factor;              /* clock drift allowed for: ttl x factor + 2 ms; less than 1, or
                                       REDLOCK_DRIFT_NONE [0.01] */
  redlock_duration lock_delay_us;   /* added to the key's life on the nodes beyond ttl; absorbs
                                       server clocks that are stepped or slewed [none] */
  int auto_extend;                  /* REDLOCK_YES: the lease keeps itself until it is released;
                                       see "Leases that keep themselves" [REDLOCK_NO] */
  int notify_lost;                  /* REDLOCK_YES: redlock_client_next_lost() tells of its loss
                                       though it does not keep itself [REDLOCK_NO] */
  redlock_duration extend_every_us; /* from an automatic extend to the next; at most two thirds
                                       of the validity count, and at least 10 ms
                                       [a third of the ttl] */
  redlock_duration max_hold_us;     /* no automatic extend makes the lease last longer than this
                                       from its start, or from when it was attached. Production
                                       should set it: else a program that is stuck holds for ever. Given to a lock or an acquire
                                       that does not keep itself, this and extend_every_us are
                                       refused; from a level above they have no effect then [none] */
  int fence;                        /* REDLOCK_YES: each grant has a fencing token; see
                                       redlock_lock_fence() [REDLOCK_NO] */
  redlock_duration poll_interval_us; /* how often an acquire that waits for the nodes' calls looks
                                       whether it has missed one; more than 40 s are 40 s [2 s] */
  int fair;   /* REDLOCK_YES: an acquire waits for its turn even when the lock
                                       is free, if others wait; for a round trip more. Not one that
                                       tries once, has an owner, several resources or a given
                                       token [REDLOCK_NO] */
  int notify; /* REDLOCK_NO: nobody is called; who waits tries again and
                                       again. Of a client it means its releases, too
                                       [REDLOCK_YES] */
} redlock_options;

/* One of the resources of a lock: any bytes. */
typedef struct redlock_resource {
  const void *bytes;
  size_t length;
} redlock_resource;

/*
 * What is filled in by a redlock_credentials_function. A user without a password logs in with an empty one; without
 * both nobody logs in.
 */
typedef struct redlock_credentials {
  const char *name; /* of the node: "10.0.0.1:6379" */
  char username[REDLOCK_USERNAME_MAX +
                1]; /* ends with a NUL; "": that of the node's address, or none */
  char password[REDLOCK_PASSWORD_MAX]; /* any bytes */
  size_t password_length;
  char message[REDLOCK_TEXT_MAX]; /* why there are none, for redlock_node_info */
} redlock_credentials;

/*
 * Says as whom to log in at the |node|th node: called for each connection before it is begun (a node may have two: one
 * is for the calls of an acquire that waits), for nodes that have no password of their own. |data| is
 * settings.credentials_data, which must live as long as the client.
 *
 * It is called by whatever thread the client works in just then, the keeper's and a forked child's included, with
 * the client's mutex held: it must return at once, and call no function on this client or its locks. Programs that have
 * to ask for a token keep one that is valid at hand; or return REDLOCK_PENDING, and call
 * redlock_client_give_credentials() when they have it.
 *
 * Returns REDLOCK_OK when |credentials| are filled in, REDLOCK_PENDING, or an error such as
 * REDLOCK_E_UNAVAILABLE: the node is down then, with credentials->message, and is tried again as after
 * other failures. The library keeps a copy until the node has answered, and overwrites it then.
 */
typedef int redlock_credentials_function(redlock_client *client, size_t node,
                                         redlock_credentials *credentials, void *data);

/* What a client is made from. Everything is copied. A struct of zeros is all defaults. */
typedef struct redlock_settings {
  const redlock_options *options; /* for the client's locks */
  const void *prefix;             /* put before every resource; any bytes [none] */
  size_t prefix_length;
  const char *username; /* for nodes that name none of their own [none] */
  const char *password; /* [none] */
  int db;               /* [0] */
  int tls; /* REDLOCK_YES or REDLOCK_NO, for nodes that do not say and are no Unix sockets [REDLOCK_NO] */
  size_t password_length;             /* of a password of any bytes [0: up to its NUL] */
  const redlock_transport *transport; /* redlock_tls(): nodes can be reached by TLS [none] */

  /*
   * How TLS is spoken, where it is. This alone asks for none: tls does, or rediss://. A node for which nobody has said yes or
   * no is refused beside it.
   */
  const char *tls_ca;           /* a file of CA certificates, PEM [the system's] */
  const char *tls_ca_path;      /* a directory of them, as openssl-rehash makes it [the system's] */
  const char *tls_crl;          /* a file with the revocation lists of all CAs of a chain; without a
                                    list a certificate fails [none: nobody asks] */
  const char *tls_cert;         /* a certificate of ours, and those up to its CA, PEM [none] */
  const char *tls_key;          /* its key, PEM [none] */
  const char *tls_key_password; /* [none] */
  const char *tls_server_name;  /* whom the node's certificate is to be for, a name or an address
                                    [the host] */
  const char *tls_ciphers;      /* OpenSSL's names, with ':' between them [OpenSSL's] */
  int tls_min_version;          /* REDLOCK_TLS_1_2 or REDLOCK_TLS_1_3 [REDLOCK_TLS_1_2] */
  int tls_dangerously_unverified; /* REDLOCK_YES: whoever answers is believed, and is sent the
                                     password: encrypted, but to anybody [REDLOCK_NO] */
  redlock_credentials_function *credentials; /* asked for each connection, instead of username and
                                                password [none] */
  void *credentials_data;

  /*
   * The guard: REDLOCK_YES has a node vote only while it is certain that it remembers what it has granted. A node that was
   * restarted without its keys, flushed, replaced or promoted, or whose clock was stepped, does not vote for as long as
   * the longest lease may last. So no lock may live longer than guard_max_ttl_us, lock_delay included. All clients of
   * the nodes must say the same; docs/operating.md says how to turn it on, and which rights it needs.
   */
  int guard;                         /* [REDLOCK_NO] */
  redlock_duration guard_max_ttl_us; /* [30 s] */
  const char *guard_cluster; /* a name for the list of nodes, for clients that reach them by other
                                addresses: printable, without spaces [a hash of the list] */
  int quorum; /* how many nodes an acquire and an extend need, from a majority to all of them. More than a
                 majority makes redlock_lock_margin() larger, and fewer nodes that fail are borne. All clients
                 of a resource must have the same [a majority] */
} redlock_settings;

/*
 * A node in parts, for callers that do not hold it as one string. Exactly one of address, host and
 * path is given. Strings are copied.
 */
typedef struct redlock_node {
  const char *address;    /* as redlock_client_add() takes it */
  const char *host;       /* a name, an IPv4 or an IPv6 address without brackets */
  int port;               /* [6379] */
  const char *path;       /* a Unix socket */
  const char *username;   /* [the address's, else the client's] */
  const char *password;   /* [likewise] */
  int db;                 /* or REDLOCK_DB_ZERO [the address's, else the client's] */
  int tls;                /* REDLOCK_YES or REDLOCK_NO [the address's, else the client's] */
  size_t password_length; /* of a password of any bytes [0: up to its NUL] */

  /* How TLS is spoken; each of itself the client's where it is not said. Refused without tls. */
  const char *tls_ca;      /* a file of CA certificates, PEM [the client's] */
  const char *tls_ca_path; /* a directory of them, as openssl-rehash makes it [the client's] */
  const char *tls_crl;     /* a file with the revocation lists of all CAs of a chain; without a
                                    list a certificate fails [the client's] */
  const char *tls_cert;    /* a certificate of ours, and those up to its CA, PEM [the client's] */
  const char *tls_key;     /* its key, PEM [the client's] */
  const char *tls_key_password;   /* [the client's] */
  const char *tls_server_name;    /* whom the node's certificate is to be for, a name or an address
                                    [the client's, else the host] */
  const char *tls_ciphers;        /* OpenSSL's names, with ':' between them [the client's] */
  int tls_min_version;            /* REDLOCK_TLS_1_2 or REDLOCK_TLS_1_3 [the client's] */
  int tls_dangerously_unverified; /* REDLOCK_YES: whoever answers is believed, and is sent the
                                     password: encrypted, but to anybody [the client's] */
} redlock_node;

/* A node at a glance. The name lives as long as the client, the error as long as the struct. */
typedef struct redlock_node_info {
  const char *name; /* "10.0.0.1:6379", "[::1]:6379", "unix:/run/redis.sock" */
  redlock_node_state state;
  const char *error;               /* why it is not up, or NULL */
  redlock_duration latency_us;     /* of the last reply; REDLOCK_NEVER before the first */
  size_t outstanding;              /* commands sent to it that it has not answered */
  char text[REDLOCK_TEXT_MAX];     /* where the error is */
  redlock_duration quarantined_us; /* guard: for how long it does not vote yet, 0 when it does;
                                      REDLOCK_NEVER until something happens that |quarantine| says */
  const char *quarantine;          /* why; NULL when it votes */
  char quarantine_text[REDLOCK_TEXT_MAX]; /* where that is */
  int notifies; /* REDLOCK_YES: it tells who waits that a lock is free; REDLOCK_NO: not, or
                              nobody has had to wait yet */
  const char *notify_error;           /* why not; NULL when nothing is wrong */
  char notify_text[REDLOCK_TEXT_MAX]; /* where that is */
} redlock_node_info;

/* One node's part in the last round of a lock. Strings live as those of redlock_node_info. */
typedef struct redlock_vote_info {
  const char *name;
  redlock_vote vote;
  const char *error;           /* what the node, or the network, said; NULL if nothing */
  redlock_duration latency_us; /* from the command to its reply; REDLOCK_NEVER without one */
  char text[REDLOCK_TEXT_MAX]; /* where the error is */
} redlock_vote_info;

/* What one node held when a lock was inspected. */
typedef struct redlock_key_info {
  const char *name; /* of the node; lives as long as the client */
  redlock_key_state state;
  const char *error; /* UNKNOWN: what the node, or the network, said; OTHER: what it is */
  const void *token; /* HELD: any bytes, a NUL behind them; lives until the lock is inspected
                              again or freed; else NULL */
  size_t token_length;
  redlock_duration ttl_us;     /* what was left of the key; REDLOCK_NEVER: it does not expire */
  char text[REDLOCK_TEXT_MAX]; /* where the error is */
} redlock_key_info;

/* Who held a lock when it was inspected: a token that a majority of the nodes had. */
typedef struct redlock_holder_info {
  const void
      *token; /* any bytes, a NUL behind them; lives until the lock is inspected again or freed */
  size_t token_length;
  size_t nodes;            /* that had it */
  redlock_duration ttl_us; /* after that it had no majority, if nobody prolonged it */
} redlock_holder_info;

/* One thing that the doctor has found. */
typedef struct redlock_finding_info {
  redlock_severity severity;
  const char *name;    /* "same_server", ...: docs/operating.md has the list; static */
  const char *node;    /* its name, which lives as long as the client; NULL: it is about all */
  const char *message; /* what is wrong and what to do, as a sentence; it is in |text| */
  char text[REDLOCK_FINDING_MAX];
} redlock_finding_info;

/* ------------------------------------------------------------------------------------ general */

/* The version of the library in use, which may be newer than REDLOCK_VERSION. */
REDLOCK_EXTERN const char *redlock_version(void);

/* A sentence for |error|, static; never NULL. Thread-safe. */
REDLOCK_EXTERN const char *redlock_strerror(int error);

/*
 * The short names that the Lua module uses: "taken", "not_held", ...; "granted", "unknown", ...;
 * "up", "connecting", "down"; "free", "held", .... Static, never NULL; "unknown" for a number that is none of them.
 * Thread-safe.
 */
REDLOCK_EXTERN const char *redlock_error_name(int error);
REDLOCK_EXTERN const char *redlock_vote_name(int vote);
REDLOCK_EXTERN const char *redlock_node_state_name(int state);
REDLOCK_EXTERN const char *redlock_key_state_name(int state);

REDLOCK_EXTERN const char *redlock_severity_name(int severity); /* "note", "warning", "error" */

/* The clock of all deadlines, see "Clocks" above. Thread-safe. */
REDLOCK_EXTERN redlock_time redlock_now(void);

/* ------------------------------------------------------------------------------------- client */

/*
 * Makes a client without nodes into |*client|, to be given up with redlock_client_free(). Contacts
 * nobody. |settings| may be NULL. On failure |message|, of |message_size| bytes, holds a sentence
 * that names what is wrong; it may be NULL.
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
 *     unix:///path   unix://[user]:password@/path?db=n   rediss://...
 * with %XX escapes in user, password and path; of these, only a password may have a NUL (%00). Contacts nobody: a node is connected to when it is
 * first needed. All clients of a resource must use the same nodes, each named once: the majority is
 * counted over them. A server that turns out to have been named twice counts once; the node with its
 * second name stays down, and redlock_client_node_info() says why. Nodes can be added until the first
 * lock has been made.
 * Errors: INVALID, UNSUPPORTED (rediss://, or tls, without a transport: see redlock_tls.h), LIMIT,
 * BUSY (a lock has been made), CLOSED, NO_MEMORY.
 */
REDLOCK_EXTERN int redlock_client_add(redlock_client *client, const char *address, char *message,
                                      size_t message_size);

/* As redlock_client_add(), from parts. */
REDLOCK_EXTERN int redlock_client_add_node_sized(redlock_client *client, const redlock_node *node,
                                                 size_t node_size, char *message,
                                                 size_t message_size);
REDLOCK_INLINE int redlock_client_add_node(redlock_client *client, const redlock_node *node,
                                           char *message, size_t message_size) {
  return redlock_client_add_node_sized(client, node, sizeof(redlock_node), message, message_size);
}

/*
 * Answers a redlock_credentials_function that has returned REDLOCK_PENDING for the |node|th node: the connection goes
 * on. |username| and |password| may be NULL for none; both are copied. Three seconds after it was begun a
 * connection is given up, and the function is asked again for the next one. May be called from any
 * thread; wakes whoever waits.
 * Errors: EXPIRED (nobody waits for them any more), CLOSED; INVALID, NO_MEMORY.
 */
REDLOCK_EXTERN int redlock_client_give_credentials(redlock_client *client, size_t node,
                                                   const char *username, const void *password,
                                                   size_t length);

/*
 * The same when they could not be had: the node is down, and redlock_node_info says |why|, which may be
 * NULL. It is tried again as after other failures. Errors: EXPIRED, CLOSED, INVALID.
 */
REDLOCK_EXTERN int redlock_client_refuse_credentials(redlock_client *client, size_t node,
                                                     const char *why);

/*
 * Takes another reference, to be given up with redlock_client_free(). Every lock has one of its own.
 * NULL is allowed, and returned.
 */
REDLOCK_EXTERN redlock_client *redlock_client_ref(redlock_client *client);

/*
 * Gives up a reference. With the last one the client ends: it sends what is still to be released,
 * waits for the replies, for 100 ms at most, and frees everything. NULL is allowed.
 */
REDLOCK_EXTERN void redlock_client_free(redlock_client *client);

/*
 * Releases everything that the client's locks hold, ends their operations with REDLOCK_E_CLOSED,
 * waits at most |timeout_us| for the nodes to confirm, and closes all connections. The client and
 * its locks remain to be freed; every later operation returns REDLOCK_E_CLOSED. Idempotent.
 * Returns REDLOCK_OK, or REDLOCK_E_UNAVAILABLE when not all releases were confirmed in time: what
 * they were to delete goes with its ttl.
 */
REDLOCK_EXTERN int redlock_client_close(redlock_client *client, redlock_duration timeout_us);

/*
 * Ends all blocking calls on the client that are in progress, in whatever thread, with REDLOCK_E_CANCELLED: an
 * acquire gives back what it has taken, an extend leaves the old deadline, a release goes on without its
 * caller, redlock_client_close() waits no longer. A call that begins afterwards is not ended, nor is one whose
 * operation had been decided: it returns its result. May be called from any thread and from a signal handler;
 * somebody holds a reference meanwhile. errno stays as it was. NULL is allowed.
 */
REDLOCK_EXTERN void redlock_client_wakeup(redlock_client *client);

/* The number of nodes, and one of them by its index from 0. Errors: INVALID. */
REDLOCK_EXTERN size_t redlock_client_node_count(const redlock_client *client);
REDLOCK_EXTERN int redlock_client_node_info_sized(redlock_client *client, size_t index,
                                                  redlock_node_info *info, size_t info_size);
REDLOCK_INLINE int redlock_client_node_info(redlock_client *client, size_t index,
                                            redlock_node_info *info) {
  return redlock_client_node_info_sized(client, index, info, sizeof(redlock_node_info));
}

/*
 * What the last redlock_lock_new() or redlock_client_close() on the client failed with, as a sentence
 * that names the option or the nodes; "" after success. Lives until the next of these calls.
 */
REDLOCK_EXTERN const char *redlock_client_message(redlock_client *client);

/* --------------------------------------------------------------------------------------- lock */

/*
 * Makes a lock for |resource|, any bytes, into |*lock|, to be given up with redlock_lock_free().
 * Sends nothing. |options| may be NULL for the client's. The lock keeps its client alive. After a
 * failure redlock_client_message() names what is wrong. Names that end in ":redlock-fence" are those of the counters
 * of fencing tokens, ":redlock-queue" and ":redlock-wait" are of those who wait, and "redlock:lineage" is that of the
 * guard's records: they are refused.
 * Errors: INVALID (also: the client has no nodes, or its quorum does not go with their number), LIMIT (the key is
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
 * The same for |count| resources that are taken together, up to REDLOCK_RESOURCES_MAX:
 *
 *     redlock_resource both[] = {{"orders:42", 9}, {"orders:43", 9}};
 *     redlock_lock_new_many(&lock, client, both, 2, NULL);
 *
 * On each node all of them are taken, or none; a majority of the nodes decides, as for one. So any two
 * locks that have a resource in common exclude each other, in whatever order they name their resources, and no two
 * wait for each other for ever. Each resource is a key of its own, as for a lock on it alone. An extend
 * succeeds where all keys are the lock's; a release deletes each that is. All other calls are the
 * same; redlock_lock_message() names the resource that stood in
 * the way, and the nodes.
 * Errors: as above; INVALID also: a resource is named twice, or there is none; LIMIT also: there are
 * more than REDLOCK_RESOURCES_MAX.
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
 * Gives up the lock. If it is held, or has an operation in flight, its token is released without
 * waiting: what the sockets do not take at once goes out with the next call on the client, or by the
 * thread that auto_extend brings. Allocates nothing and cannot fail, so that it may be called from a
 * finalizer. Free the locks before their client: with the last reference gone nobody is left to send
 * what did not go out at once. NULL is allowed.
 */
REDLOCK_EXTERN void redlock_lock_free(redlock_lock *lock);

/*
 * Takes the lock, blocking until it is granted, the attempts are used up or the budget has run out.
 * |options| may be NULL for the lock's own. |validity_us| may be NULL; on success it receives how
 * much of the lease is left, which is always more than 0.
 *
 * A majority decides, or as many nodes as settings.quorum asks for. The first lock of a client then waits a moment longer, so that nodes whose
 * connections are still being made get the key as well. It waits for 100 ms at most, or for four times
 * what the majority took if that is longer; never beyond node_timeout or a tenth of the ttl. Later
 * locks do not wait.
 * Errors: TAKEN, UNAVAILABLE, EXPIRED, HELD, CLOSED; INVALID, BUSY, NO_MEMORY, SYSTEM.
 */
REDLOCK_EXTERN int redlock_lock_acquire_sized(redlock_lock *lock, const redlock_options *options,
                                              size_t options_size, redlock_duration *validity_us);
REDLOCK_INLINE int redlock_lock_acquire(redlock_lock *lock, const redlock_options *options,
                                        redlock_duration *validity_us) {
  return redlock_lock_acquire_sized(lock, options, sizeof(redlock_options), validity_us);
}

/*
 * Prolongs a held lock to now + |ttl_us| (0 = the ttl that it was acquired with). Succeeds only if a
 * majority (or settings.quorum) confirms before the old deadline. Never shortens a lease: asked for less than is left, it
 * leaves the deadline where it was. Never takes a lost lock again.
 *
 * A failed extend changes nothing: the old deadline stands, and the next extend may succeed. The
 * exception is REDLOCK_E_LOST: so many nodes say "not yours" that another may hold it. Then the lease
 * is over, redlock_lock_remaining() is 0, and what is left of it is released. This can also turn out
 * after an extend that was UNAVAILABLE.
 *
 * Uses the options that the lock was acquired with, except for the ttl. Blocks for one node_timeout at
 * most. Beside a burst of started operations it first waits for its turn, but never beyond the old
 * deadline.
 * Errors: UNAVAILABLE, EXPIRED, LOST, NOT_HELD, CLOSED; INVALID, BUSY, SYSTEM.
 */
REDLOCK_EXTERN int redlock_lock_extend(redlock_lock *lock, redlock_duration ttl_us,
                                       redlock_duration *validity_us);

/*
 * Gives the lock back. redlock_lock_remaining() is 0 before the first byte is sent. REDLOCK_OK means
 * that a majority of the nodes no longer has the token.
 *
 * After REDLOCK_E_UNAVAILABLE the call may be repeated; it then returns REDLOCK_OK when a majority no
 * longer has the token. Every later call on the client that does I/O tries again, too, on the nodes that
 * did not confirm, while the key can still live. Between calls nothing is sent, unless the client has the
 * thread that auto_extend brings. A lease that ran out can still be released once: REDLOCK_OK if a majority still had it,
 * else REDLOCK_E_EXPIRED.
 *
 * Ends an extend that was started and is still in flight: its end is not reported.
 *
 * Blocks for one node_timeout at most. Beside a burst of started operations it first waits for its turn,
 * for a ttl at most.
 * Errors: UNAVAILABLE, EXPIRED, LOST (another could hold it), NOT_HELD, CLOSED; BUSY, SYSTEM.
 */
REDLOCK_EXTERN int redlock_lock_release(redlock_lock *lock);

/*
 * Gives the lock back without waiting: the lease is over, what the sockets take is handed to the
 * kernel, and the call returns. REDLOCK_OK says no more than that. What is left to send, what is not
 * confirmed and what fails is tried again by every later call on the client that does I/O, while the
 * key can still live; freeing the lock, or acquiring it again, abandons nothing. What became of the
 * release can be asked later: redlock_lock_result() tells, after a call that does I/O
 * (redlock_client_process() is one that does not wait); redlock_lock_release() waits for it. A pair of
 * acquire and release costs one round trip so, not two.
 *
 * A program that ends closes the client first: a process that exits with replies unread resets its
 * connections, and a node may then drop what it has not read. Ends a started extend, as
 * redlock_lock_release() does.
 * Errors: LOST, NOT_HELD, CLOSED; BUSY.
 */
REDLOCK_EXTERN int redlock_lock_release_send(redlock_lock *lock);

/* What is left of the lease now, 0 when none is held. Reads the clock. */
REDLOCK_EXTERN redlock_duration redlock_lock_remaining(const redlock_lock *lock);

/*
 * How many of the lease's keys may vanish (a node restarts without its data, or evicts the key) before a second holder
 * is possible: nodes that are known to have the key + quorum - N - 1. With 0 the next one is too many. -1: the lock is not held;
 * or so few nodes are known to have its key that a second holder is possible already.
 *
 * With five nodes and a majority it is 2 when all have the key and 0 when three have; with a quorum of four from 2 to
 * 3. Answers that come after the decision count, and so do nodes that join or heal later: redlock_client_process() and
 * every call that does I/O read them. A node that says that it has no such key counts no more. One that
 * has lost it and has not been asked since counts: an extend asks.
 * Looks at the clock, and does no I/O.
 */
REDLOCK_EXTERN int redlock_lock_margin(const redlock_lock *lock);

/* When the lease ends, on the clock of redlock_now(); 0 when none is held. */
REDLOCK_EXTERN redlock_time redlock_lock_deadline(const redlock_lock *lock);

/*
 * The token of the lease, 40 digits and a NUL, until the lock's next operation; "" when none is held. One that
 * was given (redlock_lock_give_token()) may hold any bytes, so that its length has to be asked for.
 */
REDLOCK_EXTERN const char *redlock_lock_token(const redlock_lock *lock);
REDLOCK_EXTERN const void *redlock_lock_token_bytes(const redlock_lock *lock, size_t *length);

/*
 * The fencing token of the lease that the lock holds: a number from 1 to 2^53 - 1, greater than that of every grant
 * of the lock that was over before this acquire began; 0 when no lease is held, or it was acquired without |fence|.
 * It stays the same until the lease ends, through extends, detaching and attaching. Whoever is asked to write for the
 * holder stores the token beside the data, and refuses a smaller one: then a holder that was paused for
 * longer than its lease can do no harm. Call it once when the lock is acquired, and take it along.
 *
 * A grant with |fence| is one round trip where the nodes agree, as they do as a rule, and a second one where
 * they do not; the acquire ends within its node_timeout either way, or is tried again. Each key has a counter beside
 * it on the nodes, of its name and ":redlock-fence", which lives for a week longer than the key. Everybody who takes
 * the lock must ask for |fence|: a holder that did not has raised no counter. Locks that name several
 * resources have one token, greater than those of each of them.
 */
REDLOCK_EXTERN uint64_t redlock_lock_fence(const redlock_lock *lock);

/*
 * Gives the token for the next acquire of this lock, in place of a fresh one: |length| bytes of any kind,
 * from 1 to REDLOCK_TOKEN_MAX, which are copied. For programs that share a lock with another library under
 * a value that both know (LockTake of StackExchange.Redis, WithValue of redsync). The next
 * redlock_lock_acquire() or _acquire_start() uses it up, whatever that comes to, and tries once:
 * retry_count does not count. A forked child has none, lest two use it: its acquire draws a fresh one.
 *
 * DANGER: everything rests on tokens that nobody else has and that are never used twice. A second holder
 * of the same token extends and releases the first one's lock; a release of the first use that comes late
 * deletes the key of the second. Make it from at least 16 random bytes, and never use it again. An acquire that fails
 * deletes the token only where a node has said that it was set, for elsewhere it may be another's: where the
 * answer never came, a key may stay until its ttl ends.
 * Errors: INVALID (no token), LIMIT, NO_MEMORY.
 */
REDLOCK_EXTERN int redlock_lock_give_token(redlock_lock *lock, const void *token, size_t length);

/* ------------------------------------------------------------------------------ re-entrance */

/*
 * Says whose the lock is from its next acquire on: |length| bytes of any kind, at most REDLOCK_OWNER_MAX, which
 * are copied; 0 = nobody's, as it is without this call. Bytes that stand for a task, a request, a name: never those of
 * a pointer that may be freed and used again while the lock is held. The thread that calls means nothing.
 *
 * Locks of one client with the same owner are re-entrant. An acquire of what the owner holds already, by this
 * lock or by another one, counts and succeeds at once, without a word to the nodes; redlock_lock_release(),
 * redlock_lock_free() and redlock_lock_release_send() count down, and the last of them releases, whichever
 * lock that is. A lock that was acquired n times is released n times, which says REDLOCK_E_LOST as often when its
 * lease is lost; freeing it gives back all of them. Nobody
 * in another process or in another client counts: they are refused as always.
 *
 *   - All of them have one lease: one token, one deadline, held for all or lost for all. The validity
 *     that a nested acquire returns is what is left. If that is less than two thirds of what its
 *     ttl would give, it extends the lease first, and fails if that fails; then the others hold as before. It
 *     goes by its own wait and node_timeout.
 *   - auto_extend, extend_every and max_hold are those of the acquire that took the lease, until it ends, and the
 *     loss of such a lease is told of each lock; notify_lost is each lock's own. No nested acquire extends the lease
 *     beyond max_hold: then it counts on what is left. Votes and messages are of each
 *     lock's own last operation.
 *   - Resources are held as they were taken. An acquire of some of them counts on all; one of more is
 *     refused, for it would wait for itself: REDLOCK_E_HELD. So is one with a given token, and one that asks for a
 *     fencing token where the lease was taken without.
 *   - When the lease has run out or is lost, a nested acquire fails: REDLOCK_E_EXPIRED, REDLOCK_E_LOST. What counted
 *     on it has to be released first.
 *   - An acquire that is in flight is nobody's yet: another one of its owner's competes with it, and counts
 *     when it is tried again, on what is left by then.
 *   - The locks may be on several threads. While one of them extends, another one that does is refused with
 *     REDLOCK_E_BUSY; an acquire counts and does not wait for it.
 *   - redlock_lock_detach() is refused while others count, with REDLOCK_E_HELD.
 *
 * Errors: HELD (by another owner; the lock is left as it is); INVALID, LIMIT, BUSY, NO_MEMORY.
 */
REDLOCK_EXTERN int redlock_lock_set_owner(redlock_lock *lock, const void *owner, size_t length);

/* The resource as it was given, without prefix; lives as long as the lock. Of several, the first. */
REDLOCK_EXTERN const void *redlock_lock_resource(const redlock_lock *lock, size_t *length);

/* How many resources the lock has, and one of them by its index from 0. Errors: INVALID. */
REDLOCK_EXTERN size_t redlock_lock_resource_count(const redlock_lock *lock);
REDLOCK_EXTERN int redlock_lock_resource_at(const redlock_lock *lock, size_t index,
                                            redlock_resource *resource);

/* The ttl of the lock's own options. */
REDLOCK_EXTERN redlock_duration redlock_lock_ttl(const redlock_lock *lock);

/* The lock's client. The reference is the lock's. */
REDLOCK_EXTERN redlock_client *redlock_lock_client(const redlock_lock *lock);

/*
 * What the last operation ended with, or why it could not begin: a sentence that names the nodes, or
 * the option that is wrong. It is "" after success, and while an operation is in flight. Lives until
 * the next operation on the lock begins, or it is asked again.
 */
REDLOCK_EXTERN const char *redlock_lock_message(redlock_lock *lock);

/* The vote of node |index| in the last round. Errors: INVALID. */
REDLOCK_EXTERN int redlock_lock_vote_sized(redlock_lock *lock, size_t index,
                                           redlock_vote_info *vote, size_t vote_size);
REDLOCK_INLINE int redlock_lock_vote(redlock_lock *lock, size_t index, redlock_vote_info *vote) {
  return redlock_lock_vote_sized(lock, index, vote, sizeof(redlock_vote_info));
}

/* -------------------------------------------------------------- leases that keep themselves */

/*
 * With auto_extend the library extends a lease by itself, a third of the ttl after the last extend that
 * was confirmed, sooner after one that failed; up to an eighth less, and for the first extend up to three
 * quarters less, so that leases that were taken at once are not extended at once. What holds for an
 * extend holds for these: none counts after the deadline, none takes a lost lock again. The program
 * still looks at redlock_lock_remaining(), which is more than 0 only while the lease lasts.
 *
 * In a loop of the program's (redlock_lock_acquire_start()) an extend is one more deadline, and the loop
 * has to run. For a blocking call the library starts a thread, one for each client that needs it, which
 * extends while the program computes, sleeps or waits for a child. It leads when no thread waits in a call, and
 * then also reads late replies, connects again, and sends what was left to send. It ends with
 * redlock_client_close() and with the last reference, in a moment even if all nodes hang. A forked child has
 * none until it takes a lease of its own. If the thread cannot be started, the call fails: REDLOCK_E_SYSTEM.
 *
 * Whatever the program itself begins goes before, and an automatic extend in flight never makes it
 * fail: redlock_lock_result(), the message and the votes are those of the program's last operation.
 * They end with redlock_lock_release() or redlock_lock_free(), with redlock_client_close(), with
 * max_hold, and when the lease is lost. Extends of the program's own (redlock_lock_extend()) are not bound by max_hold.
 */

/*
 * Why the lock's last lease is lost: REDLOCK_OK if it is not, or was given back, or there never was one;
 *   REDLOCK_E_EXPIRED      its deadline has passed;
 *   REDLOCK_E_LOST         so many nodes say "not yours" that another may hold it;
 *   REDLOCK_E_MAX_HOLD     its deadline has passed, for max_hold has ended the automatic extends;
 *   REDLOCK_E_UNAVAILABLE  it is not lost yet, but automatic extends fail;
 *   REDLOCK_E_CLOCK        it is not lost yet, but with a guard the clocks of so many nodes were seen to be stepped
 *                          forward that those that certainly still have the key are no quorum any more;
 *                          said of locks with auto_extend or notify_lost.
 * |since_us| may be NULL; it receives since when, on the clock of redlock_now(). Looks at the clock, and
 * does no I/O. Errors: INVALID.
 */
REDLOCK_EXTERN int redlock_lock_lost(const redlock_lock *lock, redlock_time *since_us);

/*
 * The next lock with auto_extend or notify_lost that is lost, or whose automatic extends have begun to
 * fail (REDLOCK_E_UNAVAILABLE: the lease lasts, and this may come again after a recovery), or whose nodes' clocks
 * were stepped (REDLOCK_E_CLOCK: the same; over when enough nodes have confirmed an extend since, by no less than is
 * left); each once for each reason, and of these two warnings the first that stands. NULL when there is none.
 * redlock_lock_lost() tells the reason, which is REDLOCK_OK when a warning is over by then. Such a lock makes the
 * descriptor of redlock_client_pollfd() readable and redlock_client_timeout() 0, until the next
 * redlock_client_process(). Whoever releases the lock, acquires it again or frees it takes it off.
 */
REDLOCK_EXTERN redlock_lock *redlock_client_next_lost(redlock_client *client);

/*
 * For programs without a loop: |told| is called with |client| and |data| when redlock_client_next_lost() has
 * something new, and asks it. The client's keeper calls it, a thread that is started here, one call at a time, and
 * outside of all mutexes: it may call any function. redlock_client_close() and the last redlock_client_free() wait
 * for it elsewhere; in itself they, or a redlock_lock_free() that is the last reference, end the thread when it has
 * returned. Leases of programs that are in no call are not extended while it runs, so it should return
 * soon. No other thread may free a lock that it is told of meanwhile, as with all functions. NULL for
 * |told| ends it; a call that has begun goes on. A forked child says it anew.
 * Errors: INVALID (also: a client of nginx), CLOSED, SYSTEM (no thread could be started).
 */
typedef void redlock_lost_function(redlock_client *client, void *data);
REDLOCK_EXTERN int redlock_client_on_lost(redlock_client *client, redlock_lost_function *told,
                                          void *data);

/* -------------------------------------------------------------------------- to another process */

/*
 * Writes a held lock as a text of ASCII letters, digits, '.', '-' and '_', for another process, and a NUL;
 * REDLOCK_HANDOVER_MAX bytes are always enough for one resource. |length| may be NULL; it receives the length
 * without NUL, also when |size| is too small for it. The lock is not held any more, automatic extends end, and
 * nothing is released: what is left of the lease goes on without anybody, until another process attaches it, or
 * until it has run out. The text says which resources, which token, and which ttl; whoever has it can take the
 * lock.
 * Errors: NOT_HELD, LOST, CLOSED; HELD (other locks of its owner count on it); INVALID, BUSY, LIMIT (|size|; the
 * lock is still held).
 */
#define REDLOCK_HANDOVER_MAX 8192
REDLOCK_EXTERN int redlock_lock_detach(redlock_lock *lock, char *text, size_t size, size_t *length);

/*
 * Makes a lock for what redlock_lock_detach() wrote, |length| bytes without the NUL. Sends nothing:
 * the lock's first acquire, blocking or started, takes the lease over. A fresh token takes the place of the
 * handed one on a majority of the nodes, with a full ttl; the validity counts from then. Time on the
 * way counts against the lease, on the nodes: no clocks are compared. redlock_lock_acquire() returns
 * REDLOCK_E_LOST when a majority does not have the handed token any more: it was attached before, it has run
 * out, or it was tampered with. It tries once; after a failure nobody holds the lock, and what is left
 * of it expires. ttl and lock_delay are those of the lease if |options|, which may be NULL, say nothing
 * else. The process that attaches is the one that acquires: in a forked child it is a lock like any other.
 *
 * The client needs the same nodes and the same prefix. After a failure redlock_client_message() says more.
 * Errors: LOST (the text is none, or was changed), CLOSED; INVALID (other nodes, another prefix), NO_MEMORY.
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
 * Asks all nodes what they hold for the lock's resource, of the holder's token included, and changes
 * nothing. It waits for every node, for one node_timeout at most. REDLOCK_OK means that a majority has
 * answered; what each has said is told by redlock_lock_key() also after REDLOCK_E_UNAVAILABLE. The lock
 * must not be held: make another object for the resource.
 *
 * The nodes are asked at slightly different times. What is told was so a moment ago.
 * Errors: UNAVAILABLE, HELD, CLOSED; BUSY, NO_MEMORY, SYSTEM.
 */
REDLOCK_EXTERN int redlock_lock_inspect(redlock_lock *lock);
REDLOCK_EXTERN int redlock_lock_inspect_start(redlock_lock *lock);

/* What node |index| said when the lock was inspected last. Errors: INVALID. */
REDLOCK_EXTERN int redlock_lock_key_sized(redlock_lock *lock, size_t index, redlock_key_info *info,
                                          size_t info_size);
REDLOCK_INLINE int redlock_lock_key(redlock_lock *lock, size_t index, redlock_key_info *info) {
  return redlock_lock_key_sized(lock, index, info, sizeof(redlock_key_info));
}

/* Who held the lock then. Errors: NOT_HELD (no token had a majority); INVALID. */
REDLOCK_EXTERN int redlock_lock_holder_sized(redlock_lock *lock, redlock_holder_info *info,
                                             size_t info_size);
REDLOCK_INLINE int redlock_lock_holder(redlock_lock *lock, redlock_holder_info *info) {
  return redlock_lock_holder_sized(lock, info, sizeof(redlock_holder_info));
}

/*
 * Has all nodes examined: whether they are servers of their own that keep locks and let themselves be written to, how
 * they are set, what an ACL forbids, whether their clocks agree, how fast they are. Nothing is changed on them, and
 * |flags| is 0, or
 *   REDLOCK_DOCTOR_KEYS   look through keys under the client's prefix, too, for locks without an expiry: up to 10,000 of
 *                         each node, until some 2,000 were under the prefix, which keeps it busy for some ms
 *
 * |lock| is any lock of the client that is not held; one of several resources is INVALID. What an ACL allows is tried with keys like the lock's; its
 * ttl and node_timeout are looked at, too. The call waits for every node, for a second or for one
 * node_timeout, whichever is longer. REDLOCK_OK means that a majority has let itself be examined, and nothing of
 * what was found: redlock_lock_finding() tells that, also after REDLOCK_E_UNAVAILABLE.
 *
 * A user of the nodes who is to see all of it may run INFO and TIME besides what locks need; for keys SCAN and
 * STRLEN.
 * Errors: UNAVAILABLE, HELD, CLOSED; INVALID, BUSY, NO_MEMORY, SYSTEM.
 */
#define REDLOCK_DOCTOR_KEYS 1u
REDLOCK_EXTERN int redlock_lock_doctor(redlock_lock *lock, unsigned flags);
REDLOCK_EXTERN int redlock_lock_doctor_start(redlock_lock *lock, unsigned flags);

/*
 * Finding |index| of the last examination, from 0, the gravest first. Errors: INVALID, also when there are no
 * more. A password is in none of them.
 */
REDLOCK_EXTERN int redlock_lock_finding_sized(redlock_lock *lock, size_t index,
                                              redlock_finding_info *info, size_t info_size);
REDLOCK_INLINE int redlock_lock_finding(redlock_lock *lock, size_t index,
                                        redlock_finding_info *info) {
  return redlock_lock_finding_sized(lock, index, info, sizeof(redlock_finding_info));
}

/*
 * With a guard: tells all nodes that they remember all locks there are, so that none of them is quarantined. That is for
 * new nodes, and after guard_max_ttl_us or the list of nodes was changed.
 *
 * It is only true when no client holds a lock. If one does, and a node has forgotten it, there may be two
 * holders afterwards. Each node is waited for, for one node_timeout at most. REDLOCK_OK means that as many nodes
 * may vote as a lock needs. redlock_client_message() says what is wrong with the others; after redlock_lock_bootstrap(),
 * for which any lock of the client will do that is not held, redlock_lock_vote() tells it node by node.
 * Errors: UNAVAILABLE, HELD, CLOSED; INVALID (no guard), BUSY, NO_MEMORY, SYSTEM.
 */
REDLOCK_EXTERN int redlock_client_bootstrap(redlock_client *client);
REDLOCK_EXTERN int redlock_lock_bootstrap(redlock_lock *lock);
REDLOCK_EXTERN int redlock_lock_bootstrap_start(redlock_lock *lock);

/*
 * Deletes somebody else's key on every node that holds it for |token|, of |length| bytes, as
 * redlock_lock_key() told it. With NULL and REDLOCK_TOKEN_ANY the key is deleted whatever it holds.
 *
 * DANGER: the holder is not told. If it is alive, it goes on until its deadline, beside whoever takes the
 * lock now. Do this to a holder that is known to be dead. REDLOCK_TOKEN_ANY may hit one that has taken
 * the lock since you looked. Each node is told once: nothing is repeated later.
 *
 * REDLOCK_OK means that a majority of the nodes has no such key any more, and at least one had it;
 * redlock_lock_vote() tells which (GRANTED: deleted; TAKEN: did not hold it so). It waits for every node,
 * for one node_timeout at most. The lock must not be held by this very object.
 * Errors: UNAVAILABLE, NOT_HELD (no node that answered had it), HELD, CLOSED; INVALID, BUSY, NO_MEMORY,
 * SYSTEM.
 */
#define REDLOCK_TOKEN_ANY SIZE_MAX
REDLOCK_EXTERN int redlock_lock_force_release(redlock_lock *lock, const void *token, size_t length);
REDLOCK_EXTERN int redlock_lock_force_release_start(redlock_lock *lock, const void *token,
                                                    size_t length);

/* ------------------------------------------------------------------------- caller-owned loops */

/*
 * The calls above are built on the ones below, which never block. A loop is
 *
 *     n = redlock_client_pollfds(client, fds, capacity);
 *     poll(fds, n, redlock_client_timeout_ms(client));
 *     redlock_client_process(client, fds, n);
 *     while ((lock = redlock_client_next_ended(client)) != NULL) ...
 *
 * Starting an operation sends nothing by itself: the next redlock_client_process() does, and
 * redlock_client_timeout() is 0 until then. A loop that wants one descriptor instead of an array and
 * a time-out has redlock_client_pollfd().
 *
 * A loop and blocking calls of other threads may use one client at once. Each of the two waits for the nodes, and
 * whoever comes first does what is due. So a loop beside threads waits by redlock_client_pollfd(), which tells it
 * of what others have ended for it; an array and a time-out are of the moment in which they were asked for.
 */

/*
 * Begin what the blocking calls do. The lock must not be freed while its result is awaited, unless
 * the operation is to be abandoned. Errors: HELD, NOT_HELD, CLOSED; INVALID, BUSY.
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
 * REDLOCK_PENDING while the operation is in flight, then what it ended with, until the next one is
 * started. No validity, no lock: after an acquire or an extend the answer is REDLOCK_OK only as long as
 * the lease lasts. Then it is REDLOCK_E_EXPIRED, and what is left of the lock is released; or
 * REDLOCK_E_NOT_HELD, when the lock was detached or the process is a forked child. A lock that never had an
 * operation answers REDLOCK_OK.
 */
REDLOCK_EXTERN int redlock_lock_result(const redlock_lock *lock);

/*
 * Ends the operation in flight with REDLOCK_E_CANCELLED. A cancelled acquire releases on every node
 * that its command may have reached; a cancelled extend leaves the old deadline; a release that was
 * started goes on without its lock. Does nothing when no operation is in flight.
 */
REDLOCK_EXTERN void redlock_lock_cancel(redlock_lock *lock);

/*
 * Fills |fds|, of |capacity| elements, with the descriptors to wait for and the events to wait for
 * on each, and returns how many there are, which may be more than |capacity|; REDLOCK_NODES_MAX is
 * always enough. The set may change with every call on the client.
 */
REDLOCK_EXTERN size_t redlock_client_pollfds(redlock_client *client, struct pollfd *fds,
                                             size_t capacity);

/*
 * How long to wait at most; 0 = do not wait; REDLOCK_NEVER = nothing is due. Otherwise a second at most: poll(2) does
 * not count suspend, so a loop that waits by this is a second late after a suspend.
 */
REDLOCK_EXTERN redlock_duration redlock_client_timeout(redlock_client *client);

/* The same for poll(2): milliseconds rounded up; -1 = nothing is due. */
REDLOCK_EXTERN int redlock_client_timeout_ms(redlock_client *client);

/*
 * Reads, decides and sends whatever can be without blocking. |fds| is the array that was waited for,
 * with its revents; NULL makes the call look for itself. Errors: CLOSED, SYSTEM.
 */
REDLOCK_EXTERN int redlock_client_process(redlock_client *client, const struct pollfd *fds,
                                          size_t count);

/*
 * One descriptor that is readable when redlock_client_process(client, NULL, 0) is to be called and
 * redlock_client_next_ended() then asked until it answers NULL. A loop needs nothing else: replies,
 * started operations, retries, time-outs, reconnections and what has ended outside of the loop (by a
 * cancel, in a blocking call) all make it readable. Once in a while it is readable when nothing is
 * due, which redlock_client_process() sets right. Do not read from it, nor change it. Wait for it
 * level-triggered, as poll() does and epoll unless EPOLLET is set: a turn may leave work for the next.
 *
 * It stays the same until the client is closed, or the process has forked: take it out of your loop
 * before you close the client, and ask for it again in a child.
 *
 * Linux only: an epoll descriptor that holds the sockets, a timer and an event. -1 elsewhere, and when
 * the system refuses a descriptor: then wait for redlock_client_pollfds(), no longer than
 * redlock_client_timeout_ms(). A client that was asked for it spends two more system calls on each
 * started operation; one that was not, none.
 */
REDLOCK_EXTERN int redlock_client_pollfd(redlock_client *client);

/* The next lock whose started operation has ended, each once; NULL when there is none. */
REDLOCK_EXTERN redlock_lock *redlock_client_next_ended(redlock_client *client);

/* A pointer of the caller's that travels with the lock. */
REDLOCK_EXTERN void redlock_lock_set_data(redlock_lock *lock, void *data);
REDLOCK_EXTERN void *redlock_lock_data(const redlock_lock *lock);

/* ---------------------------------------------------------------- Lua hosts (libredlock-luaX.Y) */

/*
 * Pushes |client| as the Lua object that redlock.new() returns; the Lua state takes a reference of
 * its own. require "redlock" must have been called in that state. Raises a Lua error when out of
 * memory or when the module is not loaded. Returns 1, the number of values pushed.
 */
REDLOCK_EXTERN int redlock_lua_push_client(struct lua_State *L, redlock_client *client);

/* The C module, for hosts that link it statically: package.preload["redlock.core"]. */
REDLOCK_EXTERN int luaopen_redlock_core(struct lua_State *L);

#ifdef __cplusplus
}
#endif

#endif /* REDLOCK_H */
