/*
 * Subscribers: a second connection to each node, over which the node notifies waiters.
 *
 * SPDX-License-Identifier: MIT
 *
 *   SUB-1. A subscriber logs in like the node's own connection, and subscribes to the client's
 *          channel.
 *   SUB-2. The node's own connection then publishes a probe. One receiver proves that messages
 *          arrive, that this login may publish, and that both connections lead to one server.
 *          Without a receiver the subscriber may have been cut unnoticed: it reconnects, once.
 *   SUB-3. A node that refuses is asked again after a minute, or when its connection comes up
 *          again. An operator who corrects the ACL need not restart the clients. A node where
 *          releases may not notify counts as one that refuses, because waiters would wait there in
 *          vain.
 *   SUB-4. A subscriber that has been silent for 3 s gets a PING while a lock waits. This ends a
 *          connection that a NAT has dropped.
 *
 * Waiters poll where a node refuses notifications.
 */
#include "wait/rl_subscriber.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lock/rl_lock.h"
#include "node/rl_link_queue.h"

#define RL_SUBSCRIBER_MUTE "a release may not notify waiters there (ACL, or a cluster)"
#define RL_SUBSCRIBER_UNDELIVERED "published messages do not arrive"

static_assert(2 * RL_NOTIFY_NODES_MAX <= REDLOCK_NODES_MAX, "the subscribers have room");

/* Returns the subscriber of a node, or NULL. There are at most RL_NOTIFY_NODES_MAX nodes. */
static rl_node *rl_subscriber_of(const rl_core *core, unsigned node) {
  assert(core->node_count <= RL_NOTIFY_NODES_MAX);
  return core->nodes[core->node_count + node];
}

static bool rl_subscriber_is_refused(const rl_core *core, unsigned node) {
  const rl_notify_state *notify = core->notify;
  return (notify->refused >> node & 1) != 0 && core->now_us < notify->refused_until_us[node];
}

bool rl_subscriber_needed(const rl_core *core, unsigned node) {
  return core->notify->wanted && !core->closed && !rl_subscriber_is_refused(core, node) &&
         core->nodes[node]->link.phase == RL_LINK_UP;
}

static void rl_subscribers_create(rl_core *core) {
  rl_notify_state *notify = core->notify;
  (void)snprintf(notify->channel, sizeof notify->channel, RL_COMMAND_CHANNEL "%016llx",
                 (unsigned long long)rl_wait_state_random(core));
  for (unsigned i = 0; i < core->node_count; i++) {
    rl_node *subscriber = rl_subscriber_of(core, i);
    if (subscriber == NULL) {
      subscriber = malloc(sizeof *subscriber);
      if (subscriber == NULL) {
        notify->wanted = false; /* The next waiter tries again. */
        return;
      }
      rl_node_init(subscriber, i, &core->nodes[i]->address);
      if ((notify->refused >> i & 1) != 0) { /* by a release before the first waiter */
        (void)snprintf(subscriber->error, sizeof subscriber->error, RL_SUBSCRIBER_MUTE);
      }
      core->nodes[core->node_count + i] = subscriber;
    }
    subscriber->link.channel = notify->channel;
  }
  notify->subscribing = true;
  core->connection_count = 2 * core->node_count;
}

void rl_subscriber_up(rl_core *core, const rl_node *subscriber) {
  core->notify->to_probe |= rl_node_bit(subscriber);
}

static rl_subscriber_change rl_subscriber_lost(rl_core *core, uint32_t bit) {
  rl_notify_state *notify = core->notify;
  rl_subscriber_change change = {.lost = notify->ready & bit};
  notify->ready &= ~bit;
  notify->probed &= ~bit;
  notify->to_probe &= ~bit;
  return change;
}

rl_subscriber_change rl_subscriber_down(rl_core *core, const rl_node *subscriber,
                                        redlock_time now_us, const char *reason) {
  return strncmp(reason, "NOPERM", 6) == 0 ? rl_subscriber_refuse(core, subscriber, now_us, reason)
                                           : rl_subscriber_lost(core, rl_node_bit(subscriber));
}

void rl_subscriber_node_up(rl_core *core, const rl_node *node) {
  rl_notify_state *notify = core->notify;
  notify->refused &= ~rl_node_bit(node);
  if (notify->subscribing && rl_subscriber_of(core, node->index)->link.phase == RL_LINK_UP) {
    notify->to_probe |= rl_node_bit(node);
  }
}

