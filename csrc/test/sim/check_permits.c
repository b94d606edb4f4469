/*
 * No more holders than permits, and no slot twice.
 *
 * SPDX-License-Identifier: MIT
 *
 * check_exclusion.c sees each slot as a resource. This checker counts the leases, whatever slots
 * they claim, and compares the slot that a program sees with the key that was set.
 */
#include "check.h"
#include "lease/rl_semaphore.h"

static void check_permits_granted(sim *s, const sim_client *client, const sim_lock *own) {
  unsigned holders = 0;
  if (s->config.permits == 0) {
    return;
  }
  for (unsigned i = 0; i < s->config.clients; i++) {
    const sim_client *other = &s->clients[i];
    for (unsigned k = 0; other->alive && k < s->config.locks; k++) {
      holders += other->locks[k].lease != SIM_NO_TOKEN && other->locks[k].ends_us > s->now_us;
    }
  }
  if (holders > s->config.permits) {
    sim_violation(s, "permits", "client %u: %u holders of %u permits", client->index, holders,
                  s->config.permits);
  }
  unsigned slot = rl_semaphore_slot(own->lock, client->reading_us);
  if (slot != 0 && slot != own->resource + 1) {
    sim_violation(s, "permits", "client %u was granted slot %u, but the lock names slot %u",
                  client->index, own->resource + 1, slot);
  }
}

const checker check_permits = {
    .name = "permits",
    .granted = check_permits_granted,
};
