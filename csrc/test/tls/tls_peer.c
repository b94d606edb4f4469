/*
 * A TLS server in memory: the peer of a stream without sockets.
 *
 * SPDX-License-Identifier: MIT
 */
#include "tls_peer.h"

#include <openssl/ec.h>
#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/x509v3.h>
#include <stdio.h>
#include <string.h>

#include "rl_test.h"

#define DAY_S (24L * 60 * 60)

static EVP_PKEY *make_key(void) {
  EVP_PKEY *key = NULL;
  EVP_PKEY_CTX *context = EVP_PKEY_CTX_new_id(EVP_PKEY_EC, NULL);
  assert_non_null(context);
  assert_int_equal(EVP_PKEY_keygen_init(context), 1);
  assert_int_equal(EVP_PKEY_CTX_set_ec_paramgen_curve_nid(context, NID_X9_62_prime256v1), 1);
  assert_int_equal(EVP_PKEY_keygen(context, &key), 1);
  EVP_PKEY_CTX_free(context);
  return key;
}

static void add_extension(X509 *certificate, int nid, const char *value) {
  X509_EXTENSION *extension = X509V3_EXT_conf_nid(NULL, NULL, nid, value);
  assert_non_null(extension);
  assert_int_equal(X509_add_ext(certificate, extension, -1), 1);
  X509_EXTENSION_free(extension);
}

tls_certificate tls_certificate_make(const char *host, int from_days, int until_days) {
  char names[256];
  tls_certificate self = {X509_new(), make_key()};
  X509_NAME *name = X509_get_subject_name(self.certificate);
  assert_int_equal(X509_set_version(self.certificate, 2), 1);
  assert_int_equal(ASN1_INTEGER_set(X509_get_serialNumber(self.certificate), 1), 1);
  assert_non_null(X509_gmtime_adj(X509_getm_notBefore(self.certificate), from_days * DAY_S));
  assert_non_null(X509_gmtime_adj(X509_getm_notAfter(self.certificate), until_days * DAY_S));
  assert_int_equal(
      X509_NAME_add_entry_by_txt(name, "CN", MBSTRING_ASC, (const unsigned char *)host, -1, -1, 0),
      1);
  assert_int_equal(X509_set_issuer_name(self.certificate, name), 1);
  assert_int_equal(X509_set_pubkey(self.certificate, self.key), 1);
  (void)snprintf(names, sizeof names, "DNS:%s,IP:127.0.0.1,IP:::1", host);
  add_extension(self.certificate, NID_subject_alt_name, names);
  add_extension(self.certificate, NID_basic_constraints, "critical,CA:TRUE");
  assert_true(X509_sign(self.certificate, self.key, EVP_sha256()) > 0);
  return self;
}

void tls_certificate_free(tls_certificate *self) {
  X509_free(self->certificate);
  EVP_PKEY_free(self->key);
}

void tls_certificate_write(const tls_certificate *self, const char *path) {
  FILE *file = fopen(path, "w");
  assert_non_null(file);
  assert_int_equal(PEM_write_X509(file, self->certificate), 1);
  assert_int_equal(fclose(file), 0);
}

void tls_certificate_write_key(const tls_certificate *self, const char *path,
                               const char *password) {
  FILE *file = fopen(path, "w");
  assert_non_null(file);
  assert_int_equal(
      PEM_write_PKCS8PrivateKey(file, self->key, password == NULL ? NULL : EVP_aes_128_cbc(),
                                password, password == NULL ? 0 : (int)strlen(password), NULL, NULL),
      1);
  assert_int_equal(fclose(file), 0);
}

/* ---------------------------------------------------------------------------------------- peer */

void tls_peer_start(tls_peer *self, const tls_certificate *certificate, int version) {
  memset(self, 0, sizeof *self);
  self->context = SSL_CTX_new(TLS_server_method());
  assert_non_null(self->context);
  assert_int_equal(SSL_CTX_use_certificate(self->context, certificate->certificate), 1);
  assert_int_equal(SSL_CTX_use_PrivateKey(self->context, certificate->key), 1);
  assert_int_equal(SSL_CTX_set_min_proto_version(self->context, version), 1);
  assert_int_equal(SSL_CTX_set_max_proto_version(self->context, version), 1);
  assert_int_equal(SSL_CTX_set_session_id_context(self->context, (const unsigned char *)"test", 4),
                   1);
  tls_peer_next(self);
}

void tls_peer_next(tls_peer *self) {
  if (self->ssl != NULL) {
    /* OpenSSL would drop the session of a connection that ends without a farewell. */
    SSL_set_shutdown(self->ssl, SSL_SENT_SHUTDOWN | SSL_RECEIVED_SHUTDOWN);
  }
  SSL_free(self->ssl);
  self->ssl = SSL_new(self->context);
  self->in = BIO_new(BIO_s_mem());
  self->out = BIO_new(BIO_s_mem());
  assert_true(self->ssl != NULL && self->in != NULL && self->out != NULL);
  (void)BIO_set_mem_eof_return(self->in, -1);
  SSL_set_bio(self->ssl, self->in, self->out);
  SSL_set_accept_state(self->ssl);
}

void tls_peer_end(tls_peer *self) {
  SSL_free(self->ssl);
  SSL_CTX_free(self->context);
}

void tls_peer_take(tls_peer *self, rl_transport_stream *stream) {
  size_t length;
  const void *bytes = rl_tls_stream_output(stream, &length);
  if (bytes != NULL) {
    assert_int_equal(BIO_write(self->in, bytes, (int)length), (int)length);
    rl_tls_stream_sent(stream, length);
  }
  if (!SSL_is_init_finished(self->ssl)) {
    (void)SSL_do_handshake(self->ssl);
    ERR_clear_error();
  }
}

size_t tls_peer_give(tls_peer *self, rl_transport_stream *stream, size_t length) {
  size_t room;
  void *bytes = rl_tls_stream_room(stream, &room);
  size_t wanted = length < room ? length : room;
  int got = BIO_read(self->out, bytes, (int)wanted);
  rl_tls_stream_fed(stream, got > 0 ? (size_t)got : 0);
  return got > 0 ? (size_t)got : 0;
}

int tls_peer_shake(tls_peer *self, rl_transport_stream *stream, size_t length, char *message,
                   size_t size) {
  int ended = rl_tls_stream_shake(stream, message, size);
  for (unsigned i = 0; ended == 0 && i < 100000; i++) {
    tls_peer_take(self, stream);
    if (tls_peer_give(self, stream, length) == 0) {
      return 0;
    }
    ended = rl_tls_stream_shake(stream, message, size);
  }
  tls_peer_take(self, stream);
  return ended;
}

void tls_peer_write(tls_peer *self, const void *bytes, size_t length) {
  assert_int_equal(SSL_write(self->ssl, bytes, (int)length), (int)length);
}

int tls_peer_read(tls_peer *self, void *bytes, size_t length) {
  int got = SSL_read(self->ssl, bytes, (int)length);
  ERR_clear_error();
  return got;
}
