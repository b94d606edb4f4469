/*
 * What every driver does between input and waiting: steps 2 to 4 of rl_core.h.
 *
 * SPDX-License-Identifier: MIT
 *
 * It is the same for our own sockets (rl_turn.c) and for connections that are another's
 * (csrc/binding/rl_lua_nginx.c). A turn is
 *
 *     wants = rl_pump_advance(core, now, open);     close and connect what it names
 *     rl_pump_send(core);
 *     nodes = rl_core_with_output(core);            send to those; rl_core_output_sent()
 *
 * A set of connections (rl_core_connection_count()) is a uint32_t: bit i stands for connection i,
 * which for those of the nodes themselves is node i.
 */
#ifndef RL_PUMP_H
#define RL_PUMP_H

#include "rl_core.h"

typedef struct rl_pump_wants {
  uint32_t close;   /* their connection is of no use any more */
  uint32_t connect; /* as soon as nothing is left of the old connection: rl_core_connecting() */
} rl_pump_wants;

/*
 * Steps 2 and 3: the timers, and what has to become of the connections. |open| are the nodes that
 * the driver has a connection to, or is making one.
 */
rl_pump_wants rl_pump_advance(rl_core *core, redlock_time now_us, uint32_t open);

/*
 * Step 4: the commands of what was begun, or is due again, go into the nodes' output. Each bunch
 * begins with a reading of the clock. A very long queue is left in part for the next call, for
 * which rl_core_deadline() is 0. Returns REDLOCK_OK, or REDLOCK_E_SYSTEM when the kernel has no
 * entropy.
 */
int rl_pump_send(rl_core *core);

#endif
