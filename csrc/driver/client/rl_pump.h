/*
 * Steps 2 to 4 of rl_core.h, which all drivers share.
 *
 * SPDX-License-Identifier: MIT
 *
 * The sockets of the library (rl_turn.c) and the connections of nginx (csrc/binding/rl_lua_nginx.c)
 * use them. A turn is
 *
 *     wants = rl_pump_advance(core, now);           close and open what it names
 *     rl_pump_send(core);
 *     nodes = rl_core_with_output(core);            send to those; rl_core_output_sent()
 *
 * A set of connections (rl_core_connection_count()) is a uint32_t: bit i is connection i.
 * Connection i of the first ones is that of node i.
 */
#ifndef RL_PUMP_H
#define RL_PUMP_H

#include "rl_core.h"

typedef struct rl_pump_wants {
  uint32_t close;   /* connections without use: to be closed if they are open */
  uint32_t connect; /* to be made once the old one is gone: rl_core_connecting() */
} rl_pump_wants;

/* Steps 2 and 3: runs timers, and returns what to do with connections. */
rl_pump_wants rl_pump_advance(rl_core *core, redlock_time now_us);

/*
 * Step 4: puts due commands into the nodes' output, in bunches that begin with a reading of the
 * clock. A part of a very long queue is left to the next call: rl_core_deadline() is 0. Returns
 * REDLOCK_OK, or SYSTEM without entropy.
 */
int rl_pump_send(rl_core *core);

#endif
