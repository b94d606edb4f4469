/*
 * The bare limit: the cost of acquire and release with nothing but the protocol, by hiredis's codec
 * on plain sockets. A pair sends SET key token NX PX to all nodes at once, waits for a majority of
 * +OK, sends the compare-and-delete script to all nodes at once, and waits for a majority of :1. It
 * drops later replies.
 *
 *     limit <locks in flight> <host:port> ...
 *
 * Compiled with BENCH_TLS, it uses OpenSSL on the same sockets, with the CA of BENCH_TLS_CA.
 *
 * With BENCH_FORGET set it does not wait for the replies to the script.
 *
 * With 1 lock it is the sequential limit. It reads the measurements to make from stdin (measure.h).
 * It is a yardstick and no lock: it never retries, reconnects or uses a clock, and ends at anything
 * unexpected.
 *
 * SPDX-License-Identifier: MIT
 */
#include <errno.h>
#include <fcntl.h>
#include <hiredis.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <unistd.h>

#ifdef BENCH_TLS
#include <openssl/ssl.h>
#endif

#include "measure.h"

#define LIMIT_NODES_MAX 32
#define LIMIT_LOCKS_MAX 1024
#define LIMIT_OUTSTANDING_MAX 2000 /* a node that has so many replies is asked for no more locks */
#define LIMIT_OUTSTANDING_SIZE (LIMIT_OUTSTANDING_MAX + 2 * LIMIT_LOCKS_MAX)
#define LIMIT_PATIENCE_MS 5000
#define LIMIT_TOKEN_BYTES 20
#define LIMIT_TTL_MS "10000"

static const char limit_script[] =
    "if redis.call('get',KEYS[1])==ARGV[1] then return redis.call('del',KEYS[1]) end return 0";

typedef struct limit_outstanding {
  unsigned lock;
  unsigned step;
} limit_outstanding;

typedef struct limit_node {
  int fd;
#ifdef BENCH_TLS
  SSL *ssl;
#endif
  redisReader *reader;
  limit_outstanding outstanding[LIMIT_OUTSTANDING_SIZE]; /* a ring: the replies to come, in order */
  unsigned outstanding_first;
  unsigned outstanding_count;
  char *out;
  size_t out_size;
  size_t out_begin;
  size_t out_end;
} limit_node;

typedef struct limit_lock {
  char name[BENCH_NAME_SIZE];
  char token[2 * LIMIT_TOKEN_BYTES + 1];
  unsigned step;  /* a reply counts only for the step that asked for it */
  uint32_t nodes; /* that were asked for the lock: a bit each */
  unsigned asked, granted, refused;
  bool active, releasing;
  uint64_t begun_ns, held_ns;
} limit_lock;

typedef struct limit {
  limit_node *nodes;
  unsigned node_count;
  limit_lock *locks;
  unsigned lock_count;
  unsigned active;
  char script_sha[41];
  bool forget;
  const bench_goal *goal;
  bench_result *result;
} limit;

#ifdef BENCH_TLS
/* Return values like those of send() and recv(). */
static ssize_t limit_said(const limit_node *node, int result) {
  int error = result > 0 ? SSL_ERROR_NONE : SSL_get_error(node->ssl, result);

  errno = error == SSL_ERROR_WANT_READ || error == SSL_ERROR_WANT_WRITE ? EAGAIN : EPROTO;
  return result > 0 ? result : -1;
}

static ssize_t limit_send(limit_node *node, const void *bytes, size_t length) {
  return limit_said(node, SSL_write(node->ssl, bytes, (int)length));
}

static ssize_t limit_recv(limit_node *node, void *bytes, size_t length) {
  return limit_said(node, SSL_read(node->ssl, bytes, (int)length));
}

static bool limit_holds(const limit_node *node) {
  return SSL_has_pending(node->ssl);
}

