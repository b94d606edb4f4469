/*
 * Forked children: each function of the library as the first that a child calls.
 *
 * SPDX-License-Identifier: MIT
 *
 * The parent holds a lock, has an operation in flight on another, and waits by one descriptor. The
 * first call of a child must not disturb the parent, and must not give the child what the parent
 * has.
 */
#include <fcntl.h>
#include <sys/prctl.h>

#include "support.h"

/* The state of the parent, which a child inherits. */
static redlock_client *client;
static redlock_lock *held;
static redlock_lock *pending;

/* -------------------------------------------------------------------------------- first calls */

/* Output parameters of the calls. */
static struct {
  redlock_lock *lock;
  redlock_node_info node;
  redlock_vote_info vote;
  redlock_holder_info holder;
  redlock_finding_info finding;
  redlock_stats_info stats;
  redlock_node_stats_info node_stats;
  redlock_event_info event;
  redlock_key_info key;
  redlock_resource resource;
  size_t length;
  struct pollfd fds[REDLOCK_NODES_MAX];
  char text[REDLOCK_HANDOVER_MAX];
} out;

static const redlock_resource both[] = {{"a", 1}, {"b", 1}};

static void ignore_loss(redlock_client *of, void *data) {
  (void)of;
}

static int resign(redlock_lock *term, void *data) {
  (void)data;
  return redlock_lock_remaining(term) > 0 ? REDLOCK_RESIGN : REDLOCK_CAMPAIGN;
}

static bool process_inherited_descriptors(void) {
  struct pollfd fds[3];
  for (int i = 0; i < 3; i++) {
    fds[i] = (struct pollfd){3 + i, POLLIN, POLLIN | POLLHUP};
  }
  return redlock_client_process(client, fds, 3) == REDLOCK_OK;
}

/*
 * X(function, true in a child whose first call it is). The parent holds the lock, its client has
 * connections to make, and it has no guard.
 */
