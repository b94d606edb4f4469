/*
 * The rounds of rl_acquire, rl_extend, rl_release and rl_fence, for every assignment and every
 * order of what 1 to 3 nodes can do, once and followed by a second round; with a fencing token for
 * 3 nodes. The nodes are simulated stores, so the test compares each result with their keys.
 *
 * SPDX-License-Identifier: MIT
 *
 * The test computes the expected results from the votes, without rl_quorum. Of the large tests a
 * sanitizer plays every 8th case, and valgrind (REDLOCK_TEST_VALGRIND=1) every 64th: all cases
 * would take minutes there, or half an hour.
 */
#include "fake_nodes.h"
#include "lease/rl_fence.h"
#include "options/rl_login.h"
#include "rl_test.h"

void __wrap_rl_login_overwrite(void *memory, size_t size);

/* There are no passwords here, and byte by byte it takes a seventh of the time. */
void __wrap_rl_login_overwrite(void *memory, size_t size) {
  memset(memory, 0, size);
}

/* Reactions of a node to the command of a round. */
typedef enum act {
  GRANTED, /* executes it, and its reply comes in time */
  TAKEN,   /* the key is not ours there; says so in time */
  FAILED,  /* answers an error, in time, and has executed nothing */
  LATE,    /* executes it in time, but its reply comes when the round is over */
  NEVER,   /* executes it; no reply ever comes, and in the end the connection breaks */
  BROKEN,  /* executes it, and the connection breaks during the round */
  ACTS,
  ABSENT =
      ACTS /* reply outstanding since the last round: gets no SET, has no vote from the beginning */
} act;

#define NODES_MAX 3
#define TIMEOUT_US (100 * MS)
#define LEASE_US (9898 * MS) /* 10 s less 1 % and 2 ms */
#define STEP_US (10 * MS)    /* between two deliveries */

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define STRIDE 8
#else
#define STRIDE 1
#endif
#define VALGRIND_STRIDE 64

static const char KEY[] = "k";
static const char OTHER[] = "ffffffffffffffffffffffffffffffffffffffff";

/* The first 1, 2 and 6 rows are all orders of one, two and three nodes. */
static const unsigned orders[6][NODES_MAX] = {{0, 1, 2}, {1, 0, 2}, {0, 2, 1},
                                              {1, 2, 0}, {2, 0, 1}, {2, 1, 0}};
static const unsigned order_counts[NODES_MAX + 1] = {0, 1, 2, 6};

typedef struct plan {
  unsigned count;
  act acts[NODES_MAX];
  const unsigned *order;
} plan;

/* The second round of the case was played: its plan mattered. */
static bool second_was_played;

typedef struct tally {
  unsigned granted, refused, failed;
} tally;

/* The replies of a round, on their way. */
typedef struct replies {
  char text[NODES_MAX][FAKE_REPLY_MAX];
} replies;

static unsigned majority_of(unsigned count) {
  return (count + 2) / 2;
}

static unsigned power(unsigned base, unsigned exponent) {
  return exponent == 0 ? 1 : base * power(base, exponent - 1);
}

static plan plan_of(unsigned count, unsigned number, unsigned order) {
  plan made = {count, {GRANTED, GRANTED, GRANTED}, orders[order]};
  for (unsigned i = 0; i < count; i++) {
    made.acts[i] = (act)(number % ACTS);
    number /= ACTS;
  }
  return made;
}

/* ------------------------------------------------------------------------------ expectations */

/*
 * What acquire and extend must have ended with; REDLOCK_PENDING while they must not have ended:
 * while a majority may still come, or the reason why there is none is still open.
 */
static int expected(unsigned count, const tally *votes, fake_verb verb) {
  unsigned majority = majority_of(count);
  unsigned pending = count - votes->granted - votes->refused - votes->failed;
  unsigned reasons = verb == FAKE_SET ? votes->failed : votes->refused;
  if (votes->granted >= majority) {
    return REDLOCK_OK;
  }
  if (reasons > count - majority) {
    return verb == FAKE_SET ? REDLOCK_E_UNAVAILABLE : REDLOCK_E_LOST;
  }
  if (votes->granted + pending >= majority || reasons + pending > count - majority) {
    return REDLOCK_PENDING;
  }
  return verb == FAKE_SET ? REDLOCK_E_TAKEN : REDLOCK_E_UNAVAILABLE;
}

