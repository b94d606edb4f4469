/*
 * TLS by OpenSSL: the table of functions.
 *
 * SPDX-License-Identifier: MIT
 */
#include "rl_tls.h"

static const redlock_transport rl_tls_transport = {
    RL_TRANSPORT_VERSION, rl_tls_node_new,    rl_tls_node_free,       rl_tls_line_new,
    rl_tls_line_free,     rl_tls_line_shake,  rl_tls_line_room,       rl_tls_line_fed,
    rl_tls_line_read,     rl_tls_line_holds,  rl_tls_line_write,      rl_tls_line_output,
    rl_tls_line_sent,     rl_tls_line_finish, rl_tls_line_certificate};

const redlock_transport *redlock_tls(void) {
  return &rl_tls_transport;
}
