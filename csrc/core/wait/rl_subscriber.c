/*
 * A listener: a second connection to a node, over which it calls.
 *
 * SPDX-License-Identifier: MIT
 *
 *   L1. It logs in as the node's own connection does, and subscribes to the client's channel. What a node has no
 *       calls for is known by then, or by L2, and everybody polls where that is so.
 *   L2. Then a message is published over the node's own connection. One receiver proves that messages arrive, that we
 *       may publish (so may others with our login), and that both connections lead to one server. Where there is none
 *       the connection may have been cut a moment before, which nobody knows yet: it is made anew, once.
 *   L3. A node that refuses is asked again after a minute, or when its connection has been made anew: whoever changes
 *       its ACL need not restart anybody, and whoever does not reads of it once. So is one where a release may call
 *       nobody: others with the same login would stand there in vain.
 *   L4. A listener that has been silent for 3 s while somebody waits is asked for a byte. A connection that a NAT has
 *       forgotten ends so.
 */
#include "wait/rl_subscriber.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lock/rl_lock.h"

#define RL_SUBSCRIBER_MUTE "a release may not call who waits there (ACL, or a cluster)"
#define RL_SUBSCRIBER_UNHEARD "what is published there does not arrive"

static bool rl_subscriber_is_refused(const rl_core *core, unsigned node) {
  const rl_notifications *calls = core->calls;
  return (calls->refused >> node & 1) != 0 && core->now_us < calls->refused_until_us[node];
}

bool rl_subscriber_needed(const rl_core *core, unsigned node) {
  return core->calls->wanted && !core->closed && !rl_subscriber_is_refused(core, node) &&
         core->nodes[node]->link.phase == RL_LINK_UP;
}

static void rl_subscriber_make(rl_core *core) {
  rl_notifications *calls = core->calls;
  (void)snprintf(calls->channel, sizeof calls->channel, RL_COMMAND_CHANNEL "%016llx",
                 (unsigned long long)rl_waits_random(core));
  for (unsigned i = 0; i < core->node_count; i++) {
    rl_node *listener = calls->listeners[i];
    if (listener == NULL) {
      listener = malloc(sizeof *listener);
      if (listener == NULL) {
        calls->wanted = false; /* Who waits next tries again. */
        return;
      }
      rl_node_init(listener, i, &core->nodes[i]->address);
      if ((calls->refused >> i & 1) != 0) { /* before anybody has waited */
        (void)snprintf(listener->error, sizeof listener->error, RL_SUBSCRIBER_MUTE);
      }
      calls->listeners[i] = listener;
    }
    listener->link.channel = calls->channel;
  }
  calls->listening = true;
}

void rl_subscriber_up(rl_core *core, const rl_node *listener) {
  core->calls->to_probe |= rl_node_bit(listener);
}

static rl_subscriber_change rl_subscriber_lost(rl_core *core, uint32_t bit) {
  rl_notifications *calls = core->calls;
  rl_subscriber_change change = {.lost = calls->ready & bit};
  calls->ready &= ~bit;
  calls->probed &= ~bit;
  calls->to_probe &= ~bit;
  return change;
}

rl_subscriber_change rl_subscriber_down(rl_core *core, const rl_node *listener, redlock_time now_us,
                                        const char *reason) {
  return strncmp(reason, "NOPERM", 6) == 0 ? rl_subscriber_refuse(core, listener, now_us, reason)
                                           : rl_subscriber_lost(core, rl_node_bit(listener));
}

void rl_subscriber_node_up(rl_core *core, const rl_node *node) {
  rl_notifications *calls = core->calls;
  calls->refused &= ~rl_node_bit(node);
  if (calls->listening && calls->listeners[node->index]->link.phase == RL_LINK_UP) {
    calls->to_probe |= rl_node_bit(node);
  }
}

rl_subscriber_change rl_subscriber_node_down(rl_core *core, const rl_node *node) {
  return rl_subscriber_lost(core, rl_node_bit(node));
}

