/*
 * A node: its address, its connection, and the time of the next connection.
 *
 * SPDX-License-Identifier: MIT
 */
#include "node/rl_node.h"

#include <stdio.h>
#include <string.h>

#include "options/rl_backoff.h"

const char *redlock_node_state_name(int state) {
  switch (state) {
#define RL_NODE_STATE_NAME(value, name)                                                            \
  case value:                                                                                      \
    return #name;
    RL_NODE_STATES(RL_NODE_STATE_NAME)
  default:
    return "unknown";
  }
}

void rl_node_init(rl_node *node, unsigned index, const rl_address *address) {
  memset(node, 0, sizeof *node);
  node->address = *address;
  node->index = index;
  rl_link_init(&node->link, &node->address);
  node->link.bit = rl_node_bit(node);
}

void rl_node_free(rl_node *node, rl_attempt_pool *pool) {
  rl_link_free(&node->link, pool);
  rl_reason_unref(node->reason);
  node->reason = NULL;
  rl_login_overwrite(&node->address, sizeof node->address); /* a password, perhaps */
}

bool rl_node_wants_connection(const rl_node *node, redlock_time now_us) {
  return node->link.phase == RL_LINK_DOWN && node->connect_at_us <= now_us;
}

void rl_node_connected(rl_node *node, redlock_time now_us) {
  if (!rl_link_connected(&node->link, now_us)) {
    rl_node_disconnected(node, now_us, "out of memory");
  }
}

void rl_node_shorten_delay(rl_node *node) {
  if (node->link.phase == RL_LINK_DOWN) {
    node->connect_at_us = rl_time_min(node->connect_at_us, node->needed_at_us);
  }
}

void rl_node_disconnected(rl_node *node, redlock_time now_us, const char *reason) {
  const rl_link *link = &node->link;
  bool lasted = rl_time_sub(now_us, link->up_us) >= RL_BACKOFF_CONNECTION_MAX_US;
  if (link->phase == RL_LINK_UP && (link->useful || lasted)) {
    /* The connection was useful: reconnect at once. */
    node->failures = 0;
    node->connect_at_us = now_us;
  } else if (link->phase != RL_LINK_DOWN) {
    /* An operation waits no longer than the last try took. */
    redlock_duration took_us = rl_time_sub(now_us, node->tried_us);
    node->connect_at_us = rl_time_add(now_us, rl_backoff_connection(node->failures, node->random));
    node->needed_at_us = rl_time_add(now_us, rl_time_max(took_us, RL_BACKOFF_CONNECTION_MIN_US));
    node->connect_at_us = link->reconnect_now ? now_us : node->connect_at_us;
    node->failures++;
  }
  node->certificate_ends_us = 0;
  node->read_only = false;
  node->lacks_keys |= node->twins != 0; /* A twin gets no backfill (rl_twin.h). */
  node->twins = 0;
  (void)snprintf(node->error, sizeof node->error, "%s", reason);
  rl_link_disconnected(&node->link);
}

/*
 * Returns true if an error has the code |dashed|. Before Redis 7 the code is inside the text if a
 * script has written.
 */
static bool rl_node_error_is(const char *text, const char *dashed) {
  const char *found = strstr(text, dashed);
  return found != NULL || strstr(text, dashed + 1) == text;
}

/*
 * A replica, and a master without its replicas. Beside either of them another server may be the
 * master, to which only a new connection leads.
 */
bool rl_node_refuses_to_write(const rl_node *node) {
  const rl_reply *reply = &node->link.reader.reply;
  return reply->type == RL_REPLY_ERROR && (rl_node_error_is(reply->text, "-READONLY ") ||
                                           rl_node_error_is(reply->text, "-NOREPLICAS "));
}

void rl_node_disconnect_read_only(rl_node *node, redlock_time now_us, const char *refusal) {
  node->link.useful = false;
  rl_node_disconnected(node, now_us, refusal);
  node->read_only = true;
}

void rl_node_note_write(rl_node *node) {
  if (node->read_only) {
    node->read_only = false;
    node->error[0] = '\0';
  }
}

bool rl_node_is_up(const rl_node *node) {
  return node->link.phase == RL_LINK_UP && !node->read_only && node->twins == 0;
}

bool rl_node_is_down(const rl_node *node, redlock_time now_us) {
  bool failed = node->link.phase == RL_LINK_DOWN && node->failures > 0;
  return node->read_only || node->twins != 0 || (failed && node->connect_at_us > now_us);
}

redlock_duration rl_node_certificate(const rl_node *node, redlock_time now_us) {
  return node->certificate_ends_us == 0 ? REDLOCK_NEVER
                                        : rl_time_sub(node->certificate_ends_us, now_us);
}
