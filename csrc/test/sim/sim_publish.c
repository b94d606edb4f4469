/*
 * Messages that a node publishes, and the subscriptions that receive them.
 *
 * SPDX-License-Identifier: MIT
 *
 * A node counts a subscriber until it notices that the connection has ended.
 */
#include "sim_publish.h"

#include <string.h>

#include "check.h"
#include "sim_key.h"
#include "sim_trace.h"

bool sim_publish_is_denied(const sim *s, unsigned node, sim_deaf what) {
  return s->now_us < s->nodes[node].deaf_until_us && (s->nodes[node].deaf & (unsigned)what) != 0;
}

/* PUBLISH. Returns the number of receivers. */
unsigned sim_publish(sim *s, unsigned node, const char *channel, const char *message,
                     size_t length) {
  char bytes[256];
  unsigned receivers = 0;
  sim_note note = {.token = SIM_NO_TOKEN, .kind = SIM_COMMAND_MESSAGE, .asked = true};
  int head = snprintf(
      bytes, sizeof bytes, "*3\r\n$7\r\nmessage\r\n$%zu\r\n" SIM_PUBLISH_CHANNEL "%.*s\r\n$%zu\r\n",
      sizeof SIM_PUBLISH_CHANNEL - 1 + SIM_CHANNEL_LENGTH, SIM_CHANNEL_LENGTH, channel, length);
  memcpy(bytes + head, message, length);
  memcpy(bytes + (size_t)head + length, "\r\n", 2);
  for (int i = 0; i < SIM_CONNECTIONS_MAX; i++) {
    const sim_connection *connection = &s->connections[i];
    if (!connection->used || !connection->subscribed || connection->node != node ||
        !connection->node_open || memcmp(connection->channel, channel, SIM_CHANNEL_LENGTH) != 0) {
      continue;
    }
    receivers++;
    if (!connection->client_open) {
      sim_count(s, SIM_NOTIFY_UNNOTICED);
    } else if (length == 0 || sim_waiting_calls(s, i)) {
      sim_network_reply(s, i, bytes, (size_t)head + length + 2, &note);
    }
  }
  return receivers;
}

bool sim_publish_listen(sim *s, int index, const resp_request *command,
                        const sim_request *request) {
  sim_connection *connection = &s->connections[index];
  size_t prefix = sizeof SIM_PUBLISH_CHANNEL - 1;
  char reply[128];
  if (resp_is(command, 0, "PING")) {
    sim_count(s, SIM_SUBSCRIBER_PINGED);
    sim_node_reply(s, index, request,
                   connection->subscribed ? "*2\r\n$4\r\npong\r\n$0\r\n\r\n" : "+PONG\r\n",
                   connection->subscribed ? SIM_OUTCOME_GRANTED : SIM_OUTCOME_ERROR);
    return true;
  }
  if (command->count != 2 || command->lengths[1] != prefix + SIM_CHANNEL_LENGTH) {
    sim_violation(s, "wire", "a SUBSCRIBE that the node does not understand");
    return true;
  }
  if (sim_publish_is_denied(s, connection->node, SIM_DEAF_SUBSCRIBE)) {
    sim_count(s, SIM_SUBSCRIBE_DENIED);
    return false;
  }
  connection->subscribed = true;
  memcpy(connection->channel, command->words[1] + prefix, SIM_CHANNEL_LENGTH);
  (void)snprintf(reply, sizeof reply, "*3\r\n$9\r\nsubscribe\r\n$%zu\r\n%.*s\r\n:1\r\n",
                 command->lengths[1], (int)command->lengths[1], command->words[1]);
  sim_count(s, SIM_SUBSCRIBED);
  sim_node_reply(s, index, request, reply, SIM_OUTCOME_GRANTED);
  return true;
}