rl_subscriber_change rl_subscriber_refuse(rl_core *core, const rl_node *node, redlock_time now_us,
                                          const char *reason) {
  rl_notifications *calls = core->calls;
  rl_node *listener = calls->listeners[node->index];
  rl_subscriber_change change = rl_subscriber_lost(core, rl_node_bit(node));
  calls->refused |= rl_node_bit(node);
  calls->unheard &= ~rl_node_bit(node);
  calls->refused_until_us[node->index] = rl_time_add(now_us, RL_SUBSCRIBER_REFUSED_US);
  if (listener != NULL && reason != listener->error) {
    (void)snprintf(listener->error, sizeof listener->error, "%s", reason);
  }
  return change;
}

rl_subscriber_change rl_subscriber_mute(rl_core *core, const rl_node *node, redlock_time now_us) {
  if (core->calls != NULL && node->index < RL_NOTIFY_NODES_MAX) { /* Beyond, nobody listens. */
    return rl_subscriber_refuse(core, node, now_us, RL_SUBSCRIBER_MUTE);
  }
  return (rl_subscriber_change){0};
}

rl_subscriber_change rl_subscriber_probed(rl_core *core, rl_node *node, redlock_time now_us) {
  rl_notifications *calls = core->calls;
  const rl_reply *reply = &node->link.reader.reply;
  uint32_t bit = rl_node_bit(node);
  if ((calls->probed & bit) == 0) {
    return (rl_subscriber_change){0}; /* The listener has gone meanwhile. */
  }
  calls->probed &= ~bit;
  if (reply->type == RL_REPLY_ERROR) {
    return rl_subscriber_refuse(core, node, now_us, rl_link_said(&node->link));
  }
  if (reply->type != RL_REPLY_INTEGER || reply->integer < 1) {
    bool again = reply->type == RL_REPLY_INTEGER && (calls->unheard & bit) == 0;
    if (!again) {
      return rl_subscriber_refuse(core, node, now_us, RL_SUBSCRIBER_UNHEARD);
    }
    calls->unheard |= bit;
    return (rl_subscriber_change){0};
  }
  calls->unheard &= ~bit;
  calls->ready |= bit;
  calls->listeners[node->index]->error[0] = '\0';
  return (rl_subscriber_change){.ready = bit};
}

bool rl_subscriber_state(const rl_core *core, unsigned node, const char **reason) {
  const rl_notifications *calls = core->calls;
  const rl_node *listener = calls == NULL || !calls->listening ? NULL : calls->listeners[node];
  *reason = listener != NULL && listener->error[0] != '\0' ? listener->error : NULL;
  return calls != NULL && (calls->ready >> node & 1) != 0;
}

bool rl_subscribers_are_coming(const rl_core *core, unsigned needed) {
  const rl_notifications *calls = core->calls;
  unsigned count = 0;
  for (unsigned i = 0; i < core->node_count; i++) {
    const rl_node *listener = calls->listeners[i];
    bool well = core->nodes[i]->failures == 0 &&
                (listener == NULL || (listener->failures == 0 && listener->error[0] == '\0'));
    count += (calls->ready >> i & 1) != 0 || (well && !rl_subscriber_is_refused(core, i));
  }
  return count >= needed;
}

void rl_subscribers_continue(rl_core *core, redlock_time now_us) {
  rl_notifications *calls = core->calls;
  if (calls->wanted && !calls->listening) {
    rl_subscriber_make(core);
  }
  for (unsigned i = 0; i < core->node_count && calls->to_probe != 0; i++) {
    uint32_t bit = calls->to_probe & (uint32_t)1 << i;
    rl_link *link = &core->nodes[i]->link;
    if (bit != 0 && rl_link_has_room(link, RL_OUTSTANDING_PROBE) &&
        rl_link_queue_probe(link, now_us, calls->channel)) {
      calls->probed |= bit;
    } else if (link->phase == RL_LINK_UP) {
      calls->unheard |= bit; /* There was no room: it is made anew, too. */
    }
  }
  calls->to_probe = 0;
}

bool rl_subscribers_have_news(const rl_core *core) {
  return core->calls->to_probe != 0 || (core->calls->wanted && !core->calls->listening);
}