// clang-format off
#define FIRSTS(X) \
  X(add, redlock_client_add(client, "127.0.0.1:1", NULL, 0) == REDLOCK_E_BUSY) \
  X(add_node, redlock_client_add_node(client, &(redlock_node){.host = "127.0.0.1"}, NULL, 0) == \
      REDLOCK_E_BUSY) \
  X(ref, (redlock_client_free(redlock_client_ref(client)), true)) \
  X(client_free, (redlock_client_free(client), client = NULL, true)) \
  X(close, redlock_client_close(client, MS(1000)) == REDLOCK_OK) \
  X(wakeup, (redlock_client_wakeup(client), true)) \
  X(node_count, redlock_client_node_count(client) == 3) \
  X(node_info, redlock_client_node_info(client, 0, &out.node) == REDLOCK_OK && out.node.state != \
      REDLOCK_NODE_UP && out.node.outstanding == 0) \
  X(lock_new, redlock_lock_new(&out.lock, client, "k", 1, NULL) == REDLOCK_OK) \
  X(lock_free, (redlock_lock_free(held), redlock_lock_free(pending), held = pending = NULL, \
      true)) \
  X(acquire, redlock_lock_acquire(held, NULL, NULL) == REDLOCK_E_TAKEN) \
  X(extend, redlock_lock_extend(held, 0, NULL) == REDLOCK_E_NOT_HELD) \
  X(release, redlock_lock_release(held) == REDLOCK_E_NOT_HELD) \
  X(remaining, redlock_lock_remaining(held) == 0) \
  X(deadline, redlock_lock_deadline(held) == 0) \
  X(token, redlock_lock_token(held)[0] == '\0') \
  X(token_bytes, redlock_lock_token_bytes(held, &out.length) != NULL && out.length == 0) \
  X(give_token, redlock_lock_give_token(held, "x", 1) == REDLOCK_OK) \
  X(lock_new_many, redlock_lock_new_many(&out.lock, client, both, 2, NULL) == REDLOCK_OK) \
  X(resource_count, redlock_lock_resource_count(held) == 1) \
  X(resource_at, redlock_lock_resource_at(held, 0, &out.resource) == REDLOCK_OK && \
      out.resource.length == 4) \
  X(detach, redlock_lock_detach(held, out.text, sizeof out.text, NULL) == REDLOCK_E_NOT_HELD) \
  X(attach, redlock_lock_attach(&out.lock, client, "no such text", 12, NULL) == REDLOCK_E_LOST) \
  X(resource, memcmp(redlock_lock_resource(held, &out.length), "held", 4) == 0 && out.length == \
      4) \
  X(ttl, redlock_lock_ttl(held) > 0) \
  X(lock_client, redlock_lock_client(held) == client) \
  X(message, redlock_lock_message(pending)[0] != '\0') \
  X(vote, redlock_lock_vote(held, 0, &out.vote) == REDLOCK_OK) \
  X(acquire_start, redlock_lock_acquire_start(held, NULL) == REDLOCK_OK) \
  X(extend_start, redlock_lock_extend_start(held, 0) == REDLOCK_E_NOT_HELD) \
  X(release_start, redlock_lock_release_start(held) == REDLOCK_E_NOT_HELD) \
  X(inspect, redlock_lock_inspect(held) == REDLOCK_OK && redlock_lock_holder(held, &out.holder) \
      == REDLOCK_OK && out.holder.token_length > 0) \
  X(inspect_start, redlock_lock_inspect_start(held) == REDLOCK_OK) \
  X(margin, redlock_lock_margin(held) == -1) \
  X(fence, redlock_lock_fence(held) == 0) \
  X(slot, redlock_lock_slot(held) == 0) \
  X(lead, redlock_client_lead(client, "led", 3, NULL, resign, NULL, NULL) == REDLOCK_OK) \
  X(doctor, redlock_lock_doctor(held, 0) == REDLOCK_OK && redlock_lock_finding(held, 0, \
      &out.finding) == REDLOCK_OK) \
  X(doctor_start, redlock_lock_doctor_start(held, 0) == REDLOCK_OK) \
  X(bootstrap, redlock_client_bootstrap(client) == REDLOCK_E_INVALID) \
  X(lock_bootstrap, redlock_lock_bootstrap(held) == REDLOCK_E_INVALID) \
  X(bootstrap_start, redlock_lock_bootstrap_start(held) == REDLOCK_E_INVALID) \
  X(finding, redlock_lock_finding(held, 0, &out.finding) == REDLOCK_E_INVALID) \
  X(key, redlock_lock_key(held, 0, &out.key) == REDLOCK_OK && out.key.state == \
      REDLOCK_KEY_UNKNOWN) \
  X(holder, redlock_lock_holder(held, &out.holder) == REDLOCK_E_NOT_HELD) \
  X(force_release, redlock_lock_force_release(held, "not the token", 13) == REDLOCK_E_NOT_HELD) \
  X(force_release_start, redlock_lock_force_release_start(held, "not the token", 13) == \
      REDLOCK_OK) \
  X(result, redlock_lock_result(held) == REDLOCK_E_NOT_HELD) \
  X(cancel, (redlock_lock_cancel(pending), redlock_lock_result(pending) == REDLOCK_E_CANCELLED)) \
  X(pollfds, redlock_client_pollfds(client, out.fds, REDLOCK_NODES_MAX) == 0) \
  X(timeout, redlock_client_timeout(client) == 0) \
  X(timeout_ms, redlock_client_timeout_ms(client) == 0) \
  X(process, redlock_client_process(client, NULL, 0) == REDLOCK_OK) \
  X(pollfd, redlock_client_pollfd(client) >= 0) \
  X(next_ended, redlock_client_next_ended(client) == pending) \
  X(release_send, redlock_lock_release_send(held) == REDLOCK_E_NOT_HELD) \
  X(lost, redlock_lock_lost(held, NULL) == REDLOCK_OK) \
  X(next_lost, redlock_client_next_lost(client) == NULL) \
  X(on_lost, redlock_client_on_lost(client, ignore_loss, NULL) == REDLOCK_OK) \
  X(stats, redlock_client_stats(client, &out.stats) == REDLOCK_OK && out.stats.attempts == 0 && \
      out.stats.held == 0) \
  X(node_stats, redlock_client_node_stats(client, 0, &out.node_stats) == REDLOCK_OK && \
      out.node_stats.connections == 0 && out.node_stats.votes_granted == 0) \
  X(on_event, redlock_client_on_event(client, ignore_loss, NULL) == REDLOCK_OK) \
  X(next_event, redlock_client_next_event(client, &out.event) == REDLOCK_PENDING) \
  X(give_credentials, redlock_client_give_credentials(client, 0, "me", "word", 4) == \
      REDLOCK_E_EXPIRED) \
  X(refuse_credentials, redlock_client_refuse_credentials(client, 0, "none") == \
      REDLOCK_E_EXPIRED) \
  X(set_owner, redlock_lock_set_owner(pending, "me", 2) == REDLOCK_OK) \
  X(set_data, (redlock_lock_set_data(held, &three), redlock_lock_data(held) == &three)) \
  X(data, redlock_lock_data(held) == NULL) \
  X(client_message, redlock_client_message(client)[0] == '\0') \
  X(result_in_flight, redlock_lock_result(pending) == REDLOCK_E_CANCELLED) \
  X(process_of_inherited_descriptors, process_inherited_descriptors())
