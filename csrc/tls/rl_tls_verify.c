/*
 * TLS by OpenSSL: the verification of a node's certificate.
 *
 * SPDX-License-Identifier: MIT
 */
#include <openssl/x509v3.h>

#include "rl_tls.h"

bool rl_tls_verify_trust(SSL_CTX *context, const rl_transport_options *options) {
  if (options->ca == NULL && options->ca_path == NULL) {
    return SSL_CTX_set_default_verify_paths(context) == 1;
  }
  return SSL_CTX_load_verify_locations(context, options->ca, options->ca_path) == 1;
}

bool rl_tls_verify_revoke(SSL_CTX *context, const char *crl) {
  X509_STORE *store = SSL_CTX_get_cert_store(context);
  X509_LOOKUP *lookup = X509_STORE_add_lookup(store, X509_LOOKUP_file());
  return lookup != NULL && X509_load_crl_file(lookup, crl, X509_FILETYPE_PEM) > 0 &&
         X509_STORE_set_flags(store, X509_V_FLAG_CRL_CHECK | X509_V_FLAG_CRL_CHECK_ALL) == 1;
}

static int rl_tls_verify_answered(int ok, X509_STORE_CTX *store) {
  SSL *ssl = X509_STORE_CTX_get_ex_data(store, SSL_get_ex_data_X509_STORE_CTX_idx());
  if (ok == 0) {
    rl_tls_set_refusal(SSL_get_app_data(ssl), store);
  }
  return ok;
}

void rl_tls_verify_begin(SSL_CTX *context, const rl_transport_options *options) {
  if (options->unverified) {
    SSL_CTX_set_verify(context, SSL_VERIFY_NONE, NULL);
  } else {
    SSL_CTX_set_verify(context, SSL_VERIFY_PEER, rl_tls_verify_answered);
  }
}

bool rl_tls_verify_expect(SSL *ssl, const rl_transport_node *node) {
  if (node->peer_is_address) {
    return X509_VERIFY_PARAM_set1_ip_asc(SSL_get0_param(ssl), node->peer) == 1;
  }
  SSL_set_hostflags(ssl, X509_CHECK_FLAG_NO_PARTIAL_WILDCARDS);
  return SSL_set_tlsext_host_name(ssl, node->peer) == 1 && SSL_set1_host(ssl, node->peer) == 1;
}
