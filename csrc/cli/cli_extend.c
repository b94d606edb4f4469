/*
 * redlock extend: extends the lock of a text, and prints its new text.
 *
 * SPDX-License-Identifier: MIT
 *
 * The acquire of an attached lock replaces its token and sets the full ttl. So the old text is of
 * no use after it, and no other extend is needed. If the new text cannot be printed, the lock
 * stays until its ttl, because the work of its holder may go on.
 */
#include "cli_handover.h"

static int cli_extend_step(const cli_settings *settings, cli_loop *loop, redlock_lock *lock) {
  char text[REDLOCK_HANDOVER_MAX];
  return cli_handover_print(settings, loop, lock, text);
}

int cli_extend(const cli_settings *settings, redlock_client *client) {
  return cli_handover_with_lock(settings, client, cli_extend_step);
}
