/*
 * Processes that compete for one lock, with a critical section that reveals two holders.
 *
 * SPDX-License-Identifier: MIT
 */
#include <sys/prctl.h>

#include "support.h"

#define PROCESSES_MAX 8
#define SECTIONS_MAX 100000
#define SECTIONS_WANTED 150

/* A SIGKILL loses no write: Redlock requires this of nodes that restart at once. */
static const char *const durable[] = {"--appendonly", "yes", "--appendfsync", "no", NULL};

typedef struct section {
  redlock_time entered_us;
  redlock_time left_us;
  unsigned process;
  uint64_t fence; /* 0: none */
} section;

/* Shared by all processes. Only the lock protects it. */
typedef struct arena {
  volatile unsigned long counter;               /* incremented by read, wait and write */
  volatile bool over;                           /* the processes must end */
  volatile unsigned finished[PROCESSES_MAX];    /* finished sections */
  unsigned outlived[PROCESSES_MAX];             /* sections longer than their lease */
  volatile unsigned unavailable[PROCESSES_MAX]; /* acquires that ended with UNAVAILABLE */
  section log[PROCESSES_MAX][SECTIONS_MAX];
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

static void critical_section(unsigned process, redlock_lock *lock) {
  section *entry = &shared->log[process][shared->finished[process]];
  entry->process = process;
  entry->fence = redlock_lock_fence(lock);
  entry->entered_us = redlock_now();
  unsigned long seen = shared->counter;
  redlock_time until_us = entry->entered_us + 100 + (redlock_time)(rand() % 300);
  while (redlock_now() < until_us) {
  }
  if (redlock_lock_remaining(lock) == 0) {
    shared->outlived[process]++;
    return; /* Without the lock it must not write. */
  }
  shared->counter = seen + 1;
  entry->left_us = redlock_now();
  shared->finished[process]++;
}

static void compete(unsigned process, int fence) {
  redlock_options options = once();
  options.fence = fence;
  options.retry_count = 0; /* unlimited within the wait */
  options.wait_us = MS(300);
  options.retry_delay_us = MS(3);
  options.retry_jitter_us = MS(3);
  redlock_client *client = client_of(&five, 5, &options);
  redlock_lock *lock = new_lock(client, "arena");
  srand(process + 1);
  while (!shared->over && shared->finished[process] < SECTIONS_MAX) {
    int result = redlock_lock_acquire(lock, NULL, NULL);
    if (result == REDLOCK_OK) {
      critical_section(process, lock);
      result = redlock_lock_release(lock);
      if (result != REDLOCK_OK && result != REDLOCK_E_UNAVAILABLE) {
        fail_msg("release: %s", redlock_lock_message(lock));
      }
    } else if (result == REDLOCK_E_UNAVAILABLE) {
      shared->unavailable[process]++;
    } else if (result != REDLOCK_E_TAKEN) {
      fail_msg("acquire: %s", redlock_lock_message(lock));
    }
  }
  free_with_client(lock);
}

static int compare_sections(const void *left, const void *right) {
  const section *a = left;
  const section *b = right;
  return (a->entered_us > b->entered_us) - (a->entered_us < b->entered_us);
}

/*
 * No two sections overlap, their fencing tokens grow, the counter is exact, and each process had a
 * section.
 */
static void check(unsigned processes, int fence) {
  unsigned total = 0;
  for (unsigned i = 0; i < processes; i++) {
    total += shared->finished[i];
    assert_int_equal(shared->outlived[i], 0);
    assert_between(shared->finished[i], 1, SECTIONS_MAX);
  }
  section *all = malloc(total * sizeof *all);
  assert_non_null(all);
  unsigned at = 0;
  for (unsigned i = 0; i < processes; i++) {
    memcpy(all + at, shared->log[i], shared->finished[i] * sizeof *all);
    at += shared->finished[i];
  }
  qsort(all, total, sizeof *all, compare_sections);
  for (unsigned i = 1; i < total; i++) {
    if (all[i].entered_us < all[i - 1].left_us) {
      fail_msg("two holders: process %u from %llu to %llu, process %u from %llu",
               all[i - 1].process, (unsigned long long)all[i - 1].entered_us,
               (unsigned long long)all[i - 1].left_us, all[i].process,
               (unsigned long long)all[i].entered_us);
    }
    if (fence == REDLOCK_YES && all[i].fence <= all[i - 1].fence) {
      fail_msg("section %u has the token %llu, the one before it %llu", i,
               (unsigned long long)all[i].fence, (unsigned long long)all[i - 1].fence);
    }
  }
  free(all);
  assert_int_equal(shared->counter, total);
  print_message("# %u sections by %u processes\n", total, processes);
}

static void begin_contest(pid_t *children, unsigned processes, int fence) {
  memset(shared, 0, offsetof(arena, log));
  farm_reset(&five);
  for (unsigned i = 0; i < processes; i++) {
    children[i] = fork();
    assert_true(children[i] >= 0);
    if (children[i] == 0) {
      (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
      (void)setenv("CMOCKA_TEST_ABORT", "1", 1);
      compete(i, fence);
      _exit(0);
    }
  }
}

static unsigned sections(unsigned processes) {
  unsigned total = 0;
  for (unsigned i = 0; i < processes; i++) {
    total += shared->finished[i];
  }
  return total;
}

/* Waits until |more| sections have finished. */
static void await_sections(unsigned processes, unsigned more) {
  unsigned wanted = sections(processes) + more;
  eventually(sections(processes) >= wanted);
}

static bool all_had_a_section(unsigned processes) {
  for (unsigned i = 0; i < processes; i++) {
    if (shared->finished[i] == 0) {
      return false;
    }
  }
  return true;
}

static void end_contest(const pid_t *children, unsigned processes) {
  eventually(all_had_a_section(processes));
  shared->over = true;
  for (unsigned i = 0; i < processes; i++) {
    int status;
    assert_int_equal(waitpid(children[i], &status, 0), children[i]);
    assert_int_equal(status, 0);
  }
}

TEST(one_of_eight_processes_holds_the_lock) {
  pid_t children[8];
  begin_contest(children, 8, REDLOCK_NO);
  await_sections(8, SECTIONS_WANTED);
  end_contest(children, 8);
  check(8, REDLOCK_NO);
}

static unsigned unavailable(void) {
  unsigned total = 0;
  for (unsigned i = 0; i < 4; i++) {
    total += shared->unavailable[i];
  }
  return total;
}

static unsigned rounds(void) {
  const char *text = getenv("CONTENTION_ROUNDS"); /* NOLINT(concurrency-mt-unsafe) */
  return text != NULL ? (unsigned)strtoul(text, NULL, 10) : 2;
}

TEST(one_holds_the_lock_while_nodes_hang_and_die) {
  pid_t children[4];
  begin_contest(children, 4, REDLOCK_YES);
  await_sections(4, 20);
  farm_stop(&five, 0);
  await_sections(4, 20);
  farm_kill(&five, 1); /* Two nodes are down: every vote counts. */
  await_sections(4, 20);
  farm_continue(&five, 0);
  await_sections(4, 20);
  farm_restart(&five, 1);
  await_sections(4, 20);
  farm_stop(&five, 2);
  farm_stop(&five, 3);
  farm_stop(&five, 4); /* No majority. */
  unsigned before = unavailable();
  eventually(unavailable() > before); /* Acquires notice it. */
  farm_continue(&five, 2);
  farm_continue(&five, 3);
  farm_continue(&five, 4);
  await_sections(4, 20);
  farm_kill(&five, 4);
  farm_restart(&five, 4);
  await_sections(4, 20);
  for (unsigned i = 0; i < rounds(); i++) { /* Two of five nodes at a time. */
    farm_kill(&five, i % 5);
    farm_kill(&five, (i + 2) % 5);
    await_sections(4, 20);
    farm_restart(&five, i % 5);
    farm_restart(&five, (i + 2) % 5);
    await_sections(4, 20);
  }
  end_contest(children, 4);
  check(4, REDLOCK_YES);
}

int main(void) {
  return tests_run(&(tests_fixture){.start = start, .end = end});
}
