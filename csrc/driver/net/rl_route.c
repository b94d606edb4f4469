/*
 * How a node is reached: by the bare socket, or through a transport.
 *
 * SPDX-License-Identifier: MIT
 */
#include "net/rl_route.h"

#include <stdio.h>
#include <string.h>

/* Returns the name of the first TLS option that is set in a struct, or NULL. */
#define RL_ROUTE_SET(name, kind, field, low, high, also, must)                                     \
  if (of->field != 0) {                                                                            \
    return #field;                                                                                 \
  }

static const char *rl_route_option_of_node(const redlock_node *of) {
  RL_OPTIONS_OF_TLS(RL_ROUTE_SET)
  return NULL;
}

static const char *rl_route_option_of_client(const redlock_settings *of) {
  RL_OPTIONS_OF_TLS(RL_ROUTE_SET)
  return NULL;
}

/*
 * Checks a node without TLS. TLS options of its client are no mistake if tls was set to REDLOCK_NO,
 * because a client may have nodes of both kinds. Otherwise the password would cross the network in
 * clear text.
 */
static int rl_route_without_tls(const rl_address *address, const redlock_node *node,
                                const redlock_settings *settings, char *message) {
  const char *useless = rl_route_option_of_node(node);
  if (useless != NULL) {
    (void)snprintf(message, RL_ROUTE_ERROR_MAX, "%s has no effect without tls", useless);
    return REDLOCK_E_INVALID;
  }
  bool open = node->tls == 0 && settings->tls == 0 && address->path[0] == '\0';
  const char *forgotten = open ? rl_route_option_of_client(settings) : NULL;
  if (forgotten != NULL) {
    (void)snprintf(message, RL_ROUTE_ERROR_MAX,
                   "%s is set, but tls is not: set tls to REDLOCK_YES, or to REDLOCK_NO for a node "
                   "or a client without",
                   forgotten);
    return REDLOCK_E_INVALID;
  }
  return REDLOCK_OK;
}

#define RL_ROUTE_OF(field) (node->field != 0 ? node->field : settings->field)

int rl_route_make(rl_route *route, const rl_address *address, const redlock_node *node,
                  const redlock_settings *settings, const rl_route *like, char *message) {
  memset(route, 0, sizeof *route);
  if (!address->tls) {
    return rl_route_without_tls(address, node, settings, message);
  }
  const redlock_transport *transport = settings->transport;
  if (transport == NULL || transport->version != RL_TRANSPORT_VERSION) {
    (void)snprintf(message, RL_ROUTE_ERROR_MAX, "%s",
                   transport == NULL
                       ? "TLS is in a library of its own: link with -lredlock_tls, and set "
                         "transport to redlock_tls()"
                       : "libredlock_tls has another version than libredlock: install the same");
    return REDLOCK_E_UNSUPPORTED;
  }
  rl_transport_options options = {.host = address->host,
                                  .ca = RL_ROUTE_OF(tls_ca),
                                  .ca_path = RL_ROUTE_OF(tls_ca_path),
                                  .crl = RL_ROUTE_OF(tls_crl),
                                  .cert = RL_ROUTE_OF(tls_cert),
                                  .key = RL_ROUTE_OF(tls_key),
                                  .key_password = RL_ROUTE_OF(tls_key_password),
                                  .server_name = RL_ROUTE_OF(tls_server_name),
                                  .ciphers = RL_ROUTE_OF(tls_ciphers),
                                  .min_version = RL_ROUTE_OF(tls_min_version),
                                  .unverified =
                                      RL_ROUTE_OF(tls_dangerously_unverified) == REDLOCK_YES,
                                  .like = like == NULL ? NULL : like->node};
  route->transport = transport;
  return transport->node_new(&route->node, &options, message, RL_ROUTE_ERROR_MAX);
}

void rl_route_free(rl_route *route) {
  if (route->node != NULL) {
    route->transport->node_free(route->node);
  }
  memset(route, 0, sizeof *route);
}