/* The same for release, whose answer must not depend on the order. */
static int expected_release(unsigned count, const tally *votes) {
  unsigned majority = majority_of(count);
  unsigned gone = votes->granted + votes->refused;
  unsigned pending = count - gone - votes->failed;
  if (votes->granted >= majority) {
    return REDLOCK_OK;
  }
  if (votes->refused >= majority) {
    return REDLOCK_E_LOST;
  }
  if (votes->granted + pending >= majority || votes->refused + pending >= majority) {
    return REDLOCK_PENDING;
  }
  if (gone >= majority) {
    return REDLOCK_OK;
  }
  return gone + pending >= majority ? REDLOCK_PENDING : REDLOCK_E_UNAVAILABLE;
}

static bool in_time(act what) {
  return what != LATE && what != NEVER && what != ABSENT;
}

static void count_vote(tally *votes, act what) {
  votes->granted += what == GRANTED;
  votes->refused += what == TAKEN;
  votes->failed += what == FAILED || what == BROKEN || what == ABSENT;
}

/* ------------------------------------------------------------------------------ the nodes' part */

/* Every node executes the command of the round when it arrives; the replies come later. */
static void execute(fake_world *world, const plan *todo, bool as_other, replies *out) {
  memset(out, 0, sizeof *out);
  for (unsigned i = 0; i < todo->count; i++) {
    if (todo->acts[i] == TAKEN) {
      fake_store_remove(&world->nodes[i].store, KEY);
      world->nodes[i].mark = true;
      if (as_other) {
        fake_store_put(&world->nodes[i].store, KEY, OTHER, REDLOCK_NEVER);
      }
    }
    if (todo->acts[i] == FAILED) {
      (void)fake_take(world, i);
      (void)snprintf(out->text[i], FAKE_REPLY_MAX, "-LOADING Redis is loading\r\n");
    } else if (todo->acts[i] != ABSENT) {
      assert_true(fake_execute(world, i, out->text[i]).verb >= FAKE_SET);
    }
  }
}

static void deliver(fake_world *world, const plan *todo, unsigned node, const replies *in) {
  world->nodes[node].mark = world->nodes[node].mark && todo->acts[node] != TAKEN;
  if (todo->acts[node] == BROKEN) {
    fake_break(world, node, "Connection reset by peer");
  } else {
    fake_deliver(world, node, in->text[node]);
  }
}

/* Other people's keys go away. */
static void clear_others(fake_world *world) {
  for (unsigned i = 0; i < world->count; i++) {
    const char *token = fake_store_token(&world->nodes[i].store, world->now_us, KEY);
    if (token != NULL && strcmp(token, OTHER) == 0) {
      fake_store_remove(&world->nodes[i].store, KEY);
    }
  }
}

/*
 * The nodes that are tested for being the server that has granted the lock answer that they are
 * not.
 */
static void answer_tests(fake_world *world, const rl_lock *lock) {
  if (lock->phase == RL_PHASE_ROUND && lock->attempt != NULL &&
      lock->attempt->test_outstanding != 0) {
    fake_answer_tests(world, lock);
  }
}

/* Nodes that still answer do so; those that never will again do not. */
static void answer_rest(fake_world *world, const plan *last) {
  for (unsigned i = 0; i < world->count; i++) {
    while (last->acts[i] != NEVER && last->acts[i] != ABSENT && world->nodes[i].queued > 0) {
      (void)fake_answer(world, i);
    }
  }
}

/* ----------------------------------------------------------------------------------- invariants */

/*
 * While a lock is held, a majority of the nodes has its token, for at least as long as the lease:
 * but for nodes that have lost the key and have not said so yet (they are marked), or only to
 * another extend.
 */
static void assert_exclusion(fake_world *world, const rl_lock *lock) {
  unsigned holders = 0;
  unsigned lost = 0;
  if (rl_lock_remaining(lock, world->now_us) == 0) {
    return;
  }
  for (unsigned i = 0; i < world->count; i++) {
    const char *token = fake_store_token(&world->nodes[i].store, world->now_us, KEY);
    bool ours = token != NULL && strcmp(token, rl_attempt_token(lock->lease)) == 0;
    holders +=
        ours && fake_store_expiry(&world->nodes[i].store, world->now_us, KEY) >= lock->deadline_us;
    lost += !ours && world->nodes[i].mark && lock->operation == RL_OPERATION_EXTEND;
  }
  assert_true(holders + lost >= majority_of(world->count));
}

/*
 * When all has been answered and the lock is gone, no node holds a token of ours, but for those
 * that answered an error to the release.
 */
