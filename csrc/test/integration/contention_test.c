/*
 * Processes that fight for one name, with a critical section that would show two holders.
 *
 * SPDX-License-Identifier: MIT
 */
#include <sys/prctl.h>

#include "support.h"

#define PROCESSES_MAX 8
#define SECTIONS_MAX 100000

/* Nodes lose nothing by a SIGKILL: what Redlock asks of nodes that are restarted at once. */
static const char *const keeping[] = {"--appendonly", "yes", "--appendfsync", "no", NULL};

typedef struct section {
  redlock_time entered_us;
  redlock_time left_us;
  unsigned process;
} section;

/* Shared by all processes. Nothing but the lock keeps them from each other. */
typedef struct arena {
  volatile unsigned long counter;      /* incremented by reading, waiting and writing */
  volatile redlock_time until_us;      /* when the fight ends */
  unsigned finished[PROCESSES_MAX];    /* sections that each has finished */
  unsigned outlived[PROCESSES_MAX];    /* sections that were longer than their lease */
  unsigned unavailable[PROCESSES_MAX]; /* acquires that ended so */
  section log[PROCESSES_MAX][SECTIONS_MAX];
} arena;

static arena *shared;

static int start(void **state) {
  (void)state;
  farm_start(&five, 5, keeping);
  shared = mmap(NULL, sizeof *shared, PROT_READ | PROT_WRITE,
                MAP_SHARED | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  return shared == MAP_FAILED ? -1 : 0;
}

static int end(void **state) {
  (void)state;
  farm_end(&five);
  return munmap(shared, sizeof *shared);
}

static void critical_section(unsigned process, redlock_lock *lock) {
  section *entry = &shared->log[process][shared->finished[process]];
  entry->process = process;
  entry->entered_us = redlock_now();
  unsigned long seen = shared->counter;
  redlock_time until_us = entry->entered_us + 100 + (redlock_time)(rand() % 300);
  while (redlock_now() < until_us) {
  }
  if (redlock_lock_remaining(lock) == 0) {
    shared->outlived[process]++;
    return; /* It may not write any more. */
  }
  shared->counter = seen + 1;
  entry->left_us = redlock_now();
  shared->finished[process]++;
}

static void fight(unsigned process) {
  redlock_options options = {0};
  options.ttl_us = MS(5000);
  options.node_timeout_us = MS(100);
  options.wait_us = MS(300);
  options.retry_delay_us = MS(3);
  options.retry_jitter_us = MS(3);
  redlock_client *client = client_of(&five, 5, &options);
  redlock_lock *lock = new_lock(client, "arena");
  srand(process + 1);
  while (redlock_now() < shared->until_us && shared->finished[process] < SECTIONS_MAX) {
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
  redlock_lock_free(lock);
  redlock_client_free(client);
}

static int compare_sections(const void *left, const void *right) {
  const section *a = left;
  const section *b = right;
  return (a->entered_us > b->entered_us) - (a->entered_us < b->entered_us);
}

/* No two sections overlap; the counter has lost nothing; everybody had a turn. */
static void check(unsigned processes, unsigned sections_min) {
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
  }
  free(all);
  assert_int_equal(shared->counter, total);
  assert_between(total, sections_min, SECTIONS_MAX);
  print_message("# %u sections by %u processes\n", total, processes);
}

static void begin_fight(pid_t *fighters, unsigned processes, redlock_duration duration_us) {
  memset(shared, 0, offsetof(arena, log));
  farm_reset(&five);
  shared->until_us = redlock_now() + duration_us;
  for (unsigned i = 0; i < processes; i++) {
    fighters[i] = fork();
    assert_true(fighters[i] >= 0);
    if (fighters[i] == 0) {
      (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
      (void)setenv("CMOCKA_TEST_ABORT", "1", 1);
      fight(i);
      _exit(0);
    }
  }
}

static void end_fight(const pid_t *fighters, unsigned processes) {
  for (unsigned i = 0; i < processes; i++) {
    int status;
    assert_int_equal(waitpid(fighters[i], &status, 0), fighters[i]);
    assert_int_equal(status, 0);
  }
  eventually(farm_count(&five, "arena", NULL) == 0);
}

static void of_two_processes_one_holds_the_lock(void **state) {
  pid_t fighters[2];
  (void)state;
  begin_fight(fighters, 2, 5 * REDLOCK_SECONDS);
  end_fight(fighters, 2);
  check(2, 200);
}

static void of_eight_processes_one_holds_the_lock(void **state) {
  pid_t fighters[8];
  (void)state;
  begin_fight(fighters, 8, 5 * REDLOCK_SECONDS);
  end_fight(fighters, 8);
  check(8, 100);
}

/* Until |passed_us| after the beginning of a fight that lasts |duration_us|. */
static void wait_for(redlock_duration passed_us, redlock_duration duration_us) {
  redlock_time at_us = shared->until_us - duration_us + passed_us;
  while (redlock_now() < at_us) {
    (void)poll(NULL, 0, 5);
  }
}

static void one_holds_the_lock_while_nodes_hang_and_die(void **state) {
  const redlock_duration duration_us = 6 * REDLOCK_SECONDS;
  pid_t fighters[4];
  (void)state;
  begin_fight(fighters, 4, duration_us);
  wait_for(MS(500), duration_us);
  farm_stop(&five, 0);
  wait_for(MS(1500), duration_us);
  farm_kill(&five, 1); /* Now two are gone: every vote counts. */
  wait_for(MS(2300), duration_us);
  farm_continue(&five, 0);
  wait_for(MS(2800), duration_us);
  farm_restart(&five, 1);
  wait_for(MS(3300), duration_us);
  farm_stop(&five, 2);
  farm_stop(&five, 3);
  farm_stop(&five, 4); /* No majority. */
  wait_for(MS(3800), duration_us);
  farm_continue(&five, 2);
  farm_continue(&five, 3);
  farm_continue(&five, 4);
  wait_for(MS(4500), duration_us);
  farm_kill(&five, 4);
  farm_restart(&five, 4);
  end_fight(fighters, 4);
  unsigned unavailable = 0;
  for (unsigned i = 0; i < 4; i++) {
    unavailable += shared->unavailable[i];
  }
  assert_true(unavailable > 0); /* The faults were felt. */
  check(4, 100);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(of_two_processes_one_holds_the_lock),
      cmocka_unit_test(of_eight_processes_one_holds_the_lock),
      cmocka_unit_test(one_holds_the_lock_while_nodes_hang_and_die),
  };
  return cmocka_run_group_tests_name("contention", tests, start, end);
}
