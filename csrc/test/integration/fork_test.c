/*
 * Forked children: each function of the library as the first that a child calls.
 *
 * SPDX-License-Identifier: MIT
 *
 * The parent holds a lock, has an operation in flight on another, and waits by one descriptor. Whatever
 * the child calls first, nothing of that may be disturbed, and nothing of it may be the child's.
 */
#include <fcntl.h>
#include <sys/prctl.h>

#include "support.h"

/* What a child finds. */
static redlock_client *client;
static redlock_lock *held;
static redlock_lock *pending;

/* ------------------------------------------------------------------------------- first calls */

static bool first_add(void) {
  return redlock_client_add(client, "127.0.0.1:1", NULL, 0) == REDLOCK_E_BUSY;
}
static bool first_add_node(void) {
  redlock_node node = {0};
  node.host = "127.0.0.1";
  return redlock_client_add_node(client, &node, NULL, 0) == REDLOCK_E_BUSY;
}
static bool first_ref(void) {
  redlock_client_free(redlock_client_ref(client));
  return true;
}
static bool first_client_free(void) {
  redlock_client_free(client); /* The locks have references of their own. */
  client = NULL;
  return true;
}
static bool first_close(void) {
  return redlock_client_close(client, MS(1000)) == REDLOCK_OK;
}
static bool first_wakeup(void) {
  redlock_client_wakeup(client);
  return true;
}
static bool first_node_count(void) {
  return redlock_client_node_count(client) == 3;
}
static bool first_node_info(void) {
  redlock_node_info info;
  return redlock_client_node_info(client, 0, &info) == REDLOCK_OK &&
         info.state != REDLOCK_NODE_UP && info.outstanding == 0;
}
static bool first_client_message(void) {
  return redlock_client_message(client)[0] == '\0';
}
static bool first_lock_new(void) {
  redlock_lock *lock = NULL;
  bool made = redlock_lock_new(&lock, client, "k", 1, NULL) == REDLOCK_OK;
  redlock_lock_free(lock);
  return made;
}
static bool first_lock_free(void) {
  redlock_lock_free(held);
  redlock_lock_free(pending);
  held = pending = NULL;
  return true;
}
static bool first_acquire(void) {
  return redlock_lock_acquire(held, NULL, NULL) == REDLOCK_E_TAKEN; /* By the parent. */
}
static bool first_extend(void) {
  return redlock_lock_extend(held, 0, NULL) == REDLOCK_E_NOT_HELD;
}
static bool first_release(void) {
  return redlock_lock_release(held) == REDLOCK_E_NOT_HELD;
}
static bool first_remaining(void) {
  return redlock_lock_remaining(held) == 0;
}
static bool first_deadline(void) {
  return redlock_lock_deadline(held) == 0;
}
static bool first_token(void) {
  return redlock_lock_token(held)[0] == '\0';
}
static bool first_token_bytes(void) {
  size_t length = 1;
  return redlock_lock_token_bytes(held, &length) != NULL && length == 0;
}
static bool first_give_token(void) {
  return redlock_lock_give_token(held, "x", 1) == REDLOCK_OK;
}
static bool first_lock_new_many(void) {
  redlock_resource both[] = {{"a", 1}, {"b", 1}};
  redlock_lock *lock;
  bool made = redlock_lock_new_many(&lock, client, both, 2, NULL) == REDLOCK_OK;
  redlock_lock_free(lock);
  return made;
}
static bool first_resource_count(void) {
  return redlock_lock_resource_count(held) == 1;
}
static bool first_resource_at(void) {
  redlock_resource resource;
  return redlock_lock_resource_at(held, 0, &resource) == REDLOCK_OK && resource.length == 4;
}
static bool first_detach(void) {
  char text[REDLOCK_HANDOVER_MAX];
  return redlock_lock_detach(held, text, sizeof text, NULL) == REDLOCK_E_NOT_HELD;
}
static bool first_attach(void) {
  redlock_lock *lock;
  return redlock_lock_attach(&lock, client, "no such text", 12, NULL) == REDLOCK_E_LOST;
}
static bool first_resource(void) {
  size_t length;
  return memcmp(redlock_lock_resource(held, &length), "held", 4) == 0 && length == 4;
}
static bool first_ttl(void) {
  return redlock_lock_ttl(held) > 0;
}
static bool first_lock_client(void) {
  return redlock_lock_client(held) == client;
}
static bool first_message(void) {
  return redlock_lock_message(pending)[0] != '\0';
}
static bool first_vote(void) {
  redlock_vote_info vote;
  return redlock_lock_vote(held, 0, &vote) == REDLOCK_OK;
}
static bool first_acquire_start(void) {
  return redlock_lock_acquire_start(held, NULL) == REDLOCK_OK;
}
static bool first_extend_start(void) {
  return redlock_lock_extend_start(held, 0) == REDLOCK_E_NOT_HELD;
}
static bool first_release_start(void) {
  return redlock_lock_release_start(held) == REDLOCK_E_NOT_HELD;
}
static bool first_inspect(void) {
  redlock_holder_info holder;
  return redlock_lock_inspect(held) == REDLOCK_OK &&
         redlock_lock_holder(held, &holder) == REDLOCK_OK && holder.token_length > 0;
}
static bool first_inspect_start(void) {
  return redlock_lock_inspect_start(held) == REDLOCK_OK;
}
static bool first_margin(void) {
  return redlock_lock_margin(held) == -1;
}
static bool first_fence(void) {
  return redlock_lock_fence(held) == 0;
}
static bool first_doctor(void) {
  redlock_finding_info info;
  return redlock_lock_doctor(held, 0) == REDLOCK_OK &&
         redlock_lock_finding(held, 0, &info) == REDLOCK_OK;
}
static bool first_doctor_start(void) {
  return redlock_lock_doctor_start(held, 0) == REDLOCK_OK;
}
/* The client has no guard. */
static bool first_bootstrap(void) {
  return redlock_client_bootstrap(client) == REDLOCK_E_INVALID;
}
static bool first_lock_bootstrap(void) {
  return redlock_lock_bootstrap(held) == REDLOCK_E_INVALID;
}
static bool first_bootstrap_start(void) {
  return redlock_lock_bootstrap_start(held) == REDLOCK_E_INVALID;
}
static bool first_finding(void) {
  redlock_finding_info info;
  return redlock_lock_finding(held, 0, &info) == REDLOCK_E_INVALID;
}
static bool first_key(void) {
  redlock_key_info key;
  return redlock_lock_key(held, 0, &key) == REDLOCK_OK && key.state == REDLOCK_KEY_UNKNOWN;
}
static bool first_holder(void) {
  redlock_holder_info holder;
  return redlock_lock_holder(held, &holder) == REDLOCK_E_NOT_HELD;
}
static bool first_force_release(void) {
  return redlock_lock_force_release(held, "not the token", 13) == REDLOCK_E_NOT_HELD;
}
static bool first_force_release_start(void) {
  return redlock_lock_force_release_start(held, "not the token", 13) == REDLOCK_OK;
}
static bool first_result(void) {
  return redlock_lock_result(held) == REDLOCK_E_NOT_HELD;
}
static bool first_result_in_flight(void) {
  return redlock_lock_result(pending) == REDLOCK_E_CANCELLED;
}
static bool first_cancel(void) {
  redlock_lock_cancel(pending);
  return redlock_lock_result(pending) == REDLOCK_E_CANCELLED;
}
static bool first_pollfds(void) {
  struct pollfd fds[REDLOCK_NODES_MAX];
  return redlock_client_pollfds(client, fds, REDLOCK_NODES_MAX) == 0;
}
static bool first_timeout(void) {
  return redlock_client_timeout(client) == 0; /* Connections are to be made. */
}
static bool first_timeout_ms(void) {
  return redlock_client_timeout_ms(client) == 0;
}
static bool first_process(void) {
  return redlock_client_process(client, NULL, 0) == REDLOCK_OK;
}
static bool first_process_of_inherited_descriptors(void) {
  struct pollfd fds[3];
  for (int i = 0; i < 3; i++) {
    fds[i] = (struct pollfd){3 + i, POLLIN, POLLIN | POLLHUP};
  }
  return redlock_client_process(client, fds, 3) == REDLOCK_OK;
}
static bool first_pollfd(void) {
  return redlock_client_pollfd(client) >= 0;
}
static bool first_next_ended(void) {
  return redlock_client_next_ended(client) == pending;
}
static bool first_release_send(void) {
  return redlock_lock_release_send(held) == REDLOCK_E_NOT_HELD;
}
static bool first_lost(void) {
  return redlock_lock_lost(held, NULL) == REDLOCK_OK;
}
static bool first_next_lost(void) {
  return redlock_client_next_lost(client) == NULL;
}
static void nobody(redlock_client *of, void *data) {
  (void)of;
  (void)data;
}
static bool first_on_lost(void) {
  return redlock_client_on_lost(client, nobody, NULL) == REDLOCK_OK;
}
static bool first_give_credentials(void) {
  return redlock_client_give_credentials(client, 0, "me", "word", 4) == REDLOCK_E_EXPIRED;
}
static bool first_refuse_credentials(void) {
  return redlock_client_refuse_credentials(client, 0, "none") == REDLOCK_E_EXPIRED;
}
static bool first_set_owner(void) {
  return redlock_lock_set_owner(pending, "me", 2) == REDLOCK_OK;
}
static bool first_set_data(void) {
  redlock_lock_set_data(held, &three);
  return redlock_lock_data(held) == &three;
}
static bool first_data(void) {
  return redlock_lock_data(held) == NULL;
}