static void assert_clean(fake_world *world, rl_lock *lock, const plan *last,
                         const plan *not_released) {
  rl_lock_free(lock, world->now_us);
  fake_turn(world);
  for (unsigned i = 0; i < world->count; i++) {
    if (last->acts[i] == NEVER || last->acts[i] == ABSENT) {
      fake_break(world, i, "the node does not answer any more");
    }
  }
  fake_pass(world, SECONDS);
  fake_settle(world);
  clear_others(world);
  for (unsigned i = 0; i < world->count; i++) {
    assert_true(fake_store_token(&world->nodes[i].store, world->now_us, KEY) == NULL ||
                (not_released != NULL && not_released->acts[i] == FAILED));
  }
  assert_int_equal(world->core.attempts.live, 0);
  assert_int_equal(world->core.releases->count, 0);
  assert_false(rl_core_has_unanswered(&world->core));
}

/* ------------------------------------------------------------------------------------- a round */

/* Returns the result that acquire or extend must have at this moment. */
static int expected_now(const fake_world *world, const plan *todo, const tally *votes,
                        fake_verb verb, redlock_time old_deadline_us) {
  if (verb == FAKE_EXTEND && world->now_us >= old_deadline_us) {
    return REDLOCK_E_EXPIRED;
  }
  return expected(todo->count, votes, verb);
}

/*
 * An attempt that no majority answered in time stays taken if the one before was and its nodes are
 * only slow (rl_pause_test has that rule). Either result is right here.
 */
static int reported(const rl_lock *lock, int before, int end) {
  bool either = end == REDLOCK_E_UNAVAILABLE && before == REDLOCK_E_TAKEN;
  return either && lock->result == REDLOCK_E_TAKEN ? REDLOCK_E_TAKEN : end;
}

/*
 * Plays a round of acquire or extend that begins now. It must end exactly with the vote that makes
 * it certain, with the result that follows from the votes; what is claimed must be on the nodes.
 */
static int play(fake_world *world, rl_lock *lock, const plan *todo, fake_verb verb, bool as_other,
                replies *out) {
  tally votes = {0, 0, 0};
  redlock_time start_us = world->now_us;
  redlock_time old_us = lock->deadline_us;
  int before = verb == FAKE_SET ? lock->result : REDLOCK_OK;
  for (unsigned i = 0; i < todo->count; i++) {
    assert_int_equal(lock->votes[i].settled, todo->acts[i] == ABSENT);
    count_vote(&votes, todo->acts[i] == ABSENT ? ABSENT : LATE);
  }
  int end = reported(lock, before, expected_now(world, todo, &votes, verb, old_us));
  execute(world, todo, as_other, out);
  for (unsigned i = 0; i < todo->count; i++) {
    unsigned node = todo->order[i];
    if (!in_time(todo->acts[node])) {
      continue;
    }
    world->now_us += STEP_US;
    deliver(world, todo, node, out);
    answer_tests(world, lock);
    if (end == REDLOCK_PENDING) {
      count_vote(&votes, todo->acts[node]);
      end = reported(lock, before, expected_now(world, todo, &votes, verb, old_us));
    }
    assert_error(lock->phase == RL_PHASE_ROUND ? REDLOCK_PENDING : lock->result, end);
    assert_exclusion(world, lock);
  }
  if (end == REDLOCK_PENDING) {
    world->now_us = start_us + TIMEOUT_US;
    if (verb == FAKE_EXTEND && old_us < world->now_us) {
      world->now_us = old_us;
    }
    fake_turn(world);
    votes.failed = todo->count - votes.granted - votes.refused;
    end = reported(lock, before, expected_now(world, todo, &votes, verb, old_us));
  }
  assert_true(lock->phase != RL_PHASE_ROUND);
  assert_error(lock->result, end);
  assert_int_equal(lock->deadline_us, end == REDLOCK_OK       ? start_us + LEASE_US
                                      : end == REDLOCK_E_LOST ? 0
                                                              : old_us);
  assert_exclusion(world, lock);
  return end;
}

/* Late replies arrive. They must not change the result. */
static void deliver_late(fake_world *world, const rl_lock *lock, const plan *todo,
                         const replies *in) {
  redlock_time deadline_us = lock->deadline_us;
  int result = rl_lock_result(lock);
  for (unsigned i = 0; i < todo->count; i++) {
    if (todo->acts[todo->order[i]] == LATE) {
      deliver(world, todo, todo->order[i], in);
      assert_int_equal(lock->deadline_us, deadline_us);
      assert_error(rl_lock_result(lock), result);
      assert_exclusion(world, lock);
    }
  }
}