// clang-format on

#define FIRST_FUNCTION(name, ...)                                                                  \
  static bool first_##name(void) {                                                                 \
    return __VA_ARGS__;                                                                            \
  }
FIRSTS(FIRST_FUNCTION)

#define FIRST_ROW(name, ...) {#name, first_##name},
static const struct {
  const char *name;
  bool (*call)(void);
} firsts[] = {FIRSTS(FIRST_ROW)};
#define FIRSTS_COUNT (sizeof firsts / sizeof firsts[0])

/* The table has each function of the header that takes a client or a lock. */
TEST(table_has_each_function_of_the_header) {
  static const char *const skipped[] = {"redlock_version",
                                        "redlock_strerror",
                                        "redlock_error_name",
                                        "redlock_now",
                                        "redlock_core",
                                        "redlock_client_new",
                                        "redlock_lua_push_client",
                                        "redlock_vote_name",
                                        "redlock_node_state_name",
                                        "redlock_key_state_name",
                                        "redlock_severity_name",
                                        "redlock_event_name",
                                        "redlock_bucket_bound"};
  char line[512];
  unsigned functions = 0;
  FILE *header = fopen("csrc/include/redlock.h", "r");
  assert_non_null(header);
  while (fgets(line, sizeof line, header) != NULL) {
    const char *name = strstr(line, "redlock_");
    bool other = strncmp(line, "REDLOCK_EXTERN ", 15) != 0;
    while (name != NULL && !other && name[strcspn(name, " (,);")] != '(') {
      name = strstr(name + 1, "redlock_");
    }
    for (size_t i = 0; i < sizeof skipped / sizeof skipped[0] && name != NULL; i++) {
      other = other || strncmp(name, skipped[i], strlen(skipped[i])) == 0;
    }
    functions += name != NULL && !other;
  }
  (void)fclose(header);
  assert_int_equal(functions, FIRSTS_COUNT - 2); /* Two rows call functions of other rows. */
}

/* ---------------------------------------------------------------------------------- the child */

static int child(void *argument) {
  bool (*const *call)(void) = argument;
  if (!(*call)()) {
    return 1;
  }
  if (held != NULL && (redlock_lock_remaining(held) != 0 || redlock_lock_token(held)[0] != '\0')) {
    return 2;
  }
  if (client != NULL && *call != first_close) { /* The child can hold locks of its own. */
    redlock_lock *lock = new_lock(client, "child");
    if (redlock_lock_acquire(lock, NULL, NULL) != REDLOCK_OK) {
      return 3;
    }
    redlock_lock_free(lock);
  }
  redlock_lock_free(held);
  redlock_lock_free(pending);
  redlock_client_free(client);
  return 0;
}

