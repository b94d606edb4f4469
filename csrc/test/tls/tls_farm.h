/*
 * Throw-away redis-servers that speak TLS, beside the port that tests look through.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef TLS_FARM_H
#define TLS_FARM_H

#include "certificates.h"
#include "farm.h"
#include "redlock_tls.h"

typedef struct tls_farm {
  farm farm;
  scratch_directory certificates;
  char paths[3][CERTIFICATES_PATH_MAX];
  const char *arguments[10];
} tls_farm;

/* Each node has the certificate "good", and asks for none. */
void tls_farm_start(tls_farm *self, unsigned count);
void tls_farm_end(tls_farm *self);

/* Brings all nodes back, empty, with what they began with. */
void tls_farm_reset(tls_farm *self);

/* What a node has from its next connection on: another certificate; a setting of tls-... */
void tls_farm_show(tls_farm *self, unsigned node, const char *certificate);
void tls_farm_set(tls_farm *self, unsigned node, const char *setting, const char *value);

/* A file of the certificates: "ca.pem". NULL for NULL. The text is the farm's, and good for the next 15 calls. */
const char *tls_farm_file(const tls_farm *self, const char *name);

/* A client without nodes that trusts "ca.pem" unless |settings|, which may be NULL, say otherwise. */
redlock_client *tls_client(const tls_farm *self, const redlock_settings *settings);

/* A client of the first |count| nodes over TLS. */
redlock_client *tls_client_of(const tls_farm *self, unsigned count, const redlock_options *options);

#endif