/* A world whose connections are up, and a lock that is not held. */
static fake_world *warm(unsigned count, rl_lock **lock, int retry_count) {
  redlock_options options = fake_once();
  options.retry_count = retry_count == 0 ? REDLOCK_RETRIES_NONE : retry_count;
  options.retry_delay_us = 300 * MS;
  options.retry_jitter_us = REDLOCK_DURATION_NONE;
  fake_world *world = fake_world_new(count);
  rl_lock *first = fake_lock(world, "warm", NULL);
  assert_error(fake_acquire(world, first), REDLOCK_OK);
  rl_lock_free(first, world->now_us);
  fake_settle(world);
  *lock = fake_lock(world, KEY, &options);
  return world;
}

/* -------------------------------------------------------------------------------------- acquire */

static int acquire_case(const plan *first, const plan *second) {
  rl_lock *lock;
  replies sent;
  char token[REDLOCK_TOKEN_LENGTH + 1];
  plan last = *first;
  fake_world *world = warm(first->count, &lock, second != NULL ? 1 : 0);
  assert_error(rl_lock_acquire(lock, world->now_us, NULL, false), REDLOCK_OK);
  fake_turn(world);
  memcpy(token, rl_attempt_token(lock->attempt), sizeof token);
  int end = play(world, lock, first, FAKE_SET, true, &sent);
  assert_int_equal(lock->phase == RL_PHASE_DELAY, end != REDLOCK_OK && second != NULL);
  deliver_late(world, lock, first, &sent);
  if (end != REDLOCK_OK && second != NULL) {
    answer_rest(world, first);
    clear_others(world);
    second_was_played = true;
    last = *second;
    for (unsigned i = 0; i < last.count; i++) {
      last.acts[i] = first->acts[i] == NEVER ? ABSENT : last.acts[i];
    }
    world->now_us = rl_timers_next(&world->core.timers);
    rl_core_advance(&world->core, world->now_us);
    fake_turn(world);
    end = play(world, lock, &last, FAKE_SET, true, &sent);
    deliver_late(world, lock, &last, &sent);
    if (end == REDLOCK_OK) {
      assert_string_not_equal(rl_attempt_token(lock->lease), token);
    }
  }
  assert_error(rl_lock_result(lock), end);
  for (unsigned i = 0; i < world->count; i++) {
    assert_true(world->nodes[i].sets <= (second != NULL ? 3U : 2U)); /* one of them warmed up */
  }
  assert_clean(world, lock, &last, NULL);
  assert_true(fake_world_end(world));
  return end;
}

/* --------------------------------------------------------------------------------------- extend */

/* Only nodes that said "not ours" are healed, and only after a majority has confirmed in time. */
static void assert_healed(fake_world *world, const plan *todo, bool ok, const unsigned *before) {
  for (unsigned i = 0; i < todo->count; i++) {
    assert_int_equal(world->nodes[i].sets - before[i], ok && todo->acts[i] == TAKEN ? 1 : 0);
  }
}

static int extend_round(fake_world *world, rl_lock *lock, const plan *todo, bool as_other,
                        const plan *late, replies *sent) {
  unsigned before[NODES_MAX];
  replies now;
  for (unsigned i = 0; i < todo->count; i++) {
    const char *token = fake_store_token(&world->nodes[i].store, world->now_us, KEY);
    before[i] = world->nodes[i].sets;
    world->nodes[i].mark = token == NULL || strcmp(token, rl_attempt_token(lock->lease)) != 0;
  }
  assert_error(rl_lock_extend(lock, world->now_us, 0, false), REDLOCK_OK);
  fake_turn(world);
  if (late != NULL) {
    deliver_late(world, lock, late, sent); /* of the round before: no votes in this one */
  }
  int end = play(world, lock, todo, FAKE_EXTEND, as_other, &now);
  *sent = now;
  assert_healed(world, todo, end == REDLOCK_OK, before);
  return end;
}

static int extend_case(const plan *first, const plan *second, bool as_other, bool near_end) {
  rl_lock *lock;
  replies sent;
  plan last = *first;
  fake_world *world = warm(first->count, &lock, 0);
  assert_error(fake_acquire(world, lock), REDLOCK_OK);
  world->now_us = near_end ? lock->deadline_us - 25 * MS : world->now_us + SECONDS;
  int end = extend_round(world, lock, first, as_other, NULL, &sent);
  if (end != REDLOCK_OK && end != REDLOCK_E_EXPIRED && second != NULL) {
    second_was_played = true;
    last = *second;
    for (unsigned i = 0; i < last.count; i++) {
      last.acts[i] = first->acts[i] == NEVER ? NEVER : last.acts[i];
      if (first->acts[i] == TAKEN && last.acts[i] != NEVER && last.acts[i] != FAILED) {
        last.acts[i] = TAKEN; /* A failed extend does not heal a lost key. */
      }
    }
    clear_others(world);
    world->now_us += 5 * MS;
    if (rl_lock_remaining(lock, world->now_us) > 0) {
      end = extend_round(world, lock, &last, as_other, first, &sent);
    } else {
      last = *first;
    }
  }
  deliver_late(world, lock, &last, &sent);
  assert_error(rl_lock_result(lock), end);
  answer_rest(world, &last);
  assert_exclusion(world, lock);
  assert_clean(world, lock, &last, NULL);
  assert_true(fake_world_end(world));
  return end;
}

