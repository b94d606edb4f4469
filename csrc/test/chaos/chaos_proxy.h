/*
 * The proxy between workers and servers, which loses, delays and breaks on demand.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef CHAOS_PROXY_H
#define CHAOS_PROXY_H

#include "chaos.h"

/* Opens the gates that need a port, and serves them in a process of its own, until it is killed. */
pid_t chaos_proxy_start(chaos_shared *shared);

#endif
