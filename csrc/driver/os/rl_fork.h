/*
 * Detects that the process is a forked child of the object's maker.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef RL_FORK_H
#define RL_FORK_H

#include <stdbool.h>
#include <sys/types.h>

#define RL_FORK_PAGE 4096

typedef struct rl_fork {
  volatile unsigned char *page; /* 1 here, 0 in a child; NULL if the kernel cannot do that */
  pid_t pid;                    /* compared with getpid() without a page */
} rl_fork;

/* Marks this process as the owner. Cannot fail. */
void rl_fork_init(rl_fork *mark);
void rl_fork_free(rl_fork *mark);

/* Returns true if this process is a child of the owner. No system call on Linux >= 4.14. */
bool rl_fork_happened(const rl_fork *mark);

/* Makes this process the owner. */
void rl_fork_adopt(rl_fork *mark);

#endif
