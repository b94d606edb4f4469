/*
 * Handing a lease over: one process detaches it, another attaches it.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef RL_ATTACH_H
#define RL_ATTACH_H

#include "lock/rl_lock.h"
#include "node/rl_node.h"
#include "wire/rl_handover.h"

/* What a lock has until it has tried to. */
typedef struct rl_attach {
  rl_attempt *handed; /* a reference: the token that is to be replaced; released by H8 alone */
  uint32_t suspect;
  uint64_t key_ms;   /* how long its keys live at most */
  uint64_t fence;    /* the fencing token of the lease; 0 for none */
  uint64_t floor_ms; /* a key of which so little is left is a lease's no more */
} rl_attach;

/*
 * A lease keeps the fencing token that it was granted with, |fence|, whatever |options| say, and gets none later: they
 * are made to say so. Returns NULL, or what is wrong with that, as a static sentence.
 */
const char *rl_attach_fit_fence(rl_options *options, uint64_t fence);

/* H4. The next acquire of the lock takes the lease over. Returns REDLOCK_OK or REDLOCK_E_NO_MEMORY. */
int rl_attach_set(rl_lock *lock, const rl_handover *handover);

/* H8. The lock has its lease, and what it attached is still known. */
void rl_attach_succeeded(rl_lock *lock, redlock_time now_us);

/* It has been tried, or the lock goes, or the process has forked. */
void rl_attach_forget(rl_lock *lock);

#endif
