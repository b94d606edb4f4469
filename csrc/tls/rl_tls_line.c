/*
 * TLS by OpenSSL: one connection.
 *
 * SPDX-License-Identifier: MIT
 */
#include <openssl/err.h>
#include <openssl/x509v3.h>
#include <stdlib.h>
#include <string.h>

#include "rl_tls.h"

/* The certificate is for |peer|, by its name or its address. */
static bool rl_tls_line_expect(SSL *ssl, const rl_transport_node *node) {
  if (node->peer_is_address) {
    return X509_VERIFY_PARAM_set1_ip_asc(SSL_get0_param(ssl), node->peer) == 1;
  }
  SSL_set_hostflags(ssl, X509_CHECK_FLAG_NO_PARTIAL_WILDCARDS);
  return SSL_set_tlsext_host_name(ssl, node->peer) == 1 && SSL_set1_host(ssl, node->peer) == 1;
}

static bool rl_tls_line_open(rl_transport_stream *line) {
  rl_transport_node *node = line->node;
  line->ssl = SSL_new(node->context);
  if (line->ssl == NULL || SSL_set_app_data(line->ssl, line) != 1 ||
      (node->peer[0] != '\0' && !rl_tls_line_expect(line->ssl, node))) {
    return false;
  }
  BIO *bio = BIO_new(node->bio);
  if (bio == NULL) {
    return false;
  }
  BIO_set_data(bio, line);
  SSL_set_bio(line->ssl, bio, bio);
  SSL_set_connect_state(line->ssl);
  /* A session that is not taken costs nothing. */
  return node->session == NULL || SSL_set_session(line->ssl, node->session) == 1;
}

rl_transport_stream *rl_tls_line_new(rl_transport_node *node, char *message, size_t message_size) {
  rl_transport_stream *line = calloc(1, sizeof *line);
  ERR_clear_error();
  if (line != NULL) {
    rl_tls_node_refresh(node);
    line->node = node;
    if (rl_tls_line_open(line)) {
      return line;
    }
    rl_tls_line_free(line);
  }
  rl_tls_say_error(message, message_size, "TLS cannot begin: ", "out of memory");
  return NULL;
}

void rl_tls_line_free(rl_transport_stream *line) {
  if (line->ssl != NULL) {
    /* Else OpenSSL takes a connection that ended without a farewell for an attack, and its session is lost. */
    SSL_set_shutdown(line->ssl, SSL_SENT_SHUTDOWN | SSL_RECEIVED_SHUTDOWN);
    SSL_free(line->ssl);
  }
  if (line->output != NULL) {
    OPENSSL_cleanse(line->output, line->output_capacity);
  }
  free(line->output);
  free(line);
}

/* Most often nothing is there to be cleared, and to clear it costs more than to look. */
static void rl_tls_line_forget_errors(void) {
  if (ERR_peek_error() != 0) {
    ERR_clear_error();
  }
}

/* Returns true if there may be more to read without input. */
static bool rl_tls_line_has_more(const rl_transport_stream *line) {
  return line->input_start < line->input_end || SSL_has_pending(line->ssl) == 1;
}

/* A call on |line| returned |result|: 0 when it needs input, -1 when it has failed. */
static int rl_tls_line_ended(rl_transport_stream *line, int result, char *message,
                             size_t message_size) {
  bool waits = SSL_get_error(line->ssl, result) == SSL_ERROR_WANT_READ;
  if (waits && (!line->shaken || line->unheard <= RL_TLS_UNHEARD_MAX)) {
    return 0;
  }
  line->failed = true;
  if (waits) {
    rl_tls_say(message, message_size,
               "TLS ended: the node sends keys or tickets, and nothing else");
  } else {
    rl_tls_say_failure(line, result, message, message_size);
  }
  return -1;
}

