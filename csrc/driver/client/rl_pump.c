/*
 * The steps 2 to 4 of rl_core.h, which all drivers share.
 *
 * SPDX-License-Identifier: MIT
 */
#include "client/rl_pump.h"

#include "os/rl_entropy.h"

#define RL_PUMP_ENTROPY_MAX 64 /* attempts with entropy in one bunch */
#define RL_PUMP_BUNCHES_MAX 4  /* bunches in one call; then replies are read */

rl_pump_wants rl_pump_advance(rl_core *core, redlock_time now_us) {
  rl_pump_wants wants = {0, 0};
  rl_core_advance(core, now_us);
  uint32_t down = rl_core_without_connection(core);
  for (unsigned i = 0; down != 0 && i < rl_core_connection_count(core); i++) {
    uint32_t bit = (uint32_t)1 << i;
    if ((down & bit) == 0) {
      continue;
    }
    rl_connection wanted = rl_core_wanted_connection(core, i, now_us);
    if (wanted != RL_CONNECTION_OPEN) {
      wants.close |= bit;
    }
    if (wanted == RL_CONNECTION_WANTED) {
      wants.connect |= bit;
    }
  }
  return wants;
}

int rl_pump_send(rl_core *core) {
  unsigned char entropy[RL_PUMP_ENTROPY_MAX * RL_LOCK_ENTROPY];
  for (unsigned i = 0; i < RL_PUMP_BUNCHES_MAX && rl_core_wants_send(core); i++) {
    size_t wanted = rl_core_entropy_wanted(core);
    bool filled = true;
    wanted = wanted < sizeof entropy ? wanted : sizeof entropy;
    if (wanted > 0 && !rl_entropy_fill(entropy, wanted)) {
      filled = false;
      wanted = 0; /* Commands without entropy are sent nevertheless. */
    }
    /* Attempts count from a clock reading before their first byte. */
    rl_core_send(core, redlock_now(), entropy, wanted);
    if (!filled) {
      return REDLOCK_E_SYSTEM;
    }
  }
  return REDLOCK_OK;
}