#define FIRST(name) #name, first_##name

static const struct {
  const char *name;
  bool (*call)(void);
} firsts[] = {
    {FIRST(add)},
    {FIRST(add_node)},
    {FIRST(ref)},
    {FIRST(client_free)},
    {FIRST(close)},
    {FIRST(wakeup)},
    {FIRST(node_count)},
    {FIRST(node_info)},
    {FIRST(lock_new)},
    {FIRST(lock_free)},
    {FIRST(acquire)},
    {FIRST(extend)},
    {FIRST(release)},
    {FIRST(remaining)},
    {FIRST(deadline)},
    {FIRST(token)},
    {FIRST(token_bytes)},
    {FIRST(give_token)},
    {FIRST(lock_new_many)},
    {FIRST(resource_count)},
    {FIRST(resource_at)},
    {FIRST(detach)},
    {FIRST(attach)},
    {FIRST(resource)},
    {FIRST(ttl)},
    {FIRST(lock_client)},
    {FIRST(message)},
    {FIRST(vote)},
    {FIRST(acquire_start)},
    {FIRST(extend_start)},
    {FIRST(release_start)},
    {FIRST(inspect)},
    {FIRST(inspect_start)},
    {FIRST(margin)},
    {FIRST(fence)},
    {FIRST(doctor)},
    {FIRST(doctor_start)},
    {FIRST(bootstrap)},
    {FIRST(lock_bootstrap)},
    {FIRST(bootstrap_start)},
    {FIRST(finding)},
    {FIRST(key)},
    {FIRST(holder)},
    {FIRST(force_release)},
    {FIRST(force_release_start)},
    {FIRST(result)},
    {FIRST(cancel)},
    {FIRST(pollfds)},
    {FIRST(timeout)},
    {FIRST(timeout_ms)},
    {FIRST(process)},
    {FIRST(pollfd)},
    {FIRST(next_ended)},
    {FIRST(release_send)},
    {FIRST(lost)},
    {FIRST(next_lost)},
    {FIRST(on_lost)},
    {FIRST(give_credentials)},
    {FIRST(refuse_credentials)},
    {FIRST(set_owner)},
    {FIRST(set_data)},
    {FIRST(data)},
    {FIRST(client_message)},
    {FIRST(result_in_flight)},
    {FIRST(process_of_inherited_descriptors)},
};