/* Waits by the one descriptor until the operation of |lock| has ended. */
static int finish(const redlock_lock *lock) {
  for (;;) {
    redlock_lock *ended = redlock_client_next_ended(client);
    if (ended == lock) {
      return redlock_lock_result(lock);
    }
    struct pollfd one = {redlock_client_pollfd(client), POLLIN, 0};
    if (ended == NULL && poll(&one, 1, (int)(EVENTUALLY_US / 1000)) != 1) {
      fail_msg("the descriptor has not become readable");
    }
    assert_int_equal(redlock_client_process(client, NULL, 0), REDLOCK_OK);
  }
}

TEST(first_call_of_a_child_does_not_disturb_the_parent) {
  for (size_t i = 0; i < FIRSTS_COUNT; i++) {
    bool (*call)(void) = firsts[i].call;
    redlock_options options = once();
    options.ttl_us = 600 * REDLOCK_SECONDS;
    /* No timer wakes a loop whose descriptor stays silent. */
    options.node_timeout_us = 300 * REDLOCK_SECONDS;
    client = client_of(&three, 3, &options);
    held = held_lock(client, "held");
    pending = new_lock(client, "pending");
    assert_true(redlock_client_pollfd(client) >= 0);
    pump_until(client, all_up(client));
    assert_int_equal(redlock_lock_acquire_start(pending, NULL), REDLOCK_OK);
    assert_int_equal(redlock_client_process(client, NULL, 0), REDLOCK_OK);
    print_message("first: %s\n", firsts[i].name);
    in_child(child, &call);
    assert_ok(pending, finish(pending));
    assert_int_equal(farm_count(&three, "held", redlock_lock_token(held)), 3);
    eventually(farm_count(&three, "pending", redlock_lock_token(pending)) == 3);
    assert_int_equal(redlock_lock_extend_start(held, 0), REDLOCK_OK);
    assert_ok(held, finish(held));
    for (unsigned node = 0; node < 3; node++) {
      eventually(farm_connections(&three, node) == 1); /* the parent's first one */
    }
    assert_ok(held, redlock_lock_release(held));
    assert_ok(pending, redlock_lock_release(pending));
    redlock_lock_free(held);
    redlock_lock_free(pending);
    redlock_client_free(client);
    farm_reset(&three);
  }
}

/* ------------------------------------------------------------------------------- descriptors */

