/*
 * Peers that are no proper Redis server: they cost little memory and time, and calls report their
 * replies.
 *
 * SPDX-License-Identifier: MIT
 */
#include "fake_server.h"
#include "support.h"

#define MEMORY_MAX ((size_t)6 << 20)
#define NODE_TIMEOUT_US MS(1000) /* for a silent peer */
/* After 3 s without a reply a connection ends, and no call waits for its node. */
#define SOON_US MS(2000)
/* On a slow machine the connection to a peer may end for that reason: then try again. */
#define TRIES 10

static farm two; /* healthy nodes beside the hostile one */

static int start(void **state) {
  farm_start(&two, 2, NULL);
  return 0;
}

static int end(void **state) {
  farm_end(&two);
  return 0;
}

static const char endless[] =
    "xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx"
    "xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx";

typedef struct hostile_case {
  const char *name;
  fake_behaviour behaviour;
  redlock_vote vote;
  const char *error; /* part of the message */
} hostile_case;

static const hostile_case cases[] = {
    {"loading",
     {.set = "-LOADING Redis is loading the dataset in memory\r\n"},
     REDLOCK_VOTE_ERROR,
     "LOADING Redis is loading the dataset in memory"},
    {"moved",
     {.set = "-MOVED 3999 127.0.0.1:6381\r\n"},
     REDLOCK_VOTE_ERROR,
     "MOVED 3999 127.0.0.1:6381"},
    {"cluster down",
     {.set = "-CLUSTERDOWN Hash slot not served\r\n"},
     REDLOCK_VOTE_ERROR,
     "CLUSTERDOWN"},
    {"misconf",
     {.set = "-MISCONF Errors writing to the AOF file\r\n"},
     REDLOCK_VOTE_ERROR,
     "MISCONF"},
    {"busy", {.set = "-BUSY Redis is busy running a script.\r\n"}, REDLOCK_VOTE_ERROR, "BUSY"},
    {"error with control characters",
     {.set = "-ERR \033[31mred\033[0m\r\n"},
     REDLOCK_VOTE_ERROR,
     "ERR ?[31mred?[0m"},
    {"an integer for SET", {.set = ":1\r\n"}, REDLOCK_VOTE_ERROR, "unexpected reply"},
    {"another status", {.set = "+QUEUED\r\n"}, REDLOCK_VOTE_ERROR, "unexpected reply"},
    {"a bulk OK", {.set = "$2\r\nOK\r\n"}, REDLOCK_VOTE_ERROR, "unexpected reply"},
    {"OKAY", {.set = "+OKAY\r\n"}, REDLOCK_VOTE_ERROR, "unexpected reply"},
    {"an array", {.set = "*2\r\n+OK\r\n+OK\r\n"}, REDLOCK_VOTE_ERROR, "unexpected reply"},
    {"garbage", {.set = "HTTP/1.1 400 Bad Request\r\n\r\n"}, REDLOCK_VOTE_UNKNOWN, "not RESP"},
    {"zeros", {.set = "\001\002\003\r\n"}, REDLOCK_VOTE_UNKNOWN, "not RESP"},
    {"an integer that is none", {.set = ":12a\r\n"}, REDLOCK_VOTE_UNKNOWN, "RESP"},
    {"endless line", {.set = "+", .flood = endless}, REDLOCK_VOTE_UNKNOWN, "too large"},
    {"endless error", {.set = "-ERR ", .flood = endless}, REDLOCK_VOTE_UNKNOWN, "too large"},
    {"endless length", {.set = "$1", .flood = "0"}, REDLOCK_VOTE_UNKNOWN, "too large"},
    {"bulk of 2 GiB",
     {.set = "$2147483647\r\n", .flood = endless},
     REDLOCK_VOTE_UNKNOWN,
     "too large"},
    {"bulk of 2 GiB, announced only",
     {.set = "$2147483647\r\n"},
     REDLOCK_VOTE_UNKNOWN,
     "too large"},
    {"array of 2^31-1", {.set = "*2147483647\r\n"}, REDLOCK_VOTE_UNKNOWN, "too large"},
    {"array of 2^31-1 and its elements",
     {.set = "*2147483647\r\n", .flood = ":1\r\n"},
     REDLOCK_VOTE_UNKNOWN,
     "too large"},
    {"arrays in arrays", {.set = "*1\r\n", .flood = "*1\r\n"}, REDLOCK_VOTE_UNKNOWN, ""},
    {"never", {.set = ""}, REDLOCK_VOTE_UNKNOWN, "no reply within"},
    {"half a reply", {.set = "+O"}, REDLOCK_VOTE_UNKNOWN, "no reply within"},
    {"closed at once", {.close_after = 5}, REDLOCK_VOTE_UNKNOWN, "closed the connection"},
    {"closed within the reply", {.close_after = 7}, REDLOCK_VOTE_UNKNOWN, "closed the connection"},
    {"closed within the handshake",
     {.close_after = 2},
     REDLOCK_VOTE_ERROR,
     "closed the connection"},
    {"an answer before the question",
     {.greeting = "SSH-2.0-OpenSSH_9.2\r\n"},
     REDLOCK_VOTE_ERROR,
     "not RESP"},
    {"too many clients",
     {.greeting = "-ERR max number of clients reached\r\n", .close_after = 36},
     REDLOCK_VOTE_ERROR,
     "max number of clients"},
    {"closed whatever it was asked",
     {.closes_at_name = true, .close_after = 1},
     REDLOCK_VOTE_ERROR,
     "is this a TLS port?"},
    {"a password is wanted",
     {.setname = "-NOAUTH Authentication required.\r\n"},
     REDLOCK_VOTE_ERROR,
     "NOAUTH"},
    {"endless handshake",
     {.setname = "+", .flood = endless, .flood_handshake = true},
     REDLOCK_VOTE_ERROR,
     "too large"},
    {"mute handshake", {.setname = ""}, REDLOCK_VOTE_UNKNOWN, "no connection "},
};

