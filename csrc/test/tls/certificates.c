/*
 * Makes certificates of all kinds.
 *
 * SPDX-License-Identifier: MIT
 */
#include "certificates.h"

#include <openssl/ec.h>
#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/x509v3.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define DAY_S (24L * 60 * 60)

typedef struct certificate_kind {
  const char *name;
  const char *issuer; /* NULL: self-signed */
  const char *subject;
  const char *names; /* subjectAltName; NULL: a CA, "": none */
  int from_days;
  int until_days;
} certificate_kind;

#define HERE "DNS:localhost,IP:127.0.0.1,IP:::1"

static const certificate_kind kinds[] = {
    {"ca", NULL, "our CA", NULL, -2, 9},
    {"ca_renewed", NULL, "our CA", NULL, -2, 9},
    {"ca_stranger", NULL, "their CA", NULL, -2, 9},
    {"intermediate", "ca", "our CA below", NULL, -2, 9},
    {"intermediate_revoked", "ca", "our lost CA", NULL, -2, 9},
    {"good", "ca", "redis.test", HERE, -1, 9},
    {"lasting", "ca", "redis.test", HERE, -1, 90},
    {"three_days", "ca", "redis.test", HERE, -1, 3},
    {"good_renewed", "ca_renewed", "redis.test", HERE, -1, 9},
    {"below", "intermediate", "redis.test", HERE, -1, 9},
    {"below_revoked", "intermediate_revoked", "redis.test", HERE, -1, 9},
    {"wrong_host", "ca", "elsewhere.test", "DNS:elsewhere.example", -1, 9},
    {"wrong_address", "ca", "elsewhere.test", "IP:127.0.0.9", -1, 9},
    {"subject_only", "ca", "localhost", "", -1, 9},
    {"expired", "ca", "redis.test", HERE, -2, -1},
    {"not_yet_valid", "ca", "redis.test", HERE, 1, 9},
    {"self_signed", NULL, "redis.test", HERE, -1, 9},
    {"revoked", "ca", "redis.test", HERE, -1, 9},
    {"stranger", "ca_stranger", "redis.test", HERE, -1, 9},
    {"client", "ca", "client.test", "DNS:client.test", -1, 9},
    {"client_stranger", "ca_stranger", "client.test", "DNS:client.test", -1, 9},
    {"client_expired", "ca", "client.test", "DNS:client.test", -2, -1},
};
#define KINDS (sizeof kinds / sizeof kinds[0])

typedef struct certificate {
  X509 *x509;
  EVP_PKEY *key;
} certificate;

static void need(bool condition, const char *what) {
  if (!condition) {
    (void)fprintf(stderr, "certificates: %s\n", what);
    ERR_print_errors_fp(stderr);
    abort();
  }
}

const char *certificates_path(char path[CERTIFICATES_PATH_MAX], const char *directory,
                              const char *name) {
  (void)snprintf(path, CERTIFICATES_PATH_MAX, "%s/%s", directory, name);
  return path;
}

static FILE *open_file(const char *directory, const char *name, const char *ending) {
  char path[CERTIFICATES_PATH_MAX];
  (void)snprintf(path, sizeof path, "%s/%s%s", directory, name, ending);
  FILE *file = fopen(path, "w");
  need(file != NULL, path);
  return file;
}

/* ------------------------------------------------------------------------------- certificates */

static EVP_PKEY *new_key(void) {
  EVP_PKEY *key = NULL;
  EVP_PKEY_CTX *context = EVP_PKEY_CTX_new_id(EVP_PKEY_EC, NULL);
  need(context != NULL && EVP_PKEY_keygen_init(context) == 1 &&
           EVP_PKEY_CTX_set_ec_paramgen_curve_nid(context, NID_X9_62_prime256v1) == 1 &&
           EVP_PKEY_keygen(context, &key) == 1,
       "no key");
  EVP_PKEY_CTX_free(context);
  return key;
}

static void extend(X509 *x509, int nid, const char *value) {
  X509V3_CTX context;
  X509V3_set_ctx_nodb(&context);
  X509V3_set_ctx(&context, x509, x509, NULL, NULL, 0);
  X509_EXTENSION *extension = X509V3_EXT_conf_nid(NULL, &context, nid, (char *)(uintptr_t)value);
  need(extension != NULL && X509_add_ext(x509, extension, -1) == 1, value);
  X509_EXTENSION_free(extension);
}