rl_subscriber_change rl_subscriber_node_down(rl_core *core, const rl_node *node) {
  return rl_subscriber_lost(core, rl_node_bit(node));
}

rl_subscriber_change rl_subscriber_refuse(rl_core *core, const rl_node *node, redlock_time now_us,
                                          const char *reason) {
  rl_notify_state *notify = core->notify;
  rl_node *subscriber = rl_subscriber_of(core, node->index);
  rl_subscriber_change change = rl_subscriber_lost(core, rl_node_bit(node));
  notify->refused |= rl_node_bit(node);
  notify->undelivered &= ~rl_node_bit(node);
  notify->refused_until_us[node->index] = rl_time_add(now_us, RL_SUBSCRIBER_REFUSED_US);
  if (subscriber != NULL && reason != subscriber->error) {
    (void)snprintf(subscriber->error, sizeof subscriber->error, "%s", reason);
  }
  return change;
}

rl_subscriber_change rl_subscriber_mute(rl_core *core, const rl_node *node, redlock_time now_us) {
  if (core->notify != NULL && core->node_count <= RL_NOTIFY_NODES_MAX) {
    return rl_subscriber_refuse(core, node, now_us, RL_SUBSCRIBER_MUTE);
  }
  return (rl_subscriber_change){0};
}

rl_subscriber_change rl_subscriber_probed(rl_core *core, rl_node *node, redlock_time now_us) {
  rl_notify_state *notify = core->notify;
  const rl_reply *reply = &node->link.reader.reply;
  uint32_t bit = rl_node_bit(node);
  if ((notify->probed & bit) == 0) {
    return (rl_subscriber_change){0}; /* The subscriber has disconnected since. */
  }
  notify->probed &= ~bit;
  if (reply->type == RL_REPLY_ERROR) {
    return rl_subscriber_refuse(core, node, now_us, rl_link_error_text(&node->link));
  }
  if (reply->type != RL_REPLY_INTEGER || reply->integer < 1) {
    bool again = reply->type == RL_REPLY_INTEGER && (notify->undelivered & bit) == 0;
    if (!again) {
      return rl_subscriber_refuse(core, node, now_us, RL_SUBSCRIBER_UNDELIVERED);
    }
    notify->undelivered |= bit;
    return (rl_subscriber_change){0};
  }
  notify->undelivered &= ~bit;
  notify->ready |= bit;
  rl_subscriber_of(core, node->index)->error[0] = '\0';
  return (rl_subscriber_change){.ready = bit};
}

bool rl_subscriber_state(const rl_core *core, unsigned node, const char **reason) {
  const rl_notify_state *notify = core->notify;
  const rl_node *subscriber =
      notify == NULL || !notify->subscribing ? NULL : rl_subscriber_of(core, node);
  *reason = subscriber != NULL && subscriber->error[0] != '\0' ? subscriber->error : NULL;
  return notify != NULL && (notify->ready >> node & 1) != 0;
}

bool rl_subscribers_are_coming(const rl_core *core, unsigned needed) {
  const rl_notify_state *notify = core->notify;
  unsigned count = 0;
  for (unsigned i = 0; i < core->node_count; i++) {
    const rl_node *subscriber = rl_subscriber_of(core, i);
    bool well = core->nodes[i]->failures == 0 &&
                (subscriber == NULL || (subscriber->failures == 0 && subscriber->error[0] == '\0'));
    count += (notify->ready >> i & 1) != 0 || (well && !rl_subscriber_is_refused(core, i));
  }
  return count >= needed;
}

void rl_subscribers_continue(rl_core *core, redlock_time now_us) {
  rl_notify_state *notify = core->notify;
  if (notify->wanted && !notify->subscribing) {
    rl_subscribers_create(core);
  }
  for (unsigned i = 0; i < core->node_count && notify->to_probe != 0; i++) {
    uint32_t bit = notify->to_probe & (uint32_t)1 << i;
    rl_link *link = &core->nodes[i]->link;
    if (bit != 0 && rl_link_has_room(link, RL_OUTSTANDING_PROBE) &&
        rl_link_queue_probe(link, now_us, notify->channel)) {
      notify->probed |= bit;
    } else if (link->phase == RL_LINK_UP) {
      notify->undelivered |= bit; /* There was no room: reconnect, and probe again. */
    }
  }
  notify->to_probe = 0;
}

