/*
 * A lease that was acquired with a fencing token has one that a majority has confirmed, and that is
 * greater than that of every earlier lease of its resources.
 *
 * SPDX-License-Identifier: MIT
 *
 * Earlier is a lease whose token was issued earlier in true time. If that lease has ended, or an
 * operator has deleted a key of it, it excludes no other: then its token must have been issued
 * before the attempt began. No two tokens are equal in any case. The account is that of sim_tap.c:
 * the counters that nodes have raised, and the tokens that they have confirmed, for each attempt.
 */
#include "check.h"
#include "grow.h"
#include "lease/rl_fence.h"

#define CHECK_FENCE_MAX ((uint64_t)9007199254740991u)

static unsigned check_fence_confirmed(const sim_client *client, const sim_token *token,
                                      uint64_t fence, bool *asked) {
  unsigned count = 0;
  *asked = false;
  for (unsigned i = 0; i < client->nodes; i++) {
    bool confirmed = token->confirmed[i] == fence;
    count += token->raised[i] == fence || confirmed;
    *asked = *asked || (confirmed && token->raised[i] != fence);
  }
  return count;
}

/* The greatest that had been handed out by then. */
static uint64_t check_fence_most(const sim *s, unsigned resource, uint64_t by_us) {
  for (size_t i = s->fence_count[resource]; i > 0; i--) {
    if (s->fences[resource][i - 1].at_us <= by_us) {
      return s->fences[resource][i - 1].most;
    }
  }
  return 0;
}

static void check_fence_issue(sim *s, unsigned resource, uint64_t fence) {
  size_t count = s->fence_count[resource]++;
  s->fences[resource] =
      grow(s->fences[resource], sizeof(sim_fence), count, &s->fence_capacity[resource]);
  uint64_t most = count == 0 ? 0 : s->fences[resource][count - 1].most;
  s->fences[resource][count] =
      (sim_fence){.fence = fence, .most = fence > most ? fence : most, .at_us = s->now_us};
}

static void check_fence_increases(sim *s, const sim_client *client, const sim_lock *own,
                                  unsigned resource, uint64_t fence) {
  const sim_token *token = &s->tokens[own->lease];
  bool excludes = own->ends_us > s->now_us && token->forced == 0;
  uint64_t by_us = excludes ? s->now_us : token->begun_us;
  uint64_t most = check_fence_most(s, resource, by_us);
  for (size_t i = 0; i < s->fence_count[resource]; i++) {
    if (s->fences[resource][i].fence == fence) {
      sim_violation(s, "fence", "client %u is given fencing token %llu of resource %u again",
                    client->index, (ull)fence, resource);
    }
  }
  if (fence <= most) {
    sim_violation(s, "fence",
                  "client %u is given fencing token %llu of resource %u, which is less than %llu",
                  client->index, (ull)fence, resource, (ull)most);
  }
  check_fence_issue(s, resource, fence);
}

static void check_fence_granted(sim *s, const sim_client *client, const sim_lock *own) {
  sim_token *token = &s->tokens[own->lease];
  uint64_t fence = rl_fence_token(own->lock);
  bool asked;
  if (s->config.fenced == 0 && fence == 0) {
    return;
  }
  token->fence = fence;
  if (own->attaches) {
    if (fence != own->handed_fence) {
      sim_violation(s, "fence", "client %u attaches a lease with fencing token %llu, and has %llu",
                    client->index, (ull)own->handed_fence, (ull)fence);
    }
    sim_count_if(s, fence != 0, SIM_FENCE_ATTACHED);
    return;
  }
  if ((own->acquired.fence == REDLOCK_YES) != (fence != 0) || fence > CHECK_FENCE_MAX) {
    sim_violation(s, "fence", "client %u is given fencing token %llu", client->index, (ull)fence);
    return;
  }
  if (fence == 0) {
    return;
  }
  unsigned confirmed = check_fence_confirmed(client, token, fence, &asked);
  sim_count(s, asked ? SIM_FENCE_TWO_ROUNDS : SIM_FENCE_ONE_ROUND);
  if (confirmed < sim_config_quorum(&s->config, client->nodes)) {
    sim_violation(s, "fence", "client %u is given fencing token %llu, which %u of %u nodes confirm",
                  client->index, (ull)fence, confirmed, client->nodes);
  }
  for (unsigned i = 0; i < (own->both ? 2u : 1u); i++) {
    check_fence_increases(s, client, own, own->resource ^ i, fence);
  }
}

/* The lease has the token that it was granted with, whichever lock it has gone to. */
static void check_fence_used(sim *s, const sim_client *client, const sim_lock *own) {
  if (own->lease >= s->token_count) {
    return;
  }
  uint64_t fence = s->tokens[own->lease].fence;
  if (rl_lock_remaining(own->lock, client->reading_us) > 0 && rl_fence_token(own->lock) != fence) {
    sim_violation(s, "fence", "client %u was given fencing token %llu, and now has %llu",
                  client->index, (ull)fence, (ull)rl_fence_token(own->lock));
  }
  sim_count_if(s, own->moved && fence != 0, SIM_FENCE_MOVED);
}

static void check_fence_extended(sim *s, const sim_client *client, const sim_lock *own) {
  check_fence_used(s, client, own);
}

/*
 * Commands for a lease carry its token. A node is asked to confirm once, while the attempt is in
 * flight.
 */
static void check_fence_sent(sim *s, const sim_client *client, unsigned node,
                             const sim_sent *sent) {
  const sim_token *token = &s->tokens[sent->token];
  bool leased = token->granted && sent->kind != SIM_COMMAND_RELEASE;
  if (sent->kind == SIM_COMMAND_CONFIRM) {
    bool again = (token->confirms >> node & 1) != 0 && !sent->by_text;
    bool released = token->releasing && token->releasing_call < s->calls;
    if (token->granted || token->over || released || again || token->raised[node] == 0 ||
        token->raised[node] >= sent->fence) {
      sim_violation(s, "fence", "client %u asks node %u to confirm %llu, which it need not",
                    client->index, node, (ull)sent->fence);
    }
  } else if (leased && sent->fence != token->fence) {
    sim_violation(s, "fence", "client %u sends node %u fencing token %llu for a lease with %llu",
                  client->index, node, (ull)sent->fence, (ull)token->fence);
  }
  sim_count_if(s, leased && sent->own && token->fence != 0, SIM_FENCE_BACKFILLED);
  if (sent->kind == SIM_COMMAND_SET && sent->fence != 0 && sent->own != sent->leased) {
    sim_violation(s, "fence", "client %u takes node %u %s", client->index, node,
                  sent->own ? "as if it had the lease" : "anew for a lease");
  }
}

const checker check_fence = {
    .name = "fence",
    .granted = check_fence_granted,
    .extended = check_fence_extended,
    .used = check_fence_used,
    .sent = check_fence_sent,
};