/* -------------------------------------------------------------------------------------- release */

static unsigned without_token(fake_world *world, const char *token) {
  return world->count - fake_holders(world, KEY, token);
}

static int release_round(fake_world *world, rl_lock *lock, const plan *todo, bool as_other,
                         replies *out) {
  tally votes = {0, 0, 0};
  int end = REDLOCK_PENDING;
  assert_error(rl_lock_release(lock, world->now_us, false), REDLOCK_OK);
  assert_int_equal(rl_lock_remaining(lock, world->now_us), 0);
  fake_turn(world);
  execute(world, todo, as_other, out);
  for (unsigned i = 0; i < todo->count; i++) {
    unsigned node = todo->order[i];
    if (!in_time(todo->acts[node])) {
      continue;
    }
    world->now_us += STEP_US;
    deliver(world, todo, node, out);
    answer_tests(world, lock);
    if (end == REDLOCK_PENDING) {
      count_vote(&votes, todo->acts[node]);
      end = expected_release(todo->count, &votes);
    }
    assert_error(rl_lock_result(lock), end);
  }
  if (end == REDLOCK_PENDING) {
    fake_pass(world, TIMEOUT_US);
    votes.failed = todo->count - votes.granted - votes.refused;
    end = expected_release(todo->count, &votes);
  }
  assert_error(rl_lock_result(lock), end);
  return end;
}

static bool is_confirmed(act what) {
  return what == GRANTED || what == TAKEN;
}

/* The release is repeated. How much the first one did is known from the nodes only. */
static plan release_again(fake_world *world, rl_lock *lock, const plan *first, const plan *second,
                          const replies *sent, const char *token) {
  plan last = *second;
  replies now;
  second_was_played = true;
  assert_error(rl_lock_release(lock, world->now_us, false), REDLOCK_OK);
  fake_turn(world);
  deliver_late(world, lock, first, sent);
  for (unsigned i = 0; i < last.count; i++) {
    assert_true(!is_confirmed(first->acts[i]) || fake_next(world, i) == FAKE_OTHER);
    last.acts[i] = first->acts[i] == NEVER             ? NEVER
                   : fake_next(world, i) == FAKE_OTHER ? ABSENT /* it is confirmed already */
                                                       : last.acts[i];
  }
  execute(world, &last, false, &now);
  for (unsigned i = 0; i < last.count; i++) {
    if (in_time(last.acts[last.order[i]])) {
      deliver(world, &last, last.order[i], &now);
    }
  }
  fake_pass(world, TIMEOUT_US);
  int end = rl_lock_result(lock);
  assert_true(end == REDLOCK_OK || end == REDLOCK_E_EXPIRED || end == REDLOCK_E_UNAVAILABLE);
  if (end == REDLOCK_OK || end == REDLOCK_E_EXPIRED) {
    assert_true(without_token(world, token) >= majority_of(world->count));
  }
  deliver_late(world, lock, &last, &now);
  assert_error(rl_lock_result(lock), end);
  return last;
}

static int release_case(const plan *first, const plan *second, bool as_other) {
  rl_lock *lock;
  replies sent;
  char token[REDLOCK_TOKEN_LENGTH + 1];
  plan last = *first;
  fake_world *world = warm(first->count, &lock, 0);
  assert_error(fake_acquire(world, lock), REDLOCK_OK);
  memcpy(token, rl_attempt_token(lock->lease), sizeof token);
  int end = release_round(world, lock, first, as_other, &sent);
  if (end == REDLOCK_OK || end == REDLOCK_E_LOST) {
    assert_true(without_token(world, token) >= majority_of(world->count));
  }
  if (end == REDLOCK_E_UNAVAILABLE && second != NULL) {
    last = release_again(world, lock, first, second, &sent, token);
  } else {
    deliver_late(world, lock, first, &sent);
    assert_error(rl_lock_result(lock), end);
  }
  assert_int_equal(rl_lock_remaining(lock, world->now_us), 0);
  plan silent = *first;
  for (unsigned i = 0; i < silent.count;
       i++) { /* A node with an outstanding reply never answers. */
    silent.acts[i] =
        world->core.nodes[i]->link.outstanding_count > world->nodes[i].queued ? NEVER : GRANTED;
  }
  assert_clean(world, lock, &silent, &last);
  assert_true(fake_world_end(world));
  return end;
}