static void make(certificate *made, const certificate_kind *kind, const certificate *issuer,
                 long serial) {
  made->key = new_key();
  made->x509 = X509_new();
  issuer = issuer == NULL ? made : issuer;
  X509 *x509 = made->x509;
  need(x509 != NULL && X509_set_version(x509, 2) == 1 &&
           ASN1_INTEGER_set(X509_get_serialNumber(x509), serial) == 1 &&
           X509_gmtime_adj(X509_getm_notBefore(x509), kind->from_days * DAY_S) != NULL &&
           X509_gmtime_adj(X509_getm_notAfter(x509), kind->until_days * DAY_S) != NULL &&
           X509_set_pubkey(x509, made->key) == 1 &&
           X509_NAME_add_entry_by_txt(X509_get_subject_name(x509), "CN", MBSTRING_UTF8,
                                      (const unsigned char *)kind->subject, -1, -1, 0) == 1 &&
           X509_set_issuer_name(x509, X509_get_subject_name(issuer->x509)) == 1,
       kind->name);
  if (kind->names == NULL) {
    extend(x509, NID_basic_constraints, "critical,CA:TRUE");
    extend(x509, NID_key_usage, "critical,keyCertSign,cRLSign");
  } else if (kind->names[0] != '\0') {
    extend(x509, NID_subject_alt_name, kind->names);
  }
  need(X509_sign(x509, issuer->key, EVP_sha256()) > 0, kind->name);
}

static int index_of(const char *name) {
  for (size_t i = 0; name != NULL && i < KINDS; i++) {
    if (strcmp(kinds[i].name, name) == 0) {
      return (int)i;
    }
  }
  return -1;
}

/* Writes a certificate and the intermediate CAs above it. */
static void write_chain(const char *directory, const certificate *all, int place) {
  FILE *file = open_file(directory, kinds[place].name, ".pem");
  int first = place;
  for (; place >= 0; place = index_of(kinds[place].issuer)) {
    if (place == first || kinds[place].issuer != NULL) {
      need(PEM_write_X509(file, all[place].x509) == 1, kinds[place].name);
    }
  }
  (void)fclose(file);
}

static void write_key(const char *directory, const char *name, EVP_PKEY *key,
                      const char *password) {
  FILE *file = open_file(directory, name, ".key");
  need(PEM_write_PKCS8PrivateKey(file, key, password == NULL ? NULL : EVP_aes_128_cbc(), NULL, 0,
                                 NULL, (char *)(uintptr_t)password) == 1,
       name);
  (void)fclose(file);
}

/* ------------------------------------------------------------------------------------- lists */

static void revoke(X509_CRL *crl, const certificate *lost) {
  X509_REVOKED *entry = X509_REVOKED_new();
  ASN1_TIME *when = X509_gmtime_adj(NULL, -DAY_S);
  need(entry != NULL && when != NULL &&
           X509_REVOKED_set_serialNumber(entry, X509_get_serialNumber(lost->x509)) == 1 &&
           X509_REVOKED_set_revocationDate(entry, when) == 1 &&
           X509_CRL_add0_revoked(crl, entry) == 1,
       "a list");
  ASN1_TIME_free(when);
}

static void write_list(FILE *file, const certificate *all, const char *issuer, int until_days) {
  const certificate *by = &all[index_of(issuer)];
  X509_CRL *crl = X509_CRL_new();
  ASN1_TIME *from = X509_gmtime_adj(NULL, -2 * DAY_S);
  ASN1_TIME *until = X509_gmtime_adj(NULL, until_days * DAY_S);
  need(crl != NULL && X509_CRL_set_version(crl, 1) == 1 &&
           X509_CRL_set_issuer_name(crl, X509_get_subject_name(by->x509)) == 1 &&
           X509_CRL_set1_lastUpdate(crl, from) == 1 && X509_CRL_set1_nextUpdate(crl, until) == 1,
       "a list");
  if (strcmp(issuer, "ca") == 0) {
    revoke(crl, &all[index_of("revoked")]);
    revoke(crl, &all[index_of("intermediate_revoked")]);
  }
  need(X509_CRL_sort(crl) == 1 && X509_CRL_sign(crl, by->key, EVP_sha256()) > 0 &&
           PEM_write_X509_CRL(file, crl) == 1,
       "a list");
  ASN1_TIME_free(from);
  ASN1_TIME_free(until);
  X509_CRL_free(crl);
}

static void write_lists(const char *directory, const certificate *all) {
  FILE *file = open_file(directory, "crl", ".pem");
  write_list(file, all, "ca", 9);
  write_list(file, all, "intermediate", 9);
  write_list(file, all, "intermediate_revoked", 9);
  (void)fclose(file);
  file = open_file(directory, "crl_expired", ".pem");
  write_list(file, all, "ca", -1);
  (void)fclose(file);
}

void certificates_write(const char *directory) {
  certificate all[KINDS];
  for (size_t i = 0; i < KINDS; i++) {
    int issuer = index_of(kinds[i].issuer);
    make(&all[i], &kinds[i], issuer < 0 ? NULL : &all[issuer], (long)i + 1);
    write_chain(directory, all, (int)i);
    write_key(directory, kinds[i].name, all[i].key, NULL);
  }
  write_key(directory, "client_locked", all[index_of("client")].key, CERTIFICATES_PASSWORD);
  write_lists(directory, all);
  (void)fclose(open_file(directory, "empty", ".pem"));
  for (size_t i = 0; i < KINDS; i++) {
    X509_free(all[i].x509);
    EVP_PKEY_free(all[i].key);
  }
}
