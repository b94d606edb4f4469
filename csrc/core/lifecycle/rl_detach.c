/*
 * Detaching a lease: ATT-1 and ATT-2 of rl_attach.c.
 *
 * SPDX-License-Identifier: MIT
 */
#include "lifecycle/rl_detach.h"

#include "lease/rl_fence.h"
#include "lease/rl_loss.h"
#include "lease/rl_reentry.h"
#include "lease/rl_renew.h"
#include "lifecycle/rl_lifecycle.h"
#include "lock/rl_lock.h"
#include "lock/rl_outbox.h"
#include "lock/rl_ring.h"
#include "wait/rl_notify.h"

uint64_t rl_detach_nodes(const rl_core *core) {
  const char *names[REDLOCK_NODES_MAX];
  for (unsigned i = 0; i < core->node_count; i++) {
    names[i] = core->nodes[i]->address.name;
  }
  return rl_handover_nodes(names, core->node_count);
}

int rl_lock_describe_lease(rl_lock *lock, redlock_time now_us, rl_handover *handover) {
  const rl_core *core = lock->core;
  bool lasts = rl_lock_remaining(lock, now_us) > 0;
  if (lock->abandoned && rl_lock_is_extending(lock)) {
    rl_lock_cancel(lock, now_us, REDLOCK_E_CANCELLED); /* Its caller has gone. */
  }
  if (rl_lock_is_busy(lock)) {
    return lock->abandoned ? REDLOCK_E_NOT_HELD : REDLOCK_E_BUSY;
  }
  if (core->closed) {
    return REDLOCK_E_CLOSED;
  }
  if (rl_ring_is_shared(lock) && rl_ring_remaining(lock, now_us) > 0) {
    return REDLOCK_E_HELD; /* Other locks share the lease. */
  }
  if (!lasts) {
    return lock->lost ? REDLOCK_E_LOST : REDLOCK_E_NOT_HELD;
  }
  const rl_attempt *lease = lock->lease;
  const rl_resource *resource = lease->resource; /* may have more names than the lock: OWN-2 */
  handover->node_count = core->node_count;
  handover->may_set = lease->set_outstanding | lease->may_set;
  handover->nodes = rl_detach_nodes(core);
  handover->ttl_us = lock->lease_ttl_us;
  handover->lock_delay_us = lock->current->lock_delay_us;
  handover->fence = rl_fence_token(lock);
  handover->hold_us = rl_time_sub(lease->keep_until_us, now_us); /* ATT-9 */
  handover->left_us = handover->hold_us == 0 ? 0
                                             : rl_time_add(rl_time_sub(lock->keys_end_us, now_us),
                                                           lock->current->lock_delay_us);
  handover->prefix = (const unsigned char *)resource->key;
  handover->prefix_length = resource->prefix_length;
  handover->resource_count = resource->count;
  for (unsigned i = 0; i < resource->count; i++) {
    rl_resource_name name = rl_resource_at(resource, i);
    handover->resources[i] = (redlock_resource){name.resource, name.length};
  }
  handover->bytes = NULL;
  handover->token = (const unsigned char *)rl_attempt_token(lease);
  handover->token_length = lease->token_length;
  return REDLOCK_OK;
}

void rl_lock_detach(rl_lock *lock) {
  rl_attempt *lease = lock->lease;
  rl_renew_stop(lock, lock->core->now_us);
  rl_reentry_forget(lock);
  rl_loss_clear(lock);
  rl_lock_ignore_late_votes(lock);
  rl_notify_free_ticket(lock->core, lease, true);
  rl_lock_set_lease(lock, NULL, 0);
  lease->lock = NULL;
  rl_attempt_unref(&lock->core->attempts, lease);
}
