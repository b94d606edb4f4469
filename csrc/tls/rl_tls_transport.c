/*
 * TLS by OpenSSL: the transport, a table of functions.
 *
 * SPDX-License-Identifier: MIT
 */
#include "rl_tls.h"

static const redlock_transport rl_tls_transport = {
    RL_TRANSPORT_VERSION, rl_tls_node_new,      rl_tls_node_free,         rl_tls_stream_new,
    rl_tls_stream_free,   rl_tls_stream_shake,  rl_tls_stream_room,       rl_tls_stream_fed,
    rl_tls_stream_read,   rl_tls_stream_holds,  rl_tls_stream_write,      rl_tls_stream_output,
    rl_tls_stream_sent,   rl_tls_stream_finish, rl_tls_stream_certificate};

const redlock_transport *redlock_tls(void) {
  return &rl_tls_transport;
}
