/*
 * TLS by OpenSSL: errors as sentences.
 *
 * SPDX-License-Identifier: MIT
 *
 * Texts from the peer, such as the names in its certificate, are shortened and made printable.
 */
#include <openssl/err.h>
#include <openssl/x509v3.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "rl_tls.h"

#define RL_TLS_NAME_MAX 40 /* bytes of a name in a certificate */

void rl_tls_format(char *message, size_t message_size, const char *format, ...) {
  va_list arguments;
  if (message_size == 0) {
    return;
  }
  va_start(arguments, format);
  (void)vsnprintf(message, message_size, format, arguments);
  va_end(arguments);
  for (char *byte = message; *byte != '\0'; byte++) {
    if (*byte < ' ' || *byte > '~') {
      *byte = '?';
    }
  }
}

/*
 * Writes the system's text of |error|, which is clearer than OpenSSL's. Returns false if it has
 * none.
 */
static bool rl_tls_system_error(unsigned long error, char *text, size_t size) {
#ifdef ERR_SYSTEM_ERROR
  bool of_system = error != 0 && ERR_SYSTEM_ERROR(error);
#else
  bool of_system = error != 0 && ERR_GET_LIB(error) == ERR_LIB_SYS;
#endif
#if defined(__GLIBC__)
  const char *system_text = of_system ? strerror_r(ERR_GET_REASON(error), text, size) : NULL;
#else
  const char *system_text =
      of_system && strerror_r(ERR_GET_REASON(error), text, size) == 0 ? text : NULL;
#endif
  if (system_text != NULL && system_text != text) {
    rl_tls_format(text, size, "%s", system_text);
  }
  return system_text != NULL;
}

void rl_tls_format_error(char *message, size_t message_size, const char *before,
                         const char *otherwise) {
  char text[128];
  unsigned long error = ERR_peek_last_error();
  const char *reason = error == 0 ? NULL : ERR_reason_error_string(error);
  /* If a file is missing, the first error is the system's. */
  if (rl_tls_system_error(ERR_peek_error(), text, sizeof text) ||
      rl_tls_system_error(error, text, sizeof text)) {
    reason = text;
  }
  rl_tls_format(message, message_size, "%s%s", before, reason != NULL ? reason : otherwise);
  ERR_clear_error();
}

/* ------------------------------------------------------------------------------- certificates */

/* Writes the common name of |of|, or the first DNS name of |certificate|, which may be NULL. */
static void rl_tls_name(char name[RL_TLS_NAME_MAX], const X509_NAME *of, const X509 *certificate) {
  char *text = name;
  if (X509_NAME_get_text_by_NID((X509_NAME *)(uintptr_t)of, NID_commonName, text, RL_TLS_NAME_MAX) >
      0) {
    return;
  }
  GENERAL_NAMES *names =
      certificate == NULL ? NULL : X509_get_ext_d2i(certificate, NID_subject_alt_name, NULL, NULL);
  const GENERAL_NAME *first = names == NULL ? NULL : sk_GENERAL_NAME_value(names, 0);
  rl_tls_format(name, RL_TLS_NAME_MAX, "no name");
  if (first != NULL && first->type == GEN_DNS) {
    rl_tls_format(name, RL_TLS_NAME_MAX, "%.*s", ASN1_STRING_length(first->d.dNSName),
                  (const char *)ASN1_STRING_get0_data(first->d.dNSName));
  }
  GENERAL_NAMES_free(names);
}

/* Writes "2026-11-20". */
static void rl_tls_date(char date[16], const ASN1_TIME *time) {
  struct tm when;
  memset(&when, 0, sizeof when);
  if (ASN1_TIME_to_tm(time, &when) != 1) {
    rl_tls_format(date, 16, "?");
    return;
  }
  rl_tls_format(date, 16, "%04d-%02d-%02d", (when.tm_year + 1900) % 10000, (when.tm_mon + 1) % 100,
                when.tm_mday % 100);
}