/* A child that never calls the library keeps the parent's closed sockets open. */
TEST(idle_loop_sleeps_although_a_child_has_its_sockets) {
  redlock_options options = once();
  int stop[2];
  client = client_of(&three, 3, &options);
  held = held_lock(client, "held");
  pump_until(client, all_up(client));
  int fd = redlock_client_pollfd(client);
  assert_int_equal(pipe2(stop, O_CLOEXEC), 0);
  pid_t pid = fork();
  assert_true(pid >= 0);
  if (pid == 0) {
    char byte;
    (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
    (void)close(stop[1]);
    _exit(read(stop[0], &byte, 1) == 0 ? 0 : 1);
  }
  (void)close(stop[0]);
  for (unsigned i = 0; i < 3; i++) {
    farm_kill(&three, i);
    farm_restart(&three, i);
  }
  for (unsigned i = 0; i < 3; i++) {
    pump_until(client, all_up(client) && farm_connections(&three, i) == 1);
  }
  struct pollfd one = {fd, POLLIN, 0};
  redlock_time until_us = redlock_now() + EVENTUALLY_US;
  /* A closed socket that stays in the epoll set would be readable for ever. */
  while (poll(&one, 1, 300) == 1) {
    assert_true(redlock_now() < until_us);
    assert_int_equal(redlock_client_process(client, NULL, 0), REDLOCK_OK);
  }
  (void)close(stop[1]);
  int status;
  assert_int_equal(waitpid(pid, &status, 0), pid);
  assert_int_equal(status, 0);
  free_with_client(held);
}

TEST(exec_closes_every_descriptor) {
  bool before[256] = {false};
  for (int i = 0; i < 256; i++) {
    before[i] = fcntl(i, F_GETFD) >= 0;
  }
  char name[64];
  (void)snprintf(name, sizeof name, "localhost:%d", three.nodes[2].port);
  const char *addresses[] = {three.nodes[0].address, three.nodes[1].address, name};
  client = client_at(addresses, 3, NULL);
  assert_true(redlock_client_pollfd(client) >= 0);
  held = new_lock(client, "held");
  assert_int_equal(redlock_lock_acquire_start(held, NULL), REDLOCK_OK);
  const unsigned expected = 3 + 3; /* epoll set, timer, event; sockets */
  unsigned seen = 0;
  redlock_time until_us = redlock_now() + EVENTUALLY_US;
  /* A name is resolved meanwhile. */
  for (unsigned turn = 0; turn < 50 || (seen < expected && redlock_now() < until_us); turn++) {
    assert_int_equal(redlock_client_process(client, NULL, 0), REDLOCK_OK);
    unsigned now = 0;
    for (int i = 0; i < 256; i++) {
      int flags = fcntl(i, F_GETFD);
      if (flags >= 0 && !before[i]) {
        assert_true((flags & FD_CLOEXEC) != 0);
        now++;
      }
    }
    seen = now > seen ? now : seen;
    (void)poll(NULL, 0, 1);
  }
  assert_true(seen >= expected);
  free_with_client(held);
}

/*
 * ---------------------------------------------------------------------------------- the watchdog
 */

static redlock_lock *hold(redlock_client *of, const char *name, const redlock_options *options) {
  redlock_lock *lock = new_lock(of, name);
  assert_ok(lock, redlock_lock_acquire(lock, options, NULL));
  return lock;
}

/* Extends every few milliseconds, so that a test sees it soon. */
static redlock_options auto_extended(void) {
  redlock_options options = once();
  options.auto_extend = REDLOCK_YES;
  options.extend_every_us = MS(20);
  return options;
}

static bool extended_within_deadline(const redlock_lock *lock, redlock_time first_us) {
  redlock_time until_us = redlock_now() + EVENTUALLY_US;
  while (redlock_lock_deadline(lock) <= first_us) {
    if (redlock_now() > until_us) {
      return false;
    }
    (void)poll(NULL, 0, 2);
  }
  return true;
}

static int child_has_no_watchdog(void *argument) {
  redlock_lock *lock = argument;
  redlock_client *of = redlock_lock_client(lock);
  if (running_threads() != 1 || redlock_lock_remaining(lock) != 0) {
    return 1;
  }
  redlock_options options = auto_extended();
  redlock_lock *own = hold(of, "child", &options);
  if (running_threads() != 2) {
    return 2;
  }
  if (!extended_within_deadline(own, redlock_lock_deadline(own)) ||
      redlock_lock_lost(own, NULL) != REDLOCK_OK) {
    return 3;
  }
  redlock_lock_free(own);
  redlock_lock_free(lock);
  redlock_client_free(of);
  eventually(running_threads() == 1); /* The kernel lists a joined thread for a moment. */
  return 0;
}

TEST(child_has_no_watchdog_before_its_own_lease) {
  redlock_client *of = client_of(&three, 3, NULL);
  redlock_options options = auto_extended();
  redlock_lock *lock = hold(of, "r", &options);
  in_child(child_has_no_watchdog, lock);
  assert_true(extended_within_deadline(lock, redlock_lock_deadline(lock)));
  eventually(farm_count(&three, "r", redlock_lock_token(lock)) == 3);
  redlock_lock_free(lock);
  redlock_client_free(of);
}

int main(void) {
  return tests_run(&(tests_fixture){.start = three_start, .before = three_reset, .end = three_end});
}