/* Returns true if the peer is silent until the attempt ends. */
static bool is_waited_for(const hostile_case *hostile) {
  return strstr(hostile->error, "no reply within") != NULL ||
         strstr(hostile->error, "no connection ") != NULL;
}

/*
 * The only node is hostile: the call reports the reason at once, or after the time of one attempt.
 * Returns false if it took longer.
 */
static bool try_alone(const hostile_case *hostile, const fake_server *server) {
  const char *address = server->address;
  redlock_options options = once();
  options.node_timeout_us = is_waited_for(hostile) ? NODE_TIMEOUT_US : 300 * REDLOCK_SECONDS;
  options.ttl_us = 600 * REDLOCK_SECONDS;
  redlock_client *client = client_at(&address, 1, &options);
  redlock_lock *lock = new_lock(client, "r");
  size_t before = allocated_bytes();
  redlock_time before_us = stopwatch();
  int result = redlock_lock_acquire(lock, NULL, NULL);
  redlock_duration took_us = redlock_now() - before_us;
  size_t grown = allocated_bytes() > before ? allocated_bytes() - before : 0;
  bool soon = took_us <= SOON_US + witness_delay_us(before_us);
  bool reported = result == REDLOCK_E_UNAVAILABLE && vote_of(lock, 0) == hostile->vote &&
                  strstr(redlock_lock_message(lock), hostile->error) != NULL &&
                  strstr(redlock_lock_message(lock), server->address) != NULL &&
                  vote_says(lock, 0, hostile->error);
  if (!reported && took_us <= SOON_US) {
    fail_msg("%s: %s, vote %d, %s", hostile->name, redlock_error_name(result), vote_of(lock, 0),
             redlock_lock_message(lock));
  }
  if (grown > MEMORY_MAX) {
    fail_msg("%s: took %zu bytes", hostile->name, grown);
  }
  free_with_client(lock);
  return soon && reported;
}

/* The hostile node is one of three: it disturbs no call. */
static void try_as_minority(const hostile_case *hostile, const fake_server *server) {
  const char *addresses[] = {server->address, two.nodes[0].address, two.nodes[1].address};
  redlock_options options = once();
  options.node_timeout_us = 300 * REDLOCK_SECONDS;
  options.ttl_us = 600 * REDLOCK_SECONDS;
  redlock_client *client = client_at(addresses, 3, &options);
  size_t before = allocated_bytes();
  for (unsigned i = 0; i < 20; i++) {
    redlock_time before_us = stopwatch();
    redlock_lock *lock = new_lock(client, "r");
    int result = redlock_lock_acquire(lock, NULL, NULL);
    if (result != REDLOCK_OK) {
      fail_msg("%s, %u: %s", hostile->name, i, redlock_lock_message(lock));
    }
    assert_ok(lock, redlock_lock_extend(lock, 0, NULL));
    assert_ok(lock, redlock_lock_release(lock));
    redlock_lock_free(lock);
    /* A first acquire waits four times as long as the majority took: a delay counts five times. */
    assert_took(before_us, 0, SOON_US + 4 * witness_delay_us(before_us));
  }
  size_t grown = allocated_bytes() > before ? allocated_bytes() - before : 0;
  if (grown > MEMORY_MAX) {
    fail_msg("%s: took %zu bytes", hostile->name, grown);
  }
  redlock_client_free(client);
  eventually(farm_count(&two, "r", NULL) == 0);
}

