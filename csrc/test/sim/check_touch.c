/*
 * No client deletes, prolongs or overwrites a key of another client.
 *
 * SPDX-License-Identifier: MIT
 */
#include "check.h"

static void check_touch_touched(sim *s, const sim_connection *connection, const sim_key *key,
                                uint32_t token, sim_command_kind kind) {
  if (kind == SIM_COMMAND_SET || key->token != token) {
    sim_violation(s, "touch", "client %u %s the key of token %u on node %u with token %u",
                  connection->client,
                  kind == SIM_COMMAND_SET       ? "overwrites"
                  : kind == SIM_COMMAND_RELEASE ? "deletes"
                                                : "prolongs",
                  key->token, connection->node, token);
  }
}

const checker check_touch = {
    .name = "touch",
    .touched = check_touch_touched,
};