/* Writes what to do about |error|, or nothing. */
static void rl_tls_hint(char *hint, size_t size, const rl_transport_node *node, int error) {
  const rl_transport_options *options = &node->options;
  hint[0] = '\0';
  switch (error) {
  case X509_V_ERR_HOSTNAME_MISMATCH:
  case X509_V_ERR_IP_ADDRESS_MISMATCH:
    rl_tls_format(hint, size, "; expected is %.60s", node->peer);
    break;
  case X509_V_ERR_UNABLE_TO_GET_ISSUER_CERT_LOCALLY:
  case X509_V_ERR_UNABLE_TO_VERIFY_LEAF_SIGNATURE:
  case X509_V_ERR_SELF_SIGNED_CERT_IN_CHAIN:
  case X509_V_ERR_DEPTH_ZERO_SELF_SIGNED_CERT:
    if (options->ca == NULL && options->ca_path == NULL) {
      rl_tls_format(hint, size, "; set tls_ca to the CA of the node");
    }
    break;
  case X509_V_ERR_UNABLE_TO_GET_CRL:
    rl_tls_format(hint, size, "; add the CRL of this CA to tls_crl");
    break;
  default:
    break;
  }
}

void rl_tls_set_refusal(rl_transport_stream *stream, X509_STORE_CTX *store) {
  char subject[RL_TLS_NAME_MAX];
  char issuer[RL_TLS_NAME_MAX];
  char date[16] = "";
  int error = X509_STORE_CTX_get_error(store);
  X509 *certificate = X509_STORE_CTX_get_current_cert(store);
  const char *when = "";
  if (certificate == NULL) {
    rl_tls_format(stream->refusal, sizeof stream->refusal, "%s",
                  X509_verify_cert_error_string(error));
    return;
  }
  rl_tls_name(subject, X509_get_subject_name(certificate), certificate);
  rl_tls_name(issuer, X509_get_issuer_name(certificate), NULL);
  if (error == X509_V_ERR_CERT_HAS_EXPIRED) {
    when = " until ";
    rl_tls_date(date, X509_get0_notAfter(certificate));
  } else if (error == X509_V_ERR_CERT_NOT_YET_VALID) {
    when = " from ";
    rl_tls_date(date, X509_get0_notBefore(certificate));
  }
  char hint[80];
  rl_tls_hint(hint, sizeof hint, stream->node, error);
  rl_tls_format(stream->refusal, sizeof stream->refusal, "%s ('%s' by '%s'%s%s)%s",
                X509_verify_cert_error_string(error), subject, issuer, when, date, hint);
}

/* -------------------------------------------------------------------------------------- streams */

static const char *rl_tls_reason(unsigned long error, bool shaken) {
  switch (ERR_GET_REASON(error)) {
  case SSL_R_WRONG_VERSION_NUMBER:
  case SSL_R_HTTP_REQUEST:
  case SSL_R_PACKET_LENGTH_TOO_LONG:
#ifdef SSL_R_BAD_RECORD_TYPE
  case SSL_R_BAD_RECORD_TYPE:
#endif
  case SSL_R_UNEXPECTED_MESSAGE:
  case SSL_R_RECORD_LENGTH_MISMATCH:
    return shaken ? "the node's bytes are not TLS" : "the answer is not TLS; is this a TLS port?";
  case SSL_R_UNSUPPORTED_PROTOCOL:
  case SSL_R_TLSV1_ALERT_PROTOCOL_VERSION:
    return "the node supports no TLS version that is new enough";
  case SSL_R_TLSV13_ALERT_CERTIFICATE_REQUIRED:
    return "the node requires a client certificate; set tls_cert and tls_key";
  case SSL_R_SSLV3_ALERT_HANDSHAKE_FAILURE:
    return "no common cipher, or the node requires a client certificate (tls_cert and tls_key)";
  default:
    return ERR_reason_error_string(error);
  }
}

static void rl_tls_format_broken(const rl_transport_stream *stream, char *message,
                                 size_t message_size) {
  unsigned long error = ERR_peek_error();
  const char *reason = error == 0 ? NULL : rl_tls_reason(error, stream->shaken);
  rl_tls_format(message, message_size, "%s: %s",
                stream->shaken ? "TLS ended" : "the TLS handshake failed",
                reason != NULL ? reason : "the node broke the protocol");
}

void rl_tls_format_failure(rl_transport_stream *stream, int result, char *message,
                           size_t message_size) {
  int kind = SSL_get_error(stream->ssl, result);
  if (stream->refusal[0] != '\0' && !stream->shaken) {
    rl_tls_format(message, message_size, "its certificate is invalid: %s", stream->refusal);
  } else if (kind == SSL_ERROR_ZERO_RETURN) {
    rl_tls_format(message, message_size, "the node closed the connection");
  } else {
    rl_tls_format_broken(stream, message, message_size);
  }
  ERR_clear_error();
}
