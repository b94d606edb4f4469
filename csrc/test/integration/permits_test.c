/*
 * Processes that compete for the permits of a semaphore, while nodes are killed and stopped.
 *
 * SPDX-License-Identifier: MIT
 *
 * PERMITS_SECONDS=60 build/test/integration/permits_test runs longer, and prints the figures.
 */
#include <stdatomic.h>
#include <sys/prctl.h>

#include "support.h"

#define PROCESSES 16
#define PERMITS 3
#define HOLD_MS 200
#define SECTIONS_MAX 100000
#define SECONDS_SHORT 3
#define PAUSE_MS 700 /* between two faults, and how long a node is away */

/* A SIGKILL loses no write: Redlock requires this of nodes that restart at once. */
static const char *const durable[] = {"--appendonly", "yes", "--appendfsync", "no", NULL};

typedef struct section {
  redlock_time entered_us, left_us;
} section;

/* Shared by all processes. */
typedef struct arena {
  atomic_bool over;
  atomic_uint inside, most; /* holders now, and at most */
  atomic_uint in_slot[PERMITS + 1];
  atomic_uint twice; /* grants of a slot that had a holder */
  atomic_uint outlived, failed;
  unsigned finished[PROCESSES];
  section log[PROCESSES][SECTIONS_MAX];
} arena;

static arena *shared;