/* ---------------------------------------------------------------------------------------- fence */

/* Reactions of a node to CONFIRM. */
typedef enum answer { CONFIRMS, LOST_KEY, SILENT, ANSWERS } answer;

/* A fenced acquire on three nodes. */
typedef struct fence_case {
  plan todo;                 /* GRANTED, TAKEN or LATE each */
  unsigned ahead[NODES_MAX]; /* their counters: behind all proposals, or in the future */
  answer answers[NODES_MAX];
  bool at_once; /* CONFIRM is answered before the next vote comes, or after the last one */
} fence_case;

/* The expected state, counted here. */
typedef struct fence_tally {
  tally votes;
  uint64_t values[NODES_MAX]; /* of the nodes that have granted; 0 of the others */
  uint64_t most;              /* what is to be confirmed; 0 before a majority has granted */
  unsigned confirmed, silent; /* the latter may still confirm, as far as anybody knows */
} fence_tally;

#define FENCE_SKEW 10 /* of two counters */

static fence_case fence_case_of(unsigned number) {
  fence_case made = {.todo = {.count = NODES_MAX, .order = orders[number % 6]}};
  number /= 6;
  made.at_once = number % 2 == 0;
  number /= 2;
  for (unsigned i = 0; i < NODES_MAX; i++) {
    static const act acts[] = {GRANTED, TAKEN, LATE};
    made.todo.acts[i] = acts[number % 3];
    made.ahead[i] = number / 3 % 3;
    made.answers[i] = (answer)(number / 9 % ANSWERS);
    number /= 27;
  }
  return made;
}

#define FENCE_CASES (6 * 2 * 27 * 27 * 27)

/* Only a node that has granted is asked to confirm: the others' answers make no other case. */
static bool is_fence_repeat(const fence_case *one) {
  for (unsigned i = 0; i < NODES_MAX; i++) {
    if (one->todo.acts[i] != GRANTED && one->answers[i] != CONFIRMS) {
      return true;
    }
  }
  return false;
}

static int expected_fence(const fence_tally *now) {
  unsigned pending = NODES_MAX - now->votes.granted - now->votes.refused - now->votes.failed;
  if (now->votes.granted < 2) {
    return expected(NODES_MAX, &now->votes, FAKE_SET);
  }
  return now->confirmed >= 2                          ? REDLOCK_OK
         : now->confirmed + now->silent + pending < 2 ? REDLOCK_E_UNAVAILABLE
                                                      : REDLOCK_PENDING;
}

/* The node has granted, with the value that its counter has now. */
static void count_grant(fake_world *world, fence_tally *now, unsigned node) {
  uint64_t value = fake_store_counter(&world->nodes[node].store, world->now_us, KEY);
  now->values[node] = value;
  if (now->most != 0) {
    now->confirmed += value == now->most;
  } else if (now->votes.granted == 2) {
    for (unsigned i = 0; i < NODES_MAX; i++) {
      now->most = now->values[i] > now->most ? now->values[i] : now->most;
    }
    for (unsigned i = 0; i < NODES_MAX; i++) {
      now->confirmed += now->values[i] == now->most;
    }
  }
}

/* Nodes that are asked to confirm do what the case says. */
static void answer_confirm(fake_world *world, const rl_lock *lock, const fence_case *played,
                           fence_tally *now) {
  for (unsigned i = 0; i < NODES_MAX; i++) {
    if (fake_next(world, i) != FAKE_CONFIRM || now->most == 0 || lock->phase != RL_PHASE_ROUND) {
      continue;
    }
    assert_true(now->values[i] > 0 && now->values[i] < now->most);
    assert_true(world->nodes[i].queue[0].fence == now->most);
    if (played->answers[i] == SILENT) {
      continue;
    }
    if (played->answers[i] == LOST_KEY) {
      fake_store_put(&world->nodes[i].store, KEY, OTHER, REDLOCK_NEVER);
    }
    now->confirmed += played->answers[i] == CONFIRMS;
    now->silent--;
    world->now_us += STEP_US;
    (void)fake_answer(world, i);
    uint64_t value = fake_store_counter(&world->nodes[i].store, world->now_us, KEY);
    assert_true(value == (played->answers[i] == CONFIRMS ? now->most : now->values[i]));
  }
}

