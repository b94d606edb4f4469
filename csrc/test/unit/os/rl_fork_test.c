/*
 * Tells a forked child from its parent.
 *
 * SPDX-License-Identifier: MIT
 */
#include <sys/mman.h>
#include <unistd.h>

#include "os/rl_fork.h"
#include "rl_test.h"

/* In a child: returns 0 if it detects the fork, adopts, and its own child detects a fork, too. */
static int in_child(rl_fork *mark) {
  if (!rl_fork_happened(mark)) {
    return 1;
  }
  rl_fork_adopt(mark);
  if (rl_fork_happened(mark)) {
    return 2;
  }
  pid_t grandchild = fork();
  if (grandchild == 0) {
    _exit(rl_fork_happened(mark) ? 0 : 1);
  }
  return exit_status(grandchild) == 0 ? 0 : 3;
}

static void check(rl_fork *mark) {
  assert_false(rl_fork_happened(mark));
  pid_t child = fork();
  if (child == 0) {
    _exit(in_child(mark));
  }
  assert_int_equal(exit_status(child), 0);
  assert_false(rl_fork_happened(mark));
}

/* Returns true if the kernel empties a page on fork(). An emulator may accept any advice. */
static bool kernel_wipes(void) {
  size_t size = 4096;
  void *page = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  assert_true(page != MAP_FAILED);
  bool wipes = false;
#ifdef MADV_WIPEONFORK
  wipes = madvise(page, size, -1) != 0 && madvise(page, size, MADV_WIPEONFORK) == 0;
#endif
  (void)munmap(page, size);
  return wipes;
}

TEST(child_is_detected_and_may_adopt) {
  rl_fork mark;
  rl_fork_init(&mark);
  assert_int_equal(mark.page != NULL, kernel_wipes()); /* Without it each call asks the kernel. */
  check(&mark);
  rl_fork_free(&mark);
  rl_fork_free(&mark);
}

/* As on a kernel without MADV_WIPEONFORK. */
TEST(process_number_replaces_a_missing_page) {
  rl_fork mark;
  rl_fork_init(&mark);
  rl_fork_free(&mark);
  assert_null(mark.page);
  check(&mark);
}

TEST(marks_are_independent) {
  rl_fork first;
  rl_fork second;
  rl_fork_init(&first);
  rl_fork_init(&second);
  pid_t child = fork();
  if (child == 0) {
    rl_fork_adopt(&first);
    _exit(!rl_fork_happened(&first) && rl_fork_happened(&second) ? 0 : 1);
  }
  assert_int_equal(exit_status(child), 0);
  rl_fork_free(&first);
  rl_fork_free(&second);
}