/* Every function of the header that takes a client or a lock stands in the table. */
static void no_function_of_the_header_is_missing(void **state) {
  (void)state;
  static const char *const others[] = {"redlock_version",
                                       "redlock_strerror",
                                       "redlock_error_name",
                                       "redlock_now",
                                       "redlock_core",
                                       "redlock_client_new",
                                       "redlock_lua_push_client",
                                       "redlock_vote_name",
                                       "redlock_node_state_name",
                                       "redlock_key_state_name",
                                       "redlock_severity_name"};
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
    for (size_t i = 0; i < sizeof others / sizeof others[0] && name != NULL; i++) {
      other = other || strncmp(name, others[i], strlen(others[i])) == 0;
    }
    functions += name != NULL && !other;
  }
  (void)fclose(header);
  /* Two of the table call a function that stands there already. */
  assert_int_equal(functions, sizeof firsts / sizeof firsts[0] - 2);
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
  if (client != NULL && *call != first_close) { /* What the child takes is its own. */
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

static void whatever_a_child_calls_first_the_parent_is_not_disturbed(void **state) {
  (void)state;
  for (size_t i = 0; i < sizeof firsts / sizeof firsts[0]; i++) {
    bool (*call)(void) = firsts[i].call;
    redlock_options options = once();
    options.ttl_us = 600 * REDLOCK_SECONDS;
    options.node_timeout_us =
        300 * REDLOCK_SECONDS; /* No timer comes to the help of a loop that is not woken. */
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
      eventually(farm_connections(&three, node) == 1); /* The parent's, and it is the first. */
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

/* A child that has our descriptors open and never calls us: they stay in existence, not in our sets. */
static void a_loop_rests_although_a_child_keeps_what_it_inherited(void **state) {
  (void)state;
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
  while (poll(&one, 1, 300) ==
         1) { /* A socket that is closed, and in the set, would be so for ever. */
    assert_true(redlock_now() < until_us);
    assert_int_equal(redlock_client_process(client, NULL, 0), REDLOCK_OK);
  }
  (void)close(stop[1]);
  int status;
  assert_int_equal(waitpid(pid, &status, 0), pid);
  assert_int_equal(status, 0);
  redlock_lock_free(held);
  redlock_client_free(client);
}

static void every_descriptor_is_closed_by_exec(void **state) {
  (void)state;
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
  unsigned seen = 0;
  for (unsigned turn = 0; turn < 50; turn++) { /* Also while a name is looked up. */
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
  assert_true(seen >= 3 + 3); /* The set, its timer and event; sockets, or what a look-up has. */
  redlock_lock_free(held);
  redlock_client_free(client);
}

/* ---------------------------------------------------------------------------------- the keeper */

static redlock_lock *hold(redlock_client *of, const char *name, const redlock_options *options) {
  redlock_lock *lock = new_lock(of, name);
  assert_ok(lock, redlock_lock_acquire(lock, options, NULL));
  return lock;
}

/* Extended every few milliseconds, so that a test sees it soon. */
static redlock_options kept(void) {
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

static int child_is_without(void *argument) {
  redlock_lock *lock = argument;
  redlock_client *of = redlock_lock_client(lock);
  if (running_threads() != 1 || redlock_lock_remaining(lock) != 0) {
    return 1;
  }
  redlock_options options = kept();
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
  eventually(running_threads() ==
             1); /* The kernel takes a moment to forget a thread that was joined. */
  return 0;
}

static void a_child_has_no_keeper_until_it_holds_a_lease_of_its_own(void **state) {
  (void)state;
  redlock_client *of = client_of(&three, 3, NULL);
  redlock_options options = kept();
  redlock_lock *lock = hold(of, "r", &options);
  in_child(child_is_without, lock);
  assert_true(extended_within_deadline(lock, redlock_lock_deadline(lock)));
  assert_int_equal(farm_count(&three, "r", redlock_lock_token(lock)), 3);
  redlock_lock_free(lock);
  redlock_client_free(of);
}

#define TEST(name) cmocka_unit_test_setup(name, three_reset)

int main(void) {
  const struct CMUnitTest tests[] = {
      TEST(no_function_of_the_header_is_missing),
      TEST(whatever_a_child_calls_first_the_parent_is_not_disturbed),
      TEST(a_loop_rests_although_a_child_keeps_what_it_inherited),
      TEST(every_descriptor_is_closed_by_exec),
      TEST(a_child_has_no_keeper_until_it_holds_a_lease_of_its_own),
  };
  return cmocka_run_group_tests_name("children", tests, three_start, three_end);
}