/*
 * A vote has come. Those whose value is not enough are asked, unless there is nothing to ask for.
 */
static void count_fence_vote(fake_world *world, fence_tally *now, act what, unsigned node) {
  count_vote(&now->votes, what);
  if (what == GRANTED) {
    count_grant(world, now, node);
  }
  now->silent = 0;
  for (unsigned i = 0; i < NODES_MAX && now->most != 0; i++) {
    now->silent += fake_next(world, i) == FAKE_CONFIRM;
  }
}

static void assert_fence(fake_world *world, const rl_lock *lock, const fence_tally *now, int end) {
  unsigned raised = 0;
  assert_error(lock->phase == RL_PHASE_ROUND ? REDLOCK_PENDING : lock->result, end);
  assert_int_equal(rl_lock_remaining(lock, world->now_us) > 0, end == REDLOCK_OK);
  if (end != REDLOCK_OK) {
    return;
  }
  /* The next grant of any majority has a greater token. */
  assert_true(rl_fence_token(lock) == now->most);
  for (unsigned i = 0; i < NODES_MAX; i++) {
    raised += fake_store_counter(&world->nodes[i].store, world->now_us, KEY) >= now->most;
  }
  assert_true(raised >= 2);
}

static int play_fence(const fence_case *played) {
  rl_lock *lock;
  replies sent;
  fence_tally now = {.votes = {0, 0, 0}};
  redlock_options options = {.fence = REDLOCK_YES, .retry_count = REDLOCK_RETRIES_NONE};
  fake_world *world = warm(NODES_MAX, &lock, 0);
  redlock_time start_us = world->now_us;
  for (unsigned i = 0; i < NODES_MAX; i++) {
    if (played->ahead[i] > 0) {
      fake_store_count(&world->nodes[i].store, KEY, start_us + played->ahead[i] * FENCE_SKEW,
                       REDLOCK_NEVER);
    }
  }
  assert_error(rl_lock_acquire(lock, start_us, &options, false), REDLOCK_OK);
  fake_turn(world);
  execute(world, &played->todo, true, &sent);
  for (unsigned i = 0; i < NODES_MAX; i++) {
    unsigned node = played->todo.order[i];
    bool decided = lock->phase != RL_PHASE_ROUND;
    if (played->todo.acts[node] == LATE) {
      continue;
    }
    world->now_us += STEP_US;
    deliver(world, &played->todo, node, &sent);
    answer_tests(world, lock);
    if (decided) {
      continue; /* It comes too late to be counted. */
    }
    count_fence_vote(world, &now, played->todo.acts[node], node);
    assert_fence(world, lock, &now, expected_fence(&now));
    if (played->at_once) {
      answer_confirm(world, lock, played, &now);
      assert_fence(world, lock, &now, expected_fence(&now));
    }
  }
  answer_confirm(world, lock, played, &now);
  assert_fence(world, lock, &now, expected_fence(&now));
  if (expected_fence(&now) == REDLOCK_PENDING) {
    world->now_us = start_us + TIMEOUT_US;
    fake_turn(world);
    now.votes.failed = NODES_MAX - now.votes.granted - now.votes.refused;
    now.silent = 0;
  }
  int end = expected_fence(&now);
  assert_fence(world, lock, &now, end);
  deliver_late(world, lock, &played->todo, &sent);
  fake_settle(world);
  assert_fence(world, lock, &now, end);
  assert_clean(world, lock, &played->todo, NULL);
  assert_true(fake_world_end(world));
  return end;
}

TEST(every_acquire_with_a_fencing_token) {
  unsigned stride = getenv("REDLOCK_TEST_VALGRIND") != NULL ? VALGRIND_STRIDE : STRIDE;
  unsigned ends[3] = {0, 0, 0};
  unsigned cases = 0;
  for (unsigned i = 0; i < FENCE_CASES; i++) {
    fence_case played = fence_case_of(i);
    if (!is_fence_repeat(&played) && cases++ % stride == 0) {
      int end = play_fence(&played);
      ends[end == REDLOCK_OK ? 0 : end == REDLOCK_E_TAKEN ? 1 : 2]++;
    }
  }
  assert_int_equal(cases, 40500);
  print_message("%u granted, %u taken, %u unavailable\n", ends[0], ends[1], ends[2]);
  assert_true(ends[0] > 0 && ends[1] > 0 && ends[2] > 0);
}

