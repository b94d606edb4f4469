/*
 * Detects that the process is a forked child of the object's maker.
 *
 * SPDX-License-Identifier: MIT
 *
 * Every call asks, so it reads a page that the kernel empties on fork(): getpid() costs a system
 * call. pthread_atfork() cannot be undone by a library that a Lua state unloads.
 */
#include "os/rl_fork.h"

#include <stddef.h>
#include <sys/mman.h>
#include <unistd.h>

void rl_fork_init(rl_fork *mark) {
  mark->page = NULL;
#ifdef MADV_WIPEONFORK
  void *page = mmap(NULL, RL_FORK_PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (page != MAP_FAILED) {
    /* Older emulators of processors accept any advice, and follow none. */
    bool follows = madvise(page, RL_FORK_PAGE, -1) != 0;
    if (follows && madvise(page, RL_FORK_PAGE, MADV_WIPEONFORK) == 0) {
      mark->page = page;
    } else {
      (void)munmap(page, RL_FORK_PAGE);
    }
  }
#endif
  rl_fork_adopt(mark);
}

void rl_fork_free(rl_fork *mark) {
  if (mark->page != NULL) {
    (void)munmap((void *)mark->page, RL_FORK_PAGE);
    mark->page = NULL;
  }
}

bool rl_fork_happened(const rl_fork *mark) {
  return mark->page != NULL ? *mark->page == 0 : mark->pid != getpid();
}

void rl_fork_adopt(rl_fork *mark) {
  mark->pid = getpid();
  if (mark->page != NULL) {
    *mark->page = 1;
  }
}