TEST(hostile_reply_is_reported_and_costs_little) {
  for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
    bool soon = false;
    for (unsigned tries = 0; tries < TRIES && !soon; tries++) {
      fake_server server;
      fake_start(&server, &cases[i].behaviour);
      soon = try_alone(&cases[i], &server);
      fake_end(&server);
    }
    if (!soon) {
      fail_msg("%s: took too long %u times", cases[i].name, TRIES);
    }
  }
}

TEST(hostile_minority_disturbs_no_call) {
  for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
    fake_server server;
    fake_start(&server, &cases[i].behaviour);
    try_as_minority(&cases[i], &server);
    fake_end(&server);
  }
}

/* Starts a fake server, and returns a held lock of a client that has no other node. */
static redlock_lock *hold_on_fake(fake_server *server, const fake_behaviour *behaviour) {
  fake_start(server, behaviour);
  const char *address = server->address;
  return held_lock(client_at(&address, 1, NULL), "r");
}

static void end_fake(fake_server *server, redlock_lock *lock) {
  free_with_client(lock);
  fake_end(server);
}

TEST(replies_may_arrive_byte_by_byte) {
  fake_behaviour slow = {.one_by_one = true};
  fake_server server;
  redlock_lock *lock = hold_on_fake(&server, &slow);
  assert_ok(lock, redlock_lock_extend(lock, 0, NULL));
  assert_ok(lock, redlock_lock_release(lock));
  end_fake(&server, lock);
}

TEST(unsolicited_reply_ends_the_connection) {
  fake_behaviour eager = {.set = "+OK\r\n+OK\r\n"};
  fake_server server;
  fake_start(&server, &eager);
  const char *addresses[] = {server.address, two.nodes[0].address, two.nodes[1].address};
  redlock_client *client = client_at(addresses, 3, NULL);
  redlock_lock *lock = held_lock(client, "r");
  pump_until(client, *server.accepted >= 2);
  assert_ok(lock, redlock_lock_release(lock));
  free_with_client(lock);
  fake_end(&server);
}

TEST(wrong_reply_extends_and_releases_nothing) {
  static const struct {
    const char *reply;
    const char *message;
  } wrong[] = {
      {":4\r\n", ""},
      {":-1\r\n", ""},
      {"+OK\r\n", ""},
      {"$1\r\n1\r\n", ""},
      {"$-1\r\n", ""},
      {"*0\r\n", ""},
      {"*-1\r\n", ""},
      {"-NOSCRIPT No matching script.\r\n", "NOSCRIPT"}, /* The text is sent only once. */
  };
  for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
    fake_behaviour behaviour = {.script = wrong[i].reply};
    fake_server server;
    redlock_lock *lock = hold_on_fake(&server, &behaviour);
    redlock_time deadline_us = redlock_lock_deadline(lock);
    assert_int_equal(redlock_lock_extend(lock, MS(60000), NULL), REDLOCK_E_UNAVAILABLE);
    assert_contains(redlock_lock_message(lock), wrong[i].message);
    assert_int_equal(redlock_lock_deadline(lock), deadline_us);
    assert_int_equal(redlock_lock_release(lock), REDLOCK_E_UNAVAILABLE);
    assert_contains(redlock_lock_message(lock), server.address);
    end_fake(&server, lock);
  }
}

/*
 * Proxies that do not know CLIENT SETNAME and CLIENT SETINFO reply with an error or nonsense, or
 * close the connection.
 */
TEST(proxy_without_setname_and_setinfo_is_used) {
  static const fake_behaviour proxies[] = {
      {.setname = "-unsupported command 'client'\r\n"},
      {.setname = "*2\r\n$1\r\na\r\n$1\r\nb\r\n"},
      {.setname = ":5\r\n"},
      {.closes_at_name = true},
      {.closes_at_info = true},
  };
  for (size_t i = 0; i < sizeof proxies / sizeof proxies[0]; i++) {
    fake_server server;
    redlock_lock *lock = hold_on_fake(&server, &proxies[i]); /* by the first attempt */
    assert_ok(lock, redlock_lock_release(lock));
    assert_int_equal(*server.accepted,
                     proxies[i].closes_at_name || proxies[i].closes_at_info ? 2 : 1);
    end_fake(&server, lock);
  }
}

int main(void) {
  return tests_run(&(tests_fixture){.start = start, .end = end});
}