bool rl_subscribers_have_news(const rl_core *core) {
  return core->notify->to_probe != 0 || (core->notify->wanted && !core->notify->subscribing);
}

void rl_subscribers_close_idle(rl_core *core, redlock_time now_us) {
  rl_notify_state *notify = core->notify;
  bool idle =
      notify->used_count == 0 && rl_time_add(notify->used_us, RL_SUBSCRIBER_IDLE_US) <= now_us;
  notify->wanted = notify->wanted && !idle;
}

/* SUB-2. Returns true if the probe has not reached this connection. */
static bool rl_subscriber_is_undelivered(const rl_core *core, const rl_node *subscriber) {
  const rl_notify_state *notify = core->notify;
  uint32_t unsettled = notify->undelivered & ~(notify->ready | notify->probed | notify->to_probe);
  return subscriber->link.phase == RL_LINK_UP && (unsettled & rl_node_bit(subscriber)) != 0;
}

const char *rl_subscriber_overdue(rl_core *core, rl_node *subscriber, redlock_time now_us) {
  const rl_notify_state *notify = core->notify;
  rl_link *link = &subscriber->link;
  if (link->phase == RL_LINK_DOWN) {
    return NULL;
  }
  const char *reason = rl_link_overdue(link, now_us);
  if (reason == NULL && !rl_subscriber_needed(core, subscriber->index)) {
    return subscriber->error; /* The reason of a refusal, or "". */
  }
  if (reason == NULL && rl_subscriber_is_undelivered(core, subscriber)) {
    return RL_SUBSCRIBER_UNDELIVERED;
  }
  if (reason == NULL && link->phase == RL_LINK_UP && link->outstanding_count == 0 &&
      notify->used_count > 0 && rl_time_add(link->received_us, RL_SUBSCRIBER_PING_US) <= now_us &&
      !rl_link_ping(link, now_us)) {
    return "out of memory";
  }
  return reason;
}

static redlock_time rl_subscriber_deadline(const rl_core *core, const rl_node *subscriber) {
  const rl_link *link = &subscriber->link;
  bool needed = rl_subscriber_needed(core, subscriber->index);
  if (link->phase == RL_LINK_DOWN) {
    return needed ? subscriber->connect_at_us : REDLOCK_NEVER;
  }
  bool stays = needed && !rl_subscriber_is_undelivered(core, subscriber);
  redlock_time deadline_us = stays ? rl_node_deadline(subscriber) : 0;
  if (link->phase == RL_LINK_UP && link->outstanding_count == 0 && core->notify->used_count > 0) {
    deadline_us = rl_time_min(deadline_us, rl_time_add(link->received_us, RL_SUBSCRIBER_PING_US));
  }
  return deadline_us;
}

redlock_time rl_subscribers_deadline(const rl_core *core) {
  const rl_notify_state *notify = core->notify;
  redlock_time deadline_us = REDLOCK_NEVER;
  if (notify == NULL || !notify->subscribing) {
    return deadline_us;
  }
  for (unsigned i = 0; i < core->node_count; i++) {
    deadline_us = rl_time_min(deadline_us, rl_subscriber_deadline(core, rl_subscriber_of(core, i)));
  }
  if (notify->wanted && notify->used_count == 0) {
    deadline_us = rl_time_min(deadline_us, rl_time_add(notify->used_us, RL_SUBSCRIBER_IDLE_US));
  }
  return deadline_us;
}

void rl_subscribers_reset(rl_core *core) {
  rl_notify_state *notify = core->notify;
  rl_outstanding outstanding;
  for (unsigned i = 0; i < core->node_count && notify->subscribing; i++) {
    rl_node *subscriber = rl_subscriber_of(core, i);
    if (subscriber->link.phase != RL_LINK_DOWN) {
      rl_node_disconnected(subscriber, core->now_us, "");
    }
    while (rl_link_take(&subscriber->link, &outstanding)) {
    }
    subscriber->failures = 0;
    subscriber->connect_at_us = 0;
    subscriber->error[0] = '\0';
  }
  core->connection_count = core->node_count;
  notify->wanted = notify->subscribing = false; /* The next subscribers get a new channel. */
  notify->ready = notify->probed = notify->to_probe = notify->undelivered = notify->refused = 0;
}