void rl_subscribers_rest(rl_core *core, redlock_time now_us) {
  rl_notifications *calls = core->calls;
  bool idle =
      calls->used_count == 0 && rl_time_add(calls->used_us, RL_SUBSCRIBER_IDLE_US) <= now_us;
  calls->wanted = calls->wanted && !idle;
}

/* L2. Whether the listener is the one that has not received the probe. */
static bool rl_subscriber_is_unheard(const rl_core *core, const rl_node *listener) {
  const rl_notifications *calls = core->calls;
  uint32_t unsettled = calls->unheard & ~(calls->ready | calls->probed | calls->to_probe);
  return listener->link.phase == RL_LINK_UP && (unsettled & rl_node_bit(listener)) != 0;
}

const char *rl_subscriber_overdue(rl_core *core, rl_node *listener, redlock_time now_us) {
  const rl_notifications *calls = core->calls;
  rl_link *link = &listener->link;
  if (link->phase == RL_LINK_DOWN) {
    return NULL;
  }
  const char *reason = rl_link_overdue(link, now_us);
  if (reason == NULL && !rl_subscriber_needed(core, listener->index)) {
    return listener->error; /* Why it was refused; or nothing is wrong. */
  }
  if (reason == NULL && rl_subscriber_is_unheard(core, listener)) {
    return RL_SUBSCRIBER_UNHEARD;
  }
  if (reason == NULL && link->phase == RL_LINK_UP && link->owed_count == 0 &&
      calls->used_count > 0 && rl_time_add(link->heard_us, RL_SUBSCRIBER_PING_US) <= now_us &&
      !rl_link_ping(link, now_us)) {
    return "out of memory";
  }
  return reason;
}

static redlock_time rl_subscriber_deadline(const rl_core *core, const rl_node *listener) {
  const rl_link *link = &listener->link;
  bool needed = rl_subscriber_needed(core, listener->index);
  if (link->phase == RL_LINK_DOWN) {
    return needed ? listener->connect_at_us : REDLOCK_NEVER;
  }
  bool stays = needed && !rl_subscriber_is_unheard(core, listener);
  redlock_time deadline_us = stays ? rl_node_deadline(listener) : 0;
  if (link->phase == RL_LINK_UP && link->owed_count == 0 && core->calls->used_count > 0) {
    deadline_us = rl_time_min(deadline_us, rl_time_add(link->heard_us, RL_SUBSCRIBER_PING_US));
  }
  return deadline_us;
}

redlock_time rl_subscribers_deadline(const rl_core *core) {
  const rl_notifications *calls = core->calls;
  redlock_time deadline_us = REDLOCK_NEVER;
  if (calls == NULL || !calls->listening) {
    return deadline_us;
  }
  for (unsigned i = 0; i < core->node_count; i++) {
    deadline_us = rl_time_min(deadline_us, rl_subscriber_deadline(core, calls->listeners[i]));
  }
  if (calls->wanted && calls->used_count == 0) {
    deadline_us = rl_time_min(deadline_us, rl_time_add(calls->used_us, RL_SUBSCRIBER_IDLE_US));
  }
  return deadline_us;
}

void rl_subscribers_forget(rl_core *core) {
  rl_notifications *calls = core->calls;
  rl_outstanding owed;
  for (unsigned i = 0; i < core->node_count && calls->listening; i++) {
    rl_node *listener = calls->listeners[i];
    if (listener->link.phase != RL_LINK_DOWN) {
      rl_node_disconnected(listener, core->now_us, "");
    }
    while (rl_link_take(&listener->link, &owed)) {
    }
    listener->failures = 0;
    listener->connect_at_us = 0;
    listener->error[0] = '\0';
  }
  calls->wanted = calls->listening = false; /* The next ones have a channel of their own. */
  calls->ready = calls->probed = calls->to_probe = calls->unheard = calls->refused = 0;
}

void rl_subscribers_free(rl_core *core) {
  for (unsigned i = 0; i < core->node_count && i < RL_NOTIFY_NODES_MAX; i++) {
    rl_node *listener = core->calls->listeners[i];
    if (listener != NULL) {
      rl_node_free(listener, &core->attempts);
      free(listener);
    }
  }
}
