/*
 * Temporary redis-servers with a port for TLS beside the plain port that tests use.
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

/* Each node has the certificate "good", and requires no client certificate. */
void tls_farm_start(tls_farm *self, unsigned count);
void tls_farm_end(tls_farm *self);

/* Restarts and empties all nodes, and restores their first settings. */
void tls_farm_reset(tls_farm *self);

/* Sets the certificate, or another tls-... setting, of later connections of a node. */
void tls_farm_show(tls_farm *self, unsigned node, const char *certificate);
void tls_farm_set(tls_farm *self, unsigned node, const char *setting, const char *value);

/*
 * Returns the path of a file such as "ca.pem"; NULL for NULL. The farm owns it, for the next 15
 * calls.
 */
const char *tls_farm_file(const tls_farm *self, const char *name);

/* Makes a client without nodes. |settings| may be NULL; the default CA is "ca.pem". */
redlock_client *tls_client(const tls_farm *self, const redlock_settings *settings);

/* Makes a client of the first |count| nodes over TLS. */
redlock_client *tls_client_of(const tls_farm *self, unsigned count, const redlock_options *options);

#endif
