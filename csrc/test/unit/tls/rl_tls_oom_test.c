/*
 * TLS without memory: each allocation of the library and of OpenSSL fails once.
 *
 * SPDX-License-Identifier: MIT
 */
#include <openssl/err.h>

#include "rl_test.h"
#include "scratch.h"
#include "tls_peer.h"

void *__wrap_malloc(size_t size);
void *__wrap_calloc(size_t count, size_t size);
void *__wrap_realloc(void *block, size_t size);
char *__wrap_strdup(const char *text);
void __wrap_free(void *block);

#include "failing_memory.h"

/* blocks that OpenSSL keeps in its caches */
#define KEPT_MAX 400

static scratch_directory scratch;
static tls_certificate ours;
static char ca[256];

static int start(void **state) {
  assert_true(scratch_open(&scratch, "rl_tls_oom"));
  ours = tls_certificate_make("redis.test", -1, 2);
  (void)snprintf(ca, sizeof ca, "%s/ca.pem", scratch.path);
  tls_certificate_write(&ours, ca);
  return 0;
}

static int end(void **state) {
  tls_certificate_free(&ours);
  scratch_close(&scratch);
  return 0;
}

/* Evaluates |call| with failing memory. */
#define ARMED(call) (memory.armed = true, result = (call), memory.armed = false, result)

static bool talk(rl_transport_stream *stream, tls_peer *peer, char *message, size_t size) {
  char bytes[16];
  long result = 0;
  while (ARMED(rl_tls_stream_shake(stream, message, size)) == 0) {
    tls_peer_take(peer, stream);
    if (tls_peer_give(peer, stream, 16384) == 0) {
      return false; /* The library had no memory for a message. */
    }
  }
  if (result < 0 || ARMED(rl_tls_stream_write(stream, "PING\r\n", 6, message, size)) < 0) {
    return false;
  }
  tls_peer_take(peer, stream);
  if (tls_peer_read(peer, bytes, sizeof bytes) != 6) {
    return false;
  }
  tls_peer_write(peer, "+PONG\r\n", 7);
  while (tls_peer_give(peer, stream, 16384) > 0) {
    if (ARMED(rl_tls_stream_read(stream, bytes, sizeof bytes, message, size)) != 0) {
      break;
    }
  }
  memory.armed = true;
  rl_tls_stream_finish(stream);
  memory.armed = false;
  return result == 7;
}

/*
 * Makes a node and two connections to it. Returns true if all succeeded; otherwise there is a
 * message.
 */
static bool live(tls_peer *peer) {
  rl_transport_options options = {.host = "redis.test", .ca = ca, .ciphers = "HIGH"};
  rl_transport_node *node = NULL;
  char message[256] = "";
  int result = 0;
  bool ok = true;
  if (ARMED(rl_tls_node_new(&node, &options, message, sizeof message)) != REDLOCK_OK) {
    assert_null(node);
    assert_true(message[0] != '\0');
    return false;
  }
  for (unsigned i = 0; i < 2; i++) {
    tls_peer_next(peer);
    memory.armed = true;
    rl_transport_stream *stream = rl_tls_stream_new(node, message, sizeof message);
    memory.armed = false;
    bool talked = stream != NULL && talk(stream, peer, message, sizeof message);
    ok = ok && talked;
    if (stream != NULL) {
      rl_tls_stream_free(stream);
    } else {
      assert_true(message[0] != '\0');
    }
  }
  rl_tls_node_free(node);
  assert_true(ERR_peek_error() == 0);
  return ok;
}

TEST(each_allocation_may_fail) {
  tls_peer peer;
  unsigned failures = 0;
  size_t calls;
  tls_peer_start(&peer, &ours, TLS1_3_VERSION);
  for (unsigned i = 0; i < 2; i++) {
    arm(0, false);
    memory.armed = false;
    assert_true(live(&peer));
  }
  calls = memory.calls;
  assert_true(calls > 4); /* A sanitizer counts only the library's. */
  long before = memory.live;
  /* OpenSSL makes thousands: each of the first, then every seventh. */
  for (size_t at = 1; at <= calls; at += at < 400 ? 1 : 7) {
    arm(at, false);
    memory.armed = false;
    failures += !live(&peer);
    memory.fail_at = 0;
  }
  assert_true(failures > 4);
  arm(0, false);
  memory.armed = false;
  assert_true(live(&peer)); /* all works afterwards */
  assert_true(memory.live - before < KEPT_MAX);
  tls_peer_end(&peer);
}

int main(void) {
  return tests_run(&(tests_fixture){.start = start, .end = end});
}