/* Read-ahead, so that a record costs one call of the kernel and not two. */
static void limit_open(limit_node *node) {
  static SSL_CTX *context;

  if (context == NULL) {
    context = SSL_CTX_new(TLS_client_method());
    if (context == NULL ||
        SSL_CTX_load_verify_locations(context, getenv("BENCH_TLS_CA"), NULL) != 1)
      bench_die("limit: the CA of BENCH_TLS_CA cannot be read");
    SSL_CTX_set_verify(context, SSL_VERIFY_PEER, NULL);
    SSL_CTX_set_read_ahead(context, 1);
    SSL_CTX_set_mode(context, SSL_MODE_ENABLE_PARTIAL_WRITE | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER);
  }
  node->ssl = SSL_new(context);
  if (node->ssl == NULL || SSL_set_fd(node->ssl, node->fd) != 1 || SSL_connect(node->ssl) != 1)
    bench_die("limit: TLS cannot begin");
}
#else
static ssize_t limit_send(limit_node *node, const void *bytes, size_t length) {
  return send(node->fd, bytes, length, MSG_NOSIGNAL);
}

static ssize_t limit_recv(limit_node *node, void *bytes, size_t length) {
  return recv(node->fd, bytes, length, 0);
}

static bool limit_holds(const limit_node *node) {
  (void)node;
  return false;
}

static void limit_open(limit_node *node) {
  (void)node;
}
#endif

static void limit_flush(limit_node *node) {
  while (node->out_begin < node->out_end) {
    ssize_t sent = limit_send(node, node->out + node->out_begin, node->out_end - node->out_begin);
    if (sent < 0 && errno == EINTR)
      continue;
    if (sent < 0 && errno == EAGAIN)
      return;
    if (sent < 0)
      bench_die("limit: send: %s", strerror(errno));
    node->out_begin += (size_t)sent;
  }
  node->out_begin = node->out_end = 0;
}

static void limit_flush_all(limit *self) {
  for (unsigned i = 0; i < self->node_count; i++)
    if (self->nodes[i].out_end > 0)
      limit_flush(&self->nodes[i]);
}

static void limit_append(limit_node *node, const char *command, size_t length) {
  if (node->out_end + length > node->out_size) {
    node->out_size = 2 * node->out_size + length;
    node->out = realloc(node->out, node->out_size);
    if (node->out == NULL)
      bench_die("limit: out of memory");
  }
  memcpy(node->out + node->out_end, command, length);
  node->out_end += length;
}

static void limit_ask_node(limit *self, limit_lock *lock, unsigned index, const char *command,
                           int length) {
  limit_node *node = &self->nodes[index];
  unsigned last = (node->outstanding_first + node->outstanding_count) % LIMIT_OUTSTANDING_SIZE;

  if (!lock->releasing && node->outstanding_count >= LIMIT_OUTSTANDING_MAX)
    return;
  if (node->outstanding_count == LIMIT_OUTSTANDING_SIZE)
    bench_die("limit: a node has too much");
  node->outstanding[last] =
      (limit_outstanding){.lock = (unsigned)(lock - self->locks), .step = lock->step};
  node->outstanding_count++;
  lock->nodes |= (uint32_t)1 << index;
  lock->asked++;
  limit_append(node, command, (size_t)length);
}

/* Queues |arguments| for |nodes|; the caller flushes. */
static void limit_ask(limit *self, limit_lock *lock, uint32_t nodes, int count,
                      const char **arguments) {
  char *command = NULL;
  int length = (int)redisFormatCommandArgv(&command, count, arguments, NULL);

  if (length < 0)
    bench_die("limit: out of memory");
  lock->step++;
  lock->nodes = 0;
  lock->asked = lock->granted = lock->refused = 0;
  for (unsigned i = 0; i < self->node_count; i++)
    if (nodes & (uint32_t)1 << i)
      limit_ask_node(self, lock, i, command, length);
  redisFreeCommand(command);
  if (lock->asked <= self->node_count / 2)
    bench_die("limit: no majority takes commands any more");
}

static void limit_draw_token(char *token) {
  static const char digits[] = "0123456789abcdef";
  unsigned char bytes[LIMIT_TOKEN_BYTES];

  if (getrandom(bytes, sizeof bytes, 0) != (ssize_t)sizeof bytes)
    bench_die("limit: getrandom");
  for (unsigned i = 0; i < sizeof bytes; i++) {
    token[2 * i] = digits[bytes[i] >> 4];
    token[2 * i + 1] = digits[bytes[i] & 15];
  }
}

