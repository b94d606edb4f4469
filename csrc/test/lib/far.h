/*
 * Distance: a relay in front of a server, over which every byte takes its time.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef FAR_H
#define FAR_H

#include <sys/types.h>

#include "redlock.h"

typedef struct far_relay {
  pid_t pid;
  char address[32];            /* "127.0.0.1:port" */
  volatile unsigned *silenced; /* how often */
} far_relay;

/*
 * Relays to 127.0.0.1:|port| in a process of its own, which dies with this one. Each direction takes
 * |delay_us|; connecting takes none.
 */
void far_start(far_relay *relay, int port, redlock_duration delay_us);
void far_end(far_relay *relay);

/*
 * The connections of now go silent, as when a NAT forgets them: what is sent on them is neither
 * acknowledged nor refused. New connections are well. They are silent when the call returns.
 */
void far_silence(far_relay *relay);

#endif