/* --------------------------------------------------------------------------------- enumeration */

/* Returns what the last operation has ended with. */
typedef int (*play_case)(const plan *first, const plan *second, unsigned variant);

static int play_acquire(const plan *first, const plan *second, unsigned variant) {
  (void)variant;
  return acquire_case(first, second);
}

static int play_extend(const plan *first, const plan *second, unsigned variant) {
  return extend_case(first, second, variant % 2 == 1, variant / 2 == 1);
}

static int play_release(const plan *first, const plan *second, unsigned variant) {
  return release_case(first, second, variant % 2 == 1);
}

/* Plans that differ only in nodes without a choice are one case. */
typedef bool (*has_no_choice)(act first, act second);

static bool never_answers(act first, act second) {
  (void)second;
  return first == NEVER;
}

static bool has_lost_the_key(act first, act second) {
  return first == NEVER || (first == TAKEN && (second == LATE || second == BROKEN));
}

static bool is_not_asked_again(act first, act second) {
  (void)second;
  return first == NEVER || is_confirmed(first);
}

static bool is_repeat(const plan *first, const plan *second, has_no_choice rule) {
  for (unsigned i = 0; i < first->count; i++) {
    if (second->acts[i] != GRANTED && rule(first->acts[i], second->acts[i])) {
      return true;
    }
  }
  return false;
}

typedef struct enumeration {
  unsigned long cases;
  unsigned long distinct;
  unsigned long played;
} enumeration;

/*
 * Plays a first plan with every second one, until one shows that the operation ends in the first
 * round.
 */
static void enumerate_second(enumeration *sum, play_case one, unsigned variant, const plan *first,
                             has_no_choice rule) {
  unsigned stride = getenv("REDLOCK_TEST_VALGRIND") != NULL ? VALGRIND_STRIDE : STRIDE;
  unsigned assignments = power(ACTS, first->count);
  bool goes_on = true;
  sum->cases += assignments;
  for (unsigned b = 0; b < assignments && goes_on; b++) {
    plan second = plan_of(first->count, b, (unsigned)(sum->distinct % order_counts[first->count]));
    if (!is_repeat(first, &second, rule) && sum->distinct++ % stride == 0) {
      second_was_played = false;
      (void)one(first, &second, variant);
      goes_on = second_was_played;
      sum->played++;
    }
  }
}

/*
 * The result of one round depends on the votes, not on their order: otherwise it would describe the
 * network. (Variant 0 only: in others the lease expires meanwhile.)
 */
static void play_each_order(enumeration *sum, play_case one, unsigned variant, unsigned count) {
  for (unsigned a = 0; a < power(ACTS, count); a++) {
    int first_end = REDLOCK_PENDING;
    for (unsigned order = 0; order < order_counts[count]; order++) {
      plan first = plan_of(count, a, order);
      int end = one(&first, NULL, variant);
      first_end = order == 0 ? end : first_end;
      assert_true(variant > 0 || end == first_end);
      sum->cases++;
      sum->played++;
    }
  }
}

static enumeration enumerate(play_case one, unsigned variants, has_no_choice rule) {
  enumeration sum = {0, 0, 0};
  for (unsigned count = 1; count <= NODES_MAX; count++) {
    unsigned assignments = power(ACTS, count);
    for (unsigned variant = 0; variant < variants; variant++) {
      if (rule == NULL) {
        play_each_order(&sum, one, variant, count);
        continue;
      }
      for (unsigned a = 0; a < assignments * order_counts[count]; a++) {
        plan first = plan_of(count, a % assignments, a / assignments);
        enumerate_second(&sum, one, variant, &first, rule);
      }
    }
  }
  print_message("%lu of %lu cases\n", sum.played, sum.cases);
  return sum;
}

TEST(every_acquire_with_one_attempt) {
  assert_int_equal(enumerate(play_acquire, 1, NULL).cases, 1374);
}

TEST(every_acquire_with_a_retry) {
  assert_int_equal(enumerate(play_acquire, 1, never_answers).cases, 282564);
}

TEST(every_extend) {
  assert_int_equal(enumerate(play_extend, 4, NULL).cases, 5496);
}

TEST(every_extend_and_the_next_one) {
  assert_int_equal(enumerate(play_extend, 1, has_lost_the_key).cases, 282564);
}

TEST(every_release) {
  assert_int_equal(enumerate(play_release, 2, NULL).cases, 2748);
}

TEST(every_release_and_the_next) {
  assert_int_equal(enumerate(play_release, 1, is_not_asked_again).cases, 282564);
}