static void limit_acquire(limit *self, limit_lock *lock, uint64_t now_ns) {
  const char *arguments[] = {"SET", lock->name, lock->token, "NX", "PX", LIMIT_TTL_MS};

  lock->active = lock->releasing = false;
  if (now_ns >= self->goal->end_ns || self->result->pairs + self->active >= self->goal->pairs)
    return;
  lock->active = true;
  lock->begun_ns = now_ns;
  self->active++;
  limit_draw_token(lock->token);
  limit_ask(self, lock, UINT32_MAX, 6, arguments);
}

static void limit_release(limit *self, limit_lock *lock, uint64_t now_ns) {
  const char *arguments[] = {"EVALSHA", self->script_sha, "1", lock->name, lock->token};

  lock->releasing = true;
  lock->held_ns = now_ns;
  limit_ask(self, lock, lock->nodes, 5, arguments);
}

/* Counts one reply and, when it decides the step, starts the next. */
static void limit_vote(limit *self, limit_outstanding outstanding, const redisReply *reply) {
  limit_lock *lock = &self->locks[outstanding.lock];
  unsigned majority = self->node_count / 2 + 1;
  uint64_t now_ns;

  if (!lock->active || outstanding.step != lock->step)
    return;
  if (lock->releasing ? reply->type == REDIS_REPLY_INTEGER && reply->integer == 1
                      : reply->type == REDIS_REPLY_STATUS && strcmp(reply->str, "OK") == 0)
    lock->granted++;
  else
    lock->refused++;
  if (lock->granted < majority && lock->asked - lock->refused >= majority)
    return;
  if (lock->granted < majority)
    self->result->failures++;
  now_ns = bench_now_ns();
  if (!lock->releasing) {
    limit_release(self, lock, now_ns);
    if (!self->forget)
      return;
    limit_flush_all(self);
    now_ns = bench_now_ns();
  }
  self->active--;
  bench_record(self->result, lock->begun_ns, lock->held_ns, now_ns);
  limit_acquire(self, lock, now_ns);
}

static void limit_read(limit *self, limit_node *node) {
  char bytes[16384];
  ssize_t length = limit_recv(node, bytes, sizeof bytes);
  void *reply;

  if (length < 0 && (errno == EAGAIN || errno == EINTR))
    return;
  if (length <= 0)
    bench_die("limit: recv: %s", length < 0 ? strerror(errno) : "end of file");
  if (redisReaderFeed(node->reader, bytes, (size_t)length) != REDIS_OK)
    bench_die("limit: codec");
  for (;;) {
    if (redisReaderGetReply(node->reader, &reply) != REDIS_OK)
      bench_die("limit: codec");
    if (reply == NULL)
      return;
    if (node->outstanding_count == 0)
      bench_die("limit: an unexpected reply");
    limit_outstanding outstanding = node->outstanding[node->outstanding_first];
    node->outstanding_first = (node->outstanding_first + 1) % LIMIT_OUTSTANDING_SIZE;
    node->outstanding_count--;
    limit_vote(self, outstanding, reply);
    freeReplyObject(reply);
  }
}

_Noreturn static void limit_complain(const limit *self) {
  for (unsigned i = 0; i < self->node_count; i++)
    fprintf(stderr, "limit: node %u has %u replies, %zu bytes unsent\n", i,
            self->nodes[i].outstanding_count, self->nodes[i].out_end - self->nodes[i].out_begin);
  bench_die("limit: no reply within %d ms", LIMIT_PATIENCE_MS);
}

