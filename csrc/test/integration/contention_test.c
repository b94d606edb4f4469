/*
 * Processes that fight for one name, with a critical section that would show two holders.
 *
 * SPDX-License-Identifier: MIT
 */
#include <sys/prctl.h>

#include "support.h"

#define PROCESSES_MAX 8
#define SECTIONS_MAX 100000
#define SECTIONS_WANTED 150

/* Nodes lose nothing by a SIGKILL: what Redlock asks of nodes that are restarted at once. */
static const char *const keeping[] = {"--appendonly", "yes", "--appendfsync", "no", NULL};

typedef struct section {
  redlock_time entered_us;
  redlock_time left_us;
  unsigned process;
} section;

/* Shared by all processes. Nothing but the lock keeps them from each other. */
typedef struct arena {
  volatile unsigned long counter;               /* incremented by reading, waiting and writing */
  volatile bool over;                           /* the fight ends */
  volatile unsigned finished[PROCESSES_MAX];    /* sections that each has finished */
  unsigned outlived[PROCESSES_MAX];             /* sections that were longer than their lease */
  volatile unsigned unavailable[PROCESSES_MAX]; /* acquires that ended so */
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
  redlock_options options = once();
  options.retry_count = 0; /* as many as the wait allows */
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
  redlock_lock_free(lock);
  redlock_client_free(client);
}

static int compare_sections(const void *left, const void *right) {
  const section *a = left;
  const section *b = right;
  return (a->entered_us > b->entered_us) - (a->entered_us < b->entered_us);
}

/* No two sections overlap; the counter has lost nothing; everybody had a turn. */
static void check(unsigned processes) {
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
  print_message("# %u sections by %u processes\n", total, processes);
}

static void begin_fight(pid_t *fighters, unsigned processes) {
  memset(shared, 0, offsetof(arena, log));
  farm_reset(&five);
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

static unsigned sections(unsigned processes) {
  unsigned total = 0;
  for (unsigned i = 0; i < processes; i++) {
    total += shared->finished[i];
  }
  return total;
}

/* The fight goes on until |more| sections have been finished. */
static void fight_on(unsigned processes, unsigned more) {
  unsigned wanted = sections(processes) + more;
  eventually(sections(processes) >= wanted);
}

static bool all_had_a_turn(unsigned processes) {
  for (unsigned i = 0; i < processes; i++) {
    if (shared->finished[i] == 0) {
      return false;
    }
  }
  return true;
}

static void end_fight(const pid_t *fighters, unsigned processes) {
  eventually(all_had_a_turn(processes));
  shared->over = true;
  for (unsigned i = 0; i < processes; i++) {
    int status;
    assert_int_equal(waitpid(fighters[i], &status, 0), fighters[i]);
    assert_int_equal(status, 0);
  }
}

static void of_eight_processes_one_holds_the_lock(void **state) {
  pid_t fighters[8];
  (void)state;
  begin_fight(fighters, 8);
  fight_on(8, SECTIONS_WANTED);
  end_fight(fighters, 8);
  check(8);
}

static unsigned unavailable(void) {
  unsigned total = 0;
  for (unsigned i = 0; i < 4; i++) {
    total += shared->unavailable[i];
  }
  return total;
}

static void one_holds_the_lock_while_nodes_hang_and_die(void **state) {
  pid_t fighters[4];
  (void)state;
  begin_fight(fighters, 4);
  fight_on(4, 20);
  farm_stop(&five, 0);
  fight_on(4, 20);
  farm_kill(&five, 1); /* Now two are gone: every vote counts. */
  fight_on(4, 20);
  farm_continue(&five, 0);
  fight_on(4, 20);
  farm_restart(&five, 1);
  fight_on(4, 20);
  farm_stop(&five, 2);
  farm_stop(&five, 3);
  farm_stop(&five, 4); /* No majority. */
  unsigned before = unavailable();
  eventually(unavailable() > before); /* The fault is felt. */
  farm_continue(&five, 2);
  farm_continue(&five, 3);
  farm_continue(&five, 4);
  fight_on(4, 20);
  farm_kill(&five, 4);
  farm_restart(&five, 4);
  fight_on(4, 20);
  end_fight(fighters, 4);
  check(4);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(of_eight_processes_one_holds_the_lock),
      cmocka_unit_test(one_holds_the_lock_while_nodes_hang_and_die),
  };
  return cmocka_run_group_tests_name("contention", tests, start, end);
}