static int start(void **state) {
  farm_start(&five, 5, durable);
  shared = mmap(NULL, sizeof *shared, PROT_READ | PROT_WRITE,
                MAP_SHARED | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  return shared == MAP_FAILED ? -1 : 0;
}

static int end(void **state) {
  farm_end(&five);
  return munmap(shared, sizeof *shared);
}

static unsigned seconds(void) {
  const char *text = getenv("PERMITS_SECONDS");
  return text != NULL ? (unsigned)atoi(text) : SECONDS_SHORT;
}

static void hold(unsigned process, redlock_lock *lock) {
  section *entry = &shared->log[process][shared->finished[process]];
  unsigned slot = redlock_lock_slot(lock);
  entry->entered_us = redlock_now();
  unsigned inside = 1 + atomic_fetch_add(&shared->inside, 1);
  for (unsigned most = atomic_load(&shared->most);
       inside > most && !atomic_compare_exchange_weak(&shared->most, &most, inside);) {
  }
  if (atomic_fetch_add(&shared->in_slot[slot], 1) > 0) {
    atomic_fetch_add(&shared->twice, 1);
  }
  (void)poll(NULL, 0, HOLD_MS / 2 + rand() % HOLD_MS);
  atomic_fetch_sub(&shared->in_slot[slot], 1);
  atomic_fetch_sub(&shared->inside, 1);
  atomic_fetch_add(&shared->outlived, redlock_lock_remaining(lock) == 0);
  entry->left_us = redlock_now();
  shared->finished[process]++;
}

static void compete(unsigned process, int permits) {
  redlock_options options = {0};
  options.permits = permits;
  options.wait_us = 5 * REDLOCK_SECONDS;
  options.ttl_us = 30 * REDLOCK_SECONDS;
  redlock_client *client = client_of(&five, 5, &options);
  redlock_lock *lock = new_lock(client, "arena");
  srand(process + 1);
  while (!atomic_load(&shared->over) && shared->finished[process] < SECTIONS_MAX) {
    int result = redlock_lock_acquire(lock, NULL, NULL);
    if (result == REDLOCK_OK) {
      hold(process, lock);
      (void)redlock_lock_release(lock);
    } else if (!atomic_load(&shared->over)) {
      atomic_fetch_add(&shared->failed, 1);
    }
  }
  free_with_client(lock);
  _exit(0);
}

/* Kills, or stops, one node at a time. */
static void disturb(unsigned turn) {
  unsigned node = turn % 5;
  if (turn % 2 == 0) {
    farm_kill(&five, node);
    (void)poll(NULL, 0, PAUSE_MS);
    farm_restart(&five, node);
  } else {
    farm_stop(&five, node);
    (void)poll(NULL, 0, PAUSE_MS);
    farm_continue(&five, node);
  }
}

static void run(int permits, bool faults) {
  pid_t children[PROCESSES];
  memset(shared, 0, offsetof(arena, log));
  for (unsigned i = 0; i < PROCESSES; i++) {
    children[i] = fork();
    if (children[i] == 0) {
      (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
      compete(i, permits);
    }
    assert_true(children[i] > 0);
  }
  redlock_time until_us = redlock_now() + seconds() * REDLOCK_SECONDS;
  for (unsigned turn = 0; redlock_now() < until_us; turn++) {
    (void)poll(NULL, 0, PAUSE_MS);
    if (faults) {
      disturb(turn);
    }
  }
  atomic_store(&shared->over, true);
  for (unsigned i = 0; i < PROCESSES; i++) {
    int status;
    assert_int_equal(waitpid(children[i], &status, 0), children[i]);
    assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 0);
  }
}

static int earlier(const void *a, const void *b) {
  const section *one = a, *other = b;
  return one->entered_us < other->entered_us ? -1 : one->entered_us > other->entered_us;
}

static unsigned total(void) {
  unsigned count = 0;
  for (unsigned i = 0; i < PROCESSES; i++) {
    count += shared->finished[i];
  }
  return count;
}

/* Returns for how much of the time, in 1/1000, exactly |permits| sections overlapped. */
static unsigned occupied(unsigned permits, redlock_time from_us, redlock_time to_us) {
  section *events = calloc(2 * total() + 1, sizeof *events); /* time, and +1 or -1 */
  size_t count = 0;
  redlock_duration full_us = 0;
  for (unsigned i = 0; i < PROCESSES; i++) {
    for (unsigned k = 0; k < shared->finished[i]; k++) {
      events[count++] = (section){shared->log[i][k].entered_us, 1};
      events[count++] = (section){shared->log[i][k].left_us, 0};
    }
  }
  qsort(events, count, sizeof *events, earlier);
  unsigned inside = 0;
  for (size_t i = 0; i + 1 < count; i++) {
    inside += events[i].left_us == 1 ? 1 : -1u;
    redlock_time begin_us = events[i].entered_us < from_us ? from_us : events[i].entered_us;
    redlock_time end_us = events[i + 1].entered_us > to_us ? to_us : events[i + 1].entered_us;
    full_us += inside >= permits && end_us > begin_us ? end_us - begin_us : 0;
  }
  free(events);
  return (unsigned)(full_us * 1000 / (to_us - from_us));
}

static void report(const char *what, unsigned permits, unsigned share) {
  if (getenv("PERMITS_SECONDS") != NULL) {
    printf(
        "# %s: %.1f sections/s, at most %u inside, %u inside for %.1f %% of the time, %u acquires "
        "failed\n",
        what, total() / (double)seconds(), atomic_load(&shared->most), permits, share / 10.0,
        atomic_load(&shared->failed));
  }
}

static unsigned measure(const char *what, int permits, bool faults) {
  unsigned holders = permits > 0 ? (unsigned)permits : 1;
  redlock_time from_us = redlock_now() + REDLOCK_SECONDS; /* The first second connects. */
  run(permits, faults);
  unsigned share = occupied(holders, from_us, from_us + (seconds() - 1) * REDLOCK_SECONDS);
  report(what, holders, share);
  assert_int_equal(atomic_load(&shared->outlived), 0);
  assert_int_equal(atomic_load(&shared->twice), 0);
  assert_true(atomic_load(&shared->most) <= holders);
  return share;
}

/* A loaded machine hands over late, so the test asks only for more than a lock would give. */
TEST(permits_are_used_and_never_exceeded_while_nodes_fail) {
  unsigned share = measure("semaphore, nodes killed and stopped", PERMITS, true);
  assert_true(total() > 0);
  assert_true(getenv("PERMITS_SECONDS") == NULL || share > 950);
}

TEST(permits_are_used_without_faults) {
  unsigned semaphore, lock;
  (void)measure("semaphore", PERMITS, false);
  semaphore = total();
  if (getenv("PERMITS_SECONDS") != NULL) {
    (void)measure("lock", 0, false);
    lock = total();
    assert_true(semaphore > 2 * lock);
  }
}

int main(void) {
  return tests_run(&(tests_fixture){.start = start, .end = end});
}