static void limit_turn(limit *self) {
  struct pollfd fds[LIMIT_NODES_MAX];
  int ready;

  limit_flush_all(self);
  for (unsigned i = 0; i < self->node_count; i++) {
    fds[i].fd = self->nodes[i].fd;
    fds[i].events = self->nodes[i].out_end > 0 ? POLLIN | POLLOUT : POLLIN;
  }
  ready = poll(fds, self->node_count, LIMIT_PATIENCE_MS);
  if (ready == 0)
    limit_complain(self);
  if (ready < 0 && errno != EINTR)
    bench_die("limit: poll: %s", strerror(errno));
  for (unsigned i = 0; ready > 0 && i < self->node_count; i++)
    if (fds[i].revents & (POLLIN | POLLHUP | POLLERR)) {
      do
        limit_read(self, &self->nodes[i]);
      while (limit_holds(&self->nodes[i]));
    }
}

static void limit_run(void *peer, const bench_goal *goal, bench_result *result) {
  limit *self = peer;

  self->goal = goal;
  self->result = result;
  for (unsigned i = 0; i < self->lock_count; i++)
    limit_acquire(self, &self->locks[i], bench_now_ns());
  while (self->active > 0)
    limit_turn(self);
}

static void limit_load_script(limit *self, limit_node *node) {
  const char *arguments[] = {"SCRIPT", "LOAD", limit_script};
  char bytes[256];
  char *command = NULL;
  int length = (int)redisFormatCommandArgv(&command, 3, arguments, NULL);
  void *reply = NULL;

  limit_append(node, command, (size_t)length);
  redisFreeCommand(command);
  limit_flush(node);
  while (reply == NULL) {
    ssize_t got = limit_recv(node, bytes, sizeof bytes);
    if (got <= 0)
      bench_die("limit: cannot load the script");
    redisReaderFeed(node->reader, bytes, (size_t)got);
    if (redisReaderGetReply(node->reader, &reply) != REDIS_OK)
      bench_die("limit: codec");
  }
  if (((redisReply *)reply)->type != REDIS_REPLY_STRING)
    bench_die("limit: cannot load the script");
  memcpy(self->script_sha, ((redisReply *)reply)->str, 40);
  freeReplyObject(reply);
}

static void limit_connect(limit *self, limit_node *node, char *address) {
  struct addrinfo hints = {.ai_socktype = SOCK_STREAM};
  struct addrinfo *found;
  char *port = strrchr(address, ':');
  int on = 1;

  if (port == NULL)
    bench_die("limit: %s: not host:port", address);
  *port++ = '\0';
  if (getaddrinfo(address, port, &hints, &found) != 0)
    bench_die("limit: %s: unknown", address);
  node->fd = socket(found->ai_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (node->fd < 0 || connect(node->fd, found->ai_addr, found->ai_addrlen) != 0)
    bench_die("limit: %s:%s: %s", address, port, strerror(errno));
  freeaddrinfo(found);
  setsockopt(node->fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  node->reader = redisReaderCreate();
  if (node->reader == NULL)
    bench_die("limit: out of memory");
  limit_open(node);
  limit_load_script(self, node);
  fcntl(node->fd, F_SETFL, fcntl(node->fd, F_GETFL) | O_NONBLOCK);
}

int main(int argc, char **argv) {
  static bench_result result;
  limit self = {.node_count = (unsigned)(argc > 2 ? argc - 2 : 0)};

  self.forget = getenv("BENCH_FORGET") != NULL;
  self.lock_count = argc > 1 ? (unsigned)atoi(argv[1]) : 0;
  if (self.node_count == 0 || self.node_count > LIMIT_NODES_MAX || self.lock_count == 0 ||
      self.lock_count > LIMIT_LOCKS_MAX)
    bench_die("usage: limit <locks in flight> <host:port> ...");
  self.nodes = calloc(self.node_count, sizeof *self.nodes);
  self.locks = calloc(self.lock_count, sizeof *self.locks);
  if (self.nodes == NULL || self.locks == NULL)
    bench_die("limit: out of memory");
  for (unsigned i = 0; i < self.node_count; i++)
    limit_connect(&self, &self.nodes[i], argv[i + 2]);
  for (unsigned i = 0; i < self.lock_count; i++)
    bench_name(self.locks[i].name, sizeof self.locks[i].name, i);
  bench_serve(limit_run, &self, &result);
  return 0;
}