int rl_tls_line_shake(rl_transport_stream *line, char *message, size_t message_size) {
  ERR_clear_error();
  int result = SSL_do_handshake(line->ssl);
  if (result == 1) {
    line->shaken = true;
    line->unheard = 0;
    line->holds = line->input_start < line->input_end;
    return 1;
  }
  result = rl_tls_line_ended(line, result, message, message_size);
  if (result < 0) {
    rl_tls_node_forget_session(line->node); /* It may be what the node does not like. */
  }
  return result;
}

void *rl_tls_line_room(rl_transport_stream *line, size_t *length) {
  if (line->input_start == line->input_end) {
    line->input_start = line->input_end = 0;
  }
  *length = sizeof line->input - line->input_end;
  return line->input + line->input_end;
}

void rl_tls_line_fed(rl_transport_stream *line, size_t length) {
  line->input_end += length;
  line->unheard += length;
}

long rl_tls_line_read(rl_transport_stream *line, void *bytes, size_t length, char *message,
                      size_t message_size) {
  size_t got = 0;
  line->holds = false;
  if (line->failed) {
    rl_tls_say(message, message_size, "%s", line->failure);
    return -1;
  }
  rl_tls_line_forget_errors();
  while (got < length && (got == 0 || rl_tls_line_has_more(line))) {
    int room = length - got > INT_MAX ? INT_MAX : (int)(length - got);
    int result = SSL_read(line->ssl, (unsigned char *)bytes + got, room);
    if (result <= 0) {
      result = rl_tls_line_ended(line, result, line->failure, sizeof line->failure);
      if (result < 0 && got == 0) {
        rl_tls_say(message, message_size, "%s", line->failure);
        return -1;
      }
      line->holds = result < 0; /* to be told of it next */
      return (long)got;
    }
    got += (size_t)result;
    line->unheard = 0;
  }
  line->holds = rl_tls_line_has_more(line);
  return (long)got;
}

bool rl_tls_line_holds(const rl_transport_stream *line) {
  return line->holds;
}

long rl_tls_line_write(rl_transport_stream *line, const void *bytes, size_t length, char *message,
                       size_t message_size) {
  if (line->failed) {
    rl_tls_say(message, message_size, "%s", line->failure);
    return -1;
  }
  if (length == 0 || length > INT_MAX) {
    return 0;
  }
  rl_tls_line_forget_errors();
  int result = SSL_write(line->ssl, bytes, (int)length);
  if (result <= 0) {
    /* The output takes all, so that it wants nothing; a handshake amid the connection is refused. */
    line->failed = true;
    rl_tls_say_failure(line, result, line->failure, sizeof line->failure);
    rl_tls_say(message, message_size, "%s", line->failure);
    return -1;
  }
  return result;
}

const void *rl_tls_line_output(const rl_transport_stream *line, size_t *length) {
  *length = line->output_end - line->output_start;
  return *length == 0 ? NULL : line->output + line->output_start;
}

void rl_tls_line_sent(rl_transport_stream *line, size_t length) {
  line->output_start += length;
  if (line->output_start < line->output_end) {
    return;
  }
  line->output_start = line->output_end = 0;
  if (line->output_capacity > RL_TLS_OUTPUT_KEPT_MAX) {
    free(line->output);
    line->output = NULL;
    line->output_capacity = 0;
  }
}

void rl_tls_line_finish(rl_transport_stream *line) {
  if (line->shaken && !line->failed) {
    ERR_clear_error();
    (void)SSL_shutdown(line->ssl);
    ERR_clear_error();
  }
}

/* By the same clock by which OpenSSL has verified it. */
redlock_duration rl_tls_line_certificate(const rl_transport_stream *line) {
  redlock_duration left_us = REDLOCK_NEVER;
  int days = 0, seconds = 0;
  X509 *certificate = SSL_get_peer_certificate(line->ssl);
  ERR_clear_error();
  if (certificate != NULL &&
      ASN1_TIME_diff(&days, &seconds, NULL, X509_get0_notAfter(certificate)) == 1) {
    int64_t left = (int64_t)days * 86400 + seconds;
    left_us = left <= 0 ? 0 : (redlock_duration)left * REDLOCK_SECONDS;
  }
  X509_free(certificate);
  return left_us;
}
